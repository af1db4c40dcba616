# SPDX-License-Identifier: Apache-2.0
"""`carrel` as an ordinary user: no capability, no delegated cgroup, one id. The same command works, and says what is missing.

The suite runs as root and becomes a user that exists nowhere else (setpriv); as an ordinary user it runs as that user.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "fuzz" / "corpus" / "tar"
sys.path.insert(0, str(ROOT / "tests"))
import leaks  # noqa: E402

UID = 61234 if os.geteuid() == 0 else os.geteuid()
GID = 61234 if os.geteuid() == 0 else os.getegid()
FAILED, TIMED_OUT = 125, 124
DEADLINE_S = 60


class User:
    """Runs a copy of the program as the user, below a directory that the user can reach wherever the tree is."""

    def __init__(self, place, carrel):
        self.place = place
        self.home = place / "home"
        self.run_dir = place / "run"
        self.home.mkdir()
        os.chown(self.home, UID, GID)
        self.path = str(place / "carrel")
        for name in ("carrel", "carrel-unpack"):
            shutil.copy(pathlib.Path(carrel.path).parent / name, place / name)
            os.chmod(place / name, 0o755)
        self.env = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8",
                    "XDG_RUNTIME_DIR": str(self.home)}

    def command(self, *words):
        become = ["setpriv", f"--reuid={UID}", f"--regid={GID}", "--clear-groups"] if os.geteuid() == 0 else []
        return [*become, self.path, *words]

    def __call__(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        if "input" in options:
            options.pop("stdin")
        return subprocess.run(self.command(*words), capture_output=True, check=False, timeout=DEADLINE_S, cwd=self.home,
                              env={**self.env, **options.pop("env", {})}, **options)

    def run(self, *words, **options):
        return self("run", *words, **options)

    def json(self, *words, **options):
        done = self("run", "--json", *words, **options)
        assert done.stdout, done.stderr.decode()
        return {**json.loads(done.stdout), "status": done.returncode}

    def text(self, *words, **options):
        done = self.run(*words, **options)
        assert done.returncode == 0, done.stdout.decode() + done.stderr.decode()
        return done.stdout.decode()

    def popen(self, *words):
        return subprocess.Popen(self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=self.home, env=self.env)

    def directory(self, name, mode=0o755):
        path = self.home / name
        path.mkdir()
        path.chmod(mode)
        os.chown(path, UID, GID)
        return path


@pytest.fixture(scope="session")
def user(carrel):
    place = pathlib.Path(tempfile.mkdtemp(prefix="carrel-user-"))
    place.chmod(0o755)
    yield User(place, carrel)
    found = leaks.snapshot(str(place / "home" / "carrel"), str(place / "home" / ".local" / "share" / "carrel"))
    assert not found["run"] and not found["slots"] and not found["scratch"], found
    shutil.rmtree(place)


def sleepers(seconds):
    """Processes that are `sleep SECONDS`; not those whose arguments name one."""
    return [pid for pid in leaks.pids() if leaks.read(f"/proc/{pid}/cmdline").split("\0")[:2] == ["sleep", seconds]]


# --- Basics -------------------------------------------------------------------------------------------------------------------------


def test_the_first_command(user):
    assert user.text("--", "python3", "-c", "print(6 * 7)") == "42\n"


def test_root_inside_is_the_user_outside(user):
    assert user.text("--", "id", "-u").strip() == "0"
    where = user.directory("mine")
    assert user.run("-v", f"{where}:/mine:rw", "--", "touch", "/mine/file").returncode == 0
    assert (where / "file").stat().st_uid == UID
    assert (where / "file").stat().st_gid == GID


@pytest.mark.parametrize("script,status", [("exit 7", 7), ("kill -TERM $$", 143), ("no-such-program", 127), ("exec /etc/passwd", 126)])
def test_exit_status(user, script, status):
    assert user.run("--", "sh", "-c", script).returncode == status


def test_a_missing_program_is_one_line(user):
    done = user.run("--", "no-such-program")
    assert done.returncode == 127
    assert done.stderr.startswith(b"carrel: ") and done.stderr.count(b"\n") == 1


def test_json(user):
    result = user.json("--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (result["outcome"], result["exit_code"], result["status"]) == ("exited", 3, 3)
    assert (result["stdout"], result["stderr"]) == ({"text": "out\n"}, {"text": "err\n"})


def test_stdin_environment_and_place(user):
    assert user.run("-i", "--", "cat", input=b"given").stdout == b"given"
    assert user.text("-e", "A=1", "-w", "/usr", "-h", "box", "--", "sh", "-c", "echo $A $(pwd) $(hostname)") == "1 /usr box\n"


def test_a_time_out_kills_the_whole_tree(user):
    start = time.monotonic()
    result = user.json("--timeout", "300ms", "--", "sh", "-c", "(trap '' TERM; setsid sleep 987654 &); sleep 987654")
    assert (result["outcome"], result["status"]) == ("timed_out", TIMED_OUT)
    assert time.monotonic() - start < 10
    assert sleepers("987654") == []


def test_an_output_limit(user):
    assert user.json("--output-limit", "64k", "--", "yes")["outcome"] == "output_limit"


def test_a_killed_carrel_leaves_nothing(user):
    child = user.popen("run", "--", "sh", "-c", "echo up; setsid sleep 876543 & sleep 876543")
    assert child.stdout.readline() == b"up\n"
    child.kill()
    child.communicate(timeout=30)
    deadline = time.monotonic() + 10
    while sleepers("876543"):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_many_at_once(user):
    children = [user.popen("run", "--", "sh", "-c", f"sleep 0.2; echo {i}") for i in range(8)]
    assert sorted(int(child.communicate(timeout=60)[0]) for child in children) == list(range(8))


# --- What isolates --------------------------------------------------------------------------------------------------------------------


def receipt(user, *words):
    return {layer["layer"]: layer for layer in user.json("--receipt", *words, "--", "true")["receipt"]}


def test_the_receipt_says_what_is_missing_and_why(user):
    layers = receipt(user)
    for name in ("user namespace", "pid namespace", "mount namespace", "network namespace", "ipc namespace", "uts namespace",
                 "root", "masked paths", "minimal /dev", "no_new_privs", "seccomp", "capabilities", "writable layer limit"):
        assert layers[name]["state"] == "on", layers[name]
    for name in ("memory limit", "pids limit"):
        assert layers[name]["state"] == "missing"
        assert "cgroup" in layers[name]["why"]
    assert layers["uid range"]["state"] == "partial"
    assert "ordinary user" in layers["uid range"]["why"]
    assert all(layer["why"] for layer in layers.values() if layer["state"] != "on")


def test_the_receipt_is_what_proc_says(user):
    status = dict(line.split(":\t", 1) for line in user.text("--", "cat", "/proc/self/status").splitlines() if ":\t" in line)
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert int(status["CapBnd"], 16) & ~0xa80425fb == 0
    assert user.text("--", "cat", "/proc/self/uid_map").split() == ["0", str(UID), "1"]


@pytest.mark.parametrize("path", ["/proc/kcore", "/proc/keys", "/proc/sysrq-trigger", "/proc/timer_list", "/proc/interrupts"])
def test_proc_is_masked(user, path):
    done = user.run("--", "sh", "-c", f"cat {path} 2>/dev/null | head -c 100 | wc -c")
    assert done.stdout.strip() == b"0"
    assert user.run("--", "sh", "-c", f"echo b > {path}").returncode != 0


def test_proc_sys_is_read_only(user):
    assert user.run("--", "sh", "-c", "echo x > /proc/sys/kernel/core_pattern").returncode != 0
    assert user.run("--", "ls", "/proc/1/root/").returncode != 0
    pids = user.text("--", "sh", "-c", "echo /proc/[0-9]*").split()
    assert len(pids) <= 4, pids


def test_nothing_of_the_host_is_there(user):
    secret = user.directory("secret")
    (secret / "key").write_text("host")
    assert user.run("--", "ls", str(secret)).returncode != 0
    assert user.text("--", "ls", "/home").split() in ([], ["agent"])  # agent: the user 1000 of the host image
    assert user.text("--", "sh", "-c", "ls /sys/class/net 2>/dev/null; tail -n +3 /proc/net/dev | cut -d: -f1").split() == ["lo"]
    assert user.run("--", "ls", "/..").stdout == user.run("--", "ls", "/").stdout


def test_host_processes_are_out_of_reach(user):
    assert user.run("--", "sh", "-c", f"kill -0 {os.getpid()}").returncode != 0


def test_nested_namespaces_only_when_asked_for(user):
    assert user.run("--", "unshare", "-U", "true").returncode != 0
    assert user.text("--nested-userns", "--", "unshare", "-Ur", "id", "-u").strip() == "0"


# --- Limits ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("-m", "100m"), ("--pids-limit", "50"), ("--cpus", "0.5")], ids=" ".join)
def test_a_limit_by_name_that_cannot_be_is_an_error(user, words):
    done = user.run(*words, "--", "true")
    assert done.returncode == FAILED
    text = done.stderr.decode()
    assert text.startswith("carrel: limit ") and text.count("\n") == 1
    assert "doctor" in text and "root" in text


@pytest.mark.parametrize("words,script", [
    (("--storage-opt", "size=4m"), "head -c 8m /dev/zero > /file"),
    (("--storage-opt", "inodes=100"), "i=0; while [ $i -lt 200 ]; do : > /f$i || exit 1; i=$((i + 1)); done"),
    (("--tmp-size", "1m"), "head -c 2m /dev/zero > /tmp/file"),
    (("--shm-size", "1m"), "head -c 2m /dev/zero > /dev/shm/file"),
    (("--file-size", "1m"), "trap '' XFSZ; head -c 2m /dev/zero > /file"),
    (("--open-files", "16"), "python3 -c 'import os; [os.dup(0) for i in range(20)]'"),
], ids=lambda v: " ".join(v) if isinstance(v, tuple) else "")
def test_limits_that_need_no_cgroup_hold(user, words, script):
    assert user.run(*words, "--", "sh", "-c", script).returncode != 0
    assert user.run(*words, "--", "true").returncode == 0


def test_cpu_seconds(user):
    result = user.json("--cpu-seconds", "1", "--", "sh", "-c", "while :; do :; done")
    assert (result["outcome"], result["limit"]) == ("signalled", "cpu")


# --- Files ----------------------------------------------------------------------------------------------------------------------------


def test_a_volume_keeps_owners_and_read_only_holds(user):
    where = user.directory("data")
    (where / "file").write_text("old\n")
    os.chown(where / "file", UID, GID)
    assert user.text("-v", f"{where}:/data", "--", "stat", "-c", "%u:%g", "/data/file") == "0:0\n"
    assert user.run("-v", f"{where}:/data", "--", "sh", "-c", "echo new > /data/file").returncode != 0
    assert (where / "file").read_text() == "old\n"
    user.text("-v", f"{where}:/data:rw", "--", "sh", "-c", "echo new > /data/file; mkdir /data/sub; chmod 700 /data/sub")
    assert (where / "file").read_text() == "new\n"
    assert {path.stat().st_uid for path in (where, where / "file", where / "sub")} == {UID}


def test_what_the_user_may_not_read_outside_stays_unreadable(user):
    if os.geteuid() == 0:
        closed = user.place / "closed"
        closed.write_text("of root\n")
        closed.chmod(0o600)
    else:
        closed = pathlib.Path("/etc/shadow")
    assert user.run("-v", f"{closed}:/closed", "--", "cat", "/closed").returncode != 0


def test_the_root_is_written_to_and_forgotten(user):
    assert user.text("--", "sh", "-c", "echo x > /etc/mine && mkdir -p /srv/a/b && rm /etc/hostname 2>/dev/null; cat /etc/mine") == "x\n"
    assert user.run("--", "cat", "/etc/mine").returncode != 0
    assert user.run("--read-only", "--", "touch", "/etc/mine").returncode != 0


def make_root(path):
    """A root file system of the user's own: static or not, what sh, cat and id need, from this machine."""
    programs = ["/bin/sh", "/usr/bin/cat", "/usr/bin/id", "/usr/bin/ls"]
    wanted = set(programs)
    for program in programs:
        for word in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.split():
            if word.startswith("/"):
                wanted.add(word)
    for name in wanted:
        target = path / name.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(name), target)
    for name in ("etc", "proc", "dev", "tmp", "sys"):
        (path / name).mkdir(exist_ok=True)
    (path / "etc" / "passwd").write_text("root:x:0:0:root:/:/bin/sh\n")
    for directory, names, files in os.walk(path):
        for name in ["", *names, *files]:
            os.lchown(os.path.join(directory, name), UID, GID)


