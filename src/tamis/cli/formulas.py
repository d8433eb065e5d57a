r"""Formulas for a terminal: the TeX of the descriptions as plain text.

It knows the commands of such formulas; others are written by their names.
"""

import re

_SIGNS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "epsilon": "ε",
    "varepsilon": "ε",
    "theta": "θ",
    "lambda": "λ",
    "mu": "μ",
    "pi": "π",
    "phi": "φ",
    "rho": "ρ",
    "sigma": "σ",
    "tau": "τ",
    "xi": "ξ",
    "omega": "ω",
    "Delta": "Δ",
    "Sigma": "Σ",
    "prod": "Π",
    "sum": "Σ",
    "in": " ∈ ",
    "ne": " ≠ ",
    "approx": "≈",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "cdot": "·",
    "times": "×",
    "infty": "∞",
    "to": "→",
    "dots": "...",
    "ldots": "...",
    "setminus": " without ",
    "cup": " ∪ ",
    "left": "",
    "right": "",
    "mid": "|",
    "ln": "ln ",
    "log": "log ",
    "qquad": "    ",
    "quad": "    ",
    "bigl": "",
    "bigr": "",
    "big": "",
    "Big": "",
    "{": "{",
    "}": "}",
    "|": "‖",
    ",": "",
    ";": " ",
}
_POWERS = {"2": "²", "-1": "⁻¹", "*": "*"}
_TOKEN = re.compile(r"\\[a-zA-Z]+|\\.|[{}^_]|\s+|[^\\{}^_\s]")


def readable(tex: str) -> str:
    r"""A formula as text.

    >>> readable(r"I(x_j; y) - \frac{1}{|S|} \sum_{i \in S} I(x_j; x_i)")
    'I(x_j; y) - 1/|S| Σ[i ∈ S] I(x_j; x_i)'
    >>> readable(r"\frac12 \|w\|^2")
    '1/2 ‖w‖²'
    """
    tokens = _TOKEN.findall(tex)
    text = _read(tokens)
    text = re.sub(r"(?<! ) {2,3}(?! )", " ", text)  # more than three part two formulas
    text = re.sub(r"([(\[]) ", r"\1", text)
    return re.sub(r" +([,;.)\]²])", r"\1", text).strip()


def formulas(description: str) -> list[str]:
    """The formulas of a description, as text."""
    found = re.findall(r"\.\. math::(.*?)(?=\n\s*\n|\Z)", description, re.DOTALL)
    lines = [line for tex in found for line in readable(" ".join(tex.split())).split("    ")]
    return [line.strip(" ,.") for line in lines if line.strip(" ,.")]


def _read(tokens: list[str]) -> str:
    made = ""
    while tokens:
        made += _next(tokens)
    return made


def _next(tokens: list[str]) -> str:
    """The text of the next token, with the arguments that belong to it."""
    token = tokens.pop(0)
    if token == "{":
        return _read(_group(tokens))
    if token in "^_":
        return _script(token, _argument(tokens))
    if not token.startswith("\\"):
        return " " if token.isspace() else token
    name = token[1:]
    if name in ("frac", "tfrac"):
        above, below = _argument(tokens), _argument(tokens)
        return f"{_bracketed(above)}/{_bracketed(below)} "
    if name in ("mathrm", "mathbf", "text", "operatorname"):
        return _argument(tokens)
    if name == "sqrt":
        return f"√({_argument(tokens)})"
    if name == "bar":
        return f"mean {_argument(tokens)}"
    if name == "sum" and tokens and tokens[0] == "_":
        tokens.pop(0)
        over = _argument(tokens)
        return f"Σ[{over}] " if len(over) > 1 else f"Σ_{over} "
    return _SIGNS.get(name, name)  # of others, such as max, the name says what they are


def _script(sign: str, words: str) -> str:
    if sign == "^":
        return _POWERS.get(words, f"^{words}" if len(words) == 1 else f"^({words})")
    return f"_{words}" if re.fullmatch(r"\w+|-\w", words) else f"_({words})"


def _argument(tokens: list[str]) -> str:
    """A group in braces, or one sign."""
    while tokens and tokens[0].isspace():
        tokens.pop(0)
    return _next(tokens).strip() if tokens else ""


def _group(tokens: list[str]) -> list[str]:
    """The tokens up to the brace that closes this one, taken away."""
    depth, inside = 1, []
    while tokens:
        token = tokens.pop(0)
        depth += {"{": 1, "}": -1}.get(token, 0)
        if not depth:
            break
        inside.append(token)
    return inside


def _bracketed(words: str) -> str:
    """The words, in brackets where a fraction would not end with them."""
    simple = re.fullmatch(r"\d+|\w(_\w+)?²?|\|[^|]*\||[HI]\([^()]*\)", words)
    return words if simple else f"({words})"
