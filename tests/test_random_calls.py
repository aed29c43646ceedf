"""A part of the random calls and the random graphs that `make test-all` makes, 100,000 of each."""

import os

import pytest

import backend
from calls import __main__ as calls


@pytest.mark.skipif(backend.BACKEND != "cpu", reason="its own processes run on the CPU")
def test_random_calls():
    assert calls.run(int(os.environ.get("NNRS_TEST_SEED", "1")), 1500) == []


@pytest.mark.skipif(backend.BACKEND != "cpu", reason="its own processes run on the CPU")
def test_random_graphs_that_change_at_any_time():
    assert calls.run(int(os.environ.get("NNRS_TEST_SEED", "1")), 150, "graphs") == []


def test_a_crash_is_found_and_what_comes_after_it_is_called(monkeypatch, tmp_path):
    """The numbers of a caller that dies at 3 and finds something at 5."""
    script = tmp_path / "caller.py"
    script.write_text(
        "import os, sys\n"
        "for n in range(int(sys.argv[1]), int(sys.argv[1]) + int(sys.argv[2])):\n"
        "    print(n, flush=True)\n"
        "    if n == 3: os.abort()\n"
        "    if n == 5: print(n, 'a panic', flush=True)\n"
    )
    monkeypatch.setattr(calls, "__file__", str(tmp_path / "__main__.py"))
    found = calls.run(1, 8)
    assert len(found) == 2 and found[0].startswith("3 the process ended with -6") and found[1] == "5 a panic"
