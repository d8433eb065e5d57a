"""OutputInformation: information of a classifier's predictions, attributed to its inputs."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, clone, is_classifier
from sklearn.model_selection import GroupShuffleSplit
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline

from tamis._arrays import Array, Subset, class_codes, column_means
from tamis._checks import Constraints, number, one_of
from tamis._seeds import Seed, draw_seed
from tamis.contract import BackwardCriterion
from tamis.criteria.model import GROUPS, Metadata, ModelCriterion, check_trainable
from tamis.density.discrete import settled
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, InvalidTarget
from tamis.response.engines.base import FoldModel, Model, altered_outputs
from tamis.response.engines.network import ACTIVATIONS
from tamis.response.engines.registry import check_usable, last_step, open_engine
from tamis.response.fold_models import take_rows
from tamis.response.memory import training_bytes
from tamis.response.perturbations import Points, Units
from tamis.response.predictions import decisions_of
from tamis.response.tuners import plain_network
from tamis.validation.splits import Rows, held_out

#: Information, in bits, that is attributed to the columns if the predictions have none. The weights
#: of the network then still rank the columns.
LEAST = 1e-12


@dataclass(eq=False, repr=False)
class OutputInformation(ModelCriterion, BackwardCriterion):
    r"""Mutual information of a classifier's predictions with the classes, for each input (MOI).

    The classifier is trained on the training rows of a split. :math:`I = I(y; \hat y)`, in bits, is
    computed from the confusion matrix on the validation rows. ``credit="shares"`` attributes it to
    the inputs of a network. With hidden values :math:`h_k`, weights :math:`w_{jk}` into and
    :math:`v_{kc}` out of the hidden units, and standard deviations over the validation rows,

    .. math:: r_k = I \frac{a_k}{\sum_l a_l}, \quad
        a_k = \mathrm{sd}(h_k) \sum_c |v_{kc} - \bar v_k|, \qquad
        s_j = \sum_k r_k \frac{|w_{jk}|\,\mathrm{sd}(x_j)}{\sum_i |w_{ik}|\,\mathrm{sd}(x_i)}

    so that :math:`\sum_j s_j = I`. Further hidden layers pass the information on in the same way.
    ``credit="knockout"`` is the information lost when a column is set to its mean. It works with
    any classifier. If many columns are irrelevant, it finds more of the relevant ones. Columns tie
    if no prediction changes.

    The rule for shares is our interpretation of the published heuristic. ``I`` is the same for all
    columns, so it does not affect the ranking within a step. It is used to compare subsets, see
    :meth:`information`. If the predictions have no information, 1e-12 bits are attributed. The
    share of a group is the sum of the shares of its columns. This favours groups of many columns,
    so use ``credit="knockout"`` for tables with groups.

    Parameters
    ----------
    estimator : classifier or None, default=None
        Classifier to train. None means a network of six tanh units with weight decay, trained by
        L-BFGS. ``credit="shares"`` needs an ``MLPClassifier``, alone or as the last step of a
        pipeline that keeps the columns. A search over hyper-parameters is run once on the training
        rows.
    credit : {"shares", "knockout"}, default="shares"
        How the information is attributed to the columns.
    validation : float, default=0.5
        Fraction of the rows on which the predictions are evaluated. The split is stratified by
        class. With ``groups``, it keeps groups together instead.
    random_state : int, Generator or None, default=None
        Seed of the split, and of the default network.

    Attributes
    ----------
    train_rows_, validation_rows_ : array of int
        Indices of the training rows and of the validation rows.

    References
    ----------
    J.-B. Yang (2011), Feature selection and model selection for supervised learning algorithms,
    National University of Singapore, sec. 2.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> criterion = OutputInformation(random_state=0).fit((X - X.mean(0)) / X.std(0), y)
    >>> criterion.loss(np.arange(4)).round(2), round(criterion.information(np.arange(4)), 2)
    (array([0.14, 0.17, 0.4 , 0.59]), 1.32)
    """

    estimator: BaseEstimator | None = None
    _: KW_ONLY
    credit: str = "shares"
    validation: float = 0.5
    random_state: Seed = None

    _makes_folds: ClassVar[bool] = True
    _constraints: ClassVar[Constraints] = {
        "credit": one_of("shares", "knockout"),
        "validation": number(above=0, below=1),
    }

    # columns are set to their means, and deviations from the means are computed
    takes_missing = False

    @property
    def targets(self) -> frozenset[str]:  # type: ignore[override]
        """Kinds of target: classification only."""
        if self.estimator is not None:
            check_trainable(self, self.estimator)
            if not is_classifier(self.estimator):
                raise IncompatibleCriterion(
                    f"OutputInformation needs a classifier, not {type(self.estimator).__name__}. "
                    "For a numeric target use DensitySensitivity or ScoreSensitivity."
                )
        return frozenset({"classification"})

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Return the memory in bytes that training needs, or None for an unknown estimator."""
        n = max(1, n_samples - max(1, round(self.validation * n_samples)))
        estimator = plain_network(6, 1.0) if self.estimator is None else self.estimator
        held = training_bytes(estimator, n, n_features)
        return None if held is None else held + 16.0 * n_samples * n_features + 1e5

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # ``fit`` refuses a missing target
        seed = draw_seed(self.random_state)
        owner = self
        if self.estimator is None:  # the default network determines which metadata can be used
            network = plain_network(6, 1.0).set_params(random_state=seed)
            owner = clone(self).set_params(estimator=network)
        metadata = owner._route(params, len(X))
        rows, rest = self._split(y, metadata.split.get(GROUPS), seed)
        self.train_rows_, self.validation_rows_ = rows, rest
        self.classes_, codes = class_codes(y)
        self._validation, self._codes, self._means = X[rest], codes[rest], column_means(X)
        self._weights = take_rows(metadata.fit, rest).get("sample_weight")
        training = Metadata(*(take_rows(values, rows) for values in metadata))
        self._learn_model(X[rows], y[rows], training, estimator=owner.estimator)

    def _split(self, y: NDArray[Any], groups: Any, seed: int) -> tuple[Rows, Rows]:
        """Return the training rows and the validation rows."""
        if groups is not None:
            halves = GroupShuffleSplit(1, test_size=self.validation, random_state=seed)
            return next(halves.split(y, groups=groups))
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < 2:
            raise InvalidTarget(
                "OutputInformation needs at least two rows of each class, one to train on and one "
                f"to validate, but {str(labels[counts.argmin()])!r} has one. Drop that class."
            )
        n_rest = int(np.ceil(self.validation * len(y)))
        least = min(n_rest, len(y) - n_rest)
        if least < len(labels):
            raise InvalidParameter(
                f"OutputInformation needs at least {len(labels)} rows on both sides of the split, "
                f"one for each class, but validation={self.validation!r} leaves {least} on one "
                "side. Use a fraction nearer to 0.5."
            )
        return held_out("OutputInformation", self.validation, y, None, seed)

    def _prepare(self, estimator: Any) -> None:
        check_usable("OutputInformation", estimator)
        last = last_step(estimator)
        if self.credit == "shares" and not isinstance(last, MLPClassifier):
            raise IncompatibleCriterion(
                "OutputInformation with credit='shares' needs an MLPClassifier, alone or last in a "
                f"pipeline, not {type(last).__name__}. Use credit='knockout', which works with any "
                "classifier."
            )
        self._last: tuple[Subset, Any] | None = None

    def information(self, subset: Subset) -> float:
        """Return I(y; predictions), in bits, of the classifier trained on the subset.

        It is 0 for the empty subset.
        """
        if not len(subset):
            return 0.0
        model = decisions_of(self._trained(subset), self.classes_)
        return self._bits(model, self._validation[:, self.columns(subset)])

    def loss(self, subset: Subset) -> Array:
        units, fitted = Units.of(self.columns, subset), self._trained(subset)
        model, V = decisions_of(fitted, self.classes_), self._validation[:, units.columns]
        bits = self._bits(model, V)
        if self.credit == "shares":
            shares = share_credit(*_layers(fitted, V))
            return units.summed(shares) * max(bits, LEAST)
        predicted = _without_each(model, V, units, self._means[units.columns])
        return bits - information(self._confusion(predicted))

    def _trained(self, subset: Subset) -> Any:
        """Return the classifier trained on the subset. The most recent classifier is cached."""
        if self._last is None or not np.array_equal(self._last[0], subset):
            self._last = subset.copy(), self._fit_columns(self.columns(subset))
        return self._last[1]

    def _bits(self, model: Model, V: Array) -> float:
        return float(information(self._confusion(_classes(model.outputs(V)))))

    def _confusion(self, predicted: NDArray[np.intp]) -> Array:
        """Return the confusion matrix of each set of predictions.

        ``predicted`` has class codes, of shape (..., rows).
        """
        c = len(self.classes_)
        cells = (self._codes * c + predicted).reshape(-1, len(self._codes))
        counts = [np.bincount(line, self._weights, c * c) for line in cells]
        return np.reshape(counts, (*predicted.shape[:-1], c, c)).astype(np.float64)


