"""Kernel criteria as matrix products: on a CPU against compiled loops, and on a GPU.

    python -m benchmarks.gpu                  # ratios on one CPU thread
    python -m benchmarks.gpu --threads        # several CPU threads against one
    python -m benchmarks.gpu --device cuda    # seconds of one round, 20 000 x 2 000
    python -m benchmarks.gpu --device cuda --eliminations
    python -m benchmarks.gpu --device cuda --counts         # needs numba, for picks on the CPU

A round scores all columns once. On a device, rounds are timed after a warm-up, with
synchronisation. Some scores are compared with explicit kernel matrices without a column. The
benchmark runs from the sources, without numba:
``PYTHONPATH=src python3 -m benchmarks.gpu --device cuda``.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, pairwise, product
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import medians
from tamis._namespace import computing_on, host, namespace
from tamis.density.pairs import TargetKernel
from tamis.density.parzen import ObservedClass
from tamis.density.series.outputs import output_changes
from tamis.density.series.pairs import pair_changes
from tamis.density.series.rows import class_changes
from tamis.density.series.table import Alteration, ScaledColumns
from tamis.svm.kernels import Kernel
from tamis.svm.newton.solver import newton
from tamis.svm.newton.spaces import KernelSpace, SquaredLoss, kernel_matrix

#: Largest accepted seconds of one round with 20 000 rows and 2 000 columns, on one H200 in double
#: precision.
MUSTS = {
    "HSIC": 0.3,
    "Parzen, leave-one-out": 0.9,
    "FSPP2": 0.6,
    "delta-w2": 0.35,
    "NewtonSVC": 0.7,
}
#: Largest accepted seconds of whole eliminations on this table, with 10 % of the columns per step.
ELIMINATIONS = {
    "RecursiveElimination(HSIC(), step=0.1)": 6,
    "RecursiveElimination(ParzenInformation(sigma=8.0, leave_one_out=True), step=0.1)": 12,
    "RecursiveElimination(PosteriorSensitivity(NewtonSVC(), n_values=16, calibration=0.25, "
    "random_state=0), step=0.1)": 40,
    "RecursiveElimination(DensitySensitivity(NewtonSVR(epsilon=0.0), n_values=16), step=0.1)": 25,
    "RecursiveElimination(WeightNorm(NewtonSVC()), step=0.1)": 20,
}
#: Rows, columns and levels of tables of codes, and largest accepted seconds of 50 steps of mRMR.
COUNTS = [
    (1_000, 100_000, 3, 0.24),
    (1_000, 100_000, 10, 0.33),
    (1_000_000, 500, 3, 0.33),
    (1_000_000, 500, 10, 1.3),
]
N_PICKS = 50
#: Rows, columns, and smallest accepted ratio of compiled loops to matrix products, for HSIC on one
#: thread. The ratio depends on how fast a CPU multiplies matrices relative to exponentials. It is
#: 2.6 and 4.1 on an idle computer with 16 cores, and 1.4 and 3.6 on a busy one with two.
PROCESSOR_GOALS = [(2000, 200, 1.8), (2000, 1000, 3.0)]
#: Parzen information without the own term of each sample: rows, columns, width, smallest accepted
#: ratio.
PARZEN_GOALS = [(2000, 200, 8.0, 2.0)]
#: Number of threads, and smallest accepted speed-up over one thread.
THREAD_GOALS = {
    "HSIC, 2000 x 36": {2: 1.6},
    "HSIC, 8000 x 400": {2: 1.6},
    "Parzen information, 4000 x 200": {16: 6.0},
    "counts of mRMR, 1000 x 100000, 10 levels": {2: 1.6},
}
#: Minimum number of seconds of consecutive rounds with the same number of threads. The system takes
#: tens of milliseconds to move a second thread to its own core, and this happens once in a search.
LEAST_SECONDS = 0.5
#: Number of columns compared with explicit kernels, and number of new values of each column.
SAMPLED, N_POINTS = 3, 16
#: Largest difference, as a share of the largest change.
AGREEMENT = 1e-9


class Round(NamedTuple):
    """A round scores all columns once. ``explicit`` scores some of them without shortcuts."""

    name: str
    work: Callable[[], np.ndarray]
    explicit: Callable[[Any], np.ndarray]


class Problem:
    """Standard normal columns on a device, and two classes that depend on some of them."""

    def __init__(self, n_rows: int, n_columns: int, library: Any, device: str):
        draw = np.random.default_rng(0)
        X = draw.normal(size=(n_rows, n_columns))
        label = (X[:, :10].sum(axis=1) + draw.normal(size=n_rows) > 0).astype(int)
        order = np.argsort(label, kind="stable")
        self.label, self.counts = label[order], np.bincount(label).astype(float)
        self.library = library
        self.put = (lambda values: library.asarray(values, device=device)) if device else np.asarray
        self.X = self.put(np.ascontiguousarray(X[order]))
        self.sign = self.put(np.where(self.label == 1, 1.0, -1.0))
        self.everything = np.arange(n_columns)
        self.beta = self.put(draw.normal(size=n_rows) / n_rows)

    def waited(self) -> None:
        """Wait until the device has finished."""
        if hasattr(self.library, "cuda") and hasattr(self.X, "is_cuda") and self.X.is_cuda:
            self.library.cuda.synchronize()

    def seconds(self, work: Callable[[], Any]) -> float:
        """Return the shortest of three times after a warm-up, because other load only adds time."""
        work()
        found = []
        for _ in range(3):
            self.waited()
            start = perf_counter()
            work()
            self.waited()
            found.append(perf_counter() - start)
        return min(found)

    def rest(self, j: int, gamma: float) -> Any:
        """Return the kernel matrix without one column."""
        kept = self.put(np.delete(self.everything, j))
        rest = namespace(self.X).take(self.X, kept, axis=1)
        return kernel_matrix(Kernel("rbf", gamma), rest, rest)

    def hsic(self) -> Round:
        """Return a round of HSIC: the loss of every column, with gamma = 1 / 2d."""
        gamma = 1 / (2 * len(self.everything))
        target = TargetKernel(self.label, "classification", "gaussian", True)
        y, offset = self.put(target.y), self.put(target.offset)
        xp = namespace(self.X)

        def weights(rows: slice, columns: slice) -> Any:
            found = xp.astype(y[rows][:, None] == y[columns][None, :], xp.float64)
            found -= offset[rows][:, None]
            found -= offset[columns][None, :]
            return found

        return self._pairs("HSIC", gamma, weights)

    def norms(self) -> Round:
        """Return a round of the weight norm: β'Kβ without each column, with gamma = 1 / d."""
        beta = self.beta

        def weights(rows: slice, columns: slice) -> Any:
            return beta[rows][:, None] * beta[columns][None, :]

        return self._pairs("delta-w2", 1 / len(self.everything), weights)

    def _pairs(self, name: str, gamma: float, weights: Any) -> Round:
        all_rows = slice(0, self.X.shape[0])

        def work() -> np.ndarray:
            removed = Alteration(self.everything, self.everything, -1)
            return pair_changes(ScaledColumns(self.X, gamma), removed, weights).changes

        def explicit(j: int) -> float:
            xp, x = namespace(self.X), self.X[:, j]
            apart = x[:, None] - x[None, :]
            change = self.rest(j, gamma) * -xp.expm1(apart * apart * -gamma)
            return float(xp.sum(weights(all_rows, all_rows) * change))

        return Round(name, work, lambda some: np.array([explicit(int(j)) for j in some]))

    def parzen(self) -> Round:
        """Return a round of leave-one-out Parzen information: loss of every column, sigma = 8."""
        gamma, n = 1 / (2 * 8.0**2), self.X.shape[0]
        bounds = np.concatenate([[0], np.cumsum(self.counts)]).astype(int)
        codes = np.repeat(np.arange(2), np.diff(bounds))
        score = ObservedClass(codes, self.counts, True, self.X)
        removed = Alteration(self.everything, self.everything, -1)

        def work() -> np.ndarray:
            table = ScaledColumns(self.X, gamma)
            return class_changes(table, removed, bounds, score, others=True)[1] / n

        def information(K: Any) -> float:
            # the own term of a sample is set to 0 before the sum. Subtracting its 1 from the sum
            # would cancel the other terms if they are tiny
            xp, each = namespace(K), self.put(np.arange(n))
            K = xp.where(each[:, None] == each[None, :], 0 * K, K)
            sums = xp.stack([xp.sum(K[:, a:b], axis=1) for a, b in pairwise(bounds)], axis=1)
            return float(score.of_base(slice(0, n), xp.log(sums)))

        def explicit(some: Any) -> np.ndarray:
            before = information(kernel_matrix(Kernel("rbf", gamma), self.X, self.X))
            return np.array([information(self.rest(int(j), gamma)) - before for j in some]) / n

        return Round("Parzen, leave-one-out", work, explicit)

    def posterior(self) -> Round:
        """Return a round of sensitivities: mean change of the probability over quantiles."""
        gamma, xp = 1 / len(self.everything), namespace(self.X)
        kernel, n = Kernel("rbf", gamma), self.X.shape[0]
        levels = (np.arange(N_POINTS) + 0.5) / N_POINTS
        ranks = self.put((levels * n).astype(np.int64))
        points = xp.take(xp.sort(self.X, axis=0), ranks, axis=0)
        weights = (self.beta * self.X.shape[0] / 10)[:, None]

        def moved(f: Any, change: Any) -> Any:
            """Return |p(f + df) - p(f)| for p = 1 / (1 + exp(-2 f)), without cancellation."""
            p, grown = 1 / (1 + xp.exp(-2 * f)), xp.expm1(-2 * change)
            rest = (1 - p)[:, None, None]
            return xp.abs(p[:, None, None] * rest * grown / (1 + rest * grown))

        def work() -> np.ndarray:
            f = (kernel_matrix(kernel, self.X, self.X) @ weights)[:, 0]
            found = np.zeros(len(self.everything))
            for rows, columns, _, change in output_changes(
                self.X, self.X, weights, points, gamma=gamma
            ):
                found[columns] += host(xp.sum(moved(f[rows], change[0]), axis=(0, 2)))
            return found / (n * N_POINTS)

        def explicit(some: Any) -> np.ndarray:
            f = (kernel_matrix(kernel, self.X, self.X) @ weights)[:, 0]
            found = []
            for j in some:
                rest, x = self.rest(int(j), gamma), self.X[:, int(j)]
                own = x[None, :] - points[:, int(j)][:, None]
                new = rest @ (weights * xp.exp(-gamma * own * own).T)
                found.append(float(xp.mean(moved(f, (new - f[:, None])[:, None, :]))))
            return np.array(found)

        return Round("FSPP2", work, explicit)

    def machine(self) -> tuple[float, int]:
        """Return the seconds of training with C = 1, including the kernel, and the steps."""
        xp, gamma = namespace(self.X), 1 / self.X.shape[1]
        half = 0.5 * xp.ones_like(self.sign)
        steps = []

        def work() -> None:
            K = kernel_matrix(Kernel("rbf", gamma), self.X, self.X)
            loss = SquaredLoss(self.sign, one_sided=True)
            found = newton(KernelSpace(K), half, loss, intercept=True, most_steps=50)
            steps.append(found.n_steps if found.converged else -1)

        return self.seconds(work), steps[-1]


