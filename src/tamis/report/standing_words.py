"""Where methods stand, in words: who is best, and who cannot be told from it."""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from tamis._format import format_count
from tamis.evaluation import Standing, Standings

#: Metrics that are shares, which people read in percent.
SHARES = ("error", "ber")
SPOKEN = {"ber": "balanced error", "rmse": "RMSE", "mse": "mean squared error", "auc": "AUC"}
#: The least p-value that is printed.
LEAST = 0.001
#: Letters of what a method says of its failure.
LONGEST = 240
#: Resamples below which even a clear difference may stay unseen.
FEW = 10
#: What stands beside every comparison: a model of all columns, and one of none.
ALL, GUESS = "all columns", "guessing"
BASELINES = (ALL, GUESS)


class Failed(NamedTuple):
    """A method that could not be used at all (``times`` 0), or failed in some resamples."""

    method: str
    times: int
    sentence: str


def spoken_metric(standing: Standings) -> str:
    """The metric as people call it, with its unit."""
    name = SPOKEN.get(standing.metric, standing.metric)
    return f"{name} %" if standing.metric in SHARES else name


def with_error(mean: float, error: float, standing: Standings) -> str:
    """``12.3 ± 1.4``; an error that is not known, or rounds to nothing, is not written."""
    if not math.isfinite(mean):
        return "–"
    scale = 100 if standing.metric in SHARES else 1
    decimals = 1 if standing.metric in SHARES else _decimals(mean)
    number = _rounded(scale * mean, decimals)
    spread = _rounded(scale * error, decimals) if math.isfinite(error) else ""
    return f"{number} ± {spread}" if re.search("[1-9]", spread) else number


def _decimals(value: float) -> int:
    """So many that a number has three digits."""
    return 2 if value == 0 else min(2 - math.floor(math.log10(abs(value))), 300)


def _rounded(value: float, decimals: int) -> str:
    """A number with so many decimals; those far from one with a power of ten."""
    if -2 <= decimals <= 6:
        return f"{value:.{max(decimals, 0)}f}"
    return f"{value:.2e}"


def spoken_size(size: float) -> str:
    """A number of columns, or the mean of several."""
    return f"{size:.0f}" if size == round(size) else f"{size:.1f}"


def spoken_p(p: float) -> str:
    """A p-value with two digits.

    >>> spoken_p(0.0312), spoken_p(0.00001), spoken_p(1.0)
    ('0.031', '< 0.001', '1')
    """
    if math.isnan(p):
        return "–"
    return f"< {LEAST:g}" if p < LEAST else f"{p:.2g}"


def spoken_seconds(seconds: float) -> str:
    """A time of a fit.

    >>> spoken_seconds(0.00042), spoken_seconds(0.0312), spoken_seconds(12.3), spoken_seconds(600)
    ('0.4 ms', '31 ms', '12 s', '10 min')
    """
    if seconds < 0.001:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min"


def spoken_stability(row: Standing) -> str | None:
    """Nogueira's measure with its interval, None where there is none."""
    if row.stability is None:
        return None
    one = row.stability
    low, high = max(one.low, -1.0), min(one.high, 1.0)
    # the zero is added because rounding may leave a minus before nothing
    return f"{one.nogueira + 0.0:.2f} ({low + 0.0:.2f} to {high + 0.0:.2f})"


class TableVerdict(NamedTuple):
    """Who is best on a table, who cannot be told from it, who is worse, and what stands beside.

    ``found`` is False where the best cannot be told from guessing.
    """

    best: Standing
    same: list[Standing]
    worse: list[Standing]
    beside: list[Standing]
    found: bool


