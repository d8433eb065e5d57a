"""The template of all pages: sections of text, charts and tables, one style and one script."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

import tamis
from tamis._format import format_name, mask_control
from tamis.report.page import Page
from tamis.report.sheets import Sheet
from tamis.report.svg import to_inline_svg

#: Pixels of a plot on a screen and on a phone: one chart shrunk to fit could not be read.
WIDE, NARROW = 700, 300
#: Pixels of a chart with names at its left, and of the plot next to them on a phone.
BARS, BESIDE_NAMES = 420, 170
#: Pixels around a chart with names at its left: letters of the reader's font may be wider than
#: those by which room was made.
ROOM = {"left": 20, "top": 5, "right": 5, "bottom": 5}

#: The kind of a block ("p", "note", "h3", "figure", "table", "details", ...) and its content.
Block = tuple[str, Any]


class Section(NamedTuple):
    """A part of a page: its anchor, the text that links to it, its heading and its blocks."""

    anchor: str
    link: str
    heading: str
    blocks: Sequence[Block | None]


class Content(NamedTuple):
    """What a page shows besides the facts that all pages have.

    ``figures`` are the few numbers under the heading: what, how much, and a note. ``names`` can be
    copied; ``data`` are what the script reads.
    """

    heading: str
    lead: str
    kicker: Sequence[str]
    figures: Sequence[tuple[str, str, str]]
    sections: Sequence[Section | None]
    names: Sequence[str] = ()
    data: str = ""


def render(page: Page, content: Content) -> str:
    """Return a page as text."""
    environment = Environment(
        loader=FunctionLoader(_read),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if hasattr(value, "__html__") else mask_control(value),
    )
    script = f'(() => {{\n"use strict";\n{_read("page.js")}}})();\n'
    return environment.get_template("page.html.j2").render(
        content._asdict(),
        sections=[section for section in content.sections if section is not None],
        page=page,
        style=Markup(_read("page.css")),
        script=Markup(script),
        # what the policy of the page allows to run, and nothing else
        script_hash=b64encode(sha256(f"\n{script}".encode()).digest()).decode(),
        version=tamis.__version__,
        date=f"{page.made.day} {page.made:%B %Y}",
    )


def _read(name: str) -> str:
    return (files("tamis.report") / "assets" / name).read_text(encoding="utf-8")


def figure(css: str, svg: Markup, caption: str, label: str = "") -> Block:
    """Return a chart with its caption; a label names one that scrolls."""
    return "figure", {"css": css, "svg": svg, "caption": caption, "label": label}


def table(
    heads: Sequence[tuple[str, str]],
    rows: Sequence[tuple[str, Sequence[Any]]],
    css: str = "plain",
    label: str = "",
) -> Block:
    """Return a table: titles with the CSS classes of their columns, and rows with their own."""
    return "table", {"heads": heads, "rows": rows, "css": css, "label": label}


def sheet_table(
    sheet: Sheet, marks: Sequence[str] = (), css: str = "plain", label: str = ""
) -> Block:
    """Return a sheet as a table; texts are names, and rows may have CSS classes."""
    heads = [(head, "num" * sheet.is_numeric(j)) for j, head in enumerate(sheet.headings)]
    rows = [
        [
            name_cell(cell) if cell and not css else cell
            for cell, (_, css) in zip(row, heads, strict=True)
        ]
        for row in sheet.texts()
    ]
    marks = marks or [""] * len(rows)
    return table(heads, list(zip(marks, rows, strict=True)), css, label)


def details(summary: str, *blocks: Block | None, open: bool = False) -> Block:
    """Return blocks that are shown on demand."""
    return "details", {"summary": summary, "blocks": blocks, "open": open}


def name_cell(name: object, *notes: str) -> Markup:
    """Return a name that keeps its own direction of writing, with notes below."""
    below = (Markup("<small>{}</small>").format(mask_control(note)) for note in notes if note)
    return Markup("<bdi>{}</bdi>").format(format_name(name)) + Markup("").join(below)


def draw(chart: dict[str, Any], narrow: int = NARROW) -> Markup:
    """Draw a chart for screens and for phones; the style sheet shows one of the two."""
    small = {**chart, "width": narrow}
    return Markup(to_inline_svg(chart, "wide") + to_inline_svg(small, "narrow"))


def draw_with_names(chart: dict[str, Any]) -> Markup:
    """Draw a chart with names at its left."""
    return draw({**chart, "padding": ROOM}, BESIDE_NAMES)


def draw_map(chart: dict[str, Any]) -> Markup:
    """Draw a chart of squares, which scrolls on phones."""
    return Markup(to_inline_svg(chart, "map"))
