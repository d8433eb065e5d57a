"""The methods of the literature, by their names.

A recipe is a short function that returns an expression of criterion and search; what is special
about a method is visible in its one line. Options go to the search by keyword::

    tamis.recipe("svm-rfe", C=10, n_features_to_select=5)

Every recipe keeps half of the columns unless told otherwise. Those built on covariance matrices
carry a small ridge, so that constant columns, copies and more columns than rows do no harm.
"""

import re
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, SVR

from tamis._arrays import target_kind
from tamis.contract import KINDS, Criterion
from tamis.criteria import (
    Correlation,
    CrossValidated,
    DiscriminantRatio,
    Divergence,
    FisherScore,
    Importances,
    KolmogorovSmirnov,
    MutualInformation,
    PValue,
    Scatter,
)
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, InvalidSpec, InvalidTarget
from tamis.search import (
    Backward,
    Bidirectional,
    BranchAndBound,
    FalseDiscovery,
    FloatingBackward,
    FloatingForward,
    Forward,
    Genetic,
    PlusLMinusR,
    Ranking,
    RecursiveElimination,
    Then,
)
from tamis.selection import Selection
from tamis.spec import catalogue, did_you_mean, parse, write

__all__ = ["Recipe", "find", "method", "names", "prepare", "recipe", "select"]

#: What :func:`select` runs when no method is named.
DEFAULTS = {"classes": "ridge-rfe", "real": "ridge-regression-rfe"}


@dataclass(frozen=True)
class Recipe:
    """A method of the literature.

    Attributes
    ----------
    name : str
        Lower case, with hyphens.
    summary : str
        What it does, in one line.
    reference : str
        Who described it.
    targets : frozenset of str
        Kinds of target it can use: "classes", "real" or both.
    make : callable
        Function of the options that returns the selector.
    """

    name: str
    summary: str
    reference: str
    targets: frozenset[str]
    make: Callable[..., Selection]

    @property
    def expression(self) -> str:
        """The selector it makes without options, as an expression."""
        return write(self.make())

    @property
    def parameters(self) -> dict[str, Any]:
        """Options and their defaults: those of the recipe, then those of its search."""
        own = {
            name: parameter.default
            for name, parameter in signature(self.make).parameters.items()
            if parameter.kind is not Parameter.VAR_KEYWORD
        }
        last = _last(self.make())
        held = last.get_params(deep=False)
        return own | {name: held[name] for name in held if name != "criterion"}

    def __call__(self, **params: Any) -> Selection:
        known = self.parameters
        for name in params:
            if name not in known:
                raise InvalidSpec(
                    f"{self.name} has no option {name!r}.{did_you_mean(name, known)} Its options "
                    f"are {', '.join(known)}."
                )
        return self.make(**params)


_RECIPES: dict[str, Recipe] = {}


def _published(reference: str) -> Callable[[Callable[..., Selection]], Callable[..., Selection]]:
    """Register a function as the recipe of its name."""

    def register(make: Callable[..., Selection]) -> Callable[..., Selection]:
        name = make.__name__.replace("_", "-")
        summary = (make.__doc__ or "").strip().splitlines()[0]
        _RECIPES[name] = Recipe(name, summary, reference, _targets(make()), make)
        return make

    return register


def _last(selector: Selection) -> Selection:
    """The search that decides in the end."""
    return _last(selector.second) if isinstance(selector, Then) else selector


def _targets(selector: Any) -> frozenset[str]:
    """Kinds of target that every criterion inside can use."""
    if isinstance(selector, Then):
        return _targets(selector.first) & _targets(selector.second)
    return frozenset(getattr(getattr(selector, "criterion", None), "targets", KINDS))


@_published("Duda, Hart and Stork (2001), Pattern Classification, sec. 3.8")
def fisher_score(**options: Any) -> Ranking:
    """Rank by the variance between classes over the variance within."""
    return Ranking(FisherScore(), **options)


