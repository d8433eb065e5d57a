"""Selection with model-X knockoffs."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, standardised
from tamis._checks import Constraints, number, one_of
from tamis._seeds import seed_of, stream
from tamis.contract.fit_warnings import caller_level
from tamis.exceptions import DegenerateData, InvalidTable
from tamis.meta.repeats import InRounds, Verdict
from tamis.meta.search_repeats import Rounds

#: Maximum number of sweeps over the columns. The problem is convex, so the strengths usually
#: converge and the sweeps stop earlier.
SWEEPS = 200


@dataclass(eq=False, repr=False, kw_only=True)
class Knockoffs(Rounds, InRounds):
    """Select columns with a bounded false discovery rate (model-X knockoffs).

    A knockoff of a column is a synthetic column with the same correlations to all other columns,
    generated without the target. The search gets all columns and their knockoffs. W_j is the score
    of column j minus the score of its knockoff. Columns with W_j >= t are selected, where t is the
    smallest threshold with (1 + #{W <= -t}) / #{W >= t} <= q (knockoff+).

    A selected column is a false discovery if it is independent of the target *given the other
    columns*. So a column that is redundant with a relevant one is a false discovery. The bound q on
    the rate holds for jointly normal columns with a known covariance. Here the covariance is
    estimated from the table, which must have at least 3 rows per column. With fewer than 10 rows
    per column, a warning states that the rate may be higher than q. Either at least 1 / q columns
    are selected, or none.

    Parameters
    ----------
    search : Search or any other selection
        The search that ranks the columns and their knockoffs.
    fdr : float, default=0.2
        The false discovery rate q: the expected share of false discoveries among the selected
        columns.
    strengths : {"mvr", "sdp"}, default="mvr"
        How knockoffs are made different from their columns. ``"mvr"`` makes it as hard as possible
        to reconstruct a column from the other columns and the knockoffs. ``"sdp"`` minimises the
        correlation between a column and its knockoff.
    random_state : int, generator or None, default=None
        Seed of the knockoffs, and of the search.
    n_jobs : int or None, default=None
        Not used, because there is only one round.

    Attributes
    ----------
    statistics_ : array of float
        The statistic W of each column.
    strengths_ : array of float
        1 minus the correlation between each column and its knockoff.

    References
    ----------
    Candes, Fan, Janson and Lv (2018), Panning for gold: model-X knockoffs.
    Spector and Janson (2022), Powerful knockoffs via minimizing reconstructability.

    Examples
    --------
    >>> from tamis.choice import Knockoffs
    >>> from tamis.criteria import Correlation
    >>> from tamis.search import Ranking
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 20))
    >>> y = X[:, :8].sum(axis=1) + rng.normal(size=300)
    >>> found = Knockoffs(Ranking(Correlation()), random_state=0).fit(X, y)
    >>> bool(found.support_[:8].sum() >= 6)
    True
    """

    passes_targets = True

    _constraints: ClassVar[Constraints] = {
        "fdr": number(above=0, below=1),
        "strengths": one_of("mvr", "sdp"),
    }

    fdr: float = 0.2
    strengths: str = "mvr"

    def _n_rounds(self) -> int:
        return 1

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes that the search, the inverse matrix and its copies need."""
        held = super()._cost_of_round(n_samples, n_features)
        return held and held + 56.0 * n_features**2

    def _check_memory(self, X: Array, y: NDArray[Any] | None) -> None:
        n, d = X.shape
        if n < 3 * d:
            raise InvalidTable(
                f"Knockoffs needs 3 rows per column to estimate the covariance, but there are {n} "
                f"rows and {d} columns. On other rows, fit Ranking(Correlation(), "
                f"n_features_to_select={max(1, n // 10)}), and pass only its columns to Knockoffs. "
                "Or use Probes(...), which needs no covariance."
            )
        if n < 10 * d:
            warnings.warn(
                f"Knockoffs: {n} rows are fewer than 10 per column for {d} columns; the false "
                "discovery rate may be higher than asked for.",
                DegenerateData,
                stacklevel=caller_level(),
            )
        super()._check_memory(X, y)

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """Return the statistic W and the strength of each column."""
        rng = stream(seed, "knockoffs")
        Z = standardised(X)
        strengths = STRENGTHS[self.strengths](correlations(Z))
        others = gaussian_knockoffs(Z, strengths, rng)
        others[:, ~Z.any(axis=0)] = 0.0  # the knockoff of a constant column is constant
        both = np.concatenate(self._rank_both(Z, others, y, seed_of(seed, "search"), rng))
        # columns that a forward search did not add get the same score, below all others
        both[~np.isfinite(both)] = both[np.isfinite(both)].min(initial=0.0) - 1
        n_units = len(both) // 2
        return [(both[:n_units] - both[n_units:]).tolist(), strengths.tolist()]

    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        self.statistics_, self.strengths_ = map(np.array, found[0])
        return self.statistics_.copy()

    def _verdict(self, scores: Array) -> Verdict:
        cut = knockoff_threshold(scores, self.fdr)
        n_kept = int((scores >= cut).sum())
        if not n_kept:
            return Verdict(
                0,
                f"too few columns beat their knockoffs for a false discovery rate of {self.fdr:g}.",
            )
        return Verdict(
            n_kept,
            f"{self._counted(n_kept)} beat their knockoffs by {cut:.3g} or more; a share of "
            f"{self.fdr:g} of them is expected to be independent of the target given the others, "
            "if the columns are normally distributed.",
        )


