"""The ways in which AUTO orders the columns."""

from typing import Any

from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

from tamis.auto.models import COST, SHARE, TUBE, WIDTH
from tamis.contract import Selection
from tamis.criteria import (
    JMI,
    Correlation,
    DensitySensitivity,
    Importances,
    PosteriorSensitivity,
)
from tamis.search import Forward, Ranking, RecursiveElimination, Then
from tamis.svm.relative import RelativeSVC, RelativeSVR

#: The paths, in the order in which one of several equals is taken.
PATHS = ("information", "sensitivity", "forest")
#: Columns that a path walks through; where there are more, the first by the F-test enter. A walk
#: of information or of a forest takes a second for so many, one of sensitivities for 500.
SCREENED = {"information": 10_000, "sensitivity": 500, "forest": 10_000}
#: Rows that a walk of sensitivities learns from: it takes the square of their number.
MACHINE_ROWS = 1000
#: Trees of a forest whose importances are asked, and the share of columns that leaves at a time.
N_TREES, LEAVING = 60, 0.4
#: The share that leaves by sensitivity, and quantiles that stand for a column.
STEP, N_VALUES = 0.2, 32


def path_of(name: str, task: str, n_units: int) -> Selection:
    """The search that makes a path through so many units."""
    search = _search(name, task)
    if n_units <= SCREENED[name]:
        return search
    return Then(Ranking(Correlation(task=task), n_features_to_select=SCREENED[name]), search)


def _search(name: str, task: str) -> Selection:
    classes = task == "classification"
    if name == "information":
        return Forward(JMI(task=task))
    if name == "sensitivity":
        return RecursiveElimination(_sensitivity(classes), step=STEP)
    forest: Any = (
        ExtraTreesClassifier(N_TREES)
        if classes
        else ExtraTreesRegressor(N_TREES, max_features=SHARE)
    )
    return RecursiveElimination(Importances(forest), step=LEAVING)


def _sensitivity(classes: bool) -> Any:
    if classes:
        machine = RelativeSVC(COST, scale=WIDTH)
        return PosteriorSensitivity(machine, on="auto", n_values=N_VALUES)
    regression = RelativeSVR(COST, tube=TUBE, scale=WIDTH)
    return DensitySensitivity(regression, on="auto", n_values=N_VALUES)
