"""Forward selection by cross-validation, against scikit-learn's SequentialFeatureSelector.

python -m benchmarks.wrappers
"""

import warnings

from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from benchmarks import compare, medians
from tamis.criteria.validation import CrossValidated
from tamis.search import Forward

SIZE = 10
#: Smallest accepted ratio.
GOALS = {"LDA": 248, "5-NN": 30}
ESTIMATORS = {"LDA": LinearDiscriminantAnalysis(), "5-NN": KNeighborsClassifier()}


def ratio(name: str, estimator: BaseEstimator, repeats: int = 5) -> list[str]:
    """Print both times and their ratio. Return a sentence if the ratio is too small."""
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    theirs = SequentialFeatureSelector(estimator, n_features_to_select=SIZE, cv=5)
    ours = Forward(CrossValidated(estimator, cv=5, ties="index"), n_features_to_select=SIZE)
    slow, fast = medians(lambda: theirs.fit(X, y), lambda: ours.fit(X, y), repeats=repeats)
    same = bool((theirs.support_ == ours.support_).all())
    task = f"forward, {SIZE} of 30 by 5-fold {name}, 569 rows"
    return compare(task, "scikit-learn", slow, fast, GOALS[name], same)


def main(repeats: int = 5) -> None:
    """Print the ratios; exit with an error if one misses its goal."""
    with warnings.catch_warnings(action="ignore"):  # scores are tied, which is a result
        missed = [what for name, e in ESTIMATORS.items() for what in ratio(name, e, repeats)]
    if missed:
        raise SystemExit("; ".join(missed))


def short() -> None:
    """Measure once."""
    main(repeats=1)


if __name__ == "__main__":
    main()
