"""Methods by mutual information and by dependence."""

from typing import Any

from tamis import choice, criteria, search
from tamis.contract import Selection
from tamis.recipes.book import eliminate, register


@register("Battiti (1994), Using mutual information for selecting features")
def mifs(beta: float = 0.5, n_bins: int | None = None, **options: Any) -> Selection:
    """Add the column that tells most, less beta times what it shares with each one chosen."""
    return search.Forward(criteria.MIFS(beta=beta, n_bins=n_bins), **options)


@register("Kwak and Choi (2002), Input feature selection for classification problems")
def mifs_u(beta: float = 1.0, n_bins: int | None = None, **options: Any) -> Selection:
    """As mifs, counting of what columns share only the part that tells of the target."""
    return search.Forward(criteria.MIFSU(beta=beta, n_bins=n_bins), **options)


@register("Peng, Long and Ding (2005), Feature selection based on mutual information")
def mrmr(n_bins: int | None = None, **options: Any) -> Selection:
    """Greatest relevance, least redundancy: what a column tells less what it shares on average."""
    return search.Forward(criteria.MRMR(n_bins=n_bins), **options)


@register("Peng, Long and Ding (2005), Feature selection by mutual information, second stage")
def mrmr_two_stage(
    estimator: Any = None, cv: int = 5, n_bins: int | None = None, **options: Any
) -> Selection:
    """As mrmr, keeping the first columns with which cross-validation errs least.

    The estimator is a ridge classifier or regression unless another is given.
    """
    defaults = {"n_features_to_select": choice.BestPrefix(estimator, cv=cv)}
    return search.Forward(criteria.MRMR(n_bins=n_bins), **defaults | options)


@register("Estevez, Tesmer, Perez and Zurada (2009), Normalized mutual information selection")
def nmifs(n_bins: int | None = None, **options: Any) -> Selection:
    """As mrmr, with what columns share in units of the smaller entropy."""
    return search.Forward(criteria.NMIFS(n_bins=n_bins), **options)


@register("Fleuret (2004), Fast binary feature selection with conditional mutual information")
def cmim(n_bins: int | None = None, **options: Any) -> Selection:
    """Add the column that tells most beyond any single one chosen."""
    return search.Forward(criteria.CMIM(n_bins=n_bins), **options)


@register("Lin and Tang (2006), Conditional infomax learning")
def cife(n_bins: int | None = None, **options: Any) -> Selection:
    """As mifs, less what columns share in full, and more what they share within the classes."""
    return search.Forward(criteria.CIFE(n_bins=n_bins), **options)


@register("Yang and Moody (1999), Data visualization and feature selection")
def jmi(n_bins: int | None = None, **options: Any) -> Selection:
    """Add the column that tells most together with each one chosen."""
    return search.Forward(criteria.JMI(n_bins=n_bins), **options)


@register("Brown, Pocock, Zhao and Lujan (2012), Conditional likelihood maximisation")
def pair_scan(
    n_bins: int | None = 4, top: int = 1, n_permutations: int = 0, **options: Any
) -> Selection:
    """Rank columns by the most that each tells beside any one other: finds those of pairs."""
    criterion = criteria.PairInformation(n_bins=n_bins, top=top, n_permutations=n_permutations)
    return search.Ranking(criterion, **options)


@register("Meyer, Schretter and Bontempi (2008), Information-theoretic feature selection")
def disr(n_bins: int | None = None, **options: Any) -> Selection:
    """As jmi, in units of the joint entropy."""
    return search.Forward(criteria.DISR(n_bins=n_bins), **options)


@register("Yang and Ong (2012), Feature selection via mutual information estimation")
def mi_pw(sigma: float | str = "likelihood", **options: Any) -> Selection:
    """Drop the column whose loss costs the joint information least, by Parzen windows."""
    return eliminate(criteria.ParzenInformation(sigma=sigma), options)


@register("Yang and Ong (2012), Feature selection via mutual information estimation")
def mi_rsde(
    by: str = "permutation", sigma: float | str = "likelihood", **options: Any
) -> Selection:
    """Drop the tenth whose shuffling costs the information least, by reduced-set densities."""
    return eliminate(criteria.ReducedParzenInformation(by=by, sigma=sigma), options, 0.1)


@register("Kwak and Choi (2002), Input feature selection based on Parzen window")
def kwak(sigma: float | str = "likelihood", **options: Any) -> Selection:
    """Add the column with which Parzen windows are surest of the class."""
    return search.Forward(criteria.KwakInformation(sigma=sigma), **options)


@register("Song, Smola, Gretton, Bedo and Borgwardt (2012), Dependence maximization")
def hsic_rfe(gamma: float | str = "dimension", **options: Any) -> Selection:
    """Drop the tenth whose loss lowers the dependence least, by the Hilbert-Schmidt criterion."""
    return eliminate(criteria.HSIC(gamma=gamma), options, 0.1)


@register("Song, Smola, Gretton, Bedo and Borgwardt (2012), Dependence maximization")
def hsic_forward(gamma: float | str = "dimension", **options: Any) -> Selection:
    """Add the column that raises the dependence most, by the Hilbert-Schmidt criterion."""
    return search.Forward(criteria.HSIC(gamma=gamma), **options)
