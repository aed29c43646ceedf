"""What errors of files, images and the command line say: the user's own path, once, and what is wrong with it."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs._errors import reason
from nnrs.utils.cli import conv_dataset
from nnrs.utils.cli.cli import main
from nnrs.utils.image_utils import imread, imsave
from nnrs.utils.load import load
from nnrs.utils.save import save

FULL = OSError(28, "No space left on device")


def said(capsys, *argv):
    assert main(list(argv)) == 1
    return capsys.readouterr().err


def test_the_reason_of_an_error():
    assert reason(FULL, "a") == "No space left on device"
    assert reason(OSError(2, "No such file or directory", "b"), "a") == "No such file or directory: 'b'"
    assert reason(OSError(21, "Is a directory", "a"), "a") == "Is a directory"
    assert reason(OSError(28, "No space", "x/.nnrs-1/a")) == "No space"
    assert reason(RuntimeError("1, errno = 28, error message = 'No space left', buf = 0x7")) == "No space left"
    assert reason(ValueError("embedded null byte"), "a") == "embedded null byte"


@pytest.mark.parametrize("lines", ["", "x,t\n"])
def test_a_csv_without_samples_is_no_archive(tmp_path, capsys, lines):
    (tmp_path / "a.csv").write_text(lines)
    text = said(capsys, "create_tar", str(tmp_path / "a.csv"), str(tmp_path / "a.tar"))
    assert "expected a csv file of samples" in text and os.listdir(tmp_path) == ["a.csv"]


def test_files_without_parameters_are_not_compared(tmp_path, capsys):
    x = nn.Variable((2, 3))
    net = {"name": "n", "batch_size": 2, "outputs": {"y": F.relu(x)}, "names": {"x": x}}
    save(str(tmp_path / "a.nntxt"), {"networks": [net]})
    text = said(capsys, "compare_params", str(tmp_path / "a.nntxt"), str(tmp_path / "a.nntxt"))
    assert "expected files with parameters, got none in" in text


def test_a_full_disk_names_the_users_folder(tmp_path, capsys, monkeypatch):
    def full(*_, **__):
        raise OSError("12 requested and 0 written")  # as NumPy says it

    (tmp_path / "a.csv").write_text("x,t\n1,2\n")
    monkeypatch.setattr(np.lib.format, "write_array", full)
    text = said(capsys, "conv_dataset", str(tmp_path / "a.csv"), str(tmp_path / "a.cache"))
    assert f"cannot write the cache in {str(tmp_path / 'a.cache')!r}: No space left on device" in text
    assert ".nnrs-" not in text and os.listdir(tmp_path) == ["a.csv"]


def test_ctrl_c_before_there_is_a_command(monkeypatch):
    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr("nnrs.utils.cli.cli.make_parser", stop)
    assert main([]) == 130


def test_what_is_no_image(tmp_path):
    pytest.importorskip("PIL")
    pytest.importorskip("cv2")
    (tmp_path / "a.png").write_bytes(b"no image at all")
    for given, name in ((str(tmp_path / "a.png"), repr(str(tmp_path / "a.png"))), (io.BytesIO(b"no"), "the open file")):
        with pytest.raises(ValueError) as e:
            imread(given)
        assert f"{name} is no image that can be read" in str(e.value) and "BytesIO object" not in str(e.value)
    with pytest.raises(ValueError, match="expected a name with the ending of an image format, got '.xyz'"):
        imsave(str(tmp_path / "a.xyz"), np.zeros((3, 3), np.uint8))


def test_a_folder_in_the_place_of_a_file(tmp_path):
    for call in (load, nn.load_parameters, nn.save_parameters):
        with pytest.raises(ValueError, match="expected a file, got the folder"):
            call(str(tmp_path))


def test_parts_of_contents_of_another_kind(tmp_path):
    x = nn.Variable((2, 3))
    net = {"name": "n", "batch_size": 2, "outputs": {"y": F.relu(x)}, "names": {"x": x}}
    rule = {"name": "o", "solver": "Adam", "network": "n", "dataset": None}
    path = str(tmp_path / "a.nnp")
    with pytest.raises(TypeError, match="expected a list of dicts, got dict"):
        save(path, {"networks": net})
    with pytest.raises(TypeError, match=r"contents\['optimizers'\]\['solver'\]': expected a Solver, got str 'Adam'"):
        save(path, {"networks": [net], "optimizers": [rule]})
    assert os.listdir(tmp_path) == []


def test_an_error_of_another_path_is_left_as_it_is(tmp_path):
    def write(folder):
        raise nn._errors.FileError("cannot read 'b.csv'")

    with pytest.raises(OSError, match=r"^cannot read 'b.csv'$"):
        conv_dataset._in_place_of(str(tmp_path / "a.cache"), write)
