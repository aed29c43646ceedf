"""The networks for ImageNet with further classifiers at their sides.

>>> import tempfile, nnrs as nn, nnrs.functions as F
>>> from nnrs.utils.save import save
>>> x = nn.Variable((1, 3, 224, 224))
>>> outputs = {"AveragePooling_3": F.average_pooling(x, (224, 224))}
>>> small = {"name": "Train", "batch_size": 1, "outputs": outputs, "names": {"InputX": x}}
>>> with tempfile.TemporaryDirectory() as folder:
...     save(f"{folder}/small.nnp", {"networks": [small]})  # stands for the trained network
...     GoogLeNet(path=f"{folder}/small.nnp")(use_up_to="pool").shape
(1, 3, 1, 1)
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..._core import Variable
from ..._errors import ArgumentError, message
from .._pretrained import first_output
from .base import ImageNetBase
from .networks import Path


class AuxiliaryTowers(ImageNetBase):
    """A network with further classifiers at its side, for training."""

    # For each tower: where it ends, where it begins, and its functions, which go with it. Of a tower that is used the
    # last `_losses` functions go.
    _towers: ClassVar[tuple[tuple[str, str, tuple[str, ...]], ...]] = ()
    _losses: ClassVar[int] = 3

    def __call__(  # type: ignore[override]
        self,
        input_var: Variable | None = None,
        use_from: Any = None,
        use_up_to: str = "classifier",
        training: bool = False,
        force_global_pooling: bool = False,
        check_global_pooling: bool = True,
        returns_net: bool = False,
        verbose: int = 0,
        with_aux_tower: bool = False,
    ) -> Any:
        """The graph of the network; see `ImageNetBase`.

        Args:
            input_var: Images (batch, 3, height, width), values from 0 to 255; None: a new variable for one image.
            use_from: None.
            use_up_to: Where the graph ends: "classifier", "pool" or "prepool".
            training: Batch normalization by the batch's statistics, dropout, parameters that are trained.
            force_global_pooling: Let the last pooling cover whatever is left of the image.
            check_global_pooling: Raise where it does not.
            returns_net: Return the `NnpNetwork`.
            verbose: 1 prints how the network of the file is changed, 2 more.
            with_aux_tower: Return the outputs of the classifiers at the side, too; for training.

        Returns:
            The output Variable, a list of all outputs, or the `NnpNetwork`.
        """
        if with_aux_tower and not training:
            raise ArgumentError(message(type(self).__name__, "with_aux_tower", "False unless training", True))
        input_var = self.get_input_var(input_var)
        pooling = (force_global_pooling, check_global_pooling)
        callback = self._changes(input_var, use_from, training, pooling, verbose)
        for end, beginning, functions in self._towers:
            self.use_up_to(end if with_aux_tower else beginning, callback)
            callback.drop_function(*(functions[-self._losses :] if with_aux_tower else functions))
        self.use_up_to(use_up_to, callback)
        net = self._network(self._name, input_var, callback)
        if returns_net:
            return net
        return list(net.outputs.values()) if with_aux_tower else first_output(net)


class GoogLeNet(AuxiliaryTowers):
    """GoogLeNet (Szegedy et al., 2015)."""

    _KEY_VARIABLE = {
        "classifier": "Affine_5",
        "pool": "AveragePooling_3",
        "prepool": "Concatenate_9",
        "_aux_classifier_1": "Affine_2",
        "_branching_point_1": "AveragePooling",
        "_aux_classifier_2": "Affine_4",
        "_branching_point_2": "AveragePooling_2",
    }
    _name, _pooling, _dropouts = "Train", "AveragePooling_3", ("Dropout_3",)
    _towers = (
        (
            "_aux_classifier_1",
            "_branching_point_1",
            (
                "AveragePooling",
                "Convolution_22",
                "ReLU_22",
                "Affine",
                "ReLU_23",
                "Dropout",
                "Affine_2",
                "SoftmaxCrossEntropy",
                "MulScalarLoss1",
            ),
        ),
        (
            "_aux_classifier_2",
            "_branching_point_2",
            (
                "AveragePooling_2",
                "Convolution_41",
                "ReLU_42",
                "Affine_3",
                "ReLU_43",
                "Dropout_2",
                "Affine_4",
                "SoftmaxCrossEntropy_2",
                "MulScalarLoss2",
            ),
        ),
    )

    def __init__(self, *, path: Path = None) -> None:
        self._load_nnp("GoogLeNet.nnp", "GoogLeNet/GoogLeNet.nnp", path)


class InceptionV3(AuxiliaryTowers):
    """Inception, third version (Szegedy et al., 2016)."""

    _KEY_VARIABLE = {
        "classifier": "Affine",
        "pool": "AveragePooling_2",
        "prepool": "Inception_11/Concatenate",
        "_aux_classifier": "Affine_2",
        "_include_no_aux": "Conv_6/Convolution",
    }
    _name, _input, _size, _removed = "Train", "Iv3TrainInput", 299, ("ImageAugmentation",)
    _pooling, _dropouts = "AveragePooling_2", ("Dropout",)
    _towers = (
        (
            "_aux_classifier",
            "_include_no_aux",
            (
                "Conv_6/Convolution",
                "Conv_6/BatchNormalization",
                "Conv_6/ReLU",
                "AveragePooling",
                "Conv_7/Convolution",
                "Conv_7/BatchNormalization",
                "Conv_7/ReLU",
                "Affine_2",
                "SoftmaxCrossEntropy_2",
                "MulScalar_2",
            ),
        ),
    )

    def __init__(self, *, path: Path = None) -> None:
        self._load_nnp("Inception-v3.nnp", "Inception-v3/Inception-v3.nnp", path)
