"""Pictures of selections and experiments, as altair charts.

Each function returns a chart without title in light colours: show it in a notebook, or write it as
SVG, PNG or PDF by ``chart.save("curve.svg")``. Needs the extra ``app``.
"""

from tamis.plot.columns import ranking, redundancy, stability
from tamis.plot.curves import curve
from tamis.plot.tuned import tuning
from tamis.plot.walks import path

__all__ = ["curve", "path", "ranking", "redundancy", "stability", "tuning"]
