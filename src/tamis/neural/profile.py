"""What columns look like in every class."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._arrays import Array


class ClassFeature(NamedTuple):
    """A column as the gates of one class see it.

    Attributes
    ----------
    column : int
    name : str
    gate : float
    mean, spread : arrays of shape (n_classes,)
        Mean and standard deviation of the column in every class, in its own units.
    """

    column: int
    name: str
    gate: float
    mean: Array
    spread: Array


@dataclass(frozen=True)
class Profile:
    """Mean and spread of every column in every class."""

    mean: Array
    spread: Array

    @classmethod
    def of(cls, X: Array, y: NDArray[Any], classes: NDArray[Any]) -> "Profile":
        # powers of two bring columns of any size to where sums and squares are finite
        exponent = np.frexp(np.abs(X).max(axis=0))[1]
        parts = [np.ldexp(X[y == label], -exponent) for label in classes]
        return cls(
            np.ldexp([part.mean(axis=0) for part in parts], exponent),
            np.ldexp([part.std(axis=0) for part in parts], exponent),
        )

    def of_column(self, j: int) -> tuple[Array, Array]:
        """Its means and standard deviations, one for each class."""
        return self.mean[:, j], self.spread[:, j]
