#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Shows where the time of one `carrel run -- /bin/true` goes: by process and system call, and in the order of events.

The kernel's own trace points (raw_syscalls, sched) record into an instance of tracefs that follows the runs' processes only; it costs well under
a microsecond for each call, where strace stops a process twice. bench/spawn.c starts the runs, so that the first and the last event of
a run are known. Needs root. Any command can be given in the place of the default one, so that Carrel can be laid beside its peers:

    bench/breakdown.py --carrel build/carrel
    bench/breakdown.py --carrel build/carrel --timeline --least-us 20
    bench/breakdown.py --carrel build/carrel -- bwrap --unshare-all --ro-bind / / /bin/true
"""

import argparse
import collections
import contextlib
import ctypes
import os
import pathlib
import re
import statistics
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness import Failure, Talk, compile_helper  # noqa: E402

EVENTS = ("raw_syscalls/sys_enter", "raw_syscalls/sys_exit", "sched/sched_process_fork", "sched/sched_process_exec", "sched/sched_switch",
          "exceptions/page_fault_user")
BUFFER_KIB = 16384  # of each CPU; a run leaves some 100 KiB
CLONE_NEWNS, MS_REC, MS_PRIVATE, MNT_DETACH = 0x20000, 0x4000, 0x40000, 2
LINE = re.compile(r"^\s*(.+)-(\d+)\s+\[\d+\]\s+\S+\s+(\d+)\.(\d{6}): (\w+): ?(.*)$")
NUMBER = re.compile(r"^#define __NR_(\w+) (\d+)$", re.M)
LIBC = ctypes.CDLL(None, use_errno=True)


def system_calls():
    """{number: name} of this machine, from the kernel's headers."""
    for name in ("x86_64-linux-gnu/asm/unistd_64.h", "asm/unistd_64.h", "asm-generic/unistd.h"):
        header = pathlib.Path("/usr/include") / name
        if header.exists():
            return {int(number): call for call, number in NUMBER.findall(header.read_text())}
    return {}


# --- Recording -------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def trace_instance():
    """A directory of tracefs that is ours: mounted where nobody else sees it, removed at the end."""
    if LIBC.unshare(CLONE_NEWNS) != 0 or LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        raise Failure("a private mount namespace is needed; run as root")
    with tempfile.TemporaryDirectory() as mountpoint:
        if LIBC.mount(b"tracefs", mountpoint.encode(), b"tracefs", 0, None) != 0:
            raise Failure("this kernel has no tracefs (CONFIG_FTRACE)")
        instance = pathlib.Path(mountpoint) / "instances" / f"carrel-bench-{os.getpid()}"
        try:
            instance.mkdir()
            yield instance
        finally:
            (instance / "tracing_on").write_text("0")
            instance.rmdir()
            LIBC.umount2(mountpoint.encode(), MNT_DETACH)


def record(spawn, argv, runs):
    """(lines of the trace, pid of spawn.c, ns of each run when nothing was traced)"""
    with trace_instance() as instance:
        (instance / "buffer_size_kb").write_text(str(BUFFER_KIB))
        (instance / "trace_clock").write_text("mono")
        (instance / "options/event-fork").write_text("1")
        talk = Talk([spawn, *argv])
        try:
            talk.measure(3)
            untraced = talk.measure(runs)["run"]
            (instance / "set_event_pid").write_text(str(talk.process.pid))
            for event in EVENTS:
                if (instance / "events" / event).exists():
                    (instance / "events" / event / "enable").write_text("1")
            talk.measure(runs)
        finally:
            talk.close()
            (instance / "tracing_on").write_text("0")
        return (instance / "trace").read_text(errors="replace").splitlines(), talk.process.pid, untraced


# --- Reading ---------------------------------------------------------------------------------------------------------------------


class Call:
    """One system call of one process."""

    def __init__(self, role, name, start_us):
        self.role, self.name, self.start_us, self.end_us, self.off_us = role, name, start_us, None, 0

    @property
    def wall_us(self):
        return self.end_us - self.start_us


class Process:
    """What the trace tells of one process of a run."""

    def __init__(self, role, start_us):
        self.role, self.call, self.off_since = role, None, None
        self.entered_us = start_us  # when it last came back to user mode
        self.off_us = 0  # spent off the CPU in user mode since then


