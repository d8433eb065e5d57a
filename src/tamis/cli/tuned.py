"""The best C in words, with a small curve; and the whole curve as CSV or JSON."""

import json
from itertools import pairwise
from math import ceil, floor, log10
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tamis._arrays import Array
from tamis._format import format_count
from tamis.cli.output import plain, replace_file
from tamis.cli.printing import stdout, text
from tamis.svm.curves.curve import IntervalOfC, ValidationCurve

#: Size of the curve in characters, where the terminal is not narrower.
WIDTH, HEIGHT = 64, 7
#: Share of the best value up to which a continuous curve is called as good.
AS_GOOD = 0.01
#: Where sentences begin beside their words.
INDENT = 14
#: How far from the best C of a continuous curve a shorter number may be: a twentieth.
NEAR = 1.05
BLOCKS = " ▁▂▃▄▅▆▇█"


class Tuned(NamedTuple):
    """A fitted search, and what is said of it."""

    name: str
    table: str
    search: Any
    task: str
    folds: int
    repeats: int

    @property
    def curve(self) -> ValidationCurve:
        """The exact curve of the best gamma."""
        curve: ValidationCurve = self.search.curve_
        return curve

    @property
    def interval(self) -> IntervalOfC:
        """Every C that is as good; of a continuous curve those within a hundredth."""
        if self.task == "classification":
            interval: IntervalOfC = self.search.best_interval_
            return interval
        worst = abs(1 - self.curve.best) if self.curve.greater_is_better else abs(self.curve.best)
        return around(self.curve, self.search.best_C_, AS_GOOD * worst)

    @property
    def C(self) -> float:
        """A short number inside the interval, near the best."""
        if self.task == "classification":
            return self.interval.round_number
        best, end = self.search.best_C_, self.interval
        low, high = max(end.low, best / NEAR), min(end.high, best * NEAR)
        return IntervalOfC(low, high, True, True).round_number

    @property
    def standard_error(self) -> float:
        """Of the mean over folds; repeats are of the same rows, and make it no smaller."""
        results, row = self.search.cv_results_, self.search.best_index_
        scores = [results[f"split{k}_test_score"][row] for k in range(self.search.n_splits_)]
        return float(np.std(scores, ddof=1) / np.sqrt(min(self.folds, len(scores))))

    @property
    def within_error(self) -> IntervalOfC:
        """The interval around the best C that is within one standard error of it."""
        if self.task == "classification":
            sign = -1 if self.curve.greater_is_better else 1
            level = self.curve.best + sign * self.standard_error
            inside = self.interval.middle
            return next(i for i in self.curve.within(level) if i.low <= inside <= i.high)
        return around(self.curve, self.search.best_C_, self.standard_error)

    @property
    def grid(self) -> dict[str, Any]:
        """What the powers of two would have found: the first of the best."""
        results = self.search.cv_results_
        powers = np.log2(np.asarray(results["param_C"], dtype=float)) % 1 == 0
        rows = np.flatnonzero(powers)
        if not len(rows):
            return {}
        row = rows[np.argmax(np.round(results["mean_test_score"][rows], 12))]
        score = float(results["mean_test_score"][row])
        return {**results["params"][row], "score": score, "n_points": len(rows)}

    @property
    def encodes(self) -> bool:
        """Whether the table has words, dates or gaps."""
        return hasattr(self.search.preprocessor, "steps")

    @property
    def machine(self) -> str:
        """What to write in Python."""
        search, regression = self.search, self.task == "regression"
        words = [f"C={self.C:.9g}"]
        if search.kernel == "linear":
            words.insert(0, 'kernel="linear"')
        elif search.best_gamma_ != "scale":
            gamma = search.best_gamma_
            words.append(f'gamma="{gamma}"' if isinstance(gamma, str) else f"gamma={gamma:.9g}")
        if regression:
            words.append(f"epsilon={search.epsilon:.9g}")
        steps = "StandardScaler()"
        if self.encodes:
            keep = list(search.preprocessor.steps[0][1].keep)
            steps = f"TableEncoder({f'keep={keep}' if keep else ''}), {steps}"
        return f"make_pipeline({steps}, {'SVR' if regression else 'SVC'}({', '.join(words)}))"


