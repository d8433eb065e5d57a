"""What can be proved about a validation curve and its optimum.

A label is certain where its output exceeds what the path and rounding can have done to it
(:mod:`tamis.svm.curves.bounds`). Counting the uncertain labels once as right and once as wrong
brackets the validation function: the best C is certain if it is worth, at worst, what no other can
exceed at best.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array
from tamis.svm.curves.curve import IntervalOfC, ValidationCurve, pandas_frame
from tamis.svm.path.follow import ACCEPTED, OptimalityCheck, SolutionPath

UNSOUND = "a path"  # how a reason begins that leaves nothing certain
SAME_VALUE = 1e-9  # relative difference of two values that are one and the same in words


class PathAudit(NamedTuple):
    """What a certificate has to know of a path; the path itself may be large."""

    reached: float
    violation: float
    checks: list[OptimalityCheck]
    undecided: float = 0.0  # the largest C at which rounding alone decides the intercept

    @classmethod
    def of(cls, path: SolutionPath) -> "PathAudit":
        """What a path says of itself."""
        loose = [1 / part.lam[1:][part.proof.loose > 0] for part in path.segments]
        undecided = float(np.concatenate(loose).max(initial=0.0)) / path.lam_unit
        return cls(path.reached, path.violation, path.checks, undecided)


@dataclass(frozen=True, repr=False)
class Certificate:
    """The proof that goes with a best C; printed, it is a sentence.

    A proof is about one problem, which :attr:`problem` states: the kernel with its gamma (computed
    on each training part if it is ``"scale"`` or ``"auto"``), the weights of samples and classes
    (balanced ones are computed on each training part), the folds, and the score with its weights.
    It is the problem of ``GridSearchCV`` with the same arguments, solved exactly.

    Two rules belong to it. An output of 0 counts as the second class. If the intercept is not
    unique, it is the middle of what is allowed. LIBSVM has the same rules, but rounding may move it
    to an end of what is allowed. If the bounds of two classes have equal sums up to rounding, as
    with balanced weights and a small C, the rule itself depends on rounding. Then every allowed
    intercept counts as possible, and the certificate may stay open.

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
    interval : IntervalOfC or None
        Where the value is that at ``C``.
    measure : str
        What the value is called.
    n_gammas : int
        How many gammas were compared.
    problem : str
        The problem that the proof is about: kernel, weights, folds and score.
    """

    value: float
    C: float
    lower: float
    upper: float
    closed: bool
    violation: float
    gap: float
    reason: str
    optimistic: ValidationCurve
    pessimistic: ValidationCurve
    checkpoints: Array  # lambda, violation, gap
    interval: IntervalOfC | None = None
    measure: str = "value"
    n_gammas: int = 1
    problem: str = ""

    def __repr__(self) -> str:
        return f"{self.found}; {self.verdict}"

    @property
    def sound(self) -> bool:
        """Whether the paths can be vouched for, so that ``lower`` and ``upper`` hold."""
        return not self.reason.startswith(UNSOUND)

    @property
    def found(self) -> str:
        """The best value and where it is, in words."""
        if self.interval is None or self.interval.low == self.interval.high:
            return f"{self.measure} {self.value:.4g} at C = {self.C:.4g}"
        low, high = self.interval.rounded_ends
        return f"{self.measure} {self.value:.4g} for every C in [{low:.9g}, {high:.9g}]"

    @property
    def verdict(self) -> str:
        """Whether a better one can be, in words."""
        low, high = self.optimistic.breakpoints[[0, -1]]
        where = f"no C in [{low:.4g}, {high:.4g}]"
        if self.n_gammas > 1:
            where += f" with any of the {self.n_gammas} gammas"
        if not self.closed:
            return f"not proved that {where} is better: {self.reason}"
        if abs(self.lower - self.value) > SAME_VALUE * abs(self.value):
            return f"{where} can be better than {self.lower:.6g}: proved"
        return f"{where} is better: proved"

    def to_frame(self) -> Any:
        """The checkpoints of all paths as a pandas DataFrame."""
        return pandas_frame(
            "Certificate",
            dict(zip(("lambda", "violation", "gap"), self.checkpoints.T, strict=True)),
        )


class FoldTrials(NamedTuple):
    """What some values of C are worth, greater is better, in every fold and altogether."""

    C: Array  # (n_trials,)
    scores: Array  # (n_trials, n_folds)
    means: Array  # (n_trials,)


class TriedGamma(NamedTuple):
    """What one member of a grid of gammas is worth."""

    gamma: Any
    curve: ValidationCurve
    interval: IntervalOfC
    C: float  # of the interval
    certificate: Certificate
    trials: FoldTrials


def certify(
    curve: ValidationCurve,
    C: float,
    optimistic: ValidationCurve,
    pessimistic: ValidationCurve,
    paths: Sequence[PathAudit],
    smallest: float,
    measure: str = "value",
    tolerance: float = 1e-12,
) -> Certificate:
    """Put the bracket together and say whether it closes at ``C``, up to a tolerance."""
    lower, upper = optimistic.best, float(pessimistic(C))
    gap = lower - upper if curve.greater_is_better else upper - lower
    reason = find_fault(paths, smallest)
    if not reason and not gap <= tolerance:
        reason = (
            f"a value of {lower:.6g} cannot be excluded elsewhere, "
            f"against {upper:.6g} at C = {C:.6g}"
        )
        if curve.continuous:
            reason = f"the least error is known only to lie in [{lower:.8g}, {upper:.8g}]"
        elif (undecided := max((path.undecided for path in paths), default=0.0)) > 0:
            reason += (
                f"; up to C = {undecided:.3g} both classes weigh the same, and rounding decides "
                "the intercept: begin C_range above it"
            )
    rows = [(c.lam, c.violation, c.gap) for path in paths for c in path.checks]
    checks = np.array(rows).reshape(-1, 3)
    return Certificate(
        value=float(curve(C)),
        C=C,
        lower=lower,
        upper=upper,
        closed=not reason,
        violation=max((path.violation for path in paths), default=0.0),
        gap=float(checks[:, 2].max(initial=0.0)),
        reason=reason,
        optimistic=optimistic,
        pessimistic=pessimistic,
        checkpoints=checks,
        interval=next((i for i in curve.argmin if i.low <= C <= i.high), None),
        measure=measure,
    )


def against(best: Certificate, rivals: list[Certificate], greater: bool) -> Certificate:
    """The certificate of the best of several curves: no other may be better for all one knows."""
    best = replace(best, n_gammas=1 + len(rivals))
    for other in rivals:
        better = other.lower > best.upper + 1e-12 if greater else other.lower < best.upper - 1e-12
        reason = f"a value of {other.lower:.6g} cannot be excluded" if better else ""
        reason = reason if other.sound else other.reason
        if reason and best.closed:
            return replace(best, closed=False, reason=f"{reason} with another gamma")
    return best


def find_fault(paths: Sequence[PathAudit], smallest: float) -> str:
    """Say why paths cannot be vouched for; empty if they can."""
    if any(path.reached > smallest * (1 + 1e-9) for path in paths):
        return f"{UNSOUND} ended before the end of the range"
    worst = max((path.violation for path in paths), default=0.0)
    if worst > ACCEPTED:
        return f"{UNSOUND} violates the optimality conditions by {worst:.1e}"
    return ""
