"""Parser of expressions, which may contain only literals and calls of known names."""

import ast
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from tamis._format import did_you_mean, format_count, format_name
from tamis.exceptions import InvalidSpec
from tamis.spec import vocabulary
from tamis.spec.safety import GRIDS, check_argument, check_grids, check_one_word
from tamis.spec.vocabulary import Make, parameters_of

LEGAL = (
    "an expression may hold calls of known classes, numbers, strings, True, False, None, lists, "
    "tuples and dictionaries"
)
#: Greatest number of characters of a name that a message quotes.
MOST_SHOWN = 60


def parse(text: str, *, also: Mapping[str, Make] | None = None) -> Any:
    """Return the object that an expression describes. This is the inverse of :func:`write`.

    Parameters
    ----------
    text : str
        The expression. It may contain only literals and calls of known names.
    also : dict of str to callable, optional
        Additional names that may be called, with their functions.

    Raises
    ------
    InvalidSpec
        If the text contains an unknown name, a wrong argument or other syntax. The message states
        the position and suggests a correction.

    Examples
    --------
    >>> from tamis.spec import parse, write
    >>> search = parse("Forward(CrossValidated(SVC(C=10)), n_features_to_select=3)")
    >>> search.criterion.estimator.C
    10
    >>> write(search)
    'Forward(CrossValidated(SVC(C=10)), n_features_to_select=3)'
    """
    if not isinstance(text, str):
        raise InvalidSpec(f"parse needs the text of an expression, not {text!r}.")
    return _Reader(text.strip(), also or {}).read()


