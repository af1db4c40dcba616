# SPDX-License-Identifier: Apache-2.0
"""What sandboxes left on this machine: a walk that shares nothing with `carrel doctor`.

It knows the names that sandboxes give to things, from the documentation, and looks where the kernel lists things of that kind:

    processes   /proc: inits (executed from the memory file carrel-init), undertakers, zombies of both, and every process whose user
                namespace begins at an id of Carrel's range
    cgroups     directories below any directory `carrel` of every cgroup hierarchy
    mounts      of this mount namespace, with the store, the run directory or `carrel` in them
    run         entries of the run directory, its table of slots apart
    slots       numbers whose lock somebody holds
    scratch     half-built directories in the store
    layers      writable layers in the store
    loops       loop devices on files of the store or the run directory

Tests import snapshot() and diff(); from a shell: python3 tests/leaks.py --expect-clean.
"""
import argparse
import fcntl
import json
import os
import struct
import sys
import time

# docs/ARCHITECTURE.md: ranges of 65,536 ids from here on, one for each slot
UID_BASE = 0x70000000
SLOTS = 4094
# include/uapi/asm-generic/fcntl.h; struct flock with 64-bit offsets
F_OFD_GETLK = 36
FLOCK = "@hhqqi0q"

# What must be empty when no sandbox is alive; other parts of a snapshot are for comparison only.
MUST_BE_EMPTY = ("processes", "cgroups", "mounts", "run", "slots", "scratch", "layers", "loops")
NAMESPACES = ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup")


def default_run_dir():
    if os.environ.get("CARREL_RUN_DIR"):
        return os.environ["CARREL_RUN_DIR"]
    if os.geteuid() == 0:
        return "/run/carrel"
    base = os.environ.get("XDG_RUNTIME_DIR")
    return f"{base}/carrel" if base else f"/tmp/carrel-{os.geteuid()}"


def default_store():
    if os.environ.get("CARREL_STORE"):
        return os.environ["CARREL_STORE"]
    if os.geteuid() == 0:
        return "/var/lib/carrel"
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return f"{base}/carrel"


def read(path):
    """The text of a file, or "" if it is gone or not ours to read."""
    try:
        with open(path, "rb") as f:
            return f.read().decode(errors="replace")
    except OSError:
        return ""


def link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def names(path):
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def pids():
    return [int(name) for name in names("/proc") if name.isdigit()]


def describe_process(pid):
    """Why a process is a sandbox's, or None."""
    stat = read(f"/proc/{pid}/stat")
    if not stat:
        return None
    comm = stat[stat.find("(") + 1:stat.rfind(")")]
    state = stat[stat.rfind(")") + 2:][:1]
    if link(f"/proc/{pid}/exe").startswith("/memfd:carrel-init"):
        return f"{pid} init"
    if comm.startswith(("carrel-init", "carrel-undertak")):
        return f"{pid} {comm} ({state})"
    words = read(f"/proc/{pid}/uid_map").split()
    if len(words) >= 3 and UID_BASE <= int(words[1]) < UID_BASE + SLOTS * 65536:
        return f"{pid} {comm} ({state}), ids from {words[1]}"
    return None


def processes():
    return [text for text in map(describe_process, pids()) if text]


def unescape(path):
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, char)
    return path


def mount_table():
    """(mount point, root, type, source, all of the line but its numbers) of each mount that we see."""
    for line in read("/proc/self/mountinfo").splitlines():
        fields = line.split(" ")
        dash = fields.index("-")
        yield (unescape(fields[4]), unescape(fields[3]), fields[dash + 1], unescape(fields[dash + 2]),
               " ".join(fields[2:6] + fields[dash + 1:]))


def mounts(run_dir, store):
    left = []
    for target, root, _, source, line in mount_table():
        if any(place in text for place in ("carrel", run_dir, store) for text in (target, root, source)):
            left.append(line)
    return sorted(left)


def cgroups():
    left = []
    for target, _, kind, _, _ in mount_table():
        if kind not in ("cgroup", "cgroup2"):
            continue
        for path, directories, _ in os.walk(target):
            if os.path.basename(path) == "carrel":
                left += [os.path.join(path, name) for name in directories]
                directories.clear()  # what is below goes with it
    return sorted(set(left))


def run_entries(run_dir):
    return [os.path.join(run_dir, name) for name in names(run_dir) if name != "slots"]


