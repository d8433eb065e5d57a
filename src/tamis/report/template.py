"""Rendering of reports: templates, style sheet, script, and charts as SVG."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

import tamis
from tamis._format import format_count, format_name, format_number, format_p_value, mask_control
from tamis.report.page import Page
from tamis.report.svg import to_inline_svg

#: Width in pixels of a plot on a screen, and on a phone, where a wide chart would be unreadable.
WIDE, NARROW = 700, 300
#: Width in pixels of a plot with names at its left, on a screen and on a phone.
BARS, BESIDE_NAMES = 420, 170
#: Padding in pixels around a chart with names at its left, in case the reader's font is wider.
ROOM = {"left": 20, "top": 5, "right": 5, "bottom": 5}


def render(page: Page, context: dict[str, Any]) -> str:
    """Return a page as HTML text."""
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if hasattr(value, "__html__") else mask_control(value),
    )
    environment.globals |= {
        "count": format_count,
        "name": name_cell,
        "number": format_number,
        "p_value": format_p_value,
        "plain": format_name,
    }
    script = f'(() => {{\n"use strict";\n{_read("explorer.js")}{_read("page.js")}}})();\n'
    return environment.get_template(page.template).render(
        page=page,
        links=[],  # filled by each section
        style=Markup(_read("page.css")),
        script=Markup(script),
        # the only script that the page's security policy allows
        script_hash=b64encode(sha256(f"\n{script}".encode()).digest()).decode(),
        version=tamis.__version__,
        date=f"{page.made.day} {page.made:%B %Y}",
        **{"names": (), "data": "", **context},
    )


def _read(name: str) -> str:
    package, _, file = name.rpartition(":")
    return (files(package or "tamis.report") / "assets" / file).read_text(encoding="utf-8")


def name_cell(name: object, *notes: str) -> Markup:
    """Return a name as HTML, isolated from the surrounding text direction, with notes below it."""
    below = (Markup("<small>{}</small>").format(mask_control(note)) for note in notes if note)
    return Markup("<bdi>{}</bdi>").format(format_name(name)) + Markup("").join(below)


def draw(chart: dict[str, Any], narrow: int = NARROW) -> Markup:
    """Draw a chart twice, for screens and for phones. The style sheet shows one of the two."""
    small = {**chart, "width": narrow}
    return Markup(to_inline_svg(chart, "wide") + to_inline_svg(small, "narrow"))


def draw_with_names(chart: dict[str, Any]) -> Markup:
    """Draw a chart that has names at its left."""
    return draw({**chart, "padding": ROOM}, BESIDE_NAMES)


def draw_map(chart: dict[str, Any]) -> Markup:
    """Draw a chart of squares. It scrolls on phones."""
    return Markup(to_inline_svg(chart, "map"))
