"""Sound is read, written and resized as NNabla does with pydub; what is no sound is an error."""

from __future__ import annotations

import importlib.util
import io
import struct
import wave

import numpy as np
import pytest

import nnrs as nn
from nnrs.utils import audio_utils
from nnrs.utils.audio_utils import auread, auresize, ausave, minmax_auto_scale


def wav(width: int, channels: int, data: bytes) -> bytes:
    """A file that the standard library writes."""
    file = io.BytesIO()
    with wave.open(file, "wb") as w:
        w.setnchannels(channels)
        w.setsampwidth(width)
        w.setframerate(8000)
        w.writeframes(data)
    return file.getvalue()


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32])
@pytest.mark.parametrize("channels", [1, 2, 3])
def test_what_is_written_is_read(dtype, channels, tmp_path):
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, (7, channels), dtype=dtype, endpoint=True)
    path = tmp_path / "new" / "a.wav"
    ausave(path, x, frame_rate=8000)
    assert np.array_equal(auread(path), x) and auread(str(path)).dtype == dtype
    assert np.array_equal(auread(path, channel_first=True), x.T)
    with wave.open(str(path)) as w:
        assert (w.getnchannels(), w.getsampwidth(), w.getframerate(), w.getnframes()) == (
            channels,
            x.itemsize,
            8000,
            7,
        )
        assert w.readframes(7) == x.tobytes()
    with open(path, "rb") as f:
        f.read(3)
        assert np.array_equal(auread(f), x)
    ausave(path, x.T, channel_first=True)
    assert np.array_equal(auread(path), x)


def test_types_that_wav_does_not_have(tmp_path):
    path = tmp_path / "a.wav"
    ausave(path, np.int8([[-128], [0], [127]]))
    assert auread(path).tolist() == [[0], [128], [255]]
    ausave(path, np.uint16([[0], [32767]]))
    assert auread(path).tolist() == [[0], [32767]]
    ausave(path, np.array([[True], [False]]))
    assert auread(path).tolist() == [[1], [0]]
    ausave(path, np.zeros((0, 2), np.int16))
    assert auread(path).shape == (0, 2)


def test_widths_that_the_standard_library_writes():
    data = bytes(range(48))
    for width, expected in [(1, "u1"), (2, "<i2"), (4, "<i4")]:
        assert np.array_equal(auread(io.BytesIO(wav(width, 2, data))), np.frombuffer(data, expected).reshape(-1, 2))
    first = auread(io.BytesIO(wav(3, 2, data)))
    assert first.dtype == np.int32 and first.shape == (8, 2)
    assert first[:2].tolist() == [[33619968, 84148992], [134678016, 185207040]]  # NNabla 1.39


def chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def riff(*chunks: bytes) -> io.BytesIO:
    body = b"WAVE" + b"".join(chunks)
    return io.BytesIO(chunk(b"RIFF", body))


def about(kind: int, channels: int, width: int, more: bytes = b"") -> bytes:
    return chunk(b"fmt ", struct.pack("<HHIIHH", kind, channels, 8000, 0, width * channels, 8 * width) + more)


def test_other_chunks_floats_and_extensible():
    x = np.float32([[0.5, -1.5], [2.0, 3.0]])
    y = auread(riff(chunk(b"LIST", b"abc"), about(3, 2, 4), chunk(b"data", x.tobytes())))
    assert y.dtype == np.float32 and np.array_equal(y, x)
    extension = struct.pack("<HHIH", 22, 16, 3, 1) + b"\0" * 14
    z = np.int16([[1, 2], [3, 4]])
    assert np.array_equal(auread(riff(about(0xFFFE, 2, 2, extension), chunk(b"data", z.tobytes()))), z)
    endless = riff(about(1, 2, 2)).getvalue() + b"data\xff\xff\xff\xff" + z.tobytes()
    assert np.array_equal(auread(io.BytesIO(endless)), z)


@pytest.mark.parametrize(
    "file, match",
    [
        (riff(), "no samples"),
        (riff(chunk(b"data", b"ab")), "before the chunk"),
        (riff(chunk(b"fmt ", b"ab")), "2 are there"),
        (riff(about(1, 0, 2), chunk(b"data", b"ab")), "0 channels"),
        (riff(about(1, 2, 5), chunk(b"data", b"ab")), "no samples"),
        (riff(about(1, 2, 2), chunk(b"data", b"ab")), "no whole number of frames"),
        (riff(about(1, 1, 2), b"data\xff\xff\xff\x7fab"), "cut short: b'data' should have"),
    ],
)
def test_broken_files(file, match):
    with pytest.raises(ValueError, match=match) as caught:
        auread(file)
    assert isinstance(caught.value, nn.Error) and "auread: argument 'path'" in str(caught.value)


