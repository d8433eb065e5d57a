"""Base classes of criteria that train an estimator: cloning, tuning, targets and metadata."""

from collections.abc import Callable
from inspect import isclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import hstack, issparse
from sklearn import get_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import has_fit_parameter

from tamis._arrays import Array, Subset, is_int
from tamis._checks import BOOLEAN, Constraints, one_of
from tamis._namespace import device_asked
from tamis._seeds import fix_seeds, stream
from tamis.blocks.survival import SURVIVAL
from tamis.contract.criterion import TASKS, Criterion
from tamis.density.discrete import category_mask
from tamis.exceptions import InvalidParameter
from tamis.response.fold_models import FoldTraining, fit_clone, take_rows
from tamis.response.outputs import check_scored
from tamis.response.perturbations import Units
from tamis.validation.splits import folds_of

#: Name of the metadata that is passed to a splitter, not to an estimator's ``fit``.
GROUPS = "groups"
#: Largest accepted weight of a row. It exceeds the number of rows of any table. The limit exists
#: because an SVM multiplies its C by the weight, and never converges with a factor such as 1e200.
HEAVIEST = 1e9


class Metadata(NamedTuple):
    """Metadata given to ``fit``, one dict for each receiver.

    The receivers are the estimator's ``fit``, the search over hyper-parameters, the splitter and
    the scorer.
    """

    fit: dict[str, Any] = {}  # noqa: RUF012 (never written to)
    tuner: dict[str, Any] = {}  # noqa: RUF012
    split: dict[str, Any] = {}  # noqa: RUF012
    score: dict[str, Any] = {}  # noqa: RUF012


