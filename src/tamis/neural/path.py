"""Cross-validated accuracy of gates over a grid of sparsity and redundancy weights."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from tamis._arrays import Array, class_codes, standardised
from tamis._checks import Constraints, check_parameters, check_values, instance_of, integer
from tamis._seeds import draw_seed
from tamis.blocks.inputs import check_data
from tamis.contract.criterion import check_target
from tamis.exceptions import InvalidParameter
from tamis.neural.gate_runs import WEIGHTS, GateGrid, GatePath
from tamis.neural.selector import GateSelector


def gate_path(
    selector: GateSelector,
    X: ArrayLike,
    y: ArrayLike,
    *,
    mu: ArrayLike | None = None,
    lam: ArrayLike | None = None,
    folds: int = 3,
) -> GatePath:
    """Cross-validate a gate selector over a grid of sparsity and redundancy weights.

    Each fold takes four steps:

    1. train networks on the training rows;
    2. for each ``mu``, learn gates with increasing ``lam``, each starting from the previous result;
    3. select columns as the selector's ``n_features_to_select`` specifies;
    4. train new networks on the selected columns and score them on the held-out rows.

    All folds and all ``mu`` are trained in one batch. Columns are standardised over all rows, as in
    the selector. The labels of held-out rows are used only for the score. The score of the best
    grid point is optimistic, because the point was chosen by this score. Estimate the error of a
    selection on other held-out rows.

    Parameters
    ----------
    selector : GateSelector
        Selector to cross-validate. It is not changed.
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
        Class labels.
    mu, lam : arrays of numbers, optional
        Weights to try. By default, the selector's weights are used. If these are "auto", the grid
        of ``mu`` is from 0.05 to 4, and the grid of ``lam`` is from 0 to 8 mu / (2 mean phi). Here,
        mean phi is the mean redundancy over all pairs of columns.
    folds : int, default=3
        Number of folds.

    Returns
    -------
    GatePath
        Accuracy, loss and selected columns at each grid point.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.neural import GateSelector, gate_path
    >>> X, y = load_iris(return_X_y=True)
    >>> selector = GateSelector(n_features_to_select=2, random_state=0)
    >>> path = gate_path(selector, X, y, mu=[1], lam=[0, 5, 50])
    >>> path.size
    array([2., 2., 2.])
    """
    asked: Constraints = {"selector": instance_of(GateSelector, "a GateSelector")}
    check_values("gate_path", asked, selector=selector)
    selector = clone(selector)
    check_parameters(selector)
    selector._check()
    table, target = check_data(selector, X, y)
    check_target(selector, target)
    selector._units = selector._grouping(table)
    selector._size(selector._units.n_units)
    check_values("gate_path", {"folds": integer(2, len(table))}, folds=folds)
    seed = draw_seed(selector.random_state)
    settings = selector._settings(seed, selector._network_seed(seed))
    _, codes = class_codes(np.asarray(target))
    by_class = np.argsort(codes, kind="stable")
    return GateGrid(
        settings,
        selector._chosen,
        standardised(table)[by_class],
        codes[by_class],
        _read_grid("mu", mu, selector.mu),
        _read_grid("lam", lam, selector.lam),
        folds,
    ).path()


def _read_grid(name: str, given: Any, held: Any) -> Array | None:
    """Return the sorted values of a weight to try, or None for "auto"."""
    if given is None and np.ndim(held) > 0:
        raise InvalidParameter(
            f"gate_path needs one {name} for all classes, but the selector has {held!r}. "
            f"Pass {name} to gate_path as one number or a list of numbers."
        )
    values = held if given is None else given
    check_values("gate_path", {name: WEIGHTS}, **{name: values})
    return None if isinstance(values, str) else np.unique(np.asarray(values, dtype=float))
