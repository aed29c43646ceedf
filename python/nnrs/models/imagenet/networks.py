"""The networks for ImageNet. `path` is a `.nnp` file; without one it is fetched from NNabla's server, once.

Here a small network under the names of the trained one's layers stands for its file:

>>> import tempfile, nnrs as nn, nnrs.functions as F, nnrs.parametric_functions as PF
>>> from nnrs.utils.save import save
>>> x = nn.Variable((1, 3, 224, 224))
>>> h = F.average_pooling(x, (224, 224))
>>> small = {"name": "Training", "batch_size": 1, "names": {"InputX": x, "AveragePooling": h}}
>>> with tempfile.TemporaryDirectory() as folder:
...     save(f"{folder}/small.nnp", {"networks": [{**small, "outputs": {"Affine": PF.affine(h, 1000)}}]})
...     resnet = ResNet18(path=f"{folder}/small.nnp")
>>> resnet(nn.Variable((8, 3, 224, 224))).shape, resnet(use_up_to="pool").shape
((8, 1000), (1, 3, 1, 1))
"""

from __future__ import annotations

import os
from typing import Any

from ..._errors import ArgumentError, message
from .base import ImageNetBase

Path = str | os.PathLike[str] | None


def _one_of(network: str, argument: str, value: Any, known: tuple[Any, ...]) -> None:
    if value not in known:
        raise ArgumentError(message(network, argument, f"one of {known}", repr(value)))


class AlexNet(ImageNetBase):
    """AlexNet (Krizhevsky et al., 2012)."""

    _KEY_VARIABLE = {
        "classifier": "TrainNet/Affine_3",
        "pool": "TrainNet/MaxPooling_3",
        "lastconv": "TrainNet/Convolution_5",
        "lastconv+relu": "TrainNet/ReLU_5",
        "lastfeature": "TrainNet/Affine_2",
    }
    _input, _size = "TrainingInput", 227
    _dropouts = ("TrainNet/Dropout", "TrainNet/Dropout_2")

    def __init__(self, *, path: Path = None) -> None:
        self._load_nnp("AlexNet.nnp", "AlexNet/AlexNet.nnp", path)


class DenseNet(ImageNetBase):
    """DenseNet with 161 layers (Huang et al., 2017)."""

    _KEY_VARIABLE = {
        "classifier": "DenseNet/Affine",
        "pool": "DenseNet/AveragePooling_4",
        "lastconv": "DenseNet/BatchNormalization_5",
        "lastconv+relu": "DenseNet/ReLU_5",
    }
    _name, _pooling = "Train", "DenseNet/AveragePooling_4"

    def __init__(self, *, path: Path = None) -> None:
        self._load_nnp("DenseNet-161.nnp", "DenseNet-161/DenseNet-161.nnp", path)


class MobileNet(ImageNetBase):
    """MobileNet (Howard et al., 2017)."""

    _KEY_VARIABLE = {
        "classifier": "Affine",
        "pool": "AveragePooling",
        "lastconv": "BatchNormalization_19",
        "lastconv+relu": "ReLU_19",
    }
    _pooling = "AveragePooling"

    def __init__(self, *, path: Path = None) -> None:
        self._load_nnp("MobileNet.nnp", "MobileNet/MobileNet.nnp", path)


class MobileNetV2(ImageNetBase):
    """MobileNet, second version (Sandler et al., 2018)."""

    _KEY_VARIABLE = {
        "classifier": "Reshape",
        "pool": "AveragePooling",
        "lastconv": "BatchNormalization_2",
        "lastconv+relu": "ReLU_2",
    }
    _input, _removed, _pooling = "ImageAugmentationX", (), "AveragePooling"

    def __init__(self, *, path: Path = None) -> None:
        self._load_nnp("MobileNet-v2.nnp", "MobileNet-v2/MobileNet-v2.nnp", path)

    def _changes(self, *args: Any) -> Any:
        callback = super()._changes(*args)
        callback.drop_function("ImageAugmentationX")  # its output is the variable for images
        return callback


