"""Experiment files: one published table each, as TOML.

::

    title = "Hits on Weston's problem"
    source = "Author (year), title, table 3"
    metric = "hit"                       # or error, mse, cv_error, stability (with interval), ...
    agreement = "chance"                 # or "range" (the published number is within our range),
                                         # or a number (the maximum difference)
    realizations = 30
    scale = 100                          # factor of the published numbers
    cost = 3.5                           # approximate processor seconds of a realization
    reference = "SD-L"                   # the method that published tests compare with the others

    [methods]                            # expressions, recipes, or calls of the estimators below
    FisherS = "Ranking(FisherScore())"

    [baselines]                          # shown next to the methods, with equal numbers of columns
    F = "Ranking(FisherScore())"

    [estimators]                         # trained on the selected columns
    svm = "SVC(C=8, gamma=0.125)"

    [tuning]                             # only with --tune, instead of the settings above
    rule = "mean-of-5"
    estimator = "svm"
    grid = { C = [1, 8], gamma = [0.1, 1] }

    [unsound]                            # published rows that are not compared, and why:
    mRMR = "not specified: the bins"     # not specified, impossible or contradicted

    [[parts]]                            # one block of columns of the table
    name = "200"
    data = { make = "make_weston", n_samples = 10000 }
    train = 200
    folds = 5                            # instead of train: cross-validation
    splits = "raetsch"                   # instead of train: splits that came with the table
    published = { FisherS = 0 }          # one number, or one per entry of sizes
    signs = { FisherS = ["+"] }          # the reference wins (+) or loses (-) by a paired t-test

A table of your own needs no ``source`` and no parts::

    title = "My table"
    data = "mine.csv"                    # next to this file, or in a folder below
    target = "y"
    train = 0.75
    sizes = [1, 2, 5, 10]

    [methods]
    mrmr = "mrmr(n_features_to_select=10)"
"""

import math
import tomllib
from collections.abc import Collection, Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from tamis._format import did_you_mean
from tamis.exceptions import InvalidSpec, TamisError
from tamis.spec.safety import check_argument
from tamis_book.experiment import Experiment, Part

FOLDER = Path(__file__).parent / "experiments"
ENDING = ".toml"
#: Keys that describe a table in a file.
TABLE_WORDS = {"read", "target", "task", "drop", "keep"}
EXPERIMENT_WORDS = {field.name for field in fields(Experiment)} - {"name"}
PART_WORDS = {field.name for field in fields(Part)}


