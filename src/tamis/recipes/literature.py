"""The methods themselves: what is special about each is visible in its one line.

Those built on covariance matrices carry a small ridge, so that constant columns, copies and more
columns than rows do no harm.
"""

from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, SVR

from tamis.criteria import (
    ColumnSubset,
    Correlation,
    CrossValidated,
    DiscriminantRatio,
    Divergence,
    FisherScore,
    Importances,
    KolmogorovSmirnov,
    MutualInformation,
    PValue,
    RadiusMargin,
    RelativeSVR,
    Relief,
    Remembered,
    Scatter,
    Span,
    WeightNorm,
)
from tamis.recipes.book import published
from tamis.search import (
    Backward,
    Bidirectional,
    BranchAndBound,
    FalseDiscovery,
    FloatingBackward,
    FloatingForward,
    Forward,
    Genetic,
    PlusLMinusR,
    Ranking,
    RecursiveElimination,
    Then,
)


@published("Duda, Hart and Stork (2001), Pattern Classification, sec. 3.8")
def fisher_score(**options: Any) -> Ranking:
    """Rank by the variance between classes over the variance within."""
    return Ranking(FisherScore(), **options)


@published("Theodoridis and Koutroumbas (2009), Pattern Recognition, sec. 5.6")
def discriminant_ratio(**options: Any) -> Ranking:
    """Rank by Fisher's discriminant ratio, summed over the pairs of classes."""
    return Ranking(DiscriminantRatio(), **options)


@published("Guyon and Elisseeff (2003), An introduction to variable and feature selection")
def correlation(**options: Any) -> Ranking:
    """Rank by the absolute correlation with the target (for classes the correlation ratio)."""
    return Ranking(Correlation(), **options)


@published("Biesiada and Duch (2005), Feature selection for high-dimensional data")
def kolmogorov_smirnov(**options: Any) -> Ranking:
    """Rank by the largest distance between the distributions of the classes."""
    return Ranking(KolmogorovSmirnov(), **options)


@published("Battiti (1994), Using mutual information for selecting features")
def mutual_information(n_bins: int | None = None, **options: Any) -> Ranking:
    """Rank by the mutual information with the target."""
    return Ranking(MutualInformation(n_bins=n_bins), **options)


@published("Kononenko (1994), Estimating attributes: analysis and extensions of RELIEF")
def relieff(n_neighbors: int = 100, **options: Any) -> Ranking:
    """Rank by how much more a column differs among near rows of other classes than of the same."""
    return Ranking(Relief("relieff", n_neighbors=n_neighbors), **options)


@published("Greene, Penrod, Kiralis and Moore (2009), Spatially uniform ReliefF (SURF)")
def surf(**options: Any) -> Ranking:
    """As relieff, with the neighbours that are nearer than the mean of all distances."""
    return Ranking(Relief("surf"), **options)


@published("Urbanowicz, Olson, Schmitt, Meeker and Moore (2018), Relief-based feature selection")
def multisurf(**options: Any) -> Ranking:
    """As relieff, with the neighbours that are much nearer than the others of a row."""
    return Ranking(Relief("multisurf"), **options)


@published("Benjamini and Hochberg (1995), Controlling the false discovery rate")
def t_test_fdr(q: float = 0.05, **options: Any) -> Then:
    """Discard what a t-test (F-test) does not find at false discovery rate q, rank the rest.

    ``n_features_to_select`` counts among those that pass; 1.0 keeps them all.
    """
    passing = Ranking(PValue(), n_features_to_select=FalseDiscovery(q))
    return Then(passing, Ranking(PValue(), **options))


@published("Whitney (1971), A direct method of nonparametric measurement selection")
def sfs_j3(ridge: float = 1e-3, **options: Any) -> Forward:
    """Sequential forward selection by the scatter measure J3."""
    return Forward(Scatter("J3", ridge=ridge), **options)


