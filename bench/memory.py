# SPDX-License-Identifier: Apache-2.0
"""What one idle sandbox takes: pages of its processes, and of the kernel for it.

All in = proportional set size (PSS) of every process that exists because of the sandbox, each address space counted once,
       + growth of the process that holds the sandboxes
       + growth of the kernel's own memory (Slab, PageTables, KernelStack, Percpu) and of Shmem that no process maps, by /proc/meminfo.
The machine's other work shows in meminfo, so a trial holds many sandboxes, trials of candidates alternate, and the median of the trials counts.
"""

import ctypes
import os
import pathlib
import platform
import subprocess
import time

from harness import Failure, Talk, first_line

KERNEL_FIELDS = ("Slab", "PageTables", "KernelStack", "Percpu")
SETTLE_STEP_S = 0.25  # what was freed comes back by RCU and by delayed work of cgroups and namespaces
SETTLE_STEP_KIB = 256  # less than this in one step is the machine's own noise
SETTLE_MAX_S = 5
KCMP = {"x86_64": 312, "aarch64": 272}.get(platform.machine())  # system call number
KCMP_VM = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def meminfo():
    """{field: KiB}"""
    fields = (line.split() for line in open("/proc/meminfo", encoding="ascii"))
    return {field[0].rstrip(":"): int(field[1]) for field in fields}


def settle():
    """meminfo() when the kernel's memory has come to rest."""
    last, deadline = meminfo(), time.monotonic() + SETTLE_MAX_S
    while time.monotonic() < deadline:
        time.sleep(SETTLE_STEP_S)
        now = meminfo()
        if all(abs(now[field] - last[field]) < SETTLE_STEP_KIB for field in (*KERNEL_FIELDS, "Shmem")):
            return now
        last = now
    return last


def rollup(pid):
    """{field: KiB} of a process, {} if it is gone or a zombie."""
    try:
        fields = [line.split() for line in open(f"/proc/{pid}/smaps_rollup", encoding="ascii")]
    except OSError:
        return {}
    return {field[0].rstrip(":"): int(field[1]) for field in fields[1:]}


def status_field(pid, name):
    try:
        for line in open(f"/proc/{pid}/status", encoding="utf-8", errors="replace"):
            if line.startswith(name + ":"):
                return line.split()[1:]
    except OSError:
        pass
    return []


def descendants(roots):
    """Every process below `roots`, without them."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            parent = status_field(int(entry), "PPid")
            if parent:
                children.setdefault(int(parent[0]), []).append(int(entry))
    found, queue = [], list(roots)
    while queue:
        queue.extend(children.get(queue[0], []))
        found.extend(children.get(queue.pop(0), []))
    return found


def same_memory(a, b):
    return KCMP is not None and LIBC.syscall(KCMP, a, b, KCMP_VM, 0, 0) == 0


def is_init(pid):
    """Whether it is PID 1 of a namespace below ours."""
    numbers = status_field(pid, "NSpid")
    return len(numbers) > 1 and numbers[-1] == "1"


def usage(pids, owner=None):
    """Sums over processes: (PSS without the owner's memory, mapped shared memory, PSS of inits, number of inits, number of processes)."""
    pss = shmem = init_pss = inits = processes = 0
    for pid in pids:
        sizes = rollup(pid)
        if not sizes or (owner is not None and same_memory(pid, owner)):
            continue
        processes += 1
        pss += sizes["Pss"]
        shmem += sizes.get("Pss_Shmem", 0)
        if is_init(pid):
            inits += 1
            init_pss += sizes["Pss"]
    return pss, shmem, init_pss, inits, processes


class CarrelSandboxes:
    """`count` sandboxes of bench/idle.c, each with nothing but its init."""

    def __init__(self, helpers, count):
        self.talk = Talk([helpers / "idle", count])
        self.expect("empty")

    def expect(self, word):
        line = self.talk.line()
        if line != word:
            raise Failure(f"bench/idle.c said '{line}'")

    def fill(self):
        self.talk.say("go")
        self.expect("ready")

    def owner(self):
        return self.talk.process.pid

    def pids(self):
        return descendants([self.owner()])

    def close(self):
        self.talk.close()


class Spawned:
    """`count` processes of one command that each hold a sandbox with a sleeping program (bubblewrap)."""

    def __init__(self, argv, count):
        self.argv, self.count, self.processes = argv, count, []

    def fill(self):
        for _ in range(self.count):
            self.processes.append(subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        time.sleep(0.3)  # the last ones are still on their way to exec
        ended = next((p for p in self.processes if p.poll() is not None), None)
        if ended:
            raise Failure("failed: " + first_line(ended.stderr.read().decode(errors="replace")))

    def owner(self):
        return None

    def pids(self):
        own = [process.pid for process in self.processes]
        return own + descendants(own)

    def close(self):
        for process in self.processes:
            process.kill()  # --die-with-parent takes the rest along
        for process in self.processes:
            process.wait()
            process.stderr.close()


def run_whole(argv):
    """Exit status of a program that is never stopped half-way, because half a container is left behind then.

    It has a session of its own, so that a Ctrl-C at the terminal does not meet it either.
    """
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        return process.wait()
    except BaseException:
        process.wait()
        raise


class Detached:
    """`count` containers of an OCI runtime, each with a sleeping program."""

    def __init__(self, prefix, runtime, bundle, state, count):
        self.prefix, self.runtime, self.bundle, self.state, self.count = prefix, runtime, bundle, state, count
        self.names, self.inits = [], []

    def fill(self):
        pid_file = pathlib.Path(self.bundle) / "pid"
        for number in range(self.count):
            name = f"bench-idle-{os.getpid()}-{number}"
            self.names.append(name)  # before it exists: a signal may come while it is made
            # Its stderr would be the container's too, and would never end: what it says is lost.
            status = run_whole([*self.prefix, self.runtime, f"--root={self.state}", "run", "--detach", f"--pid-file={pid_file}",
                                f"--bundle={self.bundle}", name])
            if status != 0:
                raise Failure(f"failed: '{self.runtime} run --detach' ended with {status}")
            self.inits.append(int(pid_file.read_text()))

    def owner(self):
        return None

    def pids(self):
        return self.inits + descendants(self.inits)

    def close(self):
        try:
            self.delete_all()
        except BaseException:  # a signal in the middle (it comes once, see run.py): the rest must still go
            self.delete_all()
            raise

    def delete_all(self):
        while self.names:
            run_whole([*self.prefix, self.runtime, f"--root={self.state}", "delete", "--force", self.names[-1]])
            self.names.pop()


def trial(sandboxes, count):
    """One trial: (KiB all in, KiB of its processes, KiB of the kernel, KiB of one init), each for one sandbox."""
    try:
        owner = sandboxes.owner()
        owner_before = rollup(owner).get("Pss_Anon", 0) if owner else 0
        before = settle()
        sandboxes.fill()
        after = settle()
        pss, mapped_shmem, init_pss, inits, processes = usage(sandboxes.pids(), owner)
        if processes < count:
            raise Failure(f"failed: {processes} processes were there for {count} sandboxes")
        pss += (rollup(owner).get("Pss_Anon", 0) - owner_before) if owner else 0
        kernel = sum(after[field] - before[field] for field in KERNEL_FIELDS if field in after)
        kernel += max(0, after["Shmem"] - before["Shmem"] - mapped_shmem)
        return (pss + kernel) / count, pss / count, kernel / count, init_pss / inits if inits else None
    finally:
        sandboxes.close()
