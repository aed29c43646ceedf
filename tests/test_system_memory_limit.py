"""No memory for the graph itself, under a limit of the system: a MemoryError, after which all goes on."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.host, pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS and /proc")]

MADE = {
    "chain": "F.sin(kept[-1] if kept else nn.Variable((1,)))",
    "Variable": "nn.Variable((1,))",
    "data": "nn.Variable.from_numpy_array([1.0])",
    "NdArray": "nn.NdArray((1,))",
    "Context": "nn.Context(['cpu:float'])",
    "solver": "trained()",
    "rows": "list(nn.Variable((30_000_000,)))",
}

BEGIN = """
import resource, nnrs as nn, nnrs.functions as F, nnrs.solvers as S

def trained():
    solver = S.Adam()
    solver.set_parameters({"w": nn.Variable((1,), need_grad=True)})
    return solver

def limit(more):
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (more << 20),) * 2)
"""


def run(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + code], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout) == (0, "MemoryError\n"), done.stderr[-2000:]


@pytest.mark.parametrize("what", MADE)
def test_more_and_more_objects(what):
    run(f"""
limit(100)
kept = []
try:
    while True:
        kept.append({MADE[what]})
except MemoryError:
    print("MemoryError")
del kept
y = F.sin(nn.Variable.from_numpy_array([1.0]))
y.forward()
assert abs(y.d[0] - 0.841471) < 1e-6
""")


@pytest.mark.parametrize("what", ["forward", "backward"])
def test_a_plan_of_a_large_graph(what):
    run(f"""
x = y = nn.Variable((1,), need_grad=True)
for _ in range(100_000):
    y = F.sin(y)
x.d, x.g = 1, 0
if {what!r} == "backward":
    y.forward()
limit(20)
try:
    y.{what}()
except MemoryError:
    print("MemoryError")
""")
