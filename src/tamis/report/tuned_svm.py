"""Facts of a tuned SVM: the best C, every C that is as good, and what a grid would have found."""

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter
from tamis.report.error_curve import MetricFormat, metric_format
from tamis.report.sheets import Sheet
from tamis.svm.curves.curve import IntervalOfC, ValidationCurve

#: Share of the best value up to which a continuous curve counts as equally good.
AS_GOOD = 0.01
#: Metrics of the scorings of a search over C that are called otherwise.
METRIC_OF_SCORING = {
    "balanced_error": "ber",
    "neg_mean_squared_error": "mse",
    "neg_mean_absolute_error": "mae",
}
#: Factor by which a shorter number may differ from the best C of a continuous curve.
NEAR = 1.05


class TuningResult:
    """A fitted search for C, and what is known of it.

    Parameters
    ----------
    search : SVCPathCV or SVRPathCV
        Fitted.
    folds : int, optional
        Number of folds of one repeat; by default that of all.
    """

    def __init__(self, search: Any, folds: int | None = None):
        if not (hasattr(search, "curve_") and hasattr(search, "best_C_")):
            raise InvalidParameter(
                f"tuning needs a fitted SVCPathCV or SVRPathCV, not {type(search).__name__}."
            )
        self.search, self.folds = search, search.n_splits_ if folds is None else folds
        self.regression = is_regressor(search)
        #: The exact curve of the best gamma.
        self.curve: ValidationCurve = search.curve_

    @cached_property
    def measure(self) -> MetricFormat:
        """How the values of the curve are shown."""
        scoring = self.search.scoring or ("mse" if self.regression else "error")
        name = scoring if isinstance(scoring, str) else scoring[0]
        return metric_format(METRIC_OF_SCORING.get(name, name), self.curve.greater_is_better)

    @cached_property
    def shown(self) -> Array:
        """Values at both ends of every piece of the curve, as they are shown."""
        return self.measure.shown(self.curve.coefficients[:, [0, -1]].ravel())

    @property
    def best(self) -> float:
        """The best value at any C, as it is shown."""
        return float((np.max if self.measure.greater_is_better else np.min)(self.shown))

    @property
    def at_best(self) -> float:
        """The value at the chosen C, as it is shown."""
        return float(self.measure.shown(self.curve(self.search.best_C_)))

    @property
    def flat(self) -> bool:
        """Whether every C is as good as every other."""
        return bool(np.ptp(self.shown) <= 1e-12 * np.abs(self.shown).max())

    @property
    def certified(self) -> bool:
        """Whether the best C is proved to be the best."""
        return bool(self.search.certificate_.closed)

    @cached_property
    def interval(self) -> IntervalOfC:
        """Every C that is as good; of a continuous curve those within a hundredth."""
        if not self.regression:
            interval: IntervalOfC = self.search.best_interval_
            return interval
        worst = abs(1 - self.curve.best) if self.curve.greater_is_better else abs(self.curve.best)
        return interval_around(self.curve, self.search.best_C_, AS_GOOD * worst)

    @cached_property
    def C(self) -> float:
        """A short number inside the interval, near the best."""
        if not self.regression:
            return self.interval.round_number
        best, end = self.search.best_C_, self.interval
        low, high = max(end.low, best / NEAR), min(end.high, best * NEAR)
        return IntervalOfC(low, high, True, True).round_number

    @cached_property
    def standard_error(self) -> float:
        """Of the mean over folds; repeats are of the same rows, and make it no smaller."""
        results, row = self.search.cv_results_, self.search.best_index_
        scores = [results[f"split{k}_test_score"][row] for k in range(self.search.n_splits_)]
        return float(np.std(scores, ddof=1) / np.sqrt(min(self.folds, len(scores))))

    @cached_property
    def within_error(self) -> IntervalOfC:
        """The interval around the best C that is within one standard error of it."""
        if self.regression:
            return interval_around(self.curve, self.search.best_C_, self.standard_error)
        sign = -1 if self.curve.greater_is_better else 1
        level = self.curve.best + sign * self.standard_error
        inside = self.interval.middle
        return next(i for i in self.curve.within(level) if i.low <= inside <= i.high)

    @cached_property
    def grid(self) -> dict[str, Any]:
        """What the powers of two would have found: the first of the best."""
        results = self.search.cv_results_
        powers = np.log2(np.asarray(results["param_C"], dtype=float)) % 1 == 0
        rows = np.flatnonzero(powers)
        if not len(rows):
            return {}
        row = rows[np.argmax(np.round(results["mean_test_score"][rows], 12))]
        score = float(results["mean_test_score"][row])
        return {**results["params"][row], "score": score, "n_points": len(rows)}

    @property
    def encodes(self) -> bool:
        """Whether the table has text, dates or missing values."""
        return hasattr(self.search.preprocessor, "steps")

    @property
    def expression(self) -> str:
        """The tuned machine in Python."""
        search = self.search
        words = [f"C={self.C:.9g}"]
        if search.kernel == "linear":
            words.insert(0, 'kernel="linear"')
        elif search.best_gamma_ != "scale":
            gamma = search.best_gamma_
            words.append(f'gamma="{gamma}"' if isinstance(gamma, str) else f"gamma={gamma:.9g}")
        if self.regression:
            words.append(f"epsilon={search.epsilon:.9g}")
        steps = "StandardScaler()"
        if self.encodes:
            keep = list(search.preprocessor.steps[0][1].keep)
            steps = f"TableEncoder({f'keep={keep}' if keep else ''}), {steps}"
        return f"make_pipeline({steps}, {'SVR' if self.regression else 'SVC'}({', '.join(words)}))"

    def curve_sheet(self) -> Sheet:
        """Return the pieces of all curves."""
        search = self.search
        gammas = search.gamma if isinstance(search.gamma, list) else [search.gamma]
        rows = []
        for gamma, curve in zip(gammas, search.curves_, strict=True):
            C, at = curve.breakpoints, curve.at_breakpoints
            label = "" if search.kernel == "linear" else str(gamma)
            columns = (C[:-1], C[1:], curve.values, at[:-1], at[1:])
            numbers = zip(*(column.tolist() for column in columns), strict=True)
            rows += [[label, *line] for line in numbers]
        return Sheet("", ("gamma", "C_low", "C_high", "best", "at_C_low", "at_C_high"), rows)

    def facts(self) -> dict[str, Any]:
        """Return everything that is known, as numbers."""
        search, proof = self.search, self.search.certificate_
        sheet = self.curve_sheet()
        return {
            "kernel": search.kernel,
            "folds": self.folds,
            "repeats": search.n_splits_ // self.folds,
            "scoring": search.scoring,
            **({"epsilon": search.epsilon} if self.regression else {}),
            "C": self.C,
            "interval": list(self.interval[:2]),
            **{f"best_{name}": value for name, value in search.best_params_.items()},
            "best_score": search.best_score_,
            "standard_error": self.standard_error,
            "within_standard_error": list(self.within_error[:2]),
            "grid": self.grid,
            "certificate": {
                "sentence": repr(proof),
                "proved": self.certified,
                "measure": proof.measure,
                "value": proof.value,
                "lower": proof.lower,
                "upper": proof.upper,
            },
            "python": self.expression,
            "curve": [dict(zip(sheet.headings, row, strict=True)) for row in sheet.rows],
        }


def interval_around(curve: ValidationCurve, C: float, more: float) -> IntervalOfC:
    """Return the breakpoints around C up to which a continuous curve is at most so much worse.

    Between two of them it is convex: what holds at both ends holds between.
    """
    sign = -1.0 if curve.greater_is_better else 1.0
    bad = sign * (curve.at_breakpoints - curve.best) > more
    at = int(np.searchsorted(curve.breakpoints, C))
    left, right = np.flatnonzero(bad[:at]), np.flatnonzero(bad[at:])
    low = curve.breakpoints[left[-1] + 1] if len(left) else curve.breakpoints[0]
    high = curve.breakpoints[at + right[0] - 1] if len(right) else curve.breakpoints[-1]
    return IntervalOfC(float(min(low, C)), float(max(high, C)), True, True)
