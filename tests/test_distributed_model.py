"""The figures on paper in docs/distributed.md are those of tools/distributed_model.py, which computes what it says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def module():
    spec = importlib.util.spec_from_file_location("distributed_model", ROOT / "tools" / "distributed_model.py")
    assert spec is not None and spec.loader is not None
    found = sys.modules["distributed_model"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


model = module()
LINK = model.Link("a link", 0.5, 100.0)  # half a second, 100 bytes a second


def test_the_page_shows_the_figures():
    text = model.PAGE.read_text(encoding="utf-8")
    assert model.BEGIN + model.section() + model.END in text, "python tools/distributed_model.py --write"
    assert model.page(text) == text
    assert all(f"| {ranks:,} |" in text for ranks in (8, 16, 32, 64, 128, 256, 512, 1024))


@pytest.mark.parametrize("ranks", [2, 8, 1024])
def test_a_ring_is_its_messages_one_after_the_other(ranks):
    messages = [LINK.seconds(800 / ranks) for _ in range(2 * (ranks - 1))]
    assert sum(model.ring(LINK, ranks, 800)) == pytest.approx(sum(messages))


def test_a_tree_grows_with_the_logarithm():
    latency = [model.tree(LINK, ranks, 800)[0] for ranks in (2, 4, 8, 1024)]
    assert latency == pytest.approx([2 * depth * LINK.seconds(400) for depth in (1, 2, 3, 10)])
    assert {model.tree(LINK, ranks, 800)[1] for ranks in (2, 1024)} == {16.0}


def alone(link, ranks, size):
    return 0.0, size / link.bandwidth


@pytest.mark.parametrize(
    "backward, during",
    [
        (100.0, 1 + 100.0 + 1.0),  # only the last pack is left: 100 bytes
        (4.0, 1 + 1.0 + 4 * 1.0),  # each pack is as long as the part of backward that makes the next
        (2.0, 1 + 0.5 + 4 * 1.0),  # links are busy from the first pack on
    ],
)
def test_backward_hides_all_but_what_is_left(backward, during):
    step = model.Step("a step", 400.0, 1.0, backward, 4)
    assert model.step_seconds(step, LINK, 8, alone) == pytest.approx((1 + backward + 4.0, during))
