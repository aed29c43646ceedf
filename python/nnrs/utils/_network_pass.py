"""A network that callbacks may change before its graph is made: its variables and functions, as they see them."""

from __future__ import annotations

from typing import Any

from .._messages import Message


class PassVariable:
    """A variable of a network: `proto` is its message; `variable` may be set to one that takes its place."""

    def __init__(self, network: PassNetwork, proto: Message) -> None:
        self._network = network
        self.proto = proto
        self.name: str = proto.name
        self.variable: Any = None
        self.need_grad: bool = proto.type == "Parameter"
        self.stop = False

    @property
    def parent(self) -> PassFunction | None:
        """The function that makes it."""
        return next((f for f in self._network.functions if self.name in f.proto.output), None)

    @property
    def referrers(self) -> dict[str, PassFunction]:
        """The functions that read it, by name."""
        return {f.name: f for f in self._network.functions if self.name in f.proto.input}

    @property
    def num_referrers(self) -> int:
        """How many functions read it."""
        return len(self.referrers)

    def rewire_on(self, var: PassVariable) -> None:
        """Take the place of `var`: what makes or reads it makes or reads this one. What made this one goes."""
        parent, own = var.parent, self.parent
        if own is not None:
            own.disable()
        if parent is not None:
            parent.proto.output[:] = [self.name if name == var.name else name for name in parent.proto.output]
        for reader in var.referrers.values():
            reader.proto.input[:] = [self.name if name == var.name else name for name in reader.proto.input]
        self.variable = var.variable


class PassFunction:
    """A function of a network; changes of `proto`, its message, count."""

    def __init__(self, network: PassNetwork, proto: Message) -> None:
        self._network = network
        self.proto = proto
        self.name: str = proto.name
        self.disabled = False

    @property
    def inputs(self) -> list[PassVariable]:
        """The variables that it reads."""
        return [self._network.variables[name] for name in self.proto.input]

    @inputs.setter
    def inputs(self, inputs: list[PassVariable]) -> None:
        self.proto.input[:] = [v.name for v in inputs]

    @property
    def outputs(self) -> list[PassVariable]:
        """The variables that it makes."""
        return [self._network.variables[name] for name in self.proto.output]

    @outputs.setter
    def outputs(self, outputs: list[PassVariable]) -> None:
        self.proto.output[:] = [v.name for v in outputs]

    def disable(self) -> None:
        """Take it out of the network."""
        self.disabled = True
        del self.proto.input[:], self.proto.output[:]


class PassNetwork:
    """A copy of a network's message, with its variables and functions as objects."""

    def __init__(self, network: Message) -> None:
        self.network = type(network)()
        self.network.CopyFrom(network)
        self.variables = {v.name: PassVariable(self, v) for v in self.network.variable}
        self.functions = [PassFunction(self, f) for f in self.network.function]

    def apply(self, callback: Any, scope: Any) -> None:
        """Let a `NnpNetworkPass` change the network."""
        self.variables = {name: callback._apply_generate_variable(v) for name, v in self.variables.items()}
        changed = map(callback._apply_generate_function_by_type, self.functions)
        self.functions = [callback._apply_generate_function_by_name(f) for f in changed]
        for f in list(self.functions):
            for one_pass in (callback._apply_function_pass_by_type, callback._apply_function_pass_by_name):
                if not f.disabled:
                    one_pass(f, list(self.variables.values()), scope)
        for f in self.functions:
            callback._apply_use_up_to(f.inputs)

    def result(self) -> Message:
        """The message of what is left."""
        self._stop()
        left = [f for f in self.functions if not f.disabled]
        used = {name for f in left for name in (*f.proto.input, *f.proto.output)}
        renamed = {name: v.proto.name for name, v in self.variables.items()}
        variables = {renamed[name]: v.proto for name, v in self.variables.items() if name in used}
        for f in left:
            f.proto.input[:] = [renamed[name] for name in f.proto.input]
            f.proto.output[:] = [renamed[name] for name in f.proto.output]
        self.network.variable[:] = variables.values()
        self.network.function[:] = [f.proto for f in left]
        return self.network

    def _stop(self) -> None:
        """Take out what follows from variables with `stop`."""
        stopped = {name for name, v in self.variables.items() if v.stop}
        before = -1
        while len(stopped) != before:
            before = len(stopped)
            for f in self.functions:
                if not f.disabled and stopped.intersection(f.proto.input):
                    stopped.update(f.proto.output)
                    f.disable()
