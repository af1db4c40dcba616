# SPDX-License-Identifier: Apache-2.0
"""What is measured: Carrel, and what a user would pick instead, each with its own defaults or, where it has none, the nearest to Carrel's."""

import json
import os
import pathlib
import shutil
import signal
import subprocess

from harness import Candidate

NOT_INSTALLED = "not installed"
ROOTLESS = "needs root on this machine"
SUITE = "bookworm"
BOOTSTRAP_MAX_S = 150  # takes 60 s here; the whole run is to stay under six minutes
SLOW_EVERY = 5  # runc and nspawn take 20 and 50 ms: a fifth of the rounds gives enough of them


def is_root():
    return os.geteuid() == 0


def cgroup2_beside_v1():
    """Where cgroup2 is mounted on a host whose controllers are v1, else None. Debian's crun refuses such a host unless it is hidden."""
    mounts = [line.split() for line in open("/proc/self/mounts", encoding="ascii", errors="replace")]
    if not any(fields[2] == "cgroup" for fields in mounts):
        return None
    return next((fields[1] for fields in mounts if fields[2] == "cgroup2"), None)


# --- The root file system that all share -----------------------------------------------------------------------------------------


def bootstrap(directory):
    """Fills `directory` with a minimal Debian, as the first tool that is there does it. Returns a complaint or None."""
    tools = [
        ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root", SUITE, str(directory)],
        ["debootstrap", "--variant=minbase", SUITE, str(directory)],
    ]
    complaint = "neither mmdebstrap nor debootstrap is installed"
    for argv in tools:
        if not shutil.which(argv[0]):
            continue
        shutil.rmtree(directory, ignore_errors=True)
        complaint = run_bootstrap(argv)
        if complaint is None and (directory / "bin/true").exists():
            return None
    return complaint or "the root file system came without /bin/true"


