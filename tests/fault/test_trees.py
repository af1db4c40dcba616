# SPDX-License-Identifier: Apache-2.0
"""Trees 100,000 directories deep and of a million files (a sample: 20,000 and 50,000), in the writable layer and in a store directory:
removed without recursion or stall."""
import os
import subprocess
import time

import pytest

from conftest import CARREL, SWEEP_ALL, count, leaks

DEEP = 100_000 if SWEEP_ALL else 20_000
MANY = 1_000_000 if SWEEP_ALL else 50_000

# Makes the trees below the current directory: a chain whose path no call can name, and files in directories of a thousand.
MAKER = """
import os, sys
deep, many, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for i in range(many):
    if i % 1000 == 0:
        os.mkdir(f"wide{i}")
        fd = os.open(f"wide{i}", os.O_RDONLY)
    os.close(os.open(f"f{i}", os.O_WRONLY | os.O_CREAT, dir_fd=fd))
    if i % 1000 == 999:
        os.close(fd)
for i in range(deep):
    os.mkdir(name)
    os.chdir(name)
"""
# Seconds: what removing each of them may take, far above what it takes.
REMOVE_S = 300 if SWEEP_ALL else 30
# KiB of stack: recursion of so many levels would need more.
STACK_KIB = 256


KINDS = []


def backings(place):
    """Kinds of writable layers that this host has."""
    for kind in ("tmpfs", "loop", "quota") if not KINDS else ():
        done = place.carrel("run", "--storage-opt", f"backing={kind}", "--", "/bin/true")
        if done.returncode == 0:
            KINDS.append(kind)
        else:
            assert done.returncode == 125, done.stderr
            count(f"trees: no backing={kind} here: {done.stderr.decode().strip()}")
    return KINDS


@pytest.mark.parametrize("deep,many,ending", [(DEEP, 0, "exit"), (0, MANY, "exit"), (DEEP, 0, "killed"), (0, MANY, "killed"),
                                              (DEEP, 0, "timeout")])
def test_in_the_writable_layer(place, deep, many, ending):
    maker = place.base / "maker.py"
    tail = "print('made', flush=True)\n" + ("" if ending == "exit" else "import time\ntime.sleep(1000)\n")
    maker.write_text(MAKER + tail)
    timeout = ("--timeout", "20" if SWEEP_ALL else "3") if ending == "timeout" else ()
    for kind in backings(place):
        p = place.popen("run", "-v", f"{maker}:/maker.py", "--storage-opt", "size=4g", "--storage-opt", f"inodes={DEEP + MANY + 100000}",
                        "--storage-opt", f"backing={kind}", "-m", "8g", *timeout, "-w", "/root", "--", "/usr/bin/python3", "/maker.py",
                        deep, many, "d", stdout=subprocess.PIPE)
        try:
            assert p.stdout.readline() == b"made\n"
            if ending == "killed":
                p.kill()
            elif ending == "timeout":
                p.stdout.read()  # ends with the last process that could write
            start = time.monotonic()
            status = p.wait(timeout=REMOVE_S)
        finally:
            p.kill()
            p.wait()
            p.stdout.close()
        left = place.left_after(REMOVE_S)
        seconds = time.monotonic() - start
        count(f"trees: {deep or many} {'deep' if deep else 'files'} in the layer ({kind}), {ending}: gone {seconds:.2f} s later")
        assert status == {"exit": 0, "killed": -9, "timeout": 124}[ending], status
        assert not left, left


def in_a_small_process(place, *words):
    """With a small stack. Return: seconds, KiB of the largest resident set"""
    start = time.monotonic()
    done = subprocess.run(["/bin/sh", "-c", f'ulimit -s {STACK_KIB}; exec "$0" "$@"', "/usr/bin/python3", "-c", """
import os, resource, sys
pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
""", CARREL, *words], env=place.env, capture_output=True, text=True, timeout=REMOVE_S * 2, check=False)
    assert done.returncode == 0, done.stderr
    status, rss = map(int, done.stdout.splitlines()[-1].split())
    assert status >= 0, f"ended by signal {-status}: {done.stdout} {done.stderr}"
    return time.monotonic() - start, rss


# A name of the greatest length makes a path of 25 MB at 100,000 levels.
@pytest.mark.parametrize("deep,many,name", [(DEEP, 0, "d"), (DEEP // 4, 0, "n" * 255), (0, MANY, "")], ids=["deep", "deep long names", "many"])
def test_in_the_store(place, deep, many, name):
    """What a builder that died has left there; `doctor --sweep` and the next start of an image collect it."""
    scratch = place.store / "host" / ".tmp-0123456789abcdef"
    scratch.mkdir(mode=0o700)
    subprocess.run(["/usr/bin/python3", "-c", MAKER, str(deep), str(many), name], cwd=scratch, check=True, timeout=600)
    assert leaks.scratch(str(place.store))
    seconds, rss = in_a_small_process(place, "doctor", "--sweep")
    count(f"trees: {deep or many} {'deep' if deep else 'files'} in the store: swept in {seconds:.2f} s with {rss} KiB")
    assert not leaks.scratch(str(place.store))
    assert seconds < REMOVE_S
    assert rss < 64 * 1024, f"{rss} KiB resident"


def test_in_the_run_directory(place):
    """The directory of a dead sandbox that outlived its owner, whatever somebody put there."""
    directory = place.run_dir / ("0" * 16)
    directory.mkdir(mode=0o700)
    subprocess.run(["/usr/bin/python3", "-c", MAKER, str(DEEP // 4), str(MANY // 10), "d"], cwd=directory, check=True, timeout=600)
    seconds, rss = in_a_small_process(place, "doctor", "--sweep")
    count(f"trees: {DEEP // 4} deep and {MANY // 10} files in the run directory: swept in {seconds:.2f} s with {rss} KiB")
    assert not leaks.run_entries(str(place.run_dir))


def test_an_image_as_deep(place):
    """A directory image of that depth starts and ends as any other."""
    image = place.base / "image"
    image.mkdir()
    for name in ("usr", "tmp", "deep"):
        (image / name).mkdir()
    for name in ("bin", "lib", "lib64"):
        os.symlink(f"usr/{name}", image / name)
    subprocess.run(["/usr/bin/python3", "-c", MAKER, str(DEEP // 4), "0", "d"], cwd=image / "deep", check=True, timeout=600)
    start = time.monotonic()
    done = place.carrel("run", "--image", image, "-v", "/usr:/usr", "--", "/bin/true")
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 10
