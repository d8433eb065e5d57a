"""What the rows left out say: losses gathered from rounds, what is kept, and its error."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset
from tamis.auto.models import ANSWERS
from tamis.auto.paths import PATHS
from tamis.auto.plan import ALL
from tamis.auto.rule import Allowed, Corrected, corrected, kept_candidate
from tamis.evaluation.stability import Stability, stability
from tamis.exceptions import InvalidParameter

#: What answers without columns.
NONE = "none"


class HeldOut(NamedTuple):
    """An error on rows that took no part.

    Attributes
    ----------
    loss, standard_error : float
        Mean squared loss (for classes of the probabilities, summed over the classes: the Brier
        score), and its standard error over rows.
    wrong, wrong_error : float or None
        For classes, the share of rows whose class is predicted wrongly, and its standard error.
    rmse, r2 : float or None
        For numbers, the root of the loss, and the share of the guess's loss that is gone.
    """

    loss: float
    standard_error: float
    wrong: float | None = None
    wrong_error: float | None = None
    rmse: float | None = None
    r2: float | None = None


class LostError(NamedTuple):
    """How much worse the kept columns are than all, row by row on rows that took no part.

    Parameters
    ----------
    loss, standard_error : float
        Difference of the mean squared losses, and the standard error of the rows' differences:
        what is hard for both does not count.
    wrong, wrong_error : float or None
        The same of the shares of wrong classes.
    rmse, rmse_error : float or None
        The same of the roots of the losses, for numbers.
    """

    loss: float
    standard_error: float
    wrong: float | None = None
    wrong_error: float | None = None
    rmse: float | None = None
    rmse_error: float | None = None


class CurvePoint(NamedTuple):
    """What rows left out say of the first columns of a path.

    Attributes
    ----------
    path, model : str
    size : int
        How many units of the path the model was given.
    loss, standard_error : float
        Mean squared loss, and its standard error over rows.
    """

    path: str
    model: str
    size: int
    loss: float
    standard_error: float


class Gathered(NamedTuple):
    """Losses of every row, a mean over the times that folds were dealt.

    ``keys`` are (path, model, size) of the candidates; ``wrong`` is None for numbers. ``n_units``
    is how many ``everything`` has.
    """

    keys: list[tuple[str, str, int]]
    losses: Array
    wrong: Array | None
    everything: dict[str, tuple[Array, Array | None]]
    guess: tuple[Array, Array | None]
    n_units: int


def gather(found: Sequence[Sequence[Any]], n_rows: int) -> Gathered:
    """The losses of all rounds, candidates in the order in which one of several equals is taken."""
    sums: dict[tuple[str, str, int], NDArray[Any]] = {}
    for path, rows, _, entries in found:
        for model, size, squared, wrong in entries:
            held = sums.setdefault((path, model, int(size)), np.zeros((3, n_rows)))
            here = np.array(rows, dtype=np.intp)
            held[0, here] += squared
            held[1, here] += 0 if wrong is None else np.array(wrong, dtype=float)
            held[2, here] += 1
    of_classes = any(entry[3] is not None for one in found for entry in one[3])
    means = {key: (held[0] / held[2], held[1] / held[2]) for key, held in sums.items()}
    columns = {key: (loss, wrong if of_classes else None) for key, (loss, wrong) in means.items()}
    keys = sorted((key for key in columns if key[0] != ALL), key=_order)
    return Gathered(
        keys,
        np.column_stack([columns[key][0] for key in keys]),
        np.column_stack([means[key][1] for key in keys]) if of_classes else None,
        {key[1]: columns[key] for key in columns if key[0] == ALL and key[1] != NONE},
        columns[ALL, NONE, 0],
        max(size for path, _, size in columns if path == ALL),
    )


def _order(key: tuple[str, str, int]) -> tuple[int, int, int]:
    path, model, size = key
    return PATHS.index(path), list(ANSWERS).index(model), size


class AutoOutcome(NamedTuple):
    """What is kept, and the errors; ``size`` is 0 where that is nothing."""

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

    def to_dict(self) -> dict[str, Any]:
        """Lists and numbers for a record."""
        plain = self._asdict()
        plain["curve"] = [list(point) for point in self.curve]
        for name in ("lost", "curve_all"):
            plain[name] = None if plain[name] is None else list(plain[name])
        return plain | {name: None if plain[name] is None else list(plain[name]) for name in ERRORS}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "AutoOutcome":
        """The outcome that :meth:`to_dict` wrote; older ones say less of all columns."""
        plain = {name: plain.get(name) for name in cls._fields}
        curve = [CurvePoint(*point) for point in plain["curve"]]
        errors = {name: None if plain[name] is None else HeldOut(*plain[name]) for name in ERRORS}
        lost = None if plain["lost"] is None else LostError(*plain["lost"])
        whole = None if plain["curve_all"] is None else CurvePoint(*plain["curve_all"])
        return cls(**plain | errors | {"curve": curve, "lost": lost, "curve_all": whole})


#: What an outcome says of errors.
ERRORS = ("error", "error_all", "error_guess")


def outcome_of(
    gathered: Gathered, allowed: Allowed, rng: np.random.Generator, groups: Any, asked: bool
) -> AutoOutcome:
    """What the rule keeps, and what that costs; ``asked`` says that the size was not its own."""
    losses, wrong = gathered.losses, gathered.wrong
    sizes = np.array([size for *_, size in gathered.keys])
    kept = kept_candidate(losses, sizes, allowed)
    whole = _whole(gathered, deepcopy(rng), groups)  # the same draws: differences are of the lists
    honest = corrected(losses, sizes, allowed, _priced(losses, wrong, gathered), rng, groups)
    guess = _held_out(*gathered.guess)
    path, model, size = gathered.keys[kept]
    gain = bool(honest.kept[0] < honest.nothing[0])
    error, error_all, lost = guess, None if whole is None else whole.error, None
    if gain or asked:
        own = _rows_of(honest)
        error = _held_out(*own, honest.kept, honest.nothing[0])
        if whole is not None and size == gathered.n_units:
            error_all = error  # they are all columns
        elif whole is not None:
            lost = _lost(error, whole.error, own, whole.rows)
    return AutoOutcome(
        path, model, size if gain or asked else 0, gain, error, error_all, guess,
        _curve(gathered), None if whole is None else whole.point, lost,
    )  # fmt: skip


Rows = tuple[Array, Array | None]


class _Whole(NamedTuple):
    """All columns with the model that loses least: losses of the rows, the point, the error."""

    rows: Rows
    point: CurvePoint
    error: HeldOut


def _whole(gathered: Gathered, rng: np.random.Generator, groups: Any) -> _Whole | None:
    """What all columns cost, corrected for having taken the best model as the kept ones are."""
    models = gathered.everything
    if not models:
        return None
    losses = np.column_stack([loss for loss, _ in models.values()])
    wrong = None
    if gathered.guess[1] is not None:
        wrong = np.column_stack([share for _, share in models.values()])  # type: ignore[misc]
    sizes = np.full(len(models), gathered.n_units)
    honest = corrected(losses, sizes, Allowed(0.0), _priced(losses, wrong, gathered), rng, groups)
    best = min(models, key=lambda model: models[model][0].mean())
    loss, rows = models[best][0], _rows_of(honest)
    return _Whole(
        rows,
        CurvePoint(ALL, best, gathered.n_units, float(loss.mean()), _standard_error(loss)),
        _held_out(*rows, honest.kept, honest.nothing[0]),
    )


def _rows_of(honest: Corrected) -> Rows:
    """Losses of the rows by what was chosen without them, and for classes shares of wrong ones."""
    return honest.rows[0], honest.rows[1] if len(honest.rows) > 1 else None


def _priced(losses: Array, wrong: Array | None, gathered: Gathered) -> list[tuple[Array, Array]]:
    """What is asked of the rows left out of a draw: of candidates, and of a guess."""
    squared, missed = gathered.guess
    of_classes = wrong is not None and missed is not None
    return [(losses, squared), *([(wrong, missed)] if of_classes else [])]  # type: ignore[list-item]


def _lost(
    error: HeldOut,
    error_all: HeldOut,
    mine: Rows,
    whole: Rows,
) -> LostError:
    """The difference of two errors with the spread of the rows' differences."""
    loss, spread = error.loss - error_all.loss, _standard_error(mine[0] - whole[0])
    if error.wrong is not None and error_all.wrong is not None:
        apart = np.subtract(mine[1], whole[1])  # type: ignore[arg-type]  # both have classes
        return LostError(loss, spread, error.wrong - error_all.wrong, _standard_error(apart))
    roots = [float(np.sqrt(one.loss)) for one in (error, error_all)]
    slopes = [1 / (2 * root) if root else 0.0 for root in roots]
    rooted = _standard_error(slopes[0] * mine[0] - slopes[1] * whole[0])
    return LostError(loss, spread, rmse=roots[0] - roots[1], rmse_error=rooted)


