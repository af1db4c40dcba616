# SPDX-License-Identifier: Apache-2.0
"""20,000 sandboxes in a row and 200 at once (a sample: 300 and 200): descriptors, memory and kernel objects end where they began."""
import concurrent.futures
import os
import resource
import subprocess
import time

import pytest

from conftest import CARREL, HERE, SWEEP_ALL, build, count, leaks, library

IN_A_ROW = 20000 if SWEEP_ALL else 300
AT_ONCE = 200
# Of what one sandbox takes of each, a leak of one in ten would be seen.
LEAK_SHARE = 10
# Seconds for the kernel to end what it ends later (namespaces are freed by a worker, after a grace period).
SETTLE_S = 20


def meminfo(key):
    for line in leaks.read("/proc/meminfo").splitlines():
        words = line.split()
        if words and words[0] == key + ":":
            return int(words[1])
    return 0


def slab(name):
    for line in leaks.read("/proc/slabinfo").splitlines():
        words = line.split()
        if words and words[0] == name:
            return int(words[1])
    return 0


def kernel_objects():
    found = {
        "mounts": len(leaks.read("/proc/self/mountinfo").splitlines()),
        "open files": int(leaks.read("/proc/sys/fs/file-nr").split()[0]),
        "net namespaces in memory": slab("net_namespace"),
        "mounts in memory": slab("mnt_cache"),
        "tasks": len(leaks.pids()),
        "loop devices": sum(1 for name in leaks.names("/sys/block")
                            if name.startswith("loop") and os.path.exists(f"/sys/block/{name}/loop")),
        "memfds of init": sum(1 for pid in leaks.pids() if leaks.link(f"/proc/{pid}/exe").startswith("/memfd:carrel-init")),
    }
    for line in leaks.read("/proc/cgroups").splitlines()[1:]:
        words = line.split()
        if words[1] != "0":
            found[f"{words[0]} cgroups"] = int(words[2])
    return found


def grown(before, allowed, sandboxes):
    """What grew by more than @allowed. The allocator counts what lies free in its per-CPU slabs as in use: there, most of a leak of one each."""
    now = kernel_objects()
    slabs = max(allowed, sandboxes * 4 // 5)
    return {key: (before[key], now[key]) for key in before
            if now[key] - before[key] > (slabs if key.endswith("in memory") else allowed)}


class Kernel:
    """What the kernel holds, before and after @sandboxes of them; others may start some meanwhile, so a share of that number is allowed."""

    def __init__(self, sandboxes):
        self.allowed, self.sandboxes = max(sandboxes // LEAK_SHARE, 20), sandboxes

    def __enter__(self):
        self.before, self.slab_kib = kernel_objects(), meminfo("SUnreclaim") + meminfo("Percpu")
        return self

    def __exit__(self, kind, *_):
        if kind:
            return
        deadline = time.monotonic() + SETTLE_S
        while (more := grown(self.before, self.allowed, self.sandboxes)) and time.monotonic() < deadline:
            time.sleep(0.2)
        self.kib = meminfo("SUnreclaim") + meminfo("Percpu") - self.slab_kib
        assert not more, f"grown by more than {self.allowed}: {more}"
        # A network namespace alone is about 20 KiB: a leak of each tenth sandbox's would be twice this.
        assert self.kib < max(self.allowed * 10, 64 * 1024), f"the kernel's own memory grew by {self.kib} KiB"


def run_soak(soak, place, *words):
    done = subprocess.run([soak, *map(str, words)], env=place.env, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    before, after = ([int(w) for w in lines[key].split()] for key in ("before", "after"))
    assert after[0] == before[0], f"descriptors: {before[0]}, then {after[0]}"
    assert after[1] <= before[1] + 2, f"mappings: {before[1]}, then {after[1]}"
    assert after[2] <= before[2] + 1024, f"resident memory: {before[2]} KiB, then {after[2]} KiB"
    return before, after


@pytest.fixture(scope="session")
def soak(tools):
    return build(tools / "soak", HERE / "soak.c", *library("libcarrel.a"))


def test_in_a_row_in_one_process(soak, place):
    start = time.monotonic()
    with Kernel(IN_A_ROW) as kernel:
        before, after = run_soak(soak, place, IN_A_ROW)
    seconds = time.monotonic() - start
    count(f"{IN_A_ROW} sandboxes in a row in one process: {seconds:.1f} s; descriptors {before[0]} -> {after[0]}, "
          f"resident {before[2]} -> {after[2]} KiB, kernel memory {kernel.kib:+d} KiB")


def test_at_once_in_one_process(soak, place):
    rounds = 20 if SWEEP_ALL else 1
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit[0] < 8192:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(limit[1], 8192), limit[1]))
    with Kernel(AT_ONCE) as kernel:
        before, after = run_soak(soak, place, rounds, AT_ONCE)
    count(f"{AT_ONCE} at once in one process, {rounds} more times: descriptors {before[0]} -> {after[0]}, "
          f"resident {before[2]} -> {after[2]} KiB, kernel memory {kernel.kib:+d} KiB")


def test_in_a_row_from_the_shell(place):
    def one(_):
        done = place.carrel("run", "--", "/bin/echo", "hello")
        return (done.returncode, done.stdout, done.stderr) != (0, b"hello\n", b"") and done

    with Kernel(IN_A_ROW) as kernel, concurrent.futures.ThreadPoolExecutor(8) as pool:
        failed = [done for done in pool.map(one, range(IN_A_ROW)) if done]
    assert not failed, f"{len(failed)} of {IN_A_ROW}: {failed[:3]}"
    count(f"{IN_A_ROW} `carrel run`, eight side by side: all as they should, kernel memory {kernel.kib:+d} KiB")


def test_at_once_from_the_shell(place):
    with Kernel(AT_ONCE) as kernel:
        running = []
        try:
            for _ in range(AT_ONCE):
                running.append(subprocess.Popen([CARREL, "run", "-i", "--", "/bin/sh", "-c", "echo up; read x; exit 7"], env=place.env,
                                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
            up = [p.stdout.readline() for p in running]
            held = len(place.ids())
            for p in running:
                p.stdin.close()
            statuses = [p.wait(timeout=60) for p in running]
        finally:
            for p in running:
                p.kill()
                p.wait()
                p.stdout.close()
                p.stderr.close()
        assert up == [b"up\n"] * AT_ONCE
        assert held == AT_ONCE
        assert statuses == [7] * AT_ONCE
    count(f"{AT_ONCE} `carrel run` alive at once: {held} slots held, all ended as they should, kernel memory {kernel.kib:+d} KiB")


def test_many_killed_at_once(place):
    """A hundred owners are killed in the same moment: their undertakers have everything gone within three seconds."""
    running = []
    try:
        for _ in range(100):
            running.append(subprocess.Popen([CARREL, "run", "-i", "--", "/bin/sh", "-c", "echo up; read x; exit 7"], env=place.env,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        for p in running:
            assert p.stdout.readline() == b"up\n"
    finally:
        for p in running:
            p.kill()
        start = time.monotonic()
        for p in running:
            p.wait()
            p.stdin.close()
            p.stdout.close()
    left = place.left_after(10)
    assert not left, left
    while [pid for pid in leaks.pids() if leaks.read(f"/proc/{pid}/comm").startswith("carrel-undertak")
           and str(place.base) in leaks.read(f"/proc/{pid}/environ")] and time.monotonic() < start + 10:
        time.sleep(0.02)
    seconds = time.monotonic() - start
    count(f"100 owners killed at once: nothing left after {seconds:.2f} s")
    assert seconds < 5
