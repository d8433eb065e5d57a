"""What gates leave open: warnings of a selection that stands but deserves doubt."""

from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from tamis.exceptions import DegenerateData, NotConverged
from tamis.neural._gating import GateSettings

#: Rows of a class below which correlations inside it are mostly chance.
FEW_ROWS = 5
#: A bounded gate below this is closed, and a linear one below this share of the width of its
#: sparsity, where it costs a twentieth of what an open one does.
CLOSED, SHARE_OF_WIDTH = 0.1, 1 / 3


def warn_of_few_rows(
    settings: GateSettings, classes: NDArray[Any], codes: NDArray[np.intp], stacklevel: int
) -> None:
    """Correlations inside a class of a few rows are near 1 by chance."""
    counts, kind = np.bincount(codes), settings.redundancy.kind
    if settings.redundancy.inside_classes(settings.scope) and counts.min() < FEW_ROWS:
        few = ", ".join(str(label) for label in classes[counts < FEW_ROWS])
        warn(
            f"GateSelector takes the redundancy inside each class, but {few} has fewer than "
            f"{FEW_ROWS} rows, whose correlations are mostly chance. redundancy="
            f"Redundancy({kind!r}, level='global') takes it over all rows.",
            DegenerateData,
            stacklevel=stacklevel + 1,
        )


def warn_of_closed_gates(
    settings: GateSettings, gates: NDArray[np.float64], stacklevel: int
) -> None:
    """Say which columns were kept although their gates are closed, and why."""
    width = np.min(settings.sparsity.width)
    closed = width * SHARE_OF_WIDTH if settings.gate == "linear" else CLOSED
    n_open = int(np.sum(gates >= closed))
    if n_open < len(gates):
        warn(
            f"GateSelector keeps {len(gates)} column(s), but only {n_open} of the gates are open; "
            "the order of the others is hardly more than chance. Ask for fewer columns, or lower "
            "mu or lam.",
            DegenerateData,
            stacklevel=stacklevel + 1,
        )


def warn_of_divergence(stacklevel: int) -> None:
    """Say that steps were so long that the objective was lost."""
    warn(
        "GateSelector diverged: its objective was no longer finite, and the best gates before that "
        "are used. Use a smaller learning_rate, mu or lam.",
        NotConverged,
        stacklevel=stacklevel + 1,
    )
