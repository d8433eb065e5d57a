"""``tamis tune``: the best C of an SVM, found by following the solution path in every fold."""

import warnings
from itertools import pairwise
from math import ceil, floor, log2, log10
from typing import Any, NamedTuple

import numpy as np
import typer
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.model_selection import (
    GroupKFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tamis._arrays import Array
from tamis._format import format_count, format_interval
from tamis._memory import free_memory
from tamis.cli.app import INTERRUPTED
from tamis.cli.folder import check_output, write_tables
from tamis.cli.options import TuneOptions, split_names
from tamis.cli.progress import ProgressBar
from tamis.cli.table import check_target, row_groups
from tamis.cli.terminal import notify, print_alerts, print_facts, print_warnings, stdout, text
from tamis.exceptions import InvalidParameter, InvalidTarget, NotCertified, PathTooLarge
from tamis.report.tuned_svm import AS_GOOD, TuningResult
from tamis.svm import SVCPathCV, SVRPathCV
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.curves.scores import check_scoring
from tamis.svm.inputs import KERNEL_BYTES, MAX_SAMPLES, RANGE
from tamis.svm.search.regression import error_of
from tamis.table import Table, TableEncoder
from tamis.table.files import read_file
from tamis.table.table import table_of

KERNELS = ("linear", "rbf")
#: Epsilon, as a share of the target's standard deviation. It equals scikit-learn's default for a
#: standardised target.
TUBE = 0.1
#: Sample size suggested for a table that is too large. Tuning on it takes seconds.
SAMPLE = 2000
#: Largest width, and height, of the printed curve in characters. Narrow terminals reduce the width.
WIDTH, HEIGHT = 64, 7
#: Width in characters of the names before the facts.
INDENT = 14
BLOCKS = " ▁▂▃▄▅▆▇█"
#: Scores that are shares of the rows, and are printed as percentages.
SHARES = (None, "error", "accuracy", "balanced_error", "balanced_accuracy")
#: Short names of metrics, for printing.
SHORT = {
    "mean squared error": "MSE", "mean absolute error": "MAE", "R squared": "R²",
    "area under the ROC curve": "AUC",
}  # fmt: skip


class TuningTable(NamedTuple):
    """The rows on which C is tuned."""

    X: Any  # a numeric matrix, or a frame
    y: NDArray[Any]
    groups: NDArray[Any] | None
    plain: bool  # whether all columns are numbers without missing values
    task: str
    summary: str


def run_tune(asked: TuneOptions) -> None:
    """Find the best C. Invalid options raise an error before any work."""
    check_output(asked.output, asked.file)
    if asked.kernel not in KERNELS:
        raise InvalidParameter(
            f"--kernel needs {' or '.join(KERNELS)}, not {asked.kernel!r}. For other kernels use "
            "tamis.svm.SVCPathCV in Python."
        )
    gammas, C_range = _parse_gammas(asked), _parse_range(asked.c_range)
    table, data = _read_table(asked)
    search = _search(asked, data, gammas, C_range)
    if not asked.quiet:
        print_alerts(table.alerts)
    _check_size(asked, data)
    caught = _fit(search, data, asked)
    found = TuningResult(search, asked.folds)
    if asked.output is not None:
        about = {"file": asked.name, "table": data.summary, "task": data.task}
        write_tables(asked.output, lambda: about | found.facts(), found.curve_sheet)
    if not asked.quiet:  # the results state whether C is certified
        print_warnings(one for one in caught if not issubclass(one.category, NotCertified))
    _print_tuned(asked, data, found)
    if asked.output is not None and not asked.quiet:
        notify(f"the curve is in {asked.output}.")


def _parse_gammas(asked: TuneOptions) -> list[float | str]:
    """Parse ``--gamma``, repeated or separated by commas: numbers, "scale" or "auto"."""
    given = split_names(asked.gamma)
    if given and asked.kernel == "linear":
        raise InvalidParameter(
            "--gamma is for --kernel rbf; a linear kernel has none. Leave it out."
        )
    found: list[float | str] = []
    for gamma in given or ["scale"]:
        try:
            found.append(gamma if gamma in ("scale", "auto") else float(gamma))
        except ValueError:
            raise InvalidParameter(
                f"--gamma needs positive numbers, 'scale' or 'auto', not {gamma!r}. Example: "
                "--gamma 0.01,0.1,1."
            ) from None
    return list(dict.fromkeys(found))


def _parse_range(text: str | None) -> tuple[float, float] | None:
    """Parse ``--c-range low,high`` as a pair of numbers.

    >>> _parse_range("0.01,1e3")
    (0.01, 1000.0)
    """
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.replace(":", ",").split(","))
    except ValueError:
        low, high = 1.0, 0.0
    if not 0 < low < high < float("inf"):
        raise InvalidParameter(
            f"--c-range needs the smallest and the largest C, such as 0.01,1000, not {text!r}."
        )
    return low, high


