# SPDX-License-Identifier: Apache-2.0
"""Attacks on the start of a sandbox: descriptors, directories, images and volumes that lead elsewhere, and what the host sees afterwards."""
import ctypes
import hashlib
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import threading
import time

import pytest

from attacker import CARREL, FAILED, TIMED_OUT, UID_MIN, foreign_descriptors, open_directory, parent_of

AT_FDCWD, RENAME_EXCHANGE = -100, 2


# --- Descriptors ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["read", "path"])
@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_directory_as_a_stream_is_refused(carrel, stream, how):
    """A directory descriptor is a way out of the root: fchdir(0), and up."""
    fd = os.open("/etc", (os.O_PATH if how == "path" else os.O_RDONLY) | os.O_DIRECTORY)
    done = carrel("-i", "--", "/bin/ls", "/proc/self/fd/0/", "/proc/self/fd/1/", "/proc/self/fd/2/", **{stream: fd})
    os.close(fd)
    assert done.returncode == FAILED
    assert not done.stdout
    assert stream == "stderr" or b"directory" in done.stderr


def test_init_holds_nothing_of_the_host(sleeper):
    """Init's own descriptors, from outside: no directory of the host's file systems, no file but control files of its cgroups and its
    proof of life."""
    _, init = sleeper()
    assert foreign_descriptors(init) == {}


def test_a_command_holds_three_descriptors(sleeper):
    _, init = sleeper()
    children = [p for p in filter(str.isdigit, os.listdir("/proc")) if parent_of(p) == init]
    assert children
    for pid in children:
        assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"]


@pytest.mark.parametrize("user", ["root", "1000"])
def test_ids_on_the_host_are_nobodys(sleeper, user):
    process, init = sleeper("--user", user)
    seen = [init] + [int(p) for p in filter(str.isdigit, os.listdir("/proc")) if parent_of(p) == init]
    assert len(seen) > 1
    for pid in seen:
        for line in pathlib.Path("/proc", str(pid), "status").read_text().splitlines():
            if line.startswith(("Uid:", "Gid:")):
                assert all(int(n) >= UID_MIN for n in line.split()[1:]), (pid, line)
            if line.startswith("Groups:"):
                assert all(int(n) >= UID_MIN for n in line.split()[1:]), (pid, line)


def test_no_process_inside_runs_a_program_of_the_host_that_it_could_overwrite(sleeper):
    """CVE-2019-5736: what runs inside is a sealed copy without a name, and carrel itself stays outside."""
    _, init = sleeper()
    assert os.readlink(f"/proc/{init}/exe").startswith("/memfd:")
    with open(f"/proc/{init}/exe", "rb") as f:
        seals = __import__("fcntl").fcntl(f, 1034)  # F_GET_SEALS
        mode = os.fstat(f.fileno()).st_mode
    assert seals & 0xf == 0xf  # SEAL, SHRINK, GROW, WRITE
    assert stat.S_IMODE(mode) == 0o111


def test_a_script_that_names_proc_self_exe_gains_nothing(carrel, work):
    """Its interpreter is init itself, outside of pid 1: it finds no control socket and ends."""
    before = hashlib.sha256(pathlib.Path(CARREL).read_bytes()).digest()
    script = work / "self"
    script.write_text("#!/proc/self/exe\n")
    script.chmod(0o755)
    done = carrel("--timeout", "5s", "-v", f"{script}:/self", "--", "/self")
    assert done.returncode not in (0, TIMED_OUT)
    assert hashlib.sha256(pathlib.Path(CARREL).read_bytes()).digest() == before


# --- The working directory ------------------------------------------------------------------------------------------------------


CWDS = [f"/proc/self/fd/{n}" for n in range(0, 24)] + [
    "/proc/1/cwd", "/proc/1/root", "/proc/self/cwd", "/proc/self/root/..", "/proc/1/fd/3", "/proc/self/fd/7/../../..", "/..", "/../..",
    "/proc/thread-self/fd/8", "/dev/fd/9", "/proc/2/cwd", "/proc/self/task/1/cwd"]


def test_working_directory_outside_of_the_root(carrel, probe):
    """CVE-2024-21626. With directories leaked at many numbers, each is refused or is a directory of the sandbox."""
    leaked = [open_directory("/") for _ in range(24)]
    for fd in leaked:
        os.set_inheritable(fd, True)
    started = 0
    for cwd in CWDS:
        done = carrel("-w", cwd, "-v", f"{probe.parent}:/p", "--", "/p/probe", "cwd_outside", close_fds=False)
        assert done.returncode in (0, FAILED, 126), (cwd, done.returncode, done.stdout, done.stderr)
        started += done.returncode == 0
    for fd in leaked:
        os.close(fd)
    assert started < len(CWDS)


