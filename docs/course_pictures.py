"""Pictures of the course: ``python -m docs.course_pictures`` writes them to ``_static/course``.

Each picture is the lattice of the subsets of five columns, with the subsets that a search
evaluates, its path, and the subset that it selects.
"""

from collections.abc import Iterator
from itertools import combinations, groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tamis.contract import Search
from tamis.criteria import Scatter
from tamis.search import (
    Backward,
    Bidirectional,
    BranchAndBound,
    FloatingForward,
    Forward,
    Genetic,
    PlusLMinusR,
)

FOLDER = Path(__file__).parent / "_static" / "course"
NAMES = "abcde"
WIDTH, HEIGHT = 560, 300
#: Fill and frame of a subset by what the search did with it.
STYLES = {
    "none": ("#ffffff", "#c9cfd6"),
    "evaluated": ("#d6e6f5", "#7aa7d0"),
    "selected": ("#0b5394", "#0b5394"),
}
EVALUATED: set[tuple[int, ...]] = set()


class Observed(Scatter):
    """Scatter criterion that records the subsets it evaluates."""

    def gain(self, subset: Any, candidates: Any) -> Any:
        EVALUATED.update(tuple(sorted({*subset.tolist(), j})) for j in candidates.tolist())
        return super().gain(subset, candidates)

    def loss(self, subset: Any) -> Any:
        EVALUATED.update(combinations(subset.tolist(), len(subset) - 1))
        return super().loss(subset)

    def values(self, subsets: Any) -> Any:
        subsets = list(subsets)
        EVALUATED.update(tuple(one.tolist()) for one in subsets)
        return super().values(subsets)

    def bounds(self, subsets: Any, size: int) -> Any:
        subsets = list(subsets)
        EVALUATED.update(tuple(one.tolist()) for one in subsets)
        return super().bounds(subsets, size)


def problem() -> tuple[Any, Any]:
    """Return the table of the course: column c is nearly the mean of a and b."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1], 100)
    a, b, d, e = rng.normal(size=(4, 200))
    a, b, d = a + y, b + y, d + 0.55 * y
    c = (a + b) / 2 + 0.35 * rng.normal(size=200)
    return np.column_stack([a, b, c, d, e]), y


def position(subset: tuple[int, ...]) -> tuple[float, float]:
    """Return the position of a subset: by size from left to right, then alphabetically."""
    row = list(combinations(range(len(NAMES)), len(subset)))
    gap = (HEIGHT - 20) / len(row)
    x = 44 + len(subset) * (WIDTH - 88) / len(NAMES)
    return x, 10 + gap * (row.index(subset) + 0.5)


def arrow(start: tuple[int, ...], end: tuple[int, ...], numbers: str) -> tuple[str, str]:
    """Return a line between two subsets and its label, the numbers of the steps, near the start."""
    (x, y), (u, v) = position(start), position(end)
    side = 70 if x == u else 0
    down = 18 if u < x else -4
    middle_x, middle_y = (x + u) / 2 + side, (y + v) / 2 + down
    curve = f"M{x:.0f},{y:.0f} Q{middle_x:.0f},{middle_y:.0f} {u:.0f},{v:.0f}"
    line = f'<path d="{curve}" fill="none" stroke="#b84d00" stroke-width="2.5"/>'
    weights = (0.36, 0.48, 0.16)  # of the three points, 0.4 of the way
    label_x = np.dot(weights, (x, middle_x, u))
    label_y = np.dot(weights, (y, middle_y, v))
    half = 4 + 4 * len(numbers)
    return line, (
        f'<rect x="{label_x - half:.0f}" y="{label_y - 8:.0f}" width="{2 * half}" height="16" '
        f'rx="8" fill="#b84d00"/><text x="{label_x:.0f}" y="{label_y + 4:.0f}" fill="#ffffff">'
        f"{numbers}</text>"
    )


def draw(paths: list[list[tuple[int, ...]]], selected: tuple[int, ...]) -> str:
    """Return the lattice with the paths of a search as SVG."""
    sizes = range(len(NAMES) + 1)
    subsets = [one for size in sizes for one in combinations(range(len(NAMES)), size)]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        'font-family="sans-serif" font-size="11" text-anchor="middle">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#ffffff"/>',
    ]
    for small, large in combinations(subsets, 2):
        if len(large) == len(small) + 1 and set(small) < set(large):
            (x, y), (u, v) = position(small), position(large)
            lines.append(f'<path d="M{x:.0f},{y:.0f} {u:.0f},{v:.0f}" stroke="#e3e7eb"/>')
    moves: dict[tuple[tuple[int, ...], tuple[int, ...]], list[str]] = {}
    for path in paths:
        for number, move in enumerate(pairwise(path), 1):
            moves.setdefault(move, []).append(str(number))
    arrows = [arrow(*move, ",".join(numbers)) for move, numbers in moves.items()]
    lines += [line for line, _ in arrows]
    for one in subsets:
        style = "selected" if one == selected else "evaluated" if one in EVALUATED else "none"
        fill, frame = STYLES[style]
        x, y = position(one)
        text = "".join(NAMES[j] for j in one) or "∅"
        lines.append(
            f'<rect x="{x - 21:.0f}" y="{y - 9:.0f}" width="42" height="18" rx="4" fill="{fill}" '
            f'stroke="{frame}"/><text x="{x:.0f}" y="{y + 4:.0f}" '
            f'fill="{"#ffffff" if style == "selected" else "#333333"}">{text}</text>'
        )
    return "\n".join([*lines, *(label for _, label in arrows), "</svg>", ""])


def pictures() -> Iterator[tuple[str, str]]:
    """Yield the name and the SVG of every picture."""
    settings: dict[str, tuple[type[Search], dict[str, Any]]] = {
        "forward": (Forward, {}),
        "backward": (Backward, {}),
        "bidirectional": (Bidirectional, {}),
        "plus-l-minus-r": (PlusLMinusR, {}),
        "floating": (FloatingForward, {}),
        "branch-and-bound": (BranchAndBound, {}),
        "genetic": (Genetic, {"population_size": 4, "n_generations": 4, "random_state": 26}),
    }
    for name, (search, options) in settings.items():
        EVALUATED.clear()
        fitted = search(Observed("J3"), n_features_to_select=3, **options).fit(*problem())
        path = [one for one, _ in groupby(tuple(step.subset.tolist()) for step in fitted.trace_)]
        if len(path[0]) == 1:
            path = [(), *path]
        paths = [path]
        if name == "bidirectional":  # the trace follows one side, its state has the other
            other = fitted.trace_.state["other"]
            paths.append([tuple(sorted(other[:n])) for n in range(len(other) + 1)])
        yield name, draw(paths, tuple(fitted.get_support(indices=True).tolist()))


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, svg in pictures():
        (FOLDER / f"{name}.svg").write_text(svg, encoding="utf8")
