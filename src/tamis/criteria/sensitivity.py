"""Sensitivities: changes of a trained model's outputs when a column is perturbed."""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import GroupKFold
from sklearn.svm import SVC, SVR, NuSVC, NuSVR
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from tamis._arrays import Array, Subset
from tamis._checks import Constraints, one_of
from tamis._namespace import device_asked
from tamis._seeds import Seed, draw_seed
from tamis.contract import BackwardCriterion
from tamis.criteria.model import (
    GROUPS,
    ChanceAdjusted,
    ModelCriterion,
    check_trainable,
    inner_estimator,
    is_tuner,
    names_by_position,
)
from tamis.exceptions import DegenerateData, IncompatibleCriterion
from tamis.response.calibration import check_left_out
from tamis.response.comparison import mean_and_error
from tamis.response.engines.registry import check_usable, last_step
from tamis.response.fold_models import FoldTraining, fold_count, holds_out, labelled_rows
from tamis.response.memory import comparison_bytes
from tamis.response.outputs import (
    NOISES,
    DensityOutput,
    Output,
    ScoreOutput,
    check_scored,
    losses,
    plain_score,
)
from tamis.response.perturbations import Derivative, Perturbation, Replacement, Zero, resolve
from tamis.response.tuners import TunedSVC, TunedSVR
from tamis.svm.machine import is_newton


@dataclass(eq=False, repr=False)
class Sensitivity(ChanceAdjusted, ModelCriterion, BackwardCriterion):
    """Base class of criteria that measure how a model's output changes when a unit is perturbed.

    A unit is a column, or a group of columns that is selected as one. A subclass defines the output
    (:meth:`_output`).
    """

    estimator: BaseEstimator
    _: KW_ONLY
    by: Any = "marginal"
    on: str = "training"
    n_repeats: int = 1
    n_values: int | None = None
    random_state: Seed = None
    n_jobs: int | None = None
    precision: str = "double"
    adjusted: str | bool = "auto"

    #: The only accepted kind of target (None accepts all kinds), and advice for other estimators.
    _task: ClassVar[str | None] = None
    _instead: ClassVar[str] = ""
    #: Whether the output has a derivative with respect to the scale of a column.
    _has_derivative: ClassVar[bool] = False
    #: Whether altered copies of the rows are predicted, because no fast engine computes the output.
    _copied: ClassVar[bool] = False
    _constraints: ClassVar[Constraints] = {
        "on": one_of("training", "held-out", "left-out", "auto"),
        "precision": one_of("double", "single"),
    }

    @property
    def targets(self) -> frozenset[str]:  # type: ignore[override]
        """Kinds of target that the estimator and the output can use."""
        known = super().targets
        if self._task is None:
            return known
        if self._task not in known:
            kind = "classifier" if self._task == "classification" else "regressor"
            raise IncompatibleCriterion(
                f"{type(self).__name__} needs a {kind}, not {type(self.estimator).__name__}. "
                f"{self._instead}"
            )
        return frozenset({self._task})

    @property
    def _way(self) -> Perturbation:
        """The perturbation that the parameter ``by`` describes."""
        return resolve(type(self).__name__, self.by, self.n_repeats, self.n_values)

    @property
    def _makes_folds(self) -> bool:  # type: ignore[override]
        return self.on not in ("training", "left-out")

    @property
    def runs_on_device(self) -> bool:  # type: ignore[override]
        """Whether losses can be computed on a GPU or other device.

        This needs an SVM with a Gaussian kernel, and a perturbation that replaces column values.
        """
        way, last = self._way, last_step(inner_estimator(self.estimator))
        known = isinstance(last, SVC | SVR | NuSVC | NuSVR | TunedSVC | TunedSVR) or is_newton(last)
        replaced = isinstance(way, Replacement) and not (isinstance(way, Zero) and way.centres)
        return replaced and known and getattr(last, "kernel", "rbf") == "rbf"

    def cost(self, n_samples: int, n_features: int) -> float | None:
        """Return the memory in bytes that comparing outputs needs, or None if it is not known.

        It is known for SVMs, networks and ridge regression, including those after scalers in a
        pipeline or inside ``GridSearchCV``, :class:`TunedSVC` or :class:`TunedSVR`.
        """
        n_trained = self._n_trained(n_features)
        n_folds = fold_count(n_samples) if holds_out(self.on, n_features, n_samples) else 1
        return comparison_bytes(
            self.estimator, self._way, n_samples, n_trained, n_folds=n_folds, copied=self._copied
        )

    @property
    def _is_adjusted(self) -> bool:
        # a derivative scales a whole group by a single factor, so "auto" does not correct it
        grows = self.adjusted != "auto" or not isinstance(self._way, Derivative)
        return grows and super()._is_adjusted

    @abstractmethod
    def _output(self, training: FoldTraining, estimator: Any) -> Output:
        """Return the estimator's output, which is compared before and after a perturbation."""

    def check(self) -> None:
        super().check()
        name, way = type(self).__name__, self._way
        if isinstance(way, Derivative) and not self._has_derivative:
            raise IncompatibleCriterion(
                f"{name} has no derivative; PosteriorSensitivity has one. Use by='marginal', "
                "'permutation', 'zero' or 'removal'."
            )
        if self.on == "left-out":
            check_left_out(name, self.estimator, way)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        name = type(self).__name__
        check_usable(name, self.estimator)
        rows = labelled_rows(name, y, getattr(self, "unlabelled", None), len(X))
        metadata = self._route(params, len(X))
        table = self._with_copies(X, y)
        classification = self.task_ == "classification"
        self._repeats: tuple[Subset, Array] | None = None
        training = FoldTraining(
            name, table, y, rows, self.task_, held_out=holds_out(self.on, X.shape[1], len(rows)),
            left_out=self.on == "left-out",
            stratified=classification and is_classifier(self.estimator),
            groups=metadata.split.get(GROUPS), fit_params=metadata.fit,
            score_params=metadata.score, seed=draw_seed(self.random_state), n_jobs=self.n_jobs,
            place=device_asked(), precision=self.precision,
        )  # fmt: skip
        _ = training.parts  # raises an error for impossible folds before any training
        self._learn_model(table, y, metadata, training)

    def _prepare(self, estimator: Any) -> None:
        self._compared = self._output(self._training, estimator)

    def loss(self, subset: Subset) -> Array:
        units = self._units(subset)
        if len(units.columns) < self._X.shape[1] and names_by_position(self.estimator_):
            raise IncompatibleCriterion(
                f"{type(self).__name__} cannot train {type(self.estimator_).__name__} on some of "
                "the columns, because categorical_features would mean others. Use CrossValidated, "
                "which renumbers them, or leave categorical_features out."
            )
        with np.errstate(over="ignore", invalid="ignore"):  # NaN outputs are refused later
            repeats = losses(self._compared, self._way, units)
        self._repeats = None
        if len(repeats) == 1:
            return self._above_chance(repeats[0])
        means, errors = mean_and_error(repeats)
        if self._has_copies:
            errors = np.hypot(*np.split(errors, 2))
        self._repeats = (subset.copy(), errors)
        return self._above_chance(means)

    def errors(self, subset: Subset) -> Array | None:
        """Return the standard errors, over shuffles, of the losses that were last computed.

        Return None if there was a single shuffle, or if those losses are of a different subset.
        """
        if self._repeats is None or not np.array_equal(self._repeats[0], subset):
            return None
        return self._repeats[1]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return a router that passes metadata to the estimator's ``fit`` and to the splitter."""
        router = super().get_metadata_routing()
        if self._makes_folds or is_tuner(self.estimator):
            mapping = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=GroupKFold(), method_mapping=mapping)
        return router


