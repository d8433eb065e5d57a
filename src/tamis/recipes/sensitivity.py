"""Recipes based on the sensitivity of trained models: FSPP 1 to 4, MLP-FSPP, MOI, SD-L and SD-G.

By default, each recipe tunes its model once before the search, on all columns. The kernel width
adapts to the number of columns during the search. A given ``gamma`` stays fixed.
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
#: Replace each column's values by its 32 quantiles. Scores agree with those for all values of the
#: column to three digits.
SAMPLED: dict[str, Any] = {"on": "auto", "n_values": 32}
#: The published form: each column is shuffled once, on the training rows.
PERMUTED: dict[str, Any] = {"by": "permutation", "on": "training", "n_values": None}
#: A parameter of a model. None means that it is tuned.
Tuned = float | None


def _network(n_hidden: int, decay: float) -> Any:
    from tamis.response.tuners import plain_network

    return plain_network(n_hidden, decay)


def _fspp(C: Tuned, gamma: Any, **how: Any) -> Any:
    svc = criteria.TunedSVC(C) if gamma is None else SVC(C=1.0 if C is None else C, gamma=gamma)
    return criteria.PosteriorSensitivity(svc, **SAMPLED | how)


def _rank(criterion: Any, options: dict[str, Any]) -> Selection:
    return search.Ranking(criterion, **{"by": "removal"} | options)


@register(SHEN)
def fspp1_init(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Rank by the share of rows whose predicted class changes when a column is perturbed.

    With hundreds of columns, no single column changes a predicted class. All scores are 0 in that
    case, the columns with the lowest indices are selected, and a warning is issued. Use
    ``fspp2-init`` instead.
    """
    return _rank(_fspp(C, gamma, output="decision"), options)


