"""The checks of a device, if there is a GPU."""

from importlib.util import find_spec

import pytest

pytestmark = pytest.mark.gpu

NAMES = (
    "check_sums_of_pairs",
    "check_changes_of_outputs",
    "check_scores",
    "check_orders_of_five_tables",
    "check_machines",
    "check_tensors_into_searches",
    "check_cupy",
    "check_nothing_stays_behind",
    "check_a_full_device",
)


@pytest.fixture(scope="module")
def device():
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    import torch

    if not torch.cuda.is_available():
        pytest.skip("there is no GPU that torch can use")
    return "cuda"


@pytest.mark.parametrize("name", NAMES)
def test_the_check_passes_on_a_gpu(name, device):
    from tests.gpu import checks

    checks.run_check(getattr(checks, name), device)


def test_all_checks_are_run():
    from tests.gpu import checks

    assert [check.__name__ for check in checks.CHECKS] == list(NAMES)
