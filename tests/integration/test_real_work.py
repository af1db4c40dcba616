# SPDX-License-Identifier: Apache-2.0
"""Ordinary work must not notice that it is in a sandbox: builds, test suites, package managers, debuggers, terminals, whole distributions.

The programs and scripts are in work/, mounted at /tests. What comes from Debian is fetched once, outside, below the build directory, and
mounted read-only. CARREL_SWEEP=all builds every project; otherwise one of the longer ones is drawn by CARREL_SEED.
"""
import gzip
import io
import json
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import tarfile
import time
import zipfile

import pexpect
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = pathlib.Path(__file__).resolve().parent / "work"
CORPUS = ROOT / "tests" / "fuzz" / "corpus" / "tar"
PROGRAM = pathlib.Path(os.environ.get("CARREL", ROOT / "build" / "carrel"))
FETCHED = pathlib.Path(os.environ.get("CARREL_BUILD", PROGRAM.parent)).resolve() / "fetched"
SWEEP_ALL = os.environ.get("CARREL_SWEEP") == "all"
SEED = os.environ.get("CARREL_SEED", "1")
FETCH_DEADLINE_S = 300
WORK_DEADLINE_S = 300
FAILED = 125


def sample(cases, count=1):
    return cases if SWEEP_ALL else random.Random(SEED).sample(cases, count)


def work(carrel, script, *options, **more):
    """Run a script of work/, or one given as text, that stops at the first failure. Return: its output, both streams together."""
    text = (SCRIPTS / script).read_text() if (SCRIPTS / script).is_file() else script
    done = carrel.run("-m", "2g", "--storage-opt", "size=1500m", "-v", f"{SCRIPTS}:/tests", "-w", "/root", *options, "--", "bash", "-euo",
                      "pipefail", "-c", f"exec 2>&1\n{text}", timeout=WORK_DEADLINE_S, **more)
    out = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"status {done.returncode}\n{out[-4000:]}{done.stderr.decode(errors='replace')}"
    return out


# --- What is fetched ----------------------------------------------------------------------------------------------------------------


def fetch(words, **options):
    """Run a program. Return: what it said if it failed, else nothing."""
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=FETCH_DEADLINE_S, **options)
    return "" if done.returncode == 0 else f"{words[0]}: {done.stdout[-800:]}{done.stderr[-1500:]}\n"


