"""Charts and tables of the page of a selection; its text is in ``assets/selection.html.j2``."""

import json
import re
from typing import Any

import numpy as np
from markupsafe import Markup

from tamis._format import format_name, format_number, mask_control
from tamis.report.charts.columns import SQUARE, closest, draw_interactions, draw_squares
from tamis.report.charts.curves import draw_curve, draw_tuning
from tamis.report.charts.scales import finite
from tamis.report.charts.search_path import draw_path, draw_values
from tamis.report.charts.stability import RIVAL, draw_stability
from tamis.report.charts.style import PAGE
from tamis.report.effects import effect_svg
from tamis.report.error_curve import NBSP, Estimate
from tamis.report.selection import Report
from tamis.report.strips import MOST_GROUPS, strip_svg
from tamis.report.template import BARS, WIDE, draw, draw_map, draw_with_names

#: Rows of the long table that a page holds without JavaScript, and shows at a time with it.
ROWS = 50
#: Kept columns that are shown at first.
FIRST = 25
#: Columns of the map of correlations, and of the chart of stability.
MAPPED = 40
#: Pairs of redundant columns that are written out, and the correlation from which on.
PAIRS, REDUNDANT = 60, 0.8


def context_of(report: Report) -> dict[str, Any]:
    """Return what the template needs besides the facts."""
    units, kept = report.units, report.kept
    scores = units.scores[kept]
    most = max([*scores[np.isfinite(scores)], 0.0])
    redundancy = _redundancy(report)
    correlated = np.isfinite(report.between).any(axis=1)
    return {
        "charts": _charts(report),
        "names": [format_name(units.names[unit]) for unit in kept],
        "data": _data(report),
        "reason": _sentence(report.reason),
        "loss": _loss(report),
        "most_groups": MOST_GROUPS,
        "strip_note": _strip_note(report),
        "strip_svg": strip_svg,
        "first": FIRST,
        "shown": kept[: max(len(report.strips), len(report.swaps), FIRST)],
        "importance": {
            unit: 100 * max(score, 0) / most if most > 0 and score == score else None
            for unit, score in zip(kept, scores.tolist(), strict=True)
        },
        # text has no correlations
        "without_r": {kept[k] for k in np.flatnonzero(~correlated)},
        "size_words": _size_words(report),
        **_curve_numbers(report),
        "effect_svg": effect_svg,
        "effect_span": _effect_span(report),
        **_pairs(report),
        "first_units": units.order[:ROWS].tolist(),
        "redundancy": redundancy,
        "often": report.agreement and int((report.agreement.share[kept] >= 0.9).sum()),
        "rivals": report.agreement and int((report.agreement.share[~units.kept] >= 0.5).sum()),
        "rival_percent": f"{100 * RIVAL:.0f}",
    }


def _charts(report: Report) -> dict[str, Markup]:
    """Draw everything that the facts allow."""
    found, names = {}, report.units.names
    if report.curve is not None:
        found["curve"] = draw(draw_curve([report.curve], report.n_kept or None, PAGE, WIDE, 230))
    elif report.values is not None:
        found["curve"] = draw(draw_values(report.values, len(report.kept), PAGE, WIDE, 200))
    if report.pairs:
        found["pairs"] = draw_map(draw_interactions(report.pairs, names, PAGE, SQUARE))
    numeric = _numeric(report)
    if len(numeric) > 1:
        shown = numeric[closest(report.between[np.ix_(numeric, numeric)], MAPPED)]
        labels = [names[report.kept[k]] for k in shown]
        part = report.between[np.ix_(shown, shown)]
        found["redundancy"] = draw_map(draw_squares(part, labels, PAGE, SQUARE, least=0.5))
    if report.agreement is not None and report.kept:
        share = report.agreement.share
        found["stability"] = draw_with_names(
            draw_stability(report.units, share, MAPPED, PAGE, BARS)
        )
    if report.walk is not None:
        found["path"] = draw(draw_path(report.walk, names, PAGE, WIDE, 220))
    if report.tuned is not None and not report.tuned.flat:
        found["tuning"] = draw(draw_tuning(report.tuned, PAGE, WIDE, 190))
    return found


def _sentence(text: str) -> str:
    """Return a reason as a sentence, which speaks of columns, not units.

    >>> _sentence("the best of all 3 units")
    'The best of all 3 columns.'
    """
    text = re.sub(r"(?<=\d )unit(?=s?\b)", "column", text.strip())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) or not text else ".")


def _loss(report: Report) -> tuple[str, str, str] | None:
    """Return what keeping few columns loses or gains, and whether that may be chance.

    It is counted in the first score if there is one: the error rate hardly moves if a class is
    rare.
    """
    errors = report.errors
    if errors is None:
        return None
    lost: Estimate | None = errors.lost
    percent, which = errors.measure.percent, ""
    if errors.scores:
        lost, percent, which = errors.scores[0].lost, False, f" ({errors.scores[0].name})"
    if lost is None or not np.isfinite(lost.value):
        return None
    what = "Gained over all columns" if lost.value < 0 else "Lost against all columns"
    size = abs(lost.value)
    if size == 0 or (percent and size < 0.05):
        return f"Lost against all columns{which}", "nothing", ""
    note = ""
    if np.isfinite(lost.error):
        note = f"{'within' if size <= lost.error else 'more than'} one standard error"
    return what + which, f"{size:.1f} points" if percent else format_number(size, 2), note


