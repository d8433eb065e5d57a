"""Encoding of a frame as a numeric array for a search, with its units and a checked target.

A unit is a single column, or a group of columns that are selected together.
"""

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
from tamis.table.encoder import TableEncoder, median_imputer, read_frame
from tamis.table.frames import check_names, is_frame, take
from tamis.table.kinds import TableProfile, columns_of


class Encoding(NamedTuple):
    """Relation between the columns of a frame and the encoded columns that a search receives.

    Attributes
    ----------
    outer, inner : Grouping
        Units of the frame's columns, and units of the encoded columns.
    outside : array of int
        For each unit of ``inner``, the index of the unit of ``outer`` that it was made from.
    profile : TableProfile
    aside : dict of str to str
        Columns that were not encoded, with the reason.
    encoder : transformer
        The fitted encoder.
    search : Selection
        The search. Its criteria have the parameter that lists the encoded columns with category
        codes.
    """

    outer: Grouping
    inner: Grouping
    outside: Subset
    profile: TableProfile
    aside: dict[str, str]
    encoder: Any
    search: Any


def encode_table(selector: Any, X: Any, y: Any) -> tuple[Array, NDArray[Any] | None, Encoding]:
    """Return the encoded columns, the checked target and the encoding for a TableSelector."""
    frame = read_frame(selector, X, reset=True)
    if not frame.width:
        raise InvalidTable("TableSelector needs a table with columns; got 0 feature(s).")
    if frame.height < 2:
        raise InvalidTable(f"TableSelector needs at least 2 rows; got n_samples = {frame.height}.")
    y = _target(selector, X, y)
    auto = isinstance(selector.encoder, str)
    outer = resolve_units(
        type(selector.search).__name__,
        getattr(selector.search, "feature_groups", None),
        getattr(selector.search, "fixed_features", None),
        frame.width,
        getattr(selector, "feature_names_in_", None),
        getattr(selector.search, "feature_costs", None),
    )
    fixed = [frame.columns[j] for j in outer.columns(outer.fixed_units)]
    keep = [*selector.keep, *fixed]
    seen = replace(columns_of(frame), readings=selector._readings)
    profile = profiled(
        frame, seen, y, _task(y), keep=keep, takes_text=not auto, alerts=selector.alerts
    )
    _check_features(profile, fixed)
    encoder, Z, origin = _encode(selector, X, frame, profile, y)
    inner, outside = _inner_units(origin, outer, frame.columns)
    unused = [frame.columns[j] for j in np.setdiff1d(profile.used, origin)]
    aside = profile.aside | dict.fromkeys(unused, "unused")
    search = selector.search
    if auto and search.takes_categories:
        search = _mark_codes(search, encoder, origin, frame.width)
    return Z, y, Encoding(outer, inner, outside, profile, aside, encoder, search)


def _target(selector: Any, X: Any, y: Any) -> NDArray[Any] | None:
    if y is None:
        if selector.__sklearn_tags__().target_tags.required:
            raise InvalidTarget(
                "TableSelector requires y to be passed, but the target y is None. Give y, or a "
                "search that needs no target."
            )
        return None
    if hasattr(y, "to_numpy") and not hasattr(y, "iloc"):
        y = y.to_numpy()
    check_target_rows(type(selector).__name__, y)
    checked: NDArray[Any] = np.asarray(times_as_days(y))
    if checked.dtype.names is None:  # a censored target is checked by the criterion
        several = selector.search.__sklearn_tags__().target_tags.multi_output
        several = several and checked.ndim == 2
        checked = _check_y(checked, multi_output=several, estimator=selector)
    check_consistent_length(X, checked)
    return checked


def _task(y: NDArray[Any] | None) -> str:
    """Return the kind of the target, or "none" if it is censored or has several columns."""
    return target_kind(y) if y is not None and y.ndim == 1 and y.dtype.names is None else "none"


def _encode(
    selector: Any, X: Any, frame: pl.DataFrame, profile: TableProfile, y: NDArray[Any] | None
) -> tuple[Any, Array, Subset]:
    """Return the fitted encoder, the encoded columns, and the frame column of each of them."""
    encoder, search, used = selector.encoder, selector.search, profile.used
    if isinstance(encoder, str):
        ours = TableEncoder(
            levels="codes" if search.takes_categories else "columns",
            gaps="keep" if search.__sklearn_tags__().input_tags.allow_nan else "fill",
        )
        if is_frame(X):
            check_names(ours, X, reset=True)
        ours._readings = selector._readings
        ours._learn(frame, profile)
        return ours, ours._encode(frame), ours.origin_
    given = take(X, np.array(used)) if is_frame(X) else frame[:, used]
    fitted, Z, origin = encoded_by(encoder, given, y, [frame.columns[j] for j in used])
    return fitted, Z, np.array(used, dtype=np.intp)[origin]


