"""Running an experiment file, and setting ours beside the published numbers."""

import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from sklearn.base import BaseEstimator

from tamis.evaluation import GivenSplits, Results, Steps, Store, evaluate
from tamis.evaluation.metrics import metric
from tamis.evaluation.realizations import Plan
from tamis.evaluation.sources import as_sources
from tamis.evaluation.tuning import tuned
from tamis.exceptions import InvalidSpec, PiecesFailed, TamisError
from tamis.reproduction.cells import Reproduction
from tamis.reproduction.experiment import Experiment, Part
from tamis.reproduction.files import read
from tamis.reproduction.parts import data_of, for_table, method_of, own_table
from tamis.reproduction.tabulating import tabulated
from tamis.spec import parse, write

Progress = Callable[[int, int], None]


def reproduce(
    experiment: Experiment | str,
    *,
    realizations: int | None = None,
    tune: bool = False,
    n_jobs: int | None = None,
    cluster: Any = None,
    store: Any = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Run an experiment file and compare with what was published.

    Methods and tables that are not at hand are named in ``missing``, and the rest runs.

    Parameters
    ----------
    experiment : Experiment or str
        Name of an experiment, or of a file that ends in ``.toml``.
    realizations : int, optional
        How many; by default as published.
    tune : bool, default=False
        Whether hyper-parameters are chosen as the file's ``[tuning]`` says, instead of its fixed
        settings.
    n_jobs, cluster, store, progress
        As in :func:`tamis.evaluation.evaluate`.

    Examples
    --------
    >>> reproduce("thesis-3.2", realizations=1)
    <Reproduction of thesis-3.2: ...>
    """
    experiment = read(experiment) if isinstance(experiment, str) else experiment
    if isinstance(store, Store):
        return _Reproducing(experiment, realizations, tune, store).run(n_jobs, cluster, progress)
    with Store(store) as kept:
        return _Reproducing(experiment, realizations, tune, kept).run(n_jobs, cluster, progress)


class _Reproducing:
    """One experiment on its way."""

    def __init__(self, experiment: Experiment, realizations: int | None, tune: bool, store: Store):
        self.experiment, self.realizations, self.tune = experiment, realizations, tune
        self.store = store
        self.missing: dict[str, None] = {}
        self.settings: list[str] = []
        self.results: dict[str, Results] = {}

    def run(self, n_jobs: int | None, cluster: Any, progress: Progress | None) -> Reproduction:
        """Part after part, so that one that cannot be had does not stop the others."""
        baselines: dict[str, Results] = {}
        n_parts = len(self.experiment.parts)
        for index, part in enumerate(self.experiment.parts):
            found = self._part(part, n_jobs, cluster, _within(progress, index, n_parts))
            if found is not None:
                self._miss_failures(part, *found)
                self.results[part.name], beside = found
                if beside is not None:
                    baselines[part.name] = beside
        if progress is not None:
            progress(n_parts, n_parts)
        return tabulated(
            self.experiment,
            self.results,
            baselines,
            missing=self.missing,
            settings=self.settings,
        )

    def _part(
        self, part: Part, n_jobs: int | None, cluster: Any, progress: Progress | None
    ) -> tuple[Results, Results | None] | None:
        """What the methods found, and the baselines at the same numbers of columns."""
        try:
            table = own_table(part)
            data = (
                data_of(part, self.experiment.seed)
                if table is None
                else {table.source.name: table.source}
            )
            plan = self._plan(part, data)
            estimators = self._estimators(part, data, plan, n_jobs)
        except (TamisError, TypeError) as error:
            self._miss(f"{part.name} is left out: {error}")
            return None
        methods = self._methods({**self.experiment.methods, **part.methods}, estimators, table)
        if not methods:
            return None
        by_hits = metric(self.experiment.metric).function is None
        baselines = self._methods(self.experiment.baselines, estimators, table)
        sizes_too = ("n_features",) if baselines else ()
        if table is not None:
            estimators = {name: table.estimator(one) for name, one in estimators.items()}

        def measured(methods: Mapping[str, Any], sizes: Any, progress: Progress | None) -> Results:
            return evaluate(
                methods,
                data,
                plan,
                list(dict.fromkeys((*self.experiment.measured_together, *sizes_too))),
                estimators=None if by_hits else estimators,
                sizes=sizes,
                normalise=table is None or table.plain,
                n_jobs=n_jobs,
                cluster=cluster,
                store=self.store,
                progress=progress,
            )

        sizes = part.sizes or (Steps(part.steps) if part.steps else "own")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PiecesFailed)  # told among what is missing
                if not baselines:
                    return measured(methods, sizes, progress), None
                found = measured(methods, sizes, _within(progress, 0, 2))
                return found, measured(baselines, _sizes_met(found), _within(progress, 1, 2))
        except TamisError as error:
            if isinstance(error, ValueError | RuntimeError):  # the store or the cluster
                raise
            self._miss(f"{part.name} is left out: {error}")
            return None

    def _plan(self, part: Part, data: Any) -> Plan:
        """Which rows train: drawn, or those that came with the table."""
        if not part.splits:
            return self.experiment.plan(part, self.realizations)
        (table,) = data.values()
        parts = [f"{part.splits}_{rows}_idx" for rows in ("train", "test")]
        given = getattr(table, "extras", {})
        if missing := [name for name in parts if name not in given]:
            raise InvalidSpec(f"{part.name} came without the splits {' and '.join(missing)}.")
        plan = GivenSplits(*(given[name] for name in parts), seed=self.experiment.seed)
        return plan.first(self.realizations or self.experiment.realizations)

    def _estimators(
        self, part: Part, data: Any, plan: Plan, n_jobs: int | None
    ) -> dict[str, BaseEstimator]:
        texts = {**self.experiment.estimators, **part.estimators}
        made = {name: parse(text) for name, text in texts.items()}
        if self.tune and self.experiment.tuning is not None:
            name = self.experiment.tuning["estimator"]
            made[name] = self._tuned(made[name], data, plan, n_jobs)
            self.settings.append(f"{part.name}: {write(made[name], strict=False)}")
        return made

    def _tuned(self, estimator: Any, data: Any, plan: Plan, n_jobs: int | None) -> Any:
        """Chosen settings, remembered in the store so that a resumed run need not choose again."""
        (source,) = as_sources(data).values()
        asked = self.experiment.tuning or {}
        first = (source.fingerprint, plan.label(0), min(len(plan), 5), plan.seed)
        key = f"tuning {write(estimator)} {json.dumps([asked, first], sort_keys=True)}"
        known = self.store.checkpointed(key)
        if known is not None:
            return parse(known)
        rule, grid, scoring = asked["rule"], asked["grid"], asked.get("scoring")
        chosen = tuned(estimator, grid, source, plan, rule=rule, scoring=scoring, n_jobs=n_jobs)
        self.store.checkpoint(key, write(chosen))
        return chosen

    def _methods(
        self, texts: Mapping[str, str], estimators: Mapping[str, BaseEstimator], table: Any
    ) -> dict[str, Any]:
        made = {}
        for name, text in texts.items():
            try:
                made[name] = for_table(method_of(text, estimators), table)
            except TamisError as error:
                self._miss(f"{name} is left out: {error}")
        return made

    def _miss_failures(self, part: Part, found: Results, baselines: Results | None) -> None:
        failures = (*found.failures, *(baselines.failures if baselines else ()))
        failed = [failure.method for failure in failures]
        for failure in {f.method: f for f in reversed(failures)}.values():
            times = f"{failed.count(failure.method)} times on {part.name}"
            self._miss(f"{failure.method} failed {times}, first by {failure.reason}")

    def _miss(self, sentence: str) -> None:
        self.missing[sentence] = None


def _sizes_met(found: Results) -> dict[int, list[int]]:
    """For each realization the numbers of columns that the methods chose there."""
    met: dict[int, set[int]] = {}
    for task in found.tasks:
        sizes = {score.size for score in task.outcome.scores if task.outcome.order is not None}
        met.setdefault(task.realization, set()).update(sizes - {0})
    return {i: sorted(sizes) for i, sizes in met.items()}


def _within(progress: Progress | None, index: int, n_parts: int) -> Progress | None:
    """Progress of one part as progress of the whole, in thousandths of a part."""
    if progress is None:
        return None

    def told(done: int, total: int) -> None:
        progress(1000 * index + 1000 * done // max(total, 1), 1000 * n_parts)

    return told
