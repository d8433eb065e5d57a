"""PosteriorSensitivity: changes of class probabilities when a column is perturbed (FSPP)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._checks import NONE, Constraints, integer, number, one_of
from tamis.criteria.sensitivity import Sensitivity
from tamis.exceptions import InvalidParameter
from tamis.response.fold_models import FoldTraining
from tamis.response.outputs import Output, ProbabilityOutput, needs_calibration
from tamis.response.perturbations import Derivative


@dataclass(eq=False, repr=False, kw_only=True)
class PosteriorSensitivity(Sensitivity):
    r"""Change of a classifier's posterior probabilities when a column is perturbed.

    Let :math:`x_{(j)}` be a row x with the value of column j replaced. The loss of column j is the
    total variation distance between the posteriors of x and :math:`x_{(j)}`, averaged over rows and
    replacements:

    .. math:: \frac{1}{2N}\sum_i\sum_c |p(c\,|\,x_i) - p(c\,|\,x_{i,(j)})|

    The model is trained once for all columns of a subset. ``output="decision"`` compares predicted
    classes instead of probabilities: the loss is the share of rows whose class changes.

    The published variants are FSPP1 (``output="decision"``), FSPP2 (the default), FSPP3
    (``by="zero"``) and FSPP4 (``by="derivative"``). With a network as estimator the method is
    called MLP-FSPP.

    Two duplicate columns both look important until one is eliminated: rank with
    ``RecursiveElimination``. If the kernel matrix of an SVM is nearly diagonal (gamma times the
    number of columns is 4 or more), losses on training rows are unreliable. Use ``on="held-out"``
    then.

    ``sample_weight`` given to ``fit`` is used for training only: the average over rows is not
    weighted.

    Parameters
    ----------
    estimator : classifier
        Classifier with ``predict_proba`` or ``decision_function``. Probabilities are used directly;
        decision values are calibrated. An ``SVC`` with several classes is trained one against the
        rest. A search over hyper-parameters is run once on all columns. For SVMs (RBF, polynomial,
        linear), networks with one hidden layer, linear models, forests and boosting (scikit-learn,
        LightGBM, XGBoost, CatBoost), all columns are evaluated together. These models may follow
        scalers in a pipeline. Other models predict altered copies of the rows, with the same
        result.
    by : {"marginal", "permutation", "zero", "derivative", "removal"}, default="marginal"
        How a column is perturbed:

        - "marginal": each row gets every value of the column in turn (deterministic);
        - "permutation": the column is shuffled;
        - "zero": the column is set to 0, which is its mean after standardisation;
        - "derivative": the output is differentiated with respect to a scale factor of the column,
          and the SVM adapts to the factor;
        - "removal": a model is trained without the column.

        Objects such as ``Zero(centres=True)``, ``Derivative(follow=False)`` or
        ``Permutation(20, stop_when_sure=True)`` are accepted too.
    output : {"probability", "decision"}, default="probability"
        Output that is compared. Use "decision" with tens of columns at most. With more columns,
        perturbing a single column rarely changes a predicted class. Most columns then score 0, and
        ties go to the lowest indices.
    on : {"training", "held-out", "left-out", "auto"}, default="training"
        Rows whose outputs are compared:

        - "training": the training rows;
        - "held-out": the rows of each fold, with the model trained without them;
        - "left-out": each row, with the model trained without it. This needs
          ``NewtonSVC(loss="squared_error")``, whose leave-one-out models follow from a single
          matrix inverse. The kernel width is computed from all rows;
        - "auto": "held-out" if there are at least 31 columns and 200 rows, otherwise "training".
    n_repeats : int, default=1
        Number of shuffles for ``by="permutation"``.
    n_values : int or None, default=None
        Number of quantiles for ``by="marginal"``; None uses every value of the column. 16 quantiles
        give nearly the same ranking, and are advisable for models that need altered copies.
    calibration : int, float or None, default=5
        How the sigmoid of a classifier without ``predict_proba`` is fitted. An int is the number of
        folds whose out-of-fold decisions are used. A float is the fraction of the rows that is held
        out for calibration and not used for training. None means no calibration. ``on="held-out"``
        uses the decisions on held-out rows. With ``on="training"``, the training decisions are used
        if the sigmoid does not increase or is nearly a step function, as with a nearly diagonal
        kernel.
    unlabelled : int or None, default=-1
        Label that marks unlabelled rows, if ``y`` has at least two other labels. These rows are not
        used to train, tune or calibrate. Their outputs are compared, and their values are used as
        replacements. With ``on="held-out"`` they are split among the models of the folds. A warning
        reports their number. With two labels in all, or with None, each label is a class.
    random_state : int, Generator or None, default=None
        Seed of the shuffles and of the held-out fraction.
    n_jobs : int or None, default=None
        Number of threads for the rows of a forest or boosting model. Scores do not depend on this
        number.
    precision : {"double", "single"}, default="double"
        Precision of kernels on a GPU or other device. Single precision keeps the ranking and is
        faster on GPUs that are slow in double precision. A CPU always computes in double precision.
    adjusted : "auto" or bool, default="auto"
        Whether losses are corrected for chance. The model is then trained on the columns and on a
        copy of them whose rows are permuted. The loss of the copy is subtracted from the loss of
        each unit (a column, or a group of columns that is selected as one). "auto" corrects if a
        unit has more than one column, because perturbing more columns changes the outputs more,
        even if the columns are uninformative. "auto" does not correct ``by="derivative"``, so this
        perturbation favours groups of many columns. Use ``by="marginal"`` for tables with groups.

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

    output: str = "probability"
    calibration: int | float | None = 5
    unlabelled: int | None = -1

    _task, _instead = "classification", "Use DensitySensitivity for a regressor."
    _has_derivative = True
    _constraints: ClassVar[Constraints] = {
        "output": one_of("probability", "decision"),
        "calibration": integer(2) | number(above=0, below=1) | NONE,
        "unlabelled": integer() | NONE,
    }

    @property
    def _makes_folds(self) -> bool:  # type: ignore[override]
        calibrates = needs_calibration(self.output, self.estimator)
        folds = self.on == "training" and calibrates and self.calibration is not None
        return folds or super()._makes_folds

    def check(self) -> None:
        super().check()
        if self.output == "decision" and isinstance(self._way, Derivative):
            raise InvalidParameter(
                "PosteriorSensitivity needs output='probability' with by='derivative', because a "
                "predicted class has no derivative. Write by='marginal' for output='decision'."
            )

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        super()._learn(X, y, **params)
        self.classes_ = self._training.classes

    def _output(self, training: FoldTraining, estimator: Any) -> Output:
        return ProbabilityOutput(training, estimator, self.output, self.calibration)