@published("Marill and Green (1963), On the effectiveness of receptors in recognition systems")
def sbs_j3(ridge: float = 1e-3, **options: Any) -> Backward:
    """Sequential backward selection by the scatter measure J3."""
    return Backward(Scatter("J3", ridge=ridge), **options)


@published("Pudil, Novovicova and Kittler (1994), Floating search methods in feature selection")
def sffs_j3(ridge: float = 1e-3, **options: Any) -> FloatingForward:
    """Floating forward selection by the scatter measure J3."""
    return FloatingForward(Scatter("J3", ridge=ridge), **options)


@published("Pudil, Novovicova and Kittler (1994), Floating search methods in feature selection")
def sfbs_j3(ridge: float = 1e-3, **options: Any) -> FloatingBackward:
    """Floating backward selection by the scatter measure J3."""
    return FloatingBackward(Scatter("J3", ridge=ridge), **options)


@published("Stearns (1976), On selecting features for pattern classifiers")
def plus_l_minus_r_j3(ridge: float = 1e-3, **options: Any) -> PlusLMinusR:
    """Add l features, take away r, and again, by the scatter measure J3."""
    return PlusLMinusR(Scatter("J3", ridge=ridge), **options)


@published("Liu and Motoda (1998), Feature Selection for Knowledge Discovery and Data Mining")
def bidirectional_j3(ridge: float = 1e-3, **options: Any) -> Bidirectional:
    """Forward and backward selection towards each other, by the scatter measure J3."""
    return Bidirectional(Scatter("J3", ridge=ridge), **options)


@published("Narendra and Fukunaga (1977), A branch and bound algorithm for feature selection")
def branch_and_bound_j3(ridge: float = 1e-3, **options: Any) -> BranchAndBound:
    """The best subset by the scatter measure J3, or the best after 20 000 scores or 10 seconds."""
    budget = {"max_evaluations": 20_000, "max_seconds": 10.0}
    return BranchAndBound(Scatter("J3", ridge=ridge), **budget | options)


@published("Theodoridis and Koutroumbas (2009), Pattern Recognition, sec. 5.6 and 5.7")
def divergence_sffs(ridge: float | str = "auto", **options: Any) -> FloatingForward:
    """Floating forward selection by the divergence of Gaussian classes."""
    return FloatingForward(Divergence(ridge=ridge), **options)


@published("Farahat, Elgohary, Ghodsi and Kamel (2015), Greedy column subset selection")
def column_subset(**options: Any) -> Forward:
    """Add the column that helps most to rebuild all others by least squares; needs no target."""
    return Forward(ColumnSubset(), **options)


@published("Guyon, Weston, Barnhill and Vapnik (2002), Gene selection for cancer classification")
def svm_rfe(
    C: float = 1.0, kernel: str = "linear", gamma: float | str = "scale", **options: Any
) -> RecursiveElimination:
    """Drop the column that moves the norm of a support vector machine least, train again.

    With a linear kernel that norm's share of a column is its squared weight. ``gamma="scale"`` on
    standardised columns is 1 / (their number): the kernel keeps its width as columns leave.
    """
    return RecursiveElimination(WeightNorm(SVC(C=C, kernel=kernel, gamma=gamma)), **options)


@published("Rakotomamonjy (2007), Analysis of SVM regression bounds for variable ranking")
def svr_rfe(
    C: float = 1.0,
    kernel: str = "linear",
    gamma: float | str = "scale",
    epsilon: float = 0.1,
    **options: Any,
) -> RecursiveElimination:
    """Drop the column that moves the norm of a support vector regression least, train again.

    C and epsilon are in the units of the target, so that another unit may give another order:
    standardise the target first.
    """
    machine = SVR(C=C, kernel=kernel, gamma=gamma, epsilon=epsilon)
    return RecursiveElimination(WeightNorm(machine), **options)


def _machine(estimator: Any) -> Any:
    return SVC() if estimator is None else estimator


