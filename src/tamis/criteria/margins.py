"""WeightNorm: how the margin of a support vector machine with any kernel depends on a column."""

from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, SVR

from tamis._arrays import Array, Subset
from tamis.criteria.kernel_machines import MachineCriterion, MachineView
from tamis.criteria.model import inner_estimator
from tamis.response.fold_models import fit_clone
from tamis.response.units import Units
from tamis.svm.geometry import followed, margin_system
from tamis.svm.machine import Multipliers

if TYPE_CHECKING:
    from tamis.svm.shrinking import ShrinkingMachine

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
        return self._followed(units) if self._follows else super()._unit_losses(units)

    def _followed(self, units: Units) -> Array:
        """Squared weights of linear machines, from those of the last subset where there are any."""
        if self._machines_left is None:
            from tamis.svm.shrinking import ShrinkingMachine  # compiled when it is first used

            machines = self._machines(self._begun(units.columns))
            self._machines_left = [ShrinkingMachine(m, self._X) for m in machines]
        squares = [machine.squared_weights(units.columns) for machine in self._machines_left]
        total: Array = squares[0] if len(squares) == 1 else np.sum(squares, axis=0)
        return units.summed(total)

    def _begun(self, columns: Subset) -> Any:
        """A model after one step: its rows, bounds and targets, and multipliers to begin from."""
        begun = clone(self.estimator_).set_params(max_iter=1)
        with catch_warnings():
            simplefilter("ignore", ConvergenceWarning)
            return fit_clone(begun, self._X[:, columns], self._y, self._metadata.fit)

    def _quantity(self, machine: Multipliers, K: Array, hint: Any = None) -> float:
        if machine.coef is not None:
            return float(machine.coef @ machine.coef)
        return float(machine.beta @ K @ machine.beta)

    def _lost(self, view: MachineView, units: Units, hint: Any) -> Array:
        if view.machine.coef is not None:
            return units.summed(np.square(view.machine.coef))
        single = len(units.sizes) == len(units.columns)
        if single:
            return view.columns.lost(view.machine.beta)
        return super()._lost(view, units, hint)

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
    machine, columns = view
    system = margin_system(columns.K, machine.free)
    return followed(system, columns.slope_times(machine.beta), len(machine.beta))
