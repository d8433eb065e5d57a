"""Output files of commands: checked before the work, and written completely or not at all."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from tamis._files import can_write, replace_text
from tamis._format import join_words
from tamis._parallel import listening
from tamis.blocks.inputs import SparseColumns
from tamis.blocks.survival import SURVIVAL
from tamis.cli.options import SelectOptions
from tamis.cli.progress import ProgressBar
from tamis.contract import Selection
from tamis.exceptions import InvalidParameter, NotEnoughMemory, TamisError
from tamis.report.sheets import FORMULA, Sheet, csv_text, json_text, quote_formula, table_text
from tamis.report.units import ChosenUnits, inner_selection
from tamis.table import Alert
from tamis.table.sparse import dense_frame
from tamis.table.target import LabelledTable

if TYPE_CHECKING:
    from tamis.evaluation import Results
    from tamis.report import Omission

#: Names of the files in an output folder. Other files in it are never touched.
SELECTED, RANKING, RECORD, PAGE = "selected.csv", "ranking.csv", "record.json", "report.html"
#: Extensions of files with tables of results.
TABLES = (".csv", ".md", ".tex", ".json")
#: Integers up to this limit are exact as floats.
WHOLE = 2**53
#: Default number of resamples for the error in a report, if the method does not estimate it.
RESAMPLES = 20
#: Largest number of rows for which a report shows substitutes and effects. Up to this number, their
#: fits take seconds.
MOST_TRIED = 5000
#: Greatest number of multiplications for substitutes (about ten seconds). If more are needed, the
#: report lists correlated columns instead.
MOST_WORK = 2e10
#: The report leaves out each selected column in turn, if the estimated time of these fits is at
#: most this share of the budget.
REFITS = 1.0
#: Largest number of selected columns for which effects on a model are shown.
MOST_SHOWN = 100


class SelectionResult(NamedTuple):
    """A fitted selection with its ranking, and the options, table and alerts of the fit."""

    asked: SelectOptions
    data: Any  # a LabelledTable, or LabelledBlocks if the table was read in row blocks
    selection: Selection
    ranking: ChosenUnits
    alerts: Sequence[Alert]


# -- checks before the work -----------------------------------------------------------------------


def check_output(
    path: Path | None, source: Path | None, endings: Sequence[str] = (".csv", ".json")
) -> None:
    """Raise an error if the file cannot be written."""
    if path is None:
        return
    if path.suffix.lower() not in endings:
        raise InvalidParameter(f"{path} needs the ending {join_words(endings, 'or')}.")
    if path.is_dir():
        raise InvalidParameter(f"{path} is a folder. Give the name of a file.")
    if not path.parent.is_dir():
        raise InvalidParameter(
            f"{path} cannot be written: there is no folder {path.parent}. Create it first."
        )
    if not can_write(path.parent):
        raise InvalidParameter(
            f"{path} cannot be written: the folder {path.parent.resolve()} is protected. Choose "
            "another one."
        )
    if source is not None and path.exists() and source.exists() and path.samefile(source):
        raise InvalidParameter(f"{path} holds the data. Give another file for the result.")


def _nearest(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent folder."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def check_folder(folder: Path) -> None:
    """Raise an error if the folder cannot be created or written to."""
    above = _nearest(folder)
    if not above.is_dir():
        raise InvalidParameter(f"{above} is a file. Write --folder with another name.")
    if not can_write(above):
        raise InvalidParameter(
            f"{folder} cannot be written: the folder {above.resolve()} is protected. Choose "
            "another --folder."
        )


def check_outputs(asked: Any, source: Path | None) -> None:
    """Raise an error if the tables, the report or the folder of a command cannot be written."""
    for path in asked.output:
        check_output(path, source, endings=TABLES)
    check_output(asked.report, source, endings=(".html",))
    if asked.folder is not None:
        check_folder(asked.folder)


def check_results_folder(folder: Path, force: bool, resume: Path | None) -> None:
    """Raise an error if the folder cannot be written to, or already holds results."""
    check_folder(folder)
    own = resume is not None and resume.resolve().parent == folder.resolve()
    if folder.is_dir() and any(folder.iterdir()) and not (force or own):
        raise InvalidParameter(
            f"{folder} already exists. Write --force to replace the results in it, or --folder "
            "with another name."
        )


def free_folder(folder: Path) -> Path:
    """Return the folder, or if it exists, its name followed by the first free number."""
    number, free = 1, folder
    while free.exists():
        number += 1
        free = folder.with_name(f"{folder.name}-{number}")
    return free


# -- writing --------------------------------------------------------------------------------------


def replace_file(path: Path, text: str) -> None:
    """Write a file completely or not at all. After an error, an existing file is unchanged."""
    try:
        replace_text(path, text)
    except OSError as error:
        raise InvalidParameter(
            f"{path} cannot be written: {error.strerror or error}. Free some space, or choose "
            "another folder."
        ) from error


def write_tables(
    path: Path,
    facts: Callable[[], Any],
    sheet: Callable[[], Sheet],
    tables: Callable[[], Iterable[Sheet]] = tuple,
    *,
    safe: bool = True,
) -> None:
    """Write facts as JSON, a sheet as CSV, or tables as Markdown or LaTeX, by the extension."""
    ending = path.suffix.lower()
    if ending == ".json":
        text = json_text(facts())
    elif ending == ".csv":
        text = csv_text(sheet(), safe=safe)
    else:
        text = "\n".join(table_text(table, ending) for table in tables() if table.rows)
    replace_file(path, text)


def ranking_sheet(ranking: ChosenUnits) -> Sheet:
    """Return a table of all units: rank, name, score, and whether the unit is selected.

    A unit is a single column, or a group of columns that are selected together. The scores are
    omitted if the method only orders the units. A conditional test adds q-values.
    """
    columns: dict[str, list[Any]] = {"column": list(ranking.names)}
    if ranking.is_scored:
        columns["score"] = ranking.scores.tolist()
    if ranking.q_values is not None:
        columns["q"] = ranking.q_values.tolist()
    columns["kept"] = ranking.kept.tolist()
    rows: list[list[Any]] = [
        [rank, *(None if of[unit] != of[unit] else of[unit] for of in columns.values())]
        for rank, unit in enumerate(ranking.order.tolist(), 1)
    ]
    return Sheet("", ("rank", *columns), rows)


def write_results(result: SelectionResult, folder: Path) -> None:
    """Write all result files to the output folder, or none of them. Then write the report.

    The report is written last, because its charts may take long and need much memory.
    """
    asked, data, selection, ranking, _ = result
    n_resamples = _n_resamples(asked, data, selection)
    names, columns = _selected_columns(selection, data)
    if asked.safe_csv:
        names = [quote_formula(name) for name in names]
        columns = [_quote_formulas(column) for column in columns]
    # names are written as a row, because an added apostrophe may make two of them equal
    head = pl.DataFrame({str(j): [name] for j, name in enumerate(names)})
    body = pl.DataFrame({str(j): column for j, column in enumerate(columns)})
    try:
        with TemporaryDirectory(prefix=f".{folder.name}.", dir=_nearest(folder)) as made:
            draft = Path(made)
            rows = (part.write_csv(include_header=False) for part in (head, body))
            replace_text(draft / SELECTED, "".join(rows))
            ranked = csv_text(ranking_sheet(ranking), safe=asked.safe_csv)
            replace_file(draft / RANKING, ranked)
            selection.record_.save(draft / RECORD)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / PAGE).unlink(missing_ok=True)  # a report of earlier results
            for name in (SELECTED, RANKING, RECORD):
                (draft / name).replace(folder / name)
        write_page(result, folder / PAGE, n_resamples)
    except NotEnoughMemory as error:
        written = f"{SELECTED}, {RANKING} and {RECORD} are in {folder}, without a report."
        raise NotEnoughMemory(f"{error} {written}") from error
    except (OSError, TamisError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError):
            raise
        raise InvalidParameter(
            f"{folder} cannot be written: {cause.strerror or cause}. Free some space, or choose "
            "another --folder."
        ) from error


def _selected_columns(
    selection: Selection, data: LabelledTable
) -> tuple[list[str], list[pl.Series]]:
    """Return names and original values of the selected columns and of the target."""
    kept = np.flatnonzero(selection.support_)
    if isinstance(data.X, SparseColumns):
        frame = dense_frame(data.X.take(kept))
    else:
        frame = data.X[:, kept.tolist()]
    fields = data.y.dtype.names  # event and time of a censored target
    target = {data.target: data.y} if fields is None else {name: data.y[name] for name in fields}
    columns = [*frame.get_columns(), *(pl.Series(name, y) for name, y in target.items())]
    names = [name if name not in frame.columns else f"{name} (target)" for name in target]
    return [*frame.columns, *names], [_as_integers(column) for column in columns]


def _quote_formulas(column: pl.Series) -> pl.Series:
    """Put an apostrophe before each text that a spreadsheet would run as a formula."""
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return column
    return column.cast(pl.String).str.replace(f"^{FORMULA.pattern}", "'${0}")


def _as_integers(column: pl.Series) -> pl.Series:
    """Convert floats that are all integers, so that they are written without a decimal point."""
    if not column.dtype.is_float() or not len(column) or column.is_nan().any():
        return column
    known = column.drop_nulls()
    whole = bool(((known == known.round()) & (known.abs() < WHOLE)).all())
    return column.cast(pl.Int64) if whole else column


# -- the report of a selection --------------------------------------------------------------------


def write_page(result: SelectionResult, path: Path, n_resamples: int) -> None:
    """Write the report of a selection."""
    from tamis.report import report, write_report

    asked, data, selection, _, alerts = result
    X = data.X if isinstance(data.X, pl.DataFrame) else dense_frame(data.X)
    gathered = report(
        selection,
        X,
        data.y,
        results=_resampled(result, X, n_resamples),
        source=asked.name,
        target=data.target,
        task=data.task,
        alerts=alerts,
        command=asked.command_line(),
        **try_out(selection, X, data, seed=asked.seed, n_jobs=asked.jobs, quiet=asked.quiet),
        without=_fitted_without(result, X) if n_resamples == 0 else (),
    )
    write_report(gathered, path)


def _n_resamples(asked: SelectOptions, data: LabelledTable, selection: Selection) -> int:
    """Return the number of resamples for the error, or 0 if the method has its own estimate."""
    units = selection.units_
    by_name = not units.plain or bool(len(units.fixed))  # resamples are arrays without names
    inner = inner_selection(selection)
    measured = hasattr(inner, "error_guess_") or hasattr(inner, "losses_")
    n = (0 if measured or by_name else RESAMPLES) if asked.resamples is None else asked.resamples
    if n == 0 or data.task == SURVIVAL or not selection.support_.any():
        return 0
    if hasattr(inner, "slopes_"):  # resamples do not pass environments
        if asked.resamples is None:
            return 0
        raise InvalidParameter(
            "--resamples cannot be used with InvariantSelection, which needs environments. Leave "
            "it out."
        )
    if by_name:
        raise InvalidParameter(
            "--resamples needs columns that are selected one by one, without --group and --fixed. "
            "Leave it out."
        )
    return n


def _resampled(result: SelectionResult, X: pl.DataFrame, n: int) -> "Results | None":
    """Return the errors of a method on held-out rows, or None if ``n`` is 0."""
    from tamis.report import resampled

    asked, data, selection, *_ = result
    if n == 0:
        return None
    bar = ProgressBar("repeating the selection", "resamples", quiet=asked.quiet)
    with bar, warnings.catch_warnings(action="ignore"):  # printed after the selection
        return resampled(selection, X, data.y, n, n_jobs=asked.jobs, seed=asked.seed, progress=bar)
    raise KeyboardInterrupt


def _fitted_without(result: SelectionResult, X: pl.DataFrame) -> "list[Omission]":
    """Return fits without each selected column, if they take no longer than ``REFITS`` allows."""
    from tamis.report import fit_without

    asked, data, selection, *_ = result
    inner, units, n_kept = inner_selection(selection), selection.units_, selection.n_features_
    planned = sum(step.seconds for step in getattr(inner, "plan_", ()) if step.tried)
    labelled = asked.groups or asked.environments or asked.weights  # folds depend on them
    if not planned or labelled or not units.plain or units.fixed:
        return []
    if n_kept * planned > REFITS * inner.budget:
        return []
    with ProgressBar("leaving out columns", "fits", quiet=asked.quiet) as bar:
        return fit_without(selection, X, data.y, progress=bar)
    raise KeyboardInterrupt


def try_out(
    selection: Selection,
    X: Any,
    data: LabelledTable,
    *,
    seed: int = 0,
    n_jobs: int | None = None,
    quiet: bool = False,
) -> dict[str, Any]:
    """Return substitutes for the selected columns, and a model that shows their effects.

    They are omitted for large tables and many columns, because they would take minutes.
    """
    from tamis.report.columns import numbers_of

    n_rows, n_kept = len(data.y), int(selection.support_.sum())
    if not n_kept or data.task == SURVIVAL or n_rows > MOST_TRIED:
        return {}
    found: dict[str, Any] = {}
    bar = ProgressBar("trying substitutes", "swaps", quiet=quiet)
    with bar, listening(bar), warnings.catch_warnings(action="ignore"):
        # for each column, five-fold ridge regressions of three candidates
        if 15 * n_kept * n_rows * n_kept * min(n_rows, n_kept) <= MOST_WORK:
            found["substitutes"] = selection.substitutes(X, data.y, random_state=seed)
        kept = numbers_of(X, np.flatnonzero(selection.support_))
        if np.isfinite(kept).all() and n_kept <= MOST_SHOWN:
            # the model of the automatic selection, or else a forest
            own = getattr(inner_selection(selection), "estimator_", None)
            classes = data.task == "classification"
            forest = RandomForestClassifier if classes else RandomForestRegressor
            model = forest(min_samples_leaf=5, n_jobs=n_jobs, random_state=seed)
            found["model"] = (model if own is None else clone(own)).fit(kept, data.y)
    bar.check_stop()
    return found
