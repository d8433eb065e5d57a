"""From a name, an expression or nothing to a selector, and from there to a selection."""

import re
from collections.abc import Sequence
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit

from tamis._arrays import target_kind, times_as_days
from tamis._checks import check_values, one_of
from tamis._format import format_names
from tamis._frame import collected
from tamis._namespace import computing_on
from tamis._seeds import fix_seeds
from tamis.blocks.device_arrays import as_numpy, warn_of_device
from tamis.blocks.dispatch import draw_rows, on_rows_drawn, read_blocks
from tamis.blocks.inputs import check_target_rows
from tamis.blocks.survival import SURVIVAL
from tamis.blocks.table import is_in_blocks
from tamis.contract import Selection
from tamis.contract.criterion import TASKS, Criterion
from tamis.exceptions import (
    DeviceWarning,
    IncompatibleCriterion,
    InvalidParameter,
    InvalidSpec,
    InvalidTarget,
)
from tamis.meta.search_repeats import Rounds
from tamis.recipes.book import (
    BOOK,
    all_recipes,
    class_names,
    last_search,
    names,
    targets_of,
    unknown,
)
from tamis.spec import did_you_mean, parse, write
from tamis.table import TableSelector
from tamis.table.frames import (
    as_polars,
    column_names,
    drop_columns,
    is_frame,
    library_of,
    take_rows,
)

#: What :func:`select` runs when no method is named.
DEFAULTS = dict.fromkeys(("classification", "regression", SURVIVAL), "Auto()")
#: Start of ``cv`` for folds in the time order of a column.
TIME = "time:"


def method(text: str) -> Selection:
    """Selector meant by a recipe's name, with or without options, or by an expression.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> from tamis.recipes import method
    >>> method("svm-rfe(n_features_to_select=3)").n_features_to_select
    3
    >>> method("Forward(FisherScore())")
    Forward(criterion=FisherScore())
    """
    if not isinstance(text, str):
        raise InvalidSpec(f"method needs the name of a recipe or an expression, not {text!r}.")
    text = text.strip()
    if text in BOOK or text in all_recipes():
        return BOOK[text]()
    if re.fullmatch(r"[\w-]+", text) and text not in class_names():
        raise unknown(text)
    named = re.match(r"([a-z0-9]+(?:-[a-z0-9]+)*)\s*\(", text)
    if named is None:
        return _as_selector(parse(text), text)
    if (name := named[1]) not in all_recipes():
        raise unknown(name)
    # an identifier of the same length, so that positions in messages stay right
    word = name.replace("-", "_")
    made = parse(word + text[len(name) :], also={word: BOOK[name].as_function()})
    return _as_selector(made, text)


def prepare(
    asked: "str | Selection | None" = None,
    y: ArrayLike | None = None,
    *,
    n_features_to_select: Any = None,
    task: str = "auto",
    random_state: int | None = None,
    n_jobs: int | None = None,
    feature_groups: Any = None,
    fixed_features: Any = None,
    scoring: Any = None,
    cv: Any = None,
    class_weight: Any = None,
) -> Selection:
    """Return the selector that :func:`select` would fit.

    Parameters
    ----------
    asked : str, Selection or None, default=None
        The method.
    y : array or None, default=None
        The target, which says what kind of method is needed.
    n_features_to_select, task, random_state, n_jobs, feature_groups, fixed_features, scoring, cv, \
    class_weight
        As of :func:`select`.
    """
    kind = _kind(y, task)
    if asked is None and kind == "none":
        raise InvalidTarget(
            "select needs y to choose a method by. Give y, or name a method that does without."
        )
    asked = DEFAULTS[kind] if asked is None else asked
    made = method(asked) if isinstance(asked, str) else _as_selector(asked, asked)
    selector = clone(made)
    # integers that look like classes may be regressed on, as ratings are
    integers = kind == "classification" and task == "auto" and np.asarray(y).dtype.kind in "iuf"
    if targets_of(selector) == {SURVIVAL}:  # which two columns may be, too
        integers = np.asarray(y).ndim == 2
    if kind != "none" and not integers:
        _check_kind(asked, selector, kind)
    if task != "auto":
        _fill(selector, "task", "auto", task)
    if n_features_to_select is not None:
        _resize(selector, n_features_to_select)
    for name, given in (("feature_groups", feature_groups), ("fixed_features", fixed_features)):
        if given is not None:
            _set_units(selector, name, given)
    _set_measures(selector, asked, scoring=scoring, cv=cv, class_weight=class_weight)
    if random_state is not None:
        fix_seeds(selector, root=random_state)
    if n_jobs is not None:
        _fill(selector, "n_jobs", None, n_jobs, outside="estimator")
    return selector


