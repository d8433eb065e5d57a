"""Comparison of named methods on resamples of a table, for ``tamis compare``."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline

from tamis._arrays import Subset, is_real
from tamis.contract.units import Grouping
from tamis.evaluation import Realizations, Results, Steps, evaluate
from tamis.evaluation.columns import chooser_of
from tamis.evaluation.metrics import metric
from tamis.exceptions import DamagedRow, InvalidParameter, InvalidSpec, TamisError
from tamis.meta.honest_size import SIZES, first_units
from tamis.meta.inner_search import reached, walk_of
from tamis.recipes import prepare
from tamis.report.comparison import ALL, BASELINES, GUESS, Failed
from tamis.spec import parse
from tamis.table.rows import ResampledTable

Progress = Callable[[int, int], None]

#: Default for the largest number of columns. Wrappers reach it in seconds, and longer lists are
#: rarely useful to read.
MOST = 20
#: Ratio of two successive numbers of columns, beyond the numbers of HonestSize.
FACTOR = 2**0.5
#: A size is omitted if the largest size is at most this factor times the size.
CLOSEST = 1.1


class TaskDefaults(NamedTuple):
    """Default methods, estimator and metric for a task.

    The estimator is linear, fast and needs no tuning. The three methods score columns alone, given
    the columns that are already selected, and by a model.
    """

    estimator: type
    guess: type
    metric: str
    methods: tuple[str, ...]
    other_metrics: tuple[str, ...]


DEFAULTS = {
    "classification": TaskDefaults(
        RidgeClassifier,
        DummyClassifier,
        "error",
        ("correlation", "mrmr", "ridge-rfe"),
        ("mse", "rmse", "scc"),
    ),
    "regression": TaskDefaults(
        Ridge,
        DummyRegressor,
        "rmse",
        ("correlation", "mrmr", "ridge-regression-rfe"),
        ("error", "ber", "auc"),
    ),
}


class Contestant(NamedTuple):
    """A method, and which of its columns are measured at a size.

    Attributes
    ----------
    method : selector
    measured : {"order", "held", "own"}
        "order": the first columns of the ranking. "held": the columns that were selected when the
        search had this size, for searches that also remove columns. "own": only the final
        selection, at its own size.
    """

    method: Any
    measured: str


@dataclass(frozen=True)
class HeldSizes(Steps):
    """Sizes at which to measure a search that also removes columns.

    At each size, the best set of columns on the search path is measured. If the path skips a size,
    the first columns of the ranking are used.
    """

    def subsets(self, fitted: Any) -> list[tuple[Subset, str]]:
        """Return the columns at each size, and the label of the size."""
        search = chooser_of(fitted)
        found = [search.units_.columns(first_units(search, size)) for size in self.numbers]
        return [(columns, "given") for columns in found]


@dataclass(frozen=True)
class Rules:
    """Settings of a comparison on a table: sizes, model, metric and resamples."""

    task: str
    sizes: tuple[int, ...]
    estimator: Any
    metric: str
    plan: Realizations


def size_grid(most: int) -> tuple[int, ...]:
    """Return the numbers of columns to try, up to ``most``.

    >>> size_grid(12), size_grid(60)
    ((1, 2, 3, 4, 5, 7, 10, 12), (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 60))
    """
    sizes = [size for size in SIZES if size]
    while sizes[-1] < most:
        sizes.append(round(sizes[-1] * FACTOR))
    return (*(size for size in sizes if CLOSEST * size < most), most)


def metric_for(asked: str | None, task: str) -> str:
    """Return the name of the metric. Raise an error if it does not suit the target."""
    default = DEFAULTS[task]
    name = default.metric if asked is None else asked.strip().lower()
    if name.replace("-", " ").replace("_", " ") in ("balanced", "balanced error"):
        name = "ber"
    name = metric(name).name
    if metric(name).function is None or name == "cv_error":
        raise InvalidParameter(
            f"--metric needs a metric that is computed from predictions, such as {default.metric}, "
            f"not {name}."
        )
    if name in default.other_metrics:
        raise InvalidParameter(
            f"--metric {name} is not for {task}. Write --metric {default.metric}, or --task to "
            "change how the target is read."
        )
    return name


def estimator_for(asked: str | None, task: str) -> Any:
    """Return the estimator that is trained on the selected columns."""
    default = DEFAULTS[task].estimator
    made = default() if asked is None else parse(asked)
    if not (is_classifier(made) if task == "classification" else is_regressor(made)):
        raise InvalidParameter(
            f"--estimator needs an estimator for {task}, such as {default.__name__}(), not {asked}."
        )
    return made


def contestants(
    asked: Sequence[str], y: Any, task: str, units: Grouping, largest: int
) -> tuple[dict[str, Contestant], list[Failed]]:
    """Return the methods by name, and the methods that cannot be used on this target.

    An unknown name raises an error.
    """
    found: dict[str, Contestant] = {}
    failed: list[Failed] = []
    for text in dict.fromkeys(asked):
        try:
            found[text] = contestant(text, y, task, units, largest)
        except InvalidSpec:
            raise
        except TamisError as error:
            failed.append(Failed(text, 0, str(error)))
    if not found:
        raise InvalidParameter(failed[0].sentence)
    return found, failed


def contestant(text: str, y: Any, task: str, units: Grouping, largest: int) -> Contestant:
    """Return the method of a name or an expression, which searches up to the largest size.

    A method that chooses its own number of columns is measured only at that number.
    """
    # columns are given by index, because an array of numbers has no names
    groups = {name: list(columns) for name, columns in units.groups}
    fixed = [int(units.columns(np.array([unit]))[0]) for unit in units.fixed]
    made = prepare(
        None if text == "auto" else text,
        y,
        feature_groups=groups or None,
        fixed_features=fixed or None,
        task=task,
    )
    walk = walk_of(made)
    own = signature(type(walk)).parameters.get("n_features_to_select")
    # if the default is not a number, the method chooses the number by its own rule
    if own is None or not is_real(own.default) or walk.n_features_to_select != own.default:
        return Contestant(made, "own")
    # the columns at other sizes are unknown, or a size is ambiguous because columns form groups
    if not (walk.nested or walk.extends) or units.groups:
        return Contestant(prepare(made, y, n_features_to_select=largest, task=task), "own")
    size: int | float = min(reached(made, units.n_units), largest) if walk.grows else 1
    if walk.scores_alone:  # a ranking covers all sizes
        size = 1.0
    sized = prepare(made, y, n_features_to_select=size, task=task)
    nested = walk.nested or walk is not made
    return Contestant(sized, "order" if nested and not units.fixed else "held")


def contest(
    table: ResampledTable,
    methods: Mapping[str, Contestant],
    rules: Rules,
    progress: Progress,
    finished: Callable[[str], None] = lambda name: None,
    **how: Any,
) -> list[Results]:
    """Measure the baselines and each method, and call ``finished`` after each method.

    ``how`` contains further arguments of :func:`evaluate`: ``n_jobs``, ``cluster`` and ``store``.
    """
    estimator, source = table.estimator(rules.estimator), table.source
    guess = {GUESS: DEFAULTS[rules.task].guess()}
    some: dict[str, Any] = {ALL: make_pipeline(estimator), **guess}
    total = (len(methods) + len(some)) * len(rules.plan)
    sizes = {"order": rules.sizes, "held": HeldSizes(rules.sizes), "own": "own"}
    found: list[Results] = []
    for name in sorted(methods, key=lambda name: list(sizes).index(methods[name].measured)):
        asked = {name: table.method(methods[name].method), **some}
        before = sum(len(results.tasks) + len(results.failures) for results in found)
        most = before + len(asked) * len(rules.plan)

        def count(done: int, _: int, before: int = before, most: int = most) -> None:
            progress(min(before + done, most), total)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", DamagedRow)
            results = evaluate(
                asked | guess,  # evaluate raises an error if all methods fail
                {source.name: source},
                rules.plan,
                rules.metric,
                estimators={"estimator": estimator},
                sizes=sizes[methods[name].measured],
                normalise=table.plain,
                progress=count,
                **how,
            )
        tasks = tuple(task for task in results.tasks if task.method in asked)
        failures = tuple(failure for failure in results.failures if failure.method in asked)
        found.append(Results(tasks, failures, results.metrics))
        some = {}  # the baselines are reported only once
        finished(name)
    return found


def join_results(found: Sequence[Results], methods: Iterable[str]) -> Results:
    """Join results. Tables keep their order, methods have the given order, baselines come last."""
    data = list(dict.fromkeys(name for results in found for name in results.data))
    order = [*methods, *BASELINES]

    def position(one: Any) -> tuple[int, int, int]:
        return data.index(one.data), order.index(one.method), one.realization

    tasks = sorted((task for results in found for task in results.tasks), key=position)
    failures = sorted((f for results in found for f in results.failures), key=position)
    return Results(tuple(tasks), tuple(failures), found[0].metrics)


def failed_methods(results: Sequence[Results]) -> list[Failed]:
    """Return each method that failed in at least one resample, with its first error message."""
    reasons: dict[str, list[str]] = {}
    for failure in (failure for one in results for failure in one.failures):
        reasons.setdefault(failure.method, []).append(failure.reason)
    return [
        Failed(name, len(several), several[0].partition(": ")[2] or several[0])
        for name, several in reasons.items()
    ]
