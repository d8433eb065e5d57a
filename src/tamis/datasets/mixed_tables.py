"""Synthetic tables with missing values, categories, dates, identifiers and duplicate columns."""

from datetime import date, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis._checks import integer, one_of
from tamis._frame import frame
from tamis._seeds import Seed
from tamis.datasets.problem import Floats, begin

Generator = np.random.Generator
Values = list[Any]


class MixedTable(NamedTuple):
    """Synthetic table with columns of several kinds.

    Attributes
    ----------
    columns : dict of str to list
        Values of each column; missing values are None.
    y : ndarray
        Classes (strings) or a numeric target.
    relevant : tuple of str
        Names of the columns from which the target was computed.

    Examples
    --------
    >>> from tamis.datasets import make_mixed
    >>> table = make_mixed(100, random_state=0, like="visits")
    >>> table.to_frame().shape, table.relevant
    ((100, 7), ('start', 'pressure', 'smoker'))
    """

    columns: dict[str, Values]
    y: NDArray[Any]
    relevant: tuple[str, ...]

    def to_frame(self) -> Any:
        """Return the columns as a polars frame, or as a pandas frame if polars is not installed."""
        return frame(self.columns)


def make_mixed(
    n_samples: int = 300, *, random_state: Seed = None, like: str = "passengers"
) -> MixedTable:
    """Make a table of numbers, categories, dates and texts, similar to a well-known data set.

    Parameters
    ----------
    n_samples : int, default=300
        Number of rows.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    like : {"passengers", "incomes", "houses", "visits"}, default="passengers"
        Kind of table:

        - "passengers": survival of a shipwreck, with names, tickets and missing ages;
        - "incomes": high income, mostly from categories;
        - "houses": prices (a numeric target), with dates of sale and quality grades as text;
        - "visits": return to a clinic, with dates.

    Returns
    -------
    MixedTable
        The table, with the names of its relevant columns.

    Examples
    --------
    >>> from tamis.datasets import make_mixed
    >>> table = make_mixed(100, random_state=0, like="houses")
    >>> table.relevant
    ('area', 'quality', 'sold')
    >>> list(table.columns)[:4]
    ['number', 'area', 'rooms', 'quality']
    """
    rng = begin("make_mixed", locals(), like=one_of(*MAKERS))
    return MAKERS[like](n_samples, rng)


def make_genes(
    n_samples: int = 80, *, random_state: Seed = None, n_genes: int = 5000, n_gaps: int = 229
) -> MixedTable:
    """Make a wide table of gene expression with the usual defects of laboratory files.

    The three classes depend on the first 20 genes. The table also has a sample identifier, a date,
    a site, two duplicates of the gene ``g3``, genes with missing values, and a number that encodes
    the class.

    Parameters
    ----------
    n_samples : int, default=80
        Number of rows.
    random_state : int, None, Generator or RandomState, default=None
        Seed or generator of the random numbers.
    n_genes, n_gaps : int
        Number of genes (by default 5000), and number of genes with missing values (by default 229).

    Returns
    -------
    MixedTable
        The table, with relevant columns ``g0`` to ``g19``.

    Examples
    --------
    >>> from tamis.datasets import make_genes
    >>> list(make_genes(30, random_state=0, n_genes=25, n_gaps=5).columns)[-3:]
    ['g3_copy', 'g3_again', 'code']
    """
    begin("make_genes", locals(), n_samples=integer(10), n_genes=integer(20))
    rng, n = begin("make_genes", locals(), n_gaps=integer(0, n_genes - 20)), n_samples
    classes = rng.integers(0, 3, n)
    X = rng.standard_normal((n, n_genes))
    X[:, :20] += classes[:, None] * rng.uniform(0.5, 1.5, 20)
    columns: dict[str, Values] = {
        "sample": [f"P{j:05d}" for j in rng.permutation(n)],
        "taken": [day.isoformat() for day in _days(date(2019, 1, 1), rng.integers(0, 900, n))],
        "site": _draw(rng, n, ["Basel", "Bern", "Graz", "Lyon"]),
    }
    columns |= {f"g{j}": np.round(X[:, j], 4).tolist() for j in range(n_genes)}
    for j in range(n_genes - n_gaps, n_genes):
        _remove_values(rng, columns[f"g{j}"], 0.2)
    columns |= {"g3_copy": list(columns["g3"]), "g3_again": list(columns["g3"])}
    columns["code"] = (10 * (classes + 1)).tolist()
    labels = np.array(["ALL", "AML", "MLL"])[classes]
    return MixedTable(columns, labels, tuple(f"g{j}" for j in range(20)))


