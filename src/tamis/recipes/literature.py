"""Recipes: filters, information measures, scatter matrices, elimination with SVMs, and wrappers.

Recipes that invert covariance matrices add a small ridge. They therefore also work with constant or
duplicate columns, and with more columns than rows.
"""

from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC, SVR

from tamis import choice, criteria, search
from tamis.contract import Selection
from tamis.recipes.book import eliminate, register


@register("Duda, Hart and Stork (2001), Pattern Classification, sec. 3.8")
def fisher_score(**options: Any) -> Selection:
    """Rank by the ratio of the variance between classes to the variance within classes."""
    return search.Ranking(criteria.FisherScore(), **options)


@register("Theodoridis and Koutroumbas (2009), Pattern Recognition, sec. 5.6")
def discriminant_ratio(**options: Any) -> Selection:
    """Rank by Fisher's discriminant ratio, summed over the pairs of classes."""
    return search.Ranking(criteria.DiscriminantRatio(), **options)


@register("Guyon and Elisseeff (2003), An introduction to variable and feature selection")
def correlation(**options: Any) -> Selection:
    """Rank by the absolute correlation with the target (correlation ratio for classes)."""
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
    """Rank by the difference to near rows of other classes, minus that within the class."""
    return search.Ranking(criteria.Relief("relieff", n_neighbors=n_neighbors), **options)


@register("Greene, Penrod, Kiralis and Moore (2009), Spatially uniform ReliefF (SURF)")
def surf(**options: Any) -> Selection:
    """As relieff. The neighbours of a row are all rows nearer than the mean distance."""
    return search.Ranking(criteria.Relief("surf"), **options)


@register("Urbanowicz, Olson, Schmitt, Meeker and Moore (2018), Relief-based feature selection")
def multisurf(**options: Any) -> Selection:
    """As relieff. The neighbours of a row are all rows much nearer than its mean distance."""
    return search.Ranking(criteria.Relief("multisurf"), **options)


@register("Benjamini and Hochberg (1995), Controlling the false discovery rate")
def t_test_fdr(q: float = 0.05, **options: Any) -> Selection:
    """Rank the columns that pass a t-test or F-test at the false discovery rate q.

    ``n_features_to_select`` counts only columns that pass the test. 1.0 selects all of them.
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
    """Alternately add l columns and remove r, by the scatter measure J3."""
    return search.PlusLMinusR(criteria.Scatter("J3", ridge=ridge), **options)


@register("Liu and Motoda (1998), Feature Selection for Knowledge Discovery and Data Mining")
def bidirectional_j3(ridge: float = 1e-3, **options: Any) -> Selection:
    """Simultaneous forward and backward selection by the scatter measure J3."""
    return search.Bidirectional(criteria.Scatter("J3", ridge=ridge), **options)


@register("Narendra and Fukunaga (1977), A branch and bound algorithm for feature selection")
def branch_and_bound_j3(ridge: float = 1e-3, **options: Any) -> Selection:
    """Best subset by the scatter measure J3. The search ends after 20 000 scores or 10 seconds."""
    budget = {"max_evaluations": 20_000, "max_seconds": 10.0}
    return search.BranchAndBound(criteria.Scatter("J3", ridge=ridge), **budget | options)


@register("Theodoridis and Koutroumbas (2009), Pattern Recognition, sec. 5.6 and 5.7")
def divergence_sffs(ridge: float | str = "auto", **options: Any) -> Selection:
    """Floating forward selection by the divergence of Gaussian classes."""
    return search.FloatingForward(criteria.Divergence(ridge=ridge), **options)


@register("Theodoridis and Koutroumbas (2009), Pattern Recognition, sec. 5.6 and 5.7")
def divergence_parzen_sffs(sigma: float | str = "likelihood", **options: Any) -> Selection:
    """Floating forward selection by the divergence of classes that need not be Gaussian.

    The densities of the classes are estimated by Parzen windows.
    """
    return search.FloatingForward(criteria.Divergence("parzen", sigma=sigma), **options)


@register("Farahat, Elgohary, Ghodsi and Kamel (2015), Greedy column subset selection")
def column_subset(**options: Any) -> Selection:
    """Forward selection by the least-squares reconstruction of all columns; needs no target."""
    return search.Forward(criteria.ColumnSubset(), **options)


@register("Guyon, Weston, Barnhill and Vapnik (2002), Gene selection for cancer classification")
def svm_rfe(
    C: float = 1.0, kernel: str = "linear", gamma: Any = "scale", **options: Any
) -> Selection:
    """Repeatedly drop the column whose removal changes the weight norm of an SVM least.

    With a linear kernel, the contribution of a column is its squared weight. On standardised
    columns, ``gamma="scale"`` is 1 / (number of columns), so the kernel width adapts as columns are
    dropped.
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
    """Repeatedly drop the column whose removal changes the weight norm of an SVR least.

    C and epsilon are in units of the target, so the order depends on these units. Standardise the
    target first.
    """
    svr = SVR(C=C, kernel=kernel, gamma=gamma, epsilon=epsilon)
    return eliminate(criteria.WeightNorm(svr), options)


