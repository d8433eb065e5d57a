"""CrossValidated: the cross-validated score of an estimator on a subset of the columns."""

import warnings
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from tamis._arrays import EMPTY, Array, Subset, class_codes, is_int
from tamis._checks import Constraints, one_of
from tamis._parallel import parallel_map
from tamis._sparse import is_sparse
from tamis.blocks.survival import SURVIVAL
from tamis.blocks.table import BlockTable, refuse_blocks
from tamis.contract import SubsetCriterion
from tamis.contract.criterion import with_unit
from tamis.criteria.model import (
    Metadata,
    OpenCriterion,
    check_trainable,
    for_columns,
    is_estimator,
)
from tamis.exceptions import InvalidScore
from tamis.response.fold_models import fit_clone, take_rows
from tamis.response.outputs import check_scored, one_scorer
from tamis.validation import FoldAccuracies, Splits, most_frequent
from tamis.validation.block_folds import folds_of_blocks
from tamis.validation.block_lda import SummedLDA
from tamis.validation.held_out import squared_losses
from tamis.validation.knn import KNNFolds
from tamis.validation.lda import LDAFolds, is_plain_lda
from tamis.validation.splits import split_rows


class ConstantRisk(BaseEstimator):
    """Baseline that predicts the same risk for every row, with a concordance index of 1/2."""

    def fit(self, X: Array, y: NDArray[Any]) -> Self:
        return self

    def predict(self, X: Array) -> Array:
        return np.zeros(X.shape[0])

    def score(self, X: Array, y: NDArray[Any]) -> float:
        return 0.5


class FoldScores(NamedTuple):
    """Table and folds on which clones of an estimator are trained and scored."""

    X: Array
    y: NDArray[Any] | None
    splits: Splits
    scorer: Any
    metadata: Metadata

    def scores(self, estimator: Any, columns: Subset, known: Array) -> Array:
        """Return the score of an estimator in each fold, trained on the given columns.

        ``known`` contains the scores of folds that need no training, and NaN for all other folds.
        """
        scores, table = known.copy(), self._replace(X=self.X[:, columns])
        for fold in np.flatnonzero(np.isnan(known)).tolist():
            try:
                scores[fold] = table._score(estimator, fold)
            except Exception as error:
                error.add_note(
                    f"CrossValidated: {type(estimator).__name__} failed in fold {fold} on "
                    f"column(s) {columns.tolist()}."
                )
                raise
            if np.isnan(scores[fold]):
                raise InvalidScore(
                    f"CrossValidated: the score of {type(estimator).__name__} is NaN in fold "
                    f"{fold} on column(s) {columns.tolist()}. Use fewer folds, or another scoring."
                )
        return scores

    def mean_score(self, estimator: Any, columns: Subset, known: Array) -> float:
        return float(np.mean(self.scores(estimator, columns, known)))

    def _score(self, estimator: Any, fold: int) -> float:
        # ignore that discriminant analysis divides zero by zero if all class means are equal
        with np.errstate(divide="ignore", invalid="ignore"):
            model, test = self._fit(estimator, fold), self.splits[fold][1]
        truth = () if self.y is None else (self.y[test],)
        # an undefined score is NaN, which is refused later
        with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
            warnings.simplefilter("ignore", UndefinedMetricWarning)
            weights = take_rows(self.metadata.score, test)
            return float(self.scorer(model, self.X[test], *truth, **weights))

    def _fit(self, estimator: Any, fold: int) -> Any:
        """Train a clone on the training rows of a fold."""
        train = self.splits[fold][0]
        y = None if self.y is None else self.y[train]
        return fit_clone(estimator, self.X[train], y, take_rows(self.metadata.fit, train))

    def mean_loss(self, estimator: Any, columns: Subset, known: Array) -> float:
        """Return the squared loss of an estimator on the given columns, averaged over the folds.

        If a classifier cannot be trained in a fold, ``known`` contains its accuracy in that fold.
        Its predicted probabilities are then 0 or 1, so a wrong class has a loss of 2. Without any
        column, the class frequencies are predicted.
        """
        assert self.y is not None
        table, losses = self._replace(X=self.X[:, columns]), 2 * (1 - known)
        if not len(columns):
            table = self._replace(X=np.zeros((len(self.y), 1)), metadata=Metadata())
            estimator = DummyClassifier()
        for fold in np.flatnonzero(np.isnan(known)).tolist():
            test = self.splits[fold][1]
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                model = table._fit(estimator, fold)
                found = squared_losses(model, table.X[test], self.y[test], margins=True)
            losses[fold] = found.mean()
        return float(losses.mean())


