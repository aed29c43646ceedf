"""Where the files of trained networks are: a folder of the user, and the server that they come from."""

from __future__ import annotations

import importlib
import os

from .._borrowed import borrower
from ..logger import logger

__all__ = ["get_model_home", "get_model_url_base", "get_model_url_base_from_env"]

__getattr__ = borrower(__name__)

_SERVER = "https://nnabla.org/pretrained-models/nnp_models/"
_VARIABLE = "NNABLA_MODELS_URL_BASE"


def get_model_home() -> str:
    """The folder of the files, `nnp_models` in that of downloaded data; made if it is not there."""
    folder = os.path.join(importlib.import_module("nnrs.utils.download").get_data_home(), "nnp_models")
    os.makedirs(folder, exist_ok=True)
    return folder


def get_model_url_base_from_env() -> str | None:
    """What the environment variable NNABLA_MODELS_URL_BASE says, if it is set."""
    return os.environ.get(_VARIABLE)


def get_model_url_base() -> str:
    """The address that the files come from: NNABLA_MODELS_URL_BASE, or NNabla's server.

    >>> get_model_url_base().startswith("http")
    True
    """
    base = get_model_url_base_from_env()
    if base is None:
        return _SERVER
    logger.info("%s is set as %s", _VARIABLE, base)
    return base
