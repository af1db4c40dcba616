# SPDX-License-Identifier: Apache-2.0
"""SIGKILL in every state of the parent, the undertaker, the jail's child and init: right before the Nth system call of one of them, for
every N of a recorded trace, one or two of them die. Within three seconds nothing is left.

Where both who would clean up die (parent and undertaker), cgroups may stay: `carrel doctor --sweep` removes them.
"""
import pytest

from conftest import GONE_S, HANG_S, Injector, count, sample

WORDS = ["run", "--", "/bin/sh", "-c", "sleep 0.02 & (sleep 0.02 &) ; wait"]
MANY = ["run", "--json", "-v", "/usr/share:/data", "--tmpfs", "/scratch:size=1m", "--cpus", "1", "--timeout", "20", "--", "/bin/true"]

DISK = ["run", "--storage-opt", "backing=loop", "--storage-opt", "size=16m", "--", "/bin/true"]

# Who dies, before whose calls, in which run, and the size of the sample.
CASES = {
    "parent": ("P", "PUJIC", WORDS, None, 80),
    "undertaker": ("U", "PUJI", WORDS, None, 50),
    "jail child": ("J", "PJ", WORDS, None, 40),
    "init": ("I", "PIC", WORDS, None, 40),
    "parent and jail child": ("PJ", "PJ", WORDS, None, 20),
    "parent and init": ("PI", "PI", WORDS, None, 20),
    "undertaker and init": ("UI", "PI", WORDS, None, 20),
    "parent, many options": ("P", "PUJIH", MANY, None, 20),
    "parent, layer on disk": ("P", "PUJIH", DISK, None, 30),
    "parent, ordinary user": ("P", "PUJIC", WORDS, 65534, 30),
    "init, ordinary user": ("I", "PI", WORDS, 65534, 20),
}


def kill_one(targets):
    def one(injector, p, case):
        role, n, name, _ = case
        report, _, err = injector.once(p, HANG_S, "kill", f"{role}:{n}:{targets}")
        what = f"{targets} before {role}:{n} {name}"
        left = p.left_after(GONE_S, report.ids)
        if left:
            p.carrel("doctor", "--sweep")
        if report.hit is None:
            return None, 0, what
        if report.hung:
            return f"{what}: hangs: {report.hung}", 1, what
        if left:
            return f"{what}: leaves {left}", 1, what
        if report.gone_ms > GONE_S * 1000:
            return f"{what}: processes for {report.gone_ms} ms", 1, what
        if "P" not in targets and report.exit < 0:
            return f"{what}: the parent ends with {report.exit}: {err!r}", 1, what
        return None, report.gone_ms, what

    return one


@pytest.mark.parametrize("name", CASES)
def test_kill(inject, name):
    targets, before, words, owner, size = CASES[name]
    with Injector(inject, words, owner) as injector:
        trace = [call for call in injector.trace() if call[0] in before]
        cases = sample(trace, size, name)
        results = injector.sweep(cases, kill_one(targets))
    wrong = [text for text, _, _ in results if text]
    slowest, what = max((ms, what) for _, ms, what in results)
    count(f"kill {name}: {len(trace)} states, {len(cases)} tried, slowest end {slowest} ms ({what}), {len(wrong)} wrong")
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong)


def kill_both(injector, p, case):
    role, n, name, _ = case
    report, _, _ = injector.once(p, HANG_S, "kill", f"{role}:{n}:PU")
    what = f"PU before {role}:{n} {name}"
    if report.hit is None:
        return None, False
    if report.hung:
        return f"{what}: hangs: {report.hung}", False
    orphaned = bool(p.left(report.ids))
    swept = p.carrel("doctor", "--sweep")
    left = p.left_after(GONE_S, report.ids)
    if left:
        return f"{what}: after the sweep: {left}; it said: {swept.stdout[-400:].decode()} {swept.stderr.decode()}", orphaned
    return None, orphaned


def test_kill_parent_and_undertaker(inject):
    with Injector(inject, WORDS) as injector:
        trace = [call for call in injector.trace() if call[0] in "PUJI"]
        cases = sample(trace, 50, "both")
        results = injector.sweep(cases, kill_both)
    wrong = [text for text, _ in results if text]
    count(f"kill parent and undertaker at once: {len(trace)} states, {len(cases)} tried, {sum(o for _, o in results)} left groups, "
          f"all swept but {len(wrong)}")
    assert not wrong, f"{len(wrong)} of {len(cases)}:\n" + "\n".join(wrong)
