"""What searches that value whole subsets, not single moves, have in common."""

import numpy as np

from tamis._arrays import improves
from tamis.contract import Chosen, Search
from tamis.contract.run import Run


class WholeSubsets(Search):
    """Search each of whose steps holds the best subset so far."""

    def _picked(self, run: Run) -> Chosen:
        """Of equal steps the last: it took the place of the others by opinion, or as the first."""
        picked = super()._picked(run)
        trace = run.trace
        size, value = trace.sizes[picked.step], trace.values[picked.step]
        last = max(
            index
            for index in np.flatnonzero(trace.sizes == size)
            if not improves(value, trace.values[index])
        )
        return picked._replace(step=int(last))
