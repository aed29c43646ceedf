"""Fits the polynomials of the hyperbolic tangent by pieces and writes them: python tools/tanh_pieces.py

The least squares of errors relative to the tangent, on Chebyshev's points; coefficients are rounded to floats one
after the other, the next ones fitted to what is left. Needs NumPy and an x86, whose long double is longer than double.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

FILE = Path(__file__).parent.parent / "kernels/src/simd/tanh_pieces.rs"
TABLE, DEGREE = 32, 5
QUARTER_BITS = 21  # a float's bits from here on count quarters of powers of two
BEFORE = int(np.float32(1 / 16).view(np.int32)) - (1 << QUARTER_BITS)
END = 9.02  # from 9.0109 on the tangent is 1 as a float

TEXT = """//! The hyperbolic tangent by pieces, for vectors that pick numbers out of tables of {table}.
//! Written by tools/tanh_pieces.py: do not edit.

/// From here on it is 1.
pub const END: f64 = {end};
/// What stands before pieces in the bits of a number; the first piece is all below {first}.
pub const BEFORE: i32 = {before};
/// A piece's number stands above so many bits.
pub const BITS: u32 = {bits};

/// Of each piece a number within, and the polynomial in the distance from that, the constant first. The number is
/// one whose tangent is almost a float, so that the constant is as good as exact.
#[rustfmt::skip]
pub static PIECES: [[f32; {table}]; {rows}] = [
{body}];
"""


def begin(piece: int) -> float:
    """Where a piece begins, from the second one, number 1, on."""
    return float(np.int32(BEFORE + (piece << QUARTER_BITS)).view(np.float32))


def near(low: float, high: float) -> np.float32:
    """The float about the middle whose tangent is the nearest to a float."""
    middle = np.float32((low + high) / 2)
    floats = (middle.view(np.int32) + np.arange(-400, 401, dtype=np.int32)).view(np.float32)
    tangent = np.tanh(floats.astype(np.longdouble))
    return floats[np.argmin(np.abs(tangent - tangent.astype(np.float32)) / np.spacing(tangent.astype(np.float32)))]


def fit(low: float, high: float, about: float, constant: float, known: dict[int, float]) -> list[float]:
    """The coefficients of the distance from `about`; those known are not fitted."""
    x = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(400, dtype=np.longdouble) + 0.5) / 400)
    y, tangent = x - about, np.tanh(x)
    left = tangent - constant - sum(c * y**k for k, c in known.items())
    found = dict(known)
    powers = [k for k in range(1, DEGREE + 1) if k not in known]
    for i, k in enumerate(powers):
        scaled = np.stack([(y / (high - low)) ** p / tangent for p in powers[i:]], 1).astype(np.float64)
        first = np.linalg.lstsq(scaled, (left / tangent).astype(np.float64), rcond=None)[0][0]
        found[k] = float(np.float32(first / (high - low) ** k))
        left = left - np.longdouble(found[k]) * y**k
    return [found[k] for k in range(1, DEGREE + 1)]


def pieces() -> np.ndarray:
    """A row for each piece: the number within, the constant, the coefficients."""
    # Below the second piece the function is odd, and as good as its argument near 0.
    rows = [[0.0, 0.0, *fit(0.0, begin(1), 0.0, 0.0, {1: 1.0, 2: 0.0, 4: 0.0})]]
    while begin(len(rows)) < END:
        low, high = begin(len(rows)), min(begin(len(rows) + 1), END)
        about = near(low, high)
        constant = np.float32(np.tanh(np.longdouble(about)))
        rows.append([about, constant, *fit(low, high, np.longdouble(about), np.longdouble(constant), {})])
    return np.array(rows + rows[-1:] * (TABLE - len(rows)), dtype=np.float32)


def main() -> None:
    body = ""
    for row in pieces().T:
        numbers = [
            np.format_float_positional(v, trim="0")
            if v == 0 or abs(v) > 1e-4
            else np.format_float_scientific(v, exp_digits=1)
            for v in row
        ]
        lines = [", ".join(numbers[i : i + 8]) for i in range(0, TABLE, 8)]
        body += "    [\n" + "".join(f"        {line},\n" for line in lines) + "    ],\n"
    FILE.write_text(
        TEXT.format(
            table=TABLE,
            end=END,
            first=begin(1),
            before=f"0x{BEFORE >> 16:x}_{BEFORE & 0xFFFF:04x}",
            bits=QUARTER_BITS,
            rows=DEGREE + 2,
            body=body,
        )
    )


if __name__ == "__main__":
    main()