@_published("Theodoridis and Koutroumbas (2009), Pattern Recognition, sec. 5.6")
def discriminant_ratio(**options: Any) -> Ranking:
    """Rank by Fisher's discriminant ratio, summed over the pairs of classes."""
    return Ranking(DiscriminantRatio(), **options)


@_published("Guyon and Elisseeff (2003), An introduction to variable and feature selection")
def correlation(**options: Any) -> Ranking:
    """Rank by the absolute correlation with the target (for classes the correlation ratio)."""
    return Ranking(Correlation(), **options)


@_published("Biesiada and Duch (2005), Feature selection for high-dimensional data")
def kolmogorov_smirnov(**options: Any) -> Ranking:
    """Rank by the largest distance between the distributions of the classes."""
    return Ranking(KolmogorovSmirnov(), **options)


@_published("Battiti (1994), Using mutual information for selecting features")
def mutual_information(n_bins: int | None = None, **options: Any) -> Ranking:
    """Rank by the mutual information with the target."""
    return Ranking(MutualInformation(n_bins=n_bins), **options)


@_published("Benjamini and Hochberg (1995), Controlling the false discovery rate")
def t_test_fdr(q: float = 0.05, **options: Any) -> Then:
    """Discard what a t-test (F-test) does not find at false discovery rate q, rank the rest.

    ``n_features_to_select`` counts among those that pass; 1.0 keeps them all.
    """
    passing = Ranking(PValue(), n_features_to_select=FalseDiscovery(q))
    return Then(passing, Ranking(PValue(), **options))


@_published("Whitney (1971), A direct method of nonparametric measurement selection")
def sfs_j3(ridge: float = 1e-3, **options: Any) -> Forward:
    """Sequential forward selection by the scatter measure J3."""
    return Forward(Scatter("J3", ridge=ridge), **options)


@_published("Marill and Green (1963), On the effectiveness of receptors in recognition systems")
def sbs_j3(ridge: float = 1e-3, **options: Any) -> Backward:
    """Sequential backward selection by the scatter measure J3."""
    return Backward(Scatter("J3", ridge=ridge), **options)


@_published("Pudil, Novovicova and Kittler (1994), Floating search methods in feature selection")
def sffs_j3(ridge: float = 1e-3, **options: Any) -> FloatingForward:
    """Floating forward selection by the scatter measure J3."""
    return FloatingForward(Scatter("J3", ridge=ridge), **options)


@_published("Pudil, Novovicova and Kittler (1994), Floating search methods in feature selection")
def sfbs_j3(ridge: float = 1e-3, **options: Any) -> FloatingBackward:
    """Floating backward selection by the scatter measure J3."""
    return FloatingBackward(Scatter("J3", ridge=ridge), **options)


@_published("Stearns (1976), On selecting features for pattern classifiers")
def plus_l_minus_r_j3(ridge: float = 1e-3, **options: Any) -> PlusLMinusR:
    """Add l features, take away r, and again, by the scatter measure J3."""
    return PlusLMinusR(Scatter("J3", ridge=ridge), **options)


@_published("Siedlecki and Sklansky (1988), On automatic feature selection")
def bidirectional_j3(ridge: float = 1e-3, **options: Any) -> Bidirectional:
    """Forward and backward selection towards each other, by the scatter measure J3."""
    return Bidirectional(Scatter("J3", ridge=ridge), **options)


@_published("Narendra and Fukunaga (1977), A branch and bound algorithm for feature selection")
def branch_and_bound_j3(ridge: float = 1e-3, **options: Any) -> BranchAndBound:
    """The best subset by the scatter measure J3, or after 100 000 prices the best so far."""
    return BranchAndBound(Scatter("J3", ridge=ridge), **{"max_evaluations": 100_000} | options)


@_published("Theodoridis and Koutroumbas (2009), Pattern Recognition, sec. 5.6 and 5.7")
def divergence_sffs(ridge: float = 1e-3, **options: Any) -> FloatingForward:
    """Floating forward selection by the divergence of Gaussian classes."""
    return FloatingForward(Divergence(ridge=ridge), **options)