def around(curve: ValidationCurve, C: float, more: float) -> IntervalOfC:
    """The breakpoints around C up to which a continuous curve is at most so much worse.

    Between two of them it is convex: what holds at both ends holds between.
    """
    sign = -1.0 if curve.greater_is_better else 1.0
    bad = sign * (curve.at_breakpoints - curve.best) > more
    at = int(np.searchsorted(curve.breakpoints, C))
    left = np.flatnonzero(bad[:at])
    right = np.flatnonzero(bad[at:])
    low = curve.breakpoints[left[-1] + 1] if len(left) else curve.breakpoints[0]
    high = curve.breakpoints[at + right[0] - 1] if len(right) else curve.breakpoints[-1]
    return IntervalOfC(float(min(low, C)), float(max(high, C)), True, True)


def print_tuned(found: Tuned) -> None:
    """Say what was found, line by line, and draw the curve."""
    console = stdout()
    console.print(text(f"{found.name}: {found.table}", style="bold"))
    console.print(text(_how(found)))
    console.print()
    for word, line in _lines(found):
        first, *more = wrap(line, max(console.width - INDENT, 20))
        console.print(text(f"  {word:<{INDENT - 2}}", style="bold"), text(first), sep="")
        for part in more:
            console.print(text(" " * INDENT + part))
    console.print()
    if np.ptp(found.curve.values) > 0:
        width = min(WIDTH, max(console.width - 16, 20))
        for line in drawn(found, width, fine=console.encoding.startswith("utf")):
            console.print(text(line), soft_wrap=True)
        console.print()
    console.print("In Python:")
    console.print(text(f"  {found.machine}"), soft_wrap=True)


def _how(found: Tuned) -> str:
    """What was trained, and on what."""
    search = found.search
    gamma = "" if search.kernel == "linear" else f", gamma = {_gammas(search.gamma)}"
    tube = f", epsilon = {search.epsilon:.3g}" if found.task == "regression" else ""
    times = "" if found.repeats == 1 else f", {found.repeats} times"
    prepared = "encoded and standardised" if found.encodes else "standardised"
    return (
        f"support vector machine, {search.kernel} kernel{gamma}{tube}; "
        f"{format_count(found.folds, 'fold')}{times}; columns {prepared} on training rows"
    )


def _gammas(gamma: Any) -> str:
    several = gamma if isinstance(gamma, list) else [gamma]
    return ", ".join(one if isinstance(one, str) else f"{one:.4g}" for one in several)


def _lines(found: Tuned) -> list[tuple[str, str]]:
    """What there is to say, each with its word."""
    search, proof = found.search, found.search.certificate_
    first, last = found.curve.breakpoints[[0, -1]]
    every = found.interval.low <= first and found.interval.high >= last
    lines = [("best C", _best(found, every))]
    if isinstance(search.gamma, list):
        lines.append(("best gamma", _gammas(search.best_gamma_)))
    lines.append((_measure(found), f"{_value(found, proof.value)} ± {_error(found)}"))
    lines.append(("proved" if proof.closed else "not proved", _verdict(found)))
    if not every:
        low, high = found.within_error.rounded_ends
        lines.append(("within 1 SE", f"C from {figure(low)} to {figure(high)}"))
    lines.append(("a grid", _grid(found)))
    best = found.search.best_interval_
    if not every and (best.low <= first or best.high >= last):
        lines.append(("note", _beyond(found, first, last)))
    return lines


def _best(found: Tuned, every: bool) -> str:
    """The C to write, and which others would do."""
    low, high = (figure(end, 9) for end in found.interval.rounded_ends)
    good = f"within {100 * AS_GOOD:g} % of the best" if found.task == "regression" else "as good"
    if every:
        return f"{figure(found.C, 9)}, or any other: all from {low} to {high} are {good}"
    return f"{figure(found.C, 9)}; every C from {low} to {high} is {good}"


