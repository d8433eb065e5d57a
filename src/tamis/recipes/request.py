"""``select``, with the steps that find the requested method and prepare X and y."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast
from warnings import warn

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, TimeSeriesSplit

from tamis import choice
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
from tamis.contract.choice import SizeLike
from tamis.contract.costs import FeatureCosts
from tamis.contract.criterion import TASKS, Criterion
from tamis.contract.units import Fixed, Groups
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
    need_polars,
    take_rows,
)

#: Method that :func:`select` uses if none is named, for each kind of target.
DEFAULTS = dict.fromkeys(("classification", "regression", SURVIVAL), "Auto()")
#: Prefix of ``cv`` values that request folds in the time order of a column.
TIME = "time:"


def method(text: str) -> Selection:
    """Return the selector that a recipe name or an expression describes.

    Parameters
    ----------
    text : str
        The name of a recipe, with or without options, or an expression.

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
    # replaced by an identifier of the same length, so that positions in error messages are correct
    word = name.replace("-", "_")
    made = parse(word + text[len(name) :], also={word: BOOK[name].as_function()})
    return _as_selector(made, text)


def prepare(
    asked: "str | Selection | None" = None,
    y: ArrayLike | None = None,
    *,
    n_features_to_select: SizeLike | None = None,
    task: str = "auto",
    random_state: int | None = None,
    n_jobs: int | None = None,
    feature_groups: Groups = None,
    fixed_features: Fixed = None,
    feature_costs: FeatureCosts | None = None,
    cost_limit: float | str | None = None,
    scoring: str | Callable[..., Any] | None = None,
    cv: int | BaseCrossValidator | Iterable[Any] | None = None,
    class_weight: dict[Any, float] | str | None = None,
    confirm: bool | None = None,
) -> Selection:
    """Return the selector that :func:`select` would fit.

    Parameters
    ----------
    asked : str, Selection or None, default=None
        The method. The default is :class:`tamis.auto.Auto`.
    y : array or None, default=None
        The target. If given, the method is checked against it.
    n_features_to_select, task, random_state, n_jobs, feature_groups, fixed_features, \
    feature_costs, cost_limit, scoring, cv, class_weight, confirm
        As in :func:`select`.
    """
    kind = _kind(y, task)
    if asked is None and kind == "none":
        raise InvalidTarget(
            "select needs y or a method. Pass y, or name a method that needs no target."
        )
    asked = DEFAULTS[kind] if asked is None else asked
    made = method(asked) if isinstance(asked, str) else _as_selector(asked, asked)
    selector = clone(made)
    # integers that look like classes, such as ratings, may also be a numeric target
    integers = kind == "classification" and task == "auto" and np.asarray(y).dtype.kind in "iuf"
    if targets_of(selector) == {SURVIVAL}:  # a censored target may be an array with two columns
        integers = np.asarray(y).ndim == 2
    if kind != "none" and not integers:
        _check_kind(asked, selector, kind)
    if task != "auto":
        _fill(selector, "task", "auto", task)
    if n_features_to_select is not None:
        _resize(selector, n_features_to_select)
    units = {
        "feature_groups": feature_groups,
        "fixed_features": fixed_features,
        "feature_costs": feature_costs,
    }
    for name, given in units.items():
        if given is not None:
            _set_units(selector, name, given)
    if cost_limit is not None:
        _set_cost_limit(selector, cost_limit, n_features_to_select)
    _set_measures(
        selector, asked, scoring=scoring, cv=cv, class_weight=class_weight, confirm=confirm
    )
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
    n_features_to_select: SizeLike | None = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
    keep: Sequence[str] = (),
    feature_groups: Groups = None,
    fixed_features: Fixed = None,
    feature_costs: FeatureCosts | None = None,
    cost_limit: float | str | None = None,
    scoring: str | Callable[..., Any] | None = None,
    cv: int | BaseCrossValidator | Iterable[Any] | None = None,
    class_weight: dict[Any, float] | str | None = None,
    confirm: bool | None = None,
    device: str | None = None,
    **params: Any,
) -> Selection:
    """Select columns in one line, and return the fitted selector.

    Parameters
    ----------
    X : array, or frame of pandas, polars or pyarrow, of shape (n_samples, n_features)
        The table. A frame may contain missing values, categories, dates and booleans. In that case,
        a :class:`tamis.table.TableSelector` around the method encodes it, and reports columns of
        the frame. The path of a Parquet file or folder, a source of :mod:`tamis.blocks` or a Dask
        collection is read in row blocks, if the method can learn from them. Without a method, at
        most 20 000 rows are sampled in a single pass, and the summary reports their number.
    y : array of shape (n_samples,), optional
        The target. A censored target is a structured array of event and time. Dates and durations
        are converted to numbers of days.
    method : str or Selection, optional
        A recipe such as "svm-rfe", an expression such as ``Forward(Scatter("J3"))``, or a selector.
        The default is :class:`tamis.auto.Auto`, which orders the columns in several ways inside
        each fold, selects the smallest set of columns that predicts held-out rows about as well as
        the best one, and reports its error. It takes up to a minute, and may select nothing.
    target : str, optional
        Name of the target column in the frame ``X``, instead of ``y``. The table is checked as by
        :func:`tamis.inspect`, and columns that look like identifiers or codes of the target are
        excluded with a warning.
    task : {"auto", "classification", "regression"}, default="auto"
        How ``y`` is interpreted. With "auto", an integer target of at most 20 values is read as
        classes.
    n_features_to_select : int, float, "best" or Choice, optional
        Number or share of columns to select, or how to choose it, instead of the method's default.
    random_state : int, optional
        Seed for all random parts of the method that have no seed of their own.
    n_jobs : int, optional
        Number of processes, used by every criterion that supports several.
    keep : sequence of str, default=()
        Columns of a frame to use although they look like an identifier or a code of the target.
    feature_groups : mapping of name to columns, or one label per column, optional
        Columns that are selected together as a unit, given by names or indices; see
        :class:`tamis.search.Forward`. If given, ``n_features_to_select`` counts units.
    fixed_features : str, int or list of them, optional
        Columns, or names of groups, that are always selected. They are included in the number of
        selected columns.
    feature_costs : FeatureCosts, optional
        Prices of the columns. ``cost_`` of the result is the price of the selected columns.
    cost_limit : float or str, optional
        Greatest price of the selected columns, or a share of the full price such as "10%"; see
        :class:`tamis.choice.CostLimit`. It needs ``feature_costs``.
    scoring : str or scorer, optional
        Score by which candidates are compared if no method is named, such as "roc_auc" or
        "neg_log_loss"; see :class:`tamis.auto.Auto`.
    cv : int, splitter, list of (train, test) or "time:COLUMN", optional
        Folds if no method is named; see :class:`tamis.auto.Auto`. With "time:COLUMN", the rows of a
        frame are sorted by that column, and every test fold lies after its training rows.
    class_weight : dict or "balanced", optional
        Class weights if no method is named; see :class:`tamis.auto.Auto`.
    confirm : bool, optional
        Whether to test the columns given all others if no method is named; see
        :class:`tamis.auto.Auto`.
    device : str, optional
        A torch device, such as "cuda". Kernel criteria (``HSIC``, ``ParzenInformation``,
        ``WeightNorm``, sensitivities of SVMs with a Gaussian kernel) compute their scores on it in
        double precision, and ``NewtonSVC`` and ``NewtonSVR`` are trained on it. Everything else
        runs on the CPU, with a warning. ``record_.places`` lists the device of each part.
    **params
        Per-row metadata for ``fit``: ``sample_weight``; ``groups``, whose rows stay together in
        all folds; and ``environments`` (hospitals, years, sites), for the error in each environment
        of a model trained on the others, and for :class:`tamis.meta.InvariantSelection`. Each is an
        array, or the name of a column in the frame ``X``. That column is removed from ``X``.

    Returns
    -------
    Selection
        The fitted selector; see :class:`tamis.contract.Selection` for its attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tamis.recipes import select
    >>> X, y = load_iris(return_X_y=True)
    >>> select(X, y, "fisher-score", n_features_to_select=2).get_support(indices=True)
    array([2, 3])
    """
    options: dict[str, Any] = {
        "n_features_to_select": n_features_to_select,
        "task": task,
        "random_state": random_state,
        "n_jobs": n_jobs,
        "feature_groups": feature_groups,
        "fixed_features": fixed_features,
        "feature_costs": feature_costs,
        "cost_limit": cost_limit,
        "scoring": scoring,
        "cv": cv,
        "class_weight": class_weight,
        "confirm": confirm,
    }
    if is_in_blocks(X):
        return _select_in_blocks(X, y, target, method, keep, device, options, params)
    _check_y(y)
    X, y = collected(X), as_numpy("select", y)
    if device is not None:
        X = as_numpy("select", X)  # a named device overrides the device of a tensor
    if target is not None:
        X, y = _without_target(X, y, target)
    X = _take_rows_metadata(X, params)
    if isinstance(cv, str):
        X, y, options["cv"] = _in_time_order(X, y, cv, params)
    if y is not None:
        check_target_rows("select", y)
        y = times_as_days(y)
        _check_labels(y)
    selector = prepare(method, y, **options)
    selector = _for_table(selector, X, y if target is not None else None, keep)
    if device is not None:
        warn_of_device(selector, f"device={device!r}")
    with computing_on(device):
        return cast(Selection, selector.fit(X, y, **params))


