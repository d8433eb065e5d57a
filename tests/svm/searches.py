"""Random searches along paths by number, compared with GridSearchCV with the same arguments.

Run ``python -m tests.svm.searches [first] [count]``. A closed certificate must not be beaten by any
C of a grid, and the score at the best C must agree with GridSearchCV. LIBSVM stores kernel values
in single precision, so a difference counts only if no decision value near 0 (or pair of nearly
equal ones) can explain it. LSSVCPathCV is compared with dense solves of every fold.
"""

import sys
import warnings
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.feature_selection import SelectKBest, f_classif, f_regression
from sklearn.metrics import get_scorer
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    check_cv,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC, SVR

from tamis.exceptions import NotCertified, TamisError
from tamis.svm import LSSVCPathCV, SVCPathCV, SVRPathCV
from tamis.svm.curves.scores import SCORES
from tamis.svm.machine import multipliers

CLOSE = 1e-4  # decision values, or differences, whose sign LIBSVM may get wrong
NEAR = 1e-4  # relative difference of regression errors due to LIBSVM
N_GRID = 9


@dataclass
class Trial:
    """A search and the data that it is fitted to."""

    search: object
    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None
    machine: object = None  # the peer's
    arguments: dict = field(default_factory=dict)  # of fit

    @property
    def described(self):
        options = {k: v for k, v in self.search.get_params(deep=False).items() if k != "cv"}
        weighted = "weights" if self.weight is not None else "no weights"
        return f"{type(self.search).__name__} {options} {type(self.search.cv).__name__} {weighted}"


def folds(rng, n, y, groups, classifier):
    """Return folds in one of the forms that scikit-learn accepts."""
    kind = rng.choice(["number", "splitter", "indices", "masks", "groups", "repeated", "shuffled"])
    seed = int(rng.integers(1000))
    if kind == "number":
        return int(rng.integers(2, 4))
    if kind == "groups":
        return GroupKFold(3)
    whole = StratifiedKFold if classifier else KFold
    if kind == "splitter":
        return whole(3, shuffle=True, random_state=seed)
    if kind == "repeated" and classifier:
        return RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=seed)
    if kind == "shuffled":
        part = StratifiedShuffleSplit if classifier else ShuffleSplit
        return part(2, test_size=0.3, random_state=seed)
    given = list(whole(2, shuffle=True, random_state=seed).split(np.zeros(n), y))
    if kind == "masks":
        rows = np.arange(n)
        return [(np.isin(rows, a), np.isin(rows, b)) for a, b in given]
    return [(a.tolist(), b - n) for a, b in given]  # rows counted from the end


def numbers(rng, kernel):
    """Return kernel options."""
    gamma = [str(rng.choice(["scale", "auto"])), float(2.0 ** rng.integers(-4, 1))]
    chosen = gamma if rng.random() < 0.2 else gamma[int(rng.integers(2))]
    return {
        "gamma": chosen,
        "degree": int(rng.integers(1, 4)),
        "coef0": float(rng.choice([0.0, 1.0])),
        "C_range": (2.0 ** int(rng.integers(-6, -1)), 2.0 ** int(rng.integers(1, 6))),
    }


def weights(rng, n):
    """Return sample weights of some kind."""
    return {
        "none": None,
        "equal": np.full(n, 3.0),
        "whole": rng.integers(1, 4, n).astype(float),
        "any": rng.uniform(0.1, 3.0, n),
        "zeros": rng.integers(0, 3, n).astype(float),
        "wide": 10.0 ** rng.uniform(-3, 2, n),
    }[str(rng.choice(["none", "none", "equal", "whole", "any", "zeros", "wide"]))]


