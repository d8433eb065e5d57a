"""NewtonSVC: classifier of squared losses, exact, on a processor or a GPU."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from tamis._arrays import Array, class_codes
from tamis._namespace import double, host, move, placed
from tamis.contract.elsewhere import validated
from tamis.exceptions import InvalidParameter, InvalidTarget
from tamis.svm.limits import check_bounds
from tamis.svm.newton.losses import Hinge, SquaredLoss, Tube
from tamis.svm.newton.machine import NewtonMachine, PosedMachine, weights_of

LOSSES = ("squared_hinge", "squared_error")


class NewtonSVC(ClassifierMixin, NewtonMachine):
    r"""Support vector classifier with squared hinge loss and any kernel, solved exactly.

    .. math:: \min_{f}\ \tfrac12 \|f\|^2 + C \sum_i \max(0, 1 - y_i f(x_i))^2

    by Newton's method on the set of samples inside the margin: a Cholesky factor for each of a few
    steps, and no tolerance. On numpy arrays and, under scikit-learn's ``array_api_dispatch``, on
    torch and CuPy arrays of any device. Several classes are trained one against the rest.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses.
    loss : {"squared_hinge", "squared_error"}, default="squared_hinge"
        The squared error from the targets -1 and 1 is the least-squares machine: one system.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
    coef0 : float, default=0.0
        Of the polynomial kernel.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalised.
    class_weight : dict, "balanced" or None, default=None
        What multiplies C for each class.
    warm_start : bool, default=False
        Whether a further ``fit`` on as many rows begins with the samples that were inside the
        margin. The optimum is the same.
    max_iter : int, default=100
        Most steps. Fewer than 20 are usual.
    n_landmarks : int or None, default=None
        Rows, drawn at random, whose kernels the machine is made of; all rows decide about their
        weights. None is every row, exactly. Beyond some 50 000 rows, whose kernel matrix no
        memory holds, it is an approximation: memory and time then grow with the rows, not with
        their square and cube. A linear machine of numpy arrays with ten rows a column or more
        needs none of it: it is solved by its columns.
    random_state : int, Generator or None, default=None
        For the landmarks.

    Attributes
    ----------
    classes_ : array
    support_ : array of int
        Samples inside the margin, or the landmarks.
    support_vectors_ : array
    dual_coef_ : array of shape (n_outputs, n_support)
        Signed multipliers.
    coef_ : array of shape (n_outputs, n_features)
        Weights of the columns, on the host, with ``kernel="linear"``.
    intercept_ : array of shape (n_outputs,)
    n_iter_ : int
        Steps of the output that took the most.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(NewtonSVC().fit(X, y).score(X, y), 2)
    0.99
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "squared_hinge",
        kernel: str = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        class_weight: Any = None,
        warm_start: bool = False,
        max_iter: int = 100,
        n_landmarks: int | None = None,
        random_state: Any = None,
    ):
        self.C = C
        self.loss = loss
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the machine.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Classes.
        sample_weight : array of shape (n_samples,) or None
            What multiplies C for each sample.

        Returns
        -------
        NewtonSVC
        """
        self._fit_outputs(self._posed(X, y, sample_weight))
        return self

    def _posed(self, X: Any, y: Any, sample_weight: Any) -> PosedMachine:
        self._check()
        X, y = validated(self, X, y)
        X, y = placed(double(X)), host(y)
        check_classification_targets(y)
        weight = weights_of(self, sample_weight, y)
        self.classes_, codes = class_codes(y)
        self._check_classes(codes, weight)
        each = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y, sample_weight=weight
        )
        if not (each > 0).all() or not np.isfinite(each).all():
            raise InvalidParameter(
                f"NewtonSVC needs class weights that are numbers above 0, not "
                f"{self.class_weight!r}."
            )
        self._kernel = self._resolved(X, weight)
        positive = range(len(self.classes_)) if len(self.classes_) > 2 else (1,)
        kept = codes[weight > 0]
        losses = [self._loss_of(move(np.where(kept == k, 1.0, -1.0), X)) for k in positive]
        with np.errstate(over="ignore", under="ignore"):  # refused where it is no number
            bounds = self.C * weight * each[codes]
        check_bounds("NewtonSVC", bounds[weight > 0])
        return PosedMachine(X, losses, bounds)

    def _check(self) -> None:
        super()._check()
        if self.loss not in LOSSES:
            raise InvalidParameter(
                f"NewtonSVC needs loss='squared_hinge' or 'squared_error', not {self.loss!r}."
            )

    def _loss_of(self, signs: Any) -> SquaredLoss:
        return Hinge(signs) if self.loss == "squared_hinge" else Tube(signs, 0.0)

    def _check_classes(self, codes: NDArray[np.intp], weight: Array) -> None:
        there = np.unique(codes[weight > 0])
        if len(there) < 2 or len(there) < len(self.classes_):
            raise InvalidTarget(
                "NewtonSVC needs samples of positive weight in at least two classes, and in every "
                f"class; {len(there)} class{'es have' if len(there) != 1 else ' has'} some."
            )

    def decision_function(self, X: Any) -> Any:
        """Outputs of the machine.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) where there are more than two
        """
        found = self._outputs(X)
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each row, on the host.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        found = host(self._outputs(X))
        codes = (found[:, 0] > 0).astype(int) if found.shape[1] == 1 else found.argmax(axis=1)
        classes: NDArray[Any] = self.classes_
        return classes[codes]
