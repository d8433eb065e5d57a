"""How far a score falls when a column is perturbed: permutation importance and its relatives."""

from typing import Any, ClassVar

from tamis.criteria.model import check_trainable, inner_estimator
from tamis.criteria.sensitivity import Sensitivity
from tamis.exceptions import IncompatibleCriterion
from tamis.response.fold_models import FoldTraining
from tamis.response.outputs import Output
from tamis.response.scores import ScoreOutput, check_scored, plain_score


class ScoreSensitivity(Sensitivity):
    """How far a score falls when a column is perturbed: permutation importance and its relatives.

    With ``by="permutation"`` and the same shuffles it is scikit-learn's
    ``permutation_importance``; ``by="marginal"`` is the mean score with the column held at each of
    its values, which for scores that are means over rows (accuracy, R², log-loss) is the
    expectation over shuffles. Accuracy, R² and the mean squared error come from the engines of
    :class:`PosteriorSensitivity`; for any other score altered copies of the rows are made.

    ``sample_weight`` given to ``fit`` reaches the training alone: the average over rows is not
    weighted.

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
    precision : {"double", "single"}, default="double"
        Of the kernels on a device, see :class:`PosteriorSensitivity`.
    adjusted : "auto" or bool, default="auto"
        Whether losses are compared with chance, see :class:`PosteriorSensitivity`.

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
        precision: str = "double",
        adjusted: str | bool = "auto",
    ):
        self.estimator = estimator
        self.scoring = scoring
        self.by = by
        self.on = on
        self.n_repeats = n_repeats
        self.n_values = n_values
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.precision = precision
        self.adjusted = adjusted

    _kind = ScoreOutput
    loses_score: ClassVar[bool] = True

    def check(self) -> None:
        super().check()
        check_trainable(self, self.estimator)
        check_scored(type(self).__name__, self.estimator, self.scoring)
        if self.on == "left-out":
            raise IncompatibleCriterion(
                "ScoreSensitivity has no machine for each row. Use on='held-out', or "
                "DensitySensitivity or PosteriorSensitivity with on='left-out'."
            )

    @property
    def _copied(self) -> bool:
        return plain_score(inner_estimator(self.estimator), self.scoring) is None

    def _output(self, training: FoldTraining, estimator: Any) -> Output:
        return ScoreOutput(training, estimator, self.scoring)
