"""Monitors write the files that NNabla 1.39's write, which was asked for those below."""

from __future__ import annotations

import logging
import os
import resource
import struct
import sys
import types
import zlib
from pathlib import Path

import numpy as np
import pytest

import nnrs as nn
import nnrs.functions as F
from nnrs import monitor as M


def written(series):
    return Path(series.sp).read_text()


@pytest.fixture
def folder(tmp_path):
    return M.Monitor(tmp_path / "made" / "here")


@pytest.fixture
def saved(monkeypatch):
    """What is saved as images, by the names of the files."""
    images = {}
    fake = types.ModuleType("nnrs.utils.image_utils")
    fake.imsave = lambda path, image: images.update({os.path.basename(path): image})
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    return images


VALUES = [1e-9, 123456789.0, float("nan"), np.float32(0.1), np.ones((2, 2)), True, [1, 2], np.inf, np.float16(0.1)]
LINES = "0 1e-09\n1 1.23457e+08\n2 nan\n3 0.1\n4 1\n5 1\n6 1.5\n7 inf\n8 0.0999756\n"


def test_a_line_has_index_and_mean(folder):
    series = M.MonitorSeries("z", folder)
    for i, value in enumerate(VALUES):
        series.add(i, value)
    assert written(series) == LINES
    for index, value in [(100, 3), (100, 4), (50, 4), (101, 6), (102.5, 1)]:
        series.add(index, value)
    assert written(series) == LINES + "100 3\n101 4.66667\n102.5 1\n"


def test_a_line_an_interval(folder):
    series = M.MonitorSeries("Training loss", folder, interval=3)
    for i in range(10):
        series.add(i, np.float32(2 * i / 3))
    assert written(series) == "2 0.666667\n5 2.66667\n8 4.66667\n"
    assert os.path.basename(series.sp) == "Training-loss.series.txt"


@pytest.mark.host
def test_a_view_is_read_when_the_line_is_written(folder):
    """As in NNabla; `.d.copy()` is a value of its own."""
    views, copies = (M.MonitorSeries(name, folder, interval=3) for name in ("views", "copies"))
    x = nn.Variable((2,))
    y = F.sum(x)
    for i in range(10):
        x.d = i
        y.forward()
        views.add(i, y.d)
        copies.add(i, y.d.copy())
    assert written(views) == "2 4\n5 10\n8 16\n"
    assert written(copies) == "2 2\n5 8\n8 14\n"


def test_variables_are_their_values(folder):
    series = M.MonitorSeries("v", folder)
    series.add(0, nn.Variable.from_numpy_array([1, 2]))
    series.add(1, nn.NdArray.from_numpy_array([4, 5]))
    assert written(series) == "0 1.5\n1 4.5\n"


def test_a_new_monitor_begins_a_new_file(folder):
    M.MonitorSeries("a", folder).add(0, 1)
    series = M.MonitorSeries("a", folder)
    assert written(series) == ""
    nested = M.MonitorSeries("valid/top 1", folder)
    nested.add(0, 1)
    assert Path(folder.save_path, "valid", "top-1.series.txt").read_text() == "0 1\n"


def test_log_lines(folder, caplog):
    caplog.set_level(logging.INFO)
    M.MonitorSeries("loss").add(3, np.float32(0.1))
    M.MonitorSeries("quiet", verbose=False).add(3, 1)
    M.MonitorSeries("later", interval=10).add(3, 1)
    assert [r.getMessage() for r in caplog.records] == ["iter=3 {loss}=0.10000000149011612"]


def test_times(folder, monkeypatch, caplog):
    now = iter([100.0, 100.5, 103.0])
    monkeypatch.setattr(M, "time", types.SimpleNamespace(time=lambda: next(now)))
    caplog.set_level(logging.INFO)
    times = M.MonitorTimeElapsed("t t", folder, interval=2)
    for i in range(5):
        times.add(i)
    assert written(times) == "1 0.5 2 0.5\n3 2.5 2 3.0\n"
    assert os.path.basename(times.sp) == "t-t.timer.txt"
    assert caplog.messages[1] == "iter=3 {t t}=2.5[sec/2iter] 3.0[sec]"


def test_wrong_arguments(folder):
    series = M.MonitorSeries("s", folder, interval=2)
    series.add(0, 1)
    for value in ("a", None, object(), ["a"], 1j):
        with pytest.raises(TypeError, match="MonitorSeries.add: argument 'value'"):
            series.add(1, value)
    for index in ("a", None, [1, 2]):
        with pytest.raises(TypeError, match="argument 'index'"):
            series.add(index, 1)
    series.add(1, 2)
    assert written(series) == "1 1.5\n"
    with pytest.raises(TypeError, match="argument 'monitor': expected a Monitor"):
        M.MonitorSeries("s", "folder")
    with pytest.raises(TypeError, match="argument 'name'"):
        M.MonitorSeries(3)
    with pytest.raises(TypeError, match="argument 'interval'"):
        M.MonitorTimeElapsed("s", interval="2")
    with pytest.raises(OSError, match="cannot make the folder") as e:
        M.Monitor(series.sp)
    assert isinstance(e.value, nn.Error)