class ModelCriterion(Criterion):
    """Criterion that trains clones of an estimator on the columns of a subset.

    The estimator may be a search over hyper-parameters (anything with ``best_estimator_``). It is
    run once on all columns, and clones of its best estimator are trained from then on.
    :meth:`tune` runs the search again on the columns of a subset. A ``random_state`` that is not an
    int is replaced by a fixed seed in ``fit``, so that a score is a function of the subset.
    """

    estimator: Any
    takes_metadata = True
    #: Whether the criterion makes folds itself, and can therefore use row groups.
    _makes_folds: ClassVar[bool] = False

    @property
    def needs_target(self) -> bool:  # type: ignore[override]
        """Whether the estimator needs a target."""
        if not is_estimator(self.estimator):
            return True  # the property ``targets`` raises the error
        # the tags of a search over hyper-parameters never require a target
        both = self.estimator, inner_estimator(self.estimator)
        return any(get_tags(one).target_tags.required for one in both)

    @property
    def takes_missing(self) -> bool:  # type: ignore[override]
        """Whether the estimator accepts NaN."""
        return allows_nan(self.estimator)

    @property
    def targets(self) -> frozenset[str]:  # type: ignore[override]
        """Kinds of target that the estimator can use."""
        check_trainable(self, self.estimator)
        if is_classifier(self.estimator):
            return frozenset({"classification"})
        if is_regressor(self.estimator):
            return frozenset({"regression"})
        return getattr(self.estimator, "targets", TASKS)  # tamis selectors declare their targets

    def _learn_model(
        self,
        X: Array,
        y: NDArray[Any] | None,
        metadata: Metadata,
        training: FoldTraining | None = None,
        estimator: Any = None,
    ) -> None:
        """Store the data and the estimator. If the estimator is a search, run it.

        The search uses the rows of ``training``, or all rows if it is None. ``estimator`` replaces
        the parameter of that name.
        """
        self._X, self._y, self._metadata = X, y, metadata
        self._tuner: Any = None
        self._trainable: Any = slice(None) if training is None else training.rows
        self._training = training or FoldTraining(
            type(self).__name__, X, y, np.arange(X.shape[0]), fit_params=metadata.fit,
            place=device_asked(),
        )  # fmt: skip
        estimator = clone(self.estimator if estimator is None else estimator)
        fix_seeds(estimator)
        if not is_tuner(estimator):
            self._adopt(estimator)
        else:
            self._tuner = estimator
            self._search(np.arange(self.n_units_))

    def _adopt(self, estimator: Any) -> None:
        """Check an estimator, and use it for all later trainings."""
        self._prepare(estimator)
        self.estimator_ = estimator

    def _prepare(self, estimator: Any) -> None:
        """Reject an unusable estimator, and precompute values that depend only on the estimator."""

    def _fit_columns(self, columns: Subset) -> Any:
        """Train a clone of the estimator on the given columns of the training rows."""
        n_columns = self.n_features_in_  # higher indices refer to the permuted copy of the columns
        estimator = for_columns(self.estimator_, columns % n_columns, n_columns)
        return self._training.fit(estimator, self._training.columns(estimator, columns))

    def tune(self, subset: Subset) -> dict[str, Any]:
        """Search for hyper-parameters again on the subset. Adopt and return the best ones.

        The returned dict is empty if the estimator is not a search.
        """
        if self._tuner is None:
            return {}
        return plain_params(type(self).__name__, self._search(subset))

    def use(self, params: dict[str, Any]) -> None:
        """Use parameters that an earlier :meth:`tune` chose."""
        if params:
            self._adopt(clone(self.estimator_).set_params(**params))

    def _search(self, subset: Subset) -> dict[str, Any]:
        """Run the search over hyper-parameters on the columns of a subset."""
        columns, rows = self._X[:, self.columns(subset)], self._trainable
        y = None if self._y is None else self._y[rows]
        tuner, params = self._tuning(y)
        tuner = fit_clone(tuner, columns[rows], y, params)
        if not hasattr(tuner, "best_estimator_"):
            raise InvalidParameter(
                f"{type(self).__name__} needs the best_estimator_ of {type(tuner).__name__}, which "
                "has none. Write refit=True in the search."
            )
        self._adopt(clone(tuner.best_estimator_))
        return best_params(tuner)

    def _tuning(self, y: NDArray[Any] | None) -> tuple[Any, dict[str, Any]]:
        """Return the search over hyper-parameters and its metadata.

        If there are row groups, an int ``cv`` is replaced by folds that do not split a group.
        """
        tuner, rows = self._tuner, self._trainable
        params = take_rows(self._metadata.tuner, rows)
        groups = take_rows(self._metadata.split, rows).get(GROUPS)
        n_folds: Any = getattr(tuner, "cv", "none")
        if groups is None or y is None or not (n_folds is None or is_int(n_folds)):
            return tuner, params
        classes = self.task_ == "classification" and is_classifier(self.estimator)
        folds = folds_of(type(self).__name__, n_folds or 5, y, groups, classes=classes)
        params.pop(GROUPS, None)
        return clone(tuner).set_params(cv=folds), params

    def _route(self, params: dict[str, Any], n_samples: int) -> Metadata:
        """Assign metadata to receivers.

        If metadata routing is enabled, requests decide. Otherwise the name of the metadata decides.
        """
        params = {name: _per_row(self, name, value, n_samples) for name, value in params.items()}
        if get_config()["enable_metadata_routing"]:
            return self._route_requests(params)
        fit = {name: value for name, value in params.items() if name != GROUPS}
        groups = {name: value for name, value in params.items() if name == GROUPS}
        if groups and not (self._makes_folds or is_tuner(self.estimator)):
            raise InvalidParameter(
                f"{type(self).__name__} makes no folds and cannot use groups. Leave groups out, "
                "use CrossValidated, or pass a search such as GridSearchCV as estimator."
            )
        for name in fit:
            check_fit_takes(self, inner_estimator(self.estimator), name)
        return Metadata(fit, params, groups)

    def _route_requests(self, params: dict[str, Any]) -> Metadata:
        routed = process_routing(self, "fit", **params)
        fit, split, score = (
            dict(routed.get(name, {}).get(method, {}))
            for name, method in (("estimator", "fit"), ("splitter", "split"), ("scorer", "score"))
        )
        tuner = fit
        if is_tuner(self.estimator) and fit:
            fit = self._route_inside_search(fit)
        return Metadata(fit, tuner, split, score)

    def _route_inside_search(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the metadata that the search would pass to the estimator inside it."""
        if not isinstance(get_routing_for_object(self.estimator), MetadataRouter):
            return {name: value for name, value in params.items() if name != GROUPS}
        routed = process_routing(self.estimator, "fit", **params).get("estimator", {})
        return dict(routed.get("fit", {}))

    def get_metadata_routing(self) -> MetadataRouter:
        """Return a router that passes the metadata of ``fit`` to the estimator's ``fit``."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)


class OpenCriterion(ModelCriterion):
    """Criterion that passes table and target to the estimator unchanged.

    If the estimator supports it, the table may be sparse, and there may be several targets or a
    censored one.
    """

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]
        """Whether the estimator accepts a sparse table."""
        return is_estimator(self.estimator) and bool(get_tags(self.estimator).input_tags.sparse)

    @property
    def takes_several_targets(self) -> bool:  # type: ignore[override]
        """Whether the estimator accepts several targets, or a time and an event."""
        if not is_estimator(self.estimator):
            return False
        tags = get_tags(inner_estimator(self.estimator))
        return is_survival_model(self.estimator) or bool(tags.target_tags.multi_output)

    @property
    def targets(self) -> frozenset[str]:  # type: ignore[override]
        """Kinds of target that the estimator can use."""
        return frozenset({SURVIVAL}) if is_survival_model(self.estimator) else super().targets