def codename():
    return re.search(r"^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(), re.M)[1]


def apt_entries(kind):
    """The host's own apt sources of this release in apt's one-line form; kind is deb or deb-src."""
    entries = []
    for path in [pathlib.Path("/etc/apt/sources.list"), *sorted(pathlib.Path("/etc/apt/sources.list.d").glob("*"))]:
        if path.suffix == ".list" and path.exists():
            found = re.findall(r"^deb\s+(\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s", path.read_text(), re.M)
            entries += [f"{kind} {options}{uri} {suite} main" for options, uri, suite in found if suite == codename()]
        elif path.suffix == ".sources":
            for stanza in re.split(r"\n\s*\n", path.read_text()):
                fields = dict(re.findall(r"^([\w-]+):[ \t]*(.*)$", stanza, re.M))
                key = fields.get("Signed-By", "").strip()
                signed = f"[signed-by={key}] " if key.startswith("/") else ""
                if codename() in fields.get("Suites", "").split():
                    entries += [f"{kind} {signed}{uri} {codename()} main" for uri in fields["URIs"].split()]
    assert entries, f"no apt source of {codename()} on this machine"
    return "\n".join(dict.fromkeys(entries)) + "\n"


class Sources:
    """Debian's source packages, each fetched once with apt-get source, with lists of our own beside the system's."""

    def __init__(self):
        self.place = FETCHED / "sources"
        for name in ("lists/partial", "cache/archives/partial", "files"):
            (self.place / name).mkdir(parents=True, exist_ok=True)
        (self.place / "sources.list").write_text(apt_entries("deb-src"))
        settings = {"Dir::Etc::SourceList": self.place / "sources.list", "Dir::Etc::SourceParts": "/dev/null",
                    "Dir::State::Lists": self.place / "lists", "Dir::Cache": self.place / "cache", "APT::Sandbox::User": "root",
                    "Acquire::Languages": "none", "Acquire::Retries": 3}
        self.apt_get = ["apt-get", "-qq", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]

    def have(self, name):
        return next(iter((self.place / "files" / name).glob("*.dsc")), None)

    def any_of(self, *names):
        """The .dsc of the first of these packages that can be had: a mirror may lack one."""
        for name in names:
            if self.have(name):
                return self.have(name)
        trouble = ""
        if not list((self.place / "lists").glob("*Sources*")):
            trouble += fetch([*self.apt_get, "update"])
        for name in names:
            scratch = self.place / "files" / f".{name}"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            failed = fetch([*self.apt_get, "source", "--download-only", "--only-source", name], cwd=scratch)
            if not failed:
                scratch.rename(self.place / "files" / name)
                return self.have(name)
            trouble += failed
        return pytest.fail(f"none of {names} can be fetched: {trouble}")


@pytest.fixture(scope="session")
def sources():
    return Sources()


EXTRA_PACKAGES = "sudo cron libutempter0 tree"  # setuid; setgid with a postinst that makes a group; setgid; plain


class Debian:
    """A root file system of Debian's (its smallest with apt) as an archive and unpacked, and packages to install in it."""

    def __init__(self):
        self.place = FETCHED / f"debian-{codename()}"
        self.archive = self.place / "root.tar"
        self.root = self.place / "root"
        self.debs = self.place / "debs"
        if not self.place.exists():
            self.make()

    def make(self):
        scratch = self.place.with_name(".debian")
        shutil.rmtree(scratch, ignore_errors=True)
        for name in ("debs", "root"):
            (scratch / name).mkdir(parents=True)
        get = f'APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" apt-get -y --download-only --no-install-recommends install {EXTRA_PACKAGES}'
        keep = f'cp "$1"/var/cache/apt/archives/*.deb {shlex.quote(str(scratch / "debs"))}'
        trouble = fetch(["mmdebstrap", "--quiet", "--variant=apt", f"--customize-hook={get}", f"--customize-hook={keep}", codename(),
                         str(scratch / "root.tar"), "-"], input=apt_entries("deb"))
        trouble = trouble or fetch(["tar", "--numeric-owner", "--exclude=./dev/*", "-xpf", str(scratch / "root.tar")], cwd=scratch / "root")
        trouble = trouble or fetch(["sh", "-c", "dpkg-scanpackages -m . > Packages"], cwd=scratch / "debs")
        if trouble:
            pytest.fail(trouble)
        scratch.rename(self.place)


@pytest.fixture(scope="session")
def debian():
    return Debian()


# --- Builds and test suites -----------------------------------------------------------------------------------------------------------

C_PROJECTS = {
    # a hand-written configure, static and shared library, its own check
    "zlib": "./configure; make -j4; make check | tee log; grep 'zlib shared test OK' log",
    # autotools: hundreds of small compiler runs, a translated program, manual pages
    "hello": "./configure; make -j4; make check; ./hello | grep 'Hello, world!'; make install DESTDIR=$PWD/out; out/usr/local/bin/hello -v",
    # an interpreter without a configure
    "lua5.4": "make -C src -j4 linux-noreadline; src/lua -e 'print((\"x\"):rep(3), _VERSION)' | grep 'xxx.*5.4'",
}


def unpack(dsc):
    return f"dpkg-source --no-check --skip-patches -x /source/{shlex.quote(dsc.name)} /root/work; cd /root/work; "


@pytest.mark.parametrize("name", ["zlib", *sample(["hello", "lua5.4"])])
def test_build_a_c_project_from_debians_source(carrel, sources, name):
    dsc = sources.any_of(name)
    work(carrel, unpack(dsc) + C_PROJECTS[name], "-v", f"{dsc.parent}:/source")


def test_run_a_python_test_suite_from_debians_source(carrel, sources):
    dsc = sources.any_of("sortedcontainers", "six", "more-itertools", "markupsafe")
    out = work(carrel, unpack(dsc) + "/usr/bin/python3 -m pytest -q -p no:cacheprovider", "-v", f"{dsc.parent}:/source")
    assert int(re.search(r"(\d+) passed", out)[1]) > 50 and " failed" not in out


def test_a_volume_is_built_in_place_and_owned_outside(carrel, tmp_path):
    shutil.copy(SCRIPTS / "deep.c", tmp_path)
    (tmp_path / "Makefile").write_text("deep: deep.c\n\tcc -O2 -Wall -o $@ $<\n")
    assert work(carrel, "make; ./deep", "-v", f"{tmp_path}:/work:rw", "-w", "/work").endswith("42\n")
    assert subprocess.run([tmp_path / "deep"], capture_output=True, check=True).stdout == b"42\n"
    assert (tmp_path / "deep").stat().st_uid == tmp_path.stat().st_uid


def test_make_with_32_jobs(carrel):
    makefile = "all: $(foreach i,$(shell seq 200),out/$i)\nout/%:\n\t@mkdir -p out; sleep 0.0$(shell expr $* % 9); echo $* > $@\n"
    out = work(carrel, f"echo {shlex.quote(makefile)} > Makefile; make -j32; cat out/* | sort -n | tail -n 1")
    assert out.splitlines()[-1] == "200"


def test_cpp_threads_exceptions_and_shared_libraries(carrel):
    out = work(carrel, """cc -shared -fPIC -o libanswer.so /tests/answer.c
                          c++ -O1 -o threads /tests/threads.cc -L. -lanswer -Wl,-rpath,'$ORIGIN' -pthread; ./threads""")
    assert out == "thrown 42\n"


# --- Tools ----------------------------------------------------------------------------------------------------------------------------


def test_git(carrel):
    out = work(carrel, "git.sh")
    assert "3\n0\n" in out and "f2 |" in out


NODE_PACKAGE = {
    "package.json": json.dumps({"name": "greeter", "version": "1.0.0", "bin": {"greet": "cli.js"}, "main": "index.js",
                                "scripts": {"postinstall": "echo built by a script > built"}}),
    "index.js": "module.exports = (name) => `hello ${name}`;\n",
    "cli.js": "#!/usr/bin/env node\nconsole.log(require('./index.js')('cli'));\n",
}


def test_node_and_npm(carrel, tmp_path):
    with tarfile.open(tmp_path / "greeter-1.0.0.tgz", "w:gz") as tar:
        for name, text in NODE_PACKAGE.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size, info.mode = len(text), 0o755 if name == "cli.js" else 0o644
            tar.addfile(info, io.BytesIO(text.encode()))
    lines = work(carrel, "node.sh", "-v", f"{tmp_path}:/packages").splitlines()
    for line in ("2,4,6", "worker", "child", "served", "hello module", "built by a script"):
        assert line in lines, lines
    assert lines.count("hello cli") == 2


# a wheel is a zip of a package and metadata
WHEEL = {
    "greeter/__init__.py": "def greet():\n    return 'hello wheel'\n",
    "greeter-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: greeter\nVersion: 1.0\n",
    "greeter-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "greeter-1.0.dist-info/RECORD": "".join(f"greeter{name},,\n" for name in (
        "/__init__.py", "-1.0.dist-info/METADATA", "-1.0.dist-info/WHEEL", "-1.0.dist-info/RECORD")),
}