def knockoff_threshold(statistics: Array, fdr: float) -> float:
    """Return the smallest t with (1 + #{W <= -t}) / max(1, #{W >= t}) <= fdr, or infinity.

    >>> knockoff_threshold(np.array([5.0, 4.0, 3.0, 2.0, 1.0, -0.5]), 0.3)
    1.0
    """
    for t in np.unique(np.abs(statistics[statistics != 0])):
        above, below = (statistics >= t).sum(), (statistics <= -t).sum()
        if (1 + below) / max(1, above) <= fdr:
            return float(t)
    return float("inf")


def correlations(Z: Array) -> Array:
    """Return the correlations of standardised columns. Constant columns have correlation 0."""
    found = Z.T @ Z / len(Z)
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def gaussian_knockoffs(Z: Array, strengths: Array, rng: np.random.Generator) -> Array:
    """Draw knockoffs of standardised columns Z, which are assumed to be jointly normal.

    C is the correlation matrix and S the diagonal matrix of strengths. Given Z, knockoffs have the
    mean Z - Z C^-1 S and the covariance 2 S - S C^-1 S (Candes et al. 2018, eq. 3.13).
    """
    C = correlations(Z)
    through = np.linalg.solve(C, np.diag(strengths))
    spread = 2 * np.diag(strengths) - np.diag(strengths) @ through
    values, vectors = np.linalg.eigh((spread + spread.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(Z - Z @ through + rng.normal(size=Z.shape) @ root.T)


def mvr_strengths(C: Array) -> Array:
    """Return the strengths s_j that minimise sum_j 1/s_j + tr((2 C - S)^-1), where S = diag(s).

    This is the coordinate descent of Spector and Janson (2022). A change of s_j is a rank-one
    update of the inverse of 2 C - S. The best change is (1 - s_j sqrt(c_d)) / (c_n + sqrt(c_d)),
    where c_n and c_d are the diagonal entries of the inverse and of its square.

    >>> mvr_strengths(np.eye(3))
    array([1., 1., 1.])
    """

    def step(strength: float, inverse_row: Array, j: int) -> float:
        c_n, root = inverse_row[j], float(np.linalg.norm(inverse_row))
        return float((1 - root * strength) / (c_n + root))

    return _descent(C, [(step, 1e-6)])


def sdp_strengths(C: Array) -> Array:
    """Return the strengths s in [0, 1] of greatest sum for which 2 C - S is positive definite.

    This is a coordinate descent with a decreasing barrier mu log det(2 C - S). The best change of
    s_j is 1/c_n - mu, where c_n is the diagonal entry of the inverse of 2 C - S.

    >>> sdp_strengths(np.eye(3)).round(4)
    array([1., 1., 1.])
    """

    def with_barrier(mu: float) -> Any:
        def step(strength: float, inverse_row: Array, j: int) -> float:
            return float(np.clip(strength + 1 / inverse_row[j] - mu, 0.0, 1.0)) - strength

        return step

    # the sum of the strengths is accurate to 0.1 %, which is enough for knockoffs
    return _descent(C, [(with_barrier(mu), 0.05 * mu) for mu in 0.1 * 0.25 ** np.arange(10)])


STRENGTHS = {"mvr": mvr_strengths, "sdp": sdp_strengths}


def _descent(C: Array, stages: list[tuple[Any, float]]) -> Array:
    """Optimise the strengths by coordinate descent.

    A stage is a pair: a function that returns the best change of a strength, and a tolerance. The
    stage ends when all changes are below the tolerance.
    """
    least = float(np.linalg.eigvalsh(C)[0])
    if least < 1e-10:
        raise InvalidTable(
            "Knockoffs needs linearly independent columns, but some depend on others. Drop "
            "duplicates and sums of other columns, and categories, whose indicators add up to 1."
        )
    strengths = np.full(len(C), min(least, 1.0))
    inverse = np.linalg.inv(2 * C - np.diag(strengths))
    for step, least_move in stages:
        for sweep in range(SWEEPS):
            moved = 0.0
            for j in range(len(C)):
                row = inverse[j].copy()
                x = step(strengths[j], row, j)
                strengths[j] += x
                inverse += x / (1 - x * row[j]) * np.outer(row, row)
                moved = max(moved, abs(x))
            if sweep % 10 == 9:  # limits the rounding error of rank-one updates
                inverse = np.linalg.inv(2 * C - np.diag(strengths))
            if moved < least_move:
                break
    return strengths
