"""Genetic search.

A population is a matrix of bits with one row per individual and one column per feature. Each
generation has its own random generator, derived from the seed and the generation number. So a
search that is stopped and resumed produces the same populations.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from tamis._arrays import EMPTY, Array, Mask, Subset, best_first, improves
from tamis._checks import NONE, Constraints, integer, number, one_of
from tamis._seeds import Seed, draw_seed, stream
from tamis.contract import Record, Search, Step, SubsetCriterion, Trace
from tamis.contract.search import Counted
from tamis.contract.steps import Standing
from tamis.exceptions import InvalidParameter

Draw = np.random.Generator


@dataclass(eq=False, repr=False, kw_only=True)
class Genetic(Search):
    """Genetic algorithm: select parents, cross them, mutate the children, keep the elite.

    If ``n_features_to_select`` is a number, every individual has exactly this size. With ``"best"``
    the size is not fixed, and ``Penalised(criterion, per_feature=...)`` keeps it small.
    ``Remembered(criterion)`` avoids computing the same score twice. Each step is a generation and
    records the best subset so far.

    Parameters
    ----------
    criterion : SubsetCriterion
        The criterion that scores the features.
    n_features_to_select : int, float, "best" or Choice, default=0.5
        Number of units (columns, or groups of columns) to select: a count, a fraction, ``"best"``,
        or a rule.
    population_size, n_generations : int, default=50
        Number of individuals, and number of generations after the first one.
    selection : {"tournament", "roulette", "raw-roulette", "universal", "rank", "reward"}
        How parents are drawn. ``"tournament"``, the default, takes the best of a few random
        individuals. All other rules draw with a probability proportional to a quantity.
        ``"roulette"`` and ``"universal"`` (stochastic universal sampling) use the value minus the
        worst value. ``"raw-roulette"`` uses the value itself, or 0 if it is negative. ``"rank"``
        uses the rank. ``"reward"`` uses the cumulative reward: the gain over the parents plus the
        mean reward of the parents.
    tournament_size : int, default=2
        Number of individuals in a tournament. A larger number favours the best individuals.
    crossover : {"uniform", "one-point", "two-point"}, default="uniform"
        How two parents exchange bits to make two children.
    crossover_rate : float, default=0.9
        Share of the pairs of parents that are crossed.
    mutation_rate : float or None, default=None
        Probability that a bit flips. None means one bit per individual on average.
    n_elite : int, default=2
        Number of best individuals that survive unchanged.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws.
    standardize : bool, default=True
        Whether the criterion gets columns of mean 0 and standard deviation 1.
    feature_groups, fixed_features, feature_costs
        Columns that are selected together, columns that are always selected, and prices, see
        :class:`Forward`.

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
    takes_limit = False

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

    # There are many parameters because the genetic operators define the method.
    population_size: int = 50
    n_generations: int = 50
    selection: str = "tournament"
    tournament_size: int = 2
    crossover: str = "uniform"
    crossover_rate: float = 0.9
    mutation_rate: float | None = None
    n_elite: int = 2
    random_state: Seed = None

    def _check(self) -> None:
        super()._check()
        if self.n_elite >= self.population_size:
            raise InvalidParameter(
                f"Genetic needs n_elite below population_size={self.population_size}, "
                f"not {self.n_elite}: otherwise the population would never change."
            )

    def _progress(self, record: Record) -> tuple[float, float | None, str]:
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
            found = _best_step(criterion, Step(EMPTY, -np.inf), people)
            yield found
        for _ in range(people.generation, self.n_generations):
            people = self._next(criterion, people, size)
            found = _best_step(criterion, found, people)
            yield found

    def _first(self, criterion: Counted, n_units: int, size: int | None) -> "Population":
        draw = stream(draw_seed(self.random_state), "generation", 0)
        shape = (self.population_size, n_units)
        density = draw.random((self.population_size, 1))  # a density per row, so that sizes vary
        bits = draw.random(shape) < density
        bits = resize_rows(bits, size, draw, criterion.fixed, criterion.idle)
        values = value_rows(criterion, bits)
        return Population(bits, values, np.zeros(len(values)), 0)

    def _next(self, criterion: Counted, people: "Population", size: int | None) -> "Population":
        """Return the next generation: the elite, and the children of selected parents."""
        draw = stream(draw_seed(self.random_state), "generation", people.generation + 1)
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
        children = resize_rows(children, size, draw, criterion.fixed, criterion.idle)
        values = value_rows(criterion, children)
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
    """A generation: the bits, value and cumulative reward of each individual."""

    bits: Mask
    values: Array
    rewards: Array
    generation: int

    def to_state(self) -> dict[str, Any]:
        """Return the generation as plain numbers and text, for the record."""
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


def value_rows(criterion: Counted, bits: Mask) -> Array:
    """Return the value of each row of bits. Equal rows are evaluated only once."""
    rows, index = np.unique(bits, axis=0, return_inverse=True)
    return criterion.values([np.flatnonzero(row) for row in rows])[index.ravel()]


