"""Options of the commands: names, types, defaults and help texts."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import StrEnum
from inspect import Parameter, Signature, cleandoc
from pathlib import Path
from re import sub
from typing import Annotated, Any, ClassVar, get_type_hints

import typer
from typer.models import ArgumentInfo

from tamis.cli.methods import complete_methods
from tamis.exceptions import InvalidParameter
from tamis.table.sources import EXTENSIONS, FORMATS, STDIN

Task = StrEnum("Task", ["auto", "classification", "regression"])


def argument(help: str, metavar: str, default: Any = MISSING, **more: Any) -> Any:
    """Declare an argument of a command as a dataclass field."""
    info = typer.Argument(metavar=metavar, help=help, show_default=False, **more)
    return field(default=default, metadata={"typer": info})


def option(help: str, metavar: str, *names: str, default: Any = None, **more: Any) -> Any:
    """Declare an option of a command as a dataclass field. The metavar of a flag is empty."""
    info = typer.Option(*names, metavar=metavar, help=help, **more)
    return field(default=default, metadata={"typer": info})


def flag(help: str, *names: str) -> Any:
    """Declare an option without a value."""
    return option(help, "", *names, default=False)


def ordered_fields(options: Any) -> list[Any]:
    """Return the fields of a command in order: arguments, target, own options, shared options."""
    own = getattr(options, "__annotations__", {})
    return sorted(
        fields(options),
        key=lambda each: (
            not isinstance(each.metadata["typer"], ArgumentInfo),
            each.name != "target",
            each.name not in own,
        ),
    )


def add_command(app: typer.Typer, options: type["Options"], run: Callable[[Any], None]) -> None:
    """Add a command whose arguments and options are the fields of a dataclass."""

    def command(**values: Any) -> None:
        # lists become tuples like the defaults, so that ``command_line`` recognises a default value
        run(options(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}))

    hints = get_type_hints(options)
    command.__annotations__ = {
        each.name: Annotated[hints[each.name], each.metadata["typer"]]
        for each in ordered_fields(options)
    }
    command.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(
                each.name,
                Parameter.KEYWORD_ONLY,
                default=Parameter.empty if each.default is MISSING else each.default,
                annotation=command.__annotations__[each.name],
            )
            for each in ordered_fields(options)
        ]
    )
    # typer keeps line breaks, which are in the wrong places on narrow and wide terminals
    paragraphs = cleandoc(options.__doc__ or "").split("\n\n")
    command.__doc__ = "\n\n".join(" ".join(part.split()) for part in paragraphs)
    app.command(options.command)(command)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Arguments and options of a command."""

    command: ClassVar[str]

    def command_line(self, leave_out: Sequence[str] = (), **others: Any) -> str:
        """Return the command line for these options. Fields may be omitted or replaced."""
        line = ["tamis", self.command]
        for each in ordered_fields(type(self)):
            value = others.get(each.name, getattr(self, each.name))
            if each.name in leave_out or value == each.default or value in (None, [], ()):
                continue
            info = each.metadata["typer"]
            names = [name for name in (info.default, *(info.param_decls or ())) if name != ...]
            name = names[0] if names else f"--{each.name.replace('_', '-')}"
            for one in value if isinstance(value, list | tuple) else [value]:
                if isinstance(info, ArgumentInfo):
                    line.append(written_path(one) if isinstance(one, Path) else str(one))
                elif isinstance(one, bool):
                    line.append(name if one else f"--no-{name.removeprefix('--')}")
                else:
                    line += [name, str(one)]
        return shlex.join(line)


def written_path(file: Path) -> str:
    """Return a path as the user wrote it, because ``Path`` drops slashes of an address.

    >>> written_path(Path("s3://bucket/visits")), written_path(Path("file:///data/visits"))
    ('s3://bucket/visits', 'file:///data/visits')
    """
    here = sub(r"^(file|local):/(?!/)", r"\1:///", str(file))
    return sub(r"^(\w{2,}):/(?!/)", r"\1://", here)


def check_processes(asked: int | None) -> int | None:
    """Raise an error if the number of processes is 0."""
    if asked == 0:
        raise typer.BadParameter("needs a number of processes, or -1 for all cores, not 0.")
    return asked


