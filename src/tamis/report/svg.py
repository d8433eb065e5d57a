"""Charts as SVG inside a page: without what only Vega needs, in the colours of the style sheet."""

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from tamis.exceptions import MissingExtra

SVG = "{http://www.w3.org/2000/svg}"
#: Attributes that matter to Vega, or that the style sheet gives.
USELESS = ("role", "aria-roledescription", "aria-hidden", "class", "font-family", "pointer-events")
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
#: Attributes whose numbers are pixels; a label 0.0459 is text and stays as it is.
PIXELS = frozenset(
    {"d", "transform", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"}
)


def to_svg(chart: dict[str, Any]) -> str:
    """Return a chart as a file of its own."""
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra(
            "A report needs vl-convert-python to draw, which is not installed. Write "
            "pip install 'tamis[app]'."
        ) from None
    svg: str = vl_convert.vegalite_to_svg(chart)
    return svg


def to_inline_svg(chart: dict[str, Any], css: str) -> str:
    """Return a chart as an SVG element of a CSS class: a third of the bytes that draw the same."""
    root = ElementTree.fromstring(to_svg({**chart, "background": "transparent"}))
    box = {name: _round(root.attrib[name], 0) for name in ("width", "height")}
    _strip(root, set(_hints(chart)))
    root.attrib.clear()
    root.attrib |= {"class": css, **box, "viewBox": f"0 0 {box['width']} {box['height']}"}
    root.attrib |= {"aria-hidden": "true", "focusable": "false"}
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
    return ElementTree.tostring(root, encoding="unicode")


def to_small_svg(width: float, height: float, label: str, body: str) -> Any:
    """Return a small chart with a label for those who do not see it."""
    from markupsafe import Markup

    return Markup(
        '<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}" '
        'data-tip="{label}" fill="none">{body}</svg>'
    ).format(w=width, h=height, label=label, body=Markup(body))


def _hints(spec: Any) -> Iterator[str]:
    """Yield the tooltips of the marks of a chart."""
    if isinstance(spec, dict):
        if isinstance(spec.get("hint"), str):
            yield spec["hint"]
        spec = list(spec.values())
    if isinstance(spec, list):
        for value in spec:
            yield from _hints(value)


def _strip(element: ElementTree.Element, hints: set[str]) -> None:
    """Remove invisible elements, empty groups and useless attributes."""
    kept: list[ElementTree.Element] = []
    for child in element:
        _strip(child, hints)
        if _is_invisible(child):
            continue
        _strip_attributes(child, hints)
        kept.extend(child if child.tag == f"{SVG}g" and not child.attrib else [child])
    element[:] = kept


def _is_invisible(element: ElementTree.Element) -> bool:
    tag, attributes = element.tag.removeprefix(SVG), element.attrib
    if attributes.get("opacity") == "0" or attributes.get("display") == "none":
        return True
    if tag == "g":
        return not len(element)
    if tag == "text":
        return not (element.text or "").strip()
    if tag not in ("path", "rect"):
        return False
    drawn = {attributes.get(name, "none") for name in ("fill", "stroke")} - {"none", "transparent"}
    inherits = "fill" not in attributes and "stroke" not in attributes
    ground = attributes.get("class") in ("background", "foreground")
    return not drawn and (not inherits or ground)


def _strip_attributes(element: ElementTree.Element, hints: set[str]) -> None:
    label = element.attrib.pop("aria-label", None)
    for name in USELESS:
        element.attrib.pop(name, None)
    if label in hints:
        element.set("data-tip", str(label))
    for name, value in element.attrib.items():
        if name in PIXELS:
            element.set(name, _round(value, 1))
    if element.attrib.get("transform") in ("translate(0,0)", "translate(0, 0)"):
        del element.attrib["transform"]


def _round(text: str, digits: int) -> str:
    def short(match: re.Match[str]) -> str:
        return f"{float(match[0]):.{digits}f}".removesuffix(".0").replace("-0.0", "0")

    return NUMBER.sub(short, text)
