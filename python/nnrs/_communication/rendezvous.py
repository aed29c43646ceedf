"""How processes find each other: each tells where it listens, gets the same of all others, and connects to them.

Under torchrun they tell it in the store of torchrun's agent, which is torch's and listens at MASTER_PORT. Else rank 0
listens there until all have come. A random token, which rank 0 makes for all, keeps out what else connects.
"""

from __future__ import annotations

import hmac
import json
import secrets
import selectors
import socket
import struct
import time
from collections.abc import Generator, Iterable
from contextlib import closing, suppress
from datetime import timedelta
from typing import Any, NamedTuple, cast

from .._errors import CommunicatorError, MissingPackageError, message
from .control import GRACE, ranks_text

_TOKEN_BYTES = 16
_HERE = struct.Struct("<8sIIH")  # magic, rank, size, port: what a process tells rank 0
_MAGIC = b"nnrs:1\r\n"
_HELLO = struct.Struct(f"<{_TOKEN_BYTES}sI")  # token, rank: with what a connection begins
_PAUSE = 0.02
START, MOST = 10.0, 1e6
"""Seconds that are waited at least, for processes start and import modules at different speeds, and at most."""


class Place(NamedTuple):
    """What the launcher told this process."""

    rank: int
    size: int
    local_rank: int | None
    address: str
    port: int
    store: str | None
    """The prefix of keys in the store of torchrun's agent; None: rank 0 listens."""


class Met(NamedTuple):
    """All processes have come."""

    sockets: dict[int, socket.socket]
    local_rank: int


class _Found(NamedTuple):
    """What all know of all."""

    token: bytes
    addresses: list[tuple[str, int]]
    """Host and port of each rank; the host is "" where it is that of MASTER_ADDR, by a name of this machine alone."""


class _Wait:
    """How long the others are waited for."""

    def __init__(self, timeout: float) -> None:
        self.timeout, self._deadline = timeout, time.monotonic() + timeout

    @property
    def left(self) -> float:
        """Seconds, not below 0."""
        return max(self._deadline - time.monotonic(), 0.0)

    def missed(self, ranks: Iterable[int], why: str = "") -> CommunicatorError:
        who = ranks_text(sorted(ranks))
        return CommunicatorError(f"Communicator.init: {who} did not come to it within {self.timeout:g} s{why}")


def meet(place: Place, timeout: float) -> Met:
    """Connections to all others. All processes call it; an error names those who have not come in time."""
    wait = _Wait(min(max(timeout, START), MOST))
    own = _own_host(place)
    with closing(_listen(0, place.size)) as listener:
        port = listener.getsockname()[1]
        if place.store is not None:
            found = _by_store(place, place.store, (own, port), wait)
        elif place.rank == 0:
            found = _as_first(place, (own, port), wait)
        else:
            found = _ask_first(place, port, wait)
        hosts = [host for host, _ in found.addresses]
        local = hosts[: place.rank].count(hosts[place.rank]) if place.local_rank is None else place.local_rank
        return Met(_connected(place, found, listener, wait), local)


