"""What ``tamis compare`` measures: methods by their words, on tables, over resamples."""

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.pipeline import make_pipeline

from tamis._arrays import Subset, is_real
from tamis.choice.honest import SIZES, first_units
from tamis.choice.inner_search import reached, walk_of
from tamis.contract import Grouping
from tamis.evaluation import Realizations, Results, Steps, evaluate
from tamis.evaluation.columns import chooser_of
from tamis.evaluation.metrics import metric
from tamis.exceptions import DamagedRow, InvalidParameter, InvalidSpec, TamisError
from tamis.recipes import prepare
from tamis.report.standing_words import ALL, BASELINES, GUESS
from tamis.spec import parse
from tamis.table.rows import ResampledTable

Progress = Callable[[int, int], None]

#: Columns that are tried where nobody says how many: wrappers walk so far in seconds, and a list
#: that is longer is hardly read.
MOST = 20
#: The factor between larger numbers of columns, as between those of honest sizes.
FACTOR = 2**0.5
#: A number this little below the largest is left out: it would say the same once more.
CLOSEST = 1.1
#: Words of people for metrics.
SPOKEN_METRICS = {
    "balanced": "ber",
    "balanced error": "ber",
    "balanced-error": "ber",
    "balanced_error": "ber",
}
#: What is trained on the chosen columns: linear, with nothing to tune, and quick.
ESTIMATORS = {"classification": RidgeClassifier, "regression": Ridge}
METRICS = {"classification": "error", "regression": "rmse"}
#: What is compared where no method is named: columns one by one, beside those kept, in a model.
METHODS = {
    "classification": ("correlation", "mrmr", "ridge-rfe"),
    "regression": ("correlation", "mrmr", "ridge-regression-rfe"),
}


class Contestant(NamedTuple):
    """A method, and where it is measured.

    ``measured`` is "order" (the first columns of its order, at every size), "held" (what it held at
    each size, where a walk takes columns back) or "own" (what it keeps).
    """

    method: Any
    measured: str


@dataclass(frozen=True)
class Held(Steps):
    """Sizes at which a walk that also takes columns back is measured: by the best it held of each.

    Sizes that it jumped over are the first columns of its order.
    """

    def subsets(self, fitted: Any) -> list[tuple[Subset, str]]:
        """The columns of each size."""
        search = chooser_of(fitted)
        found = [search.units_.columns(first_units(search, size)) for size in self.numbers]
        return [(columns, "given") for columns in found]


@dataclass(frozen=True)
class Rules:
    """How methods are measured on one table.

    Attributes
    ----------
    task : {"classification", "regression"}
    sizes : tuple of int
    estimator : estimator
        Trained on the chosen columns.
    metric : str
    plan : Realizations
    shape : (int, int)
        Rows and columns of the table.
    spoken : str
        The table in words.
    """

    task: str
    sizes: tuple[int, ...]
    estimator: Any
    metric: str
    plan: Realizations
    shape: tuple[int, int] = (0, 0)
    spoken: str = ""

    @property
    def guess(self) -> Any:
        """What predicts without any column."""
        return DummyClassifier() if self.task == "classification" else DummyRegressor()


def grid(most: int) -> tuple[int, ...]:
    """Numbers of columns that are tried, up to a largest one.

    >>> grid(12), grid(60)
    ((1, 2, 3, 4, 5, 7, 10, 12), (1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 60))
    """
    sizes = [size for size in SIZES if size]
    while sizes[-1] < most:
        sizes.append(round(sizes[-1] * FACTOR))
    return (*(size for size in sizes if CLOSEST * size < most), most)


def metric_for(asked: str | None, task: str) -> str:
    """The metric of this name, refused where the target has no such thing."""
    name = METRICS[task] if asked is None else asked.strip().lower()
    name = metric(SPOKEN_METRICS.get(name, name)).name
    of_other = {"classification": ("mse", "rmse", "scc"), "regression": ("error", "ber", "auc")}
    if metric(name).function is None or name == "cv_error":
        raise InvalidParameter(
            f"--metric needs a measure of predictions, such as {METRICS[task]}, not {name}."
        )
    if name in of_other[task]:
        raise InvalidParameter(
            f"--metric {name} is not for {task}. Write --metric {METRICS[task]}, or --task to read "
            "the target in another way."
        )
    return name


def estimator_for(asked: str | None, task: str) -> Any:
    """What is trained on the chosen columns."""
    if asked is None:
        return ESTIMATORS[task]()
    made = parse(asked)
    fits = is_classifier(made) if task == "classification" else is_regressor(made)
    if not fits:
        raise InvalidParameter(
            f"--estimator needs one for {task}, such as {ESTIMATORS[task].__name__}(), not {asked}."
        )
    return made