@published("Rakotomamonjy (2003), Variable selection using SVM-based criteria")
def grad_w2_rfe(estimator: Any = None, **options: Any) -> RecursiveElimination:
    """Drop the column whose scale moves the norm of a kernel machine least, train again.

    The estimator is an ``SVC()`` unless another, or an ``SVR``, is given.
    """
    return RecursiveElimination(WeightNorm(_machine(estimator), order=1), **options)


@published("Rakotomamonjy (2003); Chung et al. (2003), Radius margin bounds")
def rmb_rfe(estimator: Any = None, **options: Any) -> RecursiveElimination:
    """Drop the column without which the radius-margin bound is least, its machine kept.

    The bound is that of a soft margin, which counts slacks: see :class:`RadiusMargin` for what it
    finds and the printed one does not. The estimator is an ``SVC()`` unless another, or an
    ``SVR``, is given. A row of weight 2 counts as two rows with ``standardize=False`` and a number
    for the estimator's ``gamma``: mean, deviation and ``gamma="scale"`` are found without weights.
    """
    return RecursiveElimination(RadiusMargin(_machine(estimator), soft_margin=True), **options)


@published("Rakotomamonjy (2003); Chung et al. (2003), Radius margin bounds")
def rmb_rfe_retrain(estimator: Any = None, **options: Any) -> RecursiveElimination:
    """Drop the column without which the radius-margin bound of a new machine is least."""
    criterion = RadiusMargin(_machine(estimator), retrain=True, soft_margin=True)
    return RecursiveElimination(criterion, **options)


@published("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, RMB-RFE")
def rmb_rfe_printed(estimator: Any = None, **options: Any) -> RecursiveElimination:
    """Drop by the radius-margin bound as printed, without slacks: to reproduce published figures.

    It puts relevant columns last where classes overlap; ``rmb-rfe`` does not. The tables of Yang
    (2011), ch. 4, use this form.
    """
    return RecursiveElimination(RadiusMargin(_machine(estimator)), **options)


@published("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, RMB-RFE*")
def rmb_rfe_retrain_printed(estimator: Any = None, **options: Any) -> RecursiveElimination:
    """Drop by the radius-margin bound of a new machine as printed: to reproduce published figures.

    It finds relevant columns of regressions, of classes only some; ``rmb-rfe-retrain`` finds both.
    """
    return RecursiveElimination(RadiusMargin(_machine(estimator), retrain=True), **options)


@published("Rakotomamonjy (2007), Analysis of SVM regression bounds for variable ranking")
def rmb_regression_rfe(
    C: float = 1.0, epsilon: float = 0.1, **options: Any
) -> RecursiveElimination:
    """Drop the tenth without which the radius-margin bound of a new regression is least.

    C and epsilon are counted in standard deviations of the target.
    """
    criterion = RadiusMargin(RelativeSVR(C, tube=epsilon), retrain=True)
    return RecursiveElimination(criterion, **{"step": 0.1} | options)


@published("Rakotomamonjy (2007), Analysis of SVM regression bounds for variable ranking")
def span_regression_rfe(
    C: float = 1.0, epsilon: float = 0.1, **options: Any
) -> RecursiveElimination:
    """Drop the tenth without which the span estimate of a new regression is least.

    C and epsilon are counted in standard deviations of the target.
    """
    criterion = Span(RelativeSVR(C, tube=epsilon), retrain=True)
    return RecursiveElimination(criterion, **{"step": 0.1} | options)


@published("Rakotomamonjy (2003); Chapelle, Vapnik, Bousquet and Mukherjee (2002)")
def span_rfe(estimator: Any = None, **options: Any) -> RecursiveElimination:
    """Drop the column without which the span estimate of the loss is least, its machine kept.

    Slacks are counted: see :class:`Span` for what that finds and the printed bound does not. The
    estimator is an ``SVC()`` unless another is given; with an ``SVR`` use ``span-rfe-retrain``.
    """
    return RecursiveElimination(Span(_machine(estimator), soft_margin=True), **options)


