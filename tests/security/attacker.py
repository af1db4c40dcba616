# SPDX-License-Identifier: Apache-2.0
"""Runs attacks: what a test asks for, done in a sandbox beside a stand-in for the host. A module of its own, since other suites have a conftest, too."""
import json
import os
import pathlib
import random
import re
import stat
import string
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CARREL = os.environ.get("CARREL", str(ROOT / "build" / "carrel"))

RUN_DEADLINE_S = 60
FAILED, TIMED_OUT = 125, 124
UID_MIN = 0x70000000  # SLOT_UID_BASE of src/warden/slot.h: no distribution gives ids from here on to anybody
ORDINARY_UID = 54321  # nobody's, without subordinate ids
UNSHARE = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]


def attack_names():
    """Names that take part in a run of all, and those that do not. Read from the source, so that tests can be listed without building."""
    always, by_name = [], []
    for path in sorted((HERE / "probe").glob("*.c")):
        text = path.read_text()
        rows = text[text.find("const struct attack "):]
        row_flags = re.search(r"#define ROW\(name_, answers_\) \{ #name_, name_, (\w+)", text)
        for m in re.finditer(r'^\t(?:(ROW|CALLED)\((\w+),|\{ "(\w+)", \w+, (\w+),)', rows, re.M):
            named = m[4] == "BY_NAME" or (m[1] == "ROW" and row_flags[1] == "BY_NAME")
            (by_name if named else always).append(m[2] or m[3])
    return always, by_name


class Report(dict):
    """Verdicts by name, with what carrel itself said."""

    def __init__(self, done):
        super().__init__()
        self.status, self.stdout, self.stderr = done["status"], done["stdout"], done["stderr"]
        for line in self.stdout.splitlines():
            words = line.split(" ", 2)
            if len(words) >= 2 and words[1] in ("harmless", "succeeded", "untried"):
                self[words[0]] = (words[1], words[2] if len(words) > 2 else "")

    def verdict(self, name):
        return self.get(name, ("missing", f"status {self.status}: {self.stderr.strip()[:300]}"))

    def succeeded(self, name):
        return self.verdict(name)[0] == "succeeded"


def hidden_paths():
    plan = subprocess.run([CARREL, "run", "--dry-run", "--", "true"], capture_output=True, text=True, check=True).stdout
    paths = re.findall(r"^mask: (\S+) hidden", plan, re.M)
    assert len(paths) > 5, plan
    return paths


class Attacker:
    """Runs probes in sandboxes, from namespaces that take the damage if one works (host.py)."""

    def __init__(self, directory):
        self.dir = directory
        self.probes = directory / "probes"
        self.outside = {n: os.readlink(f"/proc/self/ns/{n}") for n in ("mnt", "uts", "ipc", "pid")}
        self.hidden = " ".join(hidden_paths())

    def __call__(self, *names, user="root", options=(), facts=None, uid=0, without=None, carrel=CARREL, image=None, **more):
        program = "/probe" if image else "/probes/probe"
        args = ["--user", user, "--timeout", "20s", *options]
        args += ["--image", str(image)] if image else ["-v", f"{self.probes}:/probes"]
        told = {"PROBE_HIDDEN": self.hidden, "PROBE_MOUNTS": "/probes", "PROBE_RO": "/probes"}
        if not uid:
            told["PROBE_UID_MIN"] = str(UID_MIN)
        token = "sec" + "".join(random.choices(string.ascii_lowercase, k=8))
        request = {"carrel": carrel, "args": [*args, "--", program, *names], "facts": {**told, **(facts or {})}, "uid": uid,
                   "token": token, "outside": self.outside, "leak": ["/", "/etc", "/usr"],
                   "env": {"CARREL_TEST_WITHOUT": ",".join(without)} if without else {}, **more}
        # The system's Python: no other depends on nothing but the host.
        done = subprocess.run([*UNSHARE, sys.executable, str(HERE / "host.py"), json.dumps(request)], capture_output=True,
                              text=True, check=False, timeout=RUN_DEADLINE_S)
        left = pathlib.Path("/sys/fs/cgroup/freezer", "carrel-" + token)  # a host that was killed could not remove it
        if left.is_dir():
            left.rmdir()
        assert done.returncode == 0, done.stderr
        return Report(json.loads(done.stdout))


def open_directory(path):
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY)


def parent_of(pid):
    try:
        return int(pathlib.Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None


def init_of(process):
    """Pid of the sandbox's init, as the host sees it: a descendant of carrel with that name."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            name = pathlib.Path("/proc", pid, "comm").read_text()
        except OSError:
            continue
        parent = int(pid)
        while name == "carrel-init\n" and parent and parent != process.pid:
            parent = parent_of(parent)
        if name == "carrel-init\n" and parent:
            return int(pid)
    return None


def foreign_descriptors(init):
    """Descriptors of a process that lead to the host: directories of its file systems, files that are neither anonymous nor control
    files of cgroups nor the record of slots that init holds as proof of life."""
    foreign = {}
    ours = {os.stat(d).st_dev for d in ("/", "/etc", "/proc", "/sys")}
    for fd in os.listdir(f"/proc/{init}/fd"):
        path = f"/proc/{init}/fd/{fd}"
        to, st = os.readlink(path), os.stat(path)
        if stat.S_ISDIR(st.st_mode) and st.st_dev in ours:
            foreign[fd] = to
        elif stat.S_ISREG(st.st_mode) and not (to.startswith(("/memfd:", "/sys/fs/cgroup/")) or
                                               os.path.basename(to) in ("tasks", "cgroup.procs", "slots")):
            foreign[fd] = to
    return foreign
