"""The sentences of a page."""

import re

import numpy as np
from markupsafe import Markup, escape

from tamis.plot.kept import RIVAL
from tamis.plot.reading import MetricFormat
from tamis.plot.style import figure, harmless
from tamis.plot.tuned import TunedCurve
from tamis.report.facts import Errors, Estimate, Report

#: A space that keeps a number and its sign together.
NBSP = "\u00a0"
#: From this correlation on one of two columns might do.
PAIR = 0.8


def heading(report: Report) -> str:
    """What to do, in one line."""
    if report.title is not None:
        return harmless(report.title)
    if not report.n_kept:
        return "No column is worth keeping"
    target = f" to predict {harmless(report.target)}" if report.target else ""
    first = "Keep" if report.finished else "So far, keep"
    noun = "column" if report.n_columns == 1 else "columns"
    return f"{first} {report.n_kept} of {report.n_columns} {noun}{target}"


def spread(estimate: Estimate, measure: MetricFormat) -> str:
    """± one standard error; nothing where it is not known, 0, or would be written as 0."""
    least = 0.05 if measure.percent else 0.0
    if not np.isfinite(estimate.error) or estimate.error <= least:
        return ""
    return (
        f"±{NBSP}{estimate.error:.1f}" if measure.percent else f"±{NBSP}{figure(estimate.error, 2)}"
    )


def lead(report: Report) -> Markup:
    """The error with the kept columns, with all, and by guessing."""
    errors = report.errors
    if not report.n_kept:
        return Markup("{}").format(_nothing(report))
    if errors is None:
        return _unmeasured(report)
    if errors.measure.percent and not errors.measure.greater_is_better:
        return _wrong(report)
    name, n = errors.measure.words, report.n_kept
    said = Markup("{} trained on {} has a {} of <b>{}</b>{} on rows it has not seen").format(
        errors.machine, _these(n), name, errors.measure.written(errors.kept.value),
        _bracketed(errors.kept, errors.measure),
    )  # fmt: skip
    if errors.r2 is not None:
        said += Markup(" (R² {})").format(f"{errors.r2.value:.2f}")
    if errors.whole is not None:
        said += Markup("; with all {} columns, <b>{}</b>{}").format(
            report.n_columns, errors.measure.written(errors.whole.value),
            _bracketed(errors.whole, errors.measure),
        )  # fmt: skip
    if errors.guess is not None:
        word = "no columns" if errors.measure.greater_is_better else "guessing the mean every time"
        said += Markup("; {}, {}").format(word, errors.measure.written(errors.guess))
    return said + _scores(errors) + Markup(".")


def _these(n: int) -> str:
    return "this column" if n == 1 else f"these {n} columns"


def _bracketed(estimate: Estimate, measure: MetricFormat) -> str:
    said = spread(estimate, measure)
    return f" ({said})" if said else ""


def _wrong(report: Report) -> Markup:
    errors = report.errors
    assert errors is not None
    said = Markup("{} trained on {} is wrong on <b>{}</b>{} of the rows it has not seen").format(
        errors.machine, _these(report.n_kept), errors.measure.written(errors.kept.value),
        _bracketed(errors.kept, errors.measure),
    )  # fmt: skip
    if errors.whole is not None:
        said += Markup("; with all {} columns, on <b>{}</b>{}").format(
            report.n_columns, errors.measure.written(errors.whole.value),
            _bracketed(errors.whole, errors.measure),
        )  # fmt: skip
    if errors.guess is not None:
        said += Markup("; guessing “<bdi>{}</bdi>” every time, on {}").format(
            harmless(errors.guess_word), errors.measure.written(errors.guess)
        )
    return said + _scores(errors) + Markup(".")


def _scores(errors: Errors) -> Markup:
    """Other scores, each next to that of the baseline."""
    parts = [
        Markup("{} <b>{:.2f}</b> (baseline {:.2f})").format(one.name, one.kept.value, one.guess)
        for one in errors.scores
    ]
    return Markup("; ") + Markup(", ").join(parts) if parts else Markup()


def _nothing(report: Report) -> str:
    why = sentence(report.reason) or "The selection keeps nothing."
    return f"{why} The ranking below is what there is."


def _unmeasured(report: Report) -> Markup:
    why = sentence(report.reason)
    if report.task == "none":
        rest = "There is no target, so that there is no error to tell."
    else:
        rest = (
            "There is no estimate of errors: the columns were chosen, and looked at, on all rows."
        )
    return Markup("{} {}").format(why, rest)


def sentence(text: str) -> str:
    """A reason as a sentence.

    >>> sentence("5 were asked for.")
    '5 were asked for.'
    >>> sentence("the best of all")
    'The best of all.'
    """
    text = re.sub(r"(\d unit)\b|(\d) units\b", _column, harmless(text)) if text.strip() else ""
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _column(match: re.Match[str]) -> str:
    """Whom a page is for knows columns, not units."""
    return match[0].replace("unit", "column")


def how_to_measure(report: Report) -> str:
    """What adds an estimate of errors."""
    if report.command:
        return f"{report.command} --resamples 20"
    return "report(selection, X, y, results=resampled(selection, X, y))"


def size_words(report: Report) -> str:
    """Why this number, in two sentences."""
    curve, errors = report.curve, report.errors
    if curve is None or errors is None:
        return sentence(report.reason)
    if not curve.values.size:  # a selection that chose the number on rows left out says so itself
        return sentence(report.reason)
    good, best = curve.smallest_good()
    measure = curve.measure
    said = {k: measure.written(curve.at(k)[0]) for k in (good, best)}
    rule = (
        f"is the smallest number whose {_exceeding(measure)} of the best number by no more than "
        "one standard error of the difference"
    )
    if good == report.n_kept == best:
        why = f"{good} has the best {measure.words} of all numbers that were tried ({said[best]})."
    elif good == report.n_kept:
        why = f"{good} {rule}: best are {best} columns with {said[best]}; {good} have {said[good]}."
    else:
        own = sentence(report.reason)
        why = f"{own} By these resamples {good} {rule}: best are {best} columns with {said[best]}."
    return f"{why} {errors.how}"


