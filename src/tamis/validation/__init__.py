"""Folds of rows, and cross-validated accuracy of known classifiers for a whole step together.

:mod:`tamis.validation.splits` makes the folds. Each of the other modules knows one classifier of
scikit-learn well enough to give its accuracy to the last hit without training it anew for every
subset.
"""

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array, Subset

Rows: TypeAlias = NDArray[np.intp]
Splits: TypeAlias = "list[tuple[Rows, Rows]]"


class FoldAccuracies(Protocol):
    """Accuracies of one kind of classifier, all candidates of a step together.

    They are scikit-learn's to the last hit, or nan where that cannot be promised.
    """

    #: The table on which the classifier itself is to be asked.
    X: Array

    def essential(self, subset: Subset) -> Subset:
        """The columns that the classifier does not leave out as constant."""

    def untrainable(self, subset: Subset) -> Array:
        """Accuracy in each fold where the classifier cannot be trained, nan where it can."""

    def value(self, subset: Subset) -> float:
        """Mean accuracy of one subset."""

    def grown(self, subset: Subset, candidates: Subset) -> Array:
        """Mean accuracy of the subset and each candidate."""

    def shrunk(self, subset: Subset) -> Array:
        """Mean accuracy of the subset without each of its members."""

    def losses(self, subset: Subset, units: Subset, *, entering: bool) -> Array:
        """Mean squared loss of the probabilities once each of the units has entered, or left.

        It is scikit-learn's in nine digits behind the point, or nan where that is not certain.
        """


def most_frequent(codes: Rows, splits: Splits) -> float:
    """Mean accuracy of always answering the most frequent class, of equals the first."""
    hits = [(codes[test] == np.bincount(codes[train]).argmax()).mean() for train, test in splits]
    return float(np.mean(hits))
