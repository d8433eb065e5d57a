"""Held-out predictions of all candidates, the selected candidate, and its error."""

from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tamis._arrays import Array, Subset
from tamis.auto.candidate_choice import (
    SIGNIFICANT,
    SIGNIFICANT_AUC,
    Allowed,
    Draws,
    Losses,
    paired_errors,
    select_candidates,
)
from tamis.auto.measures import PARTIAL, SQUARED, WRONG, Measure, Measures, Predictions
from tamis.auto.models import PREDICTORS
from tamis.auto.paths import PATHS
from tamis.auto.plan import ALL
from tamis.auto.target import Truth
from tamis.exceptions import InvalidParameter
from tamis.validation.stability import Stability, stability

#: Name of the baseline, the model that uses no columns.
NONE = "none"
#: Maps the name of a score to its value and standard error.
Scores = dict[str, tuple[float, float]]


class HeldOut(NamedTuple):
    """An error on held-out rows.

    Attributes
    ----------
    loss, standard_error : float
        The loss by which candidates are compared, and its standard error. By default it is the mean
        squared error, or for classes the Brier score summed over the classes.
    wrong, wrong_error : float or None
        Error rate and its standard error, for classification.
    rmse, r2 : float or None
        Root mean squared error, and R² relative to the baseline, for regression.
    scores : dict of str to (float, float)
        Scores by name with their standard errors: the requested one, and AUC and average precision
        if a class is rare.

    Examples
    --------
    >>> error = HeldOut(0.2, 0.01, wrong=0.12, wrong_error=0.02)
    >>> error.wrong
    0.12
    """

    loss: float
    standard_error: float
    wrong: float | None = None
    wrong_error: float | None = None
    rmse: float | None = None
    r2: float | None = None
    scores: Scores = {}  # noqa: RUF012 (never written to)


def plain_error(predicted: Array, truth: Truth, mean: Array, unit: float) -> HeldOut:
    """Return the error of predictions, without any correction.

    ``mean`` is the prediction of the baseline. Target and predictions were divided by ``unit``.
    """
    n, weights = len(predicted), truth.weights
    squares = unit**2 * ((predicted - truth.values) ** 2).sum(axis=1)
    loss, error = float(np.average(squares, weights=weights)), squares.std() / np.sqrt(n)
    if truth.codes is not None:
        missed = predicted.argmax(axis=1) != truth.codes
        wrong = float(np.average(missed, weights=weights))
        return HeldOut(loss, float(error), wrong, float(np.sqrt(wrong * (1 - wrong) / n)))
    base = np.average(unit**2 * ((mean - truth.values) ** 2).sum(axis=1), weights=weights)
    r2 = float(1 - loss / base) if base else 0.0
    return HeldOut(loss, float(error), rmse=float(np.sqrt(loss)), r2=r2)


class LostError(NamedTuple):
    """Difference between the error of the selected columns and the error of all columns.

    Both are measured on the same held-out rows.

    Attributes
    ----------
    loss, standard_error : float
        Difference between the losses, and the standard error of the paired difference.
    wrong, wrong_error : float or None
        Difference between the error rates, and its standard error.
    rmse, rmse_error : float or None
        Difference between the root mean squared errors, and its standard error.
    scores : dict of str to (float, float)
        Difference in each score, all columns minus selected columns, and its standard error.

    Examples
    --------
    >>> lost = LostError(0.02, 0.01)
    >>> bool(lost.loss < 2 * lost.standard_error)
    False
    """

    loss: float
    standard_error: float
    wrong: float | None = None
    wrong_error: float | None = None
    rmse: float | None = None
    rmse_error: float | None = None
    scores: Scores = {}  # noqa: RUF012 (never written to)


class CurvePoint(NamedTuple):
    """Held-out loss of a model trained on the first columns of a path.

    Attributes
    ----------
    path, model : str
    size : int
        Number of units (columns or groups) that the model was trained on.
    loss, standard_error : float
        The loss by which candidates are compared, and its standard error.

    Examples
    --------
    >>> CurvePoint("information", "ridge", 3, 0.2, 0.01).size
    3
    """

    path: str
    model: str
    size: int
    loss: float
    standard_error: float


Key = tuple[str, str, int]


class Gathered(NamedTuple):
    """Held-out predictions of each candidate (path, model, size), all columns and the baseline."""

    candidates: dict[Key, Predictions]
    everything: dict[str, Predictions]
    baseline: Predictions
    n_units: int

    @property
    def is_held_out(self) -> Any:
        """Mask of the rows that are in at least one test fold."""
        return np.asarray((self.baseline.folds >= 0).any(axis=0))

    def take(self, rows: Subset) -> "Gathered":
        """Return the predictions for the given rows."""
        return Gathered(
            {key: of.take(rows) for key, of in self.candidates.items()},
            {model: of.take(rows) for model, of in self.everything.items()},
            self.baseline.take(rows),
            self.n_units,
        )


