"""Criteria of support vector machines: one training, from which all columns are scored."""

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
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
    """The multipliers of a machine, the kernel of its rows, and what helps to find the quantity."""

    machine: Multipliers
    columns: ColumnKernel
    hint: Any = None


class MachineCriterion(ChanceAdjusted, ModelCriterion, BackwardCriterion):
    """Criterion that scores columns by a quantity of a support vector machine.

    The quantity is summed over the machines of an ``SVC``, one for each pair of classes. A subclass
    says what it is (:meth:`_quantity`), its derivatives by the scales of the columns
    (:meth:`_slopes`) and how a change is scored (:meth:`_scored`).
    """

    #: Whether the quantity needs the support vectors alone, and not all rows.
    _on_support: ClassVar[bool] = True
    #: Whether machines of squared losses will do, whose multipliers have no upper bounds.
    _takes_squared: ClassVar[bool] = False
    #: Kernels are of whole rows.
    takes_missing = False
    _constraints: ClassVar[Constraints] = {
        "order": integer(0, 1),
        "retrain": BOOLEAN,
        "soft_margin": BOOLEAN,
    }

    def __init__(
        self,
        estimator: Any,
        *,
        order: int = 0,
        retrain: bool = False,
        soft_margin: bool = False,
        adjusted: str | bool = "auto",
    ):
        self.estimator = estimator
        self.order = order
        self.retrain = retrain
        self.soft_margin = soft_margin
        self.adjusted = adjusted

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        self._learn_model(self._with_copies(X, y), y, self._route(params, len(X)))

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Return the memory of the kernel, None if a search over hyper-parameters comes first."""
        if is_tuner(self.estimator):
            return None
        n = float(n_samples)
        return 36 * (n**2 + n * self._n_trained(n_features))

    def _prepare(self, estimator: Any) -> None:
        self._check_machine(estimator)
        weight = self._metadata.fit.get("sample_weight")
        if isinstance(estimator, SVC) and weight is not None:
            check_weighted(type(estimator).__name__, np.asarray(self._y), weight)

    def _check_machine(self, estimator: Any) -> None:
        name, machine = type(self).__name__, type(estimator).__name__
        if not is_newton(estimator):
            check_machine(name, estimator)
        elif not self._takes_squared:
            raise IncompatibleCriterion(
                f"{name} is of machines with bounded multipliers, not of {machine}, which squares "
                f"its losses. Write {name}(SVC(...)), or WeightNorm({machine}(...))."
            )
        elif self.order == 1 and self.retrain:
            raise IncompatibleCriterion(
                f"{name} with order=1 and retrain=True needs an SVC or SVR, not {machine}. Write "
                "retrain=False, or order=0."
            )

    def loss(self, subset: Subset) -> Array:
        return self._above_chance(self._unit_losses(self._units(subset)))

    def _unit_losses(self, units: Units) -> Array:
        """Losses of units, their copies included if there are any."""
        model = self._fit_columns(units.columns)
        if units.are_columns and self.runs_on_device:
            views = self._views(model, self._training.columns(self.estimator_, units.columns))
        else:
            views = self._views(model, self._X[:, units.columns])
        if self.order == 1:  # the columns of a group are scaled together
            return np.abs(units.summed(np.sum([self._slopes(view) for view in views], axis=0)))
        views = [view._replace(hint=self._hint(view)) for view in views]
        if self.retrain:
            held = sum(self._quantity(view.machine, view.columns.K, view.hint) for view in views)
            each = range(len(units.sizes))
            left = [self._retrain_without(units, index, views) for index in each]
            return self._scored(held - np.array(left))
        return self._scored(np.sum([self._lost(view, units) for view in views], axis=0))

    @abstractmethod
    def _quantity(self, machine: Multipliers, K: Array, hint: Any = None) -> float:
        """The quantity of a machine whose rows have this kernel matrix."""

    @abstractmethod
    def _slopes(self, view: MachineView) -> Array:
        """Derivative of the quantity by the scale of each column."""

    def _scored(self, lost: Array) -> Array:
        """Losses from how much smaller the quantity is without each unit.

        Of a bound of the error the least leaves first.
        """
        return -lost

    def _hint(self, view: MachineView) -> Any:
        """What the quantity with all columns tells about those without one."""
        return None

    def _of_nothing(self, machine: Multipliers) -> float:
        """The quantity without any column: points alike have no norm, no radius and no span."""
        return 0.0

    def _lost(self, view: MachineView, units: Units) -> Array:
        """How much smaller the quantity is without each unit, the multipliers kept."""
        machine, columns, hint = view
        gone = (columns.without(units.positions(k)) for k in range(len(units.sizes)))
        left = [self._quantity(machine, K, hint) for K in gone]
        return self._quantity(machine, columns.K, hint) - np.array(left)

    def _retrain_without(self, units: Units, index: int, views: list[MachineView]) -> float:
        """The quantity of machines trained without one unit."""
        kept, gone = units.without(index), units.positions(index)
        if not len(kept):
            return sum(self._of_nothing(view.machine) for view in views)
        model = self._fit_columns(kept)
        kernel = function_of(model)
        total = 0.0
        for machine, (_, columns, hint) in zip(self._machines(model), views, strict=True):
            if self._on_support:
                columns = columns.restricted(np.flatnonzero(machine.beta))
                machine = machine.on_support()
            total += self._quantity(machine, columns.without(gone, kernel), hint)
        return total

    def _views(self, model: Any, X: Array) -> list[MachineView]:
        """Each machine of a fitted model with the kernel of its rows, or of its support vectors.

        Machines trained without a column have other support vectors, so they need all rows.
        """
        kernel = function_of(model)
        found = self._machines(model)
        if self._on_support and not (self.retrain and self.order == 0):
            found = [machine.on_support() for machine in found]
        return [
            MachineView(machine, ColumnKernel(kernel, select_rows(X, machine.rows)))
            for machine in found
        ]

    def _machines(self, model: Any) -> list[Multipliers]:
        return multipliers(model, np.asarray(self._y), self._metadata.fit.get("sample_weight"))


def check_machine(criterion: str, estimator: Any) -> None:
    """Refuse what is no SVC or SVR with a kernel whose columns can be told apart."""
    name = type(estimator).__name__
    if isinstance(estimator, Pipeline):
        raise IncompatibleCriterion(
            f"{criterion} needs an SVC or SVR itself, not a Pipeline: it follows columns through "
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
            f"{criterion} cannot take a column out of {kind}: it says nothing of single columns. "
            f"Write {name}(kernel='rbf'), 'poly' or 'linear'."
        )
    raise IncompatibleCriterion(
        f"{criterion} needs kernel='linear', 'poly' or 'rbf', not {estimator.kernel!r}."
    )


#: Most rows of a linear machine that is followed: its Gram matrix and the inverse then take 16 MB,
#: and LIBSVM, which works on the few support vectors of many rows, is not slower by much.
MOST_ROWS = 1000


class WeightNorm(MachineCriterion):
    r"""Change of ‖w‖², the inverse squared margin, when a column leaves (SVM-RFE, any kernel).

    With the signed multipliers β (αᵢyᵢ, or αᵢ - αᵢ* in regression) of one machine trained on the
    subset, and K without column j,

    .. math:: L_j = \bigl|\, \|w\|^2 - \|w_{-j}\|^2 \bigr|, \qquad \|w_{-j}\|^2 = \beta' K_{-j}\beta

    For a linear kernel this is the squared weight of the column, and the order of elimination that
    of scikit-learn's ``RFE``. All columns are scored at the cost of a few matrix products; machines
    with a linear kernel and up to 1000 rows are not trained anew when columns leave, but followed
    to the new optimum, and are exact to rounding whatever the ``tol`` of the estimator.

    Parameters
    ----------
    estimator : SVC, SVR, NewtonSVC or NewtonSVR
        With a linear, polynomial or Gaussian kernel, or a search over its hyper-parameters
        (anything with ``best_estimator_``), run once on all columns. With more than two classes
        the norms of the pairwise machines (of ``NewtonSVC`` one against the rest) are summed.
    order : {0, 1}, default=0
        0 takes the column out; 1 is the absolute derivative of ‖w‖² by the scale of the column.
    retrain : bool, default=False
        Whether the multipliers follow. At order 0 one machine is trained without each column (with
        ``gamma="scale"`` its kernel is as wide as its columns ask for); at order 1 the conditions
        of optimality are differentiated, and nothing is trained.
    adjusted : "auto" or bool, default="auto"
        Whether losses are compared with chance: the machine is trained on the columns together with
        a copy whose rows are permuted, and the loss of a unit is how far it exceeds that of its
        copy. "auto" does so if a unit has more than one column, because losses of columns that say
        nothing add up.

    Notes
    -----
    Without any column the norm is 0. A machine without support vectors (a regression whose
    ``epsilon`` is wider than the target) scores every column 0. Copies of a row change nothing.

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

    def __init__(
        self,
        estimator: Any,
        *,
        order: int = 0,
        retrain: bool = False,
        adjusted: str | bool = "auto",
    ):
        super().__init__(estimator, order=order, retrain=retrain, adjusted=adjusted)

    @property
    def runs_on_device(self) -> bool:  # type: ignore[override]
        """Norms of Gaussian kernels without a column; an SVC or SVR trains on the processor."""
        kernel = getattr(inner_estimator(self.estimator), "kernel", "rbf")
        return kernel == "rbf" and self.order == 0 and not self.retrain

    def _prepare(self, estimator: Any) -> None:
        super()._prepare(estimator)
        self._machines_left: list[ShrinkingMachine] | None = None
        self._follows = self._can_follow(estimator, len(self._X))

    def _can_follow(self, estimator: Any, n_samples: int) -> bool:
        """Whether machines are followed as columns leave, and not trained anew."""
        # a subclass may train as it likes, and a limit of steps is a wish for another machine
        plain = type(estimator) in (SVC, SVR) and estimator.max_iter == -1
        kept = self.order == 0 and not self.retrain
        return plain and kept and n_samples <= MOST_ROWS and estimator.kernel == "linear"

    def _unit_losses(self, units: Units) -> Array:
        return self._follow(units) if self._follows else super()._unit_losses(units)

    def _follow(self, units: Units) -> Array:
        """Squared weights of linear machines, from those of the last subset where there are any."""
        if self._machines_left is None:
            from tamis.svm.shrinking import ShrinkingMachine  # compiled when it is first used

            machines = self._machines(self._train_one_step(units.columns))
            self._machines_left = [ShrinkingMachine(m, self._X) for m in machines]
        squares = [machine.squared_weights(units.columns) for machine in self._machines_left]
        total: Array = squares[0] if len(squares) == 1 else np.sum(squares, axis=0)
        return units.summed(total)

    def _train_one_step(self, columns: Subset) -> Any:
        """A model after one step: its rows, bounds and targets, and multipliers to begin from."""
        begun = clone(self.estimator_).set_params(max_iter=1)
        with catch_warnings():
            simplefilter("ignore", ConvergenceWarning)
            return fit_clone(begun, self._X[:, columns], self._y, self._metadata.fit)

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
    """Derivatives of β'Kβ by the scales of the columns, with β kept or following."""
    beta, columns = view.machine.beta, view.columns
    if view.machine.coef is not None:  # scaled by v, a column adds v² times its squared weight
        return 2 * np.square(view.machine.coef)
    kept = columns.slopes(np.outer(beta, beta))
    return kept + 2 * (columns.K @ beta) @ multiplier_slopes(view) if follow else kept


def multiplier_slopes(view: MachineView) -> Array:
    """Derivatives of β by the scales of the columns: an array (row, column)."""
    machine, columns, _ = view
    system = margin_system(columns.K, machine.free)
    return followed(system, columns.slope_times(machine.beta), len(machine.beta))
