# SPDX-License-Identifier: Apache-2.0
"""The measurements: each function returns [(title, [Row, ...]), ...]."""

import contextlib
import dataclasses
import pathlib
import random
import subprocess

import memory
import peers
from harness import Candidate, Failure, Talk, interleave, talk_to
from stats import Row, compare

NS_PER_MS = 1e6
NS_PER_US = 1e3
QUIET_US = 30000  # longer than an RCU grace period here: what comes after it pays for one (floors: cgroup attach)
CROWD = 5000  # idle processes on the host
WRITE_BYTES_PER_S = 100 << 20
WRITE_FILE_BYTES = 256 << 20
IDLE_SANDBOXES = 50
LANES = (1, 2, 8)


@dataclasses.dataclass
class Plan:
    """How much is measured, and with what."""

    carrel: pathlib.Path
    helpers: pathlib.Path  # directory of the compiled helpers
    work: pathlib.Path  # directory for bundles and files
    rootfs: pathlib.Path | None
    rootfs_note: str
    library_note: str  # why the helpers that link libcarrel are missing
    rounds: int
    runs: int  # of one candidate in a round
    pairs: int  # of exec and spawn
    trials: int  # of memory and of throughput
    trial_s: float  # of throughput
    seed: int

    def rng(self, name):
        """A row's order does not depend on which other rows were asked for."""
        return random.Random(f"{self.seed} {name}")


def timed(plan, name, title, candidates, ratio_to="bwrap", rounds=None, runs=None, pause_us=0, note=""):
    """Whole-process time of some candidates in interleaved rounds, in milliseconds."""
    found = interleave(plan.helpers, candidates, rounds or plan.rounds, runs or plan.runs, plan.rng(name), pause_us)
    rows = []
    for candidate in candidates:
        samples, text = found[candidate.name]
        rows.append(Row(name, candidate.name, "ms", [ns / NS_PER_MS for ns in samples],
                        note="; ".join(part for part in (text, note if samples else "") if part), receipt=candidate.receipt))
    return title, compare(rows, ratio_to, plan.seed)


def rootfs_set(plan):
    if plan.rootfs is None:
        return [Candidate(name, [], missing=plan.rootfs_note) for name in ("carrel", "bwrap", "crun", "runc", "systemd-nspawn")]
    return peers.rootfs_candidates(plan.carrel, plan.rootfs, plan.work)


def only(candidates, *names):
    return [candidate for candidate in candidates if candidate.name in names]


