"""Sensitivity of trained models: FSPP 1 to 4, MLP-FSPP, MOI, SD-L and SD-G.

Without hyper-parameters each tunes its model once, on all columns, before anything is selected, and
lets the kernel's width follow the number of columns; a ``gamma`` that is given is used as it is.
"""

from typing import Any

from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR

from tamis import criteria, search
from tamis.contract import Selection
from tamis.recipes.book import eliminate, register

SHEN = "Shen, Ong, Li and Wilder-Smith (2008), Feature selection via sensitivity analysis of SVM"
YANG = "Yang, Shen, Ong and Li (2009), Feature selection for MLP neural network"
ONG = "Yang and Ong (2011), Feature selection using probabilistic prediction of SVR"
#: Quantiles that stand for a column: the scores of all values to three digits.
SAMPLED: dict[str, Any] = {"on": "auto", "n_values": 32}
#: As published: one shuffle of a column, on the training rows, and one column at a time.
PERMUTED: dict[str, Any] = {"by": "permutation", "on": "training", "n_values": None}
#: A parameter of a model, None to tune it.
Tuned = float | None


def _network(n_hidden: int, decay: float) -> Any:
    from tamis.response.tuners import plain_network

    return plain_network(n_hidden, decay)


def _fspp(C: Tuned, gamma: Any, **how: Any) -> Any:
    machine = SVC(C=1.0 if C is None else C, gamma=gamma)
    how = SAMPLED | how
    return criteria.PosteriorSensitivity(criteria.TunedSVC(C) if gamma is None else machine, **how)


def _rank(criterion: Any, options: dict[str, Any]) -> Selection:
    return search.Ranking(criterion, **{"by": "removal"} | options)


