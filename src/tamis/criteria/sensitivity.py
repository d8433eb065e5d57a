"""Sensitivities: how far a trained model's output moves when a column is perturbed."""

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import GroupKFold
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from tamis._arrays import Array, Subset
from tamis._random import draw_seed
from tamis.contract import BackwardCriterion, Cost
from tamis.criteria.model import GROUPS, ModelCriterion, is_tuner, names_by_position
from tamis.exceptions import DegenerateData, IncompatibleCriterion, InvalidParameter
from tamis.response.cost import ComparisonCost, tuned_model
from tamis.response.left_out import check_left_out
from tamis.response.losses import losses, mean_and_error
from tamis.response.opening import check_usable
from tamis.response.outputs import (
    NOISES,
    DensityOutput,
    Output,
    ProbabilityOutput,
    check_calibration,
    needs_calibration,
)
from tamis.response.perturbations import Derivative, resolve
from tamis.response.scores import ScoreOutput, plain_score
from tamis.response.training import SensitivityTraining, holds_out, labelled_rows
from tamis.response.units import Units


class Sensitivity(ModelCriterion, BackwardCriterion):
    """Loss of a unit: how far a trained model's output moves when its columns are perturbed.

    A subclass says which output that is (:meth:`_output`).
    """

    by: Any
    on: Any
    n_repeats: Any
    n_values: Any
    random_state: Any
    n_jobs: Any
    #: Label of rows without one, of a criterion that can do with such.
    unlabelled: Any = None
    #: What the output is, to ask which perturbations it knows.
    _kind: ClassVar[type[Output]]

    @property
    def _makes_folds(self) -> bool:  # type: ignore[override]
        return self.on not in ("training", "left-out")

    def cost(self, n_samples: int, n_features: int, n_rounds: int = 1) -> Cost | None:
        """Known for kernel machines, networks and ridge regression.

        Also behind scalers, and inside ``GridSearchCV``, :class:`TunedSVC` or :class:`TunedSVR`.
        Nobody can say what any other estimator takes.
        """
        name = type(self).__name__
        model, tuning = tuned_model(self.estimator, n_samples, n_features)
        if model is None:
            return None
        way = resolve(name, self.by, self.n_repeats, self.n_values)
        held_out = holds_out(name, self.on, n_features, n_samples)
        comparison = ComparisonCost(
            model, way, held_out, self._calibrated_by(model.estimator), self._copied
        )
        one = comparison.cost(n_samples, n_features)
        return Cost(tuning + n_rounds * one.operations, one.bytes)

    def _calibrated_by(self, estimator: Any) -> int | float | None:
        """Where the sigmoids of probabilities come from, None where there are none."""
        return None

    @property
    def _copied(self) -> bool:
        """Whether altered copies are made, which no engine follows."""
        return False

    @abstractmethod
    def _output(self, training: SensitivityTraining, estimator: Any) -> Output:
        """What is compared, of an estimator."""

    def check(self) -> None:
        name = type(self).__name__
        way = resolve(name, self.by, self.n_repeats, self.n_values)
        self._kind.check(name, way)
        holds_out(name, self.on, 0, 0)
        if self.on == "left-out":
            check_left_out(name, self.estimator, way)

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        name = type(self).__name__
        check_usable(name, self.estimator)
        rows = labelled_rows(name, y, self.unlabelled, len(X))
        metadata = self._routed(params, len(X))
        classification = self.task_ == "classification"
        self._said: tuple[Subset, Array] | None = None
        self._training = SensitivityTraining(
            name, X, y, rows, self.task_,
            held_out=holds_out(name, self.on, X.shape[1], len(rows)),
            left_out=self.on == "left-out",
            stratified=classification and is_classifier(self.estimator),
            groups=metadata.split.get(GROUPS), fit_params=metadata.fit,
            score_params=metadata.score, seed=draw_seed(self.random_state), n_jobs=self.n_jobs,
        )  # fmt: skip
        _ = self._training.parts  # folds that cannot be made are said before any training
        self._learn_model(X, y, metadata, rows)

    def _prepare(self, estimator: Any) -> None:
        self._compared = self._output(self._training, estimator)

    def loss(self, subset: Subset) -> Array:
        way = resolve(type(self).__name__, self.by, self.n_repeats, self.n_values)
        units = Units.of(self.columns, subset)
        if len(units.columns) < self._X.shape[1] and names_by_position(self.estimator_):
            raise IncompatibleCriterion(
                f"{type(self).__name__} trains {type(self.estimator_).__name__} on some of the "
                "columns, of which categorical_features would name others. Use "
                "CrossValidated, which sees to it, or leave categorical_features out."
            )
        with np.errstate(over="ignore", invalid="ignore"):  # NaN of a model's answers is refused
            repeats = losses(self._compared, way, units)
        self._said = None
        if len(repeats) == 1:
            return repeats[0]
        means, errors = mean_and_error(repeats)
        self._said = (subset.copy(), errors)
        return means

    def errors(self, subset: Subset) -> Array | None:
        """Standard errors over the shuffles of the last losses; None where there is one draw."""
        if self._said is None or not np.array_equal(self._said[0], subset):
            return None
        return self._said[1]

    def get_metadata_routing(self) -> MetadataRouter:
        """Metadata given to ``fit`` go to the estimator's ``fit``, groups to our own folds."""
        router = super().get_metadata_routing()
        if self._makes_folds or is_tuner(self.estimator):
            mapping = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=GroupKFold(), method_mapping=mapping)
        return router


