"""Makes the test helpers importable from anywhere, and checks that the tests of arrays and graphs give back all memory.

Which package is under test is said by `function_harness.py`.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from backend import BACKEND

# A shell starts background jobs with Ctrl-C ignored, and Python keeps to that: the tests of Ctrl-C need it back.
signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).parent))

# NumPy's library begins a thread a core where it is loaded, which spins for a third of the time that a program of the
# tests takes to start; there are a thousand of them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


# Run on their own (with other settings), or of sources, documents and the CPU alone.
NOT_ON_GPU = "cuda_source docs emulation examples fake_driver* gpu* machine ptx signatures".split()
collect_ignore_glob = [] if BACKEND == "cpu" else [f"test_{name}.py" for name in NOT_ON_GPU]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write tests/golden/errors.txt anew")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


PASSED = pytest.StashKey[bool]()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """NNRS_TEST_FAILURES=FILE: failures are written there at once, for runs that may be stopped (`gpu_check.py`)."""
    file = os.environ.get("NNRS_TEST_FAILURES")
    if file and report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        with open(file, "a") as f:
            f.write(f"== {report.nodeid} ({report.when})\n{report.longreprtext}\n")


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test that passes no more functions, variables and bytes are alive than before it."""
    import leaks

    before = leaks.alive()
    yield
    leaks.nn.clear_parameters()
    request.node.funcargs.clear()  # pytest still has what fixtures gave the test
    if request.node.stash.get(PASSED, False):
        leaks.check(before)


@pytest.fixture(autouse=True, scope="module")
def _frozen_past() -> None:
    """What was collected, and what tests of other files have imported, stays: collections need not walk over it."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _host_only(request: pytest.FixtureRequest) -> None:
    """Tests marked `host` speak of the CPU's memory, of forks, or of contexts."""
    if request.node.get_closest_marker("host") and BACKEND != "cpu":
        pytest.skip("a test of the CPU backend")


@pytest.fixture(autouse=True, scope="session")
def _backend() -> None:
    """NNRS_TEST_BACKEND=cudnn: every graph that does not ask for another context runs there."""
    if BACKEND != "cpu":
        import nnrs as nn
        from nnrs.ext_utils import get_extension_context

        nn.set_default_context(get_extension_context(BACKEND))


@pytest.fixture(autouse=True)
def _context_stays() -> Iterator[None]:
    """A test, or an example of a page, may choose a default context: the next test has the one of before."""
    nn = importlib.import_module(os.environ.get("NNRS_TEST_MODULE", "nnrs"))
    before = nn.get_current_context()
    yield
    if str(nn.get_current_context()) != str(before):
        nn.set_default_context(before)


@pytest.fixture(params=[True, False], ids=["fused", "single"])
def fusion(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Fusion of element-wise functions, on and off: results must be the same."""
    import nnrs as nn

    old = nn.set_fusion(request.param)
    yield request.param
    nn.set_fusion(old)


@pytest.fixture
def one_thread() -> Iterator[None]:
    import nnrs as nn

    old = nn.get_num_threads()
    nn.set_num_threads(1)
    yield
    nn.set_num_threads(old)


@pytest.fixture
def switching_often() -> Iterator[None]:
    """Threads take turns fifty times as often: one that releases the GIL else waits for 5 ms each time."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def still_works() -> Iterator[None]:
    """After the test the engine does what it should."""
    import nnrs as nn
    from graph_helpers import works

    yield
    nn.memory.set_limit(None)
    works()
