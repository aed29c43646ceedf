"""The logger of nnrs, named 'nnrs': what monitors and helpers say while a script runs.

Importing nnrs prints nothing and leaves Python's root logger alone. A message goes

- to the console (stderr), if the program has not set up logging itself: level and format are `log_console_level` and
  `log_console_format` of section LOG in NNabla's settings file (`nnrs.config.nnabla_config`), by default INFO;
- else to the handlers of the program's root logger, at that logger's level, as for any library;
- and to the file `log_file_name` of those settings, if it is set, from `log_file_level` on.

`logger.setLevel` comes before the console's and the root's level: what it stops goes nowhere. The settings are read
with the first message.

>>> logger.name
'nnrs'
>>> logger.isEnabledFor(40)
True
"""

from __future__ import annotations

import functools
import logging
import sys
import warnings
from typing import Any, NamedTuple

from ._borrowed import borrowed

_LEVELS = {name: getattr(logging, name) for name in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")}


class _LogSettings(NamedTuple):
    """Section LOG of the settings."""

    console_level: int
    console_format: str
    file_name: str
    file_level: int
    file_format: str


def _level(name: str, text: str, default: int) -> int:
    if text.strip().upper() in _LEVELS:
        return int(_LEVELS[text.strip().upper()])
    expected = f"one of {', '.join(_LEVELS)}"
    warnings.warn(f"nnabla.conf: LOG {name} is ignored: expected {expected}, got '{text}'", RuntimeWarning, 2)
    return default


@functools.lru_cache(maxsize=1)
def _settings() -> _LogSettings:
    """What the settings say, and the file's handler, once."""
    from .config import nnabla_config as config

    def get(name: str) -> str:
        return config.get("LOG", name)

    found = _LogSettings(
        _level("log_console_level", get("log_console_level"), logging.INFO),
        get("log_console_format"),
        get("log_file_name"),
        _level("log_file_level", get("log_file_level"), logging.DEBUG),
        get("log_file_format"),
    )
    if found.file_name:
        _add_file(found)
    return found


def _add_file(settings: _LogSettings) -> None:
    try:
        handler = logging.FileHandler(settings.file_name)
        handler.setFormatter(logging.Formatter(settings.file_format))
    except (OSError, ValueError) as error:
        warnings.warn(f"nnabla.conf: LOG log_file_name is ignored: {error}", RuntimeWarning, 2)
        return
    handler.setLevel(settings.file_level)
    logger.addHandler(handler)


class _Console(logging.Handler):
    """Prints to the stderr of the moment, where the program has no handlers of its own at the root."""

    def filter(self, record: logging.LogRecord) -> Any:
        return not logging.root.handlers

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
            if sys.stderr is not None:
                sys.stderr.write(f"{text}\n")
                sys.stderr.flush()
        except Exception:
            self.handleError(record)

    def format(self, record: logging.LogRecord) -> str:
        if self.formatter is None:
            self.formatter = logging.Formatter(_settings().console_format)
        return super().format(record)


class _NnrsLogger(logging.Logger):
    """A logger whose level, where none is set, is the root's if that has handlers, and else the settings'."""

    def getEffectiveLevel(self) -> int:
        if self.level:
            return self.level
        settings = _settings()
        return logging.root.getEffectiveLevel() if logging.root.handlers else settings.console_level

    def isEnabledFor(self, level: int) -> bool:
        # Not remembered, as `Logger` does it: handlers of the root come and go.
        return not self.disabled and self.manager.disable < level and level >= self.getEffectiveLevel()


def _make() -> logging.Logger:
    """The logger 'nnrs' as the package's own kind, whoever has asked for the name before."""
    made = logging.getLogger("nnrs")
    made.__class__ = _NnrsLogger
    made.addHandler(_Console())
    return made


logger: logging.Logger = _make()
"""Standard logger of the package."""

_NAMES = {
    "log_console_level": "console_level",
    "log_console_format": "console_format",
    "log_file_name": "file_name",
    "log_file_level": "file_level",
    "log_file_format": "file_format",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(_settings(), _NAMES[name])
    return borrowed(__name__, name)
