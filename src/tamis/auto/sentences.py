"""Sentences that describe the result of Auto."""

from collections.abc import Callable
from typing import Any

from tamis._format import format_interval, format_score_name, shorten_list
from tamis.auto.held_out import AutoOutcome, HeldOut, LostError
from tamis.auto.orders import DUPLICATE, PER_PRICE
from tamis.auto.plan import ALL, ROWS
from tamis.contract.costs import format_price
from tamis.meta.repeats import Verdict

#: False discovery rate below which a selected column is counted as confirmed.
FDR = 0.1
#: Readable names of the column orders.
ORDERS = {
    "information": "joint mutual information",
    "forest": "forest importance",
    "floating": "floating search by R²",
    "distinct information": "joint mutual information without near-duplicates",
    "distinct forest": "forest importance without near-duplicates",
    "interactions": "interactions",
    "cox": "Cox score",
}
#: Readable names of the models.
MODELS = {
    "ridge": "ridge regression",
    "machine": "RBF SVM",
    "trees": "forest",
    "boosting": "gradient boosting",
    "cox": "Cox regression",
}
#: Readable names of the steps of a plan.
STEPS = {
    **{f"path: {path}": f"column order by {name}" for path, name in ORDERS.items()},
    **{f"model: {model}": name for model, name in MODELS.items()},
    **{f"{ALL}: {model}": f"{name} on all columns" for model, name in MODELS.items()},
    "repeats": "repeated cross-validation",
    "long lists": "lists of more than 40 columns",
}
#: Readable names of the lists.
LISTS = {"best": "best list", "balanced": "default list", "short": "short list"}
#: Description of the rule that chooses the number of columns, for each value of ``size``.
WITHIN = {
    "balanced": "the smallest {} whose loss is within two standard errors and 5 % of the lowest",
    "short": "the smallest {} whose loss is within three standard errors and 15 % of the lowest",
    "best": "the {} with the lowest loss",
}


def describe_order(path: str) -> str:
    """Return the name of an order as text.

    >>> describe_order("forest per price")
    'forest importance per price'
    """
    base = path.removesuffix(PER_PRICE)
    return ORDERS[base] + path.removeprefix(base)


def describe_error(error: HeldOut) -> str:
    """Return an error as text. A standard error that rounds to 0 is omitted."""
    texts = []
    if error.wrong is not None:
        wrong = 100 * error.wrong, 100 * (error.wrong_error or 0)
        texts.append(f"{format_interval(*wrong, decimals=1)} % error")
    elif error.rmse is not None:
        texts.append(f"root mean squared error {error.rmse:.4g} (R² {error.r2:.2f})")
    for name, score in error.scores.items():
        texts.append(f"{format_score_name(name)} {format_interval(*score, decimals=3)}")
    return ", ".join(texts)


def describe_baseline(error: HeldOut) -> str:
    """Return the prediction of the baseline and its error as text."""
    kind = "no columns"
    if error.wrong is not None:
        kind = "majority class"
    elif error.rmse is not None:
        kind = "mean"
    return f"baseline ({kind}): {describe_error(error)}"


def describe_tests(auto: Any) -> str:
    """Return how many selected units are informative given all others, by the conditional test."""
    q = auto.q_values_[auto.unit_support_]
    return (
        f"conditional test: {(q <= FDR).sum()} of {auto._counted(len(q))} with q <= {FDR:g} (q is "
        "corrected over all columns; informative given all other columns)"
    )


def describe_lists(auto: Any) -> list[str]:
    """Return a line for each list of columns, and for each selected column with near-duplicates."""
    lines = []
    chosen = {"best": auto.best_, "short": auto.short_}
    if any(each is not None and each.columns != auto.columns for each in chosen.values()):
        for name, found in auto._outcome.lists.items():
            error = describe_error(found.error) or f"loss {found.error.loss:.3g}"
            line = f"{LISTS[name]}: {auto._counted(found.size)}, {error}"
            if name != "best" and found.lost.loss:
                line += f" ({describe_difference(found.lost)} compared with the best list)"
            lines.append(line)
    if auto.stands_for_:
        each = (f"{shorten_list(of)} (like {column})" for column, of in auto.stands_for_.items())
        lines.append(f"similar columns left out (|r| > {DUPLICATE:g}): {'; '.join(each)}")
    return lines


