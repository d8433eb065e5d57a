"""Keep what beats a copy that is like it in all but the target."""

import warnings
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, standardised
from tamis._checks import Constraints, number, one_of
from tamis._seeds import seed_of, stream
from tamis.contract import Selection
from tamis.exceptions import DegenerateData, InvalidTable
from tamis.meta.repeats import InRounds, Verdict
from tamis.meta.search_repeats import Rounds

#: Sweeps over the columns after which the strengths of knockoffs no longer move: each sweep is a
#: step of a convex problem, and the change of all is looked at besides.
SWEEPS = 200


class Knockoffs(Rounds, InRounds):
    """Keep the columns that beat their knockoff, at a false discovery rate (model-X knockoffs).

    To every column belongs a knockoff with the same correlations to all other columns, made
    without a look at the target. The search sees both; W_j is how far the column stands ahead of
    its own knockoff, and those with W_j above the smallest t with
    (1 + #{W <= -t}) / #{W >= t} <= q are kept (knockoff+).

    A column that only repeats a relevant one does not beat its knockoff by that: the rate speaks
    of columns that say nothing *beside the others*. That rests on columns of a joint normal
    distribution whose covariance is known: it is estimated from the rows, of which there must be
    3 for each column at least (below 10 there is a warning). At least 1 / q columns must be found
    for any to be kept.

    Parameters
    ----------
    search : Search or any other selection
    fdr : float, default=0.2
        q, the expected share of kept columns that say nothing beside the others.
    strengths : {"mvr", "sdp"}, default="mvr"
        How unlike its column each knockoff is: least variance of what could be rebuilt, or least
        correlation.
    random_state : int, generator or None, default=None
    n_jobs : int or None, default=None
        Of no use: there is one round.

    Attributes
    ----------
    statistics_ : array of float
        W of each column.
    strengths_ : array of float

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

    def __init__(
        self,
        search: Selection,
        *,
        fdr: float = 0.2,
        strengths: str = "mvr",
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.search = search
        self.fdr = fdr
        self.strengths = strengths
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _n_rounds(self) -> int:
        return 1

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """Beside the search, the strengths: an inverse, and copies of it."""
        held = super()._cost_of_round(n_samples, n_features)
        return held and held + 56.0 * n_features**2

    def _check_memory(self, X: Array, y: NDArray[Any] | None) -> None:
        n, d = X.shape
        if n < 3 * d:
            raise InvalidTable(
                f"Knockoffs needs 3 rows for each column to know how they belong together, but "
                f"there are {n} rows of {d} columns. Drop columns first, with "
                f"Then(Ranking(Correlation(), n_features_to_select={max(1, n // 10)}), "
                "Knockoffs(...)) on other rows, or use Probes(...), which needs none."
            )
        if n < 10 * d:
            warnings.warn(
                f"Knockoffs: {n} rows of {d} columns are fewer than 10 rows for each column; the "
                "false discovery rate may be higher than asked for.",
                DegenerateData,
                stacklevel=7,
            )
        super()._check_memory(X, y)

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """W of each column and the strengths."""
        rng = stream(seed, "knockoffs")
        Z = standardised(X)
        strengths = STRENGTHS[self.strengths](correlations(Z))
        others = gaussian_knockoffs(Z, strengths, rng)
        others[:, ~Z.any(axis=0)] = 0.0  # a constant column loses to nothing that varies
        both = np.concatenate(self._beside(Z, others, y, seed_of(seed, "search"), rng))
        # walks never came to some: they stand behind all others, and equal each other
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
                f"too few columns beat their knockoff for a false discovery rate of {self.fdr:g}.",
            )
        return Verdict(
            n_kept,
            f"{self._counted(n_kept)} beat their knockoff by {cut:.3g} or more; a share of "
            f"{self.fdr:g} of them is expected to say nothing beside the others, if the columns "
            "are normal.",
        )


def knockoff_threshold(statistics: Array, fdr: float) -> float:
    """The smallest t with (1 + #{W <= -t}) / max(1, #{W >= t}) <= q, infinite where there is none.

    >>> knockoff_threshold(np.array([5.0, 4.0, 3.0, 2.0, 1.0, -0.5]), 0.3)
    1.0
    """
    for t in np.unique(np.abs(statistics[statistics != 0])):
        above, below = (statistics >= t).sum(), (statistics <= -t).sum()
        if (1 + below) / max(1, above) <= fdr:
            return float(t)
    return float("inf")


def correlations(Z: Array) -> Array:
    """Of standardised columns; a constant column is correlated with nothing."""
    found = Z.T @ Z / len(Z)
    np.fill_diagonal(found, 1.0)
    return np.asarray(found)


def gaussian_knockoffs(Z: Array, strengths: Array, rng: np.random.Generator) -> Array:
    """Knockoffs of standardised normal rows: mean Z - Z C^-1 S, covariance 2 S - S C^-1 S.

    Candes et al. (2018), eq. (3.13).
    """
    C = correlations(Z)
    through = np.linalg.solve(C, np.diag(strengths))
    spread = 2 * np.diag(strengths) - np.diag(strengths) @ through
    values, vectors = np.linalg.eigh((spread + spread.T) / 2)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(Z - Z @ through + rng.normal(size=Z.shape) @ root.T)


def mvr_strengths(C: Array) -> Array:
    """Strengths of least sum of 1/s_j + tr((2 C - S)^-1), column by column.

    Spector and Janson (2022): as s_j moves by x, the inverse moves by one rank, and the best x is
    (1 - s_j sqrt(c_d)) / (c_n + sqrt(c_d)), with c_n and c_d the entries of the inverse and of its
    square.

    >>> mvr_strengths(np.eye(3))
    array([1., 1., 1.])
    """

    def step(strength: float, inverse_row: Array, j: int) -> float:
        c_n, root = inverse_row[j], float(np.linalg.norm(inverse_row))
        return float((1 - root * strength) / (c_n + root))

    return _descent(C, [(step, 1e-6)])


def sdp_strengths(C: Array) -> Array:
    """Strengths of greatest sum with 0 <= s <= 1 and 2 C - S positive definite.

    A barrier mu log det(2 C - S), lowered step by step: the best move of s_j is 1/c_n - mu.

    >>> sdp_strengths(np.eye(3)).round(4)
    array([1., 1., 1.])
    """

    def with_barrier(mu: float) -> Any:
        def step(strength: float, inverse_row: Array, j: int) -> float:
            return float(np.clip(strength + 1 / inverse_row[j] - mu, 0.0, 1.0)) - strength

        return step

    # a sum of strengths to within a thousandth: it decides how unlike knockoffs are, no more
    return _descent(C, [(with_barrier(mu), 0.05 * mu) for mu in 0.1 * 0.25 ** np.arange(10)])


STRENGTHS = {"mvr": mvr_strengths, "sdp": sdp_strengths}


def _descent(C: Array, stages: list[tuple[Any, float]]) -> Array:
    """Strengths moved one by one, by a rule for each stage, until none moves more than it says."""
    least = float(np.linalg.eigvalsh(C)[0])
    if least < 1e-10:
        raise InvalidTable(
            "Knockoffs needs columns that do not follow from each other, but some do: a knockoff "
            "could only equal its column. Drop copies and sums of other columns, and categories, "
            "whose indicators add up to 1."
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
            if sweep % 10 == 9:  # rank by rank rounding grows
                inverse = np.linalg.inv(2 * C - np.diag(strengths))
            if moved < least_move:
                break
    return strengths