def test_pip_into_a_venv_and_into_the_system(carrel, tmp_path):
    with zipfile.ZipFile(tmp_path / "greeter-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in WHEEL.items():
            wheel.writestr(name, text)
    out = work(carrel, "pip.sh", "-v", f"{tmp_path}:/packages")
    assert re.search(r"^venv: hello wheel /root/venv/", out, re.M)
    assert re.search(r"^system: hello wheel /usr/local/lib/python3", out, re.M)
    assert not list(pathlib.Path("/usr/local/lib").glob("python3*/dist-packages/greeter"))


def test_python_in_parallel(carrel):
    out = work(carrel, "/usr/bin/python3 /tests/parallel.py; ls -A /dev/shm")
    assert out.splitlines() == ["332833500", "6000", "abc", "[0, 1, 4, 9]", "1", "[49]", "queued"]


def test_gdb_and_strace_on_own_children(carrel):
    out = work(carrel, "debug.sh")
    assert re.search(r"#0 +deep \(x=41\) at /tests/deep\.c:", out) and "Value returned is $1 = 42" in out
    assert "exited normally" in out and "cmdline = './deep wait'" in out
    assert re.search(r'execve\("(/usr)?/bin/sh"', out) and 'execve("/bin/true"' in out


def test_tmux(carrel):
    out = work(carrel, "tmux.sh", "-e", "TERM=screen")
    assert re.search(r"^answer=42$", out, re.M) and "panes: 2" in out


def test_bash_job_control_on_a_terminal(carrel):
    child = pexpect.spawn(carrel.path, ["run", "-it", "-e", "PS1=ready> ", "--", "bash", "--norc", "--noprofile", "-i"], timeout=20,
                          encoding="utf-8")
    child.expect_exact("ready> ")

    def say(line, *expected):
        child.sendline(line)
        for text in expected:
            child.expect_exact(text)

    say("sleep 1000 &", "[1] ", "ready> ")
    say("jobs", "Running", "ready> ")
    say("fg", "sleep 1000")
    time.sleep(0.3)  # until it is in the foreground, which nothing shows
    child.send("\x1a")
    child.expect_exact("Stopped")
    child.expect_exact("ready> ")
    say("bg; jobs", "Running", "ready> ")
    say("kill %1; wait; echo waited=$?", "waited=", "ready> ")
    say("cat", "cat")
    child.send("typed\r")
    child.expect_exact("typed\r\ntyped")
    child.send("\x03")
    child.expect_exact("ready> ")
    say("stty size; tty", "/dev/pts/0", "ready> ")
    child.sendline("exit 3")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 3


# Java is not what tests install; where a machine has it, it works.
if os.path.realpath(shutil.which("javac") or "").startswith("/usr/"):

    def test_java(carrel):
        assert work(carrel, "javac -d . /tests/Sum.java; java -Xmx256m Sum").endswith("499500\n")


def test_sqlite_and_perl(carrel):
    assert work(carrel, "databases.sh").splitlines() == ["wal", "42", "ok", "50", "perl", "sub", "7"]


def test_names_places_and_times(carrel):
    lines = work(carrel, "names.sh", "-h", "workbox").splitlines()
    assert lines[3].startswith("https 443/tcp")
    assert lines[:3] + lines[4:] == ["root:0", "root", "root", "tcp", "localhost", "root", "UTF-8", "19:00-0500", "05:30+0530",
                                     "1970-01-01T01:00:00+01:00", "workbox", "workbox", "resolves", "locales"]


def test_the_time_zone_is_the_hosts(carrel):
    host = subprocess.run(["date", "+%z"], capture_output=True, check=True, env={"PATH": os.environ["PATH"]}).stdout
    assert carrel.run("--", "date", "+%z").stdout == host


def test_nobody_becomes_root_inside(carrel):
    lines = work(carrel, "become-root.sh", "-u", "nobody", "-w", "/").splitlines()
    assert lines[0] == "65534" and lines[-1] == "refused" and "0" not in lines


def test_what_is_seen_of_the_machine(carrel):
    assert set(work(carrel, "machine.sh").split()) <= {"carrel-init", "bash", "ps"}


def test_sockets_and_servers_on_loopback(carrel):
    assert work(carrel, "/usr/bin/python3 /tests/loopback.py").splitlines() == ["page", "pair", "udp6", "unix", "async", "no way out"]


def test_files_of_every_kind(carrel):
    assert work(carrel, "files.sh").splitlines() == ["through", "2 links", "0 KiB of 1 GiB", "locked", "0", "100", "same", "moved",
                                                     "1000:1000 4755", "y 4096"]


def test_nested_sandboxes_only_when_asked_for(carrel):
    assert carrel.run("--", "unshare", "-Ur", "true").returncode != 0
    inside = "id -u; echo $$; mount -t tmpfs none /mnt; touch /mnt/x; ls /mnt"
    out = work(carrel, f"unshare -Urmpn --fork sh -ec '{inside}'", "--nested-userns", "-u", "nobody", "-w", "/")
    assert out.split() == ["0", "1", "x"]


# --- A distribution of its own --------------------------------------------------------------------------------------------------------


def test_apt_in_a_distribution(carrel, debian):
    out = work(carrel, "apt.sh", "--image", str(debian.root), "-v", f"{debian.debs}:/repo")
    assert "4755 root root\n2755 root crontab\ncrontab\n" in out and out.endswith("complete\n")
    for trouble in ("Operation not permitted", "E: ", "dpkg: error"):
        assert trouble not in out


def test_dpkg_in_a_distribution(carrel, debian):
    out = work(carrel, "dpkg.sh", "--image", str(debian.root), "-v", f"{debian.debs}:/repo")
    assert "install ok installed" in out and re.search(r"^2755 root utmp .*/utempter$", out, re.M)
    assert out.endswith("worker\nworker:worker\n")


def test_a_directory_as_image_is_never_changed(carrel, debian):
    def look():
        return sorted((str(path), os.lstat(path).st_ctime_ns) for path in (debian.root / "etc").rglob("*"))

    before = look()
    work(carrel, "rm -rf /var/lib/dpkg/info /etc/apt; chmod 700 /usr/bin/*; chown -R 1000 /root; mv /etc/passwd /etc/old; : > /usr/bin/env",
         "--image", str(debian.root))
    assert look() == before
    assert work(carrel, "ls /etc/apt /var/lib/dpkg/info >/dev/null; env true; head -c 4 /etc/passwd", "--image", str(debian.root)) == "root"


COMPRESSORS = {"tar": ["cat"], "tar.gz": ["gzip", "-1c"], "tar.zst": ["zstd", "-1qc"], "tar.xz": ["xz", "-0c"]}
LOOK_AT_IMAGE = "cat /etc/debian_version; stat -c '%a %u %g' /usr/bin/passwd /usr/bin/chage /tmp; readlink /bin; dpkg --verify"


def images(store):
    return sorted((store / "images").iterdir()) if (store / "images").exists() else []


def scratch(store):
    return [path for path in store.rglob("*") if path.name.startswith(".tmp-")]


@pytest.mark.parametrize("suffix", COMPRESSORS if SWEEP_ALL else ["tar", *sample(["tar.gz", "tar.zst"])])
def test_an_archive_is_unpacked_once(carrel, debian, tmp_path, suffix):
    archive, store = tmp_path / f"root.{suffix}", tmp_path / "store"
    with debian.archive.open("rb") as plain, archive.open("wb") as packed:
        subprocess.run(COMPRESSORS[suffix], stdin=plain, stdout=packed, check=True)
    env = {**os.environ, "CARREL_STORE": str(store)}

    def start():
        began = time.monotonic()
        out = work(carrel, LOOK_AT_IMAGE, "--image", str(archive), env=env)
        return out, time.monotonic() - began

    first, slow = start()
    (tree,) = images(store)
    inode = os.stat(tree / "root").st_ino
    second, fast = start()
    assert first == second and first.splitlines()[1:] == ["4755 0 0", "2755 0 42", "1777 0 0", "usr/bin"]
    assert images(store) == [tree] and os.stat(tree / "root").st_ino == inode and scratch(store) == []
    assert fast < slow
    if suffix == "tar":
        assert "complete" in work(carrel, "apt.sh", "--image", str(archive), "-v", f"{debian.debs}:/repo", env=env)
        (tmp_path / "more").write_text("more")
        subprocess.run(["tar", "-rf", str(archive), "-C", str(tmp_path), "more"], check=True)
        assert work(carrel, "cat /more", "--image", str(archive), env=env) == "more"  # a changed archive is another image
    shutil.rmtree(store)
    archive.unlink()


# --- Hostile archives -----------------------------------------------------------------------------------------------------------------


def refused(carrel, one_line, archive, store):
    done = carrel.run("--image", str(archive), "--", "true", env={**os.environ, "CARREL_STORE": str(store)}, timeout=WORK_DEADLINE_S)
    assert done.returncode == FAILED and done.stdout == b""
    assert images(store) == [] and scratch(store) == []
    return one_line(done.stderr, archive.name)


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.glob("bad_*")))
def test_a_hostile_archive_is_one_error_and_leaves_nothing(carrel, one_line, tmp_path, name):
    (tmp_path / "outside").write_text("as it was\n")
    text = refused(carrel, one_line, CORPUS / name, tmp_path / "store")
    assert "argument" not in text and "?" not in text, "the unpacker itself failed"
    assert (tmp_path / "outside").read_text() == "as it was\n"


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.glob("root*")))
def test_a_good_archive_of_the_corpus_is_taken(carrel, tmp_path, name):
    done = carrel.run("--image", str(CORPUS / name), "--", "/no/such/program", env={**os.environ, "CARREL_STORE": str(tmp_path / "store")})
    assert done.returncode == 127, done.stderr


def test_an_archive_of_zeroes_without_end(carrel, one_line, tmp_path):
    """20 GiB in 20 MB: refused by its size, in little time and space."""
    header = tarfile.TarInfo("zeroes")
    header.size = 20 << 30
    block = gzip.compress(bytes(64 << 20), 9)  # members of a gzip file follow one another
    with (tmp_path / "bomb.tar.gz").open("wb") as out:
        out.write(gzip.compress(header.tobuf()))
        for _ in range(header.size // (64 << 20)):
            out.write(block)
    before, start = shutil.disk_usage(tmp_path).used, time.monotonic()
    refused(carrel, one_line, tmp_path / "bomb.tar.gz", tmp_path / "store")
    assert time.monotonic() - start < 60 and shutil.disk_usage(tmp_path).used - before < 1 << 30


def test_an_image_that_is_none(carrel, one_line, tmp_path):
    (tmp_path / "text").write_text("not an archive\n" * 1000)
    refused(carrel, one_line, tmp_path / "text", tmp_path / "store")
    (tmp_path / "empty").mkdir()
    done = carrel.run("--image", str(tmp_path / "empty"), "--", "true")
    assert done.returncode in (FAILED, 127)
    one_line(done.stderr)
