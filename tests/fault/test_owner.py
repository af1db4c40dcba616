# SPDX-License-Identifier: Apache-2.0
"""Who started a sandbox dies, is interrupted, or waits for the end of its output: within a second the whole tree is gone, and a pipe ends
when `carrel run` does, although an undertaker shares its memory."""
import os
import pty
import select
import signal
import subprocess
import termios
import time

import pytest

from conftest import CARREL, count, inits_below, leaks

# A tree that would go on for ever: sessions of their own, signals ignored, a stopped one. It says "up" when all of it is there.
TREE = r"""
trap '' HUP INT TERM QUIT
(trap '' HUP INT TERM QUIT; setsid sh -c 'while :; do sleep 100; done') &
(setsid sh -c 'setsid sleep 1000 & sleep 1000' &)
sh -c 'kill -STOP $$' &
sleep 1000 &
python3 -c '
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
time.sleep(1000)' &
sleep 0.3
echo up
wait
while :; do sleep 100; done
"""
GONE_MS = 1000


def marked(place):
    """Processes of this place's sandboxes and their owners, by an environment variable and by being below those."""
    found, parents = set(), {}
    needle = f"CARREL_RUN_DIR={place.run_dir}"
    for pid in leaks.pids():
        stat = leaks.read(f"/proc/{pid}/stat")
        if not stat:
            continue
        parents[pid] = int(stat.rsplit(")", 1)[1].split()[1])
        if needle in leaks.read(f"/proc/{pid}/environ"):
            found.add(pid)
    grown = True
    while grown:
        grown = {pid for pid, parent in parents.items() if parent in found and pid not in found}
        found |= grown
    return found


class Tree:
    """The processes of one running sandbox, watched by pidfd so that none is missed or mistaken."""

    def __init__(self, place):
        self.place = place
        self.fds = {}
        for pid in marked(place):
            try:
                self.fds[os.pidfd_open(pid)] = (pid, leaks.read(f"/proc/{pid}/comm").strip())
            except ProcessLookupError:
                pass
        self.names = sorted(name for _, name in self.fds.values())

    def gone_ms(self, start, seconds=5):
        """Milliseconds from @start until every process is gone; who is left if they are not."""
        poll = select.poll()
        for fd in self.fds:
            poll.register(fd, select.POLLIN)
        alive = dict(self.fds)
        while alive:
            wait = start + seconds - time.monotonic()
            if wait <= 0:
                break
            for fd, _ in poll.poll(wait * 1000):
                poll.unregister(fd)
                alive.pop(fd, None)
        ms = (time.monotonic() - start) * 1000
        for fd in self.fds:
            os.close(fd)
        assert not alive, f"alive after {seconds} s: {sorted(alive.values())}"
        return ms


def read_line(fd, seconds=10):
    text, deadline = b"", time.monotonic() + seconds
    while b"up" not in text:
        assert select.select([fd], [], [], max(0, deadline - time.monotonic()))[0], f"not up after {seconds} s: {text!r}"
        more = os.read(fd, 4096)
        assert more, f"ended: {text!r}"
        text += more
    return text


def check_gone(place, tree, start, what):
    ms = tree.gone_ms(start)
    left = place.left_after(GONE_MS / 1000)
    count(f"owner: {what}: {len(tree.names)} processes gone after {ms:.0f} ms")
    assert len(tree.names) >= 10, f"the tree was not there: {tree.names}"
    assert not left, left
    assert ms < GONE_MS, f"{ms:.0f} ms"


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT],
                         ids=lambda s: s.name)
@pytest.mark.parametrize("options", [(), ("--json",), ("--output-limit", "1m")], ids=["plain", "json", "followed"])
def test_signal(place, sig, options):
    """One signal to `carrel run` alone."""
    read_end, write_end = os.pipe()
    with open(place.base / "said", "wb") as said:
        p = place.popen("run", *options, "--", "/bin/sh", "-c", TREE + "\n", stdout=write_end, stderr=said)
    os.close(write_end)
    try:
        if options == ("--json",):
            time.sleep(1)  # its output is shown at the end only
        else:
            read_line(read_end)
        tree = Tree(place)
        start = time.monotonic()
        p.send_signal(sig)
        status = p.wait(timeout=5)
        check_gone(place, tree, start, f"{sig.name} {' '.join(options)}")
    finally:
        p.kill()
        p.wait()
        os.close(read_end)
    assert status == -sig, status


