"""What can be proved about a validation curve and its optimum.

A label is certain where its output exceeds what the path and rounding can have done to it
(:mod:`tamis.svm.curves.doubt`). Counting the uncertain labels once as right and once as wrong
brackets the validation function: the best C is certain if it is worth, at worst, what no other can
exceed at best.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array
from tamis.exceptions import MissingExtra
from tamis.svm.curves.curve import IntervalOfC, ValidationCurve
from tamis.svm.path.follow import ACCEPTED, SolutionPath

UNSOUND = "a path"  # how a reason begins that leaves nothing certain


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
        Largest violation of the optimality conditions on the paths, relative to lambda, with what
        the rounding of the kernel makes of it.
    gap : float
        Largest duality gap of the scaled programme at the checkpoints, relative to lambda.
    reason : str
        Why the certificate is not closed; empty if it is.
    optimistic, pessimistic : ValidationCurve
        The bracket over the whole range.
    checkpoints : array of shape (n_checkpoints, 3)
        Lambda, violation and gap at each.
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


class TriedGamma(NamedTuple):
    """What one member of a grid of gammas is worth."""

    gamma: Any
    curve: ValidationCurve
    interval: IntervalOfC
    certificate: Certificate


def certify(
    curve: ValidationCurve,
    C: float,
    optimistic: ValidationCurve,
    pessimistic: ValidationCurve,
    paths: list[SolutionPath],
    smallest: float,
) -> Certificate:
    """Put the bracket together and say whether it closes at ``C``."""
    lower, upper = optimistic.best, float(pessimistic(C))
    better = upper >= lower - 1e-12 if curve.greater_is_better else upper <= lower + 1e-12
    reason = doubts(paths, smallest)
    if not reason and not better:
        reason = (
            f"a value of {lower:.6g} cannot be excluded elsewhere, "
            f"against {upper:.6g} at C = {C:.6g}"
        )
    return gather(curve, C, optimistic, pessimistic, paths, reason)


def against(best: Certificate, rivals: list[Certificate], greater: bool) -> Certificate:
    """The certificate of the best of several curves: no other may be better for all one knows."""
    for other in rivals:
        better = other.lower > best.upper + 1e-12 if greater else other.lower < best.upper - 1e-12
        reason = f"a value of {other.lower:.6g} cannot be excluded" if better else ""
        if other.reason.startswith(UNSOUND):
            reason = other.reason
        if reason and best.closed:
            return replace(best, closed=False, reason=f"{reason} with another gamma")
    return best


def doubts(paths: list[SolutionPath], smallest: float) -> str:
    """Why paths cannot be vouched for, whatever they say; empty if they can."""
    if any(path.reached > smallest * (1 + 1e-9) for path in paths):
        return f"{UNSOUND} ended before the end of the range"
    worst = max((path.violation for path in paths), default=0.0)
    if worst > ACCEPTED:
        return f"{UNSOUND} violates the optimality conditions by {worst:.1e}"
    return ""


def gather(
    curve: ValidationCurve,
    C: float,
    optimistic: ValidationCurve,
    pessimistic: ValidationCurve,
    paths: list[SolutionPath],
    reason: str,
) -> Certificate:
    """A certificate with the checkpoints of all paths."""
    rows = [(c.lam, c.violation, c.gap) for path in paths for c in path.checks]
    checks = np.array(rows).reshape(-1, 3)
    return Certificate(
        value=float(curve(C)),
        C=C,
        lower=optimistic.best,
        upper=float(pessimistic(C)),
        closed=not reason,
        violation=max((path.violation for path in paths), default=0.0),
        gap=float(checks[:, 2].max(initial=0.0)),
        reason=reason,
        optimistic=optimistic,
        pessimistic=pessimistic,
        checkpoints=checks,
    )
