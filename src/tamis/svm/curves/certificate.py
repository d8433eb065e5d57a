"""Certificates: proofs about a validation curve and its optimum.

A predicted label is certain if the absolute value of its output exceeds the bound on the error of
the output (:mod:`tamis.svm.curves.bounds`). The validation function is bounded by computing it
twice: with all uncertain labels treated as correct, and with all of them treated as wrong. The best
C is certain if its worst possible value is at least as good as the best possible value of any other
C.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array
from tamis.svm.curves.curve import IntervalOfC, ValidationCurve, pandas_frame
from tamis.svm.path.follow import ACCEPTED, OptimalityCheck, SolutionPath

UNSOUND = "a path"  # first words of the reasons for which the bounds may be wrong
SAME_VALUE = 1e-9  # relative difference up to which two values are printed as equal


class PathAudit(NamedTuple):
    """The facts about a path that a certificate needs. The path itself is not stored."""

    reached: float  # the smallest lambda that the path reached
    violation: float  # largest violation of the optimality conditions, relative to lambda
    checks: list[OptimalityCheck]
    undecided: float = 0.0  # largest C at which only rounding determines the intercept

    @classmethod
    def of(cls, path: SolutionPath) -> "PathAudit":
        """Collect the facts about a path."""
        loose = [1 / part.lam[1:][part.proof.loose > 0] for part in path.segments]
        undecided = float(np.concatenate(loose).max(initial=0.0)) / path.lam_unit
        return cls(path.reached, path.violation, path.checks, undecided)


@dataclass(frozen=True, repr=False)
class Certificate:
    """Proof that a value of C is the best one. It prints as a sentence.

    A proof is about one problem, which :attr:`problem` states: the kernel and its gamma, the
    weights of samples and classes, the folds, and the score. A gamma of ``"scale"`` or ``"auto"``
    and balanced class weights are computed on each training fold. ``GridSearchCV`` with the same
    arguments has the same problem, but only tries the values of C on its grid.

    The problem includes two rules. First, an output of 0 is a vote for the second class. Second, if
    the intercept is not unique, the middle of the allowed interval is used. LIBSVM has the same
    rules, but rounding may move its intercept to an end of the interval. With balanced class
    weights, the upper bounds of the multipliers have the same sum in both classes. If C is small,
    rounding then determines whether the intercept is unique. In this case, every allowed intercept
    is treated as possible, and the certificate may not be closed.

    Attributes
    ----------
    value : float
        The best value of the validation function.
    C : float
        The certified C.
    lower, upper : float
        ``lower`` is the best value that the true validation function can have at any C. ``upper``
        is the worst value that it can have at ``C``. The names assume an error. For a score,
        greater values are better, so ``lower`` may be greater than ``upper``.
    closed : bool
        Whether it is proved that no C is better than ``C``. This is the case if ``upper`` is not
        worse than ``lower``.
    violation : float
        Largest violation of the optimality conditions on the paths, relative to lambda, including
        the effect of rounding of the kernel.
    gap : float
        Largest duality gap at the checkpoints of the paths, relative to lambda.
    reason : str
        Why the certificate is not closed. It is empty if the certificate is closed.
    optimistic, pessimistic : ValidationCurve
        Best and worst possible value of the true validation function at every C in the range.
    checkpoints : array of shape (n_checkpoints, 3)
        Lambda, violation and duality gap at each checkpoint of the paths.
    interval : IntervalOfC or None
        Interval around ``C`` on which the value is the same.
    measure : str
        Name of the error or score, such as "error".
    n_gammas : int
        Number of gammas that were compared.
    problem : str
        The problem that the proof is about: kernel, weights, folds and score.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.svm import SVCPathCV
    >>> X, y = load_iris(return_X_y=True)
    >>> certificate = SVCPathCV("linear", cv=3).fit(X[50:], y[50:]).certificate_
    >>> certificate.closed, certificate.problem
    (True, "kernel='linear'; no sample weights; 3 folds; error averaged over the folds")
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
    checkpoints: Array
    interval: IntervalOfC | None = None
    measure: str = "value"
    n_gammas: int = 1
    problem: str = ""

    def __repr__(self) -> str:
        return f"{self.found}; {self.verdict}"

    @property
    def sound(self) -> bool:
        """Whether the paths are accurate enough for ``lower`` and ``upper`` to hold."""
        return not self.reason.startswith(UNSOUND)

    @property
    def found(self) -> str:
        """The best value and its C, as text."""
        if self.interval is None or self.interval.low == self.interval.high:
            return f"{self.measure} {self.value:.4g} at C = {self.C:.4g}"
        low, high = self.interval.rounded_ends
        return f"{self.measure} {self.value:.4g} for every C in [{low:.9g}, {high:.9g}]"

    @property
    def verdict(self) -> str:
        """Whether a better C can exist, as text."""
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
        """Return a pandas DataFrame with a row for each checkpoint of the paths."""
        return pandas_frame(
            "Certificate",
            dict(zip(("lambda", "violation", "gap"), self.checkpoints.T, strict=True)),
        )


class FoldTrials(NamedTuple):
    """Scores of several values of C, in every fold and on average. Greater is better."""

    C: Array  # (n_trials,)
    scores: Array  # (n_trials, n_folds)
    means: Array  # (n_trials,)


class TriedGamma(NamedTuple):
    """The validation curve, the best C and the certificate for a single gamma."""

    gamma: Any
    curve: ValidationCurve
    interval: IntervalOfC
    C: float  # the selected C, inside the interval
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
    """Return the certificate for ``C``.

    The certificate is closed if the worst possible value at ``C`` is at least as good as the best
    possible value at any other C, up to ``tolerance``.
    """
    lower, upper = optimistic.best, float(pessimistic(C))
    gap = lower - upper if curve.greater_is_better else upper - lower
    reason = find_fault(paths, smallest)
    if not reason and not gap <= tolerance:
        reason = (
            f"a value of {lower:.6g} cannot be excluded at another C, "
            f"compared with {upper:.6g} at C = {C:.6g}"
        )
        if curve.continuous:
            reason = f"the least error is known only to lie in [{lower:.8g}, {upper:.8g}]"
        elif (undecided := max((path.undecided for path in paths), default=0.0)) > 0:
            reason += (
                f"; up to C = {undecided:.3g} both classes have the same weight, and rounding "
                "decides the intercept: start C_range above it"
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
    """Return the best gamma's certificate, which is not closed if another gamma may be better."""
    best = replace(best, n_gammas=1 + len(rivals))
    for other in rivals:
        better = other.lower > best.upper + 1e-12 if greater else other.lower < best.upper - 1e-12
        reason = f"a value of {other.lower:.6g} cannot be excluded" if better else ""
        reason = reason if other.sound else other.reason
        if reason and best.closed:
            return replace(best, closed=False, reason=f"{reason} with another gamma")
    return best


def find_fault(paths: Sequence[PathAudit], smallest: float) -> str:
    """Return the reason why the paths cannot be certified, or an empty string if they can."""
    if any(path.reached > smallest * (1 + 1e-9) for path in paths):
        return f"{UNSOUND} ended before the end of the range"
    worst = max((path.violation for path in paths), default=0.0)
    if worst > ACCEPTED:
        return f"{UNSOUND} violates the optimality conditions by {worst:.1e}"
    return ""