class NIN(ImageNetBase):
    """Network in network (Lin et al., 2014)."""

    _KEY_VARIABLE = {
        "classifier": "NIN/Reshape",
        "pool": "NIN/AveragePooling",
        "lastconv": "NIN/Convolution_3",
        "lastconv+relu": "NIN/ReLU_3",
    }
    _input, _size, _pooling, _dropouts = "TrainingInput", 227, "NIN/AveragePooling", ("NIN/Dropout",)

    def __init__(self, *, path: Path = None) -> None:
        self._load_nnp("NIN.nnp", "NIN/NIN.nnp", path)


class ResNet(ImageNetBase):
    """Residual network (He et al., 2016).

    Args:
        num_layers: 18, 34, 50, 101 or 152.
        path: File to load.
    """

    _KEY_VARIABLE = {
        "classifier": "Affine",
        "pool": "AveragePooling",
        "lastconv": "Add2_7_RepeatStart_4[{index}]",
        "lastconv+relu": "ReLU_25_RepeatStart_4[{index}]",
    }
    _pooling = "AveragePooling"

    def __init__(self, num_layers: int = 18, *, path: Path = None) -> None:
        _one_of("ResNet", "num_layers", num_layers, (18, 34, 50, 101, 152))
        self.num_layers = num_layers
        self._load_nnp(f"Resnet-{num_layers}.nnp", f"Resnet-{num_layers}/Resnet-{num_layers}.nnp", path)

    def _format(self) -> dict[str, Any]:
        return {"index": 0 if self.num_layers == 18 else 1}


class ResNet18(ResNet):
    """`ResNet` with 18 layers."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(18, path=path)


class ResNet34(ResNet):
    """`ResNet` with 34 layers."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(34, path=path)


class ResNet50(ResNet):
    """`ResNet` with 50 layers."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(50, path=path)


class ResNet101(ResNet):
    """`ResNet` with 101 layers."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(101, path=path)


class ResNet152(ResNet):
    """`ResNet` with 152 layers."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(152, path=path)


class ResNeXt(ImageNetBase):
    """Residual network of grouped convolutions (Xie et al., 2017).

    Args:
        num_layers: 50 or 101.
        path: File to load.
    """

    _KEY_VARIABLE = {
        "classifier": "Affine",
        "pool": "AveragePooling",
        "lastconv": "Add2_7_RepeatStart_4[1]",
        "lastconv+relu": "ReLU_25_RepeatStart_4[1]",
    }
    _pooling = "AveragePooling"

    def __init__(self, num_layers: int = 50, *, path: Path = None) -> None:
        _one_of("ResNeXt", "num_layers", num_layers, (50, 101))
        self.num_layers = num_layers
        self._load_nnp(f"ResNeXt-{num_layers}.nnp", f"ResNeXt-{num_layers}/ResNeXt-{num_layers}.nnp", path)


class ResNeXt50(ResNeXt):
    """`ResNeXt` with 50 layers."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(50, path=path)


class ResNeXt101(ResNeXt):
    """`ResNeXt` with 101 layers."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(101, path=path)


class SENet(ImageNetBase):
    """Squeeze-and-excitation network with 154 layers (Hu et al., 2018)."""

    _KEY_VARIABLE = ResNeXt._KEY_VARIABLE
    _pooling, _pooling_by_type, _dropouts = "AveragePooling", True, ("Dropout",)

    def __init__(self, *, path: Path = None) -> None:
        self._load_nnp("SENet-154.nnp", "SENet-154/SENet-154.nnp", path)


class ShuffleNet(ImageNetBase):
    """ShuffleNet (Zhang et al., 2018).

    Args:
        scaling_factor: Tenths of the usual number of channels: 5, 10 or 20.
        path: File to load.
    """

    _KEY_VARIABLE = {
        "classifier": "Affine",
        "pool": "AveragePooling",
        "lastconv": "Add2_3_RepeatStart_3[2]",
        "lastconv+relu": "ReLU_8_RepeatStart_3[2]",
    }
    _pooling = "AveragePooling"
    _FILES = {
        5: ("ShuffleNet-.05x.nnp", "ShuffleNet-0.5x/ShuffleNet-0.5x.nnp"),
        10: ("ShuffleNet.nnp", "ShuffleNet/ShuffleNet.nnp"),
        20: ("ShuffleNet-2.0x.nnp", "ShuffleNet-2.0x/ShuffleNet-2.0x.nnp"),
    }

    def __init__(self, scaling_factor: int = 10, *, path: Path = None) -> None:
        _one_of("ShuffleNet", "scaling_factor", scaling_factor, tuple(self._FILES))
        self.scaling_factor = scaling_factor
        self._load_nnp(*self._FILES[scaling_factor], path)


class ShuffleNet10(ShuffleNet):
    """`ShuffleNet` with the usual number of channels."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(10, path=path)


