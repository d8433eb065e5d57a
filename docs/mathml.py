"""Formulas as MathML, which browsers draw without scripts.

docutils is only installed to build the pages, so it is imported where it is used.
"""

import re
from typing import Any

#: Sizes of brackets. MathML chooses them.
SIZES = re.compile(r"\\[bB]ig[gG]?[lrm]?(?![a-zA-Z])")


def _mathml(tex: str, block: bool) -> str:
    from docutils.utils.math.latex2mathml import tex2mathml

    plain = SIZES.sub("", tex).strip()
    if r"\\" in plain:
        plain = rf"\begin{{aligned}}{plain}\end{{aligned}}"
    drawn = str(tex2mathml(plain, as_block=block))
    return drawn.replace("<mtable", '<mtable displaystyle="true"')  # each row is a display formula


def inline(self: Any, node: Any) -> None:
    """Write an inline formula."""
    from docutils.nodes import SkipNode

    self.body.append(_mathml(node.astext(), False))
    raise SkipNode


def display(self: Any, node: Any) -> None:
    """Write a display formula."""
    from docutils.nodes import SkipNode

    self.body.append(f'<div class="math">{_mathml(node.astext(), True)}</div>')
    raise SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True}
