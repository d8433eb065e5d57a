"""Scaled and degenerate path problems by number, and what other solvers can prove about them.

    python -m tests.svm.adversarial [first] [count]

A problem is looked at in two ways. The path at some C: its duality gap, computed anew in extended
precision, has to be small or the path to warn, and neither LIBSVM nor liblinear may find a lower
primal objective. The certificate of a best C: where it is closed, LIBSVM's solution with the gap it
leaves bounds what the validation function can be, and may not contradict it.
"""

import sys
import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.svm import SVC, LinearSVC

from tamis.exceptions import NotCertified, TamisError
from tamis.svm import SVCPath, SVCPathCV, SVRPath, SVRPathCV
from tamis.svm.curves.scores import scorer

GAP = 1e-6  # of the optimality conditions, above which a path has to warn
LONG = np.longdouble


@dataclass(frozen=True)
class Problem:
    """Data, a kernel with its numbers, and the range of lambda."""

    X: np.ndarray
    y: np.ndarray
    kernel: str
    gamma: float
    degree: int
    coef0: float
    lambda_range: tuple
    weight: np.ndarray | None
    epsilon: float | None = None  # of regressions
    scoring: str = "error"

    @property
    def numbers(self):
        return {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}

    def long_kernel(self, A, B):
        """Kernel between rows, in extended precision."""
        A, B = A.astype(LONG), B.astype(LONG)
        if self.kernel == "rbf":
            squares = ((A[:, None] - B[None]) ** 2).sum(axis=2)
            return np.exp(-LONG(self.gamma) * squares)
        if self.kernel == "linear":
            # from the mean, which changes nothing but the intercept
            middle = B.mean(axis=0)
            return (A - middle) @ (B - middle).T
        return (LONG(self.gamma) * (A @ B.T) + LONG(self.coef0)) ** self.degree


def points(rng):
    """Rows, some of them on a grid, copied, nearly copied, far away or on a line."""
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
    """The problem of a number."""
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
    for c in range(n_classes):  # every class in every fold
        y[4 * c : 4 * c + 4] = c
    y = y if y.max() + 1 == n_classes else np.arange(n) % n_classes
    kernel = str(rng.choice(["linear", "linear", "rbf", "poly"]))
    gamma = float(10 ** rng.uniform(-4, 1)) / max(1.0, float(X.var()) * X.shape[1])
    degree, coef0 = int(rng.integers(1, 4)), float(rng.choice([0.0, 1.0, -0.5]))
    low, high = 2.0**-8, 2.0**9
    # s K with C / s, or the columns alone scaled
    s = 10 ** rng.uniform(-12, 12) if rng.random() < 0.8 else 1.0
    how = rng.choice(["both", "columns", "none"])
    if how != "none" and kernel == "linear":
        X = X * np.sqrt(s)
        low, high = (low * s, high * s) if how == "both" else (low, high)
    weight = None
    if rng.random() < 0.2:
        weight = rng.integers(1, 4, n).astype(float)
    made = Problem(X, y, kernel, gamma, degree, coef0, (low, high), weight)
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
        return replace(made, y=z * size, epsilon=epsilon, scoring=str(rng.choice(["mse", "mae"])))
    scoring = rng.choice(["error", "error", "balanced_error", "f1"])
    return replace(made, scoring="error" if n_classes > 2 else str(scoring))


def median_interval(h, g, s, u):
    """Intercepts that minimise ``sum u max(0, g - s (h + b))``: from, to."""
    at = s * g - h
    order = np.argsort(at, kind="stable")
    slopes = np.cumsum(u[order]) - u[s > 0].sum()  # right of each breakpoint
    slack = 1e-13 * u.sum()
    low = int(np.argmax(slopes >= -slack))
    high = int(np.argmax(slopes > slack))
    return at[order[low]], at[order[high]]


def gap_of(K, x, s, u, g):
    """Duality gap of ``x`` in ``min x'Qx/2 - g'x``, its outputs, and the middle intercept."""
    h = K @ (s * x)
    low, high = median_interval(h, g, s, u)
    b = (low + high) / 2
    r = s * (h + b) - g
    return float(x @ np.maximum(r, 0) + (u - x) @ np.maximum(-r, 0)), h, b


def look_at_path(p, rng):
    """Complaints about the path of a problem, and whether it warned."""
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if p.epsilon is None:
                path = SVCPath(p.kernel, lambda_range=p.lambda_range, **p.numbers)
            else:
                path = SVRPath(
                    p.kernel, epsilon=p.epsilon, lambda_range=p.lambda_range, **p.numbers
                )
            path.fit(p.X, p.y, p.weight)
        except TamisError:
            return [], True
        except Exception as error:
            return [f"{type(error).__name__}: {error}"], True
    strange = [w for w in caught if w.category is not NotCertified]
    if strange:
        found.append(f"warning {strange[0].message}")
    warned = any(w.category is NotCertified for w in caught)
    low, high = p.lambda_range
    for lam in (low, high, *(low * (high / low) ** rng.random(2))):
        C = min(max(1 / lam, 1 / high), 1 / low)
        wrong = path_gap(p, path, C) if not warned else 0.0
        if not wrong <= GAP:
            found.append(f"gap {wrong:.1e} at C = {C:.3g}, violation said {path.violation_:.1e}")
    return found, warned


def path_gap(p, path, C):
    """Gap of a fitted path at C, relative to what a violation of 1 everywhere would make."""
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
    """By how much LIBSVM or liblinear find a lower primal objective, in units of violation."""
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
    """The kernel from the mean of the points, which changes nothing but the intercept."""
    means = K.mean(axis=0)
    return K - means - means[:, None] + means.mean()