@dataclass(frozen=True, kw_only=True)
class TableOptions(Options):
    """Options of commands that read a table."""

    target: str | None = option("Column to predict.", "COLUMN", "--target", "-t")
    task: Task = option("Task: classification, regression or auto.", "TASK", default=Task.auto)
    drop: list[str] = option("Column to leave out; may be repeated.", "COLUMN", default=())
    keep: list[str] = option(
        "Column to use although it looks like an id or encodes the target.", "COLUMN", default=()
    )
    format: str | None = option(
        f"File format: {', '.join(FORMATS)} (default: by extension).", "NAME"
    )
    header: bool = option("Whether the first line of a CSV file holds the names.", "", default=True)
    sheet: str | None = option("Sheet of an Excel file: name or number (default: 1).", "SHEET")
    encoding: str | None = option("Encoding of a text file, such as cp1252.", "NAME")
    seed: int = option("Random seed.", "N", default=0, min=0)
    jobs: int | None = option("Number of processes; -1: all cores.", "N", callback=check_processes)
    quiet: bool = flag("Print neither progress nor notes.", "--quiet", "-q")

    @property
    def layout(self) -> dict[str, Any]:
        """Options for reading the file, as keyword arguments of ``read_file``."""
        return {"header": self.header, "sheet": self.sheet, "encoding": self.encoding}


@dataclass(frozen=True, kw_only=True)
class GroupOptions(TableOptions):
    """Options of commands that select columns."""

    calendar: bool = flag("Add month, day, weekday and hour of dates as columns.", "--calendar")
    group: list[str] = option(
        "Columns to select as one group; may be repeated.", "NAME=A,B", default=()
    )
    fixed: list[str] = option("Columns or groups that are always kept.", "A,B", default=())
    safe_csv: bool = option(
        "In *.csv, write ' before text that a spreadsheet would run as a formula.",
        "",
        default=True,
    )
    force: bool = flag("Overwrite the output folder.", "--force")

    @property
    def units(self) -> dict[str, Any]:
        """Groups and fixed columns, as keyword arguments for a search."""
        fixed = split_names(self.fixed) or None
        return {"feature_groups": parse_groups(self.group), "fixed_features": fixed}


@dataclass(frozen=True, kw_only=True)
class SelectOptions(GroupOptions):
    """Select columns of a table.

    Without METHOD, tamis tries several methods and writes the selected columns, their estimated
    error and an HTML report to tamis-NAME/.

    tamis select data.csv --target y

    tamis select data.csv --target y --dry-run

    tamis select data.csv --target y svm-rfe --features 10 --output ranking.csv

    tamis select data.csv --target y 'Forward(CrossValidated(SVC(C=10)))' -k 5

    tamis select data.csv --target y --scoring roc_auc --groups customer

    tamis select patients.csv --time days --event died

    tamis select patients.csv -t disease 'Forward(JMI())' --costs costs.csv --cost-limit 50
    """

    command: ClassVar[str] = "select"

    file: Path = argument(
        "A table: CSV, TSV, Parquet, Arrow, Excel, ARFF or LIBSVM, also .gz, .zst or .bz2; - for "
        "stdin; or a folder of Parquet files, local or remote (s3://...).",
        "FILE",
    )
    method: str | None = argument(
        "A recipe (see tamis methods) or an expression.",
        "METHOD",
        None,
        autocompletion=complete_methods,
    )
    time: str | None = option("Time of a censored (survival) target; needs --event.", "COLUMN")
    event: str | None = option("1 if the event happened at --time, 0 if censored.", "COLUMN")
    features: str | None = option(
        "Number of columns to keep: 10, a share (0.2), best, Threshold(1).", "K", "--features", "-k"
    )
    costs: Path | None = option(
        "CSV file of prices, with the columns name, cost and optionally group, fee.", "FILE"
    )
    cost_limit: str | None = option(
        "Greatest price of the kept columns: 50, or 10% of all; needs --costs.", "PRICE"
    )
    dry_run: bool = flag("Describe the table, and select nothing.", "--dry-run")
    id_columns: list[str] = option("", "", default=(), hidden=True)
    output: Path | None = option("Write the ranking: *.csv or *.json.", "FILE", "--output", "-o")
    rows: int = option("Number of columns of the ranking to print.", "N", default=30, min=1)
    dask: str | None = option(
        "Dask scheduler whose workers read Parquet in row blocks; local: use this machine.",
        "ADDRESS",
    )
    device: str | None = option("torch device for kernel criteria, such as cuda.", "NAME")
    save_record: Path | None = option(
        "Write the steps of the search to *.json, also after Ctrl-C.", "FILE"
    )
    resume: Path | None = option("Continue from a file of --save-record.", "FILE")
    report: bool = flag("With METHOD: write the output folder, including the report.", "--report")
    folder: Path | None = option("Output folder (default: tamis-NAME).", "FOLDER")
    resamples: int | None = option(
        "With METHOD: number of resamples for the error estimate (default: 20).", "R", min=0
    )
    budget: str | None = option(
        "Without METHOD: time budget of the search, such as 60s or 5m. Writing the report takes "
        "additional time.",
        "TIME",
    )
    scoring: str | None = option(
        "Without METHOD: score to optimise, such as roc_auc, neg_log_loss or r2.", "NAME"
    )
    cv: str | None = option(
        "Without METHOD: number of folds, or time:COLUMN for folds in time order.", "FOLDS"
    )
    groups: str | None = option("Keep rows with the same value in the same fold.", "COLUMN")
    environments: str | None = option(
        "Column such as hospital or year. For each of its values, report the error on rows with "
        "this value, of a model trained on all other rows.",
        "COLUMN",
    )
    weights: str | None = option("Column with the weights of the rows.", "COLUMN")
    confirm: bool = flag("Without METHOD: test each selected column given all others.", "--confirm")
    class_weight: str | None = option("balanced: give all classes the same weight.", "WEIGHT")
    json: bool = flag("Print the results as JSON.", "--json")

    @property
    def name(self) -> str:
        """Name of the file, for messages."""
        return file_name(self.file)

    @property
    def results_folder(self) -> Path | None:
        """The output folder, or None if no folder is written."""
        if self.folder is not None:
            return self.folder
        own = default_folder(self.file)
        if self.method is None and self.resume is not None:
            interrupted = self.resume.parent.name.startswith(own.name)  # an output folder
            return self.resume.parent if interrupted else None
        return own if self.report or self.method is None else None


