# SPDX-License-Identifier: Apache-2.0
"""The writable layer: what it holds, where its limits are, and that it is gone afterwards, for each backing.

Quota needs a store on a file system with project quotas. The tests make their own, ext4 and xfs in a file, mounted in a mount namespace that
ends with the test. A kernel without quota (CONFIG_QFMT_V2, CONFIG_XFS_QUOTA) skips these with its own reason.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

FAILED = 125
MIB = 1 << 20
# What is given beyond the size: directories of Carrel's own and of two overlays.
SLACK = 192 * 1024

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="layers on disk need root")

# Runs inside, as the uid of its first argument, in a directory of the writable layer: tries something until it fails, and says so in JSON.
PROBE = r"""
import errno, json, os, sys
uid, what, most = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
os.mkdir("/probe")
os.chown("/probe", uid, uid)
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
os.chdir("/probe")
done, error = 0, None
try:
    if what == "bytes":
        fd = os.open("big", os.O_CREAT | os.O_WRONLY)
        block = b"x" * 65536
        while done < most:
            done += os.write(fd, block)
        os.fsync(fd)
    else:
        while done < most:
            if done % 1000 == 0:
                os.mkdir("d%d" % (done // 1000))
            fd = os.open("d%d/f%d" % (done // 1000, done), os.O_CREAT | os.O_WRONLY)
            if what == "small":
                os.write(fd, b"hello")
            os.close(fd)
            done += 1
except OSError as e:
    error = errno.errorcode[e.errno]
print(json.dumps({"done": done, "error": error, "seen": sum(len(f) for _, _, f in os.walk("."))}))
"""


def wait_until(condition, what, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def loops_of(path):
    """Loop devices whose file is, or was, below a directory, as the kernel names it."""
    found = []
    for file in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        try:
            if str(path) in file.read_text():
                found.append(file.parts[3])
        except OSError:
            pass  # freed meanwhile
    return found


class Host:
    """A store with a backing, and the mount namespace to run in."""

    def __init__(self, carrel, backing, base, store, prefix=()):
        self.carrel, self.backing, self.base, self.store = carrel, backing, base, store
        self.prefix = list(prefix)
        self.env = dict(os.environ, CARREL_STORE=str(store), CARREL_RUN_DIR=str(base / "run"))

    def words(self, *words, backing=None):
        return [*self.prefix, self.carrel.path, "run", "--storage-opt", f"backing={backing or self.backing}", *words]

    def run(self, *words, **options):
        options.setdefault("env", self.env)
        options.setdefault("timeout", 120)
        return subprocess.run(self.words(*words), stdin=subprocess.DEVNULL, capture_output=True, check=False, **options)

    def probe(self, uid, what, most, *words):
        done = self.run(*words, "--", "/usr/bin/python3", "-c", PROBE, str(uid), what, str(most))
        assert done.returncode == 0, (done.stdout, done.stderr)
        return json.loads(done.stdout)

    def popen(self, *words, **options):
        return subprocess.Popen(self.words(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=self.env, **options)

    def outside(self, *words):
        return subprocess.run([*self.prefix, *words], capture_output=True, check=False, text=True)

    def layers(self):
        """Names below STORE/upper."""
        return self.outside("sh", "-c", f"ls -A {self.store}/upper 2>/dev/null").stdout.split()

    def expect_nothing(self):
        wait_until(lambda: not self.layers(), f"STORE/upper is empty: {self.layers()}")
        wait_until(lambda: not loops_of(self.base / "store"), "no loop device is left")


def quota_host(carrel, base, kind):
    """A store on a file system of our own: made in a file, mounted in a namespace that a sleeping process holds."""
    make = {"ext4": ["mkfs.ext4", "-qF", "-O", "quota,project", "-E", "quotatype=prjquota"], "xfs": ["mkfs.xfs", "-qf"]}[kind]
    if not shutil.which(make[0], path="/usr/sbin:/sbin:/usr/bin"):
        pytest.skip(f"{make[0]} is not installed")
    disk, mount = base / "disk", base / "mount"
    mount.mkdir()
    with open(disk, "wb") as file:
        file.truncate(1 << 30)
    subprocess.run([*make, str(disk)], check=True, capture_output=True, env=dict(os.environ, PATH="/usr/sbin:/sbin:/usr/bin:/bin"))
    holder = subprocess.Popen(["unshare", "-m", "sh", "-c", f"mount -o loop,prjquota {disk} {mount} && echo ready && exec sleep 600"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if holder.stdout.readline() != b"ready\n":
        holder.wait()
        pytest.skip(f"this kernel mounts no {kind} with project quotas: {holder.stderr.read().decode().splitlines()[:1]}")
    return Host(carrel, "quota", base, mount / "store", ["nsenter", "-m", "-t", str(holder.pid)]), holder


@pytest.fixture(params=["tmpfs", "loop", "quota-ext4", "quota-xfs"])
def host(request, carrel, tmp_path):
    holder = None
    if request.param.startswith("quota"):
        made, holder = quota_host(carrel, tmp_path, request.param.partition("-")[2])
    else:
        made = Host(carrel, request.param, tmp_path, tmp_path / "store")
    yield made
    try:
        made.expect_nothing()
    finally:
        if holder:
            holder.kill()
            holder.wait()
        wait_until(lambda: not loops_of(tmp_path), "the devices of the test are gone")


@pytest.fixture
def loop(carrel, tmp_path):
    made = Host(carrel, "loop", tmp_path, tmp_path / "store")
    yield made
    made.expect_nothing()


# --- Limits -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("uid", [0, 1000])
def test_bytes_have_a_limit(host, uid):
    got = host.probe(uid, "bytes", 64 * MIB, "--storage-opt", "size=20m")
    assert got["error"] in ("ENOSPC", "EDQUOT"), got
    # tmpfs counts the sandbox's own directories too, which are pages of it
    assert 20 * MIB - 256 * 1024 <= got["done"] <= 20 * MIB + SLACK, got


@pytest.mark.parametrize("uid", [0, 1000])
def test_inodes_have_a_limit(host, uid):
    got = host.probe(uid, "empty", 3000, "--storage-opt", "inodes=1000", "--storage-opt", "size=20m")
    assert got["error"] in ("ENOSPC", "EDQUOT"), got
    assert 1000 - 32 <= got["done"] <= 1000 + 64, got


def test_usr_counts_too(host):
    done = host.run("--storage-opt", "size=10m", "--", "sh", "-c",
                    "dd if=/dev/zero of=/a bs=1M count=6 2>/dev/null && ! dd if=/dev/zero of=/usr/b bs=1M count=6 2>/dev/null; "
                    "stat -c %s /a /usr/b")
    a, b = (int(n) for n in done.stdout.split())
    assert a == 6 * MIB and a + b <= 10 * MIB + SLACK


def test_a_full_layer_can_be_emptied_and_used_again(host):
    done = host.run("--storage-opt", "size=10m", "--", "sh", "-c",
                    "for i in 1 2 3; do dd if=/dev/zero of=/a bs=64k 2>/dev/null; stat -c %s /a; rm /a; done")
    sizes = [int(n) for n in done.stdout.split()]
    assert len(sizes) == 3 and all(abs(n - 10 * MIB) <= 300 * 1024 for n in sizes), sizes


def test_df_inside_shows_what_is_left(host):
    done = host.run("--storage-opt", "size=50m", "--", "df", "--output=avail", "-B1", "/")
    assert abs(int(done.stdout.split()[-1]) - 50 * MIB) <= 300 * 1024


def test_a_hundred_thousand_small_files(host):
    got = host.probe(1000, "small", 100_000, "--memory", "768m", "--storage-opt", "size=600m", "--storage-opt", "inodes=110000")
    assert got == {"done": 100_000, "error": None, "seen": 100_000}


def test_more_than_memory_can_be_written(loop):
    got = loop.probe(0, "bytes", 400 * MIB, "--memory", "64m", "--storage-opt", "size=500m")
    assert got["error"] is None and got["done"] == 400 * MIB


@pytest.mark.parametrize("host", ["quota-ext4", "quota-xfs"], indirect=True)
def test_a_guest_cannot_leave_its_project(host):
    done = host.run("--", "sh", "-c", "mkdir /x; cd /x; chattr -p 0 .; chattr -P .; true")
    assert done.returncode == 0
    assert host.run("--", "chattr", "-p", "0", "/root").returncode != 0


# --- What works in it ---------------------------------------------------------------------------------------------------------------


def test_directories_of_the_image_can_be_renamed(host):
    done = host.run("--", "sh", "-c", "mv /etc /etc2 && mv /usr/share /usr/share2 && mkdir /etc && ls -d /etc2 /usr/share2 && cat /etc2/passwd")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(b"/etc2\n/usr/share2\nroot:")


def test_owners_inside_are_those_that_were_given(host):
    done = host.run("--", "sh", "-c", "touch /a /b /c && chown 1000:1000 /b && chown 65534:5 /c && stat -c %u:%g / /a /b /c")
    assert done.stdout.split() == [b"0:0", b"0:0", b"1000:1000", b"65534:5"]


def test_setuid_bits_hardlinks_xattrs_and_holes_survive(host):
    script = ("cd /root; echo x >a; ln a b; chmod 4755 a; truncate -s 1G hole; "
              "/usr/bin/python3 -c \"import os; os.setxattr('a', 'user.k', b'v'); print(os.getxattr('b', 'user.k').decode())\"; "
              "stat -c '%h %a' b; stat -c '%s %b' hole")
    out = host.run("--storage-opt", "size=20m", "--", "sh", "-c", script).stdout.decode().split("\n")
    assert out[1:3] == ["2 4755", "1073741824 0"], out


def owners_on_disk(host, sandbox):
    """uid of /etc/mine and /etc/theirs as the disk has them."""
    if host.backing == "quota":
        where = f"{host.store}/upper/{sandbox}/upper/etc"
        return host.outside("stat", "-c", "%u:%g", f"{where}/mine", f"{where}/theirs").stdout.split()
    device, = loops_of(host.base / "store")
    seen = host.base / "seen"
    seen.mkdir()
    script = f"mount /dev/{device} {seen} && stat -c %u:%g {seen}/upper/etc/mine {seen}/upper/etc/theirs"
    return subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, check=True, text=True).stdout.split()


@pytest.mark.parametrize("host", ["loop", "quota-ext4", "quota-xfs"], indirect=True)
def test_ids_on_disk_are_plain(host):
    child = host.popen("--", "sh", "-c", "touch /etc/mine /etc/theirs; chown 1000:1000 /etc/theirs; hostname; read x; sleep 60")
    try:
        sandbox = child.stdout.readline().decode().strip()
        assert re.fullmatch("[0-9a-z]{16}", sandbox)
        assert owners_on_disk(host, sandbox) == ["0:0", "1000:1000"]
    finally:
        child.terminate()
        child.wait()


# --- Nothing stays ------------------------------------------------------------------------------------------------------------------


def test_nothing_stays_after_the_end(host):
    assert host.run("--", "sh", "-c", "mkdir -p /a/b/c && touch /a/b/c/d && chmod 0 /a/b /a").returncode == 0
    assert not host.layers()


def test_nothing_stays_after_a_failed_start(host):
    assert host.run("--workdir", "/missing", "--", "true").returncode != 0
    assert host.run("-v", "/missing:/x", "--", "true").returncode == FAILED
    assert not host.layers()


def test_nothing_stays_when_the_owner_is_killed(host):
    child = host.popen("--", "sh", "-c", "mkdir -p /a/b && dd if=/dev/zero of=/a/b/c bs=1M count=5 2>/dev/null; echo up; sleep 600")
    assert child.stdout.readline() == b"up\n"
    child.kill()  # with nsenter in front it is carrel all the same: nsenter executes it
    child.wait()
    host.expect_nothing()


def test_nothing_stays_when_the_owner_is_killed_at_any_moment(host):
    assert host.run("--", "true").returncode == 0  # the store is there
    for step in range(24):
        child = host.popen("--", "sleep", "600")
        time.sleep(step * 0.001)
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    host.expect_nothing()


def test_many_at_once(loop):
    children = [loop.popen("--storage-opt", "size=10m", "--", "sh", "-c", "dd if=/dev/zero of=/a bs=64k 2>/dev/null; stat -c %s /a")
                for _ in range(24)]
    sizes = [int(child.communicate(timeout=120)[0]) for child in children]
    assert [child.returncode for child in children] == [0] * 24
    assert all(abs(n - 10 * MIB) <= 300 * 1024 for n in sizes), sizes


# --- Choice -------------------------------------------------------------------------------------------------------------------------


def chosen(host, *words):
    done = subprocess.run([*host.prefix, host.carrel.path, "run", "--dry-run", *words, "--", "true"], env=host.env, capture_output=True,
                          check=True, text=True)
    return re.search(r"writable layer: ([^,]+)", done.stdout)[1]


def test_auto_takes_memory_unless_it_cannot_hold_the_size(host):
    assert chosen(host) == "memory"
    assert chosen(host, "--storage-opt", "size=100m", "--memory", "200m") == "memory"
    on_disk = "project quota" if host.backing == "quota" else "loop device"
    assert chosen(host, "--storage-opt", "size=1g", "--memory", "200m") == on_disk


def test_a_dry_run_makes_nothing(host):
    assert chosen(host, "--storage-opt", "size=1g", "--storage-opt", "backing=" + host.backing)
    assert not host.layers()


def test_quota_on_a_store_without_says_what_to_do(carrel, tmp_path, one_line):
    host = Host(carrel, "quota", tmp_path, tmp_path / "store")
    done = host.run("--", "true")
    if done.returncode == 0:
        pytest.skip("the file system of the temporary directory has project quotas")
    assert done.returncode == FAILED
    one_line(done.stderr, "limit the writable layer by quota", "backing=loop")
    host.expect_nothing()


def test_without_mkfs_the_error_names_the_package(carrel, tmp_path, one_line):
    program = shutil.which("mkfs.ext4", path="/usr/sbin:/sbin")
    host = Host(carrel, "loop", tmp_path, tmp_path / "store",
                ["unshare", "-m", "sh", "-c", f"mount --bind /dev/null {os.path.realpath(program)} && exec \"$@\"", "sh"])
    done = host.run("--", "true")
    assert done.returncode == FAILED
    one_line(done.stderr, "mkfs.ext4 is not installed", "apt install e2fsprogs")


@pytest.mark.parametrize("backing", ["loop", "quota"])
def test_an_ordinary_user_has_memory_only(carrel, tmp_path, one_line, backing):
    os.chmod(tmp_path, 0o777)
    for parent in [tmp_path.parent, tmp_path.parent.parent]:
        os.chmod(parent, 0o755)
    host = Host(carrel, backing, tmp_path, tmp_path / "store")
    done = host.run("--", "true", user=1000, group=1000, extra_groups=[])
    assert done.returncode == FAILED
    one_line(done.stderr, "only root can", "backing=tmpfs")
