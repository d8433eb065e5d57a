"""Many realizations, many methods, one call: :func:`evaluate`."""

import json
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from time import sleep
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from tamis._parallel import parallel_stream
from tamis._version import __version__
from tamis.evaluation.checkpoint import Bookmark
from tamis.evaluation.measurement import run
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
#: Seconds between two writes of how far a long selection has come: a search that is killed loses no
#: more, and one of minutes spends no time that could be noticed on writing.
CHECKPOINT_SECONDS = 5.0
#: How often a cluster that lost its workers is tried again without a task getting done.
ATTEMPTS = 5
#: Warnings that are not repeated for every task: an estimator that stops early or is unsure, and a
#: method that keeps no column, are measured as they are.
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
    methods: Any,
    data: Any,
    plan: Plan | None = None,
    metrics: Any = "error",
    *,
    estimators: Any = None,
    sizes: Any = "all",
    normalise: bool = True,
    losses: bool = False,
    n_jobs: int | None = None,
    cluster: Any = None,
    store: Any = None,
    progress: Progress | None = None,
) -> Results:
    """Measure methods on rows they have not seen, over many realizations.

    In every realization each method is fitted on the training part alone, columns scaled by its
    means and deviations. If the method chooses columns, each estimator is trained on the first k of
    them and measured on the test part; a method that predicts (a pipeline, say) is measured itself.

    Parameters
    ----------
    methods : estimator, list or dict of estimators
        Any scikit-learn estimators. An array of column numbers stands for a selection made
        elsewhere, and is warned of.
    data : (X, y), Problem, Table, Fresh, Drawn, or a dict or list of them
        Of a table in blocks of rows, ``Drawn`` takes some rows in every realization.
    plan : Realizations, CrossValidation or GivenSplits
        Which rows train and which test; by default ``Realizations()``.
    metrics : str, scorer or list of them
        "error", "ber" (balanced error rate), "auc", "brier" (squared loss of the probabilities,
        summed over the classes), "mse", "rmse", "scc" (squared correlation); of a tuned
        classifier "cv_error" (what its own cross-validation found); of a regularization path
        "path_events" (how often it changes its course) and "path_still" (in which share of its
        intervals no row changes its class); of the chosen columns
        "n_features", "useless" (share of columns known to be irrelevant), "found" (share of the
        relevant ones that are among them), "hit" (whether the first columns are the relevant
        ones); "seconds" (that the method took to fit); any scorer of scikit-learn.
    estimators : estimator, list or dict of estimators
        Trained on the chosen columns.
    sizes : "all", "own", "best", list of int, dict of them, or Steps
        Numbers of columns at which is measured: all, what the method kept (if that is none, the
        most frequent class or the mean stands for the estimators), the best by the first metric on
        the plan's validation part or inner folds, those given (for all realizations, or by the
        number of each), or those held after some steps.
    normalise : bool, default=True
        Whether columns are scaled to mean 0 and standard deviation 1 of the training part.
    losses : bool, default=False
        Whether the loss of every test row is kept beside the metrics, see :meth:`Results.losses`.
    n_jobs : int, optional
        Number of processes; with ``cluster="local"`` the number of workers.
    cluster : str or dask.distributed.Client, optional
        Address of a Dask scheduler, or "local".
    store : path or Store, optional
        SQLite file that keeps every finished task. The same call continues where an earlier one
        was stopped, and several processes may work on one file.
    progress : callable, optional
        Called as ``progress(n_done, n_tasks)`` when a task is done.

    Returns
    -------
    Results

    Warns
    -----
    SelectedOutside
        A selection was not made inside the training parts.
    PiecesFailed
        Some tasks could not be run; they are in ``failures`` and are tried again by the next call.

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
    protocol = Protocol.of(estimators, metrics, sizes, normalise, losses)
    plan = Realizations() if plan is None else plan
    for name, method in asked.items():
        warn_if_outside(name, method)
    with ExitStack() as stack:
        kept = store if isinstance(store, Store) else stack.enter_context(Store(store))
        for what in kept.drop_damaged():
            warnings.warn(
                f"The store {kept.path} is damaged: {what}, is not as it was written. It is "
                "computed again. Copy the file to a disk that can be trusted.",
                DamagedRow,
                stacklevel=2,
            )
        tasks = list(_tasks(asked, as_sources(data), plan, protocol, durable=store is not None))
        work = _Evaluation(kept, asked, plan, protocol, tasks)
        failures = work.run(n_jobs, cluster, progress)
        return _gather(kept, tasks, failures, protocol)


class _Task(NamedTuple):
    """One method on one realization of one data set, before it is done."""

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
    """All tasks; ``durable`` where their keys must outlive this process."""
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
    """The tasks of one call, on their way into a store."""

    store: Store
    methods: Mapping[str, BaseEstimator]
    plan: Plan
    protocol: Protocol
    tasks: list[_Task]

    def run(self, n_jobs: int | None, cluster: Any, progress: Progress | None) -> list[Failure]:
        """Run what is not in the store yet, and return what failed.

        A cluster that loses workers together with what they were sent is given it again, a few
        times over where no task gets done in between: long ones go on from their last step.
        """
        failures: dict[int, Failure] = {}
        in_vain = 0
        while True:
            before = len(self.store) + len(failures)
            try:
                self._run_waiting(failures, n_jobs, cluster, progress)
                return [failures[i] for i in sorted(failures)]
            except ClusterUnreachable:
                raise
            except ClusterLost:
                now = len(self.store) + len(failures)
                in_vain = 0 if now > before else in_vain + 1
                if in_vain >= ATTEMPTS:
                    raise
                sleep(in_vain)  # workers that were killed may be on their way back

    def _run_waiting(
        self,
        failures: dict[int, Failure],
        n_jobs: int | None,
        cluster: Any,
        progress: Progress | None,
    ) -> None:
        """Run the tasks that are neither in the store nor failed."""
        done, total, begun = self.store.keys(), len(self.tasks), self.store.checkpoints()
        waiting = [
            i for i, task in enumerate(self.tasks) if task.key not in done and i not in failures
        ]
        # sent to each machine once
        sources = {id(task.source): task.source for task in self.tasks}
        shared = [*sources.values(), self.plan, self.protocol]
        items = self._items(waiting, begun)
        n_done = total - len(waiting)
        if progress is not None:
            progress(n_done, total)
        for i, answer in parallel_stream(
            _answer, items, n_jobs=n_jobs, cluster=cluster, shared=shared
        ):
            task = self.tasks[i]
            if isinstance(answer, str):
                failures[i] = Failure(task.method, task.source.name, task.realization, answer)
            else:
                self.store.save(task.address, answer)
                if task.key in begun or answer.seconds >= CHECKPOINT_SECONDS:
                    self.store.forget_checkpoint(task.key)
            n_done += 1
            if progress is not None:
                progress(n_done, total)

    def _items(self, waiting: list[int], begun: set[str]) -> Iterator[tuple[Any, ...]]:
        """Arguments of the tasks that nobody has finished yet.

        Two processes on one store work in different orders and look before each task, so that
        they share the work without having to communicate.
        """
        if self.store.path is not None:
            random.Random().shuffle(waiting)
        for i in waiting:
            address, key, name, source, realization = self.tasks[i]
            if self.store.path is not None and self.store.has(key):
                continue
            bookmark = Bookmark.of(key, CHECKPOINT_SECONDS, self.store, key in begun)
            method = self.methods[name], address.expression
            yield i, source, self.plan, self.protocol, *method, realization, bookmark


def _answer(i: int, *arguments: Any) -> tuple[int, Outcome | str]:
    """Number of a task, and its outcome or the reason why there is none."""
    try:
        with warnings.catch_warnings():
            for category in IGNORED:
                warnings.simplefilter("ignore", category)
            warnings.filterwarnings("ignore", "No features were selected", UserWarning)
            return i, run(*arguments)
    except Exception as error:  # any method of any library may fail, and must not stop the rest
        return i, f"{type(error).__name__}: {error}"


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
            "computed: their rows are gone or damaged. Run again, with a file on a disk that can "
            "be trusted."
        )
    if failures:
        method, data, realization, reason = failures[0]
        first = f"The first: {method} on {data}, realization {realization}: {reason}"
        if not outcomes:
            raise TamisError(f"evaluate could run no task at all. {first}")
        warnings.warn(
            f"{len(failures)} of {len(tasks)} tasks failed; the others stand. {first}",
            PiecesFailed,
            stacklevel=3,
        )
    # in the order in which data and methods were given, then by realization
    data_names = list(dict.fromkeys(task.source.name for task in tasks))
    methods = list(dict.fromkeys(task.method for task in tasks))
    finished = [
        Finished(t.method, t.source.name, t.realization, outcomes[t.key])
        for t in tasks
        if t.key in outcomes
    ]
    finished.sort(key=lambda t: (data_names.index(t.data), methods.index(t.method), t.realization))
    return Results(tuple(finished), tuple(failures), protocol.metrics)
