"""How much the chosen columns depend on the rows at hand."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from tamis._arrays import Array, Mask
from tamis._frame import frame
from tamis.exceptions import InvalidParameter


@dataclass(frozen=True, repr=False)
class Stability:
    """Agreement of the selections of several realizations.

    Attributes
    ----------
    nogueira : float
        1 if all are equal, 0 in expectation if they are drawn at random, whatever their sizes.
    low, high : float
        Interval of ``nogueira``.
    level : float
    kuncheva : float
        Kuncheva's index, nan unless all selections have one size.
    jaccard : float
        Mean over all pairs of common columns per column in either; not corrected for chance.
    frequency : array
        Share of the selections that hold each column.
    n_selections : int
        How many were compared.
    """

    nogueira: float
    low: float
    high: float
    level: float
    kuncheva: float
    jaccard: float
    frequency: Array
    n_selections: int = 0

    def to_frame(self) -> Any:
        """Columns by falling frequency."""
        order = np.argsort(-self.frequency, kind="stable")
        return frame({"column": order.tolist(), "frequency": self.frequency[order].tolist()})

    def __repr__(self) -> str:
        return f"<Stability {self.nogueira:.3g} in [{self.low:.3g}, {self.high:.3g}]>"


def stability(selections: Any, n_features: int | None = None, *, level: float = 0.95) -> Stability:
    """Stability of selections, with an interval.

    Parameters
    ----------
    selections : array of bool of shape (n_selections, n_features), or list of column numbers
        As given by :meth:`tamis.evaluation.Results.supports`.
    n_features : int
        Number of columns there are, where selections are lists of column numbers.
    level : float, default=0.95
        Level of the interval.

    Returns
    -------
    Stability

    References
    ----------
    Nogueira, Sechidis and Brown (2018), On the stability of feature selection algorithms.
    Kuncheva (2007), A stability index for feature selection.

    Examples
    --------
    >>> stability([[0, 1], [0, 1], [0, 2]], n_features=6)
    <Stability 0.5 in [0.233, 0.767]>
    """
    chosen = _masks(selections, n_features)
    m = len(chosen)
    frequency = chosen.mean(axis=0)
    share = frequency.mean()
    if share in (0.0, 1.0):
        raise InvalidParameter(
            "stability needs selections that keep something and leave something out; these keep "
            f"{'nothing' if share == 0 else 'all columns'}, so there is nothing to agree on."
        )
    disagreement = share * (1 - share)
    value = 1 - (m / (m - 1)) * (frequency * (1 - frequency)).mean() / disagreement
    half = float(stats.norm.ppf((1 + level) / 2) * _error(chosen, frequency, value))
    sizes = chosen.sum(axis=1)
    first, second = np.triu_indices(m, 1)
    common = chosen.astype(float)
    both = (common @ common.T)[first, second]
    either = sizes[first] + sizes[second] - both
    k, d = int(sizes[0]), chosen.shape[1]
    same_size = bool((sizes == k).all())
    return Stability(
        float(value),
        float(value - half),
        float(value + half),
        level,
        float(np.mean((both * d - k * k) / (k * (d - k)))) if same_size else float("nan"),
        float(np.mean(both[either > 0] / either[either > 0])),
        frequency,
        m,
    )


def _error(chosen: Mask, frequency: Array, value: float) -> float:
    """Standard error of Nogueira's measure (their theorem 7)."""
    m = len(chosen)
    share = frequency.mean()
    disagreement = share * (1 - share)
    size = chosen.mean(axis=1)
    overlap = (chosen * frequency).mean(axis=1)
    phi = (
        overlap - size * share + value / 2 * (2 * share * size - size - share + 1)
    ) / disagreement
    return float(np.sqrt(4 / m**2 * ((phi - phi.mean()) ** 2).sum()))


def _masks(selections: Any, n_features: int | None) -> Mask:
    """Selections as rows of a boolean matrix."""
    rows = [np.asarray(row) for row in selections]
    if len(rows) < 2:
        raise InvalidParameter(f"stability needs at least two selections, not {len(rows)}.")
    if all(row.dtype == bool for row in rows):
        if len({row.shape for row in rows}) != 1:
            raise InvalidParameter("stability needs masks of one length.")
        return np.array(rows)
    if n_features is None or max(int(r.max(initial=0)) for r in rows) >= n_features:
        raise InvalidParameter(
            "stability needs n_features, the number of columns there are, above every column "
            f"number, not {n_features}. Write stability(selections, n_features=30)."
        )
    masks = np.zeros((len(rows), n_features), dtype=bool)
    for mask, row in zip(masks, rows, strict=True):
        mask[row.astype(np.intp)] = True
    return masks