def is_estimator(estimator: Any) -> bool:
    """Whether an object can be fitted and is not a class."""
    return hasattr(estimator, "fit") and not isclass(estimator)


def inner_estimator(estimator: Any) -> Any:
    """Return the estimator inside a search over hyper-parameters.

    An estimator that is not a search is returned unchanged.
    """
    return getattr(estimator, "estimator", estimator) if is_tuner(estimator) else estimator


def for_columns(estimator: Any, columns: Subset, n_columns: int) -> Any:
    """Return the estimator for a subset of columns, with ``categorical_features`` renumbered.

    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> boosting = HistGradientBoostingClassifier(categorical_features=[1, 4])
    >>> for_columns(boosting, np.array([0, 4, 5]), 6).categorical_features
    [1]
    """
    if not names_by_position(estimator):
        return estimator
    mask = category_mask(type(estimator).__name__, estimator.categorical_features, n_columns)
    assert mask is not None
    found = np.flatnonzero(mask[columns]).tolist()
    return clone(estimator).set_params(categorical_features=found or None)


def names_by_position(estimator: Any) -> bool:
    """Whether ``categorical_features`` of an estimator contains column indices or a mask."""
    named = getattr(estimator, "categorical_features", None)
    return named is not None and np.asarray(named).dtype.kind in "iub"


def is_survival_model(estimator: Any) -> bool:
    """Whether an estimator, or the last step of a pipeline, belongs to scikit-survival."""
    if isinstance(estimator, Pipeline) and estimator.steps:
        return is_survival_model(estimator.steps[-1][1])
    if (inner := inner_estimator(estimator)) is not estimator:
        return is_survival_model(inner)
    return any(kind.__module__.partition(".")[0] == "sksurv" for kind in type(estimator).__mro__)


def allows_nan(estimator: Any) -> bool:
    """Whether an estimator can be trained on data with NaN.

    The tags of pipelines and of searches over hyper-parameters do not state this. Their steps are
    therefore checked, up to the first step that fills in missing values.

    >>> from sklearn.impute import SimpleImputer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import SVC
    >>> allows_nan(SVC()), allows_nan(make_pipeline(SimpleImputer(), SVC()))
    (False, True)
    """
    if not is_estimator(estimator):
        return False
    if isinstance(estimator, Pipeline):
        for step in parts_of(estimator):
            if not allows_nan(step):
                return False
            if fills_in(step):
                break
        return True
    if isinstance(estimator, FeatureUnion):
        return all(allows_nan(part) for part in parts_of(estimator))
    if (inner := inner_estimator(estimator)) is not estimator:
        return allows_nan(inner)
    tags = get_tags(estimator)
    return bool(tags.input_tags.allow_nan or tags.no_validation)


