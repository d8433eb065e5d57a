"""The page of a selection."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from tamis._format import format_count, format_name, format_number, mask_control
from tamis.report.charts.columns import SQUARE, closest, draw_squares
from tamis.report.charts.curves import draw_curve
from tamis.report.charts.interactions import draw_interactions
from tamis.report.charts.scales import finite
from tamis.report.charts.search_path import draw_path, draw_values
from tamis.report.charts.stability import RIVAL, draw_stability
from tamis.report.charts.style import PAGE
from tamis.report.charts.validation_curve import draw_tuning
from tamis.report.effects import effect_svg
from tamis.report.error_curve import NBSP, Estimate
from tamis.report.selection import Report, Swap
from tamis.report.strips import MOST_GROUPS, strip_svg
from tamis.report.template import (
    BARS,
    WIDE,
    Block,
    Content,
    Section,
    details,
    draw,
    draw_map,
    draw_with_names,
    figure,
    name_cell,
    table,
)

#: Rows of the long table that a page holds without JavaScript, and shows at a time with it.
ROWS = 50
#: Kept columns that are shown at first.
FIRST = 25
#: Columns of the map of correlations, and of the chart of stability.
MAPPED = 40
#: Pairs of redundant columns that are written out, and the correlation from which on.
PAIRS, REDUNDANT = 60, 0.8


def content_of(report: Report) -> Content:
    """Return what the page of a selection shows."""
    kicker = [f"{report.n_rows} rows × {format_count(report.n_columns)}"]
    if report.source:
        kicker.insert(0, name_cell(report.source))
    if report.target:
        kicker.append(Markup("target ") + name_cell(report.target))
    return Content(
        _heading(report),
        _lead(report),
        kicker,
        _figures(report),
        [
            _columns(report),
            _size(report),
            _effects(report),
            _interactions(report),
            _ranking(report),
            _redundancy(report),
            _stability(report),
            _path(report),
            _tuning(report),
        ],
        _names(report),
        _data(report),
    )


def _names(report: Report, units: Sequence[int] | None = None) -> list[str]:
    """Return the names of some units, by default of those that are kept."""
    return [
        format_name(report.units.names[unit]) for unit in (report.kept if units is None else units)
    ]


def _sentence(text: str) -> str:
    """Return a reason as a sentence, which speaks of columns, not units.

    >>> _sentence("the best of all 3 units")
    'The best of all 3 columns.'
    """
    text = re.sub(r"(?<=\d )unit(?=s?\b)", "column", text.strip())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) or not text else ".")


# -- head -----------------------------------------------------------------------------------------


def _heading(report: Report) -> str:
    if report.title is not None:
        return format_name(report.title)
    if not report.n_kept:
        return "No column is worth keeping"
    target = f" to predict {format_name(report.target)}" if report.target else ""
    first = "Keep" if report.finished else "So far, keep"
    return f"{first} {report.n_kept} of {format_count(report.n_columns)}{target}"


def _lead(report: Report) -> str:
    """Return the error with the kept columns, with all, and of the baseline."""
    errors, reason = report.errors, _sentence(report.reason)
    if not report.n_kept:
        return f"{reason or 'The selection keeps nothing.'} All columns are ranked below."
    if errors is None:
        why = "No target was given, so no error can be estimated."
        if report.task != "none":
            why = "There is no estimate of errors: the columns were selected on all rows."
        return f"{reason} {why}"
    measure = errors.measure

    def value(estimate: Estimate) -> Markup:
        spread = measure.format_error(estimate.error)
        bracket = f" ({spread})" if spread else ""
        return Markup("<b>{}</b>{}").format(measure.format(estimate.value), bracket)

    these = "this column" if report.n_kept == 1 else f"these {report.n_kept} columns"
    lead = Markup("{} trained on {}: {} of {} on held-out rows").format(
        errors.machine, these, measure.words, value(errors.kept)
    )
    if errors.r2 is not None:
        lead += f" (R² {errors.r2.value:.2f})"
    if errors.whole is not None:
        lead += Markup("; with all {} columns {}").format(report.n_columns, value(errors.whole))
    if errors.guess is not None:
        what = "mean" if measure.rooted else "no columns"
        if errors.guess_word:
            what = Markup("always “<bdi>{}</bdi>”").format(format_name(errors.guess_word))
        lead += Markup("; baseline ({}) {}").format(what, measure.format(errors.guess))
    for one in errors.scores:
        score = Markup("; {} <b>{:.2f}</b> (baseline {:.2f})")
        lead += score.format(one.name, one.kept.value, one.guess)
    return lead + "."


def _figures(report: Report) -> list[tuple[str, str, str]]:
    """Return the few numbers under the heading: what, how much, and a note."""
    shown = [("Columns kept", str(report.n_kept), f"of {report.n_columns}")]
    errors, agreement = report.errors, report.agreement
    if errors is not None:
        measure = errors.measure
        r2 = "" if errors.r2 is None else f"R² {errors.r2.value:.2f}"
        notes = ", ".join(filter(None, (measure.format_error(errors.kept.error), r2)))
        name = f"{measure.heading} on held-out rows"
        shown.append((name, measure.format(errors.kept.value), notes))
        for score in errors.scores:
            name = score.name[0].upper() + score.name[1:]
            shown.append((name, f"{score.kept.value:.2f}", f"baseline {score.guess:.2f}"))
        if errors.scores:  # the error rate hardly moves if a class is rare
            shown += _loss(errors.scores[0].lost, False, f" ({errors.scores[0].name})")
        else:
            shown += _loss(errors.lost, measure.percent)
    if agreement is not None:
        words = f"{agreement.word} (1 = identical, 0 = chance)"
        shown.append(("Stability", f"{agreement.index:.2f}", words))
    return shown


def _loss(lost: Estimate | None, percent: bool, which: str = "") -> list[tuple[str, str, str]]:
    """Return what keeping few columns loses or gains, and whether that may be chance."""
    if lost is None or not np.isfinite(lost.value):
        return []
    what = "Gained over all columns" if lost.value < 0 else "Lost against all columns"
    size = abs(lost.value)
    if size == 0 or (percent and size < 0.05):
        return [(f"Lost against all columns{which}", "nothing", "")]
    note = ""
    if np.isfinite(lost.error):
        note = f"{'within' if size <= lost.error else 'more than'} one standard error"
    value = f"{size:.1f} points" if percent else format_number(size, 2)
    return [(what + which, value, note)]


# -- the kept columns -----------------------------------------------------------------------------


def _columns(report: Report) -> Section | None:
    if not report.kept:
        return None
    scored = bool(np.isfinite(report.units.scores).any())
    tried = any(s.change is not None for some in report.swaps.values() for s in some)
    head = {"classification": "Values by class", "regression": "Values by target"}
    rise = Markup('Could be replaced by <span class="sub">(|r|{})</span>')
    heads = [
        (Markup('<span class="vh">Rank</span>'), "num rank"),
        ("Column", "name"),
        (head.get(report.task, "Values"), "spark"),
        *([("Importance", "")] if scored else []),
        *([("Kept in resamples", "")] if report.agreement else []),
        (rise.format(", rise of the loss" if tried else ""), "subs"),
    ]
    shown = report.kept[: max(len(report.strips), len(report.swaps), FIRST)]
    rows = [
        ("rest" if rank > FIRST else "", _column_cells(report, rank, unit, scored))
        for rank, unit in enumerate(shown, 1)
    ]
    note = "The method orders columns and gives none a score of its own."
    if scored:
        note = "Importance: score of the column at the step at which it last moved."
    if tried:
        note += (
            " Rise of the loss: of the held-out squared loss when a model has the other column "
            "instead; “same” if it is within one standard error. The selection used these rows, so "
            "compare, but do not quote."
        )
    rest = len(report.kept) - len(rows)
    blocks: list[Block | None] = [
        ("note", f"Best first. {_strip_note(report)}"),
        _class_legend(report, counts=True) if report.strips else None,
        table(heads, rows, "answer", "The columns"),
        ("more", len(rows)),
        ("note", f"{rest} more kept columns are in the table of all columns.") if rest else None,
        ("note", note),
    ]
    return Section("columns", "Columns", "The columns", blocks)


def _column_cells(report: Report, rank: int, unit: int, scored: bool) -> list[Any]:
    """Return the cells of a kept column."""
    name, score = report.units.names[unit], float(report.units.scores[unit])
    n_columns = len(report.units.units.columns(np.array([unit])))
    several = f"{n_columns} columns" if n_columns > 1 else ""
    strip = report.strips.get(unit)
    values = Markup("<small></small>")
    if strip is not None:
        drawn = strip_svg(strip, report.rows)
        values = drawn + Markup("<small>{}</small>").format(strip.words)
    cells = [rank, name_cell(name, report.descriptions.get(name, ""), several), values]
    if scored:
        scores = report.units.scores[report.kept]
        most = max([*scores[np.isfinite(scores)], 0.0])
        share = 100 * max(score, 0) / most if most > 0 and score == score else None
        cells.append(_gauge(share, format_number(score)))
    if report.agreement is not None:
        share = 100 * float(report.agreement.share[unit])
        cells.append(_gauge(round(share), f"{share:.0f}{NBSP}%", " weak" if share < 50 else ""))
    swaps = [_swap(report, swap) for swap in report.swaps.get(unit, [])]
    line = report.between[rank - 1] if rank <= len(report.between) else np.zeros(1)
    none = "nothing close (|r| < 0.7)" if np.isfinite(line).any() else "–"  # text has no r
    return [*cells, Markup("").join(swaps) or Markup("<small>{}</small>").format(none)]


def _gauge(percent: float | None, text: str, css: str = "") -> Markup:
    meter = Markup('<span class="meter{}" style="--v:{:.3g}%"><i></i></span>')
    bar = "" if percent is None else meter.format(css, percent)
    return Markup('<span class="gauge">{}<small>{}</small></span>').format(bar, text)


def _swap(report: Report, swap: Swap) -> Markup:
    note = f"{swap.r:.2f}"
    if swap.same:
        note += " · same"
    elif swap.change is not None:
        note += f" · +{format_number(swap.change, 2)}".replace("+−", "−")
    name = name_cell(report.units.names[swap.unit])
    return Markup("<span>{} <small>{}</small></span>").format(name, note)


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


def _class_legend(report: Report, counts: bool = False) -> Block | None:
    if not 1 < len(report.groups) <= MOST_GROUPS:
        return None
    return "legend", [(name, n if counts else "") for name, n in report.groups]


# -- number of columns, effects, pairs ------------------------------------------------------------


def _size(report: Report) -> Section | None:
    curve, values = report.curve, report.values
    if curve is None and values is None:
        return None
    blocks: list[Block | None] = [("p", _size_words(report))]
    if curve is not None:
        chart = draw_curve([curve], report.n_kept or None, PAGE, WIDE, 230)
        blocks += [figure("curve", draw(chart), _curve_caption(report)), _curve_numbers(report)]
    elif values is not None:
        what = "Score of each column, best first" if values.alone else "Value of the criterion"
        caption = Markup("{}, on the rows of the selection: no estimate of errors.").format(what)
        if report.task != "none":
            measure = "report(selection, X, y, results=resampled(selection, X, y))"
            if report.command:
                measure = f"{mask_control(report.command)} --resamples 20"
            caption += Markup(" To have one, write <code>{}</code>.").format(measure)
        chart = draw_values(values, len(report.kept), PAGE, WIDE, 200)
        blocks.append(figure("curve", draw(chart), caption))
    return Section("size", "How many", "How many columns", blocks)


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


def _curve_caption(report: Report) -> str:
    """Return the finding of the curve, for those who do not see it."""
    curve = report.curve
    assert curve is not None
    sizes = dict.fromkeys([int(curve.size[0]), report.n_kept, curve.n_features])
    values = {k: curve.at(k).value for k in sizes}
    told = [f"{curve.measure.format(v)} with {k}" for k, v in values.items() if np.isfinite(v)]
    band = ", corrected for the overlap of the resamples" if curve.values.size else " over rows"
    return (
        f"{curve.measure.heading} on held-out rows against the number of columns: "
        f"{', '.join(told)}. Band: one standard error{band}."
    )


def _curve_numbers(report: Report) -> Block:
    """Return the curve as a table; a standard error of 0 is a dash."""
    curve = report.curve
    assert curve is not None
    rows = []
    for size, *numbers in zip(curve.size.tolist(), curve.mean, curve.error, strict=True):
        mean, error = (
            f"{v:.2f}" if curve.measure.percent else format_number(v, 4) for v in numbers
        )
        css = "on" if size == report.n_kept else ""
        rows.append((css, [size, mean, error if numbers[1] > 0 else "–"]))
    heads = [("columns", "num"), (curve.measure.title, "num"), ("± standard error", "num")]
    return details("The numbers", table(heads, rows, label="Numbers of the curve"))


def _effects(report: Report) -> Section | None:
    if not report.effects:
        return None
    means = np.concatenate([line.means.ravel() for line in report.effects.values()])
    span = float(means.min()), float(means.max())
    shown, several = [], False
    for unit, line in report.effects.items():
        several = len(line.outputs) > 1
        hues = [f"var(--c{k})" for k in line.outputs] if several else ["var(--accent)"]
        name = format_name(report.units.names[unit])
        shown.append((name, effect_svg(line, span, hues), line.words))
    words = (
        f"{report.model} trained on the kept columns: its mean prediction as one column goes from "
        "its least to its greatest value and the others stay as they are. All on one scale."
    )
    if len(shown) < len(report.kept):
        words += f" The first {len(shown)} columns."
    blocks = [("p", words), _class_legend(report) if several else None, ("effects", shown)]
    return Section("effects", "Effects", "Effects on a model", blocks)


def _interactions(report: Report) -> Section | None:
    """Return the pairs with most information together, and how many of their columns are kept."""
    if not report.pairs:
        return None
    names, best, n = report.units.names, report.pairs[0], report.units.units.n_units
    chance = "a pair that stands out from the others is worth a look, not a proof."
    if best.p_value is not None:
        chance = (
            "if the target is permuted, the best pair has as much with probability "
            f"{format_number(best.p_value, 2)}."
        )
    first, second = _names(report, best[:2])
    words = (
        f"{first} and {second} have {format_number(best.information, 2)} nats of information on "
        f"the target together beyond that of each alone. All {n * (n - 1) // 2} pairs were looked "
        f"at, and the best of many is high by chance too: {chance}"
    )
    rows = []
    for pair in report.pairs:
        n_kept = int(report.units.kept[[pair.first, pair.second]].sum())
        cells = [name_cell(names[pair.first]), name_cell(names[pair.second])]
        kept = ("neither", "one", "both")[n_kept]
        css = "on" if n_kept == 2 else ""
        rows.append((css, [*cells, format_number(pair.information), kept]))
    heads = [("column", ""), ("and column", ""), ("together, nats", "num"), ("kept", "")]
    chart = draw_map(draw_interactions(report.pairs, names, PAGE, SQUARE))
    caption = (
        "Information of two columns on the target beyond that of each alone, in hundredths of a "
        "nat, on the rows of the selection."
    )
    blocks = [
        ("p", words),
        figure("redundancy", chart, caption, "Map of the strongest pairs"),
        details("The pairs", table(heads, rows, label="The strongest pairs")),
    ]
    return Section("pairs", "Strongest pairs", "Strongest pairs", blocks)


# -- all columns ----------------------------------------------------------------------------------


def _ranking(report: Report) -> Section:
    """Return the first rows of the table of all columns, which the script goes on with."""
    units, (near, r) = report.units, report.closest
    scored = bool(np.isfinite(units.scores).any())
    heads = [("rank", "Rank", "num"), ("name", "Column", "")]
    heads += [("score", "Score", "num")] if scored else []
    heads += [("freq", "In resamples", "num")] if report.agreement else []
    heads += [("med", f"Median rank (10–90{NBSP}%)", "num")] if report.ranks else []
    heads.append(("near", "Closest kept column, |r|", ""))
    rows = []
    for rank, unit in enumerate(units.order[:ROWS].tolist(), 1):
        about = mask_control(report.descriptions.get(units.names[unit], ""))
        small = Markup(" <small>{}</small>").format(about) if about else ""
        cells = [rank, name_cell(units.names[unit]) + small]
        if scored:
            cells.append(format_number(units.scores[unit]))
        if report.agreement:
            cells.append(f"{100 * report.agreement.share[unit]:.0f}{NBSP}%")
        if report.ranks:
            median, low, high = (part[unit] for part in report.ranks)
            cells.append(f"{median} ({low}–{high})")
        other = int(near[unit])
        close = "–" if other < 0 else f"{format_name(units.names[other])} {r[unit]:.2f}"
        rows.append(("on" if units.kept[unit] else "", [*cells, close]))
    note = "Score: that of the step at which the column last moved" if scored else ""
    if scored and report.walk:
        note += "; steps far apart have different scales, so the rank, not the score, is the order"
    note += ". " if scored else ""
    note += "Median rank: over the resamples." if report.ranks else ""
    n, what = len(units.names), "columns" if units.units.plain else "columns and groups"
    shown = {"heading": f"All {n} {what}", "heads": heads, "rows": rows, "n": n, "note": note}
    return Section("ranking", f"All {n}", "", [("explorer", shown)])


def _data(report: Report) -> Markup:
    """Return what the script of the page reads, best column first."""
    order = report.units.order.tolist()
    rank = {unit: k for k, unit in enumerate(order)}
    names, raw = _names(report, order), [report.units.names[unit] for unit in order]
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


# -- redundancy, stability, path, C ---------------------------------------------------------------


def _redundancy(report: Report) -> Section | None:
    n_kept, r = len(report.kept), report.between
    numeric = np.flatnonzero(np.isfinite(r).any(axis=1))  # text has no correlation
    words = "The kept columns are not numbers that could be correlated."
    blocks: list[Block | None] = []
    if not n_kept:
        return None
    if n_kept == 1:
        words = "Only one column is kept."
    elif len(numeric) > 1:
        lower = np.nan_to_num(np.tril(r, -1))
        first, second = np.nonzero(lower > REDUNDANT)
        total = int(np.isfinite(r[np.tri(len(r), k=-1, dtype=bool)]).sum())
        words = f"{len(first)} of {total} pairs of kept columns have |r| above {REDUNDANT}."
        if len(first):
            words += (
                " Similar columns stand side by side; full squares are pairs of which one column "
                "might do."
            )
        order = np.argsort(-lower[first, second], kind="stable")[:PAIRS]
        names = _names(report)
        rows = [
            ("", [f"{r[i, j]:.2f}", name_cell(names[j]), name_cell(names[i])])
            for i, j in zip(first[order], second[order], strict=True)
        ]
        shown = numeric[closest(r[np.ix_(numeric, numeric)], MAPPED)]
        part, labels = r[np.ix_(shown, shown)], [report.units.names[report.kept[k]] for k in shown]
        chart = draw_map(draw_squares(part, labels, PAGE, SQUARE, least=0.5))
        mapped = f"the {len(numeric)} kept columns"
        mapped += " that are numbers" if len(numeric) < n_kept else ""
        if len(numeric) > MAPPED:
            mapped = f"the {MAPPED} closest of the {n_kept} kept columns"
        caption = (
            f"Absolute correlation of {mapped}, in hundredths from 50 up; the fuller the square, "
            "the closer the two."
        )
        heads = [("|r|", "num"), ("column", ""), ("and column", "")]
        pairs = table(heads, rows, label="Pairs of redundant columns")
        blocks = [
            figure("redundancy", chart, caption, "Map of correlations"),
            details(f"The pairs above {REDUNDANT}", pairs) if rows else None,
        ]
    return Section("redundancy", "Redundancy", "Redundant columns", [("p", words), *blocks])


def _stability(report: Report) -> Section | None:
    agreement = report.agreement
    if agreement is None or not report.kept:
        return None
    often = sum(agreement.share[unit] >= 0.9 for unit in report.kept)
    rivals = int(((agreement.share >= 0.5) & ~report.units.kept).sum())
    resamples = f"{agreement.n} resamples" if agreement.n else "the resamples"
    words = (
        f"Stability across {resamples}: {agreement.index:.2f} ({agreement.low:.2f} to "
        f"{agreement.high:.2f}; 1 = identical, 0 = chance), which is {agreement.word}. {often} of "
        f"{len(report.kept)} columns are in nine of ten resamples."
    )
    if rivals:
        which = "column that is not kept is" if rivals == 1 else "columns that are not kept are"
        words += f" {rivals} {which} in at least half of them (hollow)."
    chart = draw_stability(report.units, agreement.share, MAPPED, PAGE, BARS)
    caption = (
        f"Filled: kept. Hollow: not kept, but in at least {100 * RIVAL:.0f}{NBSP}% of the "
        "resamples."
    )
    drawn = figure("stability", draw_with_names(chart), caption)
    return Section("stability", "Stability", "Stability", [("p", words), drawn])


def _path(report: Report) -> Section | None:
    walk = report.walk
    if walk is None:
        return None
    last = format_name(report.units.names[walk.moved[-1][-1]])
    several = max(map(len, walk.moved)) > 1
    if walk.leaving:
        title, verb = "How the others left", "leaving"
        how = "several at a time" if several else "one at a time"
        words = (
            f"The search began with all {int(walk.size[0])} columns and dropped {how}, the least "
            f"useful first. The last to leave was {last}."
        )
    else:
        title, verb = "How they entered", "entering"
        words = (
            f"The search began with no columns and added the most useful one {len(walk.size)} "
            f"times. The last to enter was {last}."
        )
    chart = draw_path(walk, report.units.names, PAGE, WIDE, 220)
    mean = "; if several moved at once, their mean" if several else ""
    caption = f"Score of each {verb} column at its step, in the units of the criterion{mean}."
    return Section("path", title, title, [("p", words), figure("path", draw(chart), caption)])


def _tuning(report: Report) -> Section | None:
    tuned = report.tuned
    if tuned is None:
        return None
    measure, best_C = tuned.measure, format_number(tuned.best_C)
    extreme, word = (np.max, "greatest") if measure.greater_is_better else (np.min, "smallest")
    best = measure.format(float(extreme(tuned.value)))
    low, high = format_number(tuned.C[0]), format_number(tuned.C[-1])
    if tuned.flat:
        words = (
            f"Every C from {low} to {high} gives the same cross-validated {measure.words}, {best}: "
            f"C = {best_C} was taken."
        )
        return Section("tuning", "Error against C", "Error against C", [("p", words)])
    words = (
        f"C = {best_C} lies in the middle of the interval that was chosen. The curve is exact at "
        f"every C, not sampled: {tuned.n_segments} segments, and the {word} value, {best}, is "
        f"{'certified' if tuned.certified else 'not certified'}."
    )
    caption = (
        f"Cross-validated {measure.words} against C from {low} to {high}; at the chosen C "
        f"{measure.format(tuned.at_best)}. Shaded: the interval it was taken from."
    )
    drawn = figure("C", draw(draw_tuning(tuned, PAGE, WIDE, 190)), caption)
    return Section("tuning", "Error against C", "Error against C", [("p", words), drawn])
