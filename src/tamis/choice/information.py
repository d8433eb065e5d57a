"""Choice by an information criterion: the likelihood of a linear model, penalised by its size."""

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

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
from tamis.exceptions import IncompatibleCriterion, InvalidTable, InvalidTarget, NothingSelected

if TYPE_CHECKING:
    from tamis.contract.criterion import Criterion

#: Text about the number of columns selected from 50 or 500 columns of pure noise, ranked by
#: correlation or JMI.
ON_NOISE = {
    "aic": "from pure noise it selects about 17",
    "bic": "from pure noise it selects about 2",
    "ebic": "from pure noise it selects nothing, in 98 of 100 tables",
    "srm": "from pure noise it selects about 1",
}
KINDS = {"aic": "AIC", "bic": "BIC", "ebic": "extended BIC", "srm": "the structural risk"}


@dataclass(eq=False, repr=False)
class Information(Choice):
    """The number of columns with the smallest information criterion of a linear model.

    A linear regression, or a logistic regression for classes, is fitted to every nested subset of
    the search path. For a log-likelihood L, K parameters and N rows, the criterion is one of

    * AIC, -2 L + 2 K;
    * BIC, -2 L + K ln N;
    * the extended BIC, which adds 2 ln C(d, k) for choosing k of d columns;
    * the structural risk, the training error plus the VC confidence of a hyperplane (see
      :mod:`tamis.choice.theory`).

    From 50 columns of pure noise, AIC selects about 17, BIC 2 and the extended BIC none. In other
    tables, the extended BIC misses about half of the relevant columns. Prefer BIC for a dozen
    columns or fewer, because the extended BIC has no penalty for selecting all columns. Only linear
    effects are detected.

    Parameters
    ----------
    kind : {"ebic", "bic", "aic", "srm"}, default="ebic"
        The criterion: extended BIC, BIC, AIC or structural risk.

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

    kind: str = "ebic"

    def check(self, search: Walker, criterion: "Criterion") -> None:
        super().check(search, criterion)
        if not getattr(criterion, "needs_target", True):
            raise IncompatibleCriterion(
                f"Information fits a model to the target, but {type(criterion).__name__} uses no "
                "target. Set n_features_to_select instead."
            )

    def enough(self, trace: Trace, context: Context) -> bool:
        """Return whether the search can stop.

        It can if the subset has too many columns to fit a model.
        """
        X, _ = _check_data(context)
        return bool(trace.growing) and trace.sizes[-1] >= len(X) - 2

    def pick(self, trace: Trace, context: Context = Context()) -> Chosen:  # noqa: B008
        X, y = _check_data(context)
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
                break  # even a perfect fit would not make up for the penalty
            found = model.criterion(n_columns, n_found)
            nothing = found if size == n_fixed else nothing
            if found < least:
                best, least = size, found
        name, without = KINDS[self.kind], "without columns" if not n_fixed else "of what is fixed"
        if best == 0:
            raise NothingSelected(
                f"Information({self.kind!r}): no subset of the search has a smaller {name} than a "
                f"model without columns, {nothing:.4g}. Ask for a number of features."
            )
        if least == np.inf:
            raise InvalidTable(
                f"Information fits a linear model, and {len(X)} rows are too few for the "
                f"{int(ends[n_fixed])} columns of fixed_features. Fix fewer columns, or ask for a "
                "number of features."
            )
        index = int(np.flatnonzero(trace.sizes == best)[-1])
        kept = f"{context.counted(best)} {have(best)} the least value of {name}, {least:.4g}"
        scale = f"against {nothing:.4g} {without}, in a linear model"
        return Chosen(index, f"{kept} {scale}; {ON_NOISE[self.kind]}.")


def _check_data(context: Context) -> tuple[Array, NDArray[Any]]:
    """Return the table and the target. Refuse data that a linear model cannot be fitted to."""
    X, y = context.X, context.y
    assert X is not None
    assert y is not None
    lacks, write = "", "Ask for a number of features"
    if is_sparse(X):
        lacks, write = "a table that is not sparse", f"{write}, or give X.toarray()"
    elif np.isnan(X).any():
        lacks, write = "a number in every entry of X", f"{write}, or impute missing values"
    elif y.dtype.names is not None or y.ndim > 1:
        lacks = "one target of classes or numbers, without censoring"
    if lacks:
        raise InvalidTable(f"Information fits a linear model, which needs {lacks}. {write}.")
    return X, y


def nested_order(trace: Trace) -> tuple[Subset, list[int]]:
    """Return the units in order of selection, and the sizes of the subsets in the trace.

    Each subset of the trace consists of the first units of this order. A unit is a column, or a
    group of columns that are selected together.
    """
    units, sizes = trace.moves().unit, sorted({int(size) for size in trace.sizes if size})
    if trace.growing is not False:
        return np.concatenate([np.flatnonzero(trace.start), units]), sizes
    last = np.flatnonzero(trace.mask(len(trace) - 1))
    return np.concatenate([last, units[::-1]]), sizes


def _model(kind: str, X: Array, y: NDArray[Any], order: Subset, task: str) -> "_PenalisedModel":
    classes = task == "classification"
    if kind == "srm" and not classes:
        raise InvalidTarget(
            "Information('srm') needs a target of classes, but y contains real numbers. Write "
            "Information('bic')."
        )
    return (_Logistic if classes else _Linear)(kind, X, y, order)


@dataclass(eq=False, repr=False)
class _PenalisedModel(ABC):
    """A linear model that can be fitted to the first columns of an order, with its criterion."""

    kind: str
    X: Array
    y: NDArray[Any]
    order: Subset
    #: Number of units that are not fixed, among which the search selects.
    n_sought: int = field(init=False)
    #: Mask of the columns of the order that are linearly independent of the columns before them.
    independent: Mask = field(init=False)

    @abstractmethod
    def criterion(self, size: int, n_found: int) -> float:
        """Return the criterion of the first ``size`` columns, which form ``n_found`` units."""

    def floor(self, size: int, n_found: int) -> float:
        """Return a lower bound on the criterion of the first columns, over all likelihoods."""
        return -np.inf

    def rank(self, size: int) -> int:
        """Return the rank of the first ``size`` columns."""
        return int(self.independent[:size].sum())

    def penalise(self, log_likelihood: float, n_found: int, n_parameters: int) -> float:
        """Return the criterion, computed from a log-likelihood and the size of the model."""
        if self.kind == "aic":
            return aic(log_likelihood, n_parameters)
        if self.kind == "bic":
            return bic(log_likelihood, n_parameters, len(self.y))
        return ebic(log_likelihood, n_parameters, len(self.y), n_found, self.n_sought)


def _directions(X: Array, order: Subset) -> tuple[Array, Mask]:
    """Return an orthonormal direction for each ordered column, and which columns are independent.

    If a column depends linearly on the columns before it, its direction is only rounding error.
    """
    table = X[:, order[: max(0, min(len(order), len(X) - 2))]]
    Q, R = np.linalg.qr(table)
    independent: Mask = np.abs(np.diag(R)) > 1e-10 * np.linalg.norm(table, axis=0)
    return Q, independent


@dataclass(eq=False, repr=False)
class _Linear(_PenalisedModel):
    """Least-squares regression. A single QR decomposition gives the fits of all sizes."""

    def __post_init__(self) -> None:
        values = np.asarray(self.y, dtype=float)
        scale = np.abs(values).max() or 1.0
        centred = values / scale - np.mean(values / scale)
        Q, self.independent = _directions(self.X, self.order)
        explained = np.where(self.independent, (Q.T @ centred) ** 2, 0.0)
        total = float(centred @ centred)
        left = total - np.append(0.0, np.cumsum(explained))
        # the residual of a perfect fit is only rounding error
        self.rss = np.maximum(left, 1e-20 * total) * scale**2

    def criterion(self, size: int, n_found: int) -> float:
        n = len(self.y)
        with np.errstate(divide="ignore"):  # the residual of a constant target is 0
            log_likelihood = -n / 2 * (np.log(2 * np.pi * self.rss[size] / n) + 1)
        return self.penalise(float(log_likelihood), n_found, self.rank(size) + 1)


@dataclass(eq=False, repr=False)
class _Logistic(_PenalisedModel):
    """Unpenalised logistic regression of two or more classes."""

    def __post_init__(self) -> None:
        self.labels, self.codes = class_codes(self.y)
        self.independent = _directions(self.X, self.order)[1]

    def floor(self, size: int, n_found: int) -> float:
        if self.kind == "srm":
            return float(structural_risk([0.0], [self.rank(size) + 1], len(self.y))[0])
        return self.penalise(0.0, n_found, self._n_parameters(size))

    def _n_parameters(self, size: int) -> int:
        return (self.rank(size) + 1) * (len(self.labels) - 1)

    def criterion(self, size: int, n_found: int) -> float:
        shares = np.bincount(self.codes) / len(self.codes)
        probabilities = np.tile(shares, (len(self.codes), 1))
        if self.rank(size):
            columns = self.order[:size][self.independent[:size]]
            probabilities = self._probabilities(self.X[:, columns])
        if self.kind == "srm":
            error = float(np.mean(probabilities.argmax(axis=1) != self.codes))
            return float(structural_risk([error], [self.rank(size) + 1], len(self.y))[0])
        own = probabilities[np.arange(len(self.codes)), self.codes]
        log_likelihood = float(np.log(np.maximum(own, np.finfo(float).tiny)).sum())
        return self.penalise(log_likelihood, n_found, self._n_parameters(size))

    def _probabilities(self, X: Array) -> Array:
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8, max_iter=200)
        with warnings.catch_warnings():  # separable classes do not converge; the limit is known
            warnings.simplefilter("ignore", ConvergenceWarning)
            return np.asarray(model.fit(X, self.codes).predict_proba(X))