def fills_in(step: Any) -> bool:
    """Whether a step of a pipeline fills in all missing values."""
    if isinstance(step, Pipeline):
        return any(fills_in(part) for part in parts_of(step))
    if isinstance(step, FeatureUnion):
        return all(fills_in(part) for part in parts_of(step))
    return type(step).__module__.startswith("sklearn.impute")


def parts_of(composite: Pipeline | FeatureUnion) -> list[Any]:
    """Return the steps of a pipeline or the parts of a union that are actual estimators."""
    named = composite.steps if isinstance(composite, Pipeline) else composite.transformer_list
    return [part for _, part in named if part not in (None, "passthrough", "drop")]


def check_trainable(criterion: Criterion, estimator: Any) -> None:
    """Raise an error for a class in place of an instance, or an object that is not an estimator."""
    name = type(criterion).__name__
    if isclass(estimator):
        raise InvalidParameter(
            f"{name} needs an estimator, got the class {estimator.__name__}. Write "
            f"{name}({estimator.__name__}())."
        )
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise InvalidParameter(
            f"{name} needs a scikit-learn estimator (with fit and get_params), not {estimator!r}. "
            f"Write for example {name}(LogisticRegression())."
        )
    if is_tuner(estimator) and hasattr(estimator, "estimator"):
        scoring = estimator.get_params(deep=False).get("scoring")
        check_scored(type(estimator).__name__, estimator.estimator, scoring)


def is_tuner(estimator: Any) -> bool:
    """Whether the estimator is a search over hyper-parameters, with ``best_estimator_``.

    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> is_tuner(GridSearchCV(SVC(), {"C": [1, 10]})), is_tuner(SVC())
    (True, False)
    """
    # scikit-learn's searches set best_estimator_ only in fit, and their base class is private
    return any(
        kind.__name__ == "BaseSearchCV"
        or "best_estimator_" in vars(kind)
        or "best_estimator_" in getattr(kind, "__annotations__", {})
        for kind in type(estimator).__mro__
    )


def best_params(tuner: Any) -> dict[str, Any]:
    """Return the best parameters of a fitted search.

    If the search has no ``best_params_``, return all parameters of the best estimator that have
    simple values.
    """
    if hasattr(tuner, "best_params_"):
        return dict(tuner.best_params_)
    found = tuner.best_estimator_.get_params()
    return {name: value for name, value in found.items() if _is_plain(value)}


def plain_params(criterion: str, params: dict[str, Any]) -> dict[str, Any]:
    """Convert parameters to types that a record can store: numbers, strings, booleans and None."""
    plain = {n: v.item() if isinstance(v, np.generic) else v for n, v in params.items()}
    for name, value in plain.items():
        if not _is_plain(value):
            raise InvalidParameter(
                f"{criterion} needs tuned parameters that a record can store (numbers, strings, "
                f"booleans), got {name}={value!r}. Leave retune out, or search over simple "
                "parameters."
            )
    return plain


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | np.generic)


def check_fit_takes(criterion: Criterion, estimator: Any, name: str) -> None:
    """Raise an error if the estimator's ``fit`` does not accept the metadata ``name``."""
    if has_fit_parameter(estimator, name):
        return
    user, model = type(criterion).__name__, type(estimator).__name__
    if not isinstance(estimator, Pipeline):
        raise InvalidParameter(
            f"{user} cannot use {name}: {model}.fit does not take it. Leave {name} out, or use an "
            "estimator whose fit does."
        )
    if name.split("__")[0] in estimator.named_steps and "__" in name:
        return
    step = estimator.steps[-1][0]
    raise InvalidParameter(
        f"{user} cannot know which step of the pipeline uses {name}. Write {step}__{name}=..., or "
        f"enable routing with sklearn.set_config(enable_metadata_routing=True) and request it with "
        f"set_fit_request({name}=True) on the step."
    )


