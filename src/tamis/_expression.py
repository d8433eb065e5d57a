"""Conversion of objects to expressions, which :mod:`tamis.spec` can read back."""

from functools import cache
from inspect import Parameter, signature
from typing import Any

import numpy as np

from tamis.exceptions import InvalidSpec


def write(value: Any, *, strict: bool = True) -> str:
    """Return the expression that constructs an object. Default parameters are omitted.

    Unlike the ``repr`` of an estimator, the expression is never shortened. Arrays, functions and
    similar objects have no expression. With ``strict`` they raise an error, otherwise they are
    shown in angle brackets.

    >>> from sklearn.svm import SVC
    >>> write(SVC(C=10, kernel="linear"))
    "SVC(C=10, kernel='linear')"
    """
    if value is None or isinstance(value, bool | int | float | str):
        return _literal(value, strict)
    if isinstance(value, np.generic):
        return write(value.item(), strict=strict)
    if isinstance(value, list | tuple | dict):
        return _container(value, strict)
    if isinstance(value, type) or callable(value) or isinstance(value, np.ndarray):
        return _refuse(value, strict)
    return _call(value, strict)


def _literal(value: Any, strict: bool) -> str:
    if isinstance(value, float) and not np.isfinite(value):
        return _refuse(value, strict)
    return repr(value)


def _container(value: Any, strict: bool) -> str:
    if isinstance(value, dict):
        pairs = (f"{write(k, strict=strict)}: {write(v, strict=strict)}" for k, v in value.items())
        return "{" + ", ".join(pairs) + "}"
    inside = ", ".join(write(item, strict=strict) for item in value)
    if isinstance(value, list):
        return f"[{inside}]"
    return f"({inside},)" if len(value) == 1 else f"({inside})"


def _call(value: Any, strict: bool) -> str:
    """Return ``Name(first, name=value)``. The first parameter is unnamed if it has no default."""
    try:
        parameters = _parameters(type(value))  # type: ignore[arg-type]  # classes have a hash
    except ValueError:
        return _refuse(value, strict)
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    # scikit-learn's repeated splitters store parameters in cvargs
    held = {**vars(value), **getattr(value, "cvargs", {})} if hasattr(value, "__dict__") else {}
    missing = [p for p in named if p.name not in held and not hasattr(value, p.name)]
    # XGBoost and LightGBM accept further parameters as **kwargs; CatBoost stores all parameters in
    # a dictionary
    if hasattr(value, "get_params"):
        if missing or Parameter.VAR_KEYWORD in [p.kind for p in parameters]:
            return _call_by_keywords(value, strict)
    elif missing:
        return _refuse(value, strict)
    words = []
    for position, parameter in enumerate(named):
        name, default = parameter.name, parameter.default
        given = held[name] if name in held else getattr(value, name)
        if default is Parameter.empty and position == 0:
            words.append(write(given, strict=strict))
        elif given is not default and not _same(given, default):
            words.append(f"{name}={write(given, strict=strict)}")
    return f"{type(value).__name__}({', '.join(words)})"


@cache
def _parameters(cls: type) -> tuple[Parameter, ...]:
    """Return the parameters of a class. Reading a signature takes longer than writing a call."""
    return tuple(signature(cls).parameters.values())


def _call_by_keywords(value: Any, strict: bool) -> str:
    """Return ``Name(name=value)`` with the parameters that differ from an object with defaults."""
    try:
        usual = type(value)().get_params(deep=False)
    except TypeError:  # the class needs arguments, so there is no object with defaults
        usual = {}
    held = value.get_params(deep=False)
    words = [
        f"{name}={write(given, strict=strict)}"
        for name, given in held.items()
        if name not in usual or (given is not usual[name] and not _same(given, usual[name]))
    ]
    return f"{type(value).__name__}({', '.join(words)})"


def _same(held: Any, default: Any) -> bool:
    if type(held) is not type(default):
        return False
    if isinstance(held, float) and held != held:  # NaN, which is the default of some imputers
        return bool(default != default)
    return isinstance(held, bool | int | float | str | tuple) and held == default


def _refuse(value: Any, strict: bool) -> str:
    if strict:
        raise InvalidSpec(
            f"{value!r} cannot be written as an expression: only calls of known classes, numbers, "
            "strings, lists, tuples and dictionaries can. Keep such an object in Python."
        )
    return f"<{getattr(value, '__name__', type(value).__name__)}>"