@_published("Guyon, Weston, Barnhill and Vapnik (2002), Gene selection for cancer classification")
def svm_rfe(C: float = 1.0, **options: Any) -> RecursiveElimination:
    """Drop the column of least squared weight in a linear support vector machine, train again."""
    return RecursiveElimination(Importances(SVC(kernel="linear", C=C)), **options)


@_published("Rakotomamonjy (2007), Analysis of SVM regression bounds for variable ranking")
def svr_rfe(C: float = 1.0, **options: Any) -> RecursiveElimination:
    """Drop the column of least squared weight in a linear support vector regression."""
    return RecursiveElimination(Importances(SVR(kernel="linear", C=C)), **options)


@_published("Li and Yang (2005), Analysis of recursive gene selection approaches")
def ridge_rfe(alpha: float = 1.0, **options: Any) -> RecursiveElimination:
    """Drop the tenth of least weight in a ridge classifier, train again."""
    return RecursiveElimination(
        Importances(RidgeClassifier(alpha=alpha)), **{"step": 0.1} | options
    )


@_published("Li and Yang (2005), Analysis of recursive gene selection approaches")
def ridge_regression_rfe(alpha: float = 1.0, **options: Any) -> RecursiveElimination:
    """Drop the tenth of least weight in a ridge regression, train again."""
    return RecursiveElimination(Importances(Ridge(alpha=alpha)), **{"step": 0.1} | options)


@_published("Diaz-Uriarte and Alvarez de Andres (2006), Gene selection using random forest")
def random_forest_rfe(n_estimators: int = 100, **options: Any) -> RecursiveElimination:
    """Drop the fifth of least importance in a random forest, train again."""
    forest = RandomForestClassifier(n_estimators=n_estimators)
    return RecursiveElimination(Importances(forest), **{"step": 0.2} | options)


@_published("Kohavi and John (1997), Wrappers for feature subset selection")
def sfs_lda(cv: int = 5, **options: Any) -> Forward:
    """Forward selection by the cross-validated accuracy of linear discriminant analysis."""
    return Forward(CrossValidated(LinearDiscriminantAnalysis(), cv=cv), **options)


@_published("Kohavi and John (1997), Wrappers for feature subset selection")
def sfs_knn(n_neighbors: int = 5, cv: int = 5, **options: Any) -> Forward:
    """Forward selection by the cross-validated accuracy of the nearest neighbours."""
    return Forward(CrossValidated(KNeighborsClassifier(n_neighbors=n_neighbors), cv=cv), **options)


@_published("Jain and Zongker (1997), Feature selection: evaluation, application, performance")
def sffs_knn(n_neighbors: int = 5, cv: int = 5, **options: Any) -> FloatingForward:
    """Floating forward selection by the cross-validated accuracy of the nearest neighbours."""
    neighbours = KNeighborsClassifier(n_neighbors=n_neighbors)
    return FloatingForward(CrossValidated(neighbours, cv=cv), **options)


@_published("Efroymson (1960), Multiple regression analysis")
def sfs_linear_regression(cv: int = 5, **options: Any) -> Forward:
    """Forward selection by the cross-validated share of variance that least squares explains."""
    return Forward(CrossValidated(LinearRegression(), cv=cv), **options)


@_published("Siedlecki and Sklansky (1989); Sun, Bebis, Yuan and Louis (2002)")
def ga_knn(n_neighbors: int = 5, cv: int = 5, **options: Any) -> Genetic:
    """Breed subsets by the cross-validated accuracy of the nearest neighbours."""
    neighbours = KNeighborsClassifier(n_neighbors=n_neighbors)
    defaults = {"population_size": 30, "n_generations": 20}
    return Genetic(CrossValidated(neighbours, cv=cv), **defaults | options)


def names() -> list[str]:
    """Names of all recipes, in alphabetical order.

    >>> from tamis.recipes import names
    >>> "svm-rfe" in names()
    True
    """
    return sorted(_RECIPES)


