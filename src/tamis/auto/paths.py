"""The orders of the columns that Auto tries."""

from tamis.auto.models import ForestImportances
from tamis.contract import Selection
from tamis.criteria import JMI, Correlation, CoxScore, Importances
from tamis.search import Forward, Ranking, RecursiveElimination, Then

#: Names of the column orders. If several are equally good, the first is chosen. "cox" is used for
#: censored targets only.
PATHS = ("information", "forest", "cox")
#: Maximum number of columns that each search considers. If the table has more, an F-test preselects
#: this number of columns. A search over this number takes about a second.
SCREENED = {"information": 10_000, "forest": 10_000, "cox": 10_000_000}
#: Number of trees in the forest that ranks the columns, and the share of the columns that each step
#: of the elimination drops.
N_TREES, LEAVING = 60, 0.4


def path_of(name: str, task: str, n_units: int) -> Selection:
    """Return the search that computes an order, for a number of units (columns or groups)."""
    search = _search(name, task)
    if n_units <= SCREENED[name]:
        return search
    return Then(Ranking(Correlation(task=task), n_features_to_select=SCREENED[name]), search)


def _search(name: str, task: str) -> Selection:
    if name == "cox":
        return Ranking(CoxScore())
    if name == "information":
        return Forward(JMI(adjusted=True, task=task))
    return RecursiveElimination(Importances(ForestImportances(N_TREES, task)), step=LEAVING)
