# SPDX-License-Identifier: Apache-2.0
"""Each layer taken out, one at a time: the named attacks then succeed, so the tests that say they fail show something.

Needs the build with -Dtest_switches=true. Every part of enum jail_part (src/jail/plan.h) has at least one row. Where another layer holds as
well, the row takes both out, and says which holds; the single part is then listed in COVERED with the reason.
"""
import os
import pathlib
import re
import subprocess

import pytest

from attacker import CARREL, ROOT, foreign_descriptors

FILTERED = ("abi_32bit add_key adjtimex af_packet af_vsock bpf chroot_call clock_adjtime clone3_user clone_user fanotify_init fsconfig_call "
            "io_uring_setup io_uring_enter io_uring_register kernel_tls keyctl listmount mount_call mount_setattr_call mptcp name_to_handle_at "
            "netlink_families nsfs_requests open_by_handle open_by_handle_at_call open_tree_call packet_filter_tables perf_event_open "
            "personality_read_implies_exec quotactl_fd request_key setns_call socket_families statmount tioclinux tiocsetd tiocsti umount_call "
            "unshare_user unshare_mnt unshare_pid unshare_net unshare_ipc unshare_uts unshare_cgroup unshare_time userfaultfd vmsplice "
            "filter_only_logs families_with_high_bits")

# Parts out; who attacks; the attacks that succeed then.
TAKEN_OUT = [
    ("userns", "root", "uid_range init_oom_score"),
    ("userns", "1000", "uid_range"),
    ("netns", "root", "host_loopback abstract_stream abstract_datagram interfaces"),
    ("netns", "1000", "host_loopback abstract_stream abstract_datagram interfaces"),
    ("utsns", "root", "host_name"),
    ("cgroupns", "root", "cgroup_names"),
    ("masks", "root", "masked_paths masked_paths_redirected host_timers sysctl_writable"),
    ("masks", "1000", "masked_paths host_timers"),
    ("pivot", "root", "dotdot_of_root host_mounts cwd_outside"),
    ("pivot", "1000", "dotdot_of_root host_mounts"),
    ("caps", "root", "dangerous_capabilities"),
    ("seccomp", "root", FILTERED),
    ("seccomp", "1000", FILTERED),
    ("sealed_init", "root", "init_oom_score"),
    ("ro_volumes", "root", "write_read_only_volume"),
    # Two layers hold; both out.
    ("pidns,userns", "root", "host_processes"),
    ("pidns,userns", "1000", "host_processes"),
    ("ipcns,userns", "root", "host_shm"),
    ("userns,masks", "root", "core_pattern modprobe sysctl_writable"),
    ("userns,landlock", "root", "make_devices"),
    ("pivot,seccomp", "root", "chroot_escape"),
    ("seccomp,landlock", "root", "nested_mount"),
    ("seccomp,landlock", "1000", "nested_mount"),
    ("seccomp,caps", "root", "set_host_name reboot_call fsopen_call fsmount_call fspick_call move_mount_call setns_own setdomainname_call"),
    ("seccomp,caps,landlock", "root", "pivot_root_call"),
    ("sealed_init,caps,landlock", "root", "ptrace_attach ptrace_seize init_memory init_files init_program init_descriptors"),
    ("userns,caps,seccomp", "root", "settimeofday syslog_call swapon swapoff acct raw_socket make_interface"),
    ("userns,caps,seccomp,masks,landlock", "root", "nested_fresh_proc nested_bind_without_masks kernel_addresses kernel_log host_kmsg"),
    ("seccomp,masks,landlock", "root", "nested_fresh_proc"),
]

# Parts for which no row above has them alone: why, and which test shows them instead.
COVERED = {
    "pidns": "the kernel gives a user namespace no /proc of another's pid namespace, so nothing starts; row pidns,userns",
    "ipcns": "likewise with mqueue; row ipcns,userns",
    "dev": "the image's own /dev is under it; test_dev_taken_out",
    "landlock": "the network namespace holds abstract sockets back too; test_landlock_taken_out, with --network host",
    "nnp": "only nosuid and nodev go: init sets no_new_privs all the same, or it could not load a filter; test_nodev_taken_out",
    "close_fds": "each exec closes again what is above 2; what init itself keeps is seen from outside: test_closing_taken_out",
    "cgroup": "nothing to attack without a limit; test_cgroup_taken_out",
}

# Attacks that no row makes succeed, and why not here. They are asked all the same: elsewhere they would.
NEVER_HERE = {
    "af_alg": "this kernel may be built without it, and then answers as the filter does",
}