def _read_table(asked: TuneOptions) -> tuple[Table, TuningTable]:
    """Return the table of the file, and the rows on which C is tuned."""
    content = read_file(asked.file, asked.format, **asked.layout)
    check_target(asked.target or content.target, content.frame.columns, content.hint)
    groups, drop = None, asked.drop
    if asked.groups is not None:
        groups, drop = row_groups(content.frame, asked.groups), [*drop, asked.groups]
    table = table_of(content, asked.target, drop, asked.keep, asked.task.value, name=asked.name)
    plain, data = table.is_plain, table.labelled()
    X: Any = data.X.to_numpy() if plain else data.X  # type: ignore[union-attr]
    y, summary = data.y, str(data)
    if asked.sample is not None and asked.sample < len(y):
        rows = _draw_rows(y, asked.sample, asked.seed, table.task)
        X, y, groups = X[rows], y[rows], None if groups is None else groups[rows]
        summary = f"{len(rows)} rows drawn from {data}"
    return table, TuningTable(X, y, groups, plain, data.task, summary)


def _draw_rows(y: NDArray[Any], size: int, seed: int, task: str) -> NDArray[np.intp]:
    """Sample rows, stratified by class."""
    kinds, counts = np.unique(y, return_counts=True)
    shares = task == "classification" and counts.min() > 1 and size >= len(kinds)
    rows, _ = train_test_split(
        np.arange(len(y)), train_size=size, stratify=y if shares else None, random_state=seed
    )
    return np.sort(rows)


def _search(
    asked: TuneOptions,
    data: TuningTable,
    gammas: list[float | str],
    C_range: tuple[float, float] | None,
) -> Any:
    """Return the search for C. It encodes and scales the columns inside its folds."""
    encoder, scaler = TableEncoder(keep=asked.keep), StandardScaler()
    shared = {
        "kernel": asked.kernel,
        "gamma": gammas if len(gammas) > 1 else gammas[0],
        "cv": _folds(asked, data),
        "scoring": asked.scoring,
        "preprocessor": scaler if data.plain else make_pipeline(encoder, scaler),
        "n_jobs": asked.jobs,
        "refit": False,
    }
    if data.task == "classification":
        if asked.epsilon is not None:
            raise InvalidParameter("--epsilon is for a numeric target. Leave it out.")
        check_scoring("tamis tune", asked.scoring, len(np.unique(data.y)))
        return SVCPathCV(C_range=C_range, rule="widest", **shared)
    error_of("tamis tune", asked.scoring)
    spread = float(data.y.std())
    epsilon = float(f"{TUBE * spread:.1e}") if asked.epsilon is None else asked.epsilon
    if C_range is None:  # C depends on the unit of the target
        unit = 2.0 ** round(log2(spread))
        C_range = unit / RANGE[1], unit / RANGE[0]
    return SVRPathCV(C_range=C_range, epsilon=epsilon, **shared)


def _folds(asked: TuneOptions, data: TuningTable) -> Any:
    """Return shuffled folds, stratified by class. Rows of a group stay together."""
    classes, grouped = data.task == "classification", data.groups is not None
    n_units = len(data.y if data.groups is None else np.unique(data.groups))
    if n_units < asked.folds:
        raise InvalidParameter(
            f"--folds {asked.folds} needs at least {asked.folds} {'groups' if grouped else 'rows'},"
            f" got {n_units}. Write from 2 to {n_units}."
        )
    if classes:
        kinds, counts = np.unique(data.y, return_counts=True)
        if counts.min() < 2:
            raise InvalidTarget(
                f"The class {str(kinds[counts.argmin()])!r} has a single row, which cannot be both "
                "trained on and tested. Leave the row out, or join the class with another."
            )
    if not grouped:
        kind = RepeatedStratifiedKFold if classes else RepeatedKFold
        return kind(n_splits=asked.folds, n_repeats=asked.repeats, random_state=asked.seed)
    if asked.repeats > 1:
        raise InvalidParameter("--repeats needs rows without groups: leave out --groups.")
    kind = StratifiedGroupKFold if classes else GroupKFold
    return kind(asked.folds, shuffle=True, random_state=asked.seed)


def _check_size(asked: TuneOptions, data: TuningTable) -> None:
    """Raise an error if the kernel matrices of the rows do not fit into the free memory."""
    share, n = 1 - 1 / asked.folds, len(data.y)
    most = int(MAX_SAMPLES / (2 * share)) if data.task == "regression" else MAX_SAMPLES
    free = free_memory()
    if free is not None:
        each = KERNEL_BYTES * effective_n_jobs(asked.jobs)
        most = min(most, int((free / each) ** 0.5 / share))
    if n > most:
        raise PathTooLarge(
            "tamis tune needs a matrix with one entry for each pair of rows, which fits into "
            f"memory for up to {most} rows, but {asked.name} has {n}. Write --sample "
            f"{min(SAMPLE, most)} to tune on rows drawn at random."
        )


