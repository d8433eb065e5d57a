"""Layers: no module below ``__init__`` imports a module of tamis by name."""

import ast
from pathlib import Path

import pytest

import tamis

HOME = Path(tamis.__file__).parent


def find_string_imports(source):
    """Return the modules of tamis that a source imports by name."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    named = [
        call.args[0].value
        for call in calls
        if getattr(call.func, "id", getattr(call.func, "attr", ""))
        in ("import_module", "__import__")
        and call.args
        and isinstance(call.args[0], ast.Constant)
    ]
    return [name for name in named if name.split(".")[0] == "tamis"]


def test_no_module_is_imported_by_name():
    modules = [path for path in HOME.rglob("*.py") if path.name != "__init__.py"]
    assert len(modules) > 100
    found = {str(path): find_string_imports(path.read_text()) for path in modules}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source",
    [
        'from importlib import import_module\nimport_module("tamis.report")',
        'import importlib\nimportlib.import_module("tamis.report").report()',
        '__import__("tamis")',
    ],
)
def test_an_import_by_name_is_detected(source):
    assert find_string_imports(source)
