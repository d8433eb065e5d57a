"""A report as one file: the facts put into the template, with pictures drawn beforehand."""

import json
from typing import Any

import numpy as np
from markupsafe import Markup

from tamis.plot.columns import SQUARE, closest, draw_squares
from tamis.plot.curves import draw_curve
from tamis.plot.kept import draw_stability, kept_shares
from tamis.plot.pairs import draw_interactions
from tamis.plot.style import PAGE, figure, harmless
from tamis.plot.tuned import draw_tuning
from tamis.plot.walks import draw_path, draw_values
from tamis.report import wording
from tamis.report.drawing import drawn
from tamis.report.effect_drawing import effect_svg
from tamis.report.facts import Estimate, NamedScore, Report, Swap, plain
from tamis.report.rendering import WIDE, beside_names, both, rendered
from tamis.report.strip_drawing import strip_svg

#: Rows of the long table that a page holds without JavaScript, and shows at a time with it.
ROWS = 50
#: Kept columns that are shown at first.
FIRST = 25
#: Columns of the map of what says the same, and names in the heading.
MAPPED, LISTED = 40, 40
#: Pairs that say the same which are written out.
PAIRS = 60


def page_of(report: Report) -> str:
    """The page as text."""
    return rendered(
        "report.html.j2",
        report.made,
        ["report.js"],
        report=report,
        words=wording,
        heading=wording.heading(report),
        lead=wording.lead(report),
        cares=report.cares,
        command=report.command,
        details=report.details,
        figures=_figures(report),
        names=_names(report),
        answers=_answers(report),
        first=FIRST,
        scored=bool(np.isfinite(report.units.scores).any()),
        table=_table(report),
        rows=ROWS,
        data=Markup(_data(report)),
        pictures=_pictures(report),
        pairs=_pairs(report),
        strongest=_strongest(report),
        sections=_sections(report),
        legend=_legend(report),
        changes=any(s.change is not None for some in report.swaps.values() for s in some),
        numbers=_numbers(report),
        effects=_effects(report),
        mapped=_mapped(report),
        path_title=_path_title(report),
        several=report.walk is not None and max(map(len, report.walk.moved)) > 1,
    )


def _names(report: Report) -> dict[str, Any]:
    kept = [harmless(report.units.names[unit]) for unit in report.kept]
    return {"shown": kept[:LISTED], "more": len(kept) - LISTED}


def _figures(report: Report) -> list[tuple[str, str, str]]:
    """The few numbers under the heading: what, how much, and a word on it."""
    shown = [("Columns kept", str(report.n_kept), f"of {report.n_columns}")]
    errors, agreement = report.errors, report.agreement
    if errors is not None:
        measure = errors.measure
        name = measure.words[0].upper() + measure.words[1:] + " on unseen rows"
        value = measure.written(errors.kept.value)
        notes = [wording.spread(errors.kept, measure)]
        if errors.r2 is not None:
            notes.append(f"R² {errors.r2.value:.2f}")
        shown.append((name, value, ", ".join(filter(None, notes))))
        for score in errors.scores:
            name = score.name[0].upper() + score.name[1:]
            shown.append((name, f"{score.kept.value:.2f}", f"baseline {score.guess:.2f}"))
        if errors.scores:  # the error rate hardly moves if a class is rare
            shown += _lost_score(errors.scores[0])
        elif errors.lost is not None and np.isfinite(errors.lost.value):
            shown.append(_lost(errors.lost, measure.percent))
    if agreement is not None:
        words = f"{agreement.word}; 0 chance, 1 always the same"
        shown.append(("Stability of the choice", f"{agreement.index:.2f}", words))
    return shown


def _lost(lost: Estimate, percent: bool) -> tuple[str, str, str]:
    """What keeping few columns costs, or brings, and whether that may be chance."""
    what = "Gained over all columns" if lost.value < 0 else "Lost against all columns"
    size = abs(lost.value)
    value = f"{size:.1f} points" if percent else figure(size, 2)
    if (percent and size < 0.05) or size == 0:
        return "Lost against all columns", "nothing", ""
    if not np.isfinite(lost.error):
        return what, value, ""
    within = size <= lost.error
    return what, value, "within one standard error" if within else "more than one standard error"


def _lost_score(score: NamedScore) -> list[tuple[str, str, str]]:
    """Return what keeping few columns costs in the first of the scores."""
    if score.lost is None or not np.isfinite(score.lost.value):
        return []
    what, value, note = _lost(score.lost, percent=False)
    return [(f"{what} ({score.name})", value, note)]