def _mark_codes(search: Any, encoder: TableEncoder, origin: Subset, n_columns: int) -> Any:
    """Return a search whose criteria treat the encoded category codes as categories.

    Frame columns that the user already declared as categories in a criterion are included.
    """

    def mark(given: Any) -> list[int] | None:
        mask = category_mask(type(search).__name__, given, n_columns)
        codes = encoder.coded_ if mask is None else encoder.coded_ | mask[origin]
        return np.flatnonzero(codes).tolist() or None

    return with_categories(search, mark)


def _inner_units(origin: Subset, units: Grouping, names: Sequence[str]) -> tuple[Grouping, Subset]:
    """Return the units of the encoded columns, and for each the unit of the frame it came from."""
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
    prices = None if units.prices is None else units.prices.restricted(outside)
    return replace(bare, fixed=tuple(fixed.tolist()), prices=prices), outside


def _check_features(profile: TableProfile, fixed: Sequence[str]) -> None:
    """Raise an error if no column is usable, a value is infinite or a fixed column is excluded."""
    for name in fixed:
        if name in profile.aside:
            raise InvalidParameter(
                f"fixed_features names {name!r}, which is left out ({profile.aside[name]}). Leave "
                "it out of fixed_features, or give an encoder that takes it."
            )
    check_finite(profile)
    if not profile.used:
        raise InvalidTable(
            f"TableSelector finds no column to select from: {format_names(profile.aside)} "
            f"{'is' if len(profile.aside) == 1 else 'are'} left out "
            f"({', '.join(sorted(set(profile.aside.values())))}). 0 feature(s) are left while a "
            "minimum of 1 is required."
        )


# -- the user's own encoder, and the source column of each of its outputs -------------------------


def encoded_by(encoder: Any, X: Any, y: Any, names: Sequence[str]) -> tuple[Any, Array, Subset]:
    """Fit a clone of an encoder. Return the clone, its outputs, and the frame column of each.

    Missing values in an output are filled with the median, and an added column marks them.
    """
    fitted = clone(encoder)
    made = fitted.fit_transform(X, y)
    if hasattr(fitted, "get_feature_names_out"):
        outputs = fitted.get_feature_names_out()
    else:
        outputs = getattr(made, "columns", range(made.shape[1]))
    origin = _origins(fitted, list(map(str, outputs)), list(names))
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


def _origins(fitted: Any, outputs: list[str], names: list[str]) -> Subset:
    """Return the index of the input column from which each output of an encoder was made."""
    if isinstance(fitted, Pipeline):  # later steps, such as scaling and imputing, keep the names
        fitted = fitted[0]
    sources = getattr(fitted, "output_to_input_", None) or {}
    if isinstance(fitted, ColumnTransformer):
        sources = _column_transformer_sources(fitted, outputs, names)
    known = set(names)
    origin = []
    for output in outputs:
        source = sources.get(output, output)
        source = source if source in known else _longest_prefix(output, names)
        if source is None:
            raise InvalidParameter(
                f"TableSelector needs to know which column the output {output!r} of "
                f"{type(fitted).__name__} came from; the columns are {format_names(names)}. Give "
                "an encoder with output_to_input_ (such as skrub's TableVectorizer), a "
                "ColumnTransformer, or outputs that begin with the name of their column."
            )
        origin.append(names.index(source))
    return np.array(origin, dtype=np.intp)


def _column_transformer_sources(
    fitted: ColumnTransformer, outputs: list[str], names: list[str]
) -> dict[str, str]:
    """Return the input column of each output of a ColumnTransformer.

    Outputs whose input column cannot be determined are omitted.
    """
    sources: dict[str, str] = {}
    for name, made in fitted.output_indices_.items():
        given = [names[j] for j in fitted._transformer_to_input_indices.get(name, ())]
        for output in outputs[made]:
            source = given[0] if len(given) == 1 else None
            bare = output.removeprefix(f"{name}__")
            source = source or (bare if bare in given else _longest_prefix(bare, given))
            if source is not None:
                sources[output] = source
    return sources


def _longest_prefix(output: str, names: Sequence[str]) -> str | None:
    """Return the longest column name that the output's name starts with."""
    bare = output.rpartition("__")[2]
    fitting = [
        n for n in names if output.startswith(f"{n}_") or bare.startswith(f"{n}_") or bare == n
    ]
    return max(fitting, key=len, default=None)
