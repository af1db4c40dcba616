# SPDX-License-Identifier: Apache-2.0
"""Tests of cgroup v2. They run in the machine of tools/test-vm.sh, as root; elsewhere they refuse to."""
import os

import pytest

from machine import UNIFIED, Carrel, Running


def pytest_sessionstart(session):
    if not (UNIFIED / "cgroup.controllers").exists() or os.geteuid() != 0:
        pytest.exit("tests/vm needs root and cgroup v2 at /sys/fs/cgroup: run 'make test-vm'", returncode=2)


@pytest.fixture(scope="session")
def carrel():
    return Carrel()


@pytest.fixture
def start():
    started = []

    def run(*words, base=UNIFIED / "carrel", **more):
        started.append(Running(base, *words, **more))
        return started[-1]

    yield run
    for sandbox in started:
        sandbox.end()