@dataclass(frozen=True, kw_only=True)
class CompareOptions(GroupOptions):
    """Compare methods on your own tables by their error on held-out rows.

    tamis compare data.csv --target y

    tamis compare data.csv --target y mrmr svm-rfe 'Forward(Scatter("J3"))'

    tamis compare data.csv -t y mrmr jmi --estimator 'SVC(C=10)' --folder mine

    tamis compare a.csv b.csv c.csv -t y correlation mrmr --jobs 4 --report compare.html
    """

    command: ClassVar[str] = "compare"
    #: Fields that do not change the results.
    apart = ("jobs", "dask", "store", "output", "report", "folder", "force", "safe_csv", "quiet")

    words: list[str] = argument(
        "Tables, then recipes (see tamis methods) or expressions.",
        "FILE|METHOD",
        autocompletion=complete_methods,
    )
    time: str | None = option("", "", hidden=True)
    event: str | None = option("", "", hidden=True)
    features: int | None = option(
        "Largest number of columns (default: 20).", "N", "--features", "-k", min=1
    )
    estimator: str | None = option(
        "Model trained on the selected columns (default: ridge).", "EXPR"
    )
    metric: str | None = option(
        "Metric: error, 'balanced error', auc, rmse, mse, or a scorer.", "NAME"
    )
    resamples: int = option("Number of resamples.", "N", "--resamples", "-r", default=20, min=2)
    test_share: float = option("Share of held-out rows.", "SHARE", default=0.25, min=0.01, max=0.99)
    dask: str | None = option("Dask scheduler to run on; local: use this machine.", "ADDRESS")
    store: Path | None = option("Save finished fits to FILE, and resume from it.", "FILE")
    output: list[Path] = option(
        "Write the results: *.csv, *.md, *.tex or *.json; may be repeated.",
        "FILE",
        "--output",
        "-o",
        default=(),
    )
    report: Path | None = option("Write an HTML report: *.html.", "FILE")
    folder: Path | None = option(
        "Folder for the tables in all formats, the report and finished fits.", "FOLDER"
    )

    @property
    def files(self) -> list[Path]:
        """Positional arguments that are table files."""
        return [Path(word) for word in dict.fromkeys(filter(_is_file, self.words))]

    @property
    def methods(self) -> list[str]:
        """Positional arguments that are methods."""
        return [word for word in self.words if not _is_file(word)]


