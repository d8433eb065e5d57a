"""Hyper-parameters chosen on the first realizations, as many papers do it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.preprocessing import StandardScaler

from tamis._arrays import Array, best
from tamis._checks import check_values, one_of
from tamis._seeds import seed_of
from tamis.evaluation.realizations import Plan
from tamis.evaluation.sources import Source
from tamis.validation.resamples import folds_of

RULES = ("mean-of-5", "median-of-5", "each")
N_FIRST, N_FOLDS = 5, 5


def tuned(
    estimator: BaseEstimator,
    grid: Mapping[str, Sequence[Any]],
    source: Source,
    plan: Plan,
    *,
    rule: str = "mean-of-5",
    scoring: str | None = None,
    n_jobs: int | None = None,
) -> BaseEstimator:
    """The estimator with hyper-parameters chosen by 5-fold cross-validation.

    Parameters
    ----------
    estimator : estimator
    grid : dict of str to list
        Values of each parameter.
    source, plan
        The data and its realizations; only training parts are looked at.
    rule : {"mean-of-5", "median-of-5", "each"}
        The point of best mean score over the first five realizations; the median, parameter by
        parameter, of the points that are best in each of them; or a choice inside every training
        part, by ``GridSearchCV``.
    scoring : str, optional
        A scorer of scikit-learn; by default the estimator's own.
    n_jobs : int, optional
        Number of processes.
    """
    check_values("tuned", {"rule": one_of(*RULES)}, rule=rule)
    if rule == "each":
        return GridSearchCV(estimator, dict(grid), scoring=scoring, cv=N_FOLDS)
    points = list(ParameterGrid(dict(grid)))
    scores = np.array(
        [
            _scores(estimator, grid, source, plan, i, scoring, n_jobs)
            for i in range(min(N_FIRST, len(plan)))
        ]
    )
    if rule == "mean-of-5":
        chosen = points[best(scores.mean(axis=0))]
    else:
        winners = [points[best(row)] for row in scores]
        # of two in the middle the lower, so that it is one of them
        chosen = {
            name: sorted(point[name] for point in winners)[(len(winners) - 1) // 2] for name in grid
        }
    return clone(estimator).set_params(**chosen)


def _scores(
    estimator: BaseEstimator,
    grid: Mapping[str, Sequence[Any]],
    source: Source,
    plan: Plan,
    i: int,
    scoring: str | None,
    n_jobs: int | None,
) -> Array:
    """Mean cross-validated score of each point on one training part."""
    rows = source.at(i, plan.seed)
    train = plan.split(rows.y, source.name, i).train
    X, y = StandardScaler().fit_transform(rows.X[train]), rows.y[train]
    seed = seed_of(plan.seed, "tuning", source.name, i)
    folds = list(folds_of(y, np.arange(len(y)), N_FOLDS, seed))
    search = GridSearchCV(
        estimator, dict(grid), scoring=scoring, cv=folds, n_jobs=n_jobs, refit=False
    )
    return np.asarray(search.fit(X, y).cv_results_["mean_test_score"])
