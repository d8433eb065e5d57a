"""What searches along exact paths share: rows and folds, gammas, progress, and what is found."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.callback import CallbackSupportMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.model_selection import GroupKFold, StratifiedGroupKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, _safe_indexing, check_array, check_consistent_length, get_tags
from sklearn.utils.validation import column_or_1d, validate_data

from tamis._arrays import Array
from tamis._parallel import parallel_stream
from tamis.exceptions import InvalidParameter, NotCertified
from tamis.folds.rows import Fold, retold
from tamis.svm.curves.certificate import Certificate, PathAudit, TriedGamma, against
from tamis.svm.curves.curve import IntervalOfC, ValidationCurve
from tamis.svm.path.base import check_gammas, checked, checked_rows, gammas_of, lambdas_of

#: Values of two gammas that differ by less, relative to them, are equal: the first is taken.
EQUAL = 1e-12


class TuningRows(NamedTuple):
    """Rows and target as they came, and what the paths read of them."""

    X: Any  # numbers, or what the preprocessor makes numbers of
    y: NDArray[Any]
    target: NDArray[Any]  # numbers of the classes, or y
    weight: Array  # of the samples, in training and in the score


class FoldRows(NamedTuple):
    """Training and test part of a fold as numbers."""

    train: Array
    test: Array
    own: Array | None  # kernel of the test points with themselves, where precomputed


class FoldFound(NamedTuple):
    """What the paths of one fold say of its test part, and of themselves."""

    values: Any
    audits: list[PathAudit]


class PathSearch(CallbackSupportMixin, ABC):
    """Searches for C along the paths of all folds and gammas.

    A subclass says what the paths of a fold are worth (``_explore``) and puts folds together
    (``_tried``). Every fold of every gamma is a task of scikit-learn's callbacks.
    """

    #: Row groups are of use to every search over hyper-parameters, so they need not be asked for.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012

    kernel: str
    gamma: Any
    scoring: Any
    cv: Any
    n_jobs: int | None
    preprocessor: Any

    curve_: ValidationCurve
    curves_: list[ValidationCurve]
    certificate_: Certificate
    best_C_: float
    best_gamma_: Any
    best_index_: int
    best_interval_: IntervalOfC
    best_params_: dict[str, Any]
    best_score_: float
    cv_results_: dict[str, Any]
    n_splits_: int

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        if self.preprocessor is not None:
            tags.input_tags = get_tags(self.preprocessor).input_tags
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The scorer that ``scoring`` names, as of ``GridSearchCV``; else accuracy, or R squared.

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

    def _checked(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """Rows and target; what a preprocessor is for stays as it is."""
        if self.preprocessor is None:
            return checked(self, X, y)
        if self.kernel == "precomputed":
            raise InvalidParameter(
                f'{type(self).__name__} with kernel="precomputed" has no columns to prepare. Leave '
                "preprocessor out."
            )
        validate_data(self, X, skip_check_array=True)
        check_consistent_length(X, y)
        return X, column_or_1d(y, warn=True)

    def _rows(self, X: Any) -> Any:
        if self.preprocessor is None:
            return checked_rows(self, X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _prepared(self, X: Any, y: NDArray[Any]) -> Array:
        """All rows as numbers."""
        if self.preprocessor is None:
            return np.asarray(X)
        return as_numbers(clone(self.preprocessor).fit_transform(X, y))

    def _search(self, rows: TuningRows, splits: list[Fold]) -> None:
        """Follow all paths, and keep what is best; after an interrupt what is known by then."""
        check_gammas(type(self).__name__, self.gamma)
        gammas = gammas_of(self.gamma)
        found: dict[tuple[int, int], FoldFound] = {}
        try:
            self._follow(rows, gammas, splits, found)
        except KeyboardInterrupt:
            self._conclude(rows, gammas, splits, found)
            raise
        self._conclude(rows, gammas, splits, found)
        if not self.certificate_.closed:
            warn(
                f"{type(self).__name__} could not certify its best C: {self.certificate_.reason}. "
                "See certificate_; the curve stands as computed.",
                NotCertified,
                stacklevel=4,
            )

    def _follow(
        self,
        rows: TuningRows,
        gammas: list[Any],
        splits: list[Fold],
        found: dict[tuple[int, int], FoldFound],
    ) -> None:
        """Find what the paths say, by gamma and fold, on as many processes as asked for."""
        # without callbacks, which belong to this process, and a splitter that may be a generator
        bare = type(self)(**{**self.get_params(deep=False), "cv": None})
        places = [(g, k) for g in range(len(gammas)) for k in range(len(splits))]
        items = ((bare, place, rows, gammas[place[0]], splits[place[1]]) for place in places)
        context = self._init_callback_context(max_subtasks=len(places))
        context.call_on_fit_task_begin(estimator=self)
        for place, one in parallel_stream(_explored, items, n_jobs=self.n_jobs):
            found[place] = one
            task = context.subcontext(task_name="path")
            task.call_on_fit_task_begin(estimator=self)
            task.call_on_fit_task_end(estimator=self)
        context.call_on_fit_task_end(estimator=self)

    def _conclude(
        self,
        rows: TuningRows,
        gammas: list[Any],
        splits: list[Fold],
        found: dict[tuple[int, int], FoldFound],
    ) -> None:
        """Compare the gammas whose folds are all known, or look at the folds known of the first."""
        folds = range(len(splits))
        done = [g for g in range(len(gammas)) if all((g, k) in found for k in folds)]
        known = [k for k in folds if done or (0, k) in found]
        if not known:
            return
        parts = [splits[k] for k in known]
        tried = [
            self._tried(gammas[g], [found[g, k] for k in known], parts, rows) for g in done or [0]
        ]
        self._settle(tried, len(known))
        weighted = bool((rows.weight != 1).any())
        stated = problem_of(self, len(known), weighted, self.certificate_.measure)
        self.certificate_ = replace(self.certificate_, problem=stated)

    @abstractmethod
    def _explore(self, gamma: Any, rows: TuningRows, split: Fold) -> FoldFound:
        """What the paths of one training part are worth on its test part."""

    @abstractmethod
    def _tried(
        self, gamma: Any, found: list[FoldFound], splits: list[Fold], rows: TuningRows
    ) -> TriedGamma:
        """The exact curve for one gamma, and what is proved about its optimum."""

    def _settle(self, tried: list[TriedGamma], n_splits: int) -> None:
        """Set the fitted attributes from what every gamma is worth."""
        best = tried[0]
        for other in tried[1:]:
            best = other if _better(other.curve, best.curve) else best
        self.n_splits_ = n_splits
        self.curves_ = [one.curve for one in tried]
        self.curve_, self.best_gamma_, self.best_interval_ = best.curve, best.gamma, best.interval
        self.best_C_ = best.C
        rivals = [one.certificate for one in tried if one is not best]
        self.certificate_ = against(best.certificate, rivals, best.curve.greater_is_better)
        named = self.kernel not in ("linear", "precomputed")
        self.cv_results_ = results(tried, named)
        before = sum(len(one.trials.C) for one in tried[: tried.index(best)])
        self.best_index_ = before + int(np.searchsorted(best.trials.C, self.best_C_))
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])

    def _trial_points(self, C: float) -> Array:
        """The powers of two of the range, which a grid would try, and the best C."""
        smallest, largest = lambdas_of(self)
        low, high = -np.log2(largest), -np.log2(smallest)
        powers = 2.0 ** np.arange(np.ceil(low - 1e-9), np.floor(high + 1e-9) + 1)
        return np.union1d(powers, [C])

    def _machine_of(self, machine: Any) -> Any:
        """The machine, behind the preprocessor where there is one."""
        if self.preprocessor is None:
            return machine
        return Pipeline([("preprocessor", clone(self.preprocessor)), ("machine", machine)])

    def _train(self, machine: Any, X: Any, y: NDArray[Any], sample_weight: Any) -> Any:
        """Train such a machine."""
        name = "sample_weight" if self.preprocessor is None else "machine__sample_weight"
        with retold():
            return machine.fit(X, y, **({} if sample_weight is None else {name: sample_weight}))


def problem_of(search: Any, n_splits: int, weighted: bool, measure: str) -> str:
    """State the problem that a certificate is about: kernel, weights, folds and score."""
    names = {"rbf": ["gamma"], "poly": ["gamma", "degree", "coef0"]}.get(search.kernel, [])
    names += ["epsilon"] if hasattr(search, "epsilon") else []
    numbers = "".join(f", {name}={getattr(search, name)!r}" for name in names)
    parts = [f"kernel={search.kernel!r}{numbers}"]
    if getattr(search, "preprocessor", None) is not None:
        parts.append("preprocessor learned from each training part")
    class_weight = getattr(search, "class_weight", None)
    if isinstance(class_weight, str):
        parts.append("class weights balanced on each training part")
    elif class_weight is not None:
        parts.append(f"class weights {class_weight!r}")
    parts.append("sample weights in training and score" if weighted else "no sample weights")
    pooled = getattr(search, "pool", "folds") == "samples"
    how = "of all test rows together" if pooled else "averaged over the folds"
    return "; ".join([*parts, f"{n_splits} folds", f"{measure} {how}"])


def _explored(
    search: PathSearch, place: tuple[int, int], rows: TuningRows, gamma: Any, split: Fold
) -> tuple[tuple[int, int], FoldFound]:
    """One fold of one gamma, in whichever process."""
    return place, search._explore(gamma, rows, split)


def splits_of(search: Any, rows: TuningRows, groups: Any, *, classifier: bool) -> list[Fold]:
    """Make the folds of ``search.cv`` as row numbers, and refuse folds that no score can come from.

    With groups a number of folds keeps the rows of a group together.
    """
    name, cv, n = type(search).__name__, search.cv, len(rows.y)
    if groups is not None and (cv is None or isinstance(cv, int)):
        kind = StratifiedGroupKFold if classifier else GroupKFold
        cv = kind(5 if cv is None else cv)
    given = check_cv(cv, rows.y, classifier=classifier).split(rows.X, rows.y, groups)
    splits = [(_row_numbers(name, a, n), _row_numbers(name, b, n)) for a, b in given]
    if not splits:
        raise InvalidParameter(
            f"{name} needs at least one fold in cv, and got none. Write cv=5, a splitter, or a "
            "list of (training rows, test rows)."
        )
    for k, (train, test) in enumerate(splits):
        for part, numbers in (("training", train), ("test", test)):
            if not rows.weight[numbers].sum() > 0:
                lacks = "rows of positive weight" if len(numbers) else "rows"
                raise InvalidParameter(
                    f"{name} needs {lacks} in both parts of every fold; the {part} part of fold "
                    f"{k} has none. Use fewer folds, or leave that fold out of cv."
                )
    return splits


def _row_numbers(name: str, part: Any, n_rows: int) -> NDArray[np.intp]:
    """Row numbers from the indices or the mask that a fold gives."""
    found = np.asarray(part)
    if found.dtype == bool and found.shape == (n_rows,):
        return np.flatnonzero(found)
    whole = found.ndim == 1 and (found.dtype.kind in "iu" or not found.size)
    if not whole or (found.size and not -n_rows <= found.min() <= found.max() < n_rows):
        raise InvalidParameter(
            f"{name} needs folds of row numbers below {n_rows}, or of masks with {n_rows} entries; "
            f"cv gave an array of type {found.dtype} and shape {found.shape}."
        )
    return np.asarray(found, dtype=np.intp) % n_rows


def fold_rows(search: Any, X: Any, y: NDArray[Any], split: Fold) -> FoldRows:
    """The two parts of a fold as numbers; a preprocessor learns from the training part alone."""
    train, test = split
    if search.kernel == "precomputed":
        return FoldRows(X[np.ix_(train, train)], X[np.ix_(test, train)], np.diagonal(X)[test])
    if getattr(search, "preprocessor", None) is None:
        return FoldRows(X[train], X[test], None)
    prepare = clone(search.preprocessor)
    inner = as_numbers(prepare.fit_transform(_safe_indexing(X, train), y[train]))
    return FoldRows(inner, as_numbers(prepare.transform(_safe_indexing(X, test))), None)


def as_numbers(Z: Any) -> Array:
    """What a preprocessor answered, as finite numbers."""
    dense = Z.toarray() if issparse(Z) else Z
    numbers: Array = check_array(dense, dtype=np.float64, input_name="the preprocessor's X")
    return numbers


def results(tried: Sequence[TriedGamma], named: bool) -> dict[str, Any]:
    """What the gammas are worth at the powers of two and at their best C, as of GridSearchCV.

    ``named`` is whether the kernel has a gamma.
    """
    C = np.concatenate([one.trials.C for one in tried])
    means = np.concatenate([one.trials.means for one in tried])
    scores = np.concatenate([one.trials.scores for one in tried])
    gammas = [one.gamma for one in tried for _ in one.trials.C]
    columns: dict[str, list[Any]] = {"C": C.tolist()}
    if named:
        columns["gamma"] = gammas
    found: dict[str, Any] = {}
    for name, values in columns.items():
        kind = float if all(isinstance(value, int | float) for value in values) else object
        found[f"param_{name}"] = np.ma.MaskedArray(np.array(values, dtype=kind), mask=False)
    found["params"] = [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]
    for k, column in enumerate(scores.T):
        found[f"split{k}_test_score"] = column
    size = np.maximum(np.abs(scores).max(axis=1), np.finfo(float).tiny)  # squares may overflow
    found["mean_test_score"] = means
    found["std_test_score"] = (scores / size[:, None]).std(axis=1) * size
    found["rank_test_score"] = rankdata(-means, method="min").astype(np.int32)
    return found


def _better(curve: ValidationCurve, other: ValidationCurve) -> bool:
    gain = curve.best - other.best
    gain = gain if curve.greater_is_better else -gain
    return gain > EQUAL * abs(other.best)
