"""Pairs of columns that matter together."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tamis._checks import check_values, integer
from tamis.contract.record import Interaction
from tamis.exceptions import InvalidParameter
from tamis.report.charts.columns import SQUARE, closest, draw_squares
from tamis.report.charts.style import Palette, palette, to_altair
from tamis.report.units import chosen_units, strongest_pairs


def interactions(selection: Any, n: int = 20, *, theme: str = "light", square: int = SQUARE) -> Any:
    """Draw the information of the strongest pairs of columns beyond that of each alone.

    Numbers are hundredths of a nat. The best of many pairs is high by chance too.

    Parameters
    ----------
    selection : fitted selection
        By a criterion that looks at pairs, as :class:`tamis.criteria.PairInformation`.
    n : int, default=20
        Number of pairs that are shown.
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
    check_values("interactions", {"n": integer(1)}, n=n)
    pairs = strongest_pairs(selection, n)
    if not pairs:
        raise InvalidParameter(
            f"interactions needs a selection by a criterion that looks at pairs, and "
            f'{type(selection).__name__} found none. Write tamis.select(X, y, "pair-scan").'
        )
    names = chosen_units(selection).names
    return to_altair(draw_interactions(pairs, names, palette(theme), square))


def draw_interactions(
    pairs: Sequence[Interaction], names: Sequence[str], colours: Palette, square: int
) -> dict[str, Any]:
    """Draw the columns of the pairs as a lower triangle; pairs that are not given are empty."""
    units = sorted({unit for pair in pairs for unit in pair[:2]})
    information = np.full((len(units), len(units)), np.nan)
    for pair in pairs:
        i, j = units.index(pair.first), units.index(pair.second)
        information[i, j] = information[j, i] = pair.information
    top = float(np.nanmax(information))
    # columns of one pair stand next to each other
    shown = closest(np.nan_to_num(information) / top, len(units))
    labels = [names[units[k]] for k in shown]
    part = information[np.ix_(shown, shown)]
    return draw_squares(part, labels, colours, square, least=0.0, top=top)