def run_bootstrap(argv):
    """Runs one of these tools in a mount namespace of its own: killed half-way it leaves no /proc or /sys mounted in what we then delete."""
    process = subprocess.Popen(["unshare", "-m", "--propagation", "private", *argv], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        status = process.wait(BOOTSTRAP_MAX_S)
    except BaseException as reason:
        os.killpg(process.pid, signal.SIGKILL)  # a session that we made; its leader is not yet reaped
        process.wait()
        if isinstance(reason, subprocess.TimeoutExpired):
            return f"{argv[0]} did not end in {BOOTSTRAP_MAX_S} s"
        raise
    return None if status == 0 else f"{argv[0]} ended with {status}"


def busybox_root(directory):
    """A root file system of one static program, for machines that cannot reach a Debian archive."""
    busybox = shutil.which("busybox")
    if not busybox:
        return False
    shutil.rmtree(directory, ignore_errors=True)
    for name in ("bin", "dev", "proc", "sys", "tmp", "etc", "run", "usr", "var", "root"):
        (directory / name).mkdir(parents=True)
    shutil.copy(busybox, directory / "bin/busybox")
    for name in ("true", "sh", "sleep"):
        (directory / "bin" / name).symlink_to("busybox")
    (directory / "etc/os-release").write_text("ID=busybox\n")
    (directory / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    return True


def root_file_system(directory):
    """Makes the shared root once. Returns (directory or None, note)."""
    kind = directory.with_name(directory.name + ".kind")
    if kind.exists() and (directory / "bin/true").exists():
        return directory, kind.read_text()
    print(f"Making {directory} (a minimal Debian; takes a minute or two, once)", flush=True)
    complaint = bootstrap(directory) if is_root() else "making one needs root"
    if complaint is None:
        note = ""
    elif busybox_root(directory):
        note = f"root file system is one static busybox, not a Debian: {complaint}"
    else:
        return None, f"no root file system: {complaint}, and busybox is not installed"
    kind.write_text(note)
    return directory, note


# --- Candidates ------------------------------------------------------------------------------------------------------------------


def tool(name, program, argv, **more):
    """A candidate whose program may be missing."""
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin:/usr/bin:/bin")
    return Candidate(name, [path or program, *argv], missing="" if path else NOT_INSTALLED, **more)


def carrel_receipt(carrel, argv):
    """What `carrel run` says is in force in the configuration that is timed."""
    done = subprocess.run([carrel, "run", "--receipt", "--json", *argv], capture_output=True, text=True, timeout=60)
    try:
        return json.loads(done.stdout)["receipt"]
    except (ValueError, KeyError):
        return None


def carrel_candidate(carrel, name, argv):
    """`carrel run ARGV` with the receipt of the same configuration."""
    if not os.access(carrel, os.X_OK):
        return Candidate(name, [str(carrel)], missing="not built")
    receipt = carrel_receipt(carrel, argv)
    note = "" if receipt else "no receipt could be read"
    lacking = [line["layer"] for line in receipt or [] if line["state"] != "on"]
    if lacking:
        note = "receipt: not wholly in force: " + ", ".join(lacking)
    return Candidate(name, [str(carrel), "run", *argv], note=note, receipt=receipt)


def bwrap_rootfs(rootfs, command=("/bin/true",)):
    return tool("bwrap", "bwrap", ["--unshare-all", "--bind", rootfs, "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
                                   "--die-with-parent", *command],
                note="all namespaces and a tmpfs; no seccomp filter, no overlay, no limits, no masked /proc")


def bwrap_host(command=("/bin/true",)):
    links = [word for name in ("bin", "lib", "lib64", "sbin") if os.path.islink(f"/{name}")
             for word in ("--symlink", os.readlink(f"/{name}"), f"/{name}")]
    return tool("bwrap", "bwrap", ["--unshare-all", "--ro-bind", "/usr", "/usr", *links, "--ro-bind", "/etc", "/etc", "--proc", "/proc",
                                   "--dev", "/dev", "--tmpfs", "/tmp", "--die-with-parent", *command],
                note="/usr and the whole /etc of the host read-only, its links, tmpfs; no seccomp filter, no limits")


def bundle(runtime, directory, rootfs, args=("/bin/true",)):
    """An OCI bundle as `RUNTIME spec` proposes it, without a terminal."""
    directory.mkdir(parents=True, exist_ok=True)
    config = directory / "config.json"
    config.unlink(missing_ok=True)
    subprocess.run([runtime, "spec"], cwd=directory, check=True, capture_output=True)
    spec = json.loads(config.read_text())
    spec["process"].update(terminal=False, args=list(args))
    spec["root"] = {"path": str(rootfs), "readonly": False}
    config.write_text(json.dumps(spec))
    return directory


def oci(name, runtime, work, rootfs, flags=(), note="", every=1):
    """A candidate that runs a bundle; crun gets its private mount namespace where the host's cgroups are hybrid."""
    candidate = tool(name, runtime, [], every=every, note=note)
    if not candidate.missing and not is_root():
        candidate.missing = ROOTLESS
    if candidate.missing:
        return candidate
    hidden = cgroup2_beside_v1() if runtime == "crun" else None
    candidate.options = ["-u", hidden] if hidden else []
    path = bundle(candidate.argv[0], work / f"bundle-{runtime}", rootfs)
    candidate.argv += [f"--root={work}/state-{runtime}", *flags, "run", f"--bundle={path}", "bench-{}"]
    return candidate


def nspawn(rootfs):
    candidate = tool("systemd-nspawn", "systemd-nspawn", ["--register=no", "--keep-unit", "-q", "--volatile=overlay", "--private-network",
                     "--machine=bench", "-D", rootfs, "/bin/true"], every=SLOW_EVERY, options=["-t", "/run"])
    if not candidate.missing and not is_root():
        candidate.missing = ROOTLESS
    return candidate


def plain(rootfs):
    """The same program with no isolation; a chroot, made before the clock starts, so that it is the same file."""
    return Candidate("no isolation", ["/bin/true"], options=["-r", str(rootfs)] if is_root() else [], note="posix_spawn of /bin/true")


def rootfs_candidates(carrel, rootfs, work):
    root = str(rootfs)
    return [
        carrel_candidate(carrel, "carrel", ["--image", root, "--", "/bin/true"]),
        bwrap_rootfs(root),
        tool("unshare", "unshare", ["-Urnpmf", "--mount-proc", f"--root={root}", "/bin/true"],
             note="unshare -Urnpmf --mount-proc: namespaces only"),
        oci("crun, no cgroups", "crun", work, root, ["--cgroup-manager=disabled"], note="bundle of `crun spec`: no user namespace, no seccomp"),
        oci("crun", "crun", work, root, note="bundle of `crun spec`: no user namespace, no seccomp"),
        oci("runc", "runc", work, root, note="bundle of `runc spec`: no user namespace, no seccomp", every=SLOW_EVERY),
        nspawn(root),
        plain(rootfs),
    ]


def host_candidates(carrel):
    return [
        carrel_candidate(carrel, "carrel", ["--image", "host", "--", "/bin/true"]),
        bwrap_host(),
        Candidate("no isolation", ["/bin/true"], note="posix_spawn of /bin/true"),
    ]
