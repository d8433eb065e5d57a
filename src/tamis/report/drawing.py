"""Charts as SVG inside a page: without what only Vega needs, in the colours of the style sheet."""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any
from xml.etree import ElementTree

from tamis.exceptions import MissingExtra

SVG = "http://www.w3.org/2000/svg"
#: Attributes that matter to Vega, or that the style sheet gives.
USELESS = ("role", "aria-roledescription", "aria-hidden", "class", "font-family", "pointer-events")
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
#: Attributes whose numbers are pixels; a label 0.0459 is text and stays as it is.
PIXELS = frozenset(
    {"d", "transform", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"}
)


def svg_of(chart: dict[str, Any]) -> str:
    """A chart as a file of its own."""
    try:
        convert = import_module("vl_convert")
    except ImportError:
        raise MissingExtra(
            "A report needs vl-convert-python to draw, which is not installed. Write "
            "pip install 'tamis[app]'."
        ) from None
    svg: str = convert.vegalite_to_svg(chart)
    return svg


def drawn(chart: dict[str, Any], size: str) -> str:
    """A chart as an SVG element; ``size`` is its class, "wide" or "narrow"."""
    spec = {**chart, "background": "transparent"}
    return cleaned(svg_of(spec), set(_hints(spec)), size)


def _hints(spec: Any) -> Iterator[str]:
    """What the marks of a chart say of themselves."""
    if isinstance(spec, dict):
        if isinstance(spec.get("hint"), str):
            yield spec["hint"]
        for value in spec.values():
            yield from _hints(value)
    elif isinstance(spec, list):
        for value in spec:
            yield from _hints(value)


def cleaned(svg: str, hints: set[str], size: str) -> str:
    """A third of the bytes that draw the same, with hints where marks have some."""
    root = ElementTree.fromstring(svg)
    box = {name: _rounded(root.attrib[name], 0) for name in ("width", "height")}
    _strip(root, hints)
    root.attrib.clear()
    root.attrib |= {"class": size, **box, "viewBox": f"0 0 {box['width']} {box['height']}"}
    root.attrib |= {"aria-hidden": "true", "focusable": "false"}
    for element in root.iter():
        element.tag = element.tag.replace(f"{{{SVG}}}", "")
    return ElementTree.tostring(root, encoding="unicode")


def _strip(element: ElementTree.Element, hints: set[str]) -> None:
    for child in list(element):
        _strip(child, hints)
    kept: list[ElementTree.Element] = []
    for child in element:
        if _invisible(child):
            continue
        _tidy(child, hints)
        if child.tag.endswith("}g") and not child.attrib:
            kept.extend(child)
        else:
            kept.append(child)
    element[:] = kept


def _invisible(element: ElementTree.Element) -> bool:
    tag, attributes = element.tag.rpartition("}")[2], element.attrib
    if attributes.get("opacity") == "0" or attributes.get("display") == "none":
        return True
    if tag == "g":
        return not len(element)
    if tag == "text":
        return not (element.text or "").strip()
    filled = attributes.get("fill", "none") not in ("none", "transparent")
    lined = attributes.get("stroke", "none") not in ("none", "transparent")
    inherits = "fill" not in attributes and "stroke" not in attributes
    return (
        tag in ("path", "rect")
        and not filled
        and not lined
        and (not inherits or attributes.get("class") in ("background", "foreground"))
    )


def _tidy(element: ElementTree.Element, hints: set[str]) -> None:
    label = element.attrib.pop("aria-label", None)
    for name in USELESS:
        element.attrib.pop(name, None)
    if label in hints:
        element.set("data-tip", str(label))
    for name, value in element.attrib.items():
        if name in PIXELS:
            element.set(name, _rounded(value, 1))
    if element.attrib.get("transform") in ("translate(0,0)", "translate(0, 0)"):
        del element.attrib["transform"]


def _rounded(text: str, digits: int) -> str:
    def short(match: re.Match[str]) -> str:
        return f"{float(match[0]):.{digits}f}".removesuffix(".0").replace("-0.0", "0")

    return NUMBER.sub(short, text)
