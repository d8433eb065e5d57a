"""Sensitivity of trained models: FSPP 1 to 4, MLP-FSPP, MOI, SD-L and SD-G.

Without hyper-parameters each tunes its model once, on all columns, before anything is selected, and
lets the kernel's width follow the number of columns; a ``gamma`` that is given is used as it is.
"""

from typing import Any

from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR

from tamis.criteria import (
    DensitySensitivity,
    Derivative,
    Importances,
    OutputInformation,
    PosteriorSensitivity,
    ScoreSensitivity,
    TunedMLP,
    TunedSVC,
    TunedSVR,
)
from tamis.recipes.book import published
from tamis.response.tuners import plain_network
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


def _ranked(criterion: Any, options: dict[str, Any]) -> Ranking:
    return Ranking(criterion, **{"by": "removal"} | options)


def _eliminated(criterion: Any, options: dict[str, Any]) -> RecursiveElimination:
    return RecursiveElimination(criterion, **{"step": 0.1} | options)


@published(SHEN)
def fspp1_init(C: float | None = None, gamma: Any = None, **options: Any) -> Ranking:
    """Rank by the share of rows whose predicted class changes as a column is perturbed.

    Of hundreds of columns none changes a class alone: all score 0, and a warning says that the
    lowest indices are kept. Use ``fspp2-init`` there.
    """
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
    """Drop the tenth whose perturbation changes the fewest predicted classes, train again.

    Of hundreds of columns none changes a class alone: all score 0, and the highest indices leave
    first. Use ``fspp2-rfe`` there.
    """
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


#: As published: one shuffle of a column, on the rows that trained, and one column at a time.
PERMUTED: dict[str, Any] = {"by": "permutation", "on": "training", "n_values": None}


@published(SHEN)
def fspp1_rfe_permuted(
    C: float | None = None, gamma: Any = None, **options: Any
) -> RecursiveElimination:
    """Drop the column whose shuffling changes the fewest predicted classes, as published."""
    criterion = PosteriorSensitivity(_machine(C, gamma), output="decision", **PERMUTED)
    return RecursiveElimination(criterion, **options)


@published(SHEN)
def fspp2_rfe_permuted(
    C: float | None = None, gamma: Any = None, **options: Any
) -> RecursiveElimination:
    """Drop the column whose shuffling moves the posterior least, as published."""
    return RecursiveElimination(PosteriorSensitivity(_machine(C, gamma), **PERMUTED), **options)


def _tuned_network(n_hidden: int | str | None, decay: float | None) -> Any:
    """A network, its decay and its hidden units chosen from two each unless they are given."""
    if n_hidden == "auto":
        return TunedMLP(1.0 if decay is None else decay)
    grid = {
        "hidden_layer_sizes": [6, 12] if n_hidden is None else [n_hidden],
        "alpha": [0.1, 1.0, 5.0] if decay is None else [decay],
    }
    return GridSearchCV(plain_network(6, 1.0), grid, cv=5)


@published(YANG)
def mlp_fspp_init(
    n_hidden: int | str | None = None, decay: float | None = None, **options: Any
) -> Ranking:
    """Rank by how far a network's posterior moves as a column is perturbed."""
    criterion = PosteriorSensitivity(_tuned_network(n_hidden, decay), n_values=N_VALUES)
    return _ranked(criterion, options)


@published(YANG)
def mlp_fspp_rfe(
    n_hidden: int | str | None = None, decay: float | None = None, **options: Any
) -> RecursiveElimination:
    """Drop the tenth whose perturbation moves a network's posterior least, train again.

    ``n_hidden="auto"`` chooses among 1 to 3 units a column.
    """
    criterion = PosteriorSensitivity(_tuned_network(n_hidden, decay), n_values=N_VALUES)
    return _eliminated(criterion, options)


@published(YANG)
def mlp_fspp_rfe_permuted(
    n_hidden: int | str | None = None, decay: float | None = None, **options: Any
) -> RecursiveElimination:
    """Drop the column whose shuffling moves a network's posterior least, as published."""
    criterion = PosteriorSensitivity(_tuned_network(n_hidden, decay), **PERMUTED)
    return RecursiveElimination(criterion, **options)


@published("Setiono and Liu (1997), Neural-network feature selector")
def nnfs(n_hidden: int = 6, decay: float = 1.0, **options: Any) -> RecursiveElimination:
    """Drop the column whose weights a network can do without, set to nothing; train again.

    By the likelihood of the classes, where the source counts errors, which tie.
    """
    criterion = ScoreSensitivity(plain_network(n_hidden, decay), scoring="neg_log_loss", by="zero")
    return RecursiveElimination(criterion, **options)


@published("Hsu, Huang and Schuschel (2002), The ANNIGMA-wrapper approach to neural nets")
def annigma(n_hidden: int = 6, decay: float = 1.0, **options: Any) -> RecursiveElimination:
    """Drop the column that reaches a network's outputs by the least weights, train again.

    With ``standardize=False`` a row of weight 2 counts as two rows; columns are standardised
    without weights.
    """
    criterion = Importances(plain_network(n_hidden, decay), importance_getter="gains")
    return RecursiveElimination(criterion, **options)


@published("Yang (2011), Feature selection and model selection, sec. 2.2.2, MOI")
def moi_rfe(
    n_hidden: int = 6, decay: float = 1.0, credit: str = "shares", **options: Any
) -> RecursiveElimination:
    """Drop the column credited with least of what a network's answers tell of y, train again.

    ``credit="knockout"`` credits a column with what is lost when it is set to its mean.
    """
    criterion = OutputInformation(plain_network(n_hidden, decay), credit=credit)
    return RecursiveElimination(criterion, **options)


def _density(
    noise: str, C: float | None, gamma: Any, epsilon: float | None, **how: Any
) -> DensitySensitivity:
    if C is None and gamma is None and epsilon is None:
        machine: Any = TunedSVR()
    else:
        machine = SVR(
            C=1.0 if C is None else C,
            gamma="scale" if gamma is None else gamma,
            epsilon=0.1 if epsilon is None else epsilon,
        )
    looked_at: dict[str, Any] = {"on": "auto", "n_values": N_VALUES} | how
    return DensitySensitivity(machine, noise=noise, **looked_at)


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


@published(ONG)
def sd_l_init(
    C: float | None = None, gamma: Any = None, epsilon: float | None = None, **options: Any
) -> Ranking:
    """Rank by how far a regression's Laplace density moves as a column is perturbed."""
    return _ranked(_density("laplace", C, gamma, epsilon), options)


@published(ONG)
def sd_g_init(
    C: float | None = None, gamma: Any = None, epsilon: float | None = None, **options: Any
) -> Ranking:
    """Rank by how far a regression's Gaussian density moves as a column is perturbed."""
    return _ranked(_density("gaussian", C, gamma, epsilon), options)


@published(ONG)
def sd_l_rfe_permuted(
    C: float | None = None, gamma: Any = None, epsilon: float | None = None, **options: Any
) -> RecursiveElimination:
    """Drop the column whose shuffling moves the Laplace density least, as published."""
    return RecursiveElimination(_density("laplace", C, gamma, epsilon, **PERMUTED), **options)


@published(ONG)
def sd_g_rfe_permuted(
    C: float | None = None, gamma: Any = None, epsilon: float | None = None, **options: Any
) -> RecursiveElimination:
    """Drop the column whose shuffling moves the Gaussian density least, as published."""
    return RecursiveElimination(_density("gaussian", C, gamma, epsilon, **PERMUTED), **options)
