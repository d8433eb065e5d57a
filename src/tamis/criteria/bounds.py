"""RadiusMargin and Span: bounds on the leave-one-out error of a support vector machine."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVR

from tamis._arrays import Array
from tamis._checks import BOOLEAN, Constraints
from tamis.criteria.kernel_machines import (
    MachineCriterion,
    MachineView,
    multiplier_slopes,
    norm_slopes,
)
from tamis.exceptions import InvalidParameter
from tamis.svm.geometry import feet, margin_system, sphere_around, squared_spans
from tamis.svm.machine import Multipliers

#: Largest ``tol`` with which ``Span`` trains an SVM. For regression it is multiplied by the
#: standard deviation of the target.
SOLVED = 1e-8


@dataclass(eq=False, repr=False, kw_only=True)
class RadiusMargin(MachineCriterion):
    r"""Change of the radius-margin bound on the leave-one-out error when a column is removed (RMB).

    With R the radius of the smallest sphere around the training rows in the kernel space,

    .. math:: B = R^2 \|w\|^2 \text{ (SVC)}, \qquad
        B = R^2 \sum_i (\alpha_i + \alpha_i^*) \text{ (SVR)}, \qquad L_j = B_{-j} - B

    A search first removes the column whose removal makes the bound smallest. Losses may be
    negative. This bound holds for an SVM without slacks ξ. ``soft_margin=True`` includes the
    slacks,

    .. math:: B = (R^2 + 1/C) \, (\|w\|^2 + 2C \sum_i \xi_i),

    as in Chung et al. (2003) for classification, and in the same way for regression.

    Parameters
    ----------
    estimator : SVC or SVR
        Model with a linear, polynomial or Gaussian kernel, or a search over its hyper-parameters
        (anything with ``best_estimator_``). The search is run once on all columns. With more than
        two classes, the bounds of the pairwise SVMs are summed. Each bound uses the sphere around
        the rows of its two classes.
    order : {0, 1}, default=0
        With 0, a column is scored by removing it. With 1, it is scored by the absolute derivative
        of the bound with respect to the scale of the column.
    retrain : bool, default=False
        Whether the multipliers adapt to the change of a column. Otherwise they are fixed. With
        ``order=0``, an SVM is trained without each column (``gamma="scale"`` is then computed from
        the remaining columns). With ``order=1``, the optimality conditions are differentiated, and
        nothing is trained.
    soft_margin : bool, default=False
        Whether slacks are included. The second factor is then twice the dual objective. With fixed
        multipliers this objective grows by half the decrease of ‖w‖², so a useful column has a
        large loss, whether or not the SVM is trained again.
    adjusted : "auto" or bool, default="auto"
        Whether losses of grouped columns are corrected for chance, see :class:`WeightNorm`.

    Notes
    -----
    Use ``soft_margin=True`` unless you need the published bound. If classes overlap, removing a
    useful column makes ‖w‖² *smaller*: always if the multipliers are fixed, often if the SVM is
    trained again. The published bound then ranks useful columns last.

    Without ``soft_margin``, use ``retrain=True`` for regression. Otherwise the multipliers and
    their sum are the same for every column. The columns of an ``SVR`` are then ranked by the radius
    alone. This is a ranking by spread, and the target is ignored. Choose ``epsilon`` large enough
    that most multipliers are below C.

    Without any column the bound is 0. Duplicate rows do not change the sphere, and a row of weight
    2 is equivalent to two rows.

    References
    ----------
    V. Vapnik, "Statistical learning theory", Wiley, 1998.

    K.-M. Chung, W.-C. Kao, C.-L. Sun, L.-L. Wang, C.-J. Lin, "Radius margin bounds for support
    vector machines with the RBF kernel", Neural Computation 15, 2003.

    A. Rakotomamonjy, "Variable selection using SVM-based criteria", JMLR 3, 2003; "Analysis of SVM
    regression bounds for variable ranking", Neurocomputing 70, 2007.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> from tamis.datasets import make_exponential
    >>> X, y, relevant, _ = make_exponential(50, n_features=5, random_state=0)
    >>> criterion = RadiusMargin(SVR(C=8, gamma=0.25), retrain=True).fit(X / X.std(axis=0), y)
    >>> losses = criterion.loss(np.arange(5))
    >>> sorted(np.argsort(-losses)[:2]) == sorted(relevant)
    True
    """

    soft_margin: bool = False

    _on_support = False
    _constraints: ClassVar[Constraints] = {"soft_margin": BOOLEAN}

    def _quantity(self, machine: Multipliers, K: Array, hint: Array | None = None) -> float:
        radius2 = sphere_around(K, hint).radius2
        if not self.soft_margin:
            return radius2 * _size(machine, K)
        return (radius2 + 1 / machine.C) * _slackened(machine, K)

    def _of_nothing(self, machine: Multipliers) -> float:
        if not self.soft_margin:
            return 0.0
        return 2 * machine.slack(np.zeros(len(machine.rows))) / machine.C

    def _hint(self, view: MachineView) -> Array:
        return sphere_around(view.columns.K).weights

    def _slopes(self, view: MachineView) -> Array:
        machine, columns, _ = view
        radius2, g = sphere_around(columns.K)
        # g is optimal, so the derivative of the radius is the one for fixed g (Danskin)
        radius_slopes = columns.slopes(np.diag(g) - np.outer(g, g))
        if self.soft_margin:
            # the multipliers are optimal for the dual problem, so they too can be held fixed
            norms = (radius2 + 1 / machine.C) * norm_slopes(view, follow=False)
            return radius_slopes * _slackened(machine, columns.K) - norms
        slopes = radius_slopes * _size(machine, columns.K)
        if not machine.regression:
            return slopes + radius2 * norm_slopes(view, self.retrain)
        if not self.retrain:
            return slopes
        return slopes + radius2 * np.sign(machine.beta) @ multiplier_slopes(view)


@dataclass(eq=False, repr=False, kw_only=True)
class Span(MachineCriterion):
    r"""Change of the span bound on the leave-one-out error when a column is removed (SpanB).

    With :math:`S_p` the distance of support vector p to the span of the other free support vectors
    (whose multipliers are not on their bounds),

    .. math:: B = \sum_p \alpha_p S_p^2, \qquad L_j = B_{-j} - B

    For SVR, :math:`\alpha_p + \alpha_p^*` replaces :math:`\alpha_p`. The distances follow from the
    system M = [[K_FF, 1], [1', 0]] of the free vectors F: :math:`S_p^2 = 1 / (M^{-1})_{pp}` for p
    in F, and :math:`S_p^2 = K_{pp} - v'M^{-1}v` with v = (K_Fp, 1) for a p whose multiplier is on
    its bound. ``soft_margin=True`` adds the slacks,

    .. math:: B = \sum_p (\alpha_p S_p^2 + \xi_p).

    If the multipliers of all other support vectors stay free or on their bounds, yₚf(xₚ) decreases
    by αₚSₚ² when p is left out. This bound is then the leave-one-out hinge loss of the SVM.

    Parameters
    ----------
    estimator : SVC or SVR
        Model with a linear, polynomial or Gaussian kernel, or a search over its hyper-parameters
        (anything with ``best_estimator_``). The search is run once on all columns. With more than
        two classes the bounds of the pairwise SVMs are summed.
    order : {0, 1}, default=0
        With 0, a column is scored by removing it. With 1, it is scored by the absolute derivative
        of the bound with respect to the scale of the column.
    retrain : bool, default=False
        Whether the multipliers adapt to the change of a column. Otherwise they are fixed. With
        ``order=0``, an SVM is trained without each column (``gamma="scale"`` is then computed from
        the remaining columns). With ``order=1``, the optimality conditions are differentiated, and
        nothing is trained.
    soft_margin : bool, default=False
        Whether slacks are added. They are computed for the intercept that minimises their sum.
        Slacks are not differentiable if the multipliers are fixed, so this needs ``order=0``.
    adjusted : "auto" or bool, default="auto"
        Whether losses of grouped columns are corrected for chance, see :class:`WeightNorm`.

    Notes
    -----
    Use ``soft_margin=True`` (for regression together with ``retrain=True``) unless you need the
    published bound. With fixed multipliers the published bound changes only through the distances,
    which ignore the target. With retraining it ignores the errors of rows whose multipliers are on
    their bounds.

    Without slacks the sum bounds the leave-one-out error of a hard-margin SVM. For a soft margin
    the number of support vectors on their bounds would have to be added. That count does not
    measure the quality of columns, so it is left out.

    A free support vector that depends on other free ones, such as a duplicate row, has a span of 0.
    Leaving out one of two equal rows costs nothing. A row of weight 2 is therefore not equivalent
    to two rows. If no other support vector is free (every multiplier is on its bound), the distance
    is measured to the origin, :math:`S_p^2 = K_{pp}`. With a Gaussian kernel this distance is
    always 1, so all columns score 0. Without any column the bound is 0.

    References
    ----------
    O. Chapelle, V. Vapnik, O. Bousquet, S. Mukherjee, "Choosing multiple parameters for support
    vector machines", Machine Learning 46, 2002.

    M.-W. Chang, C.-J. Lin, "Leave-one-out bounds for support vector regression model selection",
    Neural Computation 17, 2005.

    Examples
    --------
    >>> from sklearn.svm import SVR
    >>> from tamis.datasets import make_exponential
    >>> X, y, relevant, _ = make_exponential(50, n_features=5, random_state=0)
    >>> criterion = Span(SVR(C=8, gamma=0.25), retrain=True).fit(X / X.std(axis=0), y)
    >>> losses = criterion.loss(np.arange(5))
    >>> sorted(np.argsort(-losses)[:2]) == sorted(relevant)
    True
    """

    soft_margin: bool = False

    _constraints: ClassVar[Constraints] = {"soft_margin": BOOLEAN}

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        super()._learn(X, y, **params)
        if self.soft_margin and self.order == 1:
            raise InvalidParameter(
                "Span needs order=0 with soft_margin=True, because slacks have no derivative for "
                "fixed multipliers. Write Span(..., soft_margin=True), or leave soft_margin out."
            )

    def _prepare(self, estimator: Any) -> None:
        super()._prepare(estimator)
        # Spans jump when a multiplier leaves its bound, and LIBSVM's default tolerance is too
        # coarse to decide that. The tolerance of a regression is in the units of its target.
        spread = float(np.std(np.asarray(self._y, float))) if isinstance(estimator, SVR) else 1.0
        estimator.tol = min(estimator.tol, SOLVED * (spread or 1.0))

    @property
    def _on_support(self) -> bool:  # type: ignore[override]
        return not self.soft_margin  # any row can have a slack

    def _quantity(self, machine: Multipliers, K: Array, hint: Any = None) -> float:
        spans = float(machine.sizes @ squared_spans(K, margin_system(K, machine.free)))
        return spans + self._slack(machine, K @ machine.beta)

    def _of_nothing(self, machine: Multipliers) -> float:
        return self._slack(machine, np.zeros(len(machine.rows)))

    def _slack(self, machine: Multipliers, outputs: Array) -> float:
        """Return the sum of the slacks ξ, or 0 without ``soft_margin``.

        A row is weighted in proportion to the bound of its multiplier.
        """
        return machine.slack(outputs) / machine.C if self.soft_margin else 0.0

    def _slopes(self, view: MachineView) -> Array:
        machine, columns, _ = view
        system = margin_system(columns.K, machine.free)
        e = feet(columns.K, system)
        slopes = columns.slopes((e * machine.sizes) @ e.T)
        if not self.retrain:
            return slopes
        grown = np.sign(machine.beta) * squared_spans(columns.K, system)
        return slopes + grown @ multiplier_slopes(view)


def _size(machine: Multipliers, K: Array) -> float:
    """Return ‖w‖² for classification, or the sum of the multipliers for regression."""
    if machine.regression:
        return float(machine.sizes.sum())
    return float(machine.beta @ K @ machine.beta)


def _slackened(machine: Multipliers, K: Array) -> float:
    """Return ‖w‖² + 2C Σ ξ, computed from the dual objective."""
    return 2 * machine.dual(float(machine.beta @ K @ machine.beta))
