"""Random methods: recipes, searches with criteria, and paths of SVMs."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

import tamis.criteria
import tamis.search
from tamis.choice import FalseDiscovery, Threshold
from tamis.contract import Search, Selection
from tamis.contract.criterion import Criterion
from tamis.criteria import (
    HSIC,
    MIFS,
    ColumnSubset,
    Correlation,
    CrossValidated,
    DensitySensitivity,
    Divergence,
    FisherScore,
    Importances,
    KwakInformation,
    MutualInformation,
    OutputInformation,
    ParzenInformation,
    Penalised,
    PosteriorSensitivity,
    RadiusMargin,
    ReducedParzenInformation,
    Remembered,
    Scatter,
    Scored,
    ScoreSensitivity,
    Span,
    WeightNorm,
)
from tamis.meta.search_repeats import Rounds
from tamis.neural import GateSelector
from tamis.recipes import names, recipe
from tamis.recipes.book import targets_of
from tamis.search import BranchAndBound, Exhaustive, Genetic, Ranking, RecursiveElimination, Then
from tamis.svm import GradientC, GridC, SVCPath, SVCPathCV, SVRPath, SVRPathCV
from tamis.svm.curves.scores import LOSSES, SCORES

Draw = np.random.Generator

#: Kernels, and sizes that a user may ask for.
KERNELS = ("linear", "rbf", "poly")
SIZES = (0.5, 0.3, 0.7, 0.5, 1, 2, 3, 1.0, "best", Threshold(0.1), FalseDiscovery(0.05))


def absolute_sum(X: Any, y: Any) -> float:
    """A score for ``Scored``."""
    with np.errstate(over="ignore"):
        return float(np.abs(X).sum())


#: Criteria that need arguments, and other options of criteria.
CRITERIA: dict[str, list[Callable[[], Criterion]]] = {
    "HSIC": [
        HSIC,
        lambda: HSIC(gamma="median", unbiased=False),
        lambda: HSIC(task="regression"),
    ],
    "MIFS": [MIFS, lambda: MIFS(n_bins=4, binning="width")],
    "MutualInformation": [MutualInformation, lambda: MutualInformation(task="regression")],
    "Correlation": [Correlation, lambda: Correlation(task="regression")],
    "ParzenInformation": [ParzenInformation, lambda: ParzenInformation(sigma=0.5)],
    "KwakInformation": [KwakInformation, lambda: KwakInformation(leave_one_out=True)],
    "ReducedParzenInformation": [lambda: ReducedParzenInformation(by="removal", sigma=1.0)],
    "Scatter": [lambda: Scatter("J1"), lambda: Scatter("J2"), lambda: Scatter("J3")],
    "Divergence": [Divergence, lambda: Divergence(ridge=1e-3)],
    "ColumnSubset": [ColumnSubset],
    "Remembered": [lambda: Remembered(Scatter("J2", ridge=1e-3))],
    "Penalised": [lambda: Penalised(Scatter("J3", ridge=1e-3), per_feature=0.5)],
    "Scored": [lambda: Scored(absolute_sum)],
    "CrossValidated": [
        lambda: CrossValidated(LinearDiscriminantAnalysis()),
        lambda: CrossValidated(KNeighborsClassifier(3), cv=3),
        # converges in a few iterations, even in hundreds of fits
        lambda: CrossValidated(LogisticRegression(C=0.1), cv=2, scoring="neg_log_loss"),
        lambda: CrossValidated(DecisionTreeClassifier(random_state=0), cv=3),
        lambda: CrossValidated(LinearRegression(), cv=3),
        lambda: CrossValidated(KNeighborsRegressor(2), cv=3),
    ],
    "Importances": [
        lambda: Importances(RidgeClassifier()),
        lambda: Importances(LinearDiscriminantAnalysis()),
        lambda: Importances(SVC(kernel="linear")),
        lambda: Importances(RandomForestClassifier(5, random_state=0)),
        lambda: Importances(Ridge()),
    ],
    "OutputInformation": [lambda: OutputInformation(LogisticRegression(), random_state=0)],
    "WeightNorm": [
        lambda: WeightNorm(SVC()),
        lambda: WeightNorm(SVC(kernel="linear")),
        lambda: WeightNorm(SVR()),
        lambda: WeightNorm(SVC(), order=1, retrain=True),
    ],
    "RadiusMargin": [
        lambda: RadiusMargin(SVC()),
        lambda: RadiusMargin(SVR()),
        lambda: RadiusMargin(SVC(kernel="linear"), order=1),
    ],
    "Span": [lambda: Span(SVC()), lambda: Span(SVR()), lambda: Span(SVC(), retrain=True)],
    "PosteriorSensitivity": [
        lambda: PosteriorSensitivity(LogisticRegression()),
        lambda: PosteriorSensitivity(SVC(), output="decision", n_values=8),
        lambda: PosteriorSensitivity(SVC(), by="derivative"),
        lambda: PosteriorSensitivity(SVC(kernel="linear"), by="zero"),
        lambda: PosteriorSensitivity(SVC(), by="permutation", on="held-out", random_state=0),
        lambda: PosteriorSensitivity(RandomForestClassifier(5, random_state=0), n_values=4),
    ],
    "DensitySensitivity": [
        lambda: DensitySensitivity(Ridge(), n_values=8),
        lambda: DensitySensitivity(SVR(), noise="gaussian", symmetric=True, by="zero"),
    ],
    "ScoreSensitivity": [
        lambda: ScoreSensitivity(LogisticRegression(), n_values=4),
        lambda: ScoreSensitivity(Ridge(), n_values=4),
    ],
}


def public(module: Any, base: type) -> list[Any]:
    """Return the concrete public subclasses of ``base`` in a module."""
    found = [getattr(module, name) for name in module.__all__]
    found = [c for c in found if inspect.isclass(c) and issubclass(c, base)]
    return [c for c in found if not inspect.isabstract(c)]


def method(draw: Draw, kind: str | None = None) -> Any:
    """Return a recipe, a search with a criterion, or a path."""
    drawn = str(draw.choice(["recipe", "recipe", "search", "search", "path"]))
    return WAYS[kind or drawn](draw)


def kinds(made: Any) -> frozenset[str]:
    """Return the kinds of target that a method can use."""
    if isinstance(made, SVRPath | SVRPathCV):
        return frozenset({"regression"})
    return targets_of(made) if isinstance(made, Selection) else frozenset({"classification"})


def _recipe(draw: Draw) -> Any:
    made = recipe(str(draw.choice(names())))
    _shorten(draw, made)
    if draw.random() < 0.5:
        made = _sized(draw, made)
    return made


def _sized(draw: Draw, made: Any) -> Any:
    last = made.second if isinstance(made, Then) else made
    if isinstance(last, Rounds):  # determines the number itself
        return made
    last.set_params(n_features_to_select=SIZES[draw.integers(len(SIZES))])
    return made


def _shorten(draw: Draw, made: Any) -> None:
    """Set seeds, few generations for genetic searches, and mostly no grid of penalties."""
    for name in sorted(made.get_params()):
        if name.endswith("random_state") and "network" not in name:
            made.set_params(**{name: 0})
    if isinstance(made, Genetic):
        made.set_params(population_size=8, n_generations=4)
    if isinstance(made, GateSelector) and draw.random() < 0.8:
        made.set_params(lam=0.1)


def _search(draw: Draw) -> Any:
    criterion = _criterion(draw)
    able = [c for c in public(tamis.search, Search) if isinstance(criterion, c.needs)]
    cls = able[draw.integers(len(able))] if draw.random() < 0.95 else BranchAndBound
    made = cls(criterion)
    if cls is RecursiveElimination and draw.random() < 0.5:
        made.set_params(step=0.3)
    if cls is BranchAndBound:
        made.set_params(max_evaluations=200)
    if draw.random() < 0.2:
        made.set_params(standardize=False)
    _shorten(draw, made)
    made = _sized(draw, made)
    if cls is Exhaustive:  # more would take too long
        made.set_params(n_features_to_select=int(draw.integers(1, 3)))
    return Then(Ranking(FisherScore(), n_features_to_select=0.5), made) if _rarely(draw) else made


def _rarely(draw: Draw) -> bool:
    return bool(draw.random() < 0.05)


def _criterion(draw: Draw) -> Criterion:
    classes = public(tamis.criteria, Criterion)
    cls = classes[draw.integers(len(classes))]
    faces = CRITERIA.get(cls.__name__, [cls])
    return faces[draw.integers(len(faces))]()


def _path(draw: Draw) -> Any:
    kernel = KERNELS[draw.integers(len(KERNELS))]
    options: dict[str, Any] = {"kernel": kernel}
    if kernel == "rbf" and draw.random() < 0.5:
        options["gamma"] = float(draw.choice([1e-12, 0.1, 1e12]))
    cls = [SVCPath, SVCPathCV, SVRPath, SVRPathCV, GridC, GradientC][draw.integers(6)]
    if cls in (SVRPath, SVRPathCV):
        options["epsilon"] = float(draw.choice([0.0, 0.1, 10.0]))
    if cls not in (SVCPath, SVRPath):
        options["cv"] = int(draw.choice([2, 3]))
    if cls is GridC:
        options |= {"step": 4.0, "solver": str(draw.choice(["libsvm", "path"]))}
    if draw.random() < 0.5:
        options |= _face(draw, cls, kernel)
    return cls(**options)


def _face(draw: Draw, cls: type, kernel: str) -> dict[str, Any]:
    """Return some options of a path that are not defaults."""
    faces: dict[str, list[Any]] = {"lambda_range": [(1e-6, 1e6), (1e-30, 1e-10), (1.0, 2.0)]}
    if kernel == "poly":
        faces |= {"degree": [1, 2, 5], "coef0": [1.0, -1.0, 1e6]}
    if cls not in (SVRPath, SVRPathCV):
        faces["class_weight"] = ["balanced", {0: 1e3, 1: 1.0}]
    if cls not in (SVCPath, SVRPath):
        faces |= {"pool": ["samples"], "scoring": [*LOSSES, *SCORES, "roc_auc", "weighted_error"]}
    if cls is SVRPathCV:
        faces["scoring"] = ["mae"]
    if cls is SVCPathCV:
        faces |= {"rule": ["widest", "one-standard-error"]}
    if cls is GridC:
        faces["refine"] = [2]
    if cls is GradientC:
        faces |= {"objective": ["radius-margin", "span"], "start": [1e-9, 1e9]}
    chosen = [name for name in sorted(faces) if draw.random() < 0.5]
    return {name: faces[name][draw.integers(len(faces[name]))] for name in chosen}


WAYS: dict[str, Callable[[Draw], Any]] = {"recipe": _recipe, "search": _search, "path": _path}
