"""Strips of values as small SVG elements."""

from markupsafe import Markup

from tamis.plot.style import figure
from tamis.report.facts import Group, Shape, Strip

#: Pixels: width of a strip, height of a line of densities, of ticks and of levels, and the margin
#: that the dot of a median at either end needs.
WIDTH, TALL, LOW, FLAT, EDGE = 212, 17, 10, 11, 3


def strip_svg(strip: Strip, groups: list[Group]) -> Markup:
    """A strip with one line for each of its groups, top to bottom."""
    height = {"density": TALL, "ticks": LOW, "levels": FLAT}[strip.kind]
    label = told(strip, groups)
    body = Markup("")
    for place, (group, shape) in enumerate(zip(strip.groups, strip.shapes, strict=True)):
        colour = f"var(--c{group})" if 0 <= group < 6 and len(groups) <= 6 else f"var(--c{place})"
        base = (place + 1) * height
        if strip.kind == "density":
            body += _density(shape, base, height, colour, strip.span)
        elif strip.kind == "ticks":
            body += _ticks(shape, base, height, colour, strip.span)
        else:
            body += _levels(shape, base, height, colour)
    tall = len(strip.shapes) * height + EDGE
    return Markup(
        '<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}" '
        'data-tip="{label}" fill="none">{body}</svg>'
    ).format(w=WIDTH, h=tall, label=label, body=body)


def told(strip: Strip, groups: list[Group]) -> str:
    """Medians and quartiles of every group, or the shares of levels."""
    lines = []
    for group, shape in zip(strip.groups, strip.shapes, strict=True):
        name = groups[group].name if group >= 0 else "others"
        if strip.kind == "levels":
            pairs = zip(strip.levels, shape.points, strict=True)
            said = ", ".join(f"{level} {100 * share:.0f} %" for level, share in pairs)
        else:
            half = f"{figure(shape.low)} to {figure(shape.high)}"
            said = f"median {figure(shape.median)}, middle half {half}"
        lines.append(f"{name}: {said}" if len(groups) > 1 else said)
    return "; ".join(lines)


def _x(place: float) -> str:
    pixels = EDGE + min(max(place, 0.0), 1.0) * (WIDTH - 2 * EDGE)
    return f"{pixels:.1f}".removesuffix(".0")


def _dot(shape: Shape, base: float, colour: str, span: tuple[float, float]) -> Markup:
    if shape.median != shape.median:
        return Markup("")
    place = (shape.median - span[0]) / (span[1] - span[0])
    return Markup(
        '<circle cx="{}" cy="{}" r="3" fill="{}" stroke="var(--bg)" stroke-width="1"/>'
    ).format(_x(place), f"{base:g}", colour)


def _density(
    shape: Shape, base: int, height: int, colour: str, span: tuple[float, float]
) -> Markup:
    n = len(shape.points)
    corners = " ".join(
        f"{_x(k / (n - 1))} {base - (height - 3) * point:.1f}"
        for k, point in enumerate(shape.points)
    )
    if not n:
        return Markup("")
    path = f"M{_x(0)} {base}L{corners}L{_x(1)} {base}Z"
    return Markup(
        '<path d="{}" fill="{c}" fill-opacity=".28" stroke="{c}" stroke-width="1.2"/>{}'
    ).format(path, _dot(shape, base, colour, span), c=colour)


def _ticks(shape: Shape, base: int, height: int, colour: str, span: tuple[float, float]) -> Markup:
    """A light line, a tick for each row, and the dot of the median."""
    middle = base - height / 2
    marks = "".join(f"M{_x(point)} {base - height + 2}v{height - 4}" for point in shape.points)
    return Markup(
        '<path d="M{} {m}H{}" stroke="var(--rule)"/>'
        '<path d="{}" stroke="{c}" stroke-opacity=".8" stroke-width="1.2"/>{}'
    ).format(_x(0), _x(1), marks, _dot(shape, middle, colour, span), m=f"{middle:g}", c=colour)


def _levels(shape: Shape, base: int, height: int, colour: str) -> Markup:
    """Shares one after the other, ever lighter; the rest is left empty."""
    body, left = Markup(""), 0.0
    for k, share in enumerate(shape.points):
        wide = float(_x(left + share)) - float(_x(left))
        bar = Markup('<rect x="{}" y="{}" width="{}" height="{}" fill="{}" opacity="{}"/>')
        body += bar.format(
            _x(left), base - height + 2, f"{max(wide - 0.8, 0):.1f}", height - 3, colour,
            f"{1 / (1 + 0.7 * k):.2f}",
        )  # fmt: skip
        left += share
    return body
