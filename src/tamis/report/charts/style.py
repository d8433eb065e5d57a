"""Colours, fonts, axes and layers of all charts.

Properties are set in the chart itself. Altair's ``config`` is not used, because concatenated charts
do not allow it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from tamis.exceptions import InvalidParameter, MissingExtra, NotEnoughMemory
from tamis.report.svg import to_svg

#: Number of characters of a name shown in a chart. The tooltip has the full name.
LETTERS = 34
FONT = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif'
#: Margins of a chart in a notebook or a file, whose fonts may be wider than those of the layout.
PADDING = {"left": 24, "right": 24, "top": 5, "bottom": 5}
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


class Palette(NamedTuple):
    """Colours of a chart.

    The first four of ``groups`` can be distinguished with any of the three kinds of colour
    blindness (CIE76 distance of at least 16). No chart conveys information by colour alone.
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
    # CSS variables of the page, with different values for light mode, dark mode and print
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
    """A layer of a chart, as a Vega-Lite specification.

    Only the finished chart is passed to altair, because altair's check of every property in every
    layer would take longer than drawing.

    Parameters
    ----------
    rows : list of dict
        The data, one dictionary per row.
    """

    def __init__(self, rows: list[dict[str, Any]], name: str):
        self.spec: dict[str, Any] = {"data": {"values": rows, "name": name}, "encoding": {}}

    def mark(self, kind: str, **properties: Any) -> "Layer":
        """Return a layer with the same data and the given mark."""
        return self._with(mark={"type": kind, **properties})

    def text(self, name: str, colours: Palette, **options: Any) -> "Layer":
        """Return a layer with the same data that shows a field as text."""
        style = {"font": FONT, "fontSize": 12, "color": colours.ink, "baseline": "middle"}
        return self.mark("text", **style | options).encode(text=field(name, "nominal"))

    def encode(self, **channels: Any) -> "Layer":
        """Return a layer with the same mark and further channels."""
        return self._with(encoding={**self.spec["encoding"], **channels})

    def with_hints(self) -> "Layer":
        """Return the same layer with the field ``hint`` as tooltip and description."""
        hint = field("hint", "nominal")
        return self.encode(tooltip=hint, description=hint)

    def _with(self, **parts: Any) -> "Layer":
        other = Layer.__new__(Layer)
        other.spec = {**self.spec, **parts}
        return other


def layered(layers: Sequence[Layer], width: float, height: float) -> dict[str, Any]:
    """Return a chart that consists of the given layers, without a frame."""
    parts = [dict(layer.spec) for layer in layers]
    chart: dict[str, Any] = {"width": width, "height": height, "view": {"stroke": None}}
    if all(part["data"] is parts[0]["data"] for part in parts):
        chart["data"] = parts[0]["data"]
        parts = [{k: v for k, v in part.items() if k != "data"} for part in parts]
    return {**chart, "layer": parts}


def to_altair(spec: dict[str, Any]) -> Any:
    """Return the specification as an altair chart that a notebook shows without a network."""
    try:
        import altair
    except ImportError:
        raise MissingExtra(
            "tamis.plot needs altair, which is not installed. Run pip install 'tamis[app]'."
        ) from None
    return _notebook_chart(altair).from_dict(spec)


@cache
def _notebook_chart(altair: Any) -> Any:
    """Return the class of the charts. It is made here, because altair is optional."""

    class NotebookChart(altair.LayerChart):
        """A chart that is shown as SVG, because altair's default display loads scripts."""

        def __reduce__(self) -> tuple[Any, ...]:
            return to_altair, (self.to_dict(validate=False),)

        def _repr_mimebundle_(self, *args: Any, **options: Any) -> Any:
            if altair.renderers.active != "default":  # the user has chosen how charts are shown
                return super()._repr_mimebundle_(*args, **options)
            try:
                return {"image/svg+xml": to_svg({"padding": PADDING, **self.to_dict()})}
            except (MissingExtra, NotEnoughMemory):
                return super()._repr_mimebundle_(*args, **options)

    return NotebookChart


def field(name: str, kind: str = "quantitative", **options: Any) -> dict[str, Any]:
    """Return the encoding of a field, which can be used for any channel."""
    return {"field": name, "type": kind, **options}


def axis(colours: Palette, *, lines: bool = False, **options: Any) -> dict[str, Any]:
    """Return the properties of an axis, with grid lines if ``lines``."""
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
    """Return the encoding of a field along the y axis, with the title above the axis."""
    above = {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end", "titleX": 0}
    above |= {"titleY": -14, "titleBaseline": "bottom", "tickCount": 5}
    upright = axis(colours, lines=True, **above, **marks)
    return field(name, scale=scale, title=title, axis=upright)
