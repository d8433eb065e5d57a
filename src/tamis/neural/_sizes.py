"""What training networks together costs, from the sizes of table and layers alone."""

from tamis.contract import Cost

#: Operations of a step beside its products: small arrays, calls.
BESIDE = 4e5
#: Operations of matrix products in a nanosecond of one core, small arrays and large together.
AT_ONCE = 5
#: Passes of a network over the table in an iteration: some networks end early.
PASSES = 0.65


def cost_of_networks(
    n_networks: int, hidden: int, n_steps: float, n_samples: int, n_features: int
) -> Cost:
    """Of networks with two outputs that are trained in one computation.

    Measured on 100 to 600 rows, 20 to 300 columns, 10 to 30 hidden units.
    """
    n, d, n_weights = float(n_samples), n_features, (n_features + 3) * hidden
    products = 4 * n * d * hidden + 12 * n * hidden + 30 * n * (hidden + 2) + 48 * n_weights
    held = 8 * n_networks * n * (3 * hidden + 10) + 160 * n_networks * n_weights
    operations = n_steps * (BESIDE + PASSES * n_networks * products / AT_ONCE)
    return Cost(operations, held + 40 * n * d)