class Run:
    """Everything between the spawn of the measured command and its end."""

    def __init__(self, start_us, root):
        self.start_us, self.end_us = start_us, None
        self.root, self.root_gone = root, False  # pid of the measured command; whether it is a zombie
        self.processes, self.calls, self.marks = {}, [], []
        self.user_us, self.faults, self.children = collections.Counter(), collections.Counter(), collections.Counter()

    def mark(self, at_us, text):
        self.marks.append((at_us - self.start_us, text))


class Reader:
    """Turns lines of the trace into runs. The processes of a run are the descendants of what spawn.c started."""

    def __init__(self, spawn_pid, names):
        self.spawn_pid, self.names = spawn_pid, names
        self.runs, self.spawned_us = [], None

    def feed(self, line):
        found = LINE.match(line)
        if not found:
            return
        pid, at_us = int(found[2]), int(found[3]) * 1000000 + int(found[4])
        _, process = self.process(pid)
        if process:
            self.awake(process, at_us)  # the kernel's filter by pid loses a few switches; who acts is on a CPU
        handler = getattr(self, "on_" + found[5], None)
        if handler:
            handler(pid, at_us, found[6])

    @staticmethod
    def awake(process, at_us):
        """Closes the time off the CPU, if it is open."""
        if process.off_since is None:
            return
        off_us, process.off_since = at_us - process.off_since, None
        process.off_us += off_us
        if process.call:
            process.call.off_us += off_us

    def process(self, pid):
        run = self.runs[-1] if self.runs else None
        return (run, run.processes[pid]) if run and pid in run.processes else (None, None)

    def on_sys_enter(self, pid, at_us, text):
        name = self.names.get(int(text.split()[1]), text.split()[1])
        if pid == self.spawn_pid and name in ("clone", "clone3", "vfork"):
            self.spawned_us = at_us
        run, process = self.process(pid)
        if not run:
            return
        run.user_us[process.role] += at_us - process.entered_us - process.off_us
        process.call, process.off_us = Call(process.role, name, at_us), 0
        run.calls.append(process.call)

    def on_sys_exit(self, pid, at_us, _text):
        if pid == self.spawn_pid and self.runs and self.runs[-1].root_gone and self.runs[-1].end_us is None:
            self.runs[-1].end_us = at_us  # its wait4 comes back
        run, process = self.process(pid)
        if run:
            self.leave(process, at_us)

    @staticmethod
    def leave(process, at_us):
        if process.call:
            process.call.end_us = at_us
        process.call, process.entered_us, process.off_us = None, at_us, 0

    def on_sched_process_fork(self, pid, at_us, text):
        child = int(re.search(r"child_pid=(\d+)", text)[1])
        if pid == self.spawn_pid:
            self.runs.append(Run(self.spawned_us if self.spawned_us is not None else at_us, child))
            self.runs[-1].processes[child] = Process("spawn", at_us)
            return
        run, process = self.process(pid)
        if not run:
            return
        run.children[process.role] += 1
        role = f"{process.role} > child {run.children[process.role]}"
        run.processes[child] = Process(role, at_us)
        run.mark(at_us, f"{role} is made")

    def on_sched_process_exec(self, pid, at_us, text):
        run, process = self.process(pid)
        if not run:
            return
        name = os.path.basename(re.search(r"filename=(\S+)", text)[1])
        name = "init (from the memfd)" if name.isdigit() else name
        run.mark(at_us, f"{process.role} executes {name}")
        process.role = name
        if process.call:
            process.call.role = name

    def on_sched_switch(self, pid, at_us, text):
        following = int(re.search(r"next_pid=(\d+)", text)[1])
        run, process = self.process(pid)
        if run:
            process.off_since = at_us
            if re.search(r"prev_state=[XZ]", text):
                self.leave(process, at_us)
                run.mark(at_us, f"{process.role} is gone")
                if pid == run.root:
                    run.root_gone = True
        run, process = self.process(following)
        if run:
            self.awake(process, at_us)

    def on_page_fault_user(self, pid, _at_us, _text):
        run, process = self.process(pid)
        if run:
            run.faults[process.role] += 1


# --- Printing --------------------------------------------------------------------------------------------------------------------