class PosteriorSensitivity(Sensitivity):
    r"""How far a classifier's posterior probabilities move when a column is perturbed.

    With :math:`x_{(j)}` a row whose column j is replaced, the loss of column j is the total
    variation between the posteriors, averaged over rows and replacements:

    .. math:: \frac{1}{2N}\sum_i\sum_c |p(c\,|\,x_i) - p(c\,|\,x_{i,(j)})|

    The model is trained once for all columns of a subset. With ``output="decision"`` the predicted
    class stands in the place of the probabilities (the share of rows that change it). FSPP1 is
    ``output="decision"``, FSPP2 the default, FSPP3 ``by="zero"``, FSPP4 ``by="derivative"``; with a
    network as estimator it is MLP-FSPP.

    Of two copies of a column both look important until one is eliminated: rank with
    ``RecursiveElimination``. Scores on training rows say little where a kernel machine is nearly
    diagonal (gamma times the number of columns of 4 or more); ``on="held-out"`` does not suffer.

    Parameters
    ----------
    estimator : classifier
        With ``predict_proba``, which is used as it stands, or with ``decision_function``, which is
        calibrated; several classes of an ``SVC`` are taken one against the rest. A search over
        hyper-parameters is run once on all columns. Support vector machines (RBF, polynomial,
        linear), networks with one hidden layer, linear models, forests and boosting (scikit-learn,
        LightGBM, XGBoost, CatBoost), also behind scalers in a pipeline, are evaluated for all
        columns together, any other by altered copies of the rows, with the same result.
    by : {"marginal", "permutation", "zero", "derivative", "removal"}, default="marginal"
        How a column is perturbed: every row meets every value of it (deterministic); it is
        shuffled; set to 0, its mean once standardised; scaled by a factor, to first order, the
        machine following; or left out of a new training. Also an object such as
        ``Zero(centres=True)``, ``Derivative(follow=False)`` or
        ``Permutation(20, stop_when_sure=True)``.
    output : {"probability", "decision"}, default="probability"
        Of many columns no single one changes a predicted class: with "decision" all then score 0,
        and the lowest indices are kept (of 500 columns and 60 rows all 500, where "probability"
        finds each of the 4 that matter). Use it with tens of columns at most.
    on : {"training", "held-out", "left-out", "auto"}, default="training"
        Rows whose outputs are compared: those of the training, each fold's by a model that did
        not see them, or each row's by the machine without it ("left-out": of
        ``NewtonSVC(loss="squared_error")`` alone, whose machines without one row each are told from
        one inverse; the width of the kernel is that of all rows). "auto" holds out from 31 columns
        and 200 rows on.
    n_repeats : int, default=1
        Shuffles of ``by="permutation"``.
    n_values : int or None, default=None
        Quantiles that stand for a column in ``by="marginal"``; None is every value. Sixteen give
        nearly the same order, and are advisable for models that altered copies are made for.
    calibration : int, float or None, default=5
        Where the sigmoid of a classifier without ``predict_proba`` comes from: out-of-fold
        decisions of so many folds, a held-out fraction of the rows (which then do not train), or
        None if there is nothing to calibrate. With ``on="held-out"`` the decisions on held-out rows
        serve. Scores on training rows fall back on the decisions there where no sigmoid rises, or
        one is so steep that it makes a step of them, as with a nearly diagonal kernel.
    unlabelled : int or None, default=-1
        Label of rows without one, where ``y`` has at least two others: they train, tune and
        calibrate nothing, but are compared, and their values of a column are among those that take
        its place. Held out, they are dealt out to the models of the folds. A warning tells how many
        they are; with two labels in all, and with None, each is a class.
    random_state : int, Generator or None, default=None
        For shuffles and the held-out fraction.
    n_jobs : int or None, default=None
        Threads over which a forest or boosting deals out rows; the scores do not depend on it.

    References
    ----------
    K.-Q. Shen, C.-J. Ong, X.-P. Li, E. P. V. Wilder-Smith, "Feature selection via sensitivity
    analysis of SVM probabilistic outputs", Machine Learning 70, 2008.

    J.-B. Yang, K.-Q. Shen, C.-J. Ong, X.-P. Li, "Feature selection for MLP neural network: the use
    of random permutation of probabilistic outputs", IEEE Trans. Neural Networks 20, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> criterion = PosteriorSensitivity(SVC(C=10, gamma=0.1)).fit(X, y)
    >>> criterion.loss(np.arange(4)).round(2)
    array([0.07, 0.04, 0.57, 0.21])
    """

    def __init__(
        self,
        estimator: Any,
        *,
        by: Any = "marginal",
        output: str = "probability",
        on: str = "training",
        n_repeats: int = 1,
        n_values: int | None = None,
        calibration: int | float | None = 5,
        unlabelled: int | None = -1,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.estimator = estimator
        self.by = by
        self.output = output
        self.on = on
        self.n_repeats = n_repeats
        self.n_values = n_values
        self.calibration = calibration
        self.unlabelled = unlabelled
        self.random_state = random_state
        self.n_jobs = n_jobs

    _kind = ProbabilityOutput

    @property
    def _makes_folds(self) -> bool:  # type: ignore[override]
        calibrates = needs_calibration(self.output, self.estimator)
        if self.on == "left-out":
            return False
        return bool(self.on != "training" or (calibrates and self.calibration is not None))

    @property
    def targets(self) -> frozenset[str]:  # type: ignore[override]
        """Classes."""
        if "classification" not in super().targets:
            raise IncompatibleCriterion(
                f"PosteriorSensitivity needs a classifier, not {type(self.estimator).__name__}. "
                "Use DensitySensitivity for a regressor."
            )
        return frozenset({"classification"})

    def check(self) -> None:
        super().check()
        if self.output not in ("probability", "decision"):
            raise InvalidParameter(
                "PosteriorSensitivity needs output='probability' or 'decision', not "
                f"{self.output!r}."
            )
        check_calibration("PosteriorSensitivity", self.calibration)
        if self.output == "decision" and (
            self.by == "derivative" or isinstance(self.by, Derivative)
        ):
            raise InvalidParameter(
                "PosteriorSensitivity: a predicted class has no derivative. Use by='derivative' "
                "with output='probability', or output='decision' with by='marginal'."
            )

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        super()._learn(X, y, **params)
        self.classes_ = self._training.classes

    def _calibrated_by(self, estimator: Any) -> int | float | None:
        found: int | float | None = self.calibration
        return found if needs_calibration(self.output, estimator) else None

    def _output(self, training: SensitivityTraining, estimator: Any) -> Output:
        return ProbabilityOutput(training, estimator, self.output, self.calibration)


class DensitySensitivity(Sensitivity):
    r"""How far a regressor's predictive density moves when a column is perturbed (SD-L, SD-G).

    The target is taken as f(x) and noise; the loss of column j is the mean Kullback-Leibler
    divergence between the densities around :math:`f = f(x)` and :math:`f_j = f(x_{(j)})`, for
    Laplace noise with :math:`s = \mathrm{mean}|y - f|` and :math:`s_j = \mathrm{mean}|y - f_j|`

    .. math:: \ln\frac{s_j}{s} - 1 + \frac{s}{s_j}e^{-|f - f_j|/s} + \frac{|f - f_j|}{s_j}

    and for Gaussian noise, with mean squares in place of mean absolute values,

    .. math:: \ln\frac{s_j}{s} + \frac{(f - f_j)^2 + s^2}{2 s_j^2} - \frac{1}{2}.

    Of two copies of a column both look important until one is eliminated.

    Parameters
    ----------
    estimator : regressor
        Or a search over its hyper-parameters. Support vector regression (RBF, polynomial, linear),
        networks with one hidden layer, linear models, forests and boosting are evaluated for all
        columns together.
    noise : {"laplace", "gaussian"}, default="laplace"
    symmetric : bool, default=False
        Whether the mean of both directions of the divergence is taken.
    by : {"marginal", "permutation", "zero", "removal"}, default="marginal"
        How a column is perturbed, see :class:`PosteriorSensitivity`.
    on : {"training", "held-out", "left-out", "auto"}, default="training"
        See :class:`PosteriorSensitivity`; "left-out" takes ``NewtonSVR(epsilon=0)`` alone.
    n_repeats : int, default=1
        Shuffles of ``by="permutation"``; each has its own s_j, and scores are averaged.
    n_values : int or None, default=None
        Quantiles that stand for a column in ``by="marginal"``; None is every value.
    random_state : int, Generator or None, default=None
    n_jobs : int or None, default=None
        Threads over which a forest or boosting deals out rows; the scores do not depend on it.

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

    def __init__(
        self,
        estimator: Any,
        *,
        noise: str = "laplace",
        symmetric: bool = False,
        by: Any = "marginal",
        on: str = "training",
        n_repeats: int = 1,
        n_values: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.estimator = estimator
        self.noise = noise
        self.symmetric = symmetric
        self.by = by
        self.on = on
        self.n_repeats = n_repeats
        self.n_values = n_values
        self.random_state = random_state
        self.n_jobs = n_jobs

    _kind = DensityOutput

    @property
    def targets(self) -> frozenset[str]:  # type: ignore[override]
        """A real target."""
        if "regression" not in super().targets:
            raise IncompatibleCriterion(
                f"DensitySensitivity needs a regressor, not {type(self.estimator).__name__}. Use "
                "PosteriorSensitivity for a classifier."
            )
        return frozenset({"regression"})

    def check(self) -> None:
        super().check()
        if self.noise not in NOISES:
            raise InvalidParameter(
                f"DensitySensitivity needs noise='laplace' or 'gaussian', not {self.noise!r}."
            )

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        if y is not None and np.ptp(y) == 0:
            warnings.warn(
                f"DensitySensitivity: every row has the target {y[0]}, of which no column can tell "
                "anything: all losses are 0. Check the target column.",
                DegenerateData,
                stacklevel=2,
            )
        super()._learn(X, y, **params)

    def _output(self, training: SensitivityTraining, estimator: Any) -> Output:
        return DensityOutput(training, estimator, self.noise, bool(self.symmetric))


class ScoreSensitivity(Sensitivity):
    """How far a score falls when a column is perturbed: permutation importance and its relatives.

    With ``by="permutation"`` and the same shuffles it is scikit-learn's
    ``permutation_importance``; ``by="marginal"`` is the mean score with the column held at each of
    its values, which for scores that are means over rows (accuracy, R², log-loss) is the
    expectation over shuffles. Accuracy, R² and the mean squared error come from the engines of
    :class:`PosteriorSensitivity`; for any other score altered copies of the rows are made.

    Parameters
    ----------
    estimator : classifier or regressor
        Or a search over its hyper-parameters. A row without a label cannot be scored: leave it out.
    scoring : str, callable or None, default=None
        None is the estimator's own score: accuracy or R².
    by : {"marginal", "permutation", "zero", "removal"}, default="marginal"
        How a column is perturbed, see :class:`PosteriorSensitivity`.
    on : {"training", "held-out", "auto"}, default="training"
        Held out, the falls of the folds are averaged.
    n_repeats : int, default=1
    n_values : int or None, default=None
    random_state : int, Generator or None, default=None
    n_jobs : int or None, default=None
        Threads over which a forest or boosting deals out rows; the scores do not depend on it.

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

    def __init__(
        self,
        estimator: Any,
        *,
        scoring: Any = None,
        by: Any = "marginal",
        on: str = "training",
        n_repeats: int = 1,
        n_values: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.estimator = estimator
        self.scoring = scoring
        self.by = by
        self.on = on
        self.n_repeats = n_repeats
        self.n_values = n_values
        self.random_state = random_state
        self.n_jobs = n_jobs

    _kind = ScoreOutput

    def check(self) -> None:
        super().check()
        if self.on == "left-out":
            raise IncompatibleCriterion(
                "ScoreSensitivity has no machine for each row. Use on='held-out', or "
                "DensitySensitivity or PosteriorSensitivity with on='left-out'."
            )

    @property
    def _copied(self) -> bool:
        inner = getattr(self.estimator, "estimator", self.estimator)
        return plain_score(inner, self.scoring) is None

    def _output(self, training: SensitivityTraining, estimator: Any) -> Output:
        return ScoreOutput(training, estimator, self.scoring)
