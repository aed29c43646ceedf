"""What the classes of `models` ask of a network's file: the changes that they make, noted instead of made.

Runs on nnrs and on NNabla alike, whose answers tests/golden/make_models.py notes.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

IMAGENET = {
    "AlexNet": [()],
    "DenseNet": [()],
    "GoogLeNet": [()],
    "InceptionV3": [()],
    "MobileNet": [()],
    "MobileNetV2": [()],
    "NIN": [()],
    "ResNet": [(), (18,), (34,), (152,)],
    "ResNet101": [()],
    "ResNeXt": [(), (101,)],
    "ResNeXt50": [()],
    "SENet": [()],
    "ShuffleNet": [(), (5,), (20,)],
    "ShuffleNet05": [()],
    "SqueezeNet": [(), ("v1.0",)],
    "SqueezeNetV11": [()],
    "VGG": [(), (13,), (16,)],
    "VGG16": [()],
    "Xception": [()],
}
CALLS: list[dict[str, Any]] = [
    {},
    {"training": True},
    {"force_global_pooling": True},
    {"check_global_pooling": False, "training": True},
    {"use_up_to": "pool"},
]


class Pass:
    """Notes what it is asked for, in place of NnpNetworkPass."""

    def __init__(self, verbose: int = 0) -> None:
        self.notes: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def note(*args: Any, **kwargs: Any) -> Any:
            shown = [a for a in args if isinstance(a, (str, bool))]
            for a in shown if name in ("drop_function", "use_up_to") else [shown]:
                self.notes.append(f"{name} {a} {kwargs or ''}".strip())
            return lambda f: f

        return note


class Loader:
    """Takes the place of a file."""

    def __init__(self, notes: list[Any]) -> None:
        self.notes = notes

    def get_network(self, name: str, batch_size: int, callback: Pass) -> Any:
        self.notes.append([name, batch_size, sorted(callback.notes)])
        return SimpleNamespace(outputs={"y": "first", "z": "second"})


def imagenet(module: str, prepare: Any) -> dict[str, Any]:
    """All networks for ImageNet, made and called in several ways. `prepare(notes)` lets files be noted, not loaded."""
    nn, models = importlib.import_module(module), importlib.import_module(f"{module}.models.imagenet")
    found: dict[str, Any] = {}
    for name, makes in IMAGENET.items():
        for args in makes:
            notes: list[Any] = []
            prepare(notes)
            network = getattr(models, name)(*args)
            network.nnp = Loader(notes)
            calls = CALLS
            if name in ("GoogLeNet", "InceptionV3"):
                calls = [*CALLS, {"with_aux_tower": True, "training": True}]
            for call in calls:
                network(nn.Variable((5, *network.input_shape)), **call)
            found[f"{name}{args}"] = [list(network.input_shape), *notes]
    return found
