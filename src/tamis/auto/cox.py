"""Proportional hazards with a ridge penalty, for censored targets."""

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from tamis._arrays import Array, best, scaled_columns
from tamis._checks import NONE, Constraints, check_parameters, integer, number, several
from tamis.auto.concordance import concordance
from tamis.blocks.inputs import check_data
from tamis.blocks.survival import censored_columns
from tamis.exceptions import InvalidTarget, NotConverged

#: Default penalties per column. The reciprocal of each is the prior variance of the linear
#: predictor, which does not depend on the number of columns.
PENALTIES = np.logspace(3, -1, 9)
#: Newton steps, conjugate gradient steps in each of them, and halvings of a step.
STEPS, INNER_STEPS, HALVINGS = 50, 200, 40
#: Residual at which conjugate gradients stop, relative to that of the first step.
INNER_TOLERANCE = 1e-3
#: A step that promises to gain less log-likelihood than this is the last one.
TOLERANCE = 1e-12
#: Least sum of risks at an event, in units of the greatest risk.
LEAST = 1e-290
#: Directions with a smaller share of the greatest sum of squares count as null.
NULL = 1e-10


class RidgeCoxCV(BaseEstimator):
    r"""Proportional hazards model with a ridge penalty chosen by cross-validation.

    The coefficients maximise the log partial likelihood with Breslow's treatment of ties, minus
    the penalty on the standardised columns:

    .. math:: \sum_{i: \text{event}} w_i \Big( \eta_i - \log \sum_{j: t_j \geq t_i} w_j e^{\eta_j}
              \Big) - \frac{\alpha}{2} \lVert b \rVert^2, \quad \eta = Z b

    The penalty maximises the cross-validated log partial likelihood: the likelihood of all rows
    minus that of the training rows, by the coefficients of the training rows, summed over the
    folds. It is also defined for folds without events. If several penalties are equally good, the
    greatest one is taken. The folds are balanced in events and times and contain no randomness.

    Columns are standardised inside, by weighted means and deviations. A constant column has the
    coefficient 0. There may be more columns than rows.

    Parameters
    ----------
    alphas : array, optional
        Penalties to try, greater than 0, on the scale of ``CoxPHSurvivalAnalysis`` in
        scikit-survival. By default, nine from 0.1 to 1000 times the number of columns that are not
        constant.
    cv : int, default=5
        Number of folds.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Log hazard ratios for one unit of each column, as it was given.
    alpha_ : float
        The chosen penalty.
    alphas_ : array of shape (n_alphas,)
        The penalties tried, from the greatest to the least.
    cv_log_likelihoods_ : array of shape (n_alphas,)
        Cross-validated log partial likelihood of each of them.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
        Names of the columns, if ``X`` has names.

    References
    ----------
    Verweij and van Houwelingen (1993), Cross-validation in survival analysis, Statistics in
    Medicine 12. Verweij and van Houwelingen (1994), Penalized likelihood in Cox regression,
    Statistics in Medicine 13.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3))
    >>> time = rng.exponential(np.exp(-X[:, 1]))
    >>> y = np.column_stack([np.minimum(time, 1), time < 1])
    >>> RidgeCoxCV(alphas=[1.0]).fit(X, y).coef_.round(1)
    array([0.1, 0.9, 0. ])
    >>> round(RidgeCoxCV().fit(X, y).score(X, y), 2)
    0.73
    """

    _constraints: ClassVar[Constraints] = {
        "alphas": several(number(above=0), "numbers above 0") | NONE,
        "cv": integer(2),
    }

    def __init__(self, alphas: ArrayLike | None = None, *, cv: int = 5):
        self.alphas = alphas
        self.cv = cv

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
        y : structured array of event and time, or array of shape (n_samples, 2)
            Two columns are the time, and 1 if the event happened or 0 if the row was censored.
        sample_weight : array of shape (n_samples,), optional
            A weight of 2 counts as two copies of a row.
        """
        check_parameters(self)
        X, y = check_data(self, X, y)
        assert y is not None  # by the tags
        y = censored_columns("RidgeCoxCV", y) if y.dtype.names is None else y
        weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        rows = np.argsort(y["time"], kind="stable")
        rows = rows[weights[rows] > 0]
        X, y, weights = X[rows], y[rows], weights[rows]
        if not y["event"].any():
            raise InvalidTarget(
                "RidgeCoxCV needs a row in which the event happened with a weight above 0."
            )
        Z, self._scale = scaled_columns(X, "K")
        mean = np.average(Z, axis=0, weights=weights)
        deviation = np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=weights))
        deviation[deviation == 0] = 1.0
        Z = (Z - mean) / deviation
        self.alphas_ = max(1, int(Z.any(axis=0).sum())) * PENALTIES
        if self.alphas is not None:
            self.alphas_ = np.sort(np.asarray(self.alphas, dtype=float))[::-1]
        design, back = _rotate(Z)
        found = _cross_validate(design, y, weights, self.alphas_, self.cv)
        self.cv_log_likelihoods_, self.alpha_ = found, float(self.alphas_[best(found)])
        coefs, converged = maximise(design, PartialLikelihood(y, weights[:, None]), self.alpha_)
        if not converged:
            warnings.warn(
                f"The proportional hazards model with the penalty {self.alpha_:g} did not "
                "converge. Use a greater penalty.",
                NotConverged,
                stacklevel=2,
            )
        self._coefs = back(coefs)[:, 0] / deviation
        self._offset = float(mean @ self._coefs)
        with np.errstate(over="ignore"):  # columns of numbers below 1e-300
            self.coef_ = np.ldexp(self._coefs / self._scale.deviation, -self._scale.exponent)
        return self

    def predict(self, X: Any) -> Array:
        """Return the log risk of each row, relative to a row with the mean of each column."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        # BLAS rounds equal rows differently, which would break ties
        return np.einsum("ij,j->i", self._scale(X), self._coefs) - self._offset

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the concordance of the predicted risks."""
        return concordance(self.predict(X), y, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags


def _rotate(Z: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Return orthogonal columns that span those of Z, and their coefficients in terms of Z.

    A rotation leaves the penalty as it is. There are at most as many columns as rows.
    """
    if Z.shape[1] <= Z.shape[0]:
        axes = np.linalg.eigh(Z.T @ Z)[1]
        return Z @ axes, axes.__matmul__
    squares, axes = np.linalg.eigh(Z @ Z.T)
    kept = squares > NULL * max(squares[-1], np.finfo(float).tiny)
    length, axes = np.sqrt(squares[kept]), axes[:, kept]
    return axes * length, lambda coefs: Z.T @ (axes @ (coefs.T / length).T)


