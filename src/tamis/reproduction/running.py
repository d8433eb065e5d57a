"""Running an experiment file, and setting ours beside the published numbers."""

import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone

from tamis import datasets
from tamis.evaluation import (
    Fresh,
    GivenSplits,
    Results,
    Steps,
    Store,
    evaluate,
    mark,
    paired_t,
)
from tamis.evaluation.metrics import metric
from tamis.evaluation.realizations import Plan
from tamis.evaluation.sources import as_sources
from tamis.evaluation.tuning import tuned
from tamis.exceptions import InvalidSpec, PiecesFailed, TamisError
from tamis.recipes import method as from_recipe
from tamis.recipes import names as recipe_names
from tamis.reproduction.cells import Cell, Reproduction, mark_of
from tamis.reproduction.files import Experiment, Part, read
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
    >>> reproduce("thesis-3.2", realizations=2)
    <Reproduction of thesis-3.2: ...>
    """
    experiment = read(experiment) if isinstance(experiment, str) else experiment
    if isinstance(store, Store):
        return _Table(experiment, realizations, tune, store).run(n_jobs, cluster, progress)
    with Store(store) as kept:
        return _Table(experiment, realizations, tune, kept).run(n_jobs, cluster, progress)


class _Table:
    """One experiment on its way."""

    def __init__(self, experiment: Experiment, realizations: int | None, tune: bool, store: Store):
        self.experiment, self.realizations, self.tune = experiment, realizations, tune
        self.store = store
        self.missing: dict[str, None] = {}
        self.settings: list[str] = []
        self.results: dict[str, Results] = {}
        self.remarks: list[str] = []

    def run(self, n_jobs: int | None, cluster: Any, progress: Progress | None) -> Reproduction:
        """Part after part, so that one that cannot be had does not stop the others."""
        cells: list[Cell] = []
        n_parts = len(self.experiment.parts)
        for place, part in enumerate(self.experiment.parts):
            found = self._part(part, n_jobs, cluster, _within(progress, place, n_parts))
            if found is not None:
                self.results[part.name] = found[0]
                cells += self._cells(part, *found)
        if progress is not None:
            progress(n_parts, n_parts)
        return Reproduction(
            self.experiment,
            tuple(cells),
            tuple(self.missing),
            tuple(self.settings),
            self.results,
            tuple(self.remarks),
        )

    def _part(
        self, part: Part, n_jobs: int | None, cluster: Any, progress: Progress | None
    ) -> tuple[Results, Results | None] | None:
        """What the methods found, and the baselines at the same numbers of columns."""
        try:
            data = _data(part, self.experiment.seed)
            plan = self._plan(part, data)
            estimators = self._estimators(part, data, plan, n_jobs)
        except (TamisError, TypeError) as error:
            self._miss(f"{part.name} is left out: {error}")
            return None
        methods = self._methods({**self.experiment.methods, **part.methods}, estimators)
        if not methods:
            return None
        by_hits = metric(self.experiment.metric).judge is None
        baselines = self._methods(self.experiment.baselines, estimators)

        def judged(methods: Mapping[str, Any], sizes: Any, progress: Progress | None) -> Results:
            return evaluate(
                methods,
                data,
                plan,
                [self.experiment.metric, *(["n_features"] if baselines else [])],
                estimators=None if by_hits else estimators,
                sizes=sizes,
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
                    return judged(methods, sizes, progress), None
                found = judged(methods, sizes, _within(progress, 0, 2))
                return found, judged(baselines, _sizes_met(found), _within(progress, 1, 2))
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
        self, texts: Mapping[str, str], estimators: Mapping[str, BaseEstimator]
    ) -> dict[str, Any]:
        made = {}
        for name, text in texts.items():
            try:
                made[name] = _method(text, estimators)
            except TamisError as error:
                self._miss(f"{name} is left out: {error}")
        return made

    def _miss(self, sentence: str) -> None:
        self.missing[sentence] = None

    def _cells(self, part: Part, found: Results, baselines: Results | None) -> list[Cell]:
        failures = (*found.failures, *(baselines.failures if baselines else ()))
        failed = [failure.method for failure in failures]
        for failure in {f.method: f for f in reversed(failures)}.values():
            times = f"{failed.count(failure.method)} times on {part.name}"
            self._miss(f"{failure.method} failed {times}, first by {failure.reason}")
        rows = [
            self._row(part, method, place, found, baselines)
            for method in found.methods
            for place in ([None] if self.experiment.metric == "hit" else part.places)
        ]
        return [cell for row in rows for cell in row]

    def _row(
        self, part: Part, method: str, place: int | None, found: Results, baselines: Results | None
    ) -> list[Cell]:
        """The cell of a method at one size or step, and those of the baselines beside it."""
        where = part.where(place)
        try:
            scores = found.values(self.experiment.metric, method, **where)
        except TamisError:  # a size that this method does not reach
            return []
        values = np.array(list(scores.values()))
        cell = self._cell(part, method, place, values, part.printed(method, place))
        sign, printed_sign = self._signs(part, found, cell, scores)
        cell = cell._replace(sign=sign, published_sign=printed_sign)
        if baselines is None:
            return [cell]
        sizes = found.values("n_features", method, **where)
        cell = cell._replace(
            n_features=float(np.mean(list(sizes.values()))),
            published_n_features=part.printed_columns(method, place),
        )
        if nothing := list(sizes.values()).count(0):
            self.remarks.append(
                f"{part.name}: {method} selects nothing in {nothing} of {len(sizes)} realizations, "
                "where the most frequent class stands for it."
            )
        if not found.orders(method):  # it predicts with all columns
            return [cell]
        return [cell, *self._beside(part, cell, scores, sizes, baselines)]

    def _beside(
        self,
        part: Part,
        cell: Cell,
        scores: Mapping[int, float],
        sizes: Mapping[int, float],
        baselines: Results,
    ) -> list[Cell]:
        """The baselines at the numbers of columns that a cell has, realization by realization."""
        of_size = {
            (row.method, row.realization, row.size): row.value
            for row in baselines.rows()
            if row.metric == self.experiment.metric
        }
        made = []
        for name in baselines.methods:
            values = [  # without any column all methods are the same
                of_size.get((name, i, int(sizes[i])), np.nan) if sizes[i] else score
                for i, score in scores.items()
            ]
            if not np.isnan(values).any():
                other = self._cell(part, name, cell.size, np.array(values), None)
                made.append(other._replace(n_features=cell.n_features, beside=cell.method))
        return made

    def _signs(
        self, part: Part, found: Results, cell: Cell, scores: Mapping[int, float]
    ) -> tuple[str | None, str | None]:
        """Signs of the test of the reference against the method of a cell, ours and printed."""
        reference, signs = self.experiment.reference, part.signs.get(cell.method)
        printed = None if signs is None else signs[part.sizes.index(cell.size or 0)]
        if reference not in found.methods or reference == cell.method or len(scores) < 2:
            return None, printed
        against = found.values(self.experiment.metric, str(reference), **part.where(cell.size))
        common = sorted(scores.keys() & against.keys())
        if len(common) < 2:
            return None, printed
        test = paired_t([against[i] for i in common], [scores[i] for i in common])
        better = metric(self.experiment.metric).greater_is_better
        return mark(test, greater_is_better=better), printed

    def _cell(
        self, part: Part, method: str, size: int | None, values: Any, published: float | None
    ) -> Cell:
        n = len(values)
        hits = self.experiment.metric == "hit"
        scaled = values * (1 if hits else self.experiment.scale)
        ours = float(scaled.sum() if hits else scaled.mean())
        spread = float(scaled.std(ddof=1)) if n > 1 else float("nan")
        low, high = float(scaled.min()), float(scaled.max())
        cell = Cell(part.name, method, size, ours, spread, low, high, n, published, "", None, None)
        if published is None:
            return cell
        sound = part.is_sound(published) and method not in self.experiment.unsound
        return cell._replace(mark=mark_of(self.experiment, cell, published) if sound else "?")


def _sizes_met(found: Results) -> dict[int, list[int]]:
    """For each realization the numbers of columns that the methods chose there."""
    met: dict[int, set[int]] = {}
    for piece in found.pieces:
        sizes = {score.size for score in piece.outcome.scores if piece.outcome.order is not None}
        met.setdefault(piece.realization, set()).update(sizes - {0})
    return {i: sorted(sizes) for i, sizes in met.items()}


def _data(part: Part, seed: int) -> Any:
    """Data by name: a table, a problem drawn once, or one drawn for every realization."""
    options = dict(part.data)
    relevant = options.pop("relevant", None)
    if "load" in options:
        table = datasets.load(options.pop("load"))
        if options:
            raise InvalidSpec(f"load takes no {min(options)}.")
        return {table.name: table if relevant is None else _Known(table.X, table.y, relevant)}
    make_name, fresh = str(options.pop("make")), bool(options.pop("fresh", False))
    if make_name not in datasets.__all__ or not make_name.startswith("make_"):
        raise InvalidSpec(f"there is no problem {make_name!r}.")
    make, name = getattr(datasets, make_name), make_name.removeprefix("make_")
    n_samples = options.pop("n_samples")
    if fresh:
        return {name: Fresh(make, n_samples, options, name)}
    return {name: make(n_samples, random_state=options.pop("seed", seed), **options)}


class _Known(NamedTuple):
    """A table whose relevant columns are known from elsewhere."""

    X: Any
    y: Any
    relevant: Any
    equivalent: None = None


def _method(text: str, estimators: Mapping[str, BaseEstimator]) -> Any:
    """Selector meant by a recipe or an expression that may call the experiment's estimators."""
    if text.partition("(")[0].strip() in recipe_names():
        return from_recipe(text)
    calls = {name: _calling(estimator) for name, estimator in estimators.items()}
    made = parse(text, also=calls)
    if not hasattr(made, "fit"):
        raise InvalidSpec(f"{text!r} is no method: it cannot be fitted.")
    return made


def _calling(estimator: BaseEstimator) -> Callable[[], BaseEstimator]:
    def again() -> BaseEstimator:
        return clone(estimator)

    return again


def _within(progress: Progress | None, place: int, n_parts: int) -> Progress | None:
    """Progress of one part as progress of the whole, in thousandths of a part."""
    if progress is None:
        return None

    def told(done: int, total: int) -> None:
        progress(1000 * place + 1000 * done // max(total, 1), 1000 * n_parts)

    return told