def _svm(estimator: Any) -> Any:
    return SVC() if estimator is None else estimator


@register("Guyon et al. (2002); Shen, Ong, Li and Wilder-Smith (2008), figures 3a and 4a")
def svm_init(
    C: float = 1.0, kernel: str = "linear", gamma: Any = "scale", **options: Any
) -> Selection:
    """Rank by the change of one SVM's weight norm when a column is removed.

    The SVM is trained once, on all columns. ``svm-rfe`` trains again after each removal, which is
    slower and usually better.
    """
    norm = criteria.WeightNorm(SVC(C=C, kernel=kernel, gamma=gamma))
    return search.Ranking(norm, **{"by": "removal"} | options)


@register("Rakotomamonjy (2003); Shen, Ong, Li and Wilder-Smith (2008), figures 3a and 4a")
def grad_w2_init(estimator: Any = None, **options: Any) -> Selection:
    """Rank by the derivative of the weight norm of one SVM, trained on all columns.

    The derivative is taken with respect to the scale of a column. The default estimator is
    ``SVC()``. An ``SVR`` works as well.
    """
    norm = criteria.WeightNorm(_svm(estimator), order=1)
    return search.Ranking(norm, **{"by": "removal"} | options)


@register("Rakotomamonjy (2003), Variable selection using SVM-based criteria")
def grad_w2_rfe(estimator: Any = None, **options: Any) -> Selection:
    """Repeatedly drop the column with the smallest derivative of an SVM's weight norm.

    The derivative is taken with respect to the scale of the column. The default estimator is
    ``SVC()``. An ``SVR`` works as well.
    """
    return eliminate(criteria.WeightNorm(_svm(estimator), order=1), options)


@register("Rakotomamonjy (2003); Chung et al. (2003), Radius margin bounds")
def rmb_rfe(estimator: Any = None, **options: Any) -> Selection:
    """Repeatedly drop the column without which an SVM's radius-margin bound is smallest.

    The SVM is not trained again without each column. The bound includes slacks; see
    :class:`RadiusMargin`. The default estimator is ``SVC()``. An ``SVR`` works as well. A row of
    weight 2 is equivalent to two rows only with ``standardize=False`` and a numeric ``gamma`` of
    the estimator, because the mean, the standard deviation and ``gamma="scale"`` ignore weights.
    """
    return eliminate(criteria.RadiusMargin(_svm(estimator), soft_margin=True), options)


@register("Rakotomamonjy (2003); Chung et al. (2003), Radius margin bounds")
def rmb_rfe_retrain(estimator: Any = None, **options: Any) -> Selection:
    """As rmb-rfe (radius-margin bound), with the SVM trained again without each column."""
    criterion = criteria.RadiusMargin(_svm(estimator), retrain=True, soft_margin=True)
    return eliminate(criterion, options)


@register("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, RMB-RFE")
def rmb_rfe_printed(estimator: Any = None, **options: Any) -> Selection:
    """As rmb-rfe, with the published bound without slacks, to reproduce published tables.

    The tables of Yang (2011), ch. 4, use this form. If classes overlap, it ranks relevant columns
    last. Use ``rmb-rfe`` to select columns.
    """
    return eliminate(criteria.RadiusMargin(_svm(estimator)), options)


@register("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, RMB-RFE*")
def rmb_rfe_retrain_printed(estimator: Any = None, **options: Any) -> Selection:
    """As rmb-rfe-retrain, with the published bound, to reproduce published tables.

    It finds relevant columns in regression, but only some of them in classification.
    ``rmb-rfe-retrain`` finds them in both.
    """
    return eliminate(criteria.RadiusMargin(_svm(estimator), retrain=True), options)


@register("Rakotomamonjy (2007), Analysis of SVM regression bounds for variable ranking")
def rmb_regression_rfe(C: float = 1.0, epsilon: float = 0.1, **options: Any) -> Selection:
    """Repeatedly drop the 10 % of columns without which the radius-margin bound is smallest.

    For each column, a support vector regression is retrained without it. C and epsilon are given in
    standard deviations of the target.
    """
    svr = criteria.RelativeSVR(C, tube=epsilon)
    return eliminate(criteria.RadiusMargin(svr, retrain=True), options, 0.1)


