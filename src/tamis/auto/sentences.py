"""The answer of Auto in words."""

from collections.abc import Callable
from typing import Any

from tamis._format import format_interval
from tamis.auto.held_out import AutoOutcome, HeldOut
from tamis.auto.plan import ROWS
from tamis.meta.repeats import Verdict

#: Names of paths in a sentence.
ORDERS = {
    "information": "ordered by joint information",
    "forest": "ordered by a forest",
    "cox": "ordered by the Cox score",
}
#: Names of models.
MODELS = {
    "ridge": "ridge regression",
    "machine": "an RBF SVM",
    "trees": "a forest",
    "cox": "Cox regression",
}
#: How a size is chosen.
WITHIN = {
    "balanced": "the smallest number whose loss is within two standard errors, and 5 %, of the "
    "least",
    "short": "the smallest number whose loss is within two standard errors, and 20 %, of the least",
    "best": "the number with the least loss",
}
#: Names of scores in a sentence.
SCORES = {
    "roc_auc": "AUC",
    "roc_auc_ovr": "AUC (each class against the rest)",
    "average_precision": "average precision",
}


def describe_error(error: HeldOut) -> str:
    """Return an error in words, with the standard errors that are not 0 when rounded."""
    said = []
    if error.wrong is not None:
        wrong = 100 * error.wrong, 100 * (error.wrong_error or 0)
        said.append(f"{format_interval(*wrong, decimals=1)} % error")
    elif error.rmse is not None:
        said.append(f"root mean square {error.rmse:.4g} (R² {error.r2:.2f})")
    for name, score in error.scores.items():
        words = SCORES.get(name, name.replace("_", " "))
        said.append(f"{words} {format_interval(*score, decimals=3)}")
    return ", ".join(said)


def baseline_of(found: HeldOut) -> str:
    """Return what the baseline predicts."""
    if found.wrong is not None:
        return "baseline (majority class)"
    return "baseline (mean)" if found.rmse is not None else "baseline (no columns)"


def verdict_of(
    found: AutoOutcome, size: str, asked: bool, counted: Callable[[Any], str]
) -> Verdict:
    """Return the number of selected columns, and why."""
    base = f"{baseline_of(found.error_guess)}: {describe_error(found.error_guess)}"
    if not found.size:
        return Verdict(
            0,
            "no list of columns that was tried is significantly better than the baseline on "
            f"held-out rows ({base}).",
        )
    how = f"{counted(found.size)} {ORDERS[found.path]}, for {MODELS[found.model]}"
    said = f"held-out rows: {describe_error(found.error)}; {base}"
    if asked:
        doubt = "" if found.found else " They are not significantly better than the baseline."
        return Verdict(found.size, f"{how}, the least loss at that number; {said}.{doubt}")
    return Verdict(found.size, f"{how}: {WITHIN[size]}; {said}.")


def reasons_of(auto: Any) -> list[str]:
    """Return the lines that describe the answer."""
    lines = [f"rows used: {one.reason}" for one in auto.plan_ if one.name == ROWS]
    found = auto._outcome
    if found is not None and not found.found:
        lines.append("no list that was tried is significantly better than the baseline")
    if auto.path_ is None and found is not None:
        lines.append(f"the ranking: all columns {ORDERS[found.path]}")
    if auto.path_ is not None:
        lines.append(f"{ORDERS[auto.path_]}, for {MODELS[auto.model_]}")
        lines.append(f"held-out rows: {describe_error(auto.error_)}")
    if auto.error_all_ not in (None, auto.error_):  # all are kept
        lines.append(f"with all columns: {describe_error(auto.error_all_)}")
    if auto.error_guess_ is not None:
        lines.append(f"{baseline_of(auto.error_guess_)}: {describe_error(auto.error_guess_)}")
    if auto.stability_ is not None:
        lines.append(
            f"stability across folds: {auto.stability_.nogueira:.2f} (1 = identical, 0 = chance)"
        )
    if auto.path_ is not None and auto.size == "balanced" and found.n_short < found.size:
        lines.append(f'a shorter list: {auto._counted(found.n_short)}, by Auto(size="short")')
    if auto.plan_:
        orders, models = (
            ", ".join(words[name].removeprefix("ordered by ") for name in words if name in tried)
            for words, tried in (
                (ORDERS, {point.path for point in auto.curve_}),
                (MODELS, {point.model for point in auto.curve_}),
            )
        )
        lines.append(f"tried: orders by {orders}; models: {models}")
    else:
        lines.append(auto.choice_.reason)
    lines += [f"skipped {one.name}: {one.reason}" for one in auto.plan_ if not one.tried]
    if auto.stopped_:
        lines.append("stopped early: time limit reached")
    return lines
