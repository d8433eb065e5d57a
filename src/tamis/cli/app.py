"""The commands: what each takes.

What they do is imported when they run, because scikit-learn and polars take over a second of
processor time, which ``--help`` has no use for.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tamis.cli.completing import method_words
from tamis.cli.failing import Sentences
from tamis.table.formats import FORMATS

app = typer.Typer(
    cls=Sentences,
    name="tamis",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class TaskOption(StrEnum):
    """How to read the target."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Find the features that matter."""
    if version:
        import tamis

        typer.echo(f"tamis {tamis.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def select(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="CSV, TSV, Parquet, Arrow, Excel, ARFF or LIBSVM; also .gz, .zst; - is stdin; a "
            "folder of Parquet files, here or in a store (s3://...).",
        ),
    ],
    method: Annotated[
        str | None,
        typer.Argument(
            metavar="METHOD", help="A recipe (see tamis methods) or an expression; AUTO without."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The target.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The time of a censored target, with --event."),
    ] = None,
    event: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="1 where the event happened at that time, 0 if not."),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            "--features", "-k", metavar="K", help="How many to keep: 10, 0.2, best, Threshold(1)."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave this column out; may be given again."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Use it though it looks like an id or a code of the target."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what the table holds.")
    ] = False,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B", help="Take or leave columns together; may be given again."
        ),
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Columns or groups that are always kept."),
    ] = None,
    id_columns: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    task: Annotated[
        TaskOption, typer.Option(metavar="TASK", help="classification, regression or auto.")
    ] = TaskOption.auto,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the ranking: *.csv or *.json."),
    ] = None,
    rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many rows of the ranking to show.")
    ] = 30,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Where random draws start.")] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(metavar="N", help="Processes, for criteria that can use several."),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Dask scheduler whose workers read Parquet in blocks; local: this machine.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Device of torch for kernel criteria, such as cuda."),
    ] = None,
    save_record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every step to *.json, also after Ctrl-C."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Go on from such a file.")
    ] = None,
    report: Annotated[
        bool,
        typer.Option("--report", help="Write a folder with a page, as without a METHOD."),
    ] = False,
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="That folder; tamis-NAME by default.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what it holds.")] = False,
    resamples: Annotated[
        int | None,
        typer.Option(min=0, metavar="R", help="Repeat a METHOD so often for its error; 20."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time that may be taken without a METHOD: 60s, 5m."),
    ] = None,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Neither progress nor notes.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    format: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"The format: {', '.join(FORMATS)}.")
    ] = None,
    header: Annotated[bool, typer.Option(help="Whether a CSV file has names on top.")] = True,
    safe_csv: Annotated[
        bool,
        typer.Option(help="Write ' before names in *.csv that spreadsheets would run as formulas."),
    ] = True,
) -> None:
    """Select columns of a table.

    Without a METHOD several ways are tried, and what is kept, its error and a page to send on are
    in the folder tamis-NAME.

    tamis select data.csv --target y

    tamis select data.csv --target y --dry-run

    tamis select data.csv --target y svm-rfe --features 10 --output ranking.csv

    tamis select data.csv --target y 'Forward(CrossValidated(SVC(C=10)))' -k 5

    tamis select patients.csv --time days --event died -k 20
    """
    from tamis.cli.selecting import Request, run_select

    run_select(
        Request(
            file=file,
            method=method,
            target=target,
            n_features_to_select=features,
            drop=(*(drop or ()), *(id_columns or ())),
            keep=tuple(keep or ()),
            dry_run=dry_run,
            task=task.value,
            output=output,
            rows=rows,
            seed=seed,
            n_jobs=jobs,
            dask=dask,
            device=device,
            save_record=save_record,
            resume=resume,
            format=format,
            header=header,
            safe_csv=safe_csv,
            groups=tuple(group or ()),
            fixed=tuple(fixed or ()),
            time=time,
            event=event,
            folder=folder,
            force=force,
            report=report,
            resamples=resamples,
            budget=budget,
            quiet=quiet,
            json=json,
        )
    )


@app.command()
def compare(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE... METHOD...",
            help="Tables, then recipes (see tamis methods) or expressions.",
            show_default=False,
            autocompletion=method_words,
        ),
    ],
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The target.")
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(
            "--features", "-k", min=1, metavar="N", help="Most columns that are tried; 20."
        ),
    ] = None,
    estimator: Annotated[
        str | None,
        typer.Option(metavar="EXPR", help="Trained on the chosen columns; a ridge by default."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="error, 'balanced error', auc, rmse, mse, or scikit-learn's."
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option("--resamples", "-r", min=2, metavar="N", help="How many splits.")
    ] = 20,
    test_share: Annotated[
        float, typer.Option(min=0.01, max=0.99, metavar="SHARE", help="Rows that are measured on.")
    ] = 0.25,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Where random draws start.")] = 0,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Number of processes.")] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask scheduler to run on; local: this machine."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep finished fits here, and go on from them."),
    ] = None,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="*.csv, *.md, *.tex or *.json; again for more."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page to look at and send on: *.html."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write all of them, the page and the finished fits there."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what --folder holds.")] = False,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave this column out; may be given again."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Use it though it looks like an id or a code of the target."
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B", help="Take or leave columns together: methods keep --features."
        ),
    ] = None,
    fixed: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Columns or groups that are always kept."),
    ] = None,
    task: Annotated[
        TaskOption, typer.Option(metavar="TASK", help="classification, regression or auto.")
    ] = TaskOption.auto,
    format: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"The format: {', '.join(FORMATS)}.")
    ] = None,
    header: Annotated[bool, typer.Option(help="Whether a CSV file has names on top.")] = True,
    safe_csv: Annotated[
        bool,
        typer.Option(help="Write ' before names in *.csv that spreadsheets would run as formulas."),
    ] = True,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Neither progress nor notes.")
    ] = False,
) -> None:
    """Compare methods on your own table, on rows they have not seen.

    tamis compare data.csv --target y

    tamis compare data.csv --target y mrmr svm-rfe 'Forward(Scatter("J3"))'

    tamis compare data.csv -t y mrmr jmi --estimator 'SVC(C=10)' --folder mine

    tamis compare a.csv b.csv c.csv -t y correlation mrmr --jobs 4 --report compare.html
    """
    from tamis.cli.comparing import CompareRequest, run_compare

    run_compare(
        CompareRequest(
            words=tuple(words),
            target=target,
            features=features,
            estimator=estimator,
            metric=metric,
            resamples=resamples,
            test_share=test_share,
            seed=seed,
            n_jobs=jobs,
            cluster=dask,
            store=store,
            output=tuple(output or ()),
            report=report,
            folder=folder,
            force=force,
            drop=tuple(drop or ()),
            keep=tuple(keep or ()),
            task=task.value,
            format=format,
            header=header,
            safe_csv=safe_csv,
            quiet=quiet,
            groups=tuple(group or ()),
            fixed=tuple(fixed or ()),
        )
    )


