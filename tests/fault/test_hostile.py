# SPDX-License-Identifier: Apache-2.0
"""Workloads that mean harm, end to end: each has a deadline, its outcome and the limit that bit in --json, and leaves nothing.

Every test runs as root of the sandbox, which is the stronger attacker.
"""
import json
import os
import pty
import subprocess
import time

import pytest

from conftest import GONE_S, count, descendants, inits_below, leaks

PYTHON = "/usr/bin/python3"


class Ran:
    def __init__(self, done, seconds):
        self.status, self.seconds = done.returncode, seconds
        self.stderr = done.stderr.decode(errors="replace")
        try:
            self.json = json.loads(done.stdout)
        except ValueError as e:
            raise AssertionError(f"no JSON: {done.stdout[:300]!r} {self.stderr!r}") from e
        self.outcome, self.limit = self.json["outcome"], self.json["limit"]

    @property
    def stdout(self):
        return self.json["stdout"].get("text", "")

    def __repr__(self):
        return f"{self.outcome}, limit {self.limit}, status {self.status}, {self.seconds:.2f} s: {self.stderr}"


@pytest.fixture
def run(place, request):
    def run(*words, within=20):
        start = time.monotonic()
        done = place.carrel("run", "--json", *words, timeout=60)
        ran = Ran(done, time.monotonic() - start)
        assert ran.seconds < within, f"took {ran.seconds:.1f} s of {within}: {ran}"
        count(f"{request.node.name[5:]}: {ran.outcome}, limit {ran.limit}, status {ran.status}, {ran.seconds:.2f} s")
        return ran

    return run


def python(text):
    return ("--", PYTHON, "-c", text)


# --- Processes ---

