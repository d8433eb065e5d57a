"""Cells of the benchmark: a method on a split of a table, measured by ``evaluate``.

There are three kinds of cells. "error" measures the judges on the test rows of a split. "noise"
appends permuted columns to the table, and measures how many of them are selected. "bootstrap"
selects on five bootstrap samples of the training rows, and measures stability.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._seeds import seed_of, stream
from tamis.datasets.problem import Problem
from tamis.evaluation import GivenSplits, Realizations, Results, Steps, evaluate
from tamis.exceptions import InvalidParameter, InvalidTable, PiecesFailed, TamisError
from tamis.validation.stability import stability
from tamis_book.benchmark.contestant import CAP, MethodSelector
from tamis_book.benchmark.judges import JUDGES, judges_of, metrics_of
from tamis_book.benchmark.methods import Method, Select
from tamis_book.benchmark.result_files import RESULTS, CellResult, TableResults, open_results
from tamis_book.benchmark.tables import (
    BenchmarkTable,
    add_noise,
    load_table,
    prepare,
    sizes_of,
    table_names,
)

SEED = 0
N_SPLITS, N_BOOTSTRAPS = 5, 5
TRAIN = 2 / 3
#: Order of the cells: the first split of every table, then validity and stability, then the others.
STAGES = [("error", 0), ("noise", 0), ("bootstrap", 0)]
STAGES += [(kind, split) for split in range(1, N_SPLITS) for kind in ("error", "noise")]
#: Cells are computed in ascending order of a cost: the size of the table, multiplied by this factor
#: for slow methods, and doubled for each stage.
SLOWNESS = 50
GROUPS = ("baseline", "filter", "model", "slow", "auto")


class Task(NamedTuple):
    """A cell to compute."""

    kind: str
    split: int
    table: str
    method: str

    @property
    def key(self) -> str:
        """Key of the cell in the file of its table."""
        return f"{self.kind}/{self.split}/{self.method}"


def order_tasks(tables: Mapping[str, int], methods: Mapping[str, Method]) -> list[Task]:
    """Return all cells, those that are expected to be short first.

    ``tables`` has the number of entries of each table.
    """
    tasks = [Task(*stage, table, name) for stage in STAGES for table in tables for name in methods]

    def cost(task: Task) -> tuple[float, str, int]:
        stage = STAGES.index((task.kind, task.split))
        group = methods[task.method].group
        slowness = SLOWNESS if group in ("slow", "auto") else 1
        return tables[task.table] * slowness * 2.0**stage, task.table, GROUPS.index(group)

    return sorted(tasks, key=cost)


class Prepared(NamedTuple):
    """A split of a table as numbers, with the relevant columns."""

    name: str
    X: Array
    y: NDArray[Any]
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    n_columns: int


def prepare_split(table: BenchmarkTable, kind: str, split: int) -> Prepared:
    """Return a split of a table as numbers. For the kind "noise", permuted columns are appended."""
    plan = Realizations(N_SPLITS, train=TRAIN, stratify=table.is_classes, seed=SEED)
    rows = plan.split(table.y, table.name, split)
    whole = add_noise(table, seed_of(SEED, "noise", split)) if kind == "noise" else table
    X = prepare(whole, rows.train)
    name = f"{table.name} {kind} {split}"
    return Prepared(name, X, table.y, rows.train, rows.test, table.X.shape[1])


def run_cell(
    data: Prepared, kind: str, name: str, select: Select, *, cap: float = CAP
) -> CellResult:
    """Return the result of a method on a split. A failure of the method is a result.

    Parameters
    ----------
    data : Prepared
    kind : {"error", "noise", "bootstrap"}
    name : str
        Name of the method, from which its seed is derived.
    select : callable or selector
    cap : float
        Greatest number of processor seconds of a selection.
    """
    sizes = sizes_of(data.n_columns)
    contestant = MethodSelector(select, tuple(sizes), cap, seed_of(SEED, name, data.name))
    plan = GivenSplits([data.train], [data.test], seed=SEED)
    if kind == "bootstrap":
        plan = _bootstraps(data)
    measured = judges_of(data.y) if kind == "error" else None
    seconds = -process_time()
    try:
        with warnings.catch_warnings(action="ignore"):
            results = evaluate(
                {name: contestant},
                {data.name: _problem(data)},
                plan,
                metrics_of(data.y) if kind == "error" else ["n_features", "useless"],
                estimators=measured,
                sizes=Steps(range(1, len(sizes) + 2)),  # the last is the method's own
            )
    except TamisError:
        if MethodSelector.error is None:  # a judge failed
            raise
        reason = f"{type(MethodSelector.error).__name__}: {MethodSelector.error}"
        return CellResult(failure=reason[:200], seconds=MethodSelector.seconds)
    seconds += process_time()
    if results.failures:  # on some of the bootstrap samples
        return CellResult(failure=results.failures[0].reason[:200], seconds=seconds)
    if kind == "error":
        return _judged(results, MethodSelector.seconds)
    return CellResult(seconds=seconds, values=_of_columns(results, kind, data))


def _problem(data: Prepared) -> Problem:
    columns = np.arange(data.n_columns)
    return Problem(data.X, data.y, columns, tuple((j,) for j in columns.tolist()))


def _bootstraps(data: Prepared) -> GivenSplits:
    """Return bootstrap samples of the training rows. Every class keeps at least one row."""
    trains, tests = [], []
    for number in range(N_BOOTSTRAPS):
        rng = stream(SEED, "bootstrap", data.name, number)
        rows = rng.choice(data.train, size=len(data.train))
        if data.y.dtype.kind == "i":
            classes, first = np.unique(data.y[data.train], return_index=True)
            lost = ~np.isin(classes, data.y[rows])
            rows = np.concatenate([rows, data.train[first[lost]]])
        trains.append(np.sort(rows))
        tests.append(data.test)
    return GivenSplits(trains, tests, seed=SEED)


def _judged(results: Results, seconds: float) -> CellResult:
    """Return the scores of all judges at every step, and the number of columns at each step."""
    names = list(results.metrics)
    steps: dict[str, dict[tuple[str, str], float]] = {}
    sizes: dict[str, int] = {}
    for row in results.rows():
        steps.setdefault(row.rule, {})[row.estimator, row.metric] = round(row.value, 4)
        sizes[row.rule] = row.size
    judges = [name for name in JUDGES if any(name == key[0] for key in next(iter(steps.values())))]
    kept = list(steps)[: None if MethodSelector.chooses else -1]
    scores = {
        judge: [[steps[rule][judge, name] for name in names] for rule in kept] for judge in judges
    }
    return CellResult(seconds=seconds, sizes=[sizes[rule] for rule in kept], scores=scores)


def _of_columns(results: Results, kind: str, data: Prepared) -> list[float | None]:
    """Return a value per step: the share of noise columns not selected, or the stability."""
    outcomes = [task.outcome for task in results.tasks]
    sizes = sizes_of(data.n_columns)
    end = None if MethodSelector.chooses else -1
    if kind == "bootstrap":
        return [_stability(results, data, size) for size in (*sizes, None)][:end]
    n_noise = data.X.shape[1] - data.n_columns
    shares: dict[str, dict[str, float]] = {}
    for score in outcomes[0].scores:
        shares.setdefault(score.rule, {})[score.metric] = score.value
    kept = [found["useless"] * found["n_features"] for found in shares.values()][:end]
    return [round(1 - number / n_noise, 4) for number in kept]


def _stability(results: Results, data: Prepared, size: int | None) -> float | None:
    """Return Nogueira's index, or None if it is undefined. Size None is the method's own."""
    try:
        found = stability(results.supports(results.methods[0], data.name, size))
    except InvalidParameter:  # all or no columns are selected
        return None
    return round(float(found.nogueira), 4)


Report = Callable[[Task, CellResult], None]


def run(
    methods: Mapping[str, Method],
    tables: Sequence[str] | None = None,
    folder: str | os.PathLike[str] = RESULTS,
    *,
    kinds: Sequence[str] = ("error", "noise", "bootstrap"),
    splits: int = N_SPLITS,
    cap: float = CAP,
    report: Report | None = None,
) -> list[TableResults]:
    """Compute the cells that have no result yet, and save them.

    An interrupted run continues when it is repeated.

    Parameters
    ----------
    methods : dict of str to Method
        The methods by name.
    tables : sequence of str, optional
        Names of tables. The default is all tables of the benchmark that can be loaded.
    folder : path
        Folder of the result files.
    kinds : sequence of {"error", "noise", "bootstrap"}
        Kinds of cells.
    splits : int, default=5
        Number of splits.
    cap : float, default=300
        Greatest number of processor seconds of a selection. A method that reaches it on a table
        fails on all splits of this table.
    report : callable, optional
        Called as ``report(task, cell)`` after each cell.

    Returns
    -------
    list of TableResults
    """
    load = lru_cache(maxsize=4)(load_table)
    opened: dict[str, TableResults] = {}
    for name in table_names() if tables is None else tables:
        try:
            opened[name] = open_results(name, load(name).facts(), Path(folder))
        except InvalidTable as error:
            if tables is not None:
                raise
            warnings.warn(f"{name} is left out: {error}", PiecesFailed, stacklevel=2)
    entries = {name: one.facts["rows"] * one.facts["columns"] for name, one in opened.items()}
    tasks = [
        task
        for task in order_tasks(entries, methods)
        if task.kind in kinds
        and task.split < splits
        and _applies(methods[task.method], opened[task.table])
    ]
    try:
        _run_tasks(tasks, methods, opened, load, cap, report or (lambda task, cell: None))
    finally:
        for one in opened.values():
            if one.cells:
                one.save()
    return list(opened.values())


def _run_tasks(
    tasks: Sequence[Task],
    methods: Mapping[str, Method],
    opened: Mapping[str, TableResults],
    load: Callable[[str], BenchmarkTable],
    cap: float,
    report: Report,
) -> None:
    data: Prepared | None = None
    warm: set[str] = set()
    last: TableResults | None = None
    for task in tasks:
        kept, method = opened[task.table], methods[task.method]
        if kept.is_done(task.key, cap):
            continue
        if last is not None and last is not kept:
            last.save()
        last = kept
        cell = kept.capped(task.method, cap)
        if cell is None:
            if data is None or data.name != f"{task.table} {task.kind} {task.split}":
                data = prepare_split(load(task.table), task.kind, task.split)
            if task.method not in warm:
                _warm_up(method, data.y)
                warm.add(task.method)
            cell = run_cell(data, task.kind, task.method, method.select, cap=cap)
        kept.add(task.key, cell)
        report(task, cell)


def _applies(method: Method, kept: TableResults) -> bool:
    kind = "classification" if kept.facts["classes"] else "regression"
    return kind in method.targets


def _warm_up(method: Method, y: NDArray[Any]) -> None:
    """Run a method on a small table, so that imports and compilation are not measured."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8))
    target = (X[:, 0] > 0).astype(int) if y.dtype.kind == "i" else X[:, 0]
    with warnings.catch_warnings(action="ignore"), suppress(Exception):  # the cell reports an error
        MethodSelector(method.select, (1, 2), random_state=0).fit(X, target)
