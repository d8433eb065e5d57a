"""Choices that charge a linear model for its columns."""

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from tamis._arrays import EMPTY, Array, Subset, class_codes, standardised, target_kind
from tamis.choice.theory import aic, bic, ebic, structural_risk
from tamis.contract.choice import Choice, Chosen, Context, Walker, counted
from tamis.contract.trace import Trace
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidTarget,
    NothingSelected,
)

KINDS = {"aic": "AIC", "bic": "BIC", "ebic": "extended BIC", "srm": "the structural risk"}


class Information(Choice):
    """The number of columns at which a linear model is worth its parameters.

    A regression (a logistic one for classes) is fitted to the nested subsets of the walk, and the
    one of the least criterion is kept: AIC, -2 L + 2 K; BIC, -2 L + K ln N; the extended BIC,
    which adds 2 ln C(d, k) for having looked among d columns; or the structural risk, its training
    error and the VC confidence of a hyperplane, see :mod:`tamis.choice.theory`.

    On columns of pure noise AIC keeps some 17 of 50 and BIC 2; the extended BIC keeps none, and
    half of the relevant columns elsewhere. All of them see what is linear alone.

    Parameters
    ----------
    kind : {"ebic", "bic", "aic", "srm"}, default="ebic"

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tamis.criteria import Correlation
    >>> from tamis.search import Ranking
    >>> X, y = load_diabetes(return_X_y=True)
    >>> search = Ranking(Correlation(), n_features_to_select=Information("bic")).fit(X, y)
    >>> search.get_support(indices=True)
    array([2, 3, 8])
    """

    needs_nested = True

    def __init__(self, kind: str = "ebic"):
        self.kind = kind

    def check(self, search: Walker, criterion: Any) -> None:
        super().check(search, criterion)
        if self.kind not in KINDS:
            raise InvalidParameter(f"Information needs kind in {sorted(KINDS)}, not {self.kind!r}.")
        if not getattr(criterion, "needs_target", True):
            raise IncompatibleCriterion(
                f"Information fits a model of the target, and {type(criterion).__name__} has none. "
                "Ask for a number of features."
            )

    def enough(self, trace: Trace, context: Context) -> bool:
        """Beyond as many parameters as rows nothing can be fitted."""
        assert context.X is not None
        return bool(trace.growing) and trace.sizes[-1] >= len(context.X) - 2

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        assert context.X is not None
        assert context.y is not None
        order, sizes = nested_order(trace)
        ends = np.arange(trace.n_units + 1)
        if context.X.shape[1] != trace.n_units:  # a group of columns is one unit
            of_unit = [context.columns(np.array([unit])) for unit in order]
            order = np.concatenate([EMPTY, *of_unit])
            ends = np.cumsum([0, *map(len, of_unit)])
        task = getattr(context.criterion, "task_", None) or target_kind(context.y)
        model = _model(self.kind, standardised(context.X), context.y, order, task)
        best, least, nothing = 0, np.inf, np.inf
        for size in (0, *sizes):
            n_columns = int(ends[size])
            if n_columns > len(context.X) - 2 or model.floor(n_columns) >= least:
                break  # no likelihood makes up for the parameters of what follows
            found = model.criterion(n_columns)
            nothing = found if size == 0 else nothing
            if found < least:
                best, least = size, found
        name = KINDS[self.kind]
        if best == 0:
            raise NothingSelected(
                f"Information({self.kind!r}): no subset of the walk has a smaller value of {name} "
                f"than a model without columns, {nothing:.4g}. Ask for a number of features."
            )
        index = int(np.flatnonzero(trace.sizes == best)[-1])
        fell = f"{counted(best)} have the least value of {name}, {least:.4g}"
        return Chosen(index, f"{fell} against {nothing:.4g} without columns, in a linear model.")


def nested_order(trace: Trace) -> tuple[Subset, list[int]]:
    """Units in an order of which each subset of a nested trace is a beginning, and their sizes."""
    units, sizes = trace.moves().unit, sorted({int(size) for size in trace.sizes if size})
    if trace.growing:
        return units, sizes
    stayed = np.flatnonzero(trace.mask(len(trace) - 1))
    return np.concatenate([stayed, units[::-1]]), sizes