def row_rootfs(plan):
    candidates = rootfs_set(plan)
    few = only(candidates, "carrel", "bwrap", "no isolation")
    rounds = max(3, plan.rounds // 10)
    return [
        timed(plan, "true in a root file system", "/bin/true in a minimal Debian, whole process, candidates in turn", candidates,
              note=plan.rootfs_note),
        timed(plan, "true in a root file system, back to back", "The same, ten runs of each back to back", few, rounds=rounds, runs=10),
        timed(plan, "true in a root file system, after 30 ms of quiet", "The same, after 30 ms in which nothing was started", few,
              rounds=rounds, runs=3, pause_us=QUIET_US),
    ]


def row_host(plan):
    return [timed(plan, "true on the host's /usr", "/bin/true with the host image, whole process", peers.host_candidates(plan.carrel))]


def row_crowd(plan):
    with load(plan, "idle", CROWD) as complaint:
        few = only(rootfs_set(plan), "carrel", "bwrap", "no isolation")
        return [timed(plan, "true in a root file system, 5,000 idle processes", "/bin/true in a minimal Debian with 5,000 idle processes alive",
                      few, rounds=max(3, plan.rounds // 2), note=complaint)]


def row_neighbour(plan):
    with load(plan, "write", plan.work / "neighbour", WRITE_BYTES_PER_S, WRITE_FILE_BYTES) as complaint:
        few = only(rootfs_set(plan), "carrel", "bwrap", "no isolation")
        return [timed(plan, "true in a root file system, a neighbour writes", "/bin/true in a minimal Debian while a neighbour writes 100 MiB/s",
                      few, rounds=max(3, plan.rounds // 2), note=complaint)]


@contextlib.contextmanager
def load(plan, *argv):
    """Runs bench/load.c for the time of the block; yields a complaint if the load could not be made."""
    talk = Talk([plan.helpers / "load", *argv])
    try:
        try:
            talk.line()
            complaint = ""
        except Failure as failure:
            complaint = f"the load is missing: {failure}"
        yield complaint
    finally:
        talk.close()


# --- A further exec --------------------------------------------------------------------------------------------------------------


def exec_pairs(plan, pairs, pause_us):
    """({"carrel": [us], "spawn": [us]}, note) of bench/exec.c."""
    if plan.library_note:
        return {}, plan.library_note
    talk = Talk([plan.helpers / "exec", plan.seed % (1 << 31)])
    try:
        talk.measure(20)
        answer = talk.measure(pairs, pause_us)
        return {label: [ns / NS_PER_US for ns in values] for label, values in answer.items()}, ""
    except Failure as failure:
        return {}, str(failure)
    finally:
        talk.close()


def hybrid_prefix():
    """Words before an OCI runtime on a host whose cgroups are hybrid; see peers.cgroup2_beside_v1()."""
    hidden = peers.cgroup2_beside_v1()
    return ["unshare", "-m", "sh", "-c", f"umount -l {hidden} && exec \"$@\"", "sh"] if hidden else []


def live_exec_peers(plan):
    """[(Candidate for one more command in a live crun container)], and the container to close."""
    candidate = peers.tool("crun exec", "crun", [])
    nsenter = peers.tool("nsenter", "nsenter", [], note="from outside into the namespaces of a crun container: no seccomp, no limits")
    if plan.rootfs is None or not peers.is_root():
        candidate.missing = nsenter.missing = plan.rootfs_note or peers.ROOTLESS
    if candidate.missing:
        nsenter.missing = nsenter.missing or "needs crun's container"
        return [candidate, nsenter], None
    state = plan.work / "state-crun"
    path = peers.bundle("crun", plan.work / "bundle-sleep", plan.rootfs, ["/bin/sleep", "600"])
    container = memory.Detached(hybrid_prefix(), "crun", path, state, 1)
    try:
        container.fill()
    except Failure as failure:
        candidate.missing = nsenter.missing = str(failure)
        return [candidate, nsenter], container
    except BaseException:
        container.close()
        raise
    hidden = peers.cgroup2_beside_v1()
    candidate.options = ["-u", hidden] if hidden else []
    candidate.argv += [f"--root={state}", "exec", container.names[0], "/bin/true"]
    nsenter.argv += ["-t", str(container.inits[0]), "-m", "-u", "-i", "-n", "-p", "/bin/true"]
    return [candidate, nsenter], container


def row_exec(plan):
    found = []
    others, container = live_exec_peers(plan)
    try:
        extra = interleave(plan.helpers, others, max(3, plan.rounds // 3), 1, plan.rng("exec"))
    finally:
        if container:
            container.close()
    for name, title, pairs, pause_us in (
            ("exec of true in a live sandbox", "A further exec in a live sandbox beside posix_spawn in the same process", plan.pairs, 0),
            ("exec of true in a live sandbox, after 30 ms of quiet", "The same, after 30 ms in which nothing was started",
             max(10, plan.pairs // 20), QUIET_US)):
        samples, note = exec_pairs(plan, pairs, pause_us)
        rows = [Row(name, "carrel_exec and wait", "us", samples.get("carrel", []), note=note),
                Row(name, "posix_spawn and wait", "us", samples.get("spawn", []), note=note)]
        if pause_us == 0:
            rows += [Row(name, other.name, "us", [ns / NS_PER_US for ns in extra[other.name][0]], note=extra[other.name][1]) for other in others]
        found.append((title, compare(rows, "posix_spawn and wait", plan.seed)))
    return found


# --- Memory ----------------------------------------------------------------------------------------------------------------------


def holders(plan):
    """{candidate: function that makes its sandboxes, or why there is none}"""
    carrel = plan.library_note or (lambda: memory.CarrelSandboxes(plan.helpers, IDLE_SANDBOXES))
    if plan.rootfs is None:
        return {"carrel": carrel, "bwrap": plan.rootfs_note, "crun": plan.rootfs_note, "runc": plan.rootfs_note}
    bwrap = peers.bwrap_rootfs(str(plan.rootfs), ("/bin/sleep", "600"))
    found = {"carrel": carrel, "bwrap": bwrap.missing or (lambda: memory.Spawned(bwrap.argv, IDLE_SANDBOXES))}
    for runtime in ("crun", "runc"):
        missing = peers.tool(runtime, runtime, []).missing or ("" if peers.is_root() else peers.ROOTLESS)
        found[runtime] = missing or oci_holder(plan, runtime)
    return found


def oci_holder(plan, runtime):
    path = peers.bundle(runtime, plan.work / f"bundle-sleep-{runtime}", plan.rootfs, ["/bin/sleep", "600"])
    prefix = hybrid_prefix() if runtime == "crun" else []
    return lambda: memory.Detached(prefix, runtime, path, plan.work / f"state-{runtime}", IDLE_SANDBOXES)


def row_memory(plan):
    parts = {"all in": [], "of its processes": [], "of the kernel": [], "init alone": []}
    makers, found, why = holders(plan), {}, {}
    for turn in range(plan.trials):
        order = [name for name in makers if callable(makers[name]) and name not in why and (turn == 0 or name in ("carrel", "bwrap") or turn % 2)]
        plan.rng(f"memory {turn}").shuffle(order)
        for name in order:
            try:
                found.setdefault(name, []).append(memory.trial(makers[name](), IDLE_SANDBOXES))
            except (Failure, subprocess.SubprocessError, OSError) as failure:
                why[name] = str(failure)
    for name, maker in makers.items():
        note = why.get(name, "" if callable(maker) else maker)
        for index, part in enumerate(parts):
            samples = [trial[index] for trial in found.get(name, []) if trial[index] is not None]
            parts[part].append(Row(f"idle sandbox, {part}", name, "KiB", samples, note=note))
    titles = {"all in": f"Memory of an idle sandbox, all in ({IDLE_SANDBOXES} alive; n counts trials)", "of its processes": "Of it: PSS of its processes",
              "of the kernel": "Of it: kernel memory", "init alone": "PSS of the sandbox's PID 1"}
    return [(titles[part], compare(rows, "bwrap", plan.seed)) for part, rows in parts.items()]


# --- Throughput ------------------------------------------------------------------------------------------------------------------


def rate(plan, candidate, lanes):
    """Runs a second with `lanes` in flight, over about plan.trial_s."""
    talk = talk_to(plan.helpers, candidate, lanes)
    try:
        pilot = 4 * lanes
        runs = max(pilot, int(plan.trial_s * pilot / (talk.measure(pilot)["all"][0] / 1e9)))
        return runs / (talk.measure(runs)["all"][0] / 1e9)
    finally:
        talk.close()


def row_throughput(plan):
    candidates = only(rootfs_set(plan), "carrel", "bwrap", "no isolation")
    found = []
    for lanes in LANES:
        name = f"sandboxes a second, {lanes} in flight"
        rows = {c.name: Row(name, c.name, "1/s", [], note=c.missing or c.note, receipt=c.receipt) for c in candidates}
        for turn in range(plan.trials):
            order = [c for c in candidates if not c.missing]
            plan.rng(f"{name} {turn}").shuffle(order)
            for candidate in order:
                try:
                    rows[candidate.name].samples.append(rate(plan, candidate, lanes))
                except Failure as failure:
                    candidate.missing = rows[candidate.name].note = str(failure)
        found.append((f"Throughput: {name} (n counts trials; more is better)", compare(list(rows.values()), "bwrap", plan.seed)))
    return found


ROWS = {"rootfs": row_rootfs, "host": row_host, "exec": row_exec, "memory": row_memory, "throughput": row_throughput,
        "crowd": row_crowd, "neighbour": row_neighbour}
