# SPDX-License-Identifier: Apache-2.0
"""libcarrel as another program meets it: installed, found through pkg-config, linked shared and static.

The cases are in lib_sandbox.c and lib_process.c, one process each (lib_client.c). What needs two processes, a kill -9, or a look from
outside is here.
"""
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CARREL_BUILD", pathlib.Path(os.environ.get("CARREL", ROOT / "build" / "carrel")).parent))
CORPUS = ROOT / "tests" / "fuzz" / "corpus" / "tar"
sys.path.insert(0, str(ROOT / "tests"))
import leaks  # noqa: E402

SWEEP_ALL = os.environ.get("CARREL_SWEEP") == "all"
DEADLINE_S = 120
KINDS = ("shared", "static")
# built by `make test`, for the same cases under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer
SANITIZED = pathlib.Path(os.environ.get("CARREL_ASAN_BUILD", ROOT / "build-asan")) / "src" / "warden" / "libcarrel.a"

CASES = """
settings_are_checked refused_starts_leave_nothing a_sandbox_from_start_to_end every_outcome programs_that_cannot_run
output_from_any_offset output_comes_as_it_is_written what_is_left_running stdin_is_a_pipe streams_are_inherited a_terminal_resizes
held_until_go signals_and_kill the_same_key_is_the_same_exec found_by_number an_event_loop looking_without_waiting
handles_in_any_order the_process_is_as_before beside_threads_and_a_wait_loop a_thread_starts_and_ends where_sigchld_is_ignored
a_large_caller nothing_is_lost_over_200 execs_are_given_back the_doctor_reports a_forked_child_takes_nothing_along
""".split()
# sanitizers keep freed memory for a while, and cost what is measured
MEASURED = ("a_large_caller", "nothing_is_lost_over_200")
# driven by the tests with two processes, or too long for every run
OTHER_CASES = """
owner dying_owner nothing_is_lost_over_2000 connect_and_finish connect_and_leave connect_to_the_dead image
""".split()


def sh(words, **options):
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=DEADLINE_S, **options)
    assert done.returncode == 0, f"{shlex.join(map(str, words))}: {done.stdout}{done.stderr}"
    return done.stdout


