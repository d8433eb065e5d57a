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

from tamis import choice, criteria, neural, search
from tamis.contract import Choice, Search, Selection
from tamis.contract.criterion import Criterion
from tamis.spec.plugins import find_plugins, load_plugin, load_plugins
from tamis.table import TableSelector

Make = Callable[..., Any]

#: Estimators and encoders of other libraries, known where the library is installed. Left out is
#: what fetches something from the network, as TextEncoder of skrub does.
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
#: The library of each of them.
GUESTS = {name: library for library, names in _LIBRARIES.items() for name in names.split()}

#: What a library takes and names nowhere: LightGBM prints lines as it learns unless verbose=-1.
UNNAMED: Mapping[str, tuple[str, ...]] = {"lightgbm": ("verbose",)}


def catalogue() -> dict[str, dict[str, type]]:
    """Classes of tamis and of other packages that an expression may name, in groups.

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
    """Group the classes of tamis."""
    from tamis.auto import Auto  # which loads the models that it tries

    gates, rules = _classes(neural), _classes(choice)
    choices = {k: v for k, v in (rules | gates).items() if issubclass(v, Choice)}
    return {
        # what helps a criterion, such as a way to perturb a column, is listed with the criteria
        "criteria": _classes(criteria),
        "searches": {"TableSelector": TableSelector} | _classes(search),
        "embedded": {k: v for k, v in gates.items() if issubclass(v, Selection)},
        "choices": dict(sorted(choices.items())),
        "around a search": {k: v for k, v in rules.items() if not issubclass(v, Choice)},
        "auto": {"Auto": Auto},
    }


def found(name: str) -> Make | None:
    """Return what a name calls, None if there is none."""
    for names in (tamis_names, sklearn_names, own_estimators):
        if name in (known := names()):
            return known[name]
    if name in GUESTS:
        return _guest(name)
    made: Make | None = load_plugin(name) if name[0].isupper() else None
    return made


def all_names() -> Iterator[str]:
    """Every name, for suggestions."""
    yield from tamis_names()
    yield from sklearn_names()
    yield from own_estimators()
    yield from (name for name in GUESTS if _is_here(name))
    yield from (name for name in find_plugins() if name[0].isupper())


@cache
def tamis_names() -> dict[str, Make]:
    """Criteria, searches, embedded selectors, choices and what stands around a search."""
    return {name: make for group in _own_catalogue().values() for name, make in group.items()}


@cache
def sklearn_names() -> dict[str, Make]:
    """Estimators, splitters and pipelines; found on the first name that is not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimators = dict(all_estimators())
    splitters = {
        name: kind for name, kind in _classes(model_selection).items() if hasattr(kind, "split")
    }
    return {**splitters, **estimators, "make_pipeline": make_pipeline}


@cache
def own_estimators() -> dict[str, Make]:
    """Our own estimators; imported on demand, because numba takes its time."""
    from tamis import svm

    members = {name: getattr(svm, name) for name in svm.__all__} | _classes(neural)
    if find_spec("polars") is not None:  # which reads the frames
        from tamis.table.encoder import TableEncoder

        members["TableEncoder"] = TableEncoder
    return {name: kind for name, kind in members.items() if issubclass(kind, BaseEstimator)}


def library_of(guest: str) -> str:
    """The name by which the library of a guest is installed.

    >>> library_of("RandomSurvivalForest")
    'scikit-survival'
    """
    package = GUESTS[guest].partition(".")[0]
    return {"sksurv": "scikit-survival", "tamis_book": "tamis-book"}.get(package, package)


def _is_here(guest: str) -> bool:
    """Whether the library of a guest is installed."""
    return find_spec(GUESTS[guest].partition(".")[0]) is not None


@cache
def _guest(name: str) -> Make | None:
    """An estimator of another library, None where that is not installed."""
    if not _is_here(name):
        return None
    kind = getattr(import_module(GUESTS[name]), name, None)
    if kind is None or GUESTS[name] != "catboost":
        return kind
    # unless it is told not to, CatBoost writes a folder wherever it is fitted
    made: Make = wraps(kind, updated=())(partial(kind, allow_writing_files=False))
    return made


def parameters_of(make: Make) -> list[Parameter]:
    """Parameters that a callable has by name, those that its bases take by keyword included.

    XGBoost hands what its bases name on as ``**kwargs``; what nobody names is nothing that an
    expression may give.
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
    """Public classes of a package that can be instantiated, without experimental ones."""
    own = package.__name__.startswith("tamis.")
    held = vars(package)  # experimental ones are named in __all__, but not there
    members = {name: getattr(package, name) if own else held.get(name) for name in package.__all__}
    return {
        name: member
        for name, member in members.items()
        if isinstance(member, type) and not isabstract(member) and not name.startswith("Base")
    }