def select(
    X: ArrayLike,
    y: ArrayLike | None = None,
    method: "str | Selection | None" = None,
    *,
    target: Any = None,
    task: str = "auto",
    n_features_to_select: Any = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
    keep: Sequence[str] = (),
    feature_groups: Any = None,
    fixed_features: Any = None,
    scoring: Any = None,
    cv: Any = None,
    class_weight: Any = None,
    device: str | None = None,
    **params: Any,
) -> Selection:
    """Select columns in one line, and return the fitted selection.

    Parameters
    ----------
    X : array, or frame of pandas, polars or pyarrow, of shape (n_samples, n_features)
        A frame may hold gaps, categories, dates and booleans beside numbers: it is then encoded by
        a :class:`tamis.table.TableSelector` around the method, which speaks of its own columns.
        The path of a Parquet file or folder, a source of :mod:`tamis.blocks` or a collection
        of Dask is read in blocks of rows, for methods that can learn from them; where no method is
        named, at most 20 000 rows are drawn from it in one pass, and the answer says so.
    y : array of shape (n_samples,), optional
        A censored target is a structured array of event and time. Dates and durations are read as
        numbers of days.
    method : str or Selection, optional
        A recipe such as "svm-rfe", an expression such as ``Forward(Scatter("J3"))``, or a selector.
        The default is :class:`tamis.auto.Auto`, which orders the columns in several ways inside
        each fold, selects the smallest set of columns that predicts held-out rows about as well as
        the best one, and reports its error. It takes up to a minute, and may select nothing.
    target : str, optional
        Name of a column of the frame ``X`` that is the target: it is taken out of ``X`` and stands
        for ``y``, which is then left out. The table is looked through as :func:`tamis.inspect`
        does, and identifiers and codes of the target are set aside, with a warning.
    task : {"auto", "classification", "regression"}, default="auto"
        How to read ``y``. By itself, an integer target of at most 20 values is read as classes.
    n_features_to_select : int, float, "best" or Choice, optional
        How many columns to keep; in place of the method's own number.
    random_state : int, optional
        Given to every part of the method that draws at random and has no seed of its own.
    n_jobs : int, optional
        Given to every criterion that can use several processes.
    keep : sequence of str, default=()
        Columns of a frame to use although they look like an identifier or a code of the target.
    feature_groups : mapping of name to columns, or one label per column, optional
        Columns that are taken or left as one unit, by names or indices; see
        :class:`tamis.search.Forward`. ``n_features_to_select`` then counts units.
    fixed_features : str, int or list of them, optional
        Columns, or names of groups, that are always kept, and count among those kept.
    scoring : str or scorer, optional
        The score that decides without a method, such as "roc_auc" or "neg_log_loss"; see
        :class:`tamis.auto.Auto`.
    cv : int, splitter, list of (train, test) or "time:COLUMN", optional
        Folds without a method; see :class:`tamis.auto.Auto`. With "time:COLUMN" the rows of a frame
        are sorted by that column, and every test fold lies after its training rows.
    class_weight : dict or "balanced", optional
        Weights of the classes without a method; see :class:`tamis.auto.Auto`.
    device : str, optional
        A device of torch, such as "cuda": kernel criteria (``HSIC``, ``ParzenInformation``,
        ``WeightNorm``, sensitivities of machines with a Gaussian kernel) compute their scores
        there, in double precision, ``NewtonSVC`` and ``NewtonSVR`` train there, and what else there
        is on the processor, with a warning. ``record_.places`` says where each part ran.
    **params
        Per-row metadata for ``fit``: ``groups``, whose rows stay together in all folds, and
        ``sample_weight``. The name of a column of the frame ``X`` stands for its values; the column
        is then taken out of ``X``.

    Returns
    -------
    Selection
        The fitted selector, see :class:`tamis.contract.Selection` for what it knows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.recipes import select
    >>> X, y = load_iris(return_X_y=True)
    >>> select(X, y, "fisher-score", n_features_to_select=2).get_support(indices=True)
    array([2, 3])
    """
    options = {
        "n_features_to_select": n_features_to_select,
        "task": task,
        "random_state": random_state,
        "n_jobs": n_jobs,
        "feature_groups": feature_groups,
        "fixed_features": fixed_features,
        "scoring": scoring,
        "cv": cv,
        "class_weight": class_weight,
    }
    if is_in_blocks(X):
        return _select_in_blocks(X, y, target, method, keep, device, options, params)
    if isinstance(y, str):
        raise InvalidTarget(
            f"select needs y as one value a row, not a name. Write target={y!r} for a column of a "
            f"frame, or method={y!r} for a method."
        )
    X, y = collected(X), as_numpy("select", y)
    if device is not None:
        X = as_numpy("select", X)  # the device that is named, not that of a tensor
    if target is not None:
        X, y = _without_target(X, y, target)
    X = _take_rows_metadata(X, params)
    if isinstance(cv, str):
        X, y, options["cv"] = _in_time_order(X, y, cv, params)
    if y is not None:
        check_target_rows("select", y)
        y = times_as_days(y)
    selector = prepare(method, y, **options)
    selector = _for_table(selector, X, y if target is not None else None, keep)
    if device is not None:
        warn_of_device(selector, f"device={device!r}")
    with computing_on(device):
        fitted: Selection = selector.fit(X, y, **params)
    return fitted