def describe_front(auto: Any) -> list[str]:
    """Return a line for each list of the price front: price, error and changed columns."""
    lines: list[str] = []
    before: tuple[Any, ...] = ()
    for one in auto.front_:
        percent = auto.error_guess_.wrong is not None
        loss, error, blind = (
            100 * value if percent else value for value in (one.loss, one.error, one.blind_loss)
        )
        shown = f"{loss:.4g} ± {error:.2g}"
        if percent:
            shown = f"{format_interval(loss, error, decimals=1)} % error"
        new = shorten_list([column for column in one.columns if column not in before])
        gone = shorten_list([column for column in before if column not in one.columns])
        line = f"{format_price(one.price)}: {shown}, {auto._counted(len(one.columns))}"
        line += f", adds {new}" if new else ""
        line += f", drops {gone}" if gone else ""
        if one.blind_loss > one.loss:
            line += f" (without prices {blind:{'.1f' if percent else '.4g'}})"
        lines.append(line)
        before = one.columns
    return lines and ["error within each price:", *(f"  {line}" for line in lines)]


def describe_difference(lost: LostError) -> str:
    """Return the difference between two errors as text.

    >>> describe_difference(LostError(0.02, 0.01, 0.013, 0.004))
    '+1.3 ± 0.4 % error'
    >>> describe_difference(LostError(0.067, 0.029))
    '+0.067 ± 0.029 in the loss'
    """
    if lost.wrong is not None:
        percent = round(100 * lost.wrong, 1) + 0.0  # not -0.0
        wrong = format_interval(percent, 100 * (lost.wrong_error or 0), decimals=1)
        return f"{'+' * (percent >= 0)}{wrong} % error"
    loss, error = (
        (lost.loss, lost.standard_error) if lost.rmse is None else (lost.rmse, lost.rmse_error or 0)
    )
    kind = "" if lost.rmse is not None else " in the loss"
    return f"{loss:+.3g} ± {error:.2g}{kind}"


def verdict_of(
    found: AutoOutcome, size: str, asked: bool, counted: Callable[[Any], str], limit: str = ""
) -> Verdict:
    """Return the number of selected columns, and the reason as text.

    ``limit`` describes the price limit, if there is one.
    """
    baseline = describe_baseline(found.error_guess)
    if not found.size:
        return Verdict(
            0,
            "none of the sets of columns that were tried is significantly better than the baseline "
            f"on held-out rows ({baseline}).",
        )
    order, within = describe_order(found.path), f" within {limit}" if limit else ""
    how = f"{counted(found.size)}{within} (order: {order}; model: {MODELS[found.model]})"
    errors = f"held-out rows: {describe_error(found.error)}; {baseline}"
    if asked:
        doubt = "" if found.found else " They are not significantly better than the baseline."
        return Verdict(found.size, f"{how}: the lowest loss at this number; {errors}.{doubt}")
    rule = WITHIN[size].format("price limit" if limit else "number")
    return Verdict(found.size, f"{how}: {rule}; {errors}.")


def reasons_of(auto: Any) -> list[str]:
    """Return the lines of a summary that describe how the columns were selected."""
    lines = [auto._target] if auto._target else []
    lines += [f"rows used: {step.reason}" for step in auto.plan_ if step.name == ROWS]
    found = auto._outcome
    if found is not None and not found.found:
        lines.append("no set of columns is significantly better than the baseline")
    if auto.path_ is None and found is not None:
        lines.append(f"all columns are ranked by {describe_order(found.path)}")
    if auto.path_ is not None:
        order, model = describe_order(auto.path_), MODELS[auto.model_]
        lines.append(f"column order: {order}; model: {model}")
        lines.append(f"held-out rows: {describe_error(auto.error_)}")
    if auto.error_all_ not in (None, auto.error_):  # equal if all columns are selected
        lines.append(f"with all columns: {describe_error(auto.error_all_)}")
    if auto.error_guess_ is not None:
        lines.append(describe_baseline(auto.error_guess_))
    if auto.environment_errors_:
        errors = auto.environment_errors_.items()
        each = "; ".join(f"{label}: {describe_error(error)}" for label, error in errors)
        lines.append(f"each environment predicted from the others: {each}")
    if auto.q_values_ is not None:
        lines.append(describe_tests(auto))
    if auto.stability_ is not None:
        lines.append(
            f"stability across folds: {auto.stability_.nogueira:.2f} (1 = identical, 0 = chance)"
        )
    lines += [*auto.describe_price(), *describe_front(auto), *describe_lists(auto)]
    if auto.plan_:
        paths, models = ({getattr(p, of) for p in auto.curve_} for of in ("path", "model"))
        orders = ", ".join(name for path, name in ORDERS.items() if path in paths)
        orders += ", each also per price" if auto.front_ else ""
        trained = ", ".join(name for model, name in MODELS.items() if model in models)
        lines.append(f"tried: column orders by {orders}; models: {trained}")
    else:
        lines.append(auto.choice_.reason)
    lines += [
        f"{STEPS.get(step.name, step.name)} skipped ({step.reason})"
        for step in auto.plan_
        if not step.tried
    ]
    if auto.stopped_:
        lines.append("stopped early: time limit reached")
    return lines
