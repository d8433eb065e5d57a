"""What a search is offered of a table: numbers, the units they belong to, and a checked target."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _check_y, check_consistent_length

from tamis._arrays import Array, Subset, target_kind, times_as_days
from tamis._format import format_names
from tamis.blocks.inputs import check_target_rows
from tamis.contract.units import Grouping, resolve_units
from tamis.density.discrete import category_mask
from tamis.exceptions import InvalidParameter, InvalidTable, InvalidTarget
from tamis.search.categories import with_categories
from tamis.table.alerts import check_finite, profiled
from tamis.table.encoder import TableEncoder, coded, median_imputer, read_frame
from tamis.table.frames import check_names, is_frame, take
from tamis.table.kinds import TableProfile, columns_of


class Offered(NamedTuple):
    """What a search is offered of a table.

    Attributes
    ----------
    codes : array
        One number for each cell of the table, which tells it from others.
    y : array or None
    Z : array
        The numbers to choose from.
    outer, inner : Grouping
        The units of the columns of the table, and those of the columns of ``Z``.
    outside : array of int
        For each unit of ``inner`` that of ``outer``.
    profile : TableProfile
    aside : dict of str to str
        Columns of which nothing is in ``Z``, and why.
    encoder : transformer
    search : Selection
        The search, which knows what of ``Z`` are codes of categories.
    """

    codes: Array
    y: NDArray[Any] | None
    Z: Array
    outer: Grouping
    inner: Grouping
    outside: Subset
    profile: TableProfile
    aside: dict[str, str]
    encoder: Any
    search: Any


def offered(selector: Any, X: Any, y: Any) -> Offered:
    """What the search of a TableSelector is offered."""
    frame = read_frame(selector, X, reset=True)
    if not frame.width:
        raise InvalidTable("TableSelector needs a table with columns; got 0 feature(s).")
    if frame.height < 2:
        raise InvalidTable(f"TableSelector needs at least 2 rows; got n_samples = {frame.height}.")
    y = _target(selector, X, y)
    seen, auto = columns_of(frame), isinstance(selector.encoder, str)
    outer = resolve_units(
        type(selector.search).__name__,
        getattr(selector.search, "feature_groups", None),
        getattr(selector.search, "fixed_features", None),
        frame.width,
        getattr(selector, "feature_names_in_", None),
    )
    fixed = [frame.columns[j] for j in outer.columns(outer.fixed_units)]
    keep = [*selector.keep, *fixed]
    profile = profiled(frame, seen, y, _task(y), keep=keep, takes_text=not auto)
    _check_features(profile, fixed)
    encoder, Z, origin = _encoded(selector, X, frame, profile, y)
    inner, outside = _inner(origin, outer, frame.columns)
    made = set(origin.tolist())
    unused = (frame.columns[j] for j in profile.used if j not in made)
    aside = profile.aside | dict.fromkeys(unused, "unused")
    search = _told(selector.search, encoder, origin, frame.width) if auto else selector.search
    return Offered(coded(frame), y, Z, outer, inner, outside, profile, aside, encoder, search)


def _target(selector: Any, X: Any, y: Any) -> NDArray[Any] | None:
    if y is None:
        if selector.__sklearn_tags__().target_tags.required:
            raise InvalidTarget(
                "TableSelector requires y to be passed, but the target y is None. Give y, or a "
                "search that does without."
            )
        return None
    if hasattr(y, "to_numpy") and not hasattr(y, "iloc"):
        y = y.to_numpy()
    check_target_rows(type(selector).__name__, y)
    checked: NDArray[Any] = np.asarray(times_as_days(y))
    if checked.dtype.names is None:  # a censored target is checked by who takes it
        several = selector.search.__sklearn_tags__().target_tags.multi_output
        several = several and checked.ndim == 2
        checked = _check_y(checked, multi_output=several, estimator=selector)
    check_consistent_length(X, checked)
    return checked


def _task(y: NDArray[Any] | None) -> str:
    """How the target is read; several targets, or a censored one, no column is held against."""
    return target_kind(y) if y is not None and y.ndim == 1 and y.dtype.names is None else "none"


def _encoded(
    selector: Any, X: Any, frame: pl.DataFrame, profile: TableProfile, y: NDArray[Any] | None
) -> tuple[Any, Array, Subset]:
    """The encoder, the numbers that the search takes, and the column that each came of."""
    encoder, search, used = selector.encoder, selector.search, profile.used
    if isinstance(encoder, str):
        ours = TableEncoder(
            levels="codes" if search.takes_categories else "columns",
            gaps="keep" if search.__sklearn_tags__().input_tags.allow_nan else "fill",
        )
        if is_frame(X):
            check_names(ours, X, reset=True)
        ours._learn(frame, profile)
        return ours, ours._encode(frame), ours.origin_
    given = take(X, np.array(used)) if is_frame(X) else frame[:, used]
    fitted, Z, origin = encoded_by(encoder, given, y, [frame.columns[j] for j in used])
    return fitted, Z, np.array(used, dtype=np.intp)[origin]


def _told(search: Any, encoder: TableEncoder, origin: Subset, n_columns: int) -> Any:
    """The search, whose criteria know which numbers are codes of categories.

    To those found come those that the criteria name themselves, by their index in the table.
    """
    if not search.takes_categories:
        return search

    def told(given: Any) -> list[int] | None:
        mask = category_mask(type(search).__name__, given, n_columns)
        codes = encoder.coded_ if mask is None else encoder.coded_ | mask[origin]
        return np.flatnonzero(codes).tolist() or None

    return with_categories(search, told)


def _inner(origin: Subset, units: Grouping, names: Sequence[str]) -> tuple[Grouping, Subset]:
    """The units of the numbers, and for each of them the unit of the columns it came of."""
    unit_of = units.unit_of[origin]
    order = np.argsort(unit_of, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(unit_of[order])) + 1)
    labels = units.unit_names(names)
    groups = [(labels[unit_of[run[0]]], tuple(run.tolist())) for run in runs if len(run) > 1]
    groups.sort(key=lambda group: group[1][0])
    bare = Grouping(len(unit_of), tuple(groups), called=units.word)
    outside = np.empty(bare.n_units, dtype=np.intp)
    outside[bare.unit_of] = unit_of
    fixed = np.flatnonzero(np.isin(outside, units.fixed_units))
    return replace(bare, fixed=tuple(fixed.tolist())), outside


def _check_features(profile: TableProfile, fixed: Sequence[str]) -> None:
    """Refuse a table of which nothing is left, with infinite numbers, or without what is fixed."""
    for name in fixed:
        if name in profile.aside:
            raise InvalidParameter(
                f"fixed_features names {name!r}, which is left out ({profile.aside[name]}). Leave "
                "it out of fixed_features, or give an encoder that takes it."
            )
    check_finite(profile)
    if not profile.used:
        raise InvalidTable(
            f"TableSelector finds no column to choose from: {format_names(profile.aside)} "
            f"{'is' if len(profile.aside) == 1 else 'are'} left out "
            f"({', '.join(sorted(set(profile.aside.values())))}). 0 feature(s) are left while a "
            "minimum of 1 is required."
        )


# -- encoders of the user's: which of their outputs come of which column --------------------------


def encoded_by(encoder: Any, X: Any, y: Any, names: Sequence[str]) -> tuple[Any, Array, Subset]:
    """Fit a clone of an encoder, and return it with its numbers and the column each came of.

    Missing values that it leaves are filled with the median, beside a column that marks them.
    """
    fitted = clone(encoder)
    made = fitted.fit_transform(X, y)
    outputs = _names_out(fitted, made)
    origin = _origins(fitted, outputs, list(names))
    Z = _as_numbers(encoder, made)
    if np.isnan(Z).any():
        imputer = median_imputer()
        Z = imputer.fit_transform(Z)
        origin = np.append(origin, origin[imputer.indicator_.features_])
    return fitted, Z, origin


def _as_numbers(encoder: Any, made: Any) -> Array:
    if issparse(made):
        made = made.toarray()
    elif is_frame(made):
        made = made.to_pandas() if hasattr(made, "column_names") else made.to_numpy()
    try:
        Z: Array = np.asarray(made, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(
            f"TableSelector needs an encoder that makes numbers, but {encoder!r} leaves other "
            f"values ({error}). Encode those columns too."
        ) from error
    return Z


def _names_out(fitted: Any, made: Any) -> list[str]:
    if hasattr(fitted, "get_feature_names_out"):
        return [str(name) for name in fitted.get_feature_names_out()]
    return [str(name) for name in getattr(made, "columns", range(made.shape[1]))]


def _origins(fitted: Any, outputs: list[str], names: list[str]) -> Subset:
    """Index of the column that each output came of."""
    if isinstance(fitted, Pipeline):  # later steps that scale or fill keep the names
        fitted = fitted[0]
    told = getattr(fitted, "output_to_input_", None) or {}
    if isinstance(fitted, ColumnTransformer):
        told = _of_column_transformer(fitted, outputs, names)
    known = set(names)
    origin = []
    for output in outputs:
        source = told.get(output, output)
        source = source if source in known else _by_beginning(output, names)
        if source is None:
            raise InvalidParameter(
                f"TableSelector needs to know which column the output {output!r} of "
                f"{type(fitted).__name__} came of; the columns are {format_names(names)}. Give an "
                "encoder with output_to_input_ (as skrub's TableVectorizer), a ColumnTransformer, "
                "or outputs that begin with the name of their column."
            )
        origin.append(names.index(source))
    return np.array(origin, dtype=np.intp)


def _of_column_transformer(
    fitted: ColumnTransformer, outputs: list[str], names: list[str]
) -> dict[str, str]:
    """Each output of a ColumnTransformer, by the columns that its transformer was given."""
    told: dict[str, str] = {}
    for name, made in fitted.output_indices_.items():
        given = [names[j] for j in fitted._transformer_to_input_indices.get(name, ())]
        for output in outputs[made]:
            source = given[0] if len(given) == 1 else None
            bare = output.removeprefix(f"{name}__")
            source = source or (bare if bare in given else _by_beginning(bare, given))
            if source is not None:
                told[output] = source
    return told


def _by_beginning(output: str, names: Sequence[str]) -> str | None:
    """The longest name of a column with which the name of an output begins."""
    bare = output.rpartition("__")[2]
    fitting = [
        n for n in names if output.startswith(f"{n}_") or bare.startswith(f"{n}_") or bare == n
    ]
    return max(fitting, key=len, default=None)
