"""Effects of columns as small SVG elements."""

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from tamis._arrays import Array
from tamis.report.facts import EffectLine

#: Pixels of a small picture, and the margin that its lines need.
WIDTH, HEIGHT, EDGE = 200, 56, 3


def effect_svg(line: EffectLine, span: tuple[float, float], hues: Sequence[str]) -> Markup:
    """A small picture of the lines, all effects of a page on one scale."""
    x = _scaled(line.values, float(line.values[0]), float(line.values[-1]), EDGE, WIDTH - EDGE)
    body = Markup("")
    for column, hue in zip(line.means.T, hues, strict=True):
        y = _scaled(column, span[0], span[1], HEIGHT - EDGE, EDGE)
        corners = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
        path = Markup('<path d="M{}" stroke="{}" stroke-width="1.8"/>')
        body += path.format(corners, hue)
    return Markup(
        '<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}" '
        'data-tip="{label}" fill="none"><path d="M0 {b}H{w}" stroke="var(--rule)"/>{body}</svg>'
    ).format(w=WIDTH, h=HEIGHT, b=HEIGHT - 0.5, label=line.words, body=body)


def _scaled(values: Array, low: float, high: float, start: float, end: float) -> Array:
    share = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
    return np.asarray(start + share * (end - start))
