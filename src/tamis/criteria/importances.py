"""Importances: coefficients or feature importances of a fitted model."""

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from tamis._arrays import FARTHEST, Array, Subset
from tamis._checks import FUNCTION, Constraints, instance_of, one_of
from tamis.contract import BackwardCriterion
from tamis.criteria.model import ChanceAdjusted, OpenCriterion
from tamis.exceptions import (
    IncompatibleCriterion,
    InvalidParameter,
    InvalidTarget,
    MissingExtra,
)
from tamis.response.memory import training_bytes

Getter: TypeAlias = "str | Callable[[Any], Any]"


@dataclass(eq=False, repr=False)
class Importances(ChanceAdjusted, OpenCriterion, BackwardCriterion):
    """Squared coefficients, or importances, of a model trained on the subset.

    If the model has ``coef_``, the loss of column j is Σ_o w_oj², the squared coefficients summed
    over outputs. Otherwise it is the column's entry in ``feature_importances_``.
    ``RecursiveElimination(Importances(estimator))`` ranks columns like scikit-learn's ``RFE``.
    Coefficients are comparable only if the columns are on the same scale; searches standardise them
    by default. ``y`` may have several columns, or be censored, if the estimator supports that.

    The loss of a group is the sum of the importances of its columns. Noise columns have importances
    above 0, so this sum grows with the size of the group. In a table with groups, the model is
    therefore trained on the columns and on a copy of them whose rows are permuted. The loss of a
    unit (a column, or a group of columns that is selected as one) is then its own importance minus
    the importance of its copy. This is the actual impurity reduction of Nembrini et al. (2018).

    Parameters
    ----------
    estimator : estimator
        Model that has ``coef_`` or ``feature_importances_`` after fitting, or a search over its
        hyper-parameters (anything with ``best_estimator_``). The search is run once on all columns.
    importance_getter : str or callable, default="auto"
        How the importances are computed:

        - "auto": ``coef_`` if the model has it, otherwise ``feature_importances_``;
        - the path of an attribute, such as ``"named_steps.clf.coef_"``, or a function of the fitted
          model. Unless the path ends in ``feature_importances_``, the values are squared and summed
          over outputs;
        - "shap": mean absolute SHAP values of a forest or boosting model on the training rows,
          summed over outputs, computed by the package shap;
        - "gains": for each input of a network, the product of the absolute weights along a path to
          an output, summed over all paths.
    adjusted : "auto" or bool, default="auto"
        Whether the losses of a permuted copy of the columns are subtracted. "auto" does so if a
        unit has more than one column. The model is then trained on twice the number of columns.

    References
    ----------
    S. Nembrini, I. R. König, M. N. Wright, "The revival of the Gini importance?", Bioinformatics
    34, 2018.

    I. Guyon, J. Weston, S. Barnhill, V. Vapnik, "Gene selection for cancer classification using
    support vector machines", Machine Learning 46, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> Importances(SVC(kernel="linear")).fit(X, y).loss(np.array([0, 2, 3])).round(1)
    array([0.4, 5.8, 4. ])
    """

    estimator: BaseEstimator
    _: KW_ONLY
    importance_getter: Getter = "auto"
    adjusted: str | bool = "auto"

    _constraints: ClassVar[Constraints] = {
        "importance_getter": one_of("auto", "shap", "gains")
        | instance_of(str, "the path of an attribute")
        | FUNCTION,
    }

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Return the memory in bytes that training needs, or None for an unknown estimator."""
        return training_bytes(self.estimator, n_samples, self._n_trained(n_features))

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        self._learn_model(self._with_copies(X, y), y, self._route(params, X.shape[0]))

    def _prepare(self, estimator: Any) -> None:
        # detect the most common mistake, a kernel SVM without coefficients, before any training
        kernel = getattr(estimator, "kernel", "linear")
        hides = isinstance(getattr(type(estimator), "coef_", None), property)
        if self.importance_getter == "auto" and kernel != "linear" and hides:
            raise IncompatibleCriterion(_without_coefficients(estimator))

    def loss(self, subset: Subset) -> Array:
        units = self._units(subset)
        model = self._fit_columns(units.columns)
        if self.importance_getter == "shap":
            found = shap_sizes(model, self._X[:, units.columns])
        elif self.importance_getter == "gains":
            found = network_gains(model)
        else:
            found = importances(model, self.importance_getter)
        if found.shape != units.columns.shape:
            raise InvalidParameter(
                f"Importances needs one importance per column, but {type(model).__name__} trained "
                f"on {len(units.columns)} column(s) has {found.size}. A step that makes new "
                "columns, such as PCA, cannot be traced back. Use CrossValidated, or select "
                "columns before that step."
            )
        return self._above_chance(units.summed(found))


def importances(model: Any, getter: Getter = "auto") -> Array:
    """Return the importance of each column in a fitted model.

    >>> from sklearn.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0, 1], [1, 0], [1, 1]], [0, 2, 1])
    >>> importances(model).round(6)
    array([1., 1.])
    """
    if callable(getter):
        return _squares(getter(model))
    if getter == "auto":
        if not (hasattr(model, "coef_") or hasattr(model, "feature_importances_")):
            raise IncompatibleCriterion(_without_coefficients(model))
        getter = "coef_" if hasattr(model, "coef_") else "feature_importances_"
    try:
        found = attrgetter(getter)(model)
    except AttributeError as error:
        raise InvalidParameter(
            f"Importances finds no {getter!r} in the fitted {type(model).__name__}: {error}."
        ) from error
    try:
        if getter.endswith("feature_importances_"):
            return np.asarray(found, dtype=np.float64)
        return _squares(found)
    except TypeError:
        raise InvalidParameter(
            f"Importances needs importance_getter as the name of a numeric attribute, but "
            f"{getter!r} of {type(model).__name__} is not numeric. Use importance_getter='auto'."
        ) from None


def shap_sizes(model: Any, X: Array) -> Array:
    """Return the mean absolute SHAP value of each column over the rows of ``X``.

    The model is a forest or boosting model. Values are summed over its outputs.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of shap and of the packages that it loads
        try:
            from shap import TreeExplainer
        except ImportError as error:
            raise MissingExtra(
                "importance_getter='shap' needs the package shap, which is not installed. Write "
                "pip install 'tamis[guests]', or use importance_getter='auto'."
            ) from error
        try:
            values = TreeExplainer(model).shap_values(X, check_additivity=False)
        except Exception as error:
            raise IncompatibleCriterion(
                f"importance_getter='shap' needs a forest or boosting model that shap supports, "
                f"not {type(model).__name__} ({error}). Use importance_getter='auto'."
            ) from error
    sizes = np.abs(np.asarray(values, dtype=np.float64)).mean(axis=0)
    return np.asarray(sizes.reshape(X.shape[1], -1).sum(axis=1))


