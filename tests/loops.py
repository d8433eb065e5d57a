"""Compile the loops once, while the linters run.

Otherwise both test workers would compile them. Run by `make test` in a checkout with an empty
cache. With a full cache this takes some seconds.
"""

import warnings

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from tamis.blocks import MemoryMap
from tamis.compiled import thresholds
from tamis.criteria import PosteriorSensitivity
from tamis.recipes import recipe
from tamis.search import RecursiveElimination
from tamis.svm import SVCPathCV, SVRPathCV


def tables():
    """Return two classes and a numeric target of the same few columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 18))
    return X, (X[:, :3].sum(axis=1) > 0).astype(int), X[:, :3].sum(axis=1)


def uses(classes, target):
    """Yield selections that use the loops, each with its target."""
    for kernel in ("linear", "rbf"):
        yield SVCPathCV(kernel, cv=3), classes
    yield SVRPathCV("rbf", cv=3), target
    for forest in (RandomForestClassifier(5), HistGradientBoostingClassifier(max_iter=3)):
        for by in ("marginal", "permutation", "zero"):
            yield RecursiveElimination(PosteriorSensitivity(forest, by=by), step=0.5), classes
    for name in ("svm-rfe", "sfs-knn", "mi-pw", "kwak", "jmi", "hsic-rfe"):
        yield recipe(name), classes


def blocks(X, classes, target):
    """Yield tables in row blocks, with classes and with a numeric target."""
    for y in (classes, target):
        yield recipe("mrmr"), MemoryMap(X, y)


def main():
    """Fit all of them."""
    thresholds.COUNTED_ENTRIES = thresholds.KERNEL_TERMS = 0
    warnings.simplefilter("ignore")  # about SVMs that are trained for few steps
    X, classes, target = tables()
    for use, y in uses(classes, target):
        use.fit(X, y)
    for use, table in blocks(X, classes, target):
        use.fit(table)


if __name__ == "__main__":
    main()
