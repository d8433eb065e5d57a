"""Lazy imports of public names and of selector methods."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from sys import modules
from typing import Any


def lazy_names(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for a package, made from its stub.

    The stub ``__init__.pyi`` imports each public name from its module. Type checkers and editors
    read the stub. At run time, a name is imported when it is first used (SPEC 1 of Scientific
    Python).

    Parameters
    ----------
    package, file : str
        ``__name__`` and ``__file__`` of the package.
    """
    stub = ast.parse(Path(file).with_suffix(".pyi").read_text(encoding="utf-8"))
    homes = {
        alias.name: str(node.module)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(modules[package], name, value)
        return value

    def list_names() -> list[str]:
        return sorted({*vars(modules[package]), *homes})

    return load, list_names, sorted(homes)


#: For each registered function, a function that loads it. ``tamis/__init__`` fills the dictionary,
#: so that lower-level modules need not import higher-level ones.
_LOADERS: dict[str, Callable[[], Callable[..., Any]]] = {}


def register(name: str, load: Callable[[], Callable[..., Any]]) -> None:
    """Register a loader for a function that selectors offer as a method."""
    _LOADERS[name] = load


def extension(name: str) -> Callable[..., Any]:
    """Load a registered function."""
    return _LOADERS[name]()
