"""How accuracy and number of columns depend on what open gates and redundancy cost."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from tamis._arrays import Array, Mask, class_codes, is_int, standardised
from tamis._random import draw_seed
from tamis.contract import Trace, check_data, check_target
from tamis.exceptions import InvalidParameter, NothingSelected
from tamis.neural._gating import Folds, learn_gates, strength
from tamis.neural._training import deal, train

#: Weights of the sparsity that "auto" tries.
MUS = (0.05, 0.25, 1.0, 4.0)
#: Weights of the redundancy that "auto" tries, in multiples of mu / (2 mean phi), at which the
#: redundancy of gates that are all open outweighs what holds bounded ones open.
MULTIPLES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
#: The networks that judge the chosen columns: as one that is to predict.
JUDGE = {"solver": "lbfgs", "max_iter": 100, "decay": 1e-3}


@dataclass(frozen=True, repr=False)
class GatePath:
    """What every pair of weights came to, on rows that were held out.

    Attributes
    ----------
    mu, lam : arrays of shape (n_points,)
        Weights of sparsity and redundancy, ``lam`` rising for each ``mu``.
    accuracy : array of shape (n_points,)
        Accuracy of networks trained on the chosen columns, mean over the folds.
    error : array of shape (n_points,)
        Standard error of the accuracy, from the number of rows.
    loss : array of shape (n_points,)
        Mean loss on the same rows.
    size : array of shape (n_points,)
        Number of columns chosen, mean over the folds.
    support : array of bool, of shape (n_points, n_folds, n_features)
    """

    mu: Array
    lam: Array
    accuracy: Array
    error: Array
    loss: Array
    size: Array
    support: Mask

    @property
    def best(self) -> int:
        """Position of the greatest accuracy; of equals that of the least loss."""
        return int(np.lexsort((self.loss, -self.accuracy))[0])

    def __len__(self) -> int:
        return len(self.mu)

    def __repr__(self) -> str:
        lines = ["      mu       lam   columns   accuracy"]
        for point in zip(self.mu, self.lam, self.size, self.accuracy, strict=True):
            lines.append("{:8.3g} {:9.4g} {:9.1f} {:10.3f}".format(*point))
        return "\n".join(lines)


def gate_path(
    selector: Any,
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
    on these, which are judged on the rows left out. All folds and all ``mu`` are one computation.
    Columns are standardised over all rows, as the selector will do; no label of a row left out has
    a part in anything but its judgement. The best of many points flatters: what a selection is
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
    >>> selector = GateSelector(n_features_to_select=2, hidden=3, random_state=0)
    >>> path = gate_path(selector, X, y, mu=[1], lam=[0, 5, 50])
    >>> path.size
    array([2., 2., 2.])
    """
    if not hasattr(selector, "_rows_of_gates"):
        raise InvalidParameter(f"gate_path needs a GateSelector, not {selector!r}.")
    selector = clone(selector)
    selector._check()
    table, target = check_data(selector, X, y)
    check_target(selector, target)
    selector._size(table.shape[1])
    if not (is_int(folds) and 2 <= folds <= len(table)):
        raise InvalidParameter(f"gate_path needs folds between 2 and {len(table)}, not {folds!r}.")
    selector.random_state = draw_seed(selector.random_state)
    _, codes = class_codes(np.asarray(target))
    by_class = np.argsort(codes, kind="stable")
    mus = _numbers("mu", mu, selector.mu)
    lams = _numbers("lam", lam, selector.lam)
    return walk(selector, standardised(table)[by_class], codes[by_class], mus, lams, folds)


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


def walk(
    settings: Any,
    Z: Array,
    codes: NDArray[np.intp],
    mu: Array | None,
    lam: Array | None,
    n_folds: int,
) -> GatePath:
    """The path on standardised columns whose rows are sorted by class."""
    fold_of = deal(codes, n_folds, settings.random_state)
    held_out = fold_of == np.arange(n_folds)[:, None]
    mu = np.array(MUS) if mu is None else mu
    folds = _trained(settings, Z, codes, held_out)
    lams = rising(mu, lam, folds.mean_redundancy)
    fold, which = (part.ravel() for part in np.indices((n_folds, len(mu))))
    n_rows = 1 if settings.scope == "global" else int(codes.max()) + 1
    chosen, points = [], None
    for level in lams:
        mus, now = (np.repeat(w[which, None], n_rows, axis=1) for w in (mu, level))
        gated = learn_gates(settings, folds, fold, mus, now, start=points)
        points = gated.points
        chosen.append(
            [
                _chosen(settings, strength(gates, Z[~held_out[k]]))
                for gates, k in zip(gated.gates, fold, strict=True)
            ]
        )
    # (n_lam, n_folds, n_mu, F) -> (n_mu, n_lam, n_folds, F)
    support = np.array(chosen).reshape(len(lams), n_folds, len(mu), -1).transpose(2, 0, 1, 3)
    accuracy, loss = _judged(settings, Z, codes, held_out, support.reshape(-1, *support.shape[2:]))
    return GatePath(
        mu=np.repeat(mu, len(lams)),
        lam=lams.T.ravel(),
        accuracy=accuracy,
        error=np.sqrt(accuracy * (1 - accuracy) / len(codes)),
        loss=loss,
        size=support.sum(axis=3).mean(axis=2).ravel(),
        support=support.reshape(-1, *support.shape[2:]),
    )


def rising(mu: Array, lam: Array | None, mean_redundancy: float) -> Array:
    """For each step of the path the weight of the redundancy that goes with each ``mu``."""
    if lam is not None:
        return np.repeat(lam[:, None], len(mu), axis=1)
    closing = np.where(mu > 0, mu, 1.0) / (2 * max(mean_redundancy, 1e-3))
    return np.multiply.outer(MULTIPLES, closing)


def _trained(settings: Any, Z: Array, codes: NDArray[np.intp], held_out: Mask) -> Folds:
    """Networks that end where they end, not where they are best on the rows that judge."""
    network = settings._network()
    runs = np.repeat(held_out, settings.restarts, axis=0)
    stack = train(network, Z, codes, runs, early_stopping=False).stack
    n_classes = int(codes.max()) + 1
    phi = [settings._redundancies(Z[~out], codes[~out], n_classes) for out in held_out]
    return Folds(Z, codes, ~held_out, stack, phi)


def _chosen(settings: Any, gates: Array) -> Mask:
    """The columns that the selector would keep; none where no gate passes its threshold."""
    support = np.zeros(gates.shape[1], dtype=bool)
    trace = Trace(len(support), settings._steps(gates))
    with suppress(NothingSelected):
        support[trace[settings._choice().pick(trace)].subset] = True
    return support


def _judged(
    settings: Any, Z: Array, codes: NDArray[np.intp], held_out: Mask, support: Mask
) -> tuple[Array, Array]:
    """Accuracy and loss on held-out rows of networks trained on the chosen columns, all at once."""
    n_points, n_folds, _ = support.shape
    anywhere = support.any(axis=(0, 1))
    masks = support.reshape(n_points * n_folds, -1)[:, anywhere].astype(float)
    network = settings._network().set_params(**JUDGE)
    runs = np.tile(held_out, (n_points, 1))
    trained = train(network, Z[:, anywhere], codes, runs, masks=masks, early_stopping=False)
    rows = held_out.sum(axis=1) / held_out.size * n_folds  # folds may differ by a row
    accuracy, loss = (a.reshape(n_points, n_folds) @ rows for a in (trained.accuracy, trained.loss))
    return accuracy.round(12), loss  # equal accuracies are equal, and none is above 1