def _listen(port: int, backlog: int) -> socket.socket:
    """On all addresses of this machine."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=backlog)
    return socket.create_server(("", port), backlog=backlog)


def _own_host(place: Place) -> str:
    """This machine's address on the way to rank 0's."""
    try:
        family, _, _, _, master = socket.getaddrinfo(place.address, place.port, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(master)  # which sends nothing
            return _unless_loopback(probe.getsockname()[0])
    except OSError as error:
        raise _failed("MASTER_ADDR", "the address of rank 0's machine", f"{place.address!r}: {error}") from error


def _failed(variable: str, expected: str, actual: str, hint: str | None = None) -> CommunicatorError:
    return CommunicatorError(message("Communicator.init", variable, expected, actual, hint))


def _unless_loopback(host: str) -> str:
    host = host.removeprefix("::ffff:")  # as IPv6 has one of IPv4
    return "" if host.startswith("127.") or host == "::1" else host


# --- by torchrun's store ----------------------------------------------------------------------------------------------


def _by_store(place: Place, prefix: str, own: tuple[str, int], wait: _Wait) -> _Found:
    try:
        from torch.distributed import TCPStore
    except ImportError as error:
        expected = "torch, whose store torchrun's agent has"
        hint = "install torch for the Python that runs the script, which torchrun belongs to"
        text = message("Communicator.init", "TORCHELASTIC_USE_AGENT_STORE", expected, error, hint)
        raise MissingPackageError(text) from error
    try:
        seconds = timedelta(seconds=max(wait.left, 1))
        store = TCPStore(place.address, place.port, place.size, False, seconds, wait_for_workers=False)
        return _exchanged(store, place, prefix, own, wait)
    except RuntimeError as error:  # also torch's DistError, of which the others are kinds
        if isinstance(error, CommunicatorError):
            raise
        where = f"{place.address}:{place.port}: {error}"
        raise _failed("MASTER_PORT", "the store of torchrun's agent", where) from error


def _exchanged(store: Any, place: Place, prefix: str, own: tuple[str, int], wait: _Wait) -> _Found:
    if place.rank == 0:
        store.set(f"{prefix}/token", secrets.token_hex(_TOKEN_BYTES))
    store.set(f"{prefix}/{place.rank}", json.dumps(own))
    keys = [f"{prefix}/{r}" for r in range(place.size)]
    while not store.check(keys):
        if not wait.left:
            raise wait.missed(r for r, key in enumerate(keys) if not store.check([key]))
        time.sleep(_PAUSE)
    token = bytes.fromhex(store.get(f"{prefix}/token").decode())
    return _Found(token, [tuple(json.loads(store.get(key))) for key in keys])


# --- by rank 0 --------------------------------------------------------------------------------------------------------


def _as_first(place: Place, own: tuple[str, int], wait: _Wait) -> _Found:
    """Listen until all have told where they are, and tell them all."""
    try:
        server = _listen(place.port, place.size)
    except OSError as error:
        hint = "set another MASTER_PORT for all processes"
        actual = f"{place.port}: {error.strerror}"
        raise _failed("MASTER_PORT", "a port that is free on rank 0's machine", actual, hint) from error
    came: dict[int, socket.socket] = {}
    addresses = {0: own}
    with closing(server), closing(_greetings(server, _HERE.size, wait)) as greetings:
        for connection, said in greetings:
            magic, rank, size, port = _HERE.unpack(said)
            if magic != _MAGIC:
                connection.close()
            elif size != place.size or not 0 < rank < size or rank in came:
                _tell([connection], {"refused": f"rank 0 waits for ranks {_others(place, came)} of {place.size}"})
            else:
                came[rank], addresses[rank] = connection, (_unless_loopback(connection.getpeername()[0]), port)
            if len(addresses) == place.size:
                break
    missing = _others(place, came)
    if missing:
        _tell(came.values(), {"missing": missing, "timeout": wait.timeout})
        raise wait.missed(missing)
    found = _Found(secrets.token_bytes(_TOKEN_BYTES), [addresses[r] for r in range(place.size)])
    _tell(came.values(), {"token": found.token.hex(), "addresses": found.addresses})
    return found


def _others(place: Place, came: Iterable[int]) -> list[int]:
    return sorted({*range(1, place.size)} - {*came})


def _tell(connections: Iterable[socket.socket], what: dict[str, Any]) -> None:
    """Answer what is waited for, and end these connections."""
    for connection in connections:
        with closing(connection), suppress(OSError):
            connection.settimeout(GRACE)
            connection.sendall(json.dumps(what).encode())


def _ask_first(place: Place, port: int, wait: _Wait) -> _Found:
    """Tell rank 0 where this process is, and get what it tells when all have done so."""
    where = f"{place.address}:{place.port}"
    connection = _connect((place.address, place.port), wait)
    if connection is None:
        raise wait.missed([0], f": nothing listens at MASTER_ADDR:MASTER_PORT, {where}")
    try:
        with closing(connection):
            connection.sendall(_HERE.pack(_MAGIC, place.rank, place.size, port))
            connection.settimeout(wait.timeout + GRACE)  # it names who is missing, and may have come later
            told = json.loads(b"".join(iter(lambda: connection.recv(1 << 16), b"")))
    except (OSError, ValueError) as error:
        actual = f"no answer of nnrs's at {where}: {type(error).__name__}"
        raise _failed("MASTER_PORT", "rank 0's", actual, "set another MASTER_PORT for all processes") from error
    if "refused" in told:
        raise _failed("RANK", told["refused"], f"rank {place.rank} of {place.size}")
    if "missing" in told:
        wait.timeout = told["timeout"]
        raise wait.missed(told["missing"])
    return _Found(bytes.fromhex(told["token"]), [tuple(a) for a in told["addresses"]])


# --- connections ------------------------------------------------------------------------------------------------------


def _connect(address: tuple[str, int], wait: _Wait) -> socket.socket | None:
    """A connection to what listens there within the time, or None."""
    while True:
        with suppress(OSError):
            made = socket.create_connection(address, timeout=max(wait.left, _PAUSE))
            if made.getsockname() != made.getpeername():  # a port that is free may be given to who asks for it
                return made
            made.close()
        if not wait.left:
            return None
        time.sleep(_PAUSE)


def _connected(place: Place, found: _Found, listener: socket.socket, wait: _Wait) -> dict[int, socket.socket]:
    """Connections to all: made to lower ranks, awaited from higher ones."""
    sockets: dict[int, socket.socket] = {}
    for r, (host, port) in enumerate(found.addresses[: place.rank]):
        made = _connect((host or place.address, port), wait)
        if made is None:
            raise wait.missed([r])
        made.sendall(_HELLO.pack(found.token, place.rank))
        sockets[r] = made
    with closing(_greetings(listener, _HELLO.size, wait)) as greetings:
        while len(sockets) < place.size - 1:
            connection, said = next(greetings, (None, b""))
            if connection is None:
                raise wait.missed({*range(place.size)} - {place.rank, *sockets})
            token, r = _HELLO.unpack(said)
            if hmac.compare_digest(token, found.token) and place.rank < r < place.size and r not in sockets:
                sockets[r] = connection
            else:
                connection.close()
    return sockets


def _greetings(listener: socket.socket, length: int, wait: _Wait) -> Generator[tuple[Any, bytes], None, None]:
    """Who connects, and the first bytes that come, until time is up; who says less keeps nobody waiting."""
    listener.setblocking(False)
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        try:
            while wait.left:
                for key, _ in selector.select(wait.left):
                    connection: Any = key.fileobj
                    if connection is listener:
                        with suppress(OSError):
                            came, _ = listener.accept()
                            came.setblocking(False)
                            selector.register(came, selectors.EVENT_READ, bytearray())
                        continue
                    said = _read(connection, length - len(key.data))
                    key.data.extend(said)
                    if said and len(key.data) < length:
                        continue
                    selector.unregister(connection)
                    if said:
                        yield connection, bytes(key.data)
                    else:
                        connection.close()
        finally:
            for other in [key.fileobj for key in selector.get_map().values() if key.fileobj is not listener]:
                cast(socket.socket, other).close()


def _read(connection: socket.socket, count: int) -> bytes:
    """What has come, at most so many bytes; nothing where the other side has ended."""
    with suppress(OSError):
        return connection.recv(count)
    return b""
