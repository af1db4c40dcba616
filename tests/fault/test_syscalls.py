# SPDX-License-Identifier: Apache-2.0
"""The Nth system call of making, using and removing a sandbox fails, for every N of a recorded trace.

Whatever fails: `carrel run` ends, not by a signal, with its one line and 125, or with the command's own status if the failure was one that
can be lived with; and nothing is left. The calls are those of the parent, the undertaker, the jail's child, init, and the command's
process up to its execve().
"""
import errno
import random

import pytest

from conftest import GONE_S, HANG_S, HERE, SEED, Injector, build, count, library, sample

ERRORS = [errno.ENOMEM, errno.EIO, errno.EPERM]

# What runs: words after `carrel`, uid, each case with an empty store, size of the sample.
CASES = {
    "plain": (["run", "--", "/bin/true"], None, False, 160),
    "many options": (["run", "--json", "--read-only", "-v", "/usr/share:/data", "--tmpfs", "/scratch:size=1m", "--cpus", "1",
                      "--timeout", "20", "--shm-size", "1m", "--ulimit", "core=0", "-e", "A=b", "--", "/bin/true"], None, False, 80),
    "receipt": (["run", "--receipt", "--", "/bin/true"], None, False, 40),
    "layer on disk": (["run", "--storage-opt", "backing=loop", "--storage-opt", "size=16m", "--", "/bin/true"], None, False, 50),
    "first start": (["run", "--", "/bin/true"], None, True, 30),
    "ordinary user": (["run", "--", "/bin/true"], 65534, False, 60),
}

# Other ends that are meant, by role and call: who cannot leave the sandbox's network ends by SIGABRT (net_return() in src/jail/net.c); a spool
# that cannot be written is a full one (src/init/pump.c).
MEANT = {("P", "setns"): -6, ("I", "splice"): 137}


def error_for(role, n):
    return random.Random(f"{SEED} {role} {n}").choice(ERRORS)


def judge(case, error, report, out, err, left):
    """What is wrong with one run, in words; None if nothing."""
    role, n, name, _ = case
    what = f"{role}:{n}:{error} {name} ({errno.errorcode[error]})"
    # A receipt may have been printed before; what remains must be the one line.
    lines = [line for line in err.splitlines() if line.split(" ", 1)[0] not in ("on", "partial", "missing")]
    if report.hit is None:
        return None  # another run, another number of turns
    if report.hit[2] != name:
        what = f"{role}:{n}:{error} {report.hit[2]} ({errno.errorcode[error]})"
    if report.hung:
        return f"{what}: hangs: {report.hung}"
    if left:
        return f"{what}: leaves {left}"
    if report.excluded:
        return None
    if report.exit == 0 or (report.exit is not None and MEANT.get((role, report.hit[2])) == report.exit):
        return None
    if report.exit is None or report.exit < 0:
        return f"{what}: ends with {report.exit}: {err!r}"
    # Init and the command's process may find that the program cannot be executed; a call of ours that is "not permitted" reads the same.
    allowed = (125, 126, 127) if role in "CI" or error == errno.EPERM else (125,)
    if report.exit not in allowed:
        return f"{what}: exit status {report.exit}: {err!r}"
    if role in "CI" and report.exit != 125 and err and not lines:
        return None  # a held command whose pipe to init breaks ends as a command that says so by its status
    if len(lines) != 1 or not lines[0].startswith("carrel: "):
        return f"{what}: exit status {report.exit} with {len(lines)} lines: {err!r}"
    return None


def fail_one(injector, p, case):
    role, n, name, _ = case
    error = error_for(role, n)
    report, out, err = injector.once(p, HANG_S, "fail", f"{role}:{n}:{error}")
    left = p.left_after(GONE_S, report.ids)
    wrong = judge(case, error, report, out, err, left)
    if left:
        p.carrel("doctor", "--sweep")  # so that the next case is judged for itself
    return wrong, report.hit is not None, report.exit


def sweep(injector, name, size):
    trace = [call for call in injector.trace() if call[0] in "PUJIHC"]
    possible = [call for call in trace if call[3] is None]
    cases = sample(possible, size, name)
    results = injector.sweep(cases, fail_one)
    wrong = [text for text, _, _ in results if text]
    hit = sum(1 for _, was_hit, _ in results if was_hit)
    lived = sum(1 for _, was_hit, status in results if was_hit and status == 0)
    count(f"{name}: {len(trace)} calls traced, {len(trace) - len(possible)} that cannot fail, {len(cases)} made to fail, {hit} hit, "
          f"{lived} lived with, {hit - lived} refused, {len(wrong)} wrong")
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong)
    assert hit >= len(cases) * 0.9, f"only {hit} of {len(cases)} calls came again: the trace is not one of this program"


@pytest.mark.parametrize("name", CASES)
def test_nth_call_fails(inject, name):
    words, owner, fresh, size = CASES[name]
    with Injector(inject, words, owner, fresh) as injector:
        sweep(injector, name, size)


def test_nth_call_fails_in_the_library(inject, tools):
    """Of a sandbox that would outlive its owner: it has names in the run directory, and is found again by one of them."""
    program = build(tools / "lasting", HERE / "lasting.c", "-static", *library("libcarrel_small.a"), compiler="musl-gcc")
    with Injector(inject, [], program=program) as injector:
        sweep(injector, "outlives its owner", 80)
