"""Every public name has a docstring that describes its parameters, and every class an example."""

import dataclasses
import inspect
import re
from importlib import import_module
from pkgutil import iter_modules

import pytest

import tamis

HOMES = (
    "tamis", "tamis.criteria", "tamis.search", "tamis.choice", "tamis.svm", "tamis.neural",
    "tamis.evaluation", "tamis.datasets", "tamis.response", "tamis.table", "tamis.contract",
    "tamis.auto", "tamis.plot", "tamis.report", "tamis.recipes", "tamis.exceptions",
    "tamis_book", "tamis_book.benchmark",
)  # fmt: skip


def public():
    for home in HOMES:
        module = import_module(home)
        for name in getattr(module, "__all__", []):
            item = getattr(module, name)
            if inspect.isclass(item) or inspect.isfunction(item):
                yield pytest.param(item, id=f"{home}.{name}")


def parameters_of(item):
    """Return the parameter names of a call. Those of an abstract class belong to its subclasses."""
    if inspect.isclass(item) and (inspect.isabstract(item) or issubclass(item, Exception)):
        return []
    given = inspect.signature(item).parameters.values()
    return [p.name for p in given if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]


def described_in(doc, *sections):
    """Return the names that sections of a docstring describe. "a, b : int" describes two."""
    names = set()
    for section in sections:
        found = re.search(rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", doc, re.M | re.S)
        for line in re.findall(r"^(\S.*)$", found.group(1), re.M) if found else []:
            names |= {name.strip(" *") for name in line.split(" : ")[0].split(",")}
    return names


def undescribed(item):
    doc = inspect.getdoc(item) or ""
    # plain records describe their fields, estimators their parameters
    holder = dataclasses.is_dataclass(item) and not hasattr(item, "get_params")
    record = holder or hasattr(item, "_fields")
    sections = ("Parameters", "Attributes") if record else ("Parameters",)
    return [name for name in parameters_of(item) if name not in described_in(doc, *sections)]


@pytest.mark.parametrize("item", list(public()))
def test_every_public_name_describes_its_parameters(item):
    assert (inspect.getdoc(item) or "").strip()
    assert undescribed(item) == []


def test_an_undescribed_parameter_is_detected():
    def silent(first, second, *rest):
        """Do.

        Parameters
        ----------
        first : int
            The one.

        Returns
        -------
        second : not this one
        """

    assert undescribed(silent) == ["second"]


def public_classes():
    """Find the classes that every public package of both distributions exports."""
    packages = [module.name for module in iter_modules(tamis.__path__) if module.name[0] != "_"]
    for home in ("tamis", *(f"tamis.{name}" for name in packages), "tamis_book"):
        module = import_module(home)
        for name in getattr(module, "__all__", []):
            item = getattr(module, name)
            if inspect.isclass(item) and not issubclass(item, Exception):
                yield item


def has_example(item):
    """Return whether the class's own docstring holds a doctest, not only that of its base."""
    return ">>>" in (item.__dict__.get("__doc__") or "")


def test_every_public_class_has_an_example():
    assert sorted({i.__qualname__ for i in public_classes() if not has_example(i)}) == []


def test_a_class_without_an_example_is_rejected():
    class Documented:
        """Class with an example.

        Examples
        --------
        >>> 1 + 1
        2
        """

    class Inheriting(Documented):
        """Subclass with a description but no example."""

    class Undocumented(Documented):
        pass

    assert [has_example(i) for i in (Documented, Inheriting, Undocumented)] == [True, False, False]
