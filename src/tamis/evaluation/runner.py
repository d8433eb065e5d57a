"""Evaluation of several methods over many realizations: :func:`evaluate`."""

import json
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from time import sleep
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from tamis._parallel import parallel_stream
from tamis._version import __version__
from tamis.evaluation.checkpoint import Bookmark
from tamis.evaluation.measurement import run
from tamis.evaluation.metrics import MetricLike, as_metrics
from tamis.evaluation.outcome import Outcome
from tamis.evaluation.protocol import Protocol, identify, name_estimators, warn_if_outside
from tamis.evaluation.realizations import Plan, Realizations
from tamis.evaluation.results import Failure, Finished, Results
from tamis.evaluation.sources import Source, as_sources
from tamis.evaluation.store import Address, Store
from tamis.exceptions import (
    ClusterLost,
    ClusterUnreachable,
    DamagedRow,
    DegenerateData,
    InvalidStore,
    NotCertified,
    NotConverged,
    NothingFound,
    NothingGained,
    PiecesFailed,
    TableAlert,
    TamisError,
    TiedScores,
)

Progress = Callable[[int, int], None]
#: Seconds between two checkpoints of a long selection. An interrupted search loses at most this
#: much work, and writing takes negligible time.
CHECKPOINT_SECONDS = 5.0
#: If a cluster loses its workers before any task is finished, the tasks are sent again. After this
#: number of such attempts in a row, the evaluation fails.
ATTEMPTS = 5
#: Warnings that are suppressed in every task. They do not stop a method from being measured.
IGNORED = (
    ConvergenceWarning,
    NotCertified,
    TiedScores,
    NothingGained,
    NothingFound,
    NotConverged,
    DegenerateData,
    TableAlert,
)