@register(SHEN)
def fspp2_init(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Rank by the change of the posterior when a column is perturbed."""
    return _rank(_fspp(C, gamma), options)


@register(SHEN)
def fspp3_init(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Rank by the change of the posterior when a column is set to its mean."""
    return _rank(_fspp(C, gamma, by="zero"), options)


@register(SHEN)
def fspp4_init(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Rank by the derivative of a trained SVM's posterior with respect to a column's scale."""
    return _rank(_fspp(C, gamma, by=criteria.Derivative(follow=False)), options)


@register(SHEN)
def fspp4_init_printed(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """As fspp4-init, with the derivative of a retrained SVM, as published."""
    return _rank(_fspp(C, gamma, by=criteria.Derivative(follow=True)), options)


@register(SHEN)
def fspp1_rfe(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Repeatedly drop the 10 % of columns whose perturbation changes the fewest predicted classes.

    With hundreds of columns, no single column changes a predicted class. All scores are 0 in that
    case, and the columns with the highest indices are dropped first. Use ``fspp2-rfe`` instead.
    """
    return eliminate(_fspp(C, gamma, output="decision"), options, 0.1)


@register(SHEN)
def fspp2_rfe(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Repeatedly drop the 10 % of columns whose perturbation changes the posterior least."""
    return eliminate(_fspp(C, gamma), options, 0.1)


@register(SHEN)
def fspp3_rfe(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Repeatedly drop the 10 % of columns that change the posterior least when set to the mean."""
    return eliminate(_fspp(C, gamma, by="zero"), options, 0.1)


@register(SHEN)
def fspp4_rfe(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """Repeatedly drop the 10 % of columns with the smallest derivative of an SVM's posterior."""
    return eliminate(_fspp(C, gamma, by=criteria.Derivative(follow=False)), options, 0.1)


@register(SHEN)
def fspp4_rfe_printed(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """As fspp4-rfe, with the derivative of a retrained SVM, as published.

    On easy problems it finds fewer relevant columns than chance, because the multipliers of a
    well-fitted SVM compensate for the scale of relevant columns.
    """
    return eliminate(_fspp(C, gamma, by=criteria.Derivative(follow=True)), options, 0.1)


@register(SHEN)
def fspp1_rfe_permuted(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """As published: repeatedly drop the column whose shuffling changes the fewest classes."""
    return eliminate(_fspp(C, gamma, output="decision", **PERMUTED), options)


@register(SHEN)
def fspp2_rfe_permuted(C: Tuned = None, gamma: Any = None, **options: Any) -> Selection:
    """As published: repeatedly drop the column whose shuffling changes the posterior least."""
    return eliminate(_fspp(C, gamma, **PERMUTED), options)


def _mlp_fspp(n_hidden: int | str | None, decay: Tuned, **how: Any) -> Any:
    """Return the sensitivity criterion of a network.

    ``n_hidden`` and ``decay`` are tuned if they are None. With ``n_hidden="auto"``, the number of
    hidden units is tuned and the default ``decay`` is 1.
    """
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
    """Rank by the change of a network's posterior when a column is perturbed."""
    return _rank(_mlp_fspp(n_hidden, decay, n_values=32), options)


@register(YANG)
def mlp_fspp_rfe(
    n_hidden: int | str | None = None, decay: Tuned = None, **options: Any
) -> Selection:
    """Repeatedly drop the 10 % of columns whose perturbation changes a network's posterior least.

    ``n_hidden="auto"`` tunes the number of hidden units between 1 and 3 per column.
    """
    return eliminate(_mlp_fspp(n_hidden, decay, n_values=32), options, 0.1)


@register(YANG)
def mlp_fspp_rfe_permuted(
    n_hidden: int | str | None = None, decay: Tuned = None, **options: Any
) -> Selection:
    """As published: repeatedly drop the column whose shuffling changes an MLP's posterior least."""
    return eliminate(_mlp_fspp(n_hidden, decay, **PERMUTED), options)


@register("Setiono and Liu (1997), Neural-network feature selector")
def nnfs(n_hidden: int = 6, decay: float = 1.0, **options: Any) -> Selection:
    """Repeatedly drop the column whose zeroed weights lower a network's score least.

    The score is the likelihood of the classes. The publication uses the number of errors instead,
    which often makes columns tie.
    """
    network = _network(n_hidden, decay)
    return eliminate(criteria.ScoreSensitivity(network, scoring="neg_log_loss", by="zero"), options)


@register("Hsu, Huang and Schuschel (2002), The ANNIGMA-wrapper approach to neural nets")
def annigma(n_hidden: int = 6, decay: float = 1.0, **options: Any) -> Selection:
    """Repeatedly drop the column with the smallest weights from input to output of a network.

    A row of weight 2 is equivalent to two rows only with ``standardize=False``, because
    standardisation ignores weights.
    """
    criterion = criteria.Importances(_network(n_hidden, decay), importance_getter="gains")
    return eliminate(criterion, options)


@register("Yang (2011), Feature selection and model selection, sec. 2.2.2, MOI")
def moi_rfe(
    n_hidden: int = 6, decay: float = 1.0, credit: str = "shares", **options: Any
) -> Selection:
    """Repeatedly drop the column with the smallest share of a network's output information.

    Output information is the mutual information between output and target. With
    ``credit="knockout"``, a column is credited with the information that is lost when it is set to
    its mean.
    """
    criterion = criteria.OutputInformation(_network(n_hidden, decay), credit=credit)
    return eliminate(criterion, options)


def _density(noise: str, C: Tuned, gamma: Any, epsilon: Tuned, **how: Any) -> Any:
    given = {"C": C, "gamma": gamma, "epsilon": epsilon}
    given = {name: value for name, value in given.items() if value is not None}
    svr = SVR(**given) if given else criteria.TunedSVR()
    return criteria.DensitySensitivity(svr, noise=noise, **SAMPLED | how)


@register(ONG)
def sd_l_rfe(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """Repeatedly drop the 10 % of columns that affect an SVR least (Laplace noise)."""
    return eliminate(_density("laplace", C, gamma, epsilon), options, 0.1)


@register(ONG)
def sd_g_rfe(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """Repeatedly drop the 10 % of columns that affect an SVR least (Gaussian noise)."""
    return eliminate(_density("gaussian", C, gamma, epsilon), options, 0.1)


@register(ONG)
def sd_l_init(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """Rank by the change of an SVR's predictions when a column is perturbed (Laplace noise)."""
    return _rank(_density("laplace", C, gamma, epsilon), options)


@register(ONG)
def sd_g_init(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """Rank by the change of an SVR's predictions when a column is perturbed (Gaussian noise)."""
    return _rank(_density("gaussian", C, gamma, epsilon), options)


@register(ONG)
def sd_l_rfe_permuted(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """As published: drop the column whose shuffling affects an SVR least (Laplace noise)."""
    return eliminate(_density("laplace", C, gamma, epsilon, **PERMUTED), options)


@register(ONG)
def sd_g_rfe_permuted(
    C: Tuned = None, gamma: Any = None, epsilon: Tuned = None, **options: Any
) -> Selection:
    """As published: drop the column whose shuffling affects an SVR least (Gaussian noise)."""
    return eliminate(_density("gaussian", C, gamma, epsilon, **PERMUTED), options)