@app.command()
def tune(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A table, as of tamis select; - is stdin."),
    ],
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The target.")
    ] = None,
    kernel: Annotated[str, typer.Option(metavar="NAME", help="rbf or linear.")] = "rbf",
    gamma: Annotated[
        list[str] | None,
        typer.Option(metavar="G,G,...", help="One or several for rbf: 0.01,0.1, scale or auto."),
    ] = None,
    c_range: Annotated[
        str | None, typer.Option(metavar="LOW,HIGH", help="Smallest and largest C: 0.01,1000.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, metavar="K", help="Folds of the rows.")] = 5,
    repeats: Annotated[
        int, typer.Option(min=1, metavar="R", help="How often the rows are dealt into folds.")
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Where random draws start.")] = 0,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Processes.")] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="A scorer of scikit-learn: balanced_accuracy, f1, roc_auc, r2, ...; by default "
            "the error, or the squared error.",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(min=0, metavar="E", help="Tube of a regression; by default 0.1 deviations."),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=10, metavar="N", help="Use so many rows, drawn at random.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Rows with the same value stay in one fold."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the curve: *.csv or *.json."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only the answer.")] = False,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave this column out; may be given again."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Use it though it looks like an id or a code of the target."
        ),
    ] = None,
    task: Annotated[
        TaskOption, typer.Option(metavar="TASK", help="classification, regression or auto.")
    ] = TaskOption.auto,
    format: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"The format: {', '.join(FORMATS)}.")
    ] = None,
    header: Annotated[bool, typer.Option(help="Whether a CSV file has names on top.")] = True,
) -> None:
    """Find the best C of a support vector machine, exactly, and prove it.

    tamis tune data.csv --target y

    tamis tune data.csv --target y --kernel linear --c-range 0.001,1000

    tamis tune data.csv --target y --gamma 0.01,0.1,scale --jobs 2 --output curve.csv
    """
    from tamis.cli.tuning import TuneRequest, run_tune

    run_tune(
        TuneRequest(
            file=file,
            target=target,
            kernel=kernel,
            gamma=tuple(gamma or ()),
            C_range=c_range,
            folds=folds,
            repeats=repeats,
            seed=seed,
            n_jobs=jobs,
            scoring=scoring,
            epsilon=epsilon,
            sample=sample,
            groups=groups,
            output=output,
            quiet=quiet,
            drop=tuple(drop or ()),
            keep=tuple(keep or ()),
            task=task.value,
            format=format,
            header=header,
        )
    )


@app.command()
def methods(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME or words]",
            help="A name, or words to look for.",
            show_default=False,
            autocompletion=method_words,
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON, with all that is known.")
    ] = False,
) -> None:
    """List the methods by the question they answer, or show one of them in full.

    tamis methods

    tamis methods floating

    tamis methods svm-rfe
    """
    from tamis.cli.listing import show_methods

    show_methods(" ".join(words or []), as_json=as_json)


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help="Experiments, see --list; or *.toml.", show_default=False
        ),
    ] = None,
    list_names: Annotated[bool, typer.Option("--list", help="List the names.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="Run all of them.")] = False,
    realizations: Annotated[
        int | None, typer.Option(min=1, help="How many; by default as published.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Number of processes.")] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Dask scheduler to run on; local: this machine."),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep finished tasks here, and go on from them."),
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", help="Choose hyper-parameters as published.")
    ] = False,
    output: Annotated[
        list[Path] | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="*.csv, *.md, *.tex or *.json; again for more."
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page of the experiment: *.html."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write pages, tables and pictures of all there."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Compute published tables again, and print ours beside the published numbers.

    tamis reproduce --list

    tamis reproduce thesis-3.1 --realizations 10 --jobs 2

    tamis reproduce thesis-5.10 --store wine.sqlite

    tamis reproduce mine.toml --output mine.csv --output mine.tex --report mine.html
    """
    from tamis.cli.reproducing import list_experiments, run_experiments

    if list_names:
        list_experiments()
        return
    run_experiments(
        experiments or [],
        everything=everything,
        realizations=realizations,
        tune=tune,
        n_jobs=jobs,
        cluster=dask,
        store=store,
        output=tuple(output or ()),
        report=report,
        folder=folder,
        quiet=quiet,
    )


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the ranking.")] = Path("tamis-demo"),
) -> None:
    """Select columns of a table that comes with scikit-learn, and say what is lost by it."""
    from tamis.cli.demo import run_demo

    run_demo(folder)
