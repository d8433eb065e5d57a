"""Forward selection by cross-validation, against scikit-learn's SequentialFeatureSelector.

python -m benchmarks.wrappers
"""

from sklearn.base import BaseEstimator
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from benchmarks import medians
from tamis.criteria.validation import CrossValidated
from tamis.search import Forward

SIZE = 10
#: The least ratio that is accepted.
GOALS = {"LDA": 100, "5-NN": 15}
ESTIMATORS = {"LDA": LinearDiscriminantAnalysis(), "5-NN": KNeighborsClassifier()}


def ratio(name: str, estimator: BaseEstimator, repeats: int = 3) -> float:
    """Print both times, and return their ratio."""
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    theirs = SequentialFeatureSelector(estimator, n_features_to_select=SIZE, cv=5)
    ours = Forward(CrossValidated(estimator, cv=5), n_features_to_select=SIZE)
    slow, fast = medians(lambda: theirs.fit(X, y), lambda: ours.fit(X, y), repeats=repeats)
    same = "same" if (theirs.support_ == ours.support_).all() else "another"
    print(
        f"forward {SIZE} of 30 by 5-fold {name}: scikit-learn {slow:.2f} s, tamis {fast:.4f} s, "
        f"ratio {slow / fast:.0f} (goal {GOALS[name]}), {same} set"
    )
    return slow / fast


def main() -> None:
    """Print the ratios; exit with an error if one misses its goal."""
    short = [name for name, e in ESTIMATORS.items() if ratio(name, e) < GOALS[name]]
    if short:
        raise SystemExit(f"slower than promised: {', '.join(short)}")


if __name__ == "__main__":
    main()
