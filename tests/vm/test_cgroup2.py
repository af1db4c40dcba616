# SPDX-License-Identifier: Apache-2.0
"""Limits, accounts and ends on cgroup v2, read back from the kernel's own files: for root, and for a user with and without delegation."""
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

from machine import UNIFIED, wait_until

BASE = UNIFIED / "carrel"
UID = 61234


def sandboxes():
    return {p for p in BASE.iterdir() if p.is_dir()} if BASE.exists() else set()


def test_limits_are_the_kernels(start):
    sandbox = start("-m", "64m", "--pids-limit", "33", "--cpus", "0.5")
    assert sandbox.read("memory.max") == str(64 << 20)
    assert sandbox.read("pids.max") == "33"
    assert sandbox.read("cpu.max") == "50000 100000"


def test_init_is_beside_the_work_and_each_exec_in_a_group_of_its_own(start):
    sandbox = start()
    inits = (sandbox.group / "init" / "cgroup.procs").read_text().split()
    assert len(inits) == 1
    assert pathlib.Path("/proc", inits[0], "comm").read_text() == "carrel-init\n"
    assert sandbox.read("cgroup.procs") == ""
    assert (sandbox.work / "e1" / "cgroup.procs").read_text().split()
    assert not (sandbox.group / "init" / "memory.max").exists() or (sandbox.group / "init" / "memory.max").read_text() == "max\n"


def test_a_memory_hog_is_out_of_memory_and_init_lives(carrel):
    result = carrel.json("-m", "48m", "--", "/bin/sh", "-c", "x=$(head -c 300m /dev/zero | tr '\\0' x); echo ${#x}")
    assert (result["outcome"], result["limit"]) == ("out_of_memory", "memory")
    assert 40 << 20 < result["peak_memory_bytes"] <= 48 << 20


def test_files_in_memory_count(carrel):
    result = carrel.json("-m", "32m", "--tmp-size", "256m", "--", "/bin/sh", "-c", "head -c 200m /dev/zero >/tmp/x; echo survived")
    assert result["limit"] == "memory"


def test_processes_have_a_limit(carrel):
    script = "i=0; while [ $i -lt 50 ]; do sleep 5 & i=$((i+1)); done"
    result = carrel.json("--pids-limit", "20", "--timeout", "20s", "--", "/bin/sh", "-c", script)
    assert result["limit"] == "pids", result
    assert "fork" in result["stderr"]["text"]


def test_processor_time_has_a_limit(carrel):
    result = carrel.json("--cpus", "0.3", "--timeout", "3s", "--", "/bin/sh", "-c", "while :; do :; done")
    assert result["outcome"] == "timed_out"
    used = result["cpu_ms"]["user"] + result["cpu_ms"]["system"]
    assert 0.3 * 3000 * 0.4 < used < 0.3 * 3000 * 1.5, result


def test_accounts(carrel):
    result = carrel.json("--", "/bin/sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done")
    assert result["outcome"] == "exited"
    assert result["cpu_ms"]["user"] > 1
    assert result["peak_memory_bytes"] > 100_000


def test_a_time_out_kills_what_left_the_session(carrel):
    script = "trap '' TERM HUP; for i in 1 2 3; do (setsid setsid /bin/sh -c 'trap \"\" TERM; sleep 4321' &); done; sleep 4321"
    result = carrel.json("--timeout", "1s", "--", "/bin/sh", "-c", script)
    assert result["outcome"] == "timed_out"
    assert subprocess.run(["pgrep", "-f", "^sleep 4321"], capture_output=True, check=False).stdout == b""


def test_a_fork_bomb_ends_at_once(carrel):
    started = time.monotonic()
    result = carrel.json("--pids-limit", "200", "--timeout", "2s", "--", "/bin/sh", "-c", "f() { f | f & f; }; f; sleep 30")
    assert result["outcome"] in ("timed_out", "exited")
    assert time.monotonic() - started < 20


def test_the_receipt_has_every_limit(carrel):
    done = carrel("run", "-m", "64m", "--pids-limit", "33", "--cpus", "0.5", "--json", "--receipt", "--", "true")
    layers = {l["layer"]: l for l in json.loads(done.stdout)["receipt"]}
    for name in ("memory limit", "pids limit", "cpu limit", "cgroup namespace"):
        assert layers[name]["state"] == "on", layers[name]
    assert "v2" in layers["memory limit"]["evidence"]


