"""Facts about a tuned SVM: the best C, the interval of equally good C, and the best grid point."""

from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from tamis._arrays import Array
from tamis.exceptions import InvalidParameter
from tamis.report.error_curve import MetricFormat, metric_format
from tamis.report.sheets import Sheet
from tamis.svm.curves.curve import IntervalOfC, ValidationCurve

#: On a continuous curve, values within this share of the best value are treated as equally good.
AS_GOOD = 0.01
#: Names of metrics that differ from the name of their scoring.
METRIC_OF_SCORING = {
    "balanced_error": "ber",
    "neg_mean_squared_error": "mse",
    "neg_mean_absolute_error": "mae",
}
#: Factor by which a rounded C may differ from the best C on a continuous curve.
NEAR = 1.05


class TuningResult:
    """Facts about a fitted search for C.

    Parameters
    ----------
    search : SVCPathCV or SVRPathCV
        The fitted search for C.
    folds : int, optional
        Number of folds in a single repeat. The default is the number of folds in all repeats.
    """

    def __init__(self, search: Any, folds: int | None = None):
        if not (hasattr(search, "curve_") and hasattr(search, "best_C_")):
            raise InvalidParameter(
                f"tuning needs a fitted SVCPathCV or SVRPathCV, not {type(search).__name__}."
            )
        self.search, self.folds = search, search.n_splits_ if folds is None else folds
        self.regression = is_regressor(search)
        #: The exact validation curve at the best gamma.
        self.curve: ValidationCurve = search.curve_

    @cached_property
    def measure(self) -> MetricFormat:
        """Format in which the curve's values are shown."""
        scoring = self.search.scoring or ("mse" if self.regression else "error")
        name = scoring if isinstance(scoring, str) else scoring[0]
        return metric_format(METRIC_OF_SCORING.get(name, name), self.curve.greater_is_better)

    @cached_property
    def shown(self) -> Array:
        """Values at both ends of every segment of the curve, for example as percentages."""
        return self.measure.shown(self.curve.coefficients[:, [0, -1]].ravel())

    @property
    def best(self) -> float:
        """The best value over all C, for example as a percentage."""
        return float((np.max if self.measure.greater_is_better else np.min)(self.shown))

    @property
    def at_best(self) -> float:
        """The value at the chosen C, for example as a percentage."""
        return float(self.measure.shown(self.curve(self.search.best_C_)))

    @property
    def flat(self) -> bool:
        """Whether all values of C are equally good."""
        return bool(np.ptp(self.shown) <= 1e-12 * np.abs(self.shown).max())

    @property
    def certified(self) -> bool:
        """Whether the best C has been proved to be optimal."""
        return bool(self.search.certificate_.closed)

    @cached_property
    def interval(self) -> IntervalOfC:
        """Interval of equally good C. On a continuous curve, values are within 1 % of the best."""
        if not self.regression:
            interval: IntervalOfC = self.search.best_interval_
            return interval
        worst = abs(1 - self.curve.best) if self.curve.greater_is_better else abs(self.curve.best)
        return interval_around(self.curve, self.search.best_C_, AS_GOOD * worst)

    @cached_property
    def C(self) -> float:
        """A round number inside the interval of equally good C, near the best C."""
        if not self.regression:
            return self.interval.round_number
        best, end = self.search.best_C_, self.interval
        low, high = max(end.low, best / NEAR), min(end.high, best * NEAR)
        return IntervalOfC(low, high, True, True).round_number

    @cached_property
    def standard_error(self) -> float:
        """Standard error of the mean over folds. Repeats use the same rows and do not reduce it."""
        results, row = self.search.cv_results_, self.search.best_index_
        scores = [results[f"split{k}_test_score"][row] for k in range(self.search.n_splits_)]
        return float(np.std(scores, ddof=1) / np.sqrt(min(self.folds, len(scores))))

    @cached_property
    def within_error(self) -> IntervalOfC:
        """Interval around the best C in which values are within one standard error of the best."""
        if self.regression:
            return interval_around(self.curve, self.search.best_C_, self.standard_error)
        sign = -1 if self.curve.greater_is_better else 1
        level = self.curve.best + sign * self.standard_error
        inside = self.interval.middle
        return next(i for i in self.curve.within(level) if i.low <= inside <= i.high)

    @cached_property
    def grid(self) -> dict[str, Any]:
        """The best point on the grid of powers of two (the first, if several tie)."""
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
        """Whether the table must be encoded, because it has text, dates or missing values."""
        return hasattr(self.search.preprocessor, "steps")

    @property
    def expression(self) -> str:
        """Python expression that creates the tuned SVM."""
        search = self.search
        given = [f"C={self.C:.9g}"]
        if search.kernel == "linear":
            given.insert(0, 'kernel="linear"')
        elif search.best_gamma_ != "scale":
            gamma = search.best_gamma_
            given.append(f'gamma="{gamma}"' if isinstance(gamma, str) else f"gamma={gamma:.9g}")
        if self.regression:
            given.append(f"epsilon={search.epsilon:.9g}")
        steps = "StandardScaler()"
        if self.encodes:
            keep = list(search.preprocessor.steps[0][1].keep)
            steps = f"TableEncoder({f'keep={keep}' if keep else ''}), {steps}"
        return f"make_pipeline({steps}, {'SVR' if self.regression else 'SVC'}({', '.join(given)}))"

    def curve_sheet(self) -> Sheet:
        """Return the segments of all validation curves as a table."""
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
        """Return all facts as a dictionary for JSON."""
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
    """Return the interval around C in which values are at most ``more`` worse than the best value.

    Only breakpoints are compared. This is enough, because continuous losses are convex between two
    breakpoints.
    """
    sign = -1.0 if curve.greater_is_better else 1.0
    bad = sign * (curve.at_breakpoints - curve.best) > more
    at = int(np.searchsorted(curve.breakpoints, C))
    left, right = np.flatnonzero(bad[:at]), np.flatnonzero(bad[at:])
    low = curve.breakpoints[left[-1] + 1] if len(left) else curve.breakpoints[0]
    high = curve.breakpoints[at + right[0] - 1] if len(right) else curve.breakpoints[-1]
    return IntervalOfC(float(min(low, C)), float(max(high, C)), True, True)
