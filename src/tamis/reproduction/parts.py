"""What the words of an experiment file stand for: data and methods."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sklearn.base import BaseEstimator, clone

from tamis import datasets
from tamis.contract import Selection
from tamis.evaluation import Fresh
from tamis.exceptions import InvalidSpec
from tamis.recipes import method as from_recipe
from tamis.recipes import names as recipe_names
from tamis.recipes import prepare
from tamis.reproduction.experiment import Part
from tamis.spec import parse
from tamis.table.frames import need_polars

if TYPE_CHECKING:
    from tamis.table.rows import ResampledTable


def own_table(part: Part) -> "ResampledTable | None":
    """The table of one's own that a part reads; None where its data are ours."""
    if "read" not in part.data:
        return None
    need_polars()
    from tamis.table.rows import resampled
    from tamis.table.table import read

    asked = part.data
    keep = tuple(asked.get("keep", ()))
    table = read(
        asked["read"],
        asked["target"],
        task=asked.get("task", "auto"),
        drop=tuple(asked.get("drop", ())),
        keep=keep,
    )
    plain = table.is_plain
    return resampled(asked["name"], table.labelled(), plain=plain, keep=keep)


def for_table(method: Any, table: "ResampledTable | None") -> Any:
    """The method as it reads a table of one's own."""
    if table is None:
        return method
    if isinstance(method, Selection):
        method = prepare(method, table.source.rows.y, task=table.task)
    return table.method(method)


def data_of(part: Part, seed: int) -> Any:
    """Data by name: a table, a problem drawn once, or one drawn for every realization."""
    options = dict(part.data)
    relevant = options.pop("relevant", None)
    if "load" in options:
        table = datasets.load(options.pop("load"))
        if options:
            raise InvalidSpec(f"load takes no {min(options)}.")
        return {table.name: table if relevant is None else _Known(table.X, table.y, relevant)}
    make_name, fresh = str(options.pop("make")), bool(options.pop("fresh", False))
    if make_name not in datasets.__all__ or not make_name.startswith("make_"):
        raise InvalidSpec(f"there is no problem {make_name!r}.")
    make, name = getattr(datasets, make_name), make_name.removeprefix("make_")
    n_samples = options.pop("n_samples")
    if fresh:
        return {name: Fresh(make, n_samples, options, name)}
    return {name: make(n_samples, random_state=options.pop("seed", seed), **options)}


class _Known(NamedTuple):
    """A table whose relevant columns are known from elsewhere."""

    X: Any
    y: Any
    relevant: Any
    equivalent: None = None


def method_of(text: str, estimators: Mapping[str, BaseEstimator]) -> Any:
    """Selector meant by a recipe or an expression that may call the experiment's estimators."""
    if text.partition("(")[0].strip() in recipe_names():
        return from_recipe(text)
    calls = {name: _calling(estimator) for name, estimator in estimators.items()}
    made = parse(text, also=calls)
    if not hasattr(made, "fit"):
        raise InvalidSpec(f"{text!r} is no method: it cannot be fitted.")
    return made


def _calling(estimator: BaseEstimator) -> Callable[[], BaseEstimator]:
    def again() -> BaseEstimator:
        return clone(estimator)

    return again
