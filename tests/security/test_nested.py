# SPDX-License-Identifier: Apache-2.0
"""Nested user namespaces: refused by default; with --nested-userns they work, and still uncover nothing."""
import pathlib

import pytest

from attacker import attack_names

NESTED = [n for n in attack_names()[0] if n.startswith("nested_")]
NAMESPACES = [n for n in attack_names()[0] if n.startswith(("unshare_", "clone_"))]

# With the option these are what it gives. All others fail as without it. A process that may mount may mount its own part of the v1 pids
# hierarchy and go into a group below: init looks for it without groups then, and the group goes with the sandbox (below).
GIVEN = {"nested_mount", "nested_cgroup_children"}


@pytest.fixture(scope="module", params=["root", "1000"])
def report(request, attack):
    return attack(*NESTED, *NAMESPACES, "clone3_user", "af_vsock", "netlink_families", "keyctl", user=request.param,
                  options=["--nested-userns"])


@pytest.mark.parametrize("name", NESTED)
def test_nested_namespace_uncovers_nothing(report, name):
    verdict, detail = report.verdict(name)
    assert verdict == "harmless" or name in GIVEN, detail


@pytest.mark.parametrize("name", NAMESPACES)
def test_namespaces_can_be_made(report, name):
    assert report.succeeded(name), report.verdict(name)


@pytest.mark.parametrize("name", ["clone3_user", "af_vsock", "netlink_families", "keyctl"])
def test_the_rest_of_the_filter_stays(report, name):
    verdict, detail = report.verdict(name)
    assert verdict == "harmless", detail


def groups():
    return {p for p in pathlib.Path("/sys/fs/cgroup").glob("**/carrel/*") if p.is_dir()}


def test_groups_made_inside_do_not_stay(attack):
    """With groups of its own, a sandbox can make a chain of them; removing it must not stop at a depth."""
    before = groups()
    attack("nested_cgroup_chain", options=["--nested-userns"])
    left = {p for p in groups() - before if list(p.glob("**/d/d"))}
    for path in left:  # ours, and empty
        for below in sorted(path.glob("**/"), key=lambda p: -len(p.parts)):
            below.rmdir()
    assert left == set()
