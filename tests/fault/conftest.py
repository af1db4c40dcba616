# SPDX-License-Identifier: Apache-2.0
"""What every fault test uses: helpers in C, places of its own, the seed, and the question "what is left".

    CARREL        the program; build/carrel of this tree if unset
    CARREL_SWEEP  "all": every case of every sweep; else a seeded sample
    CARREL_SEED   of the sample; drawn and printed if unset
    CARREL_SHARED_HOST  set: others start sandboxes that stay, so what is new on the host at the end is not looked at

Each test works in run and store directories of its own, and looks for leftovers by the names of its own sandboxes: other sandboxes may
live on the machine meanwhile. What has no name (mounts, namespaces, cgroups that nobody remembers) is compared over the whole session.
"""
import concurrent.futures
import glob
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import leaks  # noqa: E402

CARREL = os.environ.get("CARREL", str(ROOT / "build" / "carrel"))
SWEEP_ALL = os.environ.get("CARREL_SWEEP") == "all"
SEED = int(os.environ.get("CARREL_SEED") or random.SystemRandom().randrange(1 << 32))

# Seconds for what a killed sandbox still does by itself: the issue's own number.
GONE_S = 3
# Seconds until a case counts as hung.
HANG_S = 10

COUNTS = []


def count(text):
    """A line of the summary that is printed at the end."""
    COUNTS.append(text)


def pytest_sessionstart(session):
    if not os.access(CARREL, os.X_OK):
        pytest.exit(f"{CARREL} is not there: build it with 'make', or name it with CARREL=", returncode=2)


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"fault: seed {SEED} (CARREL_SEED={SEED} repeats it), "
                                f"{'whole sweeps' if SWEEP_ALL else 'samples'}")
    for line in COUNTS:
        terminalreporter.write_line(f"fault: {line}")


def sample(cases, size, name):
    """All cases, or as many of them as @size, the same for the same seed; in their order."""
    cases = list(cases)
    if SWEEP_ALL or len(cases) <= size:
        return cases
    picked = random.Random(f"{SEED} {name}").sample(range(len(cases)), size)
    return [cases[i] for i in sorted(picked)]


