"""The logger: silent import, NNabla's settings, and the program's own set-up of logging before all."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

import nnrs as nn


def said(script, tmp_path, settings=""):
    """What a script prints, errors first; with `nnabla.conf` in its folder."""
    (tmp_path / "nnabla.conf").write_text(settings)
    code = f"import logging\nimport nnrs as nn\n{script}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == ""
    return done.stderr


def test_import_is_silent_and_leaves_the_root_alone(tmp_path):
    assert said("assert not logging.root.handlers and logging.root.level == logging.WARNING", tmp_path) == ""


def test_messages_are_printed_as_by_nnabla(tmp_path):
    text = said("nn.logger.info('a %d', 3); nn.logger.debug('no'); nn.logger.error('b')", tmp_path)
    first, second = text.splitlines()
    assert first.endswith(" [nnrs][INFO]: a 3") and second.endswith(" [nnrs][ERROR]: b")
    assert said("nn.logger.setLevel(logging.ERROR); nn.logger.warning('no')", tmp_path) == ""
    assert "[DEBUG]: yes" in said("nn.logger.setLevel('DEBUG'); nn.logger.debug('yes')", tmp_path)


def test_the_set_up_of_a_program_counts(tmp_path):
    script = "logging.basicConfig(format='mine %(message)s'{})\nnn.logger.info('a')"
    assert said(script.format(""), tmp_path) == ""
    assert said(script.format(", level=logging.INFO"), tmp_path) == "mine a\n"
    script = "nn.logger.addHandler(logging.StreamHandler()); nn.logger.propagate = False; nn.logger.info('a')"
    assert said(script, tmp_path).splitlines()[-1] == "a"


def test_settings(tmp_path):
    settings = "[LOG]\nlog_console_level = DEBUG\nlog_console_format = <%(message)s>\n"
    assert said("nn.logger.debug('a')", tmp_path, settings) == "<a>\n"
    settings = "[LOG]\nlog_file_name = x.log\nlog_file_level = WARNING\nlog_file_format = %(levelname)s %(message)s\n"
    text = said("nn.logger.info('a'); nn.logger.warning('b')", tmp_path, settings)
    assert len(text.splitlines()) == 2
    assert (tmp_path / "x.log").read_text() == "WARNING b\n"
    script = "from nnrs.logger import log_file_level, log_console_level, log_file_name\n"
    said(script + "assert (log_file_level, log_console_level, log_file_name) == (30, 20, 'x.log')", tmp_path, settings)


@pytest.mark.parametrize("line", ["log_console_level = LOUD", "log_file_name = no/such/folder/x.log"])
def test_settings_that_cannot_be_used_are_warned_of(tmp_path, line):
    text = said("nn.logger.info('a'); nn.logger.info('b')", tmp_path, f"[LOG]\n{line}\n")
    assert text.count("RuntimeWarning") == 1 and line.split()[0] in text
    assert text.count("[INFO]: ") == 2


@pytest.mark.parametrize("content", [b"\xff\xfe", b"no section = 3\n", b"[LOG\n", b"[LOG]\n[LOG]\n"])
def test_a_file_that_is_none_of_settings_is_warned_of(tmp_path, content):
    (tmp_path / "mine").write_bytes(content)
    script = f"import os\nos.environ['NNABLA_CONFIG_FILE_PATH'] = {str(tmp_path / 'mine')!r}\n"
    text = said(script + "nn.logger.info('a'); nn.logger.info('b')", tmp_path)
    assert text.count("RuntimeWarning") == 1 and "mine is ignored: " in text and text.count("[INFO]: ") == 2


def test_nnablas_name_is_the_same_logger(tmp_path):
    script = "import nnrs.compat\nnnrs.compat.install()\nassert logging.getLogger('nnabla') is nn.logger\n"
    script += "import nnabla\nfrom nnabla.logger import logger\nassert nnabla.logger is logger\n"
    said(script + "nnrs.compat.uninstall(); assert logging.getLogger('nnabla') is not nn.logger", tmp_path)


def test_other_names():
    assert nn.logger is logging.getLogger("nnrs")
    with pytest.raises(AttributeError, match="no attribute 'zork'"):
        sys.modules["nnrs.logger"].zork  # noqa: B018
    nn.logger.disabled = True
    try:
        assert not nn.logger.isEnabledFor(logging.CRITICAL)
    finally:
        nn.logger.disabled = False