def find(words: str = "") -> list[Recipe]:
    """Recipes whose name, summary or reference holds all the words.

    >>> from tamis.recipes import find
    >>> [recipe.name for recipe in find("floating divergence")]
    ['divergence-sffs']
    """
    asked = words.lower().split()

    def text(recipe: Recipe) -> str:
        return f"{recipe.name} {recipe.summary} {recipe.reference}".lower()

    return [_RECIPES[name] for name in names() if all(w in text(_RECIPES[name]) for w in asked)]


def recipe(name: str, **params: Any) -> Selection:
    """Selector of a method of the literature.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    **params
        Options of the recipe, and of the search that it returns.

    Examples
    --------
    >>> import tamis.recipes
    >>> tamis.recipes.recipe("sffs-j3", n_features_to_select=5)
    FloatingForward(criterion=Scatter(ridge=0.001), n_features_to_select=5)
    """
    if name not in _RECIPES:
        raise _unknown(name)
    return _RECIPES[name](**params)


def method(text: str) -> Selection:
    """Selector meant by a recipe's name, with or without options, or by an expression.

    >>> from tamis.recipes import method
    >>> method("svm-rfe(n_features_to_select=3)").n_features_to_select
    3
    >>> method("Forward(FisherScore())")
    Forward(criterion=FisherScore())
    """
    if not isinstance(text, str):
        raise InvalidSpec(f"method needs the name of a recipe or an expression, not {text!r}.")
    named = re.fullmatch(r"([a-z0-9]+(?:-[a-z0-9]+)*)\s*(\(.*\))?", text.strip(), re.DOTALL)
    if named is None:
        return _as_selector(parse(text), text)
    name, options = named.groups()
    if name not in _RECIPES:
        raise _unknown(name)
    if options is None:
        return _RECIPES[name]()
    # an identifier of the same length, so that places in messages stay right
    word = name.replace("-", "_")
    return parse(word + text.strip()[len(name) :], also={word: _signed(_RECIPES[name])})


def prepare(
    asked: "str | Selection | None" = None,
    y: ArrayLike | None = None,
    *,
    n_features: Any = None,
    target: str = "auto",
    random_state: int | None = None,
    n_jobs: int | None = None,
) -> Selection:
    """Selector that :func:`select` would fit; the parameters are described there."""
    kind = _kind(y, target)
    if asked is None and kind == "none":
        raise InvalidTarget(
            "select needs y to choose a method by. Give y, or name a method that does without."
        )
    asked = DEFAULTS[kind] if asked is None else asked
    made = method(asked) if isinstance(asked, str) else _as_selector(asked, asked)
    selector = clone(made)
    if kind != "none" and kind not in _targets(selector):
        _refuse_kind(asked, selector, kind, target)
    if target != "auto":
        _fill(selector, "target", "auto", target)
    if n_features is not None:
        _resize(selector, n_features)
    if random_state is not None:
        _seed(selector, random_state)
    if n_jobs is not None:
        _fill(selector, "n_jobs", None, n_jobs, outside="estimator")
    return selector


def select(
    X: ArrayLike,
    y: ArrayLike | None = None,
    method: "str | Selection | None" = None,
    *,
    n_features: Any = None,
    target: str = "auto",
    random_state: int | None = None,
    n_jobs: int | None = None,
    **params: Any,
) -> Selection:
    """Select columns in one line, and return the fitted selection.

    Parameters
    ----------
    X : array, pandas or polars frame of shape (n_samples, n_features)
    y : array of shape (n_samples,), optional
    method : str or Selection, optional
        A recipe such as "svm-rfe", an expression such as ``Forward(Scatter("J3"))``, or a selector.
        The default is "ridge-rfe" for classes and "ridge-regression-rfe" for a real target: they
        weigh the columns jointly, so that of several that say the same one suffices, cost a few
        least-squares fits at any number of rows and columns, draw nothing at random and have
        nothing to tune.
    n_features : int, float, "best" or Choice, optional
        How many columns to keep; in place of the method's ``n_features_to_select``.
    target : {"auto", "classes", "real"}, default="auto"
        How to read ``y``. By itself, an integer target of at most 20 values is read as classes.
    random_state : int, optional
        Given to every part of the method that draws at random and has no seed of its own.
    n_jobs : int, optional
        Given to every criterion that can use several processes.
    **params
        Per-row metadata for ``fit``, such as ``sample_weight``.

    Returns
    -------
    Selection
        The fitted selector, see :class:`tamis.selection.Selection` for what it knows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.recipes import select
    >>> X, y = load_iris(return_X_y=True)
    >>> select(X, y, "sffs-j3", n_features=2).get_support(indices=True)
    array([1, 2])
    """
    selector = prepare(
        method,
        y,
        n_features=n_features,
        target=target,
        random_state=random_state,
        n_jobs=n_jobs,
    )
    fitted: Selection = selector.fit(X, y, **params)
    return fitted