def information(counts: Array) -> Array:
    """Return the mutual information of each contingency table, in bits.

    >>> information(np.array([[5.0, 0.0], [0.0, 5.0]]))
    np.float64(1.0)
    """
    joint = counts / counts.sum(axis=(-2, -1), keepdims=True)
    marginal = entr(joint.sum(axis=-1)).sum(axis=-1) + entr(joint.sum(axis=-2)).sum(axis=-1)
    nats = marginal - entr(joint).sum(axis=(-2, -1))
    return settled(nats / np.log(2))


def share_credit(values: list[Array], weights: list[Array]) -> Array:
    """Return the share of the information that is attributed to each input of a network.

    ``values`` are the outputs of each layer except the last, ``weights`` the weights that follow
    each of these layers. Only the deviation of the output weights from their mean over the classes
    matters. The weights of a single logistic output already are such a deviation.
    """
    last = weights[-1]
    if last.shape[1] > 1:
        last = last - last.mean(axis=1, keepdims=True)
    credit = _shares(values[-1].std(axis=0) * np.abs(last).sum(axis=1))
    for layer, weight in zip(values[-2::-1], weights[-2::-1], strict=True):
        credit = _shares(layer.std(axis=0)[:, None] * np.abs(weight)) @ credit
    return credit


def _shares(parts: Array) -> Array:
    """Divide parts by their sum. If the sum is 0, return equal shares."""
    total = parts.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, parts / total, 1 / len(parts))


