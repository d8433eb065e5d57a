"""Experiment files: one published table each, as TOML.

::

    title = "Hits on Weston's problem"
    source = "Author (year), title, table 3"
    metric = "hit"                       # or error, mse, cv_error, stability (with interval), ...
    agreement = "chance"                 # or range: the published number is within ours; or 2:
                                         # the two differ by no more
    realizations = 30
    scale = 100                          # what the published numbers are multiplied by
    cost = 3.5                           # about how many processor seconds a realization takes
    reference = "SD-L"                   # the method that the printed tests are about

    [methods]                            # expressions, recipes, or calls of the estimators below
    FisherS = "Ranking(FisherScore())"

    [baselines]                          # shown beside, at the numbers of columns of the methods
    F = "Ranking(FisherScore())"

    [estimators]                         # trained on the chosen columns
    svm = "SVC(C=8, gamma=0.125)"

    [tuning]                             # done on request, in place of the settings above
    rule = "mean-of-5"
    estimator = "svm"
    grid = { C = [1, 8], gamma = [0.1, 1] }

    [unsound]                            # published rows that are no target, and why
    mRMR = "cannot be had from the stated formula"

    [[parts]]                            # one block of columns of the table
    name = "200"
    data = { make = "make_weston", n_samples = 10000 }
    train = 200
    folds = 5                            # instead of train: cross-validation
    splits = "raetsch"                   # instead of train: splits that came with the table
    published = { FisherS = 0 }          # one number, or one per entry of sizes
    signs = { FisherS = ["+"] }          # where the reference wins or loses by a paired t-test

A table of one's own needs no ``source`` and no parts::

    title = "My table"
    data = "mine.csv"                    # beside this file, or in a folder below
    target = "y"
    train = 0.75
    sizes = [1, 2, 5, 10]

    [methods]
    mrmr = "mrmr(n_features_to_select=10)"
"""

import math
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from tamis._arrays import is_int
from tamis.evaluation import Realizations
from tamis.exceptions import InvalidSpec, TamisError
from tamis.reproduction.experiment import Experiment, Part
from tamis.spec import did_you_mean
from tamis.spec.rule import check_argument

ENDING = ".toml"
#: When ours and a published number are said to agree, unless by a greatest difference.
AGREEMENTS = ("chance", "range")
#: What may be said of a table of one's own.
TABLE_WORDS = {"read", "target", "task", "drop", "keep"}


def folder() -> Path:
    """Where the files are: inside an installed package, or beside the sources."""
    inside = Path(__file__).parents[1] / "_experiments"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "experiments"


def names() -> list[str]:
    """Names of all experiments, in the order of their numbers."""
    return sorted((path.name.removesuffix(ENDING) for path in _paths()), key=_natural)


def titles() -> dict[str, str]:
    """Titles of all experiments by their names."""
    return {experiment.name: experiment.title for experiment in experiments()}


def by_cost(several: Iterable[Experiment]) -> list[Experiment]:
    """Experiments with the shortest first, those that do not say how long they take last."""
    return sorted(several, key=lambda one: math.inf if one.cost is None else one.cost)


def _paths() -> list[Path]:
    return list(folder().glob(f"*{ENDING}")) if folder().is_dir() else []


def _natural(name: str) -> list[tuple[int, str]]:
    """3.10 comes after 3.9."""
    words = name.replace("-", ".").split(".")
    return [(int(word), "") if word.isdecimal() else (0, word) for word in words]


@cache
def experiments() -> tuple[Experiment, ...]:
    """All experiments."""
    return tuple(read(name) for name in names())


def read(name: str) -> Experiment:
    """Experiment of this name, or in the file of this name.

    Raises
    ------
    InvalidSpec
        There is none, or it cannot be read; the sentence says where.
    """
    own = str(name).endswith(ENDING)
    path = Path(name) if own else folder() / f"{name}{ENDING}"
    if own and not path.is_file():
        raise InvalidSpec(
            f"There is no file {name}. Write where it is, or a name that `tamis reproduce --list` "
            "has."
        )
    if not path.is_file():
        raise InvalidSpec(
            f"No experiment is called {name!r}.{did_you_mean(str(name), names())} "
            "`tamis reproduce --list` lists them; a file of your own ends in .toml."
        )
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidSpec(f"{path} cannot be read as an experiment: {error}.") from error
    try:
        return _experiment(path.name.removesuffix(ENDING), plain, path.parent)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        if isinstance(error, TamisError):
            raise InvalidSpec(f"{path}: {error}") from error
        raise InvalidSpec(f"{path} is no experiment: {error!r}.") from error