def pack_predictions(predicted: Array, centre: Array) -> str:
    """Return predictions as text for a record.

    The text encodes their differences from ``centre`` in single precision.
    """
    shifted = predicted - centre
    shifted = shifted[:, 1:] if shifted.shape[1] == 2 else shifted  # for two classes, one is stored
    return b64encode(shifted.astype("<f4").tobytes()).decode("ascii")


def unpack_predictions(text: str, n_rows: int, centre: Array) -> Array:
    """Return the array of predictions that :func:`pack_predictions` encoded."""
    shifted = np.frombuffer(b64decode(text), dtype="<f4").astype(float).reshape(n_rows, -1)
    if len(centre) == 2:
        shifted = np.hstack([1 - shifted, shifted])
    return shifted + centre


def gather(found: Sequence[Sequence[Any]], truth: Truth, unit: float = 1.0) -> Gathered:
    """Return the predictions of all rounds, grouped by candidate.

    If candidates tie, the first of them is selected. Predictions are multiplied by ``unit``,
    because models are trained on a target that was divided by it.
    """
    shape = truth.values.shape
    layers: dict[Key, list[Predictions]] = {}
    for fold, (path, rows, _, entries) in enumerate(found):
        here = np.array(rows, dtype=np.intp)
        for model, size, packed in entries:
            held = layers.setdefault((path, model, int(size)), [])
            free = next((one for one in held if (one.folds[here] < 0).all()), None)
            if free is None:  # with repeated cross-validation, a row has one prediction per repeat
                free = Predictions(np.full(shape, np.nan), np.full(shape[0], -1))
                held.append(free)
            free.values[here] = unit * unpack_predictions(packed, len(here), truth.centre)
            free.folds[here] = fold
    stacked = {
        key: Predictions(*(np.stack(part) for part in zip(*held, strict=True)))
        for key, held in layers.items()
    }
    keys = sorted((key for key in stacked if key[0] != ALL), key=_order)
    return Gathered(
        {key: stacked[key] for key in keys},
        {key[1]: stacked[key] for key in stacked if key[0] == ALL and key[1] != NONE},
        stacked[ALL, NONE, 0],
        max(size for path, _, size in stacked if path == ALL),
    )


def _order(key: Key) -> tuple[int, int, int]:
    path, model, size = key
    return PATHS.index(path), list(PREDICTORS).index(model), size


