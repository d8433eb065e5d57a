"""Base class of meta-selectors, which run a search in each of several rounds."""

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import Tags

from tamis._arrays import Array, Subset, class_codes, target_kind
from tamis._seeds import Seed, seed_of, stream
from tamis.contract import Selection
from tamis.contract.choice import SizeLike
from tamis.contract.units import Grouping
from tamis.exceptions import IncompatibleCriterion, InvalidTable, InvalidTarget
from tamis.meta.inner_search import (
    check_first,
    fit_search,
    in_order_of_columns,
    path_size,
    search_cost,
    standing_of,
    walk_of,
)
from tamis.search.categories import for_columns


@dataclass(eq=False, repr=False)
class Rounds(MetaEstimatorMixin):
    """Mixin for selections that run a search in each of several rounds."""

    #: This is not a parameter, because the rounds determine the number of columns.
    n_features_to_select: SizeLike = field(default="best", init=False)
    #: Whether the number of columns to select is passed to the search. Otherwise the search chooses
    #: the number itself.
    sizes_search: ClassVar[bool] = True
    #: Whether the column order of the search is used, not only its selected columns.
    reads_order: ClassVar[bool] = True
    #: Sentence that suggests an alternative if a censored target is refused. Empty if censored
    #: targets are accepted.
    instead_if_censored: ClassVar[str] = ""
    #: Whether NaN and categories (``passes_nan``) and several targets (``passes_targets``) are
    #: accepted if the search accepts them. This is possible if only the search reads the columns.
    passes_nan: ClassVar[bool] = False
    passes_targets: ClassVar[bool] = False

    search: Selection
    _: KW_ONLY
    random_state: Seed = None
    n_jobs: int | None = None
    #: The units of the table, set by the selection.
    _units: Grouping = field(init=False)

    def _check(self) -> None:
        if not isinstance(self.search, Selection):
            name = type(self).__name__
            raise IncompatibleCriterion(
                f"{name} needs a search, not {self.search!r}. Write {name}(Ranking(Correlation()))."
            )
        if self.search.fixed_features is not None:
            raise IncompatibleCriterion(
                f"{type(self).__name__} tests every column, but the search has fixed_features. "
                "Leave them out, and add the columns afterwards."
            )
        check_first(type(self).__name__, self.search)
        if self.sizes_search:
            self._check_walk(walk_of(self.search))
        if self.search._choice().guides:
            name, choice = type(self).__name__, type(self.search._choice()).__name__
            raise IncompatibleCriterion(
                f"{name} chooses the number of columns itself, so its search cannot have {choice}. "
                f"Write Then({name}(...), Forward(..., n_features_to_select={choice}(...)))."
            )
        self.search.check()

    def _check_walk(self, walk: Any) -> None:
        """Refuse a search without ``n_features_to_select``, or one that does not order columns."""
        name, inner = type(self).__name__, type(walk).__name__
        if "n_features_to_select" not in walk.get_params(deep=False):
            write = (
                f"Then(..., {name}(...))" if isinstance(walk, Rounds) else f"{inner}({name}(...))"
            )
            raise IncompatibleCriterion(
                f"{name} needs a search with the parameter n_features_to_select, but {inner} "
                f"chooses the number of columns itself. Pass the search inside {inner} to {name}, "
                f"or write {write}."
            )
        if self.reads_order and not (walk.nested or walk.extends):
            raise IncompatibleCriterion(
                f"{name} needs a search that orders the columns, but {inner} finds one subset of a "
                f"given size. Use {name}(Forward(...)), or StabilitySelection({inner}(...))."
            )

    @property
    def feature_groups(self) -> Any:
        """Column groups of the search."""
        return self.search.feature_groups

    @property
    def feature_costs(self) -> Any:
        """Column prices of the search."""
        return self.search.feature_costs

    def _check_target(self, y: NDArray[Any] | None) -> None:
        self.search._check_target(y)
        if self.instead_if_censored and y is not None and y.dtype.names is not None:
            raise InvalidTarget(
                f"{type(self).__name__} needs a target of classes or numbers, but y is censored "
                f"(event and time). {self.instead_if_censored}"
            )

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes of a search on a table with twice as many columns.

        It is None if unknown.
        """
        n, d = n_samples, 2 * n_features
        held = search_cost(self.search, n, d)
        # memory for the permuted columns, and for a table of the original and permuted columns
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
        """Whether the search accepts category codes, and no other part reads the columns."""
        return self.passes_nan and bool(self.search.takes_categories)

    def _rank_both(
        self,
        X: Array,
        others: Array,
        y: NDArray[Any] | None,
        seed: int,
        rng: np.random.Generator,
        field: Subset | None = None,
    ) -> tuple[Array, Array]:
        """Run a search, and return the scores of each unit and of its counterpart in ``others``.

        The columns are shuffled, so that ties do not favour low indices. If ``field`` is given,
        only these units and their counterparts are in the table, and all other units score minus
        infinity.
        """
        d = X.shape[1]
        labels, n_units = self._units.unit_of, self._units.n_units
        inside = np.arange(d) if field is None else np.flatnonzero(np.isin(labels, field))
        order = rng.permutation(np.concatenate([inside, inside + d]))
        both = np.concatenate([labels, labels + n_units])[order]
        wide = np.hstack([X, others])[:, order]
        size = path_size(self.search, len(np.unique(both)))
        fitted = self._fit_search(wide, y, seed, size, order, both)
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
        """Count, for each unit, the permuted units that score better.

        If ``field`` is given, only the units in it are in the table.
        """
        rng = stream(seed, "probes", index)
        probes = X[rng.permutation(len(X))]
        both = self._rank_both(X, probes, y, seed_of(seed, "search", index), rng, field)
        standing = np.concatenate(both if field is None else [one[field] for one in both])
        return list(count_ahead(standing, len(standing) // 2, rng).tolist())

    def _fit_search(
        self,
        X: Array,
        y: NDArray[Any] | None,
        seed: int,
        size: int | None = None,
        order: Subset | None = None,
        labels: Subset | None = None,
    ) -> Selection:
        """Fit a clone of the search with the given size (or its own) and seed.

        Column i of ``X`` is column ``order[i]`` of the table with its copy appended, and belongs to
        the unit ``labels[i]``.
        """
        units, search = self._units, self.search
        if order is not None:
            search = for_columns(search, order % units.n_columns, units.n_columns)
        labels = units.unit_of if labels is None else labels
        return fit_search(search, X, y, seed, size, None if units.plain else labels)


def task_of(selection: Any, y: NDArray[Any]) -> str:
    """Return the task: the ``task`` of the selector or of its criterion, or the kind of target."""
    if selection.task != "auto":
        return str(selection.task)
    criterion = getattr(walk_of(selection.search), "criterion", None)
    asked = getattr(criterion, "task", "auto")
    only = tuple(getattr(criterion, "targets", ()))
    if asked == "auto" and len(only) == 1:
        asked = only[0]
    return target_kind(y) if asked == "auto" else str(asked)


def check_part(name: str, y: NDArray[Any] | None, rows: Subset) -> None:
    """Refuse a subsample with a single row or a single class."""
    if len(rows) < 2:
        raise InvalidTable(
            f"{name} searches in subsamples of the rows, but one has a single row. Give more "
            "rows, or use Probes(...), which uses all rows."
        )
    if y is None or y.ndim > 1 or y.dtype.names is not None or target_kind(y) != "classification":
        return
    labels, codes = class_codes(y)
    if len(labels) > 1 and (codes[rows] == codes[rows[0]]).all():
        counts = np.bincount(codes)
        fewest = int(np.argmin(counts))
        n = f"is {counts[fewest]} row" if counts[fewest] == 1 else f"are {counts[fewest]} rows"
        raise InvalidTarget(
            f"{name} searches in subsamples of the rows, but one has a single class: there "
            f"{n} of class {str(labels[fewest])!r}. Leave the class out, or use Probes(...), which "
            "uses all rows."
        )


def expected_unrelated(n: float) -> str:
    """Return a sentence about the expected number of unrelated columns.

    >>> expected_unrelated(0.2)
    '0.2 of them is expected to be unrelated to the target.'
    """
    return f"{n:g} of them {'is' if n <= 1 else 'are'} expected to be unrelated to the target."


def count_ahead(standing: Array, n_columns: int, rng: np.random.Generator) -> Array:
    """Count, for each of the first ``n_columns`` columns, the later columns that score better.

    Ties are broken at random.
    """
    order = np.lexsort((rng.random(len(standing)), -standing))
    probe = order >= n_columns
    before: Array = np.cumsum(probe) - probe
    found = np.empty(len(standing))
    found[order] = before
    return found[:n_columns]