def _held_out(
    losses: Array,
    wrong: Array | None,
    said: tuple[float, ...] | None = None,
    guess: float | None = None,
) -> HeldOut:
    """An error from those of the rows; ``said`` is what is said in place of their means."""
    loss = float(losses.mean()) if said is None else said[0]
    error = _standard_error(losses)
    if wrong is None:
        r2 = 0.0 if guess is None else 1 - loss / guess if guess else 0.0
        return HeldOut(loss, error, rmse=float(np.sqrt(loss)), r2=float(r2))
    share = float(wrong.mean()) if said is None else said[1]
    return HeldOut(loss, error, share, _standard_error(wrong))


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _curve(gathered: Gathered) -> list[CurvePoint]:
    columns = zip(gathered.keys, gathered.losses.T, strict=True)
    return [CurvePoint(*key, float(of.mean()), _standard_error(of)) for key, of in columns]


def stability_of(
    found: Sequence[Sequence[Any]], path: str, size: int, offered: Subset, n_units: int
) -> Stability | None:
    """How far the folds agree on the first columns of a path; None where all are kept.

    Folds count the units that were ``offered`` to them; of the others none holds any.
    """
    kept: list[Subset] = [np.array(one[2][:size], dtype=np.intp) for one in found if one[0] == path]
    try:
        agreed = stability(kept, len(offered))
    except InvalidParameter:  # all columns are kept, or none
        return None
    frequency = np.zeros(n_units)
    frequency[offered] = agreed.frequency
    return replace(agreed, frequency=frequency)
