"""Trains with NNabla's quantization-aware training, and writes qnn.json for the tests.

python tests/golden/make_qnn.py     # with nnabla 1.39
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import nnabla_ext  # noqa: E402

# NNabla empties the memory cache of its CUDA extension, whether that is there or not.
nnabla_ext.cuda = types.SimpleNamespace(clear_memory_cache=lambda: None)

import nnabla.utils.qnn  # noqa: E402

import quantized_training  # noqa: E402

if __name__ == "__main__":
    found = {
        name: quantized_training.train("nnabla", config)
        for name, config in quantized_training.configs(nnabla.utils.qnn).items()
    }
    Path(__file__).with_name("qnn.json").write_text(json.dumps(found, indent=1) + "\n")
