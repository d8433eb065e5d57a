"""The paths of all machines of a classifier, one for each pair of classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.svm.curves.ballots import Ballot, vote_steps
from tamis.svm.curves.doubt import Bracketed, Doubt, doubt_of
from tamis.svm.curves.steps import StepCounts, label_steps, order_steps
from tamis.svm.kernels import Gram, Kernel
from tamis.svm.limits import FARTHEST_OUTPUT, within
from tamis.svm.path.binary import BinaryPath, binary_path
from tamis.svm.path.follow import Block
from tamis.svm.votes import class_pairs

# Two outputs are equal within this share of what is not told from 0: the error of the path is
# common to both.
TIED = 0.01


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
            rows = self.rows(pair, X)
            with np.errstate(over="ignore", invalid="ignore"):  # of rows far off
                h = within(rows @ w + b, FARTHEST_OUTPUT)
                columns.append(np.where(np.abs(h) <= path.band(lam, rows), 0.0, h))
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
        blocks: list[list[Block]] = []
        doubts: list[Doubt] = []
        for pair, path in enumerate(self.paths):
            part, gram = self._own(pair, X), self.grams[pair]
            rows = gram.rows(part)
            blocks.append(path.outputs(rows))
            if any(ways):
                doubts.append(doubt_of(path.solution, blocks[-1], gram, part, rows, own))
        # an order is of two points: there any zone may matter
        bracketed = [
            d.bracketed(np.ones(len(d.zone), bool) if scoring == "roc_auc" else d.unsure())
            for d in doubts
        ]
        return [
            self._bracketed(bracketed, target, scoring, way)
            if way
            else self._counted(blocks, target, scoring)
            for way in ways
        ]

    def _counted(
        self, blocks: list[list[Block]], target: NDArray[np.int64], scoring: object
    ) -> StepCounts:
        """Correct predictions as the path makes them."""
        if scoring == "roc_auc":
            ties = [b.rounding + TIED * b.zero[:, None] for b in blocks[0]]
            return order_steps([(b.lam, b.h) for b in blocks[0]], ties, target)
        lines = [[(b.lam, b.h + b.band) for b in machine] for machine in blocks]
        if len(lines) == 1:
            return label_steps(lines[0], target)
        pairs = zip(class_pairs(self.n_classes), lines, strict=True)
        return vote_steps([Ballot(i, j, line) for (i, j), line in pairs], target, self.n_classes)

    def _bracketed(
        self, machines: list[Bracketed], target: NDArray[np.int64], scoring: object, way: int
    ) -> StepCounts:
        """Correct predictions at best (1) or at worst (-1)."""
        if len(machines) > 1:
            pairs = zip(class_pairs(self.n_classes), machines, strict=True)
            ballots = [Ballot(i, j, [(m.lam, m.h + m.band)], [m.error]) for (i, j), m in pairs]
            return vote_steps(ballots, target, self.n_classes, way)
        (machine,) = machines
        # outputs moved to the benefit (1) or the detriment (-1) of the true labels
        moved = machine.h + way * np.where(target == 1, 1.0, -1.0) * machine.error
        if scoring == "roc_auc":
            return order_steps([(machine.lam, moved)], [TIED * machine.band], target)
        return label_steps([(machine.lam, moved + machine.band)], target)


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