def resize_rows(
    bits: Mask, size: int | None, draw: Draw, fixed: Subset = EMPTY, idle: Subset = EMPTY
) -> Mask:
    """Set or clear random bits so that each row has exactly ``size`` bits set.

    If ``size`` is None, each row has at least one bit. Constant and duplicate units are used only
    if there are not enough others.
    """
    bits[:, idle] = False
    bits[:, fixed] = True
    keys = bits + draw.random(bits.shape)  # set bits before cleared ones, each in random order
    keys[:, idle] -= 1
    keys[:, fixed] += 3
    falling = np.argsort(-keys, axis=1)
    count = np.maximum(bits.sum(axis=1, keepdims=True), 1) if size is None else size
    out = np.zeros_like(bits)
    np.put_along_axis(out, falling, np.arange(bits.shape[1]) < count, axis=1)
    return out


def _best_step(criterion: Counted, found: Standing, people: Population) -> Step:
    """Return a step with the best subset so far. Ties go to the best tie-breaking score."""
    subset, value = found.subset, found.value
    top = people.values.max()
    if improves(top, value) or (criterion.has_opinion and not improves(value, top)):
        equal = [not improves(top, other) for other in people.values]
        for row in np.unique(people.bits[equal], axis=0):
            if criterion.beats(one := np.flatnonzero(row), float(top), subset, value):
                subset, value = one, float(top)
    return Step(subset, value, state=people.to_state())


def above_worst(fitness: Array) -> Array:
    """Return probabilities proportional to fitness minus the worst fitness plus a small constant.

    Infinite fitness is treated as the best or the worst finite fitness.
    """
    finite = fitness[np.isfinite(fitness)]
    if not len(finite):
        return np.full(len(fitness), 1 / len(fitness))
    # scaled by a power of two, which is exact, so that differences and sums do not overflow
    unit = -int(np.frexp(np.abs(finite).max())[1])
    low, high = np.ldexp(finite.min(), unit), np.ldexp(finite.max(), unit)
    weight: Array = np.clip(np.ldexp(fitness, unit), low, high) - low
    weight = weight + 0.01 * weight.mean() if weight.any() else np.ones_like(weight)
    shares: Array = weight / weight.sum()
    return shares


def gained(values: Array, parents: Array) -> Array:
    """Return each child's value minus the mean value of its parents, or 0 if that is not finite."""
    with np.errstate(invalid="ignore"):
        gain = values - parents.mean(axis=1)
    return np.where(np.isfinite(gain), gain, 0.0)


def roulette(people: Population, count: int, draw: Draw) -> np.ndarray:
    """Draw individuals independently, in proportion to their value minus the worst value."""
    return draw.choice(len(people.values), count, p=above_worst(people.values))


def universal(people: Population, count: int, draw: Draw) -> np.ndarray:
    """Draw individuals by stochastic universal sampling, with ``count`` equidistant pointers.

    The pointers share one random offset.
    """
    pointers = (draw.random() + np.arange(count)) / count
    drawn = np.searchsorted(np.cumsum(above_worst(people.values)), pointers)
    return draw.permutation(np.minimum(drawn, len(people.values) - 1))


def raw_roulette(people: Population, count: int, draw: Draw) -> np.ndarray:
    """Draw individuals in proportion to their value, or uniformly if no value is above 0."""
    weight = np.nan_to_num(np.maximum(people.values, 0.0))
    weight = weight / weight.max() if weight.any() else np.ones_like(weight)
    return draw.choice(len(weight), count, p=weight / weight.sum())


def tournament(people: Population, count: int, draw: Draw, size: int = 2) -> np.ndarray:
    """Draw the best of ``size`` random individuals, ``count`` times."""
    some = draw.integers(len(people.values), size=(count, size))
    return np.asarray(some[np.arange(count), people.values[some].argmax(axis=1)])


def by_rank(people: Population, count: int, draw: Draw) -> np.ndarray:
    """Draw individuals in proportion to their rank, which is 1 for the worst one."""
    weight = np.empty(len(people.values))
    weight[best_first(people.values)] = np.arange(len(weight), 0, -1)
    return draw.choice(len(weight), count, p=weight / weight.sum())


def by_reward(people: Population, count: int, draw: Draw) -> np.ndarray:
    """Draw individuals in proportion to their cumulative reward minus the lowest one."""
    return draw.choice(len(people.values), count, p=above_worst(people.rewards))


def one_point(n_pairs: int, n_units: int, draw: Draw) -> Mask:
    """Return a mask for each pair of parents, which is true from a random position on."""
    return np.arange(n_units) >= draw.integers(1, max(n_units, 2), size=(n_pairs, 1))


def two_point(n_pairs: int, n_units: int, draw: Draw) -> Mask:
    """Return a mask for each pair of parents, which is true between two random positions."""
    cut = np.sort(draw.integers(0, n_units + 1, size=(n_pairs, 2)), axis=1)
    position = np.arange(n_units)
    return (position >= cut[:, :1]) & (position < cut[:, 1:])


def uniform(n_pairs: int, n_units: int, draw: Draw) -> Mask:
    """Return a mask for each pair of parents, in which each bit is true with probability 1/2."""
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
