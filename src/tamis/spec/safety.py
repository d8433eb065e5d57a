"""The rule that expressions keep: a text is a word, never a way to somewhere.

A value that is no text cannot lead anywhere: numbers, and objects of the vocabulary, are all else
that an expression can make. Parameters that give a text such a power are few and listed here; a
test looks through every parameter of the vocabulary for further ones, by what it is annotated
with, what its description says, and what it does when it is given a text.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tamis.exceptions import InvalidSpec

#: Parameters that only None and False may be given to, and what a text does there.
REFUSED: Mapping[str, str] = {
    # scikit-learn: make_pipeline, Pipeline, FeatureAgglomeration, AgglomerativeClustering, OPTICS
    "memory": "names a folder whose pickled content would be run",
    # scikit-learn's searches: an expression that joblib evaluates
    "pre_dispatch": "holds an expression that joblib evaluates",
    # CatBoost, which reads, or writes into, these files and folders
    "allow_writing_files": "lets files be written",
    "input_borders": "names a file",
    "output_borders": "names a file",
    "save_snapshot": "lets files be written",
    "snapshot_file": "names a file",
    "train_dir": "names a folder",
}

#: Parameters that take some texts only.
WORDS: Mapping[str, tuple[re.Pattern[str], str]] = {
    # text vectorizers of scikit-learn read the files that the rows name
    "input": (re.compile("content"), "makes rows the names of files"),
    # an attribute of the fitted estimator, perhaps of a step in a pipeline; never one of Python's
    "importance_getter": (
        re.compile(r"[a-zA-Z]\w*(\.[a-zA-Z]\w*)*"),
        "names an attribute by a path through Python's own",
    ),
}


#: Parameters whose texts are names of columns and of groups of them, which go to no estimator.
NAMES = frozenset({"feature_groups", "fixed_features"})


def check_argument(parameter: str, value: Any, at: str) -> None:
    """Refuse an argument that breaks the rule.

    Parameters
    ----------
    parameter : str
        Its name, or the path to it, such as ``"estimator__memory"``.
    value : object
        What was given for it; dictionaries inside are looked through, because their keys may name
        parameters.
    at : str
        Where it stands, for the sentence.
    """
    if parameter in NAMES:
        return
    _check(parameter, value, at)
    for inside in _dictionaries(value):
        for key, held in inside.items():
            # a class may be called memory, but its weight is a number
            if isinstance(key, str) and any(True for _ in _powers(held)):
                check_one_word(key, held, at)
                _check(key, held, at)


def check_one_word(parameter: str, value: Any, at: str) -> None:
    """Refuse texts with blanks where they may end in LightGBM.

    It hands all parameters on as one line of ``name=value``: behind a blank, a text would go on
    with parameters of its own, those that name files among them.
    """
    if any(isinstance(held, str) and re.search(r"\s", held) for held in _powers(value)):
        raise _refusal(parameter, at, "holds more than one word", "one word")


def _check(parameter: str, value: Any, at: str) -> None:
    name = parameter.rsplit("__", 1)[-1]
    if name in REFUSED and not (value is None or value is False):
        raise _refusal(parameter, at, REFUSED[name], "None, or leave it out")
    if name in WORDS:
        pattern, danger = WORDS[name]
        texts = (held for held in _powers(value) if isinstance(held, str))
        if any(not pattern.fullmatch(text) for text in texts):
            raise _refusal(parameter, at, danger, "another word")


def _refusal(parameter: str, at: str, danger: str, instead: str) -> InvalidSpec:
    return InvalidSpec(
        f"{parameter} {at} cannot be given in an expression: it {danger}. Write {instead}, or make "
        "the object in Python."
    )


def _powers(value: Any) -> Iterable[str | bool]:
    """The texts and the True inside a value, which are all that can allow anything."""
    if isinstance(value, str) or value is True:
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _powers(item)


def _dictionaries(value: Any) -> Iterable[dict[Any, Any]]:
    """The dictionaries inside a value, in each other too."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _dictionaries(item)