def _check_y(y: Any) -> None:
    if isinstance(y, str):
        raise InvalidTarget(
            f"select needs y with one value per row, got the text {y!r}. Write target={y!r} for a "
            f"column of a frame, or method={y!r} for a method."
        )


def _check_labels(y: Any) -> None:
    """Refuse labels that cannot be sorted: bytes, and strings together with numbers."""
    values = np.asarray(y)
    kinds = {type(value) for value in values.flat} if values.dtype.kind == "O" else set()
    strings = {kind for kind in kinds if issubclass(kind, str)}
    if values.dtype.kind == "S" or bytes in kinds or (strings and strings != kinds):
        found = "bytes" if not strings else "strings and other values"
        raise InvalidTarget(
            f"select needs y with numbers or strings, got {found}. Convert y, for example to str."
        )


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
    """Select from a table in row blocks. Without a method, Auto uses a sample of its rows."""
    if device is not None:
        warn(
            f"A table in row blocks is processed on the CPU, not on {device!r}.",
            DeviceWarning,
            stacklevel=3,
        )
    if method is not None:
        table = read_blocks("select", X, y, target)
        source: Any = table.source
        return prepare(method, table.labels.values, **options).fit(source, **params)
    if given := sorted(name for name, value in params.items() if value is not None):
        raise InvalidParameter(
            f"select cannot use {', '.join(given)} when it samples rows of a larger table. Leave "
            "it out, or pass a table that fits into memory."
        )
    # Auto uses only a sample of a long table anyway
    rows = draw_rows(X, y, target, seed=options["random_state"] or 0)
    with on_rows_drawn(rows.drawn):
        return select(rows.X, rows.y, target=rows.target, keep=keep, **options)


