"""Declaration and validation of the allowed values of parameters.

A class declares the allowed values of its parameters::

    class Threshold(Choice):
        _constraints = {"minimum": number()}

:func:`check_parameters` checks the declarations of a class and of all its bases.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from tamis._arrays import is_int, is_real
from tamis._format import did_you_mean, join_words
from tamis.exceptions import InvalidParameter


@dataclass(frozen=True)
class Constraint:
    """Set of values that a parameter may have.

    Parameters
    ----------
    words : tuple of str
        Descriptions of the alternatives, such as ("a number above 0", "None").
    accepts : function
        Returns whether a value is allowed.
    names : tuple of str, default=()
        Allowed strings. The error for a misspelt value suggests a similar one.
    """

    words: tuple[str, ...]
    accepts: Callable[[Any], bool]
    names: tuple[str, ...] = ()

    def __or__(self, other: "Constraint") -> "Constraint":
        """Return a constraint that accepts every value that either of the two accepts.

        >>> (number(above=0) | one_of("scale", "auto") | NONE).words
        ('a number above 0', "'scale'", "'auto'", 'None')
        """
        return Constraint(
            self.words + other.words,
            lambda value: self.accepts(value) or other.accepts(value),
            self.names + other.names,
        )

    def refuse(self, owner: str, name: str, value: Any) -> NoReturn:
        """Raise the error for a value that is not allowed."""
        near = did_you_mean(value, self.names) if isinstance(value, str) else ""
        raise InvalidParameter(
            f"{owner} needs {name} to be {join_words(self.words, 'or')}, got {value!r}.{near}"
        )


def number(
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> Constraint:
    """Return a constraint for finite numbers, with optional limits.

    >>> number(above=0, below=1).words, number(least=0).words, number(above=0, most=1).words
    (('a number in (0, 1)',), ('a number of at least 0',), ('a number in (0, 1]',))
    """
    limits = least, above, most, below
    return Constraint((_range(*limits),), _within(is_real, *limits))


def integer(least: int | None = None, most: int | None = None) -> Constraint:
    """Return a constraint for ints, with optional limits.

    >>> integer(1).words, integer(1, 5).words
    (('an int of at least 1',), ('an int from 1 to 5',))
    """
    words = "an int"
    if least is not None:
        words += f" of at least {least}" if most is None else f" from {least} to {most}"
    elif most is not None:
        words += f" of at most {most}"
    return Constraint((words,), _within(is_int, least, None, most, None))


def one_of(*values: Any) -> Constraint:
    """Return a constraint that accepts only the given values.

    >>> one_of("a", 3).accepts("a"), one_of("a", 3).accepts("b"), one_of(0, 1).accepts(False)
    (True, False, False)
    """
    return Constraint(
        tuple(repr(value) for value in values),
        lambda value: any(type(value) is type(one) and value == one for one in values),
        tuple(value for value in values if isinstance(value, str)),
    )


def several(each: Constraint, words: str, length: int | None = None) -> Constraint:
    """Return a constraint for a list, tuple or 1-dimensional array of allowed items.

    The list must have the given length, or at least one item if ``length`` is None.

    >>> several(number(above=0), "a pair of them", 2).accepts((1.0, 0.1))
    True
    """

    def accepts(value: Any) -> bool:
        listed = hasattr(value, "__len__") and not isinstance(value, str | Mapping)
        if not listed or getattr(value, "ndim", 1) != 1:
            return False
        return len(value) == (length or len(value) or 1) and all(map(each.accepts, value))

    return Constraint((words,), accepts)


def instance_of(kind: type | tuple[type, ...], words: str) -> Constraint:
    """Return a constraint for instances of a class. ``words`` describes them in messages."""
    return Constraint((words,), lambda value: isinstance(value, kind))


#: Constraint that accepts True and False.
BOOLEAN = Constraint(("True", "False"), lambda value: isinstance(value, bool | np.bool_))
#: Constraint that accepts None.
NONE = Constraint(("None",), lambda value: value is None)
#: Constraint for numbers of processes.
JOBS = Constraint(
    ("an int other than 0", "None"), lambda value: value is None or (is_int(value) and value != 0)
)
#: Constraint that accepts a function or any other callable.
FUNCTION = Constraint(("a function",), callable)

Constraints = Mapping[str, Constraint]


def check_parameters(owner: Any) -> None:
    """Raise InvalidParameter for a parameter value that the class of an object does not allow.

    The allowed values are in the class attribute ``_constraints``. The constraints of a subclass
    take precedence over those of its base classes. ``n_jobs`` is checked in all classes that have
    it.
    """
    declared: dict[str, Constraint] = {"n_jobs": JOBS} if hasattr(owner, "n_jobs") else {}
    for kind in type(owner).__mro__:
        declared = {**vars(kind).get("_constraints", {}), **declared}
    check_values(
        type(owner).__name__, declared, **{name: getattr(owner, name) for name in declared}
    )


def check_values(owner: str, constraints: Constraints, **values: Any) -> None:
    """Raise InvalidParameter for an argument that its constraint does not allow.

    >>> check_values("Probes", {"n_rounds": integer(1)}, n_rounds=0)
    Traceback (most recent call last):
    ...
    tamis.exceptions.InvalidParameter: Probes needs n_rounds to be an int of at least 1, got 0.
    """
    for name, constraint in constraints.items():
        if not constraint.accepts(values[name]):
            constraint.refuse(owner, name, values[name])


def _within(
    is_kind: Callable[[Any], bool],
    least: float | None,
    above: float | None,
    most: float | None,
    below: float | None,
) -> Callable[[Any], bool]:
    def accepts(value: Any) -> bool:
        return (
            is_kind(value)
            and (least is None or value >= least)
            and (above is None or value > above)
            and (most is None or value <= most)
            and (below is None or value < below)
        )

    return accepts


def _range(
    least: float | None, above: float | None, most: float | None, below: float | None
) -> str:
    low, high = (above if least is None else least), (below if most is None else most)
    if low is not None and high is not None:
        left, right = "(" if least is None else "[", ")" if most is None else "]"
        return f"a number in {left}{low:g}, {high:g}{right}"
    if low is not None:
        return f"a number {'above' if least is None else 'of at least'} {low:g}"
    if high is not None:
        return f"a number {'below' if most is None else 'of at most'} {high:g}"
    return "a finite number"
