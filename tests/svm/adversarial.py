"""Scaled and degenerate path problems by number, and proofs about them by other solvers.

Run ``python -m tests.svm.adversarial [first] [count]``. A problem is checked in two ways. At some
C, the duality gap of the path, computed in extended precision, must be small, or the path must
warn. Neither LIBSVM nor liblinear may find a lower primal objective. For the certificate of a best
C, LIBSVM's solution and its duality gap bound the validation function, which must not contradict
the certificate.
"""

import sys
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import SVC, SVR, LinearSVC

from tamis.exceptions import NotCertified, TamisError
from tamis.svm import SVCPath, SVCPathCV, SVRPath, SVRPathCV
from tamis.svm.curves.scores import scorer
from tamis.svm.machine import class_pairs

GAP = 1e-6  # violation of the optimality conditions above which a path must warn
LONG = np.longdouble


@dataclass(frozen=True)
class Problem:
    """Data, a kernel with its parameters, and the range of lambda."""

    X: np.ndarray
    y: np.ndarray
    kernel: str
    gamma: float
    degree: int
    coef0: float
    lambda_range: tuple
    weight: np.ndarray | None
    family: str
    epsilon: float | None = None  # for regressions
    scoring: str = "error"

    @property
    def numbers(self):
        return {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}

    def long_kernel(self, A, B):
        """Return the kernel between rows in extended precision."""
        A, B = A.astype(LONG), B.astype(LONG)
        if self.kernel == "rbf":
            squares = ((A[:, None] - B[None]) ** 2).sum(axis=2)
            return np.exp(-LONG(self.gamma) * squares)
        if self.kernel == "linear":
            # centred, which only changes the intercept
            middle = B.mean(axis=0)
            return (A - middle) @ (B - middle).T
        return (LONG(self.gamma) * (A @ B.T) + LONG(self.coef0)) ** self.degree


