"""Random bad tables.

A table is made in three steps: random numbers and a target, a few defects of the columns, and the
container. All random numbers come from the generator of the case.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Draw = np.random.Generator


class Table(NamedTuple):
    """A table, its target, its weights, and words that describe it."""

    X: Any
    y: Any
    sample_weight: Any
    finite: bool
    words: tuple[str, ...]


def table(draw: Draw, kinds: frozenset[str]) -> Table:
    """Return a table with some defects, mostly with a target of the given kinds."""
    shape, n, d = _shape(draw)
    X = draw.normal(size=(n, d))
    target, y = _target(draw, X, kinds)
    words = [shape, target]
    for _ in range(draw.integers(0, 4)):
        word, X = _drawn(draw, HARMS)(draw, X)
        words.append(word)
    finite = bool(np.isfinite(X).all())
    word, held = _drawn(draw, CONTAINERS)(draw, X)
    words.append(word)
    weight = None
    if draw.random() < 0.15:
        weight = draw.integers(0, 3, size=n).astype(float) * draw.choice([0.0, 1.0, 1e-200, 1e200])
        words.append("weights")
    return Table(held, y, weight, finite, tuple(words))


def _drawn(draw: Draw, these: "Ways") -> Callable[..., Any]:
    """Return a random function of the list by weight, which also returns its name."""
    weights = np.array([weight for weight, *_ in these], dtype=float)
    _, word, make = these[draw.choice(len(these), p=weights / weights.sum())]
    return lambda *given: (word, make(*given))


def _shape(draw: Draw) -> tuple[str, int, int]:
    kind = draw.choice(["plain", "plain", "plain", "wide", "few rows", "few columns"])
    n, d = {
        "plain": (draw.integers(12, 41), draw.integers(3, 9)),
        "wide": (draw.integers(6, 15), draw.integers(20, 41)),
        "few rows": (draw.integers(2, 6), draw.integers(2, 6)),
        "few columns": (draw.integers(12, 31), draw.integers(1, 3)),
    }[str(kind)]
    return f"{n}x{d}", int(n), int(d)


# -- targets ---------------------------------------------------------------------------------------


def _two(draw: Draw, X: Any) -> Any:
    """Return two classes that depend on the first column, with noise."""
    y = (X[:, 0] + 0.5 * draw.normal(size=len(X)) > 0).astype(int)
    y[:2] = 0, 1
    return y


def _three(draw: Draw, X: Any) -> Any:
    return np.digitize(X[:, 0] + 0.3 * draw.normal(size=len(X)), [-0.5, 0.5])


def _one_row_class(draw: Draw, X: Any) -> Any:
    y = _two(draw, X)
    y[draw.integers(len(y))] = 7
    return y


def _rare(draw: Draw, X: Any) -> Any:
    """Return a class of two rows, which is missing from some folds."""
    y = np.zeros(len(X), dtype=int)
    y[draw.choice(len(y), size=2, replace=False)] = 1
    return y


def _real(draw: Draw, X: Any) -> Any:
    return X[:, 0] + 0.1 * draw.normal(size=len(X))


def _names(draw: Draw, X: Any) -> Any:
    return np.array(["", "b\x1b[31m", "ü\u202e"])[_three(draw, X)]


def _with_nan(draw: Draw, X: Any) -> Any:
    y = _real(draw, X)
    y[draw.integers(len(y))] = draw.choice([np.nan, np.inf])
    return y


Ways = list[tuple[int, str, Callable[[Draw, Any], Any]]]

CLASSES: Ways = [
    (8, "two classes", _two),
    (4, "three classes", _three),
    (2, "class of one row", _one_row_class),
    (2, "rare class", _rare),
    (1, "few integers", lambda draw, X: draw.integers(0, 5, size=len(X))),
    (1, "boolean target", lambda draw, X: _two(draw, X).astype(bool)),
    (1, "text target", _names),
    (1, "object target", lambda draw, X: _names(draw, X).astype(object)),
    (1, "random target", lambda draw, X: draw.integers(0, 2, size=len(X))),
    (1, "target as a list", lambda draw, X: _two(draw, X).tolist()),
]
NUMBERS: Ways = [
    (8, "real target", _real),
    (2, "constant target", lambda draw, X: np.full(len(X), 3.0)),
    (1, "many integers", lambda draw, X: draw.permutation(len(X)) * 3),
    (1, "binary target", _two),
    (1, "huge target", lambda draw, X: 1e200 * _real(draw, X)),
    (1, "tiny target", lambda draw, X: 1e-200 * _real(draw, X)),
    (1, "far target", lambda draw, X: 1e12 + _real(draw, X)),
    (1, "float32 target", lambda draw, X: _real(draw, X).astype(np.float32)),
]
ODD: Ways = [
    (1, "one class", lambda draw, X: np.ones(len(X), dtype=int)),
    (1, "mixed target", lambda draw, X: np.array([*_two(draw, X)[:-1], "a"], dtype=object)),
    (1, "target of nan", _with_nan),
    (1, "no target", lambda draw, X: None),
    (1, "target too short", lambda draw, X: _two(draw, X)[:-1]),
    (1, "target of two columns", lambda draw, X: np.column_stack([_two(draw, X)] * 2)),
]
#: Targets for the kinds of target that a method can use.
TARGETS = {
    frozenset({"classification"}): CLASSES,
    frozenset({"regression"}): NUMBERS,
    frozenset({"classification", "regression"}): CLASSES + NUMBERS,
}
#: Share of targets of the wrong kind.
FOREIGN = 0.15


def _target(draw: Draw, X: Any, kinds: frozenset[str]) -> tuple[str, Any]:
    """Return a target that the method can use, or sometimes any other."""
    fitting = TARGETS.get(kinds, CLASSES)
    ways = CLASSES + NUMBERS + ODD if draw.random() < FOREIGN else fitting
    return _drawn(draw, ways)(draw, X)


# -- defects of the columns ------------------------------------------------------------------------


def _some(draw: Draw, X: Any) -> Any:
    """Return some columns, at least one."""
    return np.flatnonzero(draw.random(X.shape[1]) < 0.4) if draw.random() < 0.7 else [0]


def _changed(draw: Draw, X: Any, change: Callable[[Any], Any]) -> Any:
    X = X.copy()
    some = _some(draw, X)
    with np.errstate(all="ignore"):
        X[:, some] = change(X[:, some])
    return X


def _scaled(factor: float) -> Callable[[Draw, Any], Any]:
    return lambda draw, X: _changed(draw, X, lambda some: some * factor)


def _twice(draw: Draw, X: Any) -> Any:
    X = X.copy()
    X[:, draw.integers(X.shape[1])] = X[:, draw.integers(X.shape[1])]
    return X


def _sum_of_others(draw: Draw, X: Any) -> Any:
    X = X.copy()
    with np.errstate(all="ignore"):
        X[:, -1] = X[:, :-1].sum(axis=1)
    return X


def _same_rows(draw: Draw, X: Any) -> Any:
    return X[draw.integers(0, max(1, len(X) // 3), size=len(X))]


def _outlier(draw: Draw, X: Any) -> Any:
    X = X.copy()
    X[draw.integers(len(X)), draw.integers(X.shape[1])] = draw.choice([1e6, 1e150, -1e300])
    return X


def _gap(value: float) -> Callable[[Draw, Any], Any]:
    def holed(draw: Draw, X: Any) -> Any:
        X = X.copy()
        X[draw.integers(len(X)), draw.integers(X.shape[1])] = value
        return X

    return holed


def _constant_but_one(draw: Draw, X: Any) -> Any:
    X = X.copy()
    X[1:, draw.integers(X.shape[1])] = 0.0
    return X


HARMS: Ways = [
    (6, "constant", lambda draw, X: _changed(draw, X, lambda some: 0 * np.nan_to_num(some) + 2.5)),
    (1, "all constant", lambda draw, X: np.ones_like(X)),
    (1, "constant but one", _constant_but_one),
    (6, "copy", _twice),
    (1, "all copies", lambda draw, X: np.repeat(X[:, :1], X.shape[1], axis=1)),
    (1, "sum of others", _sum_of_others),
    (1, "huge", _scaled(1e200)),
    (1, "tiny", _scaled(1e-200)),
    (1, "denormal", _scaled(1e-312)),
    (1, "largest", lambda draw, X: _changed(draw, X, lambda some: np.sign(some) * 1.7e308)),
    (3, "million", _scaled(1e6)),
    (1, "far off", lambda draw, X: _changed(draw, X, lambda some: some + 1e10)),
    (4, "binary", lambda draw, X: _changed(draw, X, lambda some: (some > 0) * 1.0)),
    (1, "same rows", _same_rows),
    (1, "outlier", _outlier),
    (1, "nan", _gap(np.nan)),
    (1, "inf", _gap(np.inf)),
    (1, "rounded", lambda draw, X: _changed(draw, X, np.round)),
]


# -- containers ------------------------------------------------------------------------------------

HOSTILE = ("", "a,b", "\x1b[31m", "\u202e", "'", '"', "=1+1", "\n", "x" * 300, "-", "é", "0")


def _named(draw: Draw, X: Any) -> Any:
    import pandas as pd

    names = [f"{draw.choice(HOSTILE)}{k if k else ''}" for k in range(X.shape[1])]
    return pd.DataFrame(X, columns=names)


def _polars(draw: Draw, X: Any) -> Any:
    import polars

    return polars.DataFrame({f"c{k}": X[:, k] for k in range(X.shape[1])})


def _sparse(draw: Draw, X: Any) -> Any:
    from scipy.sparse import csr_array

    return csr_array(X)


def _read_only(draw: Draw, X: Any) -> Any:
    X = X.copy()
    X.flags.writeable = False
    return X


def _integers(draw: Draw, X: Any) -> Any:
    return np.clip(np.nan_to_num(X), -1e8, 1e8).astype(int) * 3


def _float32(draw: Draw, X: Any) -> Any:
    with np.errstate(over="ignore"):
        return X.astype(np.float32)


def _strided(draw: Draw, X: Any) -> Any:
    return np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]


CONTAINERS: Ways = [
    (40, "array", lambda draw, X: X),
    (3, "column-major", lambda draw, X: np.asfortranarray(X)),
    (1, "strided", _strided),
    (1, "read-only", _read_only),
    (1, "float32", _float32),
    (1, "integers", _integers),
    (1, "booleans", lambda draw, X: X > 0),
    (1, "objects", lambda draw, X: X.astype(object)),
    (1, "texts", lambda draw, X: np.where(X > 0, "a", "b")),
    (1, "lists", lambda draw, X: X.tolist()),
    (1, "frame", _named),
    (1, "polars", _polars),
    (1, "sparse", _sparse),
    (1, "no rows", lambda draw, X: X[:0]),
    (1, "no columns", lambda draw, X: X[:, :0]),
    (1, "one column as a vector", lambda draw, X: X[:, 0]),
]
