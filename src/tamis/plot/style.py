"""What all pictures share: colours, type, axes, and names that cannot do harm.

Every property stands in the chart itself and none in altair's ``config``, which charts inside a
concatenation must not have.
"""

import unicodedata
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

from tamis.exceptions import InvalidParameter, MissingExtra

#: Letters of a name that a picture shows; the hint has them all.
LETTERS = 34
FONT = 'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Liberation Sans", sans-serif'
#: Signs that turn the direction of the text around them.
TURNING = frozenset(
    map(chr, [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
)


class Palette(NamedTuple):
    """The colours of a picture.

    The four first of ``groups`` stay apart for the three dichromacies (CIE76 of at least 16); the
    rest is decoration, and no picture says anything by colour alone.
    """

    ground: str
    ink: str
    soft: str
    quiet: str
    rule: str
    accent: str
    mark: str
    groups: tuple[str, ...]


LIGHT = Palette(
    ground="#ffffff",
    ink="#1c2126",
    soft="#5b646d",
    quiet="#858f99",
    rule="#e3e7ea",
    accent="#0b5394",
    mark="#b84d00",
    groups=("#0072b2", "#d55e00", "#009e73", "#b4578c", "#5b646d", "#8f7200"),
)
#: The variables of the page's style sheet, which has values for light, dark and print.
PAGE = Palette(
    ground="var(--bg)",
    ink="var(--ink)",
    soft="var(--soft)",
    quiet="var(--quiet)",
    rule="var(--rule)",
    accent="var(--accent)",
    mark="var(--mark)",
    groups=tuple(f"var(--c{i})" for i in range(6)),
)
THEMES = {"light": LIGHT, "page": PAGE}
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")


def altair() -> Any:
    """The library that draws."""
    try:
        return import_module("altair")
    except ImportError:
        raise MissingExtra(
            "tamis.plot needs altair, which is not installed. Write pip install 'tamis[app]'."
        ) from None


def palette(theme: str) -> Palette:
    """Colours of a theme."""
    if theme not in THEMES:
        raise InvalidParameter(f'A picture needs theme="light" or "page", not {theme!r}.')
    return THEMES[theme]


def harmless(name: Any) -> str:
    """A name with its control signs shown as U+FFFD, which neither end nor turn the text.

    >>> harmless("a\\x00b"), harmless("")
    ('a�b', '(no name)')
    """
    text = "".join("\ufffd" if _controls(sign) else sign for sign in str(name))
    return text if text.strip() else "(no name)"


def _controls(sign: str) -> bool:
    return sign in TURNING or unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")


def short(name: Any, letters: int = LETTERS) -> str:
    """A name that ends after some letters.

    >>> short("length of the petal in millimetres", 12)
    'length of t…'
    """
    text = harmless(name)
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def figure(value: float | None, digits: int = 3) -> str:
    """A number of a few digits, with a real minus; a dash where there is none.

    >>> figure(0.12345), figure(-1303.4), figure(1.234e-9), figure(float("nan")), figure(0.0)
    ('0.123', '−1303', '1.2e−9', '–', '0')
    """
    if value is None or value != value:
        return "–"
    if value in (float("inf"), float("-inf")):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if value == 0:
        text = "0"
    elif 1e-4 <= size < 1e6:
        text = f"{value:.0f}" if size >= 10 ** (digits - 1) else f"{value:.{digits}g}"
    else:
        mantissa, exponent = f"{value:.1e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    return text.replace("-", "−")


class Layer:
    """One layer of a chart on its way, as the plain data that Vega-Lite reads.

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
        """The same data with a mark."""
        return self._with(mark={"type": kind, **properties})

    def encode(self, **channels: Any) -> "Layer":
        """The same mark with further channels."""
        return self._with(encoding={**self.spec["encoding"], **channels})

    def _with(self, **parts: Any) -> "Layer":
        other = Layer.__new__(Layer)
        other.spec = {**self.spec, **parts}
        return other


def layered(layers: Sequence[Layer], width: float, height: float) -> dict[str, Any]:
    """A chart of some layers, without frame."""
    parts = [dict(layer.spec) for layer in layers]
    chart: dict[str, Any] = {"width": width, "height": height, "view": {"stroke": None}}
    if all(part["data"] is parts[0]["data"] for part in parts):
        chart["data"] = parts[0]["data"]
        parts = [{k: v for k, v in part.items() if k != "data"} for part in parts]
    return {**chart, "layer": parts}


def charted(spec: dict[str, Any]) -> Any:
    """The chart as altair has it."""
    return altair().LayerChart.from_dict(spec)


def field(name: str, kind: str = "quantitative", **options: Any) -> dict[str, Any]:
    """An encoding by a field, for any channel."""
    return {"field": name, "type": kind, **options}


def axis(colours: Palette, *, lines: bool = False, **options: Any) -> dict[str, Any]:
    """An axis in soft ink, with light lines where asked for."""
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


def upright(colours: Palette, **options: Any) -> dict[str, Any]:
    """The y axis: its title lies on top, its lines are light."""
    options = {
        "titleAngle": 0,
        "titleAlign": "left",
        "titleAnchor": "end",
        "titleX": 0,
        "titleY": -14,
        "titleBaseline": "bottom",
        "tickCount": 5,
        **options,
    }
    return axis(colours, lines=True, **options)


def text(colours: Palette, **options: Any) -> dict[str, Any]:
    """Properties of written marks."""
    return {"font": FONT, "fontSize": 12, "color": colours.ink, "baseline": "middle", **options}
