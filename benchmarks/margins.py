"""Weight norms of an SVM without each column, and the smallest sphere, against direct computation.

For the norms, tamis updates one kernel matrix for all columns. The direct way is a new kernel
matrix for each column. For the sphere, a solver on the simplex is compared with a general solver
of quadratic programs (cvxopt).

python -m benchmarks.margins
"""

from itertools import islice
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from benchmarks import medians
from tamis.criteria import WeightNorm
from tamis.svm.columns import ColumnKernel
from tamis.svm.geometry import sphere_around
from tamis.svm.machine import kernel_machine, multipliers

N_SAMPLES, N_FEATURES = 2000, 500
#: Number of columns for which explicit kernels are built. The time is scaled up to all columns.
SAMPLED = 25
#: Number of points in the sphere, and number of their columns.
N_POINTS, DIMENSION = 2000, 10
#: Smallest accepted ratios: norms, norms including training, spheres.
GOALS = (30, 15, 10)


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return classes that depend weakly on every column, so that most rows are support vectors."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(N_SAMPLES, N_FEATURES))
    return X, (X @ draw.normal(size=N_FEATURES) > 0).astype(int)


def explicit_norms(model: Any, X: np.ndarray) -> np.ndarray:
    """Return the norms without some columns, from a new kernel matrix for each column."""
    beta, rows = model.dual_coef_[0], X[model.support_]
    kernels = (
        rbf_kernel(np.delete(rows, j, axis=1), gamma=1 / (X.shape[1] * X.var()))
        for j in range(N_FEATURES)
    )
    return np.array([beta @ K @ beta for K in islice(kernels, SAMPLED)])


def updated_norms(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the norm without each column, from one kernel matrix for all."""
    machine = multipliers(model, y)[0].on_support()
    columns = ColumnKernel(kernel_machine(model).kernel, X[machine.rows])
    return machine.beta @ columns.K @ machine.beta - columns.lost(machine.beta)


def norms() -> list[str]:
    """Print the ratios for the norms. Return missed goals."""
    X, y = data()
    model = SVC().fit(X, y)
    judge, everything = WeightNorm(SVC()).fit(X, y), np.arange(N_FEATURES)
    slow, fast, trained = medians(
        lambda: explicit_norms(model, X),
        lambda: updated_norms(model, X, y),
        lambda: judge.loss(everything),
    )
    slow *= N_FEATURES / SAMPLED
    expected = explicit_norms(model, X)
    error = np.abs(updated_norms(model, X, y)[:SAMPLED] / expected - 1).max()
    print(
        f"norm without each of {N_FEATURES} columns, {len(model.support_)} support vectors: a "
        f"kernel a column {slow:.1f} s, tamis {fast:.3f} s, ratio {slow / fast:.0f} (goal "
        f"{GOALS[0]}); with the training of the SVM {trained:.2f} s, ratio "
        f"{slow / trained:.0f} (goal {GOALS[1]}); largest relative difference {error:.0e}"
    )
    good = slow / fast >= GOALS[0] and slow / trained >= GOALS[1] and error < 1e-9
    return [] if good else ["norms: slower than promised"]


def general_sphere(K: np.ndarray) -> float:
    """Return the squared radius, found by a general interior-point solver."""
    from cvxopt import matrix, solvers

    n = len(K)
    precise = {"show_progress": False, "abstol": 1e-8, "reltol": 1e-8, "feastol": 1e-8}
    found = solvers.qp(
        matrix(2 * K),
        matrix(-K.diagonal()),
        matrix(-np.eye(n)),
        matrix(np.zeros(n)),
        matrix(np.ones((1, n))),
        matrix(1.0),
        options=precise,
    )
    return -float(found["primal objective"])


def spheres() -> list[str]:
    """Print the ratio for the sphere. Return missed goals."""
    points = np.random.default_rng(0).normal(size=(N_POINTS, DIMENSION))
    K = rbf_kernel(points, gamma=1 / DIMENSION)
    slow, fast = medians(lambda: general_sphere(K), lambda: sphere_around(K))
    radius2, g = sphere_around(K)
    excess = (K.diagonal() - 2 * K @ g + g @ K @ g).max() - radius2
    print(
        f"smallest sphere around {N_POINTS} points: cvxopt {slow:.2f} s, tamis {fast:.4f} s, ratio "
        f"{slow / fast:.0f} (goal {GOALS[2]}), excess {excess:.0e}"
    )
    return [] if slow / fast >= GOALS[2] and excess < 1e-8 else ["spheres: slower than promised"]


def main() -> None:
    """Print the ratios; exit with an error if one misses its goal."""
    missed = norms() + spheres()
    if missed:
        raise SystemExit("; ".join(missed))


if __name__ == "__main__":
    main()
