# SPDX-License-Identifier: Apache-2.0
"""What the security tests use: the real binary, a build that lets layers be taken out, and probes that attack from inside.

CARREL names the program (else build/carrel), CARREL_SWITCHES the build with -Dtest_switches=true (else it is made in
build/test-switches). The absence of a privilege is a failure here, never a skip: a suite that tests nothing must not pass. The exception is an
ordinary user on a machine without root, who is told so once.
"""
import os
import pathlib
import shutil
import signal
import stat
import subprocess
import tempfile

import pytest

from attacker import CARREL, FAILED, HERE, ROOT, RUN_DEADLINE_S, Attacker, init_of, open_directory


def pytest_sessionstart(session):
    if os.geteuid() != 0:
        pytest.exit("tests/security needs root: it plays the host as well as the attacker", returncode=2)
    if not os.access(CARREL, os.X_OK):
        pytest.exit(f"{CARREL} is not there: build it with 'make', or name it with CARREL=", returncode=2)


@pytest.fixture(scope="session")
def work():
    """A directory that every user may enter, unlike pytest's own."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="carrel-security-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def probe(work):
    """The compiled attacks, linked statically: they run in images that have nothing else."""
    directory = work / "probes"
    directory.mkdir()
    (directory / "file").write_text("read-only\n")
    sources = sorted(str(p) for p in (HERE / "probe").glob("*.c"))
    subprocess.run(["cc", "-static", "-O2", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-o", str(directory / "probe"), *sources],
                   check=True)
    return directory / "probe"


@pytest.fixture(scope="session")
def attack(work, probe):
    return Attacker(work)


@pytest.fixture(scope="session")
def switches():
    """The build that honours CARREL_TEST_WITHOUT."""
    named = os.environ.get("CARREL_SWITCHES")
    if named:
        return named
    build = ROOT / "build" / "test-switches"
    if not (build / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(build), str(ROOT), "-Dtest_switches=true"], check=True, capture_output=True)
    subprocess.run(["ninja", "-C", str(build), "carrel", "carrel-unpack"], check=True, capture_output=True)
    return str(build / "carrel")


@pytest.fixture(scope="session")
def carrel():
    """carrel run ...; bytes in, CompletedProcess out"""

    def run(*words, **options):
        options.setdefault("timeout", RUN_DEADLINE_S)
        if "input" not in options:
            options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.run([CARREL, "run", *map(str, words)], check=False, **options)

    return run


@pytest.fixture
def sleeper():
    """A sandbox that waits, started with directories leaked to it. Yields carrel's process and the pid of init."""
    leaked = [open_directory(d) for d in ("/", "/etc", "/proc")]
    for fd in leaked:
        os.set_inheritable(fd, True)
    started = []

    def start(*options, carrel=CARREL, without=""):
        process = subprocess.Popen([carrel, "run", *options, "--", "/bin/sh", "-c", "echo ready; sleep 1000"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, close_fds=False,
                                   env={**os.environ, "CARREL_TEST_WITHOUT": without})
        started.append(process)
        assert process.stdout.readline() == b"ready\n"
        return process, init_of(process)

    yield start
    for process in started:
        process.send_signal(signal.SIGTERM)
        process.wait()
    for fd in leaked:
        os.close(fd)


@pytest.fixture
def image(work, probe):
    """A root file system with one program, /probe."""
    directory = pathlib.Path(work / "image")
    shutil.rmtree(directory, ignore_errors=True)
    for name in ("etc", "var/tmp", "root", "home", "victim", "usr"):
        (directory / name).mkdir(parents=True)
    (directory / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    shutil.copy(probe, directory / "probe")
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def trojan(image):
    """The same with device nodes, a setuid program and one with file capabilities. Yields it and the facts for the attacks."""
    for name, kind, major, minor in [("vda", stat.S_IFBLK, 254, 0), ("sda", stat.S_IFBLK, 8, 0), ("mem", stat.S_IFCHR, 1, 1),
                                     ("kmsg", stat.S_IFCHR, 1, 11), ("null", stat.S_IFCHR, 1, 3), ("loop0", stat.S_IFBLK, 7, 0)]:
        for directory in ("nodes", "dev"):
            (image / directory).mkdir(exist_ok=True)
            os.mknod(image / directory / name, kind | 0o666, os.makedev(major, minor))
            os.chmod(image / directory / name, 0o666)
    shutil.copy(image / "probe", image / "setuid")
    os.chmod(image / "setuid", 0o6755)
    shutil.copy(image / "probe", image / "capable")
    subprocess.run(["setcap", "cap_chown+ep", str(image / "capable")], check=True)
    return image, {"PROBE_NODES": "/nodes", "PROBE_SETUID": "/setuid", "PROBE_CAPABLE": "/capable"}


@pytest.fixture
def refused():
    """Checks that carrel refused with one line, and returns it."""

    def check(done):
        text = done.stderr.decode()
        assert done.returncode == FAILED, (done.returncode, done.stdout, text)
        assert text.startswith("carrel: ") and text.count("\n") == 1, text
        return text

    return check
