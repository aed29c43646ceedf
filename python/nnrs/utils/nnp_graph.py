"""Networks of `.nnp` files as graphs: `NnpLoader`, and `NnpNetworkPass` to change them on the way."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .. import _core, _files
from .._core import Variable
from .._errors import (
    ArgumentError,
    ArgumentTypeError,
    UnknownNameError,
    check_batch_size,
    check_type,
    describe,
    described_by_a_file,
    message,
)
from .._messages import Message, message_class
from ..logger import logger
from ..parameter import get_parameters, parameter_scope, set_parameter
from ._network_pass import PassFunction, PassNetwork, PassVariable

__all__ = ["NnpLoader", "NnpNetwork", "NnpNetworkPass"]


class NnpNetwork:
    """The graph of a network of a file; usually made by `NnpLoader.get_network`.

    Its parameters are also put into the current parameter scope.

    Attributes:
        inputs: Variables to be filled, by name.
        outputs: What the network computes, by name.
        variables: All Variables by name, parameters among them.
    """

    def __init__(self, proto_network: Any, batch_size: int | None, callback: NnpNetworkPass | None) -> None:
        here = "NnpNetwork"
        scope = getattr(proto_network, "_scope", None)
        file = getattr(proto_network, "_file", "the file")
        network = proto_network if isinstance(proto_network, Message) else proto_network.as_proto()
        check_type(here, "proto_network", network, message_class("Network"), "a network")
        check_batch_size(here, batch_size)
        if batch_size is not None:
            _tell_of_fixed_batch(network, batch_size)
        flat = message_class("Network")._of(_core.expand_network(here, network._dict()))
        given: list[tuple[str, Any]] = []
        frozen: set[str] = set()
        if callback is not None:
            check_type(here, "callback", callback, NnpNetworkPass, "a NnpNetworkPass")
            flat, given, frozen = _passed(flat, callback, scope)
        with described_by_a_file(here):
            made = _core.build_network(here, flat._dict(), batch_size, _parameters(scope), given, file, frozen)
        self._inputs, self._outputs, variables, parameters = (dict(part) for part in made)
        self._variables = {**variables, **parameters}
        self.proto_network = flat
        _core.call_in_scope(here, "", lambda: _put(parameters, scope, frozen))

    @property
    def inputs(self) -> dict[str, Variable]:
        """Variables to be filled, by name."""
        return self._inputs

    @property
    def outputs(self) -> dict[str, Variable]:
        """What the network computes, by name."""
        return self._outputs

    @property
    def variables(self) -> dict[str, Variable]:
        """All Variables by name, parameters among them."""
        return self._variables


def _tell_of_fixed_batch(network: Message, batch_size: int) -> None:
    """Say that `batch_size` goes for nothing, as it does in NNabla, where the network was saved for one size alone."""
    is_open = any(n < 0 for v in network.variable if v.type != "Parameter" for n in v.shape.dim)
    if not is_open and network.batch_size not in (0, batch_size):
        text = "get_network: batch_size=%d is ignored: '%s' was saved for %d alone, by variable_batch_size=False"
        logger.warning(text, batch_size, network.name, network.batch_size)


def _passed(network: Message, callback: NnpNetworkPass, scope: Any) -> tuple[Message, list[tuple[str, Any]], set[str]]:
    """The network after the callback; Variables that take places in it; parameters that are not trained."""
    passed = PassNetwork(network)
    passed.apply(callback, scope)
    flat = passed.result()
    variables = passed.variables.values()
    given = [(v.proto.name, v.variable) for v in variables if v.variable is not None]
    frozen = {v.proto.name for v in variables if v.proto.type == "Parameter" and not v.need_grad}
    return flat, given, frozen


def _parameters(scope: Any) -> list[tuple[str, Any]]:
    if scope is None:
        return list(get_parameters(grad_only=False).items())
    with parameter_scope("", scope):
        return list(get_parameters(grad_only=False).items())


def _put(parameters: dict[str, Any], scope: Any, frozen: set[str]) -> None:
    """Put parameters into the current scope and into `scope`, if there is one, where none is frozen: others read it."""
    for name, v in parameters.items():
        set_parameter(name, v)
    if scope is not None:
        with parameter_scope("", scope):
            known = get_parameters(grad_only=False)
            for name, v in parameters.items():
                if name not in frozen:
                    set_parameter(name, v)
                elif name not in known:
                    set_parameter(name, v.get_unlinked_variable(need_grad=True))


class _LoadedNetwork:
    """A network of a file, with the parameters that belong to it."""

    def __init__(self, proto: Message, scope: Any, file: str) -> None:
        self._proto, self._scope, self._file = proto, scope, file
        self.name: str = proto.name

    def as_proto(self) -> Message:
        return self._proto


class NnpLoader:
    """A file with networks.

    Args:
        filepath: Path that ends in '.nnp', '.nntxt', '.prototxt' or '.protobuf', or a file open for binary reading.
        scope: Dict that gets the parameters; by default a new one, whose parameters come into the current scope with
            `get_network`.
        extension: The format of an open file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If its content is not what it should be.

    >>> import tempfile, os, nnrs as nn, nnrs.functions as F, nnrs.parametric_functions as PF
    >>> from nnrs.utils.save import save
    >>> x = nn.Variable((16, 3))
    >>> y = F.tanh(PF.affine(x, 2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "net.nnp")
    ...     net = {"name": "net", "batch_size": 16, "outputs": {"y": y}, "names": {"x": x}}
    ...     save(path, {"networks": [net]})
    ...     nnp = NnpLoader(path)
    >>> nnp.get_network_names()
    ['net']
    >>> net = nnp.get_network("net", batch_size=5)
    >>> net.inputs["x"].shape, net.outputs["y"].shape
    ((5, 3), (5, 2))
    >>> nn.clear_parameters()
    """

    def __init__(self, filepath: Any, scope: dict[str, Any] | None = None, extension: str = ".nntxt") -> None:
        here = "NnpLoader"
        if scope is not None:
            check_type(here, "scope", scope, dict, "a dict of parameters")
        self._params: dict[str, Any] = OrderedDict() if scope is None else scope
        said, records, _ = _files.read_nnabla(here, filepath, extension, "filepath")
        _core.check_parameter_names(here, "filepath", [name for name, *_ in records])
        self._proto = message_class("NNablaProtoBuf")._of(said)
        file = repr(os.fspath(filepath)) if isinstance(filepath, (str, os.PathLike)) else "the file"
        networks = (_LoadedNetwork(n, self._params, file) for n in self._proto.network)
        self.network_dict: dict[str, Any] = {n.name: n for n in networks}
        with parameter_scope("", self._params):
            _core.set_parameters(here, records)

    def get_network_names(self) -> list[str]:
        """The names of the networks."""
        return list(self.network_dict)

    def get_network(
        self, name: str, batch_size: int | None = None, callback: NnpNetworkPass | None = None
    ) -> NnpNetwork:
        """Make the graph of a network.

        Args:
            name: Its name.
            batch_size: Samples in a batch, where the file leaves that open; by default as many as the file says. What
                was saved with `variable_batch_size=False` keeps its own size, and a warning says so.
            callback: Changes to the network.

        Raises:
            KeyError: If there is no such network (a ValueError, too).
            ValueError: If it contradicts itself.
        """
        here = "get_network"
        check_batch_size(here, batch_size)
        if callback is not None:
            check_type(here, "callback", callback, NnpNetworkPass, "a NnpNetworkPass")
        known = f"one of the networks {', '.join(map(repr, self.network_dict)) or 'none'}"
        check_type(here, "name", name, str, known)
        if name not in self.network_dict:
            raise UnknownNameError(message(here, "name", known, describe(name)))
        return NnpNetwork(self.network_dict[name], batch_size, callback)


Callback = Callable[..., Any]


class NnpNetworkPass:
    """Changes to a network between its file and its graph.

    Args:
        verbose: 1 prints what the ready-made changes do, 2 more of it.

    >>> change = NnpNetworkPass()
    >>> @change.on_generate_function_by_type("Convolution")
    ... def pad(f):
    ...     f.proto.convolution_param.pad.dim[:] = [1, 1]
    ...     return f
    """

    def __init__(self, verbose: int = 0) -> None:
        self._variable_callbacks: dict[str, Callback] = {}
        self._function_callbacks_by_name: dict[str, Callback] = {}
        self._function_callbacks_by_type: dict[str, Callback] = {}
        self._passes_by_name: dict[str, Callback] = {}
        self._passes_by_type: dict[str, Callback] = {}
        self._fix_parameters = False
        self._use_up_to_variables: set[str] = set()
        self.verbose: Callback = print if verbose else _silent
        self.verbose2: Callback = print if verbose > 1 else _silent

    def on_function_pass_by_name(self, name: str) -> Callback:
        """Decorator of `f(function, variables, param_scope)`, called for the function of this name."""
        return _registering(self._passes_by_name, name)

    def on_function_pass_by_type(self, name: str) -> Callback:
        """Decorator of `f(function, variables, param_scope)`, called for functions of this type."""
        return _registering(self._passes_by_type, name)

    def on_generate_variable(self, name: str) -> Callback:
        """Decorator of `f(variable)`, which returns the variable to use in place of the one of this name."""
        return _registering(self._variable_callbacks, name)

    def on_generate_function_by_name(self, name: str) -> Callback:
        """Decorator of `f(function)`, which returns the function to use in place of the one of this name."""
        return _registering(self._function_callbacks_by_name, name)

    def on_generate_function_by_type(self, name: str) -> Callback:
        """Decorator of `f(function)`, which returns the function to use in place of each of this type."""
        return _registering(self._function_callbacks_by_type, name)

    def drop_function(self, *names: str) -> None:
        """Take functions out of the network, by name."""

        def drop(f: PassFunction, variables: Any, scope: Any) -> None:
            self.verbose(f"Pass: {f.name} is dropped.")
            f.disable()

        for name in names:
            self.on_function_pass_by_name(name)(drop)

    def fix_parameters(self) -> None:
        """Let no parameter be trained."""
        self._fix_parameters = True

    def use_up_to(self, *names: str) -> None:
        """Let the network end with these variables."""
        self._use_up_to_variables.update(names)

    def remove_and_rewire(self, name: str, i: int = 0, o: int = 0) -> None:
        """Take a function out; what reads its output `o` reads its input `i` instead."""

        @self.on_function_pass_by_name(name)
        def rewire(f: PassFunction, variables: Any, scope: Any) -> None:
            before, after = f.inputs[i], f.outputs[o]
            self.verbose(f"Pass: {f.name} is removed; {before.name} takes the place of {after.name}.")
            after.rewire_on(before)
            after.proto.name = before.name

    def set_variable(self, name: str, input_var: Any) -> None:
        """Let `input_var`, of whatever shape, take the place of the variable `name`."""
        check_type("set_variable", "input_var", input_var, Variable, "a Variable")

        @self.on_generate_variable(name)
        def replace(v: PassVariable) -> PassVariable:
            self.verbose(f"Pass: {name} is replaced by {input_var}.")
            v.proto.shape.dim[:] = input_var.shape
            v.variable = input_var
            return v

    def force_average_pooling_global(self, name: str, by_type: bool = False) -> None:
        """Let an average pooling, by its name or by type, cover its whole input."""

        @self._on_generate(by_type)(name)
        def widen(f: PassFunction) -> PassFunction:
            size = f.inputs[0].proto.shape.dim[2:]
            self.verbose(f"Pass: {f.name} gets the kernel {size}.")
            f.proto.average_pooling_param.kernel.dim[:] = size
            f.proto.average_pooling_param.stride.dim[:] = size
            return f

    def check_average_pooling_global(self, name: str, by_type: bool = False) -> None:
        """Raise ValueError, when the network is loaded, unless an average pooling covers its whole input."""

        @self._on_generate(by_type)(name)
        def check(f: PassFunction) -> PassFunction:
            size = f.inputs[0].proto.shape.dim[2:]
            p = f.proto.average_pooling_param
            if p.kernel.dim[:] != size or p.stride.dim[:] != size:
                wanted = f"kernel and stride of '{f.name}' to be its input's size {size}"
                hint = "force_average_pooling_global makes it so"
                actual = f"{p.kernel.dim[:]} and {p.stride.dim[:]}"
                raise ArgumentError(message("check_average_pooling_global", "name", wanted, actual, hint))
            return f

    def _on_generate(self, by_type: bool) -> Callback:
        return self.on_generate_function_by_type if by_type else self.on_generate_function_by_name

    def set_batch_normalization_batch_stat_all(self, batch_stat: bool) -> None:
        """Set `batch_stat` of all batch normalizations."""

        @self.on_generate_function_by_type("BatchNormalization")
        def set_one(f: PassFunction) -> PassFunction:
            self.verbose(f"Pass: {f.name} gets batch_stat={batch_stat}.")
            f.proto.batch_normalization_param.batch_stat = batch_stat
            return f

    def _apply_function_pass_by_name(self, f: PassFunction, variables: Any, scope: Any) -> Any:
        return self._passes_by_name.get(f.name, _keep_function)(f, variables, scope)

    def _apply_function_pass_by_type(self, f: PassFunction, variables: Any, scope: Any) -> Any:
        return self._passes_by_type.get(f.proto.type, _keep_function)(f, variables, scope)

    def _apply_generate_variable(self, v: PassVariable) -> PassVariable:
        v = _returned("on_generate_variable", PassVariable, self._variable_callbacks.get(v.name), v)
        if self._fix_parameters:
            v.need_grad = False
        return v

    def _apply_generate_function_by_name(self, f: PassFunction) -> PassFunction:
        callback = self._function_callbacks_by_name.get(f.name)
        return _returned("on_generate_function_by_name", PassFunction, callback, f)

    def _apply_generate_function_by_type(self, f: PassFunction) -> PassFunction:
        callback = self._function_callbacks_by_type.get(f.proto.type)
        return _returned("on_generate_function_by_type", PassFunction, callback, f)

    def _apply_use_up_to(self, variables: list[PassVariable]) -> None:
        for v in variables:
            if v.name in self._use_up_to_variables:
                self.verbose(f"Pass: the network ends with {v.name}.")
                v.stop = True


def _silent(*args: Any, **kwargs: Any) -> None:
    """Print nothing."""


def _keep_function(f: Any, variables: Any, scope: Any) -> Any:
    return f


def _registering(callbacks: dict[str, Callback], name: str) -> Callback:
    def register(callback: Callback) -> Callback:
        callbacks[name] = callback
        return callback

    return register


def _returned(function: str, kind: Any, callback: Callback | None, value: Any) -> Any:
    """What a callback makes of a value; it must be of the same kind."""
    found = value if callback is None else callback(value)
    if not isinstance(found, kind):
        hint = "let the callback return the object that it was given"
        raise ArgumentTypeError(message(function, "callback", "the changed object", describe(found), hint))
    return found
