"""Lists of columns whose error was measured on held-out rows, for the explorer of a report.

A unit is a single column, or a group of columns that are selected together.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from tamis._arrays import Subset
from tamis._format import format_p_value
from tamis._frame import collected
from tamis.auto.sentences import describe_error
from tamis.choice import CostLimit
from tamis.contract.costs import FeatureCosts
from tamis.evaluation import Results
from tamis.exceptions import InvalidParameter
from tamis.meta.inner_search import silence_search, walk_of
from tamis.report.columns import shape_of
from tamis.report.error_curve import NAN, ErrorCurve
from tamis.report.estimates import own_curve
from tamis.report.units import ChosenUnits, chosen_units, inner_selection
from tamis.validation.stability import stability

#: A unit that is not in a list is shown as a rival if at least this share of the resamples selects
#: it. The second number is the greatest number of rivals shown.
OFTEN, MOST_RIVALS = 0.5, 10


class Candidate(NamedTuple):
    """A list of units whose error was measured on held-out rows.

    Attributes
    ----------
    size : int
        Number of units.
    units : tuple of int or None
        The list that the search selects on all rows, best first. None if the search on all rows did
        not reach this size.
    error, standard_error : float
        The held-out error and its standard error, as they are shown (for example in percent).
    stability : float
        Nogueira's measure over the resamples. NaN if unknown.
    share : dict of int to float
        For each unit, the share of resamples whose list of this size contains the unit. Other units
        have 0.
    price : float
        Price of the list. NaN if the columns have no prices.
    without : tuple of int
        Units that were not available to the search.

    Examples
    --------
    >>> Candidate(2, (4, 1), 0.25, 0.02, without=(0,)).stability
    nan
    """

    size: int
    units: tuple[int, ...] | None
    error: float
    standard_error: float
    stability: float = NAN
    share: Mapping[int, float] = {}
    price: float = NAN
    without: tuple[int, ...] = ()


class Omission(NamedTuple):
    """A selection that was fitted again without some of the columns.

    Attributes
    ----------
    name : str
        What is left out: a column, or the name of a group.
    columns : tuple of int
        Positions of the columns that are left out.
    selection : fitted selection

    Examples
    --------
    >>> from tamis.criteria import Correlation
    >>> from tamis.datasets import load
    >>> from tamis.meta import HonestSize
    >>> from tamis.report import fit_without
    >>> from tamis.search import Ranking
    >>> wine = load("wine")
    >>> chosen = HonestSize(Ranking(Correlation()), random_state=0).fit(wine.X, wine.y)
    >>> omission = fit_without(chosen, wine.X, wine.y, {"acids": [1, 12]})[-1]
    >>> omission.name, omission.columns, omission.selection.n_features_in_
    ('acids', (1, 12), 11)
    """

    name: str
    columns: tuple[int, ...]
    selection: Any


def fit_without(
    selection: BaseEstimator,
    X: Any,
    y: ArrayLike,
    groups: Mapping[str, Sequence[Any]] | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> list[Omission]:
    """Fit a selection again without each selected column, and without each group of columns.

    The report of the selection then shows which columns replace a column that is not available, and
    how much the error changes. All fits have the same folds.

    Parameters
    ----------
    selection : fitted selection
        It must have its own error estimate, such as :class:`tamis.auto.Auto` or
        :class:`tamis.meta.HonestSize`. Columns that belong to groups or are always selected cannot
        be left out.
    X, y : array or frame, and array
        The table and the target that it was fitted to.
    groups : dict of str to list, optional
        Columns that are left out together, by the name of the group. Columns are given by name, or
        by position if the table has no names. The default is the groups that share a fee, if the
        columns have prices.
    progress : callable, optional
        Called as ``progress(n_done, n_fits)`` after each fit.

    Returns
    -------
    list of Omission
        Pass it as ``without`` to :func:`tamis.report.report`.

    Examples
    --------
    >>> from tamis.criteria import Correlation
    >>> from tamis.datasets import load
    >>> from tamis.meta import HonestSize
    >>> from tamis.report import fit_without
    >>> from tamis.search import Ranking
    >>> wine = load("wine")
    >>> chosen = HonestSize(Ranking(Correlation()), random_state=0).fit(wine.X, wine.y)
    >>> fitted = fit_without(chosen, wine.X, wine.y, {"first two": [0, 1]})
    >>> fitted[-1].name, fitted[-1].selection.n_features_in_
    ('first two', 11)
    """
    X = collected(X)
    units = chosen_units(selection)
    inner = inner_selection(selection)
    if own_curve(selection, units.units.n_columns) is None:
        raise InvalidParameter(
            "fit_without needs a selection with its own error estimate, such as Auto or "
            f"HonestSize, not {type(inner).__name__}. Write for example HonestSize(...) around it."
        )
    if not selection.units_.plain or selection.units_.fixed:
        raise InvalidParameter(
            "fit_without cannot leave out columns of a selection with feature_groups or "
            "fixed_features. Fit it again on a table without them."
        )
    omitted = {units.names[unit]: [int(unit)] for unit in units.best_kept}
    shared = getattr(getattr(inner, "feature_costs", None), "shared", None) or {}
    groups = {name: held for name, (_, held) in shared.items()} if groups is None else groups
    for name, columns in groups.items():
        omitted[name] = [_position(units, column) for column in columns]
    n_columns = shape_of(X)[1]
    found = []
    for index, (name, columns) in enumerate(omitted.items(), 1):
        rest = np.setdiff1d(np.arange(n_columns), columns)
        if len(rest):
            fresh = clone(selection)
            search = fresh if inner is selection else fresh.search
            search.set_params(**inner.record_.seeds)  # the same folds
            fresh.set_params(**_fewer_prices(selection, units.names, columns))
            with silence_search():
                fresh.fit(X.iloc[:, rest] if hasattr(X, "iloc") else X[:, rest], y)
            found.append(Omission(name, tuple(sorted(columns)), fresh))
        if progress is not None:
            progress(index, len(omitted))
    return found


def _fewer_prices(selection: Any, names: Sequence[str], columns: Sequence[int]) -> dict[str, Any]:
    """Return the prices and the price limit for a table without some columns, as parameters."""
    omitted = {*columns, *(names[column] for column in columns)}

    def kept(given: Iterable[Any]) -> dict[Any, Any]:
        """Return the new name or index of each column that is not left out."""
        return {
            key: key if isinstance(key, str) else int(key - np.sum(np.array(columns) < key))
            for key in given
            if key not in omitted
        }

    found: dict[str, Any] = {}
    for name, value in selection.get_params().items():
        if isinstance(value, FeatureCosts):
            prices = {new: value.prices[old] for old, new in kept(value.prices).items()}
            shared = {
                group: (fee, [*kept(held).values()])
                for group, (fee, held) in (value.shared or {}).items()
            }
            found[name] = FeatureCosts(prices, shared=shared, default=value.default)
        elif name.rpartition("__")[2] == "cost_limit":
            found[name] = price_limit(selection)
    return found


def price_limit(selection: Any) -> float | None:
    """Return the price limit of an automatic selection. None if it has no limit."""
    given = getattr(inner_selection(selection), "cost_limit", None)
    return None if given is None else CostLimit(given).of(selection.units_.prices).amount


def _position(units: ChosenUnits, column: Any) -> int:
    if isinstance(column, str) and column in units.names:
        return units.names.index(column)
    if not isinstance(column, str) and 0 <= int(column) < len(units.names):
        return int(column)
    raise InvalidParameter(
        f"fit_without needs groups of columns of the table, and {column!r} is not one. Write for "
        f"example {units.names[0]!r}."
    )


def find_candidates(
    selection: Any,
    units: ChosenUnits,
    curve: ErrorCurve | None,
    results: Results | None = None,
    method: str | None = None,
    without: Sequence[Omission] = (),
) -> list[Candidate]:
    """Return the lists of the selection and of the omissions whose error was measured.

    The list is empty if fewer than two sizes were measured.
    """
    if curve is None or (results is not None and not units.units.plain):
        return []
    lists: Callable[[int], list[Subset]] = partial(_fold_lists, selection)
    if results is not None:
        lists = partial(_resampled_lists, results, results.methods[0] if method is None else method)
    found = list(_candidates(selection, units, curve, lists))
    if not any(one.units for one in found):
        return []
    n_columns = units.units.n_columns
    for omission in without:
        columns = np.setdiff1d(np.arange(n_columns), omission.columns)
        own = chosen_units(omission.selection)
        curve = own_curve(omission.selection, len(columns))
        lists = partial(_fold_lists, omission.selection)
        for one in [] if curve is None else _candidates(omission.selection, own, curve, lists):
            share = {int(columns[unit]): value for unit, value in one.share.items()}
            there = None if one.units is None else tuple(columns[list(one.units)].tolist())
            found.append(one._replace(units=there, share=share, without=omission.columns))
    prices = getattr(units.units, "prices", None)
    if prices is None:
        return found
    return [
        one if one.units is None else one._replace(price=float(prices.of(np.array(one.units))))
        for one in found
    ]


def _candidates(
    selection: Any,
    units: ChosenUnits,
    curve: ErrorCurve,
    lists_at: Callable[[int], list[Subset]],
) -> Iterator[Candidate]:
    """Yield the lists of a selection, one for each size that was measured.

    ``lists_at`` returns the list of a size in each resample, or no lists if they are unknown.
    """
    for size, mean, error in zip(curve.size.tolist(), curve.mean, curve.error, strict=True):
        if not np.isfinite(mean):
            continue
        there = _list_at(selection, units, size)
        lists = lists_at(size)
        agreed, share = NAN, {}
        if lists:
            counted, counts = np.unique(np.concatenate(lists), return_counts=True)
            share = dict(zip(counted.tolist(), (counts / len(lists)).tolist(), strict=True))
        if len(lists) > 1 and size < len(units.names):
            agreed = stability(lists, len(units.names)).nogueira
        yield Candidate(size, there, float(mean), float(error), agreed, share)


def _list_at(selection: Any, units: ChosenUnits, size: int) -> tuple[int, ...] | None:
    """Return the list of this size that the search found on all rows, or None if it found none."""
    inner = inner_selection(selection)
    if size == len(units.best_kept):
        return tuple(units.best_kept.tolist())
    walk = walk_of(getattr(inner, "search", inner))
    known = bool(getattr(walk, "scores_alone", False)) or size == len(units.names)
    if hasattr(inner, "lists_"):
        own = inner.lists_.get(size)
        own = own if own is None or inner is selection else selection._outside[own]
        held = set() if own is None else set(own.tolist())
        return tuple(unit for unit in units.order.tolist() if unit in held) or None
    if hasattr(inner, "search"):  # the search on all rows stopped at the selected size
        known |= walk.nested and walk.grows and size < len(units.best_kept)
    elif hasattr(inner, "trace_"):
        known |= inner.nested and size in inner.trace_.sizes
    return tuple(units.order[:size].tolist()) if known else None


def _resampled_lists(results: Results, method: str, size: int) -> list[Subset]:
    """Return the list of this size in each resample of the results."""
    masks = results.supports(method, None, size)
    complete = masks.ndim == 2 and (masks.sum(axis=1) == size).all()
    return [np.flatnonzero(mask) for mask in masks] if complete else []


def _fold_lists(selection: Any, size: int) -> list[Subset]:
    """Return the list of this size in each fold of the selection itself."""
    inner = inner_selection(selection)
    lists = getattr(inner, "fold_lists_", {}).get(size, [])
    return lists if inner is selection else [selection._outside[one] for one in lists]


def alternative_lists(selection: Any, units: ChosenUnits) -> list[tuple[str, list[int], str]]:
    """Return the short list and the best list of an automatic selection, if it has them.

    A list is a tuple (name, units, error), with the best unit first and the error as text. Lists
    that equal the selection are omitted.
    """
    inner, found = inner_selection(selection), []
    for name in ("short", "best"):
        one: Any = getattr(inner, f"{name}_", None)
        if not hasattr(one, "support"):
            continue
        held = np.unique(inner.units_.unit_of[np.flatnonzero(one.support)])
        held = held if inner is selection else selection._outside[held]
        if set(held.tolist()) != set(units.best_kept.tolist()):
            there = [unit for unit in units.order.tolist() if unit in held]
            found.append((name, there, describe_error(one.error)))
    return found


def explorer_data(report: Any, rank: Mapping[int, int]) -> dict[str, Any]:
    """Return the candidates of a report as plain values for the page's script.

    ``rank`` maps each unit to its position in the data of the page.
    """
    measure, units = report.curve.measure, report.units
    lists = []
    for one in report.candidates:
        shown = one.units
        if shown is None:  # the units that the resamples select most often
            shown = sorted(one.share, key=lambda unit: (-one.share[unit], rank[unit]))
            shown = [unit for unit in shown if one.share[unit] >= OFTEN]
        own = set(shown)
        rivals = [unit for unit in one.share if one.share[unit] >= OFTEN and unit not in own]
        rivals.sort(key=lambda unit: (-one.share[unit], rank[unit]))
        facts = {
            "size": one.size,
            "columns": [rank[unit] for unit in shown],
            "error": _short(one.error),
            "text": measure.format(one.error),
            "spread": measure.format_error(one.standard_error),
            "se": _short(one.standard_error),
            "stability": _short(one.stability, 2),
            "share": [round(100 * one.share.get(unit, 0.0)) for unit in shown]
            if one.share
            else None,
            "rivals": [[rank[u], round(100 * one.share[u])] for u in rivals[:MOST_RIVALS]] or None,
            "price": _short(one.price, 12),
            "without": [rank[unit] for unit in one.without] or None,
            "folds": True if one.units is None else None,
        }
        lists.append({key: value for key, value in facts.items() if value is not None})
    q, nothing = units.q_values, report.curve.baseline
    if report.errors is not None and report.curve.values.size and report.errors.guess is not None:
        nothing = report.errors.guess
    found = {
        "lists": lists,
        "measure": measure.words,
        "percent": measure.percent,
        "greater": measure.greater_is_better,
        "baseline": measure.format(nothing) if np.isfinite(nothing) else None,
        "own": not report.curve.values.size,
        "corrected": corrected_error(report),
        "selected": len(report.kept),
        "limit": report.price_limit,
        "omitted": [[one.name, [rank[unit] for unit in one.columns]] for one in report.omissions],
        "q": None if q is None else [format_p_value(float(q[unit])) for unit in units.order],
    }
    return {key: value for key, value in found.items() if value is not None}


def corrected_error(report: Any) -> str | None:
    """Return the error of the selected list if it is corrected for the selection, and differs."""
    curve, errors = report.curve, report.errors
    if curve is None or curve.values.size or errors is None:
        return None
    shown = curve.measure.format(errors.kept.value)
    same = errors.measure.words == curve.measure.words
    differs = shown != curve.measure.format(curve.at(len(report.kept)).value)
    return shown if same and differs else None


def _short(value: float, digits: int = 4) -> float | None:
    """Return a number with few digits, or None if it is not finite."""
    return float(f"{value:.{digits}g}") if np.isfinite(value) else None
