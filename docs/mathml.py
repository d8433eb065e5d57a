"""Formulas as MathML, which browsers draw by themselves: pages load nothing from elsewhere."""

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

#: Sizes of brackets, which MathML sees to.
SIZES = re.compile(r"\\[bB]ig[gG]?[lrm]?(?![a-zA-Z])")


def _mathml(tex: str, block: bool) -> str:
    plain = SIZES.sub("", tex).strip()
    if r"\\" in plain:
        plain = rf"\begin{{aligned}}{plain}\end{{aligned}}"
    drawn = str(tex2mathml(plain, as_block=block))
    return drawn.replace("<mtable", '<mtable displaystyle="true"')  # rows are formulas of a line


def inline(self: Any, node: nodes.math) -> None:
    """Write a formula in a line."""
    self.body.append(_mathml(node.astext(), False))
    raise nodes.SkipNode


def display(self: Any, node: nodes.math_block) -> None:
    """Write a formula of its own line."""
    self.body.append(f'<div class="math">{_mathml(node.astext(), True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Have formulas written so."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True}
