"""A genetic search on a matrix of bits: one row an individual, one column a feature.

Every draw of a generation comes from a stream labelled by the seed and the generation, so a search
that is stopped and resumed breeds the same population.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tamis._arrays import EMPTY, Array, Mask, Subset, best_first, improves
from tamis._checks import NONE, Constraints, integer, number, one_of
from tamis._seeds import stream
from tamis.contract import Record, Search, Step, SubsetCriterion, Trace
from tamis.contract.choice import SizeLike
from tamis.contract.search import Counted
from tamis.contract.steps import Standing
from tamis.exceptions import InvalidParameter

Draw = np.random.Generator


class Genetic(Search):
    """Breed subsets: select parents, cross them, flip bits, keep the elite.

    With a number of features every individual has exactly that size; with
    ``n_features_to_select="best"`` the size is free, and ``Penalised(criterion, per_feature=...)``
    keeps it small. ``Remembered(criterion)`` saves what comes again. Each step is a generation and
    holds the best subset so far.

    Parameters
    ----------
    criterion : SubsetCriterion
    n_features_to_select : int, float, "best" or Choice, default=0.5
    population_size, n_generations : int, default=50
    selection : {"tournament", "roulette", "raw-roulette", "universal", "rank", "reward"}
        How parents are drawn: the best of some, the default; in proportion to the value above the
        worst (independent draws, or stochastic universal sampling), or to the value itself, of
        which less than 0 counts as 0; to the rank; or to the cumulative reward, the value gained
        over the parents plus the mean reward of the parents.
    tournament_size : int, default=2
        How many meet in a tournament: of more the best win more often.
    crossover : {"uniform", "one-point", "two-point"}, default="uniform"
    crossover_rate : float, default=0.9
        Share of the pairs that are crossed.
    mutation_rate : float or None, default=None
        Probability that a bit flips; None is one bit an individual on average.
    n_elite : int, default=2
        How many of the best live on unchanged.
    random_state : int, Generator, RandomState or None, default=None
    standardize : bool, default=True
    feature_groups, fixed_features
        Columns that are taken or left together, and units that always stay, see :class:`Forward`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from tamis.criteria import Scatter
    >>> X, y = load_wine(return_X_y=True)
    >>> search = Genetic(Scatter("J3"), n_features_to_select=6, random_state=0)
    >>> search.fit(X, y).get_support(indices=True)
    array([ 0,  3,  6,  9, 11, 12])
    """

    needs = (SubsetCriterion,)
    extends = False
    holds_best = True

    _constraints: ClassVar[Constraints] = {
        "population_size": integer(2),
        "n_generations": integer(1),
        "selection": one_of(
            "tournament", "roulette", "raw-roulette", "universal", "rank", "reward"
        ),
        "tournament_size": integer(1),
        "crossover": one_of("uniform", "one-point", "two-point"),
        "crossover_rate": number(least=0, most=1),
        "mutation_rate": number(least=0, most=1) | NONE,
        "n_elite": integer(0),
    }

    # More parameters than elsewhere in tamis: the operators are what the method is.
    def __init__(
        self,
        criterion: SubsetCriterion,
        *,
        n_features_to_select: SizeLike = 0.5,
        population_size: int = 50,
        n_generations: int = 50,
        selection: str = "tournament",
        tournament_size: int = 2,
        crossover: str = "uniform",
        crossover_rate: float = 0.9,
        mutation_rate: float | None = None,
        n_elite: int = 2,
        random_state: Any = None,
        standardize: bool = True,
        feature_groups: Any = None,
        fixed_features: Any = None,
    ):
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.standardize = standardize
        self.feature_groups = feature_groups
        self.fixed_features = fixed_features
        self.population_size = population_size
        self.n_generations = n_generations
        self.selection = selection
        self.tournament_size = tournament_size
        self.crossover = crossover
        self.crossover_rate = crossover_rate
        self.mutation_rate = mutation_rate
        self.n_elite = n_elite
        self.random_state = random_state

    def _check(self) -> None:
        super()._check()
        if self.n_elite >= self.population_size:
            raise InvalidParameter(
                f"Genetic needs n_elite below population_size={self.population_size}, "
                f"not {self.n_elite}: an elite of all would never change."
            )

    def _way(self, record: Record) -> tuple[float, float | None, str]:
        n_steps = len(record.trace)
        return n_steps, self.n_generations + 1, f"generation {n_steps - 1}"

    def _steps(
        self, criterion: Counted, n_units: int, size: int | None, done: Trace
    ) -> Iterator[Step]:
        found: Standing
        if len(done):
            found, people = done[-1], Population.from_state(done.state, n_units)
        else:
            people = self._first(criterion, n_units, size)
            yield (best := _better(criterion, Step(EMPTY, -np.inf), people))
            found = best
        for _ in range(people.generation, self.n_generations):
            people = self._next(criterion, people, size)
            yield (best := _better(criterion, found, people))
            found = best

    def _first(self, criterion: Counted, n_units: int, size: int | None) -> "Population":
        draw = stream(self.random_state, "generation", 0)
        shape = (self.population_size, n_units)
        density = draw.random((self.population_size, 1))  # small and large subsets alike
        bits = draw.random(shape) < density
        bits = resized(bits, size, draw, criterion.fixed, criterion.idle)
        values = valued(criterion, bits)
        return Population(bits, values, np.zeros(len(values)), 0)

    def _next(self, criterion: Counted, people: "Population", size: int | None) -> "Population":
        """Elite, and children of the selected in place of the others."""
        draw = stream(self.random_state, "generation", people.generation + 1)
        elite = best_first(people.values)[: self.n_elite]
        n_children = self.population_size - len(elite)
        n_pairs = -(-n_children // 2)
        pairs = self._parents(people, 2 * n_pairs, draw).reshape(n_pairs, 2)
        mixed = CROSSOVERS[self.crossover](n_pairs, people.bits.shape[1], draw)
        mixed &= draw.random((n_pairs, 1)) < self.crossover_rate
        one, two = people.bits[pairs[:, 0]], people.bits[pairs[:, 1]]
        children = np.vstack([np.where(mixed, two, one), np.where(mixed, one, two)])[:n_children]
        rate = 1 / people.bits.shape[1] if self.mutation_rate is None else self.mutation_rate
        children ^= draw.random(children.shape) < rate
        children = resized(children, size, draw, criterion.fixed, criterion.idle)
        values = valued(criterion, children)
        parents = np.vstack([pairs, pairs])[:n_children]
        rewards = gained(values, people.values[parents]) + people.rewards[parents].mean(axis=1)
        return Population(
            np.vstack([people.bits[elite], children]),
            np.r_[people.values[elite], values],
            np.r_[people.rewards[elite], rewards],
            people.generation + 1,
        )

    def _parents(self, people: "Population", count: int, draw: Draw) -> np.ndarray:
        if self.selection == "tournament":
            return tournament(people, count, draw, self.tournament_size)
        return SELECTIONS[self.selection](people, count, draw)


class Population(NamedTuple):
    """One generation: bits, values, cumulative rewards."""

    bits: Mask
    values: Array
    rewards: Array
    generation: int

    def to_state(self) -> dict[str, Any]:
        """Plain numbers and text, for the record."""
        return {
            "bits": [row.tobytes().hex() for row in np.packbits(self.bits, axis=1)],
            "values": self.values.tolist(),
            "rewards": self.rewards.tolist(),
            "generation": self.generation,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], n_units: int) -> "Population":
        packed = np.array([list(bytes.fromhex(row)) for row in state["bits"]], dtype=np.uint8)
        bits = np.unpackbits(packed, axis=1, count=n_units).astype(bool)
        values, rewards = np.array(state["values"]), np.array(state["rewards"])
        return cls(bits, values, rewards, state["generation"])


def valued(criterion: Counted, bits: Mask) -> Array:
    """Values of all rows, each distinct row asked for once."""
    rows, place = np.unique(bits, axis=0, return_inverse=True)
    return criterion.values([np.flatnonzero(row) for row in rows])[place.ravel()]


def resized(
    bits: Mask, size: int | None, draw: Draw, fixed: Subset = EMPTY, idle: Subset = EMPTY
) -> Mask:
    """Rows with exactly ``size`` bits, or at least one: random bits set or cleared as needed.

    Units that can tell nothing are only there where others do not suffice.
    """
    bits[:, idle] = False
    bits[:, fixed] = True
    keys = bits + draw.random(bits.shape)  # members before others, at random among equals
    keys[:, idle] -= 1
    keys[:, fixed] += 3
    falling = np.argsort(-keys, axis=1)
    count = np.maximum(bits.sum(axis=1, keepdims=True), 1) if size is None else size
    out = np.zeros_like(bits)
    np.put_along_axis(out, falling, np.arange(bits.shape[1]) < count, axis=1)
    return out


def _better(criterion: Counted, found: Standing, people: Population) -> Step:
    """The best subset so far, as a step; of equals the best by opinion, or the first."""
    subset, value = found.subset, found.value
    top = people.values.max()
    if improves(top, value) or (criterion.has_opinion and not improves(value, top)):
        equal = [not improves(top, other) for other in people.values]
        for row in np.unique(people.bits[equal], axis=0):
            if criterion.beats(one := np.flatnonzero(row), float(top), subset, value):
                subset, value = one, float(top)
    return Step(subset, value, state=people.to_state())


def above_worst(fitness: Array) -> Array:
    """Probabilities in proportion to the fitness above the worst, which keeps a small chance.

    What cannot be valued (-inf) counts as the worst that can, what is beyond measure as the best.
    """
    finite = fitness[np.isfinite(fitness)]
    if not len(finite):
        return np.full(len(fitness), 1 / len(fitness))
    # in units of a power of two, which rounds nothing: differences and sums must not overflow
    unit = -int(np.frexp(np.abs(finite).max())[1])
    low, high = np.ldexp(finite.min(), unit), np.ldexp(finite.max(), unit)
    weight: Array = np.clip(np.ldexp(fitness, unit), low, high) - low
    weight = weight + 0.01 * weight.mean() if weight.any() else np.ones_like(weight)
    shares: Array = weight / weight.sum()
    return shares


def gained(values: Array, parents: Array) -> Array:
    """Value of each child above the mean of its parents, 0 where one of them has none."""
    with np.errstate(invalid="ignore"):
        gain = values - parents.mean(axis=1)
    return np.where(np.isfinite(gain), gain, 0.0)


def roulette(people: Population, count: int, draw: Draw) -> np.ndarray:
    """Independent draws in proportion to the fitness."""
    return draw.choice(len(people.values), count, p=above_worst(people.values))


def universal(people: Population, count: int, draw: Draw) -> np.ndarray:
    """Stochastic universal sampling: one spin of a wheel with ``count`` equidistant pointers."""
    pointers = (draw.random() + np.arange(count)) / count
    places = np.searchsorted(np.cumsum(above_worst(people.values)), pointers)
    return draw.permutation(np.minimum(places, len(people.values) - 1))


def raw_roulette(people: Population, count: int, draw: Draw) -> np.ndarray:
    """Independent draws in proportion to the value itself; anyone where none is above 0."""
    weight = np.nan_to_num(np.maximum(people.values, 0.0))
    weight = weight / weight.max() if weight.any() else np.ones_like(weight)
    return draw.choice(len(weight), count, p=weight / weight.sum())


def tournament(people: Population, count: int, draw: Draw, size: int = 2) -> np.ndarray:
    """The best of some, drawn at random for each place."""
    some = draw.integers(len(people.values), size=(count, size))
    return np.asarray(some[np.arange(count), people.values[some].argmax(axis=1)])


def by_rank(people: Population, count: int, draw: Draw) -> np.ndarray:
    """In proportion to the rank, 1 for the worst."""
    weight = np.empty(len(people.values))
    weight[best_first(people.values)] = np.arange(len(weight), 0, -1)
    return draw.choice(len(weight), count, p=weight / weight.sum())


def by_reward(people: Population, count: int, draw: Draw) -> np.ndarray:
    """In proportion to the cumulative reward above the lowest."""
    return draw.choice(len(people.values), count, p=above_worst(people.rewards))


def one_point(n_pairs: int, n_units: int, draw: Draw) -> Mask:
    """Bits behind one random place."""
    return np.arange(n_units) >= draw.integers(1, max(n_units, 2), size=(n_pairs, 1))


def two_point(n_pairs: int, n_units: int, draw: Draw) -> Mask:
    """Bits between two random places."""
    cut = np.sort(draw.integers(0, n_units + 1, size=(n_pairs, 2)), axis=1)
    place = np.arange(n_units)
    return (place >= cut[:, :1]) & (place < cut[:, 1:])


def uniform(n_pairs: int, n_units: int, draw: Draw) -> Mask:
    """Each bit with probability one half."""
    return draw.random((n_pairs, n_units)) < 0.5


SELECTIONS: dict[str, Callable[[Population, int, Draw], np.ndarray]] = {
    "tournament": tournament,
    "roulette": roulette,
    "raw-roulette": raw_roulette,
    "universal": universal,
    "rank": by_rank,
    "reward": by_reward,
}
CROSSOVERS: dict[str, Callable[[int, int, Draw], Mask]] = {
    "uniform": uniform,
    "one-point": one_point,
    "two-point": two_point,
}
