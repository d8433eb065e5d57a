"""What following paths costs, before they are followed."""

from collections.abc import Sequence

from tamis.contract.cost import Cost

# Measured on one core with 500 to 3000 rows and 8 to 200 columns, to within a factor of three: a
# kernel of any rank has margin sets that grow with the rows, a linear one those of its columns.
PER_CUBE, PER_SQUARE = 1.0, 500.0
#: Two variables a sample, of which most never move.
REGRESSION = 3.0
#: The kernel matrix, its centred copy and the rows of the test part.
COPIES = 3


def paths_cost(kernel: str, sizes: Sequence[int], *, regression: bool = False) -> Cost:
    """What the paths of machines with so many training rows take.

    >>> round(paths_cost("rbf", [1000]).operations * 1e-9, 1)
    1.0
    """
    linear = kernel == "linear"
    operations = sum(
        min(PER_CUBE * n, PER_SQUARE) * n**2 if linear else PER_CUBE * n**3 for n in sizes
    )
    largest = max(sizes, default=0)
    return Cost(operations * (REGRESSION if regression else 1.0), 8.0 * COPIES * largest**2)
