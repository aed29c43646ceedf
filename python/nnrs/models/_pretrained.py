"""What all trained networks share: their file, where it comes from, and the variable that goes in."""

from __future__ import annotations

import importlib
import os
from typing import Any, ClassVar

from .._core import Variable
from .._errors import ArgumentError, FileError, MissingFileError, ShapeError, UnsupportedError, check_type, message
from ..logger import logger
from .utils import get_model_home, get_model_url_base


class PretrainedNetwork:
    """A network in a `.nnp` file, with the weights that it was trained to."""

    _KEY_VARIABLE: ClassVar[dict[str, str]] = {}
    _folder: ClassVar[str] = ""

    nnp: Any = None
    """The file, as an `NnpLoader`."""

    @property
    def input_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the images that it was trained with."""
        return self._input_shape()

    def _input_shape(self) -> tuple[int, int, int]:
        raise NotImplementedError

    def _load_nnp(self, rel_name: str, rel_url: str, path: str | os.PathLike[str] | None = None) -> None:
        """Load `path`; without one the file of that name in the model folder, which is fetched if it is not there."""
        if path is not None and not os.path.exists(path):
            why = f"there is no file {os.fspath(path)!r}"
            raise MissingFileError(message(type(self).__name__, "path", why))
        found = os.fspath(path) if path is not None else self._fetched(rel_name, rel_url)
        logger.info("%s: loading %s", type(self).__name__, found)
        self.nnp = importlib.import_module("nnrs.utils.nnp_graph").NnpLoader(found)

    def _fetched(self, rel_name: str, rel_url: str) -> str:
        target = os.path.join(get_model_home(), self._folder, rel_name)
        if os.path.exists(target):
            return target
        url = "/".join((get_model_url_base().rstrip("/"), self._folder, rel_url))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        try:
            importlib.import_module("nnrs.utils.download").download(url, target, open_file=False)
        except OSError as error:
            why = str(error).partition("\n")[0].removeprefix("download: argument 'url': ")
            hint = f"fetch it elsewhere and put it at {target}, or give its path: {type(self).__name__}(path=...)"
            raise FileError(message(type(self).__name__, None, f"cannot fetch {url}: {why}", hint=hint)) from error
        return target

    def use_up_to(self, key: str, callback: Any, **variable_format_dict: Any) -> None:
        """Let the network end at a place.

        Args:
            key: Name of the place, one of the network's.
            callback: `NnpNetworkPass` with which the network will be made.
            variable_format_dict: What stands for the fields in the name of the variable.

        Raises:
            ValueError: The network has no such place.
        """
        if key not in self._KEY_VARIABLE:
            known = f"one of {list(self._KEY_VARIABLE)}"
            raise ArgumentError(message(type(self).__name__, "use_up_to", known, repr(key)))
        callback.use_up_to(self._KEY_VARIABLE[key].format(**variable_format_dict))

    def get_input_var(self, input_var: Variable | None) -> Variable:
        """The variable that goes in: `input_var`, or a new one for one image.

        Raises:
            ValueError: It is not (batch, 3, height, width).
        """
        if input_var is None:
            return Variable((1, *self.input_shape))
        check_type(type(self).__name__, "input_var", input_var, Variable, "a Variable")
        if input_var.ndim != 4 or input_var.shape[1] != 3:
            expected = "shape (batch, 3, height, width)"
            raise ShapeError(message(type(self).__name__, "input_var", expected, f"shape {input_var.shape}"))
        return input_var

    def _pass(self, input_var: Variable, input_name: str, use_from: Any, training: bool, verbose: int) -> Any:
        """The changes that all networks need: their input, batch statistics, parameters that stay as they are."""
        if use_from is not None:
            raise UnsupportedError(message(type(self).__name__, "use_from", "None, the only one there is", use_from))
        callback = importlib.import_module("nnrs.utils.nnp_graph").NnpNetworkPass(verbose)
        callback.set_variable(input_name, input_var)
        callback.set_batch_normalization_batch_stat_all(training)
        if not training:
            callback.fix_parameters()
        return callback

    def _network(self, name: str, input_var: Variable, callback: Any) -> Any:
        return self.nnp.get_network(name, batch_size=input_var.shape[0], callback=callback)


def first_output(net: Any) -> Variable:
    """The first output of a network."""
    found: Variable = next(iter(net.outputs.values()))
    return found
