"""Sensitivity of trained models: FSPP 1 to 4, MLP-FSPP, MOI, SD-L and SD-G.

Without hyper-parameters each tunes its model once, on all columns, before anything is selected, and
lets the kernel's width follow the number of columns; a ``gamma`` that is given is used as it is.
"""

from typing import Any

from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC, SVR

from tamis.criteria import (
    DensitySensitivity,
    Derivative,
    OutputInformation,
    PosteriorSensitivity,
    TunedSVC,
    TunedSVR,
)
from tamis.recipes.book import published
from tamis.search import Ranking, RecursiveElimination

SHEN = "Shen, Ong, Li and Wilder-Smith (2008), Feature selection via sensitivity analysis of SVM"
YANG = "Yang, Shen, Ong and Li (2009), Feature selection for MLP neural network"
ONG = "Yang and Ong (2011), Feature selection using probabilistic prediction of SVR"
#: Quantiles that stand for a column: the scores of all values to three digits.
N_VALUES = 32


def _machine(C: float | None, gamma: Any) -> Any:
    if gamma is None:
        return TunedSVC(C)
    return SVC(C=1.0 if C is None else C, gamma=gamma)


def _fspp(C: float | None, gamma: Any, **how: Any) -> PosteriorSensitivity:
    return PosteriorSensitivity(_machine(C, gamma), on="auto", n_values=N_VALUES, **how)


def _ranked(criterion: PosteriorSensitivity, options: dict[str, Any]) -> Ranking:
    return Ranking(criterion, **{"by": "removal"} | options)


def _eliminated(criterion: Any, options: dict[str, Any]) -> RecursiveElimination:
    return RecursiveElimination(criterion, **{"step": 0.1} | options)


@published(SHEN)
def fspp1_init(C: float | None = None, gamma: Any = None, **options: Any) -> Ranking:
    """Rank by the share of rows whose predicted class changes as a column is perturbed."""
    return _ranked(_fspp(C, gamma, output="decision"), options)


@published(SHEN)
def fspp2_init(C: float | None = None, gamma: Any = None, **options: Any) -> Ranking:
    """Rank by how far the posterior moves as a column is perturbed."""
    return _ranked(_fspp(C, gamma), options)


@published(SHEN)
def fspp3_init(C: float | None = None, gamma: Any = None, **options: Any) -> Ranking:
    """Rank by how far the posterior moves as a column is set to its mean."""
    return _ranked(_fspp(C, gamma, by="zero"), options)


@published(SHEN)
def fspp4_init(C: float | None = None, gamma: Any = None, **options: Any) -> Ranking:
    """Rank by the derivative of the posterior by the scale of a column, the machine kept."""
    return _ranked(_fspp(C, gamma, by=Derivative(follow=False)), options)


@published(SHEN)
def fspp4_init_printed(C: float | None = None, gamma: Any = None, **options: Any) -> Ranking:
    """Rank by the derivative of the posterior, the machine following: it makes up for the scale."""
    return _ranked(_fspp(C, gamma, by=Derivative(follow=True)), options)


@published(SHEN)
def fspp1_rfe(C: float | None = None, gamma: Any = None, **options: Any) -> RecursiveElimination:
    """Drop the tenth whose perturbation changes the fewest predicted classes, train again."""
    return _eliminated(_fspp(C, gamma, output="decision"), options)


@published(SHEN)
def fspp2_rfe(C: float | None = None, gamma: Any = None, **options: Any) -> RecursiveElimination:
    """Drop the tenth whose perturbation moves the posterior least, train again."""
    return _eliminated(_fspp(C, gamma), options)


@published(SHEN)
def fspp3_rfe(C: float | None = None, gamma: Any = None, **options: Any) -> RecursiveElimination:
    """Drop the tenth that moves the posterior least when set to its mean, train again."""
    return _eliminated(_fspp(C, gamma, by="zero"), options)


@published(SHEN)
def fspp4_rfe(C: float | None = None, gamma: Any = None, **options: Any) -> RecursiveElimination:
    """Drop the tenth with the least derivative of the posterior, the machine kept; train again."""
    return _eliminated(_fspp(C, gamma, by=Derivative(follow=False)), options)


@published(SHEN)
def fspp4_rfe_printed(
    C: float | None = None, gamma: Any = None, **options: Any
) -> RecursiveElimination:
    """Drop the tenth with the least derivative, the machine following: it makes up for the scale.

    On easy problems it finds fewer relevant columns than chance: where a machine fits well, its
    multipliers make up for the scale of the columns that matter.
    """
    return _eliminated(_fspp(C, gamma, by=Derivative(follow=True)), options)


@published(YANG)
def mlp_fspp_rfe(
    n_hidden: int | None = None, decay: float | None = None, **options: Any
) -> RecursiveElimination:
    """Drop the tenth whose perturbation moves a network's posterior least, train again."""
    network = MLPClassifier((6,), activation="tanh", solver="lbfgs", alpha=1.0, max_iter=1000)
    grid = {
        "hidden_layer_sizes": [6, 12] if n_hidden is None else [n_hidden],
        "alpha": [0.1, 1.0, 5.0] if decay is None else [decay],
    }
    criterion = PosteriorSensitivity(GridSearchCV(network, grid, cv=5), n_values=N_VALUES)
    return _eliminated(criterion, options)


@published("Yang (2011), Feature selection and model selection, sec. 2.2.2, MOI")
def moi_rfe(
    n_hidden: int = 6, decay: float = 1.0, credit: str = "shares", **options: Any
) -> RecursiveElimination:
    """Drop the column credited with least of what a network's answers tell of y, train again.

    ``credit="knockout"`` credits a column with what is lost when it is set to its mean.
    """
    network = MLPClassifier(
        (n_hidden,), activation="tanh", solver="lbfgs", alpha=decay, max_iter=1000
    )
    return RecursiveElimination(OutputInformation(network, credit=credit), **options)


def _density(noise: str, C: float | None, gamma: Any, epsilon: float | None) -> DensitySensitivity:
    if C is None and gamma is None and epsilon is None:
        machine: Any = TunedSVR()
    else:
        machine = SVR(
            C=1.0 if C is None else C,
            gamma="scale" if gamma is None else gamma,
            epsilon=0.1 if epsilon is None else epsilon,
        )
    return DensitySensitivity(machine, noise=noise, on="auto", n_values=N_VALUES)


@published(ONG)
def sd_l_rfe(
    C: float | None = None, gamma: Any = None, epsilon: float | None = None, **options: Any
) -> RecursiveElimination:
    """Drop the tenth that moves a regression's Laplace density least, train again."""
    return _eliminated(_density("laplace", C, gamma, epsilon), options)


@published(ONG)
def sd_g_rfe(
    C: float | None = None, gamma: Any = None, epsilon: float | None = None, **options: Any
) -> RecursiveElimination:
    """Drop the tenth that moves a regression's Gaussian density least, train again."""
    return _eliminated(_density("gaussian", C, gamma, epsilon), options)