def test_fork_bomb(run):
    ran = run("--timeout", "2", "--pids-limit", "128", *python("""
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""), within=8)
    assert (ran.outcome, ran.limit, ran.status) == ("timed_out", "timeout", 124), ran


def test_fork_bomb_whose_leader_ends(run):
    ran = run("--pids-limit", "64", *python("""
import os, time
try:
    while True:
        if os.fork() == 0:
            time.sleep(1000)
except BlockingIOError:
    os._exit(3)
"""), within=8)
    assert (ran.outcome, ran.limit, ran.status) == ("exited", "pids", 3), ran
    assert 40 <= ran.json["left_running"] <= 64, ran.json


def test_fork_bomb_leaves_room_for_others(run, place):
    bomb = place.popen("run", "--timeout", "3", "--pids-limit", "256", "--cpus", "0.5", *python("""
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        ran = run("--", "/bin/echo", "hello", within=5)
        assert (ran.outcome, ran.stdout) == ("exited", "hello\n"), ran
    finally:
        assert bomb.wait(timeout=15) == 124


def test_threads_count_too(run):
    ran = run("--pids-limit", "32", *python("""
import threading, time
n = 0
try:
    while True:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        n += 1
except RuntimeError:
    pass
import os
os._exit(n if n < 33 else 1)
"""), within=8)
    assert ran.outcome == "exited" and ran.limit == "pids" and 20 <= ran.status <= 32, ran


def test_double_forks_that_leave_the_session(run):
    ran = run(*python("""
import os, signal, time
for i in range(50):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            for s in range(1, 65):
                try:
                    signal.signal(s, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            time.sleep(1000)
        os._exit(0)
time.sleep(0.3)
"""), within=8)
    assert (ran.outcome, ran.status) == ("exited", 0), ran
    assert ran.json["left_running"] == 50, ran.json


def test_zombies_by_the_thousand(run):
    """Orphans that end are reaped; those whose parent lives and does not reap them count, and go with it."""
    ran = run("--pids-limit", "4000", *python("""
import os, time
for i in range(3000):            # zombies: nobody waits for them
    if os.fork() == 0:
        os._exit(0)
for i in range(3000):            # orphans: init reaps them
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.waitpid(pid, 0)
states = []
for p in filter(str.isdigit, os.listdir("/proc")):
    try:
        states.append(open(f"/proc/{p}/stat").read().rsplit(")", 1)[1].split()[:2])
    except OSError:              # reaped meanwhile
        pass
mine = sum(1 for state, parent in states if state == "Z" and parent != "1")
inits = sum(1 for state, parent in states if state == "Z" and parent == "1")
print(mine, inits)
"""), within=40)
    assert (ran.outcome, ran.status) == ("exited", 0), ran
    mine, inits = map(int, ran.stdout.split())
    assert mine == 3000 and inits < 100, ran.stdout


def test_ignores_every_signal(run):
    ran = run("--timeout", "1", *python("""
import os, signal, time
for s in range(1, 65):
    try:
        signal.signal(s, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
os.setsid() if os.getpid() != os.getsid(0) else None
while True:
    time.sleep(1000)
"""), within=4)
    assert (ran.outcome, ran.limit, ran.status) == ("timed_out", "timeout", 124), ran
    assert 1000 <= ran.json["wall_ms"] < 2500, ran.json


def test_stops_itself(run):
    ran = run("--timeout", "1", "--", "/bin/sh", "-c", "kill -STOP $$", within=4)
    assert (ran.outcome, ran.limit) == ("timed_out", "timeout"), ran


def test_kills_everything_in_sight(run):
    ran = run("--", "/bin/sh", "-c", "sleep 1000 & kill -9 1; kill -9 -1; exit 3", within=4)
    assert ran.outcome in ("exited", "signalled") and ran.status in (3, 137), ran


def test_cpu_seconds(run):
    ran = run("--cpu-seconds", "1", "--", "/bin/sh", "-c", "while :; do :; done", within=8)
    assert (ran.outcome, ran.limit) == ("signalled", "cpu"), ran


# --- Memory ---

def test_memory_hog(run):
    ran = run("-m", "64m", *python("""
hog = []
while True:
    hog.append(bytearray(b"x" * (1 << 20)))
"""))
    assert (ran.outcome, ran.limit, ran.status) == ("out_of_memory", "memory", 137), ran


def test_memory_hog_of_many(run):
    """Children are killed, their parent is not: it ends as it wants, and the limit is still named."""
    ran = run("-m", "64m", *python("""
import os
for i in range(4):
    if os.fork() == 0:
        hog = []
        while True:
            hog.append(bytearray(b"x" * (1 << 20)))
for i in range(4):
    os.wait()
"""))
    assert ran.limit == "memory" and ran.outcome in ("exited", "out_of_memory"), ran


@pytest.mark.parametrize("target", ["/tmp/file", "/dev/shm/file", "/root/file"])
def test_memory_by_files(run, target):
    """Files in memory are memory: whichever limit is smaller bites, and the host's memory is not what is used up."""
    ran = run("-m", "64m", "--tmp-size", "4g", "--shm-size", "4g", "--storage-opt", "size=4g", "--storage-opt", "backing=tmpfs",
              "--", "/bin/dd", "if=/dev/zero", f"of={target}", "bs=1M", "count=512")
    assert ran.limit == "memory" and ran.outcome in ("out_of_memory", "exited"), ran


def test_memory_by_pipes_and_sockets(run):
    ran = run("-m", "64m", "--timeout", "10", *python("""
import fcntl, os, socket
kept = []
try:
    while True:
        a, b = socket.socketpair()
        b.setblocking(False)
        a.setblocking(False)
        kept += [a, b]
        try:
            while True:
                a.send(b"x" * 65536)
        except BlockingIOError:
            pass
except OSError as e:
    print(e.errno)
"""), within=15)
    assert ran.outcome in ("exited", "out_of_memory"), ran


# --- Disk ---

@pytest.mark.parametrize("path,options", [
    ("/root/file", ("--storage-opt", "size=8m")),
    ("/usr/local/file", ("--storage-opt", "size=8m")),
    ("/tmp/file", ("--tmp-size", "8m")),
    ("/dev/shm/file", ("--shm-size", "8m")),
    ("/scratch/file", ("--tmpfs", "/scratch:size=8m")),
])
def test_disk_fill(run, path, options):
    ran = run(*options, *python(f"""
import os
fd = os.open({path!r}, os.O_WRONLY | os.O_CREAT)
n = 0
try:
    while n < 64 << 20:
        n += os.write(fd, b"x" * 65536)
except OSError as e:
    print(e.errno, n)
"""))
    assert (ran.outcome, ran.status) == ("exited", 0), ran
    code, size = map(int, ran.stdout.split())
    assert code in (28, 122) and 4 << 20 <= size <= 9 << 20, ran.stdout  # ENOSPC or EDQUOT


def test_inode_fill(run):
    ran = run("--storage-opt", "inodes=500", *python("""
import os
os.mkdir("/root/many")
n = 0
try:
    while n < 5000:
        os.close(os.open(f"/root/many/{n}", os.O_WRONLY | os.O_CREAT))
        n += 1
except OSError as e:
    print(e.errno, n)
"""))
    assert (ran.outcome, ran.status) == ("exited", 0), ran
    code, n = map(int, ran.stdout.split())
    assert code in (28, 122) and 100 <= n <= 500, ran.stdout


def test_file_size(run):
    ran = run("--file-size", "1m", "--", "/bin/dd", "if=/dev/zero", "of=/root/file", "bs=64k", "count=64")
    assert (ran.outcome, ran.limit) == ("signalled", "fsize"), ran


# --- Output ---

@pytest.mark.parametrize("to", ["", ">&2"])
def test_output_flood(run, to):
    ran = run("--output-limit", "1m", "--", "/bin/sh", "-c", f"exec /usr/bin/yes {to}", within=10)
    assert (ran.outcome, ran.limit, ran.status) == ("output_limit", "output", 137), ran
    stream = "stderr" if to else "stdout"
    assert ran.json[f"{stream}_bytes"] == 1 << 20, ran.json[f"{stream}_bytes"]
    assert len(ran.json[stream]["text"]) == 1 << 20


def test_output_flood_without_json(place):
    done = place.carrel("run", "--output-limit", "1m", "--", "/usr/bin/yes")
    assert done.returncode == 137
    assert len(done.stdout) == 1 << 20, len(done.stdout)


def test_output_flood_of_many(run):
    ran = run("--output-limit", "1m", "--", "/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /usr/bin/yes & done; wait", within=10)
    assert (ran.outcome, ran.limit) == ("output_limit", "output"), ran


def test_default_limit_of_collected_output(run):
    ran = run("--", "/bin/sh", "-c", "exec tr '\\0' x < /dev/zero", within=10)
    assert (ran.outcome, ran.limit) == ("output_limit", "output"), ran
    assert ran.json["stdout_bytes"] == 64 << 20


def test_output_that_is_all_escapes(run):
    """The dearest output there is: every byte becomes six characters of JSON."""
    ran = run("--output-limit", "4m", "--", "/bin/cat", "/dev/zero", within=2)
    assert (ran.outcome, len(ran.stdout)) == ("output_limit", 4 << 20), ran


def on_a_terminal(place, *words):
    """`carrel run` with a terminal of its own. Return: process, the terminal's other end"""
    master, slave = pty.openpty()
    try:
        return place.popen("run", *words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True), master
    finally:
        os.close(slave)


def inside(p):
    """Processes in the sandboxes of one `carrel run`, init apart."""
    return [pid for pid in descendants(p.pid) if not leaks.read(f"/proc/{pid}/comm").startswith("carrel")]


@pytest.mark.parametrize("option", ["-t", "-it"])
def test_pty_that_nobody_reads(place, option):
    """The time-out ends the command all the same; `carrel run` itself may wait for its reader, as `yes` would."""
    p, master = on_a_terminal(place, option, "--timeout", "1", "--", "/usr/bin/yes")
    start = time.monotonic()
    try:
        time.sleep(0.5)
        assert inside(p), f"it does not run: {os.read(master, 4096)!r}"
        time.sleep(1.2)
        alive = inside(p)
        os.set_blocking(master, False)
        while p.poll() is None and time.monotonic() < start + 10:
            try:
                os.read(master, 65536)
            except OSError:
                time.sleep(0.01)
        status = p.wait(timeout=5)
    finally:
        p.kill()
        p.wait()
        os.close(master)
    count(f"pty_that_nobody_reads: status {status} after {time.monotonic() - start:.2f} s, read since 1.7 s")
    assert not alive, "the command outlives its time-out because nobody reads its terminal"
    assert status == 124


@pytest.mark.parametrize("option", ["-t", "-it"])
def test_pty_closed_unread(place, option):
    p, master = on_a_terminal(place, option, "--", "/usr/bin/yes")
    try:
        time.sleep(0.5)
        assert inside(p)
        os.close(master)
        start = time.monotonic()
        p.wait(timeout=5)
    finally:
        p.kill()
        p.wait()
    count(f"pty_closed_unread: status {p.returncode} after {time.monotonic() - start:.2f} s")
    assert time.monotonic() - start < 1


@pytest.mark.parametrize("options", [(), ("--output-limit", "100m")], ids=["inherited", "followed"])
def test_pipe_that_nobody_reads(place, options):
    read_end, write_end = os.pipe()
    start = time.monotonic()
    p = place.popen("run", *options, "--timeout", "1", "--", "/usr/bin/yes", stdout=write_end, stderr=subprocess.DEVNULL)
    os.close(write_end)
    try:
        if not options:
            assert p.wait(timeout=5) == 124
        else:
            time.sleep(2)
    finally:
        os.close(read_end)
    p.wait(timeout=5)
    count(f"pipe_that_nobody_reads {options}: status {p.returncode} after {time.monotonic() - start:.2f} s")
    assert p.returncode in (124, -13, 141)


# --- Time ---

def test_clocks_cannot_be_set(run):
    ran = run(*python("""
import ctypes, errno, os, time
libc = ctypes.CDLL(None, use_errno=True)
class timeval(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("us", ctypes.c_long)]
class timespec(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]
tv, ts = timeval(10 ** 9, 0), timespec(10 ** 9, 0)
timex = ctypes.create_string_buffer(256)
timex[0] = 1  # ADJ_OFFSET
before = time.time()
def refused(call, *args):
    ctypes.set_errno(0)
    return call(*args) == -1 and ctypes.get_errno() in (errno.EPERM, errno.ENOSYS, errno.EACCES)
print(refused(libc.settimeofday, ctypes.byref(tv), None), refused(libc.clock_settime, 0, ctypes.byref(ts)),
      refused(libc.clock_settime, 7, ctypes.byref(ts)) or ctypes.get_errno() == errno.EINVAL,
      refused(libc.adjtimex, timex), refused(libc.unshare, 0x80), not os.path.exists("/dev/rtc0"), abs(time.time() - before) < 60)
"""))
    assert ran.stdout.split() == ["True"] * 7, ran.stdout


def test_time_out_does_not_hang_on_the_wall_clock(place):
    """The clock of the host is not ours to change. What init measures time with is in its timer: not CLOCK_REALTIME (0), which jumps."""
    p = place.popen("run", "-i", "--timeout", "30", "--", "/bin/sh", "-c", "echo up; read x", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b"up\n"
        inits = inits_below(p.pid)
        assert len(inits) == 1, inits
        clocks = [line.split()[1] for fd in leaks.names(f"/proc/{inits[0]}/fdinfo")
                  for line in leaks.read(f"/proc/{inits[0]}/fdinfo/{fd}").splitlines() if line.startswith("clockid:")]
    finally:
        p.stdin.close()
        p.wait(timeout=5)
        p.stdout.close()
    count(f"clock of init's timer: {clocks} (7 is CLOCK_BOOTTIME)")
    assert clocks == ["7"], clocks


def test_everything_at_once(run):
    """All of it in one sandbox, with every limit set: the time-out ends it."""
    ran = run("--timeout", "3", "-m", "128m", "--pids-limit", "64", "--storage-opt", "size=16m", "--output-limit", "64m", "--",
              "/bin/sh", "-c", """
trap '' HUP INT TERM
for i in 1 2 3 4; do (while :; do dd if=/dev/zero of=/root/f$i bs=1M 2>/dev/null; done) & done
(while :; do echo x > /root/n$RANDOM$(date +%N); done 2>/dev/null) &
for i in 1 2 3; do setsid sh -c 'while :; do (sleep 100 &) ; done' 2>/dev/null & done
for i in 1 2; do python3 -c 'x = []
while True: x.append(bytearray(10**6))' 2>/dev/null & done
while :; do :; done
""", within=GONE_S + 6)
    assert ran.outcome == "timed_out" and ran.status == 124, ran
