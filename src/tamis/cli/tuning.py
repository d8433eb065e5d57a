"""What ``tamis tune`` does: read a table, follow the paths of its folds, say what is best."""

import warnings
from math import log2
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
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

from tamis._format import format_count, format_names
from tamis.cli.counting import Counter, counted_bar
from tamis.cli.failing import INTERRUPTED
from tamis.cli.output import check_output
from tamis.cli.printing import say, say_alerts, say_warnings
from tamis.cli.running import stopping
from tamis.cli.tuned import Tuned, print_tuned, write_tuned
from tamis.contract.cost import LONG, free_memory, spoken_time
from tamis.exceptions import (
    InvalidParameter,
    InvalidTable,
    InvalidTarget,
    NotCertified,
    PathTooLarge,
)
from tamis.svm import SVCPathCV, SVRPathCV
from tamis.svm.curves.scores import check_scoring
from tamis.svm.inputs import MAX_SAMPLES, RANGE, paths_cost
from tamis.svm.search.regression import error_of
from tamis.table import Table, TableEncoder
from tamis.table.files import read_file
from tamis.table.sources import STDIN
from tamis.table.table import table_of
from tamis.table.target import check_column

KERNELS = ("linear", "rbf")
#: Share of the standard deviation of a target that is the tube, where none is given: that of
#: scikit-learn for a standardised one.
TUBE = 0.1
#: Seconds that a sample proposed in place of long work may take.
SHORT = 10


class TuneRequest(NamedTuple):
    """The arguments of the command."""

    file: Path
    target: str | None
    kernel: str
    gamma: tuple[str, ...]
    C_range: str | None
    folds: int
    repeats: int
    seed: int
    n_jobs: int | None
    scoring: str | None
    epsilon: float | None
    sample: int | None
    groups: str | None
    output: Path | None
    quiet: bool
    drop: tuple[str, ...]
    keep: tuple[str, ...]
    task: str
    format: str | None
    header: bool

    @property
    def name(self) -> str:
        """The file as it is spoken of."""
        return "standard input" if str(self.file) == STDIN else self.file.name


class TuningTable(NamedTuple):
    """Rows to tune on, and what to say of them."""

    X: Any  # a matrix of numbers, or a frame
    y: NDArray[Any]
    groups: NDArray[Any] | None
    plain: bool  # whether the columns are numbers without gaps
    task: str
    spoken: str


def run_tune(asked: TuneRequest) -> None:
    """Find the best C as asked; what cannot be done is refused before any work."""
    check_output(asked.output, asked.file)
    if asked.kernel not in KERNELS:
        raise InvalidParameter(
            f"--kernel needs {' or '.join(KERNELS)}, not {asked.kernel!r}. For others there is "
            "tamis.svm.SVCPathCV in Python."
        )
    gammas, C_range = gammas_in(asked.gamma, asked.kernel), range_in(asked.C_range)
    table, data = _data(asked)
    search = search_for(asked, data, gammas, C_range)
    if not asked.quiet:
        say_alerts(table.alerts)
    _check_cost(asked, data, len(gammas))
    caught = _fitted(search, data, asked)
    found = Tuned(asked.name, data.spoken, search, data.task, asked.folds, asked.repeats)
    if asked.output is not None:
        write_tuned(asked.output, found)
    if not asked.quiet:  # what is not proved has its line
        say_warnings(one for one in caught if not issubclass(one.category, NotCertified))
    print_tuned(found)
    if asked.output is not None and not asked.quiet:
        say(f"the curve is in {asked.output}.")


def gammas_in(given: tuple[str, ...], kernel: str) -> list[float | str]:
    """``--gamma``, given again or with commas, as numbers and words.

    >>> gammas_in(("scale, 0.1", "1"), "rbf")
    ['scale', 0.1, 1.0]
    """
    words = [word.strip() for text in given for word in text.split(",") if word.strip()]
    if words and kernel == "linear":
        raise InvalidParameter(
            "--gamma is for --kernel rbf; a linear kernel has none. Leave it out."
        )
    found: list[float | str] = []
    for word in words or ["scale"]:
        try:
            found.append(word if word in ("scale", "auto") else float(word))
        except ValueError:
            raise InvalidParameter(
                f"--gamma needs numbers above 0, scale or auto, such as 0.01,0.1,1, not {word!r}."
            ) from None
    return list(dict.fromkeys(found))


