"""Test of each column given all other columns, cross-fitted around any search."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.linear_model import Ridge

from tamis._arrays import Array, Subset, class_codes, scaled_columns
from tamis._checks import Constraints, instance_of, integer, number, one_of
from tamis._format import format_count, format_p_value
from tamis._seeds import fix_seeds, seed_of, stream
from tamis.contract.fit_warnings import caller_level
from tamis.contract.units import Grouping
from tamis.exceptions import DegenerateData, InvalidParameter, InvalidScore
from tamis.meta.inner_search import search_cost, walk_of
from tamis.meta.repeats import InRounds, Verdict
from tamis.meta.search_repeats import Rounds, check_part, task_of
from tamis.response.engines.base import ROWS_AT_ONCE, Model
from tamis.response.engines.registry import open_engine, rows_at_once
from tamis.response.predictions import as_it_is, predictions_of, probabilities_of
from tamis.validation.held_out import check_predicts, encode_target, train_model
from tamis.validation.resamples import folds_of

#: A warning is issued if there are fewer rows than this per column, or per class.
ROWS_PER_COLUMN, ROWS_PER_CLASS = 3, 10
#: Two shrinkages of the covariance are tried: the Ledoit-Wolf amount, and the share ``LESS`` of it.
#: The Ledoit-Wolf amount is best for the matrix as a whole, but it weakens strong relations between
#: columns. ``LEAST`` is the minimum amount.
LESS, LEAST = 0.03, 1e-6
#: Number of most correlated columns that ``neighbours="auto"`` adds to the model without the tested
#: column. It applies to searches that may select one of several similar columns.
NEIGHBOURS = 3


@dataclass(eq=False, repr=False)
class ConditionalTest(Rounds, InRounds):
    """Select the columns that are informative given all other columns, by a cross-fitted test.

    In each fold, the training rows are used for three things: the search selects columns; a model f
    is trained on the selected columns; and each column is modelled given all other columns, without
    the target. On the held-out rows, each selected column j gets the value

    R_i = (y_i - h_i) (f_i - m_i),

    where h is the model trained again without column j, and m_i is the mean prediction of f when
    x_ij is replaced by values drawn given the other columns. If a column has no information about
    the target given all others, R has mean 0, provided that either h or the model of the draws is
    correct. In folds that do not select column j, R is 0. A one-sided t-test over all rows gives
    the p-value. It is 1 for a column that no fold selects. The Benjamini-Hochberg procedure over
    *all* columns selects the columns with q <= ``fdr``.

    The test is valid for each column of the table. It is not a test of a list that was selected on
    the same rows. A small q does not mean that the column is a cause of the target. A column that
    is redundant with another column has no information given the other one. So if two columns are
    duplicates, neither is selected.

    Parameters
    ----------
    search : Search or any other selection
        The search to run in each fold. Its own parameters determine the number of columns.
    estimator : estimator or None, default=None
        The model that predicts the target. None means ridge regression. For classification, a
        regressor is trained on class indicators, and a classifier must predict probabilities.
    fdr : float, default=0.1
        The false discovery rate. A false discovery is a selected column that has no information
        about the target given all others.
    n_folds : int, default=5
        Number of folds.
    n_repeats : int, default=1
        Number of times that the rows are split into folds. The values R are averaged over the
        repeats. Four repeats find a few more columns, and take four times as long.
    n_draws : int, default=20
        Number of draws that replace each value of the tested column.
    neighbours : int or "auto", default="auto"
        Number of further columns that h uses in addition to the selected columns. They are the
        columns most correlated with column j. "auto" means 0 if the search scores each column
        independently, else 3.
    sampler : {"auto", "linear"} or regressor, default="auto"
        How the mean of a column given all others is modelled: as a linear function of the others
        ("linear"), of the others and their squares ("auto"), or by a regressor. If several models
        are possible, the one that predicts the column best on held-out rows is used.
    task : {"auto", "classification", "regression"}, default="auto"
        Whether ``y`` contains classes or numbers.
    random_state : int, generator or None, default=None
        Seed of the folds, the draws, the search and the estimator.
    n_jobs : int or None, default=None
        Number of folds in parallel. The result does not depend on it.

    Attributes
    ----------
    p_values_, q_values_ : array of float
        The p-value of each unit, and its q-value over all units.
    effects_, effect_errors_ : array of float
        The mean of R for each unit, and its standard error.
    found_in_ : array of int
        Number of folds that selected the unit, over all repeats.

    Examples
    --------
    >>> from tamis.criteria import Correlation
    >>> from tamis.meta import ConditionalTest
    >>> from tamis.search import Ranking
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 10))
    >>> X[:, 5] = X[:, 4] + rng.normal(size=300)  # related to y only through column 4
    >>> y = X[:, 4] + X[:, 9] + rng.normal(size=300)
    >>> test = ConditionalTest(Ranking(Correlation(), n_features_to_select=5), random_state=0)
    >>> test.fit(X, y).get_support(indices=True)
    array([4, 9])
    """

    row_labels: ClassVar[tuple[str, ...]] = ("groups",)
    sizes_search: ClassVar[bool] = False
    instead_if_censored: ClassVar[str] = "Use Probes(...) or StabilitySelection(...)."

    _constraints: ClassVar[Constraints] = {
        "fdr": number(above=0, below=1),
        "n_folds": integer(2),
        "n_repeats": integer(1),
        "n_draws": integer(1),
        "neighbours": integer(0) | one_of("auto"),
        "sampler": one_of("auto", "linear") | instance_of(RegressorMixin, "a regressor"),
        "task": one_of("auto", "classification", "regression"),
    }

    estimator: BaseEstimator | None = None
    _: KW_ONLY
    fdr: float = 0.1
    n_folds: int = 5
    n_repeats: int = 1
    n_draws: int = 20
    neighbours: int | str = "auto"
    sampler: str | BaseEstimator = "auto"
    task: str = "auto"

    def _check_target(self, y: NDArray[Any] | None) -> None:
        super()._check_target(y)
        assert y is not None
        check_predicts("ConditionalTest", self.estimator, y, task_of(self, y))
        model = Ridge() if self.estimator is None else self.estimator
        if is_classifier(model) and not hasattr(model, "predict_proba"):
            raise InvalidParameter(
                f"ConditionalTest needs probabilities, but {type(model).__name__} has no "
                "predict_proba. Pass a regressor such as SVR(), which is trained on class "
                "indicators, or CalibratedClassifierCV(...)."
            )

    def _n_rounds(self) -> int:
        return self.n_folds * self.n_repeats

    def _cost_of_round(self, n_samples: int, n_features: int) -> float | None:
        """Estimate the memory in bytes that the search and the inverse covariance need."""
        held = search_cost(self.search, n_samples, n_features)
        width = n_features * (1 if self.sampler == "linear" else 2)
        return held and held + 8.0 * (4 * n_samples * width + 3 * min(n_samples, width) ** 2)

    def _check_memory(self, X: Array, y: NDArray[Any] | None) -> None:
        n, d = X.shape
        if n < ROWS_PER_COLUMN * d:
            warn(
                f"ConditionalTest: {n} rows are fewer than {ROWS_PER_COLUMN} per column for {d} "
                "columns; p-values may be too small, because the models of the columns are "
                "hard to estimate.",
                DegenerateData,
                stacklevel=caller_level(),
            )
        assert y is not None
        if task_of(self, y) == "classification":
            labels, codes = class_codes(y)
            counts = np.bincount(codes)
            if counts.min() < ROWS_PER_CLASS:
                warn(
                    f"ConditionalTest: class {str(labels[counts.argmin()])!r} has "
                    f"{format_count(counts.min(), 'row')}, fewer than {ROWS_PER_CLASS}; p-values "
                    "may be too small. Join classes.",
                    DegenerateData,
                    stacklevel=caller_level(),
                )
        super()._check_memory(X, y)

    def _round(self, X: Array, y: NDArray[Any] | None, seed: int, index: int) -> list[Any]:
        """Return the test rows of a fold, the selected units, and the values R of each."""
        assert y is not None
        repeat, fold = divmod(index, self.n_folds)
        task, rows = task_of(self, y), np.arange(len(y))
        dealt = seed if repeat == 0 else seed_of(seed, "folds", repeat)
        groups = self._row_codes("groups")
        train, test = folds_of(y, rows, self.n_folds, dealt, task, groups)[fold]
        check_part("ConditionalTest", y, train)
        search = self._fit_search(X[train], y[train], seed_of(seed, "search", index))
        units = np.flatnonzero(search.unit_support_)
        held_out = HeldOutRows(
            *(X, y, train, test, task, self._units, self.estimator),
            stream(seed, "draws", index),
            seed_of(seed, "estimator", index),
        )
        # the data were checked before, and checks take half the time of a ridge regression
        with config_context(assume_finite=True, skip_parameter_validation=True):
            found = held_out.products(units, self._n_neighbours(), self.n_draws, self.sampler)
        return [test.tolist(), units.tolist(), found.tolist()]

    def _n_neighbours(self) -> int:
        if self.neighbours != "auto":
            return int(self.neighbours)
        return 0 if walk_of(self.search).scores_alone else NEIGHBOURS

    def _rest(
        self, X: Array, y: NDArray[Any] | None, seed: int, found: list[list[Any]]
    ) -> list[Any]:
        """Return the t-test of each unit over all rows, or over the groups of rows."""
        rows = self._units.n_units, len(X)
        return pool_tests(found, *rows, self.n_repeats, self._row_codes("groups"))

    def _standing(self, n_units: int, found: list[list[Any]], rest: list[Any]) -> Array:
        self.p_values_, self.q_values_, *effects = read_tests(rest)
        self.effects_, self.effect_errors_, self.found_in_ = effects
        return np.asarray(-np.array(rest[0]))

    def _verdict(self, scores: Array) -> Verdict:
        n_kept = int((self.q_values_ <= self.fdr).sum())
        smallest = format_p_value(float(self.q_values_.min()))
        if not n_kept:
            return Verdict(
                0,
                f"no column is informative given all others at a false discovery rate of "
                f"{self.fdr:g}; the smallest q is {smallest}.",
            )
        return Verdict(
            n_kept,
            f"{self._counted(n_kept)} with q <= {self.fdr:g}: a share of {self.fdr:g} of them is "
            "expected to have no information about the target given all other columns.",
        )


def pool_tests(
    found: list[list[Any]], n_units: int, n_rows: int, n_repeats: int, groups: Subset | None
) -> list[Any]:
    """Test each unit over the held-out rows of all folds, and return plain numbers for a record.

    Each item of ``found`` holds the test rows of a fold, the selected units, and R for each unit.
    """
    values, found_in = np.zeros((n_units, n_rows)), np.zeros(n_units, dtype=int)
    for rows, units, products in found:
        values[np.ix_(units, rows)] += np.array(products).reshape(len(units), len(rows))
        found_in[units] += 1
    tested = one_sided_tests(values / n_repeats, groups)
    return [*(one.tolist() for one in tested), found_in.tolist()]


def read_tests(numbers: list[Any]) -> tuple[NDArray[Any], ...]:
    """Return p-values, q-values, effects, their errors and the number of folds of each unit."""
    log_p, effects, errors, found_in = map(np.array, numbers)
    p = np.exp(log_p)
    return p, stats.false_discovery_control(p), effects, errors, found_in


class HeldOutRows(NamedTuple):
    """The rows of a fold, with everything needed to test units on its held-out rows."""

    X: Array
    y: NDArray[Any]
    train: Subset
    test: Subset
    task: str
    grouping: Grouping
    estimator: Any
    rng: np.random.Generator
    seed: int

    def products(self, units: Subset, n_neighbours: int, n_draws: int, sampler: Any) -> Array:
        """Return R for each unit and held-out row, see :class:`ConditionalTest`."""
        if not len(units):
            return np.zeros((0, len(self.test)))
        known, scale = scaled_columns(self.X[self.train])
        new = scale(self.X[self.test])
        truth = target_outputs(self.y, self.task)
        columns = self.grouping.columns(units)
        model = self._trained(known[:, columns], truth)
        blocks = [self.grouping.columns(np.array([unit])) for unit in units]
        if isinstance(sampler, RegressorMixin):
            fix_seeds(sampler := clone(sampler), root=self.seed)
        residuals = conditional_residuals(known, new, blocks, sampler)
        changes = mean_changes(
            model, new[:, columns], columns, blocks, residuals, n_draws, self.rng
        )
        found = np.empty((len(units), len(self.test)))
        near = nearest_units(known, blocks, self.grouping, n_neighbours)
        for i, unit in enumerate(units):
            others = np.setdiff1d(np.union1d(units, near[i]), [unit])
            rest = self.grouping.columns(others)
            if len(rest):
                predicted = self._trained(known[:, rest], truth).outputs(new[:, rest])
            else:
                predicted = truth[self.train].mean(axis=0)
            with np.errstate(over="ignore"):
                found[i] = -((truth[self.test] - predicted) * changes[i]).sum(axis=1)
        if not np.isfinite(found).all():
            raise InvalidScore(
                "ConditionalTest needs finite predictions on held-out rows, but the estimator "
                "predicts NaN or very large numbers. Give another estimator, or the target in "
                "other units."
            )
        return found

    def _trained(self, X: Array, truth: Array) -> Model:
        if self.estimator is None:
            return ridge_model(X, truth[self.train])
        fix_seeds(estimator := clone(self.estimator), root=self.seed)
        model = train_model(estimator, X, self.y[self.train], truth[self.train])
        if is_classifier(model):
            return probabilities_of(model, class_codes(self.y)[0])
        return predictions_of(model)


def ridge_model(Z: Array, truth: Array) -> Model:
    """Return a ridge regression on centred columns, as ``Ridge()`` of scikit-learn, but faster."""
    mean = truth.mean(axis=0)
    weights = np.linalg.solve(Z.T @ Z + np.eye(Z.shape[1]), Z.T @ (truth - mean))
    return Model(None, "predict", lambda rows: rows @ weights + mean, as_it_is)


def target_outputs(y: NDArray[Any], task: str) -> Array:
    """Return the target as columns. Two classes are a single indicator of the second class."""
    truth = encode_target(y, task)
    return truth[:, 1:] if task == "classification" and truth.shape[1] == 2 else truth


def conditional_residuals(
    known: Array, new: Array, blocks: list[Subset], sampler: Any = "auto"
) -> list[Array]:
    """Return the residuals of each block of columns given all other columns, for the new rows.

    The conditional mean is computed from a covariance of the rows ``known`` that is shrunk by the
    Ledoit-Wolf amount or less. It may also use squares of the other columns, or a regressor. For
    each block, the mean with the smallest residuals in the new rows is used. The target is not used
    for this choice, so the test stays valid.

    Parameters
    ----------
    known, new : array of shape (n_rows, n_columns)
        Standardised rows.
    blocks : list of array of int
        The columns of each tested unit.
    sampler : {"auto", "linear"} or regressor
        See :class:`ConditionalTest`.
    """
    kinds = [*_shrunk_residuals(known, new, blocks)]
    if sampler != "linear":
        second, scale = scaled_columns(known**2)
        wide = np.hstack([known, second]), np.hstack([new, scale(new**2)])
        both = [np.concatenate([block, block + known.shape[1]]) for block in blocks]
        kinds += _shrunk_residuals(*wide, both)
    if isinstance(sampler, RegressorMixin):
        kinds.append([_predicted_residuals(sampler, known, new, block) for block in blocks])
    return [
        min((kind[i][:, : len(block)] for kind in kinds), key=_size)
        for i, block in enumerate(blocks)
    ]


def _shrunk_residuals(known: Array, new: Array, blocks: list[Subset]) -> Iterator[list[Array]]:
    columns = np.unique(np.concatenate(blocks))
    n, d = known.shape
    gram = known.T @ known if d <= n else known @ known.T
    shrinkage = max(_ledoit_wolf(known, gram), LEAST)
    for amount in (shrinkage, max(shrinkage * LESS, LEAST)):
        yield _residuals(new, blocks, columns, _inverse_columns(known, gram, columns, amount))


def _ledoit_wolf(Z: Array, gram: Array) -> float:
    """Return the Ledoit-Wolf shrinkage of the covariance of centred columns Z.

    ``gram`` holds the cross products of the columns, or of the rows if they are fewer. The function
    of scikit-learn computes two matrices of columns instead, which is slow for wide tables.
    """
    n, d = Z.shape
    squares = (Z**2).sum(axis=1)
    size = float((gram**2).sum()) / n**2
    noise = (float((squares**2).sum()) / n - size) / n
    spread = size - (squares.sum() / n) ** 2 / d
    return min(noise, spread) / spread if min(noise, spread) > 0 else 0.0


def _predicted_residuals(sampler: Any, known: Array, new: Array, block: Subset) -> Array:
    rest = np.setdiff1d(np.arange(known.shape[1]), block)
    if not len(rest):
        return new[:, block]
    model = train_model(sampler, known[:, rest], known[:, block[0]], known[:, block])
    return np.asarray(new[:, block] - predictions_of(model).outputs(new[:, rest]))


def _size(residuals: Array) -> float:
    return float((residuals**2).sum())


def _residuals(rows: Array, blocks: list[Subset], columns: Subset, inverse: Array) -> list[Array]:
    """Return the residuals of blocks of columns given all other columns.

    If P is the inverse covariance, the residual of a block B in a row z is P_BB^-1 (P z)_B.
    ``inverse`` holds the given columns of P.
    """
    scores, found = rows @ inverse, []
    for block in blocks:
        at = np.searchsorted(columns, block)
        solved: Any = np.linalg.solve(inverse[np.ix_(block, at)].T, scores[:, at].T)
        found.append(solved.T)
    return found


def _inverse_columns(Z: Array, gram: Array, columns: Subset, shrinkage: float) -> Array:
    """Return columns of the inverse of the shrunk covariance of centred columns Z."""
    n, d = Z.shape
    added, kept = shrinkage * float((Z**2).sum() / (n * d) or 1.0), (1 - shrinkage) / n
    C = kept * gram
    C[np.diag_indices(len(C))] += added
    if d <= n:
        return np.asarray(np.linalg.solve(C, np.eye(d)[:, columns]))
    found = -kept * (Z.T @ np.linalg.solve(C, Z[:, columns]))  # Woodbury
    found[columns, np.arange(len(columns))] += 1.0
    return np.asarray(found / added)


def mean_changes(
    model: Model,
    X: Array,
    columns: Subset,
    blocks: list[Subset],
    residuals: list[Array],
    n_draws: int,
    rng: np.random.Generator,
) -> Array:
    """Return the mean change of the outputs when each block is replaced by conditional draws.

    A draw adds the residual of another row to the mean of a row given its other columns. The result
    has the shape (blocks, rows, outputs).

    Parameters
    ----------
    model : Model
        Model of the columns ``columns`` of the table.
    X : array of shape (n_rows, n_columns)
        The rows, with the columns of the model.
    """
    before = model.outputs(X)
    total = np.zeros((len(blocks), *before.shape))
    donors = _donors(len(X), n_draws, rng)
    at_once = max(1, rows_at_once(model, ROWS_AT_ONCE) // len(X))
    low, high = X.min(axis=0), X.max(axis=0)
    places = [np.searchsorted(columns, block) for block in blocks]
    # a block takes the value of the row minus its residual plus the residual of the donor
    for place, residual in zip(places, residuals, strict=True):
        span = residual.max(axis=0) - residual.min(axis=0)
        low[place], high[place] = low[place] - span, high[place] + span
    for start in range(0, len(donors), at_once):
        some = donors[start : start + at_once]
        engine = open_engine(model, np.tile(X, (len(some), 1)), low, high)
        for size in sorted({len(block) for block in blocks}):
            same = [i for i, block in enumerate(blocks) if len(block) == size]
            units = np.array([places[i] for i in same])
            values = np.stack([
                np.concatenate([X[:, places[i]] + residuals[i][d] - residuals[i] for d in some])
                for i in same
            ], axis=1)  # fmt: skip
            for batch in engine.batches(units):
                raw = batch.paired(values[:, batch.units])[:, :, 0]
                outputs = model.link(raw).reshape(len(batch.units), len(some), *before.shape)
                total[np.array(same)[batch.units]] += outputs.sum(axis=1)
    return np.asarray(total / len(donors) - before)


def _donors(n_rows: int, n_draws: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return, for each draw and each row, another row whose residual is used."""
    order = rng.permutation(n_rows)
    position = np.argsort(order)
    shifts = rng.permutation(np.arange(1, max(2, n_rows)))[:n_draws]
    return np.array([order[(position + shift) % n_rows] for shift in shifts])