def evaluate(
    methods: BaseEstimator | Sequence[Any] | Mapping[str, Any],
    data: Any,
    plan: Plan | None = None,
    metrics: MetricLike | Sequence[MetricLike] = "error",
    *,
    estimators: BaseEstimator | Sequence[BaseEstimator] | Mapping[str, BaseEstimator] | None = None,
    sizes: Any = "all",
    normalise: bool = True,
    losses: bool = False,
    n_jobs: int | None = None,
    cluster: Any = None,
    store: str | PathLike[str] | Store | None = None,
    progress: Progress | None = None,
) -> Results:
    """Measure methods on held-out rows, over many realizations.

    In every realization, the columns are standardised by the training rows, and each method is
    fitted to these rows. If the method selects columns, each estimator is trained on its first k
    columns and measured on the test rows. If the method makes predictions itself, as a pipeline
    does, these predictions are measured.

    Parameters
    ----------
    methods : estimator, list or dict of estimators
        Any scikit-learn estimators. An array of column indices stands for columns that were
        selected in advance. It causes a warning, because the results are optimistic if the test
        rows were used to select them.
    data : (X, y), Problem, Table, Fresh, Drawn, or a dict or list of them
        The data sets. ``Drawn`` samples rows of a table in row blocks for every realization.
    plan : Realizations, CrossValidation or GivenSplits
        Training and test rows of every realization. The default is ``Realizations()``.
    metrics : str, scorer or list of them, default="error"
        Metrics of predictions: "error", "ber" (balanced error rate), "auc", "brier" (Brier score,
        summed over the classes), "mse", "rmse", "scc" (squared correlation), or any scorer of
        scikit-learn. Metrics of the selected columns: "n_features", "useless" (share of irrelevant
        columns), "found" (share of the relevant columns that are selected), "hit" (whether the
        first columns are the relevant ones). Others: "seconds" (time of the fit), "cv_error"
        (cross-validated error that a tuned classifier reports), "path_events" (number of
        breakpoints of a regularization path), "path_still" (share of its intervals in which no row
        changes its class). ``"train_"`` before the name of a metric of predictions, such as
        ``"train_error"``, measures the training rows.
    estimators : estimator, list or dict of estimators
        Models that are trained on the selected columns.
    sizes : "all", "own", "best", list of int, dict of them, or Steps, default="all"
        Numbers of columns at which a method is measured. "all" means every number. "own" means the
        number that the method selects; if this is 0, the baseline is measured. "best" means the
        number that is best by the first metric on the plan's validation rows or inner folds. A
        dict contains the numbers for each realization. Steps means the subsets after these steps.
    normalise : bool, default=True
        Whether columns are standardised by the mean and standard deviation of the training rows.
    losses : bool, default=False
        Whether the loss on every test row is stored. See :meth:`Results.losses`.
    n_jobs : int, optional
        Number of processes, or of workers with ``cluster="local"``.
    cluster : str or dask.distributed.Client, optional
        Address of a Dask scheduler, or "local".
    store : path or Store, optional
        SQLite file of finished tasks. Repeating a call continues an interrupted evaluation, and
        several processes can share a file.
    progress : callable, optional
        Called as ``progress(n_done, n_tasks)`` after each task.

    Returns
    -------
    Results

    Warns
    -----
    SelectedOutside
        If columns were selected before the rows were split.
    PiecesFailed
        If tasks failed. They are listed in ``failures``, and the next call tries them again.

    Examples
    --------
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from tamis.datasets import load
    >>> plan = Realizations(3, train=0.6)
    >>> found = evaluate(SelectKBest(), load("wine"), plan, estimators=KNeighborsClassifier(),
    ...                  sizes=[2, 5])
    >>> found
    <Results: 1 methods, 1 data sets, 3 tasks>
    >>> [(cell.size, round(cell.mean, 2)) for cell in found.means()]
    [(2.0, 0.13), (5.0, 0.05)]
    """
    asked = name_estimators(methods, "methods")
    trained = {} if estimators is None else name_estimators(estimators, "estimators")
    protocol = Protocol(trained, as_metrics(metrics), sizes, normalise, losses)
    plan = Realizations() if plan is None else plan
    for name, method in asked.items():
        warn_if_outside(name, method)
    with ExitStack() as stack:
        kept = store if isinstance(store, Store) else stack.enter_context(Store(store))
        for what in kept.drop_damaged():
            warnings.warn(
                f"The store {kept.path} is damaged: {what} has a wrong checksum. It is computed "
                "again. Copy the file to a reliable disk.",
                DamagedRow,
                stacklevel=2,
            )
        tasks = list(_tasks(asked, as_sources(data), plan, protocol, durable=store is not None))
        work = _Evaluation(kept, asked, plan, protocol, tasks, n_jobs, cluster, progress)
        return _gather(kept, tasks, work.run(), protocol)


class _Task(NamedTuple):
    """A method on a single realization of a data set."""

    address: Address
    key: str
    method: str
    source: Source
    realization: int


def _tasks(
    methods: Mapping[str, BaseEstimator],
    sources: Mapping[str, Source],
    plan: Plan,
    protocol: Protocol,
    durable: bool,
) -> Iterator[_Task]:
    """Yield all tasks. ``durable`` means that their keys must stay valid in later processes."""
    expressions = {name: identify(method, durable) for name, method in methods.items()}
    measured, ours = protocol.facts(durable), __version__
    for i in range(len(plan)):
        whole = {**measured, "sizes": protocol.at(i).sizes, "plan": plan.label(i)}
        text = json.dumps(whole, sort_keys=True, default=repr)
        for source in sources.values():
            data = source.name, source.fingerprint, i, plan.seed, ours, text
            for name, expression in expressions.items():
                address = Address(expression, *data)
                yield _Task(address, address.key, name, source, i)