@dataclass
class _Reader:
    """Parses a single expression."""

    text: str
    also: Mapping[str, Make]

    def read(self) -> Any:
        try:
            # Python warns about invalid escapes in strings
            with warnings.catch_warnings(action="ignore"):
                tree = ast.parse(self.text, mode="eval")
            return self._object(tree.body)
        except SyntaxError as error:
            raise self._unreadable(error) from None
        except (RecursionError, MemoryError):
            raise InvalidSpec("The expression is nested too deeply to be read.") from None
        except ValueError as error:
            if isinstance(error, InvalidSpec):
                raise
            raise InvalidSpec(f"The expression cannot be read: {error}.") from None

    def _object(self, node: ast.expr) -> Any:
        match node:
            case ast.Call(func=ast.Name(id=name)):
                return self._call(node, name)
            case ast.Constant(value=bool() | int() | float() | str() | None as value):
                return value
            case ast.UnaryOp(
                op=ast.USub() | ast.UAdd() as sign, operand=ast.Constant(value=number)
            ):
                if isinstance(number, int | float) and not isinstance(number, bool):
                    return -number if isinstance(sign, ast.USub) else number
            case ast.List(elts=items):
                return [self._object(item) for item in items]
            case ast.Tuple(elts=items):
                return tuple(self._object(item) for item in items)
            case ast.Dict(keys=keys, values=values) if None not in keys:
                return self._dictionary(node, [key for key in keys if key is not None], values)
            case ast.Name(id=name):
                self._find(name, node)  # report an unknown name first
                raise InvalidSpec(f"{name} {self._at(node)} is not called. Write {name}().")
        raise InvalidSpec(
            f"{self._quoted(node)} {self._at(node)} cannot be read: {LEGAL}, nothing else."
        )

    def _dictionary(self, node: ast.expr, keys: list[ast.expr], values: list[ast.expr]) -> Any:
        made = [self._object(key) for key in keys]
        try:
            return {key: self._object(value) for key, value in zip(made, values, strict=True)}
        except TypeError:
            raise InvalidSpec(
                f"The dictionary {self._quoted(node)} {self._at(node)} needs numbers, strings or "
                "tuples as keys."
            ) from None

    def _call(self, node: ast.Call, name: str) -> Any:
        make = self._find(name, node)
        given = self._arguments(node, name)
        _check(make, name, self._at(node), len(node.args), given)
        arguments = [self._object(argument) for argument in node.args]
        options = {word: self._object(value) for word, value in given.items()}
        for word, value in (*zip(_positional(make), arguments, strict=False), *options.items()):
            check_argument(word, value, at := f"of {name} {self._at(node)}")
            if vocabulary.GUESTS.get(name) == "lightgbm":
                check_one_word(word, value, at)
        try:
            made = make(*arguments, **options)
            if any(hasattr(made, word) for word in GRIDS):
                check_grids(made, f"of {name} {self._at(node)}")
            return made
        except (InvalidSpec, RecursionError, MemoryError):
            raise
        except Exception as error:  # constructors of other libraries may raise any kind of error
            raise InvalidSpec(
                f"{name} {self._at(node)} cannot be made: {str(error).rstrip('.')}."
            ) from error

    def _arguments(self, node: ast.Call, name: str) -> dict[str, ast.expr]:
        """Return the arguments of a call by parameter name."""
        given: dict[str, ast.expr] = {}
        for starred in node.args:
            if isinstance(starred, ast.Starred):
                raise InvalidSpec(
                    f"{self._quoted(starred)} {self._at(starred)} cannot be read: give {name} its "
                    "arguments one by one."
                )
        for keyword in node.keywords:
            if keyword.arg is None or keyword.arg in given:
                raise InvalidSpec(
                    f"{self._quoted(keyword)} {self._at(keyword)} cannot be read: give {name} each "
                    "parameter once, as name=value."
                )
            given[keyword.arg] = keyword.value
        return given

    def _find(self, name: str, node: ast.expr) -> Make:
        """Return the class or function that a name refers to."""
        make = self.also.get(name) or vocabulary.find(name)
        if make is not None:
            return make
        if name in vocabulary.GUESTS:
            library = vocabulary.library_of(name)
            raise InvalidSpec(
                f"{name} {self._at(node)} needs {library}, which is not installed. Write pip "
                f"install {library}."
            )
        near = did_you_mean(name, [*self.also, *vocabulary.all_names()])
        raise InvalidSpec(
            "No criterion, search or scikit-learn estimator is called "
            f"{format_name(name, MOST_SHOWN)} {self._at(node)}."
            f"{near} `tamis methods` lists all names."
        )

    def _at(self, node: ast.expr | ast.keyword) -> str:
        line = self.text.split("\n")[node.lineno - 1].encode()
        return self._position(node.lineno, len(line[: node.col_offset].decode()) + 1)

    def _position(self, line: int, character: int) -> str:
        where = f"at character {character}"
        return f"{where} of line {line}" if "\n" in self.text else where

    def _quoted(self, node: ast.expr | ast.keyword) -> str:
        words = " ".join((ast.get_source_segment(self.text, node) or "this").split())
        return repr(words if len(words) <= 40 else words[:37] + "...")

    def _unreadable(self, error: SyntaxError) -> InvalidSpec:
        if not self.text:
            return InvalidSpec('The expression is empty. Write one such as Forward(Scatter("J3")).')
        where = self._position(error.lineno or 1, error.offset or 1)
        shown = self.text if len(self.text) <= 60 else self.text[:57] + "..."
        return InvalidSpec(
            f"{shown!r} is not an expression: {error.msg} {where}. Write one such as "
            'Forward(Scatter("J3"), n_features_to_select=5).'
        )


def _check(make: Make, name: str, where: str, n_given: int, given: Iterable[str]) -> None:
    """Raise an error if arguments do not match the signature, and list the parameters."""
    parameters = parameters_of(make)
    positional = _positional(make)
    named = [*positional, *(p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY)]
    kinds = {p.kind for p in parameters}
    offer = f"Its parameters are {', '.join(named)}." if named else "It takes no parameters."
    for word in given:
        if word not in named:
            near = did_you_mean(word, named)
            shown = format_name(word, MOST_SHOWN)
            raise InvalidSpec(f"{name} {where} has no parameter {shown!r}.{near} {offer}")
    if n_given > len(positional) and Parameter.VAR_POSITIONAL not in kinds:
        most = format_count(len(positional), "argument") if positional else "no argument"
        raise InvalidSpec(
            f"{name} {where} takes {most} without a name, not {n_given}. "
            f"{offer} Write the others as name=value."
        )
    if twice := set(positional[:n_given]) & set(given):
        raise InvalidSpec(f"{name} {where} is given {min(twice)} twice. {offer}")
    required = [p.name for p in parameters if p.default is p.empty and p.name in named]
    if missing := [p for p in required if p not in {*positional[:n_given], *given}]:
        raise InvalidSpec(f"{name} {where} needs {' and '.join(missing)}. {offer}")


def _positional(make: Make) -> list[str]:
    """Return the names of a callable's positional parameters."""
    return [p.name for p in parameters_of(make) if p.kind is Parameter.POSITIONAL_OR_KEYWORD]