def locked(fd, first, count):
    """Numbers of the bytes in a range that somebody has locked."""
    ask = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, first, count, 0)
    if struct.unpack(FLOCK, fcntl.fcntl(fd, F_OFD_GETLK, ask))[0] == fcntl.F_UNLCK:
        return []
    if count == 1:
        return [first]
    half = count // 2
    return locked(fd, first, half) + locked(fd, first + half, count - half)


def slots(run_dir):
    try:
        fd = os.open(os.path.join(run_dir, "slots"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return [f"slot {n}" for n in locked(fd, 0, SLOTS)]
    finally:
        os.close(fd)


def scratch(store):
    left = []
    for below in [""] + names(store):
        place = os.path.join(store, below)
        if os.path.isdir(place) and not os.path.islink(place):
            left += [os.path.join(place, name) for name in names(place) if name.startswith(".tmp-")]
    return sorted(left)


def loops(run_dir, store):
    left = []
    for name in names("/sys/block"):
        backing = read(f"/sys/block/{name}/loop/backing_file").strip()
        if backing and any(backing.startswith(place + "/") for place in (run_dir, store)):
            left.append(f"{name} {backing}")
    return left


def namespaces():
    """Namespaces that some process is in: {"net": ["net:[4026531840]", ...], ...}"""
    found = {kind: set() for kind in NAMESPACES}
    for pid in pids():
        for kind in NAMESPACES:
            found[kind].add(link(f"/proc/{pid}/ns/{kind}"))
    return {kind: sorted(links - {""}) for kind, links in found.items()}


def counters():
    """Objects that the kernel counts, also those that no name leads to any more."""
    found = {"processes": len(pids())}
    for line in read("/proc/cgroups").splitlines()[1:]:
        fields = line.split()
        found[f"cgroups of {fields[0]}"] = int(fields[2])
    files = read("/proc/sys/fs/file-nr").split()
    if files:
        found["open files"] = int(files[0])
    return found


def snapshot(run_dir=None, store=None):
    run_dir = run_dir or default_run_dir()
    store = store or default_store()
    return {
        "processes": processes(),
        "cgroups": cgroups(),
        "mounts": mounts(run_dir, store),
        "run": run_entries(run_dir),
        "slots": slots(run_dir),
        "scratch": scratch(store),
        "layers": [os.path.join(store, "upper", name) for name in names(os.path.join(store, "upper"))],
        "loops": loops(run_dir, store),
        "all mounts": sorted(line for *_, line in mount_table()),
        "namespaces": namespaces(),
        "counters": counters(),
    }


def flat(part):
    """A part of a snapshot as a list."""
    if isinstance(part, dict):
        return [item for value in part.values() for item in value]
    return part


def diff(before, after):
    """What `after` has and `before` had not, by kind; {} if nothing. Counters are left out: other programs move them, too."""
    left = {}
    for kind, part in after.items():
        if kind == "counters":
            continue
        rest = list(flat(part))
        for item in flat(before.get(kind, [])):
            if item in rest:
                rest.remove(item)
        if rest:
            left[kind] = rest
    return left


def left_over(found):
    return {kind: found[kind] for kind in MUST_BE_EMPTY if found[kind]}


def main():
    parser = argparse.ArgumentParser(description="list what sandboxes left on this machine")
    parser.add_argument("--expect-clean", action="store_true", help="exit with 1 if anything is left")
    parser.add_argument("--wait", type=float, default=0, metavar="SECONDS", help="look again until it is clean, at most so long")
    parser.add_argument("--run-dir", default=default_run_dir())
    parser.add_argument("--store", default=default_store())
    options = parser.parse_args()
    deadline = time.monotonic() + options.wait
    while True:
        found = snapshot(options.run_dir, options.store)
        left = left_over(found)
        if not left or time.monotonic() >= deadline:
            break
        time.sleep(0.05)
    counts = {kind: len(found[kind]) for kind in MUST_BE_EMPTY}
    counts["namespaces"] = {kind: len(links) for kind, links in found["namespaces"].items()}
    json.dump({"clean": not left, "left": left, "counts": counts, "counters": found["counters"]}, sys.stdout, indent=1)
    print()
    return 1 if left and options.expect_clean else 0


if __name__ == "__main__":
    sys.exit(main())
