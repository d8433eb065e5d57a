"""Many realizations, many methods, one call: :func:`evaluate`."""

import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from time import sleep
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from tamis._parallel import parallel_stream
from tamis.evaluation.checkpoint import Bookmark
from tamis.evaluation.measurement import run
from tamis.evaluation.outcome import Outcome
from tamis.evaluation.protocol import Protocol
from tamis.evaluation.realizations import Plan, Realizations
from tamis.evaluation.request import named, protocol_of, warn_if_outside
from tamis.evaluation.results import Failure, Finished, Results
from tamis.evaluation.sources import as_sources
from tamis.evaluation.store import Store
from tamis.evaluation.task import Task, tasks_of
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
    asked = named(methods, "methods")
    protocol = protocol_of(estimators, metrics, sizes, normalise, losses)
    plan = Realizations() if plan is None else plan
    for name, method in asked.items():
        warn_if_outside(name, method)
    with ExitStack() as stack:
        kept = store if isinstance(store, Store) else stack.enter_context(Store(store))
        _drop_damaged(kept)
        tasks = list(tasks_of(asked, as_sources(data), plan, protocol, durable=store is not None))
        work = _Evaluation(kept, asked, plan, protocol, tasks)
        failures = work.through(n_jobs, cluster, progress)
        return _gathered(kept, tasks, failures, protocol)


def _drop_damaged(store: Store) -> None:
    """Warn of each row of the store that is damaged; it is computed again."""
    for what in store.drop_damaged():
        warnings.warn(
            f"The store {store.path} is damaged: {what}, is not as it was written. It is computed "
            "again. Copy the file to a disk that can be trusted.",
            DamagedRow,
            stacklevel=3,
        )


class _Evaluation:
    """The tasks of one call, on their way into a store."""

    def __init__(
        self,
        store: Store,
        methods: Mapping[str, BaseEstimator],
        plan: Plan,
        protocol: Protocol,
        tasks: list[Task],
    ):
        self.store, self.methods, self.plan, self.protocol = store, methods, plan, protocol
        self.tasks = tasks
        self.begun: set[str] = set()

    def through(self, n_jobs: int | None, cluster: Any, progress: Progress | None) -> list[Failure]:
        """Run what is not in the store yet; give back what failed.

        A cluster that loses workers together with what they were sent is given it again, a few
        times over where no task gets done in between: long ones go on from their last step.
        """
        failures: dict[int, Failure] = {}
        in_vain = 0
        while True:
            before = len(self.store) + len(failures)
            try:
                self._once(failures, n_jobs, cluster, progress)
                return [failures[i] for i in sorted(failures)]
            except ClusterUnreachable:
                raise
            except ClusterLost:
                now = len(self.store) + len(failures)
                in_vain = 0 if now > before else in_vain + 1
                if in_vain >= ATTEMPTS:
                    raise
                sleep(in_vain)  # workers that were killed may be on their way back

    def _once(
        self,
        failures: dict[int, Failure],
        n_jobs: int | None,
        cluster: Any,
        progress: Progress | None,
    ) -> None:
        done, total = self.store.keys(), len(self.tasks)
        self.begun = self.store.checkpoints()
        waiting = [
            i for i, task in enumerate(self.tasks) if task.key not in done and i not in failures
        ]
        n_done = total - len(waiting)
        if progress is not None:
            progress(n_done, total)
        answers = parallel_stream(
            _answer,
            self._items(waiting),
            n_jobs=n_jobs,
            cluster=cluster,
            shared=self._shared(),
        )
        for i, answer in answers:
            task = self.tasks[i]
            if isinstance(answer, str):
                failures[i] = Failure(task.method, task.source.name, task.realization, answer)
            else:
                self.store.save(task.address, answer)
                if task.key in self.begun or answer.seconds >= CHECKPOINT_SECONDS:
                    self.store.forget_checkpoint(task.key)
            n_done += 1
            if progress is not None:
                progress(n_done, total)

    def _shared(self) -> list[Any]:
        """What every task needs: sent to each machine once."""
        sources = {id(task.source): task.source for task in self.tasks}
        return [*sources.values(), self.plan, self.protocol]

    def _items(self, waiting: list[int]) -> Iterator[tuple[Any, ...]]:
        """Arguments of the tasks that nobody has finished yet.

        Two processes on one store walk in different orders and look before each step, so that
        they share the work without having to talk.
        """
        if self.store.path is not None:
            random.Random().shuffle(waiting)
        for i in waiting:
            address, name, source, realization = self.tasks[i]
            if self.store.path is not None and self.store.has(address.key):
                continue
            method, text = self.methods[name], address.expression
            begun = address.key in self.begun
            bookmark = Bookmark.of(address.key, CHECKPOINT_SECONDS, self.store, begun)
            yield i, source, self.plan, self.protocol, method, text, realization, bookmark


def _answer(i: int, *arguments: Any) -> tuple[int, Outcome | str]:
    """Number of a task, and its outcome or the reason why there is none."""
    try:
        with warnings.catch_warnings():
            # an estimator that stops early or is unsure is measured as it is, thousands of times
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", NotCertified)
            warnings.simplefilter("ignore", TiedScores)
            warnings.simplefilter("ignore", NothingGained)
            # what keeps no column is measured by a guess; the second is scikit-learn's word for it
            warnings.simplefilter("ignore", NothingFound)
            warnings.filterwarnings("ignore", "No features were selected", UserWarning)
            warnings.simplefilter("ignore", NotConverged)
            warnings.simplefilter("ignore", DegenerateData)
            warnings.simplefilter("ignore", TableAlert)
            return i, run(*arguments)
    except Exception as error:  # any method of any library may fail, and must not stop the rest
        return i, f"{type(error).__name__}: {error}"


def _gathered(
    store: Store, tasks: list[Task], failures: list[Failure], protocol: Protocol
) -> Results:
    outcomes = store.outcomes({task.key for task in tasks})
    failed = {(f.method, f.data, f.realization) for f in failures}
    wanted = {t.key for t in tasks if (t.method, t.source.name, t.realization) not in failed}
    _check_complete(store, len(wanted - outcomes.keys()))
    if failures and not outcomes:
        raise TamisError(f"evaluate could run no task at all. {_told(failures[0])}")
    if failures:
        warnings.warn(
            f"{len(failures)} of {len(tasks)} tasks failed; the others stand. {_told(failures[0])}",
            PiecesFailed,
            stacklevel=3,
        )
    # in the order in which data and methods were given, then by realization
    data = {name: i for i, name in enumerate(dict.fromkeys(t.source.name for t in tasks))}
    method = {name: i for i, name in enumerate(dict.fromkeys(t.method for t in tasks))}
    ordered = sorted(tasks, key=lambda t: (data[t.source.name], method[t.method], t.realization))
    finished = tuple(
        Finished(t.method, t.source.name, t.realization, outcomes[t.key])
        for t in ordered
        if t.key in outcomes
    )
    return Results(finished, tuple(failures), protocol.metrics)


def _check_complete(store: Store, n_missing: int) -> None:
    if n_missing > 0:
        raise InvalidStore(
            f"The store {store.path} lost {n_missing} finished tasks while others were computed: "
            "their rows are gone or damaged. Run again, with a file on a disk that can be trusted."
        )


def _told(failure: Failure) -> str:
    method, data, realization, reason = failure
    return f"The first: {method} on {data}, realization {realization}: {reason}"
