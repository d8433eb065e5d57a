"""How accuracy and number of columns depend on what open gates and redundancy cost."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from tamis._arrays import Array, class_codes, is_int, standardised
from tamis._random import draw_seed
from tamis.contract import check_data, check_target
from tamis.exceptions import InvalidParameter
from tamis.neural.grid import GatePath, GridWalk
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
    a part in anything but its score. The best of many points flatters: what a selection is
    worth is told by rows that the path has not seen.

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
    if not isinstance(selector, GateSelector):
        raise InvalidParameter(f"gate_path needs a GateSelector, not {selector!r}.")
    selector = clone(selector)
    selector._check()
    table, target = check_data(selector, X, y)
    check_target(selector, target)
    selector._size(table.shape[1])
    if not (is_int(folds) and 2 <= folds <= len(table)):
        raise InvalidParameter(f"gate_path needs folds between 2 and {len(table)}, not {folds!r}.")
    settings = selector._settings(draw_seed(selector.random_state))
    _, codes = class_codes(np.asarray(target))
    by_class = np.argsort(codes, kind="stable")
    return GridWalk(
        settings,
        selector._chosen,
        standardised(table)[by_class],
        codes[by_class],
        _numbers("mu", mu, selector.mu),
        _numbers("lam", lam, selector.lam),
        folds,
    ).path()


def _numbers(name: str, asked: Any, held: Any) -> Array | None:
    """A grid of one weight, None for that of "auto"."""
    if asked is None and np.ndim(held) > 0:
        raise InvalidParameter(
            f"gate_path walks along one {name} for all classes, but the selector has {held!r}. "
            f"Give gate_path {name} as numbers."
        )
    values = held if asked is None else asked
    if isinstance(values, str) and values == "auto":
        return None
    try:
        grid = np.unique(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        grid = np.empty(0)
    right = len(grid) and np.ndim(values) <= 1 and np.isfinite(grid).all() and grid[0] >= 0
    if isinstance(values, str) or not right:
        raise InvalidParameter(f"gate_path needs {name} as numbers of at least 0, not {values!r}.")
    return grid
