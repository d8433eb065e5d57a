"""Following the optimum of a parametric quadratic programme over a whole range of lambda."""
