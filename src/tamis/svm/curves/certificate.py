"""What can be proved about a validation curve and its optimum.

The path stands on the right margin set, or it would violate the optimality conditions; what
residuals on it do is known by one Newton step, ``||dw||`` and ``db``. Violations off it leave a
duality gap G of the scaled programme, and ``||w - w*||^2 / 2 <= G``; the intercept is a weighted
median of the samples' lines, so it moves no more than they do. Hence for any point, with ``rho``
its distance in the feature space from the mean of the training points and ``v`` the violation,

    |h - h*| <= ||dw|| rho + |db| + sqrt(2 G) (rho + max_i rho_i) + v,

and a label is certain where |h| exceeds that. Counting the uncertain labels as right or as wrong
brackets the validation function. (Close to an event the margin set is not known for certain, but
there the sum of x, which is monotone in lambda, leaves no room for more.)
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tamis._arrays import Array
from tamis.exceptions import MissingExtra
from tamis.svm.curves.curve import ValidationCurve
from tamis.svm.curves.steps import Blocks
from tamis.svm.path.follow import SolutionPath


@dataclass(frozen=True)
class Certificate:
    """The proof that goes with a best C.

    Attributes
    ----------
    value : float
        The best value of the validation function.
    C : float
        The C that is vouched for.
    lower, upper : float
        What the true validation function can be at best anywhere, and at worst at ``C``; for
        scores, where greater is better, ``lower`` is the greater number.
    closed : bool
        Whether no C can be better than ``C``: ``upper`` is not worse than ``lower``.
    violation : float
        Largest violation of the optimality conditions at the checkpoints, relative to lambda.
    gap : float
        Largest duality gap of the scaled programme at the checkpoints, relative to lambda.
    reason : str
        Why the certificate is not closed; empty if it is.
    optimistic, pessimistic : ValidationCurve
        The bracket over the whole range.
    """

    value: float
    C: float
    lower: float
    upper: float
    closed: bool
    violation: float
    gap: float
    reason: str
    optimistic: ValidationCurve = field(repr=False)
    pessimistic: ValidationCurve = field(repr=False)
    checkpoints: Array = field(repr=False)  # lambda, violation, gap

    def to_frame(self) -> Any:
        """The checkpoints of all paths as a pandas DataFrame."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra(
                "Certificate.to_frame needs pandas, which is not installed: pip install pandas."
            ) from None
        return pd.DataFrame(self.checkpoints, columns=["lambda", "violation", "gap"])


def uncertainty(solution: SolutionPath, kappa: float, norms: Array) -> list[Array]:
    """Bound on the error of h for every segment (rows x points), with the size of the kernel."""
    largest = np.sqrt(kappa)
    bounds = []
    for part in solution.segments:
        gap = _both_sides(part.gap + solution.ridge * float(solution.upper @ solution.upper))
        wrong = _both_sides(part.violation)
        rounding = 1e-15 * kappa * (1.0 + float(part.start.sum()))
        spread = np.sqrt(2 * gap)[:, None] * (norms + largest)
        own = _both_sides(part.error_w)[:, None] * norms
        bounds.append(spread + own + (_both_sides(part.error_b) + wrong + rounding)[:, None])
    return bounds


def _both_sides(error: Array) -> Array:
    """A row speaks for the segments on both its sides."""
    return np.maximum(error, np.append(error[1:], 0.0))


def shifted(blocks: Blocks, bounds: list[Array], sign: Array, way: float) -> Blocks:
    """Outputs moved to the benefit (``way`` = 1) or the detriment (-1) of the true labels."""
    return [(lam, h + way * sign * bound) for (lam, h), bound in zip(blocks, bounds, strict=True)]


def certify(
    curve: ValidationCurve,
    C: float,
    optimistic: ValidationCurve,
    pessimistic: ValidationCurve,
    paths: list[SolutionPath],
    complete: bool,
) -> Certificate:
    """Put the bracket together and say whether it closes at ``C``."""
    lower, upper = optimistic.best, float(pessimistic(C))
    better = upper >= lower - 1e-12 if curve.greater_is_better else upper <= lower + 1e-12
    reason = ""
    if not complete:
        reason = "a path ended before the end of the range"
    elif not better:
        reason = (
            f"a value of {lower:.6g} cannot be excluded elsewhere, "
            f"against {upper:.6g} at C = {C:.6g}"
        )
    return gather(curve, C, optimistic, pessimistic, paths, reason)


def gather(
    curve: ValidationCurve,
    C: float,
    optimistic: ValidationCurve,
    pessimistic: ValidationCurve,
    paths: list[SolutionPath],
    reason: str,
) -> Certificate:
    """A certificate with the checkpoints of all paths."""
    checks = np.array([(c.lam, c.violation, c.gap) for path in paths for c in path.checks]).reshape(
        -1, 3
    )
    return Certificate(
        value=float(curve(C)),
        C=C,
        lower=optimistic.best,
        upper=float(pessimistic(C)),
        closed=not reason,
        violation=float(checks[:, 1].max(initial=0.0)),
        gap=float(checks[:, 2].max(initial=0.0)),
        reason=reason,
        optimistic=optimistic,
        pessimistic=pessimistic,
        checkpoints=checks,
    )
