"""Networks that tell the 1,000 classes of ImageNet (Russakovsky et al., 2015) apart.

>>> from nnrs.models import imagenet
>>> imagenet.ResNet50._KEY_VARIABLE["pool"]
'AveragePooling'
"""

from __future__ import annotations

from .networks import (
    NIN,
    VGG,
    VGG11,
    VGG13,
    VGG16,
    AlexNet,
    DenseNet,
    MobileNet,
    MobileNetV2,
    ResNet,
    ResNet18,
    ResNet34,
    ResNet50,
    ResNet101,
    ResNet152,
    ResNeXt,
    ResNeXt50,
    ResNeXt101,
    SENet,
    ShuffleNet,
    ShuffleNet05,
    ShuffleNet10,
    ShuffleNet20,
    SqueezeNet,
    SqueezeNetV10,
    SqueezeNetV11,
    Xception,
)
from .towers import GoogLeNet, InceptionV3

__all__ = [
    "NIN",
    "VGG",
    "VGG11",
    "VGG13",
    "VGG16",
    "AlexNet",
    "DenseNet",
    "GoogLeNet",
    "InceptionV3",
    "MobileNet",
    "MobileNetV2",
    "ResNeXt",
    "ResNeXt50",
    "ResNeXt101",
    "ResNet",
    "ResNet18",
    "ResNet34",
    "ResNet50",
    "ResNet101",
    "ResNet152",
    "SENet",
    "ShuffleNet",
    "ShuffleNet05",
    "ShuffleNet10",
    "ShuffleNet20",
    "SqueezeNet",
    "SqueezeNetV10",
    "SqueezeNetV11",
    "Xception",
]