def test_killed_in_a_pipeline(place):
    """As a shell starts it, between two others; the reader sees the end of the pipe, the shell goes on."""
    script = f"sleep 0.1 | {CARREL} run -- /bin/sh -c '{TREE.replace(chr(39), chr(39) + chr(34) + chr(39) + chr(34) + chr(39))}' | cat; echo after"
    shell = subprocess.Popen(["/bin/sh", "-c", script], env=place.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             start_new_session=True)
    try:
        read_line(shell.stdout.fileno())
        owners = [pid for pid in marked(place) if leaks.read(f"/proc/{pid}/comm").strip() == "carrel"]
        assert len(owners) == 1, owners
        tree = Tree(place)
        start = time.monotonic()
        os.kill(owners[0], signal.SIGKILL)
        rest = shell.stdout.read()
        ms = (time.monotonic() - start) * 1000
        shell.wait(timeout=5)
        check_gone(place, tree, start, "SIGKILL in a pipeline")
    finally:
        os.killpg(shell.pid, signal.SIGKILL) if shell.poll() is None else None
        shell.wait()
        shell.stdout.close()
    assert rest == b"after\n", rest
    assert ms < GONE_MS


def test_reader_goes_away(place):
    """`carrel run ... | head -1`: SIGPIPE ends the writer inside as it would outside."""
    script = f"{CARREL} run -- /bin/sh -c 'while :; do echo x; done' | head -1"
    start = time.monotonic()
    done = subprocess.run(["/bin/bash", "-o", "pipefail", "-c", script], env=place.env, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=10, check=False)
    count(f"owner: reader goes away: pipeline ends with {done.returncode} after {time.monotonic() - start:.2f} s")
    assert done.stdout == b"x\n"
    assert time.monotonic() - start < 3


def start_on_terminal(place, *words):
    """`carrel run` as the foreground job of a terminal of its own."""
    master, slave = pty.openpty()

    def become_leader():
        os.setsid()
        import fcntl
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    try:
        p = subprocess.Popen([CARREL, "run", *words], env=place.env, stdin=slave, stdout=slave, stderr=slave, preexec_fn=become_leader)
        return p, master, termios.tcgetattr(slave)
    finally:
        os.close(slave)


@pytest.mark.parametrize("words", [(), ("-i",), ("-t",)], ids=["plain", "interactive", "terminal, output only"])
def test_ctrl_c(place, words):
    p, master, before = start_on_terminal(place, *words, "--", "/bin/sh", "-c", TREE)
    try:
        read_line(master)
        tree = Tree(place)
        start = time.monotonic()
        os.write(master, b"\x03")
        status = p.wait(timeout=5)
        check_gone(place, tree, start, f"Ctrl-C {' '.join(words)}")
        after = termios.tcgetattr(master)
    finally:
        p.kill()
        p.wait()
        os.close(master)
    assert status == -signal.SIGINT, status
    assert after[:4] == before[:4], "the terminal is not as it was"


@pytest.mark.parametrize("words", [(), ("-i",), ("-t",), ("-it",)], ids=["plain", "interactive", "terminal, output only", "terminal"])
def test_terminal_closed(place, words):
    """The window is closed: SIGHUP to the job, and every read and write of the terminal fails."""
    p, master, _ = start_on_terminal(place, *words, "--", "/bin/sh", "-c", TREE)
    closed = False
    try:
        read_line(master)
        tree = Tree(place)
        start = time.monotonic()
        os.close(master)
        closed = True
        status = p.wait(timeout=5)
        check_gone(place, tree, start, f"terminal closed {' '.join(words)}")
    finally:
        p.kill()
        p.wait()
        if not closed:
            os.close(master)
    assert status == -signal.SIGHUP, status


@pytest.mark.parametrize("sig", [signal.SIGKILL, signal.SIGTERM], ids=lambda s: s.name)
def test_terminal_is_killed(place, sig):
    """With -it the terminal is raw; after SIGTERM it is as before, after SIGKILL nobody can have restored it."""
    p, master, before = start_on_terminal(place, "-it", "--", "/bin/sh", "-c", TREE)
    try:
        read_line(master)
        tree = Tree(place)
        start = time.monotonic()
        p.send_signal(sig)
        status = p.wait(timeout=5)
        check_gone(place, tree, start, f"{sig.name} with a terminal")
        after = termios.tcgetattr(master)
    finally:
        p.kill()
        p.wait()
        os.close(master)
    assert status == -sig, status
    if sig == signal.SIGTERM:
        assert after[:4] == before[:4], "the terminal is not as it was"