def network_gains(model: Any) -> Array:
    """Return the gain of each input of a network.

    It is the product of the absolute weights along a path to an output, summed over all paths.
    """
    weights = getattr(model, "coefs_", None)
    if weights is None:
        raise IncompatibleCriterion(
            "importance_getter='gains' needs a network with coefs_ such as MLPClassifier, not "
            f"{type(model).__name__}. Use importance_getter='auto'."
        )
    reach = np.ones(weights[-1].shape[1])
    for layer in reversed(weights):
        reach = np.abs(layer) @ reach
    return np.asarray(reach)


def _squares(found: Any) -> Array:
    """Return the squared coefficients, summed over outputs."""
    if issparse(found):
        return np.asarray(found.multiply(found).sum(axis=0), dtype=np.float64).ravel()
    coefficients = np.asarray(found, dtype=np.float64)
    largest = np.abs(coefficients).max(initial=0.0)
    if np.frexp(largest)[1] > 2 * FARTHEST:
        raise InvalidTarget(
            f"Importances squares the coefficients, but one is {largest:.3g}, which is too large. "
            "Scale the target, or a column that hardly varies."
        )
    squares = np.square(coefficients)
    return squares if squares.ndim == 1 else squares.sum(axis=0)


def _without_coefficients(model: Any) -> str:
    name = type(model).__name__
    reason = f"Importances needs coef_ or feature_importances_, and {name} has neither"
    if isinstance(model, Pipeline):
        path = f"named_steps.{model.steps[-1][0]}.coef_"
        return f"{reason}. Write importance_getter='{path}'."
    kernel = getattr(model, "kernel", None)
    if isinstance(kernel, str):
        return (
            f"{reason} with kernel={kernel!r}. Use WeightNorm({name}(...)), which scores columns "
            f"with any kernel, or Backward(CrossValidated({name}(...))), which needs no "
            "coefficients."
        )
    return f"{reason}. Write importance_getter=..., or Backward(CrossValidated({name}(...)))."