def _passengers(n: int, rng: Generator) -> MixedTable:
    sex, rank = _draw(rng, n, ["female", "male"], [0.35, 0.65]), rng.integers(1, 4, n)
    age = np.round(np.clip(rng.normal(30, 14, n), 0.5, 80), 1)
    merit = 2.6 * (np.array(sex) == "female") - 0.9 * rank - 0.03 * age + 1.4
    columns: dict[str, Values] = {
        "PassengerId": list(range(1, n + 1)),
        "Pclass": rank.tolist(),
        "Name": [f"Person {j} of {w}" for j, w in enumerate(_draw(rng, n, ["Cork", "Kent"]))],
        "Sex": sex,
        "Age": _remove_values(rng, age.tolist(), 0.2),
        "SibSp": rng.poisson(0.5, n).tolist(),
        "Ticket": [f"T{k}" for k in rng.integers(0, 3 * n, n)],
        "Fare": np.round(rng.lognormal(3, 0.6, n), 2).tolist(),
        "Embarked": _remove_values(rng, _draw(rng, n, ["C", "Q", "S"], [0.2, 0.1, 0.7]), 0.02),
    }
    return MixedTable(columns, _labels(rng, merit, "died", "survived"), ("Pclass", "Sex", "Age"))


def _incomes(n: int, rng: Generator) -> MixedTable:
    schools = ["HS-grad", "Some-college", "Bachelors", "Masters", "Doctorate"]
    years = rng.integers(0, 5, n)
    hours, married = rng.integers(10, 70, n), rng.random(n) < 0.5
    merit = 0.9 * (years - 2) + 0.06 * (hours - 40) + 1.5 * (married - 0.5)
    columns: dict[str, Values] = {
        "age": rng.integers(17, 80, n).tolist(),
        "workclass": _remove_values(rng, _draw(rng, n, ["Private", "State", "Self", "None"]), 0.06),
        "weight": rng.integers(20_000, 400_000, n).tolist(),
        "education": [schools[k] for k in years],
        "married": married.tolist(),
        "race": _draw(rng, n, ["a", "b", "c", "d", "e"], [0.8, 0.1, 0.05, 0.03, 0.02]),
        "hours": hours.tolist(),
        "country": _remove_values(rng, _draw(rng, n, [f"land{k}" for k in range(30)]), 0.02),
    }
    return MixedTable(
        columns, _labels(rng, merit, "<=50K", ">50K"), ("education", "hours", "married")
    )


def _houses(n: int, rng: Generator) -> MixedTable:
    grades = ["poor", "fair", "typical", "good", "excellent"]
    quality, area = rng.integers(0, 5, n), np.round(rng.lognormal(7.2, 0.3, n))
    sold = rng.integers(0, 1500, n)
    price = 90 * area + 25_000 * quality + 60 * sold + rng.normal(0, 12_000, n)
    columns: dict[str, Values] = {
        "number": list(range(1, n + 1)),
        "area": area.tolist(),
        "rooms": rng.integers(2, 12, n).tolist(),
        "quality": [grades[q] for q in quality],
        "alley": _remove_values(rng, _draw(rng, n, ["gravel", "paved"]), 0.9),
        "frontage": _remove_values(rng, np.round(rng.normal(70, 20, n)).tolist(), 0.17),
        "district": _draw(rng, n, [f"district {k}" for k in range(12)]),
        "street": ["paved"] * n,
        "sold": _days(date(2006, 1, 1), sold),
    }
    return MixedTable(columns, np.round(price, 2), ("area", "quality", "sold"))


def _visits(n: int, rng: Generator) -> MixedTable:
    start = _days(date(2023, 1, 2), rng.integers(0, 365, n))
    pressure, smoker = rng.normal(130, 15, n), rng.random(n) < 0.3
    weekend = np.array([d.weekday() >= 5 for d in start])
    merit = 0.05 * (pressure - 130) + 1.6 * (smoker - 0.3) + 1.8 * (weekend - 0.3)
    columns: dict[str, Values] = {
        "visit": [f"{k:06x}" for k in rng.permutation(16 * n)[:n]],
        "start": [d.isoformat() for d in start],
        "ward": _draw(rng, n, ["A", "B", "C"]),
        "pressure": _remove_values(rng, np.round(pressure).tolist(), 0.1),
        "smoker": _remove_values(rng, smoker.tolist(), 0.05),
        "remark": [f"came by {w} and left" for w in _draw(rng, n, [f"way {k}" for k in range(n)])],
        "weight": np.round(rng.normal(75, 12, n), 1).tolist(),
    }
    return MixedTable(columns, _labels(rng, merit, "no", "yes"), ("start", "pressure", "smoker"))


MAKERS = {"passengers": _passengers, "incomes": _incomes, "houses": _houses, "visits": _visits}


def _labels(rng: Generator, merit: Floats, no: str, yes: str) -> NDArray[Any]:
    """Draw the class ``yes`` or ``no`` for each row, by a logistic model of ``merit``."""
    return np.where(rng.random(len(merit)) < 1 / (1 + np.exp(-1.5 * merit)), yes, no)


def _draw(rng: Generator, n: int, words: list[str], shares: list[float] | None = None) -> Values:
    values: Values = rng.choice(words, n, p=shares).tolist()
    return values


def _days(first: date, later: NDArray[Any]) -> list[date]:
    return [first + timedelta(days=int(k)) for k in later]


def _remove_values(rng: Generator, values: Values, share: float) -> Values:
    """Replace about the given share of the values (at least one) with None."""
    missing = rng.random(len(values)) < share
    missing[rng.integers(len(values))] = True
    values[:] = [None if gone else value for value, gone in zip(values, missing, strict=True)]
    return values
