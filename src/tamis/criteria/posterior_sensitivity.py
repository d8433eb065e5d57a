"""How far posterior probabilities move when a column is perturbed: FSPP and MLP-FSPP."""

from typing import Any, ClassVar

from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._checks import NONE, Constraints, integer, number, one_of
from tamis.criteria.sensitivity import Sensitivity
from tamis.exceptions import IncompatibleCriterion, InvalidParameter
from tamis.response.fold_models import FoldTraining
from tamis.response.outputs import Output, ProbabilityOutput, needs_calibration
from tamis.response.perturbations import Derivative


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

    ``sample_weight`` given to ``fit`` reaches the training alone: the average over rows is not
    weighted.

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
    precision : {"double", "single"}, default="double"
        Of the kernels on a device; single precision keeps the order of columns, and is worth it on
        cards that are slow in double. A processor computes in double.
    adjusted : "auto" or bool, default="auto"
        Whether losses are compared with chance: the model is trained on the columns together with a
        copy whose rows are permuted, and the loss of a unit is how far it exceeds that of its copy.
        "auto" does so if a unit has more than one column, because outputs move further the more
        columns change, even if these say nothing. The exception is ``by="derivative"``: it favours
        groups of many columns, and ``by="marginal"`` is advisable for tables with groups.

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
        precision: str = "double",
        adjusted: str | bool = "auto",
    ):
        super().__init__(
            estimator, by=by, on=on, n_repeats=n_repeats, n_values=n_values,
            random_state=random_state, n_jobs=n_jobs, precision=precision, adjusted=adjusted,
        )  # fmt: skip
        self.output = output
        self.calibration = calibration
        self.unlabelled = unlabelled

    _has_derivative = True
    _constraints: ClassVar[Constraints] = {
        "output": one_of("probability", "decision"),
        "calibration": integer(2) | number(above=0, below=1) | NONE,
    }

    @property
    def _makes_folds(self) -> bool:  # type: ignore[override]
        calibrates = needs_calibration(self.output, self.estimator)
        folds = self.on == "training" and calibrates and self.calibration is not None
        return folds or super()._makes_folds

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
        if self.output == "decision" and isinstance(self._way, Derivative):
            raise InvalidParameter(
                "PosteriorSensitivity: a predicted class has no derivative. Use by='derivative' "
                "with output='probability', or output='decision' with by='marginal'."
            )

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        super()._learn(X, y, **params)
        self.classes_ = self._training.classes

    def _output(self, training: FoldTraining, estimator: Any) -> Output:
        return ProbabilityOutput(training, estimator, self.output, self.calibration)
