"""Charts and tables for the report of a selection. Its text is in ``assets/selection.html.j2``."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from tamis._format import format_name, format_number, mask_control
from tamis.report.charts.columns import SQUARE, closest, draw_interactions, draw_squares
from tamis.report.charts.curves import draw_curve, draw_tuning
from tamis.report.charts.effects import effect_svg
from tamis.report.charts.scales import finite
from tamis.report.charts.search_path import draw_values
from tamis.report.charts.style import PAGE
from tamis.report.error_curve import NAN, NBSP, Estimate
from tamis.report.explorer import Candidate, corrected_error, explorer_data
from tamis.report.selection import CLOSE, Report
from tamis.report.strips import MOST_GROUPS, strip_svg
from tamis.report.template import WIDE, draw, draw_map, draw_with_names, name_cell
from tamis.report.units import Q_MEANING

#: Rows shown in the table of all columns: in total without JavaScript, and per page with it.
ROWS = 50
#: Number of selected columns that the page shows at first.
FIRST = 25
#: Largest number of columns in the correlation map and in the stability chart.
MAPPED = 40
#: Largest number of redundant pairs listed.
PAIRS = 60


def context_of(report: Report) -> dict[str, Any]:
    """Return the template variables that are not attributes of the report."""
    units, kept = report.units, report.kept
    scores = units.scores[kept]
    most = max([*scores[np.isfinite(scores)], 0.0])
    numeric = _numeric(report)
    return {
        "charts": _charts(report),
        "names": [format_name(units.names[unit]) for unit in kept],
        "data": _data(report),
        "reason": _sentence(report.reason),
        "loss": _loss(report),
        "most_groups": MOST_GROUPS,
        "q_meaning": _sentence(Q_MEANING),
        "strip_note": _strip_note(report),
        "strip_svg": strip_svg,
        "first": FIRST,
        "shown": kept[: max(len(report.strips), len(report.swaps), FIRST)],
        "importance": {
            unit: 100 * max(score, 0) / most if most > 0 and score == score else None
            for unit, score in zip(kept, scores.tolist(), strict=True)
        },
        # text columns have no correlations
        "close": CLOSE,
        "n_close": dict(zip(kept, _close(report).sum(axis=1).tolist(), strict=False)),
        "without_r": {kept[k] for k in np.setdiff1d(np.arange(len(report.between)), numeric)},
        "size_words": _size_words(report),
        "corrected": corrected_error(report),
        **_curve_numbers(report),
        "omission_rows": _omissions(report),
        "effect_svg": effect_svg,
        "effect_span": _effect_span(report),
        **_pairs(report),
        "first_units": units.order[:ROWS].tolist(),
        "redundancy": _redundancy(report),
    }


def _charts(report: Report) -> dict[str, Markup]:
    """Draw all charts for which the report has data."""
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
    if report.environments is not None:
        found["environments"] = draw_with_names(report.environments)
    if report.tuned is not None and not report.tuned.flat:
        found["tuning"] = draw(draw_tuning(report.tuned, PAGE, WIDE, 190))
    return found


def _sentence(text: str) -> str:
    """Return a reason as a sentence, with "columns" instead of "units".

    Numbers are not broken across lines.

    >>> _sentence("the best of all 3 units: 2.6 ± 0.7 %")
    'The best of all 3 columns: 2.6\xa0±\xa00.7\xa0%.'
    """
    text = re.sub(r"(?<=\d) (?=[±%])|(?<=±) ", NBSP, text)
    text = re.sub(r"(?<=\d )unit(?=s?\b)", "column", text.strip())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) or not text else ".")


def _loss(report: Report) -> tuple[str, str, str] | None:
    """Return the loss or gain compared with all columns, and whether it may be chance.

    If the report has further scores, the first of them is used, because the error rate hardly
    changes if a class is rare.
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
    what = f"{'Gain' if lost.value < 0 else 'Loss'} compared with all columns{which}"
    size = abs(lost.value)
    if size == 0 or (percent and size < 0.05):
        return f"Loss compared with all columns{which}", "none", ""
    note = ""
    if np.isfinite(lost.error):
        error = f"{lost.error:.1f}" if percent else format_number(lost.error, 2)
        verb = "is within" if size <= lost.error else "exceeds"
        note = f"±{NBSP}{error} for the difference, which {verb} one standard error"
    return what, f"{size:.1f} points" if percent else format_number(size, 2), note


def _strip_note(report: Report) -> str:
    """Return the legend of the strips as text."""
    kinds = {strip.kind for strip in report.strips.values()}
    many = len(report.groups) > MOST_GROUPS
    line = {"classification": "class", "regression": "third of the target"}.get(report.task, "")
    per = f", one line per {line}" if line and not many else ""
    notes = {
        "density": f"Shapes are densities{per}, scaled to the same height; the dot is the median; "
        f"the outer 1{NBSP}% of rows is cut off.",
        "ticks": f"Each tick is one row of the table{per}; the dot is the median.",
        "levels": "Bars are shares of the most frequent values, from dark to light.",
    }
    shown = [note for kind, note in notes.items() if kind in kinds]
    if many and kinds:
        shown.append("Top line: the named class; bottom line: all rows.")
    return " ".join(shown)


def _size_words(report: Report) -> str:
    """Return the reason why this number of columns was selected."""
    curve, errors, reason = report.curve, report.errors, _sentence(report.reason)
    # a selection that chose the number on held-out rows states its own reason
    if curve is None or errors is None or not curve.values.size:
        return reason
    good, best = curve.smallest_good()
    measure, kept = curve.measure, report.n_kept
    at = {k: measure.format(curve.at(k).value) for k in (good, best)}
    if good == best:
        why = f"{good} has the best {measure.words} of all numbers of columns tried ({at[best]})."
    else:
        why = (
            f"{good} is the smallest number of columns within one standard error of the best: "
            f"{at[good]}, compared with {at[best]} at {best}."
        )
    return f"{why if good == kept else f'{reason} In these resamples, {why}'} {errors.how}"


