"""What the networks for ImageNet share: how each is described, and how its graph is made.

>>> network = ImageNetBase()
>>> network.input_shape, len(network.category_names), network.category_names[0]
((3, 224, 224), 1000, 'tench, Tinca tinca')
"""

from __future__ import annotations

from importlib import resources
from typing import Any, ClassVar

from ..._borrowed import borrower
from ..._core import Variable
from .._pretrained import PretrainedNetwork, first_output


class ImageNetBase(PretrainedNetwork):
    """A network for ImageNet.

    Call it to make its graph; see `__call__`.
    """

    _folder = "imagenet"
    # The network of the file that is used, and its variable for images.
    _name: ClassVar[str] = "Training"
    _input: ClassVar[str] = "InputX"
    _size: ClassVar[int] = 224
    # Functions that are there for training: those that always go, and those that stay while training.
    _removed: ClassVar[tuple[str, ...]] = ("ImageAugmentationX",)
    _dropouts: ClassVar[tuple[str, ...]] = ()
    # The pooling over all of the image.
    _pooling: ClassVar[str | None] = None
    _pooling_by_type: ClassVar[bool] = False

    @property
    def category_names(self) -> list[str]:
        """The names of the classes, in the order of the outputs."""
        return resources.files(__package__).joinpath("category_names.txt").read_text(encoding="utf-8").splitlines()

    def _input_shape(self) -> tuple[int, int, int]:
        return 3, self._size, self._size

    def _format(self) -> dict[str, Any]:
        """What stands for the fields in names of functions and variables."""
        return {}

    def configure_global_average_pooling(
        self, callback: Any, force_global_pooling: bool, check_global_pooling: bool, name: str, by_type: bool = False
    ) -> None:
        """Let the pooling of that name, or type, cover the whole image, or check that it does."""
        if force_global_pooling:
            callback.force_average_pooling_global(name, by_type=by_type)
        elif check_global_pooling:
            callback.check_average_pooling_global(name, by_type=by_type)

    def __call__(
        self,
        input_var: Variable | None = None,
        use_from: Any = None,
        use_up_to: str = "classifier",
        training: bool = False,
        force_global_pooling: bool = False,
        check_global_pooling: bool = True,
        returns_net: bool = False,
        verbose: int = 0,
    ) -> Any:
        """The graph of the network.

        Args:
            input_var: Images (batch, 3, height, width), values from 0 to 255; None: a new variable for one image.
            use_from: None.
            use_up_to: Where the graph ends: "classifier" (before the softmax), "pool", "lastconv", "lastconv+relu" and
                others, by network.
            training: Batch normalization by the batch's statistics, dropout, parameters that are trained.
            force_global_pooling: Let the last pooling cover whatever is left of the image, for images of other sizes.
            check_global_pooling: Raise where it does not.
            returns_net: Return the `NnpNetwork`.
            verbose: 1 prints how the network of the file is changed, 2 more.

        Returns:
            The output Variable, or the `NnpNetwork`.

        Raises:
            ValueError: `input_var` has another shape, there is no such place to end, or the last pooling does not fit.
        """
        input_var = self.get_input_var(input_var)
        callback = self._changes(input_var, use_from, training, (force_global_pooling, check_global_pooling), verbose)
        self.use_up_to(use_up_to, callback, **self._format())
        net = self._network(self._name, input_var, callback)
        return net if returns_net else first_output(net)

    def _changes(
        self, input_var: Variable, use_from: Any, training: bool, pooling: tuple[bool, bool], verbose: int
    ) -> Any:
        callback = self._pass(input_var, self._input, use_from, training, verbose)
        for name in (*self._removed, *(() if training else self._dropouts)):
            callback.remove_and_rewire(name.format(**self._format()))
        if self._pooling is not None:
            name = self._pooling.format(**self._format())
            self.configure_global_average_pooling(callback, *pooling, name, by_type=self._pooling_by_type)
        return callback


__getattr__ = borrower(__name__)
