"""Functions that run experiment files."""

import json
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.preprocessing import StandardScaler

from tamis import datasets
from tamis._arrays import Array, best
from tamis._checks import check_values, one_of
from tamis._seeds import seed_of
from tamis.contract import Selection
from tamis.evaluation import Fresh, GivenSplits, Results, Steps, Store, evaluate
from tamis.evaluation.metrics import metric
from tamis.evaluation.realizations import Plan
from tamis.evaluation.sources import Rows, Source, as_sources
from tamis.exceptions import InvalidSpec, PiecesFailed, TamisError
from tamis.recipes import method as from_recipe
from tamis.recipes import names as recipe_names
from tamis.recipes import prepare
from tamis.spec import parse, write
from tamis.spec.safety import check_grids
from tamis.table.frames import need_polars
from tamis.validation.resamples import folds_of
from tamis_book.experiment import Experiment, Part
from tamis_book.files import read
from tamis_book.reproduction import Reproduction, tabulate

if TYPE_CHECKING:
    from tamis.table.rows import ResampledTable


RULES = ("mean-of-5", "median-of-5", "each")
N_FIRST, N_FOLDS = 5, 5


def tuned(
    estimator: BaseEstimator,
    grid: Mapping[str, Sequence[Any]],
    source: Source,
    plan: Plan,
    *,
    rule: str = "mean-of-5",
    scoring: str | None = None,
    n_jobs: int | None = None,
) -> BaseEstimator:
    """Return the estimator with hyper-parameters tuned by 5-fold cross-validation.

    Parameters
    ----------
    estimator : estimator
        The estimator to tune.
    grid : dict of str to list
        Values to try for each parameter.
    source, plan
        The data and their realizations. Only training rows are used.
    rule : {"mean-of-5", "median-of-5", "each"}, default="mean-of-5"
        "mean-of-5" chooses the point with the best mean score over the first five realizations.
        "median-of-5" chooses the median of each parameter over the best points of the first five
        realizations.
        "each" tunes in every realization with ``GridSearchCV``.
    scoring : str, optional
        A scorer of scikit-learn. The default is the estimator's own score.
    n_jobs : int, optional
        Number of processes.
    """
    check_values("tuned", {"rule": one_of(*RULES)}, rule=rule)
    search = GridSearchCV(estimator, dict(grid), scoring=scoring, cv=N_FOLDS)
    check_grids(search, "of [tuning]")
    if rule == "each":
        return search
    points = list(ParameterGrid(dict(grid)))
    search = search.set_params(n_jobs=n_jobs, refit=False)
    scores = np.array([_scores(search, source, plan, i) for i in range(min(N_FIRST, len(plan)))])
    if rule == "mean-of-5":
        chosen = points[best(scores.mean(axis=0))]
    else:
        winners = [points[best(row)] for row in scores]
        # the lower median, which is always one of the values
        chosen = {
            name: sorted(point[name] for point in winners)[(len(winners) - 1) // 2] for name in grid
        }
    return clone(estimator).set_params(**chosen)


def _scores(search: GridSearchCV, source: Source, plan: Plan, i: int) -> Array:
    """Return the mean cross-validated score of each grid point on the training rows."""
    rows = source.at(i, plan.seed)
    train = plan.split(rows.y, source.name, i).train
    X, y = StandardScaler().fit_transform(rows.X[train]), rows.y[train]
    seed = seed_of(plan.seed, "tuning", source.name, i)
    folds = list(folds_of(y, np.arange(len(y)), N_FOLDS, seed))
    return np.asarray(search.set_params(cv=folds).fit(X, y).cv_results_["mean_test_score"])


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
    """Run an experiment and compare the results with the published numbers.

    Methods and tables that are not available are listed in ``missing``, and all others run.

    Parameters
    ----------
    experiment : Experiment or str
        An experiment, its name, or the path of a file that ends in ``.toml``.
    realizations : int, optional
        Number of realizations. The default is the published number.
    tune : bool, default=False
        Whether to tune hyper-parameters as the section ``[tuning]`` of the file describes, instead
        of using its fixed settings.
    n_jobs, cluster, store, progress
        As in :func:`tamis.evaluation.evaluate`.

    Examples
    --------
    >>> reproduce("thesis-3.2", realizations=1)
    <Reproduction of thesis-3.2: ...>
    """
    experiment = read(experiment) if isinstance(experiment, str) else experiment
    with nullcontext(store) if isinstance(store, Store) else Store(store) as opened:
        how = {"n_jobs": n_jobs, "cluster": cluster, "store": opened}
        return _Run(experiment, realizations, tune, how).reproduce(progress)


@dataclass
class _Run:
    """A single run of an experiment.

    ``how`` holds keyword arguments for ``evaluate``. Each part adds to ``missing`` and
    ``settings``.
    """

    experiment: Experiment
    realizations: int | None
    tune: bool
    how: dict[str, Any]
    missing: dict[str, None] = field(default_factory=dict)
    settings: list[str] = field(default_factory=list)

    def reproduce(self, progress: Progress | None) -> Reproduction:
        """Run all parts. A part that fails does not stop the others."""
        results: dict[str, Results] = {}
        baselines: dict[str, Results] = {}
        n_parts = len(self.experiment.parts)
        for index, part in enumerate(self.experiment.parts):
            found = self._run_part(part, _share(progress, index, n_parts))
            for group, one in zip((results, baselines), found, strict=False):
                group[part.name] = one
        if progress is not None:
            progress(n_parts, n_parts)
        lists = {"missing": self.missing, "settings": self.settings}
        return tabulate(self.experiment, results, baselines, **lists)

    def _run_part(self, part: Part, progress: Progress | None) -> list[Results]:
        """Return the results of the methods, and of baselines with the same numbers of columns."""
        try:
            name, data, table = _load(part, self.experiment.seed)
            sources = as_sources({name: data})
            plan = self._plan(part, data)
            estimators = self._estimators(part, sources[name], plan)
        except (TamisError, TypeError) as error:
            return self._leave_out(part.name, error)
        methods = self._methods({**self.experiment.methods, **part.methods}, estimators, table)
        if not methods:
            return []
        baselines = self._methods(self.experiment.baselines, estimators, table)
        if table is not None:
            estimators = {name: table.estimator(one) for name, one in estimators.items()}
        measured = self.experiment.measured
        metrics = sorted({measured, *self.experiment.also})
        if baselines and measured != "n_features":
            metrics.append("n_features")
        how: dict[str, Any] = dict(
            data=sources,
            plan=plan,
            metrics=metrics,
            # hits do not need predictions
            estimators=estimators if any(metric(name).function for name in metrics) else None,
            normalise=table is None or table.plain,
            **self.how,
        )
        n_runs = 2 if baselines else 1
        sizes: Any = part.sizes or (Steps(part.steps) if part.steps else "own")
        try:
            # failed pieces are reported in ``missing``
            with warnings.catch_warnings(action="ignore", category=PiecesFailed):
                first = _share(progress, 0, n_runs)
                found = [evaluate(methods, sizes=sizes, progress=first, **how)]
                if baselines:
                    sizes, progress = _sizes_met(found[0]), _share(progress, 1, n_runs)
                    found.append(evaluate(baselines, sizes=sizes, progress=progress, **how))
        except TamisError as error:
            if isinstance(error, ValueError | RuntimeError):  # an error of the store or the cluster
                raise
            return self._leave_out(part.name, error)
        failures = [failure for results in found for failure in results.failures]
        counts = Counter(failure.method for failure in failures)
        for failure in {f.method: f for f in reversed(failures)}.values():
            times = f"{counts[failure.method]} times on {part.name}"
            self.missing[f"{failure.method} failed {times}, first by {failure.reason}"] = None
        return found

    def _leave_out(self, name: str, error: Exception) -> list[Results]:
        self.missing[f"{name} is left out: {error}"] = None
        return []

    def _plan(self, part: Part, data: Any) -> Plan:
        """Return the plan of a part: random splits, or the splits that came with the table."""
        if not part.splits:
            return self.experiment.plan(part, self.realizations)
        rows = [f"{part.splits}_{word}_idx" for word in ("train", "test")]
        given = getattr(data, "extras", {})
        if missing := [name for name in rows if name not in given]:
            raise InvalidSpec(f"the table of {part.name} has no splits {' and '.join(missing)}.")
        plan = GivenSplits(*(given[name] for name in rows), seed=self.experiment.seed)
        return plan.first(self.realizations or self.experiment.realizations)

    def _estimators(self, part: Part, source: Source, plan: Plan) -> dict[str, BaseEstimator]:
        texts = {**self.experiment.estimators, **part.estimators}
        made = {name: parse(text) for name, text in texts.items()}
        if self.tune and self.experiment.tuning is not None:
            name = self.experiment.tuning["estimator"]
            made[name] = self._tune(made[name], self.experiment.tuning, source, plan)
            self.settings.append(f"{part.name}: {write(made[name], strict=False)}")
        return made

    def _tune(self, estimator: Any, asked: Mapping[str, Any], source: Source, plan: Plan) -> Any:
        """Tune an estimator once. The store keeps the settings for a resumed run."""
        first = (source.fingerprint, plan.label(0), min(len(plan), 5), plan.seed)
        key = f"tuning {write(estimator)} {json.dumps([asked, first], sort_keys=True)}"
        store: Store = self.how["store"]
        if (known := store.checkpointed(key)) is not None:
            return parse(known)
        how = {word: asked[word] for word in ("rule", "scoring") if word in asked}
        chosen = tuned(estimator, asked["grid"], source, plan, n_jobs=self.how["n_jobs"], **how)
        store.checkpoint(key, write(chosen))
        return chosen

    def _methods(
        self,
        texts: Mapping[str, str],
        estimators: Mapping[str, BaseEstimator],
        table: "ResampledTable | None",
    ) -> dict[str, Any]:
        made = {}
        for name, text in texts.items():
            try:
                method = parse_method(text, estimators)
                if table is not None and isinstance(method, Selection):
                    method = prepare(method, table.source.rows.y, task=table.task)
                made[name] = method if table is None else table.method(method)
            except TamisError as error:
                self._leave_out(name, error)
        return made


def _sizes_met(found: Results) -> dict[int, list[int]]:
    """Return the numbers of columns that the methods selected in each realization."""
    met: dict[int, set[int]] = {}
    for task in found.tasks:
        sizes = {score.size for score in task.outcome.scores if task.outcome.order is not None}
        met.setdefault(task.realization, set()).update(sizes - {0})
    return {i: sorted(sizes) for i, sizes in met.items()}


def _share(progress: Progress | None, index: int, n_parts: int) -> Progress | None:
    """Return a callback that reports the progress of a part as progress of all parts."""
    if progress is None:
        return None
    return lambda done, total: progress(1000 * index + 1000 * done // max(total, 1), 1000 * n_parts)


# -- data and methods -----------------------------------------------------------------------------


def _load(part: Part, seed: int) -> tuple[str, Any, "ResampledTable | None"]:
    """Return the name of a part's data, the data, and the table if it comes from a file."""
    options = dict(part.data)
    if "read" in options:
        need_polars()
        from tamis.table import read as read_table
        from tamis.table.rows import resampled

        name, path, target = (options.pop(word) for word in ("name", "read", "target"))
        options["keep"] = tuple(options.get("keep", ()))
        table = read_table(path, target, **options)
        plain = table.is_plain  # labelled() changes the frame
        own = resampled(name, table.labelled(), plain=plain, keep=options["keep"])
        return name, own.source, own
    relevant = options.pop("relevant", None)
    if "load" in options:
        data = datasets.load(options.pop("load"))
        if options:
            raise InvalidSpec(f"load takes no {min(options)}.")
        return data.name, data if relevant is None else Rows(data.X, data.y, relevant), None
    maker, fresh = str(options.pop("make")), bool(options.pop("fresh", False))
    if maker not in datasets.__all__ or not maker.startswith("make_"):
        raise InvalidSpec(f"there is no problem {maker!r}.")
    make, name = getattr(datasets, maker), maker.removeprefix("make_")
    n_samples = options.pop("n_samples")
    if fresh:
        return name, Fresh(make, n_samples, options, name), None
    return name, make(n_samples, random_state=options.pop("seed", seed), **options), None


def parse_method(text: str, estimators: Mapping[str, BaseEstimator]) -> Any:
    """Return the method for a recipe name or an expression, which may use the given estimators."""
    if text.partition("(")[0].strip() in recipe_names():
        return from_recipe(text)
    calls = {name: partial(clone, estimator) for name, estimator in estimators.items()}
    made = parse(text, also=calls)
    if not hasattr(made, "fit"):
        raise InvalidSpec(f"{text!r} is not a method: it cannot be fitted.")
    return made
