"""Hits in thirty draws by maximum output information, with the default recipe."""

import pytest

from tamis.datasets import make_corral, make_weston
from tests.published.test_sensitivity import hits

pytestmark = pytest.mark.experiment


@pytest.mark.parametrize(("n_samples", "bar"), [(200, 26), (90, 21), (70, 18)])
@pytest.mark.parametrize("method", ["moi-rfe", "moi-rfe(credit='knockout')"])
def test_output_information_finds_the_columns_of_weston(method, n_samples, bar):
    """Yang (2011), table 3.1."""
    assert hits(method, make_weston, n_samples) >= bar


def test_output_information_finds_the_columns_of_corral():
    """Yang (2011), table 3.2."""
    assert hits("moi-rfe", make_corral, 128, variant=6) >= 27


@pytest.mark.parametrize(("variant", "bar"), [(46, 22), (47, 16)])
def test_shares_are_lost_among_many_columns(variant, bar):
    """The published hits are 9 and 10, because the weights of forty noise columns add up."""
    assert hits("moi-rfe", make_corral, 128, variant=variant) <= bar
