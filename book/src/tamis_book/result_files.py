"""Results of experiments in small files, from which their tables can be made again.

A file has every score of every realization, so that cells, marks, tests and charts follow from it
and from the experiment file as they are now; nothing is computed again.
"""

import gzip
import json
import os
import zlib
from collections.abc import Mapping
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
from tamis_book.experiment import Experiment
from tamis_book.files import read
from tamis_book.reproduction import Reproduction, tabulate

ENDING = ".json.gz"
FORMAT = 1
#: Digits of a score: enough to see that it is the same again, few enough that files are small.
DIGITS = 9
#: Fields of an experiment and of its parts on which our numbers do not depend.
SHOWN = {"name", "title", "source", "agreement", "realizations", "scale", "tuning", "reference"}
SHOWN |= {"unsound", "notes", "parts", "cost"}
SHOWN_OF_PARTS = {"published", "published_columns", "signs", "unsound", "unsound_above", "note"}

#: Errors of a file that is damaged, or of another kind.
UNREADABLE = (
    *(OSError, EOFError, zlib.error),
    *(ValueError, TypeError, LookupError, AttributeError),
)


@dataclass(frozen=True, repr=False)
class StoredReproduction:
    """A reproduction that was read from a file.

    Attributes
    ----------
    found : Reproduction
        Its scores, and the table that they make with the experiment file of today.
    realizations, seed : int
        Number of realizations that were asked for, and the seed that they were drawn from.
    made : date
    versions : dict of str to str
        Versions of the libraries that the scores may depend on.
    seconds : float
        Time that fitting the methods took, all tasks together.
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
        return f"<StoredReproduction of {self.found.experiment.name}, {self.made}>"


def save_results(found: Reproduction, path: str | os.PathLike[str], *, realizations: int) -> None:
    """Write the results of an experiment to a file whose name ends in ``.json.gz``.

    The same scores make the same file, but for the date and the time that they took.
    """
    experiment = found.experiment
    several = {"results": found.results, "baselines": found.baselines}
    tasks = [task for group in several.values() for one in group.values() for task in one.tasks]
    facts = {
        "format": FORMAT,
        "experiment": experiment.name,
        "protocol": hash_protocol(experiment),
        "made": date.today().isoformat(),
        "versions": dict(installed_versions()),
        "seed": experiment.seed,
        "realizations": realizations,
        "seconds": round(sum(task.outcome.seconds for task in tasks), 1),
        "settings": list(found.settings),
        "missing": list(found.missing),
    }
    for word, group in several.items():
        facts[word] = {name: _to_plain(one, experiment) for name, one in group.items()}
    text = json.dumps(facts, separators=(",", ":"))
    replace_bytes(Path(path), gzip.compress(text.encode(), mtime=0))


def load_results(
    path: str | os.PathLike[str], experiment: Experiment | None = None
) -> StoredReproduction:
    """Read the file of :func:`save_results`, for the experiment of its name or a given one.

    Raises
    ------
    InvalidStore
        The file cannot be read, or is of another kind.
    """
    try:
        facts = json.loads(gzip.decompress(Path(path).read_bytes()))
        if facts["format"] != FORMAT:
            raise ValueError(f"format {facts['format']}, not {FORMAT}")
        experiment = read(facts["experiment"]) if experiment is None else experiment
        results, baselines = (
            {name: _from_plain(one) for name, one in facts[word].items()}
            for word in ("results", "baselines")
        )
        lists = {word: facts[word] for word in ("missing", "settings")}
        return StoredReproduction(
            found=tabulate(experiment, results, baselines, **lists),
            made=date.fromisoformat(facts["made"]),
            is_current=facts["protocol"] == hash_protocol(experiment),
            **{word: facts[word] for word in ("realizations", "seed", "versions", "seconds")},
        )
    except UNREADABLE as error:
        raise InvalidStore(
            f"{path} cannot be read as results of an experiment ({error!r}). "
            "Compute them again: make book."
        ) from error


def hash_protocol(experiment: Experiment) -> str:
    """Hash everything in an experiment file that our numbers depend on."""
    whole = {name: value for name, value in vars(experiment).items() if name not in SHOWN}
    parts = [
        {name: value for name, value in vars(part).items() if name not in SHOWN_OF_PARTS}
        for part in experiment.parts
    ]
    text = json.dumps([whole, parts], sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()[:16]


def _to_plain(results: Results, experiment: Experiment) -> dict[str, Any]:
    """Scores as lists; their method, size, rule and metric are listed once for all tasks."""
    points: dict[tuple[Any, ...], int] = {}
    tasks = []
    for task in results.tasks:
        out = task.outcome
        scores = [s for s in out.scores if s.metric in (experiment.measured, "n_features")]
        numbers = [points.setdefault(score[:4], len(points)) for score in scores]
        # columns are kept only for a stability, up to the largest size
        columns = experiment.metric == "stability"
        top = max((score.size for score in out.scores), default=0) if columns else 0
        order = None if out.order is None else list(out.order[:top])
        support = list(out.support) if columns and out.support is not None else None
        counts = [out.n_train, out.n_test, out.n_features, order, support]
        values = [float(f"{score.value:.{DIGITS}g}") for score in scores]
        tasks.append([*task[:3], counts, numbers, values])
    return {"points": list(points), "tasks": tasks}


def _from_plain(plain: Mapping[str, Any]) -> Results:
    points, tasks = plain["points"], []
    for method, data, realization, (*counts, order, support), numbers, values in plain["tasks"]:
        pairs = zip(numbers, values, strict=True)
        scores = tuple(Score._make([*points[i], value]) for i, value in pairs)
        columns = [None if one is None else tuple(one) for one in (order, support)]
        outcome = Outcome._make([scores, *columns, *counts, float("nan"), (), ""])
        tasks.append(Finished(method, data, realization, outcome))
    return Results(tuple(tasks), (), {of: metric(of) for *_, of in points})
