"""Computed experiments in small files, from which their tables can be told again.

A file has every score of every realization, so that cells, marks, tests and pictures follow from it
and from the experiment file as they are now; nothing is computed again.
"""

import gzip
import json
import os
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

from tamis._files import replace_bytes
from tamis.contract.record import installed_versions
from tamis.evaluation import Results
from tamis.evaluation.metrics import metric
from tamis.evaluation.outcome import Outcome, Score
from tamis.evaluation.results import Finished
from tamis.exceptions import InvalidStore
from tamis.reproduction.cells import Reproduction
from tamis.reproduction.experiment import Experiment
from tamis.reproduction.files import read
from tamis.reproduction.tabulating import tabulated

#: How the name of such a file ends.
KEPT_ENDING = ".json.gz"
FORMAT = 1
#: Digits of a score: enough to tell that it is the same again, few enough that files are small.
DIGITS = 9
#: Fields of an experiment and of its parts that say what is shown beside our numbers, and how.
TOLD = {"name", "title", "source", "agreement", "realizations", "scale", "tuning", "reference"}
TOLD |= {"unsound", "notes", "parts", "cost"}
TOLD_OF_PARTS = {"published", "published_columns", "signs", "unsound", "unsound_above", "note"}

#: What a file that is damaged, or none of ours, is met with.
UNREADABLE = (
    *(OSError, EOFError, zlib.error),
    *(ValueError, TypeError, LookupError, AttributeError),
)


@dataclass(frozen=True, repr=False)
class KeptReproduction:
    """A computed experiment as a file has it.

    Attributes
    ----------
    found : Reproduction
        Its scores, and the table that they make with the experiment file of today.
    realizations, seed : int
        How many were asked for, and from which seed they were drawn.
    made : date
    versions : dict of str to str
        Of what the scores may depend on.
    seconds : float
        What fitting the methods took, all tasks together.
    is_current : bool
        Whether the experiment file still asks for what was computed.
    """

    found: Reproduction
    realizations: int
    seed: int
    made: date
    versions: Mapping[str, str]
    seconds: float
    is_current: bool

    def __repr__(self) -> str:
        return f"<KeptReproduction of {self.found.experiment.name}, {self.made}>"


def keep(found: Reproduction, path: str | os.PathLike[str], *, realizations: int) -> None:
    """Write a computed experiment into a file whose name ends in ``.json.gz``.

    The same scores make the same file, but for the date and the time that they took.
    """
    experiment, results = found.experiment, (*found.results.values(), *found.baselines.values())
    columns = experiment.metric == "stability"
    told = {experiment.measured, "n_features"}
    facts = {
        "format": FORMAT,
        "experiment": experiment.name,
        "protocol": protocol_of(experiment),
        "made": date.today().isoformat(),
        "versions": dict(installed_versions()),
        "seed": experiment.seed,
        "realizations": realizations,
        "seconds": round(sum(task.outcome.seconds for one in results for task in one.tasks), 1),
        "settings": list(found.settings),
        "missing": list(found.missing),
        "results": {name: _plain(one, told, columns) for name, one in found.results.items()},
        "baselines": {name: _plain(one, told, columns) for name, one in found.baselines.items()},
    }
    text = json.dumps(facts, separators=(",", ":"))
    replace_bytes(Path(path), gzip.compress(text.encode(), mtime=0))


def kept(path: str | os.PathLike[str], experiment: Experiment | None = None) -> KeptReproduction:
    """What :func:`keep` wrote, as a table of the experiment of its name, or of a given one.

    Raises
    ------
    InvalidStore
        The file cannot be read, or is none.
    """
    try:
        facts = json.loads(gzip.decompress(Path(path).read_bytes()))
        if facts["format"] != FORMAT:
            raise ValueError(f"format {facts['format']}, not {FORMAT}")
        experiment = read(facts["experiment"]) if experiment is None else experiment
        results, baselines = (
            {name: _results(one) for name, one in facts[word].items()}
            for word in ("results", "baselines")
        )
        told = {word: facts[word] for word in ("missing", "settings")}
        return KeptReproduction(
            found=tabulated(experiment, results, baselines, **told),
            realizations=facts["realizations"],
            seed=facts["seed"],
            made=date.fromisoformat(facts["made"]),
            versions=facts["versions"],
            seconds=facts["seconds"],
            is_current=facts["protocol"] == protocol_of(experiment),
        )
    except UNREADABLE as error:
        raise InvalidStore(
            f"{path} cannot be read as results of an experiment ({error!r}). "
            "Compute them again: make book."
        ) from error


def protocol_of(experiment: Experiment) -> str:
    """Short name of all in an experiment file that our numbers depend on."""
    whole = {name: value for name, value in vars(experiment).items() if name not in TOLD}
    parts = [
        {name: value for name, value in vars(part).items() if name not in TOLD_OF_PARTS}
        for part in experiment.parts
    ]
    text = json.dumps([whole, parts], sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()[:16]


def _plain(results: Results, told: Collection[str], columns: bool) -> dict[str, Any]:
    """Scores as lists; what they are scores of is said once for all tasks."""
    scores = [[s for s in task.outcome.scores if s.metric in told] for task in results.tasks]
    points = list(dict.fromkeys(score[:4] for some in scores for score in some))
    number = {point: i for i, point in enumerate(points)}
    tasks = [
        [
            *task[:3],
            _counts(task.outcome, columns),
            [number[score[:4]] for score in some],
            [_short(score.value) for score in some],
        ]
        for task, some in zip(results.tasks, scores, strict=True)
    ]
    return {"points": points, "tasks": tasks}


def _counts(outcome: Outcome, columns: bool) -> list[Any]:
    """Numbers of rows and columns; and which columns, where the table is made of those."""
    top = max((score.size for score in outcome.scores), default=0)
    order = None if outcome.order is None else list(outcome.order[:top] if columns else ())
    support = None if outcome.support is None or not columns else list(outcome.support)
    return [outcome.n_train, outcome.n_test, outcome.n_features, order, support]


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _results(plain: Mapping[str, Any]) -> Results:
    points = [(name, size, rule, of) for name, size, rule, of in plain["points"]]
    tasks = tuple(_task(points, *task) for task in plain["tasks"])
    return Results(tasks, (), {of: metric(of) for *_, of in points})


def _task(
    points: Sequence[tuple[Any, Any, Any, Any]],
    method: str,
    data: str,
    realization: int,
    counts: list[Any],
    numbers: list[int],
    values: list[float],
) -> Finished:
    scores = tuple(Score(*points[i], value) for i, value in zip(numbers, values, strict=True))
    n_train, n_test, n_features, *columns = counts
    order, support = (None if one is None else tuple(one) for one in columns)
    outcome = Outcome(scores, order, support, n_train, n_test, n_features, seconds=float("nan"))
    return Finished(method, data, realization, outcome)
