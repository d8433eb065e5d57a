"""Information of a subset with the classes, its densities estimated by Parzen windows."""

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, logsumexp

from tamis._arrays import Array, Mask, Subset, check_range, class_codes
from tamis._checks import Constraints, one_of
from tamis._namespace import placed
from tamis._seeds import draw_seed
from tamis.contract import SubsetCriterion
from tamis.criteria.single_changes import SingleChanges
from tamis.density.parzen import WIDTH, best_width, width_cost
from tamis.density.posteriors import ExpectedClass, ObservedClass, PosteriorScore
from tamis.density.series import ClassChanges, class_changes
from tamis.density.sums import (
    PRECISIONS,
    ClassSums,
    ColumnsInUse,
    class_sums,
    class_sums_cost,
    columns_in_use,
    is_large,
)
from tamis.exceptions import InvalidParameter

#: Terms of the series of a column up to which products are used, by whether a sample has no part in
#: its own density. Compiled loops make each pair once where it has one, and where it has none look
#: at every pair of samples twice.
MOST_TERMS = {False: 7, True: 24}


class ParzenCriterion(SingleChanges, SubsetCriterion):
    """Value of a subset from the posterior probabilities that Parzen windows give.

    Attributes
    ----------
    sigma_ : float
        The width in use.
    """

    targets: ClassVar[frozenset[str]] = frozenset({"classification"})
    runs_on_device: ClassVar[bool] = True
    _score: ClassVar[type[PosteriorScore]]
    _constraints: ClassVar[Constraints] = {"sigma": WIDTH, "precision": one_of(*PRECISIONS)}

    def __init__(
        self,
        *,
        sigma: float | str = "likelihood",
        leave_one_out: bool = False,
        precision: str = "double",
        random_state: Any = 0,
        task: str = "auto",
    ):
        self.sigma = sigma
        self.leave_one_out = leave_one_out
        self.precision = precision
        self.random_state = random_state
        self.task = task

    def _learn(self, X: Array, y: NDArray[Any] | None, **params: Any) -> None:
        assert y is not None  # needs_target has seen to it
        name = type(self).__name__
        self._seed = draw_seed(self.random_state)
        check_range(name, X)
        codes = class_codes(y)[1]
        self._counts = np.bincount(codes).astype(float)
        if self.leave_one_out and self._counts.min() < 2:
            raise InvalidParameter(
                f"{name} needs at least two samples of every class with leave_one_out=True, but "
                "one class has a single sample. Leave that class out, or use leave_one_out=False."
            )
        self._X = X
        self._sums: ClassSums = class_sums(X, codes, self.precision)
        self._codes = codes[self._sums.order]
        self._ordered = placed(X[self._sums.order].astype(PRECISIONS[self.precision], copy=False))
        self.use(self.tune(np.arange(self.n_units_)))

    def cost(self, n_samples: int, n_features: int) -> float | None:
        sums = class_sums_cost(n_samples, n_features, others=self.leave_one_out)
        return max(width_cost(n_samples), sums)

    def tune(self, subset: Subset) -> dict[str, Any]:
        """Choose the width anew by the held-out likelihood of the columns left."""
        if self.sigma != "likelihood":
            return self._use(float(self.sigma))
        return self._use(best_width(self._X[:, self.columns(subset)], seed=self._seed))

    def use(self, params: dict[str, Any]) -> None:
        if "sigma" in params:
            self._use(params["sigma"])

    def _use(self, sigma: float) -> dict[str, Any]:
        self.sigma_ = sigma
        return {"sigma": sigma}

    def _values(self, members: Subset, altered: Subset, sign: int) -> Array:
        gamma = 1 / (2 * self.sigma_**2)
        elsewhere = not isinstance(self._ordered, np.ndarray)
        if not is_large(self._X.shape) and not elsewhere:
            return self._from_all_sums(members, altered, sign, gamma)
        used = columns_in_use(self._ordered, members, altered, gamma)
        together = used.together(MOST_TERMS[self.leave_one_out])
        values = np.empty(len(altered) + 1)
        if together.any() or elsewhere:
            both = self._by_products(used, together, -sign)
            values[0], values[1:][together] = both.base, both.base + both.changes
        if not together.all() or not (len(altered) or elsewhere):
            rest = self._from_all_sums(members, altered[~together], sign, gamma)
            values[0], values[1:][~together] = rest[0], rest[1:]
        return values

    def _by_products(self, used: ColumnsInUse, together: Mask, way: int) -> ClassChanges:
        """Value of the members, and what columns of few terms change, all at once."""
        n, others = len(self._codes), self.leave_one_out
        bounds = np.concatenate([[0], np.cumsum(self._counts)]).astype(np.intp)
        score = self._score(self._codes, self._counts, others, used.table.Z)
        which = used.members, used.altered[together], way
        found = class_changes(used.table, bounds, *which, score, others=others)
        return ClassChanges(found.base / n + self._target_entropy, found.changes / n)

    def _from_all_sums(self, members: Subset, altered: Subset, sign: int, gamma: float) -> Array:
        if not self.leave_one_out:
            # P_k p(z|k) is the sum over class k up to a constant, which cancels
            sums = self._sums.sums(members, altered, sign, gamma)
            with np.errstate(divide="ignore"):  # a class that is too far has none
                return self._from_logs(np.log(sums / sums.sum(axis=1, keepdims=True)))
        logs = self._sums.log_sums_of_others(members, altered, sign, gamma)
        own = self._codes == np.arange(len(self._counts))[:, None]
        logs += np.log(self._counts[:, None] / (self._counts[:, None] - own))
        return self._from_logs(logs - logsumexp(logs, axis=1, keepdims=True))

    @abstractmethod
    def _from_logs(self, posterior: Array) -> Array:
        """Values from the logarithms of the posterior probabilities: (subset, class, sample)."""

    @property
    def _target_entropy(self) -> float:
        return float(entr(self._counts / self._counts.sum()).sum())