def contestants(
    asked: Sequence[str], y: Any, task: str, units: Grouping, largest: int
) -> tuple[dict[str, Contestant], dict[str, str]]:
    """The methods by their words, and a sentence for each that cannot be used on this target.

    A word that means no method is an error before any work.
    """
    found: dict[str, Contestant] = {}
    refused: dict[str, str] = {}
    for text in dict.fromkeys(asked):
        try:
            found[text] = contestant(text, y, task, units, largest)
        except InvalidSpec:
            raise
        except TamisError as error:
            refused[text] = str(error)
    return found, refused


def contestant(text: str, y: Any, task: str, units: Grouping, largest: int) -> Contestant:
    """The method of a recipe's name or an expression, asked to walk as far as is measured.

    One that has a number of its own, or takes none, is measured with what it keeps.
    """
    made = prepare(None if text == "auto" else text, y, task=task, **by_index(units))
    walk = walk_of(made)
    parameters = signature(type(walk)).parameters
    own = parameters.get("n_features_to_select")
    # a default that is no number is a rule by which the method decides
    if own is None or not is_real(own.default) or walk.n_features_to_select != own.default:
        return Contestant(made, "own")
    # it looks for one size, and knows no other; as many groups are not as many columns everywhere
    if not (walk.nested or walk.extends) or units.groups:
        return Contestant(prepare(made, y, n_features_to_select=largest, task=task), "own")
    size: int | float = min(reached(made, units.n_units), largest) if walk.grows else 1
    if walk.scores_alone:  # a ranking knows all sizes at once
        size = 1.0
    sized = prepare(made, y, n_features_to_select=size, task=task)
    nested = walk.nested or walk is not made
    return Contestant(sized, "order" if nested and not units.fixed else "held")


def by_index(units: Grouping) -> dict[str, Any]:
    """Groups and fixed units as parameters that need no names: a table of numbers has none."""
    groups = {name: list(columns) for name, columns in units.groups}
    fixed = [int(units.columns(np.array([unit]))[0]) for unit in units.fixed]
    return {"feature_groups": groups or None, "fixed_features": fixed or None}


def contest(
    table: ResampledTable,
    methods: Mapping[str, Contestant],
    rules: Rules,
    progress: Progress | None = None,
    **how: Any,
) -> Results:
    """Scores of the methods and of the baselines; ``how`` are jobs, cluster and store."""
    name = table.source.name
    estimator = table.estimator(rules.estimator)
    beside = {ALL: make_pipeline(estimator), GUESS: rules.guess}
    found: list[Results] = []
    asked = []
    for measured, sizes in (("order", rules.sizes), ("held", Held(rules.sizes)), ("own", "own")):
        some = {n: table.method(m.method) for n, m in methods.items() if m.measured == measured}
        if some:
            asked.append(({**some, **beside}, sizes))
    total = sum(len(some) for some, _ in asked) * len(rules.plan)
    for some, sizes in asked:
        before = sum(len(results.tasks) + len(results.failures) for results in found)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", DamagedRow)
            results = evaluate(
                some,
                {name: table.source},
                rules.plan,
                rules.metric,
                estimators={"estimator": estimator},
                sizes=sizes,
                normalise=table.plain,
                progress=_from(before, total, progress),
                **how,
            )
        found.append(results)
    return _joined(found, tuple(methods))


def _from(before: int, total: int, progress: Progress | None) -> Progress | None:
    """Progress of one call as progress of all."""
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)


def _joined(found: Sequence[Results], methods: Sequence[str]) -> Results:
    """All results as one: methods in the order given, the baselines once and last."""
    order = {name: i for i, name in enumerate((*methods, *BASELINES))}
    tasks = {(t.method, t.realization): t for results in found for t in results.tasks}
    failures = {(f.method, f.realization): f for results in found for f in results.failures}
    return Results(
        tuple(sorted(tasks.values(), key=lambda t: (order[t.method], t.realization))),
        tuple(sorted(failures.values(), key=lambda f: (order[f.method], f.realization))),
        found[0].metrics,
    )


def joined_tables(found: Sequence[Results]) -> Results:
    """Results on several tables as one."""
    return Results(
        tuple(task for results in found for task in results.tasks),
        tuple(failure for results in found for failure in results.failures),
        found[0].metrics,
    )


def is_file_word(word: str, extensions: Sequence[str]) -> bool:
    """Whether a word of the command is a file: there is one, or it ends as tables do."""
    if re.search(r"[()\"']", word):
        return False
    return word == "-" or Path(word).exists() or any(e in Path(word).suffixes for e in extensions)