def names() -> list[str]:
    """Return the names of all experiments, sorted by their numbers."""
    return sorted((path.stem for path in FOLDER.glob(f"*{ENDING}")), key=_natural)


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a sort key that places 3.10 after 3.9."""
    words = name.replace("-", ".").split(".")
    return [(int(word), "") if word.isdecimal() else (0, word) for word in words]


def titles() -> dict[str, str]:
    """Return the titles of all experiments by name."""
    return {experiment.name: experiment.title for experiment in experiments()}


def by_cost(several: Iterable[Experiment]) -> list[Experiment]:
    """Sort experiments by cost, with those of unknown cost last."""
    return sorted(several, key=lambda one: math.inf if one.cost is None else one.cost)


@cache
def experiments() -> tuple[Experiment, ...]:
    """Return all experiments of this package."""
    return tuple(read(name) for name in names())


def read(name: str) -> Experiment:
    """Read an experiment.

    Parameters
    ----------
    name : str
        Name of an experiment, or path of a file that ends in ``.toml``.

    Raises
    ------
    InvalidSpec
        If there is no such experiment, or its file is invalid.
    """
    own = str(name).endswith(ENDING)
    path = Path(name) if own else FOLDER / f"{name}{ENDING}"
    if not path.is_file():
        raise InvalidSpec(
            f"There is no file {name}. Write its path, or a name from `tamis reproduce --list`."
            if own
            else f"No experiment is called {name!r}.{did_you_mean(str(name), names())} "
            "`tamis reproduce --list` lists them; a file of your own ends in .toml."
        )
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidSpec(f"{path} cannot be read as an experiment: {error}.") from error
    try:
        return _to_experiment(path.name.removesuffix(ENDING), plain, path.parent)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        if isinstance(error, TamisError):
            raise InvalidSpec(f"{path}: {error}") from error
        raise InvalidSpec(f"{path} is not an experiment: {error!r}.") from error


def _to_experiment(name: str, plain: dict[str, Any], folder: Path) -> Experiment:
    if "parts" not in plain and "data" in plain:
        plain = _with_one_part(plain)
    _check_words("the file", plain, EXPERIMENT_WORDS, needed=("title", "source", "parts"))
    methods = plain.get("methods", {})
    parts = [_to_part(part, methods, folder) for part in plain["parts"]]
    experiment = Experiment(name=name, **_with_tuples({**plain, "parts": parts}))
    if not parts:
        raise InvalidSpec("an experiment needs at least one [[parts]].")
    if (tuning := experiment.tuning) is not None:
        _check_words("[tuning]", tuning, {"rule", "estimator", "grid", "scoring"}, ("rule", "grid"))
        if tuning.get("estimator") not in experiment.estimators:
            raise InvalidSpec("[tuning] needs estimator as one of the names under [estimators].")
        check_argument("grid", tuning["grid"], "of [tuning]")
    if experiment.reference is not None and experiment.reference not in methods:
        raise InvalidSpec(f"reference {experiment.reference!r} is not among [methods].")
    for part in parts:
        experiment.plan(part)  # raises an error if the numbers of rows are invalid
        if experiment.metric == "stability" and (experiment.baselines or part.steps):
            raise InvalidSpec(
                "metric = 'stability' cannot be combined with steps or [baselines]. Use sizes."
            )
    return experiment


def _with_one_part(plain: dict[str, Any]) -> dict[str, Any]:
    """Move the keys at the top of a file with a single table into a part."""
    own = (PART_WORDS | {"target"}) - EXPERIMENT_WORDS
    part = {word: plain[word] for word in plain if word in own}
    part.setdefault("name", plain["data"] if isinstance(plain["data"], str) else "data")
    rest = {word: plain[word] for word in plain if word not in part}
    return {"source": "", **rest, "parts": [part]}


def _with_tuples(plain: dict[str, Any]) -> dict[str, Any]:
    return {word: tuple(v) if isinstance(v, list) else v for word, v in plain.items()}


def _to_part(plain: dict[str, Any], methods: Collection[str], folder: Path) -> Part:
    name = str(plain.get("name", "?"))
    data = _to_data(name, plain, folder)
    plain = {word: plain[word] for word in plain if word != "target"}
    _check_words(f"part {name}", plain, PART_WORDS, needed=("name", "data"))
    values = _with_tuples({**plain, "data": data})
    named = {*methods, *plain.get("methods", {})}
    if not named:
        raise InvalidSpec(f"part {name} needs methods. Write [methods], or methods in the part.")
    sizes, steps = (plain.get(word, ()) for word in ("sizes", "steps"))
    if sum(word in plain for word in ("train", "folds", "splits")) != 1 or (sizes and steps):
        raise InvalidSpec(
            f"part {name} needs exactly one of train, folds and splits, and at most one of sizes "
            "and steps."
        )
    for word in ("published", "published_columns", "signs"):
        given = plain.get(word, {})
        if unknown := given.keys() - named:
            raise InvalidSpec(
                f"part {name} has published numbers of {min(unknown)}, which is not in [methods]."
            )
        check, n = (_signs, len(sizes)) if word == "signs" else (_numbers, len(sizes or steps) or 1)
        values[word] = {method: check(method, name, row, n) for method, row in given.items()}
    return Part(**values)


def _numbers(method: str, part: str, given: Any, n: int) -> tuple[Any, ...]:
    """Return the published numbers. An empty string means a missing number."""
    several = given if isinstance(given, list) else [given]
    if len(several) != n:
        raise InvalidSpec(f"part {part} needs {n} numbers for {method}, not {len(several)}.")
    return tuple(None if value == "" else float(value) for value in several)


def _signs(method: str, part: str, given: Any, n: int) -> tuple[Any, ...]:
    if not isinstance(given, list) or len(given) != n or not set(given) <= {"+", "-", ""}:
        raise InvalidSpec(f"part {part} needs {n} signs for {method}: '+', '-' or ''.")
    return tuple(given)


def _to_data(part: str, plain: dict[str, Any], folder: Path) -> Any:
    """Return the data of a part. If they are a table in a file, its full path is added."""
    data, target = plain.get("data", {"load": ""}), plain.get("target")
    if isinstance(data, str):
        data = {"read": data, "target": target}
    elif target is not None:
        raise InvalidSpec(
            'target can only be used with your own data file. Also set data: data = "mine.csv".'
        )
    if not isinstance(data, dict) or sum(word in data for word in ("load", "make", "read")) != 1:
        raise InvalidSpec(
            f"part {part} needs data = {{ load = 'wine' }} or data = {{ make = 'make_weston', "
            'n_samples = 200 } or data = "mine.csv" with target = "y".'
        )
    if "read" not in data:
        return data
    _check_words("data", data, TABLE_WORDS, needed=("read", "target"))
    name = str(data["read"])
    if not isinstance(data["target"], str):
        raise InvalidSpec(f"the table {name} needs target, the name of a column.")
    # an experiment file may come from an untrusted source, and must not read other folders
    path, top = (folder / name).resolve(), folder.resolve()
    outside = Path(name).is_absolute() or ".." in Path(name).parts or name[:1] in ("~", "-")
    if outside or path == top or not path.is_relative_to(top):
        raise InvalidSpec(
            f"the table {name!r} needs to be next to the experiment file, or in a folder below "
            'it. Write its name, such as data = "mine.csv".'
        )
    return {**data, "read": str(folder / name), "name": name}


def _check_words(where: str, given: Any, known: Collection[str], needed: tuple[str, ...]) -> None:
    if not isinstance(given, dict):
        raise InvalidSpec(f"{where} needs to be a TOML table, not {given!r}.")
    for word in given:
        if word not in known:
            raise InvalidSpec(
                f"{where} has an unknown key {word!r}.{did_you_mean(word, known)} Known keys are "
                f"{', '.join(sorted(known))}."
            )
    if missing := [word for word in needed if word not in given]:
        raise InvalidSpec(f"{where} needs {' and '.join(missing)}.")
