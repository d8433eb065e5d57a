"""Filters, searches by scatter matrices, elimination by SVMs, and wrappers.

Methods built on covariance matrices have a small ridge, so that constant columns, duplicates and
more columns than rows do no harm.
"""

from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, SVR

from tamis import criteria, search
from tamis.contract import Selection
from tamis.recipes.book import eliminate, register


@register("Duda, Hart and Stork (2001), Pattern Classification, sec. 3.8")
def fisher_score(**options: Any) -> Selection:
    """Rank by the variance between classes over the variance within."""
    return search.Ranking(criteria.FisherScore(), **options)


@register("Theodoridis and Koutroumbas (2009), Pattern Recognition, sec. 5.6")
def discriminant_ratio(**options: Any) -> Selection:
    """Rank by Fisher's discriminant ratio, summed over the pairs of classes."""
    return search.Ranking(criteria.DiscriminantRatio(), **options)


@register("Guyon and Elisseeff (2003), An introduction to variable and feature selection")
def correlation(**options: Any) -> Selection:
    """Rank by the absolute correlation with the target (for classes the correlation ratio)."""
    return search.Ranking(criteria.Correlation(), **options)


@register("Biesiada and Duch (2005), Feature selection for high-dimensional data")
def kolmogorov_smirnov(**options: Any) -> Selection:
    """Rank by the largest distance between the distributions of the classes."""
    return search.Ranking(criteria.KolmogorovSmirnov(), **options)


@register("Battiti (1994), Using mutual information for selecting features")
def mutual_information(n_bins: int | None = None, **options: Any) -> Selection:
    """Rank by the mutual information with the target."""
    return search.Ranking(criteria.MutualInformation(n_bins=n_bins), **options)


@register("Kononenko (1994), Estimating attributes: analysis and extensions of RELIEF")
def relieff(n_neighbors: int = 100, **options: Any) -> Selection:
    """Rank by how much more a column differs among near rows of other classes than of the same."""
    return search.Ranking(criteria.Relief("relieff", n_neighbors=n_neighbors), **options)


@register("Greene, Penrod, Kiralis and Moore (2009), Spatially uniform ReliefF (SURF)")
def surf(**options: Any) -> Selection:
    """As relieff, with the neighbours that are nearer than the mean of all distances."""
    return search.Ranking(criteria.Relief("surf"), **options)


@register("Urbanowicz, Olson, Schmitt, Meeker and Moore (2018), Relief-based feature selection")
def multisurf(**options: Any) -> Selection:
    """As relieff, with the neighbours that are much nearer than the others of a row."""
    return search.Ranking(criteria.Relief("multisurf"), **options)


@register("Benjamini and Hochberg (1995), Controlling the false discovery rate")
def t_test_fdr(q: float = 0.05, **options: Any) -> Selection:
    """Discard what a t-test (F-test) does not find at false discovery rate q, rank the rest.

    ``n_features_to_select`` counts among those that pass; 1.0 keeps them all.
    """
    passing = search.Ranking(criteria.PValue(), n_features_to_select=search.FalseDiscovery(q))
    return search.Then(passing, search.Ranking(criteria.PValue(), **options))


@register("Whitney (1971), A direct method of nonparametric measurement selection")
def sfs_j3(ridge: float = 1e-3, **options: Any) -> Selection:
    """Sequential forward selection by the scatter measure J3."""
    return search.Forward(criteria.Scatter("J3", ridge=ridge), **options)


@register("Marill and Green (1963), On the effectiveness of receptors in recognition systems")
def sbs_j3(ridge: float = 1e-3, **options: Any) -> Selection:
    """Sequential backward selection by the scatter measure J3."""
    return search.Backward(criteria.Scatter("J3", ridge=ridge), **options)


@register("Pudil, Novovicova and Kittler (1994), Floating search methods in feature selection")
def sffs_j3(ridge: float = 1e-3, **options: Any) -> Selection:
    """Floating forward selection by the scatter measure J3."""
    return search.FloatingForward(criteria.Scatter("J3", ridge=ridge), **options)


@register("Pudil, Novovicova and Kittler (1994), Floating search methods in feature selection")
def sfbs_j3(ridge: float = 1e-3, **options: Any) -> Selection:
    """Floating backward selection by the scatter measure J3."""
    return search.FloatingBackward(criteria.Scatter("J3", ridge=ridge), **options)


@register("Stearns (1976), On selecting features for pattern classifiers")
def plus_l_minus_r_j3(ridge: float = 1e-3, **options: Any) -> Selection:
    """Add l features, take away r, and again, by the scatter measure J3."""
    return search.PlusLMinusR(criteria.Scatter("J3", ridge=ridge), **options)


@register("Liu and Motoda (1998), Feature Selection for Knowledge Discovery and Data Mining")
def bidirectional_j3(ridge: float = 1e-3, **options: Any) -> Selection:
    """Forward and backward selection towards each other, by the scatter measure J3."""
    return search.Bidirectional(criteria.Scatter("J3", ridge=ridge), **options)