def trial(seed):
    """Return the trial with this number."""
    rng = np.random.default_rng([7, seed])
    kind = str(rng.choice(["svc", "svc", "svc", "svr", "svr", "ls"]))
    n, d = int(rng.integers(24, 48)), int(rng.integers(1, 5))
    X = np.round(16 * rng.normal(size=(n, d))) / 16
    X[: n // 3] *= float(rng.choice([1.0, 0.25]))
    if rng.random() < 0.2:  # duplicates
        X[n // 2 : n // 2 + 6] = X[:6]
    value = X @ rng.normal(size=d) + 0.7 * rng.normal(size=n)
    groups = rng.integers(0, 6, n)
    kernel = str(rng.choice(["linear", "rbf", "rbf", "poly"]))
    options = numbers(rng, kernel)
    if kind == "svr":
        return regression(rng, X, value, groups, kernel, options)
    n_classes = int(rng.choice([2, 2, 3])) if kind == "svc" else 2
    cuts = np.quantile(value, [0.5, 0.8][: n_classes - 1] if rng.random() < 0.5 else [0.7, 0.9])
    y = np.searchsorted(cuts[: n_classes - 1], value)
    if rng.random() < 0.3:
        y = np.array(["low", "mid", "top"])[y]
    cv = folds(rng, n, y, groups, True)
    if kind == "ls":
        search = LSSVCPathCV(kernel, cv=cv, **options)
        return Trial(search, X, y, groups=groups if isinstance(cv, GroupKFold) else None)
    return classification(rng, X, y, groups, kernel, options, cv)


def classification(rng, X, y, groups, kernel, options, cv):
    """Return a search for the C of a classifier."""
    classes = np.unique(y)
    balance = rng.choice(["none", "balanced", "dict"])
    given = {c: float(w) for c, w in zip(classes, rng.uniform(0.5, 3, len(classes)), strict=True)}
    class_weight = {"none": None, "balanced": "balanced", "dict": given}[str(balance)]
    names = [None, *SCORES, "roc_auc"] if len(classes) == 2 else [None, "balanced_accuracy"]
    if classes.dtype.kind != "i":  # these need the positive class
        names = [name for name in names if name not in ("precision", "recall", "f1")]
    scoring = names[int(rng.integers(len(names)))]
    rule = str(rng.choice(["first", "widest"]))
    search = SVCPathCV(
        kernel, cv=cv, scoring=scoring, class_weight=class_weight, rule=rule, refit=False, **options
    )
    return prepared(rng, search, SVC(class_weight=class_weight), X, y, groups)


def regression(rng, X, y, groups, kernel, options):
    """Return a search for the C of a regression."""
    names = [None, "neg_mean_squared_error", "neg_mean_absolute_error", "r2"]
    scoring, epsilon = names[int(rng.integers(4))], float(rng.choice([0.0, 0.1, 0.5]))
    cv = folds(rng, len(y), y, groups, False)
    search = SVRPathCV(kernel, cv=cv, scoring=scoring, epsilon=epsilon, refit=False, **options)
    return prepared(rng, search, SVR(epsilon=epsilon), X, y, groups)


def prepared(rng, search, machine, X, y, groups):
    """Return the trial of a search, maybe with weights, preprocessor or precomputed kernel."""
    function = f_regression if isinstance(machine, SVR) else f_classif
    select = make_pipeline(MinMaxScaler(), SelectKBest(function, k=1))
    prepare = [None, None, StandardScaler(), select]
    made = Trial(search, X, y, weights(rng, len(y)), machine=machine)
    if isinstance(search.cv, GroupKFold):
        made.groups = groups
    if search.kernel == "linear" and rng.random() < 0.3:
        made.X = X @ X.T
        search.set_params(kernel="precomputed")
        if made.weight is not None:  # SVC predicts with the wrong columns after rows of weight 0
            made.weight = np.maximum(made.weight, 1e-3)
    else:
        search.preprocessor = prepare[int(rng.integers(4))]
    if made.weight is not None:
        made.arguments["sample_weight"] = made.weight
    if made.groups is not None:
        made.arguments["groups"] = made.groups
    return made


def peer(made, C):
    """Return GridSearchCV with the arguments of the search and several values of C."""
    # scikit-learn passes weights through a Pipeline and to its score only on request
    routed = made.search.preprocessor is not None and made.weight is not None
    with sklearn.config_context(enable_metadata_routing=routed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine, grid, scoring = asked(made, C, routed)
        found = GridSearchCV(machine, grid, cv=made.search.cv, scoring=scoring, refit=False)
        return found.fit(made.X, made.y, **made.arguments).cv_results_


def asked(made, C, routed):
    """Return estimator, grid and scoring for GridSearchCV."""
    search, machine, scoring = made.search, tight(made), made.search.scoring
    if isinstance(machine, SVR) and scoring is None:
        scoring = "neg_mean_squared_error"
    gammas = search.gamma if isinstance(search.gamma, list) else [search.gamma]
    grid = {"C": list(C), "gamma": gammas}
    if search.preprocessor is not None:
        prepare = clone(search.preprocessor)
        if routed:
            machine.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        if routed and isinstance(prepare, StandardScaler):
            prepare.set_fit_request(sample_weight=False)
        machine = Pipeline([("prepare", prepare), ("machine", machine)])
        grid = {f"machine__{name}": values for name, values in grid.items()}
    if routed and scoring is not None:
        scoring = get_scorer(scoring).set_score_request(sample_weight=True)
    return machine, grid, scoring


def tight(made, **options):
    """Return LIBSVM's model with a smaller tolerance."""
    search = made.search
    options |= {"kernel": search.kernel, "degree": search.degree, "coef0": search.coef0}
    return clone(made.machine).set_params(tol=1e-9, max_iter=300_000, cache_size=50, **options)


def splits(made):
    """Return the folds of the search."""
    classifier = not isinstance(made.search, SVRPathCV)
    return check_cv(made.search.cv, made.y, classifier=classifier).split(
        made.X, made.y, made.groups
    )


def look(seed):
    """Return how the search with this number ended, and complaints about it."""
    made = trial(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotCertified)
        try:
            made.search.fit(made.X, made.y, **made.arguments, **ls_groups(made))
        except TamisError as error:
            return made, "refused", sentence(error)
    proof = made.search.certificate_
    low, high = made.search.C_range
    C = np.unique([*np.geomspace(low, high, N_GRID), made.search.best_C_])
    compare = look_at_dense if isinstance(made.search, LSSVCPathCV) else look_at_grid
    return made, "closed" if proof.closed else "open", compare(made, C)


def ls_groups(made):
    own = isinstance(made.search, LSSVCPathCV) and made.groups is not None
    return {"groups": made.groups} if own else {}


def sentence(error):
    return [] if "every training fold" in str(error) or "positive weight" in str(error) else [error]


def look_at_grid(made, C):
    """Return complaints about a search, from the scores of GridSearchCV."""
    search, proof = made.search, made.search.certificate_
    if not proof.closed:
        return []
    found = peer(made, C)
    wanted = [params.get("machine__C", params.get("C")) for params in found["params"]]
    gammas = [params.get("machine__gamma", params.get("gamma")) for params in found["params"]]
    regressor, sign = (
        isinstance(search, SVRPathCV),
        1.0 if search.curve_.greater_is_better else -1.0,
    )
    best = sign * proof.lower + (1.0 if search.scoring is None and not regressor else 0.0)
    complaints = []
    for c, gamma, score in zip(wanted, gammas, found["mean_test_score"], strict=True):
        slack = NEAR * abs(score) + 1e-9 if regressor else 1e-9
        named = search.kernel in ("linear", "precomputed") or gamma == search.best_gamma_
        beaten = score > best + slack
        other = c == search.best_C_ and named and abs(score - search.best_score_) > slack
        if (beaten or other) and not explained(made, c, gamma):
            words = "is better than" if beaten else "is at the best C, not"
            complaints.append(f"{score:.8g} {words} {best if beaten else search.best_score_:.8g}")
    return complaints


def explained(made, C, gamma):
    """Return whether convergence or rounding of LIBSVM explains a difference at C."""
    search = made.search
    for train, test in splits(made):
        machine = tight(made, C=C, gamma=gamma)
        X, new, y = made.X[train], made.X[test], made.y[train]
        if search.kernel == "precomputed":
            X, new = X[:, train], new[:, train]
        if search.preprocessor is not None:
            prepare = clone(search.preprocessor).fit(X, y)
            X, new = prepare.transform(X), prepare.transform(new)
        weight = None if made.weight is None else made.weight[train]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine.fit(X, y, weight)
        if machine.fit_status_ or not all(map(has_margin, multipliers(machine, y, weight))):
            return True
        if isinstance(machine, SVR):
            continue
        f = machine.set_params(decision_function_shape="ovo").decision_function(new)
        if search.scoring == "roc_auc":
            positive = made.y[test] == machine.classes_[1]
            f = f[positive][:, None] - f[~positive]
            f = f[f != 0]  # equal rows
        if np.abs(f).min(initial=np.inf) < CLOSE:
            return True
    return False


def has_margin(machine):
    """Return whether some sample is on the margin, so that the intercept is unique."""
    room = np.minimum(machine.sizes, machine.box - machine.sizes)
    return bool((room > 1e-9 * machine.box.max()).any())


def look_at_dense(made, C):
    """Return complaints about a least-squares search, from dense solves."""
    search, proof = made.search, made.search.certificate_
    gammas = search.gamma if isinstance(search.gamma, list) else [search.gamma]
    if not proof.closed:
        return []
    complaints = []
    for c in C:
        for gamma in gammas:
            error = dense_error(made, c, gamma)
            if error is None:
                continue
            if error < proof.lower - 1e-9:
                complaints.append(f"{error:.8g} is better than {proof.lower:.8g}")
            own = c == search.best_C_ and gamma == search.best_gamma_
            if own and abs(error - (1 - search.best_score_)) > 1e-9:
                complaints.append(f"{error:.8g} is at the best C, not {1 - search.best_score_:.8g}")
    return complaints


def dense_error(made, C, gamma):
    """Return the mean error of the folds at one C, or None if a sign is uncertain."""
    search, errors = made.search, []
    signs = np.where(made.y == np.unique(made.y)[1], 1.0, -1.0)
    for train, test in splits(made):
        X, new, y = made.X[train], made.X[test], signs[train]
        width = {"scale": 1 / (X.shape[1] * X.var()), "auto": 1 / X.shape[1]}.get(gamma, gamma)
        kernel = {
            "linear": linear_kernel,
            "rbf": lambda A, B, g=width: rbf_kernel(A, B, g),
            "poly": lambda A, B, g=width: polynomial_kernel(A, B, search.degree, g, search.coef0),
        }[search.kernel]
        n = len(y)
        system = np.ones((n + 1, n + 1))
        system[:n, :n] = kernel(X, X) + np.eye(n) / (2 * C)
        system[n, n] = 0.0
        found = np.linalg.solve(system, np.append(y, 0.0))
        f = kernel(new, X) @ found[:n] + found[n]
        if np.abs(f).min() < 1e-7:
            return None
        errors.append(np.mean((f > 0) != (signs[test] > 0)))
    return float(np.mean(errors))


def main(first=0, count=500):
    """Check trials, and print complaints and the number of closed searches of each class."""
    ends, n_wrong = {}, 0
    for seed in range(first, first + count):
        try:
            made, ended, complaints = look(seed)
        except Exception as error:  # anything except a clear error is wrong
            print(seed, f"{type(error).__name__}: {error}", flush=True)
            n_wrong += 1
            continue
        name = type(made.search).__name__
        ends.setdefault(name, Counter()).update([ended, *["wrong"] * bool(complaints)])
        n_wrong += bool(complaints)
        for line in complaints[:2]:
            print(seed, ended, line, made.described, flush=True)
    for name, tally in sorted(ends.items()):
        print(f"{name}: {', '.join(f'{tally[key]} {key}' for key in sorted(tally))}")
    print(f"wrong: {n_wrong} of {count}")
    return n_wrong


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
