"""Smooth approximations of the validation error as functions of lambda, with derivatives."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from tamis._arrays import Array
from tamis.svm.geometry import margin_system, sphere_around, squared_spans
from tamis.svm.inputs import FARTHEST_OUTPUT, within
from tamis.svm.path.problems import BinaryPath, PairwisePaths, PathFold


class SmoothObjective(ABC):
    """A smooth function of lambda, with its derivative."""

    @abstractmethod
    def value(self, lam: float) -> tuple[float, float]:
        """Return the value and the derivative at lambda."""

    def in_log_lambda(self, t: Array) -> tuple[float, Array]:
        """Return the value and the derivative with respect to log lambda, as scipy expects."""
        lam = float(np.exp(t[0]))
        with np.errstate(over="ignore", invalid="ignore"):
            value, slope = self.value(lam)
            found = within(np.array([value, slope * lam]), FARTHEST_OUTPUT)
        return float(found[0]), found[1:]


class SmoothError(SmoothObjective):
    """Mean over folds of ``1 - mean 1 / (1 + exp(-rho y h))`` with ``rho = 10 / std(h)``.

    y is the class and h the decision value of a row. With sigma = std(h) and V rows,
    ``d rho / d h_i = -10 (h_i - mean) / (V sigma^3)``. J.-B. Yang's thesis, appendix C, has the
    cube of rho instead of the cube of sigma.
    """

    def __init__(self, folds: Sequence[PathFold]) -> None:
        self.folds = [
            (f.machines.paths[0], f.machines.grams[0].rows(f.X), np.where(f.target == 1, 1.0, -1.0))
            for f in folds
        ]

    def value(self, lam: float) -> tuple[float, float]:
        both = [self._fold(lam, *fold) for fold in self.folds]
        return float(np.mean([v for v, _ in both])), float(np.mean([s for _, s in both]))

    def _fold(self, lam: float, path: BinaryPath, rows: Array, y: Array) -> tuple[float, float]:
        segments = path.solution.segments
        low, high = segments[-1].lam[-1], segments[0].lam[0]
        lam = float(np.clip(lam, low * path.solution.lam_unit, high * path.solution.lam_unit))
        (w, b), (dw, db) = path.weights(lam), path.slopes(lam)
        h, dh = rows @ w + b, rows @ dw + db
        size = float(np.abs(h).max())
        if size > 0:  # the error does not depend on the scale, and the cube must not overflow
            h, dh = h / size, dh / size
        centred = h - h.mean()
        sigma = float(np.sqrt((centred**2).mean()))
        if sigma == 0:  # if h is constant, so is the error
            return float((y * h < 0).mean()), 0.0
        rho = 10.0 / sigma
        drho = -10.0 / sigma**3 * float((centred * dh).mean())
        s = expit(rho * y * h)
        return float(1 - s.mean()), float(-(s * (1 - s) * y * (drho * h + rho * dh)).mean())


class RadiusMarginObjective(SmoothObjective):
    """``(R^2 + 1 / C) (||w||^2 + 2 C sum xi)``, the bound of Chung et al. (2003) for hinge loss."""

    def __init__(self, machines: PairwisePaths) -> None:
        self.path, self.K = machines.paths[0], machines.grams[0].matrix
        self.radius2 = sphere_around(self.K).radius2

    def value(self, lam: float) -> tuple[float, float]:
        w, b = self.path.weights(lam)
        h = self.K @ w + b
        # the optimal value is ||w||^2 / 2 + C slack, and its derivative in C is the slack
        slack = float(self.path.bounds @ np.maximum(1 - self.path.sign * h / lam, 0.0))
        norm2 = float(w @ (h - b)) / lam / lam  # the square of lambda may overflow
        twice = norm2 + 2 * slack / lam
        factor = self.radius2 + lam
        return factor * twice, twice - 2 * factor * (slack / lam) / lam


class SpanObjective(SmoothObjective):
    """Span estimate of the leave-one-out error, ``mean Psi(alpha S^2 - y f)``.

    S^2 is the squared distance between a support vector and the span of the other ones on the
    margin (Chapelle et al. 2002). The step Psi is smoothed by a sigmoid of slope 5. The derivative
    with respect to lambda is a central difference.
    """

    def __init__(self, machines: PairwisePaths, lambda_range: tuple[float, float]) -> None:
        self.path, self.K = machines.paths[0], machines.grams[0].matrix
        self.lambda_range = lambda_range

    def value(self, lam: float) -> tuple[float, float]:
        low, high = self.lambda_range
        below, above = max(lam * (1 - 1e-4), low), min(lam * (1 + 1e-4), high)
        return self._at(lam), (self._at(above) - self._at(below)) / (above - below)

    def _at(self, lam: float) -> float:
        return float(expit(5 * self.falls(lam)).mean())

    def falls(self, lam: float) -> Array:
        """Return ``alpha S^2 - y f`` for each row, which is positive for leave-one-out errors."""
        w, b = self.path.weights(lam)
        x, bounds = np.abs(w), self.path.bounds
        free = (x > 1e-9 * bounds) & (x < (1 - 1e-9) * bounds)
        spans = squared_spans(self.K, margin_system(self.K, free))
        return (x * spans - self.path.sign * (self.K @ w + b)) / lam