def _layers(fitted: Any, V: Array) -> tuple[list[Array], list[Array]]:
    """Return the outputs of the input and hidden layers, and the weights that follow each layer."""
    while isinstance(fitted, Pipeline):
        for _, step in fitted.steps[:-1]:
            if step not in (None, "passthrough") and not isinstance(step, OneToOneFeatureMixin):
                raise IncompatibleCriterion(
                    "OutputInformation with credit='shares' needs steps that keep the columns, not "
                    f"{type(step).__name__}, which makes new ones. Use credit='knockout', or leave "
                    "that step out."
                )
        V, fitted = fitted[:-1].transform(V), fitted.steps[-1][1]
    values = [V]
    activation = ACTIVATIONS[fitted.activation]
    for weights, offsets in zip(fitted.coefs_[:-1], fitted.intercepts_[:-1], strict=True):
        values.append(activation(values[-1] @ weights + offsets))
    return values, fitted.coefs_


def _classes(outputs: Array) -> NDArray[np.intp]:
    """Return the codes of the predicted classes.

    For two classes there may be a single output, which is 1 for the second class.
    """
    return outputs[..., 0].astype(np.intp) if outputs.shape[-1] == 1 else outputs.argmax(axis=-1)


def _without_each(model: Model, X: Array, units: Units, points: Array) -> NDArray[np.intp]:
    """Return the predicted classes when the columns of each unit are set to ``points``.

    The result has the shape (units, rows). ``points`` has a value for each column.
    """
    engine, fold = open_engine(model, X, points, points), FoldModel(model, np.arange(len(X)))
    predicted = np.empty((len(units.sizes), len(X)), dtype=np.intp)
    for which, columns in units.by_size():
        draw = Points(points[columns][:, None], np.ones((len(columns), 1)))
        for batch in engine.batches(columns):
            for some, rows, outputs, _ in altered_outputs(batch, fold, columns, draw):
                predicted[np.ix_(which[some], rows)] = _classes(outputs[:, :, 0])
    return predicted