class AutoOutcome(NamedTuple):
    """The selected candidate and its errors.

    ``size`` is the number of selected units. It is 0 if nothing is selected. ``n_short`` is the
    number of units that Auto would select with ``size="short"``.
    """

    path: str
    model: str
    size: int
    found: bool
    error: HeldOut
    error_all: HeldOut | None
    error_guess: HeldOut
    curve: list[CurvePoint]
    curve_all: CurvePoint | None
    lost: LostError | None = None
    n_short: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as lists and numbers that can be stored in a record."""
        plain = self._asdict()
        plain["curve"] = [list(point) for point in self.curve]
        for name in PARTS:
            plain[name] = None if plain[name] is None else list(plain[name])
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "AutoOutcome":
        """Return the outcome from the dictionary that :meth:`to_dict` returned."""
        plain = {name: plain.get(name) for name in cls._fields}
        plain["curve"] = [CurvePoint(*point) for point in plain["curve"]]
        for name, kind in PARTS.items():
            if plain[name] is not None:
                plain[name] = kind(*plain[name])
            if name != "curve_all" and plain[name] is not None:  # a file stores tuples as lists
                scores = {of: (float(v), float(e)) for of, (v, e) in plain[name].scores.items()}
                plain[name] = plain[name]._replace(scores=scores)
        return cls(**plain)


#: Class of each field of an outcome that is itself a named tuple.
PARTS: dict[str, Any] = {
    "error": HeldOut, "error_all": HeldOut, "error_guess": HeldOut, "lost": LostError,
    "curve_all": CurvePoint,
}  # fmt: skip


class Trials(NamedTuple):
    """Candidates, their losses, and the index of the candidate selected in each draw."""

    candidates: list[Predictions]
    sizes: Subset
    deciding: Losses
    errors: Array
    baseline: float
    of_draw: Subset
    measured: dict[Measure, Losses]

    def selected(self, allowed: Allowed) -> int:
        """Return the index of the candidate that the rule selects on all rows."""
        given = self.errors, self.sizes, allowed, np.array([self.baseline])
        return int(select_candidates(self.deciding.whole[None], *given)[0])


class Judge:
    """Computes the losses of candidates on all held-out rows and on bootstrap draws of them."""

    def __init__(
        self, measures: Measures, truth: Truth, baseline: Predictions, rng: np.random.Generator
    ):
        self.measures, self.truth = measures, truth
        self._draws = Draws.of(len(truth.values), rng, truth.groups, truth.weights)
        self._baseline = baseline

    def losses(self, measure: Measure, candidates: Sequence[Predictions]) -> Losses:
        """Return the losses of the candidates by this measure."""
        found = [measure.losses(one, self.truth, self._draws.weights) for one in candidates]
        return self._draws.part(np.column_stack(found))

    def try_all(
        self,
        candidates: Sequence[Predictions],
        sizes: Subset,
        allowed: Allowed,
        measure: Measure | None = None,
    ) -> Trials:
        """Return the losses of candidates, and the candidate that the rule selects in each draw.

        The default ``measure`` is the one by which candidates are compared.
        """
        measure = self.measures.decides if measure is None else measure
        deciding = self.losses(measure, candidates)
        baseline = self.losses(measure, [self._baseline])
        usable: Any = np.isfinite(deciding.drawn).all(axis=1)  # a draw may lack a class
        drawn = np.where(usable[:, None], deciding.drawn, deciding.whole)
        errors = paired_errors(drawn)
        nothing = np.where(usable, baseline.drawn[:, 0], baseline.whole)
        of_draw = select_candidates(drawn, errors, sizes, allowed, nothing)
        deciding = deciding._replace(drawn=drawn)
        whole = float(baseline.whole[0])
        return Trials(list(candidates), sizes, deciding, errors, whole, of_draw, {})

    def is_significant(self, trials: Trials, allowed: Allowed) -> bool:
        """Return whether the selection is significantly better than the baseline.

        The two are compared on the rows outside each bootstrap draw. If a class is rare, a
        significant AUC is also sufficient. The squared loss can miss a clear signal if the rare
        class has only a few dozen rows.
        """
        gain, error = self._gain(trials, allowed, self.measures.tests)
        if gain > 0 and gain > SIGNIFICANT * error:
            return True
        auc = self.measures.rare_auc
        if auc is None:
            return False
        gain, error = self._gain(trials, allowed, auc)
        null_error = auc.null_error(self._baseline.folds[0], self.truth)
        return bool(gain > SIGNIFICANT_AUC * max(error, null_error))

    def _gain(self, trials: Trials, allowed: Allowed, measure: Measure) -> tuple[float, float]:
        """Return the gain over the baseline by a measure, and the standard error of the gain."""
        if measure is not self.measures.decides:
            trials = self.try_all(trials.candidates, trials.sizes, allowed, measure)
        own = trials.deciding.of(trials.of_draw)
        nothing = self.losses(measure, [self._baseline])
        base = nothing.of(np.zeros(len(nothing.drawn), dtype=np.intp))
        return float(base.honest - own.honest), _spread(base.drawn - own.drawn)

    def measured(self, trials: Trials, measure: Measure) -> Losses:
        """Return the losses of the candidate that each draw selected, by the given measure."""
        if measure not in trials.measured:
            n_draws = len(trials.of_draw)
            found = np.empty((2, n_draws))
            for one in np.unique(trials.of_draw):
                own = np.flatnonzero(trials.of_draw == one)
                weights = self._draws.weights[np.concatenate([1 + own, 1 + n_draws + own])]
                losses = measure.losses(trials.candidates[one], self.truth, weights)
                found[:, own] = losses.reshape(2, -1)
            trials.measured[measure] = Losses(trials.deciding.whole, *found)
        return trials.measured[measure]

    @property
    def _others(self) -> list[Measure]:
        """Measures that are reported in addition to the error rate and the squared error."""
        every = dict.fromkeys((self.measures.decides, *self.measures.reported))
        return [measure for measure in every if measure not in (SQUARED, WRONG, PARTIAL)]

    def error(self, trials: Trials, baseline: "Trials | None" = None) -> HeldOut:
        """Return the error of the selection, averaged over the bootstrap draws."""
        decided = trials.deciding.of(trials.of_draw)
        loss = decided.honest, decided.standard_error
        scores = {}
        for measure in self._others:
            found = self.measured(trials, measure)
            scores[measure.name] = float(measure.shown(found.honest)), found.standard_error
        if self.truth.codes is not None:
            wrong = self.measured(trials, WRONG)
            return HeldOut(*loss, wrong.honest, wrong.standard_error, scores=scores)
        if self.truth.censored is not None:
            return HeldOut(*loss, scores=scores)
        mean, r2 = self.measured(trials, SQUARED).honest, 0.0
        if baseline is not None and (guessed := self.measured(baseline, SQUARED).honest):
            r2 = float(1 - mean / guessed)
        return HeldOut(*loss, rmse=float(np.sqrt(mean)), r2=r2, scores=scores)

    def lost(self, mine: Trials, others: Trials, error: HeldOut, error_all: HeldOut) -> LostError:
        """Return the difference between two errors, and the standard error of this difference.

        The standard error is computed from differences on the same rows.
        """

        def spread(measure: Measure, shown: Any = lambda loss: loss) -> float:
            one, two = (shown(self.measured(of, measure).drawn) for of in (mine, others))
            return _spread(one - two)

        scores = {
            measure.name: (
                error_all.scores[measure.name][0] - error.scores[measure.name][0],
                spread(measure),
            )
            for measure in self._others
        }
        loss = error.loss - error_all.loss
        lost = LostError(loss, spread(self.measures.decides), scores=scores)
        if error.wrong is not None and error_all.wrong is not None:
            return lost._replace(wrong=error.wrong - error_all.wrong, wrong_error=spread(WRONG))
        if error.rmse is not None and error_all.rmse is not None:
            change = error.rmse - error_all.rmse
            return lost._replace(rmse=change, rmse_error=spread(SQUARED, np.sqrt))
        return lost

    def curve(self, trials: Trials, keys: Sequence[Key]) -> list[CurvePoint]:
        """Return the loss of every candidate on all rows."""
        spread = trials.deciding.drawn.std(axis=0, ddof=1)
        points = zip(keys, trials.deciding.whole, spread, strict=True)
        return [CurvePoint(*key, float(loss), float(error)) for key, loss, error in points]


def _spread(values: Array) -> float:
    return float(np.nanstd(values, ddof=1))


def decide(
    gathered: Gathered,
    truth: Truth,
    measures: Measures,
    allowed: Allowed,
    short: Allowed,
    rng: np.random.Generator,
    *,
    asked: bool,
) -> AutoOutcome:
    """Select a candidate by the rule, and estimate its error.

    Parameters
    ----------
    allowed, short : Allowed
        How much worse a candidate with fewer columns may be: ``allowed`` for this fit, ``short``
        for ``size="short"``.
    asked : bool
        Whether the number of columns was given. If so, a candidate is always selected.
    """
    rows = np.flatnonzero(gathered.is_held_out)
    gathered, truth = gathered.take(rows), truth.take(rows)
    judge = Judge(measures, truth, gathered.baseline, rng)
    keys = list(gathered.candidates)
    sizes = np.array([size for *_, size in keys])
    mine = judge.try_all(list(gathered.candidates.values()), sizes, allowed)
    nothing = judge.try_all([gathered.baseline], np.zeros(1, dtype=np.intp), allowed)
    path, model, size = keys[mine.selected(allowed)]
    found = judge.is_significant(mine, allowed)
    guess = judge.error(nothing)
    error, error_all, lost, point = guess, None, None, None
    if found or asked:
        error = judge.error(mine, nothing)
    if gathered.everything:
        models = list(gathered.everything)
        every = np.full(len(models), gathered.n_units)
        whole = judge.try_all(list(gathered.everything.values()), every, Allowed(0.0))
        points = judge.curve(whole, [(ALL, name, gathered.n_units) for name in models])
        point = points[whole.selected(Allowed(0.0))]
        error_all = judge.error(whole, nothing)
        if found or asked:
            if size == gathered.n_units:
                error_all = error
            else:
                lost = judge.lost(mine, whole, error, error_all)
    return AutoOutcome(
        path, model, size if found or asked else 0, found, error, error_all, guess,
        judge.curve(mine, keys), point, lost, int(sizes[mine.selected(short)]),
    )  # fmt: skip


def stability_of(
    found: Sequence[Sequence[Any]], path: str, size: int, offered: Subset, n_units: int
) -> Stability | None:
    """Return the stability across folds of the first ``size`` units of a path.

    It is None if all units are selected. The orders in ``found`` are positions in ``offered``, the
    array of units that are not constant.
    """
    selected = [np.array(one[2][:size], dtype=np.intp) for one in found if one[0] == path]
    try:
        index = stability(selected, len(offered))
    except InvalidParameter:  # stability is undefined if all columns are selected, or none
        return None
    frequency = np.zeros(n_units)
    frequency[offered] = index.frequency
    return replace(index, frequency=frequency)