def range_in(text: str | None) -> tuple[float, float] | None:
    """``--c-range low,high`` as numbers.

    >>> range_in("0.01,1e3")
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


def _data(asked: TuneRequest) -> tuple[Table, TuningTable]:
    """The file looked through, and the rows of it that are used."""
    content = read_file(asked.file, asked.format, header=asked.header)
    if asked.target is None and content.target is None:
        raise InvalidTable(
            "Which column is the target? Write --target with one of "
            f"{format_names(content.frame.columns[::-1])}."
        )
    groups, drop = None, asked.drop
    if asked.groups is not None:
        check_column(asked.groups, content.frame.columns)
        groups = content.frame.get_column(asked.groups).cast(pl.String).fill_null("").to_numpy()
        drop = (*drop, asked.groups)
    table = table_of(content, asked.target, drop, asked.keep, asked.task, name=asked.name)
    plain, data = table.is_plain, table.labelled()
    X: Any = data.X
    rows = sampled(data.y, asked.sample, asked.seed, table.task)
    if rows is not None:
        X, y = X[rows], data.y[rows]
        groups = None if groups is None else groups[rows]
    spoken = str(data) if rows is None else f"{len(rows)} rows drawn of {data}"
    X, y = X.to_numpy() if plain else X, data.y if rows is None else y
    return table, TuningTable(X, y, groups, plain, data.task, spoken)


def sampled(y: NDArray[Any], size: int | None, seed: int, task: str) -> NDArray[np.intp] | None:
    """Rows that are drawn, classes in equal shares; None where all are used."""
    if size is None or size >= len(y):
        return None
    kinds, counts = np.unique(y, return_counts=True)
    shares = task == "classification" and counts.min() > 1 and size >= len(kinds)
    rows, _ = train_test_split(
        np.arange(len(y)), train_size=size, stratify=y if shares else None, random_state=seed
    )
    return np.sort(rows)


def search_for(
    asked: TuneRequest,
    data: TuningTable,
    gammas: list[float | str],
    C_range: tuple[float, float] | None,
) -> Any:
    """The search, with everything that learns inside its folds."""
    encoder, scaler = TableEncoder(keep=asked.keep), StandardScaler()
    shared = {
        "kernel": asked.kernel,
        "gamma": gammas if len(gammas) > 1 else gammas[0],
        "cv": _folds(asked, data),
        "scoring": asked.scoring,
        "preprocessor": scaler if data.plain else make_pipeline(encoder, scaler),
        "n_jobs": asked.n_jobs,
        "refit": False,
    }
    if data.task == "classification":
        if asked.epsilon is not None:
            raise InvalidParameter("--epsilon is for a target of numbers. Leave it out.")
        check_scoring("tamis tune", asked.scoring, len(np.unique(data.y)))
        return SVCPathCV(C_range=C_range, rule="widest", **shared)
    error_of("tamis tune", asked.scoring)
    spread = float(data.y.std())
    epsilon = float(f"{TUBE * spread:.1e}") if asked.epsilon is None else asked.epsilon
    if C_range is None:  # what C weighs are errors in units of the target
        unit = 2.0 ** round(log2(spread))
        C_range = unit / RANGE[1], unit / RANGE[0]
    return SVRPathCV(C_range=C_range, epsilon=epsilon, **shared)


def _folds(asked: TuneRequest, data: TuningTable) -> Any:
    """Shuffled folds, classes in equal shares; rows of a group together."""
    classes, n_units = data.task == "classification", len(data.y)
    if data.groups is not None:
        n_units = len(np.unique(data.groups))
    if n_units < asked.folds:
        what = "row" if data.groups is None else "group"
        raise InvalidParameter(
            f"--folds {asked.folds} needs as many {what}s; there are {n_units}. Write from "
            f"2 to {n_units}."
        )
    if classes:
        kinds, counts = np.unique(data.y, return_counts=True)
        if counts.min() < 2:
            raise InvalidTarget(
                f"The class {str(kinds[counts.argmin()])!r} has a single row, which cannot be both "
                "trained on and tested. Leave the row out, or join the class with another."
            )
    if data.groups is None:
        kind = RepeatedStratifiedKFold if classes else RepeatedKFold
        return kind(n_splits=asked.folds, n_repeats=asked.repeats, random_state=asked.seed)
    if asked.repeats > 1:
        raise InvalidParameter("--repeats needs rows that may be dealt anew: leave out --groups.")
    together = StratifiedGroupKFold if classes else GroupKFold
    return together(asked.folds, shuffle=True, random_state=asked.seed)


def _check_cost(asked: TuneRequest, data: TuningTable, n_gammas: int) -> None:
    """Refuse what is too large, and say what takes long, with the way out."""
    n, most = len(data.y), _most_rows(asked, data.task)
    short = _sample_for(SHORT, asked, data, n_gammas)
    if n > most:
        raise PathTooLarge(
            f"tamis tune keeps a matrix of rows by rows, which is possible up to {most} rows here; "
            f"{asked.name} has {n}. Write --sample {min(short, most)} to tune on so many, drawn at "
            "random."
        )
    seconds = _seconds(n, asked, data, n_gammas)
    if seconds > LONG and not asked.quiet:
        say(
            f"note: {format_count(n_gammas * asked.folds * asked.repeats, 'path')} of {n} rows "
            f"will take about {spoken_time(seconds)}; --sample {short} takes seconds, and --jobs "
            "shares the work."
        )


def _most_rows(asked: TuneRequest, task: str) -> int:
    """As many rows as paths can be followed of, in the memory that is free."""
    trained = 1 - 1 / asked.folds  # share of the rows
    most = int(MAX_SAMPLES / (2 * trained)) if task == "regression" else MAX_SAMPLES
    free, n_jobs = free_memory(), effective_n_jobs(asked.n_jobs)
    if free is None:
        return most
    each = paths_cost(asked.kernel, [1]).bytes * n_jobs
    return min(most, int((free / each) ** 0.5 / trained))


def _seconds(n: int, asked: TuneRequest, data: TuningTable, n_gammas: int) -> float:
    """About how long so many rows would take on one core."""
    share, regression = 1 - 1 / asked.folds, data.task == "regression"
    sizes = [n]
    if not regression:  # one machine for each pair of classes
        parts = np.unique(data.y, return_counts=True)[1] / len(data.y)
        sizes = [int(n * (a + b)) for i, a in enumerate(parts) for b in parts[:i]]
    once = paths_cost(asked.kernel, [int(share * size) for size in sizes], regression=regression)
    return once.operations * 1e-9 * n_gammas * asked.folds * asked.repeats


def _sample_for(seconds: float, asked: TuneRequest, data: TuningTable, n_gammas: int) -> int:
    """A round number of rows that take so long."""
    n = len(data.y)
    while n > 200 and _seconds(n, asked, data, n_gammas) > seconds:
        n = int(n * 0.9)
    return n // 100 * 100 or n


class PathCount:
    """Callback that tells a bar how many paths are followed."""

    def __init__(self, bar: Counter):
        self.bar, self.done = bar, 0

    def setup(self, estimator: Any, context: Any) -> None:
        """Show that nothing is done yet."""
        self.total = context.max_subtasks
        self.bar(0, self.total)

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        """Nothing: a path is counted when it is done."""

    def on_fit_task_end(self, estimator: Any, context: Any) -> None:
        """Count a path."""
        if context.parent is not None:
            self.done += 1
            self.bar(self.done, self.total)

    def teardown(self, estimator: Any, context: Any) -> None:
        """Nothing: the bar goes with its context."""


def _fitted(search: Any, data: TuningTable, asked: TuneRequest) -> list[warnings.WarningMessage]:
    """Follow the paths with a bar; after Ctrl-C say what is known. Returns the warnings."""
    with counted_bar("following", "paths", quiet=asked.quiet) as bar:
        search.set_callbacks(PathCount(bar))
        try:
            with stopping(bar), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                search.fit(data.X, data.y, groups=data.groups)
                return list(caught)
        except KeyboardInterrupt:
            bar.stop = True
        except Exception:
            if not bar.stop:  # compiled code may turn an interrupt into an error of its own
                raise
        finally:
            search.set_callbacks()
    _leave(search, bar)
    raise typer.Exit(INTERRUPTED)


def _leave(search: Any, bar: Counter) -> None:
    """Say what was known when it was stopped."""
    stopped = f"stopped after {bar.done} of {format_count(bar.total, 'path')}"
    if not hasattr(search, "certificate_"):
        say(f"{stopped}; nothing is known yet.")
        return
    proof, gamma = search.certificate_, search.best_params_.get("gamma")
    where = "" if gamma is None else f" with gamma = {gamma}"
    say(f"{stopped}. Known from {format_count(search.n_splits_, 'fold')}{where}: {proof.found}.")
