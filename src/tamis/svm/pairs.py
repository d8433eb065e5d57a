"""The paths of all machines of a classifier, one for each pair of classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.svm.curves.ballots import Ballot, vote_steps
from tamis.svm.curves.certificate import shifted, uncertainty
from tamis.svm.curves.steps import Blocks, StepCounts, label_steps, order_steps
from tamis.svm.kernels import Gram, Kernel
from tamis.svm.path.binary import BinaryPath, binary_path
from tamis.svm.votes import class_pairs


@dataclass(frozen=True)
class PairwisePaths:
    """Paths of the machines one against one on a training set, by pairs of classes."""

    n_classes: int
    n_samples: int
    members: list[NDArray[np.intp]]  # samples of each machine
    grams: list[Gram]
    paths: list[BinaryPath]

    def rows(self, pair: int, X: Array) -> Array:
        """Kernel rows of new points for one machine."""
        return self.grams[pair].rows(self._own(pair, X))

    def _own(self, pair: int, X: Array) -> Array:
        """What one machine sees of new points: of a precomputed kernel the columns of its own."""
        return X[:, self.members[pair]] if self.grams[pair].kernel.name == "precomputed" else X

    def outputs(self, X: Array, lam: float) -> Array:
        """h = lambda f of every machine, exactly 0 where it is no more than rounding."""
        columns = []
        for pair, path in enumerate(self.paths):
            w, b = path.weights(lam)
            h = self.rows(pair, X) @ w + b
            columns.append(np.where(np.abs(h) <= path.band, 0.0, h))
        return np.column_stack(columns)

    def dual_coef(self, lam: float) -> Array:
        """Coefficients ``y alpha`` of all samples, one row for each machine."""
        coef = np.zeros((len(self.paths), self.n_samples))
        for pair, path in enumerate(self.paths):
            coef[pair, self.members[pair]] = path.weights(lam)[0] / lam
        return coef

    def intercepts(self, lam: float) -> Array:
        """Intercepts that go with the coefficients and the kernel as it is."""
        found = []
        for gram, path in zip(self.grams, self.paths, strict=True):
            w, own = path.weights(lam)
            shift = gram.means @ w
            if gram.kernel.name == "linear":  # its rows are taken from the mean of the samples
                shift += gram.origin @ (w @ gram.X)
            found.append((own - shift) / lam)
        return np.array(found)

    def steps(
        self,
        X: Array,
        target: NDArray[np.int64],
        scoring: object,
        ways: tuple[int, ...] = (0,),
        own: Array | None = None,
    ) -> list[StepCounts]:
        """Correct predictions along the path: as they are (0), at best (1) and at worst (-1).

        ``own`` is the kernel of the points with themselves, where it is precomputed.
        """
        rows = [self.rows(pair, X) for pair in range(len(self.paths))]
        blocks: list[Blocks] = [p.outputs(r) for p, r in zip(self.paths, rows, strict=True)]
        bounds: list[Any] = [None] * len(blocks)
        if any(ways):
            for pair, path in enumerate(self.paths):
                norms = self.grams[pair].norms(self._own(pair, X), rows[pair], own)
                bounds[pair] = uncertainty(path.solution, path.kappa, norms)
        return [self._counted(blocks, bounds, target, scoring, way) for way in ways]

    def _counted(
        self,
        blocks: list[Blocks],
        bounds: list[Any],
        target: NDArray[np.int64],
        scoring: object,
        way: int,
    ) -> StepCounts:
        if len(self.paths) > 1:
            machines = zip(class_pairs(self.n_classes), blocks, self.paths, bounds, strict=True)
            ballots = [Ballot(i, j, b, p.band, e) for (i, j), b, p, e in machines]
            return vote_steps(ballots, target, self.n_classes, way)
        sign = np.where(target == 1, 1.0, -1.0)
        moved = shifted(blocks[0], bounds[0], sign, way) if way else blocks[0]
        band = self.paths[0].band
        if scoring == "roc_auc":
            return order_steps(moved, target, 1e-2 * band)
        return label_steps(moved, target, band)


def pairwise_paths(
    kernel: Kernel,
    X: Array,
    target: NDArray[np.int64],
    bounds: Array,
    lambda_range: tuple[float, float],
    bracketed: bool = False,
) -> PairwisePaths:
    """Follow the path of every pair of classes; samples with a bound of 0 do not take part."""
    n_classes = int(target.max()) + 1
    members, grams, paths = [], [], []
    for i, j in class_pairs(n_classes):
        member = np.flatnonzero(((target == i) | (target == j)) & (bounds > 0))
        part = X[np.ix_(member, member)] if kernel.name == "precomputed" else X[member]
        gram = Gram(kernel, part)
        sign = np.where(target[member] == j, 1.0, -1.0)
        paths.append(binary_path(gram, sign, bounds[member], lambda_range, bracketed))
        members.append(member)
        grams.append(gram)
    return PairwisePaths(n_classes, len(X), members, grams, paths)
