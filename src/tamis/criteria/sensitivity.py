"""What all sensitivities share: trained models, the rows they are judged on, a destroyed column."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import GroupKFold
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from tamis._arrays import Array, Subset
from tamis._random import draw_seed
from tamis.contract import BackwardCriterion
from tamis.criteria._engines import Batch, Engine, Model
from tamis.criteria._folds import Fold, Rows, folds_of
from tamis.criteria._opening import check_usable, open_engine, rows_at_once
from tamis.criteria._statistics import Block, Statistic
from tamis.criteria.destruction import (
    Draw,
    Permutation,
    Points,
    Removal,
    Replacement,
    Shuffle,
    resolve_way,
)
from tamis.criteria.model import GROUPS, ModelCriterion, is_tuner, rows_of, trained
from tamis.exceptions import IncompatibleCriterion, InvalidParameter

#: Numbers in a block of altered outputs: small enough for a processor's cache.
BLOCK = 250_000
#: Bytes of engines that are kept between two passes.
KEPT = 1_000_000_000
#: More columns than this, and rows than that, and on="auto" judges on held-out rows.
MANY_COLUMNS, MANY_ROWS = 30, 200


class Piece(NamedTuple):
    """A model and the rows that it is judged on."""

    model: Model
    rows: Rows


class Sensitivity(ModelCriterion, BackwardCriterion):
    """Loss of a column: how far a trained model's output moves when the column is destroyed.

    A subclass says what the output is (:meth:`_pieces`) and how far it moves
    (:meth:`_statistic`).
    """

    by: Any
    on: Any
    n_repeats: Any
    n_values: Any
    random_state: Any

    @property
    def _makes_folds(self) -> bool:  # type: ignore[override]
        return bool(self.on != "training")

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        self._learn_rows(X, y, np.arange(len(X)), params)

    def _learn_rows(
        self, X: Array, y: NDArray[Any] | None, trainable: Rows, params: dict[str, Any]
    ) -> None:
        """Keep the data; all rows are judged, and those named may train."""
        who = type(self).__name__
        self._way = resolve_way(who, self.by, self.n_repeats, self.n_values)
        self._check_way()
        if self.on not in ("training", "held-out", "auto"):
            raise InvalidParameter(
                f"{who} needs on='training', 'held-out' or 'auto', not {self.on!r}."
            )
        check_usable(who, self.estimator)
        self._seed = draw_seed(self.random_state)
        self._said: tuple[Subset, Array] | None = None
        metadata = self._routed(params, len(X))
        self._groups = metadata.split.get(GROUPS)
        self._X, self._y, self._trainable = X, y, trainable
        many = X.shape[1] > MANY_COLUMNS and len(trainable) >= MANY_ROWS
        held_out = self.on == "held-out" or (self.on == "auto" and many)
        self._folds = self._dealt(5 if len(trainable) <= 500 else 3) if held_out else None
        self._learn_model(X, y, metadata, trainable)

    def _check_way(self) -> None:
        """Refuse a way of destroying that the output has no use for."""

    def _adopt(self, estimator: Any) -> None:
        check_usable(type(self).__name__, estimator)
        super()._adopt(estimator)

    def _split(self, n_folds: int) -> list[Fold]:
        """Folds of the rows that may train."""
        rows = self._trainable
        y = rows if self._y is None else self._y[rows]
        groups = None if self._groups is None else self._groups[rows]
        classes = self.task_ == "classification" and is_classifier(self.estimator)
        folds = folds_of(type(self).__name__, n_folds, y, groups, classes=classes)
        return [(rows[train], rows[rest]) for train, rest in folds]

    def _dealt(self, n_folds: int) -> list[Fold]:
        """Folds that judge all rows: those that train nothing are dealt out to them in turn.

        No model has seen them; a row whose group is in a fold goes there, since the others have
        seen its group.
        """
        folds = self._split(n_folds)
        left = np.setdiff1d(np.arange(len(self._X)), self._trainable)
        places = np.arange(len(left)) % len(folds)
        if self._groups is not None:
            for place, (_, rest) in enumerate(folds):
                places[np.isin(self._groups[left], self._groups[rest])] = place
        return [
            (train, np.sort(np.r_[rest, left[places == place]]))
            for place, (train, rest) in enumerate(folds)
        ]

    def _parts(self) -> list[Fold]:
        """Rows to train on and rows to judge, for each model of a round."""
        if self._folds is not None:
            return self._folds
        return [(self._trainable, np.arange(len(self._X)))]

    def _train(self, X: Array, rows: Rows, estimator: Any = None) -> Any:
        """The estimator (or another one) trained on some rows."""
        y = None if self._y is None else self._y[rows]
        chosen = self.estimator_ if estimator is None else estimator
        return trained(chosen, X[rows], y, rows_of(self._metadata.fit, rows))

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata given to ``fit`` go to the estimator's ``fit``, groups to our own folds."""
        router = super().get_metadata_routing()
        if self._makes_folds or is_tuner(self.estimator):
            mapping = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=GroupKFold(), method_mapping=mapping)
        return router

    @abstractmethod
    def _pieces(self, subset: Subset) -> list[Piece]:
        """Models of a round; the rows of all pieces are all rows, each once."""

    @abstractmethod
    def _statistic(self, before: Array) -> Statistic:
        """How far outputs move from these."""

    def loss(self, subset: Subset) -> Array:
        X = self._X[:, self.columns(subset)]
        if isinstance(self._way, Replacement):
            repeats = self._by_replacing(self._way, X, self._pieces(subset))
        elif isinstance(self._way, Removal):
            repeats = self._by_removal(subset)[None]
        else:
            repeats = self._by_derivative(subset)[None]
        counts = np.isfinite(repeats).sum(axis=0)
        self._said = None
        if len(repeats) > 1:
            errors = np.nanstd(repeats, axis=0, ddof=1) / np.sqrt(counts)
            self._said = (subset.copy(), errors)
        return np.asarray(np.nanmean(repeats, axis=0))

    def errors(self, subset: Subset) -> Array | None:
        """Standard errors over the shuffles of the last prices; None where there is one draw."""
        if self._said is None or not np.array_equal(self._said[0], subset):
            return None
        return self._said[1]

    def _by_derivative(self, subset: Subset) -> Array:
        raise IncompatibleCriterion(
            f"{type(self).__name__} has no derivative; PosteriorSensitivity has. Use "
            "by='marginal', 'permutation', 'zero' or 'removal'."
        )

    def _by_removal(self, subset: Subset) -> Array:
        """Distance from the outputs of models trained without each column."""
        before = outputs_of(self._pieces(subset), self._X[:, self.columns(subset)])
        statistic = self._statistic(before)
        found = []
        for unit in subset:
            rest = subset[subset != unit]
            pieces = self._pieces(rest) if len(rest) else self._constants()
            after = outputs_of(pieces, self._X[:, self.columns(rest)])
            block = Block(slice(None), after[None, :, None, :], np.ones((1, 1)))
            found.append(_scored(statistic, [block])[0])
        return np.array(found)

    @abstractmethod
    def _constants(self) -> list[Piece]:
        """Models that look at no column."""

    def _by_replacing(self, way: Replacement, X: Array, pieces: list[Piece]) -> Array:
        """Scores of shape (repeats, columns), nan where a repeat was spared."""
        engines = Engines(pieces, X)
        statistic = self._statistic(engines.before())
        found = np.full((way.n_draws, X.shape[1]), np.nan)
        for repeat, draw in enumerate(way.draws(X, self._seed)):
            open_ones = np.ones(X.shape[1], dtype=bool)
            if isinstance(way, Permutation) and way.stop_when_sure and repeat >= 3:
                open_ones = unclear(found[:repeat])
                if not open_ones.any():
                    break
            found[repeat, open_ones] = engines.scores(statistic, draw, open_ones)[open_ones]
        return found


