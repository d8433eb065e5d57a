"""What a trained model makes of each kept column."""

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from tamis.exceptions import InvalidParameter
from tamis.plot.correlating import numbers_of
from tamis.plot.reading import ChosenUnits
from tamis.plot.style import figure, harmless
from tamis.report.facts import EffectLine
from tamis.response import effects

#: Kept columns whose effects are shown, and rows that answers are averaged over.
MOST, ROWS = 12, 2000
#: Classes with a line each; of more the one that changes most has one.
LINES = 6


def effect_lines(model: Any, X: Any, units: ChosenUnits) -> dict[int, EffectLine]:
    """The mean answer as each of the first kept columns goes from its least to its greatest value.

    Tables with gaps, categories or groups of columns have none: the model was trained on other
    columns than those that are kept.
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
    numbers = numbers[:: max(1, len(numbers) // ROWS)]
    found = effects(model, numbers)
    shown = units.best_kept[:MOST].tolist()
    place = {int(unit): k for k, unit in enumerate(kept)}
    return {unit: _line(found[place[unit]], model) for unit in shown}


def _line(effect: Any, model: Any) -> EffectLine:
    means = np.asarray(effect.means, dtype=float)
    words, names = "mean prediction", [""] * means.shape[1]
    if is_classifier(model):
        classes = [harmless(name) for name in model.classes_]
        names = classes if means.shape[1] == len(classes) else classes[-1:]
        words = "mean probability" if hasattr(model, "predict_proba") else "mean answer"
    moved = int(np.ptp(means, axis=0).argmax())
    shown = list(range(means.shape[1])) if means.shape[1] <= LINES else [moved]
    who = f" of {names[moved]}" if names[moved] else ""
    first, last = (figure(float(value)) for value in means[[0, -1], moved])
    said = f"{words}{who}: {first} at {figure(float(effect.values[0]))}, {last} at "
    said += figure(float(effect.values[-1]))
    return EffectLine(np.asarray(effect.values, dtype=float), means[:, shown], tuple(shown), said)
