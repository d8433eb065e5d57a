"""Criteria that score all columns from a single trained support vector machine."""

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR

from tamis._arrays import Array, Subset
from tamis._checks import BOOLEAN, Constraints, integer
from tamis.contract import BackwardCriterion
from tamis.criteria.model import ChanceAdjusted, ModelCriterion, inner_estimator, is_tuner
from tamis.exceptions import IncompatibleCriterion
from tamis.response.fold_models import fit_clone, select_rows
from tamis.response.perturbations import Units
from tamis.svm.columns import ColumnKernel
from tamis.svm.geometry import followed, margin_system
from tamis.svm.machine import (
    KERNELS,
    Multipliers,
    check_weighted,
    function_of,
    is_newton,
    multipliers,
)

if TYPE_CHECKING:
    from tamis.svm.shrinking import ShrinkingMachine


class MachineView(NamedTuple):
    """Binary SVM, given by its multipliers and the kernel of its rows.

    ``hint`` is an optional start value for computing the norm or bound that a criterion scores.
    """

    machine: Multipliers
    columns: ColumnKernel
    hint: Any = None


@dataclass(eq=False, repr=False)
class MachineCriterion(ChanceAdjusted, ModelCriterion, BackwardCriterion):
    """Criterion that scores columns by a norm or error bound of a support vector machine.

    The norm or bound is summed over the binary SVMs of an ``SVC``, one for each pair of classes. A
    subclass defines it (:meth:`_quantity`), its derivatives with respect to the column
    scales (:meth:`_slopes`) and how a change is scored (:meth:`_scored`).
    """

    estimator: BaseEstimator
    _: KW_ONLY
    order: int = 0
    retrain: bool = False
    adjusted: str | bool = "auto"

    #: Whether the norm or bound needs only the support vectors, not all rows.
    _on_support: ClassVar[bool] = True
    #: Whether SVMs with squared losses are accepted. Their multipliers have no upper bounds.
    _takes_squared: ClassVar[bool] = False
    # a kernel cannot be computed from rows with missing values
    takes_missing = False
    _constraints: ClassVar[Constraints] = {"order": integer(0, 1), "retrain": BOOLEAN}

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        self._learn_model(self._with_copies(X, y), y, self._route(params, len(X)))

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Return the memory in bytes that the kernel needs.

        Return None if the estimator is a search over hyper-parameters.
        """
        if is_tuner(self.estimator):
            return None
        n = float(n_samples)
        return 36 * (n**2 + n * self._n_trained(n_features))

    def _prepare(self, estimator: Any) -> None:
        name, model = type(self).__name__, type(estimator).__name__
        if not is_newton(estimator):
            check_machine(name, estimator)
        elif not self._takes_squared:
            raise IncompatibleCriterion(
                f"{name} needs an SVM with bounded multipliers, not {model}, which squares its "
                f"losses. Write {name}(SVC(...)), or WeightNorm({model}(...))."
            )
        elif self.order == 1 and self.retrain:
            raise IncompatibleCriterion(
                f"{name} with order=1 and retrain=True needs an SVC or SVR, not {model}. Write "
                "retrain=False, or order=0."
            )
        weight = self._metadata.fit.get("sample_weight")
        if isinstance(estimator, SVC) and weight is not None:
            check_weighted(model, np.asarray(self._y), weight)

    def loss(self, subset: Subset) -> Array:
        return self._above_chance(self._unit_losses(self._units(subset)))

    def _unit_losses(self, units: Units) -> Array:
        """Compute the losses of the units, and of their permuted copies if there are any."""
        model = self._fit_columns(units.columns)
        if units.are_columns and self.runs_on_device:
            views = self._views(model, self._training.columns(self.estimator_, units.columns))
        else:
            views = self._views(model, self._X[:, units.columns])
        if self.order == 1:  # the columns of a group are scaled together
            return np.abs(units.summed(np.sum([self._slopes(view) for view in views], axis=0)))
        views = [view._replace(hint=self._hint(view)) for view in views]
        if self.retrain:
            total = sum(self._quantity(view.machine, view.columns.K, view.hint) for view in views)
            indices = range(len(units.sizes))
            left = [self._retrain_without(units, index, views) for index in indices]
            return self._scored(total - np.array(left))
        return self._scored(np.sum([self._lost(view, units) for view in views], axis=0))

    @abstractmethod
    def _quantity(self, machine: Multipliers, K: Array, hint: Any = None) -> float:
        """Return the norm or bound of a binary SVM, given the kernel matrix of its rows."""

    @abstractmethod
    def _slopes(self, view: MachineView) -> Array:
        """Return the derivative of the norm or bound with respect to the scale of each column."""

    def _scored(self, lost: Array) -> Array:
        """Return the loss of each unit, given the decrease of the norm or bound without it.

        The default is suited to an error bound: the unit whose removal makes the bound smallest has
        the smallest loss.
        """
        return -lost

    def _hint(self, view: MachineView) -> Any:
        """Return a starting value for the criterion without a column, or None."""
        return None

    def _of_nothing(self, machine: Multipliers) -> float:
        """Return the norm or bound without any columns.

        All rows are then equal, so the norm and the radius are 0.
        """
        return 0.0

    def _lost(self, view: MachineView, units: Units) -> Array:
        """Return the decrease of the norm or bound without each unit, with fixed multipliers."""
        machine, columns, hint = view
        kernels = (columns.without(units.positions(k)) for k in range(len(units.sizes)))
        left = [self._quantity(machine, K, hint) for K in kernels]
        return self._quantity(machine, columns.K, hint) - np.array(left)

    def _retrain_without(self, units: Units, index: int, views: list[MachineView]) -> float:
        """Train the SVMs without a unit, and return the sum of their norms or bounds."""
        others, removed = units.without(index), units.positions(index)
        if not len(others):
            return sum(self._of_nothing(view.machine) for view in views)
        model = self._fit_columns(others)
        kernel = function_of(model)
        total = 0.0
        for machine, (_, columns, hint) in zip(self._machines(model), views, strict=True):
            if self._on_support:
                columns = columns.restricted(np.flatnonzero(machine.beta))
                machine = machine.on_support()
            total += self._quantity(machine, columns.without(removed, kernel), hint)
        return total

    def _views(self, model: Any, X: Array) -> list[MachineView]:
        """Return each binary SVM of a fitted model with the kernel of its rows.

        The kernel contains only the support vectors if they suffice. SVMs that are trained again
        without a column have different support vectors, so their kernels contain all rows.
        """
        kernel, machines = function_of(model), self._machines(model)
        if self._on_support and not (self.retrain and self.order == 0):
            machines = [machine.on_support() for machine in machines]
        return [
            MachineView(machine, ColumnKernel(kernel, select_rows(X, machine.rows)))
            for machine in machines
        ]

    def _machines(self, model: Any) -> list[Multipliers]:
        return multipliers(model, np.asarray(self._y), self._metadata.fit.get("sample_weight"))


def check_machine(criterion: str, estimator: Any) -> None:
    """Raise an error unless the estimator is an SVC or SVR with one of the supported kernels."""
    name = type(estimator).__name__
    if isinstance(estimator, Pipeline):
        raise IncompatibleCriterion(
            f"{criterion} needs a bare SVC or SVR, not a Pipeline, because it removes columns from "
            f"the kernel. Write {criterion}(SVC(...)); the searches standardise the columns."
        )
    if not isinstance(estimator, SVC | SVR):
        raise IncompatibleCriterion(
            f"{criterion} needs an SVC or SVR, or a search over their parameters, not {name}. "
            f"Write {criterion}(SVC(kernel='linear')) or {criterion}(SVR()), or use "
            f"Importances({name}(...))."
        )
    if estimator.kernel in KERNELS:
        return
    if estimator.kernel == "precomputed" or callable(estimator.kernel):
        kind = "a precomputed kernel" if estimator.kernel == "precomputed" else "a callable kernel"
        raise IncompatibleCriterion(
            f"{criterion} cannot remove a column from {kind}, which does not depend on single "
            f"columns. Write {name}(kernel='rbf'), 'poly' or 'linear'."
        )
    raise IncompatibleCriterion(
        f"{criterion} needs kernel='linear', 'poly' or 'rbf', not {estimator.kernel!r}."
    )


#: Up to this number of rows, a linear SVM is updated instead of trained again. Its Gram matrix and
#: the inverse of that matrix take at most 16 MB. With more rows, training with LIBSVM is about as
#: fast, because it uses only the support vectors.
MOST_ROWS = 1000


class WeightNorm(MachineCriterion):
    r"""Change of ‖w‖², the inverse squared margin, when a column is removed (SVM-RFE, any kernel).

    With the signed multipliers β (αᵢyᵢ, or αᵢ - αᵢ* in regression) of an SVM trained on the
    subset, and the kernel matrix :math:`K_{-j}` without column j,

    .. math:: L_j = \bigl|\, \|w\|^2 - \|w_{-j}\|^2 \bigr|, \qquad \|w_{-j}\|^2 = \beta' K_{-j}\beta

    For a linear kernel this is the squared weight of the column, and columns are eliminated in the
    same order as by scikit-learn's ``RFE``. All columns are scored at the cost of a few matrix
    products. When columns are removed, an SVM with a linear kernel and up to 1000 rows is not
    trained again. Its solution is updated to the new optimum. The update is exact up to rounding,
    whatever the ``tol`` of the estimator is.

    Parameters
    ----------
    estimator : SVC, SVR, NewtonSVC or NewtonSVR
        Model with a linear, polynomial or Gaussian kernel, or a search over its hyper-parameters
        (anything with ``best_estimator_``). The search is run once on all columns. With more than
        two classes, the norms of the binary SVMs are summed. ``SVC`` has one SVM for each pair of
        classes, and ``NewtonSVC`` has one for each class against the rest.
    order : {0, 1}, default=0
        With 0, a column is scored by removing it. With 1, it is scored by the absolute derivative
        of ‖w‖² with respect to the scale of the column.
    retrain : bool, default=False
        Whether the multipliers adapt to the change of a column. Otherwise they are fixed. With
        ``order=0``, an SVM is trained without each column (``gamma="scale"`` is then computed from
        the remaining columns). With ``order=1``, the optimality conditions are differentiated, and
        nothing is trained.
    adjusted : "auto" or bool, default="auto"
        Whether losses are corrected for chance. The SVM is then trained on the columns and on a
        copy of them whose rows are permuted. The loss of the copy is subtracted from the loss of
        each unit (a column, or a group of columns that is selected as one). "auto" corrects if a
        unit has more than one column, because losses of uninformative columns add up.

    Notes
    -----
    Without any column the norm is 0. An SVM without support vectors (a regression whose ``epsilon``
    is wider than the target) scores every column 0. Duplicate rows change nothing.

    References
    ----------
    I. Guyon, J. Weston, S. Barnhill, V. Vapnik, "Gene selection for cancer classification using
    support vector machines", Machine Learning 46, 2002.

    A. Rakotomamonjy, "Variable selection using SVM-based criteria", JMLR 3, 2003.

    Examples
    --------
    >>> from sklearn.svm import SVC
    >>> from tamis.datasets import make_xor
    >>> X, y, relevant, _ = make_xor(100, n_features=5, random_state=0)
    >>> losses = WeightNorm(SVC(gamma=0.2)).fit(X, y).loss(np.arange(5))
    >>> sorted(np.argsort(-losses)[:2]) == sorted(relevant)
    True
    """

    _takes_squared = True

    @property
    def runs_on_device(self) -> bool:  # type: ignore[override]
        """Whether norms can be computed on a GPU or other device.

        This needs a Gaussian kernel, ``order=0`` and ``retrain=False``. An SVC or SVR is still
        trained on the CPU.
        """
        kernel = getattr(inner_estimator(self.estimator), "kernel", "rbf")
        return kernel == "rbf" and self.order == 0 and not self.retrain

    def _prepare(self, estimator: Any) -> None:
        super()._prepare(estimator)
        self._shrinking: list[ShrinkingMachine] | None = None
        # a subclass may train differently, and with max_iter the solution may not be optimal
        plain = type(estimator) in (SVC, SVR) and estimator.max_iter == -1
        fixed = self.order == 0 and not self.retrain
        small = len(self._X) <= MOST_ROWS
        self._updates = plain and fixed and small and estimator.kernel == "linear"

    def _unit_losses(self, units: Units) -> Array:
        if not self._updates:
            return super()._unit_losses(units)
        if self._shrinking is None:
            from tamis.svm.shrinking import ShrinkingMachine  # compiled when it is first used

            machines = self._machines(self._train_one_step(units.columns))
            self._shrinking = [ShrinkingMachine(m, self._X) for m in machines]
        squares = [machine.squared_weights(units.columns) for machine in self._shrinking]
        total: Array = squares[0] if len(squares) == 1 else np.sum(squares, axis=0)
        return units.summed(total)

    def _train_one_step(self, columns: Subset) -> Any:
        """Train for a single iteration, only to set the rows, bounds, targets and multipliers."""
        estimator = clone(self.estimator_).set_params(max_iter=1)
        with catch_warnings():
            simplefilter("ignore", ConvergenceWarning)
            return fit_clone(estimator, self._X[:, columns], self._y, self._metadata.fit)

    def _quantity(self, machine: Multipliers, K: Array, hint: Any = None) -> float:
        if machine.coef is not None:
            return float(machine.coef @ machine.coef)
        return float(machine.beta @ K @ machine.beta)

    def _lost(self, view: MachineView, units: Units) -> Array:
        if view.machine.coef is not None:
            return units.summed(np.square(view.machine.coef))
        if units.are_columns:
            return view.columns.lost(view.machine.beta)
        return super()._lost(view, units)

    def _slopes(self, view: MachineView) -> Array:
        return norm_slopes(view, self.retrain)

    def _scored(self, lost: Array) -> Array:
        return np.abs(lost)


def norm_slopes(view: MachineView, follow: bool) -> Array:
    """Return the derivatives of β'Kβ with respect to the column scales.

    β is held fixed, or adapted to the scales if ``follow`` is True.
    """
    beta, columns = view.machine.beta, view.columns
    if view.machine.coef is not None:  # a column scaled by v adds v² times its squared weight
        return 2 * np.square(view.machine.coef)
    fixed = columns.slopes(np.outer(beta, beta))
    return fixed + 2 * (columns.K @ beta) @ multiplier_slopes(view) if follow else fixed


def multiplier_slopes(view: MachineView) -> Array:
    """Return the derivatives of β with respect to the column scales, of shape (rows, columns)."""
    machine, columns, _ = view
    system = margin_system(columns.K, machine.free)
    return followed(system, columns.slope_times(machine.beta), len(machine.beta))