def test_compressed_sound_needs_pydub():
    audio_utils.set_backend("wave")
    with pytest.raises(ValueError, match="format 2.*\n.*nnrs\\[audio\\]"):
        auread(riff(about(2, 1, 2), chunk(b"data", b"ab")))


def test_changed_bytes_never_crash(tmp_path):
    rng = np.random.default_rng(1)
    whole = wav(2, 2, bytes(40))
    audio_utils.set_backend("wave")
    for _ in range(500):
        data = bytearray(whole)
        for at in rng.integers(0, 48, 2):
            data[at] = rng.integers(256)
        (tmp_path / "a.wav").write_bytes(bytes(data[: rng.integers(1, len(data) + 1)]))
        try:
            assert auread(tmp_path / "a.wav").ndim == 2
        except ValueError as error:
            assert isinstance(error, nn.Error)


def test_raw_files(tmp_path):
    data = bytes(range(24))
    (tmp_path / "a.raw").write_bytes(data)
    for width in (1, 2, 4):
        stored = {"sample_width": width, "channels": 2, "frame_rate": 8000}
        assert np.array_equal(
            auread(tmp_path / "a.raw", raw_format_param=stored), np.frombuffer(data, f"<i{width}").reshape(-1, 2)
        )
    for wrong in (None, {}, {"sample_width": 5, "channels": 1, "frame_rate": 1}, {**stored, "channels": 0}):
        with pytest.raises(ValueError, match="raw_format_param"):
            auread(tmp_path / "a.raw", raw_format_param=wrong)
    with pytest.raises(ValueError, match="does not fit"):
        auread(tmp_path / "a.raw", raw_format_param={**stored, "channels": 5})


# Of NNabla 1.39, made from np.random.RandomState(0).randint(-30000, 30000, shape) of int16.
RESIZED = [
    ((8, 1), (4, 1), [-27268, 12613, 15892, 400]),
    ((8, 1), (16, 2), [-27268, -27268, -6851, -6851, 13566, 13566, 13090, 13090, 12613, 12613]),
    ((8, 1), (8, 2), [-27268, -27268, 13566, 13566, 12613, 12613, 22415, 22415, 15891, 15891]),
    ((8, 1), (5, 1), [-27268, 12994, 21111, -3824, 1082]),
    ((8, 1), (7, 3), [-27268, -27268, -27268, 13430, 13430, 13430, 15413, 15413, 15413, 19620]),
    ((8, 2), (4, 1), [-6851, 3567, 19514, 911]),
    ((8, 2), (16, 2), [-27268, 13567, -7328, 17991, 12612, 22415, 14251, 6829, 15890, -8757]),
    ((8, 2), (8, 2), [-27268, 13567, 12612, 22415, 15890, -8756, 403, 2102, 11992, 27040]),
    ((8, 2), (5, 1), [-6851, 9146, 4903, 10218, 1351]),
    ((6, 3), (4, 1), [-364, 7341, 14273, 6325]),
    ((6, 3), (5, 1), [-364, 8845, 8608, 3159, 12675]),
    ((6, 3), (7, 3), [-27268, 13567, 12613, 15317, 15558, -5704, 6693, 6042, 6063, 15624]),
]


def straight_lines(x: np.ndarray, length: int) -> np.ndarray:
    """`audioop.ratecv` as a loop, for 16 bits."""
    rate = 48000 * length // len(x) + 1
    y, d, i, before, now = [], -rate, 0, 0, 0
    while True:
        while d < 0:
            if i == len(x):
                return np.array((y + [y[-1]] * length)[:length])
            before, now = now, int(x[i]) << 16
            i, d = i + 1, d + rate
        while d >= 0:
            y.append(int((float(before) * d + float(now) * (rate - d)) / rate) >> 16)
            d -= 48000


@pytest.mark.parametrize("shape, size, expected", RESIZED)
def test_resizing_as_nnabla_does(shape, size, expected):
    x = np.random.RandomState(0).randint(-30000, 30000, shape).astype(np.int16)
    y = auresize(x, size)
    assert y.dtype == np.int16 and y.shape == size
    assert y.ravel()[: len(expected)].tolist() == expected
    assert np.array_equal(auresize(x.T, size, channel_first=True), y.T)