# --- Images ---------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def bystander(work):
    """A directory of the host that redirects aim at; it must stay as it is."""
    directory = work / "bystander"
    directory.mkdir()
    (directory / "keep").write_text("keep\n")
    yield directory
    assert sorted(os.listdir(directory)) == ["keep"]
    assert not os.path.ismount(directory)
    shutil.rmtree(directory)


REDIRECTED = ["proc", "sys", "dev", "tmp", "dev/shm", "dev/pts", "dev/mqueue", "sys/devices"]
DESTINATIONS = {
    "host": lambda host: str(host),
    "host_upwards": lambda host: "../" * 20 + str(host)[1:],
    "inside": lambda host: "/victim",
    "root": lambda host: "/",
    "proc_cwd": lambda host: "/proc/self/cwd",
    "proc_root": lambda host: "/proc/1/root",
    "proc_sys": lambda host: "/proc/sys",
    "proc_fd": lambda host: "/proc/self/fd/5",
    "loop": lambda host: "loop",
}
CORE = ["masked_paths", "masked_paths_redirected", "dotdot_of_root", "host_mounts", "core_pattern", "sysrq", "sysctl_writable", "host_file",
        "device_list", "plant_in_dev", "leaked_descriptors"]


@pytest.mark.parametrize("to", DESTINATIONS)
@pytest.mark.parametrize("name", REDIRECTED)
def test_an_image_cannot_redirect_our_mounts(attack, image, bystander, name, to):
    """/proc, /dev and so on are symlinks in the image: refused, or resolved inside of the image, with every mask in its place."""
    (image / name).parent.mkdir(parents=True, exist_ok=True)
    (image / name).symlink_to(DESTINATIONS[to](bystander))
    report = attack(*CORE, image=image, facts={"PROBE_MOUNTS": f"/victim {bystander} /proc/sys"})
    if report.status == FAILED:
        assert report.stderr.startswith("carrel: ") and report.stderr.count("\n") == 1, report.stderr
        return
    # Where the image put its own /proc or /dev aside there is nothing to look at; what is there must not be the host's.
    bad = {n: v for n, v in report.items() if v[0] == "succeeded" and not (n in ("device_list", "plant_in_dev") and name in ("dev", "proc"))}
    assert bad == {}, report.stdout


@pytest.mark.parametrize("name", ["proc", "sys", "dev", "tmp"])
def test_a_file_in_the_place_of_a_directory_is_refused(carrel, image, refused, name):
    (image / name).write_text("")
    refused(carrel("--image", image, "--", "/probe", "--list"))


def test_image_with_devices_and_setuid_programs(attack, trojan):
    image, facts = trojan
    for user in ("root", "1000"):
        report = attack("image_devices", "image_setuid", "image_capable", "device_list", "host_disks", "host_memory", user=user,
                        image=image, facts=facts)
        assert len(report) == 6, report.stderr
        assert {n: v for n, v in report.items() if v[0] != "harmless"} == {}


# --- Volumes --------------------------------------------------------------------------------------------------------------------


def test_a_volume_that_is_swapped_with_a_symlink(carrel, work):
    """While sandboxes start, the source is exchanged with a symlink to what the sandbox must not see, as fast as it goes."""
    mine, secret, link = work / "mine", work / "secret", work / "link"
    mine.mkdir()
    secret.mkdir()
    (mine / "name").write_text("mine\n")
    (secret / "name").write_text("secret\n")
    link.symlink_to(secret)
    libc, ended, swaps = ctypes.CDLL(None, use_errno=True), threading.Event(), [0]

    def swap():
        while not ended.is_set():
            libc.renameat2(AT_FDCWD, bytes(mine), AT_FDCWD, bytes(link), RENAME_EXCHANGE)
            swaps[0] += 1

    thread = threading.Thread(target=swap)
    thread.start()
    seen = {"mine": 0, "refused": 0}
    try:
        for _ in range(60):
            done = carrel("-v", f"{mine}:/v", "--", "cat", "/v/name")
            assert b"secret" not in done.stdout
            if done.returncode == 0:
                assert done.stdout == b"mine\n"
                seen["mine"] += 1
            else:
                # before Linux 6.15 it is opened twice, and the second look sees another file
                assert done.returncode == FAILED and (b"symbolic link" in done.stderr or b"replaced meanwhile" in done.stderr), done.stderr
                seen["refused"] += 1
    finally:
        ended.set()
        thread.join()
    assert swaps[0] > 100 and seen["mine"] and seen["refused"], (swaps, seen)


def test_a_symlink_as_source_is_refused(carrel, work, refused):
    link = work / "a-link"
    link.symlink_to("/etc")
    assert "symbolic link" in refused(carrel("-v", f"{link}:/v", "--", "true"))


@pytest.mark.parametrize("kind", ["fifo", "device", "socket"])
def test_odd_sources(carrel, work, kind):
    """A FIFO would hang the start, a device would be lent around --device; a socket is lent on purpose."""
    path = work / f"odd-{kind}"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    else:
        s = socket.socket(socket.AF_UNIX)
        s.bind(str(path))
    done = carrel("--timeout", "5s", "-v", f"{path}:/v", "--", "stat", "-c", "%F", "/v")
    assert done.returncode == (0 if kind == "socket" else FAILED)
    path.unlink()