class Installed:
    """The library below a DESTDIR, as a distribution's build would have it."""

    def __init__(self, place):
        self.place = place
        sh(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet", "--destdir", str(place / "dest")])
        (self.pc,) = (place / "dest").rglob("carrel.pc")
        self.lib = self.pc.parent.parent
        (self.libexec,) = {p.parent for p in (place / "dest").rglob("carrel-unpack")}
        self.env = {**os.environ, "PKG_CONFIG_PATH": str(self.pc.parent), "PKG_CONFIG_SYSROOT_DIR": str(place / "dest")}

    def pkg_config(self, *words):
        return sh(["pkg-config", *words, "carrel"], env=self.env).split()

    def build(self, kind, *sources):
        """Build with what a reader would type. Return: the program and the environment to run it in."""
        program = self.place / f"{sources[0].stem}-{kind}"
        if kind == "shared":
            words = self.pkg_config("--cflags", "--libs")
        elif kind == "sanitized":
            words = ["-fsanitize=address,undefined", f"-I{ROOT}/include", str(SANITIZED)]
        else:
            words = ["-static", *self.pkg_config("--static", "--cflags", "--libs")]
        sh(["cc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-pthread", "-o", str(program), *map(str, sources), *words])
        env = {**os.environ, "CARREL_LIBEXEC": str(self.libexec)}
        if kind == "shared":
            env["LD_LIBRARY_PATH"] = str(self.lib)
        return str(program), env


@pytest.fixture(scope="session")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


class Client:
    def __init__(self, installed, kind):
        here = ROOT / "tests" / "integration"
        self.program, self.env = installed.build(kind, here / "lib_client.c", here / "lib_sandbox.c", here / "lib_process.c")

    def __call__(self, *words, **options):
        env = {**self.env, **options.pop("env", {})}
        done = subprocess.run([self.program, *words], capture_output=True, text=True, check=False, timeout=DEADLINE_S, env=env,
                              stdin=options.pop("stdin", subprocess.DEVNULL), **options)
        assert done.returncode == 0, f"{words}: status {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    def popen(self, *words):
        return subprocess.Popen([self.program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=self.env)


@pytest.fixture(scope="session", params=KINDS)
def client(installed, request):
    return Client(installed, request.param)


@pytest.fixture(scope="session")
def static_client(installed):
    return Client(installed, "static")


@pytest.fixture(scope="session")
def sanitized_client(installed):
    return Client(installed, "sanitized")


def wait_gone(sandbox_id):
    """Until nothing on the host has the sandbox's name; others may be running beside us."""
    deadline = time.monotonic() + 20
    while True:
        left = [item for kind in ("cgroups", "mounts", "run") for item in leaks.snapshot()[kind] if sandbox_id in item]
        if not left:
            return
        assert time.monotonic() < deadline, left
        time.sleep(0.05)


# --- Installation -------------------------------------------------------------------------------------------------------------------


def test_pkg_config_says_what_is_needed(installed):
    assert installed.pkg_config("--modversion") == [re.search(r'CARREL_VERSION "(.*)"', (ROOT / "include/carrel.h").read_text())[1]]
    assert any(word.startswith("-I") for word in installed.pkg_config("--cflags"))
    assert "-lcarrel" in installed.pkg_config("--libs")


def test_the_header_is_plain_c_and_cpp(installed):
    header = installed.place / "dest" / "usr/local/include/carrel.h"
    if not header.exists():
        (header,) = (installed.place / "dest").rglob("carrel.h")
    for words in (["cc", "-std=c99", "-pedantic"], ["clang", "-std=c99", "-pedantic"], ["clang", "-x", "c++", "-std=c++17"]):
        sh([*words, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-include", str(header), "-x",
            "c++" if "c++" in words else "c", "/dev/null"])


def test_the_library_exports_what_the_header_declares(installed):
    declared = set(re.findall(r"\b(carrel_\w+)\(", re.sub(r"/\*.*?\*/", "", (ROOT / "include/carrel.h").read_text(), flags=re.S)))
    exported = {line.split()[-1] for line in sh(["nm", "-D", "--defined-only", str(installed.lib / "libcarrel.so")]).splitlines()}
    assert exported == declared


def test_a_program_may_use_names_that_ours_also_are(installed):
    """Names inside the static library are its own: a program with functions of the same name keeps them."""
    symbols = sh(["nm", "-g", "--defined-only", str(installed.lib / "libcarrel.a")])
    ours = set(re.findall(r" [TDBR] (\w+)$", symbols, re.M))
    assert sorted(name for name in ours if not name.startswith("carrel_")) == []
    source = installed.place / "same_names.c"
    source.write_text("""
        #include <carrel.h>
        int buf_add(void); int err_set(void); int clock_ns(void);
        int buf_add(void) { return 1; } int err_set(void) { return 2; } int clock_ns(void) { return 3; }
        int main(void)
        {
            struct carrel_spec *spec = carrel_spec_new();
            struct carrel_sandbox *sandbox;

            if (carrel_start(spec, &sandbox, NULL) < 0)
                return 1;
            carrel_sandbox_free(sandbox);
            carrel_spec_free(spec);
            return buf_add() + err_set() + clock_ns() == 6 ? 0 : 1;
        }""")
    program, env = installed.build("static", source)
    sh([program], env=env)


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_works(installed, kind):
    program, env = installed.build(kind, ROOT / "examples" / "embed.c")
    out = sh([program], env=env)
    assert re.match(r"sandbox [0-9a-z]{16}\n", out)
    assert "step 1\nstep 2\nstep 3\n  -> exited, exit code 0" in out
    assert "the log has 3 lines\n" in out
    assert re.search(r"^  on +seccomp +Seccomp: 2", out, re.M)
    assert re.search(r"\d+ KiB of memory now", out)
    wait_gone(out.split()[1])


def test_the_example_is_short_enough_to_copy():
    assert len((ROOT / "examples" / "embed.c").read_text().splitlines()) <= 120


def test_the_example_says_what_failed(installed):
    program, env = installed.build("static", ROOT / "examples" / "embed.c")
    done = subprocess.run([program], capture_output=True, text=True, check=False, env={**env, "CARREL_STORE": "not/absolute"})
    assert done.returncode == 1 and done.stdout == ""
    assert re.fullmatch(r"embed: .*CARREL_STORE.*; .*\n", done.stderr)


def test_an_installed_library_unpacks_archives(client, tmp_path):
    # the unpacker was installed below DESTDIR, which only $CARREL_LIBEXEC knows
    client("image", str(CORPUS / "root.tar"), env={"CARREL_STORE": str(tmp_path / "store")})


# --- Cases --------------------------------------------------------------------------------------------------------------------------


def test_every_case_is_run(static_client):
    assert sorted(static_client("list").split()) == sorted(CASES + OTHER_CASES)


@pytest.mark.parametrize("case", CASES)
def test_library(client, case):
    print(client(case))


if SANITIZED.exists():

    @pytest.mark.parametrize("case", [case for case in CASES if case not in MEASURED])
    def test_library_under_sanitizers(sanitized_client, case):
        sanitized_client(case)


@pytest.mark.parametrize("case", ["a_sandbox_from_start_to_end", "every_outcome"])
def test_library_with_a_store_of_its_own(static_client, case, tmp_path):
    static_client(case, env={"CARREL_STORE": str(tmp_path / "store"), "CARREL_RUN_DIR": str(tmp_path / "run")})


def test_streams_are_the_callers_own(static_client, tmp_path):
    out, err, given = tmp_path / "out", tmp_path / "err", tmp_path / "in"
    given.write_text("given\n")
    with given.open() as i, out.open("w") as o, err.open("w") as e:
        done = subprocess.run([static_client.program, "streams_are_inherited"], stdin=i, stdout=o, stderr=e, check=False, timeout=60)
    assert (done.returncode, out.read_text(), err.read_text()) == (0, "to-out\ngiven\n", "to-err\n")


def test_nothing_is_lost_over_many_starts(static_client):
    if SWEEP_ALL:
        print(static_client("nothing_is_lost_over_2000"))


# --- Two processes ------------------------------------------------------------------------------------------------------------------


def start_owner(client, case):
    child = client.popen(case)
    line = child.stdout.readline().split()
    assert line, f"status {child.wait(10)}"
    return child, line


def kill(child):
    child.kill()
    child.communicate(timeout=30)


def test_a_sandbox_outlives_its_owner_and_is_found_again(client):
    child, (sandbox_id, done, running) = start_owner(client, "owner")
    try:
        client("connect_and_leave", sandbox_id)  # beside its owner
    finally:
        kill(child)
    client("connect_and_leave", sandbox_id)
    client("connect_and_finish", sandbox_id, done, running)
    wait_gone(sandbox_id)


def test_a_sandbox_whose_owner_was_killed_is_gone(client):
    child, (sandbox_id,) = start_owner(client, "dying_owner")
    assert any(sandbox_id in item for item in leaks.cgroups()) or os.geteuid() != 0
    kill(child)
    wait_gone(sandbox_id)


def init_of(sandbox_id):
    return int((pathlib.Path(leaks.default_run_dir()) / sandbox_id / "init").read_text().split()[0])


def test_a_dead_init_is_said_and_swept(client, carrel):
    child, (sandbox_id, _, _) = start_owner(client, "owner")
    kill(child)
    os.kill(init_of(sandbox_id), signal.SIGKILL)
    deadline = time.monotonic() + 10
    while os.path.exists(f"/proc/{init_of(sandbox_id)}") and time.monotonic() < deadline:
        time.sleep(0.02)
    client("connect_to_the_dead", sandbox_id)
    assert sandbox_id in carrel("doctor").stdout.decode()
    assert carrel("doctor", "--sweep").returncode in (0, 1)  # 1 if this host lacks something
    wait_gone(sandbox_id)