@pytest.mark.parametrize("length", [1, 2, 7, 50, 99, 100, 101, 333])
def test_resizing_is_that_of_audioop(length):
    x = np.random.default_rng(2).integers(-32768, 32768, 100).astype(np.int16)
    assert auresize(x[:, None], (length, 1))[:, 0].tolist() == straight_lines(x, length).tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.float32, np.float64])
def test_types_of_resized_sound(dtype):
    x = np.array([[0, 100], [100, 0], [50, 50]], dtype)
    y = auresize(x, (3, 1))
    assert y.dtype == (np.float32 if np.dtype(dtype).kind == "f" else dtype)
    assert np.abs(y.astype(float) - 50).max() <= 1
    assert np.array_equal(auresize(y, (3, 4)), np.repeat(auresize(y, (3, 1)), 4, axis=1))
    assert auresize(np.repeat(y, 3, axis=1), (5, 1)).shape == (5, 1)


def test_minmax_auto_scale():
    x = np.array([[-1.0, 0, 1]])
    assert minmax_auto_scale(x, np.int16).tolist() == [[-32768, 0, 32767]]  # these of NNabla 1.39
    assert minmax_auto_scale(x, np.uint8).tolist() == [[0, 127, 255]]
    assert minmax_auto_scale(x, np.int32).tolist() == [[-2147483648, 0, 2147483647]]
    assert minmax_auto_scale(np.int16([[-1, 0, 1]]), np.float32)[0, 0] == np.finfo(np.float32).min
    assert minmax_auto_scale(np.int16([[3, 3]]), np.uint8).tolist() == [[255, 255]]
    assert minmax_auto_scale(np.int16([[0, 0]]), np.int16).tolist() == [[-32768, -32768]]
    for bad, kind in [(np.array([np.nan]), np.int16), (np.zeros(0), np.int16), (x, np.float64), (x, bool), (x, str)]:
        with pytest.raises(ValueError, match="minmax_auto_scale"):
            minmax_auto_scale(bad, kind)
    with pytest.raises(TypeError, match="a NumPy type"):
        minmax_auto_scale(x, "int16")


@pytest.mark.parametrize(
    "x, match",
    [
        ([[1]], "a NumPy array"),
        (np.zeros(3, np.int16), "shape \\(3,\\)"),
        (np.zeros((3, 2)), "integers of 4 bytes"),
        (np.zeros((3, 2), np.int64), "integers of 4 bytes"),
        (np.full((3, 2), 40000, np.uint16), "values up to 32767"),
        (np.zeros((3, 0), np.int16), "shape \\(samples, channels\\)"),
        (np.zeros((3, 2), complex), "real numbers"),
    ],
)
def test_what_cannot_be_written(x, match, tmp_path):
    with pytest.raises((ValueError, TypeError), match=match):
        ausave(tmp_path / "a.wav", x)
    assert not list(tmp_path.iterdir())


def test_wrong_arguments(tmp_path):
    x = np.zeros((4, 2), np.int16)
    for call in (
        lambda: ausave(tmp_path / "a.mp3", x),
        lambda: ausave(tmp_path / "a.wav", x, frame_rate=0),
        lambda: ausave(tmp_path / "a.wav", x, speed=2),
        lambda: auread(tmp_path / "a.wav"),
        lambda: auread(io.BytesIO(b"abc")),
        lambda: auread(3),
        lambda: auresize(x, (3, 3)),
        lambda: auresize(x, (3,)),
        lambda: auresize(x, 3),
        lambda: auresize(x, (0, 2)),
        lambda: auresize(x[:0], (3, 2)),
        lambda: auresize(x, (3, 2), kind="cubic"),
        lambda: audio_utils.set_backend("sox"),
    ):
        with pytest.raises((ValueError, TypeError, OSError)) as caught:
            call()
        assert isinstance(caught.value, nn.Error)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot make the folder"):
        ausave(tmp_path / "file" / "a.wav", x)


def test_backends(monkeypatch):
    monkeypatch.setattr(audio_utils, "_chosen", None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None)
    assert audio_utils.get_available_backends() == ["wave"] and audio_utils.get_backend() == "wave"
    with pytest.raises(ImportError, match="nnrs\\[audio\\]"):
        audio_utils.set_backend("pydub")