@register("Narendra and Fukunaga (1977), A branch and bound algorithm for feature selection")
def branch_and_bound_j3(ridge: float = 1e-3, **options: Any) -> Selection:
    """The best subset by the scatter measure J3, or the best after 20 000 scores or 10 seconds."""
    budget = {"max_evaluations": 20_000, "max_seconds": 10.0}
    return search.BranchAndBound(criteria.Scatter("J3", ridge=ridge), **budget | options)


@register("Theodoridis and Koutroumbas (2009), Pattern Recognition, sec. 5.6 and 5.7")
def divergence_sffs(ridge: float | str = "auto", **options: Any) -> Selection:
    """Floating forward selection by the divergence of Gaussian classes."""
    return search.FloatingForward(criteria.Divergence(ridge=ridge), **options)


@register("Farahat, Elgohary, Ghodsi and Kamel (2015), Greedy column subset selection")
def column_subset(**options: Any) -> Selection:
    """Add the column that helps most to rebuild all others by least squares; needs no target."""
    return search.Forward(criteria.ColumnSubset(), **options)


@register("Guyon, Weston, Barnhill and Vapnik (2002), Gene selection for cancer classification")
def svm_rfe(
    C: float = 1.0, kernel: str = "linear", gamma: Any = "scale", **options: Any
) -> Selection:
    """Drop the column that moves the norm of a support vector machine least, train again.

    With a linear kernel that norm's share of a column is its squared weight. ``gamma="scale"`` on
    standardised columns is 1 / (their number): the kernel keeps its width as columns leave.
    """
    return eliminate(criteria.WeightNorm(SVC(C=C, kernel=kernel, gamma=gamma)), options)


@register("Rakotomamonjy (2007), Analysis of SVM regression bounds for variable ranking")
def svr_rfe(
    C: float = 1.0,
    kernel: str = "linear",
    gamma: Any = "scale",
    epsilon: float = 0.1,
    **options: Any,
) -> Selection:
    """Drop the column that moves the norm of a support vector regression least, train again.

    C and epsilon are in the units of the target, so that another unit may give another order:
    standardise the target first.
    """
    machine = SVR(C=C, kernel=kernel, gamma=gamma, epsilon=epsilon)
    return eliminate(criteria.WeightNorm(machine), options)


def _machine(estimator: Any) -> Any:
    return SVC() if estimator is None else estimator


@register("Rakotomamonjy (2003), Variable selection using SVM-based criteria")
def grad_w2_rfe(estimator: Any = None, **options: Any) -> Selection:
    """Drop the column whose scale moves the norm of a kernel machine least, train again.

    The estimator is an ``SVC()`` unless another, or an ``SVR``, is given.
    """
    return eliminate(criteria.WeightNorm(_machine(estimator), order=1), options)


@register("Rakotomamonjy (2003); Chung et al. (2003), Radius margin bounds")
def rmb_rfe(estimator: Any = None, **options: Any) -> Selection:
    """Drop the column without which the radius-margin bound is least, its machine kept.

    The bound is that of a soft margin, which counts slacks: see :class:`RadiusMargin` for what it
    finds and the printed one does not. The estimator is an ``SVC()`` unless another, or an
    ``SVR``, is given. A row of weight 2 counts as two rows with ``standardize=False`` and a number
    for the estimator's ``gamma``: mean, deviation and ``gamma="scale"`` are found without weights.
    """
    return eliminate(criteria.RadiusMargin(_machine(estimator), soft_margin=True), options)


@register("Rakotomamonjy (2003); Chung et al. (2003), Radius margin bounds")
def rmb_rfe_retrain(estimator: Any = None, **options: Any) -> Selection:
    """Drop the column without which the radius-margin bound of a new machine is least."""
    criterion = criteria.RadiusMargin(_machine(estimator), retrain=True, soft_margin=True)
    return eliminate(criterion, options)


@register("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, RMB-RFE")
def rmb_rfe_printed(estimator: Any = None, **options: Any) -> Selection:
    """Drop by the radius-margin bound as printed, without slacks: to reproduce published figures.

    It puts relevant columns last where classes overlap; ``rmb-rfe`` does not. The tables of Yang
    (2011), ch. 4, use this form.
    """
    return eliminate(criteria.RadiusMargin(_machine(estimator)), options)


@register("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, RMB-RFE*")
def rmb_rfe_retrain_printed(estimator: Any = None, **options: Any) -> Selection:
    """Drop by the radius-margin bound of a new machine as printed: to reproduce published figures.

    It finds relevant columns of regressions, of classes only some; ``rmb-rfe-retrain`` finds both.
    """
    return eliminate(criteria.RadiusMargin(_machine(estimator), retrain=True), options)


@register("Rakotomamonjy (2007), Analysis of SVM regression bounds for variable ranking")
def rmb_regression_rfe(C: float = 1.0, epsilon: float = 0.1, **options: Any) -> Selection:
    """Drop the tenth without which the radius-margin bound of a new regression is least.

    C and epsilon are counted in standard deviations of the target.
    """
    machine = criteria.RelativeSVR(C, tube=epsilon)
    return eliminate(criteria.RadiusMargin(machine, retrain=True), options, 0.1)