def _sections(report: Report) -> list[tuple[str, str]]:
    """Anchors and names of the sections that there are."""
    n_units = len(report.units.names)
    there = [
        ("columns", "Columns", bool(report.kept)),
        ("size", "How many", report.curve is not None or report.values is not None),
        ("effects", "What a model makes of them", bool(report.effects)),
        ("pairs", "Strongest pairs", bool(report.pairs)),
        ("ranking", f"All {n_units}", True),
        ("redundancy", "What says the same", bool(report.kept)),
        ("stability", "How sure", report.agreement is not None and bool(report.kept)),
        ("path", _path_title(report), report.walk is not None),
        ("tuning", "Error against C", report.tuned is not None),
        ("method", "How it was computed", True),
    ]
    return [(anchor, name) for anchor, name, here in there if here]


def _path_title(report: Report) -> str:
    return "How the others left" if report.walk and report.walk.leaving else "How they came in"


def _legend(report: Report) -> dict[str, Any]:
    """What the lines of the strips stand for."""
    kinds = {strip.kind for strip in report.strips.values()}
    many = len(report.groups) > 6
    line = {"classification": "class", "regression": "third of the target"}.get(report.task, "")
    per = f", one line per {line}" if line and not many else ""
    told = []
    if "density" in kinds:
        told.append(
            f"Shapes are densities{per}, each to its own height; the dot is the median; the "
            f"outer 1{wording.NBSP}% of rows is cut off."
        )
    if "ticks" in kinds:
        told.append(f"Each tick is one row of the table{per}; the dot is the median.")
    if "levels" in kinds:
        told.append("Bars are shares of the most frequent values, ever lighter.")
    if many and kinds:
        told.append("Top line: the class that is named; below, all rows.")
    head = {"classification": "Values by class", "regression": "Values by target"}
    return {
        "note": " ".join(told),
        "groups": report.groups if 1 < len(report.groups) <= 6 and kinds else [],
        "head": head.get(report.task, "Values"),
    }


def _answers(report: Report) -> list[dict[str, Any]]:
    """The kept columns, one by one."""
    finite = [s for unit in report.kept if np.isfinite(s := report.units.scores[unit])]
    most = max([*finite, 0.0])
    rows = []
    for rank, unit in enumerate(
        report.kept[: max(len(report.strips), len(report.swaps), FIRST)], 1
    ):
        name, score = report.units.names[unit], float(report.units.scores[unit])
        columns = report.units.units.columns(np.array([unit]))
        strip = report.strips.get(unit)
        share = None if report.agreement is None else 100 * float(report.agreement.share[unit])
        rows.append(
            {
                "rank": rank,
                "name": harmless(name),
                "about": harmless(about) if (about := report.descriptions.get(name)) else "",
                "columns": len(columns),
                "strip": "" if strip is None else strip_svg(strip, list(report.groups)),
                "words": "" if strip is None else strip.words,
                "score": figure(score),
                "bar": f"{100 * max(score, 0) / most:.1f}" if most > 0 and score == score else None,
                "share": share,
                "numeric": _is_numeric(report, rank - 1),
                "swaps": [_swap(report, swap) for swap in report.swaps.get(unit, [])],
            }
        )
    return rows


def _is_numeric(report: Report, place: int) -> bool:
    """Whether a kept unit can be close to others: text has no correlation."""
    return place >= len(report.between) or bool(np.isfinite(report.between[place]).any())


def _swap(report: Report, swap: Swap) -> dict[str, str]:
    said = f"{swap.r:.2f}"
    if swap.same:
        said += " · same"
    elif swap.change is not None:
        said += f" · +{figure(swap.change, 2)}".replace("+−", "−")
    return {"name": harmless(report.units.names[swap.unit]), "said": said}


def _table(report: Report) -> list[dict[str, Any]]:
    """The first rows of the table of all columns."""
    near, r = report.closest
    rows = []
    for rank, unit in enumerate(report.units.order[:ROWS].tolist(), 1):
        name = report.units.names[unit]
        other = int(near[unit])
        rows.append(
            {
                "rank": rank,
                "name": harmless(name),
                "about": harmless(about) if (about := report.descriptions.get(name)) else "",
                "kept": bool(report.units.kept[unit]),
                "score": figure(float(report.units.scores[unit])),
                "freq": _percent(report, unit),
                "med": _rank_span(report, unit),
                "near": "–"
                if other < 0
                else f"{harmless(report.units.names[other])} {r[unit]:.2f}",
            }
        )
    return rows


def _percent(report: Report, unit: int) -> str:
    return (
        "–"
        if report.agreement is None
        else f"{100 * report.agreement.share[unit]:.0f}{wording.NBSP}%"
    )


def _rank_span(report: Report, unit: int) -> str:
    ranks = report.ranks
    if ranks is None:
        return "–"
    return f"{ranks.median[unit]} ({ranks.low[unit]}–{ranks.high[unit]})"