def _unknown(name: str) -> InvalidSpec:
    classes = [known for group in catalogue().values() for known in group]
    near = did_you_mean(str(name), [*names(), *classes])
    return InvalidSpec(
        f"No method is called {name!r}.{near} Write one of {', '.join(names())}, or an expression "
        'such as Forward(Scatter("J3")).'
    )


def _signed(recipe: Recipe) -> Callable[..., Selection]:
    """The recipe as a function whose signature names all options."""

    def make(**params: Any) -> Selection:
        return recipe(**params)

    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default)
        for name, default in recipe.parameters.items()
    ]
    make.__signature__ = Signature(options)  # type: ignore[attr-defined]
    return make


def _as_selector(made: Any, asked: Any) -> Selection:
    if isinstance(made, Selection):
        return made
    if isinstance(made, Criterion):
        raise InvalidSpec(
            f"{asked} is a criterion, and a method needs a search around it. Write "
            f"Forward({asked}), or Ranking, RecursiveElimination, ... in its place."
        )
    raise InvalidSpec(
        f"{asked} is no method. Write a recipe such as 'svm-rfe', or a search with a criterion such "
        'as Forward(Scatter("J3")).'
    )


def _kind(y: ArrayLike | None, target: str) -> str:
    if target not in {"auto", *KINDS}:
        raise InvalidParameter(f"select needs target='auto', 'classes' or 'real', not {target!r}.")
    if y is None or target != "auto":
        return "none" if y is None else target
    return target_kind(np.asarray(y))


def _refuse_kind(asked: Any, selector: Selection, kind: str, target: str) -> None:
    """Refuse a method for classes where real numbers were asked for, and the reverse.

    Numbers that only look real may still be meant as classes: the criterion decides on those.
    """
    if target == "auto":
        return
    spoken = {"classes": "classes", "real": "a real target"}
    other = ", ".join(name for name in names() if kind in _RECIPES[name].targets)
    able = " or ".join(spoken[k] for k in sorted(_targets(selector)))
    shown = asked if isinstance(asked, str) else write(selector, strict=False)
    raise IncompatibleCriterion(
        f"{shown} needs {able}, but y was to be read as {spoken[kind]}. For {spoken[kind]} there "
        f"are {other}."
    )


def _fill(selector: Selection, name: str, empty: Any, value: Any, outside: str = "") -> None:
    """Set every parameter of this name that was left empty, but none inside ``outside``."""
    for key, held in selector.get_params().items():
        path = key.split("__")
        if path[-1] == name and held == empty and (not outside or outside not in path):
            selector.set_params(**{key: value})


def _resize(selector: Selection, n_features: Any) -> None:
    last = _last(selector)
    if "n_features_to_select" not in last.get_params(deep=False):
        raise InvalidParameter(
            f"{type(last).__name__} takes no number of features. Leave n_features out."
        )
    last.set_params(n_features_to_select=n_features)


def _seed(selector: Selection, seed: int) -> None:
    """Set every seed that was left open, those of splitters that shuffle included."""
    for key, held in selector.get_params().items():
        if key.split("__")[-1] == "random_state" and held is None:
            selector.set_params(**{key: seed})
        elif not hasattr(held, "get_params") and getattr(held, "random_state", seed) is None:
            if getattr(held, "shuffle", True):
                splitter = copy(held)
                splitter.random_state = seed
                selector.set_params(**{key: splitter})
