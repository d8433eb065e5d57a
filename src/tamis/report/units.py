"""Units of a fitted selection: columns, or groups of columns that are selected together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array, Mask, Subset
from tamis._format import format_p_value
from tamis.contract.record import Interaction
from tamis.contract.units import Grouping
from tamis.exceptions import InvalidParameter

#: What a q-value means, as a part of a sentence.
Q_MEANING = (
    "conditional test: q tests a column given all others and is corrected over all columns; a "
    "small q means that the column has information that no other column has"
)


@dataclass(frozen=True, repr=False)
class ChosenUnits:
    """The units of a fitted selection: columns, or groups of columns.

    Attributes
    ----------
    names : tuple of str
    kept : array of bool
        Mask of the selected units.
    order : array of int
        All units, best first.
    scores : array of float
        Score of each unit, or NaN if it has none.
    units : Grouping
        Assignment of the columns to units.
    q_values : array of float or None
        The q-value of each unit, if a conditional test was made.
    """

    names: tuple[str, ...]
    kept: Mask
    order: Subset
    scores: Array
    units: Grouping
    q_values: Array | None = None

    @property
    def best_kept(self) -> Subset:
        """The selected units, best first."""
        return self.order[self.kept[self.order]]

    @property
    def is_scored(self) -> bool:
        """Whether any unit has a score."""
        return bool(np.isfinite(self.scores).any())

    def size_note(self, unit: int) -> str:
        """Return the number of columns of a group as text. Empty for a single column."""
        n = len(self.units.columns(np.array([unit])))
        return f"{n} columns" if n > 1 else ""

    @property
    def n_columns_kept(self) -> int:
        """Number of columns in the selected units."""
        return int(self.units.mask(self.kept).sum())


@dataclass(frozen=True, repr=False)
class Agreement:
    """Stability of the selected columns across resamples.

    Attributes
    ----------
    index, low, high : float
        Nogueira's measure (0 = chance, 1 = always the same columns), and its interval.
    n : int
        Number of resamples.
    share : array of float
        Share of the resamples that select each unit.
    """

    index: float
    low: float
    high: float
    n: int
    share: Array

    @property
    def word(self) -> str:
        """ "high" above 0.75, "low" below 0.4 (Nogueira, Sechidis and Brown), else "medium"."""
        return "high" if self.index > 0.75 else "low" if self.index < 0.4 else "medium"


def chosen_units(selection: Any, names: Sequence[str] | None = None) -> ChosenUnits:
    """Return the units of a fitted selection of tamis or scikit-learn."""
    check_is_fitted(selection)
    if hasattr(selection, "unit_support_"):
        units: Grouping = selection.units_
        kept, order = np.asarray(selection.unit_support_), np.asarray(selection.order_)
        scores = scores_without_ranks(np.asarray(selection.scores_, dtype=float), order)
    else:
        kept, order, scores = _columns_of_any(selection)
        units = Grouping(len(kept))
    if names is None:
        names = getattr(selection, "feature_names_in_", None)
    if names is None:  # the default names of scikit-learn
        names = [f"x{j}" for j in range(units.n_columns)]
    if len(names) != units.n_columns:
        raise InvalidParameter(
            f"A chart needs one name for each of the {units.n_columns} columns, not {len(names)}."
        )
    named = units.unit_names([str(name) for name in names])
    return ChosenUnits(
        tuple(named), kept, order, scores, units, unit_values(selection, "q_values_")
    )


def unit_values(selection: Any, name: str) -> Array | None:
    """Return a fitted array with one value per unit, or None if the selection does not have it.

    For a selection that encodes a frame, columns that were left out have NaN.
    """
    inner = inner_selection(selection)
    values = getattr(inner, name, None)
    if values is None or inner is selection:
        return None if values is None else np.asarray(values)
    found = np.full(selection.units_.n_units, np.nan)
    found[selection._outside] = values
    return found


def describe_slopes(selection: Any) -> list[str]:
    """Return a line for each column that InvariantSelection dropped, with its slopes."""
    inner, lines = inner_selection(selection), []
    p, names = unit_values(selection, "p_equal_"), chosen_units(selection).names
    if p is None:
        return []
    outside = np.arange(len(p)) if inner is selection else selection._outside
    for unit in np.flatnonzero(np.isfinite(inner.p_equal_) & ~inner.unit_support_):
        line = f"slopes of {names[outside[unit]]} differ (p {format_p_value(inner.p_equal_[unit])})"
        columns = inner.units_.columns(np.array([unit]))
        if len(columns) == 1:
            slopes = inner.slopes_[:, columns[0]], inner.slope_errors_[:, columns[0]]
            each = zip(inner.environments_.tolist(), *slopes, strict=True)
            line += ": " + ", ".join(
                f"{label} {slope:.2g} ± {error:.1g}" for label, slope, error in each
            )
        lines.append(line)
    return lines


def _columns_of_any(selection: Any) -> tuple[Mask, Subset, Array]:
    """Return the support, order and scores of a scikit-learn selector."""
    from tamis.evaluation.columns import chosen_columns

    order, support = chosen_columns(selection)
    if support is None or order is None:
        raise InvalidParameter(
            f"A chart needs a fitted selection with get_support, not {type(selection).__name__}."
        )
    n = int(selection.n_features_in_)
    kept = np.isin(np.arange(n), support)
    order = np.concatenate([order, np.setdiff1d(np.arange(n), order)]).astype(np.intp)
    scores = np.asarray(getattr(selection, "scores_", ()), dtype=float)
    scores = scores if scores.shape == (n,) else np.full(n, np.nan)
    return kept, order[np.argsort(~kept[order], kind="stable")], scores


def inner_selection(selection: Any) -> Any:
    """Return the search inside a selection that encodes a frame, or else the selection itself."""
    return selection.search_ if hasattr(selection, "aside_") else selection


def strongest_pairs(selection: Any, n: int) -> list[Interaction]:
    """Return the strongest pairs whose columns are more informative together than alone."""
    return [pair for pair in getattr(selection, "interactions_", ()) if pair.information > 0][:n]


def scores_alone(selection: Any) -> bool:
    """Return whether the steps only repeat the order of the scores, as in a ranking."""
    inner = inner_selection(selection)
    return bool(getattr(inner, "scores_alone", False) or hasattr(inner, "_verdict"))


def scores_without_ranks(scores: Array, order: Subset) -> Array:
    """Return the scores, or NaN for all units if the scores are only ranks.

    >>> scores_without_ranks(np.array([3.0, 1.0, 2.0]), np.array([0, 2, 1])).tolist()
    [nan, nan, nan]
    """
    counted = scores[order][np.isfinite(scores[order]) & (scores[order] != 0)]
    alone = len(counted) == 1 and counted[0] == 1
    falling = len(counted) > 1 and bool((np.diff(counted) == -1).all()) and counted[0] % 1 == 0
    return np.full(len(scores), np.nan) if alone or falling else scores


def own_agreement(selection: Any, units: ChosenUnits) -> Agreement | None:
    """Return the stability of a selection across its own folds or half-samples."""
    inner = inner_selection(selection)
    found = getattr(inner, "stability_", None)
    if found is None or not hasattr(found, "frequency"):
        return None
    share = np.asarray(found.frequency, dtype=float)
    if len(share) == inner.units_.n_columns and not inner.units_.plain:
        by_unit = np.zeros(inner.units_.n_units)
        np.maximum.at(by_unit, inner.units_.unit_of, share)
        share = by_unit
    if inner is not selection:  # excluded columns are last in the order
        offered = np.zeros(len(units.names))
        offered[selection.order_[: len(share)]] = share[inner.order_]
        share = offered
    if len(share) != len(units.names):
        return None
    return Agreement(found.nogueira, found.low, found.high, found.n_selections, share)