class ParzenInformation(ParzenCriterion):
    r"""Mutual information of a subset with the classes by Parzen windows (MI-PW).

    .. math:: I(z; y) \approx \frac1N \sum_i \log \frac{p(z_i | y_i)}{\sum_k P_k\, p(z_i | k)},
              \qquad p(z | k) = \frac{1}{N_k} \sum_{i \in k} \phi_\sigma(z - z_i)

    with Gaussian windows of one width for all classes and columns, so columns should be on one
    scale, as a search makes them. Used backwards it sees what columns tell together: no
    discretisation, any number of interacting columns. A step of an elimination costs one
    exponential for each pair of samples and each column.

    A sample counts for its own density unless ``leave_one_out``; the estimate is then too great,
    but by nearly the same for every subset of one size. The empty subset is worth 0.

    Parameters
    ----------
    sigma : float or "likelihood", default="likelihood"
        Width of the window. "likelihood" takes that of 2^-3 to 2^3, in steps of the square root of
        2, under which samples left out in five folds are most likely, once, for all columns;
        ``RecursiveElimination(..., retune=1)`` chooses it anew after each removal.
    leave_one_out : bool, default=False
        Whether the density at a sample is that of the others. It is less biased, not always better
        at ranking, and may rise when a column leaves.
    precision : {"double", "single"}, default="double"
        Of the exponentials of a large table. Single precision takes half the time; values are then
        right to about 1e-6, so only columns that are nearly equal may change places.
    random_state : int, default=0
        Seed of the folds.
    task : {"auto", "classification"}, default="auto"
        "auto" refuses numbers of more than 20 distinct values, which a regression target has;
        "classification" takes each as a class.

    References
    ----------
    Yang and Ong (2012), An effective feature selection method via mutual information estimation,
    IEEE Trans. Systems, Man, and Cybernetics B 42.

    Examples
    --------
    Two columns that tell the class only together, and one that tells nothing:

    >>> from tamis.search import Backward
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, (100, 3))
    >>> y = X[:, 0] * X[:, 2] > 0
    >>> Backward(ParzenInformation(), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([0, 2])
    """

    _score = ObservedClass

    def _from_logs(self, posterior: Array) -> Array:
        # -mean log P(y_i) is the entropy of the classes
        own = posterior[:, self._codes, np.arange(len(self._codes))]
        return own.mean(axis=1) + self._target_entropy


class KwakInformation(ParzenCriterion):
    r"""Mutual information by Parzen windows with the expected instead of the observed class.

    .. math:: I(z; y) \approx H(y) + \frac1N \sum_i \sum_k p(k | z_i) \log p(k | z_i)

    Meant for a forward search. Unlike :class:`ParzenInformation` it does not ask whether the
    posterior is right, only whether it is sure. The empty subset is worth 0.

    Parameters
    ----------
    sigma, leave_one_out, precision, random_state, task
        As in :class:`ParzenInformation`.

    References
    ----------
    Kwak and Choi (2002), Input feature selection by mutual information based on Parzen window,
    IEEE Trans. PAMI 24.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.search import Forward
    >>> X, y = load_iris(return_X_y=True)
    >>> Forward(KwakInformation(), n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([2, 3])
    """

    _score = ExpectedClass

    def _from_logs(self, posterior: Array) -> Array:
        return self._target_entropy - entr(np.exp(posterior)).sum(axis=1).mean(axis=1)


class ParzenDivergence(ParzenCriterion):
    r"""Average symmetric Kullback-Leibler divergence of the classes by Parzen windows.

    What :class:`~tamis.criteria.Divergence` of ``density="parzen"`` asks: at each sample the
    density of its class, without itself, is compared with those of the others.
    """

    def __init__(self, *, sigma: float | str = "likelihood", random_state: Any = 0):
        super().__init__(
            sigma=sigma, leave_one_out=True, random_state=random_state, task="classification"
        )

    def _from_logs(self, posterior: Array) -> Array:
        priors = self._counts / self._counts.sum()
        densities = posterior - np.log(priors)[:, None]
        own = densities[:, self._codes, np.arange(len(self._codes))]
        others = np.einsum("k,skn->sn", priors, densities)
        return 2 * (own - others).mean(axis=1)