def exponent(K):
    """The kernel in units of a power of two, so that single precision can hold it."""
    size = float(np.abs(K).max())
    unit = 2.0 ** np.frexp(size)[1] if size > 0 else 1.0
    return K / LONG(unit), unit


def regression_gap(p, path, C):
    """Gap of a regression, relative to lambda and the range of its linear term."""
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


def truth(p, train, test, C):
    """Decision values of LIBSVM's machine, and how far they can be from the truth."""
    K = p.long_kernel(p.X[train], p.X[train])
    rows = p.long_kernel(p.X[test], p.X[train])
    if p.kernel == "linear":
        middle = p.X[train].astype(LONG).mean(axis=0)
        far = p.X[test].astype(LONG) - middle
        own = (far**2).sum(axis=1)
    elif p.kernel == "rbf":
        own = np.ones(len(test), LONG)
    else:
        squares = (p.X[test].astype(LONG) ** 2).sum(axis=1)
        own = (LONG(p.gamma) * squares + LONG(p.coef0)) ** p.degree
    means, mean = K.mean(axis=0), K.mean()
    norms = np.sqrt(np.maximum(own - 2 * rows.mean(axis=1) + mean, 0))
    K, rows = centred(K), rows - means
    K, unit = exponent(K)
    rows, norms = rows / LONG(unit), norms / np.sqrt(LONG(unit))
    s = np.where(p.y[train] == p.y[train].max(), 1.0, -1.0)
    u = np.ones(len(train)) if p.weight is None else p.weight[train]
    machine = SVC(C=C * unit, kernel="precomputed", tol=1e-10, max_iter=200_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            machine.fit(np.asarray(K, float), s, sample_weight=u)
        except ValueError:
            return None
    x = np.zeros(len(s), LONG)
    x[machine.support_] = np.abs(machine.dual_coef_[0]) / (C * unit)
    x = np.clip(x, 0, u)
    lam = LONG(1) / (LONG(C) * LONG(unit))
    gap, h, b = gap_of(K, x, s, u, np.full(len(s), lam))
    # what the constraint is missed by could be made up for by any sample
    missed = abs(float(s @ x))
    gap += missed * float(np.abs(h + b).max() + lam)
    way = np.sqrt(2 * LONG(gap)) + missed
    reach = np.sqrt(np.maximum(np.diagonal(K), 0)).max()
    return (rows @ (s * x) + b) / lam, (way * (norms + reach) + 1e-10 * lam) / lam + 1e-9


def splits(p):
    folds = StratifiedKFold(2) if p.epsilon is None else KFold(2)
    return list(folds.split(p.X, p.y))


def values_at(p, C):
    """What the validation function can be at least and at most at C, or None."""
    low, high = [], []
    score, _ = scorer(p.scoring)
    for train, test in splits(p):
        found = truth(p, train, test, C)
        if found is None:
            return None
        f, error = found
        label = p.y[test]
        right_sign = np.where(label == p.y.max(), f, -f)
        total = np.bincount(label, minlength=2).astype(float)
        bounds = []
        for certain in (right_sign > error, right_sign >= -error):
            right = np.bincount(label, certain, minlength=2)
            bounds.append(float(score(right[:, None], total[:, None])[0]))
        low.append(min(bounds))
        high.append(max(bounds))
    return np.mean(low), np.mean(high)


def look_at_certificate(p, rng):
    """Complaints about a closed certificate, and whether it was closed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = {"lambda_range": p.lambda_range, "refit": False, "scoring": p.scoring}
        try:
            if p.epsilon is None:
                search = SVCPathCV(p.kernel, cv=splits(p), **options, **p.numbers)
            else:
                options["epsilon"] = p.epsilon
                search = SVRPathCV(p.kernel, cv=splits(p), **options, **p.numbers)
            search.fit(p.X, p.y, p.weight)
        except TamisError:
            return [], False
        except Exception as error:
            return [f"{type(error).__name__}: {error}"], False
    found = [f"warning {w.message}" for w in caught if w.category is not NotCertified][:1]
    proof = search.certificate_
    if not proof.closed or p.epsilon is not None or p.y.max() > 1:
        return found, proof.closed
    best, greater = proof.value, search.curve_.greater_is_better
    low, high = p.lambda_range
    for C in (search.best_C_, *(1 / (low * (high / low) ** rng.random(3)))):
        bounds = values_at(p, C)
        if bounds is None:
            continue
        worst = bounds[0] if greater else bounds[1]
        if search.best_C_ == C and not bounds[0] - 1e-9 <= best <= bounds[1] + 1e-9:
            found.append(f"closed at {best:.6g}, but the truth is in {bounds}")
        better = worst > best + 1e-9 if greater else worst < best - 1e-9
        if better:
            found.append(f"closed at {best:.6g}, but C = {C:.4g} is worth {worst:.6g}")
    return found, True


def complaints(seed):
    """Everything wrong with the problem of a number; whether it warned and whether it closed."""
    p, rng = problem(seed), np.random.default_rng([1, seed])
    about_path, warned = look_at_path(p, rng)
    about_proof, closed = look_at_certificate(p, rng)
    return about_path + about_proof, warned, closed


def main(first=0, count=1000):
    """Look at problems, print complaints and a summary."""
    n_wrong = n_warned = n_closed = 0
    for seed in range(first, first + count):
        found, warned, closed = complaints(seed)
        n_wrong += bool(found)
        n_warned += warned
        n_closed += closed
        for line in found:
            print(seed, line, flush=True)
    print(f"{count} problems, {n_wrong} wrong, {n_warned} warned, {n_closed} closed")
    return n_wrong


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:]))))
