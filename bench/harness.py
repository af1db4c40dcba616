# SPDX-License-Identifier: Apache-2.0
"""Runs the C helpers: builds them, keeps one conversation for each candidate, takes turns between candidates."""

import dataclasses
import os
import pathlib
import select
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent
ANSWER_MAX_S = 60  # one request; the slowest candidate needs a second
FLAGS = ["-O2", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-include", str(SOURCE / "src/base/banned.h")]


class Failure(Exception):
    """A candidate could not be measured; the text becomes the note of its row."""


def compile_helper(name, directory, *more):
    """Compiles bench/NAME.c and returns the program."""
    out = directory / name
    done = subprocess.run(["gcc", *FLAGS, str(HERE / f"{name}.c"), "-o", str(out), *more], capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"bench/{name}.c does not build: {first_line(done.stderr)}")
    return out


def first_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else "no message"


@dataclasses.dataclass
class Candidate:
    """Something that is measured as a whole process."""

    name: str
    argv: list
    options: list = dataclasses.field(default_factory=list)  # of spawn.c: what it needs of its surroundings
    missing: str = ""  # why it cannot be measured
    note: str = ""
    every: int = 1  # runs in every Nth round only; for the slow ones
    receipt: object = None


class Talk:
    """A helper that answers lines on stdin with lines on stdout."""

    def __init__(self, argv):
        self.process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, bufsize=0)
        self.pending = b""

    def line(self):
        """One line of the answer; Failure if the helper ends or stays silent."""
        while b"\n" not in self.pending:
            ready, _, _ = select.select([self.process.stdout], [], [], ANSWER_MAX_S)
            chunk = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not chunk:
                raise Failure("failed: " + ("no answer in time" if not ready else self.complaint()))
            self.pending += chunk
        line, self.pending = self.pending.split(b"\n", 1)
        return line.decode()

    def complaint(self):
        self.process.stdin.close()
        return first_line(self.process.stderr.read(65536).decode(errors="replace"))

    def say(self, text):
        try:
            self.process.stdin.write(text.encode() + b"\n")
        except BrokenPipeError:
            raise Failure("failed: " + first_line(self.process.stderr.read(65536).decode(errors="replace"))) from None

    def measure(self, runs, pause_us=0):
        """{label: [ns, ...]} of one request; label "all" has the time of the whole request."""
        self.say(f"{runs} {pause_us}")
        answer = {}
        while "all" not in answer:
            label, value = self.line().split()
            answer.setdefault(label, []).append(int(value))
        return answer

    def close(self):
        """Ends the helper: at end of input it leaves by itself, else it is killed by its pid."""
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(ANSWER_MAX_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def talk_to(helpers, candidate, lanes=1):
    """A conversation about one candidate, warmed up by two runs."""
    if candidate.missing:
        raise Failure(candidate.missing)
    talk = Talk([helpers / "spawn", *candidate.options, "-j", lanes, *candidate.argv])
    try:
        talk.measure(2)
    except Failure:
        talk.close()
        raise
    return talk


def interleave(helpers, candidates, rounds, runs, rng, pause_us=0):
    """{candidate name: ([ns, ...], note)}: `rounds` rounds of `runs` runs of each candidate, in an order drawn anew each round."""
    talks, found = {}, {}
    try:
        for candidate in candidates:
            found[candidate.name] = ([], candidate.note)
            try:
                talks[candidate.name] = talk_to(helpers, candidate)
            except Failure as failure:
                found[candidate.name] = ([], str(failure))
        for turn in range(rounds):
            order = [c for c in candidates if c.name in talks and turn % c.every == 0]
            rng.shuffle(order)
            for candidate in order:
                try:
                    found[candidate.name][0].extend(talks[candidate.name].measure(runs, pause_us)["run"])
                except Failure as failure:
                    talks.pop(candidate.name).close()
                    found[candidate.name] = (found[candidate.name][0], f"stopped in round {turn + 1}: {failure}")
    finally:
        for talk in talks.values():
            talk.close()
    return found
