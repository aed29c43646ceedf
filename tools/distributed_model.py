"""Data-parallel training on paper: what 8 to 1,024 ranks wait for each other.

    python tools/distributed_model.py            # prints the tables of docs/distributed.md
    python tools/distributed_model.py --write    # puts them into the page

A message of n bytes to one neighbour takes `latency + n / bandwidth` seconds. Of that are made:

- a ring: reduce-scatter and all-gather, 2 (p - 1) messages of n / p bytes, one after the other. nnrs's sums in the
  order of ranks, each rank a part of them, are as many messages of that size;
- a tree: two binary trees, each for half of the bytes in chunks, up and down: 2 log2(p) chunks until the last rank
  has the first one, behind it 2 n bytes through each link;
- backward: gradients become final evenly over it, the last layer's first. They are reduced in packs of equal size, one
  after the other, while backward goes on. A step waits for what is left at its end.

Not in it: ranks that are slower than others, links that are shared, the arithmetic of the sums, the input.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "distributed.md"
RANKS = tuple(8 * 2**i for i in range(8))
CHUNK = 128 * 1024  # bytes
SMALL = 40_000  # bytes: batch normalization's statistics, a loss, a few biases


@dataclass(frozen=True)
class Link:
    """What joins two ranks."""

    name: str
    latency: float  # seconds
    bandwidth: float  # bytes per second

    def seconds(self, size: float) -> float:
        return self.latency + size / self.bandwidth


@dataclass(frozen=True)
class Step:
    """One step of a rank, which has a batch of its own size however many ranks there are."""

    name: str
    gradients: float  # bytes
    forward: float  # seconds, update included
    backward: float
    packs: int  # in which the gradients are reduced


ETHERNET = Link("10 Gbit/s Ethernet", 25e-6, 1.1e9)
INFINIBAND = Link("200 Gbit/s InfiniBand", 3e-6, 22e9)
# ResNet-18 has 11,689,512 parameters; packs of about 2 million numbers (8 MB), as in NNabla's examples.
ON_CPU = Step("ResNet-18, 16 images a rank, on a few cores", 4 * 11_689_512, 0.5, 1.0, 6)
ON_GPU = Step("ResNet-18, 256 images a rank, on a GPU", 4 * 11_689_512, 0.025, 0.05, 6)

AllReduce = Callable[[Link, int, float], tuple[float, float]]


def ring(link: Link, ranks: int, size: float) -> tuple[float, float]:
    """Seconds that are latency, and seconds that are bandwidth."""
    return 2 * (ranks - 1) * link.latency, 2 * (ranks - 1) / ranks * size / link.bandwidth


def tree(link: Link, ranks: int, size: float) -> tuple[float, float]:
    """The same for a pair of binary trees."""
    chunk = min(CHUNK, size / 2)
    return 2 * math.ceil(math.log2(ranks)) * link.seconds(chunk), 2 * size / link.bandwidth


def step_seconds(step: Step, link: Link, ranks: int, how: AllReduce) -> tuple[float, float]:
    """Of a step that reduces behind backward, all at once, and of one that does during backward, in packs."""
    alone = step.forward + step.backward
    behind = alone + sum(how(link, ranks, step.gradients))
    one = sum(how(link, ranks, step.gradients / step.packs))
    free = 0.0  # when the pack before is through
    for pack in range(1, step.packs + 1):
        free = max(free, step.backward * pack / step.packs) + one
    return behind, step.forward + max(free, step.backward)


def all_reduce_table(link: Link, size: float) -> list[str]:
    """Milliseconds of one reduction of all gradients."""
    rows = [
        f"| ranks | ring: latency | + bandwidth | tree: latency | + bandwidth | {SMALL // 1000} KB by ring | by tree |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for ranks in RANKS:
        times = [*ring(link, ranks, size), *tree(link, ranks, size)]
        times += [sum(ring(link, ranks, SMALL)), sum(tree(link, ranks, SMALL))]
        rows.append(f"| {ranks:,} | " + " | ".join(milliseconds(t) for t in times) + " |")
    return rows


def step_table(step: Step, link: Link) -> list[str]:
    """Milliseconds of a step, and the share of it that one rank alone would take."""
    rows = [
        "| ranks | ring, behind backward | ring, during it | tree, behind | tree, during | efficiency of the best |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    alone = step.forward + step.backward
    for ranks in RANKS:
        times = [t for how in (ring, tree) for t in step_seconds(step, link, ranks, how)]
        shown = " | ".join(milliseconds(t) for t in times)
        rows.append(f"| {ranks:,} | {shown} | {alone / min(times):.0%} |")
    return rows


def milliseconds(seconds: float) -> str:
    digits = 2 if seconds < 0.01 else 1 if seconds < 0.1 else 0
    return f"{seconds * 1e3:,.{digits}f}"


def section() -> str:
    """The tables, as they stand in the page."""
    lines = []
    for link in (ETHERNET, INFINIBAND):
        size = f"{ON_CPU.gradients / 1e6:.0f} MB"
        lines += [f"Milliseconds of one reduction of {size} over {link.name} ({_of(link)}):", ""]
        lines += [*all_reduce_table(link, ON_CPU.gradients), ""]
    for step, link in ((ON_CPU, ETHERNET), (ON_GPU, ETHERNET), (ON_GPU, INFINIBAND)):
        alone = f"{(step.forward + step.backward) * 1e3:,.0f} alone, {step.backward * 1e3:,.0f} of them backward"
        lines += [f"Milliseconds of a step of {step.name}", f"({alone}), over {link.name}, in {step.packs} packs:", ""]
        lines += [*step_table(step, link), ""]
    return "\n".join(lines).rstrip() + "\n"


def _of(link: Link) -> str:
    return f"{link.latency * 1e6:.0f} µs, {link.bandwidth / 1e9:g} GB/s"


BEGIN, END = "<!-- tools/distributed_model.py -->\n", "<!-- end -->\n"


def page(text: str) -> str:
    """The page with the tables as they are now."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{section()}{END}{tail}"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(section(), end="")
