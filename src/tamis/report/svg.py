"""Charts as inline SVG: in the colours of the page, without attributes that only Vega needs."""

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from tamis._format import format_bytes
from tamis.exceptions import MissingExtra, NotEnoughMemory

SVG = "{http://www.w3.org/2000/svg}"
#: Attributes to remove, because only Vega needs them or the style sheet sets them.
USELESS = ("role", "aria-roledescription", "aria-hidden", "class", "font-family", "pointer-events")
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
#: Attributes that hold pixel values, which can be rounded.
PIXELS = frozenset(
    {"d", "transform", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"}
)


#: Bytes of address space that vl-convert reserves. With less, it ends the process.
RESERVED = 66 * 2**30


def to_svg(chart: dict[str, Any]) -> str:
    """Return a chart as the text of an SVG file."""
    check_address_space()
    try:
        import vl_convert
    except ImportError:
        raise MissingExtra(
            "A report needs vl-convert-python for its charts, which is not installed. Write "
            "pip install 'tamis[app]'."
        ) from None
    svg: str = vl_convert.vegalite_to_svg(chart)
    return svg


def check_address_space() -> None:
    """Raise an error if the process may not reserve the memory that vl-convert needs."""
    try:
        import resource
    except ImportError:  # not on Windows
        return
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY and most < RESERVED:
        raise NotEnoughMemory(
            f"Charts need {format_bytes(RESERVED)} of address space, of which little is used, but "
            f"the limit of this process is {format_bytes(most)}. Write ulimit -v unlimited."
        )


def to_inline_svg(chart: dict[str, Any], css: str) -> str:
    """Return a chart as an SVG element with a CSS class, reduced to about a third of its bytes."""
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
    """Return a small chart with a label for screen readers."""
    from markupsafe import Markup

    return Markup(
        '<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}" '
        'data-tip="{label}" fill="none">{body}</svg>'
    ).format(w=width, h=height, label=label, body=Markup(body))


def _hints(spec: Any) -> Iterator[str]:
    """Yield the tooltip texts of a chart's marks."""
    if isinstance(spec, dict):
        if isinstance(spec.get("hint"), str):
            yield spec["hint"]
        spec = list(spec.values())
    if isinstance(spec, list):
        for value in spec:
            yield from _hints(value)


def _strip(element: ElementTree.Element, hints: set[str]) -> None:
    """Remove invisible elements, empty groups and unneeded attributes."""
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
