"""Described networks (`nnrs.core.graph_def`): variables and functions by name, and the graphs that they become."""

from __future__ import annotations

import math
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from .. import _core
from .._core import Variable
from .._errors import ArgumentError, ArgumentTypeError, check_callable, check_type, describe, message
from .._messages import Message, message_class
from ._proto_parts import ProtoFunction, ProtoVariable


class ProtoNetwork:
    """A network as a description: `network(x)` makes its graph.

    Args:
        owner: The `ProtoGraph` that it belongs to.
        name: Its name.
        batch_size: Samples in a batch.

    Attributes:
        variables: `ProtoVariable`s by name, but for parameters.
        parameters: `ProtoVariable`s of parameters by name.
        functions: `ProtoFunction`s by name.
        inputs: Names of the variables that no function makes.
        outputs: Names of the variables that no function reads.
    """

    def __init__(self, owner: Any, name: str | None = None, batch_size: int | None = None) -> None:
        self.owner = weakref.ref(owner)
        self._kept: Any = None  # the owner, of networks that it does not have
        self.name = name
        self.batch_size = batch_size
        self.variables: OrderedDict[str, ProtoVariable] = OrderedDict()
        self.parameters: OrderedDict[str, ProtoVariable] = OrderedDict()
        self.functions: OrderedDict[str, ProtoFunction] = OrderedDict()
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.repeat_info: dict[str, int] = {}
        self.arguments: dict[str, Any] = {}
        self.renaming: Callable[[int, str], str] | None = None  # gives outputs of described functions their names
        self._given: dict[str, Any] = {}  # Variables that a pass has put in the place of others

    def __getitem__(self, item: str) -> Any:
        return self.__dict__[item]

    @property
    def current_context(self) -> Any:
        """The context in which graphs are made."""
        return self._graph().current_context

    def _graph(self) -> Any:
        graph = self.owner()
        if graph is None:
            text = message("ProtoNetwork", None, "its ProtoGraph is gone", hint="keep the graph that has it")
            raise ArgumentError(text)
        return graph

    @staticmethod
    def from_proto(owner: Any, proto: Message, rng: Any = None, batch_size: int | None = None) -> ProtoNetwork:
        """The network of a message `Network`.

        Args:
            owner: The `ProtoGraph` that it belongs to.
            proto: The message.
            rng: Not used; initial values come from `nnrs.random`.
            batch_size: Samples in a batch; by default as many as the message says.
        """
        check_type("from_proto", "proto", proto, message_class("Network"), "a message Network")
        made = ProtoNetwork(owner, proto.name, batch_size or proto.batch_size)
        made._take(proto)
        return made

    def _take(self, proto: Message) -> None:
        self.repeat_info = {r.id: r.times for r in proto.repeat_info}
        variables = [ProtoVariable._of(v) for v in proto.variable]
        self.variables = OrderedDict((str(v.name), v) for v in variables if v.type != "Parameter")
        self.parameters = OrderedDict((str(v.name), v) for v in variables if v.type == "Parameter")
        self.functions = OrderedDict((f.name, ProtoFunction._of(f, self)) for f in proto.function)
        self._connect()

    def commit(self, name: str, networks: Any, params: Any) -> None:
        """Finish a network that was described: it gets its name and its place, its parameters go to the graph.

        Args:
            name: The name.
            networks: Dict that gets the network.
            params: Not used; NNabla's.
        """
        self.name = name
        networks[name] = self
        for key, v in self.parameters.items():
            if v.variable_instance is not None:
                self._graph().set_parameter(key, v.variable_instance)
        for v in self.variables.values():
            v._stand_in = None
        self._connect()

    def _variable(self, name: str) -> ProtoVariable:
        found = self.variables.get(name) or self.parameters.get(name)
        if found is None:
            raise ArgumentError(message("ProtoNetwork", None, f"the network '{self.name}' has no variable '{name}'"))
        return found

    def _connect(self) -> None:
        """Note who makes and reads each variable; what goes in and out."""
        for v in (*self.variables.values(), *self.parameters.values()):
            v.parent, v.required = None, []
        for f in self.functions.values():
            for name in f.inputs:
                self._variable(name).required.append(f.name)
            for name in f.outputs:
                self._variable(name).parent = f.name
        self.inputs = [name for name, v in self.variables.items() if v.required and not v.parent]
        self.outputs = [name for name, v in self.variables.items() if v.parent and not v.required]

    def as_proto(self, **kwargs: Any) -> Message:
        """The network as a message `Network`.

        Args:
            variable_batch_size: Whether the batch's size is left open; by default True.

        Raises:
            ValueError: If the batch's size cannot be left open.
        """
        self.arguments.update(kwargs)
        made = self._message(edited=True)
        if self.arguments.get("variable_batch_size", True):
            made = message_class("Network")._of(_core.open_batch("as_proto", made._dict()))
        return made

    def _message(self, edited: bool = False) -> Message:
        """The network as it is now; where `edited`, variables and functions as their `proto` was changed."""
        made = message_class("Network")(name=self.name or "", batch_size=self.batch_size or 0)
        for loop, times in self.repeat_info.items():
            made.repeat_info.add(id=loop, times=times)
        parts = (*self.variables.values(), *self.parameters.values())
        made.variable.extend(v._proto if edited and v._proto is not None else v._message() for v in parts)
        functions = self.functions.values()
        made.function.extend(f._proto if edited and f._proto is not None else f._message() for f in functions)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make the graph.

        Args:
            args: Variables for the inputs, in the order of `inputs`; without any, new ones are made. Inputs that have
                initial values may be left out.
            batch_size: Samples in a batch, where the network leaves that open.
            ctx: The context.

        Returns:
            The output, or a tuple of them.

        Raises:
            TypeError: For too many inputs, or other arguments.
            ValueError: For too few inputs.
        """
        here = f"network '{self.name}'"
        unknown = next((name for name in kwargs if name not in ("batch_size", "ctx")), None)
        if unknown is not None:
            expected = f"batch_size or ctx; inputs are given in the order {self.inputs}"
            raise ArgumentTypeError(message(here, unknown, expected, describe(kwargs[unknown])))
        for x in args:
            check_type(here, "args", x, Variable, "Variables for the inputs")
        if len(args) > len(self.inputs):
            raise ArgumentTypeError(message(here, "args", f"{len(self.inputs)} inputs at most", len(args)))
        have_values = self._with_initial_values()
        missing = [name for name in self.inputs[len(args) :] if name not in have_values]
        if args and missing:
            raise ArgumentError(message(here, "args", f"{len(self.inputs)} inputs", f"none for {', '.join(missing)}"))
        graph = self._graph()
        if kwargs.get("ctx") is not None:
            graph.current_context = kwargs["ctx"]
        batch_size = kwargs.get("batch_size") or max(self.batch_size or 0, 0) or None  # -1 is open, too
        shared = {} if args else self._shared(batch_size or 1)
        given = [*zip(self.inputs, args, strict=False), *shared.items(), *self._given.items()]
        network = _core.expand_network(here, self._message()._dict())
        # Each network has Variables of its own over the parameters: what one does not train, another may.
        known = [
            (name, v.get_unlinked_variable(need_grad=v.need_grad and self._is_trained(name)))
            for name, v in graph.get_parameters().items()
        ]
        with graph._in_context():
            made = _core.build_network(here, network, batch_size, known, given)
        _, outputs, variables, parameters = (dict(part) for part in made)
        self._note(graph, variables, parameters)
        if not args:
            graph.global_variables.update((name, variables[name]) for name in self._with_initial_values())
        found = [outputs[name] for name in self.outputs]
        return found[0] if len(found) == 1 else tuple(found)

    def _is_trained(self, name: str) -> bool:
        """Whether a parameter is not fixed in this network."""
        return name not in self.parameters or self.parameters[name].need_grad

    def _with_initial_values(self) -> list[str]:
        """The inputs that have initial values."""
        return [name for name in self.inputs if self._variable(name).initializer is not None]

    def _shared(self, batch_size: int) -> dict[str, Any]:
        """Inputs with initial values that a network of this graph has already, where they are as large."""
        known = self._graph().global_variables
        names = [name for name in self._with_initial_values() if name in known]
        shapes = {name: tuple(n if n >= 1 else batch_size for n in self._variable(name).shape) for name in names}
        return {name: known[name] for name in names if known[name].shape == shapes[name]}

    def _note(self, graph: Any, variables: dict[str, Any], parameters: dict[str, Any]) -> None:
        for name, v in self.variables.items():
            v.variable_instance = variables.get(name)
        known = graph.get_parameters()
        for name, v in parameters.items():
            if name not in known:
                graph.set_parameter(name, v.get_unlinked_variable(need_grad=v.need_grad))
            if name in self.parameters:
                self.parameters[name].variable_instance = v

    @staticmethod
    def create_function_instance(ctx: Any, f: Message, g: Any, create_func: Callable[..., Any]) -> ProtoFunction:
        """The `ProtoFunction` of a message.

        Args:
            ctx: The context, for `create_func`.
            f: The message `Function`.
            g: The network that gets it.
            create_func: Gives an object with the function's `arguments`, called with `ctx` and `f`.
        """
        made = ProtoFunction._of(f, g)
        if not made._is_loop_control:
            made.args = dict(create_func(ctx, f).arguments or {})
        return made

    def resolve_function_parameters(self, function: ProtoFunction, params: dict[Any, str]) -> Iterator[str]:
        """Give the inputs of a function that are Variables their names, and note them as parameters.

        Args:
            function: A function of the network, some of whose inputs are keys of Variables in `parameters`.
            params: Names by arrays (`v.data`); without one a parameter is named by the function and a number.

        Returns:
            Iterator over the keys that were replaced.
        """
        for i, key in enumerate(function.inputs):
            v: Any = self.variables.get(key) or self.parameters.get(key)
            if isinstance(v, Variable):
                name = params.get(v.data) or f"{function.name}_{i}"
                made = self.parameters[name] = ProtoVariable(v.shape, name, v.need_grad, "Parameter")
                made.variable_instance = v
                made.initializer = getattr(v.info, "initializer", None)
                made.required.append(function.name)
                function.inputs[i] = name
                yield key

    def update_actual_shape_of_reshape(self) -> None:
        """Put the size that follows from the input where the shape of a `Reshape` has -1.

        Raises:
            ValueError: If a shape has several, or does not fit.
        """
        for f in self.forward_sequence():
            if f.type == "Reshape" and any(n < 0 for n in f.args["shape"]):
                shape = list(f.args["shape"])
                size, rest = math.prod(self._variable(f.inputs[0]).shape), math.prod(n for n in shape if n >= 0)
                if sum(n < 0 for n in shape) > 1 or rest == 0 or size % rest:
                    expected = f"one size of -1 at most, for {size} elements"
                    raise ArgumentError(message(f"function '{f.name}'", "shape", expected, shape))
                f.args["shape"] = [size // rest if n < 0 else n for n in shape]

    def clone(self) -> ProtoNetwork:
        """A copy, whose graph is kept with it."""
        made = ProtoNetwork(self._graph(), self.name, self.batch_size)
        made._kept = self._graph()
        made.repeat_info = dict(self.repeat_info)
        made.variables = OrderedDict((name, v.clone()) for name, v in self.variables.items())
        made.parameters = OrderedDict((name, v.clone()) for name, v in self.parameters.items())
        made.functions = OrderedDict((name, f.clone(made)) for name, f in self.functions.items())
        made.inputs, made.outputs = list(self.inputs), list(self.outputs)
        return made

    def expand_loop_control(self) -> ProtoNetwork:
        """A copy without loops: each pass of a loop has functions of its own.

        Raises:
            ValueError: If loops contradict themselves or are absurdly long.
        """
        if not self.repeat_info:
            return self.clone()
        before = self._message()
        flat = message_class("Network")._of(_core.expand_network("expand_loop_control", before._dict()))
        _name_splits(flat, before)
        made = ProtoNetwork.from_proto(self._graph(), flat, None, self.batch_size)
        made._kept = self._graph()
        return made

    def promote(self, callback: Any) -> ProtoNetwork:
        """The network as a pass changes it.

        Args:
            callback: A `NnpNetworkPass`; None: the network stays as it is.
        """
        from ..utils._network_pass import PassNetwork

        if callback is None:
            return self
        passed = PassNetwork(self._message())
        passed.apply(callback, self._graph().parameter_scope)
        made = ProtoNetwork.from_proto(self._graph(), passed.result(), None, self.batch_size)
        made._given = {v.proto.name: v.variable for v in passed.variables.values() if v.variable is not None}
        made._kept = self._graph()
        return made

    def execute_on_proto(self, execute: Callable[[ProtoFunction], Any]) -> None:
        """Call `execute` with each function that the outputs need, each behind those whose outputs it reads.

        Args:
            execute: Called with a `ProtoFunction`.

        Raises:
            ValueError: If a function reads what follows from its own output.
        """
        check_callable("execute_on_proto", "execute", execute)
        for f in list(self.forward_sequence()):
            execute(f)

    def forward_sequence(self) -> Iterator[ProtoFunction]:
        """The functions that the outputs need, each behind those whose outputs it reads.

        Raises:
            ValueError: If a function reads what follows from its own output.
        """
        begun: set[str] = set()
        done: set[str] = set()
        todo = [self.functions[name] for name in reversed(self._makers(self.outputs))]
        while todo:
            f = todo[-1]
            waits = [name for name in self._makers(f.inputs) if name not in done]
            if f.name in done or not waits:
                todo.pop()
                if f.name not in done:
                    done.add(f.name)
                    yield f
            elif f.name in begun:
                text = f"function '{f.name}' reads what follows from its own output"
                raise ArgumentError(message("forward_sequence", None, text))
            else:
                begun.add(f.name)
                todo += [self.functions[name] for name in reversed(waits)]

    def _makers(self, variables: list[str]) -> list[str]:
        """The functions that make variables."""
        makers = [self._variable(name).parent for name in variables]
        return [maker for maker in makers if maker is not None]

    def save(
        self, filename: Any, include_parameter: bool = False, variable_batch_size: bool = True, executors: Any = None
    ) -> None:
        """Write the network to a file, as `nnrs.graph_def.save` does.

        Args:
            filename: Path, or a file open for writing.
            include_parameter: Whether '.nntxt' and '.protobuf' have the parameters; '.nnp' always has.
            variable_batch_size: Whether the batch's size is left open.
            executors: List of dicts: how networks are run.
        """
        from .graph_def import save

        save(filename, [self], include_parameter, variable_batch_size, executors=executors)

    def _open_batch(self) -> None:
        """Leave the batch's size open, for `core.variable_batch_size`."""
        opened = message_class("Network")._of(_core.open_batch("variable_batch_size", self._message()._dict()))
        self.batch_size = opened.batch_size
        self._take(opened)


def _name_splits(flat: Message, before: Message) -> None:
    """Let what a loop is fed with be one function, as NNabla names it: `split`, not `split_LOOP[0]`."""
    ends = {f.name: f"_{f.recurrent_param.repeat_id}[0]" for f in before.function if f.type == "RecurrentInput"}
    taken = {f.name for f in flat.function}
    for f in flat.function:
        for name, end in ends.items():
            short = f.name.removesuffix(end)
            if f.type == "Split" and short != f.name and short.startswith(name) and short not in taken:
                f.name = short