def _cross_validate(
    design: Array, y: NDArray[Any], weights: Array, alphas: Array, n_folds: int
) -> Array:
    """Return the cross-validated log-likelihood of each penalty, from the greatest on.

    It is -inf from the first penalty on that is too small for the fits to converge.
    """
    n_rows = len(y)
    n_folds = min(n_folds, n_rows)
    folds = np.empty(n_rows, dtype=np.intp)
    folds[np.argsort(y["event"], kind="stable")] = np.arange(n_rows) % n_folds
    training = np.where(folds[:, None] != np.arange(n_folds), weights[:, None], 0.0)
    of_training, of_all = PartialLikelihood(y, training), PartialLikelihood(y, weights[:, None])
    found = np.full(len(alphas), -np.inf)
    coefs = np.zeros((design.shape[1], n_folds))
    for i, alpha in enumerate(alphas):
        coefs, converged = maximise(design, of_training, alpha, coefs)
        if not converged:
            break
        risks = design @ coefs
        found[i] = (of_all.value(risks) - of_training.value(risks)).sum()
    return found


class PartialLikelihood:
    """Breslow's log partial likelihood of several linear predictors at once.

    Parameters
    ----------
    y : structured array of event and time, sorted by time
    weights : array of shape (n_samples, n_fits) or (n_samples, 1)
        Weights of the rows in each fit. Rows of weight 0 take no part in it.
    """

    def __init__(self, y: NDArray[Any], weights: Array):
        self.weights = weights
        event, time = y["event"], y["time"]
        times, starts = np.unique(time[event], return_index=True)
        self.first = np.searchsorted(time, times)  # rows from here on are at risk
        self.n_times = np.searchsorted(times, time, "right")  # event times up to that of a row
        self.events = weights * event[:, None]
        self.deaths = np.add.reduceat(self.events[event], starts, axis=0)

    def value(self, predictors: Array) -> Array:
        """Return the log-likelihood of each fit, -inf if its risks differ too much for floats."""
        _, at_risk, shift = self._at_risk(predictors)
        logs = np.log(at_risk) + shift
        values = (self.events * predictors).sum(axis=0) - (self.deaths * logs).sum(axis=0)
        return np.where((at_risk > LEAST).all(axis=0), values, -np.inf)

    def expand(self, predictors: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
        """Return gradient, part of the curvature's diagonal, and product with the curvature.

        All are derivatives with respect to the linear predictors.
        """
        risks, at_risk, _ = self._at_risk(predictors)
        rates = self.deaths / at_risk
        weighted = risks * self._until_row(rates)

        def curved(moves: Array) -> Array:
            means = _from_row_on(risks * moves)[self.first] / at_risk
            return weighted * moves - risks * self._until_row(rates * means)

        return self.events - weighted, weighted, curved

    def _at_risk(self, predictors: Array) -> tuple[Array, Array, Array]:
        """Return risks of the rows, their sums at each event time, and the log of their unit."""
        shift = np.where(self.weights > 0, predictors, -np.inf).max(axis=0)
        shift = np.where(np.isfinite(shift), shift, 0.0)
        risks = self.weights * np.exp(np.minimum(predictors - shift, 0.0))
        at_risk = np.maximum(_from_row_on(risks)[self.first], LEAST)
        return risks, np.where(self.deaths > 0, at_risk, 1.0), shift

    def _until_row(self, values: Array) -> Array:
        """Return for each row the sum over the event times up to its own."""
        sums = np.cumsum(values, axis=0)
        return np.concatenate([np.zeros((1, values.shape[1])), sums])[self.n_times]


def _from_row_on(values: Array) -> Array:
    """Return sums of each row and all below it."""
    return np.cumsum(values[::-1], axis=0)[::-1]


def maximise(
    design: Array, likelihood: PartialLikelihood, alpha: float, start: Array | None = None
) -> tuple[Array, bool]:
    """Maximise penalised likelihoods by Newton's method with step halving.

    The steps are solved by conjugate gradients, for all fits at once: no matrix of second
    derivatives is made.

    Returns
    -------
    coefs : array of shape (n_columns, n_fits)
    converged : bool
        Whether all of them did.
    """
    shape = design.shape[1], likelihood.weights.shape[1]
    coefs = np.zeros(shape) if start is None else start
    predictors = design @ coefs
    squares = design**2
    for _ in range(STEPS):
        slope, weighted, curved = likelihood.expand(predictors)
        gradient = design.T @ slope - alpha * coefs
        step = _solve(design, curved, alpha, squares.T @ weighted + alpha, gradient)
        move = design @ step
        gain = (gradient * step).sum(axis=0)
        length = _choose_lengths(likelihood, alpha, coefs, predictors, step, move, gain)
        coefs, predictors = coefs + length * step, predictors + length * move
        moving = (gain > TOLERANCE) & (length > 0)
        if not moving.any():
            return coefs, bool((gain <= TOLERANCE).all())
    return coefs, False


def _choose_lengths(
    likelihood: PartialLikelihood,
    alpha: float,
    coefs: Array,
    predictors: Array,
    step: Array,
    move: Array,
    gain: Array,
) -> Array:
    """Return for each fit the first of 1, 1/2, 1/4, ... that improves enough, else 0."""

    def penalised(length: Array) -> Array:
        penalty = alpha / 2 * ((coefs + length * step) ** 2).sum(axis=0)
        return likelihood.value(predictors + length * move) - penalty

    length = np.ones(len(gain))
    before = penalised(0 * length)
    slack = 1e-11 * (1 + np.abs(before))  # rounding of the sums
    for _ in range(HALVINGS):
        worse = ~(penalised(length) >= before + 1e-4 * length * gain - slack)
        if not worse.any():
            return length
        length[worse] /= 2
    return np.where(worse, 0.0, length)


def _solve(
    design: Array,
    curved: Callable[[Array], Array],
    alpha: float,
    diagonal: Array,
    gradient: Array,
) -> Array:
    """Solve for Newton steps by conjugate gradients, preconditioned by a diagonal."""
    step, residual = np.zeros(gradient.shape), gradient
    direction = scaled = residual / diagonal
    size = (residual * scaled).sum(axis=0)
    target = INNER_TOLERANCE**2 * size
    for _ in range(INNER_STEPS):
        going = size > target
        if not going.any():
            break
        product = design.T @ curved(design @ direction) + alpha * direction
        curvature = (direction * product).sum(axis=0)
        length = np.divide(size, curvature, out=np.zeros(len(size)), where=going)
        step = step + length * direction
        residual = residual - length * product
        scaled = residual / diagonal
        former, size = size, (residual * scaled).sum(axis=0)
        ratio = np.divide(size, former, out=np.zeros(len(size)), where=going)
        direction = scaled + ratio * direction
    return step
