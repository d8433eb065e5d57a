"""Colours, fonts, axes and layers that all charts share.

Every property stands in the chart itself and none in altair's ``config``, which charts inside a
concatenation must not have.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from tamis.exceptions import InvalidParameter, MissingExtra

#: Letters of a name that a chart shows; the tooltip has them all.
LETTERS = 34
FONT = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif'
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


class Palette(NamedTuple):
    """The colours of a chart.

    The four first of ``groups`` stay apart for the three dichromacies (CIE76 of at least 16); the
    rest is decoration, and no chart says anything by colour alone.
    """

    ground: str
    ink: str
    soft: str
    quiet: str
    rule: str
    accent: str
    mark: str
    groups: tuple[str, ...]


THEMES = {
    "light": Palette(
        ground="#ffffff",
        ink="#1c2126",
        soft="#5b646d",
        quiet="#858f99",
        rule="#e3e7ea",
        accent="#0b5394",
        mark="#b84d00",
        groups=("#0072b2", "#d55e00", "#009e73", "#b4578c", "#5b646d", "#8f7200"),
    ),
    # variables of the page's style sheet, which has values for light, dark and print
    "page": Palette(
        ground="var(--bg)",
        ink="var(--ink)",
        soft="var(--soft)",
        quiet="var(--quiet)",
        rule="var(--rule)",
        accent="var(--accent)",
        mark="var(--mark)",
        groups=tuple(f"var(--c{i})" for i in range(6)),
    ),
}
LIGHT, PAGE = THEMES["light"], THEMES["page"]


def palette(theme: str) -> Palette:
    """Return the colours of a theme."""
    if theme not in THEMES:
        raise InvalidParameter(f'A chart needs theme="light" or "page", not {theme!r}.')
    return THEMES[theme]


class Layer:
    """One layer of a chart, as the plain data that Vega-Lite reads.

    altair checks every property of every layer, which takes longer than drawing; it gets the
    finished chart.

    Parameters
    ----------
    rows : list of dict
    name : str
        Of the data, by which they are found in the chart.
    """

    def __init__(self, rows: list[dict[str, Any]], name: str):
        self.spec: dict[str, Any] = {"data": {"values": rows, "name": name}, "encoding": {}}

    def mark(self, kind: str, **properties: Any) -> "Layer":
        """Return the same data with a mark."""
        return self._with(mark={"type": kind, **properties})

    def text(self, name: str, colours: Palette, **options: Any) -> "Layer":
        """Return the same data with the text of a field as mark."""
        style = {"font": FONT, "fontSize": 12, "color": colours.ink, "baseline": "middle"}
        return self.mark("text", **style | options).encode(text=field(name, "nominal"))

    def encode(self, **channels: Any) -> "Layer":
        """Return the same mark with further channels."""
        return self._with(encoding={**self.spec["encoding"], **channels})

    def with_hints(self) -> "Layer":
        """Return the same mark with the field ``hint`` as tooltip and description."""
        hint = field("hint", "nominal")
        return self.encode(tooltip=hint, description=hint)

    def _with(self, **parts: Any) -> "Layer":
        other = Layer.__new__(Layer)
        other.spec = {**self.spec, **parts}
        return other


def layered(layers: Sequence[Layer], width: float, height: float) -> dict[str, Any]:
    """Return a chart of some layers, without frame."""
    parts = [dict(layer.spec) for layer in layers]
    chart: dict[str, Any] = {"width": width, "height": height, "view": {"stroke": None}}
    if all(part["data"] is parts[0]["data"] for part in parts):
        chart["data"] = parts[0]["data"]
        parts = [{k: v for k, v in part.items() if k != "data"} for part in parts]
    return {**chart, "layer": parts}


def to_altair(spec: dict[str, Any]) -> Any:
    """Return the chart as altair has it."""
    try:
        import altair
    except ImportError:
        raise MissingExtra(
            "tamis.plot needs altair, which is not installed. Write pip install 'tamis[app]'."
        ) from None
    return altair.LayerChart.from_dict(spec)


def field(name: str, kind: str = "quantitative", **options: Any) -> dict[str, Any]:
    """Return an encoding by a field, for any channel."""
    return {"field": name, "type": kind, **options}


def axis(colours: Palette, *, lines: bool = False, **options: Any) -> dict[str, Any]:
    """Return an axis in soft ink, with light lines if asked for."""
    return {
        "labelColor": colours.soft,
        "labelFont": FONT,
        "labelFontSize": 11,
        "titleColor": colours.soft,
        "titleFont": FONT,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "gridColor": colours.rule,
        "grid": lines,
        "domain": not lines,
        "domainColor": colours.quiet,
        "tickColor": colours.quiet,
        "ticks": not lines,
        "tickSize": 4,
        "labelFlush": False,
        **options,
    }


def y_channel(name: str, title: str, scale: dict[str, Any], colours: Palette, **marks: Any) -> Any:
    """Return the encoding of a field along the y axis, whose title lies on top."""
    above = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": 0}
    above |= {"titleY": -14, "titleBaseline": "bottom", "tickCount": 5}
    upright = axis(colours, lines=True, **above, **marks)
    return field(name, scale=scale, title=title, axis=upright)
