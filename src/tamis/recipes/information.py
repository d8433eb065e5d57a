"""Methods by information and dependence: what is special about each is visible in its one line."""

from typing import Any

from tamis.choice import BestPrefix
from tamis.criteria import (
    CIFE,
    CMIM,
    DISR,
    HSIC,
    JMI,
    MIFS,
    MIFSU,
    MRMR,
    NMIFS,
    KwakInformation,
    PairInformation,
    ParzenInformation,
    ReducedParzenInformation,
)
from tamis.recipes.book import published
from tamis.search import Forward, Ranking, RecursiveElimination


@published("Battiti (1994), Using mutual information for selecting features")
def mifs(beta: float = 0.5, n_bins: int | None = None, **options: Any) -> Forward:
    """Add the column that tells most, less beta times what it shares with each one chosen."""
    return Forward(MIFS(beta=beta, n_bins=n_bins), **options)


@published("Kwak and Choi (2002), Input feature selection for classification problems")
def mifs_u(beta: float = 1.0, n_bins: int | None = None, **options: Any) -> Forward:
    """As mifs, counting of what columns share only the part that tells of the target."""
    return Forward(MIFSU(beta=beta, n_bins=n_bins), **options)


@published("Peng, Long and Ding (2005), Feature selection based on mutual information")
def mrmr(n_bins: int | None = None, **options: Any) -> Forward:
    """Greatest relevance, least redundancy: what a column tells less what it shares on average."""
    return Forward(MRMR(n_bins=n_bins), **options)


@published("Peng, Long and Ding (2005), Feature selection by mutual information, second stage")
def mrmr_two_stage(
    estimator: Any = None, cv: int = 5, n_bins: int | None = None, **options: Any
) -> Forward:
    """As mrmr, keeping the first columns with which cross-validation errs least.

    The estimator is a ridge classifier or regression unless another is given.
    """
    defaults = {"n_features_to_select": BestPrefix(estimator, cv=cv)}
    return Forward(MRMR(n_bins=n_bins), **defaults | options)


@published("Estevez, Tesmer, Perez and Zurada (2009), Normalized mutual information selection")
def nmifs(n_bins: int | None = None, **options: Any) -> Forward:
    """As mrmr, with what columns share in units of the smaller entropy."""
    return Forward(NMIFS(n_bins=n_bins), **options)


@published("Fleuret (2004), Fast binary feature selection with conditional mutual information")
def cmim(n_bins: int | None = None, **options: Any) -> Forward:
    """Add the column that tells most beyond any single one chosen."""
    return Forward(CMIM(n_bins=n_bins), **options)


@published("Lin and Tang (2006), Conditional infomax learning")
def cife(n_bins: int | None = None, **options: Any) -> Forward:
    """As mifs, less what columns share in full, and more what they share within the classes."""
    return Forward(CIFE(n_bins=n_bins), **options)


@published("Yang and Moody (1999), Data visualization and feature selection")
def jmi(n_bins: int | None = None, **options: Any) -> Forward:
    """Add the column that tells most together with each one chosen."""
    return Forward(JMI(n_bins=n_bins), **options)


@published("Brown, Pocock, Zhao and Lujan (2012), Conditional likelihood maximisation")
def pair_scan(
    n_bins: int | None = 4, top: int = 1, n_permutations: int = 0, **options: Any
) -> Ranking:
    """Rank columns by the most that each tells beside any one other: finds those of pairs."""
    criterion = PairInformation(n_bins=n_bins, top=top, n_permutations=n_permutations)
    return Ranking(criterion, **options)


@published("Meyer, Schretter and Bontempi (2008), Information-theoretic feature selection")
def disr(n_bins: int | None = None, **options: Any) -> Forward:
    """As jmi, in units of the joint entropy."""
    return Forward(DISR(n_bins=n_bins), **options)


@published("Yang and Ong (2012), Feature selection via mutual information estimation")
def mi_pw(sigma: float | str = "likelihood", **options: Any) -> RecursiveElimination:
    """Drop the column whose loss costs the joint information least, by Parzen windows."""
    return RecursiveElimination(ParzenInformation(sigma=sigma), **options)


@published("Yang and Ong (2012), Feature selection via mutual information estimation")
def mi_rsde(
    by: str = "permutation", sigma: float | str = "likelihood", **options: Any
) -> RecursiveElimination:
    """Drop the tenth whose shuffling costs the information least, by reduced-set densities."""
    criterion = ReducedParzenInformation(by=by, sigma=sigma)
    return RecursiveElimination(criterion, **{"step": 0.1} | options)


@published("Kwak and Choi (2002), Input feature selection based on Parzen window")
def kwak(sigma: float | str = "likelihood", **options: Any) -> Forward:
    """Add the column with which Parzen windows are surest of the class."""
    return Forward(KwakInformation(sigma=sigma), **options)


@published("Song, Smola, Gretton, Bedo and Borgwardt (2012), Dependence maximization")
def hsic_rfe(gamma: float | str = "dimension", **options: Any) -> RecursiveElimination:
    """Drop the tenth whose loss lowers the dependence least, by the Hilbert-Schmidt criterion."""
    return RecursiveElimination(HSIC(gamma=gamma), **{"step": 0.1} | options)


@published("Song, Smola, Gretton, Bedo and Borgwardt (2012), Dependence maximization")
def hsic_forward(gamma: float | str = "dimension", **options: Any) -> Forward:
    """Add the column that raises the dependence most, by the Hilbert-Schmidt criterion."""
    return Forward(HSIC(gamma=gamma), **options)