def _fit(search: Any, data: TuningTable, asked: TuneOptions) -> list[warnings.WarningMessage]:
    """Follow the paths, and return the warnings. After Ctrl-C, print the best C so far."""
    bar = ProgressBar("following", "paths", quiet=asked.quiet)
    search.set_callbacks(bar)
    try:
        with warnings.catch_warnings(record=True, action="always") as caught, bar:
            search.fit(data.X, data.y, groups=data.groups)
    finally:
        search.set_callbacks()
    if not bar.stop:
        return list(caught)
    stopped = f"stopped after {bar.main.done} of {format_count(bar.main.total, 'path')}"
    if hasattr(search, "certificate_"):
        proof, gamma = search.certificate_, search.best_params_.get("gamma")
        where = "" if gamma is None else f" with gamma = {gamma}"
        folds = format_count(search.n_splits_, "fold")
        notify(f"{stopped}. Found on {folds}{where}: {proof.found}.")
    else:
        notify(f"{stopped}; no result yet.")
    raise typer.Exit(INTERRUPTED)


# -- printing -------------------------------------------------------------------------------------


def _print_tuned(asked: TuneOptions, data: TuningTable, found: TuningResult) -> None:
    """Print the results, and draw the validation curve."""
    console, search = stdout(), found.search
    gamma = "" if search.kernel == "linear" else f", gamma = {_format_gammas(search.gamma)}"
    tube = f", epsilon = {search.epsilon:.3g}" if found.regression else ""
    times = "" if asked.repeats == 1 else f", {asked.repeats} times"
    prepared = "encoded and standardised" if found.encodes else "standardised"
    console.print(text(f"{asked.name}: {data.summary}", style="bold"))
    how = f"SVM, {search.kernel} kernel{gamma}{tube}; {format_count(found.folds, 'fold')}{times}"
    console.print(text(f"{how}; columns {prepared} on training rows"))
    console.print()
    print_facts(((f"  {word}", line) for word, line in _lines(found)), INDENT)
    console.print()
    if np.ptp(found.curve.values) > 0:
        width = min(WIDTH, max(console.width - 16, 20))
        for line in _draw(found, width, fine=console.encoding.startswith("utf")):
            console.print(text(line), soft_wrap=True)
        console.print()
    console.print("In Python:")
    console.print(text(f"  {found.expression}"), soft_wrap=True)


def _format_gammas(gamma: Any) -> str:
    several = gamma if isinstance(gamma, list) else [gamma]
    return ", ".join(one if isinstance(one, str) else f"{one:.4g}" for one in several)


def _lines(found: TuningResult) -> list[tuple[str, str]]:
    """Return the facts to print, each with its name."""
    search, proof = found.search, found.search.certificate_
    first, last = found.curve.breakpoints[[0, -1]]
    every = found.interval.low <= first and found.interval.high >= last
    low, high = (_format_C(end, 9) for end in found.interval.rounded_ends)
    good = f"within {100 * AS_GOOD:g} % of the best" if found.regression else "as good"
    others = f"; every C from {low} to {high} is {good}"
    if every:
        others = f", or any other: all from {low} to {high} are {good}"
    lines = [("best C", f"{_format_C(found.C, 9)}{others}")]
    if isinstance(search.gamma, list):
        lines.append(("best gamma", _format_gammas(search.best_gamma_)))
    note = (
        f"(standard error over {format_count(found.folds, 'fold')}); slightly optimistic, because "
        "C was chosen by it"
    )
    value = _format_value(found, proof.value, found.standard_error)
    lines.append((_metric(found), f"{value} {note}"))
    lines.append(("proved" if proof.closed else "not proved", _verdict(found)))
    if not every:
        low, high = map(_format_C, found.within_error.rounded_ends)
        lines.append(("within 1 SE", f"C from {low} to {high}"))
    lines.append(("a grid", _grid(found)))
    best = search.best_interval_
    if not every and (best.low <= first or best.high >= last):
        lower = 10.0 ** (floor(log10(first)) - (found.interval.low <= first))
        upper = 10.0 ** (ceil(log10(last)) + (found.interval.high >= last))
        wider = f"write --c-range {lower:g},{upper:g} to search further"
        lines.append(("note", f"the best C reaches the end of the range; {wider}"))
    return lines


def _metric(found: TuningResult) -> str:
    name: str = found.search.certificate_.measure
    return SHORT.get(name, name)


