"""The paths of all machines of a classifier, one for each pair of classes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis.svm.curves.ballots import Ballot, vote_steps
from tamis.svm.curves.doubt import Bracketed, Doubt, doubt_of
from tamis.svm.curves.steps import Lines, OrderPairs, StepCounts, label_steps, order_steps
from tamis.svm.kernels import Gram, Kernel
from tamis.svm.limits import FARTHEST_OUTPUT, within
from tamis.svm.path.binary import BinaryPath, binary_path
from tamis.svm.path.follow import Block
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
        weight: Array | None = None,
    ) -> list[StepCounts]:
        """Correct predictions along the path: as they are (0), at best (1) and at worst (-1).

        ``own`` is the kernel of the points with themselves, where it is precomputed, ``weight``
        what each point counts.
        """
        count = _Counting(target, scoring, self.n_classes, weight, X)
        blocks: list[list[Block]] = []
        doubts: list[Doubt] = []
        for pair, path in enumerate(self.paths):
            part, gram = self._own(pair, X), self.grams[pair]
            rows = gram.rows(part)
            blocks.append(path.outputs(rows))
            if any(ways):
                doubts.append(doubt_of(path.solution, blocks[-1], gram, part, rows, own))
        if not any(ways):
            return [count.nominal([[(b.lam, b.h, b.band) for b in part] for part in blocks])]
        # an order is of two points: there any zone may matter
        bracketed = [
            d.bracketed(np.ones(len(d.zone), bool) if scoring == "roc_auc" else d.unsure())
            for d in doubts
        ]
        # an output counts as 0 only as far as its sign is not certain
        lines = [[(m.lam, m.h, np.minimum(m.band, m.error))] for m in bracketed]
        return [count.bracket(bracketed, way) if way else count.nominal(lines) for way in ways]


@dataclass(frozen=True)
class _Counting:
    """Counts of correct predictions for the points of a validation set."""

    target: NDArray[np.int64]
    scoring: object
    n_classes: int
    weight: Array | None
    X: Array

    def nominal(self, machines: list[list[tuple[Array, Array, Array]]]) -> StepCounts:
        """Correct predictions by lambda, outputs and what of them counts as 0, block by block."""
        if self.scoring == "roc_auc":
            lines = [(lam, h) for lam, h, _ in machines[0]]
            return self._ordered(lines, [band for _, _, band in machines[0]])
        moved = [[(lam, h + band) for lam, h, band in blocks] for blocks in machines]
        if len(moved) == 1:
            return label_steps(moved[0], self.target, self.weight)
        pairs = zip(class_pairs(self.n_classes), moved, strict=True)
        return self._voted([Ballot(i, j, line) for (i, j), line in pairs], 0)

    def bracket(self, machines: list[Bracketed], way: int) -> StepCounts:
        """Correct predictions at best (1) or at worst (-1)."""
        if len(machines) > 1:
            pairs = zip(class_pairs(self.n_classes), machines, strict=True)
            return self._voted(
                [Ballot(i, j, [(m.lam, m.h)], [m.error]) for (i, j), m in pairs], way
            )
        (machine,) = machines
        # outputs moved to the benefit (1) or the detriment (-1) of the true labels
        moved = machine.h + way * np.where(self.target == 1, 1.0, -1.0) * machine.error
        if self.scoring == "roc_auc":
            return self._ordered([(machine.lam, moved)], [np.zeros_like(moved)])
        return label_steps([(machine.lam, moved)], self.target, self.weight)

    def _ordered(self, lines: Lines, ties: list[Array]) -> StepCounts:
        return order_steps(lines, ties, OrderPairs.of(self.X, self.target, self.weight))

    def _voted(self, ballots: list[Ballot], way: int) -> StepCounts:
        return vote_steps(ballots, self.target, self.n_classes, way, self.weight)


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