@dataclass(frozen=True, kw_only=True)
class TuneOptions(TableOptions):
    """Find the best C of an SVM exactly, with a proof.

    tamis tune data.csv --target y

    tamis tune data.csv --target y --kernel linear --c-range 0.001,1000

    tamis tune data.csv --target y --gamma 0.01,0.1,scale --jobs 2 --output curve.csv
    """

    command: ClassVar[str] = "tune"

    file: Path = argument("A table, as for tamis select; - for stdin.", "FILE")
    kernel: str = option("Kernel: rbf or linear.", "NAME", default="rbf")
    gamma: list[str] = option(
        "Values of gamma for rbf: numbers, scale or auto (default: scale).", "G,G,...", default=()
    )
    c_range: str | None = option("Smallest and largest C, such as 0.01,1000.", "LOW,HIGH")
    folds: int = option("Number of folds.", "K", default=5, min=2)
    repeats: int = option("Number of repeats of the folds.", "R", default=1, min=1)
    scoring: str | None = option(
        "scikit-learn scorer: balanced_accuracy, f1, roc_auc, r2, ... (default: error rate, or "
        "mean squared error).",
        "NAME",
    )
    epsilon: float | None = option(
        "Epsilon of a regression (default: 0.1 standard deviations of the target).", "E", min=0
    )
    sample: int | None = option("Tune on this number of rows, drawn at random.", "N", min=10)
    groups: str | None = option("Keep rows with the same value in the same fold.", "COLUMN")
    output: Path | None = option("Write the curve: *.csv or *.json.", "FILE", "--output", "-o")

    @property
    def name(self) -> str:
        """Name of the file, for messages."""
        return file_name(self.file)


@dataclass(frozen=True, kw_only=True)
class MethodsOptions(Options):
    """List all methods by the question they answer, or describe one of them.

    tamis methods

    tamis methods floating

    tamis methods svm-rfe

    tamis methods --blocks
    """

    command: ClassVar[str] = "methods"

    words: list[str] = argument(
        "A name, or words to search for.", "NAME", (), autocompletion=complete_methods
    )
    json: bool = flag("Print all facts as JSON.", "--json")
    blocks: bool = flag("List methods for tables larger than memory.", "--blocks")


@dataclass(frozen=True, kw_only=True)
class DemoOptions(Options):
    """Select columns of a built-in table, and show the error before and after."""

    command: ClassVar[str] = "demo"

    folder: Path = option("Output folder.", "FOLDER", default=Path("tamis-demo"))


# -- values of options ----------------------------------------------------------------------------


def file_name(file: Path) -> str:
    """Return the name of a file for messages."""
    return "standard input" if str(file) == STDIN else file.name


def default_folder(file: Path) -> Path:
    """Return the default output folder for a table.

    >>> str(default_folder(Path("data/genes.csv.gz")))
    'tamis-genes'
    """
    name = "stdin" if str(file) == STDIN else file.name.split(".")[0] or file.name
    return Path(f"tamis-{name}")


def _is_file(word: str) -> bool:
    """Return whether an argument is a file: it exists, or has the extension of a table."""
    if any(sign in word for sign in "()\"'"):
        return False
    path = Path(word)
    return word == STDIN or path.exists() or any(e in path.suffixes for e in EXTENSIONS)


def split_names(given: Sequence[str]) -> list[str]:
    """Split values at commas, and return all names."""
    return [name.strip() for text in given for name in text.split(",") if name.strip()]


def parse_groups(given: Sequence[str]) -> dict[str, list[str]] | None:
    """Return the columns of each group, from all options ``--group name=a,b,c``."""
    groups: dict[str, list[str]] = {}
    for text in given:
        name, equals, columns = text.partition("=")
        if not (equals and name.strip()):
            raise InvalidParameter(
                f"--group needs a name and columns, such as colour=red,green,blue, not {text!r}."
            )
        if name.strip() in groups:
            raise InvalidParameter(
                f"--group is given twice for {name.strip()!r}. List all its columns in one --group."
            )
        groups[name.strip()] = split_names([columns])
    return groups or None


def parse_cost_limit(text: str | None) -> float | str | None:
    """Parse ``--cost-limit``: a price is returned as a number, a share such as "10%" as text."""
    if text is None or text.strip().endswith("%"):
        return text
    try:
        return float(text)
    except ValueError:
        raise InvalidParameter(
            f"--cost-limit needs a price such as 50, or a share such as 10%, not {text!r}."
        ) from None


def parse_seconds(text: str) -> float:
    """Parse a duration such as ``60``, ``60s``, ``5m`` or ``1h``, and return it in seconds.

    >>> parse_seconds("5m")
    300.0
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], units[text[-1]]) if text[-1:] in units else (text, 1.0)
    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise InvalidParameter(f"--budget needs a time such as 60s, 5m or 1h, not {text!r}.")
    return seconds
