"""Rankings of methods: losses relative to random selection, mean ranks, intervals over tables."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import NamedTuple

import numpy as np

from tamis._arrays import Array
from tamis.evaluation import Interval, Ranks, bootstrap_interval, friedman
from tamis_book.benchmark.result_files import CellResult, TableResults

RANDOM, ALL = "random", "all columns"
#: Number of sizes at which every method is measured. A method that chooses the number of columns
#: itself is also measured at that number.
N_SIZES = 5
#: Minimum loss of random selection. Smaller losses are replaced by it. Otherwise, relative losses
#: would become arbitrarily large.
LEAST = 0.01
#: Number of tables below which no interval is computed.
LEAST_TABLES = 5
#: Kinds of table, with the metric by which methods are ranked.
KINDS = {
    "classes": "error",
    "few rows": "error",
    "many rows": "error",
    "wide": "error",
    "categories": "error",
    "rare classes": "ber",
    "numeric target": "r2",
}
_POSITIONS = {"error": 0, "ber": 1, "auc": 2, "r2": 0}

#: A table and a split.
Unit = tuple[str, int]


class SplitLosses(NamedTuple):
    """Losses of a method on a split of a table.

    Attributes
    ----------
    mean : float
        Mean over the judges and the given sizes.
    best : float
        Loss of the best judge, averaged over the sizes.
    own : float or None
        Mean over the judges at the number of columns that the method chooses.
    share : float or None
        This number of columns as a share of all columns.
    """

    mean: float
    best: float
    own: float | None = None
    share: float | None = None


def losses_of(cell: CellResult, metric: str, n_columns: int) -> SplitLosses:
    """Return the losses in a cell. Metrics that are better if greater are subtracted from 1."""
    position = _POSITIONS[metric]
    found = np.array(list(cell.scores.values()))[:, :, position]
    found = 1 - found if metric in ("auc", "r2") else found
    by_judge = found[:, :N_SIZES].mean(axis=1)
    if found.shape[1] == N_SIZES:
        return SplitLosses(float(by_judge.mean()), float(by_judge.min()))
    share = cell.sizes[-1] / n_columns
    return SplitLosses(
        float(by_judge.mean()), float(by_judge.min()), float(found[:, -1].mean()), share
    )


def split_losses(
    results: Iterable[TableResults], metric: str
) -> dict[Unit, dict[str, SplitLosses]]:
    """Return the losses of each method on each split. A failure counts as random selection."""
    units: dict[Unit, dict[str, SplitLosses]] = {}
    for one in results:
        for key, cell in one.cells.items():
            kind, split, method = key.split("/", 2)
            random = one.cells.get(f"{kind}/{split}/{RANDOM}")
            if kind == "error" and random is not None:
                shown = random if cell.failure else cell
                losses = losses_of(shown, metric, one.facts["columns"])
                units.setdefault((one.name, int(split)), {})[method] = losses
    return units


def complete_block(units: Mapping[Unit, Collection[str]]) -> tuple[list[Unit], list[str]]:
    """Return splits and methods such that all these methods were measured on all these splits.

    Splits are added one by one, in descending order of their number of methods. The block with the
    greatest number of cells (splits times methods) is returned.

    >>> complete_block({("a", 0): ["x", "y"], ("b", 0): ["x", "y"], ("c", 0): ["x"]})
    ([('a', 0), ('b', 0)], ['x', 'y'])
    """
    order = sorted(units, key=lambda unit: -len(units[unit]))
    best: tuple[list[Unit], list[str]] = [], []
    methods = list(units[order[0]]) if order else []
    for n, unit in enumerate(order, 1):
        methods = [method for method in methods if method in units[unit]]
        if n * len(methods) >= len(best[0]) * len(best[1]):
            best = order[:n], methods
    return best


class RankedMethod(NamedTuple):
    """A method in a ranking.

    Attributes
    ----------
    method : str
        Name of the method.
    rank : float
        Mean rank over the tables.
    loss, best : float
        Mean loss over the tables, relative to random selection: averaged over all judges, and of
        the best judge.
    behind : Interval or None
        Mean difference to the first method that selects columns, with a bootstrap interval over the
        tables. The interval is NaN for fewer than five tables. None for that method itself.

    Examples
    --------
    >>> RankedMethod("mrmr", 1.5, 0.8, 0.7, None).is_level
    True
    """

    method: str
    rank: float
    loss: float
    best: float
    behind: Interval | None

    @property
    def is_level(self) -> bool:
        """Whether the method selects columns, and is not known to be worse than the first."""
        if self.behind is None:
            return True
        return self.method != ALL and not self.behind.low > 0  # NaN if it cannot be computed


@dataclass(frozen=True)
class KindRanking:
    """Ranking of the methods on a kind of table.

    Attributes
    ----------
    kind, metric : str
        Name of the kind of table, and name of the metric.
    tables : tuple of str
        Names of the tables in the ranking.
    n_splits : int
        Number of splits of all tables together.
    rows : tuple of RankedMethod
        Best first.
    ranks : Ranks
        With Friedman's test and Nemenyi's critical difference.
    missing : tuple of str
        Methods that were measured on too few tables of this kind.

    Examples
    --------
    >>> rank_kind([], "wide") is None  # without results
    True
    """

    kind: str
    metric: str
    tables: tuple[str, ...]
    n_splits: int
    rows: tuple[RankedMethod, ...]
    ranks: Ranks
    missing: tuple[str, ...]


def rank_kind(results: Sequence[TableResults], kind: str) -> KindRanking | None:
    """Return the ranking of a kind of table, or None if fewer than two tables are complete.

    Parameters
    ----------
    results : sequence of TableResults
        Results of the tables, see :func:`stored_results`.
    kind : str
        A name of ``KINDS``, such as "classes", "wide" or "numeric target".
    """
    metric = KINDS[kind]
    mine = [one for one in results if kind in one.facts["kinds"]]
    measured = split_losses(mine, metric)
    units, methods = complete_block(measured)
    tables = tuple(dict.fromkeys(table for table, _ in units))
    if len(tables) < 2 or len(methods) < 2 or RANDOM not in methods:
        return None
    mean, best = (
        np.array(
            [
                [fmean(getattr(measured[u][m], name) for u in units if u[0] == t) for m in methods]
                for t in tables
            ]
        )
        for name in ("mean", "best")
    )
    base = np.maximum(mean[:, [methods.index(RANDOM)]], LEAST)
    ranks = friedman(mean, methods)
    relative, of_best = mean / base, best / base
    order = np.argsort(ranks.ranks, kind="stable").tolist()
    first = next(i for i in order if methods[i] != ALL)
    rows = []
    for i in order:
        behind = None if i == first else _interval(relative[:, i] - relative[:, first])
        average = float(relative[:, i].mean()), float(of_best[:, i].mean())
        rows.append(RankedMethod(methods[i], float(ranks.ranks[i]), *average, behind))
    others = {method for found in measured.values() for method in found} - set(methods)
    return KindRanking(kind, metric, tables, len(units), tuple(rows), ranks, tuple(sorted(others)))


def _interval(differences: Array) -> Interval:
    """Return the mean and its bootstrap interval, which is NaN if there are few tables."""
    if len(differences) < LEAST_TABLES:
        return Interval(float(differences.mean()), float("nan"), float("nan"), 0.95)
    return bootstrap_interval(differences, n_resamples=1000)


class Habits(NamedTuple):
    """Validity, stability and time of a method, averaged over the tables that all methods share.

    Attributes
    ----------
    method : str
        Name of the method.
    validity : float
        Share of the appended noise columns that are not selected.
    stability : float
        Nogueira's index over bootstrap samples.
    seconds : float
        Median processor time of a selection.
    """

    method: str
    validity: float
    stability: float
    seconds: float


def habits(results: Sequence[TableResults]) -> tuple[list[Habits], int]:
    """Return validity, stability and time of the methods, and the number of tables."""
    kinds = ("noise", "bootstrap", "error")
    found: dict[Unit, dict[str, dict[str, CellResult]]] = {}
    for one in results:
        for key, cell in one.cells.items():
            kind, split, method = key.split("/", 2)
            if split == "0" and not cell.failure:
                found.setdefault((one.name, 0), {}).setdefault(method, {})[kind] = cell
    whole = {
        unit: [method for method, cells in methods.items() if len(cells) == len(kinds)]
        for unit, methods in found.items()
    }
    units, methods = complete_block({unit: names for unit, names in whole.items() if names})
    rows = []
    for method in methods:
        noise, bootstrap, error = ([found[u][method][kind] for u in units] for kind in kinds)
        stable = [v for c in bootstrap for v in c.values[:N_SIZES] if v is not None]
        rows.append(
            Habits(
                method,
                fmean(fmean(cell.values[:N_SIZES]) for cell in noise),  # type: ignore[arg-type]
                fmean(stable) if stable else float("nan"),
                median(cell.seconds for cell in error),
            )
        )
    return rows, len(units)


class OwnSize(NamedTuple):
    """A method at the number of columns that it chooses, over the tables with such results."""

    method: str
    n_tables: int
    share: float
    loss: float
    loss_of_all: float


def own_sizes(results: Sequence[TableResults]) -> list[OwnSize]:
    """Return the methods that choose a number of columns.

    Losses are relative to random selection.
    """
    rows: dict[str, list[tuple[float, float, float]]] = {}
    for is_real in (False, True):
        mine = [one for one in results if ("numeric target" in one.facts["kinds"]) == is_real]
        for found in split_losses(mine, "r2" if is_real else "error").values():
            base = max(found[RANDOM].mean, LEAST)
            for method, losses in found.items():
                if losses.own is not None and losses.share is not None and ALL in found:
                    own = losses.share, losses.own / base, found[ALL].mean / base
                    rows.setdefault(method, []).append(own)
    return [
        OwnSize(method, len(several), *map(fmean, zip(*several, strict=True)))
        for method, several in rows.items()
    ]


def failures(results: Iterable[TableResults]) -> dict[tuple[str, str], list[str]]:
    """Return the tables on which methods failed, by method and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for one in results:
        for key, cell in one.cells.items():
            if cell.failure:
                tables = found.setdefault((key.split("/", 2)[2], cell.failure), [])
                if one.name not in tables:
                    tables.append(one.name)
    return found
