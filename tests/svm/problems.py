"""Problems for the tests: easy, exactly representable in single precision, and degenerate."""

import os

import numpy as np
import pytest
from sklearn.datasets import make_classification


def classification(n=120, d=6, seed=0, **options):
    """Return a problem whose linear kernel is exact in single precision."""
    X, y = make_classification(
        n, d, n_informative=3, n_redundant=1, flip_y=0.1, random_state=seed, **options
    )
    return np.round(16 * X) / 16, y


def single(K):
    """Round a kernel to single precision, as LIBSVM does."""
    return K.astype(np.float32).astype(np.float64)


def degenerate(seed):
    """Return a problem with small integers, near duplicates, contradictions and few samples."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 60)), int(rng.integers(1, 6))
    if rng.random() < 0.6:
        X = rng.integers(0, rng.integers(2, 5), (n, d)).astype(float)
    else:
        X = rng.normal(size=(n, d))
    kind = rng.integers(0, 4)
    if kind in (1, 2):
        copies = X[rng.integers(0, n, n // 2)]
        X = np.vstack([X, copies + (kind == 2) * 1e-7 * rng.normal(size=copies.shape)])
    n = len(X)
    y = (rng.random(n) < rng.choice([0.5, 0.2, 0.03])).astype(int)
    if rng.random() < 0.3:
        y = (X[:, 0] > np.median(X[:, 0])).astype(int)
    y[0], y[1] = 1, 0
    kernel = rng.choice(["linear", "rbf"])
    return X, y, str(kernel), float(10 ** rng.uniform(-3, 1))


def published(name):
    """Return a published data set from the folder TAMIS_DATA."""
    folder = os.environ.get("TAMIS_DATA")
    if not folder:
        pytest.skip("TAMIS_DATA does not name a folder with the benchmark data sets")
    data = np.load(os.path.join(folder, f"{name}.npz"))
    return data["X"].astype(float), data["y"]
