"""What AUTO says of its answer, in plain words."""

from collections.abc import Callable
from typing import Any

from tamis.auto.held_out import AutoOutcome, HeldOut
from tamis.auto.plan import ROWS
from tamis.choice.rounds import Verdict

#: What a path is called in a sentence.
SPOKEN = {
    "information": "ordered by joint information",
    "forest": "ordered by a forest",
}
#: What a model is called.
MODELS = {"ridge": "ridge regression", "machine": "an RBF machine", "trees": "a forest"}
#: How a size is chosen.
WITHIN = {
    "balanced": "the smallest number whose squared loss is within one standard error, and 5 %, of "
    "the least",
    "short": "the smallest number whose squared loss is within one standard error of the least",
    "best": "the number with the least squared loss",
}
#: Where an error comes from.
UNSEEN = "on rows that took no part in the choosing"


def spoken(error: HeldOut) -> str:
    """An error in words; a standard error that would be written as 0 is not."""
    if error.wrong is not None:
        spread = f"{100 * (error.wrong_error or 0):.1f}"
        between = f" ± {spread}" if spread != "0.0" else ""
        return f"{100 * error.wrong:.1f}{between} % wrong"
    return f"root mean square {error.rmse:.4g} (R² {error.r2:.2f})"


def verdict_of(
    found: AutoOutcome, size: str, asked: bool, counted: Callable[[Any], str]
) -> Verdict:
    """How many columns are kept, and why."""
    if not found.size:
        return Verdict(
            0,
            "no list of columns that was tried is better than a guess without columns "
            f"{UNSEEN} (a guess: {spoken(found.error_guess)}).",
        )
    how = f"{counted(found.size)} {SPOKEN[found.path]}, for {MODELS[found.model]}"
    said = f"{UNSEEN}: {spoken(found.error)}; a guess: {spoken(found.error_guess)}"
    if asked:
        doubt = "" if found.found else " They are no better than the guess."
        return Verdict(found.size, f"{how}, the least squared loss at that number; {said}.{doubt}")
    return Verdict(
        found.size,
        f"{how}: {WITHIN[size]}; {said}.",
    )


def reasons_of(auto: Any) -> list[str]:
    """What speaks for the answer, in lines."""
    lines = [f"rows looked at: {one.reason}" for one in auto.plan_ if one.name == ROWS]
    if auto.path_ is None and auto._outcome is not None:
        lines.append("no list that was tried is better than a guess without columns")
        lines.append(f"the ranking: all columns {SPOKEN[auto._outcome.path]}")
    if auto.path_ is not None:
        lines.append(f"{SPOKEN[auto.path_]}, for {MODELS[auto.model_]}")
        lines.append(f"error {UNSEEN}: {spoken(auto.error_)}")
    if auto.error_all_ not in (None, auto.error_):  # all are kept
        lines.append(f"with all columns: {spoken(auto.error_all_)}")
    if auto.error_guess_ is not None:
        lines.append(f"a guess without columns: {spoken(auto.error_guess_)}")
    if auto.stability_ is not None:
        lines.append(
            f"the folds agree to {auto.stability_.nogueira:.2f} on the columns (1 is fully, 0 by "
            "chance)"
        )
    if (fewer := _shorter(auto)) is not None:
        lines.append(f'within one standard error: {auto._counted(fewer)}, by Auto(size="short")')
    if auto.plan_:
        lines.append(f"tried: orders by {_tried(auto, SPOKEN)}; models: {_tried(auto, MODELS)}")
    else:
        lines.append(auto.choice_.reason)
    lines += [f"skipped {one.name}: {one.reason}" for one in auto.plan_ if not one.tried]
    if auto.stopped_:
        lines.append("the clock stopped it before the plan was through")
    return lines


def _shorter(auto: Any) -> int | None:
    """How many columns ``size="short"`` would keep, where that is fewer than are kept."""
    if auto.path_ is None or auto.size != "balanced" or auto.n_features_to_select is not None:
        return None
    best = min(auto.curve_, key=lambda point: point.loss)
    bound = best.loss + best.standard_error
    fewest: int = min(point.size for point in auto.curve_ if point.loss <= bound)
    return fewest if fewest < auto._outcome.size else None


def _tried(auto: Any, words: dict[str, str]) -> str:
    """The paths, or the models, that were tried."""
    tried = {one.name.split(": ")[-1] for one in auto.plan_ if one.tried}
    return ", ".join(words[name].removeprefix("ordered by ") for name in words if name in tried)
