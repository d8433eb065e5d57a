"""Proportional hazards model with a ridge penalty, for censored targets."""

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
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

#: Default penalties, to be multiplied by the number of columns. With this factor, the prior
#: variance of the linear predictor does not depend on the number of columns: it is the reciprocal
#: of the listed value.
PENALTIES = np.logspace(3, -1, 9)
#: Maximum numbers of Newton steps, of conjugate gradient steps per Newton step, and of halvings of
#: a Newton step.
STEPS, INNER_STEPS, HALVINGS = 50, 200, 40
#: Conjugate gradients stop when the residual is this share of the initial residual.
INNER_TOLERANCE = 1e-3
#: Newton's method stops when the expected gain in log-likelihood of a step is below this.
TOLERANCE = 1e-12
#: Smallest allowed sum of risks at an event time, relative to the greatest risk.
LEAST = 1e-290
#: A direction is treated as null if its sum of squares is below this share of the greatest sum of
#: squares.
NULL = 1e-10


@dataclass(eq=False, repr=False)
class RidgeCoxCV(BaseEstimator):
    r"""Proportional hazards model with a ridge penalty chosen by cross-validation.

    The coefficients maximise the log partial likelihood with Breslow's treatment of ties, minus
    the penalty on the standardised columns:

    .. math:: \sum_{i: \text{event}} w_i \Big( \eta_i - \log \sum_{j: t_j \geq t_i} w_j e^{\eta_j}
              \Big) - \frac{\alpha}{2} \lVert b \rVert^2, \quad \eta = Z b

    The chosen penalty maximises the cross-validated log partial likelihood. For each fold, the
    coefficients are fitted to the training rows. With these coefficients, the log-likelihood of the
    training rows is subtracted from the log-likelihood of all rows. The differences are summed over
    the folds. They are defined even for folds without events. If several penalties are equally
    good, the greatest is chosen. Folds are deterministic and balanced by event and time.

    Columns are standardised with weighted means and standard deviations. A constant column has the
    coefficient 0. There may be more columns than rows.

    Parameters
    ----------
    alphas : array, optional
        Penalties to try, greater than 0, on the scale of ``CoxPHSurvivalAnalysis`` in
        scikit-survival. By default, nine values from 0.1 to 1000, multiplied by the number of
        columns that are not constant.
    cv : int, default=5
        Number of folds.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Log hazard ratios for one unit of each column on its original scale.
    alpha_ : float
        The chosen penalty.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried, in descending order.
    cv_log_likelihoods_ : array of shape (n_alphas,)
        Cross-validated log partial likelihood of each penalty in ``alphas_``.
    n_features_in_ : int
        Number of columns of ``X``.
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

    alphas: ArrayLike | None = None
    _: KW_ONLY
    cv: int = 5

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            The columns of the model.
        y : structured array of event and time, or array of shape (n_samples, 2)
            The censored target. In an array with two columns, the first is the time, and the second
            is 1 if the event happened or 0 if the row was censored.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows. A row of weight 2 is treated as two rows.
        """
        check_parameters(self)
        X, y = check_data(self, X, y)
        assert y is not None  # required by the estimator tags
        y = censored_columns("RidgeCoxCV", y) if y.dtype.names is None else y
        weights = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        rows = np.argsort(y["time"], kind="stable")
        rows = rows[weights[rows] > 0]
        X, y, weights = X[rows], y[rows], weights[rows]
        if not y["event"].any():
            raise InvalidTarget(
                "RidgeCoxCV needs a row in which the event happened with a weight above 0."
            )
        Z, self._scale = scaled_columns(X)
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
        with np.errstate(over="ignore"):  # scales of columns with values below 1e-300 overflow
            self.coef_ = np.ldexp(self._coefs / self._scale.deviation, -self._scale.exponent)
        return self

    def predict(self, X: Any) -> Array:
        """Return the log risk of each row, relative to a row with the mean of each column."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        # BLAS may round identical rows differently, which would break ties
        return np.einsum("ij,j->i", self._scale(X), self._coefs) - self._offset

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the concordance between the predicted risks and the censored times."""
        return concordance(self.predict(X), y, sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags


def _rotate(Z: Array) -> tuple[Array, Callable[[Array], Array]]:
    """Return orthogonal columns that span Z, and a function that maps coefficients back to Z.

    A rotation does not change the penalty. The result has at most as many columns as rows.
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
    """Return the cross-validated log-likelihood of each penalty. Penalties must be descending.

    If a fit does not converge, the result is -inf for this penalty and for all smaller ones.
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
        Weights of the rows in each fit. Rows of weight 0 are ignored.
    """

    def __init__(self, y: NDArray[Any], weights: Array):
        self.weights = weights
        event, time = y["event"], y["time"]
        times, starts = np.unique(time[event], return_index=True)
        self.first = np.searchsorted(time, times)  # the first row at risk at each event time
        self.n_times = np.searchsorted(times, time, "right")  # number of event times so far
        self.events = weights * event[:, None]
        self.deaths = np.add.reduceat(self.events[event], starts, axis=0)

    def value(self, predictors: Array) -> Array:
        """Return the log-likelihood of each fit.

        It is -inf if the risks of a fit differ by too many orders of magnitude to be summed.
        """
        _, at_risk, shift = self._at_risk(predictors)
        logs = np.log(at_risk) + shift
        values = (self.events * predictors).sum(axis=0) - (self.deaths * logs).sum(axis=0)
        return np.where((at_risk > LEAST).all(axis=0), values, -np.inf)

    def expand(self, predictors: Array) -> tuple[Array, Array, Callable[[Array], Array]]:
        """Return the gradient, part of the Hessian's diagonal, and a function for Hessian products.

        All derivatives are with respect to the linear predictors. The sign of the Hessian is
        changed.
        """
        risks, at_risk, _ = self._at_risk(predictors)
        rates = self.deaths / at_risk
        weighted = risks * self._until_row(rates)

        def curved(moves: Array) -> Array:
            means = _from_row_on(risks * moves)[self.first] / at_risk
            return weighted * moves - risks * self._until_row(rates * means)

        return self.events - weighted, weighted, curved

    def _at_risk(self, predictors: Array) -> tuple[Array, Array, Array]:
        """Return the risk of each row, the sum of risks at each event time, and a log scale.

        The true risks are these values times the exponential of the log scale.
        """
        shift = np.where(self.weights > 0, predictors, -np.inf).max(axis=0)
        shift = np.where(np.isfinite(shift), shift, 0.0)
        risks = self.weights * np.exp(np.minimum(predictors - shift, 0.0))
        at_risk = np.maximum(_from_row_on(risks)[self.first], LEAST)
        return risks, np.where(self.deaths > 0, at_risk, 1.0), shift

    def _until_row(self, values: Array) -> Array:
        """Return, for each row, the sum of ``values`` over the event times up to the row's time."""
        sums = np.cumsum(values, axis=0)
        return np.concatenate([np.zeros((1, values.shape[1])), sums])[self.n_times]


def _from_row_on(values: Array) -> Array:
    """Return, for each row of an array, the sum of this row and all rows below it."""
    return np.cumsum(values[::-1], axis=0)[::-1]


def maximise(
    design: Array, likelihood: PartialLikelihood, alpha: float, start: Array | None = None
) -> tuple[Array, bool]:
    """Maximise penalised likelihoods by Newton's method with step halving.

    The steps are solved by conjugate gradients for all fits at once, without a matrix of second
    derivatives.

    Returns
    -------
    coefs : array of shape (n_columns, n_fits)
    converged : bool
        Whether all fits converged.
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
    """Return, for each fit, the first step length of 1, 1/2, 1/4, ... that improves the fit.

    It is 0 if none does.
    """

    def penalised(length: Array) -> Array:
        penalty = alpha / 2 * ((coefs + length * step) ** 2).sum(axis=0)
        return likelihood.value(predictors + length * move) - penalty

    length = np.ones(len(gain))
    before = penalised(0 * length)
    slack = 1e-11 * (1 + np.abs(before))  # allows for rounding errors in the sums
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
    """Return the Newton steps, computed by conjugate gradients with a diagonal preconditioner."""
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