def gives_shares(estimator: Any) -> bool:
    """Whether an estimator is a classifier that returns probabilities or decision values."""
    methods = ("predict_proba", "decision_function")
    return (
        is_estimator(estimator)
        and is_classifier(estimator)
        and any(hasattr(estimator, name) for name in methods)
    )


@dataclass(eq=False, repr=False)
class CrossValidated(OpenCriterion, SubsetCriterion):
    """Mean cross-validated score of an estimator on the columns of the subset.

    The value is ``cross_val_score(estimator, X[:, subset], y, cv=cv, scoring=scoring).mean()``. The
    splits are made once, in ``fit``. The value of the empty subset is the score of
    ``DummyClassifier(strategy="prior")`` or ``DummyRegressor()``.

    If the score is accuracy and there are no sample weights, two classifiers score all candidates
    of a step together, with the same result. These are ``LinearDiscriminantAnalysis`` with its
    default solver, and ``KNeighborsClassifier`` with uniform weights and Euclidean distances (from
    16 columns, up to 10 000 rows). They run in a single thread. Discriminant analysis ignores
    constant columns. scikit-learn cannot fit such columns, or mistakes the rounding of their mean
    for variance. If no column of the subset varies within a class in a fold, the class of the
    nearest mean is predicted. scikit-learn cannot fit this case either.

    Plain ``LinearDiscriminantAnalysis`` also learns from row blocks. The score is then accuracy on
    folds that depend only on the index and class of a row (an int, ``KFold``, ``StratifiedKFold``
    or explicit folds). The moments of the folds take one pass over the data. Each step of a search
    takes one more pass.

    ``y`` may have several columns if the estimator accepts several targets. With an estimator of
    scikit-survival, ``y`` is a censored target, the score is the concordance index, and the empty
    subset has the value 1/2.

    Parameters
    ----------
    estimator : estimator
        Model that is trained on each training fold. A search over hyper-parameters (anything with
        ``best_estimator_``) is run once on all rows and columns, and its best estimator is cross-
        validated. The score is then optimistic, because the hyper-parameters were chosen on the
        test folds too, but this bias is similar for all subsets. For nested cross-validation,
        which is much slower, put the search into a pipeline:
        ``CrossValidated(make_pipeline(GridSearchCV(...)))``.
    cv : int, splitter or iterable of (train, test), default=5
        Folds, as in ``cross_val_score``. For a classifier, an int is the number of stratified
        folds.
    scoring : str, callable or None, default=None
        Score to use. None means the estimator's own score: accuracy or R².
    ties : {"loss", "index"}, default="loss"
        How a search breaks ties, which are frequent with accuracy. "loss" compares the squared loss
        of the probabilities (Brier score) on the same folds. If a classifier has no probabilities,
        its decision values are used as log-odds. "index" takes the lowest index. The loss is
        computed only if there are ties. It at most doubles the time of a step.
    n_jobs : int or None, default=None
        Number of subsets scored at the same time; the result does not depend on it.
    task : {"auto", "classification", "regression"}, default="auto"
        How ``y`` is interpreted. A classifier or regressor determines the task. For a classifier,
        "auto" refuses numbers with more than 20 distinct values, which look like a regression
        target.

    Notes
    -----
    ``fit`` accepts ``groups`` for the splitter and ``sample_weight`` for the estimator's ``fit``.
    With scikit-learn's metadata routing enabled, it accepts all metadata that the estimator,
    splitter and scorer request.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> criterion = CrossValidated(KNeighborsClassifier()).fit(*load_iris(return_X_y=True))
    >>> criterion.values([np.array([], dtype=int), np.array([0, 1]), np.array([2, 3])]).round(3)
    array([0.333, 0.767, 0.967])
    """

    estimator: BaseEstimator
    _: KW_ONLY
    cv: int | BaseCrossValidator | Iterable[Any] = 5
    scoring: str | Callable[..., Any] | None = None
    ties: str = "loss"
    n_jobs: int | None = None
    task: str = "auto"

    _makes_folds = True
    _constraints: ClassVar[Constraints] = {"ties": one_of("loss", "index")}

    @property
    def opinion(self) -> str:  # type: ignore[override]
        """How ties are broken, or an empty string if ties go to the lowest index."""
        several = getattr(getattr(self, "_y", None), "ndim", 1) == 2
        by_loss = self.ties == "loss" and not several and gives_shares(self.estimator)
        return "squared loss on the same folds" if by_loss else ""

    def check(self) -> None:
        super().check()
        check_trainable(self, self.estimator)
        check_scored(type(self).__name__, self.estimator, self.scoring)

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Return the memory in bytes that scoring needs, or None if it is not known.

        It is known if all candidates of a step are scored together and ``cv`` is an int.
        """
        kinds = {LinearDiscriminantAnalysis: LDAFolds, KNeighborsClassifier: KNNFolds}
        kind: Any = kinds.get(type(self.estimator))
        if kind is None or self.scoring not in (None, "accuracy") or not is_int(self.cv):
            return None
        return kind.cost(n_samples, n_features, self.cv)

    @property
    def takes_blocks(self) -> bool:  # type: ignore[override]
        """Whether the criterion learns from row blocks.

        This needs plain discriminant analysis with accuracy as the score.
        """
        return is_plain_lda(self.estimator) and self.scoring in (None, "accuracy")

    def _check_blocks(self) -> None:
        if not self.takes_blocks:
            refuse_blocks(f"CrossValidated({type(self.estimator).__name__}, ...)")

    def _learn_blocks(self, table: BlockTable) -> None:
        folds = folds_of_blocks(type(self).__name__, table, self.cv)
        self._summed: SummedLDA | None = SummedLDA(table, self.estimator, folds)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        self._summed = None
        metadata = self._route(params, X.shape[0])
        classes = is_classifier(self.estimator)
        self._splits = split_rows(
            type(self).__name__, self.cv, X, y, classes=classes, **metadata.split
        )
        self._learn_model(X, y, metadata)
        self._worth_of_nothing = self._constant_score()

    def _prepare(self, estimator: Any) -> None:
        self._best: tuple[Subset, Subset, float] = EMPTY, EMPTY, 0.0
        self._scorer = one_scorer(type(self).__name__, estimator, self.scoring)
        self._folds = self._shortcut(estimator)
        if self._folds is not None:
            self._X = self._folds.X

    def _shortcut(self, estimator: Any) -> FoldAccuracies | None:
        """Return folds that score all candidates of a step together.

        Return None if the estimator, the score or the data do not allow it.
        """
        plain = self.scoring is None or self.scoring == "accuracy"
        weighted = self._metadata.fit or self._metadata.score
        grouped = self.n_units_ != self.n_features_in_
        if self._y is None or self.task_ != "classification" or not plain or weighted or grouped:
            return None
        if self._y.ndim == 2 or is_sparse(self._X):
            return None
        _, codes = class_codes(self._y)
        for kind in (LDAFolds, KNNFolds):
            if folds := kind.suited(estimator, self._X, codes, self._splits):
                return folds
        return None

    def _constant_score(self) -> float:
        """Return the score of a constant prediction."""
        if self._y is None:
            return 0.0
        if self._folds is not None:
            return most_frequent(class_codes(self._y)[1], self._splits)
        kinds = {"classification": DummyClassifier, SURVIVAL: ConstantRisk}
        dummy = kinds.get(self.task_, DummyRegressor)()
        weights = {n: v for n, v in self._metadata.fit.items() if n == "sample_weight"}
        scorer = check_scoring(dummy, scoring=self.scoring)
        metadata = self._metadata._replace(fit=weights)
        zeros = np.zeros((len(self._y), 1))
        folds = FoldScores(zeros, self._y, self._splits, scorer, metadata)
        return folds.mean_score(dummy, np.array([0]), np.full(len(self._splits), np.nan))

    @property
    def _fold_scores(self) -> FoldScores:
        return FoldScores(self._X, self._y, self._splits, self._scorer, self._metadata)

    def value(self, subset: Subset) -> float:
        return float(self.values([subset])[0])

    def values(self, subsets: Iterable[Subset]) -> Array:
        subsets = list(subsets)
        if self._summed is not None:
            return self._summed.accuracies([self.columns(s) for s in subsets]).mean(axis=1)
        values = np.array([self._known_value(subset) for subset in subsets], dtype=float)
        missing = np.flatnonzero(np.isnan(values))
        items = (self._score_arguments(subsets[i]) for i in missing)
        values[missing] = parallel_map(self._fold_scores.mean_score, items, self.n_jobs)
        return values

    def _score_arguments(self, subset: Subset) -> tuple[Any, Subset, Array]:
        """Return the arguments of :meth:`FoldScores.scores` for a subset.

        They are the estimator, the columns, and the scores of folds that cannot be trained.
        """
        columns, known = self.columns(subset), np.full(len(self._splits), np.nan)
        if self._folds is not None:
            known = self._folds.untrainable(columns)
        return for_columns(self.estimator_, columns, self._X.shape[1]), columns, known

    def fold_scores(self, subset: Subset) -> Array:
        """Return the score of each fold on a subset. The value of the subset is their mean."""
        if self._summed is not None:
            return self._summed.accuracies([self.columns(subset)])[0]
        if not len(subset):
            return np.full(len(self._splits), self._worth_of_nothing)
        return self._fold_scores.scores(*self._score_arguments(subset))

    @property
    def test_ratio(self) -> float:
        """Mean over the folds of the number of test rows per training row."""
        if self._summed is not None:
            return self._summed.test_ratio
        return float(np.mean([len(test) / len(train) for train, test in self._splits]))

    def _known_value(self, subset: Subset) -> float:
        """Return the value of a subset if it is known without training, otherwise NaN."""
        base, best, value = self._best
        if len(best) and abs(len(base) - len(subset)) == 1:
            change = np.setxor1d(base, subset, assume_unique=True)
            if len(change) == 1 and change[0] in best:
                return value
        essential = subset if self._folds is None else self._folds.essential(subset)
        if len(essential) == 0:
            return self._worth_of_nothing
        return float("nan") if self._folds is None else self._folds.value(essential)

    def gain(self, subset: Subset, candidates: Subset) -> Array:
        if self._summed is not None:  # a single pass over the blocks for all candidates
            return super().gain(subset, candidates)
        if self._folds is None:
            found = np.full(len(candidates), np.nan)
        else:
            found = self._folds.grown(self._folds.essential(subset), candidates)
        return self._score_changes(subset, candidates, found)

    def loss(self, subset: Subset) -> Array:
        if self._summed is not None:
            return super().loss(subset)
        found = np.full(len(subset), np.nan)
        if self._folds is not None and len(kept := self._folds.essential(subset)) > 1:
            found[np.isin(subset, kept)] = self._folds.shrunk(kept)
        return -self._score_changes(subset, subset, found)

    def _score_changes(self, subset: Subset, units: Subset, found: Array) -> Array:
        """Return the change of the value when each unit is added or removed.

        ``found`` contains the new value for each unit, or NaN if it is still to be computed. The
        best subsets are cached, because a greedy search continues from one of them.
        """
        base = self.value(subset)
        missing = np.flatnonzero(np.isnan(found))
        found[missing] = self.values([toggle_unit(subset, int(unit)) for unit in units[missing]])
        if len(found):
            best = np.flatnonzero(found == found.max())
            self._best = subset, units[best], float(found[best[0]])
        return found - base

    def second_opinion(self, subset: Subset, units: Subset) -> Array:
        """Return the negative squared loss of the probabilities when each unit is added or removed.

        A unit of the subset is removed, any other unit is added.
        """
        if self._summed is not None:
            return -self._summed.losses([self.columns(toggle_unit(subset, int(j))) for j in units])
        found, entering = np.full(len(units), np.nan), not np.isin(units, subset).any()
        if self._folds is not None:
            kept = self._folds.essential(subset)
            usable = np.ones(len(units), bool) if entering else np.isin(units, kept)
            if entering or len(kept) > 1:
                found[usable] = self._folds.losses(kept, units[usable], entering=entering)
        missing = np.flatnonzero(np.isnan(found))
        items = (self._loss_arguments(toggle_unit(subset, int(units[i]))) for i in missing)
        found[missing] = parallel_map(self._fold_scores.mean_loss, items, self.n_jobs)
        return -found

    def _loss_arguments(self, subset: Subset) -> tuple[Any, Subset, Array]:
        """Return the arguments of :meth:`FoldScores.mean_loss` for a subset.

        The columns are empty if all columns of the subset are constant.
        """
        kept = subset if self._folds is None else self._folds.essential(subset)
        if len(kept):
            return self._score_arguments(subset)
        return self.estimator_, EMPTY, np.full(len(self._splits), np.nan)

    def get_metadata_routing(self) -> MetadataRouter:
        """Return a router that passes metadata to the estimator, the splitter and the scorer."""
        router = super().get_metadata_routing()
        router.add(
            splitter=check_cv(self.cv, classifier=is_classifier(self.estimator)),
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
        return router.add(
            scorer=check_scoring(self.estimator, scoring=self.scoring),
            method_mapping=MethodMapping().add(caller="fit", callee="score"),
        )


def toggle_unit(subset: Subset, unit: int) -> Subset:
    """Add a unit to the subset, or remove it if it is a member."""
    return subset[subset != unit] if (subset == unit).any() else with_unit(subset, unit)
