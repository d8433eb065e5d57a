"""The names that an expression may call."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial, wraps
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, isabstract, signature
from typing import Any

from sklearn import model_selection
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.utils import all_estimators

from tamis import choice, criteria, meta, neural, search
from tamis.contract import Choice, Search, Selection
from tamis.contract.costs import FeatureCosts
from tamis.contract.criterion import Criterion
from tamis.spec.plugins import find_plugins, load_plugin, load_plugins
from tamis.table import TableSelector

Make = Callable[..., Any]

#: Estimators and encoders of other libraries, available if the library is installed. Classes that
#: access the network, such as skrub's TextEncoder, are excluded.
_LIBRARIES: Mapping[str, str] = {
    "lightgbm": "LGBMClassifier LGBMRegressor",
    "xgboost": "XGBClassifier XGBRegressor XGBRFClassifier XGBRFRegressor",
    "catboost": "CatBoostClassifier CatBoostRegressor",
    "skrub": "DatetimeEncoder GapEncoder MinHashEncoder SimilarityEncoder "
    "StringEncoder TableVectorizer",
    "sksurv.linear_model": "CoxPHSurvivalAnalysis CoxnetSurvivalAnalysis IPCRidge",
    "sksurv.ensemble": "RandomSurvivalForest ExtraSurvivalTrees GradientBoostingSurvivalAnalysis "
    "ComponentwiseGradientBoostingSurvivalAnalysis",
    "sksurv.tree": "SurvivalTree ExtraSurvivalTree",
    "sksurv.svm": "FastSurvivalSVM FastKernelSurvivalSVM HingeLossSurvivalSVM "
    "NaiveSurvivalSVM MinlipSurvivalAnalysis",
    "tamis_book": "GradientC GridC",
}
#: Maps each of these class names to its library.
GUESTS = {name: library for library, names in _LIBRARIES.items() for name in names.split()}

#: Parameters that are allowed although signatures do not list them, by library. LightGBM prints
#: during training unless verbose=-1.
UNNAMED: Mapping[str, tuple[str, ...]] = {"lightgbm": ("verbose",)}


def catalogue() -> dict[str, dict[str, type]]:
    """Return the classes of tamis and of plug-ins that an expression may call, in groups.

    >>> from tamis.spec import catalogue
    >>> list(catalogue())
    ['criteria', 'searches', 'embedded', 'choices', 'around a search', 'auto']
    """
    groups = {group: dict(kinds) for group, kinds in _own_catalogue().items()}
    bases = {"choices": Choice, "criteria": Criterion, "searches": Search, "embedded": Selection}
    for name, kind in load_plugins(recipes=False).items():
        group = next((group for group, base in bases.items() if issubclass(kind, base)), None)
        if group is not None and name not in tamis_names():
            groups[group][name] = kind
    return groups


@cache
def _own_catalogue() -> dict[str, dict[str, type]]:
    from tamis.auto import Auto  # imported here, because it imports many models

    gates, rules = _classes(neural), _classes(choice)
    choices = {k: v for k, v in (rules | gates).items() if issubclass(v, Choice)}
    return {
        # helper classes of criteria, such as perturbations, are listed with the criteria
        "criteria": _classes(criteria),
        "searches": {"TableSelector": TableSelector} | _classes(search),
        "embedded": {k: v for k, v in gates.items() if issubclass(v, Selection)},
        "choices": dict(sorted(choices.items())),
        "around a search": _classes(meta),
        "auto": {"Auto": Auto},
    }


def find(name: str) -> Make | None:
    """Return the class or function with this name, or None if the name is unknown."""
    for names in (tamis_names, sklearn_names, own_estimators):
        if name in (known := names()):
            return known[name]
    if name in GUESTS:
        return _guest(name)
    made: Make | None = load_plugin(name) if name[0].isupper() else None
    return made


def all_names() -> Iterator[str]:
    """Yield all known names. Errors about misspelled names suggest similar ones."""
    yield from tamis_names()
    yield from sklearn_names()
    yield from own_estimators()
    yield from (name for name in GUESTS if _is_installed(name))
    yield from (name for name in find_plugins() if name[0].isupper())


@cache
def tamis_names() -> dict[str, Make]:
    """Return the criteria, searches, selectors and choices of tamis by name."""
    return {name: make for group in _own_catalogue().values() for name, make in group.items()}


@cache
def sklearn_names() -> dict[str, Make]:
    """Return the estimators, splitters and pipelines of scikit-learn by name."""
    with warnings.catch_warnings(action="ignore"):
        estimators = dict(all_estimators())
    splitters = {
        name: kind for name, kind in _classes(model_selection).items() if hasattr(kind, "split")
    }
    return {**splitters, **estimators, "make_pipeline": make_pipeline}


@cache
def own_estimators() -> dict[str, Make]:
    """Return the estimators of tamis by name. Imported lazily, because numba loads slowly."""
    from tamis import svm

    members = {name: getattr(svm, name) for name in svm.__all__} | _classes(neural)
    members["FeatureCosts"] = FeatureCosts
    if find_spec("polars") is not None:  # the encoder needs polars
        from tamis.table.encoder import TableEncoder

        members["TableEncoder"] = TableEncoder
    return {name: kind for name, kind in members.items() if issubclass(kind, BaseEstimator)}


def library_of(guest: str) -> str:
    """Return the package to install for a class of another library.

    >>> library_of("RandomSurvivalForest")
    'scikit-survival'
    """
    package = GUESTS[guest].partition(".")[0]
    return {"sksurv": "scikit-survival", "tamis_book": "tamis-book"}.get(package, package)


def _is_installed(guest: str) -> bool:
    return find_spec(GUESTS[guest].partition(".")[0]) is not None


@cache
def _guest(name: str) -> Make | None:
    """Return a class of another library, or None if that library is not installed."""
    if not _is_installed(name):
        return None
    kind = getattr(import_module(GUESTS[name]), name, None)
    if kind is None or GUESTS[name] != "catboost":
        return kind
    # by default, CatBoost writes a folder during fit
    made: Make = wraps(kind, updated=())(partial(kind, allow_writing_files=False))
    return made


def parameters_of(make: Make) -> list[Parameter]:
    """Return the named parameters of a callable, including keyword parameters of its base classes.

    Base classes are needed for XGBoost, whose estimators pass parameters on as ``**kwargs``.
    """
    own = list(signature(make).parameters.values())
    if not any(p.kind is Parameter.VAR_KEYWORD for p in own):
        return own
    known = {p.name: p for p in own if p.kind is not Parameter.VAR_KEYWORD}
    for base in getattr(make, "__mro__", ())[1:]:
        for p in signature(base.__init__).parameters.values():
            if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
                known.setdefault(p.name, p.replace(kind=Parameter.KEYWORD_ONLY))
    known.pop("self", None)
    for name in UNNAMED.get(make.__module__.partition(".")[0], ()):
        known.setdefault(name, Parameter(name, Parameter.KEYWORD_ONLY, default=None))
    return list(known.values())


def _classes(package: Any) -> dict[str, type]:
    """Return the public concrete classes of a package, without experimental ones."""
    own = package.__name__.startswith("tamis.")
    loaded = vars(package)  # experimental classes of scikit-learn are in __all__, but not here
    members = {
        name: getattr(package, name) if own else loaded.get(name) for name in package.__all__
    }
    return {
        name: member
        for name, member in members.items()
        if isinstance(member, type) and not isabstract(member) and not name.startswith("Base")
    }