def _experiment(name: str, plain: dict[str, Any], folder: Path) -> Experiment:
    known = {field.name for field in fields(Experiment)} - {"name"}
    if "parts" not in plain:
        plain = with_one_part(plain, known)
    _check_words("the file", plain, known, needed=("title", "source", "parts"))
    methods = _texts("methods", plain.get("methods", {}))
    parts = tuple(_part(part, methods, folder) for part in plain["parts"])
    if not parts:
        raise InvalidSpec("an experiment needs at least one [[parts]].")
    tuning = plain.get("tuning")
    estimators = _texts("estimators", plain.get("estimators", {}))
    if tuning is not None:
        _check_words("[tuning]", tuning, {"rule", "estimator", "grid", "scoring"}, ("rule", "grid"))
        if tuning.get("estimator") not in estimators:
            raise InvalidSpec("[tuning] needs estimator as one of the names under [estimators].")
        check_argument("grid", tuning["grid"], "of [tuning]")
    made = Experiment(
        name=name,
        title=str(plain["title"]),
        source=str(plain["source"]),
        metric=str(plain.get("metric", "error")),
        agreement=_agreement(plain.get("agreement", "chance")),
        realizations=_whole("realizations", plain.get("realizations", 30)),
        scale=float(plain.get("scale", 1)),
        seed=_whole("seed", plain.get("seed", 0)),
        methods=methods,
        baselines=_texts("baselines", plain.get("baselines", {})),
        estimators=estimators,
        tuning=tuning,
        reference=plain.get("reference"),
        unsound=_texts("unsound", plain.get("unsound", {})),
        notes=tuple(str(note) for note in plain.get("notes", [])),
        parts=parts,
        cost=None if "cost" not in plain else float(plain["cost"]),
    )
    if made.reference is not None and made.reference not in methods:
        raise InvalidSpec(f"reference {made.reference!r} is not among [methods].")
    for part in parts:
        made.plan(part)  # which checks the numbers
    if made.metric == "stability" and (made.baselines or any(part.steps for part in parts)):
        raise InvalidSpec("stability needs sizes, or none, not steps; and [methods] alone.")
    return made


