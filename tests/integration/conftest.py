# SPDX-License-Identifier: Apache-2.0
"""What every integration test uses: the real binary, run as a user would.

CARREL names the program, else build/carrel of this tree. Its absence is a failure, never a skip: a suite that tests nothing must not pass.
"""
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARREL = os.environ.get("CARREL", str(ROOT / "build" / "carrel"))

# Seconds for one run of any test: far above what a sandbox takes, and below what a person waits for.
RUN_DEADLINE_S = 60


class Carrel:
    """Runs the binary and returns subprocess.CompletedProcess with bytes."""

    path = CARREL

    def __call__(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("timeout", RUN_DEADLINE_S)
        if options.get("input") is not None:
            options.pop("stdin")
        return subprocess.run([self.path, *words], capture_output=True, check=False, **options)

    def run(self, *words, **options):
        return self("run", *words, **options)

    def json(self, *words, **options):
        """`carrel run --json`: the parsed object, with the exit status as "status"."""
        done = self("run", "--json", *words, **options)
        assert done.stdout, done.stderr.decode(errors="replace")
        result = json.loads(done.stdout)
        result["status"] = done.returncode
        return result

    def popen(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([self.path, *words], **options)


def pytest_sessionstart(session):
    if not os.access(CARREL, os.X_OK):
        pytest.exit(f"{CARREL} is not there: build it with 'make', or name it with CARREL=", returncode=2)


@pytest.fixture(scope="session")
def carrel():
    return Carrel()


@pytest.fixture
def one_line():
    """Checks that stderr is one line of the form that every failure has, and returns it."""

    def check(stderr, *parts):
        text = stderr.decode()
        assert text.startswith("carrel: "), text
        assert text.count("\n") == 1 and text.endswith("\n"), text
        for part in parts:
            assert part in text, f"{part!r} is not in {text!r}"
        return text

    return check
