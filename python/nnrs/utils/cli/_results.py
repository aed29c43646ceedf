"""The `.nnp` files that a training writes: the newest and the best parameters."""

from __future__ import annotations

import glob
import io
import os
import re
import tempfile
import time
import zipfile
from typing import Any

from ..._errors import FormatError, message
from ..._files import atomic_path, read_nnabla, write_parameters
from ..._messages import message_class
from ...logger import logger
from ...parameter import get_parameters, load_parameters
from ..nnp_format import nnp_version

_SECONDS = 180.0
_EPOCHS = 10
_AS_MESSAGE = ".protobuf.optimizer"


class Results:
    """Writes results of a training to a folder.

    Args:
        info: What is trained, as `load` gives it.
        config: Path of its file, a copy of which is in each result.
        outdir: The folder.
    """

    def __init__(self, info: Any, config: str, outdir: str) -> None:
        self._info = info
        self._outdir = outdir
        self._name, self._config = _config_of(info, config)
        self._last: dict[str | None, tuple[float, int]] = {}
        if config.endswith(".nnp"):
            with atomic_path(os.path.join(outdir, self._name)) as temporary, open(temporary, "wb") as f:
                f.write(self._config)

    def save(self, suffix: str | None, epoch: int, force: bool = False) -> None:
        """Write a result in the place of the former one; without `force` only now and then.

        Args:
            suffix: 'current' (`results_current_<epoch>.nnp`), 'best' or None (`results.nnp`).
            epoch: The epoch, from 1 on.
            force: Whether to write in any case.
        """
        from .. import callback

        then, at = self._last.get(suffix, (float("-inf"), 0))
        if not force and time.monotonic() - then <= _SECONDS and epoch - at <= _EPOCHS:
            return
        base = os.path.join(self._outdir, f"results_{suffix}_{epoch}")
        chosen = callback.result_base(base, str(suffix), self._outdir)
        if chosen is None:
            chosen = os.path.join(self._outdir, "results") if suffix in (None, "best") else base
        before = glob.glob(os.path.join(glob.escape(self._outdir), f"results_{suffix}_*.nnp"))
        self._write(f"{chosen}.nnp", epoch)
        for old in before:
            if os.path.abspath(old) != os.path.abspath(f"{chosen}.nnp"):
                os.unlink(old)
        self._last[suffix] = (time.monotonic(), epoch)
        callback.save_train_snapshot()

    def _write(self, path: str, epoch: int) -> None:
        from ...config import nnabla_config

        kind = nnabla_config.get("MISC", "nnp_param_format", fallback=".h5").strip()
        interval = int(nnabla_config.get("CHECKPOINT", "optimizer_interval", fallback="5"))
        with atomic_path(path, wait_for_disk=True) as temporary, zipfile.ZipFile(temporary, "w") as archive:
            archive.writestr("nnp_version.txt", f"{nnp_version()}\n")
            archive.writestr(self._name, self._config)
            archive.writestr(f"parameter{kind}", _parameters(kind))
            if interval > 0 and epoch % interval == 0:
                for name, states in self._states():
                    archive.writestr(name, states)

    def _states(self) -> list[tuple[str, bytes]]:
        """Files of the solvers' states, by the names that NNabla gives them."""
        return [(_state_file(o), _h5_states(o.solver)) for o in self._info.optimizers.values()]


def _state_file(o: Any) -> str:
    return f"{o.name}_{re.sub('Cuda$', '', str(o.solver.name))}_optimizer.h5.optimizer"


def _h5_states(solver: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "states.h5")
        solver.save_states(path)
        with open(path, "rb") as f:
            return f.read()


def _config_of(info: Any, path: str) -> tuple[str, bytes]:
    """Name and content of the text with the networks."""
    if path.endswith((".nntxt", ".prototxt")):
        with open(path, "rb") as f:
            return os.path.basename(path), f.read()
    if path.endswith(".nnp"):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith((".nntxt", ".prototxt")):
                    return os.path.basename(name), archive.read(name)
    return "network.nntxt", str(info.proto).encode()


def _parameters(kind: str) -> bytes:
    file = io.BytesIO()
    write_parameters("train", file, kind, get_parameters(grad_only=False))
    return file.getvalue()


def load_train_state(filename: str, info: Any) -> None:
    """Read parameters, and the solvers' states where the file has them, to go on with a training.

    Args:
        filename: A result, or another file with parameters.
        info: What is trained, as `load` gives it.
    """
    load_parameters(filename)
    if not filename.endswith(".nnp"):
        return
    states = dict(read_nnabla("train", filename, None).states)
    for o in info.optimizers.values():
        if _state_file(o) in states:
            _load_states(o.solver, states[_state_file(o)])
    for name, data in states.items():
        for said in message_class("NNablaProtoBuf").FromString(data).optimizer if name.endswith(_AS_MESSAGE) else ():
            if said.name in info.optimizers:
                info.optimizers[said.name].solver.set_states_from_protobuf(said)
    logger.info("Load training resume states: %s", filename)


def _load_states(solver: Any, states: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "states.h5")
        with open(path, "wb") as f:
            f.write(states)
        solver.load_states(path)


def latest(outdir: str) -> tuple[str, int] | None:
    """The newest of the results of a training that did not end, and its epoch."""
    found = []
    for path in glob.glob(os.path.join(glob.escape(outdir), "results_current_*.nnp")):
        name = os.path.basename(path)
        epoch = re.fullmatch(r"results_current_(\d{1,9})\.nnp", name)
        if epoch is None:
            raise FormatError(message("train", "outdir", "results_current_<epoch>.nnp", repr(path)))
        found.append((int(epoch[1]), path))
    return (max(found)[1], max(found)[0]) if found else None