def test_job_killed_as_a_group(place):
    """SIGKILL to the whole process group, as a job runner does it: the undertaker has left the group and does its work."""
    p = place.popen("run", "--", "/bin/sh", "-c", TREE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        read_line(p.stdout.fileno())
        tree = Tree(place)
        start = time.monotonic()
        os.killpg(p.pid, signal.SIGKILL)
        p.wait(timeout=5)
        check_gone(place, tree, start, "SIGKILL to the group")
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


def test_owner_of_the_owner_dies(place):
    """The script around `carrel run` is killed and it itself is not: it goes on, as any other child of that script would; its own end then
    ends everything."""
    shell = subprocess.Popen(["/bin/sh", "-c", f'"{CARREL}" run -- /bin/sh -c "$0"; :', TREE], env=place.env, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE)
    try:
        read_line(shell.stdout.fileno())
        shell.kill()
        shell.wait(timeout=5)
        owners = [pid for pid in marked(place) if leaks.read(f"/proc/{pid}/comm").strip() == "carrel"]
        assert len(owners) == 1, owners
        tree = Tree(place)
        start = time.monotonic()
        os.kill(owners[0], signal.SIGTERM)
        check_gone(place, tree, start, "SIGTERM after its parent died")
    finally:
        shell.stdout.close()


def test_stopped_owner_is_killed(place):
    p = place.popen("run", "--", "/bin/sh", "-c", TREE, stdout=subprocess.PIPE)
    try:
        read_line(p.stdout.fileno())
        p.send_signal(signal.SIGSTOP)
        tree = Tree(place)
        start = time.monotonic()
        p.kill()
        p.wait(timeout=5)
        check_gone(place, tree, start, "SIGKILL while stopped")
    finally:
        p.kill()
        p.wait()
        p.stdout.close()


# --- Descriptors and the end of a pipe ---

@pytest.mark.parametrize("how", ["ends", "killed", "killed at once"])
def test_pipe_ends_with_the_owner(place, how):
    """Neither the undertaker nor init keeps a descriptor of the owner's: a reader of its stdout, and of any other pipe that it was given,
    sees the end when it ends."""
    pipes = [os.pipe() for _ in range(200)]
    try:
        command = "echo up; sleep 0.3" if how == "ends" else "echo up; sleep 1000"
        p = place.popen("run", "--", "/bin/sh", "-c", command, stdout=pipes[0][1], stderr=pipes[1][1], pass_fds=[w for _, w in pipes[2:]])
        for i, (r, w) in enumerate(pipes):
            os.close(w)
            pipes[i] = (r, None)
        if how != "killed at once":
            read_line(pipes[0][0])
        if how != "ends":
            p.kill()
        p.wait(timeout=5)
        start = time.monotonic()
        for r, _ in pipes:
            while True:
                assert select.select([r], [], [], 2)[0], "somebody still holds a descriptor of the owner's"
                if not os.read(r, 4096):
                    break
        ms = (time.monotonic() - start) * 1000
        count(f"owner: {how}: 200 pipes ended {ms:.1f} ms after it did")
    finally:
        for r, w in pipes:
            os.close(r)
            if w is not None:
                os.close(w)


def test_nothing_of_the_owner_is_inside(place):
    """A caller with many descriptors: init and the command have only their own."""
    kept = [os.open("/etc/hostname", os.O_RDONLY) for _ in range(300)]
    try:
        for fd in kept:
            os.set_inheritable(fd, True)
        p = place.popen("run", "--", "/bin/sh", "-c", "ls -l /proc/self/fd; echo up; sleep 1000", stdout=subprocess.PIPE, close_fds=False)
        try:
            text = read_line(p.stdout.fileno())
            undertakers = [pid for pid in marked(place) if leaks.read(f"/proc/{pid}/comm").startswith("carrel-undertak")]
            inits = inits_below(p.pid)
            assert len(undertakers) == 1 and len(inits) == 1, (undertakers, inits)
            held = {pid: [leaks.link(f"/proc/{pid}/fd/{fd}") for fd in leaks.names(f"/proc/{pid}/fd")] for pid in undertakers + inits}
        finally:
            p.kill()
            p.wait()
            p.stdout.close()
    finally:
        for fd in kept:
            os.close(fd)
    assert b"hostname" not in text
    assert text.count(b" -> ") <= 4, text
    for pid, links in held.items():
        assert not [name for name in links if "hostname" in name], links
    assert len(held[undertakers[0]]) == 1, held[undertakers[0]]
    count(f"descriptors: undertaker {len(held[undertakers[0]])}, init {len(held[inits[0]])}, command {text.count(b' -> ')}")