def _select_in_blocks(
    X: Any,
    y: Any,
    target: Any,
    method: Any,
    keep: Sequence[str],
    device: str | None,
    options: dict[str, Any],
    params: dict[str, Any],
) -> Selection:
    """Select from a table that is read in blocks of rows; without a method from some rows."""
    if device is not None:
        warn(
            f"What is read in blocks of rows is computed on the processor, not on {device!r}.",
            DeviceWarning,
            stacklevel=3,
        )
    if method is not None:
        table = read_blocks("select", X, y, target)
        source: Any = table.source
        return prepare(method, table.labels.values, **options).fit(source, **params)
    if given := sorted(name for name, value in params.items() if value is not None):
        raise InvalidParameter(
            f"select takes no {', '.join(given)} where rows are drawn from a larger table. Leave "
            "it out, or give a table that is held at once."
        )
    # the automatic selection looks at some rows of a long table in any case
    rows = draw_rows(X, y, target, seed=options["random_state"] or 0)
    with on_rows_drawn(rows.drawn):
        return select(rows.X, rows.y, target=rows.target, keep=keep, **options)


def _for_table(selector: Selection, X: Any, y: Any, keep: Sequence[str]) -> Selection:
    """Wrap the selector in one that encodes X, if X is more than numbers without missing values.

    With a target, columns that would be left out are a reason too.
    """
    if isinstance(selector, TableSelector):
        return selector.set_params(keep=keep) if len(keep) else selector
    if not is_frame(X):
        return selector
    from tamis.table.alerts import is_plain

    return selector if is_plain(X, y, keep) else TableSelector(selector, keep=keep)


def _without_target(X: Any, y: Any, target: Any, role: str = "target") -> tuple[Any, Any]:
    """Return a frame without the column that is the target, and that column."""
    if np.ndim(target):
        raise InvalidParameter(
            f"select needs target as the name of a column, not a {type(target).__name__} of "
            "values. Write select(X, y) for values."
        )
    if y is not None:
        raise InvalidParameter(
            f"select needs the target once, but both y and target={target!r} are given. Leave one "
            "of them out."
        )
    if not is_frame(X):
        raise InvalidParameter(
            f"select needs a frame of pandas, polars or pyarrow to find {role}={target!r} in, not "
            f"{type(X).__name__}. Give the values, or the whole frame."
        )
    columns = column_names(X)
    if columns.count(target) != 1:
        held = f"{columns.count(target)} columns" if target in columns else "no column"
        near = did_you_mean(str(target), map(str, columns)) if target not in columns else ""
        raise InvalidParameter(
            f"select needs {role} to name one column of X, which has {held} {target!r}.{near} Its "
            f"columns are {format_names(columns, 10)}."
        )
    if library_of(X) == "pandas":
        return X.drop(columns=[target]), X[target]
    if library_of(X) == "polars":
        return drop_columns(X, [target]), _answers(X.get_column(target))
    return X.drop([target]), np.array(_answers(as_polars(X.select([target]))[target]).to_list())


def _take_rows_metadata(X: Any, params: dict[str, Any]) -> Any:
    """Put the columns that groups and weights name in their place, and return X without them."""
    for name, column in params.items():
        if isinstance(column, str):
            X, params[name] = _without_target(X, None, column, name)
            params[name] = np.asarray(params[name])
    return X


