"""Base classes of the searches for the best C: checks, folds, progress reports and refitting."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, ClassVar, NamedTuple, Self
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import BaseCrossValidator, GroupKFold, StratifiedGroupKFold
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, SVR
from sklearn.utils import Tags, _safe_indexing, check_array, check_consistent_length, get_tags
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from tamis._arrays import Array
from tamis._checks import NONE, Constraint, Constraints, check_parameters, one_of
from tamis._parallel import parallel_stream
from tamis.exceptions import InvalidParameter, InvalidTable, NotCertified
from tamis.svm.curves.certificate import PathAudit, TriedGamma, against
from tamis.svm.inputs import RANGE, RISING, check_new_rows, check_rows, weigh_samples
from tamis.svm.kernels import GAMMA, KernelEstimator
from tamis.svm.machine import most_steps
from tamis.validation.splits import Fold, reword_warnings, split_rows

#: Relative difference up to which the best values of two gammas are tied.
EQUAL = 1e-12
#: Largest kernel value with which sums do not overflow in single precision.
LARGEST_SINGLE = 1e36


def gammas_of(gamma: Any) -> list[Any]:
    """Return the gammas as a list. A single gamma becomes a list with one element."""
    several = not isinstance(gamma, str) and np.ndim(gamma) > 0
    return list(gamma) if several else [gamma]


GAMMAS = Constraint(
    (*GAMMA.words, "a list of these"),
    lambda gamma: len(gammas_of(gamma)) > 0 and all(map(GAMMA.accepts, gammas_of(gamma))),
)


class TuningRows(NamedTuple):
    """The training data of a search, as passed to ``fit`` and in the form that the paths need."""

    X: Any  # table of numbers, or input of the preprocessor
    y: NDArray[Any]
    target: NDArray[Any]  # class codes from 0 for classification, y for regression
    weight: Array  # weight of each sample, in training and in the score
    sample_weight: Any = None  # as passed to fit


class FoldFound(NamedTuple):
    """Results of one fold: the values of the paths on the test rows, and audits of the paths."""

    values: Any
    audits: list[PathAudit]


class TunedSVM(KernelEstimator):
    """Base class of SVMs whose C is chosen by cross-validation."""

    best_estimator_: Any  # declared here, because criteria recognise a search by this attribute

    #: Parameters that only some subclasses have. The other subclasses use these values.
    preprocessor: Any = None
    class_weight: Any = None
    pool: str = "folds"

    _constraints: ClassVar[Constraints] = {
        "gamma": GAMMAS,
        "C_range": RISING | NONE,
        "lambda_range": RISING,
        "pool": one_of("folds", "samples"),
    }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.preprocessor is not None:
            pairwise = tags.input_tags.pairwise
            tags.input_tags = replace(get_tags(self.preprocessor).input_tags, pairwise=pairwise)
        return tags

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict with the SVM that has the best C."""
        return self._best().predict(self._rows(X))

    def _best(self) -> Any:
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"{type(self).__name__} with refit=False has no best_estimator_. "
                "Fit it with refit=True to predict."
            )
        return self.best_estimator_

    @property
    def _lambdas(self) -> tuple[float, float]:
        """The range of lambda, from ``lambda_range`` or ``C_range``."""
        if self.C_range is None:
            low, high = self.lambda_range
            return low, high
        return 1.0 / self.C_range[1], 1.0 / self.C_range[0]

    def _begin(self, X: Any, y: Any, sample_weight: Any) -> TuningRows:
        """Validate all parameters and data, except the columns if there is a preprocessor."""
        name = type(self).__name__
        if self.preprocessor is None:
            X, y = check_rows(self, X, y)
        else:
            check_parameters(self)
            if self.kernel == "precomputed":
                raise InvalidParameter(
                    f'{name} with kernel="precomputed" has no columns to preprocess. Leave '
                    "preprocessor out."
                )
            validate_data(self, X, skip_check_array=True)
            check_consistent_length(X, y)
            y = column_or_1d(y, warn=True)
        if self.C_range is not None and self.lambda_range != RANGE:
            raise InvalidParameter(
                f"{name} needs C_range or lambda_range (lambda = 1 / C), not both; got C_range="
                f"{self.C_range!r} and lambda_range={self.lambda_range!r}."
            )
        return TuningRows(X, y, y, weigh_samples(name, sample_weight, X), sample_weight)

    def _rows(self, X: Any) -> Any:
        if self.preprocessor is None:
            return check_new_rows(self, X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _splits(self, rows: TuningRows, groups: Any = None) -> list[Fold]:
        """Return the folds of ``cv`` as row numbers. Refuse folds without rows or without weight.

        With groups, an integer ``cv`` makes folds that keep each group together.
        """
        name, cv, classes = type(self).__name__, self.cv, is_classifier(self)
        metadata = {} if groups is None else {"groups": groups}
        if groups is not None and (cv is None or isinstance(cv, int)):
            cv = (StratifiedGroupKFold if classes else GroupKFold)(5 if cv is None else cv)
        splits = split_rows(name, cv, rows.X, rows.y, classes=classes, **metadata)
        for k, split in enumerate(splits):
            for part, numbers in zip(("training", "test"), split, strict=True):
                if not rows.weight[numbers].sum() > 0:
                    lacks = "rows of positive weight" if len(numbers) else "rows"
                    raise InvalidParameter(
                        f"{name} needs training and test {lacks} in every fold; fold {k} has no "
                        f"such {part} rows. Use fewer folds, or leave that fold out of cv."
                    )
        return splits

    def _fold_rows(self, rows: TuningRows, split: Fold) -> tuple[Array, Array, Array | None]:
        """Return the training rows and the test rows of a fold as tables of numbers.

        A preprocessor is fitted to the training rows only. The third value is the kernel value of
        each test point with itself if the kernel is precomputed, else None.
        """
        X, (train, test) = rows.X, split
        if self.kernel == "precomputed":
            return X[np.ix_(train, train)], X[np.ix_(test, train)], np.diagonal(X)[test]
        if self.preprocessor is None:
            return X[train], X[test], None
        prepare = clone(self.preprocessor)
        inner = _as_numbers(prepare.fit_transform(_safe_indexing(X, train), rows.y[train]))
        return inner, _as_numbers(prepare.transform(_safe_indexing(X, test))), None

    def _check_refit(self, rows: TuningRows, remedy: str = "refit=False") -> None:
        """Refuse kernels that would overflow in LIBSVM, which uses single precision."""
        X = rows.X
        if self.preprocessor is not None:
            X = _as_numbers(clone(self.preprocessor).fit_transform(X, rows.y))
        for gamma in gammas_of(self.gamma):
            kernel = self._resolve(X, gamma)
            with np.errstate(over="ignore", invalid="ignore"):
                own = np.diagonal(X) if kernel.name == "precomputed" else kernel.diagonal(X)
                largest = float(np.abs(own).max(initial=0.0))
            if not largest < LARGEST_SINGLE:
                raise InvalidTable(
                    f"{type(self).__name__} trains LIBSVM, which cannot use kernel values "
                    f"above {LARGEST_SINGLE:.0e}; with these columns they reach {largest:.3g}. "
                    f"Scale the columns, for example with StandardScaler(), or write {remedy}."
                )

    def _best_model(self, n_rows: int) -> Any:
        """Return an untrained model with the best C, in a pipeline if there is a preprocessor."""
        kind, own = (SVC, "class_weight") if is_classifier(self) else (SVR, "epsilon")
        passed = {name: getattr(self, name) for name in ("kernel", "degree", "coef0", own)}
        limits = {"cache_size": 500, "max_iter": most_steps(n_rows)}
        model = kind(C=self.best_C_, gamma=self.best_gamma_, **passed, **limits)
        if self.preprocessor is None:
            return model
        return Pipeline([("preprocessor", clone(self.preprocessor)), ("machine", model)])

    def _refit(self, rows: TuningRows, splits: Sequence[Fold]) -> None:
        """Train the model with the best C on all rows."""
        name = "sample_weight" if self.preprocessor is None else "machine__sample_weight"
        given = {} if rows.sample_weight is None else {name: rows.sample_weight}
        with reword_warnings():
            self.best_estimator_ = self._best_model(len(rows.y)).fit(rows.X, rows.y, **given)

    def _problem(self, n_splits: int, weighted: bool, measure: str) -> str:
        """Return a description of the problem that is certified: kernel, weights, folds, score."""
        names = {"rbf": ["gamma"], "poly": ["gamma", "degree", "coef0"]}.get(self.kernel, [])
        names += ["epsilon"] if hasattr(self, "epsilon") else []
        numbers = "".join(f", {name}={getattr(self, name)!r}" for name in names)
        parts = [f"kernel={self.kernel!r}{numbers}"]
        if self.preprocessor is not None:
            parts.append("preprocessor fitted to each training fold")
        if isinstance(self.class_weight, str):
            parts.append("class weights balanced on each training fold")
        elif self.class_weight is not None:
            parts.append(f"class weights {self.class_weight!r}")
        parts.append("sample weights in training and score" if weighted else "no sample weights")
        pooled = self.pool == "samples"
        how = "of all test rows together" if pooled else "averaged over the folds"
        return "; ".join([*parts, f"{n_splits} folds", f"{measure} {how}"])


@dataclass(eq=False, repr=False, kw_only=True)
class PathSearch(CallbackSupportMixin, ABC):
    """Mixin for a :class:`TunedSVM` that searches for C along the paths of all folds and gammas.

    A subclass evaluates the paths of a fold (``_explore``) and combines the folds (``_tried``).
    Each pair of a gamma and a fold is reported to scikit-learn's callbacks as a task.
    """

    C_range: tuple[float, float] | None = None
    cv: int | BaseCrossValidator | Iterable[Any] = 5
    scoring: str | tuple[str, float] | None = None
    pool: str = "folds"
    preprocessor: BaseEstimator | None = None
    n_jobs: int | None = None
    lambda_range: tuple[float, float] = RANGE
    refit: bool = True

    #: Groups are routed to ``fit`` by default, as in all searches over hyper-parameters.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Find the best C and train with it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Table of numbers, or input of the preprocessor.
        y : array-like of shape (n_samples,)
            Classes, or numbers for regression.
        sample_weight : array-like of shape (n_samples,), optional
            Weights that multiply C and weight the scores of the test folds, as in
            ``GridSearchCV``. ``gamma="scale"`` does not use them, as in SVC and SVR.
        groups : array-like of shape (n_samples,), optional
            Group of each row. A fold never has rows of the same group in both training and test
            set.
        """
        rows = self._begin(X, y, sample_weight)
        if self.refit:
            self._check_refit(rows)
        splits = self._splits(rows, groups)
        self._search(rows, splits)
        if self.refit:
            self._refit(rows, splits)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score on new data, as in GridSearchCV.

        If ``scoring`` is not the name of a scikit-learn scorer, the score is the accuracy or R².

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
        """
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if isinstance(self.scoring, str) and self.scoring in get_scorer_names():
            return float(get_scorer(self.scoring)(self, X, y, **weights))
        return float(super().score(X, y, **weights))

    def _search(self, rows: TuningRows, splits: list[Fold]) -> None:
        """Follow all paths, and set the fitted attributes.

        After a keyboard interrupt, the attributes are set from the paths that are complete.
        """
        gammas = gammas_of(self.gamma)
        # a copy of this object for other processes, without callbacks, and without cv because it
        # may be a generator
        bare = type(self)(**{**self.get_params(deep=False), "cv": None})
        tasks = list(product(range(len(gammas)), range(len(splits))))
        items = (((g, k), (bare, gammas[g], rows, splits[k])) for g, k in tasks)
        found: dict[tuple[int, int], FoldFound] = {}
        context = self._init_callback_context(max_subtasks=len(tasks))
        try:
            context.call_on_fit_task_begin(estimator=self)
            for key, one in parallel_stream(type(self)._explore, items, n_jobs=self.n_jobs):
                found[key] = one
                task = context.subcontext(task_name="path")
                task.call_on_fit_task_begin(estimator=self)
                task.call_on_fit_task_end(estimator=self)
            context.call_on_fit_task_end(estimator=self)
        except KeyboardInterrupt:
            self._conclude(rows, gammas, splits, found)
            raise
        self._conclude(rows, gammas, splits, found)
        if not self.certificate_.closed:
            warn(
                f"{type(self).__name__} could not certify its best C: {self.certificate_.reason}. "
                "See certificate_; the curve is as computed.",
                NotCertified,
                stacklevel=4,
            )

    def _conclude(
        self,
        rows: TuningRows,
        gammas: list[Any],
        splits: list[Fold],
        found: dict[tuple[int, int], FoldFound],
    ) -> None:
        """Compare the gammas and set the fitted attributes.

        Only gammas with results for all folds are compared. If no gamma has results for all folds,
        the first gamma is used with the folds that are complete.
        """
        folds = range(len(splits))
        done = [g for g in range(len(gammas)) if all((g, k) in found for k in folds)]
        known = [k for k in folds if done or (0, k) in found]
        if not known:
            return
        parts = [splits[k] for k in known]
        tried = [
            self._tried(gammas[g], [found[g, k] for k in known], parts, rows) for g in done or [0]
        ]
        best, sign = tried[0], 1 if tried[0].curve.greater_is_better else -1
        for other in tried[1:]:
            gain = sign * (other.curve.best - best.curve.best)
            best = other if gain > EQUAL * abs(best.curve.best) else best
        self.n_splits_ = len(known)
        self.curves_ = [one.curve for one in tried]
        self.curve_, self.best_gamma_, self.best_interval_ = best.curve, best.gamma, best.interval
        self.best_C_ = best.C
        rivals = [one.certificate for one in tried if one is not best]
        proof = against(best.certificate, rivals, best.curve.greater_is_better)
        weighted = bool((rows.weight != 1).any())
        stated = self._problem(len(known), weighted, proof.measure)
        self.certificate_ = replace(proof, problem=stated)
        self.cv_results_ = results(tried, self.kernel not in ("linear", "precomputed"))
        before = sum(len(one.trials.C) for one in tried[: tried.index(best)])
        self.best_index_ = before + int(np.searchsorted(best.trials.C, self.best_C_))
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])

    @abstractmethod
    def _explore(self, gamma: Any, rows: TuningRows, split: Fold) -> FoldFound:
        """Evaluate the paths of a training fold on its test rows."""

    @abstractmethod
    def _tried(
        self, gamma: Any, found: list[FoldFound], splits: list[Fold], rows: TuningRows
    ) -> TriedGamma:
        """Return the exact curve for a gamma, with a certificate of its optimum."""

    def _trial_points(self, C: float) -> Array:
        """Return the powers of two in the range of C, together with ``C``."""
        high, low = (-np.log2(end) for end in self._lambdas)
        powers = 2.0 ** np.arange(np.ceil(low - 1e-9), np.floor(high + 1e-9) + 1)
        return np.union1d(powers, [C])