def test_what_cannot_be_written_is_not_added(folder):
    series = M.MonitorSeries("s", folder, interval=2)
    series.add(0, 1)
    os.unlink(series.sp)
    os.mkdir(series.sp)
    with pytest.raises(OSError, match="cannot write"):
        series.add(1, 2)
    os.rmdir(series.sp)
    series.add(1, 2)
    assert written(series) == "1 1.5\n"


def test_a_full_disk_leaves_whole_lines(folder):
    series = M.MonitorSeries("s", folder)
    series.add(0, 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6, hard))
    try:
        with pytest.raises(OSError, match="cannot write"):
            series.add(1, 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, old)
    assert written(series) == "0 1\n"
    series.add(1, 2)
    assert written(series) == "0 1\n1 2\n"


# --- images -----------------------------------------------------------------------------------------------------------


def test_tiles_stand_in_a_square():
    tiled = M.tile_images(np.arange(12).reshape(3, 1, 2, 2), 2, 9)
    first = [[0, 1, 9, 9, 4, 5, 9, 9], [2, 3, 9, 9, 6, 7, 9, 9], [9] * 8, [9] * 8]
    assert tiled.tolist() == [*first, [8, 9, *[9] * 6], [10, 11, *[9] * 6], [9] * 8, [9] * 8]
    assert M.tile_images(np.zeros((5, 3, 2, 4))).shape == (9, 15, 3)
    assert M.tile_images(np.zeros((0, 1, 2, 2))).shape == (0, 0)
    with pytest.raises(ValueError, match=r"expected an array of shape \(B, C, H, W\), got shape \(1, 2, 2\)"):
        M.tile_images(np.zeros((1, 2, 2)))


def test_images_of_a_batch(folder, saved, caplog):
    caplog.set_level(logging.INFO)
    images = M.MonitorImage("im g", folder, interval=2, num_images=2)
    x = np.arange(3 * 4 * 2 * 2, dtype=np.float32).reshape(3, 4, 2, 2)
    for index in range(6):
        images.add(index, x)
    assert list(saved) == [f"{i:06d}-{j:03d}.png" for i in (0, 1, 3, 5) for j in (0, 1)]
    scaled = x[:2] / 31
    np.testing.assert_allclose(saved["000003-001.png"], scaled[1, :3].transpose(1, 2, 0), rtol=1e-6)
    where = os.path.join(folder.save_path, "im-g", "000000-*.png")
    assert caplog.messages[0] == f"iter=0 {{im g}} are written to {where}."
    assert os.path.isdir(images.save_dir)


@pytest.mark.parametrize("kind", [nn.Variable.from_numpy_array, nn.NdArray.from_numpy_array, np.array])
def test_channels(folder, saved, kind):
    images = M.MonitorImage("i", folder, normalize_method=lambda x: x / 2, verbose=False)
    x = np.arange(2 * 5 * 4, dtype=np.float32).reshape(2, 5, 2, 2)
    images.add(0, kind(x[:, :1]))
    assert saved["000000-001.png"].tolist() == (x[1, 0] / 2).tolist()
    images.add(0, kind(x[:, :2]))
    assert saved["000000-001.png"][..., 2].tolist() == [[1, 1], [1, 1]]
    assert saved["000000-001.png"][..., 0].tolist() == (x[1, 0] / 2).tolist()
    images.add(0, kind(x[None, :, :3]))
    assert saved["000000-000.png"].shape == (2, 2, 3)


def test_an_image_of_one_value_is_black(folder, saved):
    M.MonitorImage("i", folder).add(0, np.full((1, 1, 2, 2), 7.0))
    assert saved["000000-000.png"].tolist() == [[0, 0], [0, 0]]
    M.MonitorImage("i", folder).add(0, np.array([[[[-128, 127]]]], np.int8))
    assert saved["000000-000.png"].tolist() == [[0, 1]]


@pytest.mark.parametrize("kind", [M.MonitorImage, M.MonitorImageTile])
def test_numbers_that_are_not_finite_end_no_training(kind, folder, saved):
    """A NaN is black, an infinite number the end of the scale; the others keep theirs."""
    x = np.array([[[[0.0, 5.0, np.nan, 10.0, np.inf, -np.inf]]]])
    kind("i", folder, num_images=1).add(0, x)
    (image,) = saved.values()
    assert np.nan_to_num(image.ravel()).tolist()[:6] == [0, 0.5, 0, 1, 1, 0]
    kind("j", folder, num_images=1).add(0, np.full((1, 1, 2, 2), np.nan))


