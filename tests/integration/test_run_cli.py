# SPDX-License-Identifier: Apache-2.0
"""`carrel run` and its neighbours as people and programs meet them: words in; exit status, lines and JSON out."""
import base64
import json
import os
import pathlib
import re
import resource
import select
import signal
import subprocess
import time

import pexpect
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAN = ROOT / "docs" / "man" / "carrel.1"

FAILED, NOT_EXECUTABLE, NOT_FOUND, TIMED_OUT = 125, 126, 127, 124


def wait_until(condition, what, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def processes_with(marker):
    """Pids of processes whose command line has the marker; carrel's own included."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            words = pathlib.Path("/proc", entry, "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(marker.encode() in word for word in words):
            found.append(int(entry))
    return found


# --- Help ---------------------------------------------------------------------------------------------------------------------------


HELP_WORDS = [["--help"], ["help"], [], ["run", "--help"], ["help", "run"], ["doctor", "--help"], ["help", "doctor"],
              ["version", "--help"], ["help", "help"]]


@pytest.mark.parametrize("words", HELP_WORDS, ids=" ".join)
def test_help_fits_a_terminal(carrel, words):
    done = carrel(*words)
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.startswith(b"usage: carrel ")
    for line in done.stdout.decode().splitlines():
        assert len(line) <= 80, line
        assert line == line.rstrip(), repr(line)


def documented_options(carrel):
    return re.findall(r"^  (?:-\w, |    )--([a-z-]+)", carrel("run", "--help").stdout.decode(), re.M)


def test_man_page_has_every_option(carrel):
    options = documented_options(carrel)
    page = MAN.read_text().replace("\\-", "-")
    assert len(options) > 30
    assert [o for o in options if not re.search(rf"^\.It .*Fl -{o}\b", page, re.M)] == []


def test_man_page_is_well_formed():
    # groff is on every Debian with man-db; without it the page could not be read either
    done = subprocess.run(["groff", "-mandoc", "-Tutf8", "-ww", "-z", str(MAN)], capture_output=True, check=False)
    assert done.returncode == 0 and done.stderr == b"", done.stderr.decode()


def test_version(carrel):
    assert re.fullmatch(rb"carrel \d+\.\d+\.\d+\n", carrel("version").stdout)
    assert carrel("--version").stdout == carrel("version").stdout


# --- Mistakes -----------------------------------------------------------------------------------------------------------------------

MISTAKES = [
    (["rum"], ["'rum'", "carrel run"]),
    (["run"], ["command", "carrel run --"]),
    (["run", "--"], ["command"]),
    (["run", "--", ""], ["command"]),
    (["run", "--memroy", "1g", "true"], ["'--memroy'", "--memory"]),
    (["run", "-Z", "true"], ["'-Z'", "--help"]),
    (["run", "-d", "true"], ["'-d'", "foreground"]),
    (["run", "--privileged", "true"], ["'--privileged'"]),
    (["run", "--memory"], ["--memory", "SIZE"]),
    (["run", "--read-only=perhaps", "true"], ["perhaps", "false"]),
    (["run", "--memory", "12q", "true"], ["12q"]),
    (["run", "--memory", "-1", "true"], ["-1"]),
    (["run", "--cpus", "0", "true"], ["'0'"]),
    (["run", "--pids-limit", "many", "true"], ["many"]),
    (["run", "--timeout", "1y", "true"], ["1y"]),
    (["run", "--file-size", "big", "true"], ["--file-size", "big"]),
    (["run", "--ulimit", "nofile", "true"], ["nofile"]),
    (["run", "--network", "bridge", "true"], ["bridge"]),
    (["run", "--device", "sda", "true"], ["sda"]),
    (["run", "--hostname", "a\nb", "true"], ["hostname"]),
    (["run", "--workdir", "relative", "true"], ["relative"]),
    (["run", "--volume", "/etc", "true"], ["/etc"]),
    (["run", "--env", "=x", "true"], ["'=x'"]),
    (["run", "--env", "A B=x", "true"], ["blank"]),
    (["run", "--env-file", "/nonexistent", "true"], ["/nonexistent"]),
    (["run", "--env-file", "/etc", "true"], ["directory"]),
    (["run", "--image", "/nonexistent", "true"], ["/nonexistent"]),
    (["run", "--rootfs", "nonexistent", "true"], ["nonexistent"]),
    (["run", "--tty", "--json", "true"], ["--tty", "--json"]),
    (["run", "--tty", "true"], ["terminal"]),
    (["doctor", "--swep"], ["--sweep"]),
    (["doctor", "me"], ["'me'"]),
    (["help", "nothing"], ["'nothing'"]),
]


@pytest.mark.parametrize("words,parts", MISTAKES, ids=lambda v: " ".join(v) if v and v[0].isalpha() else None)
def test_a_mistake_is_one_line_with_a_remedy(carrel, one_line, words, parts):
    done = carrel(*words)
    assert done.returncode == FAILED
    assert "--json" in words or done.stdout == b""
    text = one_line(done.stderr, *parts)
    assert ": " in text[len("carrel: "):] and "; " in text, text


def test_user_bytes_cannot_forge_a_line(carrel, one_line):
    done = carrel.run("--x\n\x1b[31mcarrel: all is well", "true")
    one_line(done.stderr, "\\n\\x1b[31m")


def test_a_mistake_is_json_where_json_was_asked_for(carrel):
    done = carrel.run("--memroy", "1g", "--json", "true")
    assert done.returncode == FAILED
    failure = json.loads(done.stdout)
    assert failure["outcome"] == "failed"
    assert failure["error"]["code"] == "invalid"
    assert "--memroy" in failure["error"]["message"] and "--memory" in failure["error"]["remedy"]


# --- Exit status ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [0, 1, 7, 124, 255])
def test_exit_status_is_the_commands(carrel, code):
    done = carrel.run("--", "sh", "-c", f"exit {code}")
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.parametrize("name", ["KILL", "TERM", "SEGV", "ABRT", "USR1"])
def test_exit_status_of_a_signal(carrel, name):
    done = carrel.run("--", "sh", "-c", f"kill -{name} $$")
    assert done.returncode == 128 + signal.Signals["SIG" + name]


def test_time_out(carrel, one_line):
    start = time.monotonic()
    done = carrel.run("--timeout", "300ms", "--", "sleep", "60")
    assert done.returncode == TIMED_OUT
    assert time.monotonic() - start < 10
    one_line(done.stderr, "'sleep'", "timed out", "--timeout")
    assert carrel.run("-q", "--timeout", "300ms", "--", "sleep", "60").stderr == b""


@pytest.mark.parametrize("words,limit,option", [
    (["-m", "32m", "--", "python3", "-c", "x = bytearray(200 << 20)"], "memory", "--memory"),
    (["--cpu-seconds", "1", "--", "sh", "-c", "while :; do :; done"], "cpu", "--cpu-seconds"),
    (["--file-size", "1k", "--", "sh", "-c", "exec yes >/tmp/file"], "fsize", "--file-size"),
    (["--pids-limit", "6", "--", "sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1 & done; wait"], "pids", "--pids-limit"),
], ids=lambda v: v if isinstance(v, str) and v.isalpha() else "")
def test_the_limit_that_bit_is_named(carrel, words, limit, option):
    done = carrel.run(*words)
    assert done.returncode != 0
    line = done.stderr.decode().splitlines()[-1]
    assert line.startswith("carrel: run '") and line.endswith(f"; raise {option}"), line
    assert carrel.json(*words)["limit"] == limit


def test_a_missing_program(carrel, one_line):
    done = carrel.run("--", "no-such-program")
    assert done.returncode == NOT_FOUND
    one_line(done.stderr, "no-such-program", "; ")


@pytest.mark.parametrize("path", ["/etc/passwd", "/usr"])
def test_what_cannot_be_executed(carrel, one_line, path):
    done = carrel.run("--", path)
    assert done.returncode == NOT_EXECUTABLE
    one_line(done.stderr, path)


def test_a_missing_directory_is_not_a_missing_program(carrel, one_line):
    done = carrel.run("-w", "/no/such/place", "--", "true")
    assert done.returncode == FAILED
    one_line(done.stderr, "/no/such/place")


def test_options_behind_the_command_are_its_own(carrel):
    done = carrel.run("echo", "--json", "-it", "--", "x")
    assert done.stdout == b"--json -it -- x\n"


# --- Streams -------------------------------------------------------------------------------------------------------------------------


def test_stdin_only_when_asked_for(carrel):
    assert carrel.run("cat", input=b"secret").stdout == b""
    assert carrel.run("-i", "cat", input=b"given").stdout == b"given"


def test_output_goes_where_ours_goes(carrel, tmp_path):
    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("wb") as o, err.open("wb") as e:
        subprocess.run([carrel.path, "run", "--", "sh", "-c", "echo to-out; echo to-err >&2"], stdout=o, stderr=e,
                       stdin=subprocess.DEVNULL, check=True)
    assert (out.read_bytes(), err.read_bytes()) == (b"to-out\n", b"to-err\n")


@pytest.mark.parametrize("stream", ["stdin", "stdout", "stderr"])
def test_a_directory_never_goes_inside(carrel, tmp_path, stream):
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: fd}
        done = subprocess.run([carrel.path, "run", "-i", "--", "true"], check=False, **streams)
    finally:
        os.close(fd)
    assert done.returncode == FAILED
    if stream != "stderr":
        assert b"directory" in done.stderr


def test_closed_streams_become_dev_null(carrel):
    script = '"$1" run -- sh -c "ls -l /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 >/dev/null && exit 9" <&- >&- 2>&-'
    done = subprocess.run(["sh", "-c", script, "sh", carrel.path], check=False)
    assert done.returncode == 9


def test_a_limit_on_output_shows_it_as_it_comes(carrel):
    child = carrel.popen("run", "--output-limit", "1m", "--", "sh", "-c", "echo one; echo err >&2; sleep 60")
    try:
        assert child.stdout.readline() == b"one\n"
        assert child.stderr.readline() == b"err\n"
    finally:
        child.terminate()
        child.communicate(timeout=30)
    assert child.returncode == -signal.SIGTERM


def test_a_limit_on_output_keeps_every_byte_below_it(carrel):
    done = carrel.run("--output-limit", "8m", "--", "sh", "-c", "seq 1 200000; echo end >&2")
    assert done.returncode == 0
    assert done.stdout == b"".join(b"%d\n" % i for i in range(1, 200001))
    assert done.stderr == b"end\n"


def test_too_much_output_is_ended(carrel, one_line):
    done = carrel.run("--output-limit", "64k", "--", "sh", "-c", "exec yes")
    assert done.returncode == 137
    assert 0 < len(done.stdout) <= 65536
    one_line(done.stderr, "output", "--output-limit")


def test_a_reader_that_leaves_ends_the_run(carrel):
    script = 'set -o pipefail; "$1" run --output-limit 100m -- yes | head -n 1'
    done = subprocess.run(["bash", "-c", script, "bash", carrel.path], capture_output=True, check=False, timeout=30)
    assert done.stdout == b"y\n"
    assert done.returncode == 128 + signal.SIGPIPE


# --- Environment --------------------------------------------------------------------------------------------------------------------


def environment(carrel, *words, **options):
    done = carrel.run(*words, "--", "env", "-0", **options)
    assert done.returncode == 0, done.stderr
    return dict(item.split("=", 1) for item in done.stdout.decode().split("\0") if item)


def test_nothing_of_the_callers_environment_goes_inside(carrel):
    inside = environment(carrel, env={**os.environ, "SECRET_TOKEN": "x"})
    assert "SECRET_TOKEN" not in inside
    assert {"PATH", "HOME"} <= inside.keys()


def test_variables_by_value_and_by_name(carrel):
    inside = environment(carrel, "-e", "A=1", "--env=B=x=y", "-eC=", "-e", "GIVEN", "-e", "NOT_SET_HERE", "-e", "A=2",
                         env={**os.environ, "GIVEN": "away"})
    assert (inside["A"], inside["B"], inside["C"], inside["GIVEN"]) == ("2", "x=y", "", "away")
    assert "NOT_SET_HERE" not in inside


def test_env_file_in_dockers_format(carrel, tmp_path):
    path = tmp_path / "vars"
    path.write_bytes(b"\xef\xbb\xbfA=1\r\n# B=2\n\n  C=with blanks  \nD='quoted'\nGIVEN\nE=file\n")
    inside = environment(carrel, "-e", "E=option", "--env-file", str(path), env={**os.environ, "GIVEN": "away"})
    assert {k: inside.get(k) for k in "ABCDE"} == {
        "A": "1", "B": None, "C": "with blanks  ", "D": "'quoted'", "E": "option"}
    assert inside["GIVEN"] == "away"


def test_env_file_names_the_bad_line(carrel, one_line, tmp_path):
    path = tmp_path / "vars"
    path.write_text("A=1\nB C=2\n")
    one_line(carrel.run("--env-file", str(path), "true").stderr, "line 2", "blank")


def test_a_hundred_thousand_variables_are_taken_or_refused(carrel, one_line, tmp_path):
    path = tmp_path / "vars"
    path.write_text("".join(f"V{i}={i}\n" for i in range(100_000)))
    done = carrel.run("--env-file", str(path), "--", "sh", "-c", "exit 0")
    if done.returncode != 0:
        assert done.returncode == FAILED
        one_line(done.stderr)


def test_too_many_arguments_are_one_line(carrel, one_line):
    # 45 words of 128 KiB: close to the 6 MiB that execve() lets through to carrel itself when the stack is unlimited
    words = ["x" * 131_071] * 45
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    done = carrel.run("--", "true", *words, env={"PATH": os.environ["PATH"]},
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, unlimited))
    if done.returncode != 0:
        assert done.returncode == FAILED
        one_line(done.stderr)


# --- JSON ---------------------------------------------------------------------------------------------------------------------------


def test_json_of_an_ordinary_end(carrel):
    result = carrel.json("--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert result["status"] == 3
    assert (result["outcome"], result["exit_code"], result["signal"], result["signal_number"]) == ("exited", 3, None, None)
    assert (result["stdout"], result["stderr"]) == ({"text": "out\n"}, {"text": "err\n"})
    assert (result["stdout_bytes"], result["stderr_bytes"]) == (4, 4)
    assert re.fullmatch("[0-9a-z]{16}", result["id"])
    assert 0 < result["wall_ms"] < 60_000
    assert result["cpu_ms"].keys() == {"user", "system"}
    assert result["peak_memory_bytes"] > 0
    assert result["limit"] is None


def test_json_of_a_signal(carrel):
    result = carrel.json("--", "sh", "-c", "kill -SEGV $$")
    assert (result["outcome"], result["exit_code"], result["signal"], result["signal_number"]) == ("signalled", None, "SIGSEGV", 11)
    assert result["status"] == 139


def test_json_of_a_time_out(carrel):
    result = carrel.json("--timeout", "0.3", "--", "sh", "-c", "echo before; sleep 60")
    assert (result["outcome"], result["limit"], result["status"]) == ("timed_out", "timeout", TIMED_OUT)
    assert result["stdout"] == {"text": "before\n"}


def test_json_of_too_much_output(carrel):
    result = carrel.json("--output-limit", "64k", "--", "yes")
    assert (result["outcome"], result["limit"], result["status"]) == ("output_limit", "output", 137)
    assert result["stdout_bytes"] == len(result["stdout"]["text"]) <= 65536


def test_json_of_a_missing_program(carrel, one_line):
    done = carrel.run("--json", "--", "no-such-program")
    assert done.returncode == NOT_FOUND
    failure = json.loads(done.stdout)
    assert failure["outcome"] == "failed"
    assert failure["error"]["code"] == "not_found"
    assert "no-such-program" in failure["error"]["message"]
    one_line(done.stderr, failure["error"]["message"])


@pytest.mark.parametrize("octal,data", [
    (r"\377\376\000", b"\xff\xfe\x00"),
    (r"caf\303", b"caf\xc3"),
    (r"\355\240\200", b"\xed\xa0\x80"),
])
def test_json_output_that_is_not_utf8(carrel, octal, data):
    result = carrel.json("--", "printf", octal)
    assert base64.b64decode(result["stdout"]["base64"], validate=True) == data


def test_json_output_that_is_utf8(carrel):
    text = "\0\x01\"\\/\n\u00e4\u20ac\U0001f600\x7f"
    result = carrel.json("-i", "--", "cat", input=text.encode())
    assert result["stdout"] == {"text": text}


@pytest.mark.parametrize("offset", [0, 1, 2, 3])
def test_json_characters_across_the_parts_of_a_long_output(carrel, offset):
    data = b"x" * offset + "\U0001f600".encode() * 50_000
    result = carrel.json("-i", "--", "cat", input=data)
    assert result["stdout"]["text"].encode() == data


def test_json_base64_of_a_long_output(carrel):
    data = os.urandom(1_000_003)
    result = carrel.json("-i", "--", "cat", input=data)
    assert base64.b64decode(result["stdout"]["base64"], validate=True) == data


# --- Plan, receipt, doctor -----------------------------------------------------------------------------------------------------------


def test_dry_run_prints_the_plan_and_starts_nothing(carrel, tmp_path):
    done = carrel.run("--dry-run", "-v", f"{tmp_path}:/data:rw", "--", "touch", "/data/file")
    assert done.returncode == 0 and done.stderr == b""
    for word in ("namespace", "mount", "memory", "seccomp", "/data"):
        assert word in done.stdout.decode().lower(), word
    assert not list(tmp_path.iterdir())
    plan = json.loads(carrel.run("--dry-run", "--json", "--", "true").stdout)["plan"]
    assert len(plan) > 5 and all(isinstance(line, str) for line in plan)


def test_receipt(carrel):
    done = carrel.run("--receipt", "--", "echo", "hello")
    assert (done.returncode, done.stdout) == (0, b"hello\n")
    lines = done.stderr.decode().splitlines()
    assert len(lines) > 5
    assert all(re.match(r"(on|partial|missing) +\S", line) for line in lines), lines
    result = carrel.json("--receipt", "--", "true")
    assert [layer["layer"] for layer in result["receipt"]]
    assert all(layer["state"] in ("on", "partial", "missing") for layer in result["receipt"])
    assert all(layer["why"] for layer in result["receipt"] if layer["state"] != "on")


def test_doctor_agrees_with_itself(carrel):
    table = carrel("doctor")
    report = json.loads(carrel("doctor", "--json").stdout)
    assert table.returncode == (1 if report["missing"] or report["orphans"] else 0)
    for finding in report["findings"]:
        assert finding["state"] in ("ok", "note", "missing", "orphan")
        assert finding["what"] in table.stdout.decode()
        assert finding["state"] == "ok" or finding["remedy"], finding


# --- Signals ------------------------------------------------------------------------------------------------------------------------

MARK = "carrel-test-{}-{}"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"])
def test_a_signal_kills_the_whole_tree_at_once(carrel, name):
    mark = MARK.format(os.getpid(), name.lower())
    # a process that ignores everything, and one that has left the session
    script = f": {mark}; trap '' INT TERM HUP QUIT; setsid sh -c ': {mark}; while :; do sleep 1; done' & echo up; " \
             "while :; do sleep 1; done"
    child = carrel.popen("run", "--", "sh", "-c", script, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, []))
    assert child.stdout.readline() == b"up\n"
    assert processes_with(mark)
    start = time.monotonic()
    child.send_signal(signal.Signals[name])
    child.communicate(timeout=30)
    assert child.returncode == -signal.Signals[name]
    assert time.monotonic() - start < 5
    wait_until(lambda: not processes_with(mark), "the tree is gone")


def test_a_signal_that_is_ignored_stays_ignored(carrel):
    script = 'trap "" HUP; exec "$1" run -- sh -c "echo up; sleep 0.5; echo done"'
    child = subprocess.Popen(["sh", "-c", script, "sh", carrel.path], stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"up\n"
    child.send_signal(signal.SIGHUP)
    assert child.communicate(timeout=30)[0] == b"done\n"
    assert child.returncode == 0


def test_what_the_command_leaves_running_ends_with_it(carrel):
    mark = MARK.format(os.getpid(), "left")
    done = carrel.run("--", "sh", "-c", f"setsid sh -c ': {mark}; while :; do sleep 1; done' >/dev/null 2>&1 & exit 0")
    assert done.returncode == 0
    wait_until(lambda: not processes_with(mark), "the process left behind is gone")


def test_a_killed_carrel_leaves_nothing(carrel):
    mark = MARK.format(os.getpid(), "killed")
    child = carrel.popen("run", "--", "sh", "-c", f": {mark}; echo up; while :; do sleep 1; done")
    assert child.stdout.readline() == b"up\n"
    child.kill()
    child.communicate(timeout=30)
    wait_until(lambda: not processes_with(mark), "the tree is gone")


def test_signals_inside_are_as_a_plain_program_has_them(carrel):
    done = carrel.run("--", "grep", "-E", "^Sig(Blk|Ign):", "/proc/self/status")
    assert done.stdout.split() == [b"SigBlk:", b"0" * 16, b"SigIgn:", b"0" * 16]


# --- Terminal -----------------------------------------------------------------------------------------------------------------------


def spawn(carrel, *words, **options):
    return pexpect.spawn(carrel.path, ["run", *words], timeout=20, **options)


def finish(child):
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus if child.signalstatus is None else -child.signalstatus


@pytest.fixture
def shell():
    """An interactive shell on a terminal, as a user has it."""
    child = pexpect.spawn("bash", ["--norc", "--noprofile"], timeout=20, env={**os.environ, "PS1": "PROMPT>"})
    child.expect_exact("PROMPT>")
    yield child
    child.close(force=True)


def terminal_settings(shell):
    shell.sendline("echo settings=$(stty -g)=")
    shell.expect("settings=([0-9a-f:]+)=")
    settings = shell.match.group(1)
    shell.expect_exact("PROMPT>")
    return settings


def test_terminal_has_the_size_keys_and_status(carrel):
    child = spawn(carrel, "-it", "--", "sh", "-c", "stty size; test -t 0 && test -t 1 && echo tty; read x; echo got=$x; exit 5",
                  dimensions=(33, 77))
    child.expect_exact("33 77")
    child.expect_exact("tty")
    child.send("hello\r")
    child.expect_exact("got=hello")
    assert finish(child) == 5


def test_terminal_resize(carrel):
    child = spawn(carrel, "-it", "--", "sh", "-c", "trap 'stty size' WINCH; echo up; while :; do sleep 0.1; done")
    child.expect_exact("up")
    child.setwinsize(40, 100)
    child.expect_exact("40 100")
    child.send("\x03")
    assert finish(child) == 130


def test_terminal_control_c_goes_inside(carrel):
    child = spawn(carrel, "-it", "--", "sh", "-c", "trap 'echo caught; exit 4' INT; echo up; while :; do sleep 0.1; done")
    child.expect_exact("up")
    child.send("\x03")
    child.expect_exact("caught")
    assert finish(child) == 4


def test_terminal_without_i_is_output_only(carrel):
    child = spawn(carrel, "-t", "--", "sh", "-c", "test -t 1 && echo up; while :; do sleep 0.1; done")
    child.expect_exact("up")
    child.send("\x03")
    assert finish(child) == -signal.SIGINT


def test_terminal_keeps_the_last_output(carrel):
    child = spawn(carrel, "-it", "--", "seq", "1", "20000")
    assert child.read().split()[-1] == b"20000"


@pytest.mark.parametrize("how", ["exit", "SIGTERM", "SIGINT", "not-found", "timeout"])
def test_terminal_is_restored(carrel, shell, how):
    before = terminal_settings(shell)
    words = {"exit": "-- sh -c 'exit 3'", "not-found": "-- no-such-program", "timeout": "--timeout 0.3 -- sleep 60"}
    expected = {"exit": "3", "not-found": "127", "timeout": "124", "SIGTERM": "143", "SIGINT": "130"}
    # $BASHPID of the subshell is the pid that exec hands to carrel
    shell.sendline(f"(echo pid=$BASHPID=; exec {carrel.path} run -it " +
                   words.get(how, "-- sh -c 'echo u''p; sleep 60'") + ")")
    shell.expect("pid=([0-9]+)=")
    pid = int(shell.match.group(1))
    if how.startswith("SIG"):
        shell.expect_exact("up")
        os.kill(pid, signal.Signals[how])
    shell.expect_exact("PROMPT>")
    # a line of its own: after SIGINT a shell drops the rest of a line, as it should
    shell.sendline("echo status=$?=")
    shell.expect("status=([0-9]+)=")
    assert shell.match.group(1).decode() == expected[how]
    shell.expect_exact("PROMPT>")
    assert terminal_settings(shell) == before


def test_terminal_stop_and_continue(carrel, shell):
    before = terminal_settings(shell)
    shell.sendline(f"{carrel.path} run -it -- sh -c 'echo u''p; read x; echo got=$x'")
    shell.expect_exact("up")
    pid = [p for p in processes_with(carrel.path) if b"run\0-it" in pathlib.Path(f"/proc/{p}/cmdline").read_bytes()
           and int(pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[1]) == shell.pid]
    os.kill(pid[0], signal.SIGTSTP)
    shell.expect_exact("Stopped")
    shell.expect_exact("PROMPT>")
    assert terminal_settings(shell) == before
    shell.sendline("fg")
    shell.expect_exact("run -it")
    time.sleep(0.3)
    shell.send("again\r")
    shell.expect_exact("got=again")
    shell.expect_exact("PROMPT>")
    assert terminal_settings(shell) == before


def test_terminal_that_nobody_reads_inside(carrel):
    child = spawn(carrel, "-it", "--", "sh", "-c", "stty -echo -icanon; echo up; sleep 2; echo end")
    child.expect_exact("up")
    sent = 0
    while select.select([], [child.child_fd], [], 0.5)[1]:
        sent += os.write(child.child_fd, b"x" * 100)
        assert sent < 1_000_000, "keys that nobody reads are kept somewhere"
    child.expect_exact("end")
    assert finish(child) == 0
