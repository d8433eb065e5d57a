"""Sensitivity of class probabilities, or of the decision itself: FSPP 1 to 4, MLP-FSPP."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.multiclass import OneVsRestClassifier

from tamis._arrays import Array, Subset, class_codes, is_int
from tamis.criteria._answers import Decided, as_it_is, decisions_of, probabilities_of
from tamis.criteria._dual_derivative import Slopes, probability_slopes, slopes_of
from tamis.criteria._engines import Model
from tamis.criteria._folds import Rows, held_out
from tamis.criteria._opening import last_step
from tamis.criteria._sigmoids import Sigmoids, fit_sigmoids
from tamis.criteria._statistics import TotalVariation
from tamis.criteria.destruction import Derivative
from tamis.criteria.model import rows_of
from tamis.criteria.sensitivity import Piece, Sensitivity
from tamis.exceptions import IncompatibleCriterion, InvalidParameter, UnlabelledRows


class PosteriorSensitivity(Sensitivity):
    r"""How far a classifier's posterior probabilities move when a column is destroyed.

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
        linear), networks with one hidden layer and linear models, also behind scalers in a
        pipeline, are evaluated for all columns together, any other by altered copies of the rows,
        with the same result.
    by : {"marginal", "permutation", "zero", "derivative", "removal"}, default="marginal"
        How a column is destroyed: every row meets every value of it (deterministic); it is
        shuffled; set to 0, its mean once standardised; scaled by a factor, to first order, the
        machine following; or left out of a new training. Also an object such as
        ``Zero(centres=True)``, ``Derivative(calibration=True)`` or
        ``Permutation(20, stop_when_sure=True)``.
    output : {"probability", "decision"}, default="probability"
    on : {"training", "held-out", "auto"}, default="training"
        Rows that are judged: those of the training, or each fold's rows by a model that did not see
        them. "auto" holds out from 31 columns and 200 rows on.
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
        calibrate nothing, but are judged, and their values of a column are among those that take
        its place. Held out, they are dealt out to the models of the folds. A warning tells how many
        they are; with two labels in all, and with None, each is a class.
    random_state : int, Generator or None, default=None
        For shuffles and the held-out fraction.

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
    >>> judge = PosteriorSensitivity(SVC(C=10, gamma=0.1)).fit(X, y)
    >>> judge.loss(np.arange(4)).round(2)
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

    @property
    def _makes_folds(self) -> bool:  # type: ignore[override]
        calibrates = self.output == "probability" and not hasattr(self.estimator, "predict_proba")
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

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        if self.output not in ("probability", "decision"):
            raise InvalidParameter(
                "PosteriorSensitivity needs output='probability' or 'decision', not "
                f"{self.output!r}."
            )
        _check_calibration(self.calibration)
        assert y is not None
        labelled = self._labelled(y)
        self.classes_, codes = class_codes(y[labelled])
        self._codes = np.full(len(y), -1, dtype=codes.dtype)
        self._codes[labelled] = codes
        self._learn_rows(X, y, labelled, params)

    def _labelled(self, y: NDArray[Any]) -> Rows:
        """Rows with a label; of two labels each is a class."""
        mark = self.unlabelled
        if mark is not None and not is_int(mark):
            raise InvalidParameter(
                f"PosteriorSensitivity needs unlabelled as a whole number or None, not {mark!r}."
            )
        everything = np.arange(len(y))
        if mark is None or y.dtype.kind in "US":
            return everything
        labelled = np.flatnonzero(y != mark)
        if len(labelled) == len(y) or len(np.unique(y[labelled])) < 2:
            return everything
        warnings.warn(
            f"PosteriorSensitivity takes the {len(y) - len(labelled)} rows of label {mark} as "
            "unlabelled: they train nothing, and enter the average over rows alone. If it is a "
            "class, write unlabelled=None.",
            UnlabelledRows,
            stacklevel=2,
        )
        return labelled

    def _check_way(self) -> None:
        if isinstance(self._way, Derivative) and self.output == "decision":
            raise InvalidParameter(
                "PosteriorSensitivity: a predicted class has no derivative. Use by='derivative' "
                "with output='probability', or output='decision' with by='marginal'."
            )

    def _adopt(self, estimator: Any) -> None:
        last = last_step(estimator)
        many = len(self.classes_) > 2
        votes = hasattr(last, "decision_function_shape") and many
        self._calibrates = self.output == "probability" and not hasattr(estimator, "predict_proba")
        if self._calibrates and not hasattr(estimator, "decision_function"):
            raise IncompatibleCriterion(
                f"PosteriorSensitivity needs predict_proba or decision_function, and "
                f"{type(last).__name__} has neither. Use output='decision'."
            )
        if self._calibrates and self.calibration is None:
            raise InvalidParameter(
                f"PosteriorSensitivity: {type(last).__name__} gives no probabilities and needs "
                "calibration, a number of folds or a held-out fraction, not None. Or use "
                "output='decision', which needs none."
            )
        if votes and self._calibrates:
            # the 'ovr' values of SVC are votes and jump; machines one against the rest do not
            if self._metadata.fit:
                names = ", ".join(self._metadata.fit)
                raise InvalidParameter(
                    f"PosteriorSensitivity cannot use {names} with an SVM of more than two classes."
                    f" Leave {names} out, or use output='decision'."
                )
            self._base = OneVsRestClassifier(estimator)
        else:
            self._base = estimator
        super()._adopt(estimator)

    def _train(self, X: Array, rows: Rows, estimator: Any = None) -> Any:
        return super()._train(X, rows, self._base if estimator is None else estimator)

    def _statistic(self, before: Array) -> TotalVariation:
        return TotalVariation(before)

    def _pieces(self, subset: Subset) -> list[Piece]:
        X = self._X[:, self.columns(subset)]
        if self._calibrates:
            return self._calibrated(X)
        answers = probabilities_of if self.output == "probability" else decisions_of
        return [
            Piece(answers(self._train(X, train), self.classes_), judged)
            for train, judged in self._parts()
        ]

    def _calibrated(self, X: Array) -> list[Piece]:
        machines = self._machines(X)
        return [Piece(_calibrated(m, machines.sigmoids), rows) for m, rows in machines.judging]

    def _machines(self, X: Array) -> "Machines":
        """Machines with sigmoids from rows that they had not seen, where those are of use."""
        if self._folds is not None:
            judging = [(self._train(X, train), rest) for train, rest in self._folds]
            unseen = [(machine, rest[self._codes[rest] >= 0]) for machine, rest in judging]
            return Machines(judging, unseen, self._sigmoids(X, unseen))
        train, parts = self._calibrating_parts()
        unseen = [(self._train(X, rows), rest) for rows, rest in parts]
        whole = self._train(X, train) if isinstance(self.calibration, int) else unseen[0][0]
        judging = [(whole, np.arange(len(X)))]
        sigmoids = self._sigmoids(X, unseen)
        if sigmoids.suit(Decided(whole)(X[train])):
            return Machines(judging, unseen, sigmoids)
        # a nearly diagonal kernel answers almost nothing on unseen rows, and +-1 on its own: a
        # sigmoid made for the former is a step for the latter, and every score would be 0
        seen = [(whole, train)]
        return Machines(judging, seen, self._sigmoids(X, seen))

    def _calibrating_parts(self) -> tuple[Rows, list[tuple[Rows, Rows]]]:
        """Rows that the machine trains on, and (train, rest) of those that make the sigmoid."""
        assert self.calibration is not None
        if isinstance(self.calibration, int):
            return self._trainable, self._split(self.calibration)
        rows = self._trainable
        groups = None if self._groups is None else self._groups[rows]
        parts = held_out(
            type(self).__name__, self.calibration, self._codes[rows], groups, self._seed
        )
        train, rest = (rows[part] for part in parts)
        return train, [(train, rest)]

    def _sigmoids(self, X: Array, machines: list[tuple[Any, Rows]]) -> Sigmoids:
        decisions = np.concatenate([Decided(m)(X[rest]) for m, rest in machines])
        rows = np.concatenate([rest for _, rest in machines])
        weights = rows_of(self._metadata.fit, rows).get("sample_weight")
        return fit_sigmoids(decisions, self._codes[rows], weights)

    def _constants(self) -> list[Piece]:
        c = len(self.classes_)
        shares = np.bincount(self._codes[self._trainable], minlength=c) / len(self._trainable)
        if self.output == "decision":
            shares = np.eye(c)[shares.argmax()]
        answer = shares[1:] if c == 2 else shares

        def raw(X: Array) -> Array:
            return np.tile(answer, (len(X), 1))

        return [Piece(Model(None, "constant", raw, as_it_is), np.arange(len(self._X)))]

    def _by_derivative(self, subset: Subset) -> Array:
        """Mean absolute derivative of the posterior by the scale of each column (FSPP4)."""
        X = self._X[:, self.columns(subset)]
        way = self._way
        assert isinstance(way, Derivative)
        if not self._calibrates:
            raise IncompatibleCriterion(
                "by='derivative' needs an SVC, which PosteriorSensitivity calibrates itself, not "
                f"{type(self.estimator_).__name__}. Use by='marginal'."
            )
        machines = self._machines(X)
        follow: Slopes | None = None
        if way.calibration:
            parts = machines.calibrating
            known = Slopes.joined([slopes_of(machine, X[rows]) for machine, rows in parts])
            rows = np.concatenate([rows for _, rows in parts])
            follow = known.sigmoids(machines.sigmoids, self._codes[rows])
        total = sum(
            probability_slopes(slopes_of(m, X[rows]), machines.sigmoids, follow)
            for m, rows in machines.judging
        )
        return np.asarray(total / len(X))


class Machines(NamedTuple):
    """Machines with the rows that they judge, with those that made the sigmoids, and these."""

    judging: list[tuple[Any, Rows]]
    calibrating: list[tuple[Any, Rows]]
    sigmoids: Sigmoids


def _calibrated(machine: Any, sigmoids: Sigmoids) -> Model:
    return Model(machine, "decision_function", Decided(machine), sigmoids.probabilities)


def _check_calibration(calibration: Any) -> None:
    whole = isinstance(calibration, int) and not isinstance(calibration, bool)
    share = isinstance(calibration, float) and 0 < calibration < 1
    if calibration is not None and not share and not (whole and calibration >= 2):
        raise InvalidParameter(
            "PosteriorSensitivity needs calibration as a number of folds (2 or more), a fraction "
            f"in (0, 1) or None, not {calibration!r}."
        )
