"""What is cleared, held against what NNabla 1.39 cleared in the same 400 graphs (golden/make_clear_flags.py).

nnrs may clear more than NNabla, never less, but for what needs a gradient and is held, which `clear_no_need_grad`
leaves. Alone-running functions clear at least the same arrays; fused ones, which compute intermediates again in
backward, may keep others, but no more of them. Not compared are outputs that nothing behind the root reads, which
NNabla clears with the memory that they share.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import nnrs as nn
import nnrs.functions as F

GOLDEN = Path(__file__).parent / "golden"
sys.path.insert(0, str(GOLDEN))
import make_clear_flags  # noqa: E402

# NNabla clears what the function of a variable that is marked `recompute` will read in backward; nnrs keeps it.
WRONG_IN_NNABLA = {165}
GRAPHS = json.loads((GOLDEN / "clear_flags.json").read_text())


def compared(graph):
    """The variables whose flags are held against NNabla's."""
    steps = graph["steps"]
    behind, todo = set(), [len(steps) - 1]
    while todo:
        i = todo.pop()
        if i not in behind:
            behind.add(i)
            todo.extend(j for j in steps[i][1:] if steps[i][0] != "leaf")
    return [i for i in range(len(steps)) if i in behind]


def rows(cleared):
    return [cleared["forward"], *cleared.get("backward", [])]


def left(graph):
    """For each row what needs a gradient and is left by `clear_no_need_grad`, until backward clears it."""
    if "clear_no_need_grad" not in graph["forward"]:
        return [set()] * 3
    need = []
    for i, step in enumerate(graph["steps"]):
        own = step[1] if step[0] == "leaf" else any(need[j] for j in step[1:])
        need.append(own and ["need_grad", i] not in graph["marks"])
    needy = {i for i, n in enumerate(need) if n}
    clears = graph["clear_buffer"] and len(need) - 1 in needy
    return [needy, set() if clears else needy, set()]


def test_the_golden_file_is_of_these_graphs():
    programs = [make_clear_flags.program(seed) for seed in range(len(GRAPHS))]
    assert [{k: v for k, v in g.items() if k != "cleared"} for g in GRAPHS] == json.loads(json.dumps(programs))
    assert sum(sum(map(sum, rows(g["cleared"]))) for g in GRAPHS) > 1000


@pytest.mark.host
@pytest.mark.parametrize("start", range(0, len(GRAPHS), 50))
def test_nothing_is_cleared_later_than_in_nnabla(start, fusion):
    for number, graph in enumerate(GRAPHS[start : start + 50], start):
        if number in WRONG_IN_NNABLA:
            continue
        mine = make_clear_flags.run(nn, F, graph)
        for ours, theirs, stays in zip(rows(mine), rows(graph["cleared"]), left(graph), strict=False):
            places = [i for i in compared(graph) if i not in stays]
            ours, theirs = [ours[i] for i in places], [theirs[i] for i in places]
            enough = sum(ours) >= sum(theirs) if fusion else all(a >= b for a, b in zip(ours, theirs, strict=True))
            assert enough, f"graph {number}: variables {places}, nnrs {ours}, NNabla {theirs}\n{graph}"
