"""NNabla's settings file as scripts read and set it: `nnrs.config.nnabla_config`."""

from __future__ import annotations

import configparser
import os
import warnings
from pathlib import Path

from ._errors import ArgumentError, is_of_user_code, message

# NNabla 1.39's settings.
_DEFAULTS = {
    "DATA_ITERATOR": {
        "cache_file_format": ".npy",
        "data_source_file_cache_num_of_threads": "10",
        "cache_file_cache_num_of_threads": "4",
        "data_source_file_cache_size": "100",
        "data_source_file_cache_location": "",
        "data_source_buffer_max_size": "1073741824",
    },
    "LOG": {
        "log_file_name": "",
        "log_file_level": "DEBUG",
        "log_file_format": (
            "%(asctime)s [%(name)s][%(levelname)s]: %(pathname)s : %(funcName)s : %(lineno)s : %(message)s"
        ),
        "log_console_level": "INFO",
        "log_console_format": "%(asctime)s [%(name)s][%(levelname)s]: %(message)s",
    },
    "MISC": {"misc_show_progress": "True", "nnp_param_format": ".h5"},
    "CALLBACK": {"util_callback_module": ""},
    "CHECKPOINT": {"optimizer_interval": "5"},
    "MULTINODE": {
        "analyse_gpu_status_interval": "20",
        "gpu_slowing_warning_threshold": "2",
        "gpu_slowing_error_threshold": "10",
    },
}


def settings_files() -> list[Path]:
    """The files that may say otherwise; a later one counts more."""
    if os.name == "nt":
        roots = [Path(os.environ[name]) for name in ("PROGRAMDATA", "APPDATA") if name in os.environ]
        files = [root / "NNabla" / "nnabla.ini" for root in roots]
    else:
        files = [Path("/etc/nnabla.conf"), Path(os.path.expanduser("~/.nnabla"))]
    named = os.environ.get("NNABLA_CONFIG_FILE_PATH")
    return [*files, Path("nnabla.conf"), *([Path(named)] if named else [])]


def read() -> configparser.RawConfigParser:
    """The defaults, and what the files that are there say."""
    config = configparser.RawConfigParser()
    config.read_dict(_DEFAULTS)
    for file in settings_files():
        _add(config, file)
    return config


def _add(config: configparser.RawConfigParser, file: Path) -> None:
    """What one file says, if it is there; a RuntimeWarning if it is no file of settings."""
    found = configparser.RawConfigParser()
    try:
        found.read(file, encoding="utf-8")
    except (configparser.Error, OSError, UnicodeDecodeError) as error:
        warnings.warn(f"{file} is ignored: {error}", RuntimeWarning, stacklevel=2)
        return
    config.read_dict(found)


def data_setting(name: str) -> str:
    """What `nnrs.config.nnabla_config` says in its section DATA_ITERATOR, which scripts may have changed."""
    from . import config

    try:
        return str(config.nnabla_config.get("DATA_ITERATOR", name)).strip()
    except configparser.Error:  # a script took it out
        return _DEFAULTS["DATA_ITERATOR"][name]


def data_number(function: str, name: str, least: int = 1) -> int:
    """A setting of data sources as a number of `least` or more."""
    text = data_setting(name)
    try:
        number = int(text)
    except ValueError as error:
        if is_of_user_code(error):
            raise
        number = least - 1
    if number < least:
        raise ArgumentError(message(function, name, f"a whole number of {least} or more in nnabla_config", repr(text)))
    return number