@register(SHEN)
def fspp1_init(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Rank by the share of rows whose predicted class changes as a column is perturbed.

    Of hundreds of columns none changes a class alone: all score 0, and a warning says that the
    lowest indices are kept. Use ``fspp2-init`` there.
    """
    return _rank(_fspp(C, gamma, output="decision"), options)


@register(SHEN)
def fspp2_init(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Rank by how far the posterior moves as a column is perturbed."""
    return _rank(_fspp(C, gamma), options)


@register(SHEN)
def fspp3_init(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Rank by how far the posterior moves as a column is set to its mean."""
    return _rank(_fspp(C, gamma, by="zero"), options)


@register(SHEN)
def fspp4_init(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Rank by the derivative of the posterior by the scale of a column, the machine kept."""
    return _rank(_fspp(C, gamma, by=criteria.Derivative(follow=False)), options)


@register(SHEN)
def fspp4_init_printed(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Rank by the derivative of the posterior, the machine following: it makes up for the scale."""
    return _rank(_fspp(C, gamma, by=criteria.Derivative(follow=True)), options)


@register(SHEN)
def fspp1_rfe(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Drop the tenth whose perturbation changes the fewest predicted classes, train again.

    Of hundreds of columns none changes a class alone: all score 0, and the highest indices leave
    first. Use ``fspp2-rfe`` there.
    """
    return eliminate(_fspp(C, gamma, output="decision"), options, 0.1)


@register(SHEN)
def fspp2_rfe(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Drop the tenth whose perturbation moves the posterior least, train again."""
    return eliminate(_fspp(C, gamma), options, 0.1)


@register(SHEN)
def fspp3_rfe(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Drop the tenth that moves the posterior least when set to its mean, train again."""
    return eliminate(_fspp(C, gamma, by="zero"), options, 0.1)


@register(SHEN)
def fspp4_rfe(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Drop the tenth with the least derivative of the posterior, the machine kept; train again."""
    return eliminate(_fspp(C, gamma, by=criteria.Derivative(follow=False)), options, 0.1)


@register(SHEN)
def fspp4_rfe_printed(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Drop the tenth with the least derivative, the machine following: it makes up for the scale.

    On easy problems it finds fewer relevant columns than chance: where a machine fits well, its
    multipliers make up for the scale of the columns that matter.
    """
    return eliminate(_fspp(C, gamma, by=criteria.Derivative(follow=True)), options, 0.1)


@register(SHEN)
def fspp1_rfe_permuted(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Drop the column whose shuffling changes the fewest predicted classes, as published."""
    return eliminate(_fspp(C, gamma, output="decision", **PERMUTED), options)


@register(SHEN)
def fspp2_rfe_permuted(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Drop the column whose shuffling moves the posterior least, as published."""
    return eliminate(_fspp(C, gamma, **PERMUTED), options)


def _mlp_fspp(n_hidden: int | str | None, decay: Tuned, **how: Any) -> Any:
    """Sensitivity of a network; its decay and hidden units are tuned unless they are given."""
    if n_hidden == "auto":
        network: Any = criteria.TunedMLP(1.0 if decay is None else decay)
    else:
        grid = {
            "hidden_layer_sizes": [6, 12] if n_hidden is None else [n_hidden],
            "alpha": [0.1, 1.0, 5.0] if decay is None else [decay],
        }
        network = GridSearchCV(_network(6, 1.0), grid, cv=5)
    return criteria.PosteriorSensitivity(network, **how)


@register(YANG)
def mlp_fspp_init(
    n_hidden: int | str | None = None, decay: Tuned = None, **options: Any
) -> Selection:
    """Rank by how far a network's posterior moves as a column is perturbed."""
    return _rank(_mlp_fspp(n_hidden, decay, n_values=32), options)


@register(YANG)
def mlp_fspp_rfe(
    n_hidden: int | str | None = None, decay: Tuned = None, **options: Any
) -> Selection:
    """Drop the tenth whose perturbation moves a network's posterior least, train again.

    ``n_hidden="auto"`` chooses among 1 to 3 units a column.
    """
    return eliminate(_mlp_fspp(n_hidden, decay, n_values=32), options, 0.1)


@register(YANG)
def mlp_fspp_rfe_permuted(
    n_hidden: int | str | None = None, decay: Tuned = None, **options: Any
) -> Selection:
    """Drop the column whose shuffling moves a network's posterior least, as published."""
    return eliminate(_mlp_fspp(n_hidden, decay, **PERMUTED), options)


@register("Setiono and Liu (1997), Neural-network feature selector")
def nnfs(n_hidden: int = 6, decay: float = 1.0, **options: Any) -> Selection:
    """Drop the column whose weights a network can do without, set to nothing; train again.

    By the likelihood of the classes, where the source counts errors, which tie.
    """
    network = _network(n_hidden, decay)
    return eliminate(criteria.ScoreSensitivity(network, scoring="neg_log_loss", by="zero"), options)


@register("Hsu, Huang and Schuschel (2002), The ANNIGMA-wrapper approach to neural nets")
def annigma(n_hidden: int = 6, decay: float = 1.0, **options: Any) -> Selection:
    """Drop the column that reaches a network's outputs by the least weights, train again.

    With ``standardize=False`` a row of weight 2 counts as two rows; columns are standardised
    without weights.
    """
    criterion = criteria.Importances(_network(n_hidden, decay), importance_getter="gains")
    return eliminate(criterion, options)


@register("Yang (2011), Feature selection and model selection, sec. 2.2.2, MOI")
def moi_rfe(
    n_hidden: int = 6, decay: float = 1.0, credit: str = "shares", **options: Any
) -> Selection:
    """Drop the column credited with least of what a network's answers tell of y, train again.

    ``credit="knockout"`` credits a column with what is lost when it is set to its mean.
    """
    criterion = criteria.OutputInformation(_network(n_hidden, decay), credit=credit)
    return eliminate(criterion, options)


def _density(noise: str, C: Tuned, gamma: Any, epsilon: Tuned, **how: Any) -> Any:
    given = {"C": C, "gamma": gamma, "epsilon": epsilon}
    given = {name: value for name, value in given.items() if value is not None}
    machine = SVR(**given) if given else criteria.TunedSVR()
    return criteria.DensitySensitivity(machine, noise=noise, **SAMPLED | how)


@register(ONG)
def sd_l_rfe(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """Drop the tenth that moves a regression's Laplace density least, train again."""
    return eliminate(_density("laplace", C, gamma, epsilon), options, 0.1)


@register(ONG)
def sd_g_rfe(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """Drop the tenth that moves a regression's Gaussian density least, train again."""
    return eliminate(_density("gaussian", C, gamma, epsilon), options, 0.1)


@register(ONG)
def sd_l_init(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """Rank by how far a regression's Laplace density moves as a column is perturbed."""
    return _rank(_density("laplace", C, gamma, epsilon), options)


@register(ONG)
def sd_g_init(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """Rank by how far a regression's Gaussian density moves as a column is perturbed."""
    return _rank(_density("gaussian", C, gamma, epsilon), options)


@register(ONG)
def sd_l_rfe_permuted(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """Drop the column whose shuffling moves the Laplace density least, as published."""
    return eliminate(_density("laplace", C, gamma, epsilon, **PERMUTED), options)


@register(ONG)
def sd_g_rfe_permuted(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """Drop the column whose shuffling moves the Gaussian density least, as published."""
    return eliminate(_density("gaussian", C, gamma, epsilon, **PERMUTED), options)
