"""Effects of the selected columns on the predictions of a trained model."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from tamis._arrays import Array
from tamis._format import format_name, format_number
from tamis.exceptions import InvalidParameter
from tamis.report.columns import numbers_of
from tamis.report.svg import to_small_svg
from tamis.report.units import ChosenUnits
from tamis.response import effects

#: Largest number of columns whose effects are shown, and of rows used for the mean predictions.
MOST, ROWS = 12, 2000
#: Largest number of classes with a line each. If there are more, only the class that changes most
#: is drawn.
LINES = 6
#: Width and height in pixels of a small chart, and the margin for its lines.
WIDTH, HEIGHT, EDGE = 200, 56, 3


class EffectLine(NamedTuple):
    """Mean prediction of a model as a column increases.

    ``means`` has one row per value in ``values`` and one column per output in ``outputs``. An
    output is the index of a class, or 0 if there is a single output.
    """

    values: Array
    means: Array
    outputs: tuple[int, ...]
    words: str


def effect_lines(model: Any, X: Any, units: ChosenUnits) -> dict[int, EffectLine]:
    """Return the mean predictions while each of the first selected columns varies.

    The result is empty for tables with missing values, categories or groups of columns, because
    their model was trained on encoded columns.
    """
    kept = np.flatnonzero(units.kept)
    columns = units.units.columns(kept)
    if getattr(model, "n_features_in_", len(columns)) != len(columns):
        raise InvalidParameter(
            f"report needs a model that was trained on the {len(columns)} kept columns, in the "
            f"order of the table, not on {model.n_features_in_}. Write "
            "model=estimator.fit(selection.transform(X), y)."
        )
    numbers = numbers_of(X, columns)
    if not units.units.plain or not np.isfinite(numbers).all():
        return {}
    found = effects(model, numbers[:: max(1, len(numbers) // ROWS)])
    position = {unit: k for k, unit in enumerate(kept.tolist())}
    return {unit: _line(found[position[unit]], model) for unit in units.best_kept[:MOST].tolist()}


def _line(effect: Any, model: Any) -> EffectLine:
    values, means = (np.asarray(part, dtype=float) for part in (effect.values, effect.means))
    moved = int(np.ptp(means, axis=0).argmax())
    what = "mean prediction"
    if is_classifier(model):
        classes = [format_name(name) for name in model.classes_]
        name = classes[moved] if means.shape[1] == len(classes) else classes[-1]
        what = "mean probability" if hasattr(model, "predict_proba") else "mean output"
        what += f" of {name}"
    shown = tuple(range(means.shape[1])) if means.shape[1] <= LINES else (moved,)
    low, high = (f"{format_number(means[k, moved])} at {format_number(values[k])}" for k in (0, -1))
    return EffectLine(values, means[:, shown], shown, f"{what}: {low}, {high}")


def effect_svg(line: EffectLine, span: tuple[float, float]) -> Any:
    """Draw the effect of a column as lines. All effects in a report have the same scale."""
    hues = ["var(--accent)"] if len(line.outputs) == 1 else [f"var(--c{k})" for k in line.outputs]
    x = _scale(line.values, float(line.values[0]), float(line.values[-1]), EDGE, WIDTH - EDGE)
    body = f'<path d="M0 {HEIGHT - 0.5}H{WIDTH}" stroke="var(--rule)"/>'
    for means, hue in zip(line.means.T, hues, strict=True):
        y = _scale(means, *span, HEIGHT - EDGE, EDGE)
        corners = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y, strict=True))
        body += f'<path d="M{corners}" stroke="{hue}" stroke-width="1.8"/>'
    return to_small_svg(WIDTH, HEIGHT, line.words, body)


def _scale(values: Array, low: float, high: float, start: float, end: float) -> Array:
    share = (values - low) / (high - low) if high > low else np.full(len(values), 0.5)
    return np.asarray(start + share * (end - start))