class _Evaluation(NamedTuple):
    """The tasks of a single call of :func:`evaluate`, and how to run them."""

    store: Store
    methods: Mapping[str, BaseEstimator]
    plan: Plan
    protocol: Protocol
    tasks: list[_Task]
    n_jobs: int | None
    cluster: Any
    progress: Progress | None

    def run(self) -> list[Failure]:
        """Run the tasks that are not in the store, and return the failures.

        If a cluster loses its workers, unfinished tasks are sent again. Long tasks resume at their
        last checkpoint. Several attempts without a finished task raise an error.
        """
        failures: dict[int, Failure] = {}
        in_vain = 0
        while True:
            before = len(self.store) + len(failures)
            try:
                self._run_waiting(failures)
                return [failures[i] for i in sorted(failures)]
            except ClusterUnreachable:
                raise
            except ClusterLost:
                now = len(self.store) + len(failures)
                in_vain = 0 if now > before else in_vain + 1
                if in_vain >= ATTEMPTS:
                    raise
                sleep(in_vain)  # killed workers may be restarting

    def _run_waiting(self, failures: dict[int, Failure]) -> None:
        """Run the tasks that have no stored result and have not failed."""
        done, total, begun = self.store.keys(), len(self.tasks), self.store.checkpoints()
        progress = self.progress or (lambda n_done, n_tasks: None)
        waiting = [
            i for i, task in enumerate(self.tasks) if task.key not in done and i not in failures
        ]
        # each source is sent to each machine only once
        sources = {id(task.source): task.source for task in self.tasks}
        shared = [*sources.values(), self.plan, self.protocol]
        items = self._items(waiting, begun)
        how = {"n_jobs": self.n_jobs, "cluster": self.cluster, "shared": shared}
        n_done = total - len(waiting)
        progress(n_done, total)
        for i, outcome in parallel_stream(_run, items, **how):
            task = self.tasks[i]
            if isinstance(outcome, str):
                failures[i] = Failure(task.method, task.source.name, task.realization, outcome)
            else:
                self.store.save(task.address, outcome)
                if task.key in begun or outcome.seconds >= CHECKPOINT_SECONDS:
                    self.store.forget_checkpoint(task.key)
            n_done += 1
            progress(n_done, total)

    def _items(self, waiting: list[int], begun: set[str]) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the numbers and arguments of the tasks that no process has finished yet.

        Processes that share a store run the tasks in random order, and check the store before each
        task. So they share the work without communication.
        """
        if self.store.path is not None:
            random.Random().shuffle(waiting)
        for i in waiting:
            address, key, name, source, realization = self.tasks[i]
            if self.store.path is not None and self.store.has(key):
                continue
            bookmark = Bookmark.of(key, CHECKPOINT_SECONDS, self.store, key in begun)
            method = self.methods[name], address.expression
            yield i, (source, self.plan, self.protocol, *method, realization, bookmark)


def _run(*arguments: Any) -> Outcome | str:
    """Run a task, and return its outcome or the error message."""
    try:
        with warnings.catch_warnings():
            for category in IGNORED:
                warnings.simplefilter("ignore", category)
            warnings.filterwarnings("ignore", "No features were selected", UserWarning)
            return run(*arguments)
    except Exception as error:  # a failing method must not stop the others
        return f"{type(error).__name__}: {error}"


def _gather(
    store: Store, tasks: list[_Task], failures: list[Failure], protocol: Protocol
) -> Results:
    outcomes = store.outcomes(task.key for task in tasks)
    failed = {failure[:3] for failure in failures}
    missing = {t.key for t in tasks if (t.method, t.source.name, t.realization) not in failed}
    missing -= outcomes.keys()
    if missing:
        raise InvalidStore(
            f"The store {store.path} lost {len(missing)} finished tasks while others were "
            "computed: their rows are missing or damaged. Run again with a file on a reliable disk."
        )
    if failures:
        method, data, realization, reason = failures[0]
        first = f"The first: {method} on {data}, realization {realization}: {reason}"
        if not outcomes:
            raise TamisError(f"evaluate failed in all tasks. {first}")
        warnings.warn(
            f"{len(failures)} of {len(tasks)} tasks failed; the others are complete. {first}",
            PiecesFailed,
            stacklevel=3,
        )
    # sorted by data and method in the given order, and by realization
    data_names = list(dict.fromkeys(task.source.name for task in tasks))
    methods = list(dict.fromkeys(task.method for task in tasks))
    finished = [
        Finished(t.method, t.source.name, t.realization, outcomes[t.key])
        for t in tasks
        if t.key in outcomes
    ]
    finished.sort(key=lambda t: (data_names.index(t.data), methods.index(t.method), t.realization))
    return Results(tuple(finished), tuple(failures), protocol.metrics)
