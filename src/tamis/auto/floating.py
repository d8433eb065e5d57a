"""Floating forward selection for a least-squares fit, computed from moments only."""

from typing import NamedTuple

import numpy as np

from tamis._arrays import Array, Subset, improves, scaled_columns
from tamis.contract.units import Grouping

#: Ridge penalty relative to the variance of a column. It keeps the matrices of a subset invertible.
RIDGE = 1e-6
#: A unit is not added if its residual variance is below this share of its variance.
DEPENDENT = 1e-4
#: Number of rows for each column of the largest subset.
ROWS_PER_COLUMN = 3


class Moments(NamedTuple):
    """Covariances of the columns, and of the columns with the outputs of the target.

    ``members`` holds the columns of each unit, or None if each unit is a column.
    """

    covariance: Array
    products: Array
    members: tuple[Subset, ...] | None

    def columns(self, units: list[int]) -> Subset:
        """Return the columns of the given units."""
        if self.members is None:
            return np.array(units, dtype=np.intp)
        return np.concatenate([np.empty(0, dtype=np.intp), *(self.members[unit] for unit in units)])

    def gains(self, units: list[int]) -> tuple[float, Array]:
        """Return the explained variance of a subset, and the gain of adding each unit."""
        held = self.columns(units)
        inverse = np.linalg.inv(self.covariance[np.ix_(held, held)])
        coefs = inverse @ self.products[held]
        rows = self.covariance[held]
        left = self.products - rows.T @ coefs
        weights = inverse @ rows
        variance = self.covariance.diagonal() - (weights * rows).sum(axis=0)
        squares, least = (left**2).sum(axis=1), DEPENDENT * self.covariance.diagonal()
        gains = np.where(variance > least, squares / np.maximum(variance, least), 0.0)
        if self.members is not None:
            gains = self._group_gains(gains, left, rows, weights)
        else:
            gains = gains.copy()
        gains[units] = -np.inf
        return float((coefs * self.products[held]).sum()), gains

    def _group_gains(self, gains: Array, left: Array, rows: Array, weights: Array) -> Array:
        """Return the gain of each unit, which for a group needs the solution of a small system."""
        assert self.members is not None
        found = np.empty(len(self.members))
        for unit, columns in enumerate(self.members):
            if len(columns) == 1:
                found[unit] = gains[columns[0]]
                continue
            residual = self.covariance[np.ix_(columns, columns)]
            residual = residual - rows[:, columns].T @ weights[:, columns]
            solved = np.linalg.lstsq(residual, left[columns], rcond=DEPENDENT)[0]
            found[unit] = (solved * left[columns]).sum()
        return found

    def losses(self, units: list[int]) -> Array:
        """Return the loss of explained variance if each unit of a subset is removed."""
        held = self.columns(units)
        inverse = np.linalg.inv(self.covariance[np.ix_(held, held)])
        coefs = inverse @ self.products[held]
        if self.members is None:
            return np.asarray((coefs**2).sum(axis=1) / inverse.diagonal())
        ends = np.cumsum([len(self.members[unit]) for unit in units])
        parts = [
            slice(end - len(self.members[unit]), end) for unit, end in zip(units, ends, strict=True)
        ]
        return np.array(
            [
                (coefs[part] * np.linalg.solve(inverse[part, part], coefs[part])).sum()
                for part in parts
            ]
        )


def floating_subsets(
    X: Array, target: Array, units: Grouping, size: int, most: int
) -> tuple[Subset, dict[int, Subset]]:
    """Return a ranking of all units, and the best subset of each size.

    The search adds the unit with the greatest gain of R², and removes units as long as the subset
    is better than the best one known of its size (Pudil et al. 1994).

    Parameters
    ----------
    X : array of shape (n_rows, n_columns)
    target : array of shape (n_rows, n_outputs)
        Class indicators, or the numeric target.
    units : Grouping
    size : int
        Maximum size.
    most : int
        Maximum number of units that are searched. If there are more, those with the greatest R²
        on their own are searched.
    """
    Z = scaled_columns(X)[0]
    outputs = target - target.mean(axis=0)
    outputs /= max(np.sqrt((outputs**2).mean(axis=0).sum()), 1e-300)
    products = Z.T @ outputs / len(Z)
    alone = (products**2).sum(axis=1)
    if not units.plain:
        alone = np.maximum.reduceat(
            alone[np.argsort(units.unit_of, kind="stable")],
            np.searchsorted(np.sort(units.unit_of), np.arange(units.n_units)),
        )
    by_relevance = np.argsort(-alone, kind="stable")
    fixed = units.fixed_units
    kept = np.concatenate([fixed, by_relevance[~np.isin(by_relevance, fixed)]])[:most]
    own = units.restricted(np.sort(kept))
    columns = units.columns(np.sort(kept))
    Z = Z[:, columns]
    covariance = Z.T @ Z / len(Z)
    covariance[np.diag_indices_from(covariance)] += RIDGE
    moments = Moments(covariance, products[columns], own.members)
    room = len(X) // ROWS_PER_COLUMN
    found = _search(moments, own, min(size, own.n_units), room)
    back = np.sort(kept)
    subsets = {n: np.sort(back[np.array(subset, dtype=np.intp)]) for n, subset in found.items()}
    entered = [back[np.array(found[n], dtype=np.intp)] for n in sorted(found)]
    joined = np.concatenate([fixed, *entered, by_relevance])
    ranking = joined[np.sort(np.unique(joined, return_index=True)[1])]
    return ranking.astype(np.intp), subsets


def _search(moments: Moments, units: Grouping, size: int, room: int) -> dict[int, list[int]]:
    """Return the best subset of each size, in order of entry."""
    subset = units.fixed_units.tolist()
    n_fixed = len(subset)
    best: dict[int, tuple[float, list[int]]] = {}
    while len(subset) < size:
        value, gains = moments.gains(subset)
        unit = int(gains.argmax())
        grown = [*subset, unit]
        if not gains[unit] > 0 or len(moments.columns(grown)) > room:
            break
        subset, value = grown, value + float(gains[unit])
        known = best.get(len(subset))
        if known is not None and not improves(value, known[0]):
            value, subset = known
        best[len(subset)] = value, subset
        while len(subset) - n_fixed > 2:
            losses = moments.losses(subset)
            losses[:n_fixed] = np.inf
            worst = int(losses.argmin())
            smaller = value - float(losses[worst])
            if not improves(smaller, best[len(subset) - 1][0]):
                break
            subset, value = [*subset[:worst], *subset[worst + 1 :]], smaller
            best[len(subset)] = value, subset
    return {n: subset for n, (_, subset) in best.items()}
