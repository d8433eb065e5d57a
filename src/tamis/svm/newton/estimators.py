"""NewtonSVC and NewtonSVR: SVMs of squared losses, exact, on a CPU or a GPU."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from tamis._arrays import Array
from tamis._checks import Constraints, number, one_of
from tamis._namespace import host, move
from tamis.svm.inputs import encode_classes, weigh_classes
from tamis.svm.newton.machine import Losses, NewtonMachine, TargetUnits
from tamis.svm.newton.spaces import SquaredLoss

#: Half width of a tube that holds all targets of the size of 1, and that can be counted with.
LARGEST_EPSILON = 1e100


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

    _constraints: ClassVar[Constraints] = {"loss": one_of("squared_hinge", "squared_error")}

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

    def _losses(self, X: Any, y: NDArray[Any], weight: Array) -> Losses:
        self.classes_, codes = encode_classes("NewtonSVC", y)
        bounds = weigh_classes("NewtonSVC", self.class_weight, y, weight, weight)
        positive = range(len(self.classes_)) if len(self.classes_) > 2 else (1,)
        one_sided, kept = self.loss == "squared_hinge", codes[weight > 0]
        losses = [
            SquaredLoss(move(np.where(kept == k, 1.0, -1.0), X), one_sided=one_sided)
            for k in positive
        ]
        return losses, bounds, TargetUnits()

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
        return self.classes_[codes]


class NewtonSVR(RegressorMixin, NewtonMachine):
    r"""Support vector regression with squared epsilon-insensitive loss, solved exactly.

    .. math:: \min_{f}\ \tfrac12 \|f\|^2 + C \sum_i \max(0, |y_i - f(x_i)| - \epsilon)^2

    as :class:`NewtonSVC` is. With ``epsilon=0`` it is the least-squares machine, kernel ridge
    regression with an intercept: one linear system.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses.
    epsilon : float, default=0.1
        Half width of the tube in which nothing is lost.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
    degree : int, default=3
        Of the polynomial kernel.
    gamma : {"scale", "auto"} or float, default="scale"
    coef0 : float, default=0.0
        Of the polynomial kernel.
    fit_intercept : bool, default=True
        Whether there is an intercept; it is not penalised.
    warm_start : bool, default=False
        Whether a further ``fit`` on as many rows begins with the samples that were outside the
        tube. The optimum is the same.
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
    support_ : array of int
        Samples outside the tube, or the landmarks.
    support_vectors_ : array
    dual_coef_ : array of shape (1, n_support)
        Signed multipliers.
    coef_ : array of shape (1, n_features)
        Weights of the columns, on the host, with ``kernel="linear"``.
    intercept_ : array of shape (1,)
    n_iter_ : int

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(NewtonSVR(epsilon=0.0).fit(X, y).score(X, y), 2)
    0.68
    """

    _constraints: ClassVar[Constraints] = {"epsilon": number(least=0)}

    def __init__(
        self,
        C: float = 1.0,
        *,
        epsilon: float = 0.1,
        kernel: str = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        warm_start: bool = False,
        max_iter: int = 100,
        n_landmarks: int | None = None,
        random_state: Any = None,
    ):
        self.C = C
        self.epsilon = epsilon
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def _losses(self, X: Any, y: NDArray[Any], weight: Array) -> Losses:
        y = y.astype(np.float64)[weight > 0]
        units = TargetUnits.of(y, shiftable=self.fit_intercept)
        target = move((y - units.middle) / units.size, X)
        epsilon = min(float(self.epsilon) / units.size, LARGEST_EPSILON)
        return [SquaredLoss(target, epsilon)], weight, units

    def predict(self, X: Any) -> Any:
        """What the machine answers for each row, where the rows are.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._outputs(X)[:, 0]