def _for_table(selector: Selection, X: Any, y: Any, keep: Sequence[str]) -> Selection:
    """Wrap the selector in an encoder if X has text, dates or missing values.

    If a target is given, X is also wrapped if columns have to be excluded.
    """
    if isinstance(selector, TableSelector):
        return selector.set_params(keep=keep) if len(keep) else selector
    if not is_frame(X):
        return selector
    need_polars()
    from tamis.table.alerts import is_plain

    return selector if is_plain(X, y, keep) else TableSelector(selector, keep=keep)


def _without_target(X: Any, y: Any, target: Any, role: str = "target") -> tuple[Any, Any]:
    """Return a frame without the column ``target``, and the values of that column."""
    if np.ndim(target):
        raise InvalidParameter(
            f"select needs target as the name of a column, not a {type(target).__name__} of "
            "values. Write select(X, y) for values."
        )
    if y is not None:
        raise InvalidParameter(
            f"select needs either y or target, got both y and target={target!r}. Leave one of them "
            "out."
        )
    if not is_frame(X):
        raise InvalidParameter(
            f"select needs a frame of pandas, polars or pyarrow for {role}={target!r}, not "
            f"{type(X).__name__}. Pass the values, or the whole frame."
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
        return drop_columns(X, [target]), _polars_target(X.get_column(target))
    column = as_polars(X.select([target]))[target]
    return X.drop([target]), np.array(_polars_target(column).to_list())


def _take_rows_metadata(X: Any, params: dict[str, Any]) -> Any:
    """Replace column names in ``params`` by the columns' values. Return X without these columns."""
    taken: dict[str, Any] = {}
    for name, column in params.items():
        if isinstance(column, str):
            if column not in taken:
                X, values = _without_target(X, None, column, name)
                taken[column] = np.asarray(values)
            params[name] = taken[column]
    return X


def _in_time_order(X: Any, y: Any, cv: str, params: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Sort all rows by the column that ``cv`` names. Return them with a splitter in time order."""
    if not cv.startswith(TIME):
        raise InvalidParameter(
            f"select needs cv as a number of folds, a splitter, a list of (train, test) or "
            f"'{TIME}COLUMN', not {cv!r}."
        )
    name = cv.removeprefix(TIME)
    _without_target(X, None, name, "cv")  # raises an error if there is no such column
    from tamis.table.kinds import read_columns  # needs polars, which is optional

    times = read_columns(as_polars(X)[[name]])[0].to_series().to_numpy()
    order = np.argsort(times, kind="stable")
    for name, values in params.items():
        params[name] = None if values is None else np.asarray(values)[order]
    return take_rows(X, order), None if y is None else np.asarray(y)[order], TimeSeriesSplit()


def _polars_target(column: Any) -> Any:
    """Return a polars column as an array of numbers or strings that can be used as a target."""
    name, column = column.name, column.alias("target")  # a name may look like a pattern to polars
    check_target_rows("select", column)
    if column.dtype.is_nested() or str(column.dtype) in ("Binary", "Object"):
        raise InvalidTarget(
            f"The target {name!r} has {column.dtype} values. Pass one class or number per row."
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
            f"Forward({asked}), or another search such as Ranking or RecursiveElimination."
        )
    raise InvalidSpec(
        f"{asked} is not a method. Write a recipe such as 'svm-rfe', or a search with a criterion "
        'such as Forward(Scatter("J3")).'
    )


def _kind(y: ArrayLike | None, task: str) -> str:
    check_values("select", {"task": one_of("auto", *sorted(TASKS))}, task=task)
    if y is None or task != "auto":
        return "none" if y is None else task
    values = np.asarray(y)
    return SURVIVAL if values.dtype.names is not None else target_kind(values)


def _check_kind(asked: Any, selector: Selection, kind: str) -> None:
    """Raise an error if the method does not support this kind of target."""
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
    kinds = {
        "classification": "classes",
        "regression": "a numeric target",
        SURVIVAL: "a censored target",
    }
    shown = asked if isinstance(asked, str) else write(selector, strict=False)
    if SURVIVAL in (need, kind):
        instead = "Auto() or Ranking(CoxScore())" if kind == SURVIVAL else DEFAULTS[kind]
        raise IncompatibleCriterion(
            f"{shown} needs {kinds[need]}, but y is {kinds[kind]}. Pass another target (a "
            f"structured array of event and time, --time and --event), or use {instead}."
        )
    others = ", ".join(name for name in names() if kind in BOOK[name].targets)
    raise IncompatibleCriterion(
        f"{shown} needs {kinds[need]}, but y is read as {kinds[kind]}. Write task={need!r} "
        f"(--task {need}) to change that, or use one of {others}."
    )


def _fill(selector: Selection, name: str, empty: Any, value: Any, outside: str = "") -> None:
    """Set every parameter of this name whose value is ``empty``, except inside ``outside``."""
    for key, current in selector.get_params().items():
        path = key.split("__")
        if path[-1] == name and current == empty and outside not in path:
            selector.set_params(**{key: value})


def _set_units(selector: Any, name: str, given: Any) -> None:
    while isinstance(selector, TableSelector | Rounds):
        selector = selector.search
    if name not in selector.get_params(deep=False):
        raise InvalidParameter(
            f"{type(selector).__name__} takes no {name}. Leave it out, or name another method."
        )
    selector.set_params(**{name: given})


def _set_cost_limit(selector: Selection, cost_limit: Any, n_features_to_select: Any) -> None:
    if n_features_to_select is not None:
        raise InvalidParameter(
            "select needs either n_features_to_select (--features) or cost_limit (--cost-limit), "
            "got both. Leave one of them out."
        )
    last = last_search(selector)
    known = last.get_params(deep=False)
    if "cost_limit" in known:
        last.set_params(cost_limit=cost_limit)
    elif "n_features_to_select" in known:
        last.set_params(n_features_to_select=choice.CostLimit(cost_limit))
    else:
        raise InvalidParameter(
            f"{type(last).__name__} takes no cost_limit (--cost-limit), because it determines the "
            "number of columns itself. Write Then(..., Forward(...)), or leave the method "
            "out."
        )


def _set_measures(selector: Any, asked: Any, **given: Any) -> None:
    """Set parameters that only Auto has, or raise an error for any other method."""
    given = {name: value for name, value in given.items() if value is not None}
    if not given:
        return
    from tamis.auto import Auto

    while isinstance(selector, TableSelector):
        selector = selector.search
    if not isinstance(selector, Auto):
        names = ", ".join(given)
        raise InvalidParameter(
            f"{names} is for the automatic selection, and {asked} has no such option. Leave "
            f"{names} or the method out."
        )
    selector.set_params(**given)


def _resize(selector: Selection, n_features_to_select: Any) -> None:
    last = last_search(selector)
    if "n_features_to_select" not in last.get_params(deep=False):
        raise InvalidParameter(
            f"{type(last).__name__} takes no number of features, because it determines the number "
            "itself. Leave n_features_to_select (--features) out."
        )
    last.set_params(n_features_to_select=n_features_to_select)
