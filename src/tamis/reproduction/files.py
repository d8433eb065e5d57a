"""Experiment files: one published table each, as TOML.

::

    title = "Hits on Weston's problem"
    source = "Author (year), title, table 3"
    metric = "hit"                       # or error, mse, cv_error, ...
    agreement = "chance"                 # or range: the published number is within ours; or 2:
                                         # the two differ by no more
    realizations = 30
    scale = 100                          # what the published numbers are multiplied by
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
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

from tamis.evaluation import CrossValidation, Realizations
from tamis.evaluation.realizations import Plan
from tamis.exceptions import InvalidSpec, TamisError
from tamis.spec import did_you_mean

ENDING = ".toml"
#: When ours and a published number are said to agree, unless by a greatest difference.
AGREEMENTS = ("chance", "range")


@dataclass(frozen=True)
class Part:
    """One block of a table: a data set with a size of the training part.

    Attributes
    ----------
    name : str
        Heading.
    data : dict
        ``load``: name of a table; or ``make``: name of a maker, with its arguments, drawn once
        from ``seed`` or, with ``fresh = true``, anew for every realization. ``relevant`` names
        the columns that matter where the data do not say.
    train, test, validation : int, float or None
    stratify : bool or None
        As in :class:`tamis.evaluation.Realizations`.
    folds : int or None
        Stratified folds, in place of ``train``: each is a realization, with other folds when all
        are used up.
    splits : str
        Where the table came with splits, their name: its arrays ``NAME_train_idx`` and
        ``NAME_test_idx`` are the rows, and ``train`` and the like are left out.
    sizes : tuple of int
        Numbers of columns at which is measured; without any, what each method keeps.
    steps : tuple of int
        Steps of each method's trace after which is measured, in place of sizes.
    methods : dict of str to str
        Beside, or in place of, those of the experiment.
    published, published_columns : dict of str to tuple of float or None
        For each method one number, or one per size or step; and the mean numbers of columns printed
        with them.
    signs : dict of str to tuple of str
        For each method and size "+" where the reference is printed to win, "-" to lose, or "".
    estimators : dict of str to str
        In place of those of the experiment.
    unsound : str
        Why the published numbers of this part are no target; empty where they are.
    unsound_above : float or None
        The numbers above this are meant; None for all.
    note : str
    """

    name: str
    data: Mapping[str, Any]
    train: int | float
    test: int | float | None
    validation: int | float | None
    stratify: bool | None
    folds: int | None
    splits: str
    sizes: tuple[int, ...]
    steps: tuple[int, ...]
    methods: Mapping[str, str]
    published: Mapping[str, tuple[float | None, ...]]
    published_columns: Mapping[str, tuple[float | None, ...]]
    signs: Mapping[str, tuple[str, ...]]
    estimators: Mapping[str, str]
    unsound: str
    unsound_above: float | None
    note: str

    @property
    def places(self) -> tuple[int | None, ...]:
        """Where each method is measured: at these sizes, after these steps, or where it ends."""
        return self.sizes or self.steps or (None,)

    def where(self, place: int | None) -> dict[str, Any]:
        """How :meth:`tamis.evaluation.Results.values` is asked for a place."""
        return {"rule": f"step {place}"} if self.steps else {"size": place}

    def printed(self, method: str, place: int | None) -> float | None:
        """The published number of a method at a place, if there is one."""
        return self._at(self.published, method, place)

    def printed_columns(self, method: str, place: int | None) -> float | None:
        """The mean number of columns that was published with it."""
        return self._at(self.published_columns, method, place)

    def _at(
        self, table: Mapping[str, tuple[float | None, ...]], method: str, place: int | None
    ) -> float | None:
        row = table.get(method)
        return None if row is None else row[0 if place is None else self.places.index(place)]

    def is_sound(self, published: float) -> bool:
        """Whether a published number is a target."""
        return not self.unsound or (
            self.unsound_above is not None and published <= self.unsound_above
        )


@dataclass(frozen=True, repr=False)
class Experiment:
    """A published table and how to compute it again; the fields are those of the file.

    ``agreement`` says when ours and a published number agree: by "chance", where they differ no
    more than means or counts of so many realizations do; by "range", for the number of a single
    realization, where it lies between the least and the greatest of ours; or where they differ by
    no more than a given number. ``baselines`` are other methods, that stand beside every number of
    ours with the same number of columns in every realization.
    """

    name: str
    title: str
    source: str
    metric: str
    agreement: str | float
    realizations: int
    scale: float
    seed: int
    methods: Mapping[str, str]
    baselines: Mapping[str, str]
    estimators: Mapping[str, str]
    tuning: Mapping[str, Any] | None
    reference: str | None
    unsound: Mapping[str, str]
    notes: tuple[str, ...]
    parts: tuple[Part, ...]

    def plan(self, part: Part, realizations: int | None = None) -> Plan:
        """The realizations of one part."""
        n = self.realizations if realizations is None else realizations
        if part.folds is not None:
            return CrossValidation(part.folds, seed=self.seed).first(n)
        return Realizations(
            n,
            train=part.train,
            test=part.test,
            validation=part.validation,
            stratify=part.stratify,
            seed=self.seed,
        )

    @property
    def decimals(self) -> int:
        """How many decimals the published numbers have."""
        rows = [row for part in self.parts for row in part.published.values()]
        numbers = [Decimal(repr(value)) for row in rows for value in row if value is not None]
        return max((-int(number.as_tuple().exponent) for number in numbers), default=0)

    def __repr__(self) -> str:
        return f"<Experiment {self.name}: {self.title}>"


def folder() -> Path:
    """Where the files are: inside an installed package, or beside the sources."""
    inside = Path(__file__).parents[1] / "_experiments"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "experiments"


def names() -> list[str]:
    """Names of all experiments, in the order of their numbers."""
    return sorted((path.name.removesuffix(ENDING) for path in _paths()), key=_natural)


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
    path = Path(name) if str(name).endswith(ENDING) else folder() / f"{name}{ENDING}"
    if not path.is_file():
        raise InvalidSpec(
            f"No experiment is called {name!r}.{did_you_mean(str(name), names())} "
            "`tamis reproduce --list` lists them; a file of your own ends in .toml."
        )
    try:
        plain = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSpec(f"{path} cannot be read as an experiment: {error}.") from error
    try:
        return _experiment(path.name.removesuffix(ENDING), plain)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        if isinstance(error, TamisError):
            raise InvalidSpec(f"{path}: {error}") from error
        raise InvalidSpec(f"{path} is no experiment: {error!r}.") from error


def _experiment(name: str, plain: dict[str, Any]) -> Experiment:
    known = {field.name for field in fields(Experiment)} - {"name"}
    _check_words("the file", plain, known, needed=("title", "source", "parts"))
    methods = _texts("methods", plain.get("methods", {}))
    parts = tuple(_part(part, methods) for part in plain["parts"])
    if not parts:
        raise InvalidSpec("an experiment needs at least one [[parts]].")
    tuning = plain.get("tuning")
    estimators = _texts("estimators", plain.get("estimators", {}))
    if tuning is not None:
        _check_words("[tuning]", tuning, {"rule", "estimator", "grid", "scoring"}, ("rule", "grid"))
        if tuning.get("estimator") not in estimators:
            raise InvalidSpec("[tuning] needs estimator as one of the names under [estimators].")
    made = Experiment(
        name=name,
        title=str(plain["title"]),
        source=str(plain["source"]),
        metric=str(plain.get("metric", "error")),
        agreement=_agreement(plain.get("agreement", "chance")),
        realizations=int(plain.get("realizations", 30)),
        scale=float(plain.get("scale", 1)),
        seed=int(plain.get("seed", 0)),
        methods=methods,
        baselines=_texts("baselines", plain.get("baselines", {})),
        estimators=estimators,
        tuning=tuning,
        reference=plain.get("reference"),
        unsound=_texts("unsound", plain.get("unsound", {})),
        notes=tuple(str(note) for note in plain.get("notes", [])),
        parts=parts,
    )
    if made.reference is not None and made.reference not in methods:
        raise InvalidSpec(f"reference {made.reference!r} is not among [methods].")
    for part in parts:
        made.plan(part)  # which checks the numbers
    return made


def _part(plain: dict[str, Any], methods: Mapping[str, str]) -> Part:
    known = {field.name for field in fields(Part)}
    name = str(plain.get("name", "?"))
    _check_words(f"part {name}", plain, known, needed=("name", "data"))
    own = _texts("methods", plain.get("methods", {}))
    if not methods and not own:
        raise InvalidSpec(f"part {name} needs methods, its own or those of the file.")
    sizes, steps = (tuple(int(k) for k in plain.get(word, ())) for word in ("sizes", "steps"))
    if sum(word in plain for word in ("train", "folds", "splits")) != 1 or (sizes and steps):
        raise InvalidSpec(
            f"part {name} needs one of train, folds and splits; and sizes or steps, or neither."
        )
    n_places = max(len(sizes), len(steps), 1)
    published, columns = (
        {m: _numbers(m, name, given, n_places) for m, given in plain.get(word, {}).items()}
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


def _check_data(part: str, data: Any) -> None:
    if not isinstance(data, dict) or ("load" in data) == ("make" in data):
        raise InvalidSpec(
            f"part {part} needs data = {{ load = 'wine' }} or data = {{ make = 'make_weston', "
            "n_samples = 200 }."
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