@register("Rakotomamonjy (2007), Analysis of SVM regression bounds for variable ranking")
def span_regression_rfe(C: float = 1.0, epsilon: float = 0.1, **options: Any) -> Selection:
    """Repeatedly drop the 10 % of columns without which the span estimate is smallest.

    For each column, a support vector regression is retrained without it. C and epsilon are given in
    standard deviations of the target.
    """
    svr = criteria.RelativeSVR(C, tube=epsilon)
    return eliminate(criteria.Span(svr, retrain=True), options, 0.1)


@register("Rakotomamonjy (2003); Chapelle, Vapnik, Bousquet and Mukherjee (2002)")
def span_rfe(estimator: Any = None, **options: Any) -> Selection:
    """Repeatedly drop the column without which an SVM's span estimate is smallest.

    The SVM is not trained again without each column. The estimate includes slacks; see
    :class:`Span`. The default estimator is ``SVC()``. For an ``SVR``, use ``span-rfe-retrain``.
    """
    return eliminate(criteria.Span(_svm(estimator), soft_margin=True), options)


@register("Rakotomamonjy (2003); Chapelle, Vapnik, Bousquet and Mukherjee (2002)")
def span_rfe_retrain(estimator: Any = None, **options: Any) -> Selection:
    """As span-rfe (span estimate), with the SVM trained again without each column."""
    return eliminate(criteria.Span(_svm(estimator), retrain=True, soft_margin=True), options)


@register("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, SpanB-RFE")
def span_rfe_printed(estimator: Any = None, **options: Any) -> Selection:
    """As span-rfe, with the published bound without slacks, to reproduce published tables.

    The tables of Yang (2011), ch. 4, use this form. The selected columns predict held-out rows
    worse than random columns do. Use ``span-rfe`` to select columns.
    """
    return eliminate(criteria.Span(_svm(estimator)), options)


@register("Rakotomamonjy (2003, 2007); Yang (2011), sec. 4.4, SpanB-RFE*")
def span_rfe_retrain_printed(estimator: Any = None, **options: Any) -> Selection:
    """As span-rfe-retrain, with the published bound, to reproduce published tables."""
    return eliminate(criteria.Span(_svm(estimator), retrain=True), options)


@register("Li and Yang (2005), Analysis of recursive gene selection approaches")
def ridge_rfe(alpha: float = 1.0, **options: Any) -> Selection:
    """Repeatedly drop the 10 % of columns with the smallest weights in a ridge classifier."""
    return eliminate(criteria.Importances(RidgeClassifier(alpha=alpha)), options, 0.1)


@register("Li and Yang (2005), Analysis of recursive gene selection approaches")
def ridge_regression_rfe(alpha: float = 1.0, **options: Any) -> Selection:
    """Repeatedly drop the 10 % of columns with the smallest weights in a ridge regression."""
    return eliminate(criteria.Importances(Ridge(alpha=alpha)), options, 0.1)


@register("Diaz-Uriarte and Alvarez de Andres (2006), Gene selection using random forest")
def random_forest_rfe(n_estimators: int = 100, **options: Any) -> Selection:
    """Repeatedly drop the 20 % of columns with the smallest importances in a random forest."""
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
    """Forward selection by the cross-validated accuracy of nearest neighbours."""
    return search.Forward(_knn(n_neighbors, cv), **options)


@register("Jain and Zongker (1997), Feature selection: evaluation, application and performance")
def sffs_knn(n_neighbors: int = 5, cv: int = 5, **options: Any) -> Selection:
    """Floating forward selection by the cross-validated accuracy of nearest neighbours."""
    return search.FloatingForward(_knn(n_neighbors, cv), **options)


@register("Efroymson (1960), Multiple regression analysis")
def sfs_linear_regression(cv: int = 5, **options: Any) -> Selection:
    """Forward selection by the cross-validated R² of least squares."""
    return search.Forward(criteria.CrossValidated(LinearRegression(), cv=cv), **options)


@register("Siedlecki and Sklansky (1989); Sun, Bebis, Yuan and Louis (2002)")
def ga_knn(n_neighbors: int = 5, cv: int = 5, **options: Any) -> Selection:
    """Genetic search by the cross-validated accuracy of nearest neighbours."""
    defaults = {"population_size": 30, "n_generations": 20}
    return search.Genetic(criteria.Remembered(_knn(n_neighbors, cv)), **defaults | options)


@register("Battiti (1994), Using mutual information for selecting features")
def mifs(beta: float = 0.5, n_bins: int | None = None, **options: Any) -> Selection:
    """Forward selection by information minus beta times redundancy with the selected columns."""
    return search.Forward(criteria.MIFS(beta=beta, n_bins=n_bins), **options)


