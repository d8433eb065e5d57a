"""What all pages are made of: one frame, one style, one script, pictures drawn beforehand."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import date
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

import tamis
from tamis.plot.style import figure, harmless
from tamis.report.drawing import drawn

#: Pixels of a plot on a screen and on a phone: one picture shrunk to fit could not be read.
WIDE, NARROW = 700, 300
#: Pixels beside the names of columns on a phone.
BESIDE_NAMES = 170
#: Pixels around a picture with names at its left: letters of the reader's font may be wider than
#: those by which room was made.
ROOM = {"left": 20, "top": 5, "right": 5, "bottom": 5}


def rendered(template: str, made: date, scripts: Sequence[str] = (), **values: Any) -> str:
    """A page as text.

    Parameters
    ----------
    template : str
        Its name; it fills in the blocks of ``frame.html.j2``.
    made : date
    scripts : sequence of str
        What runs after the script of every page.
    **values
        ``heading``, ``lead``, ``figures``, ``sections``, ``cares``, ``command`` and ``details`` are
        those of the frame, the others the template's own.
    """
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters |= {"figure": figure, "harmless": harmless}
    body = "".join(_read(name) for name in ("frame.js", *scripts))
    script = f'(() => {{\n"use strict";\n{body}}})();\n'
    return environment.get_template(template).render(
        style=Markup(_read("frame.css")),
        script=Markup(script),
        script_hash=_hash(script),
        version=tamis.__version__,
        made=made,
        date=f"{made.day} {made:%B %Y}",
        **values,
    )


def _read(name: str) -> str:
    return (files("tamis.report") / "page" / name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    """What the policy of the page allows to run, and nothing else."""
    return b64encode(sha256(f"\n{script}".encode()).digest()).decode()


def both(chart: dict[str, Any], narrow: int = NARROW) -> Markup:
    """A chart for screens and for phones; the style sheet shows one of the two."""
    small = {**chart, "width": narrow}
    return Markup(drawn(chart, "wide") + drawn(small, "narrow"))


def beside_names(chart: dict[str, Any]) -> Markup:
    """A chart with names at its left."""
    return both({**chart, "padding": ROOM}, BESIDE_NAMES)