def _format_value(found: TuningResult, value: float, error: float | None = None) -> str:
    if not found.regression and found.search.scoring in SHARES:
        percent = None if error is None else 100 * error
        return format_interval(100 * value, percent, decimals=2, unit=" %")
    return f"{value:.4g}" if error is None else format_interval(value, error)


def _verdict(found: TuningResult) -> str:
    proof, (low, high) = found.search.certificate_, found.curve.breakpoints[[0, -1]]
    where = f"no C from {_format_C(low)} to {_format_C(high)}"
    if proof.n_gammas > 1:
        where += f", with any of the {proof.n_gammas} gammas,"
    if not proof.closed:
        reason = proof.reason
        if proof.sound:
            value = _format_value(found, proof.lower)
            reason = f"{_metric(found)} {value} cannot be excluded"
        return f"that {where} is better: {reason}"
    if found.regression:
        side = "above" if found.curve.greater_is_better else "below"
        return f"{where} has {_metric(found)} {side} {proof.lower:.6g}"
    return f"{where} is better"


def _grid(found: TuningResult) -> str:
    """Return the best result on the grid of powers of two as text."""
    grid, best, search = found.grid, found.search.best_score_, found.search
    if not grid:
        return "of powers of two has no point in this range"
    # a higher score is better, although the metric that is shown may be an error
    score = grid["score"]
    value = score if found.curve.greater_is_better else -score
    if search.scoring is None and not found.regression:
        value = 1 - score
    gamma = f", gamma = {_format_gammas(grid['gamma'])}" if isinstance(search.gamma, list) else ""
    where = f"{_format_value(found, value)} at C = {_format_C(grid['C'], 6)}{gamma}"
    same = best - score <= 1e-9 * max(abs(best), 1e-12)
    return f"of {grid['n_points']} powers of two finds {'the same ' if same else ''}{where}"


def _format_C(number: float, digits: int = 3) -> str:
    """Format a number, without an exponent if it is below a million.

    >>> _format_C(0.001953), _format_C(2048.0), _format_C(2.5e9)
    ('0.00195', '2048', '2.5e+09')
    """
    return f"{number:.0f}" if 10**digits <= number < 1e6 else f"{number:.{digits}g}"


def _draw(found: TuningResult, width: int, *, fine: bool) -> list[str]:
    """Draw the curve over log C with characters. Each character column shows its best value."""
    ends = found.curve.breakpoints
    edges = np.geomspace(ends[0], ends[-1], width + 1)
    values = best_between(found.curve, edges)
    low, high = float(values.min()), float(values.max())
    levels = (values - low) / (high - low) if high > low else np.zeros(width)
    eighths = np.round(levels * (8 * HEIGHT - 1)).astype(int) + 1
    labels = {HEIGHT - 1: _format_value(found, high), 0: _format_value(found, low)}
    lines = []
    for row in reversed(range(HEIGHT)):
        filled = np.clip(eighths - 8 * row, 0, 8)
        marks = "".join((BLOCKS if fine else "    #####")[k] for k in filled)
        lines.append(f"{labels.get(row, ''):>10} {'┤' if fine else '|'}{marks}".rstrip())
    at = int(np.clip(np.searchsorted(edges, found.search.best_C_) - 1, 0, width - 1))
    lines.append(" " * (12 + at) + ("▲" if fine else "^"))
    return [*lines, " " * 12 + axis_text(edges)]


def best_between(curve: ValidationCurve, edges: Array) -> Array:
    """Return the best value of a curve between each pair of neighbouring edges."""
    pick = np.max if curve.greater_is_better else np.min
    low, high = curve.breakpoints[:-1], curve.breakpoints[1:]
    steps = curve.coefficients.shape[1] == 1
    found = []
    for left, right in pairwise(edges):
        # a constant piece counts if it overlaps the interval. Other pieces count if they lie
        # inside, and the curve is also evaluated at both edges
        inside = (low < right) & (high > left) if steps else (low >= left) & (high <= right)
        ends = curve.values[:0] if steps else curve(np.array([left, right]))
        found.append(pick(np.append(curve.values[inside], ends)))
    return np.array(found)


def axis_text(edges: Array) -> str:
    """Return the axis labels: as many powers of ten as fit below the columns."""
    low, high, width = edges[0], edges[-1], len(edges) - 1
    line = [" "] * (width + 8)
    free = 0
    for power in range(ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9) + 1):
        label = f"{10.0**power:g}"
        at = round((power - log10(low)) / (log10(high) - log10(low)) * width)
        if at >= free and at + len(label) <= len(line):
            line[at : at + len(label)] = label
            free = at + len(label) + 2
    return "".join(line).rstrip() + "  C"