def _measure(found: Tuned) -> str:
    words = {"mean squared error": "MSE", "mean absolute error": "MAE", "R squared": "R²"}
    name: str = found.search.certificate_.measure
    name = words.get(name, name)
    return "AUC" if name.startswith("area") else name


def _percent(found: Tuned) -> bool:
    """Whether values are shares of rows."""
    return found.task == "classification" and found.search.scoring in (
        None,
        "error",
        "accuracy",
        "balanced_error",
        "balanced_accuracy",
    )


def _value(found: Tuned, value: float) -> str:
    return f"{100 * value:.2f} %" if _percent(found) else f"{value:.4g}"


def _error(found: Tuned) -> str:
    error = found.standard_error
    shown = f"{100 * error:.2f}" if _percent(found) else f"{error:.2g}"
    folds = format_count(found.folds, "fold")
    return (
        f"{shown} (standard error over {folds}); C was chosen by it: expect a little worse on "
        "new rows"
    )


def _verdict(found: Tuned) -> str:
    proof, (low, high) = found.search.certificate_, found.curve.breakpoints[[0, -1]]
    where = f"no C from {figure(low)} to {figure(high)}"
    if proof.n_gammas > 1:
        where += f", with any of the {proof.n_gammas} gammas,"
    if not proof.closed and proof.sound:
        value = _value(found, proof.lower)
        return f"that {where} is better: {_measure(found)} {value} cannot be excluded"
    if not proof.closed:
        return f"that {where} is better: {proof.reason}"
    if found.task == "regression":
        return f"{where} has {_measure(found)} {_side(found)} {proof.lower:.6g}"
    return f"{where} is better"


def _side(found: Tuned) -> str:
    return "above" if found.curve.greater_is_better else "below"


def _grid(found: Tuned) -> str:
    """What a grid would have found."""
    grid, best = found.grid, found.search.best_score_
    if not grid:
        return "of powers of two has no point in this range"
    # scores are greater for better; what is shown is in the words of the curve
    score = grid["score"]
    if found.search.scoring is None and found.task == "classification":
        value = 1 - score
    else:
        value = score if found.curve.greater_is_better else -score
    gamma = f", gamma = {_gammas(grid['gamma'])}" if isinstance(found.search.gamma, list) else ""
    where = f"{_value(found, value)} at C = {figure(grid['C'], 6)}{gamma}"
    same = best - score <= 1e-9 * max(abs(best), 1e-12)
    return f"of {grid['n_points']} powers of two finds {'the same ' if same else ''}{where}"


def _beyond(found: Tuned, first: float, last: float) -> str:
    """What to write where the best C reaches an end of the range."""
    low = 10.0 ** (floor(log10(first)) - (found.interval.low <= first))
    high = 10.0 ** (ceil(log10(last)) + (found.interval.high >= last))
    return f"the best C reaches the end of the range; --c-range {low:g},{high:g} looks farther"


def figure(number: float, digits: int = 3) -> str:
    """A number as people write it: no powers of ten where there are few zeros.

    >>> figure(0.001953), figure(2048.0), figure(2.5e9)
    ('0.00195', '2048', '2.5e+09')
    """
    return f"{number:.0f}" if 10**digits <= number < 1e6 else f"{number:.{digits}g}"