@register("Kwak and Choi (2002), Input feature selection for classification problems")
def mifs_u(beta: float = 1.0, n_bins: int | None = None, **options: Any) -> Selection:
    """As mifs, counting only the share of the redundancy that concerns the target."""
    return search.Forward(criteria.MIFSU(beta=beta, n_bins=n_bins), **options)


@register("Peng, Long and Ding (2005), Feature selection based on mutual information")
def mrmr(n_bins: int | None = None, **options: Any) -> Selection:
    """Maximum relevance, minimum redundancy: information minus mean redundancy."""
    return search.Forward(criteria.MRMR(n_bins=n_bins), **options)


@register("Peng, Long and Ding (2005), Feature selection by mutual information, second stage")
def mrmr_two_stage(
    estimator: Any = None, cv: int = 5, n_bins: int | None = None, **options: Any
) -> Selection:
    """As mrmr, with the number of columns that has the lowest cross-validated error.

    The default estimator is a ridge classifier, or a ridge regression for a numeric target.
    """
    defaults = {"n_features_to_select": choice.BestPrefix(estimator, cv=cv)}
    return search.Forward(criteria.MRMR(n_bins=n_bins), **defaults | options)


@register("Estevez, Tesmer, Perez and Zurada (2009), Normalized mutual information selection")
def nmifs(n_bins: int | None = None, **options: Any) -> Selection:
    """As mrmr, with redundancy divided by the smaller entropy of the two columns."""
    return search.Forward(criteria.NMIFS(n_bins=n_bins), **options)


@register("Fleuret (2004), Fast binary feature selection with conditional mutual information")
def cmim(n_bins: int | None = None, **options: Any) -> Selection:
    """Forward selection by the minimum conditional information, given a selected column."""
    return search.Forward(criteria.CMIM(n_bins=n_bins), **options)


@register("Lin and Tang (2006), Conditional infomax learning")
def cife(n_bins: int | None = None, **options: Any) -> Selection:
    """As mifs with beta = 1, plus the redundancy within the classes."""
    return search.Forward(criteria.CIFE(n_bins=n_bins), **options)


@register("Yang and Moody (1999), Data visualization and feature selection")
def jmi(n_bins: int | None = None, **options: Any) -> Selection:
    """Forward selection by the joint information of a column and each selected column."""
    return search.Forward(criteria.JMI(n_bins=n_bins), **options)


@register("Brown, Pocock, Zhao and Lujan (2012), Conditional likelihood maximisation")
def pair_scan(
    n_bins: int | None = 4, top: int = 1, n_permutations: int = 0, **options: Any
) -> Selection:
    """Rank by the largest information given one other column. This finds interactions."""
    criterion = criteria.PairInformation(n_bins=n_bins, top=top, n_permutations=n_permutations)
    return search.Ranking(criterion, **options)


@register("Meyer, Schretter and Bontempi (2008), Information-theoretic feature selection")
def disr(n_bins: int | None = None, **options: Any) -> Selection:
    """As jmi, with the information divided by the joint entropy."""
    return search.Forward(criteria.DISR(n_bins=n_bins), **options)


@register("Yang and Ong (2012), Feature selection via mutual information estimation")
def mi_pw(sigma: float | str = "likelihood", **options: Any) -> Selection:
    """Repeatedly drop the column that adds least mutual information (Parzen windows)."""
    return eliminate(criteria.ParzenInformation(sigma=sigma), options)


@register("Yang and Ong (2012), Feature selection via mutual information estimation")
def mi_rsde(
    by: str = "permutation", sigma: float | str = "likelihood", **options: Any
) -> Selection:
    """Repeatedly drop the 10 % of columns that add least information (reduced-set densities)."""
    return eliminate(criteria.ReducedParzenInformation(by=by, sigma=sigma), options, 0.1)


@register("Kwak and Choi (2002), Input feature selection based on Parzen window")
def kwak(sigma: float | str = "likelihood", **options: Any) -> Selection:
    """Forward selection by mutual information with the class, from Parzen windows."""
    return search.Forward(criteria.KwakInformation(sigma=sigma), **options)


@register("Song, Smola, Gretton, Bedo and Borgwardt (2012), Dependence maximization")
def hsic_rfe(gamma: float | str = "dimension", **options: Any) -> Selection:
    """Repeatedly drop the 10 % of columns whose removal lowers the HSIC least.

    HSIC is the Hilbert-Schmidt independence criterion.
    """
    return eliminate(criteria.HSIC(gamma=gamma), options, 0.1)


@register("Song, Smola, Gretton, Bedo and Borgwardt (2012), Dependence maximization")
def hsic_forward(gamma: float | str = "dimension", **options: Any) -> Selection:
    """Forward selection by the Hilbert-Schmidt independence criterion."""
    return search.Forward(criteria.HSIC(gamma=gamma), **options)