@register("Rakotomamonjy (2007), Analysis of SVM regression bounds for variable ranking")
def span_regression_rfe(C: float = 1.0, epsilon: float = 0.1, **options: Any) -> Selection:
    """Drop the tenth without which the span estimate of a new regression is least.

    C and epsilon are counted in standard deviations of the target.
    """
    machine = criteria.RelativeSVR(C, tube=epsilon)
    return eliminate(criteria.Span(machine, retrain=True), options, 0.1)


@register("Rakotomamonjy (2003); Chapelle, Vapnik, Bousquet and Mukherjee (2002)")
def span_rfe(estimator: Any = None, **options: Any) -> Selection:
    """Drop the column without which the span estimate of the loss is least, its machine kept.

    Slacks are counted: see :class:`Span` for what that finds and the printed bound does not. The
    estimator is an ``SVC()`` unless another is given; with an ``SVR`` use ``span-rfe-retrain``.
    """
    return eliminate(criteria.Span(_machine(estimator), soft_margin=True), options)


@register("Rakotomamonjy (2003); Chapelle, Vapnik, Bousquet and Mukherjee (2002)")
def span_rfe_retrain(estimator: Any = None, **options: Any) -> Selection:
    """Drop the column without which the span estimate of the loss of a new machine is least."""
    return eliminate(criteria.Span(_machine(estimator), retrain=True, soft_margin=True), options)


@register("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, SpanB-RFE")
def span_rfe_printed(estimator: Any = None, **options: Any) -> Selection:
    """Drop by the span bound as printed, without slacks: to reproduce published figures.

    On held-out sets it is behind columns drawn at random; ``span-rfe`` is not. The tables of Yang
    (2011), ch. 4, use this form.
    """
    return eliminate(criteria.Span(_machine(estimator)), options)


@register("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, SpanB-RFE*")
def span_rfe_retrain_printed(estimator: Any = None, **options: Any) -> Selection:
    """Drop by the span bound of a new machine as printed: to reproduce published figures."""
    return eliminate(criteria.Span(_machine(estimator), retrain=True), options)


@register("Li and Yang (2005), Analysis of recursive gene selection approaches")
def ridge_rfe(alpha: float = 1.0, **options: Any) -> Selection:
    """Drop the tenth of least weight in a ridge classifier, train again."""
    return eliminate(criteria.Importances(RidgeClassifier(alpha=alpha)), options, 0.1)


@register("Li and Yang (2005), Analysis of recursive gene selection approaches")
def ridge_regression_rfe(alpha: float = 1.0, **options: Any) -> Selection:
    """Drop the tenth of least weight in a ridge regression, train again."""
    return eliminate(criteria.Importances(Ridge(alpha=alpha)), options, 0.1)


@register("Diaz-Uriarte and Alvarez de Andres (2006), Gene selection using random forest")
def random_forest_rfe(n_estimators: int = 100, **options: Any) -> Selection:
    """Drop the fifth of least importance in a random forest, train again."""
    forest = RandomForestClassifier(n_estimators=n_estimators)
    return eliminate(criteria.Importances(forest), options, 0.2)


@register("Kohavi and John (1997), Wrappers for feature subset selection")
def sfs_lda(cv: int = 5, **options: Any) -> Selection:
    """Forward selection by the cross-validated accuracy of linear discriminant analysis."""
    return search.Forward(criteria.CrossValidated(LinearDiscriminantAnalysis(), cv=cv), **options)


def _knn(n_neighbors: int, cv: int) -> Any:
    return criteria.CrossValidated(KNeighborsClassifier(n_neighbors=n_neighbors), cv=cv)


@register("Kohavi and John (1997), Wrappers for feature subset selection")
def sfs_knn(n_neighbors: int = 5, cv: int = 5, **options: Any) -> Selection:
    """Forward selection by the cross-validated accuracy of the nearest neighbours."""
    return search.Forward(_knn(n_neighbors, cv), **options)


@register("Jain and Zongker (1997), Feature selection: evaluation, application and performance")
def sffs_knn(n_neighbors: int = 5, cv: int = 5, **options: Any) -> Selection:
    """Floating forward selection by the cross-validated accuracy of the nearest neighbours."""
    return search.FloatingForward(_knn(n_neighbors, cv), **options)


@register("Efroymson (1960), Multiple regression analysis")
def sfs_linear_regression(cv: int = 5, **options: Any) -> Selection:
    """Forward selection by the cross-validated share of variance that least squares explains."""
    return search.Forward(criteria.CrossValidated(LinearRegression(), cv=cv), **options)


@register("Siedlecki and Sklansky (1989); Sun, Bebis, Yuan and Louis (2002)")
def ga_knn(n_neighbors: int = 5, cv: int = 5, **options: Any) -> Selection:
    """Breed subsets by the cross-validated accuracy of the nearest neighbours."""
    defaults = {"population_size": 30, "n_generations": 20}
    return search.Genetic(criteria.Remembered(_knn(n_neighbors, cv)), **defaults | options)
