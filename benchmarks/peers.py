"""Other selectors compared with ours on tables with known relevant columns.

    python -m benchmarks.peers

Each line is one table: relevant columns found, irrelevant columns selected, and processor seconds
of one thread, for the other library first. Both sides get the same tables. They are given the
number of relevant columns, or determine it themselves. Libraries that are not installed are skipped
with a message.
"""

import warnings
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from statistics import mean
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import RFECV, SelectFromModel, mutual_info_classif
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import scale
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import tamis
from tamis.criteria import CrossValidated, Importances, MutualInformation
from tamis.meta import HonestSize, Knockoffs
from tamis.search import FloatingForward, Ranking

Columns = Iterable[int]
Select = Callable[[np.ndarray, np.ndarray], Columns]


class Duel(NamedTuple):
    """A selector of another library, the corresponding one of tamis, and a kind of table."""

    task: str
    peer: str
    needs: str
    theirs: Select
    ours: Select
    make: Callable[[int], tuple[np.ndarray, np.ndarray, set[int]]]
    draws: int = 3


def linear(seed: int, n: int = 300, d: int = 100) -> tuple[np.ndarray, np.ndarray, set[int]]:
    """Return two classes that depend on the sum of ten of a hundred correlated columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 0.5 * rng.normal(size=(n, 1))
    relevant = set(range(0, d, d // 10))
    score = X[:, sorted(relevant)].sum(axis=1)
    y = score + rng.normal(size=n) > np.median(score)
    return X, y.astype(int), relevant


def long(seed: int) -> tuple[np.ndarray, np.ndarray, set[int]]:
    """Return a linear table of 600 rows and 40 columns. Knockoffs need ten rows per column."""
    return linear(seed, 600, 40)


def paired(seed: int, n: int = 300, d: int = 30) -> tuple[np.ndarray, np.ndarray, set[int]]:
    """Return two classes that are the XOR of two of thirty columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 3] * X[:, 17] > 0).astype(int), {3, 17}


def cancer(seed: int) -> tuple[np.ndarray, np.ndarray, set[int]]:
    """Return the breast cancer table, whose relevant columns are not known."""
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y, set()


def best(scores: Any, n: int) -> Columns:
    """Return the columns with the greatest scores."""
    return np.argsort(-np.asarray(scores), kind="stable")[:n].tolist()


def named(name: str, n: int) -> Select:
    """Return a recipe of tamis that selects n columns."""
    return lambda X, y: tamis.select(X, y, name, n_features_to_select=n, random_state=0).columns


def mlxtend_floating(estimator: Any) -> Select:
    """Run the floating forward search of mlxtend."""

    def select(X: np.ndarray, y: np.ndarray) -> Columns:
        from mlxtend.feature_selection import SequentialFeatureSelector

        search = SequentialFeatureSelector(estimator, k_features=6, floating=True, cv=5)
        return list(search.fit(X, y).k_feature_idx_)

    return select


def floating(estimator: Any) -> Select:
    """Run the floating forward search of tamis."""
    search = FloatingForward(CrossValidated(estimator, cv=5), n_features_to_select=6)
    return lambda X, y: search.fit(X, y).columns


def boruta(X: np.ndarray, y: np.ndarray) -> Columns:
    """Run BorutaPy with a forest of 100 trees and 50 iterations."""
    from boruta import BorutaPy

    forest = RandomForestClassifier(100, random_state=0)
    found = BorutaPy(forest, n_estimators=100, max_iter=50, random_state=0).fit(X, y)
    return np.flatnonzero(found.support_).tolist()


def relief(name: str) -> Select:
    """Run ReliefF or MultiSURF of skrebate, and select two columns."""

    def select(X: np.ndarray, y: np.ndarray) -> Columns:
        import skrebate

        return best(getattr(skrebate, name)().fit(X, y).feature_importances_, 2)

    return select


def knockpy(X: np.ndarray, y: np.ndarray) -> Columns:
    """Run Gaussian knockoffs of knockpy with ridge weights and a false discovery rate of 0.2."""
    from knockpy import KnockoffFilter

    knockoffs = KnockoffFilter(ksampler="gaussian", fstat="ridge")
    return np.flatnonzero(knockoffs.forward(X=X, y=y.astype(float), fdr=0.2)).tolist()