class ShuffleNet05(ShuffleNet):
    """`ShuffleNet` with half of the channels."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(5, path=path)


class ShuffleNet20(ShuffleNet):
    """`ShuffleNet` with twice the channels."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(20, path=path)


class SqueezeNet(ImageNetBase):
    """SqueezeNet (Iandola et al., 2016).

    Args:
        version: "v1.0" or "v1.1".
        path: File to load.
    """

    _KEY_VARIABLE = {
        "classifier": "{prefix}Reshape",
        "pool": "{prefix}AveragePooling",
        "lastconv": "{prefix}Convolution_2",
        "lastconv+relu": "{prefix}ReLU_2",
    }
    _input, _size = "TrainingInput", 227
    _pooling, _dropouts = "{prefix}AveragePooling", ("{prefix}Dropout",)

    def __init__(self, version: str = "v1.1", *, path: Path = None) -> None:
        _one_of("SqueezeNet", "version", version, ("v1.0", "v1.1"))
        self.version = version
        name = f"SqueezeNet-{version[1:]}"
        self._load_nnp(f"{name}.nnp", f"{name}/{name}.nnp", path)

    def _format(self) -> dict[str, Any]:
        return {"prefix": "SqueezeNet/" if self.version == "v1.1" else ""}


class SqueezeNetV10(SqueezeNet):
    """`SqueezeNet`, version 1.0."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__("v1.0", path=path)


class SqueezeNetV11(SqueezeNet):
    """`SqueezeNet`, version 1.1."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__("v1.1", path=path)


class VGG(ImageNetBase):
    """VGG (Simonyan and Zisserman, 2015).

    Args:
        num_layers: 11, 13 or 16.
        path: File to load.
    """

    _KEY_VARIABLE = {
        "classifier": "VGG{layers}/Affine_3",
        "pool": "VGG{layers}/MaxPooling_5",
        "lastconv": "VGG{layers}/Convolution_{last}",
        "lastconv+relu": "VGG{layers}/ReLU_{last}",
        "lastfeature": "VGG{layers}/Affine_2",
    }
    _input, _dropouts = "TrainingInput", ("VGG{layers}/Dropout_1", "VGG{layers}/Dropout_2")

    def __init__(self, num_layers: int = 11, *, path: Path = None) -> None:
        _one_of("VGG", "num_layers", num_layers, (11, 13, 16))
        self.num_layers = num_layers
        self._load_nnp(f"VGG-{num_layers}.nnp", f"VGG-{num_layers}/VGG-{num_layers}.nnp", path)

    def _format(self) -> dict[str, Any]:
        return {"layers": self.num_layers, "last": 13 if self.num_layers == 16 else 12}


class VGG11(VGG):
    """`VGG` with 11 layers."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(11, path=path)


class VGG13(VGG):
    """`VGG` with 13 layers."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(13, path=path)


class VGG16(VGG):
    """`VGG` with 16 layers."""

    def __init__(self, *, path: Path = None) -> None:
        super().__init__(16, path=path)


class Xception(ImageNetBase):
    """Xception (Chollet, 2017)."""

    _KEY_VARIABLE = {
        "classifier": "Unit/Affine",
        "pool": "Unit/AveragePooling",
        "lastconv": "Unit/SeparableConv_13/SepConvBN",
        "lastconv+relu": "Unit/ReLU_14",
    }
    _size, _removed, _pooling, _dropouts = 299, ("ImageAugmentation",), "Unit/AveragePooling", ("Unit/Dropout",)

    def __init__(self, *, path: Path = None) -> None:
        self._load_nnp("Xception.nnp", "Xception/Xception.nnp", path)
