"""Held-out predictions of all candidates, the selected candidate, and its error."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
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
    neighbours_of,
    paired_errors,
    select_candidates,
    smooth,
)
from tamis.auto.measures import PARTIAL, SQUARED, WRONG, Measure, Measures, Predictions, RowMean
from tamis.auto.models import MODELS
from tamis.auto.orders import PATHS, PER_PRICE
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
        Difference in each score and its standard error. It is positive if the selected columns are
        worse.

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
        Names of the column order and of the model.
    size : int
        Number of units (columns or groups) that the model was trained on.
    loss, standard_error : float
        The loss by which candidates are compared, and its standard error.
    wrong, wrong_error : float or None
        Error rate and its standard error, for classification.
    limit : float or None
        The price limit, if ``cost_limit`` was given. ``size`` is then the number of units selected
        on all rows within this limit.

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
    wrong: float | None = None
    wrong_error: float | None = None
    limit: float | None = None


Key = tuple[str, str, int]


class Gathered(NamedTuple):
    """Held-out predictions of each candidate (path, model, size), and of the baseline.

    A candidate of size ``n_units`` uses all columns.
    """

    candidates: dict[Key, Predictions]
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


def gather(
    found: Sequence[Sequence[Any]], truth: Truth, n_units: int, unit: float = 1.0
) -> Gathered:
    """Return the predictions of all folds, grouped by candidate.

    If candidates tie, the first of them is selected. Predictions are multiplied by ``unit``,
    because models are trained on a target that was divided by it.
    """
    shape = truth.values.shape
    layers: dict[Key, list[Predictions]] = {}
    for fold, (rows, _, entries, packed) in enumerate(found):
        here = np.array(rows, dtype=np.intp)
        values = [unit * unpack_predictions(text, len(here), truth.centre) for text in packed]
        for path, model, size, number in entries:
            held = layers.setdefault((path, model, int(size)), [])
            free = next((one for one in held if (one.folds[here] < 0).all()), None)
            if free is None:  # with repeated cross-validation, a row has one prediction per repeat
                free = Predictions(np.full(shape, np.nan), np.full(shape[0], -1))
                held.append(free)
            free.values[here] = values[number]
            free.folds[here] = fold
    stacked = {
        key: Predictions(*(np.stack(part) for part in zip(*held, strict=True)))
        for key, held in layers.items()
    }
    baseline = stacked.pop(BASELINE)
    return Gathered({key: stacked[key] for key in sorted(stacked, key=_order)}, baseline, n_units)


#: Key of the baseline.
BASELINE = NONE, NONE, 0


def _order(key: Key) -> tuple[int, bool, int, int]:
    path, model, size = key
    base = path.removesuffix(PER_PRICE)
    return PATHS.index(base), path != base, MODELS.index(model), size


class ListOutcome(NamedTuple):
    """One of the lists of columns that Auto reports.

    Attributes
    ----------
    path, model : str
        Names of the column order and of the model.
    size : int
        Number of units.
    error : HeldOut
        The error on held-out rows, corrected for the selection.
    lost : LostError
        Difference from the error of the list with the lowest loss.
    """

    path: str
    model: str
    size: int
    error: HeldOut
    lost: LostError


class FrontPoint(NamedTuple):
    """The candidate with the lowest loss within a price limit, and its error.

    The error is the error rate for classes, the root mean squared error for numbers, or the loss of
    a censored target. It is corrected for the selection. ``blind`` is the error that is reached
    without the orders that take prices into account.
    """

    path: str
    size: int
    error: float
    standard_error: float
    blind: float


class AutoOutcome(NamedTuple):
    """The selected candidate and its errors.

    ``size`` is the number of selected units. It is 0 if nothing is selected. ``lists`` holds the
    candidate that each rule selects. With price limits, sizes are positions in the list of price
    limits, counted from 1, and ``front`` has a point for each limit.
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
    lists: Mapping[str, ListOutcome] = {}
    front: Sequence[FrontPoint] = ()  # not in the record

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as lists and numbers that can be stored in a record."""
        plain = self._asdict()
        plain["curve"] = [list(point) for point in self.curve]
        del plain["front"]
        for name in PARTS:
            plain[name] = None if plain[name] is None else list(plain[name])
        plain["lists"] = {
            name: [*one[:3], list(one.error), list(one.lost)] for name, one in self.lists.items()
        }
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "AutoOutcome":
        """Return the outcome from the dictionary that :meth:`to_dict` returned."""
        plain = {name: plain.get(name) for name in cls._fields if name != "front"}
        plain["curve"] = [CurvePoint(*point) for point in plain["curve"]]
        for name, kind in PARTS.items():
            if plain[name] is not None:
                plain[name] = _restored(kind, plain[name])
        plain["lists"] = {
            name: ListOutcome(
                one[0], one[1], one[2], _restored(HeldOut, one[3]), _restored(LostError, one[4])
            )
            for name, one in plain["lists"].items()
        }
        return cls(**plain)


def _restored(kind: Any, numbers: Sequence[Any]) -> Any:
    """Return a named tuple from a record, in which tuples are stored as lists."""
    found = kind(*numbers)
    if not hasattr(found, "scores"):
        return found
    scores = {name: (float(v), float(e)) for name, (v, e) in found.scores.items()}
    return found._replace(scores=scores)


#: The outcome if no column varies, so no candidate is tried.
NO_OUTCOME = AutoOutcome(NONE, NONE, 0, False, None, None, None, [], None)  # type: ignore[arg-type]
#: Class of each field of an outcome that is itself a named tuple.
PARTS: dict[str, Any] = {
    "error": HeldOut, "error_all": HeldOut, "error_guess": HeldOut, "lost": LostError,
    "curve_all": CurvePoint,
}  # fmt: skip


class LossTable(NamedTuple):
    """Losses of candidates by one measure.

    ``smoothed`` are the losses that a rule compares, and ``errors`` the standard errors of their
    differences. ``baseline`` holds the loss of the baseline.
    """

    losses: Losses
    smoothed: Losses
    errors: Array
    baseline: Losses


class Pick(NamedTuple):
    """The candidate that a rule selects on all rows, and its candidate in each bootstrap draw."""

    whole: int
    of_draw: Subset


class Judge:
    """Computes the losses of candidates on all held-out rows and on bootstrap draws of them."""

    def __init__(
        self, measures: Measures, truth: Truth, gathered: Gathered, rng: np.random.Generator
    ):
        self.measures, self.truth = measures, truth
        self.keys = list(gathered.candidates)
        self.candidates = list(gathered.candidates.values())
        self.sizes = np.array([size for *_, size in self.keys])
        self._baseline = gathered.baseline
        self._draws = Draws.of(len(truth.values), rng, truth.groups, truth.weights)
        self._neighbours = neighbours_of([key[:2] for key in self.keys], self.sizes)
        self._tables: dict[Measure, LossTable] = {}

    def losses(self, measure: Measure, candidates: Sequence[Predictions]) -> Losses:
        """Return the losses of the candidates by this measure."""
        weights = self._draws.weights
        if isinstance(measure, RowMean):
            rows = np.column_stack([measure.row_losses(one, self.truth) for one in candidates])
            with np.errstate(invalid="ignore"):  # a draw may contain all rows
                return self._draws.part(weights @ rows / weights.sum(axis=1, keepdims=True))
        found = [measure.losses(one, self.truth, weights) for one in candidates]
        return self._draws.part(np.column_stack(found))

    def table(self, measure: Measure) -> LossTable:
        """Return the losses of all candidates by a measure."""
        if measure not in self._tables:
            losses = self.losses(measure, self.candidates)
            baseline = self.losses(measure, [self._baseline])
            usable: Any = np.isfinite(losses.drawn).all(axis=1)  # a draw may lack a class
            drawn = np.where(usable[:, None], losses.drawn, losses.whole)
            nothing = np.where(usable[:, None], baseline.drawn, baseline.whole)
            losses = losses._replace(drawn=drawn)
            given = paired_errors(drawn), self._neighbours
            smoothed = Losses(
                smooth(losses.whole[None], *given)[0], smooth(drawn, *given), losses.left_out
            )
            errors = paired_errors(smoothed.drawn)
            self._tables[measure] = LossTable(
                losses, smoothed, errors, baseline._replace(drawn=nothing)
            )
        return self._tables[measure]

    def within(self, allowed: Allowed, among: Subset) -> Subset:
        """Return the candidates that do not exceed the maximum number of columns of a rule."""
        few = among[self.sizes[among] <= allowed.most]
        return few if len(few) else among

    def pick(self, allowed: Allowed, among: Subset, measure: Measure | None = None) -> Pick:
        """Select one of the candidates ``among``, on all rows and in each bootstrap draw."""
        table = self.table(measure or self.measures.decides)
        errors, sizes = table.errors[np.ix_(among, among)], self.sizes[among]
        whole, drawn = (
            among[select_candidates(losses[:, among], errors, sizes, allowed, baseline)]
            for losses, baseline in (
                (table.smoothed.whole[None], table.baseline.whole),
                (table.smoothed.drawn, table.baseline.drawn[:, 0]),
            )
        )
        return Pick(int(whole[0]), drawn)

    def is_significant(self, allowed: Allowed, among: Subset) -> bool:
        """Return whether the selection is significantly better than the baseline.

        The two are compared on the rows outside each bootstrap draw. If a class is rare, a
        significant AUC is also sufficient. The squared loss can miss a clear signal if the rare
        class has only a few dozen rows.
        """
        gain, error = self._gain(allowed, among, self.measures.tests)
        if gain > 0 and gain > SIGNIFICANT * error:
            return True
        auc = self.measures.rare_auc
        if auc is None:
            return False
        gain, error = self._gain(allowed, among, auc)
        null_error = auc.null_error(self._baseline.folds[0], self.truth)
        return bool(gain > SIGNIFICANT_AUC * max(error, null_error))

    def _gain(self, allowed: Allowed, among: Subset, measure: Measure) -> tuple[float, float]:
        """Return the gain over the baseline by a measure, and the standard error of the gain."""
        table = self.table(measure)
        own = table.losses.of(self.pick(allowed, among, measure).of_draw)
        base = table.baseline.of(np.zeros(len(own.drawn), dtype=np.intp))
        return float(base.honest - own.honest), _spread(base.drawn - own.drawn)

    def measured(self, pick: Pick | None, measure: Measure) -> Losses:
        """Return the losses of the candidate that each draw selected, or of the baseline."""
        table = self._tables.get(measure)
        n_draws = len(self._draws.weights) // 2
        if pick is None:
            baseline = self.losses(measure, [self._baseline])
            return baseline.of(np.zeros(n_draws, dtype=np.intp))
        if table is not None:
            return table.losses.of(pick.of_draw)
        found = np.empty((2, n_draws))
        for one in np.unique(pick.of_draw):
            own = np.flatnonzero(pick.of_draw == one)
            weights = self._draws.weights[np.concatenate([1 + own, 1 + n_draws + own])]
            losses = measure.losses(self.candidates[one], self.truth, weights)
            found[:, own] = losses.reshape(2, -1)
        return Losses(np.empty(0), *found)

    @property
    def _others(self) -> list[Measure]:
        """Measures that are reported in addition to the error rate and the squared error."""
        every = dict.fromkeys((self.measures.decides, *self.measures.reported))
        return [measure for measure in every if measure not in (SQUARED, WRONG, PARTIAL)]

    def error(self, pick: Pick | None) -> HeldOut:
        """Return the error of a selection or of the baseline, averaged over bootstrap draws."""
        decided = self.measured(pick, self.measures.decides)
        loss = decided.honest, decided.standard_error
        scores = {}
        for measure in self._others:
            found = self.measured(pick, measure)
            scores[measure.name] = float(measure.shown(found.honest)), found.standard_error
        if self.truth.codes is not None:
            wrong = self.measured(pick, WRONG)
            return HeldOut(*loss, wrong.honest, wrong.standard_error, scores=scores)
        if self.truth.censored is not None:
            return HeldOut(*loss, scores=scores)
        mean, r2 = self.measured(pick, SQUARED).honest, 0.0
        if pick is not None and (guessed := self.measured(None, SQUARED).honest):
            r2 = float(1 - mean / guessed)
        return HeldOut(*loss, rmse=float(np.sqrt(mean)), r2=r2, scores=scores)

    def lost(self, mine: Pick, other: Pick, error: HeldOut, other_error: HeldOut) -> LostError:
        """Return the difference between two errors, and the standard error of this difference.

        The standard error is computed from differences on the same rows.
        """

        def spread(measure: Measure, shown: Any = lambda loss: loss) -> float:
            one, two = (shown(self.measured(of, measure).drawn) for of in (mine, other))
            return _spread(one - two)

        scores = {
            measure.name: (
                other_error.scores[measure.name][0] - error.scores[measure.name][0],
                spread(measure),
            )
            for measure in self._others
        }
        loss = error.loss - other_error.loss
        lost = LostError(loss, spread(self.measures.decides), scores=scores)
        if error.wrong is not None and other_error.wrong is not None:
            return lost._replace(wrong=error.wrong - other_error.wrong, wrong_error=spread(WRONG))
        if error.rmse is not None and other_error.rmse is not None:
            change = error.rmse - other_error.rmse
            return lost._replace(rmse=change, rmse_error=spread(SQUARED, np.sqrt))
        return lost

    def list_outcome(
        self, mine: Pick, best: Pick, error: HeldOut, best_error: HeldOut
    ) -> ListOutcome:
        """Return a list and its difference from the list with the lowest loss."""
        path, model, size = self.keys[mine.whole]
        return ListOutcome(path, model, size, error, self.lost(mine, best, error, best_error))

    def front(self) -> list[FrontPoint]:
        """Return the candidate with the lowest loss within each price limit."""
        blind = np.array([not path.endswith(PER_PRICE) for path, *_ in self.keys])
        points = []
        for limit in np.unique(self.sizes):
            within = self.sizes <= limit
            pick, other = (
                self.pick(Allowed(0.0), np.flatnonzero(among)) for among in (within, within & blind)
            )
            path, _, size = self.keys[pick.whole]
            error, spread = self._readable(pick)
            points.append(FrontPoint(path, size, error, spread, self._readable(other)[0]))
        return points

    def _readable(self, pick: Pick) -> tuple[float, float]:
        """Return the error rate, root mean squared error or loss, and its standard error."""
        if self.truth.codes is not None:
            wrong = self.measured(pick, WRONG)
            return wrong.honest, wrong.standard_error
        if self.truth.censored is not None:
            loss = self.measured(pick, self.measures.decides)
            return loss.honest, loss.standard_error
        squared = self.measured(pick, SQUARED)
        root = float(np.sqrt(squared.honest))
        return root, squared.standard_error / (2 * root) if root else 0.0

    def curve(self, among: Subset) -> list[CurvePoint]:
        """Return the loss of candidates on all rows."""
        losses = self.table(self.measures.decides).losses
        spread = losses.drawn.std(axis=0, ddof=1)
        points = []
        for one in among:
            path, model, size = self.keys[one]
            loss, error = float(losses.whole[one]), float(spread[one])
            points.append(CurvePoint(path, model, size, loss, error, *self._error_rate(one)))
        return points

    def _error_rate(self, one: int) -> tuple[float | None, float | None]:
        """Return the error rate of a candidate on all rows, and its standard error."""
        if self.truth.codes is None:
            return None, None
        (wrong,) = WRONG.losses(self.candidates[one], self.truth, self._draws.weights[:1])
        return float(wrong), float(np.sqrt(wrong * (1 - wrong) / len(self.truth.codes)))


def _spread(values: Array) -> float:
    return float(np.nanstd(values, ddof=1))


def decide(
    gathered: Gathered,
    truth: Truth,
    measures: Measures,
    rules: Mapping[str, Allowed],
    wanted: str,
    rng: np.random.Generator,
    asked: int | None = None,
    most: int | None = None,
) -> AutoOutcome:
    """Select a candidate by each rule, and estimate its error.

    Parameters
    ----------
    rules : dict of str to Allowed
        The limits of each rule for the loss of a smaller candidate. The rule "best" always selects
        the lowest loss.
    wanted : str
        Name of the rule that decides which columns are selected.
    asked : int or None
        Number of units that the user asked for. If it is given, a candidate is always selected.
    most : int or None
        Position of the highest price limit that may be selected. If it is given, all sizes are
        positions of price limits.
    """
    rows = np.flatnonzero(gathered.is_held_out)
    gathered, truth = gathered.take(rows), truth.take(rows)
    judge = Judge(measures, truth, gathered, rng)
    everything = np.flatnonzero(judge.sizes == gathered.n_units)
    among = np.arange(len(judge.keys))
    if asked is not None:
        among = np.flatnonzero(judge.sizes == asked)
    if most is not None:
        among = np.flatnonzero(judge.sizes <= most)
    groups = {name: judge.within(allowed, among) for name, allowed in rules.items()}
    picks = {name: judge.pick(allowed, groups[name]) for name, allowed in rules.items()}
    mine = picks[wanted]
    path, model, size = judge.keys[mine.whole]
    found = judge.is_significant(rules[wanted], groups[wanted])
    guess = judge.error(None)
    error, error_all, lost, point = guess, None, None, None
    lists: dict[str, ListOutcome] = {}
    if found or asked is not None:
        errors = {name: judge.error(pick) for name, pick in picks.items()}
        error = errors[wanted]
        lists = {
            name: judge.list_outcome(pick, picks["best"], errors[name], errors["best"])
            for name, pick in picks.items()
        }
    if len(everything):
        whole = judge.pick(Allowed(0.0), everything)
        (point,) = judge.curve(np.array([whole.whole]))
        error_all = judge.error(whole)
        if found or asked is not None:
            if size == gathered.n_units:
                error_all = error
            else:
                lost = judge.lost(mine, whole, error, error_all)
    return AutoOutcome(
        path, model, size if found or asked is not None else 0, found, error, error_all, guess,
        judge.curve(among if most is None else np.arange(len(judge.keys))), point, lost, lists,
        () if most is None else judge.front(),
    )  # fmt: skip


def stability_of(
    found: Sequence[Sequence[Any]], path: str, size: int, offered: Subset, n_units: int
) -> Stability | None:
    """Return the stability across folds of the first ``size`` units of a path.

    The orders in ``found`` refer to positions in ``offered``, the array of units that are not
    constant.
    """
    selected = [np.array(one[1][path][str(size)], dtype=np.intp) for one in found]
    try:
        index = stability(selected, len(offered))
    except InvalidParameter:  # stability is undefined if all columns are selected, or none
        return None
    frequency = np.zeros(n_units)
    frequency[offered] = index.frequency
    return replace(index, frequency=frequency)