def rfecv(X: np.ndarray, y: np.ndarray) -> Columns:
    """Run scikit-learn's RFECV with a linear SVM."""
    return np.flatnonzero(RFECV(SVC(kernel="linear"), step=0.1).fit(X, y).support_).tolist()


def lasso(X: np.ndarray, y: np.ndarray) -> Columns:
    """Select the ten largest coefficients of a logistic regression with an L1 penalty."""
    model = LogisticRegression(l1_ratio=1.0, solver="saga", C=0.1, max_iter=2000)
    found = SelectFromModel(model, max_features=10, threshold=-np.inf).fit(X, y)
    return np.flatnonzero(found.get_support()).tolist()


def mutual(X: np.ndarray, y: np.ndarray) -> Columns:
    """Select the ten columns with the greatest mutual information, estimated by scikit-learn."""
    return best(mutual_info_classif(X, y, random_state=0), 10)


def own(selection: Any) -> Select:
    """Run a selection of tamis that determines the number of columns."""
    return lambda X, y: selection.fit(X, y).columns


DUELS = [
    Duel("10 of 100, one by one", "mutual_info_classif", "sklearn", mutual,
         own(Ranking(MutualInformation(), n_features_to_select=10)), linear),
    Duel("10 of 100, a linear model", "SelectFromModel", "sklearn", lasso,
         named("svm-rfe", 10), linear),
    Duel("10 of 100, size by itself", "RFECV", "sklearn", rfecv,
         own(HonestSize(tamis.recipe("svm-rfe"), random_state=0)), linear),
    Duel("10 of 100, all relevant", "BorutaPy", "boruta", boruta,
         own(tamis.recipe("boruta").set_params(random_state=0)), linear),
    Duel("10 of 40, knockoffs", "knockpy", "knockpy", knockpy,
         own(Knockoffs(Ranking(Importances(RidgeClassifier())), fdr=0.2, random_state=0)),
         long, 10),
    Duel("a pair of 30", "ReliefF", "skrebate", relief("ReliefF"), named("pair-scan", 2), paired),
    Duel("a pair of 30", "MultiSURF", "skrebate", relief("MultiSURF"),
         named("fspp2-rfe", 2), paired),
    Duel("floating, 6 of 30 by LDA", "mlxtend", "mlxtend",
         mlxtend_floating(LinearDiscriminantAnalysis()),
         floating(LinearDiscriminantAnalysis()), cancer, 1),
    Duel("floating, 6 of 30 by naive Bayes", "mlxtend", "mlxtend",
         mlxtend_floating(GaussianNB()), floating(GaussianNB()), cancer, 1),
]  # fmt: skip


def timed(select: Select, X: np.ndarray, y: np.ndarray) -> tuple[set[int], float]:
    """Return the selected columns, and the processor seconds."""
    start = process_time()
    chosen = {int(column) for column in select(X, y)}
    return chosen, process_time() - start


def outcome(duel: Duel) -> str:
    """Run both sides alternately on the same tables, after one run of tamis for compilation."""
    if find_spec(duel.needs) is None:
        return f"{duel.task:34}{duel.peer} is not installed"
    duel.ours(*duel.make(99)[:2])
    sides: list[list[tuple[int, int, float, set[int]]]] = [[], []]
    for draw in range(duel.draws):
        X, y, relevant = duel.make(draw)
        for side, select in zip(sides, (duel.theirs, duel.ours), strict=True):
            chosen, seconds = timed(select, X, y)
            side.append((len(chosen & relevant), len(chosen - relevant), seconds, chosen))
    words = []
    for side in sides:
        found, others, seconds = (mean(row[i] for row in side) for i in range(3))
        kept = f"found {found:4.1f}, others {others:4.1f}" if relevant else ""
        words.append(f"{kept:26}{seconds:8.3f} s")
    same = "" if relevant else "  same set" if sides[0][0][3] == sides[1][0][3] else "  another set"
    ratio = mean(row[2] for row in sides[0]) / mean(row[2] for row in sides[1])
    return f"{duel.task:34}{duel.peer:20}{words[0]}   tamis {words[1]}   ratio {ratio:7.2f}{same}"


def main() -> None:
    """Print a line for every comparison. There are no goals."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for duel in DUELS:
            print(outcome(duel), flush=True)


if __name__ == "__main__":
    main()