def print_processes(runs):
    """Mean microseconds of each process: in user mode, in the kernel, off the CPU in a system call."""
    user, kernel, waits, faults = (collections.Counter() for _ in range(4))
    for run in runs:
        user.update(run.user_us)
        faults.update(run.faults)
        for call in run.calls:
            if call.end_us is not None:
                kernel[call.role] += call.wall_us - call.off_us
                waits[call.role] += call.off_us
    print(f"\n{'process':<44}{'user us':>9}{'kernel us':>11}{'waits us':>10}{'faults':>8}   a run")
    for role in sorted(set(user) | set(kernel), key=lambda role: -(user[role] + kernel[role])):
        print(f"  {role[:41]:<42}{user[role] / len(runs):>9.0f}{kernel[role] / len(runs):>11.0f}{waits[role] / len(runs):>10.0f}"
              f"{faults[role] / len(runs):>8.0f}")


def print_calls(runs, top):
    """The system calls that take most, by process; time on the CPU first, because a wait is somebody else's time."""
    count, work, waits = collections.Counter(), collections.Counter(), collections.Counter()
    for run in runs:
        for call in run.calls:
            if call.end_us is None:
                continue
            key = (call.role, call.name)
            count[key] += 1
            work[key] += call.wall_us - call.off_us
            waits[key] += call.off_us
    print(f"\n{'system call':<26}{'calls':>7}{'kernel us':>11}{'waits us':>10}   a run, in")
    for key, _ in work.most_common(top):
        print(f"  {key[1][:23]:<24}{count[key] / len(runs):>7.1f}{work[key] / len(runs):>11.1f}{waits[key] / len(runs):>10.1f}   {key[0][:40]}")


def print_marks(runs):
    """When processes come, execute and go: medians over the runs, for events that all runs have."""
    at = collections.defaultdict(list)
    for run in runs:
        seen = set()
        for us, text in run.marks:
            if text not in seen:
                at[text].append(us)
                seen.add(text)
    print("\nmedian us since the start   event")
    for text in sorted((text for text in at if len(at[text]) * 2 > len(runs)), key=lambda text: statistics.median(at[text])):
        print(f"{statistics.median(at[text]):>25.0f}   {text}")


def print_timeline(run, least_us):
    """One run call by call."""
    print(f"\none run, calls of at least {least_us} us\n{'at us':>8}{'us':>8}{'waits':>8}   call, process")
    events = [(call.start_us - run.start_us, call) for call in run.calls if call.end_us is not None and call.wall_us >= least_us]
    events += [(us, text) for us, text in run.marks]
    for us, what in sorted(events, key=lambda event: event[0]):
        if isinstance(what, Call):
            print(f"{us:>8}{what.wall_us:>8}{what.off_us:>8}   {what.name:<22} {what.role}")
        else:
            print(f"{us:>8}{'':>16}   -- {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--carrel", default="build/carrel")
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--top", type=int, default=30, help="system calls in the table")
    parser.add_argument("--timeline", action="store_true", help="also print the run of median length call by call")
    parser.add_argument("--least-us", type=int, default=10, help="shortest call in the timeline")
    parser.add_argument("command", nargs="*", help="instead of `carrel run -- /bin/true`")
    args = parser.parse_args()
    argv = args.command or [str(pathlib.Path(args.carrel).resolve()), "run", "--", "/bin/true"]
    try:
        with tempfile.TemporaryDirectory() as directory:
            spawn = compile_helper("spawn", pathlib.Path(directory))
            lines, spawn_pid, untraced = record(spawn, argv, args.runs)
    except (Failure, OSError) as failure:
        print(f"breakdown: {failure}", file=sys.stderr)
        return 1
    reader = Reader(spawn_pid, system_calls())
    for line in lines:
        reader.feed(line)
    runs = [run for run in reader.runs if run.end_us is not None]
    if not runs:
        print(f"breakdown: no whole run in {len(lines)} lines of trace", file=sys.stderr)
        return 1
    length = statistics.median(run.end_us - run.start_us for run in runs)
    print(f"{' '.join(argv)}\n{len(runs)} runs, median {length:.0f} us traced, {statistics.median(untraced) / 1000:.0f} us untraced")
    print_processes(runs)
    print_calls(runs, args.top)
    print_marks(runs)
    if args.timeline:
        print_timeline(min(runs, key=lambda run: abs(run.end_us - run.start_us - length)), args.least_us)
    return 0


if __name__ == "__main__":
    sys.exit(main())
