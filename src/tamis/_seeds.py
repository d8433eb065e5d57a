"""Seeds and random generators derived from labels, so that the order of draws does not matter."""

from copy import copy
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from sklearn.base import BaseEstimator

from tamis.exceptions import InvalidParameter

#: Values that a parameter ``random_state`` accepts.
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def stream(seed: int, *labels: object) -> np.random.Generator:
    """Return a random generator for a combination of a seed and labels.

    The same seed and labels always give the same draws. A different seed or different labels give
    independent draws. An array is identified by its integers, any other label by its text.

    >>> stream(0, "split", "wine", 17).integers(100)  # realization 17, for every method
    np.int64(36)
    """
    return np.random.default_rng([seed, *(crc32(_label(label)) for label in labels)])


def seed_of(seed: int, *labels: object) -> int:
    """Return an int seed for a combination of a seed and labels, see :func:`stream`.

    It is meant for code that accepts only ints as seeds.

    >>> seed_of(0, "round", 3)
    1086932139
    """
    return int(stream(seed, *labels).integers(2**31))


def _label(label: object) -> bytes:
    if isinstance(label, np.ndarray):
        return np.ascontiguousarray(label, dtype=np.int64).tobytes()
    return str(label).encode()


def draw_seed(random_state: Seed = None) -> int:
    """Return an int seed for a ``random_state``.

    An int is returned unchanged. None gives a new random seed. A generator draws a seed.
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
    """Set every ``random_state`` of an estimator to an int seed, in place. Ints are kept.

    Splitters such as ``KFold(shuffle=True)`` are included. The seeds are returned as a dictionary
    with parameter names as keys.

    Parameters
    ----------
    estimator : estimator
        Its parameters are found with ``get_params``. Some objects seed their own parts and list
        these parts in ``seeds_parts``. A ``random_state`` of None in such a part is not replaced.
    seeds : dict or None, default=None
        Seeds of an earlier call to use again, so that a resumed search makes the same draws.
    root : int or None, default=None
        The seed from which the new seeds are derived. None means the ``random_state`` of the
        estimator.
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
    """Whether a ``random_state`` belongs to a part that its containing object seeds.

    ``name`` is the full parameter name, such as ``criterion__estimator__random_state``. The
    containing object lists these parts in ``seeds_parts``.
    """
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