def test_the_doctor_sees_v2(carrel):
    text = carrel("doctor").stdout.decode()
    assert "cgroups                     v2" in text
    for name in ("memory limits", "pids limits", "cpu limits"):
        assert [line for line in text.splitlines() if name in line][0].startswith("ok"), text


def test_nothing_stays(carrel, start):
    before = sandboxes()
    start().end()
    assert carrel("run", "--", "true").returncode == 0
    assert carrel("run", "--", "/no/such/program").returncode == 127
    assert sandboxes() == before


def test_a_killed_carrel_leaves_nothing(start):
    sandbox = start(script="sleep 1000 & sleep 1000")
    os.kill(sandbox.process.pid, signal.SIGKILL)
    assert wait_until(lambda: not sandbox.group.exists())


def test_what_a_killed_pair_leaves_is_swept(carrel, start):
    sandbox = start()
    undertaker = sandbox.undertaker()
    assert undertaker
    os.kill(undertaker, signal.SIGKILL)
    os.kill(sandbox.process.pid, signal.SIGKILL)
    sandbox.process.wait()
    assert wait_until(lambda: "populated 0" in (sandbox.group / "cgroup.events").read_text())
    assert b"orphan cgroup" in carrel("doctor").stdout
    assert carrel("doctor", "--sweep").returncode == 0
    assert not sandbox.group.exists()


def test_from_a_group_below(start):
    """Started in a group of a service: the sandbox is not below it, and the service's limits are not its own."""
    service = UNIFIED / "service"
    service.mkdir()
    try:
        sandbox = start(preexec_fn=lambda: (service / "cgroup.procs").write_text("0"))
        assert sandbox.group.parent == BASE
        sandbox.end()
    finally:
        assert wait_until(lambda: not (service / "cgroup.procs").read_text())
        service.rmdir()


# --- An ordinary user ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def user(tmp_path_factory):
    """Environment of a user, and a group as systemd delegates it: the user's own, with its processes in a group below."""
    home = pathlib.Path("/tmp/carrel-vm-user")
    home.mkdir(mode=0o755)
    os.chown(home, UID, UID)
    group = UNIFIED / "user-61234"
    group.mkdir()
    (UNIFIED / "cgroup.subtree_control").write_text("+memory +pids +cpu")
    shell = group / "shell"
    shell.mkdir()
    for path in (group, shell):
        for name in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
            os.chown(path / name, UID, UID)
    yield {"HOME": str(home), "XDG_RUNTIME_DIR": str(home), "TMPDIR": str(home)}, group, shell
    assert wait_until(lambda: not (shell / "cgroup.procs").read_text())
    for path in sorted(group.glob("**/"), key=lambda p: -len(p.parts)):
        path.rmdir()
    subprocess.run(["rm", "-rf", str(home)], check=True)


def joins(shell):
    return {"preexec_fn": lambda: (shell / "cgroup.procs").write_text("0")}


def test_a_user_with_delegation_has_limits(start, user):
    env, group, shell = user
    sandbox = start("-m", "64m", "--pids-limit", "33", "--cpus", "0.5", base=group / "carrel", uid=UID, env=env, **joins(shell))
    assert sandbox.read("memory.max") == str(64 << 20)
    assert sandbox.read("pids.max") == "33"
    assert sandbox.read("cpu.max") == "50000 100000"
    assert (sandbox.work / "e1" / "cgroup.procs").read_text().split()
    sandbox.end()
    assert not sandbox.group.exists()


def test_a_user_with_delegation_meets_them(carrel, user):
    env, _, shell = user
    result = carrel.json("-m", "48m", "--", "/bin/sh", "-c", "x=$(head -c 300m /dev/zero | tr '\\0' x); echo ${#x}", uid=UID, env=env,
                         **joins(shell))
    assert (result["outcome"], result["limit"]) == ("out_of_memory", "memory")
    assert result["peak_memory_bytes"] <= 48 << 20


def test_a_user_without_delegation_runs_and_is_told(carrel, user):
    env, _, _ = user
    assert carrel.json("--", "true", uid=UID, env=env)["outcome"] == "exited"
    done = carrel("run", "-m", "64m", "--", "true", uid=UID, env=env)
    assert done.returncode == 125
    assert done.stderr.decode().count("\n") == 1 and b"memory" in done.stderr