def _exceeding(measure: MetricFormat) -> str:
    if measure.words.endswith(("errors", "answers")):
        return f"{measure.words} {'fall short of' if measure.greater_is_better else 'exceed'} those"
    return f"{measure.words} {'falls short of' if measure.greater_is_better else 'exceeds'} that"


def curve_caption(report: Report) -> str:
    """The finding of the curve, for those who do not see it."""
    curve = report.curve
    assert curve is not None
    measure = curve.measure
    places = [int(curve.size[0]), report.n_kept, curve.n_features]
    told = [
        f"{measure.written(curve.at(k)[0])} with {k}"
        for k in dict.fromkeys(places)
        if np.isfinite(curve.at(k)[0])
    ]
    words = measure.words[0].upper() + measure.words[1:]
    band = "Band: one standard error"
    band += ", corrected for the overlap of the resamples." if curve.values.size else " over rows."
    return f"{words} on unseen rows against the number of columns kept: {', '.join(told)}. {band}"


def stability_words(report: Report) -> str:
    """How far resamples agree."""
    agreement = report.agreement
    assert agreement is not None
    n_kept = len(report.kept)
    often = sum(agreement.share[unit] >= 0.9 for unit in report.kept)
    rivals = int(((agreement.share >= 0.5) & ~report.units.kept).sum())
    resamples = f"Over {agreement.n} resamples" if agreement.n else "Over the resamples"
    said = (
        f"{resamples} the choice has a stability of {agreement.index:.2f} "
        f"({agreement.low:.2f} to {agreement.high:.2f}; 0 is chance, 1 always the "
        f"same): {agreement.word}. {often} of {n_kept} columns are in nine of ten resamples."
    )
    if rivals:
        which = "column not kept here is" if rivals == 1 else "columns not kept here are"
        said += f" {rivals} {which} in at least half of them (hollow)."
    return said


def pairs_words(report: Report) -> str:
    """Which pair tells most, and that the best of many is high by chance too."""
    best = report.pairs[0]
    names = [harmless(report.units.names[unit]) for unit in best[:2]]
    n = report.units.units.n_units
    chance = "a pair that stands out from the others is worth a look, not a proof."
    if best.p_value is not None:
        chance = (
            "in tables whose target is permuted the best pair tells as much with probability "
            f"{figure(best.p_value, 2)}."
        )
    return (
        f"{names[0]} and {names[1]} tell {figure(best.information, 2)} nats of the target together "
        "beyond what each tells alone. All "
        f"{n * (n - 1) // 2} pairs were looked at, and the best of many is high by chance too: "
        f"{chance}"
    )


def stability_caption() -> str:
    """What is filled and what is hollow."""
    return (
        f"Filled: kept here. Hollow: not kept here, but in at least {100 * RIVAL:.0f}{NBSP}% of "
        "the resamples."
    )


def redundancy_words(report: Report) -> str:
    """How many pairs say the same."""
    lower = np.tril(np.ones(report.between.shape, dtype=bool), -1)
    r = report.between[lower]
    close, total = int((np.nan_to_num(r) > PAIR).sum()), int(np.isfinite(r).sum())
    said = f"{close} of {total} pairs of kept columns have |r| above {PAIR}."
    if close:
        said += (
            " Columns that say the same stand side by side; full squares are pairs of which one "
            "might do."
        )
    return said


def path_words(report: Report) -> str:
    """How the search walked."""
    walk = report.walk
    assert walk is not None
    names = report.units.names
    last = harmless(names[walk.moved[-1][-1]])
    if not walk.leaving:
        return (
            f"The search began with nothing and took the most useful column next, {len(walk.size)} "
            f"times. The last to enter was {last}."
        )
    several = max(map(len, walk.moved)) > 1
    how = "several at a time" if several else "one at a time"
    return (
        f"The search began with all {int(walk.size[0])} columns and dropped {how}, the least "
        f"useful first. The last to leave was {last}."
    )


def tuning_words(tuned: TunedCurve) -> str:
    """Where C was chosen, and how sure that is."""
    measure = tuned.measure
    best = measure.written(float((np.max if measure.greater_is_better else np.min)(tuned.value)))
    if tuned.flat:
        return (
            f"Every C from {figure(tuned.C[0])} to {figure(tuned.C[-1])} gives the same "
            f"cross-validated {tuned.measure.words}, {best}: C = {figure(tuned.best_C)} was taken."
        )
    proof = "is certified" if tuned.certified else "is not certified"
    extreme = "greatest" if tuned.measure.greater_is_better else "smallest"
    return (
        f"C = {figure(tuned.best_C)} lies in the middle of the interval that was chosen. The curve "
        f"is exact at every C, not sampled: {tuned.n_segments} segments, and the {extreme} value, "
        f"{best}, {proof}."
    )


def tuning_caption(tuned: TunedCurve) -> str:
    """The curve over C in words."""
    at = tuned.measure.written(tuned.at_best)
    return (
        f"Cross-validated {tuned.measure.words} against C from {figure(tuned.C[0])} to "
        f"{figure(tuned.C[-1])}; at the chosen C {at}. Shaded: the interval it was taken from."
    )


def escaped(text: str) -> Markup:
    """Text inside a page."""
    return escape(harmless(text))
