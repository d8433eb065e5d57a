"""What the shell offers as a name of a method is typed."""

import json
from pathlib import Path

INDEX = Path(__file__).with_name("methods.json")


def method_words(incomplete: str) -> list[str]:
    """Names of recipes that begin so.

    >>> method_words("svm-r")
    ['svm-rfe']
    """
    lines = json.loads(INDEX.read_text(encoding="utf-8"))["recipes"]
    return [line["name"] for line in lines if line["name"].startswith(incomplete)]
