"""Checks that no argument of an expression accesses files or runs code.

Only strings and True can be dangerous. Everything else in an expression is a number or an object of
a known class. This module lists the few parameters for which a string is dangerous. A test searches
all parameters of the vocabulary for others, by their annotations, descriptions and effects.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tamis._format import did_you_mean
from tamis.exceptions import InvalidSpec
from tamis.spec.vocabulary import parameters_of

#: Parameters that must be None or False, and the danger of other values.
REFUSED: Mapping[str, str] = {
    # scikit-learn: make_pipeline, Pipeline, FeatureAgglomeration, AgglomerativeClustering, OPTICS
    "memory": "names a folder whose pickled content would be run",
    # scikit-learn's searches over hyper-parameters pass this to joblib, which evaluates it
    "pre_dispatch": "holds an expression that joblib evaluates",
    # CatBoost: these parameters make it read or write files and folders
    "allow_writing_files": "lets files be written",
    "input_borders": "names a file",
    "output_borders": "names a file",
    "save_snapshot": "lets files be written",
    "snapshot_file": "names a file",
    "train_dir": "names a folder",
}

#: Parameters whose strings must match a pattern, and the danger of other strings.
WORDS: Mapping[str, tuple[re.Pattern[str], str]] = {
    # text vectorizers of scikit-learn can read files whose names are in the rows
    "input": (re.compile("content"), "treats the rows as names of files to read"),
    # the string must be a public attribute of the fitted estimator or of a step in a pipeline
    "importance_getter": (
        re.compile(r"[a-zA-Z]\w*(\.[a-zA-Z]\w*)*"),
        "names a private attribute of Python",
    ),
}

#: Largest values of parameters that count processes, threads, models or resamples. An expression
#: may not start work without bound.
MOST_JOBS, MOST_REPEATS = 64, 100_000
COUNTS: Mapping[str, int] = {
    **dict.fromkeys(("n_jobs", "nthread", "thread_count"), MOST_JOBS),
    **dict.fromkeys(
        (
            "iterations", "n_estimators", "n_generations", "n_init", "n_iter", "n_pairs",
            "n_permutations", "n_repeats", "n_resamples", "n_restarts_optimizer", "n_rounds",
            "n_splits", "num_boost_round", "num_parallel_tree", "num_trees", "population_size",
        ),
        MOST_REPEATS,
    ),
}  # fmt: skip

#: Parameters that hold grids: dictionaries, or lists of them, whose keys are parameters.
GRIDS = ("param_grid", "param_distributions")

#: Parameters whose strings are names of columns or groups. They are not passed to any estimator.
NAMES = frozenset({"feature_groups", "fixed_features", "prices", "shared"})


def check_argument(parameter: str, value: Any, at: str) -> None:
    """Raise an error if an argument could access files or run code.

    Parameters
    ----------
    parameter : str
        Name of the parameter, or the path to it, such as ``"estimator__memory"``.
    value : object
        The argument. Dictionaries inside it are searched, because their keys may name parameters.
    at : str
        Position in the expression, for the error message.
    """
    if parameter in NAMES:
        return
    _check(parameter, value, at)
    _check_count(parameter, value, at)
    for inside in _dictionaries(value):
        for key, held in inside.items():
            _check_count(str(key), held, at)
            # a number is safe: "memory" may be a class label with a weight
            if isinstance(key, str) and any(True for _ in _texts(held)):
                check_one_word(key, held, at)
                _check(key, held, at)


def check_grids(made: Any, at: str) -> None:
    """Raise an error if a grid sets a parameter that no estimator in the object has.

    LightGBM accepts parameters that its signature does not list. Some of them open files and
    sockets.
    """
    parts = list(_parts(made))
    named = {p.name for part in parts for p in parameters_of(type(part))}
    named |= {key.rsplit("__", 1)[-1] for part in parts for key in part.get_params()}
    for grid in _grids([getattr(part, word, None) for part in parts for word in GRIDS]):
        for key in grid:
            if isinstance(key, str) and key.rsplit("__", 1)[-1] not in named:
                raise InvalidSpec(
                    f"{key!r} {at} is not a parameter of its estimator.{did_you_mean(key, named)} "
                    "Name one that it has, or make the object in Python."
                )


def check_one_word(parameter: str, value: Any, at: str) -> None:
    """Raise an error for a string with spaces, which LightGBM would read as further parameters.

    LightGBM receives all parameters as a single line of ``name=value``, and some of them name
    files.
    """
    if any(isinstance(held, str) and re.search(r"\s", held) for held in _texts(value)):
        raise _refusal(parameter, at, "holds more than one word", "one word")


def _check(parameter: str, value: Any, at: str) -> None:
    name = parameter.rsplit("__", 1)[-1]
    if name in REFUSED and not (value is None or value is False):
        raise _refusal(parameter, at, REFUSED[name], "None, or leave it out")
    if name in WORDS:
        pattern, danger = WORDS[name]
        texts = (held for held in _texts(value) if isinstance(held, str))
        if any(not pattern.fullmatch(text) for text in texts):
            raise _refusal(parameter, at, danger, "another word")


def _check_count(parameter: str, value: Any, at: str) -> None:
    name = parameter.rsplit("__", 1)[-1]
    # the trees of histogram gradient boosting; other estimators may need many iterations
    trees = name == "max_iter" and "HistGradientBoosting" in at
    most = MOST_REPEATS if trees else COUNTS.get(name)
    for held in value if isinstance(value, list | tuple) else [value]:
        if most is not None and isinstance(held, int | float) and held > most:
            raise InvalidSpec(
                f"{parameter} {at} needs a number of at most {most} in an expression, got {held}. "
                "Write a smaller one, or make the object in Python."
            )


def _refusal(parameter: str, at: str, danger: str, instead: str) -> InvalidSpec:
    return InvalidSpec(
        f"{parameter} {at} cannot be given in an expression: it {danger}. Write {instead}, or make "
        "the object in Python."
    )


def _parts(value: Any) -> Iterable[Any]:
    """Yield the estimators inside a value, including the value itself."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item)
    elif hasattr(value, "get_params"):
        yield value
        yield from _parts(value.get_params(deep=False))


def _grids(value: Any) -> Iterable[dict[Any, Any]]:
    """Yield the grids in a value. A grid may set the grids of an inner search."""
    if isinstance(value, dict):
        yield value
        value = [held for key, held in value.items() if str(key).rsplit("__", 1)[-1] in GRIDS]
    if isinstance(value, list | tuple):
        for item in value:
            yield from _grids(item)


def _texts(value: Any) -> Iterable[str | bool]:
    """Yield every string and every ``True`` inside a value, including nested ones."""
    if isinstance(value, str) or value is True:
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _dictionaries(value: Any) -> Iterable[dict[Any, Any]]:
    """Yield all dictionaries inside a value, including nested ones."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _dictionaries(item)
