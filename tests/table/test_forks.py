"""Forked processes, which do not have the threads of polars."""

import subprocess
import sys

import pytest

FORK = """
import multiprocessing, warnings
import numpy as np, pandas as pd
import tamis
from tamis.table import frames

warnings.simplefilter("ignore")
frames.PATIENCE = 0.5
table = pd.DataFrame(np.random.default_rng(0).normal(size=(48, 3)), columns=list("abc"))
mixed, y = table.assign(k=["u", "v"] * 24), np.arange(48) % 2

def select(table):
    try:
        return tamis.select(table, y, "mrmr", n_features_to_select=2).columns
    except tamis.exceptions.InvalidTable as error:
        return str(error)

def tell(pipe):
    pipe.send([select(mixed), select(table)])

def forked():
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=tell, args=(theirs,))
    child.start()
    print(*(ours.recv() if ours.poll(120) else ["hangs"]), sep="|")
    child.kill()

forked()
select(mixed)
forked()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork")
def test_a_forked_process_selects_or_reports_why_not():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    before, after = done.stdout.splitlines()
    assert before == "['a', 'b']|['a', 'b']"
    assert after.startswith("This process was forked after polars had started its threads")
    assert "get_context('spawn')" in after
    assert after.endswith("|['a', 'b']")  # numbers need no threads
