"""Formatting of numbers, intervals, durations, lists and names."""

import math
import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

#: Maximum number of names that a message lists.
NAMED = 5
#: Smallest p-value that is printed as a number. Smaller ones are printed as "< 0.001".
LEAST_P = 0.001
#: Readable names of scikit-learn's scores. For any other score, underscores become spaces.
SCORES = {"roc_auc": "AUC", "roc_auc_ovr": "AUC (one class against the rest)"}
#: Characters that a terminal or a page would interpret instead of showing: control characters
#: (including those of Latin-1), line breaks, changes of text direction, surrogates and invisible
#: tags.
CONTROL = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ud800-\udfff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


# -- words ----------------------------------------------------------------------------------------


def join_words(words: Sequence[str], conjunction: str = "and") -> str:
    """Join words with commas and a conjunction.

    >>> join_words(["a"]), join_words(["a", "b", "c"], "or")
    ('a', 'a, b or c')
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {conjunction} {words[-1]}"


def format_names(names: Iterable[Any], most: int = NAMED) -> str:
    """Return the first names in quotes, followed by the number of further names.

    >>> format_names(["a", "b", "c"], most=2)
    "'a', 'b' and 1 more"
    """
    names = list(names)
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def shorten_list(names: Sequence[Any], most: int = NAMED) -> str:
    """Join the first names with commas, followed by an ellipsis if there are more.

    >>> shorten_list(["a", "b", "c"], most=2)
    'a, b, ...'
    """
    return ", ".join([*map(str, names[:most]), *(["..."] if len(names) > most else [])])


def format_count(number: Any, word: str = "column") -> str:
    """Return a number followed by a noun, which is in the plural unless the number is 1.

    >>> format_count(1, "row"), format_count(1200, "row")
    ('1 row', '1200 rows')
    """
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `` Did you mean A or B?``, or an empty string if no known name is similar.

    >>> did_you_mean("scater", ["Scatter", "Divergence"])
    ' Did you mean Scatter?'
    >>> print(did_you_mean("vote", ["'vote'", " age"]).strip())
    Did you mean "'vote'"?
    """
    plain: dict[str, str] = {}
    for name in known:
        plain.setdefault(name.lower(), name)
    near = get_close_matches(word.lower(), plain, n=3)
    if len(near) > 1:  # if some names are very similar, suggest only these
        near = get_close_matches(word.lower(), near, cutoff=0.8) or near
    return f" Did you mean {' or '.join(_quote(plain[name]) for name in near)}?" if near else ""


def _quote(name: str) -> str:
    """Quote a name if it begins or ends with quotes or contains unusual blanks."""
    return name if name == name.strip("'\"") and name.split() == name.split(" ") else repr(name)


def quote_for_shell(name: str) -> str:
    """Return a name as it must be written on a command line."""
    return name if name.isidentifier() else f'"{name}"'


#: Maximum number of characters that a message quotes from another library's error.
LONGEST = 300


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message without the full stop, or the error's class name.

    >>> first_line(ValueError("No rows.\\nSee the manual.")), first_line(EOFError())
    ('No rows', 'EOFError')
    """
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return format_name(lines[0].strip().rstrip(".:"), LONGEST)


def mask_control(text: object) -> str:
    """Replace every character that a terminal would interpret with U+FFFD.

    >>> mask_control("gene\x1b[2J")
    'gene\ufffd[2J'
    """
    return CONTROL.sub("\ufffd", str(text))


def format_name(name: object, letters: int | None = None) -> str:
    """Return a column name without control characters, shortened to at most ``letters`` characters.

    >>> format_name("a\\x00b"), format_name(" "), format_name("length of the petal", 12)
    ('a\ufffdb', '(no name)', 'length of t…')
    """
    text = mask_control(name)
    text = text if text.strip() else "(no name)"
    return text if letters is None or len(text) <= letters else text[: letters - 1].rstrip() + "…"


# -- numbers --------------------------------------------------------------------------------------


def format_number(value: float | None, digits: int = 3) -> str:
    """Return a number as text with a few digits and a typographic minus, or a dash if unknown.

    >>> format_number(0.12345), format_number(-1303.4), format_number(1.234e-9)
    ('0.123', '−1303', '1.2e−9')
    >>> format_number(float("nan")), format_number(0.0), format_number(float("inf"))
    ('–', '0', '∞')
    """
    if value is None or value != value:
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if value == 0:
        text = "0"
    elif 1e-4 <= size < 1e6:
        text = f"{value:.0f}" if size >= 10 ** (digits - 1) else f"{value:.{digits}g}"
    else:
        mantissa, exponent = f"{value:.1e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    return text.replace("-", "−")


def format_interval(
    value: float, error: float | None, *, decimals: int | None = None, unit: str = ""
) -> str:
    """Return a value ± its standard error as text, with the same number of decimals.

    A standard error that is unknown, or would be written as 0, is omitted. If ``decimals`` is None,
    the value is written with three significant digits.

    >>> format_interval(12.34, 1.41), format_interval(0.5, 0.0), format_interval(3.0, None)
    ('12.3 ± 1.4', '0.500', '3.00')
    >>> format_interval(12.34, 0.01, decimals=1, unit=" %"), format_interval(float("nan"), 1.0)
    ('12.3 %', '–')
    """
    if not math.isfinite(value):
        return format_number(value)
    if decimals is None:
        decimals = 2 if value == 0 else 2 - math.floor(math.log10(abs(value)))
    spread = "" if error is None or not math.isfinite(error) else _fixed(error, decimals)
    known = f" ± {spread}" if re.search("[1-9]", spread) else ""
    return f"{_fixed(value, decimals)}{known}{unit}"


def _fixed(value: float, decimals: int) -> str:
    """Return a number as text with the given number of decimals.

    A very large or very small number is written with a power of ten.
    """
    return f"{value:.{max(decimals, 0)}f}" if -2 <= decimals <= 6 else f"{value:.2e}"


def format_p_value(p: float) -> str:
    """Return a p-value as text with two digits.

    >>> format_p_value(0.0312), format_p_value(0.00001), format_p_value(1.0)
    ('0.031', '< 0.001', '1')
    """
    if math.isnan(p):
        return "–"
    return f"< {LEAST_P:g}" if p < LEAST_P else f"{p:.2g}"


def format_score_name(name: str) -> str:
    """Return the name of a scikit-learn score as text.

    >>> format_score_name("roc_auc"), format_score_name("neg_log_loss")
    ('AUC', 'neg log loss')
    """
    return SCORES.get(name, name.replace("_", " "))


def format_duration(seconds: float) -> str:
    """Return a duration as text, in the unit that people would use.

    >>> [format_duration(s) for s in (0.00042, 0.0312, 1.25, 12.3, 600, 10_000, 300_000)]
    ['0.4 ms', '31 ms', '1.2 s', '12 s', '10 min', '3 hours', '3 days']
    """
    for unit, length in (("days", 86_400), ("hours", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    if seconds >= 1:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{1000 * seconds:.{0 if seconds >= 0.001 else 1}f} ms"


def format_bytes(number: float) -> str:
    """Return a number of bytes as text.

    >>> format_bytes(5 * 2**30), format_bytes(3_000_000)
    ('5 GiB', '2.9 MiB')
    """
    unit, name = (2**30, "GiB") if number >= 2**30 else (2**20, "MiB")
    return f"{number / unit:.{3 if unit == 2**30 else 2}g} {name}"
