"""Gaussian kernel densities from their definition."""

import numpy as np
from scipy.stats import multivariate_normal


def density(points, centres, sigma, weights=None):
    """Return the weighted mean of normal densities around the centres, at each point."""
    shares = np.full(len(centres), 1 / len(centres)) if weights is None else weights
    window = multivariate_normal(np.zeros(points.shape[1]), sigma**2 * np.eye(points.shape[1]))
    return np.stack([np.atleast_1d(window.pdf(points - centre)) for centre in centres], 1) @ shares
