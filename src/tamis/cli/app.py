"""The commands."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import tamis
from tamis import spec
from tamis.cli.demo import run_demo
from tamis.cli.failing import Sentences
from tamis.cli.files import READERS, read
from tamis.cli.output import check_output, places, write_ranking
from tamis.cli.printing import print_class, print_methods, print_ranking, print_recipe, say
from tamis.cli.reproduction import reproduce
from tamis.cli.running import load_record, number_of_features, run, selector_for
from tamis.cli.tables import Table, table
from tamis.contract import Selection
from tamis.exceptions import InvalidSpec
from tamis.recipes import find, names, prepare

app = typer.Typer(
    cls=Sentences,
    name="tamis",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Task(StrEnum):
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
        typer.echo(f"tamis {tamis.__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command()
def select(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV, TSV, Parquet, ARFF or LIBSVM file.")
    ],
    method: Annotated[
        str | None,
        typer.Argument(metavar="METHOD", help="A recipe (see tamis methods) or an expression."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="COLUMN", help="The target.")
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
    id_columns: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    task: Annotated[
        Task, typer.Option(metavar="TASK", help="classification, regression or auto.")
    ] = Task.auto,
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
    save_record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write every step to *.json, also after Ctrl-C."),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Go on from such a file.")
    ] = None,
    format: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"The format: {', '.join(READERS)}.")
    ] = None,
    header: Annotated[bool, typer.Option(help="Whether a CSV file has names on top.")] = True,
) -> None:
    """Select columns of a table.

    tamis select data.csv --target y

    tamis select data.csv --target y svm-rfe --features 10 --output ranking.csv

    tamis select data.csv --target y 'Forward(CrossValidated(SVC(C=10)))' -k 5
    """
    check_output(output, file)
    check_output(save_record, file, endings=(".json",))
    left_out = [*(drop or []), *(id_columns or [])]
    data = table(read(file, format, header=header), target, left_out, task.value)
    record = None if resume is None else load_record(resume)
    selector = selector_for(
        method,
        data,
        record,
        n_features_to_select=number_of_features(features),
        task=task.value,
        n_jobs=jobs,
    )
    expression = spec.write(selector, strict=False)
    if method is not None or record is None:  # a record has the seeds that it began with
        selector = prepare(selector, data.y, task=task.value, random_state=seed)
    selection = run(selector, data, record, save_record)
    ranking = places(selection, data.X.columns)
    if output is not None:
        write_ranking(output, ranking, facts(file, data, selection))
    print_ranking(ranking, [f"{file.name}: {data}", expression], rows)
    for what, path in (("ranking", output), ("record", save_record)):
        if path is not None:
            say(f"the {what} is in {path}.")


def facts(file: Path, data: Table, selection: Selection) -> dict[str, Any]:
    """What a ranking written as JSON says beside the ranking."""
    return {
        "file": str(file),
        "target": data.target,
        "task": data.kind,
        "method": spec.write(selection, strict=False),
        "selected": selection.get_feature_names_out().tolist(),
        "record": selection.record_.to_dict(),
    }


@app.command()
def methods(
    words: Annotated[
        list[str] | None, typer.Argument(help="A name, or words to look for.", show_default=False)
    ] = None,
) -> None:
    """List recipes, criteria and searches, or show one of them.

    tamis methods

    tamis methods floating

    tamis methods svm-rfe
    """
    asked = " ".join(words or [])
    classes = {name: kind for group in spec.catalogue().values() for name, kind in group.items()}
    if asked in names():
        (one,) = (recipe for recipe in find(asked) if recipe.name == asked)
        print_recipe(one)
    elif asked in classes:
        print_class(classes[asked])
    else:
        recipes = find(asked)
        groups = {
            title: {name: kind for name, kind in group.items() if speaks_of(kind, asked)}
            for title, group in spec.catalogue().items()
        }
        if not recipes and not any(groups.values()):
            near = spec.did_you_mean(asked, [*names(), *classes])
            raise InvalidSpec(
                f"No method speaks of {asked!r}.{near} Write tamis methods to see all."
            )
        print_methods(recipes, groups)


def speaks_of(kind: type, words: str) -> bool:
    """Whether the name or description of a class has all the words."""
    text = f"{kind.__name__} {kind.__doc__}".lower()
    return all(word in text for word in words.lower().split())


app.command()(reproduce)


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where to write the ranking.")] = Path("tamis-demo"),
) -> None:
    """Select columns of a table that comes with scikit-learn, and say what is lost by it."""
    run_demo(folder)
