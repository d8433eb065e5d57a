"""Seeds: one stream per label, so that no result depends on the order of the draws."""

from copy import copy
from typing import Any
from zlib import crc32

import numpy as np
from sklearn.base import BaseEstimator

from tamis.exceptions import InvalidParameter


def stream(seed: int, *labels: object) -> np.random.Generator:
    """Independent generator for a named piece of work.

    Arrays are labelled by their numbers, everything else by its text.

    >>> stream(0, "split", "wine", 17).integers(100)  # realization 17, for every method
    np.int64(36)
    """
    return np.random.default_rng([seed, *(crc32(_label(label)) for label in labels)])


def seed_of(seed: int, *labels: object) -> int:
    """A seed for a named piece of work, for what takes numbers and no generators.

    >>> seed_of(0, "round", 3)
    1086932139
    """
    return int(stream(seed, *labels).integers(2**31))


def _label(label: object) -> bytes:
    if isinstance(label, np.ndarray):
        return np.ascontiguousarray(label, dtype=np.int64).tobytes()
    return str(label).encode()


def draw_seed(random_state: Any = None) -> int:
    """Seed for :func:`stream` and for scikit-learn, which refuses generators.

    An integer is its own seed; None is fresh entropy; a generator is drawn from.
    """
    if isinstance(random_state, int | np.integer) and random_state >= 0:
        return int(random_state)
    try:
        return int(np.random.default_rng(random_state).integers(2**31))
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"random_state needs to be an int >= 0, a generator or None, not {random_state!r}."
        ) from error


def fix_seeds(
    estimator: BaseEstimator, seeds: dict[str, int] | None = None, *, root: int | None = None
) -> dict[str, int]:
    """Replace every ``random_state`` in ``estimator`` that is not a number by one, in place.

    Parameters are reached through ``get_params``, splitters (``KFold(shuffle=True)``) as values of
    parameters. With ``seeds`` from an earlier call the same numbers are set again, which is how a
    resumed search continues with the draws it began with; ``root`` is the seed that the others are
    derived from, by default the estimator's own. The None of a part that the object around it names
    in ``seeds_parts`` stays: such a part takes the seed of that object.
    """
    seeds = {} if seeds is None else dict(seeds)
    params = estimator.get_params()
    root = draw_seed(params.get("random_state")) if root is None else root
    for name, value in sorted(params.items()):
        if name.split("__")[-1] == "random_state":
            if value is None and _is_seeded_inside(name, params, estimator):
                continue
            if not isinstance(value, int | np.integer):
                fresh = root if name == "random_state" else _derived(root, name, value)
                seed = seeds.setdefault(name, fresh)
                estimator.set_params(**{name: seed})
        elif hasattr(value, "random_state") and _is_unseeded_splitter(value):
            key, splitter = f"{name}__random_state", copy(value)
            splitter.random_state = seeds.setdefault(key, _derived(root, key, value.random_state))
            estimator.set_params(**{name: splitter})
    return seeds


def _is_seeded_inside(name: str, params: dict[str, Any], estimator: BaseEstimator) -> bool:
    """Whether a ``random_state`` belongs to a part that the object around it seeds itself."""
    around, _, part = name.removesuffix("__random_state").rpartition("__")
    return part in getattr(params[around] if around else estimator, "seeds_parts", ())


def _is_unseeded_splitter(value: Any) -> bool:
    if hasattr(value, "get_params"):
        return False
    return getattr(value, "shuffle", True) and not isinstance(value.random_state, int | np.integer)


def _derived(root: int, name: str, value: Any) -> int:
    if value is None:
        return seed_of(root, name)
    return draw_seed(value)
