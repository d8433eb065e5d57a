"""Choices that charge a linear model for its columns."""

import warnings
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from tamis._arrays import Array, Mask, Subset, class_codes, standardised, target_kind
from tamis._checks import Constraints, one_of
from tamis._sparse import is_sparse
from tamis.choice.theory import aic, bic, ebic, structural_risk
from tamis.contract.choice import Choice, Chosen, Context, Walker, have
from tamis.contract.trace import Trace
from tamis.contract.units import Grouping
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidTable,
    InvalidTarget,
    NothingSelected,
)

#: What is kept of 50 or 500 columns of pure noise, measured with walks by correlation and JMI.
ON_NOISE = {
    "aic": "of pure noise it keeps some 17",
    "bic": "of pure noise it keeps some 2",
    "ebic": "of pure noise it keeps none, in 98 of 100 tables",
    "srm": "of pure noise it keeps about 1",
}
KINDS = {"aic": "AIC", "bic": "BIC", "ebic": "extended BIC", "srm": "the structural risk"}


class Information(Choice):
    """The number of columns at which a linear model is worth its parameters.

    A regression (a logistic one for classes) is fitted to the nested subsets of the walk, and the
    one of the least criterion is kept: AIC, -2 L + 2 K; BIC, -2 L + K ln N; the extended BIC,
    which adds 2 ln C(d, k) for having looked among d columns; or the structural risk, its training
    error and the VC confidence of a hyperplane, see :mod:`tamis.choice.theory`.

    On columns of pure noise AIC keeps some 17 of 50 and BIC 2; the extended BIC keeps none, and
    half of the relevant columns elsewhere. Of a dozen columns or fewer prefer BIC: all of them are
    charged nothing for having been looked at, as there is one subset of d columns. No kind sees
    more than what is linear.

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

    takes_blocks = False

    _constraints: ClassVar[Constraints] = {"kind": one_of(*KINDS)}

    def __init__(self, kind: str = "ebic"):
        self.kind = kind

    def check(self, search: Walker, criterion: Any) -> None:
        super().check(search, criterion)
        if not getattr(criterion, "needs_target", True):
            raise IncompatibleCriterion(
                f"Information fits a model of the target, and {type(criterion).__name__} has none. "
                "Ask for a number of features."
            )

    def enough(self, trace: Trace, context: Context) -> bool:
        """Beyond as many parameters as rows nothing can be fitted."""
        X, _ = _readable(context)
        return bool(trace.growing) and trace.sizes[-1] >= len(X) - 2

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        X, y = _readable(context)
        units, sizes = nested_order(trace)
        grouping = context.grouping or Grouping(trace.n_units)
        n_fixed, order = len(grouping.fixed), grouping.column_order(units)
        ends = np.append(0, np.cumsum(np.bincount(grouping.unit_of)[units]))
        task = getattr(context.criterion, "task_", None) or target_kind(y)
        model = _model(self.kind, standardised(X), y, order, task)
        model.n_sought = trace.n_units - n_fixed
        best, least, nothing = n_fixed, np.inf, np.inf
        for size in (n_fixed, *(size for size in sizes if size > n_fixed)):
            n_columns, n_found = int(ends[size]), size - n_fixed
            if n_columns > len(X) - 2 or model.floor(n_columns, n_found) >= least:
                break  # no likelihood makes up for the parameters of what follows
            found = model.criterion(n_columns, n_found)
            nothing = found if size == n_fixed else nothing
            if found < least:
                best, least = size, found
        name, without = KINDS[self.kind], "without columns" if not n_fixed else "of what is fixed"
        if best == 0:
            raise NothingSelected(
                f"Information({self.kind!r}): no subset of the walk has a smaller value of {name} "
                f"than a model without columns, {nothing:.4g}. Ask for a number of features."
            )
        if least == np.inf:
            raise InvalidTable(
                f"Information fits a linear model to what is fixed, {int(ends[n_fixed])} columns, "
                f"for which {len(X)} rows are too few. Fix fewer, or ask for a number of features."
            )
        index = int(np.flatnonzero(trace.sizes == best)[-1])
        fell = f"{context.counted(best)} {have(best)} the least value of {name}, {least:.4g}"
        said = f"{fell} against {nothing:.4g} {without}, in a linear model; {ON_NOISE[self.kind]}."
        return Chosen(index, said)


def _readable(context: Context) -> tuple[Array, NDArray[Any]]:
    """The table and the target, where a linear model can be fitted to them."""
    X, y = context.X, context.y
    assert X is not None
    assert y is not None
    lacks, write = "", "Ask for a number of features"
    if is_sparse(X):
        lacks, write = "a table that is not sparse", f"{write}, or give X.toarray()"
    elif np.isnan(X).any():
        lacks, write = "a number in every entry of X", f"{write}, or fill in what is missing"
    elif y.dtype.names is not None or y.ndim > 1:
        lacks = "one target, of classes or of numbers that are all known"
    if lacks:
        raise InvalidTable(f"Information fits a linear model, which needs {lacks}. {write}.")
    return X, y


def nested_order(trace: Trace) -> tuple[Subset, list[int]]:
    """Units in an order of which each subset of a nested trace is a beginning, and their sizes."""
    units, sizes = trace.moves().unit, sorted({int(size) for size in trace.sizes if size})
    if trace.growing is not False:
        return np.concatenate([np.flatnonzero(trace.start), units]), sizes
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

    #: Units among which was looked: those that are not fixed.
    n_sought: int
    #: Which columns of the order bring something beside the ones before them.
    fresh: Mask

    def __init__(self, kind: str, X: Array, y: NDArray[Any], order: Subset):
        self.kind, self.X, self.y, self.order = kind, X, y, order

    @abstractmethod
    def criterion(self, size: int, n_found: int) -> float:
        """What a model of so many columns, of units found by looking, costs; the least is best."""

    def floor(self, size: int, n_found: int) -> float:
        """A bound below the criterion, whatever the likelihood."""
        return -np.inf

    def rank(self, size: int) -> int:
        """How many of the first columns the ones before them do not hold."""
        return int(self.fresh[:size].sum())

    def charged(self, log_likelihood: float, n_found: int, n_parameters: int) -> float:
        """The criterion of a likelihood."""
        if self.kind == "aic":
            return aic(log_likelihood, n_parameters)
        if self.kind == "bic":
            return bic(log_likelihood, n_parameters, len(self.y))
        return ebic(log_likelihood, n_parameters, len(self.y), n_found, self.n_sought)


def _directions(X: Array, order: Subset) -> tuple[Array, Mask]:
    """Orthonormal directions of the columns in their order, and which of them are fresh.

    A column that the ones before it hold leaves a direction of rounding: it brings nothing.
    """
    table = X[:, order[: max(0, min(len(order), len(X) - 2))]]
    Q, R = np.linalg.qr(table)
    fresh: Mask = np.abs(np.diag(R)) > 1e-10 * np.linalg.norm(table, axis=0)
    return Q, fresh


class _Linear(_Charged):
    """Least squares: one decomposition holds the fits of all sizes."""

    def __init__(self, kind: str, X: Array, y: NDArray[Any], order: Subset):
        super().__init__(kind, X, y, order)
        values = np.asarray(y, dtype=float)
        scale = np.abs(values).max() or 1.0
        centred = values / scale - np.mean(values / scale)
        Q, self.fresh = _directions(X, order)
        explained = np.where(self.fresh, (Q.T @ centred) ** 2, 0.0)
        total = float(centred @ centred)
        left = total - np.append(0.0, np.cumsum(explained))
        # what is left of a perfect fit is rounding
        self.rss = np.maximum(left, 1e-20 * total) * scale**2

    def criterion(self, size: int, n_found: int) -> float:
        n = len(self.y)
        with np.errstate(divide="ignore"):  # a constant target is fitted by the intercept
            log_likelihood = -n / 2 * (np.log(2 * np.pi * self.rss[size] / n) + 1)
        return self.charged(float(log_likelihood), n_found, self.rank(size) + 1)


class _Logistic(_Charged):
    """Logistic regression without a penalty, of two or more classes; a hyperplane has V = k + 1."""

    def __init__(self, kind: str, X: Array, y: NDArray[Any], order: Subset):
        super().__init__(kind, X, y, order)
        self.labels, self.codes = class_codes(y)
        self.fresh = _directions(X, order)[1]

    def floor(self, size: int, n_found: int) -> float:
        if self.kind == "srm":
            return float(structural_risk([0.0], [self.rank(size) + 1], len(self.y))[0])
        return self.charged(0.0, n_found, self._n_parameters(size))

    def _n_parameters(self, size: int) -> int:
        return (self.rank(size) + 1) * (len(self.labels) - 1)

    def criterion(self, size: int, n_found: int) -> float:
        shares = np.bincount(self.codes) / len(self.codes)
        answers = np.tile(shares, (len(self.codes), 1))
        if self.rank(size):
            answers = self._answers(self.X[:, self.order[:size][self.fresh[:size]]])
        if self.kind == "srm":
            error = float(np.mean(answers.argmax(axis=1) != self.codes))
            return float(structural_risk([error], [self.rank(size) + 1], len(self.y))[0])
        own = answers[np.arange(len(self.codes)), self.codes]
        log_likelihood = float(np.log(np.maximum(own, np.finfo(float).tiny)).sum())
        return self.charged(log_likelihood, n_found, self._n_parameters(size))

    def _answers(self, X: Array) -> Array:
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8, max_iter=200)
        with warnings.catch_warnings():  # of classes that are told apart wholly: the limit is 0
            warnings.simplefilter("ignore", ConvergenceWarning)
            return np.asarray(model.fit(X, self.codes).predict_proba(X))
