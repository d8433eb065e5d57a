"""Pictures of selections and experiments, as altair charts.

Each function returns a chart without title in light colours: show it in a notebook, or write it as
SVG, PNG or PDF by ``chart.save("curve.svg")``. Needs the extra ``app``.
"""

from tamis.plot.by_class import classes
from tamis.plot.columns import ranking, redundancy
from tamis.plot.curves import curve
from tamis.plot.kept import stability
from tamis.plot.methods import comparison, rank_agreement
from tamis.plot.pairs import interactions
from tamis.plot.published import published
from tamis.plot.tuned import tuning
from tamis.plot.walks import path

__all__ = [
    "classes",
    "comparison",
    "curve",
    "interactions",
    "path",
    "published",
    "rank_agreement",
    "ranking",
    "redundancy",
    "stability",
    "tuning",
]
