"""Variables and functions of described networks (`nnrs.core.graph_def`): what there is, without data or graph."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from .._core import Variable
from .._errors import check_type
from .._messages import Message, message_class

OPEN = 999_983
"""Size of a stand-in's axis whose size is open: a prime that no network has, known again in what follows."""


def opened(sizes: Iterable[Any]) -> list[Any]:
    """Sizes that follow from stand-ins: -1 for those that are open.

    >>> opened([OPEN, 3, 2 * OPEN])
    [-1, 3, -1]
    """
    return [-1 if isinstance(n, int) and n and n % OPEN == 0 else n for n in sizes]


class ProtoVariable:
    """A variable without data. Functions that are called with one describe what they would do, in a `ProtoNetwork`.

    Args:
        shape: Its shape.
        name: Its name in the network; by default made of the function that reads or makes it.
        need_grad: Whether a parameter is trained.
        var_type: 'Buffer', or 'Parameter'.

    Attributes:
        parent: The name of the function that makes it, or None.
        required: The names of the functions that read it.
        variable_instance: Its Variable in the graph that was made last.

    >>> from nnrs.core import graph_def  # functions take them from then on
    >>> with graph_def.graph(name="net"):
    ...     -ProtoVariable((16, 3), name="x") * 2 + 1
    <ProtoVariable '@net/AddScalar_out' (16, 3)>
    """

    def __init__(self, shape: Any, name: str | None = None, need_grad: bool = False, var_type: str = "Buffer") -> None:
        check_type("ProtoVariable", "shape", shape, (tuple, list), "a tuple of ints")
        self.name = name
        self.shape = tuple(int(n) for n in shape)
        self.need_grad = need_grad
        self.type = var_type
        self.parent: str | None = None
        self.required: list[str] = []
        self.info: Any = None
        self.initializer: Any = None
        self.variable_instance: Any = None
        self.repeat_id: list[str] = []
        self.stop = False
        self.delegate: Any = None
        self._proto: Message | None = None
        self._stand_in: Any = None

    def __repr__(self) -> str:
        return f"<ProtoVariable {self.name!r} {self.shape}>"

    def clone(self) -> ProtoVariable:
        """A copy with lists of its own."""
        made = copy.copy(self)
        made.required, made.repeat_id, made._proto = list(self.required), list(self.repeat_id), None
        return made

    @property
    def proto(self) -> Message:
        """The variable as a message `Variable`; changes of it count with `update_from_proto`."""
        if self._proto is None:
            self._proto = self._message()
        return self._proto

    def _message(self) -> Message:
        made = message_class("Variable")(name=self.name or "", type=self.type)
        made.repeat_id.extend(self.repeat_id)
        made.shape.dim.extend(self.shape)
        _fill_initializer(made, self.initializer)
        return made

    def prepare_renaming(self, renames: dict[str, str]) -> None:
        """Note the name in `proto`, if it is another one.

        Args:
            renames: Dict that gets it, by the old one.
        """
        if self._proto is not None and self._proto.name != self.name:
            renames[str(self.name)] = self._proto.name

    def update_from_proto(self, rng: Any, renames: dict[str, str]) -> None:
        """Become what `proto` was changed to.

        Args:
            rng: Not used; initial values come from `nnrs.random`.
            renames: New names by the old ones.
        """
        if self._proto is None:
            return
        self.name = renames.get(str(self.name), self.name)
        self.shape = tuple(self._proto.shape.dim)
        if self._proto.HasField("initializer"):
            self.initializer = self._proto.initializer
        self._proto = None

    @classmethod
    def _of(cls, proto: Message) -> ProtoVariable:
        made = cls(proto.shape.dim, proto.name, proto.type == "Parameter", proto.type)
        made.repeat_id = list(proto.repeat_id)
        if proto.HasField("initializer"):
            made.initializer = proto.initializer
        return made

    def _placeholder(self) -> Any:
        """A Variable of this shape, for the function that is asked what it would make."""
        if self._stand_in is None:
            self._stand_in = Variable(tuple(n if n >= 0 else OPEN for n in self.shape))
        return self._stand_in

    def __pos__(self) -> ProtoVariable:
        return self

    def __neg__(self) -> Any:
        return self * -1.0

    def __add__(self, other: Any) -> Any:
        return _operator("add2", "add_scalar", self, other)

    def __radd__(self, other: Any) -> Any:
        return _operator("add2", "add_scalar", self, other)

    def __sub__(self, other: Any) -> Any:
        return _operator("sub2", "add_scalar", self, other if _is_array(other) else -other)

    def __rsub__(self, other: Any) -> Any:
        return _function("r_sub_scalar")(self, other)

    def __mul__(self, other: Any) -> Any:
        return _operator("mul2", "mul_scalar", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _operator("mul2", "mul_scalar", self, other)

    def __truediv__(self, other: Any) -> Any:
        return _operator("div2", "mul_scalar", self, other if _is_array(other) else 1.0 / other)

    def __rtruediv__(self, other: Any) -> Any:
        return _function("r_div_scalar")(self, other)

    def __pow__(self, other: Any) -> Any:
        return _operator("pow2", "pow_scalar", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _function("r_pow_scalar")(self, other)


def _is_array(value: Any) -> bool:
    return isinstance(value, (ProtoVariable, Variable))


def _function(name: str) -> Callable[..., Any]:
    from .. import functions

    found: Callable[..., Any] = getattr(functions, name)
    return found


def _operator(array: str, scalar: str, x: ProtoVariable, other: Any) -> Any:
    return _function(array if _is_array(other) else scalar)(x, other)


def _fill_initializer(to: Message, initializer: Any) -> None:
    if isinstance(initializer, Message):
        to.initializer.CopyFrom(initializer)
        return
    kind = type(initializer).__name__
    factors = {"ConstantInitializer": "value", "NormalInitializer": "sigma"}
    if kind == "UniformInitializer":
        to.initializer.type, to.initializer.multiplier = "Uniform", -float(initializer.lim[0])
    elif kind in factors:
        to.initializer.type = kind.removesuffix("Initializer")
        to.initializer.multiplier = float(getattr(initializer, factors[kind]))


class ProtoFunction:
    """A function of a network: its type, its arguments, and the names of what it reads and makes.

    One that has just been made is put into the network that is being described by calling it with ProtoVariables.

    Args:
        func: Not used; NNabla's.
        f_type: NNabla's name of the function, as "Affine".
        args: Its arguments by name.
        name: Its name in the network.
        owner: The network.

    >>> from nnrs.core import graph_def
    >>> with graph_def.graph(name="net") as g:
    ...     y = ProtoFunction(None, "LeakyReLU", {"alpha": 0.5, "inplace": False})([ProtoVariable((2, 3), name="x")])
    >>> y, g.net.functions["@net/LeakyReLU"].args["alpha"]
    (<ProtoVariable '@net/LeakyReLU_out' (2, 3)>, 0.5)
    """

    def __init__(self, func: Any, f_type: str, args: Any, name: str | None = None, owner: Any = None) -> None:
        self.type = f_type
        self.args: dict[str, Any] = dict(args or {})
        self.name: str = name or f_type
        self.owner = weakref.ref(owner) if owner is not None else None
        self.inputs: list[str] = []
        self.outputs: list[str] = []
        self.repeat_id: list[str] = []
        self.repeat_param: Any = None
        self.recurrent_param: Any = None
        self.disabled = False
        self.delegate: Any = None
        self._proto: Message | None = None

    def __repr__(self) -> str:
        return f"<ProtoFunction {self.name!r} {self.args}>"

    def __getitem__(self, item: str) -> Any:
        return self.__dict__[item]

    def __call__(self, inputs: Any = (), n_outputs: int = -1) -> Any:
        """Put the function into the network that is being described.

        Args:
            inputs: List of ProtoVariables, and Variables of parameters.
            n_outputs: Not used; the function says how many it has.

        Returns:
            The ProtoVariable that it makes, or a tuple of them.

        Raises:
            ValueError: If NNabla has no function of this type, or inputs or arguments do not fit.
        """
        from . import _proto_calls

        return _proto_calls.describe(self, inputs)

    def graph_call(self, **kwargs: Any) -> None:
        """Make the function of the graph: it reads and sets the `variable_instance` of its variables.

        Parameters are those of the network's graph, as in a call of the network.

        Args:
            batch_size: Samples in a batch, where a shape leaves that open; by default 1.

        Raises:
            ValueError: If an input has no `variable_instance`, or the graph cannot be made.
        """
        from . import _proto_calls

        _proto_calls.graph_call(self, **kwargs)

    @property
    def _is_loop_control(self) -> bool:
        """Whether it begins or ends a loop."""
        return self.type in ("RepeatStart", "RepeatEnd", "RecurrentInput", "RecurrentOutput", "Delay")

    def clone(self, owner: Any) -> ProtoFunction:
        """A copy in another network.

        Args:
            owner: The network.
        """
        made = copy.copy(self)
        made.owner = weakref.ref(owner)
        made.args, made.inputs, made.outputs = copy.deepcopy(self.args), list(self.inputs), list(self.outputs)
        made._proto = None
        return made

    @property
    def proto(self) -> Message:
        """The function as a message `Function`; changes of it count with `update_from_proto`."""
        if self._proto is None:
            self._proto = self._message()
        return self._proto

    def _message(self) -> Message:
        made = message_class("Function")(name=self.name, type=self.type)
        made.input.extend(self.inputs)
        made.output.extend(self.outputs)
        made.repeat_id.extend(self.repeat_id)
        for field in ("repeat_param", "recurrent_param"):
            if getattr(self, field) is not None:
                getattr(made, field).CopyFrom(getattr(self, field))
        arguments = _argument_field(self.type)
        if arguments is not None:
            _fill_arguments(getattr(made, arguments), self.args)
        return made

    def update_from_proto(self, renames: dict[str, str]) -> ProtoFunction:
        """Become what `proto` was changed to.

        Args:
            renames: New names of variables by the old ones.
        """
        if self._proto is not None:
            self._take(self._proto)
            self._proto = None
        self.inputs = [renames.get(name, name) for name in self.inputs]
        self.outputs = [renames.get(name, name) for name in self.outputs]
        return self

    def _take(self, proto: Message) -> None:
        self.name, self.type = proto.name, proto.type
        self.inputs, self.outputs, self.repeat_id = list(proto.input), list(proto.output), list(proto.repeat_id)
        self.args = _arguments_of(proto)
        for field in ("repeat_param", "recurrent_param"):
            setattr(self, field, getattr(proto, field) if proto.HasField(field) else None)

    @classmethod
    def _of(cls, proto: Message, owner: Any) -> ProtoFunction:
        made = cls(None, proto.type, None, proto.name, owner)
        made._take(proto)
        return made


def _argument_field(f_type: str) -> str | None:
    """The field of `Function` that has the arguments of functions of this type.

    >>> _argument_field("Affine")
    'affine_param'
    """
    fields = message_class("Function")._fields
    return next((name for name, f in fields.items() if f.kind == f"{f_type}Parameter"), None)


def _arguments_of(proto: Message) -> dict[str, Any]:
    field = _argument_field(proto.type)
    if field is None:
        return {}
    found = getattr(proto, field)
    return {name: _plain(getattr(found, name)) for name in found._fields}


def _plain(value: Any) -> Any:
    """An argument as scripts give it."""
    if isinstance(value, Message):
        return list(getattr(value, "dim", []))
    return list(value) if isinstance(value, list) else value


def _fill_arguments(to: Message, args: dict[str, Any]) -> None:
    to.SetInParent()
    for name, value in args.items():
        field = to._fields.get(name)
        if field is None or value is None:
            continue
        if field.kind == "Shape":
            getattr(to, name).dim[:] = list(value)
            getattr(to, name).SetInParent()
        elif field.repeated:
            getattr(to, name)[:] = list(value)
        elif not field.is_message:
            setattr(to, name, value)