def verdict_of(rows: Sequence[Standing], standing: Standings) -> TableVerdict | None:
    """What the tests say of one table; None where no method has a score."""
    methods = [row for row in rows if row.method not in BASELINES]
    if not methods:
        return None
    best, *others = methods
    beside = [row for row in rows if row.method in BASELINES]
    lost = any(row.method == GUESS and not _is_beaten(row, best, standing) for row in beside)
    return TableVerdict(
        best,
        [row for row in others if not row.p_value < standing.level],
        [row for row in others if row.p_value < standing.level],
        beside,
        not lost,
    )


def verdict_words(verdict: TableVerdict | None, standing: Standings) -> list[str]:
    """Who is best, and who cannot be told from it, a sentence each."""
    if verdict is None:
        return []
    best, same, worse, beside, found = verdict
    said = [_best_words(best, standing)]
    if same:
        said.append(f"Not distinguishable from it: {_with_p(same)}.")
    if worse:
        said.append(f"Worse: {_with_p(worse)}.")
    said += [_beside(row, best, standing) for row in beside]
    if not found:
        few = "; more --resamples may tell" if best.n_realizations < FEW else ""
        said.append(f"So no method is shown to find anything on this table{few}.")
    return said


def _best_words(best: Standing, standing: Standings) -> str:
    size = f"{spoken_size(best.size)} column{'s' * (best.size != 1)}"
    few = ""
    if best.curve and best.enough < best.size:
        few = f"; {best.enough:.0f} {'are' if best.enough != 1 else 'is'} hardly worse"
    number = with_error(best.mean, best.error, standing)
    unit = " %" if standing.metric in SHARES else ""
    return f"{best.method} is best: {number}{unit} with {size}{few}."


def _with_p(rows: Sequence[Standing]) -> str:
    return ", ".join(f"{row.method} (p {spoken_p(row.p_value)})" for row in rows)


def _beside(row: Standing, best: Standing, standing: Standings) -> str:
    verdict = "not distinguishable"
    if row.p_value < standing.level:
        verdict = "worse" if _is_worse(row, best, standing) else "better"
    name = row.method[0].upper() + row.method[1:]
    unit = " %" if standing.metric in SHARES else ""
    number = with_error(row.mean, row.error, standing)
    return f"{name}: {number}{unit}, {verdict} (p {spoken_p(row.p_value)})."


def _is_beaten(row: Standing, best: Standing, standing: Standings) -> bool:
    return row.p_value < standing.level and _is_worse(row, best, standing)


def _is_worse(row: Standing, best: Standing, standing: Standings) -> bool:
    return (row.mean < best.mean) == standing.greater_is_better


def failed_words(one: Failed) -> str:
    """A method that failed, with the beginning of what it said."""
    where = f" in {format_count(one.times, 'resample')}" if one.times else ""
    return f"{one.method} failed{where}: {_begun(one.sentence)}"


def _begun(sentences: str) -> str:
    """As many of the sentences as are soon read; the files have all of them."""
    said = ""
    for sentence in re.split(r"(?<=[.?]) (?=[A-Z])", sentences):
        if said and len(said) + len(sentence) > LONGEST:
            break
        said = f"{said} {sentence}".strip()
    return said


def rank_words(standing: Standings) -> list[str]:
    """Mean ranks over the tables, and how far apart they must be."""
    ranks = standing.ranks
    if ranks is None:
        return ["Ranks need two methods or more with scores on every table."]
    frame = sorted(zip(ranks.ranks.tolist(), ranks.methods, strict=True))
    lines = [
        "Mean ranks over "
        f"{ranks.n_rows} tables: " + ", ".join(f"{name} {rank:.2f}" for rank, name in frame) + ".",
        f"Friedman's test: p {spoken_p(ranks.p_value)}; ranks further apart than "
        f"{ranks.critical_difference:.2f} differ (Nemenyi, {ranks.level:.0%}).",
    ]
    first = next((group for group in ranks.groups if frame[0][1] in group), None)
    if first is not None:
        others = [name for name in first if name != frame[0][1]]
        lines.append(f"Not distinguishable from {frame[0][1]}: {', '.join(others)}.")
    return lines
