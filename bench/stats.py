# SPDX-License-Identifier: Apache-2.0
"""Rows of the report: order statistics, ratios with their uncertainty, the table.

Medians, because a run that met a neighbour says nothing about the candidate; p95 and p99 beside them, because users meet those.
A ratio comes with an interval: both samples are redrawn with replacement RESAMPLES times, and the middle 95 % of the ratios of medians is kept.
"""

import dataclasses
import random
import statistics

RESAMPLES = 300  # settles the second digit of the interval; takes some 0.1 s a row
RESAMPLE_MIN = 5  # samples below which an interval would say nothing
RESAMPLE_MAX = 400  # samples that one redraw takes; more would only cost time
COLUMNS = 100


@dataclasses.dataclass
class Row:
    """One candidate of one measurement; `samples` is empty when it could not be measured, and `note` says why."""

    name: str
    candidate: str
    unit: str
    samples: list
    ratio_to: str = ""
    note: str = ""
    receipt: object = None
    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None

    @property
    def median(self):
        return statistics.median(self.samples) if self.samples else None

    def percentile(self, percent):
        """The smallest sample that `percent` of the samples do not exceed (nearest rank)."""
        if not self.samples:
            return None
        ordered = sorted(self.samples)
        return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]

    def as_json(self):
        row = {
            "name": self.name, "candidate": self.candidate, "unit": self.unit, "n": len(self.samples),
            "median": rounded(self.median), "p95": rounded(self.percentile(95)), "p99": rounded(self.percentile(99)),
            "ratio": rounded(self.ratio), "ratio_to": self.ratio_to or None,
            "ratio_low": rounded(self.ratio_low), "ratio_high": rounded(self.ratio_high), "note": self.note,
        }
        if self.receipt is not None:
            row["receipt"] = self.receipt
        return row


def rounded(value):
    return None if value is None else float(f"{value:.4g}")


def compare(rows, peer, seed):
    """Gives each row of one measurement its ratio to the row of candidate `peer`."""
    rng = random.Random(seed)
    base = next((row for row in rows if row.candidate == peer and row.samples), None)
    for row in rows:
        row.ratio_to = peer
        if base is None or not row.samples or not base.median:
            continue
        row.ratio = row.median / base.median
        if row is base or min(len(row.samples), len(base.samples)) < RESAMPLE_MIN:
            continue
        k, m = min(len(row.samples), RESAMPLE_MAX), min(len(base.samples), RESAMPLE_MAX)
        ratios = sorted(
            statistics.median(rng.choices(row.samples, k=k)) / (statistics.median(rng.choices(base.samples, k=m)) or 1)
            for _ in range(RESAMPLES))
        row.ratio_low, row.ratio_high = ratios[RESAMPLES * 25 // 1000], ratios[RESAMPLES * 975 // 1000]
    return rows


def number(value):
    if value is None:
        return "-"
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.1f}"


def ratio_text(row):
    if row.ratio is None:
        return "-"
    if row.ratio_low is None:
        return f"{row.ratio:.2f}"
    return f"{row.ratio:.2f} ({row.ratio_low:.2f}-{row.ratio_high:.2f})"


def wrapped(text, indent):
    """Lines of at most COLUMNS columns; all but the first stand four columns further in."""
    line, lines = " " * indent, []
    for word in text.split():
        if len(line) + 1 + len(word) > COLUMNS and line.strip():
            lines.append(line)
            line = " " * (indent + 4)
        line += (" " if line.strip() else "") + word
    return lines + [line]


def table(title, rows):
    """One measurement as text. The unit is the rows' own; notes are numbered below, each once."""
    notes = []
    lines = [title, f"  {'candidate':<30}{'median':>9}{'p95':>9}{'p99':>9}{'n':>7}  {'unit':<9}{'x ' + rows[0].ratio_to}"]
    for row in rows:
        mark = ""
        if row.note:
            if row.note not in notes:
                notes.append(row.note)
            mark = f" [{notes.index(row.note) + 1}]"
        lines.append(f"  {row.candidate + mark:<30}{number(row.median):>9}{number(row.percentile(95)):>9}"
                     f"{number(row.percentile(99)):>9}{len(row.samples):>7}  {row.unit:<9}{ratio_text(row)}".rstrip())
    for index, note in enumerate(notes):
        lines += wrapped(f"[{index + 1}] {note}", 4)
    return "\n".join(lines) + "\n"