def unclear(scores: Array) -> NDArray[np.bool_]:
    """Columns whose place in the order is open: two scores within two standard errors of both.

    >>> unclear(np.array([[0.0, 1.0, 1.1], [0.1, 1.2, 1.0], [0.0, 1.1, 1.2]]))
    array([False,  True,  True])
    """
    means = np.nanmean(scores, axis=0)
    errors = np.nanstd(scores, axis=0, ddof=1) / np.sqrt(np.isfinite(scores).sum(axis=0))
    order = np.argsort(means)
    gaps = np.diff(means[order]) <= 2 * np.hypot(errors[order][1:], errors[order][:-1])
    found = np.zeros(len(means), dtype=bool)
    found[order[1:]] |= gaps
    found[order[:-1]] |= gaps
    return found


def outputs_of(pieces: list[Piece], X: Array) -> Array:
    """Outputs of all rows, each by the model that judges it."""
    parts = [piece.model.outputs(X[piece.rows]) for piece in pieces]
    found = np.empty((len(X), parts[0].shape[1]))
    for piece, part in zip(pieces, parts, strict=True):
        found[piece.rows] = part
    return found


def _scored(statistic: Statistic, blocks: list[Block]) -> Array:
    """Scores from blocks that are all at hand."""
    scales: Array | None = None
    for _ in range(statistic.n_passes):
        sums = np.sum([statistic.sums(block, scales) for block in blocks], axis=0)
        scales = statistic.scores(sums, scales)
    assert scales is not None
    return scales


