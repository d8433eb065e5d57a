"""``tamis select --device``: the device of kernel criteria, and warnings for others."""

import shlex

import pytest

from tamis import _namespace


def test_a_criterion_runs_on_the_requested_device(tamis):
    pytest.importorskip("torch", reason="torch is not installed")
    words = "select", "wine.csv", "-t", "kind", "RecursiveElimination(HSIC())", "-k", 3
    found = tamis(*words, "--device", "cpu")
    assert found.exit_code == 0, found.output
    line = "Scores ran on cpu (torch).\n"
    assert line in found.stdout
    assert found.stdout.replace(line, "") == tamis(*words).stdout
    assert _namespace.device_asked() is None


def test_a_method_that_cannot_use_the_device_warns(tamis):
    pytest.importorskip("torch", reason="torch is not installed")
    found = tamis("select", "wine.csv", "-t", "kind", "fisher-score", "-k", 3, "--device", "cpu")
    assert found.exit_code == 0, found.output
    assert "Ranking runs on the CPU, because it cannot use device='cpu'" in found.stderr


def test_a_device_without_memory_leaves_the_record(tamis, folder, monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    from tamis.density import pairs

    sums, calls = pairs.pair_changes, []

    def full(*given, **options):
        calls.append(given)
        if len(calls) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 3.20 GiB.")
        return sums(*given, **options)

    words = "select", "wine.csv", "-t", "kind", "RecursiveElimination(HSIC())", "-k", 3
    with monkeypatch.context() as patched:
        patched.setattr(pairs, "pair_changes", full)
        found = tamis(*words, "--device", "cpu")
    assert found.exit_code == 2
    assert "it needed 3.20 GiB more" in found.stderr
    command = found.stderr.partition("To continue, write: ")[2].splitlines()[0]
    assert "--device" not in command
    again = tamis(*shlex.split(command)[1:])
    assert again.exit_code == 0, again.output
    line = "Scores ran on cpu (torch) and the CPU.\n"
    assert again.stdout.replace(line, "") == tamis(*words).stdout


def test_a_device_that_is_not_there(refused):
    pytest.importorskip("torch", reason="torch is not installed")
    words = "select", "wine.csv", "-t", "kind", "RecursiveElimination(HSIC())", "-k", 3
    assert "cannot be used by torch" in refused(*words, "--device", "quantum")
    assert _namespace.device_asked() is None


def test_a_device_without_torch_is_refused(refused, monkeypatch):
    monkeypatch.setattr(_namespace, "find_spec", lambda name: None)
    words = "select", "wine.csv", "-t", "kind", "RecursiveElimination(HSIC())", "-k", 3
    assert "tamis[gpu]" in refused(*words, "--device", "cuda")
