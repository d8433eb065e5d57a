"""What criteria of support vector machines share: one training, all columns scored from it."""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR

from tamis._arrays import Array, Subset
from tamis._checks import BOOLEAN, Constraints, integer
from tamis.contract import BackwardCriterion
from tamis.criteria.chance import ChanceAdjusted
from tamis.criteria.model import ModelCriterion, is_tuner
from tamis.exceptions import IncompatibleCriterion
from tamis.response.fold_models import select_rows
from tamis.response.units import Units
from tamis.svm.columns import ColumnKernel
from tamis.svm.machine import (
    KERNELS,
    Multipliers,
    check_weighted,
    function_of,
    is_newton,
    multipliers,
)


class MachineView(NamedTuple):
    """The multipliers of a machine and the kernel of its rows."""

    machine: Multipliers
    columns: ColumnKernel


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
    _constraints: ClassVar[Constraints] = {"order": integer(0, 1), "retrain": BOOLEAN}

    def __init__(
        self,
        estimator: Any,
        *,
        order: int = 0,
        retrain: bool = False,
        adjusted: str | bool = "auto",
    ):
        self.estimator = estimator
        self.order = order
        self.retrain = retrain
        self.adjusted = adjusted

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        self._learn_model(self._with_copies(X, y), y, self._routed(params, len(X)))

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
        single = len(units.sizes) == len(units.columns)
        if single and self.runs_on_device:
            views = self._views(model, self._training.columns(self.estimator_, units.columns))
        else:
            views = self._views(model, self._X[:, units.columns])
        if self.order == 1:  # the columns of a group are scaled together
            return np.abs(units.summed(np.sum([self._slopes(view) for view in views], axis=0)))
        hints = [self._hint(view) for view in views]
        if self.retrain:
            return self._scored(self._lost_anew(units, views, hints))
        pairs = zip(views, hints, strict=True)
        return self._scored(np.sum([self._lost(view, units, hint) for view, hint in pairs], axis=0))

    @abstractmethod
    def _quantity(self, machine: Multipliers, K: Array, hint: Any = None) -> float:
        """The quantity of a machine whose rows have this kernel matrix."""

    @abstractmethod
    def _slopes(self, view: MachineView) -> Array:
        """Derivative of the quantity by the scale of each column."""

    @abstractmethod
    def _scored(self, lost: Array) -> Array:
        """Losses from how much smaller the quantity is without each unit."""

    def _hint(self, view: MachineView) -> Any:
        """What the quantity with all columns tells about those without one."""
        return None

    def _of_nothing(self, machine: Multipliers) -> float:
        """The quantity without any column: points alike have no norm, no radius and no span."""
        return 0.0

    def _lost(self, view: MachineView, units: Units, hint: Any) -> Array:
        """How much smaller the quantity is without each unit, the multipliers kept."""
        machine, columns = view
        gone = (columns.without(units.positions(k)) for k in range(len(units.sizes)))
        left = [self._quantity(machine, K, hint) for K in gone]
        return self._quantity(machine, columns.K, hint) - np.array(left)

    def _lost_anew(self, units: Units, views: list[MachineView], hints: list[Any]) -> Array:
        """How much smaller the quantity is for machines trained without each unit."""
        pairs = zip(views, hints, strict=True)
        held = sum(self._quantity(v.machine, v.columns.K, hint) for v, hint in pairs)
        each = range(len(units.sizes))
        return held - np.array([self._retrained(units, k, views, hints) for k in each])

    def _retrained(
        self, units: Units, index: int, views: list[MachineView], hints: list[Any]
    ) -> float:
        """The quantity of machines trained without one unit."""
        kept, gone = units.without(index), units.positions(index)
        if not len(kept):
            return sum(self._of_nothing(view.machine) for view in views)
        model = self._fit_columns(kept)
        kernel = function_of(model)
        total = 0.0
        for machine, (_, columns), hint in zip(self._machines(model), views, hints, strict=True):
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
