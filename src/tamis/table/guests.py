"""Encoders of the user's: which of their outputs come of which column."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline

from tamis._arrays import Array, Subset
from tamis._format import format_names
from tamis.exceptions import InvalidParameter
from tamis.table.encoder import Encoded
from tamis.table.frames import is_frame


def encoded_by(encoder: Any, X: Any, y: Any, names: Sequence[str]) -> tuple[Any, Encoded]:
    """A fitted clone of an encoder and what it makes of a frame with columns of these names.

    ``origin`` counts the columns of the frame. Gaps that it leaves are filled with the median,
    beside a column that marks them.
    """
    fitted = clone(encoder)
    made = fitted.fit_transform(X, y)
    outputs = _names_out(fitted, made)
    origin = _origins(fitted, outputs, list(names))
    Z = _as_numbers(encoder, made)
    if not np.isnan(Z).any():
        return fitted, Encoded(Z, origin)
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    Z = imputer.fit_transform(Z)
    return fitted, Encoded(Z, np.append(origin, origin[imputer.indicator_.features_]))


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