def with_one_part(plain: dict[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The file of a single table, whose words of a part stand among those of the experiment."""
    if "data" not in plain:
        return plain
    own = {field.name for field in fields(Part)} | {"target"}
    inside = {word: plain[word] for word in plain if word in own and word not in known}
    where = plain["data"]
    inside.setdefault("name", where if isinstance(where, str) else "data")
    rest = {word: plain[word] for word in plain if word not in inside}
    return {"source": "", **rest, "parts": [inside]}


def _part(plain: dict[str, Any], methods: Mapping[str, str], folder: Path) -> Part:
    plain = with_table(plain, folder)
    known = {field.name for field in fields(Part)}
    name = str(plain.get("name", "?"))
    _check_words(f"part {name}", plain, known, needed=("name", "data"))
    own = _texts("methods", plain.get("methods", {}))
    if not methods and not own:
        raise InvalidSpec(f"part {name} needs methods, its own or those of the file.")
    sizes, steps = (
        tuple(_whole(word, k) for k in plain.get(word, ())) for word in ("sizes", "steps")
    )
    if sum(word in plain for word in ("train", "folds", "splits")) != 1 or (sizes and steps):
        raise InvalidSpec(
            f"part {name} needs one of train, folds and splits; and sizes or steps, or neither."
        )
    n_points = max(len(sizes), len(steps), 1)
    published, columns = (
        {m: _numbers(m, name, given, n_points) for m, given in plain.get(word, {}).items()}
        for word in ("published", "published_columns")
    )
    signs = {m: _signs(m, name, given, len(sizes)) for m, given in plain.get("signs", {}).items()}
    named = methods.keys() | own.keys()
    if unknown := (published.keys() | columns.keys() | signs.keys()) - named:
        raise InvalidSpec(f"part {name} publishes {min(unknown)}, which [methods] does not name.")
    _check_data(name, plain["data"])
    above = plain.get("unsound_above")
    return Part(
        name=name,
        data=plain["data"],
        train=plain.get("train", Realizations.train),
        test=plain.get("test"),
        validation=plain.get("validation"),
        stratify=plain.get("stratify"),
        folds=plain.get("folds"),
        splits=str(plain.get("splits", "")),
        sizes=sizes,
        steps=steps,
        methods=own,
        published=published,
        published_columns=columns,
        signs=signs,
        estimators=_texts("estimators", plain.get("estimators", {})),
        unsound=str(plain.get("unsound", "")),
        unsound_above=None if above is None else float(above),
        note=str(plain.get("note", "")),
    )


def _whole(word: str, given: Any) -> int:
    """A whole number."""
    if not is_int(given):
        raise InvalidSpec(f"{word} needs whole numbers, not {given!r}.")
    return int(given)


def _agreement(given: Any) -> str | float:
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
        return float(given)
    if given in AGREEMENTS:
        return str(given)
    raise InvalidSpec(
        f"agreement needs to be one of {AGREEMENTS} or a greatest difference, not {given!r}."
    )


def _numbers(method: str, part: str, given: Any, n: int) -> tuple[float | None, ...]:
    """Published numbers, an empty text where the table has none."""
    several = given if isinstance(given, list) else [given]
    if len(several) != n:
        raise InvalidSpec(f"part {part} needs {n} numbers for {method}, not {len(several)}.")
    return tuple(None if value == "" else float(value) for value in several)


def _signs(method: str, part: str, given: Any, n: int) -> tuple[str, ...]:
    if not isinstance(given, list) or len(given) != n or not set(given) <= {"+", "-", ""}:
        raise InvalidSpec(f"part {part} needs {n} signs for {method}: '+', '-' or ''.")
    return tuple(given)


def with_table(plain: Any, folder: Path) -> Any:
    """A part whose table, where it names one, is a file that it may read."""
    if not isinstance(plain, dict) or "data" not in plain:
        return plain
    data, target = plain["data"], plain.get("target")
    if isinstance(data, str):
        data = {"read": data, "target": target}
    elif target is not None:
        raise InvalidSpec('target is for a table of your own: write data = "mine.csv" with it.')
    rest = {word: plain[word] for word in plain if word != "target"}
    if isinstance(data, dict) and "read" in data:
        _check_words("data", data, TABLE_WORDS, needed=("read", "target"))
        if not isinstance(data["target"], str):
            raise InvalidSpec(f"the table {data['read']} needs target, the name of a column.")
        data = {**data, "read": str(_beside(data["read"], folder)), "name": str(data["read"])}
    return {**rest, "data": data}


def _beside(name: Any, folder: Path) -> Path:
    """A file in the folder of the experiment, or below it, whatever links there are.

    An experiment file may come from anybody, and must not read what is anywhere.
    """
    path = folder / str(name)
    outside = Path(str(name)).is_absolute() or ".." in Path(str(name)).parts
    inside = path.resolve().is_relative_to(folder.resolve()) and path.resolve() != folder.resolve()
    if outside or not inside or str(name)[:1] in ("~", "-"):
        raise InvalidSpec(
            f"the table {str(name)!r} needs to be beside the experiment file, or in a folder below "
            'it. Write its name, such as data = "mine.csv".'
        )
    return path


def _check_data(part: str, data: Any) -> None:
    if not isinstance(data, dict) or sum(word in data for word in ("load", "make", "read")) != 1:
        raise InvalidSpec(
            f"part {part} needs data = {{ load = 'wine' }} or data = {{ make = 'make_weston', "
            'n_samples = 200 } or data = "mine.csv" with target = "y".'
        )


def _texts(what: str, given: Any) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
        raise InvalidSpec(f"[{what}] needs a text for every name.")
    return dict(given)


def _check_words(where: str, given: Any, known: set[str], needed: tuple[str, ...]) -> None:
    if not isinstance(given, dict):
        raise InvalidSpec(f"{where} needs to be a table, not {given!r}.")
    for word in given:
        if word not in known:
            raise InvalidSpec(
                f"{where} has an unknown word {word!r}.{did_you_mean(word, known)} It may have "
                f"{', '.join(sorted(known))}."
            )
    if missing := [word for word in needed if word not in given]:
        raise InvalidSpec(f"{where} needs {' and '.join(missing)}.")
