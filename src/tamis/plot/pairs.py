"""Pairs of columns that matter together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._arrays import Array
from tamis.contract import Interaction
from tamis.exceptions import InvalidParameter
from tamis.plot.columns import SQUARE, closest, draw_squares
from tamis.plot.reading import chosen_units
from tamis.plot.style import Palette, charted, palette


def interactions(selection: Any, n: int = 20, *, theme: str = "light", square: int = SQUARE) -> Any:
    """What the strongest pairs of columns tell together beyond each alone.

    Numbers are hundredths of a nat. The best of many pairs is high by chance too.

    Parameters
    ----------
    selection : fitted selection
        By a criterion that looks at pairs, as :class:`tamis.criteria.PairInformation`.
    n : int, default=20
        How many pairs are shown.
    theme : {"light", "page"}, default="light"
        "page" has the variables of the style sheet of a report for colours.
    square : int
        Pixels of a square.

    Returns
    -------
    altair.LayerChart

    Examples
    --------
    >>> import numpy as np
    >>> import tamis
    >>> from tamis.plot import interactions
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 5))
    >>> y = (X[:, 1] - 0.5) * (X[:, 4] - 0.5) > 0
    >>> chosen = tamis.select(X, y, "pair-scan", n_features_to_select=2)
    >>> chart = interactions(chosen, n=1).to_dict()
    >>> [row["label"] for row in chart["layer"][0]["data"]["values"]]
    ['56']
    """
    check_is_fitted(selection)
    if not (isinstance(n, int | np.integer) and n >= 1):
        raise InvalidParameter(f"interactions needs n, the number of pairs to show, not {n!r}.")
    pairs = strongest(getattr(selection, "interactions_", ()), n)
    if not pairs:
        raise InvalidParameter(
            f"interactions needs a selection by a criterion that looks at pairs, and "
            f'{type(selection).__name__} found none. Write tamis.select(X, y, "pair-scan").'
        )
    names = chosen_units(selection).names
    return charted(draw_interactions(pairs, names, palette(theme), square))


def strongest(pairs: Sequence[Interaction], n: int) -> list[Interaction]:
    """The first pairs that tell more together than alone."""
    return [pair for pair in pairs if pair.information > 0][:n]


def draw_interactions(
    pairs: Sequence[Interaction], names: Sequence[str], colours: Palette, square: int
) -> dict[str, Any]:
    """The columns of the pairs as a lower triangle; pairs that are not among them are empty."""
    units = sorted({unit for pair in pairs for unit in pair[:2]})
    place = {unit: k for k, unit in enumerate(units)}
    told: Array = np.full((len(units), len(units)), np.nan)
    for pair in pairs:
        i, j = place[pair.first], place[pair.second]
        told[i, j] = told[j, i] = pair.information
    top = float(np.nanmax(told))
    shown = closest(np.nan_to_num(told) / top, len(units))  # columns of one pair beside each other
    labels = [names[units[k]] for k in shown]
    part = told[np.ix_(shown, shown)]
    return draw_squares(part, labels, colours, square, least=0.0, top=top)