@dataclass(eq=False, repr=False, kw_only=True)
class ScoreSensitivity(Sensitivity):
    """Decrease of a score when a column is perturbed, such as permutation importance.

    With ``by="permutation"`` and the same shuffles this is scikit-learn's
    ``permutation_importance``. ``by="marginal"`` sets the column to each of its values in turn and
    averages the scores. For scores that are means over rows (accuracy, R², log-loss), this is the
    expectation over shuffles. Accuracy, R² and the mean squared error use the fast engines of
    :class:`PosteriorSensitivity`; other scores need altered copies of the rows.

    ``sample_weight`` given to ``fit`` is used for training only: the average over rows is not
    weighted.

    Parameters
    ----------
    estimator : classifier or regressor
        Model, or a search over its hyper-parameters. Rows without a label cannot be scored; leave
        them out.
    scoring : str, callable or None, default=None
        Score to use. None means the estimator's own score: accuracy or R².
    by : {"marginal", "permutation", "zero", "removal"}, default="marginal"
        How a column is perturbed, see :class:`PosteriorSensitivity`.
    on : {"training", "held-out", "auto"}, default="training"
        Rows to score, see :class:`PosteriorSensitivity`. On held-out rows, the decreases of the
        folds are averaged.
    n_repeats : int, default=1
        Number of shuffles for ``by="permutation"``.
    n_values : int or None, default=None
        Number of quantiles for ``by="marginal"``; None uses every value of the column.
    random_state : int, Generator or None, default=None
        Seed of the shuffles.
    n_jobs : int or None, default=None
        Number of threads for the rows of a forest or boosting model. Scores do not depend on this
        number.
    precision : {"double", "single"}, default="double"
        Precision of kernels on a GPU or other device, see :class:`PosteriorSensitivity`.
    adjusted : "auto" or bool, default="auto"
        Whether losses are corrected for chance, see :class:`PosteriorSensitivity`.

    References
    ----------
    L. Breiman, "Random forests", Machine Learning 45, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> criterion = ScoreSensitivity(LogisticRegression(max_iter=1000)).fit(X, y)
    >>> criterion.loss(np.arange(4)).round(2)
    array([0.01, 0.01, 0.58, 0.16])
    """

    scoring: str | Callable[..., Any] | None = None

    loses_score: ClassVar[bool] = True

    def check(self) -> None:
        super().check()
        if isinstance(self._way, Zero) and self._way.centres:
            raise IncompatibleCriterion(
                "ScoreSensitivity sets values in rows to zero, but Zero(centres=True) sets them in "
                "the centres of a kernel. Use by='zero'."
            )
        check_trainable(self, self.estimator)
        check_scored(type(self).__name__, self.estimator, self.scoring)
        if self.on == "left-out":
            raise IncompatibleCriterion(
                "ScoreSensitivity has no leave-one-out models. Use on='held-out', or "
                "DensitySensitivity or PosteriorSensitivity with on='left-out'."
            )

    @property
    def _copied(self) -> bool:  # type: ignore[override]
        return plain_score(inner_estimator(self.estimator), self.scoring) is None

    def _output(self, training: FoldTraining, estimator: Any) -> Output:
        return ScoreOutput(training, estimator, self.scoring)


