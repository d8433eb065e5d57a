"""The mean response of a fitted model along each column: partial dependence of all at once."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from tamis._arrays import Array
from tamis._checks import NONE, check_values, integer
from tamis.response._importance import known_model, plain_model, response_of
from tamis.response.comparison import in_blocks
from tamis.response.engines.base import FoldModel, Model
from tamis.response.engines.registry import check_usable, open_engine
from tamis.response.frames import FrameCodes
from tamis.response.perturbations import Marginal, Points
from tamis.response.predictions import as_it_is, decision_values, has_votes


class Effect(NamedTuple):
    """Mean responses (points, outputs) at values of a column, and the share of rows near each.

    Attributes
    ----------
    values : array of shape (n_points,)
        Of the column.
    shares : array of shape (n_points,)
        Share of rows near each value.
    means : array of shape (n_points, n_outputs)
        What the model answers on average where the column has that value.
    """

    values: NDArray[Any]
    shares: Array
    means: Array


def effects(
    model: Any, X: Any, *, n_values: int | None = 32, n_jobs: int | None = None
) -> list[Effect]:
    """What a fitted model answers on average as a column is held at each of its values.

    Of a classifier it is the mean probability of the second of two classes, or of each of several;
    where it has no probabilities, its mean decision value, or the share of rows that an SVM of
    several classes puts into each. Of a regression it is the mean prediction. The numbers are those
    of scikit-learn's ``partial_dependence`` by brute force; kernel machines, networks with one
    hidden layer, linear models, forests and boosting, also behind scalers, are followed for all
    columns together.

    Parameters
    ----------
    model : fitted classifier or regressor
    X : array or frame of shape (n_samples, n_features)
        Rows over which responses are averaged.
    n_values : int or None, default=32
        Quantiles of a column that are looked at, values that do occur; None is every value.
    n_jobs : int or None, default=None
        Threads over which a forest or boosting deals out rows.

    Returns
    -------
    list of Effect
        One for each column: ``values``, from the least to the greatest, the ``shares`` of rows that
        each stands for, and ``means`` of shape (n_values, n_outputs).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]])
    >>> first, second = effects(LinearRegression().fit(X, X @ [2.0, 1.0]), X)
    >>> first.values, first.means[:, 0].round(2)
    (array([0., 1., 2.]), array([0.67, 2.67, 4.67]))
    """
    table, fitted = FrameCodes(X), plain_model(model)
    check_usable("effects", fitted)
    check_values("effects", {"n_values": integer(1) | NONE}, n_values=n_values)
    response, units = known_model(fitted, table, _response), np.arange(table.codes.shape[1])
    (points,) = Marginal(n_values).draws(table.codes, units[:, None], 0)
    means = _means(response, table.codes, points, n_jobs)
    found = []
    for column, (points_of, weights) in enumerate(zip(points.values, points.weights, strict=True)):
        some = weights > 0  # of quantiles several may be one value
        codes, first, which = np.unique(points_of[some, 0], return_index=True, return_inverse=True)
        shares = np.bincount(which, weights[some]).astype(np.float64)
        found.append(Effect(table.values(column, codes), shares, means[column, some][first]))
    return found


def _response(fitted: Any) -> Model:
    """View a model by what is averaged."""
    votes = has_votes(fitted) and len(fitted.classes_) > 2
    shares = hasattr(fitted, "predict_proba") or not hasattr(fitted, "decision_function")
    if not is_classifier(fitted) or shares or votes:
        return response_of(fitted)
    return decision_values(fitted, as_it_is)


def _means(model: Model, X: Array, points: Points, n_jobs: int | None) -> Array:
    """Means over the rows, of shape (columns, points, outputs)."""
    units, bounds = np.arange(X.shape[1])[:, None], (X.min(axis=0), X.max(axis=0))
    found = (
        open_engine(model, X[part.rows], *bounds, n_jobs).mean_outputs(units, points, part)
        * len(part.rows)
        for part in in_blocks([FoldModel(model, np.arange(len(X)))])
    )
    return np.asarray(sum(found) / len(X))
