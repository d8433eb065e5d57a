"""Writing an object as the expression that makes it; :mod:`tamis.spec` reads it back."""

from inspect import Parameter, signature
from typing import Any

import numpy as np

from tamis.exceptions import InvalidSpec


def write(value: Any, *, strict: bool = True) -> str:
    """Constructor expression of an object, with the parameters that differ from their defaults.

    Unlike ``repr`` of an estimator it never elides. Arrays, functions and the like have no
    expression: they are refused, or with ``strict=False`` shown in angle brackets.

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
    """``Name(first, name=value)``: a first parameter without default is written without name."""
    try:
        held, usual = _parameters(value)
    except (ValueError, AttributeError):
        return _refuse(value, strict)
    words = []
    for position, (name, given) in enumerate(held.items()):
        default = usual.get(name, object())
        if default is Parameter.empty and position == 0:
            words.append(write(given, strict=strict))
        elif not _same(given, default):
            words.append(f"{name}={write(given, strict=strict)}")
    return f"{type(value).__name__}({', '.join(words)})"


def _parameters(value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters of an object and their defaults.

    XGBoost and LightGBM take further parameters as ``**kwargs``, CatBoost keeps all in a
    dictionary: defaults are then those of an object made without arguments.
    """
    declared = signature(type(value)).parameters.values()
    further = any(p.kind is p.VAR_KEYWORD for p in declared)
    usual = {p.name: p.default for p in declared if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    own = not further and all(hasattr(value, name) for name in usual)
    if own or not hasattr(value, "get_params"):
        return {name: _held(value, name) for name in usual}, usual
    try:
        usual = type(value)().get_params(deep=False)
    except TypeError:  # it needs arguments, so nothing is usual
        usual = {}
    return value.get_params(deep=False), usual


def _held(value: Any, name: str) -> Any:
    """A parameter as the object holds it; repeated splitters keep theirs in ``cvargs``."""
    inside = getattr(value, "cvargs", {})
    return inside[name] if name in inside else getattr(value, name)


def _same(held: Any, default: Any) -> bool:
    if held is default:
        return True
    if type(held) is not type(default):
        return False
    if isinstance(held, float) and held != held:  # nan is a default of some imputers
        return bool(default != default)
    return isinstance(held, bool | int | float | str | tuple) and held == default


def _refuse(value: Any, strict: bool) -> str:
    if strict:
        raise InvalidSpec(
            f"{value!r} cannot be written as an expression: only calls of known classes, numbers, "
            "strings, lists, tuples and dictionaries can. Keep such an object in Python."
        )
    return f"<{getattr(value, '__name__', type(value).__name__)}>"
