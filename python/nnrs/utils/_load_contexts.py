"""The contexts that a file names, as they are on this machine and for this process."""

from __future__ import annotations

from typing import Any

from .._errors import UnknownExtensionError, is_of_user_code, message
from ..ext_utils import get_extension_context, list_extensions
from ..logger import logger
from .communicator_util import current_communicator


def default_context(proto: Any, wanted: str | None) -> Any:
    """Where all runs: as `wanted` says, such as 'cudnn:1'; else as the file does."""
    if wanted is not None:
        name, _, device = wanted.partition(":")
        try:
            return get_extension_context(name, device_id=_device(device))
        except UnknownExtensionError as error:
            known = ", ".join(map(repr, list_extensions()))
            raise UnknownExtensionError(message("load", "context", f"one of {known}", repr(wanted))) from error
    if not proto.HasField("global_config"):
        return get_extension_context("cpu")
    return context_of(proto.global_config.default_context)


def context_of(proto: Any) -> Any:
    """A context of a file; one of a GPU that is not here is the CPU's."""
    backends = list(proto.backends) or _old_backends(proto)
    on_gpu = next((b for b in backends if b.startswith(("cudnn", "cuda"))), None)
    kind = next((b.partition(":")[2] for b in backends if ":" in b), "") or "float"
    if on_gpu is not None:
        try:
            return get_extension_context(on_gpu.partition(":")[0], device_id=_device(proto.device_id), type_config=kind)
        except (RuntimeError, ImportError, ValueError) as error:
            if is_of_user_code(error):
                raise
            logger.warning("The file asks for a GPU, but there is none that can be used: %s", error)
    return get_extension_context("cpu", type_config=kind)


def _device(said: str) -> str:
    """The number of the GPU: of several processes each has its own."""
    comm = current_communicator()
    return said or "0" if comm is None else str(comm.local_rank)


def _old_backends(proto: Any) -> list[str]:
    """Files of old versions say 'cpu|cuda' and 'default|cudnn'."""
    found = [b.strip() for b in f"{proto.compute_backend}|{proto.backend}".split("|")]
    return [b for b in found if b in ("cudnn", "cuda", "cpu")]