def test_tiled_images(folder, saved, caplog):
    caplog.set_level(logging.INFO)
    images = M.MonitorImageTile("i", folder, interval=10, num_images=3)
    for index in range(10):
        images.add(index, np.arange(2 * 2 * 3 * 3.0).reshape(2, 2, 1, 3, 3))
    assert {name: image.shape for name, image in saved.items()} == {"000000.png": (8, 8), "000009.png": (8, 8)}
    assert caplog.messages[1].endswith("is written to " + os.path.join(images.save_dir, "000009.png") + ".")


def test_wrong_images(folder, saved):
    images = M.MonitorImage("i", folder)
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        images.add(0, np.zeros((2, 2)))
    with pytest.raises(TypeError, match="expected a Variable, NdArray or NumPy array, got list"):
        images.add(0, [[1]])
    with pytest.raises(ValueError, match="argument 'interval': expected 1 or more, got 0"):
        M.MonitorImage("i", folder, interval=0)
    with pytest.raises(TypeError, match="argument 'monitor'"):
        M.MonitorImageTile("i", None)
    with pytest.raises(TypeError, match="argument 'normalize_method'"):
        M.MonitorImage("i", folder, normalize_method=3)
    images.add(0, np.zeros((0, 1, 2, 2)))
    M.MonitorImageTile("i", folder).add(0, np.zeros((0, 1, 2, 2)))
    assert saved == {}


# --- plots ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.figure()
    yield plt
    plt.close("all")


def test_plots(folder, plt):
    series = M.MonitorSeries("s", folder)
    for i in range(3):
        series.add(i, i / 2)
    M.plot_series(series.sp, {"color": "red"})
    (line,) = plt.gca().lines
    assert (line.get_xdata().tolist(), line.get_ydata().tolist(), line.get_color()) == ([0, 1, 2], [0, 0.5, 1], "red")
    times = Path(folder.save_path, "t.timer.txt")
    times.write_text("99 60.0 100 60.0\n199 120.0 100 180.0\n\n")
    M.plot_time_elapsed(times)
    M.plot_time_elapsed(str(times), elapsed=True, unit="m")
    assert [line.get_ydata().tolist() for line in plt.gca().lines[1:]] == [[60, 120], [1, 3]]


def test_what_is_not_a_monitors_file(tmp_path, plt):
    file = tmp_path / "a.series.txt"
    for content in (b"0 1\n1\n", b"0 x\n", b"\xff\xfe"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="a.series.txt") as e:
            M.plot_series(file)
        assert isinstance(e.value, nn.Error)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        M.plot_series(tmp_path / "b")
    with pytest.raises(ValueError, match="argument 'unit': expected 's', 'm', 'h' or 'd', got 'y'"):
        M.plot_time_elapsed(file, unit="y")
    assert not plt.gca().lines
    file.write_text("")
    M.plot_series(file)


# --- TensorBoard ------------------------------------------------------------------------------------------------------


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = zlib.compress((b"\0" + bytes(width)) * height)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def events(folder):
    """Tag, step and value of all events of a folder: of images the width and height."""
    from tensorboardX.proto.event_pb2 import Event

    (file,) = Path(folder).glob("events.*")
    data, at, found = file.read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        event = Event.FromString(data[at + 12 : at + 12 + size])
        at += size + 16
        for v in event.summary.value:
            value = (v.image.width, v.image.height) if v.HasField("image") else v.simple_value
            found.append((v.tag, event.step, value))
    return found


def test_tensorboard(tmp_path, monkeypatch):
    pytest.importorskip("tensorboardX")
    fake = types.ModuleType("nnrs.utils.image_utils")
    fake.imsave = lambda path, image: Path(path).write_bytes(png(3, 2))
    monkeypatch.setitem(sys.modules, fake.__name__, fake)
    with M.MonitorTensorBoard(tmp_path) as folder:
        series = M.MonitorSeries("loss", folder, interval=2)
        for i in range(4):
            series.add(i, i)
        M.MonitorTimeElapsed("time", folder, interval=1).add(7)
        M.MonitorImage("i", folder, num_images=2).add(0, np.zeros((2, 1, 2, 3)))
        M.MonitorImageTile("t", folder).add(0, np.zeros((2, 1, 2, 3)))
    series.add(5, 3)
    assert written(series) == "1 0.5\n3 2.5\n5 3\n"
    found = events(tmp_path)
    assert [e[:2] for e in found] == [("loss", 1), ("loss", 3), ("time", 7), ("i/000", 0), ("i/001", 0), ("t", 0)]
    assert [value for *_, value in found[:2]] == [0.5, 2.5]
    assert [value for *_, value in found[3:]] == [(3, 2)] * 3


def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(ImportError, match=r"tensorboardX\n  hint: pip install nnrs\[tensorboard\]"):
        M.MonitorTensorBoard(tmp_path)
    (tmp_path / "s").write_text("0 1\n")
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"matplotlib\n  hint: pip install nnrs\[viz\]"):
        M.plot_series(tmp_path / "s")
