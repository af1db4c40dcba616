# SPDX-License-Identifier: Apache-2.0
"""A real terminal: neither the sandbox's own nor the caller's takes typed-in input from inside."""
import os
import pathlib
import pty
import select
import signal
import subprocess
import time

import pytest

from attacker import CARREL

TYPED = ["tiocsti_stdin", "tioclinux_stdin", "steal_terminal"]


def on_a_terminal(words, seconds=10):
    """Runs @words as the leader of a session on a new terminal. Returns exit status and everything that the terminal showed."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(words[0], words)
    shown, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        ready, _, _ = select.select([master], [], [], 0.1)
        if ready:
            try:
                data = os.read(master, 4096)
            except OSError:
                break
            if not data:
                break
            shown += data
    else:
        os.kill(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(master)
    return status, shown.decode(errors="replace")


@pytest.mark.parametrize("user", ["root", "1000"])
@pytest.mark.parametrize("mode", ["-it", "-i"])
def test_nothing_can_be_typed_into_a_terminal(probe, mode, user):
    """-it: the sandbox's own terminal. -i: the caller's, which came in as standard input."""
    status, shown = on_a_terminal([CARREL, "run", mode, "--user", user, "-v", f"{probe.parent}:/p", "--", "/p/probe", *TYPED])
    lines = {line.split()[0]: line for line in shown.splitlines() if line.split()[:1] and line.split()[0] in TYPED}
    assert sorted(lines) == sorted(TYPED), shown
    for name in ("tiocsti_stdin", "tioclinux_stdin"):
        assert " harmless " in lines[name], shown
    if mode == "-i":
        assert " harmless " in lines["steal_terminal"], shown


def test_tiocsti_would_have_worked_here(probe):
    """Outside the same probe types, so the test above shows something. Its terminal is its own."""
    done = subprocess.run([str(probe), "tiocsti"], capture_output=True, check=False, text=True)
    switch = pathlib.Path("/proc/sys/dev/tty/legacy_tiocsti")
    if not switch.exists() or switch.read_text().strip() == "1":  # before Linux 6.2 there is no switch
        assert done.returncode == 1, done.stdout