# Calls that a kernel before these versions does not have, or gives to the host's root only: nothing to take a layer from.
SINCE = {"statmount": (6, 8), "listmount": (6, 8), "open_by_handle_at_call": (6, 11)}
KERNEL = tuple(map(int, re.match(r"(\d+)\.(\d+)", os.uname().release).groups()))
SCOPES_SINCE = (6, 12)  # Landlock ABI 6, abstract sockets


def switched_off(attack, switches, parts, user, names, **more):
    report = attack(*names, user=user, without=parts.split(","), carrel=switches, **more)
    return {n: report.verdict(n) for n in names if not report.succeeded(n) and KERNEL >= SINCE.get(n, (0, 0))}


@pytest.mark.parametrize("parts,user,names", TAKEN_OUT, ids=[f"{p}-{u}" for p, u, _ in TAKEN_OUT])
def test_taken_out_and_the_attacks_succeed(attack, switches, parts, user, names):
    assert switched_off(attack, switches, parts, user, names.split()) == {}


def test_with_nothing_taken_out_the_same_build_holds(attack, switches):
    names = sorted({n for _, _, names in TAKEN_OUT for n in names.split()})
    for user in ("root", "1000"):
        report = attack(*names, user=user, carrel=switches)
        assert {n: v for n, v in report.items() if v[0] != "harmless"} == {}
        assert len(report) == len(names)


def test_landlock_taken_out(attack, switches):
    names = ["abstract_stream", "abstract_datagram"]
    report = attack(*names, carrel=switches, options=["--network", "host"])
    if KERNEL >= SCOPES_SINCE:  # docs/THREATS.md: before, the host's network is the host's abstract sockets, too
        assert [n for n in names if report.verdict(n)[0] != "harmless"] == [], report.stdout
    for user in ("root", "1000"):
        assert switched_off(attack, switches, "landlock", user, names, options=["--network", "host"]) == {}


def test_cgroup_taken_out(attack, switches):
    limits = {"options": ["--pids-limit", "40", "-m", "32m"], "facts": {"PROBE_FORKS": "60", "PROBE_BYTES": str(64 << 20)}}
    for name in ("many_processes", "much_memory"):
        assert not attack(name, carrel=switches, **limits).succeeded(name)
        assert switched_off(attack, switches, "cgroup", "root", [name], **limits) == {}


def test_closing_taken_out(sleeper, switches):
    _, init = sleeper(carrel=switches)
    assert foreign_descriptors(init) == {}
    _, init = sleeper(carrel=switches, without="close_fds")
    assert foreign_descriptors(init) != {}


def test_nodev_taken_out(attack, switches, trojan):
    image, facts = trojan
    assert switched_off(attack, switches, "nnp", "root", ["image_devices"], image=image, facts=facts) == {}
    assert switched_off(attack, switches, "nnp", "1000", ["image_devices"], image=image, facts=facts) == {}


def test_dev_taken_out(attack, switches, trojan):
    """nodev holds beside it, and init wants a /dev/null that works: both out."""
    image, facts = trojan
    assert switched_off(attack, switches, "dev,nnp", "root", ["device_list", "plant_in_dev", "host_disks"], image=image, facts=facts) == {}


def test_every_part_has_a_row():
    text = (ROOT / "src" / "jail" / "plan.c").read_text()
    parts = set(re.findall(r"\[PART_\w+\] = \"(\w+)\"", text))
    assert len(parts) > 10
    alone = {p for p, _, _ in TAKEN_OUT if "," not in p}
    assert alone | set(COVERED) == parts
    assert not alone & set(COVERED)
    named = {name for parts_, _, _ in TAKEN_OUT for name in parts_.split(",")}
    assert named <= parts


def test_a_normal_build_ignores_the_switch(attack):
    for parts in (["seccomp", "masks", "caps", "pivot"], ["userns"]):
        report = attack("unshare_user", "keyctl", "masked_paths", "dotdot_of_root", "dangerous_capabilities", "uid_range", without=parts)
        assert len(report) == 6 and {v[0] for v in report.values()} == {"harmless"}, report.stdout
    assert b"CARREL_TEST_WITHOUT" not in pathlib.Path(CARREL).read_bytes()


def test_a_normal_build_has_no_filter_that_only_logs():
    """-Dseccomp=log is for sanitizers; the binary's options are meson's, so ask the build that made it."""
    build = pathlib.Path(CARREL).resolve().parent
    if (build / "build.ninja").exists():
        options = subprocess.run(["meson", "introspect", "--buildoptions", str(build)], capture_output=True, text=True, check=True).stdout
        assert '"name": "seccomp", "value": "enforce"' in options
