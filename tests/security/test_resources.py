# SPDX-License-Identifier: Apache-2.0
"""Attacks on the share of others: each meets its limit, the result names it, and the host is as before."""
import json
import os
import subprocess
import time

import pytest

from attacker import CARREL

FORK_BOMB = "f() { f | f & f; }; f; sleep 30"


def processes():
    return sum(name.isdigit() for name in os.listdir("/proc"))


def available_bytes():
    with open("/proc/meminfo", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable"))


@pytest.fixture
def result(carrel):
    def run(*words):
        done = carrel("--json", *words)
        return json.loads(done.stdout)

    return run


def test_fork_bomb_is_bounded(result):
    before = processes()
    started = time.monotonic()
    peak = []
    process = subprocess.Popen([CARREL, "run", "--json", "--pids-limit", "64", "--timeout", "1500ms", "--", "/bin/sh", "-c", FORK_BOMB],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    while process.poll() is None and time.monotonic() - started < 20:
        peak.append(processes())
        time.sleep(0.05)
    outcome = json.loads(process.stdout.read())
    assert process.poll() is not None
    assert outcome["outcome"] in ("timed_out", "exited")
    assert max(peak) < before + 64 + 60  # other work on this machine comes and goes
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("user", ["root", "1000"])
def test_processes_stop_at_the_limit(attack, user):
    report = attack("many_processes", user=user, options=["--pids-limit", "40"], facts={"PROBE_FORKS": "80"})
    assert report.verdict("many_processes")[0] == "harmless", report.verdict("many_processes")
    assert "EAGAIN" in report.verdict("many_processes")[1]


def test_memory_hog_ends_out_of_memory(result):
    outcome = result("-m", "48m", "--", "/bin/sh", "-c", "x=$(head -c 300m /dev/zero | tr '\\0' x); echo ${#x}")
    assert outcome["outcome"] == "out_of_memory", outcome
    assert outcome["limit"] == "memory"


@pytest.mark.parametrize("directory,options", [
    ("/var/tmp", ["--storage-opt", "size=8m"]),
    ("/usr/local", ["--storage-opt", "size=8m"]),
    ("/tmp", ["--tmp-size", "8m"]),
    ("/dev/shm", ["--shm-size", "8m"]),
    ("/scratch", ["--tmpfs", "/scratch:size=8m"]),
])
@pytest.mark.parametrize("user", ["root", "1000"])
def test_space_ends_where_it_was_said(attack, directory, options, user):
    if user == "1000" and directory == "/usr/local":
        directory = "/var/tmp"  # only root may write there
    report = attack("much_space", user=user, options=options, facts={"PROBE_DIR": directory, "PROBE_BYTES": str(32 << 20),
                                                                     "PROBE_MOUNTS": "/scratch /probes"})
    verdict, detail = report.verdict("much_space")
    assert verdict == "harmless" and "ENOSPC" in detail, detail
    assert int(detail.split()[0]) <= 8 << 20


def test_inodes_of_the_writable_layer_end(attack):
    report = attack("many_files", options=["--storage-opt", "inodes=500"], facts={"PROBE_DIR": "/var/tmp", "PROBE_FILES": "2000"})
    verdict, detail = report.verdict("many_files")
    assert verdict == "harmless" and "ENOSPC" in detail, detail


@pytest.mark.parametrize("directory", ["/tmp", "/dev/shm"])
def test_empty_files_in_memory_meet_the_memory_limit(attack, directory):
    """These file systems have no limit of files; what the files cost the kernel is billed to the sandbox."""
    before = available_bytes()
    report = attack("many_files", options=["-m", "32m"], facts={"PROBE_DIR": directory, "PROBE_FILES": "200000"})
    assert not report.succeeded("many_files"), report.verdict("many_files")
    assert available_bytes() > before - (256 << 20)


def test_filling_tmp_beyond_the_memory_is_out_of_memory(result):
    outcome = result("-m", "32m", "--tmp-size", "256m", "--timeout", "20s", "--", "/bin/sh", "-c", "head -c 200m /dev/zero > /tmp/x; echo survived")
    assert outcome["outcome"] == "out_of_memory" or outcome["limit"] == "memory", outcome


def test_output_flood_ends_at_the_limit(result):
    outcome = result("--output-limit", "1m", "--timeout", "20s", "--", "yes")
    assert outcome["outcome"] == "output_limit", {k: v for k, v in outcome.items() if k not in ("stdout", "stderr")}
    assert outcome["stdout_bytes"] <= 2 << 20
