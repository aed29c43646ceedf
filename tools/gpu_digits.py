"""examples/digits.py without scikit-learn, matplotlib, tqdm and h5py: the same images from digits.bin, the same
training and evaluation, no pictures and no file of parameters. For machines that lack the packages (`make gpu-check`).

    python tools/gpu_digits.py --context cudnn --at-least 0.98
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import TracebackType
from unittest.mock import MagicMock

import numpy as np

EXAMPLES = Path(__file__).parent.parent / "examples"
TRAINING = 1437
MISSING = ["matplotlib", "matplotlib.pyplot", "sklearn", "sklearn.datasets", "sklearn.model_selection", "tqdm"]


class Progress:
    """What the example asks of tqdm."""

    def __init__(self, steps: range, unit: str) -> None:
        self.steps, self.text = steps, ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        print(self.text)

    def __iter__(self):
        return iter(self.steps)

    def set_postfix_str(self, text: str) -> None:
        self.text = text


def load_data() -> tuple[np.ndarray, ...]:
    """The images of the example, in its split (see examples/make_digits.py)."""
    records = np.frombuffer((EXAMPLES / "digits.bin").read_bytes(), np.uint8).reshape(-1, 65)
    x = (records[:, :64].reshape(-1, 1, 8, 8) / 16).astype(np.float32)
    y = records[:, 64:].astype(np.int64)
    return x[:TRAINING], y[:TRAINING], x[TRAINING:], y[TRAINING:]


def main() -> None:
    sys.modules |= {name: MagicMock() for name in MISSING}
    sys.modules["tqdm"].tqdm = Progress
    sys.path.insert(0, str(EXAMPLES))
    import digits

    import nnrs as nn
    from nnrs.ext_utils import get_extension_context

    args = digits.parse_arguments()
    nn.set_default_context(get_extension_context(args.context))
    nn.seed(args.seed)
    data = load_data()
    network, _ = digits.train(args, data)
    loss, accuracy, _ = digits.evaluate(network, *data[2:])
    print(f"held-out accuracy: {accuracy:.2%} of {len(data[2])} images, from digits.bin")
    print(digits.result_line(loss, accuracy))
    if accuracy < args.at_least:
        sys.exit(f"held-out accuracy {accuracy:.2%} is below {args.at_least:.2%}")


if __name__ == "__main__":
    main()
