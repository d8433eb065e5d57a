"""How far a model's output moves when units are perturbed: one training for all of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array
from tamis._namespace import note, say_processor
from tamis.response.device import INSTEAD
from tamis.response.outputs import Output
from tamis.response.perturbations import Permutation, Perturbation, Removal, Replacement
from tamis.response.units import Units

#: Shuffles before a rank can be clear: fewer have no standard error worth the name.
FEWEST_SHUFFLES = 3


def losses(output: Output, perturbation: Perturbation, units: Units) -> Array:
    """Losses of shape (repeats, units), nan where a repeat was spared."""
    if isinstance(perturbation, Replacement):
        X = output.training.columns(output.estimator, units.columns)
        return by_replacing(output, perturbation, units, X)
    say_processor("Models without a column, and derivatives, are compared", INSTEAD)
    note("scores")
    X = output.training.X[:, units.columns]
    if isinstance(perturbation, Removal):
        return by_removal(output, units, X)[None]
    return output.slopes(X, units, perturbation)[None]


def by_replacing(output: Output, way: Replacement, units: Units, X: Any) -> Array:
    """Losses by the draws of a replacement."""
    comparison, sizes = output.comparison(output.models(X), X), units.by_size()
    seed = output.training.seed
    found = np.full((way.n_draws, len(units.sizes)), np.nan)
    draws = zip(*(way.draws(X, columns, seed) for _, columns in sizes), strict=True)
    for repeat, of_size in enumerate(draws):
        wanted = np.ones(len(units.sizes), dtype=bool)
        if isinstance(way, Permutation) and way.stop_when_sure and repeat >= FEWEST_SHUFFLES:
            wanted = unclear(found[:repeat])
            if not wanted.any():
                break
        for (which, columns), draw in zip(sizes, of_size, strict=True):
            found[repeat, which] = comparison.scores(columns, draw, wanted[which])
        found[repeat, ~wanted] = np.nan
    return found


def by_removal(output: Output, units: Units, X: Array) -> Array:
    """Distance from the outputs of models trained without each unit."""
    distance = output.distance(output.models(X), X)
    found = []
    for index in range(len(units.sizes)):
        rest = output.training.X[:, units.without(index)]
        models = output.models(rest) if rest.shape[1] else output.constants()
        found.append(distance(models, rest))
    return np.array(found)


def unclear(scores: Array) -> NDArray[np.bool_]:
    """Units whose rank is open: two scores within two standard errors of both.

    >>> unclear(np.array([[0.0, 1.0, 1.1], [0.1, 1.2, 1.0], [0.0, 1.1, 1.2]]))
    array([False,  True,  True])
    """
    means, errors = mean_and_error(scores)
    order = np.argsort(means)
    gaps = np.diff(means[order]) <= 2 * np.hypot(errors[order][1:], errors[order][:-1])
    found = np.zeros(len(means), dtype=bool)
    found[order[1:]] |= gaps
    found[order[:-1]] |= gaps
    return found


def mean_and_error(scores: Array) -> tuple[Array, Array]:
    """Means over two repeats or more and their standard errors; nan where a repeat was spared."""
    counts = np.isfinite(scores).sum(axis=0)
    errors = np.nanstd(scores, axis=0, ddof=1) / np.sqrt(counts)
    return np.asarray(np.nanmean(scores, axis=0)), np.asarray(errors)
