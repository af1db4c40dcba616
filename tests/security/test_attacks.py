# SPDX-License-Identifier: Apache-2.0
"""Every attack of probe/, from inside a sandbox as it is started by default: as its root, as its user, and of a sandbox without root.

One test per attack and attacker; the hundred attacks of one attacker share a sandbox, since each has a process of its own.
"""
import pytest

from attacker import ORDINARY_UID, attack_names

ALWAYS, BY_NAME = attack_names()
ATTACKERS = {
    "root": {"user": "root"},
    "user": {"user": "1000"},
    "rootless": {"user": "root", "uid": ORDINARY_UID},
}

# What an ordinary user's sandbox does not keep from itself, with the reason (docs/THREATS.md, "Without root"). Nothing else may differ.
ROOTLESS_DIFFERS = {
    "setuid_program": ("untried", "one id only: there is no second user to gain from"),
    "file_capabilities": ("untried", "one id only"),
    "init_oom_score": ("succeeded", "init has the same id outside; a sandbox whose init is killed ends"),
}


@pytest.fixture(scope="session")
def reports(attack):
    made = {}

    def report(who):
        if who not in made:
            made[who] = attack(**ATTACKERS[who])
        return made[who]

    return report


@pytest.mark.parametrize("name", ALWAYS)
@pytest.mark.parametrize("who", ATTACKERS)
def test_attack_fails(reports, who, name):
    verdict, detail = reports(who).verdict(name)
    wanted = ROOTLESS_DIFFERS.get(name, ("harmless",))[0] if who == "rootless" else "harmless"
    assert verdict == wanted, detail


def test_the_probes_know_as_many_attacks_as_this_file(carrel, probe):
    done = carrel("-v", f"{probe.parent}:/p", "--", "/p/probe", "--list")
    listed = [line.split("\t")[:2] for line in done.stdout.decode().splitlines()]
    assert sorted(n for n, when in listed if when == "always") == sorted(ALWAYS)
    assert sorted(n for n, when in listed if when == "by-name") == sorted(BY_NAME)
