"""The commands that take a table of yours: what each of them asks.

What they do is imported when they run, because scikit-learn and polars take over a second of
processor time, which ``--help`` has no use for.
"""

from pathlib import Path
from typing import Annotated

import typer

from tamis.cli import options
from tamis.cli.completing import method_words
from tamis.cli.options import TaskOption


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
    target: options.Target = None,
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
    drop: options.Drop = None,
    keep: options.Keep = None,
    calendar: options.Calendar = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what the table holds.")
    ] = False,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B", help="Take or leave columns together; may be given again."
        ),
    ] = None,
    fixed: options.Fixed = None,
    id_columns: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    task: options.Task = TaskOption.auto,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the ranking: *.csv or *.json."),
    ] = None,
    rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many rows of the ranking to show.")
    ] = options.ROWS,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
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
    scoring: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Score that decides without METHOD: roc_auc, neg_log_loss, r2, ..."
        ),
    ] = None,
    cv: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDS", help="Number of folds without METHOD, or time:COLUMN for time order."
        ),
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Keep rows with the same value in the same fold."),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Weights of the rows.")
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(metavar="WEIGHT", help="balanced: every class counts the same."),
    ] = None,
    quiet: options.Quiet = False,
    json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    format: options.Format = None,
    header: options.Header = True,
    safe_csv: options.SafeCsv = True,
) -> None:
    """Select columns of a table.

    Without METHOD, tamis tries several methods and writes the selected columns, their estimated
    error and an HTML report to tamis-NAME/.

    tamis select data.csv --target y

    tamis select data.csv --target y --dry-run

    tamis select data.csv --target y svm-rfe --features 10 --output ranking.csv

    tamis select data.csv --target y 'Forward(CrossValidated(SVC(C=10)))' -k 5

    tamis select data.csv --target y --scoring roc_auc --groups customer

    tamis select patients.csv --time days --event died
    """
    from tamis.cli.request import Request
    from tamis.cli.selecting import run_select

    run_select(
        Request(
            file=file,
            method=method,
            target=target,
            n_features_to_select=features,
            drop=(*(drop or ()), *(id_columns or ())),
            keep=tuple(keep or ()),
            calendar=calendar,
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
            scoring=scoring,
            cv=cv,
            row_groups=groups,
            weights=weights,
            class_weight=class_weight,
            quiet=quiet,
            json=json,
        )
    )


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
    target: options.Target = None,
    time: Annotated[str | None, typer.Option(hidden=True)] = None,
    event: Annotated[str | None, typer.Option(hidden=True)] = None,
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
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    dask: options.Cluster = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep finished fits here, and go on from them."),
    ] = None,
    output: options.Outputs = None,
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
    drop: options.Drop = None,
    keep: options.Keep = None,
    calendar: options.Calendar = False,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=A,B", help="Take or leave columns together: methods keep --features."
        ),
    ] = None,
    fixed: options.Fixed = None,
    task: options.Task = TaskOption.auto,
    format: options.Format = None,
    header: options.Header = True,
    safe_csv: options.SafeCsv = True,
    quiet: options.Quiet = False,
) -> None:
    """Compare methods on your own table, on rows they have not seen.

    tamis compare data.csv --target y

    tamis compare data.csv --target y mrmr svm-rfe 'Forward(Scatter("J3"))'

    tamis compare data.csv -t y mrmr jmi --estimator 'SVC(C=10)' --folder mine

    tamis compare a.csv b.csv c.csv -t y correlation mrmr --jobs 4 --report compare.html
    """
    from tamis.cli.censored import refuse_censored
    from tamis.cli.comparing import CompareRequest, run_compare

    refuse_censored("tamis compare", time, event)
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
            calendar=calendar,
            task=task.value,
            format=format,
            header=header,
            safe_csv=safe_csv,
            quiet=quiet,
            groups=tuple(group or ()),
            fixed=tuple(fixed or ()),
        )
    )


def tune(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A table, as of tamis select; - is stdin."),
    ],
    target: options.Target = None,
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
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
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
    drop: options.Drop = None,
    keep: options.Keep = None,
    task: options.Task = TaskOption.auto,
    format: options.Format = None,
    header: options.Header = True,
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