def _in_time_order(X: Any, y: Any, cv: str, params: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Sort all rows by the column that ``cv`` names; its folds follow the rows."""
    if not cv.startswith(TIME):
        raise InvalidParameter(
            f"select needs cv as a number of folds, a splitter, a list of (train, test) or "
            f"'{TIME}COLUMN', not {cv!r}."
        )
    times = np.asarray(_without_target(X, None, cv.removeprefix(TIME), "cv")[1])
    order = np.argsort(times, kind="stable")
    for name, values in params.items():
        params[name] = None if values is None else np.asarray(values)[order]
    return take_rows(X, order), None if y is None else np.asarray(y)[order], TimeSeriesSplit()


def _answers(column: Any) -> Any:
    """A column of polars as a target: numbers or texts, one in every row."""
    name, column = column.name, column.alias("target")  # polars takes names for patterns
    check_target_rows("select", column)
    if column.dtype.is_nested() or str(column.dtype) in ("Binary", "Object"):
        raise InvalidTarget(
            f"The target {name!r} holds {column.dtype} values. Give one class or number per row."
        )
    if column.dtype.is_temporal():
        from tamis.table.kinds import days_of

        return type(column)(days_of(column))
    return column.cast(float) if column.dtype.is_decimal() else column


def _as_selector(made: Any, asked: Any) -> Selection:
    if isinstance(made, Selection):
        return made
    if isinstance(made, Criterion):
        raise InvalidSpec(
            f"{asked} is a criterion, and a method needs a search around it. Write "
            f"Forward({asked}), or Ranking, RecursiveElimination, ... in its place."
        )
    raise InvalidSpec(
        f"{asked} is no method. Write a recipe such as 'svm-rfe', or a search with a criterion "
        'such as Forward(Scatter("J3")).'
    )


def _kind(y: ArrayLike | None, task: str) -> str:
    check_values("select", {"task": one_of("auto", *sorted(TASKS))}, task=task)
    if y is None or task != "auto":
        return "none" if y is None else task
    values = np.asarray(y)
    return SURVIVAL if values.dtype.names is not None else target_kind(values)


def _check_kind(asked: Any, selector: Selection, kind: str) -> None:
    """Refuse a method for classes where y is a real target, and the reverse."""
    if kind in (able := targets_of(selector)):
        return
    if not able:
        raise IncompatibleCriterion(
            f"The parts of {write(selector, strict=False)} need targets of different kinds. Use "
            "criteria for the same kind in both."
        )
    if not selector.__sklearn_tags__().target_tags.required:
        return
    need = min(able)
    spoken = {
        "classification": "classes",
        "regression": "a real target",
        SURVIVAL: "a censored target",
    }
    shown = asked if isinstance(asked, str) else write(selector, strict=False)
    if SURVIVAL in (need, kind):
        instead = "Auto() or Ranking(CoxScore())" if kind == SURVIVAL else DEFAULTS[kind]
        raise IncompatibleCriterion(
            f"{shown} needs {spoken[need]}, but y is {spoken[kind]}. Give another target (a "
            f"structured array of event and time, --time and --event), or use {instead}."
        )
    others = ", ".join(name for name in names() if kind in BOOK[name].targets)
    raise IncompatibleCriterion(
        f"{shown} needs {spoken[need]}, but y is read as {spoken[kind]}. Write task={need!r} "
        f"(--task {need}) to read it so, or use one of {others}."
    )


def _fill(selector: Selection, name: str, empty: Any, value: Any, outside: str = "") -> None:
    """Set every parameter of this name that was left empty, but none inside ``outside``."""
    for key, held in selector.get_params().items():
        path = key.split("__")
        if path[-1] == name and held == empty and (not outside or outside not in path):
            selector.set_params(**{key: value})


def _set_units(selector: Any, name: str, given: Any) -> None:
    while isinstance(selector, TableSelector | Rounds):
        selector = selector.search
    if name not in selector.get_params(deep=False):
        raise InvalidParameter(f"{type(selector).__name__} takes no {name}. Leave it out.")
    selector.set_params(**{name: given})


def _set_measures(selector: Any, asked: Any, **given: Any) -> None:
    """Set how the automatic selection measures; other methods have no such parameters."""
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return
    from tamis.auto import Auto

    while isinstance(selector, TableSelector):
        selector = selector.search
    if not isinstance(selector, Auto):
        names = ", ".join(given)
        raise InvalidParameter(
            f"{names} is for the automatic selection, and {asked} has its own. Leave {names} out, "
            "or name no method."
        )
    selector.set_params(**given)


def _resize(selector: Selection, n_features_to_select: Any) -> None:
    last = last_search(selector)
    if "n_features_to_select" not in last.get_params(deep=False):
        raise InvalidParameter(
            f"{type(last).__name__} takes no number of features: it decides how many it keeps. "
            "Leave n_features_to_select (--features) out."
        )
    last.set_params(n_features_to_select=n_features_to_select)