def _as_numbers(Z: Any) -> Array:
    """Return the output of a preprocessor as a dense array of finite numbers."""
    dense = Z.toarray() if issparse(Z) else Z
    return check_array(dense, dtype=np.float64, input_name="the preprocessor's X")


def results(tried: Sequence[TriedGamma], named: bool) -> dict[str, Any]:
    """Return ``cv_results_`` in the format of GridSearchCV, with a row for each trial.

    ``named`` states whether the kernel has a gamma, so that trials have a parameter ``gamma``.
    """
    C, scores, means = (
        np.concatenate(part) for part in zip(*(t.trials for t in tried), strict=True)
    )
    columns: dict[str, list[Any]] = {"C": C.tolist()}
    if named:
        columns["gamma"] = [one.gamma for one in tried for _ in one.trials.C]
    found: dict[str, Any] = {}
    for name, values in columns.items():
        kind = float if all(isinstance(value, int | float) for value in values) else object
        found[f"param_{name}"] = np.ma.MaskedArray(np.array(values, dtype=kind), mask=False)
    found["params"] = [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]
    found |= {f"split{k}_test_score": column for k, column in enumerate(scores.T)}
    size = np.maximum(np.abs(scores).max(axis=1), np.finfo(float).tiny)  # squares may overflow
    found["mean_test_score"] = means
    found["std_test_score"] = (scores / size[:, None]).std(axis=1) * size
    found["rank_test_score"] = rankdata(-means, method="min").astype(np.int32)
    return found