@published("Rakotomamonjy (2003); Chapelle, Vapnik, Bousquet and Mukherjee (2002)")
def span_rfe_retrain(estimator: Any = None, **options: Any) -> RecursiveElimination:
    """Drop the column without which the span estimate of the loss of a new machine is least."""
    criterion = Span(_machine(estimator), retrain=True, soft_margin=True)
    return RecursiveElimination(criterion, **options)


@published("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, SpanB-RFE")
def span_rfe_printed(estimator: Any = None, **options: Any) -> RecursiveElimination:
    """Drop by the span bound as printed, without slacks: to reproduce published figures.

    On held-out sets it is behind columns drawn at random; ``span-rfe`` is not. The tables of Yang
    (2011), ch. 4, use this form.
    """
    return RecursiveElimination(Span(_machine(estimator)), **options)


@published("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, SpanB-RFE*")
def span_rfe_retrain_printed(estimator: Any = None, **options: Any) -> RecursiveElimination:
    """Drop by the span bound of a new machine as printed: to reproduce published figures."""
    return RecursiveElimination(Span(_machine(estimator), retrain=True), **options)


@published("Li and Yang (2005), Analysis of recursive gene selection approaches")
def ridge_rfe(alpha: float = 1.0, **options: Any) -> RecursiveElimination:
    """Drop the tenth of least weight in a ridge classifier, train again."""
    return RecursiveElimination(
        Importances(RidgeClassifier(alpha=alpha)), **{"step": 0.1} | options
    )


@published("Li and Yang (2005), Analysis of recursive gene selection approaches")
def ridge_regression_rfe(alpha: float = 1.0, **options: Any) -> RecursiveElimination:
    """Drop the tenth of least weight in a ridge regression, train again."""
    return RecursiveElimination(Importances(Ridge(alpha=alpha)), **{"step": 0.1} | options)


@published("Diaz-Uriarte and Alvarez de Andres (2006), Gene selection using random forest")
def random_forest_rfe(n_estimators: int = 100, **options: Any) -> RecursiveElimination:
    """Drop the fifth of least importance in a random forest, train again."""
    forest = RandomForestClassifier(n_estimators=n_estimators)
    return RecursiveElimination(Importances(forest), **{"step": 0.2} | options)


@published("Kohavi and John (1997), Wrappers for feature subset selection")
def sfs_lda(cv: int = 5, **options: Any) -> Forward:
    """Forward selection by the cross-validated accuracy of linear discriminant analysis."""
    return Forward(CrossValidated(LinearDiscriminantAnalysis(), cv=cv), **options)


@published("Kohavi and John (1997), Wrappers for feature subset selection")
def sfs_knn(n_neighbors: int = 5, cv: int = 5, **options: Any) -> Forward:
    """Forward selection by the cross-validated accuracy of the nearest neighbours."""
    return Forward(CrossValidated(KNeighborsClassifier(n_neighbors=n_neighbors), cv=cv), **options)


@published("Jain and Zongker (1997), Feature selection: evaluation, application and performance")
def sffs_knn(n_neighbors: int = 5, cv: int = 5, **options: Any) -> FloatingForward:
    """Floating forward selection by the cross-validated accuracy of the nearest neighbours."""
    neighbours = KNeighborsClassifier(n_neighbors=n_neighbors)
    return FloatingForward(CrossValidated(neighbours, cv=cv), **options)


@published("Efroymson (1960), Multiple regression analysis")
def sfs_linear_regression(cv: int = 5, **options: Any) -> Forward:
    """Forward selection by the cross-validated share of variance that least squares explains."""
    return Forward(CrossValidated(LinearRegression(), cv=cv), **options)


@published("Siedlecki and Sklansky (1989); Sun, Bebis, Yuan and Louis (2002)")
def ga_knn(n_neighbors: int = 5, cv: int = 5, **options: Any) -> Genetic:
    """Breed subsets by the cross-validated accuracy of the nearest neighbours."""
    neighbours = KNeighborsClassifier(n_neighbors=n_neighbors)
    defaults = {"population_size": 30, "n_generations": 20}
    return Genetic(Remembered(CrossValidated(neighbours, cv=cv)), **defaults | options)
