"""Stability of the selected columns across resamples."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from tamis._arrays import Array, Mask
from tamis._frame import frame
from tamis.exceptions import InvalidParameter


@dataclass(frozen=True, repr=False)
class Stability:
    """Stability of the selected columns across several resamples.

    Attributes
    ----------
    nogueira : float
        Nogueira's measure: 1 if all selections are equal, 0 on average for random selections.
    low, high : float
        Confidence interval of ``nogueira``.
    level : float
        Confidence level of the interval.
    kuncheva : float
        Kuncheva's index, nan unless all selections have the same size.
    jaccard : float
        Mean Jaccard index over all pairs of selections. It is not corrected for chance.
    frequency : array
        Share of the selections that contain each column.
    n_selections : int
        Number of selections.

    Examples
    --------
    >>> stability([[0, 1], [0, 1], [0, 2]], n_features=6).frequency.round(2)
    array([1.  , 0.67, 0.33, 0.  , 0.  , 0.  ])
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
        """Return a data frame of the columns and their frequencies, the most frequent first."""
        order = np.argsort(-self.frequency, kind="stable")
        return frame({"column": order.tolist(), "frequency": self.frequency[order].tolist()})

    def __repr__(self) -> str:
        return f"<Stability {self.nogueira:.3g} in [{self.low:.3g}, {self.high:.3g}]>"


def stability(selections: Any, n_features: int | None = None, *, level: float = 0.95) -> Stability:
    """Compute the stability of several selections, with a confidence interval.

    Parameters
    ----------
    selections : array of bool of shape (n_selections, n_features), or list of column numbers
        For example from :meth:`tamis.evaluation.Results.supports`.
    n_features : int
        Number of columns of the table. It is needed if selections are lists of column numbers.
    level : float, default=0.95
        Confidence level of the interval.

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
            "stability needs selections of some but not all columns, but these have "
            f"{'no columns' if share == 0 else 'all columns'}."
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
    """Return the standard error of Nogueira's measure (Nogueira et al. 2018, theorem 7)."""
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
    """Return the selections as the rows of a boolean array."""
    rows = [np.asarray(row) for row in selections]
    if len(rows) < 2:
        raise InvalidParameter(f"stability needs at least two selections, not {len(rows)}.")
    if all(row.dtype == bool for row in rows):
        if len({row.shape for row in rows}) != 1:
            raise InvalidParameter("stability needs masks of one length.")
        return np.array(rows)
    if n_features is None or max(int(r.max(initial=0)) for r in rows) >= n_features:
        raise InvalidParameter(
            "stability needs n_features, the number of columns of the table, above every column "
            f"number, not {n_features}. Write stability(selections, n_features=30)."
        )
    masks = np.zeros((len(rows), n_features), dtype=bool)
    for mask, row in zip(masks, rows, strict=True):
        mask[row.astype(np.intp)] = True
    return masks