def _per_row(criterion: Criterion, name: str, value: Any, n_samples: int) -> Any:
    """Return metadata as an array with one entry per row. A single value is returned unchanged."""
    weights = name.endswith("sample_weight")
    if not weights and (isinstance(value, str | dict) or not hasattr(value, "__len__")):
        return value
    found = len(value) if np.ndim(value) else repr(value)
    if found != n_samples:
        raise InvalidParameter(
            f"{type(criterion).__name__} needs one {name} per row: {n_samples}, not {found}."
        )
    return _weights(type(criterion).__name__, name, value) if weights else np.asarray(value)


def _weights(name: str, weights: str, value: Any) -> Array:
    """Return row weights as floats. Raise an error if one is negative, not finite or too large."""
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.full(len(value), np.nan)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0))) if values.ndim == 1 else [0]
    if len(wrong) or not values.any():
        found = f"{np.asarray(value)[wrong[0]]!s} in row {wrong[0]}" if len(wrong) else "only 0"
        raise InvalidParameter(
            f"{name} needs a {weights} of at least 0 for each row, and one above 0, but got "
            f"{found}. Leave out rows that should not count, or set their weight to 0."
        )
    if (largest := float(values.max())) > HEAVIEST:
        raise InvalidParameter(
            f"{name} needs a {weights} of at most {HEAVIEST:.0e}, got {largest:.3g}. A model that "
            "multiplies its penalty by the weights may never converge. Divide them by their mean."
        )
    return values


class ChanceAdjusted:
    """Mixin for criteria that correct the losses of units for chance.

    A unit is a column, or a group of columns that is selected as a whole. The loss of a unit is the
    decrease in quality when the unit is removed. In a trained model, the losses of noise columns
    are above 0, and they add up in a group. The correction is as follows:

    1. The rows of all columns are permuted in the same way, so that correlations remain.
    2. The model is trained on the table and on this copy of it, side by side.
    3. The adjusted loss of a unit is its loss minus the loss of its copy.

    The adjusted loss of noise is about 0 for any number of columns.

    A criterion calls :meth:`_with_copies` on its table, scores :meth:`_units`, and returns
    :meth:`_above_chance`.
    """

    adjusted: Any
    n_features_in_: int
    _unit_columns: tuple[Subset, ...] | None
    columns: Callable[[Subset], Subset]
    _constraints: ClassVar[Constraints] = {"adjusted": one_of("auto") | BOOLEAN}

    @property
    def _is_adjusted(self) -> bool:
        """Whether losses are adjusted. "auto" adjusts them if a unit has more than one column."""
        if self.adjusted != "auto":
            return bool(self.adjusted)
        return any(len(columns) > 1 for columns in self._unit_columns or ())

    def _with_copies(self, X: Any, y: NDArray[Any] | None) -> Any:
        """Return the training table, with a permuted copy appended if losses are adjusted."""
        # without a target the columns and their copy are equally important
        self._has_copies = self._is_adjusted and y is not None
        if not self._has_copies:
            return X
        # always the same permutation, so that repeated calls return the same score
        order = stream(0, "permuted copy").permutation(X.shape[0])
        if issparse(X):
            return hstack([X, X.tocsr()[order]], format=X.format)
        return np.asfortranarray(np.hstack([X, X[order]]))

    def _n_trained(self, n_features: int) -> int:
        """Return the number of columns to train on, given the number of features."""
        return 2 * n_features if self._is_adjusted else n_features

    def _units(self, subset: Subset) -> Units:
        """Return the units of a subset, then their permuted copies if losses are adjusted."""
        units = Units.of(self.columns, subset)
        return units.with_copies(self.n_features_in_) if self._has_copies else units

    def _above_chance(self, losses: Array) -> Array:
        """Return the loss of each unit minus the loss of its permuted copy, if there are copies."""
        if not self._has_copies:
            return losses
        own, copies = np.split(losses, 2, axis=-1)
        return np.asarray(own - copies)
