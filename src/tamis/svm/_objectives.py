"""Smooth functions of lambda that stand in for the validation error, with their derivatives."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from tamis.svm._smo import smo
from tamis.svm.kernels import Array
from tamis.svm.path import SVCPath


class Objective(ABC):
    """A function of lambda with its derivative."""

    @abstractmethod
    def value(self, lam: float) -> tuple[float, float]:
        """The function and its derivative at lambda."""

    def in_log_lambda(self, t: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """Value and derivative by log lambda, in the form of scipy's minimisers."""
        lam = float(np.exp(t[0]))
        value, slope = self.value(lam)
        return value, np.array([slope * lam])


class SmoothError(Objective):
    """Mean over folds of ``1 - mean 1 / (1 + exp(-rho y h))`` with ``rho = 10 / std(h)``.

    With sigma = std(h), ``d rho / d h_i = -10 (h_i - mean) / (V sigma^3)``: the cube is of the
    standard deviation (J.-B. Yang's thesis, appendix C, prints the cube of rho).
    """

    def __init__(self, folds: Sequence[Any]) -> None:
        self.folds = [
            (f.path._paths[0], f.path._pair_rows(0, f.X), np.where(f.target == 1, 1.0, -1.0))
            for f in folds
        ]

    def value(self, lam: float) -> tuple[float, float]:
        both = [self._fold(lam, *fold) for fold in self.folds]
        return float(np.mean([v for v, _ in both])), float(np.mean([s for _, s in both]))

    def _fold(self, lam: float, path: Any, rows: Array, y: Array) -> tuple[float, float]:
        low, high = path.walk.stretches[-1].lam[-1], path.walk.stretches[0].lam[0]
        lam = float(np.clip(lam, low, high))
        (w, b), (dw, db) = path.weights(lam), path.slopes(lam)
        h, dh = rows @ w + b, rows @ dw + db
        centred = h - h.mean()
        sigma = float(np.sqrt((centred**2).mean()))
        if sigma == 0:  # every point on one value: the error is flat
            return float((y * h < 0).mean()), 0.0
        rho = 10.0 / sigma
        drho = -10.0 / sigma**3 * float((centred * dh).mean())
        s = expit(rho * y * h)
        return float(1 - s.mean()), float(-(s * (1 - s) * y * (drho * h + rho * dh)).mean())


class RadiusMargin(Objective):
    """``(R^2 + 1 / C) (||w||^2 + 2 C sum xi)``, the bound of Chung et al. (2003) for hinge loss."""

    def __init__(self, path: SVCPath) -> None:
        self.path = path
        self.K = path._grams[0].K
        self.sign = path._paths[0].sign
        self.bounds = path._paths[0].share * path._paths[0].walk.upper[path._paths[0].group]
        self.radius2 = enclosing_radius(self.K) ** 2

    def value(self, lam: float) -> tuple[float, float]:
        w, b = self.path._paths[0].weights(lam)
        h = self.K @ w + b
        # the optimum is ||w||^2 / 2 + C slack, and its derivative by C is the slack
        slack = float(self.bounds @ np.maximum(1 - self.sign * h / lam, 0.0))
        norm2 = float(w @ (h - b)) / lam**2
        twice = norm2 + 2 * slack / lam
        factor = self.radius2 + lam
        slope_C = -twice * lam**2 + factor * 2 * slack
        return factor * twice, -slope_C / lam**2


class Span(Objective):
    """Span estimate of the leave-one-out error, ``mean Psi(alpha S^2 - y f)``.

    S^2 is the squared distance of a support vector from the span of the others on the margin
    (Chapelle et al. 2002). The step Psi is smoothed by a sigmoid of slope 5; the derivative by
    lambda is a central difference.
    """

    def __init__(self, path: SVCPath) -> None:
        self.path = path
        self.K = path._grams[0].K
        self.sign = path._paths[0].sign
        self.bounds = path._paths[0].share * path._paths[0].walk.upper[path._paths[0].group]
        self.ridge = 1e-10 * max(float(np.diagonal(self.K).max()), 1e-300)

    def value(self, lam: float) -> tuple[float, float]:
        low, high = self.path.lambda_range
        below, above = max(lam * (1 - 1e-4), low), min(lam * (1 + 1e-4), high)
        return self._at(lam), (self._at(above) - self._at(below)) / (above - below)

    def _at(self, lam: float) -> float:
        w, b = self.path._paths[0].weights(lam)
        x = np.abs(w)
        f = (self.K @ w + b) / lam
        return float(expit(5 * (x / lam * self._span2(x) - self.sign * f)).mean())

    def _span2(self, x: Array) -> Array:
        free = np.flatnonzero((x > 1e-9 * self.bounds) & (x < (1 - 1e-9) * self.bounds))
        bound = np.flatnonzero(x >= (1 - 1e-9) * self.bounds)
        span2 = np.zeros(len(x))
        own = np.diagonal(self.K)
        if len(free) < 2:
            span2[x > 0] = own[x > 0]
            return span2
        A = np.ones((len(free) + 1, len(free) + 1))
        A[:-1, :-1] = self.K[np.ix_(free, free)]
        A[np.arange(len(free)), np.arange(len(free))] += self.ridge
        A[-1, -1] = 0.0
        inverse = np.linalg.inv(A)
        span2[free] = np.maximum(1.0 / np.diagonal(inverse)[:-1], 0.0)
        rows = np.column_stack([self.K[np.ix_(bound, free)], np.ones(len(bound))])
        projected = np.einsum("ij,jk,ik->i", rows, inverse, rows)
        span2[bound] = np.maximum(own[bound] - projected, 0.0)
        return span2


def enclosing_radius(K: Array) -> float:
    """Radius of the smallest sphere around the points: max b'diag(K) - b'Kb over the simplex."""
    n = len(K)
    one = np.ones(n)
    own = np.ascontiguousarray(np.diagonal(K))
    x = np.zeros(n)
    x[int(own.argmax())] = 1.0
    tolerance = 1e-9 * max(float(own.max()), 1e-300)
    smo(K, np.arange(n), one, one, own / 2, x, tolerance, 200 * n)
    return float(np.sqrt(max(float(x @ own - x @ K @ x), 0.0)))
