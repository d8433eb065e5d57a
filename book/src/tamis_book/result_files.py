"""Small result files, from which tables are made without running experiments again.

A file holds the scores of all realizations. Together with the current experiment file, they
determine the cells, marks, tests and charts.
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

#: Results of full runs, one file per experiment.
RESULTS = Path(__file__).parent / "results"
ENDING = ".json.gz"
FORMAT = 1
#: Number of digits of a score: enough to compare results, and few enough for small files.
DIGITS = 9
#: Fields of an experiment and of its parts that do not affect our numbers.
SHOWN = {"name", "title", "source", "agreement", "realizations", "scale", "tuning", "reference"}
SHOWN |= {"unsound", "notes", "parts", "cost", "also"}
SHOWN_OF_PARTS = {"published", "published_columns", "signs", "unsound", "note"}

#: Errors that occur if a file is damaged or of a different kind.
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
        The stored scores, with the table computed by the current experiment file.
    realizations, seed : int
        Requested number of realizations, and their seed.
    made : date
        The date of the run.
    versions : dict of str to str
        Versions of the libraries that were used.
    seconds : float
        Total time of fitting the methods, in seconds.
    is_current : bool
        Whether everything in the experiment file that affects the scores is still the same.
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

    The same scores give the same file, except for the date and the times.
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
    """Read a file that :func:`save_results` wrote.

    The default ``experiment`` is the one that the file names.

    Raises
    ------
    InvalidStore
        If the file cannot be read, or is of a different kind.
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


def results_path(name: str) -> Path:
    """Return the file with the results of a full run of an experiment."""
    return RESULTS / f"{name}{ENDING}"


def stored_results(experiment: Experiment) -> StoredReproduction | None:
    """Return the results of the full run of an experiment, or None if there are none."""
    path = results_path(experiment.name)
    return load_results(path, experiment) if path.is_file() else None


def hash_protocol(experiment: Experiment) -> str:
    """Return a hash of everything in an experiment that affects our numbers."""
    whole = {name: value for name, value in vars(experiment).items() if name not in SHOWN}
    parts = [
        {name: value for name, value in vars(part).items() if name not in SHOWN_OF_PARTS}
        for part in experiment.parts
    ]
    text = json.dumps([whole, parts], sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()[:16]


def _to_plain(results: Results, experiment: Experiment) -> dict[str, Any]:
    """Return scores as lists. Estimators, sizes, rules and metrics are listed only once."""
    points: dict[tuple[Any, ...], int] = {}
    tasks = []
    for task in results.tasks:
        out = task.outcome
        scores = [s for s in out.scores if s.metric in (experiment.measured, "n_features")]
        numbers = [points.setdefault(score[:4], len(points)) for score in scores]
        # columns are needed only for a stability, up to the largest size
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
