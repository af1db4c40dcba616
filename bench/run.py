#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Measures Carrel beside bubblewrap, crun, runc, systemd-nspawn and no isolation at all, prints a table and writes it as JSON.

What is compared, how, and what the figures do not say: bench/README.md. The whole run takes under six minutes, --quick under one.
"""

import argparse
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # the source tree may not be ours
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import peers  # noqa: E402
from harness import SOURCE, Failure, compile_helper  # noqa: E402
from rows import IDLE_SANDBOXES, ROWS, Plan  # noqa: E402
from stats import rounded, table  # noqa: E402

BUSY_LOAD = 0.5  # runnable processes beside us from which on the report warns
LEAVE_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PROGRAMS = ("bwrap", "crun", "runc", "systemd-nspawn", "unshare")

# What issue 2 wants: (text, (row, candidate), (row, peer) or None for an absolute figure, at most)
GOALS = (
    ("carrel run -- /bin/true, in bubblewrap's times", ("true in a root file system", "carrel"), ("true in a root file system", "bwrap"), 0.6),
    ("carrel run -- /bin/true, in runc's times", ("true in a root file system", "carrel"), ("true in a root file system", "runc"), 0.125),
    ("a further exec, in posix_spawn's times", ("exec of true in a live sandbox", "carrel_exec and wait"),
     ("exec of true in a live sandbox", "posix_spawn and wait"), 1.5),
    ("an idle sandbox, all in, KiB", ("idle sandbox, all in", "carrel"), None, 512),
    ("PSS of an idle init, KiB", ("idle sandbox, init alone", "carrel"), None, 150),
)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--carrel", required=True, help="the program to measure; helpers and files go beside it")
    parser.add_argument("--json", help="where to write the rows")
    parser.add_argument("--rounds", type=int, help="rounds of the whole-process rows (default 150, quick 25)")
    parser.add_argument("--runs", type=int, default=1, help="runs of a candidate in one round (default 1)")
    parser.add_argument("--rows", help="only these, separated by commas: " + ", ".join(ROWS))
    parser.add_argument("--seed", type=int, help="of the order of candidates (default: drawn, and printed)")
    parser.add_argument("--quick", action="store_true", help="a minute instead of six")
    args = parser.parse_args()
    args.rows = args.rows.split(",") if args.rows else list(ROWS)
    unknown = [name for name in args.rows if name not in ROWS]
    if unknown:
        parser.error(f"no row '{unknown[0]}'; there are {', '.join(ROWS)}")
    return args


def version_of(program):
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if not path:
        return peers.NOT_INSTALLED
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
    return (done.stdout.splitlines() or ["?"])[0]


def machine(carrel):
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8", errors="replace") if line.startswith("model name")), "?")
    mounts = {line.split()[2] for line in open("/proc/self/mounts", encoding="utf-8", errors="replace")}
    cgroups = " and ".join(name for name, kind in (("v1", "cgroup"), ("v2", "cgroup2")) if kind in mounts) or "none"
    found = {"cpu": cpu, "cpus": os.cpu_count(), "kernel": platform.release(), "architecture": platform.machine(), "cgroups": cgroups,
             "uid": os.geteuid(), "load_before": [round(x, 2) for x in os.getloadavg()],
             "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "programs": {name: version_of(name) for name in PROGRAMS}}
    try:
        found["carrel"] = subprocess.run([carrel, "version"], capture_output=True, text=True, timeout=10).stdout.strip()
    except OSError:
        found["carrel"] = "not built"
    return found


def build_helpers(build, directory):
    """Compiles everything; returns why the helpers that need libcarrel are missing, or an empty text."""
    for name in ("spawn", "load"):
        compile_helper(name, directory)
    library = build / "src/warden"
    if not (library / "libcarrel.so").exists():
        return "libcarrel is not built"
    try:
        for name in ("exec", "idle"):
            compile_helper(name, directory, f"-I{SOURCE / 'include'}", f"-L{library}", f"-Wl,-rpath,{library}", "-lcarrel")
    except Failure as failure:
        return str(failure)
    return ""


def reached(results):
    """One dictionary for each goal: what was wanted and what came."""
    medians = {(row.name, row.candidate): row.median for _, rows in results for row in rows if row.samples}
    goals = []
    for text, of, to, limit in GOALS:
        value = medians.get(of)
        if value is not None and to is not None:
            value = value / medians[to] if medians.get(to) else None
        goals.append({"goal": text, "at_most": limit, "value": rounded(value), "reached": None if value is None else value <= limit})
    return goals


def print_goals(goals):
    words = {True: "reached", False: "NOT REACHED", None: "not measured"}
    print("Wanted" + " " * 46 + "at most     here")
    for goal in goals:
        value = "-" if goal["value"] is None else f"{goal['value']:.4g}"
        print(f"  {goal['goal']:<48}{goal['at_most']:>9}{value:>9}  {words[goal['reached']]}")


def leave(number, _frame):
    """Ends by an exception, once, so that every `finally` removes what it made and is not itself interrupted."""
    for each in LEAVE_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    print(f"bench: ended by {signal.Signals(number).name}", file=sys.stderr)
    sys.exit(128 + number)


def measure(args, plan):
    results = []
    for name in args.rows:
        for title, rows in ROWS[name](plan):
            results.append((title, rows))
            print(table(title, rows), flush=True)
    return results


def main():
    for number in LEAVE_SIGNALS:
        signal.signal(number, leave)
    args = arguments()
    carrel = pathlib.Path(args.carrel).resolve()
    build = carrel.parent
    seed = args.seed if args.seed is not None else int.from_bytes(os.urandom(4), "little")
    about = machine(carrel)
    print(f"{about['cpu']}, {about['cpus']} CPUs, kernel {about['kernel']}, cgroups {about['cgroups']}, seed {seed}")
    if about["load_before"][0] > BUSY_LOAD:
        print(f"The machine is busy (load {about['load_before'][0]}): believe the ratios rather than the times.")
    print(flush=True)
    start = time.monotonic()
    needs_rootfs = set(args.rows) - {"host"}
    rootfs, rootfs_note = peers.root_file_system(build / "bench-rootfs") if needs_rootfs else (None, "not asked for")
    with tempfile.TemporaryDirectory(prefix="bench-", dir=build) as directory:
        work = pathlib.Path(directory)
        plan = Plan(carrel=carrel, helpers=work, work=work, rootfs=rootfs, rootfs_note=rootfs_note, library_note=build_helpers(build, work),
                    rounds=args.rounds or (25 if args.quick else 150), runs=args.runs, pairs=300 if args.quick else 3000,
                    trials=2 if args.quick else 5, trial_s=0.4 if args.quick else 1.5, seed=seed)
        results = measure(args, plan)
    goals = reached(results)
    print_goals(goals)
    about["load_after"] = [round(x, 2) for x in os.getloadavg()]
    about["seconds"] = round(time.monotonic() - start, 1)
    if args.json:
        report = {"machine": about, "seed": seed, "idle_sandboxes": IDLE_SANDBOXES, "goals": goals,
                  "rows": [row.as_json() for _, rows in results for row in rows]}
        pathlib.Path(args.json).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        print(f"\n{len(report['rows'])} rows in {about['seconds']} s, written to {args.json}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"bench: {failure}", file=sys.stderr)
        sys.exit(1)
