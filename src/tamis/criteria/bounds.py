"""RadiusMargin and Span: bounds of the leave-one-out error of a support vector machine."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVR

from tamis._arrays import Array
from tamis.criteria.kernel_machines import (
    MachineCriterion,
    MachineView,
    multiplier_slopes,
    norm_slopes,
)
from tamis.exceptions import InvalidParameter
from tamis.svm.geometry import feet, margin_system, sphere_around, squared_spans
from tamis.svm.machine import Multipliers

#: Violation of the optimality conditions at which LIBSVM stops, which computes in single precision.
SOLVED = 1e-8


class RadiusMargin(MachineCriterion):
    r"""Radius-margin bound of the leave-one-out error without each column (RMB).

    With R the radius of the smallest sphere around the training rows in the space of the kernel,

    .. math:: B = R^2 \|w\|^2 \text{ (SVC)}, \qquad
        B = R^2 \sum_i (\alpha_i + \alpha_i^*) \text{ (SVR)}, \qquad L_j = B_{-j} - B

    so the column goes first without which the bound is least; losses may be negative. That bound
    is of a machine without slacks ξ. With ``soft_margin=True`` they are counted,

    .. math:: B = (R^2 + 1/C) \, (\|w\|^2 + 2C \sum_i \xi_i),

    for classes as Chung et al. (2003) have it, for regression in the same way.

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
    soft_margin : bool, default=False
        Whether slacks are counted. The second factor is then twice the dual programme, whose value
        with the multipliers kept grows by half of what ‖w‖² loses: a useful column has a large
        loss, with or without training anew.
    adjusted : "auto" or bool, default="auto"
        Whether losses are compared with chance if columns are grouped, see :class:`WeightNorm`.

    Notes
    -----
    Use ``soft_margin=True`` unless the bound as it is printed is wanted. Where classes overlap, a
    machine without a useful column has a *smaller* ‖w‖², with its multipliers kept always, trained
    anew often: of three problems each whose classes depend on a sum of 3 of 20 columns, on noisy
    copies and on a product, the printed bound finds 0, 0 and 0 of the relevant columns, trained
    anew 22, 100 and 33 %, its absolute derivative 67, 100 and 100 %, and with the slacks either
    finds them all (also in regression, and with C from 0.1 to 10). On held-out rows of eight
    real sets an ``SVC`` on the fifth of the columns that is kept is right on 65.0 % (printed), 74.4
    (trained anew), 79.2 (derivative), 79.2 and 79.0 (slacks, kept and trained anew), and on columns
    drawn at random on 74.3.

    Without ``soft_margin`` use ``retrain=True`` for regression. Otherwise the multipliers, and so
    their sum, are the same for every column: the columns of an ``SVR`` are then ranked by the
    radius alone, that is by their spread, and the target is never looked at. On problems with a
    known answer it finds it about never, and with ``retrain=True`` nearly always, if ``epsilon`` is
    not so small that most multipliers sit at C.

    Without any column the bound is 0. Copies of a row do not change the sphere, and a row of weight
    2 counts as two rows.

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

    _on_support = False

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
        # g is optimal, so that the radius changes as if it stayed (Danskin)
        widening = columns.slopes(np.diag(g) - np.outer(g, g))
        if self.soft_margin:
            # the multipliers are optimal for the dual programme, which changes as if they stayed
            shrinking = (radius2 + 1 / machine.C) * norm_slopes(view, follow=False)
            return widening * _slackened(machine, columns.K) - shrinking
        widening *= _size(machine, columns.K)
        if not machine.regression:
            return widening + radius2 * norm_slopes(view, self.retrain)
        if not self.retrain:
            return widening
        return widening + radius2 * np.sign(machine.beta) @ multiplier_slopes(view)


class Span(MachineCriterion):
    r"""Span bound of the leave-one-out error without each column (SpanB).

    With :math:`S_p` the distance of support vector p to what the other free support vectors span,

    .. math:: B = \sum_p \alpha_p S_p^2, \qquad L_j = B_{-j} - B

    (:math:`\alpha_p + \alpha_p^*` for SVR), from the system M = [[K_FF, 1], [1', 0]] of the free
    vectors F: :math:`S_p^2 = 1 / (M^{-1})_{pp}` for p in F, :math:`K_{pp} - v'M^{-1}v` with
    v = (K_Fp, 1) for a p on its bound. With ``soft_margin=True`` the slacks are added,

    .. math:: B = \sum_p (\alpha_p S_p^2 + \xi_p),

    which is the leave-one-out loss of the machine wherever the others keep their roles: yₚf(xₚ)
    falls by αₚSₚ² when p is left out.

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
    soft_margin : bool, default=False
        Whether slacks are added, those of the best intercept. They have kinks where the multipliers
        are kept, so that this needs ``order=0``.
    adjusted : "auto" or bool, default="auto"
        Whether losses are compared with chance if columns are grouped, see :class:`WeightNorm`.

    Notes
    -----
    Use ``soft_margin=True``, and for regression ``retrain=True`` with it, unless the bound as it is
    printed is wanted. With the multipliers kept only the distances change with the column, and
    these never look at the target; trained anew, what a machine on its bounds does not learn is
    not seen. Of three problems each whose classes depend on a sum of 3 of 20 columns, at C = 0.1, 1
    and 10 the printed bound finds 0, 56 and 89 % of the relevant columns, trained anew 0, 89 and
    100 %, and with the slacks either finds them all. On held-out rows of eight real
    sets an ``SVC`` on the fifth of the columns that is kept is right on 72.8 % (printed), 78.1
    (trained anew), 72.5 (derivative), 78.9 and 79.9 (slacks, kept and trained anew), and on columns
    drawn at random on 74.3.

    Without slacks the sum bounds the leave-one-out errors of a hard margin. For a soft one it is a
    bound only with the number of support vectors on their bound added, which is not done: a count
    of rows is no score of columns.

    A free vector that depends on other free ones (a copy of a row) has a span of 0, so that a row
    of weight 2 does not count as two rows: one of two copies can be left out at no cost. Where
    no other vector is free (every multiplier on its bound), the distance is that to the origin,
    :math:`S_p^2 = K_{pp}`: with a Gaussian kernel this is 1 with any columns, so that all
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

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        super()._learn(X, y, **params)
        if self.soft_margin and self.order == 1:
            raise InvalidParameter(
                "Span needs order=0 with soft_margin=True: slacks have no derivative where the "
                "multipliers are kept. Write Span(..., soft_margin=True), or leave it out."
            )

    def _prepare(self, estimator: Any) -> None:
        super()._prepare(estimator)
        # Spans jump where a multiplier leaves its bound, which LIBSVM's default tolerance does not
        # settle. The tolerance of a regression is in the units of its target.
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
        """Σ ξ, where the rows are weighed as their bounds are."""
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
    """‖w‖², or the sum of the multipliers in regression."""
    if machine.regression:
        return float(machine.sizes.sum())
    return float(machine.beta @ K @ machine.beta)


def _slackened(machine: Multipliers, K: Array) -> float:
    """‖w‖² + 2C Σ ξ, by the dual programme."""
    return 2 * machine.dual(float(machine.beta @ K @ machine.beta))
