"""Folds of rows, held-out losses, and fast cross-validation of LDA and k nearest neighbours.

:mod:`tamis.validation.splits` and :mod:`tamis.validation.resamples` make the folds. The modules
``lda``, ``knn`` and ``block_lda`` each compute the accuracy of a scikit-learn classifier for all
candidates of a search step, without training it for every subset.
"""

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset

Rows: TypeAlias = NDArray[np.intp]
Splits: TypeAlias = "list[tuple[Rows, Rows]]"


class FoldAccuracies(Protocol):
    """Cross-validated accuracy of a classifier for all candidates of a search step.

    Each value is exactly the same as with scikit-learn. If rounding could change it, it is nan, and
    scikit-learn must compute it.
    """

    #: The table on which scikit-learn's classifier is trained if a value is nan.
    X: Array

    def essential(self, subset: Subset) -> Subset:
        """Return the columns of the subset that the classifier uses, without those it drops."""

    def untrainable(self, subset: Subset) -> Array:
        """Return an accuracy for each fold in which the classifier cannot be trained.

        The value is nan for every other fold.
        """

    def value(self, subset: Subset) -> float:
        """Return the mean accuracy of a subset over the folds."""

    def grown(self, subset: Subset, candidates: Subset) -> Array:
        """Return the mean accuracy of the subset with each candidate added."""

    def shrunk(self, subset: Subset) -> Array:
        """Return the mean accuracy of the subset with each of its members removed."""

    def losses(self, subset: Subset, units: Subset, *, entering: bool) -> Array:
        """Return the mean squared loss of the probabilities with each unit added or removed.

        Each value agrees with scikit-learn to nine decimal places, or is nan if that is uncertain.
        """


def most_frequent(codes: Rows, splits: Splits) -> float:
    """Return the mean accuracy over the folds of predicting the most frequent class.

    Ties go to the first class.
    """
    hits = [(codes[test] == np.bincount(codes[train]).argmax()).mean() for train, test in splits]
    return float(np.mean(hits))
