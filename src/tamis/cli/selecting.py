"""What ``tamis select`` does: read, select, write, print."""

from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tamis import spec
from tamis.cli.files import read
from tamis.cli.output import check_output, write_ranking
from tamis.cli.printing import print_ranking, say
from tamis.cli.ranking import ranked_columns
from tamis.cli.running import load_record, number_of_features, run, selector_for
from tamis.cli.tables import LabelledTable, labelled
from tamis.contract import Selection
from tamis.recipes import prepare


class Request(NamedTuple):
    """The arguments of the command."""

    file: Path
    method: str | None
    target: str | None
    n_features_to_select: str | None
    drop: tuple[str, ...]
    task: str
    output: Path | None
    rows: int
    seed: int
    n_jobs: int | None
    save_record: Path | None
    resume: Path | None
    format: str | None
    header: bool
    safe_csv: bool


def run_select(asked: Request) -> None:
    """Select columns of a file as asked; what cannot be written is refused before any work."""
    check_output(asked.output, asked.file)
    check_output(asked.save_record, asked.file, endings=(".json",))
    data = labelled(
        read(asked.file, asked.format, header=asked.header), asked.target, asked.drop, asked.task
    )
    record = None if asked.resume is None else load_record(asked.resume)
    selector = selector_for(
        asked.method,
        data,
        record,
        n_features_to_select=number_of_features(asked.n_features_to_select),
        task=asked.task,
        n_jobs=asked.n_jobs,
    )
    expression = spec.write(selector, strict=False)
    if asked.method is not None or record is None:  # a record has the seeds that it began with
        selector = prepare(selector, data.y, task=asked.task, random_state=asked.seed)
    selection = run(selector, data, record, asked.save_record)
    ranking = ranked_columns(selection, data.X.columns)
    if asked.output is not None:
        facts = partial(_facts, asked.file, data, selection)
        write_ranking(asked.output, ranking, facts, safe=asked.safe_csv)
    print_ranking(ranking, [f"{asked.file.name}: {data}", expression], asked.rows)
    for what, path in (("ranking", asked.output), ("record", asked.save_record)):
        if path is not None:
            say(f"the {what} is in {path}.")


def _facts(file: Path, data: LabelledTable, selection: Selection) -> dict[str, Any]:
    """What a ranking written as JSON says beside the ranking."""
    return {
        "file": str(file),
        "target": data.target,
        "task": data.task,
        "method": spec.write(selection, strict=False),
        "selected": selection.get_feature_names_out().tolist(),
        "record": selection.record_.to_dict(),
    }
