"""RadiusMargin and Span: bounds of the leave-one-out error of a support vector machine."""

from typing import Any

import numpy as np

from tamis._arrays import Array
from tamis.criteria.kernel_machines import MachineCriterion, MachineView
from tamis.criteria.margins import multiplier_slopes, norm_slopes
from tamis.svm.machine import Multipliers
from tamis.svm.radius import sphere_around
from tamis.svm.span import feet, margin_system, squared_spans


class BoundCriterion(MachineCriterion):
    """Criterion that ranks by the bound without each column: the least bound leaves first."""

    def _scored(self, lost: Array) -> Array:
        return -lost


class RadiusMargin(BoundCriterion):
    r"""Radius-margin bound of the leave-one-out error without each column (RMB).

    With R the radius of the smallest sphere around the training rows in the space of the kernel,

    .. math:: B = R^2 \|w\|^2 \text{ (SVC)}, \qquad
        B = R^2 \sum_i (\alpha_i + \alpha_i^*) \text{ (SVR)}, \qquad L_j = B_{-j} - B

    so the column goes first without which the bound is least; losses may be negative.

    Parameters
    ----------
    estimator : SVC or SVR
        With a linear, polynomial or Gaussian kernel, or a search over its hyper-parameters
        (anything with ``best_estimator_``), run once on all columns. With more than two classes
        the bounds of the pairwise machines are summed, each with the sphere around its own rows.
    order : {0, 1}, default=0
        0 takes the column out; 1 is the absolute derivative of the bound by the column's scale.
    retrain : bool, default=False
        Whether the multipliers follow. At order 0 one machine is trained without each column (with
        ``gamma="scale"`` its kernel is as wide as its columns ask for); at order 1 the conditions
        of optimality are differentiated, and nothing is trained.

    Notes
    -----
    Use ``retrain=True`` for regression. Without it the multipliers, and so their sum, are the same
    for every column: the columns of an ``SVR`` are then ranked by the radius alone, that is by
    their spread, and the target is never looked at. On problems with a known answer it finds it
    about never, and with ``retrain=True`` nearly always, if ``epsilon`` is not so small that most
    multipliers sit at C.

    Without any column the bound is 0. Copies of a row do not change the sphere.

    References
    ----------
    V. Vapnik, "Statistical learning theory", Wiley, 1998.

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

    _on_support = False

    def _quantity(self, machine: Multipliers, K: Array, hint: Array | None = None) -> float:
        return sphere_around(K, hint).radius2 * _size(machine, K)

    def _hint(self, view: MachineView) -> Array:
        return sphere_around(view.columns.K).weights

    def _slopes(self, view: MachineView) -> Array:
        machine, columns = view
        radius2, g = sphere_around(columns.K)
        # g is optimal, so that the radius changes as if it stayed (Danskin)
        widening = columns.slopes(np.diag(g) - np.outer(g, g)) * _size(machine, columns.K)
        if not machine.regression:
            return widening + radius2 * norm_slopes(view, self.retrain)
        if not self.retrain:
            return widening
        return widening + radius2 * np.sign(machine.beta) @ multiplier_slopes(view)


class Span(BoundCriterion):
    r"""Span bound of the leave-one-out error without each column (SpanB).

    With :math:`S_p` the distance of support vector p to what the other free support vectors span,

    .. math:: B = \sum_p \alpha_p S_p^2, \qquad L_j = B_{-j} - B

    (:math:`\alpha_p + \alpha_p^*` for SVR), from the system M = [[K_FF, 1], [1', 0]] of the free
    vectors F: :math:`S_p^2 = 1 / (M^{-1})_{pp}` for p in F, :math:`K_{pp} - v'M^{-1}v` with
    v = (K_Fp, 1) for a p on its bound.

    Parameters
    ----------
    estimator : SVC or SVR
        With a linear, polynomial or Gaussian kernel, or a search over its hyper-parameters
        (anything with ``best_estimator_``), run once on all columns. With more than two classes
        the bounds of the pairwise machines are summed.
    order : {0, 1}, default=0
        0 takes the column out; 1 is the absolute derivative of the bound by the column's scale.
    retrain : bool, default=False
        Whether the multipliers follow. At order 0 one machine is trained without each column (with
        ``gamma="scale"`` its kernel is as wide as its columns ask for); at order 1 the conditions
        of optimality are differentiated, and nothing is trained.

    Notes
    -----
    Use ``retrain=True``. Without it only the distances change with the column, and these never look
    at the target: on problems with a known answer it is found about never.

    For a hard margin αₚSₚ² is the fall of yₚf(xₚ) when p is left out, wherever the others keep
    their roles, and the sum bounds the leave-one-out errors. For a soft margin it is a bound only
    with the number of support vectors on their bound added, which is not done here: a count of
    rows is no score of columns.

    A free vector that depends on other free ones (a copy of a row) has a span of 0. Where no other
    vector is free (every multiplier on its bound), the distance is that to the
    origin, :math:`S_p^2 = K_{pp}`: with a Gaussian kernel this is 1 with any columns, so that all
    have the score 0. Without any column the bound is 0.

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

    def _quantity(self, machine: Multipliers, K: Array, hint: Any = None) -> float:
        return float(machine.sizes @ squared_spans(K, margin_system(K, machine.free)))

    def _slopes(self, view: MachineView) -> Array:
        machine, columns = view
        system = margin_system(columns.K, machine.free)
        e = feet(columns.K, system)
        slopes = columns.slopes((e * machine.sizes) @ e.T)
        if not self.retrain:
            return slopes
        grown = np.sign(machine.beta) * squared_spans(columns.K, system)
        return slopes + grown @ multiplier_slopes(view)


def _size(machine: Multipliers, K: Array) -> float:
    """‖w‖², or the sum of the multipliers in regression."""
    if machine.regression:
        return float(machine.sizes.sum())
    return float(machine.beta @ K @ machine.beta)