def _data(report: Report) -> str:
    """What the script of the page reads, best column first; ``<`` cannot end the element."""
    order = report.units.order.tolist()
    place = {unit: k for k, unit in enumerate(order)}
    names = [harmless(report.units.names[unit]) for unit in order]
    raw = [report.units.names[unit] for unit in order]
    near, r = report.closest
    columns: dict[str, Any] = {
        "kept": len(report.kept),
        "name": names,
        "score": [_four(report.units.scores[unit]) for unit in order],
        "near": [place.get(int(near[unit]), -1) for unit in order],
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
        columns["desc"] = [harmless(report.descriptions.get(n, "") or "-")[:200] for n in raw]
    return json.dumps(columns, separators=(",", ":")).replace("<", "\\u003c")


def _four(value: float) -> float | None:
    """A score of four digits: more could not be read."""
    number = plain(value)
    return None if number is None else float(f"{number:.4g}")


def _effects(report: Report) -> list[dict[str, Any]]:
    """Small pictures of what a model answers, all on one scale."""
    if not report.effects:
        return []
    all_means = np.concatenate([line.means.ravel() for line in report.effects.values()])
    span = float(all_means.min()), float(all_means.max())
    shown = []
    for unit, line in report.effects.items():
        alone = len(line.outputs) == 1
        hues = ["var(--accent)"] if alone else [f"var(--c{k})" for k in line.outputs]
        name = harmless(report.units.names[unit])
        shown.append({"name": name, "svg": effect_svg(line, span, hues), "words": line.words})
    return shown


def _numbers(report: Report) -> list[tuple[int, str, str]]:
    """The curve as a table; a standard error of 0 is a dash."""
    if report.curve is None:
        return []
    curve, lines = report.curve, []
    for size, mean, error in zip(curve.size.tolist(), curve.mean, curve.error, strict=True):
        shown = [
            f"{v:.2f}" if curve.measure.percent else figure(float(v), 4) for v in (mean, error)
        ]
        lines.append((size, shown[0], shown[1] if error > 0 else "–"))
    return lines


def _mapped(report: Report) -> str:
    """Which kept columns the map shows."""
    numeric, kept = int(np.isfinite(report.between).any(axis=1).sum()), len(report.kept)
    if numeric > MAPPED:
        return f"the {MAPPED} closest of the {kept} kept columns"
    numbers = " that are numbers" if numeric < kept else ""
    return f"the {numeric} kept columns{numbers}"


def _pairs(report: Report) -> list[tuple[str, str, str]]:
    """Pairs of kept columns that say the same, the closest first."""
    r = np.nan_to_num(np.tril(report.between, -1))
    first, second = np.nonzero(r > wording.PAIR)
    order = np.argsort(-r[first, second], kind="stable")[:PAIRS]
    names = [harmless(report.units.names[unit]) for unit in report.kept]
    return [
        (f"{r[i, j]:.2f}", names[j], names[i])
        for i, j in zip(first[order], second[order], strict=True)
    ]


def _strongest(report: Report) -> list[dict[str, Any]]:
    """The pairs that tell most together, and how many of their columns are kept."""
    names, kept = report.units.names, report.units.kept
    return [
        {
            "first": harmless(names[pair.first]),
            "second": harmless(names[pair.second]),
            "told": figure(pair.information),
            "kept": ("neither", "one", "both")[int(kept[pair.first]) + int(kept[pair.second])],
        }
        for pair in report.pairs
    ]


def _pictures(report: Report) -> dict[str, Markup]:
    """All pictures as SVG, those with a width twice."""
    made: dict[str, Markup] = {}
    if report.curve is not None and len(report.curve.size) > 1:
        chosen = report.n_kept or None
        made["size"] = both(draw_curve([report.curve], chosen, PAGE, WIDE, 230))
    elif report.values is not None:
        made["size"] = both(draw_values(report.values, len(report.kept), PAGE, WIDE, 200))
    numeric = np.flatnonzero(np.isfinite(report.between).any(axis=1))  # text has no correlation
    if len(numeric) > 1:
        shown = numeric[closest(report.between[np.ix_(numeric, numeric)], MAPPED)]
        names = [report.units.names[report.kept[k]] for k in shown]
        part = report.between[np.ix_(shown, shown)]
        chart = draw_squares(part, names, PAGE, SQUARE, least=0.5)
        made["redundancy"] = Markup(drawn(chart, "map"))
    if report.pairs:
        chart = draw_interactions(report.pairs, report.units.names, PAGE, SQUARE)
        made["pairs"] = Markup(drawn(chart, "map"))
    if report.agreement is not None and report.kept:
        shares = kept_shares(report.units, report.agreement.share, MAPPED)
        chart = draw_stability(shares, report.units.names, PAGE, 420)
        made["stability"] = beside_names(chart)
    if report.walk is not None:
        made["path"] = both(draw_path(report.walk, report.units.names, PAGE, WIDE, 220))
    if report.tuned is not None and not report.tuned.flat:
        made["tuning"] = both(draw_tuning(report.tuned, PAGE, WIDE, 190))
    return made
