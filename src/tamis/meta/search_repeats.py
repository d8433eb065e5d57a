"""Selections around a search: run again on other rows, or on a wider table, and counted."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import Tags

from tamis._arrays import Array, Subset, class_codes, target_kind
from tamis._seeds import seed_of, stream
from tamis.contract import Selection
from tamis.contract.choice import SizeLike
from tamis.contract.units import Grouping
from tamis.exceptions import IncompatibleCriterion, InvalidTable, InvalidTarget
from tamis.meta.inner_search import (
    check_first,
    in_order_of_columns,
    standing_of,
    walk_cost,
    walk_of,
    walked,
    whole_walk,
)
from tamis.search.categories import for_columns


class Rounds(MetaEstimatorMixin):
    """What selections in rounds have in common whose rounds run a search."""

    #: How many columns are kept is what the rounds decide.
    n_features_to_select: SizeLike = "best"
    fewer: ClassVar[str] = "Then(Ranking(Correlation(), n_features_to_select={}), ...)"
    quick: ClassVar[str] = "correlation"
    #: Whether the order in which the search takes the columns is read, not only what it keeps.
    reads_order: ClassVar[bool] = True
    #: Whether NaN and categories, and several targets, are passed on to a search that takes them:
    #: nothing but the search then reads the columns.
    passes_nan: ClassVar[bool] = False
    passes_targets: ClassVar[bool] = False

    search: Selection
    n_jobs: int | None
    _units: Grouping

    def _check(self) -> None:
        if not isinstance(self.search, Selection):
            name = type(self).__name__
            raise IncompatibleCriterion(
                f"{name} needs a search, not {self.search!r}. Write {name}(Ranking(Correlation()))."
            )
        if self.search.fixed_features is not None:
            raise IncompatibleCriterion(
                f"{type(self).__name__} asks of every column whether it is kept, and the search "
                "has fixed_features. Leave them out there, and add the columns afterwards."
            )
        check_first(type(self).__name__, self.search)
        self._check_walk(walk_of(self.search))
        self.search.check()

    def _check_walk(self, walk: Any) -> None:
        """Refuse a search that cannot be asked for a number of columns, or has no order of them."""
        name, inner = type(self).__name__, type(walk).__name__
        if "n_features_to_select" not in walk.get_params(deep=False):
            write = (
                f"Then(..., {name}(...))" if isinstance(walk, Rounds) else f"{inner}({name}(...))"
            )
            raise IncompatibleCriterion(
                f"{name} asks its search for a number of columns, and {inner} decides itself how "
                f"many it keeps. Give {name} the search inside it, and write {write} to have both."
            )
        if self.reads_order and not (walk.nested or walk.extends):
            raise IncompatibleCriterion(
                f"{name} reads the order in which a search takes the columns, and {inner} finds "
                f"one subset of a given size. Use {name}(Forward(...)), or "
                f"StabilitySelection({inner}(...)), which asks what is kept."
            )

    @property
    def feature_groups(self) -> Any:
        """Those of the search."""
        return self.search.feature_groups

    def _check_target(self, y: NDArray[Any] | None) -> None:
        self.search._check_target(y)

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """Of a search on a table and its double (:meth:`_beside`)."""
        n, d = n_samples, 2 * n_features
        held = walk_cost(self.search, n, d)
        # half a copy, and both halves side by side
        return held and held + 8 * 1.5 * n * d

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = self.search.__sklearn_tags__()
        tags.target_tags.required = inner.target_tags.required
        tags.target_tags.multi_output = self.passes_targets and inner.target_tags.multi_output
        tags.input_tags.allow_nan = self.passes_nan and inner.input_tags.allow_nan
        return tags

    @property
    def takes_categories(self) -> bool:
        """As the search does, where nothing else reads the columns."""
        return self.passes_nan and bool(self.search.takes_categories)

    def _beside(
        self,
        X: Array,
        others: Array,
        y: NDArray[Any] | None,
        seed: int,
        rng: np.random.Generator,
        field: Subset | None = None,
    ) -> tuple[Array, Array]:
        """What the search thinks of each unit and of its double in a table of the same columns.

        The columns are shuffled, so that no index is preferred. With a ``field`` only these units
        and their doubles are in the table, and minus infinity stands for the others.
        """
        d = X.shape[1]
        labels, n_units = self._units.unit_of, self._units.n_units
        inside = np.arange(d) if field is None else np.flatnonzero(np.isin(labels, field))
        place = rng.permutation(np.concatenate([inside, inside + d]))
        both = np.concatenate([labels, labels + n_units])[place]
        wide = np.hstack([X, others])[:, place]
        size = whole_walk(self.search, len(np.unique(both)))
        fitted = self._fitted(wide, y, seed, size, place, both)
        standing = np.full(2 * n_units, -np.inf)
        standing[in_order_of_columns(both)] = standing_of(fitted)
        return standing[:n_units], standing[n_units:]

    def _probes_ahead(
        self,
        X: Array,
        y: NDArray[Any] | None,
        seed: int,
        index: int,
        field: Subset | None = None,
    ) -> list[Any]:
        """For each unit (of the field) how many of the permuted copies stand ahead of it."""
        rng = stream(seed, "probes", index)
        probes = X[rng.permutation(len(X))]
        both = self._beside(X, probes, y, seed_of(seed, "search", index), rng, field)
        standing = np.concatenate(both if field is None else [one[field] for one in both])
        return list(count_ahead(standing, len(standing) // 2, rng).tolist())

    def _fitted(
        self,
        X: Array,
        y: NDArray[Any] | None,
        seed: int,
        size: int,
        place: Subset | None = None,
        labels: Subset | None = None,
    ) -> Selection:
        """A clone of the search that walked to a size, with seeds.

        Column i of ``X`` is column ``place[i]`` of the table, or of its double behind it, and
        belongs to the unit ``labels[i]``.
        """
        units, search = self._units, self.search
        if place is not None:
            search = for_columns(search, place % units.n_columns, units.n_columns)
        labels = units.unit_of if labels is None else labels
        return walked(search, X, y, seed, size, None if units.plain else labels)


def check_part(name: str, y: NDArray[Any] | None, rows: Subset) -> None:
    """Refuse a single row, and rows of one class where others are too few to be everywhere."""
    if len(rows) < 2:
        raise InvalidTable(
            f"{name} searches in parts of the rows, one of which has a single row. Give more rows, "
            "or use Probes(...), which searches in all of them."
        )
    if y is None or y.ndim > 1 or y.dtype.names is not None or target_kind(y) != "classification":
        return
    labels, codes = class_codes(y)
    if len(labels) > 1 and (codes[rows] == codes[rows[0]]).all():
        counts = np.bincount(codes)
        fewest = int(np.argmin(counts))
        n = f"is {counts[fewest]} row" if counts[fewest] == 1 else f"are {counts[fewest]} rows"
        raise InvalidTarget(
            f"{name} searches in parts of the rows, one of which has a single class: of class "
            f"{str(labels[fewest])!r} there {n}. Leave the class out, or use Probes(...), which "
            "searches in all rows."
        )


def expected_unrelated(n: float) -> str:
    """How many of the columns kept are expected to be unrelated, in words.

    >>> expected_unrelated(0.2)
    '0.2 of those kept is expected to be unrelated to the target.'
    """
    return (
        f"{n:g} of those kept {'is' if n <= 1 else 'are'} expected to be unrelated to the target."
    )


def count_ahead(standing: Array, n_columns: int, rng: np.random.Generator) -> Array:
    """For each of the first columns, how many of the others stand ahead; lots decide ties."""
    order = np.lexsort((rng.random(len(standing)), -standing))
    probe = order >= n_columns
    before: Array = np.cumsum(probe) - probe
    found = np.empty(len(standing))
    found[order] = before
    return found[:n_columns]
