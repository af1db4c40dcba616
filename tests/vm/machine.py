# SPDX-License-Identifier: Apache-2.0
"""Runs carrel in the machine of tools/test-vm.sh. A module of its own, since other suites have a conftest, too."""
import json
import os
import pathlib
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARREL = os.environ.get("CARREL", str(ROOT / "build" / "carrel"))
UNIFIED = pathlib.Path("/sys/fs/cgroup")
RUN_DEADLINE_S = 60


def words_as(uid):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"] if uid else []


class Carrel:
    path = CARREL

    def __call__(self, *words, uid=0, env=None, **options):
        return subprocess.run([*words_as(uid), CARREL, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=RUN_DEADLINE_S, env={**os.environ, **(env or {})}, **options)

    def json(self, *words, **options):
        done = self("run", "--json", *words, **options)
        assert done.stdout, done.stderr.decode(errors="replace")
        return json.loads(done.stdout)


class Running:
    """A sandbox in which /bin/sh says ready and goes on, with its group."""

    def __init__(self, base, *words, script="sleep 1000", uid=0, env=None, **options):
        before = set(base.glob("*/work"))
        self.process = subprocess.Popen([*words_as(uid), CARREL, "run", *words, "--", "/bin/sh", "-c", "echo ready; " + script],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env={**os.environ, **(env or {})}, **options)
        assert self.process.stdout.readline() == b"ready\n"
        made = set(base.glob("*/work")) - before
        assert len(made) == 1, made
        self.work = made.pop()
        self.group = self.work.parent

    def read(self, name):
        return (self.work / name).read_text().strip()

    def undertaker(self):
        for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
            try:
                name, rest = path.read_text().rsplit(")", 1)
            except OSError:
                continue
            if name.endswith("(carrel-undertak") and int(rest.split()[1]) == self.process.pid:
                return int(path.parent.name)
        return None

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(RUN_DEADLINE_S)


def wait_until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False