def nearest_units(
    Z: Array, blocks: list[Subset], grouping: Grouping, n_nearest: int
) -> list[Subset]:
    """Return, for each block, the units whose columns are most correlated with those of the block.

    ``Z`` holds standardised columns. A block itself is never among its nearest units.
    """
    if not n_nearest:
        return [np.array([], dtype=np.intp)] * len(blocks)
    found = []
    for block in blocks:
        similar = np.full(grouping.n_units, -1.0)
        np.maximum.at(similar, grouping.unit_of, np.abs(Z[:, block].T @ Z).max(axis=0))
        similar[grouping.unit_of[block]] = -1.0
        found.append(np.argsort(-similar, kind="stable")[: min(n_nearest, grouping.n_units - 1)])
    return found


def one_sided_tests(values: Array, groups: Subset | None) -> tuple[Array, Array, Array]:
    """Return the logarithm of the p-value, the mean and its standard error for each line of values.

    The alternative is a mean above 0. With groups, the sums of the groups are tested, because rows
    of a group are not independent. A line without variation has p = 1.

    >>> log_p, mean, error = one_sided_tests(np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]]), None)
    >>> np.exp(log_p).round(4), mean
    (array([0.0371, 1.    ]), array([2., 0.]))
    """
    n_rows = values.shape[1]
    if groups is not None:
        sums = np.zeros((len(values), groups.max() + 1))
        np.add.at(sums.T, groups, values.T)
        values = sums
    # scaled by powers of two, so that squares neither overflow nor underflow
    exponents = np.frexp(np.abs(values).max(axis=1))[1]
    values = np.ldexp(values, -exponents[:, None])
    n = values.shape[1]
    mean, spread = values.mean(axis=1), values.std(axis=1, ddof=1) / np.sqrt(n)
    varies = spread > 0
    t = np.where(varies, mean / np.where(varies, spread, 1.0), 0.0)
    log_p = np.where(varies, stats.t.logsf(t, n - 1), 0.0)
    share = n / n_rows
    return log_p, np.ldexp(mean, exponents) * share, np.ldexp(spread, exponents) * share