@dataclass(eq=False, repr=False, kw_only=True)
class DensitySensitivity(Sensitivity):
    r"""Change of a regressor's predictive density when a column is perturbed (SD-L, SD-G).

    The target is modelled as f(x) plus noise. The loss of column j is the mean Kullback-Leibler
    divergence between the densities around :math:`f = f(x)` and :math:`f_j = f(x_{(j)})`. For
    Laplace noise with :math:`s = \mathrm{mean}|y - f|` and :math:`s_j = \mathrm{mean}|y - f_j|`
    it is the mean of

    .. math:: \ln\frac{s_j}{s} - 1 + \frac{s}{s_j}e^{-|f - f_j|/s} + \frac{|f - f_j|}{s_j}

    and for Gaussian noise, with mean squares instead of mean absolute values,

    .. math:: \ln\frac{s_j}{s} + \frac{(f - f_j)^2 + s^2}{2 s_j^2} - \frac{1}{2}.

    Two duplicate columns both look important until one is eliminated: rank with
    ``RecursiveElimination``.

    ``sample_weight`` given to ``fit`` is used for training only: the average over rows is not
    weighted.

    Parameters
    ----------
    estimator : regressor
        Model, or a search over its hyper-parameters. For support vector regression (RBF,
        polynomial, linear), networks with one hidden layer, linear models, forests and boosting,
        all columns are evaluated together.
    noise : {"laplace", "gaussian"}, default="laplace"
        Distribution of the noise.
    symmetric : bool, default=False
        Whether the divergence is averaged over both directions.
    by : {"marginal", "permutation", "zero", "removal"}, default="marginal"
        How a column is perturbed, see :class:`PosteriorSensitivity`.
    on : {"training", "held-out", "left-out", "auto"}, default="training"
        Rows whose densities are compared, see :class:`PosteriorSensitivity`. "left-out" needs
        ``NewtonSVR(epsilon=0)``.
    n_repeats : int, default=1
        Number of shuffles for ``by="permutation"``. Each shuffle has its own s_j, and the losses
        are averaged.
    n_values : int or None, default=None
        Number of quantiles for ``by="marginal"``; None uses every value of the column.
    random_state : int, Generator or None, default=None
        Seed of the shuffles.
    n_jobs : int or None, default=None
        Number of threads for the rows of a forest or boosting model. Scores do not depend on this
        number.
    precision : {"double", "single"}, default="double"
        Precision of kernels on a GPU or other device, see :class:`PosteriorSensitivity`.
    adjusted : "auto" or bool, default="auto"
        Whether losses are corrected for chance, see :class:`PosteriorSensitivity`.

    References
    ----------
    J.-B. Yang, C.-J. Ong, "Feature selection using probabilistic prediction of support vector
    regression", IEEE Trans. Neural Networks 22, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> criterion = DensitySensitivity(SVR(C=100, gamma=5)).fit(X, y)
    >>> criterion.loss(np.array([1, 2, 8])).round(2)
    array([0.02, 0.28, 0.31])
    """

    noise: str = "laplace"
    symmetric: bool = False

    _task, _instead = "regression", "Use PosteriorSensitivity for a classifier."
    _constraints: ClassVar[Constraints] = {"noise": one_of(*NOISES)}

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        if y is not None and np.ptp(y) == 0:
            warnings.warn(
                f"DensitySensitivity: every row has the same target {y[0]}, so all losses are 0. "
                "Check the target column.",
                DegenerateData,
                stacklevel=2,
            )
        super()._learn(X, y, **params)

    def _output(self, training: FoldTraining, estimator: Any) -> Output:
        return DensityOutput(training, estimator, self.noise, bool(self.symmetric))