class Engines:
    """Engines of all pieces, their rows in blocks that fit the memory."""

    def __init__(self, pieces: list[Piece], X: Array):
        self.X = X
        self.parts: list[Piece] = []
        for piece in pieces:
            size = rows_at_once(piece.model, len(piece.rows))
            for first in range(0, len(piece.rows), size):
                self.parts.append(Piece(piece.model, piece.rows[first : first + size]))
        # what any draw may put in the place of a value: another one, or 0
        self.bounds = np.minimum(X.min(axis=0), 0.0), np.maximum(X.max(axis=0), 0.0)
        self.kept: dict[int, Engine] = {}

    def _open(self, place: int) -> Engine:
        if place in self.kept:
            return self.kept[place]
        model, rows = self.parts[place]
        engine = open_engine(model, self.X[rows], *self.bounds)
        if sum(e.n_bytes for e in self.kept.values()) + engine.n_bytes <= KEPT:
            self.kept[place] = engine
        return engine

    def before(self) -> Array:
        """Outputs of the rows as they are, in the order of the table."""
        parts = [piece.model.link(self._open(i).outputs()) for i, piece in enumerate(self.parts)]
        found = np.empty((len(self.X), parts[0].shape[1]))
        for piece, part in zip(self.parts, parts, strict=True):
            found[piece.rows] = part
        return found

    def scores(self, statistic: Statistic, draw: Draw, open_ones: NDArray[np.bool_]) -> Array:
        """Scores of the columns of one draw; those not asked for may be left 0."""
        scales: Array | None = None
        for _ in range(statistic.n_passes):
            sums = np.zeros((self.X.shape[1], statistic.n_sums))
            for i, piece in enumerate(self.parts):
                for batch in self._open(i).batches():
                    if open_ones[batch.columns].any():
                        for some, block in blocks_of(batch, piece, draw, self.X):
                            known = None if scales is None else scales[batch.columns[some]]
                            sums[batch.columns[some]] += statistic.sums(block, known)
            scales = statistic.scores(sums, scales)
        assert scales is not None
        return scales


def blocks_of(batch: Batch, piece: Piece, draw: Draw, X: Array) -> Iterator[tuple[slice, Block]]:
    """Altered outputs of the columns of a batch, in blocks that fit a cache."""
    model, rows = piece
    if isinstance(draw, Points):
        values, weights = draw.values[batch.columns], draw.weights[batch.columns]
        n_points = values.shape[1]
        columns_at_once = max(1, BLOCK // (len(rows) * n_points))
        rows_at_a_time = max(16, BLOCK // n_points)
        for first in range(0, len(values), columns_at_once):
            some = slice(first, first + columns_at_once)
            for start in range(0, len(rows), rows_at_a_time):
                part = slice(start, start + rows_at_a_time)
                outputs = model.link(batch.at(some, part, values[some]))
                yield some, Block(rows[part], outputs, weights[some])
        return
    if isinstance(draw, Shuffle):
        raw = batch.paired(X[:, batch.columns][draw.donors[rows]])
    else:
        raw = batch.without()
    yield slice(None), Block(rows, model.link(raw), np.ones((len(batch.columns), 1)))