def drawn(found: Tuned, width: int, *, fine: bool) -> list[str]:
    """The curve over log C as columns of characters: of each column the best value in it."""
    ends = found.curve.breakpoints
    edges = np.geomspace(ends[0], ends[-1], width + 1)
    values = best_between(found.curve, edges)
    low, high = float(values.min()), float(values.max())
    levels = (values - low) / (high - low) if high > low else np.full(width, 0.0)
    eighths = np.round(levels * (8 * HEIGHT - 1)).astype(int) + 1
    labels = {HEIGHT - 1: _value(found, high), 0: _value(found, low)}
    lines = []
    for row in reversed(range(HEIGHT)):
        filled = np.clip(eighths - 8 * row, 0, 8)
        marks = "".join((BLOCKS if fine else "    #####")[k] for k in filled)
        lines.append(f"{labels.get(row, ''):>10} {'┤' if fine else '|'}{marks}".rstrip())
    at = int(np.clip(np.searchsorted(edges, found.search.best_C_) - 1, 0, width - 1))
    lines.append(" " * (12 + at) + ("▲" if fine else "^"))
    return [*lines, " " * 12 + scale(edges)]


def best_between(curve: ValidationCurve, edges: Array) -> Array:
    """The best value of a curve between any two neighbouring edges."""
    pick = np.max if curve.greater_is_better else np.min
    low, high = curve.breakpoints[:-1], curve.breakpoints[1:]
    steps = curve.coefficients.shape[1] == 1
    found = []
    for left, right in pairwise(edges):
        # of a piece that an edge cuts, a step has its value; a bent one that at the edge
        inside = (low < right) & (high > left) if steps else (low >= left) & (high <= right)
        ends = curve.values[:0] if steps else curve(np.array([left, right]))
        found.append(pick(np.append(curve.values[inside], ends)))
    return np.array(found)


def scale(edges: Array) -> str:
    """Powers of ten under the columns, as many as have room."""
    low, high, width = edges[0], edges[-1], len(edges) - 1
    line = [" "] * (width + 8)
    free = 0
    for power in range(ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9) + 1):
        words = f"{10.0**power:g}"
        at = round((power - log10(low)) / (log10(high) - log10(low)) * width)
        if at >= free and at + len(words) <= len(line):
            line[at : at + len(words)] = words
            free = at + len(words) + 2
    return "".join(line).rstrip() + "  C"


def write_tuned(path: Path, found: Tuned) -> None:
    """Write the pieces of all curves; JSON also has what was found and what is proved."""
    pieces = _pieces(found.search)
    if path.suffix.lower() == ".csv":
        replace_file(path, pieces.write_csv())
        return
    facts = {**_facts(found), "curve": pieces.to_dicts()}
    replace_file(path, f"{json.dumps(plain(facts), indent=1, allow_nan=False)}\n")


def _pieces(search: Any) -> pl.DataFrame:
    gammas = search.gamma if isinstance(search.gamma, list) else [search.gamma]
    parts = []
    for gamma, curve in zip(gammas, search.curves_, strict=True):
        columns = {
            "C_low": curve.breakpoints[:-1],
            "C_high": curve.breakpoints[1:],
            "best": curve.values,
            "at_C_low": curve.at_breakpoints[:-1],
            "at_C_high": curve.at_breakpoints[1:],
        }
        label = pl.lit("" if search.kernel == "linear" else str(gamma)).alias("gamma")
        parts.append(pl.DataFrame(columns).select(label, pl.all()))
    return pl.concat(parts)


def _facts(found: Tuned) -> dict[str, Any]:
    """Everything that is printed, as numbers."""
    search, proof = found.search, found.search.certificate_
    regression = {"epsilon": search.epsilon} if found.task == "regression" else {}
    return {
        "file": found.name,
        "table": found.table,
        "task": found.task,
        "kernel": search.kernel,
        "folds": found.folds,
        "repeats": found.repeats,
        "scoring": search.scoring,
        **regression,
        "C": found.C,
        "interval": list(found.interval[:2]),
        **{f"best_{name}": value for name, value in search.best_params_.items()},
        "best_score": search.best_score_,
        "standard_error": found.standard_error,
        "within_standard_error": list(found.within_error[:2]),
        "grid": found.grid,
        "certificate": {
            "sentence": repr(proof),
            "proved": proof.closed,
            "measure": proof.measure,
            "value": proof.value,
            "lower": proof.lower,
            "upper": proof.upper,
        },
        "python": found.machine,
    }
