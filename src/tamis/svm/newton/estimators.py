"""NewtonSVC and NewtonSVR: exact SVMs with squared losses, on a CPU or a GPU."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from tamis._arrays import Array
from tamis._checks import Constraints, number, one_of
from tamis._namespace import host, move
from tamis.svm.inputs import encode_classes, weigh_classes
from tamis.svm.newton.machine import Losses, NewtonMachine, TargetUnits
from tamis.svm.newton.spaces import SquaredLoss

#: Larger values of epsilon could overflow, so they are replaced by this one. With either value, the
#: tube contains all targets.
LARGEST_EPSILON = 1e100


@dataclass(eq=False, repr=False, kw_only=True)
class NewtonSVC(ClassifierMixin, NewtonMachine):
    r"""Support vector classifier with squared hinge loss and any kernel, solved exactly.

    .. math:: \min_{f}\ \tfrac12 \|f\|^2 + C \sum_i \max(0, 1 - y_i f(x_i))^2

    The model is trained by Newton's method on the samples inside the margin. Training takes a few
    steps, each with one Cholesky decomposition, and needs no tolerance. X may be a numpy array or,
    with scikit-learn's ``array_api_dispatch``, a torch or CuPy array on any device. With more than
    two classes, an SVM is trained for each class against all others.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses.
    loss : {"squared_hinge", "squared_error"}, default="squared_hinge"
        "squared_error" is the squared difference from the targets -1 and 1. It gives the
        least-squares SVM, which is the solution of a linear system.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        The kernel, as in SVC.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the kernels "rbf" and "poly". "scale" uses the weighted variance of X.
    coef0 : float, default=0.0
        Constant of the kernel "poly".
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights that multiply C for each class.
    warm_start : bool, default=False
        Whether the next ``fit`` on the same number of rows starts from the samples that are inside
        the margin now. The optimum is the same.
    max_iter : int, default=100
        Largest number of Newton steps. Usually fewer than 20 are needed.
    n_landmarks : int or None, default=None
        Number of landmarks, which are rows drawn at random. The decision function is then a
        weighted sum of the kernel functions of the landmarks, with weights fitted to all rows. None
        uses every row, which is exact. Landmarks are an approximation for tables with more than
        about 50 000 rows, whose kernel matrix does not fit into memory. With landmarks, memory and
        time grow linearly with the number of rows. A linear SVM of a numpy array with at least ten
        rows per column does not need landmarks, because it is solved for its column weights.
    random_state : int, Generator or None, default=None
        Seed for drawing the landmarks.

    Attributes
    ----------
    classes_ : array
        The classes.
    support_ : array of int
        Row numbers of the samples inside the margin, or of the landmarks.
    support_vectors_ : array
        The rows of X with these numbers.
    dual_coef_ : array of shape (n_outputs, n_support)
        Signed multipliers of the support vectors.
    coef_ : array of shape (n_outputs, n_features)
        Weights of the columns as a numpy array. Only for ``kernel="linear"``.
    intercept_ : array of shape (n_outputs,)
        Intercept of each output.
    n_iter_ : int
        Number of Newton steps, the largest over all outputs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> round(NewtonSVC().fit(X, y).score(X, y), 2)
    0.99
    """

    _constraints: ClassVar[Constraints] = {"loss": one_of("squared_hinge", "squared_error")}

    loss: str = "squared_hinge"
    class_weight: dict[Any, float] | str | None = None

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

    def decision_function(self, X: ArrayLike) -> Any:
        """Return the decision values of each row.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_classes) for more than two classes
        """
        found = self._outputs(X)
        return found[:, 0] if found.shape[1] == 1 else found

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Predict the class of each row, as a numpy array.

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


@dataclass(eq=False, repr=False, kw_only=True)
class NewtonSVR(RegressorMixin, NewtonMachine):
    r"""Support vector regression with squared epsilon-insensitive loss, solved exactly.

    .. math:: \min_{f}\ \tfrac12 \|f\|^2 + C \sum_i \max(0, |y_i - f(x_i)| - \epsilon)^2

    The model is trained in the same way as :class:`NewtonSVC`. With ``epsilon=0``, it is the
    least-squares SVM: kernel ridge regression with an intercept. This is the solution of a linear
    system.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses.
    epsilon : float, default=0.1
        Half-width of the tube. Errors inside the tube have no loss.
    kernel : {"rbf", "linear", "poly"}, default="rbf"
        The kernel, as in SVR.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Width of the kernels "rbf" and "poly". "scale" uses the weighted variance of X.
    coef0 : float, default=0.0
        Constant of the kernel "poly".
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    warm_start : bool, default=False
        Whether the next ``fit`` on the same number of rows starts from the samples that are outside
        the tube now. The optimum is the same.
    max_iter : int, default=100
        Largest number of Newton steps. Usually fewer than 20 are needed.
    n_landmarks : int or None, default=None
        Number of landmarks, as in :class:`NewtonSVC`. None uses every row, which is exact.
    random_state : int, Generator or None, default=None
        Seed for drawing the landmarks.

    Attributes
    ----------
    support_ : array of int
        Row numbers of the samples outside the tube, or of the landmarks.
    support_vectors_ : array
        The rows of X with these numbers.
    dual_coef_ : array of shape (1, n_support)
        Signed multipliers of the support vectors.
    coef_ : array of shape (1, n_features)
        Weights of the columns as a numpy array. Only for ``kernel="linear"``.
    intercept_ : array of shape (1,)
        The intercept.
    n_iter_ : int
        Number of Newton steps.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(NewtonSVR(epsilon=0.0).fit(X, y).score(X, y), 2)
    0.68
    """

    _constraints: ClassVar[Constraints] = {"epsilon": number(least=0)}

    epsilon: float = 0.1

    def _losses(self, X: Any, y: NDArray[Any], weight: Array) -> Losses:
        y = y.astype(np.float64)[weight > 0]
        units = TargetUnits.of(y, shiftable=self.fit_intercept)
        target = move((y - units.middle) / units.size, X)
        epsilon = min(float(self.epsilon) / units.size, LARGEST_EPSILON)
        return [SquaredLoss(target, epsilon)], weight, units

    def predict(self, X: ArrayLike) -> Any:
        """Predict the target of each row, as an array on the same device as ``X``.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,)
        """
        return self._outputs(X)[:, 0]