def on_device(options: Namespace) -> list[str]:
    """Print the seconds of each round. Return missed goals and results that differ."""
    import torch

    missed, usual = [], (options.rows, options.columns) == (20_000, 2_000)
    problem = Problem(options.rows, options.columns, torch, options.device)
    what = torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device
    print(f"{what}, torch {torch.__version__}, {options.rows} x {options.columns}, float64")
    for one in (problem.hsic(), problem.parzen(), problem.posterior(), problem.norms()):
        seconds = problem.seconds(one.work)
        found = one.work()
        some = problem.everything[:: max(1, options.columns // SAMPLED)][:SAMPLED]
        error = np.abs(found[some] - one.explicit(some)).max() / np.abs(found).max()
        print(f"  {one.name}: {seconds:.3f} s (must {MUSTS[one.name]}), difference {error:.0e}")
        if usual and seconds > MUSTS[one.name]:
            missed.append(f"{one.name}: too slow")
        if not error <= AGREEMENT:
            missed.append(f"{one.name}: different")
    seconds, steps = problem.machine()
    print(f"  NewtonSVC, C=1: {seconds:.3f} s, {steps} steps (must {MUSTS['NewtonSVC']})")
    if (usual and seconds > MUSTS["NewtonSVC"]) or steps < 0:
        missed.append("NewtonSVC: too slow, or not converged")
    return missed


def whole_eliminations(options: Namespace) -> list[str]:
    """Print the seconds of whole eliminations on a device. Return missed goals."""
    from tamis import select

    missed, usual = [], (options.rows, options.columns) == (20_000, 2_000)
    draw = np.random.default_rng(0)
    X = np.asfortranarray(draw.normal(size=(options.rows, options.columns)))
    y = X[:, :10].sum(axis=1) + draw.normal(size=options.rows)
    for method, goal in ELIMINATIONS.items():
        target = y if "SVR" in method else y > 0
        select(X[:200], target[:200], method, n_features_to_select=10, device=options.device)
        start = perf_counter()
        found = select(X, target, method, n_features_to_select=10, device=options.device)
        seconds, record = perf_counter() - start, found.record_
        print(
            f"  {method}: {seconds:.1f} s in all, {record.seconds:.1f} s in {len(record.trace)} "
            f"steps (must {goal}), {int(found.get_support()[:10].sum())} of 10 relevant columns "
            f"kept. {record.places}"
        )
        if usual and record.seconds > goal:
            missed.append(f"{method}: too slow")
    return missed


def picks_of_counts(options: Namespace) -> list[str]:
    """Print the seconds of mRMR steps on a device. Return missed goals and results that differ."""
    from tamis.criteria import MRMR

    missed, draw = [], np.random.default_rng(0)
    for n_rows, n_columns, n_levels, goal in COUNTS:
        X = np.asfortranarray(draw.integers(n_levels, size=(n_rows, n_columns)), dtype=float)
        y = (X[:, 0] + X[:, 1] + draw.normal(size=n_rows) > n_levels - 1).astype(int)
        with computing_on(options.device):
            there = MRMR(binning="codes").fit(X, y)
            found, seconds = picked(there), []
            for _ in range(3):
                start = perf_counter()
                same = picked(there) == found
                seconds.append(perf_counter() - start)
        same = same and found == picked(MRMR(binning="codes").fit(X, y))
        what = f"mRMR, {N_PICKS} of {n_columns}, {n_rows} rows, {n_levels} levels"
        print(f"  {what}: {min(seconds):.3f} s (must {goal}){'' if same else ', other picks'}")
        if min(seconds) > goal or not same:
            missed.append(f"{what}: too slow, or other picks")
    return missed


def picked(criterion: Any) -> list[int]:
    """Return the columns that a forward search selects. Ties go to the lowest index."""
    criterion.gain(np.array([0, 1]), np.array([2]))  # clears what is cached for earlier subsets
    chosen: list[int] = []
    rest = np.arange(len(criterion.relevance_))
    for _ in range(N_PICKS):
        best = int(criterion.gain(np.sort(chosen).astype(np.intp), rest).argmax())
        chosen.append(int(rest[best]))
        rest = np.delete(rest, best)
    return chosen


@contextmanager
def one_by_one() -> Any:
    """Score every column by compiled loops over rows."""
    from tamis.density import sums

    before, sums.LEAST_TOGETHER = sums.LEAST_TOGETHER, sys.maxsize
    try:
        yield
    finally:
        sums.LEAST_TOGETHER = before


def on_processor() -> list[str]:
    """Print the ratios of compiled loops to matrix products. Return missed goals."""
    from tamis.criteria import HSIC, ParzenInformation

    print("kernel sums of all columns, processor seconds on one thread")
    missed, draw = [], np.random.default_rng(0)
    cases = [(HSIC(), n, d, goal) for n, d, goal in PROCESSOR_GOALS]
    cases += [
        (ParzenInformation(sigma=sigma, leave_one_out=True), n, d, goal)
        for n, d, sigma, goal in PARZEN_GOALS
    ]
    for criterion, n, d, goal in cases:
        X, y = np.asfortranarray(draw.normal(size=(n, d))), draw.integers(2, size=n)
        fitted, everything = criterion.fit(X, y), np.arange(d)

        def by_rows(fitted: Any = fitted, everything: Any = everything) -> np.ndarray:
            with one_by_one():
                return fitted.loss(everything)

        slow, fast = medians(by_rows, lambda f=fitted, e=everything: f.loss(e))
        error = np.abs(by_rows() - fitted.loss(everything)).max() / np.abs(by_rows()).max()
        name = type(criterion).__name__
        print(
            f"  {name}, {d} columns, {n} samples: rows {slow:.3f} s, products {fast:.3f} s, ratio "
            f"{slow / fast:.2f} (goal {goal}), difference {error:.0e}"
        )
        if slow / fast < goal or error > AGREEMENT:
            missed.append(f"{name}, {d} columns: slower than promised, or different")
    return missed


def rounds_by_threads() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield a round of each criterion whose loops run in several threads."""
    from tamis.criteria import HSIC, MRMR, ParzenInformation

    draw = np.random.default_rng(0)

    def of(criterion: Any, n: int, d: int) -> Callable[[], object]:
        fitted = criterion.fit(draw.normal(size=(n, d)), draw.integers(2, size=n))
        return lambda: fitted.loss(np.arange(d))

    parzen = ParzenInformation(sigma=8.0, leave_one_out=True)
    codes = draw.integers(10, size=(1000, 100_000)).astype(float)
    mrmr, picks = MRMR(binning="codes").fit(codes, draw.integers(2, size=1000)), count()
    # a different column each time, because the counts of a column with all others are cached
    counts = lambda: mrmr.gain(np.array([next(picks)]), np.array([99_999]))  # noqa: E731
    rounds = [of(HSIC(), 2000, 36), of(HSIC(), 8000, 400), of(parzen, 4000, 200), counts]
    yield from zip(THREAD_GOALS, rounds, strict=True)


@threadpool_limits.wrap(limits=1, user_api="blas")  # one thread is one thread of BLAS too
def by_threads() -> list[str]:
    """Print the speed-up of several threads over one thread. Return missed goals."""
    print("seconds of one round, medians of five")
    missed, before = [], os.environ.get("OMP_NUM_THREADS")
    for name, work in rounds_by_threads():
        taken: dict[int, list[float]] = {n: [] for n in (1, 2, 16) if n <= (os.cpu_count() or 1)}
        work()
        for _, n in product(range(5), taken):
            os.environ["OMP_NUM_THREADS"] = str(n)
            start, n_rounds = perf_counter(), 0
            while n_rounds == 0 or perf_counter() - start < LEAST_SECONDS:
                work()
                n_rounds += 1
            taken[n].append((perf_counter() - start) / n_rounds)
        seconds = {n: float(np.median(times)) for n, times in taken.items()}
        told = ", ".join(
            f"{n}: {took:.4f} ({seconds[1] / took:.2f})" for n, took in seconds.items()
        )
        print(f"  {name}: {told}, goal {THREAD_GOALS[name]}")
        for n, goal in THREAD_GOALS[name].items():
            if n in seconds and seconds[1] / seconds[n] < goal:
                missed.append(f"{name}: {n} threads gain less than promised")
    if before is None:
        del os.environ["OMP_NUM_THREADS"]
    else:
        os.environ["OMP_NUM_THREADS"] = before
    return missed


def main(arguments: list[str] | None = None) -> None:
    """Print the figures; exit with an error if one misses its goal."""
    parser = ArgumentParser(prog="python -m benchmarks.gpu")
    parser.add_argument("--device", help="such as cuda, or cpu for torch on the processor")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=2_000)
    parser.add_argument(
        "--eliminations", action="store_true", help="time whole eliminations on a device"
    )
    parser.add_argument("--counts", action="store_true", help="time steps of mRMR on a device")
    parser.add_argument("--threads", action="store_true", help="time several CPU threads")
    options = parser.parse_args(arguments or [])
    if options.threads:
        missed = by_threads()
    elif options.counts:
        missed = picks_of_counts(options)
    elif options.eliminations:
        missed = whole_eliminations(options)
    else:
        missed = on_device(options) if options.device else on_processor()
    if missed:
        raise SystemExit("; ".join(missed))


if __name__ == "__main__":
    main(sys.argv[1:])
