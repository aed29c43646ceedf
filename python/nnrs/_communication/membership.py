"""Which processes there are, in which groups, and what is registered: members that move no arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core import Context, Variable
from .._errors import (
    ArgumentError,
    ArgumentTypeError,
    GraphError,
    check_integer,
    check_list,
    check_name,
    check_type,
    describe,
    message,
)
from .line import Line
from .reductions import Steps
from .transport import Alone, Transport

WORLD = "world"


class Member(NamedTuple):
    """A group of processes: its ranks in the world, and the transport, None where this process is not in it."""

    ranks: list[int]
    transport: Transport | None


class Membership:
    """The processes of a communicator; see `Communicator`."""

    def __init__(self, transport: Transport | None, deterministic: bool) -> None:
        self._deterministic = deterministic
        self._registered: list[tuple[Context, dict[str, Variable]]] = []
        self._line = Line()
        self._groups: dict[str, Member] = {}
        self._use(Alone() if transport is None else _checked(transport))

    def _use(self, transport: Transport) -> None:
        self._groups = {}
        self._add(WORLD, list(range(transport.size)), transport)

    def _add(self, group: str, ranks: list[int], transport: Transport | None) -> None:
        self._groups[group] = Member(ranks, transport)
        self._line.add_group(group, transport)

    @property
    def _world(self) -> Transport:
        return self._world_for(self.name)

    def _world_for(self, here: str) -> Transport:
        """The transport of all processes; `here` is named where `init` was not called."""
        world = self._groups.get(WORLD)
        if world is None or world.transport is None:
            raise GraphError(message(here, None, "call init() first"))
        return world.transport

    # --- who is there -------------------------------------------------------------------------------------------------

    def init(self) -> None:
        """Find the other processes. All of them call it, once; a second call does nothing."""

    @property
    def name(self) -> str:
        """The communicator's kind."""
        return type(self).__name__

    @property
    def size(self) -> int:
        """How many processes there are."""
        return self._world.size

    @property
    def rank(self) -> int:
        """This process's number, from 0."""
        return self._world.rank

    @property
    def local_rank(self) -> int:
        """This process's number among those on its machine: the number of the GPU for its context to name."""
        return self._world.local_rank

    def barrier(self) -> None:
        """Wait until all processes have come to it."""
        self._run("barrier", WORLD, "all", lambda t: iter(()))

    def abort(self) -> None:
        """End all processes, this one too, with status 1."""
        self._world_for(f"{self.name}.abort").abort()

    # --- groups -------------------------------------------------------------------------------------------------------

    def new_group(self, name_ranks: tuple[str, Sequence[int]]) -> str:
        """Name some of the processes, for `group=`. All processes call it, those that are not in the group too.

        Args:
            name_ranks: A name that is not taken, and different ranks; their order is the group's.

        Returns:
            The name.

        Raises:
            ValueError: For a name that is taken, ranks that are not there or come twice.

        >>> import nnrs.communicators as C
        >>> comm = C.Communicator()
        >>> comm.new_group(("first", [0]))
        'first'
        """
        here = f"{self.name}.new_group"
        if not isinstance(name_ranks, (tuple, list)) or len(name_ranks) != 2:
            raise ArgumentTypeError(message(here, "name_ranks", "a tuple (name, ranks)", describe(name_ranks)))
        name = check_name(here, "name_ranks", name_ranks[0], "a name and ranks")
        ranks = [_rank(here, "name_ranks", r) for r in check_list(here, "name_ranks", name_ranks[1], object, "ranks")]
        world = self._world_for(here)
        if name in self._groups:
            raise ArgumentError(message(here, "name_ranks", "a name that is not taken", repr(name)))
        if not ranks or len(set(ranks)) < len(ranks) or not 0 <= min(ranks) <= max(ranks) < world.size:
            raise ArgumentError(message(here, "name_ranks", f"different ranks below {world.size}, the size", ranks))
        self._run("new_group", WORLD, f"{name!r} {ranks}", lambda t: iter(()))
        self._add(name, ranks, world.subset(ranks, name))
        return name

    def list_groups(self) -> dict[str, list[int]]:
        """The ranks of each group, by its name."""
        self._world_for(f"{self.name}.list_groups")
        return {name: list(member.ranks) for name, member in self._groups.items()}

    def find_group(self, group: str) -> list[int]:
        """The ranks of a group; an empty list if there is none of that name."""
        check_type(f"{self.name}.find_group", "group", group, str, "the name of a group")
        return self.list_groups().get(group, [])

    def _member(self, here: str, group: Any) -> Member:
        self._world_for(here)
        check_type(here, "group", group, str, "the name of a group")
        if group not in self._groups:
            raise ArgumentError(message(here, "group", f"one of {', '.join(map(repr, self._groups))}", repr(group)))
        return self._groups[group]

    def _place(self, here: str, argument: str, rank: Any, group: str) -> int:
        """The place in a group of a rank of the world."""
        ranks = self._member(here, group).ranks
        number = _rank(here, argument, rank)
        if number not in ranks:
            raise ArgumentError(message(here, argument, f"a rank of group {group!r}, {ranks}", number))
        return ranks.index(number)

    # --- registered parameters ----------------------------------------------------------------------------------------

    def add_context_and_parameters(self, ctx_param_dict: tuple[Context, dict[str, Variable]]) -> None:
        """Register parameters for `allreduce`.

        Args:
            ctx_param_dict: A context, and Variables by name.
        """
        here = f"{self.name}.add_context_and_parameters"
        expected = "a tuple of a Context and a dict of Variables"
        if not isinstance(ctx_param_dict, (tuple, list)) or len(ctx_param_dict) != 2:
            raise ArgumentTypeError(message(here, "ctx_param_dict", expected, describe(ctx_param_dict)))
        context, parameters = ctx_param_dict
        check_type(here, "ctx_param_dict", context, Context, expected)
        check_type(here, "ctx_param_dict", parameters, dict, expected)
        for name, v in parameters.items():
            check_type(here, "ctx_param_dict", name, str, "names of Variables")
            check_type(here, "ctx_param_dict", v, Variable, expected)
        self._registered.append((context, dict(parameters)))

    def remove_context_parameters(self, keys: Sequence[str]) -> None:
        """Forget the registered parameters of these names, in each context; others than these stay."""
        for key in check_list(f"{self.name}.remove_context_parameters", "keys", keys, str, "names"):
            for _, parameters in self._registered:
                parameters.pop(key, None)

    def clear_context_parameters(self) -> None:
        """Forget all registered contexts and parameters."""
        self._registered.clear()

    # --- calls --------------------------------------------------------------------------------------------------------

    def _run(self, name: str, group: str, said: str, steps: Callable[[Transport], Steps]) -> None:
        """Do a collective, if this process is in the group."""
        t = self._member(f"{self.name}.{name}", group).transport
        if t is not None:
            self._line.wait(self._line.submit(name, group, t, self._settled(said, t), lambda: steps(t)))

    def _settled(self, said: str, t: Transport) -> str:
        """What processes compare of a collective, with the settings of the communicator."""
        return f"{said}, deterministic={self._deterministic}, by {t.name}"


def _checked(transport: Transport) -> Transport:
    """A transport whose members say who it is of: a user may have written it."""
    here, size = type(transport).__name__, transport.size
    check_integer(here, "size", size, 1)
    for name in ("rank", "local_rank"):
        if not 0 <= _rank(here, name, getattr(transport, name)) < size:
            raise ArgumentError(message(here, name, f"from 0 and below size ({size})", getattr(transport, name)))
    return transport


def _rank(here: str, argument: str, value: Any) -> int:
    """A rank; a bool is none, but most likely a flag in the wrong place."""
    if isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(message(here, argument, "a rank", describe(value)))
    return check_integer(here, argument, value)