@pytest.fixture(scope="session")
def own_root(user):
    path = user.directory("root")
    make_root(path)
    return path


def test_a_directory_as_image(user, own_root):
    assert user.text("--image", str(own_root), "--", "id").startswith("uid=0(root) gid=0 groups=0")
    assert user.text("--image", str(own_root), "--", "cat", "/etc/passwd").startswith("root:x:0:0")
    assert user.text("--rootfs", str(own_root), "--", "sh", "-c", "echo new > /etc/passwd; cat /etc/passwd") == "new\n"
    assert (own_root / "etc" / "passwd").read_text().startswith("root:")


@pytest.mark.parametrize("option", ["", "-z", "--zstd"], ids=["tar", "gz", "zst"])
def test_an_archive_as_image(user, own_root, option):
    archive = user.home / f"root{option}.tar"
    subprocess.run(["tar", *option.split(), "-cf", str(archive), "-C", str(own_root), "."], check=True)
    archive.chmod(0o644)
    assert user.text("--image", str(archive), "--", "cat", "/etc/passwd").startswith("root:x:0:0")
    start = time.monotonic()
    assert user.text("--image", str(archive), "--", "cat", "/etc/passwd").startswith("root:x:0:0")
    assert time.monotonic() - start < 5


def test_a_hostile_archive_is_one_line(user):
    archive = user.home / "bad.tar"
    shutil.copy(CORPUS / "bad_dotdot_inside.tar", archive)
    archive.chmod(0o644)
    done = user.run("--image", str(archive), "--", "true")
    assert done.returncode == FAILED and done.stderr.count(b"\n") == 1


# --- Doctor ---------------------------------------------------------------------------------------------------------------------------


def test_the_doctor_names_what_is_missing(user):
    report = json.loads(user("doctor", "--json").stdout)
    found = {finding["what"]: finding for finding in report["findings"]}
    assert found["user namespaces"]["state"] == "ok"
    for name in ("memory limits", "pids limits", "cpu limits"):
        assert found[name]["state"] == "note" and "delegate" in found[name]["remedy"]
    assert report["orphans"] == 0


def test_a_store_of_another_user_is_refused(user):
    if os.geteuid() == 0:
        theirs = user.place / "theirs"
        theirs.mkdir(mode=0o755)
    else:
        theirs = pathlib.Path("/")
    done = user.run("--", "true", env={"CARREL_STORE": str(theirs)})
    assert done.returncode == FAILED
    assert b"CARREL_STORE" in done.stderr and done.stderr.count(b"\n") == 1
