"""Accuracy and number of columns by the weights of open gates and redundancy."""

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
    """Accuracy and number of columns over a grid of weights, by cross-validation.

    In every fold networks are trained, gates learned for each ``mu`` along rising ``lam``, each
    from where the one before ended, columns chosen as the selector would, and new networks trained
    on these, which are scored on the rows left out. All folds and all ``mu`` are one computation.
    Columns are standardised over all rows, as the selector will do; no label of a row left out has
    a part in anything but its score. The score of the best of many points is optimistic: measure a
    selection on rows that the path has not seen.

    Parameters
    ----------
    selector : GateSelector
    X, y : the table and its classes
    mu, lam : arrays of numbers, optional
        By default the numbers that the selector has; in place of "auto", 0.05 to 4 for ``mu``
        and for ``lam`` up to eight times mu / (2 mean phi).
    folds : int, default=3

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
    """Numbers of one weight, None for those of "auto"."""
    if given is None and np.ndim(held) > 0:
        raise InvalidParameter(
            f"gate_path walks along one {name} for all classes, but the selector has {held!r}. "
            f"Give gate_path {name} as numbers."
        )
    values = held if given is None else given
    check_values("gate_path", {name: WEIGHTS}, **{name: values})
    return None if isinstance(values, str) else np.unique(np.asarray(values, dtype=float))