def _strip_note(report: Report) -> str:
    """Return what the lines of the strips stand for."""
    kinds = {strip.kind for strip in report.strips.values()}
    many = len(report.groups) > MOST_GROUPS
    line = {"classification": "class", "regression": "third of the target"}.get(report.task, "")
    per = f", one line per {line}" if line and not many else ""
    notes = {
        "density": f"Shapes are densities{per}, each to its own height; the dot is the median; the "
        f"outer 1{NBSP}% of rows is cut off.",
        "ticks": f"Each tick is one row of the table{per}; the dot is the median.",
        "levels": "Bars are shares of the most frequent values, ever lighter.",
    }
    shown = [note for kind, note in notes.items() if kind in kinds]
    if many and kinds:
        shown.append("Top line: the class that is named; below, all rows.")
    return " ".join(shown)


def _size_words(report: Report) -> str:
    """Return why this number."""
    curve, errors, reason = report.curve, report.errors, _sentence(report.reason)
    # a selection that chose the number by held-out rows says so itself
    if curve is None or errors is None or not curve.values.size:
        return reason
    good, best = curve.smallest_good()
    measure, kept = curve.measure, report.n_kept
    at = {k: measure.format(curve.at(k).value) for k in (good, best)}
    rule = (
        f"is the smallest number of columns within one standard error of the best, which is "
        f"{best} with {at[best]}"
    )
    if good == kept == best:
        why = f"{good} has the best {measure.words} of all numbers that were tried ({at[best]})."
    elif good == kept:
        why = f"{good} {rule}; {good} has {at[good]}."
    else:
        why = f"{reason} By these resamples {good} {rule}."
    return f"{why} {errors.how}"


def _curve_numbers(report: Report) -> dict[str, Any]:
    """Return the curve as a table, and the points that its caption names."""
    curve = report.curve
    if curve is None:
        return {}
    rows = []
    for size, *numbers in zip(curve.size.tolist(), curve.mean, curve.error, strict=True):
        mean, error = (
            f"{v:.2f}" if curve.measure.percent else format_number(v, 4) for v in numbers
        )
        rows.append([size, mean, error if numbers[1] > 0 else "–"])
    sizes = dict.fromkeys([int(curve.size[0]), report.n_kept, curve.n_features])
    points = [(k, curve.at(k).value) for k in sizes]
    return {
        "curve_rows": rows,
        "curve_marks": [row[0] == report.n_kept for row in rows],
        "curve_points": [(k, value) for k, value in points if np.isfinite(value)],
    }


def _effect_span(report: Report) -> tuple[float, float] | None:
    """Return the least and the greatest mean prediction: all effects have one scale."""
    if not report.effects:
        return None
    means = np.concatenate([line.means.ravel() for line in report.effects.values()])
    return float(means.min()), float(means.max())


def _pairs(report: Report) -> dict[str, Any]:
    """Return the strongest pairs as a table, and which of them are kept."""
    names = report.units.names
    n_kept = [int(report.units.kept[[pair.first, pair.second]].sum()) for pair in report.pairs]
    rows = [
        [names[pair.first], names[pair.second], format_number(pair.information)]
        for pair in report.pairs
    ]
    kept = [("neither", "one", "both")[n] for n in n_kept]
    return {
        "pair_rows": [[*row, word] for row, word in zip(rows, kept, strict=True)],
        "pair_marks": [n == 2 for n in n_kept],
    }


def _numeric(report: Report) -> Any:
    """Return the positions of kept columns that have correlations; text has none."""
    return np.flatnonzero(np.isfinite(report.between).any(axis=1))


def _redundancy(report: Report) -> dict[str, Any] | None:
    """Return the pairs of kept columns that are close; None without numbers."""
    r, n_kept, n = report.between, len(report.kept), len(_numeric(report))
    if n < 2:
        return None
    lower = np.nan_to_num(np.tril(r, -1))
    first, second = np.nonzero(lower > REDUNDANT)
    order = np.argsort(-lower[first, second], kind="stable")[:PAIRS]
    names = [report.units.names[unit] for unit in report.kept]
    mapped = f"the {n} kept columns{' that are numbers' if n < n_kept else ''}"
    if n > MAPPED:
        mapped = f"the {MAPPED} closest of the {n_kept} kept columns"
    return {
        "least": REDUNDANT,
        "n_close": len(first),
        "n_pairs": int(np.isfinite(r[np.tri(len(r), k=-1, dtype=bool)]).sum()),
        "mapped": mapped,
        "rows": [
            [f"{r[i, j]:.2f}", names[j], names[i]]
            for i, j in zip(first[order], second[order], strict=True)
        ],
    }


def _data(report: Report) -> Markup:
    """Return what the script of the page reads, best column first."""
    order = report.units.order.tolist()
    rank = {unit: k for k, unit in enumerate(order)}
    raw = [report.units.names[unit] for unit in order]
    names = list(map(format_name, raw))
    near, r = report.closest
    columns: dict[str, Any] = {
        "kept": len(report.kept),
        "name": names,
        # more than four digits could not be read
        "score": [finite(float(f"{report.units.scores[unit]:.4g}")) for unit in order],
        "near": [rank.get(int(near[unit]), -1) for unit in order],
        "r": [None if np.isnan(r[unit]) else round(float(r[unit]), 2) for unit in order],
    }
    if raw != names:
        columns["raw"] = raw
    if report.agreement is not None:
        columns["freq"] = [round(100 * float(report.agreement.share[unit])) for unit in order]
    if report.ranks is not None:
        for key, values in zip(("med", "lo", "hi"), report.ranks, strict=True):
            columns[key] = values[order].tolist()
    if report.descriptions:
        columns["desc"] = [mask_control(report.descriptions.get(n, ""))[:200] for n in raw]
    text = json.dumps(columns, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # which cannot end the element