@pytest.mark.parametrize("to", ["host", "host_upwards", "inside", "proc_cwd", "proc_root", "proc_fd", "loop"])
def test_a_volume_target_through_a_link_of_the_image(attack, image, bystander, work, to):
    """-v SOURCE:/link/x where the image's /link leads away: the mount and the directory made for it stay inside."""
    source = work / "source"
    source.mkdir(exist_ok=True)
    (image / "link").symlink_to(DESTINATIONS[to](bystander))
    report = attack("masked_paths", "dotdot_of_root", image=image, options=["-v", f"{source}:/link/x"])
    assert report.status in (0, FAILED)
    assert [n for n, v in report.items() if v[0] == "succeeded"] == []
    assert not (bystander / "x").exists()


@pytest.mark.parametrize("target", ["/proc", "/proc/sys", "/proc/1", "/sys", "/dev", "/dev/null", "/", "/x/../proc", "//proc", "/./proc"])
def test_targets_that_are_ours_are_refused(carrel, refused, target):
    refused(carrel("-v", f"/etc:{target}", "--", "true"))


@pytest.mark.parametrize("where", ["/proc", "/dev", "/sys"])
def test_a_volume_over_proc_through_a_link_of_the_image_keeps_the_masks(attack, image, work, where):
    """The image's link leads to where -v may not. What can be reached of /proc then is covered all the same."""
    source = work / "source"
    source.mkdir(exist_ok=True)
    (image / "link").symlink_to(where)
    report = attack(*CORE, image=image, options=["-v", f"{source}:/link"], facts={"PROBE_MOUNTS": "/link"})
    assert report.status == FAILED or [n for n, v in report.items() if v[0] == "succeeded" and n not in ("device_list", "plant_in_dev")] == []


@pytest.mark.parametrize("user", ["root", "1000"])
def test_a_writable_volume_of_a_user_gets_no_file_of_root(attack, work, user):
    """A setuid file planted through a volume belongs, on the host, to the volume's owner, who could have made it alone."""
    volume = work / f"planted-{user}"
    volume.mkdir()
    os.chown(volume, 1000, 1000)
    report = attack("plant_setuid", user=user, options=["-v", f"{volume}:/v:rw"], facts={"PROBE_PLANT": "/v/planted", "PROBE_MOUNTS": "/v /probes"})
    assert report.verdict("plant_setuid")[0] == "harmless"
    owners = {(os.lstat(p).st_uid, os.lstat(p).st_gid) for p in volume.iterdir()}
    assert owners == {(1000, 1000)} or (user != "root" and not owners)  # nothing made is as good


def test_a_writable_volume_takes_no_device_and_no_other_owner(carrel, work):
    volume = work / "owners"
    volume.mkdir()
    os.chown(volume, 1000, 1000)
    done = carrel("-v", f"{volume}:/v:rw", "--", "/bin/sh", "-c",
                  "mknod /v/null c 1 3; touch /v/a; chown 65534 /v/a; mkdir /v/d; chmod 7777 /v/d /v/a; ls -ln /v; true")
    assert done.returncode == 0
    assert not (volume / "null").exists()
    for path in volume.iterdir():
        assert os.lstat(path).st_uid == 1000, path


def test_a_writable_volume_of_root_is_roots(carrel, work):
    """Not defended, and documented: who lends root's own directory for writing lends the making of root's files, setuid among them."""
    volume = work / "of-root"
    volume.mkdir()
    done = carrel("-v", f"{volume}:/v:rw", "--", "/bin/sh", "-c", "cp /bin/true /v/x && chmod 4755 /v/x")
    assert done.returncode == 0
    st = os.stat(volume / "x")
    assert st.st_uid == 0 and st.st_mode & stat.S_ISUID
    text = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "THREATS.md").read_text()
    assert "volume of root" in text


# --- The end --------------------------------------------------------------------------------------------------------------------


def test_signals_leave_init_at_work(attack):
    """After every signal by every call, and everybody deaf: the time-out still ends it."""
    for user in ("root", "1000"):
        before = time.monotonic()
        report = attack("signals_then_sleep", user=user, options=["--timeout", "500ms"])
        assert report.status == TIMED_OUT, report.stderr
        assert time.monotonic() - before < 5


@pytest.mark.parametrize("user", ["root", "1000"])
def test_killing_everything_leaves_init_and_the_result(attack, user):
    report = attack("kill_everything", user=user)
    # Either the probe lives to tell, or it is itself among the killed; a sandbox that ended without a result is the failure.
    assert report.status in (0, 137, 2), (report.status, report.stderr)
    assert not report.succeeded("kill_everything")