def _model(kind: str, X: Array, y: NDArray[Any], order: Subset, task: str) -> "_Charged":
    classes = task == "classification"
    if kind == "srm" and not classes:
        raise InvalidTarget(
            "Information('srm') bounds the error of classes, and the target is of real numbers. "
            "Write Information('bic')."
        )
    return (_Logistic if classes else _Linear)(kind, X, y, order)


class _Charged(ABC):
    """A linear model of the first columns of an order."""

    def __init__(self, kind: str, X: Array, y: NDArray[Any], order: Subset):
        self.kind, self.X, self.y, self.order = kind, X, y, order

    @abstractmethod
    def criterion(self, size: int) -> float:
        """What a model of so many columns costs; the least is best."""

    def floor(self, size: int) -> float:
        """A bound below the criterion, whatever the likelihood."""
        return -np.inf

    def charged(self, log_likelihood: float, size: int, n_parameters: int) -> float:
        """The criterion of a likelihood."""
        if self.kind == "aic":
            return aic(log_likelihood, n_parameters)
        if self.kind == "bic":
            return bic(log_likelihood, n_parameters, len(self.y))
        return ebic(log_likelihood, n_parameters, len(self.y), size, self.X.shape[1])


class _Linear(_Charged):
    """Least squares: one decomposition holds the fits of all sizes."""

    def __init__(self, kind: str, X: Array, y: NDArray[Any], order: Subset):
        super().__init__(kind, X, y, order)
        values = np.asarray(y, dtype=float)
        scale = np.abs(values).max() or 1.0
        centred = values / scale - np.mean(values / scale)
        most = max(0, min(len(order), len(y) - 2))
        Q, R = np.linalg.qr(X[:, order[:most]])
        # a column that the ones before it hold leaves a direction of rounding: it brings nothing
        fresh = np.abs(np.diag(R)) > 1e-10 * np.linalg.norm(X[:, order[:most]], axis=0)
        explained = np.where(fresh, (Q.T @ centred) ** 2, 0.0)
        total = float(centred @ centred)
        left = total - np.append(0.0, np.cumsum(explained))
        # what is left of a perfect fit is rounding
        self.rss = np.maximum(left, 1e-20 * total) * scale**2
        self.rank = np.append(0, np.cumsum(fresh))

    def criterion(self, size: int) -> float:
        n = len(self.y)
        with np.errstate(divide="ignore"):  # a constant target is fitted by the intercept
            log_likelihood = -n / 2 * (np.log(2 * np.pi * self.rss[size] / n) + 1)
        return self.charged(float(log_likelihood), size, int(self.rank[size]) + 1)


class _Logistic(_Charged):
    """Logistic regression without a penalty, of two or more classes; a hyperplane has V = k + 1."""

    def __init__(self, kind: str, X: Array, y: NDArray[Any], order: Subset):
        super().__init__(kind, X, y, order)
        self.labels, self.codes = class_codes(y)

    def floor(self, size: int) -> float:
        if self.kind == "srm":
            return float(structural_risk([0.0], [size + 1], len(self.y))[0])
        return self.charged(0.0, size, self._n_parameters(size))

    def _n_parameters(self, size: int) -> int:
        return (size + 1) * (len(self.labels) - 1)

    def criterion(self, size: int) -> float:
        shares = np.bincount(self.codes) / len(self.codes)
        answers = np.tile(shares, (len(self.codes), 1))
        if size:
            answers = self._answers(self.X[:, self.order[:size]])
        if self.kind == "srm":
            error = float(np.mean(answers.argmax(axis=1) != self.codes))
            return float(structural_risk([error], [size + 1], len(self.y))[0])
        own = answers[np.arange(len(self.codes)), self.codes]
        log_likelihood = float(np.log(np.maximum(own, np.finfo(float).tiny)).sum())
        return self.charged(log_likelihood, size, self._n_parameters(size))

    def _answers(self, X: Array) -> Array:
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8, max_iter=200)
        with warnings.catch_warnings():  # of classes that are told apart wholly: the limit is 0
            warnings.simplefilter("ignore", ConvergenceWarning)
            return np.asarray(model.fit(X, self.codes).predict_proba(X))