def _curve_numbers(report: Report) -> dict[str, Any]:
    """Return the error curve as a table, and the points that its caption mentions."""
    curve = report.curve
    if curve is None:
        return {}
    lists = {one.size: one for one in report.candidates if not one.without}
    heads = [("columns", "num"), (curve.measure.title, "num"), ("± standard error", "num")]
    if lists:
        heads += [("stability", "num"), ("entered", "list"), ("left", "list")]
    rows: list[list[Any]] = []
    before: tuple[int, ...] = ()
    for size, *numbers in zip(curve.size.tolist(), curve.mean, curve.error, strict=True):
        mean, error = (
            f"{v:.2f}" if curve.measure.percent else format_number(v, 4) for v in numbers
        )
        rows.append([size, mean, error if numbers[1] > 0 else "–"])
        if lists:
            one = lists.get(size)
            agreed = NAN if one is None else one.stability
            rows[-1].append(f"{agreed:.2f}" if np.isfinite(agreed) else "–")
            rows[-1] += _changes(report, one, before)
            before = before if one is None else one.units or before
    sizes = dict.fromkeys([int(curve.size[0]), report.n_kept, curve.n_features])
    points = [(k, curve.at(k).value) for k in sizes]
    return {
        "curve_heads": heads,
        "curve_rows": rows,
        "curve_marks": [row[0] == report.n_kept for row in rows],
        "curve_points": [(k, value) for k, value in points if np.isfinite(value)],
    }


def _changes(report: Report, one: Candidate | None, before: Sequence[int]) -> list[Markup]:
    """Return the names that entered a list, and those that left it."""
    if one is None or one.units is None:
        return [Markup("–"), Markup("–")]
    changed = ([u for u in one.units if u not in before], [u for u in before if u not in one.units])
    return [Markup(", ").join(name_cell(report.units.names[u]) for u in part) for part in changed]


def _omissions(report: Report) -> list[list[Any]]:
    """Return a row for each omission, with its largest list of at most the selected size."""
    own = next((one.units for one in report.candidates if one.size == len(report.kept)), ())
    rows = []
    for omission in report.omissions:
        there = [one for one in report.candidates if one.without == omission.columns]
        near = [one for one in there if one.size <= len(report.kept)]
        if near and report.curve is not None:
            one, measure = near[-1], report.curve.measure
            error = f"{measure.format(one.error)} {measure.format_error(one.standard_error)}"
            rows.append([omission.name, one.size, error, *_changes(report, one, own or ())])
    return rows


def _effect_span(report: Report) -> tuple[float, float] | None:
    """Return the smallest and largest mean prediction, which set the scale of all effects."""
    if not report.effects:
        return None
    means = np.concatenate([line.means.ravel() for line in report.effects.values()])
    return float(means.min()), float(means.max())


def _pairs(report: Report) -> dict[str, Any]:
    """Return the strongest pairs as a table, and which of their columns are selected."""
    rows, names = [], report.units.names
    for pair in report.pairs:
        kept = ("neither", "one", "both")[int(report.units.kept[list(pair[:2])].sum())]
        row = [names[pair.first], names[pair.second], format_number(pair.information), kept]
        rows.append(row)
    return {"pair_rows": rows, "pair_marks": [row[-1] == "both" for row in rows]}


def _numeric(report: Report) -> Any:
    """Return the positions of selected columns that have correlations. Text columns have none."""
    return np.flatnonzero(np.isfinite(report.between).any(axis=1))


def _close(report: Report) -> Any:
    """Return which pairs of selected columns are close, as a symmetric matrix of booleans."""
    close = np.nan_to_num(report.between) >= CLOSE
    np.fill_diagonal(close, False)
    return close


def _redundancy(report: Report) -> dict[str, Any] | None:
    """Return the correlated pairs of selected columns, or None if fewer than two are numeric."""
    r, n_kept, n = report.between, len(report.kept), len(_numeric(report))
    if n < 2:
        return None
    first, second = np.nonzero(np.tril(_close(report)))
    order = np.argsort(-r[first, second], kind="stable")[:PAIRS]
    names = [report.units.names[unit] for unit in report.kept]
    mapped = f"the {n} {'numeric ' if n < n_kept else ''}kept columns"
    if n > MAPPED:
        mapped = f"the {MAPPED} closest of the {n_kept} kept columns"
    return {
        "n_close": len(first),
        "n_pairs": int(np.isfinite(r[np.tri(len(r), k=-1, dtype=bool)]).sum()),
        "mapped": mapped,
        "rows": [
            [f"{r[i, j]:.2f}", names[j], names[i]]
            for i, j in zip(first[order], second[order], strict=True)
        ],
    }


def _data(report: Report) -> Markup:
    """Return the data for the page's script, with the best column first."""
    order = report.units.order.tolist()
    rank = {unit: k for k, unit in enumerate(order)}
    raw = [report.units.names[unit] for unit in order]
    names = list(map(format_name, raw))
    near, r = report.closest
    columns: dict[str, Any] = {
        "kept": len(report.kept),
        "name": names,
        # four digits are enough for a reader
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
    if report.candidates:
        columns["explorer"] = explorer_data(report, rank)
    text = json.dumps(columns, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # so that the data cannot end the script element