def points(rng):
    """Return rows, some of them on a grid, duplicated, nearly duplicated, far away or on a line."""
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 6))
    kind = rng.choice(["normal", "grid", "apart", "line", "outlier", "wide"])
    if kind == "grid":
        X = rng.integers(-2, 3, (n, d)).astype(float)
    elif kind == "wide":
        X = rng.normal(size=(n, 5 * n))
    else:
        X = rng.normal(size=(n, d))
    if kind == "line":
        X = X[:, :1] * rng.normal(size=d) + 1e-9 * rng.normal(size=X.shape)
    if kind == "outlier":
        X[: max(1, n // 10)] *= 10 ** rng.uniform(1, 5)
    copies = rng.choice(["none", "none", "equal", "near"])
    if copies != "none":
        more = X[rng.integers(0, len(X), len(X) // 2)]
        X = np.vstack(
            [
                X,
                more
                + (copies == "near") * 10 ** rng.uniform(-12, -5) * rng.normal(size=more.shape),
            ]
        )
    if rng.random() < 0.2:
        X = X + 10 ** rng.uniform(0, 6)
    if rng.random() < 0.1:
        X = np.column_stack([X, np.full(len(X), 3.0)])
    return X, kind


def problem(seed):
    """Return the problem with this number."""
    rng = np.random.default_rng(seed)
    X, kind = points(rng)
    n = len(X)
    n_classes = int(rng.choice([2, 2, 2, 3]))
    if kind == "apart" or rng.random() < 0.3:  # separable
        order = np.argsort(X @ rng.normal(size=X.shape[1]), kind="stable")
        y = np.empty(n, int)
        y[order] = np.arange(n) * n_classes // n
        X = X + (kind == "apart") * 4 * y[:, None]
    else:
        y = (rng.random(n) < rng.choice([0.5, 0.5, 0.2, 0.1])).astype(int)
        y[rng.random(n) < (n_classes - 2) / 3] = 2
    for c in range(n_classes):  # every class is in every fold
        y[4 * c : 4 * c + 4] = c
    y = y if y.max() + 1 == n_classes else np.arange(n) % n_classes
    kernel = str(rng.choice(["linear", "linear", "rbf", "poly"]))
    gamma = float(10 ** rng.uniform(-4, 1)) / max(1.0, float(X.var()) * X.shape[1])
    degree, coef0 = int(rng.integers(1, 4)), float(rng.choice([0.0, 1.0, -0.5]))
    low, high = 2.0**-8, 2.0**9
    # s K with C / s, or only the columns are scaled
    s = 10 ** rng.uniform(-12, 12) if rng.random() < 0.8 else 1.0
    how = rng.choice(["both", "columns", "none"])
    if how != "none" and kernel == "linear":
        X = X * np.sqrt(s)
        low, high = (low * s, high * s) if how == "both" else (low, high)
    weight = None
    if rng.random() < 0.2:
        weight = rng.integers(1, 4, n).astype(float)
    made = Problem(X, y, kernel, gamma, degree, coef0, (low, high), weight, f"{kernel} {kind}")
    if rng.random() < 0.2:
        target = rng.choice(["line", "few", "constant", "noise"])
        z = {
            "line": X @ rng.normal(size=X.shape[1]) / max(np.abs(X).max(), 1e-300),
            "few": y.astype(float),
            "constant": np.full(n, 2.5),
            "noise": rng.normal(size=n),
        }[str(target)]
        size = 10 ** rng.uniform(-6, 6)
        epsilon = float(rng.choice([0.0, 0.1, 0.5])) * size
        made = replace(made, y=z * size, epsilon=epsilon, family=f"{kernel} regression")
        return replace(made, scoring=str(rng.choice(["mse", "mae"])))
    scoring = rng.choice(["error", "error", "balanced_error", "f1"])
    return replace(made, scoring="error" if n_classes > 2 else str(scoring))


def median_interval(h, g, s, u):
    """Return the interval of intercepts that minimise ``sum u max(0, g - s (h + b))``."""
    at = s * g - h
    order = np.argsort(at, kind="stable")
    slopes = np.cumsum(u[order]) - u[s > 0].sum()  # to the right of each breakpoint
    slack = 1e-13 * u.sum()
    low = int(np.argmax(slopes >= -slack))
    high = int(np.argmax(slopes > slack))
    return at[order[low]], at[order[high]]


def gap_of(K, x, s, u, g):
    """Return the duality gap of ``x`` in ``min x'Qx/2 - g'x``, its outputs and an intercept."""
    h = K @ (s * x)
    low, high = median_interval(h, g, s, u)
    b = (low + high) / 2
    r = s * (h + b) - g
    return float(x @ np.maximum(r, 0) + (u - x) @ np.maximum(-r, 0)), h, b


class Seen(NamedTuple):
    """Findings about a path or a certificate."""

    complaints: list
    ended: str  # "kept", "flagged" or "refused"; "closed", "open" or "refused"
    gap: float = 0.0


def fitted(machine, p):
    """Return a fitted model (None if refused), complaints, and whether it warned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            machine.fit(p.X, p.y, p.weight)
        except TamisError:
            return None, [], True
        except Exception as error:
            return None, [f"{type(error).__name__}: {error}"], True
    strange = [f"warning {w.message}" for w in caught if w.category is not NotCertified]
    return machine, strange[:1], any(w.category is NotCertified for w in caught)


def look_at_path(p, rng):
    """Check the path of a problem at both ends and in between."""
    options = {"lambda_range": p.lambda_range, **p.numbers}
    if p.epsilon is None:
        path = SVCPath(p.kernel, **options)
    else:
        path = SVRPath(p.kernel, epsilon=p.epsilon, **options)
    path, found, warned = fitted(path, p)
    if path is None:
        return Seen(found, "refused")
    low, high = p.lambda_range
    worst = 0.0
    for lam in (low, high, *(low * (high / low) ** rng.random(2))):
        C = min(max(1 / lam, 1 / high), 1 / low)
        gap = path_gap(p, path, C)
        worst = max(worst, gap if gap == gap else np.inf)
        if not gap <= GAP and not warned:
            found.append(f"gap {gap:.1e} at C = {C:.3g}, violation said {path.violation_:.1e}")
    return Seen(found, "flagged" if warned else "kept", worst)


def path_gap(p, path, C):
    """Return the duality gap of a path at C, relative to that of a violation of 1 everywhere."""
    if p.epsilon is not None:
        return regression_gap(p, path, C)
    worst = 0.0
    coefs = np.atleast_2d(path.dual_coef(C))
    f = path.decision_function(p.X, C)
    weight = np.ones(len(p.y)) if p.weight is None else p.weight
    for k, (i, j) in enumerate(path.pairs_):
        rows = np.flatnonzero((p.y == i) | (p.y == j))
        K = centred(p.long_kernel(p.X[rows], p.X[rows]))
        s = np.where(p.y[rows] == j, 1.0, -1.0)
        u = weight[rows]
        x = np.clip(s * coefs[k, rows] / C, 0, u).astype(LONG)
        gap, h, b = gap_of(K, x, s, u, np.full(len(s), LONG(1) / LONG(C)))
        worst = max(worst, gap * C / u.sum(), abs(float(s @ x)) / u.sum())
        if len(path.pairs_) == 1:
            own = np.maximum(1 - s * f, 0) @ u
            best = float(np.maximum(1 - s * (h + b) * C, 0) @ u)
            worst = max(worst, (own - best) / u.sum())
            worst = max(worst, beaten(p, K, s, u, C, float(x @ (s * h)) * C**2 / 2 + C * own))
    return worst


def beaten(p, K, s, u, C, own):
    """Return how much lower the objective of LIBSVM or liblinear is, in units of violation."""
    best = own
    K, unit = exponent(K)
    machines = [SVC(C=C * unit, kernel="precomputed", tol=1e-8, max_iter=100_000)]
    if 1e-6 < C * unit < 1e6:
        machines.append(LinearSVC(C=C, loss="hinge", tol=1e-8, max_iter=2000, random_state=0))
    for machine in machines:
        linear = isinstance(machine, LinearSVC)
        if linear and p.kernel != "linear":
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows = p.X - p.X.mean(axis=0) if linear else np.asarray(K, float)
            if linear and len(rows) != len(s):
                continue
            try:
                machine.fit(rows, s, sample_weight=u)
            except ValueError:
                continue
        if linear:
            w = machine.coef_[0].astype(LONG)
            h, norm = rows.astype(LONG) @ w, w @ w
        else:
            alpha = np.zeros(len(s), LONG)
            alpha[machine.support_] = machine.dual_coef_[0]
            h = K @ alpha
            norm = alpha @ h * (LONG(1) / unit)
        low, high = median_interval(h, np.ones(len(s), LONG), s, u)
        slack = np.maximum(1 - s * (h + (low + high) / 2), 0) @ u
        best = min(best, float(norm / 2 + C * slack))
    return (own - best) / (C * u.sum())


def centred(K):
    """Return the centred kernel, which only changes the intercept."""
    means = K.mean(axis=0)
    return K - means - means[:, None] + means.mean()


def exponent(K):
    """Return the kernel in units of a power of two, so that it fits into single precision."""
    size = float(np.abs(K).max())
    unit = 2.0 ** np.frexp(size)[1] if size > 0 else 1.0
    return K / LONG(unit), unit


def regression_gap(p, path, C):
    """Return the duality gap of a regression, divided by lambda and its linear term's range."""
    weight = np.ones(len(p.y)) if p.weight is None else p.weight
    K = centred(p.long_kernel(p.X, p.X))
    beta = path.dual_coef(C) / C
    x = np.concatenate([np.maximum(beta, 0), np.maximum(-beta, 0)]).astype(LONG)
    s, u = np.repeat([1.0, -1.0], len(p.y)), np.tile(weight, 2)
    y = p.y.astype(LONG) - LONG(np.median(p.y))
    g = np.concatenate([y - p.epsilon, -y - p.epsilon]) / LONG(C)
    twice = np.tile(K, (2, 2))
    gap, _, _ = gap_of(twice, np.minimum(x, u), s, u, g)
    size = float(np.abs(g).max()) * u.sum()
    return gap / size if size > 0 else 0.0


def truth(p, train, test, s, target, C):
    """Return the decision values of LIBSVM's solution, and bounds on their errors.

    ``s`` and ``target`` belong to the variables. A regression has two variables for each row.
    """
    K = p.long_kernel(p.X[train], p.X[train])
    rows = p.long_kernel(p.X[test], p.X[train])
    means, mean = K.mean(axis=0), K.mean()
    norms = np.sqrt(np.maximum(own_kernel(p, train, test) - 2 * rows.mean(axis=1) + mean, 0))
    K, rows = centred(K), rows - means
    K, unit = exponent(K)
    rows, norms = rows / LONG(unit), norms / np.sqrt(LONG(unit))
    u = np.ones(len(train)) if p.weight is None else p.weight[train]
    beta = trained(p, K, s, u, target, C * unit)
    if beta is None:
        return None
    point = np.arange(len(s)) % len(train)
    x = np.clip(s * beta[point], 0, u[point])
    lam = LONG(1) / (LONG(C) * LONG(unit))
    gap, h, b = gap_of(K[np.ix_(point, point)], x, s, u[point], lam * target)
    # any sample could compensate the violation of the constraint
    missed = abs(float(s @ x))
    gap += missed * float(np.abs(h + b).max() + lam * np.abs(target).max())
    way = np.sqrt(2 * LONG(gap)) + missed
    reach = np.sqrt(np.maximum(np.diagonal(K), 0)).max()
    weight = np.bincount(point, (s * x).astype(float), len(train)).astype(LONG)
    if len(s) == len(train):
        weight = s * x
    size = float(np.abs(target).max())
    error = (way * (norms + reach) + 1e-10 * lam * size) / lam + 1e-9 * size
    return (rows @ weight + b) / lam, error


def own_kernel(p, train, test):
    """Return the kernel value of each point with itself."""
    if p.kernel == "rbf":
        return np.ones(len(test), LONG)
    rows = p.X[test].astype(LONG)
    if p.kernel == "linear":
        return ((rows - p.X[train].astype(LONG).mean(axis=0)) ** 2).sum(axis=1)
    return (LONG(p.gamma) * (rows**2).sum(axis=1) + LONG(p.coef0)) ** p.degree


def trained(p, K, s, u, target, C):
    """Return LIBSVM's signed coefficients divided by C, or None if it cannot be trained."""
    if p.epsilon is None:
        machine, y, unit = SVC(C=C, kernel="precomputed", tol=1e-10, max_iter=200_000), s, 1.0
    else:
        y = (target[: len(K)] - target[len(K) :]) / 2
        unit = float(np.abs(y).max())
        if unit == 0:
            return np.zeros(len(K), LONG)
        machine = SVR(C=C / unit, kernel="precomputed", tol=1e-10, max_iter=200_000)
        machine.set_params(epsilon=p.epsilon / unit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            machine.fit(np.asarray(K, float), np.asarray(y / unit, float), sample_weight=u)
        except ValueError:
            return None
    beta = np.zeros(len(K), LONG)
    beta[machine.support_] = machine.dual_coef_[0] / machine.C
    return beta


def splits(p):
    folds = StratifiedKFold(2) if p.epsilon is None else KFold(2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about classes with one member
        return list(folds.split(p.X, p.y))


def values_at(p, C):
    """Return bounds on the validation function at C, or None."""
    fold = class_bounds if p.epsilon is None else error_bounds
    found = [fold(p, train, test, C) for train, test in splits(p)]
    return None if None in found else tuple(np.mean(found, axis=0))


def error_bounds(p, train, test, C):
    """Return bounds on the mean error of a regression on a fold."""
    shift = LONG(np.median(p.y[train]))
    y = p.y[train] - shift
    s = np.repeat([1.0, -1.0], len(train))
    found = truth(p, train, test, s, np.concatenate([y - p.epsilon, -y - p.epsilon]), C)
    if found is None:
        return None
    away = np.abs(found[0] + shift - p.y[test])
    low, high = np.maximum(away - found[1], 0), away + found[1]
    if p.scoring == "mse":
        low, high = low**2, high**2
    weight = None if p.weight is None else p.weight[test]
    return tuple(float(np.average(part, weights=weight)) for part in (low, high))


def class_bounds(p, train, test, C):
    """Return bounds on the value of a classifier on a fold, with uncertain votes both ways."""
    n_classes, label = int(p.y.max()) + 1, p.y[test]
    surely, perhaps = np.zeros((2, len(test), n_classes))
    for i, j in class_pairs(n_classes):
        rows = train[(p.y[train] == i) | (p.y[train] == j)]
        s = np.where(p.y[rows] == j, 1.0, -1.0)
        found = truth(p, rows, test, s, np.ones(len(s), LONG), C)
        if found is None:
            return None
        f, error = found
        surely[:, j] += f > error
        surely[:, i] += f < -error
        perhaps[:, j] += f >= -error
        perhaps[:, i] += f <= error
    mine = np.arange(len(test)), label
    # tied votes go to the lowest class
    order = np.arange(n_classes) > label[:, None]
    weight = np.ones(len(test)) if p.weight is None else p.weight[test]
    total = np.bincount(label, weight, n_classes)
    score, _ = scorer(p.scoring)
    bounds = []
    for own, others in ((surely[mine], perhaps), (perhaps[mine], surely)):
        margin = own[:, None] - others
        beats = np.where(order, margin >= 0, margin > 0)
        beats[mine] = True
        right = np.bincount(label, beats.all(axis=1) * weight, n_classes)
        bounds.append(float(score(right[:, None], total[:, None])[0]))
    return min(bounds), max(bounds)


def look_at_certificate(p, rng):
    """Compare the certificate of a best C with the truth at this C and at three others."""
    options = {"lambda_range": p.lambda_range, "refit": False, "scoring": p.scoring, **p.numbers}
    if p.epsilon is None:
        search = SVCPathCV(p.kernel, cv=splits(p), **options)
    else:
        search = SVRPathCV(p.kernel, cv=splits(p), epsilon=p.epsilon, **options)
    search, found, _ = fitted(search, p)
    if search is None:
        return Seen(found, "refused")
    if not search.certificate_.closed:
        return Seen(found, "open")
    low, high = p.lambda_range
    for C in (search.best_C_, *(1 / (low * (high / low) ** rng.random(3)))):
        bounds = values_at(p, C)
        if bounds is not None:
            found += contradictions(search, C, bounds)
    return Seen(found, "closed")


def contradictions(search, C, bounds):
    """Return contradictions between a closed certificate and the truth within ``bounds`` at C."""
    proof, sign = search.certificate_, 1.0
    least, most = bounds
    if search.curve_.greater_is_better:
        sign, least, most = -1.0, -most, -least
    best, upper, lower = sign * proof.value, sign * proof.upper, sign * proof.lower
    slack = 1e-9 * max(1.0, abs(best))
    found = []
    if search.best_C_ == C and not min(least, lower) - slack <= best <= max(most, upper) + slack:
        found.append(f"closed at {proof.value:.6g}, but the truth is in {bounds}")
    if search.best_C_ == C and least > upper + slack:
        found.append(f"closed with at most {proof.upper:.6g}, but the truth is in {bounds}")
    if most < lower - slack:
        found.append(f"closed with at least {proof.lower:.6g}, but C = {C:.4g} is in {bounds}")
    return found


def look(seed):
    """Check the path and the certificate of the problem with this number."""
    p, rng = problem(seed), np.random.default_rng([1, seed])
    return p, look_at_path(p, rng), look_at_certificate(p, rng)


def main(first=0, count=1000):
    """Check problems, and print complaints and a summary of every family."""
    ends, worst, n_wrong = {}, {"kept": 0.0, "flagged": 0.0}, 0
    for seed in range(first, first + count):
        p, path, proof = look(seed)
        tally = ends.setdefault(p.family, Counter())
        tally.update(problems=1, wrong=bool(path.complaints + proof.complaints))
        tally.update([f"path {path.ended}", f"certificate {proof.ended}"])
        if path.ended in worst:
            worst[path.ended] = max(worst[path.ended], path.gap)
        for line in path.complaints + proof.complaints:
            n_wrong += 1
            print(seed, line, flush=True)
    total = Counter()
    for family, tally in sorted(ends.items()):
        total.update(tally)
        print(f"{family}: {counts(tally)}")
    print(f"all: {counts(total)}")
    print(f"largest gap {worst['kept']:.1e}, of flagged paths {worst['flagged']:.1e}")
    return n_wrong


def counts(tally):
    return ", ".join(f"{tally[key]} {key}" for key in sorted(tally))


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