def build(out, source, *flags, compiler="gcc"):
    """A helper in C. Its compiler failing is a failure, never a skip."""
    done = subprocess.run([compiler, "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-o", str(out),
                           str(source), *flags], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return str(out)


@pytest.fixture(scope="session")
def tools(tmp_path_factory):
    return tmp_path_factory.mktemp("tools")


@pytest.fixture(scope="session")
def inject(tools):
    return build(tools / "inject", HERE / "inject.c")


def library(name):
    """Flags that link a program with a static library of the same build."""
    path = pathlib.Path(CARREL).resolve().parent / "src" / "warden" / name
    assert path.exists(), f"{path} is not there: CARREL must be in a build directory"
    return ["-I", str(ROOT / "include"), str(path)]


class Place:
    """A run directory and a store, in which nobody else's sandboxes are."""

    def __init__(self, owner=None):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="carrel-fault-"))
        self.run_dir, self.store = self.base / "run", self.base / "store"
        for path in (self.run_dir, self.store):
            path.mkdir(mode=0o700)
        if owner:
            for path in (self.base, self.run_dir, self.store):
                os.chown(path, owner, owner)
        self.env = dict(os.environ, CARREL_RUN_DIR=str(self.run_dir), CARREL_STORE=str(self.store), HOME=str(self.base))
        self.env.pop("CARREL_TEST_WITHOUT", None)

    def remove(self):
        subprocess.run(["rm", "-rf", str(self.base)], check=False)  # unlike rmtree() it has no limit of depth

    def fresh_store(self):
        shutil.rmtree(self.store)
        self.store.mkdir(mode=0o700)

    def ids(self):
        """Ids of sandboxes whose slots are held; unknown but for the slot, so only good for "is there any"."""
        return leaks.slots(str(self.run_dir))

    def left(self, ids=()):
        """What is left here now, and of sandboxes with these ids: {} or texts by kind."""
        found = {
            "cgroups": [path for name in ids for path in groups_of(name)],
            "run": leaks.run_entries(str(self.run_dir)),
            "slots": leaks.slots(str(self.run_dir)),
            "scratch": leaks.scratch(str(self.store)),
            "layers": leaks.names(str(self.store / "upper")),
            "mounts": [line for line in leaks.mounts(str(self.run_dir), str(self.store)) if str(self.base) in line],
            "loops": leaks.loops(str(self.run_dir), str(self.store)),
        }
        return {kind: items for kind, items in found.items() if items}

    def left_after(self, seconds, ids=()):
        """The same, as soon as it is nothing or @seconds have passed."""
        deadline = time.monotonic() + seconds
        while True:
            left = self.left(ids)
            if not left or time.monotonic() >= deadline:
                return left
            time.sleep(0.01)

    def carrel(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("timeout", 60)
        return subprocess.run([CARREL, *map(str, words)], env=self.env, capture_output=True, check=False, **options)

    def popen(self, *words, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([CARREL, *map(str, words)], env=self.env, **options)


def descendants(pid):
    """All processes below one, as /proc shows them now."""
    children = {}
    for child in leaks.pids():
        stat = leaks.read(f"/proc/{child}/stat")
        if stat:
            children.setdefault(int(stat.rsplit(")", 1)[1].split()[1]), []).append(child)
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def inits_below(pid):
    return [child for child in descendants(pid) if leaks.link(f"/proc/{child}/exe").startswith("/memfd:carrel-init")]


def groups_of(sandbox_id):
    """Directories of one sandbox in all cgroup hierarchies, whoever's they are."""
    return (glob.glob(f"/sys/fs/cgroup/carrel/{sandbox_id}") + glob.glob(f"/sys/fs/cgroup/*/carrel/{sandbox_id}") +
            glob.glob(f"/sys/fs/cgroup/*/*/carrel/{sandbox_id}"))


@pytest.fixture
def place():
    p = Place()
    warm = p.carrel("run", "--", "/bin/true")  # makes the store's host layer, which is not what is tested
    assert warm.returncode == 0, warm.stderr.decode()
    yield p
    left = p.left_after(GONE_S)
    p.remove()
    assert not left, f"left behind: {left}"


# --- Injection ---

def syscall_names():
    names = {}
    for path in ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"):
        if os.path.exists(path):
            for line in open(path, encoding="ascii"):
                match = re.match(r"#define __NR_(\w+) (\d+)", line)
                if match:
                    names[int(match[2])] = match[1]
            break
    return names


NAMES = syscall_names()


class Report:
    """What inject.c saw."""

    def __init__(self, path):
        self.calls, self.ids, self.hung, self.hit, self.ended, self.gone_ms = [], set(), [], None, None, None
        self.excluded = None
        for line in open(path, encoding="utf-8", errors="replace"):
            words = line.split()
            if not words:
                continue
            if words[0] in ("call", "hit"):
                role, n, nr, why = words[1], int(words[2]), int(words[3]), " ".join(words[4:])
                item = (role, n, NAMES.get(nr, str(nr)), None if why == "-" else why)
                if words[0] == "call":
                    self.calls.append(item)
                else:
                    self.hit, self.excluded = item, item[3]
            elif words[0] == "mkdir":
                name = line[6:].rstrip("\n").rsplit("/", 1)[-1]
                if re.fullmatch("[0-9a-z]{16}", name):
                    self.ids.add(name)
            elif words[0] == "hung":
                self.hung.append(line.strip())
            elif words[0] == "ended":
                self.ended = int(words[1])
            elif words[0] == "gone":
                self.gone_ms = int(words[1])

    @property
    def exit(self):
        """Exit status of the program; negative: the signal; None: it did not end."""
        return None if self.ended is None else os.waitstatus_to_exitcode(self.ended)


class Injector:
    """Runs of one command under inject.c, several side by side, each worker in a place of its own."""

    def __init__(self, inject, command, owner=None, fresh=False, program=None):
        self.inject, self.command, self.owner, self.fresh = inject, [program or CARREL, *command], owner, fresh
        self.places = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for p in self.places:
            p.remove()

    def new_place(self):
        p = Place(self.owner)
        self.places.append(p)
        if self.owner:
            p.env["INJECT_UID"] = str(self.owner)
        if not self.fresh:
            report, _, err = self.once(p, HANG_S, "trace")  # makes the store's host layer
            assert report.exit == 0, err
        return p

    def once(self, p, seconds, *fault):
        """Return: Report, stdout, stderr"""
        if self.fresh:
            p.fresh_store()
        path = p.base / "report"
        done = subprocess.run([self.inject, str(path), str(seconds), *fault, *self.command], env=p.env,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds * 3 + 30, check=False, cwd="/")
        assert done.returncode == 0, (fault, done.stderr.decode(errors="replace"))
        return Report(path), done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def trace(self):
        p = self.new_place()
        report, _, _ = self.once(p, HANG_S, "trace")
        assert report.exit == 0 and not report.hung, (report.exit, report.hung)
        return report.calls

    def sweep(self, cases, one):
        """one(injector, place, case) for each case, on two workers. Return: what they returned, in order."""
        workers = min(os.cpu_count() or 1, 4)
        free = [self.new_place() for _ in range(workers)]

        def run(case):
            p = free.pop()
            try:
                return one(self, p, case)
            finally:
                free.append(p)

        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            return list(pool.map(run, cases))


# --- The whole session ---

def lasting(before, seconds):
    """What is there that was not before, and stays; sandboxes of others come and go."""
    left = leaks.diff(before, leaks.snapshot())
    deadline = time.monotonic() + seconds
    while left and time.monotonic() < deadline:
        time.sleep(0.2)
        now = leaks.diff(before, leaks.snapshot())
        left = {kind: [i for i in items if i in now.get(kind, ())] for kind, items in left.items()}
        left = {kind: items for kind, items in left.items() if items}
    return left


@pytest.fixture(scope="session", autouse=True)
def nothing_lasts():
    before = leaks.snapshot()
    yield
    if os.environ.get("CARREL_SHARED_HOST"):  # somebody else runs long-lived sandboxes meanwhile
        return
    left = lasting(before, GONE_S)
    assert not left, f"left behind by the whole session: {left}"
