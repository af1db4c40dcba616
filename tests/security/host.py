# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the host: makes what a sandbox must not reach, runs carrel beside it, and says what happened.

Runs as pid 2 of namespaces of its own (attacker.py starts it under unshare), because the suites take layers out on purpose: an attack that
works then hits these namespaces and not the machine. It refuses to run anywhere else.

    host.py REQUEST    REQUEST is JSON: carrel, args, env, facts, user (uid that carrel runs as), leak (directories to leak), without
"""
import ctypes
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

IPC_CREAT, IPC_RMID = 0o1000, 0
RUN_DEADLINE_S = 30


def check_safety(outside):
    """outside: names of the real machine's namespaces"""
    for name in ("mnt", "uts", "ipc", "pid"):
        if os.readlink(f"/proc/self/ns/{name}") == outside[name]:
            sys.exit(f"host.py: still in the machine's {name} namespace")


class Host:
    """What the host has. Each is told to the probes as a fact."""

    def __init__(self, token):
        self.facts = {}
        self.keep = []
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="carrel-sec-"))
        self.dir.chmod(0o755)
        self.shm = -1
        self.cgroup = None
        self.dev_shm = pathlib.Path("/dev/shm") / token
        self.make(token)

    def make(self, token):
        socket.sethostname("host-of-" + token)
        self.facts["PROBE_HOSTNAME"] = "host-of-" + token
        marker = self.dir / "marker"
        marker.write_text("of the host\n")
        self.facts["PROBE_MARKER"] = str(marker)
        self.facts["PROBE_PROCESS"] = "host.py"
        self.dev_shm.write_text("of the host\n")
        self.facts["PROBE_DEV_SHM"] = str(self.dev_shm)
        self.listen(token)
        key = 0x5ec00000 | os.getpid() | int(token[-4:], 36) % 4096 << 8
        self.shm = ctypes.CDLL(None).shmget(key, 4096, IPC_CREAT | 0o666)
        self.facts["PROBE_SHM_KEY"] = str(key)
        self.join_cgroup(token)

    def listen(self, token):
        tcp = socket.create_server(("127.0.0.1", 0))
        self.facts["PROBE_TCP"] = str(tcp.getsockname()[1])
        self.keep.append(tcp)
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            s = socket.socket(socket.AF_UNIX, kind)
            s.bind(f"\0{token}-{int(kind)}")
            if kind == socket.SOCK_STREAM:
                s.listen()
            self.keep.append(s)
        self.facts["PROBE_ABSTRACT"] = token

    def join_cgroup(self, token):
        """A group whose name must not show inside: in a v1 hierarchy that carrel leaves alone, else below our own of v2. There a sandbox has
        groups elsewhere; what must not show is the beginning that both names share."""
        freezer, unified = pathlib.Path("/sys/fs/cgroup/freezer"), pathlib.Path("/sys/fs/cgroup")
        if freezer.is_dir():
            self.home = freezer
        elif (unified / "cgroup.procs").exists():
            line = [l for l in open("/proc/self/cgroup") if l.startswith("0::")]
            self.home = unified / line[0].strip()[4:]
        else:
            return
        self.cgroup = self.home / ("carrel-" + token)
        self.cgroup.mkdir()
        (self.cgroup / "cgroup.procs").write_text("0")
        self.facts["PROBE_CGROUP"] = self.cgroup.name if freezer.is_dir() else "/carrel"

    def leave_cgroup(self):
        (self.home / "cgroup.procs").write_text("0")
        for _ in range(100):
            try:
                self.cgroup.rmdir()
                return
            except OSError:
                time.sleep(0.02)

    def done(self):
        if self.shm >= 0:
            ctypes.CDLL(None).shmctl(self.shm, IPC_RMID, None)
        self.dev_shm.unlink(missing_ok=True)
        if self.cgroup:
            self.leave_cgroup()
        shutil.rmtree(self.dir, ignore_errors=True)


def run(request, host):
    facts = {**host.facts, **request.get("facts", {})}
    words = [request["carrel"], "run"]
    for name, value in facts.items():
        words += ["-e", f"{name}={value}"]
    words += request["args"]
    env = {"PATH": os.environ["PATH"], "HOME": str(host.dir), **request.get("env", {})}
    leaked = [os.open(d, os.O_RDONLY | os.O_DIRECTORY) for d in request.get("leak", [])]
    for fd in leaked:
        os.set_inheritable(fd, True)
    if request.get("uid"):
        for name in ("home", "run"):
            (host.dir / name).mkdir(mode=0o700)
            os.chown(host.dir / name, request["uid"], request["uid"])
        env.update(HOME=str(host.dir / "home"), XDG_RUNTIME_DIR=str(host.dir / "run"), TMPDIR=str(host.dir / "run"))
        words = ["setpriv", f"--reuid={request['uid']}", f"--regid={request['uid']}", "--clear-groups", *words]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, env=env, close_fds=False, check=False,
                          timeout=RUN_DEADLINE_S)
    return {"status": done.returncode, "stdout": done.stdout.decode(errors="replace"),
            "stderr": done.stderr.decode(errors="replace")}


def main():
    request = json.loads(sys.argv[1])
    check_safety(request["outside"])
    host = Host(request["token"])
    try:
        print(json.dumps(run(request, host)))
    finally:
        host.done()


main()
