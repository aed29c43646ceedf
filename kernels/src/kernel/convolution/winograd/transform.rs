//! The transforms of F(4x4, 3x3), and of F(4, 3) for kernels of one row, with the points 0, +-3/4, +-3/2 and infinity, whose
//! rounding is smaller than that of the usual 0, +-1, +-2 (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
//! 2016, has the scheme).
//!
//! Vectors hold channels. All of it runs inside `Lanes::enter`, on pointers that reach whole vectors.

// Rows become columns: iterators would hide it.
#![allow(clippy::needless_range_loop)]

use crate::simd::lanes::Lanes;

/// The points A and B with both signs.
const A: f32 = 0.75;
const B: f32 = 1.5;
const A2: f32 = A * A;
const B2: f32 = B * B;
/// The factors of the points 0, +-A and +-B.
const N0: f32 = 1.0 / (A2 * B2);
const NA: f32 = 1.0 / (2.0 * A2 * (A2 - B2));
const NB: f32 = 1.0 / (2.0 * B2 * (B2 - A2));

/// Columns of a transformed tile, of a tile of outputs, and of the kernel.
pub(super) const SIDE: usize = 6;
pub(super) const OUT: usize = 4;
pub(super) const TAPS: usize = 3;

/// What tiles and kernels are: squares, or one row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TileForm {
    Square,
    Row,
}

impl TileForm {
    /// Rows of what has so many columns.
    #[inline(always)]
    pub fn rows(self, columns: usize) -> usize {
        if self == TileForm::Square { columns } else { 1 }
    }

    /// Numbers of what has so many columns.
    #[inline(always)]
    pub fn area(self, columns: usize) -> usize {
        self.rows(columns) * columns
    }
}

/// Six inputs to six values at the points.
#[inline(always)]
unsafe fn input6<L: Lanes<f32>>(d: [L::V; 6]) -> [L::V; 6] {
    // SAFETY: inside `enter`.
    unsafe {
        let (s, p) = (L::splat(-(A2 + B2)), L::splat(A2 * B2));
        let (a2, b2) = (L::splat(-A2), L::splat(-B2));
        let (even_a, odd_a) = (L::fma(b2, d[2], d[4]), L::fma(b2, d[1], d[3]));
        let (even_b, odd_b) = (L::fma(a2, d[2], d[4]), L::fma(a2, d[1], d[3]));
        [
            L::fma(p, d[0], L::fma(s, d[2], d[4])),
            L::fma(L::splat(A), odd_a, even_a),
            L::fma(L::splat(-A), odd_a, even_a),
            L::fma(L::splat(B), odd_b, even_b),
            L::fma(L::splat(-B), odd_b, even_b),
            L::fma(p, d[1], L::fma(s, d[3], d[5])),
        ]
    }
}

/// Three taps to six values at the points.
#[inline(always)]
unsafe fn weight6<L: Lanes<f32>>(g: [L::V; 3]) -> [L::V; 6] {
    // SAFETY: inside `enter`.
    unsafe {
        let zero = L::splat(0.0);
        let ea = L::fma(L::splat(NA * A2), g[2], L::fma(L::splat(NA), g[0], zero));
        let eb = L::fma(L::splat(NB * B2), g[2], L::fma(L::splat(NB), g[0], zero));
        [
            L::fma(L::splat(N0), g[0], zero),
            L::fma(L::splat(NA * A), g[1], ea),
            L::fma(L::splat(-NA * A), g[1], ea),
            L::fma(L::splat(NB * B), g[1], eb),
            L::fma(L::splat(-NB * B), g[1], eb),
            g[2],
        ]
    }
}

/// The adjoint of [`weight6`]: sums at six points to three taps.
#[inline(always)]
unsafe fn taps6<L: Lanes<f32>>(m: [L::V; 6]) -> [L::V; 3] {
    // SAFETY: inside `enter`.
    unsafe {
        let (one, minus, zero) = (L::splat(1.0), L::splat(-1.0), L::splat(0.0));
        let (sa, da) = (L::fma(one, m[1], m[2]), L::fma(minus, m[2], m[1]));
        let (sb, db) = (L::fma(one, m[3], m[4]), L::fma(minus, m[4], m[3]));
        [
            L::fma(L::splat(N0), m[0], L::fma(L::splat(NA), sa, L::fma(L::splat(NB), sb, zero))),
            L::fma(L::splat(NA * A), da, L::fma(L::splat(NB * B), db, zero)),
            L::fma(L::splat(NA * A2), sa, L::fma(L::splat(NB * B2), sb, m[5])),
        ]
    }
}

/// The adjoint of [`output6`]: four gradients to six values at the points.
#[inline(always)]
unsafe fn gradient6<L: Lanes<f32>>(g: [L::V; 4]) -> [L::V; 6] {
    // SAFETY: inside `enter`.
    unsafe {
        let (even_a, odd_a) = (L::fma(L::splat(A2), g[2], g[0]), L::fma(L::splat(A2), g[3], g[1]));
        let (even_b, odd_b) = (L::fma(L::splat(B2), g[2], g[0]), L::fma(L::splat(B2), g[3], g[1]));
        [
            g[0],
            L::fma(L::splat(A), odd_a, even_a),
            L::fma(L::splat(-A), odd_a, even_a),
            L::fma(L::splat(B), odd_b, even_b),
            L::fma(L::splat(-B), odd_b, even_b),
            g[3],
        ]
    }
}

/// Values at six points to four outputs.
#[inline(always)]
unsafe fn output6<L: Lanes<f32>>(m: [L::V; 6]) -> [L::V; 4] {
    // SAFETY: inside `enter`.
    unsafe {
        let (one, minus) = (L::splat(1.0), L::splat(-1.0));
        let (sa, da) = (L::fma(one, m[1], m[2]), L::fma(minus, m[2], m[1]));
        let (sb, db) = (L::fma(one, m[3], m[4]), L::fma(minus, m[4], m[3]));
        let zero = L::splat(0.0);
        [
            L::fma(one, m[0], L::fma(one, sa, sb)),
            L::fma(L::splat(A), da, L::fma(L::splat(B), db, zero)),
            L::fma(L::splat(A2), sa, L::fma(L::splat(B2), sb, zero)),
            L::fma(L::splat(A * A2), da, L::fma(L::splat(B * B2), db, m[5])),
        ]
    }
}

/// `$f` of the columns of a tile of $in x $in vectors, then of the rows of what they become, $out x $out vectors, which are
/// stored; or of one row. A macro, since closures would not be compiled for the instruction set.
macro_rules! columns_then_rows {
    ($form:ident, $f:ident, $in:ident to $out:ident;
     |$i:ident, $j:ident| $load:expr; |$a:ident, $b:ident, $v:ident| $store:expr) => {
        if $form == TileForm::Square {
            let mut t = [[L::splat(0.0); $in]; $out];
            for $j in 0..$in {
                let mut d = [L::splat(0.0); $in];
                for $i in 0..$in {
                    d[$i] = $load;
                }
                let c = $f::<L>(d);
                for i in 0..$out {
                    t[i][$j] = c[i];
                }
            }
            for ($a, row) in t.into_iter().enumerate() {
                for ($b, $v) in $f::<L>(row).into_iter().enumerate() {
                    $store;
                }
            }
        } else {
            let mut d = [L::splat(0.0); $in];
            let $i = 0;
            for $j in 0..$in {
                d[$j] = $load;
            }
            let $a = 0;
            for ($b, $v) in $f::<L>(d).into_iter().enumerate() {
                $store;
            }
        }
    };
}

/// A tile of inputs, vectors that are `row` apart in rows and side by side in columns; point `i` goes to `to + i * step`.
#[inline(always)]
pub(super) unsafe fn input<L: Lanes<f32>>(form: TileForm, from: *const f32, row: usize, to: *mut f32, step: usize) {
    // SAFETY: the caller's memory, inside `enter`.
    unsafe {
        columns_then_rows!(form, input6, SIDE to SIDE;
            |i, j| L::load(from.add(i * row + j * L::N));
            |i, j, v| L::store(to.add((i * SIDE + j) * step), v))
    }
}

/// A tap's place in a kernel, which lies backwards if it is `turned`.
#[inline(always)]
fn place(form: TileForm, tap: usize, turned: bool) -> usize {
    if turned { form.area(TAPS) - 1 - tap } else { tap }
}

/// A kernel of vectors, one after another (backwards if it is `turned`); point `i` goes to `to + i * step`.
#[inline(always)]
pub(super) unsafe fn weight<L: Lanes<f32>>(form: TileForm, from: *const f32, turned: bool, to: *mut f32, step: usize) {
    // SAFETY: the caller's memory, inside `enter`.
    unsafe {
        columns_then_rows!(form, weight6, TAPS to SIDE;
            |i, j| L::load(from.add(place(form, i * TAPS + j, turned) * L::N));
            |i, j, v| L::store(to.add((i * SIDE + j) * step), v))
    }
}

/// The columns of a square kernel transformed: six rows of three vectors.
#[inline(always)]
pub(super) unsafe fn weight_columns<L: Lanes<f32>>(from: *const f32, turned: bool, to: *mut f32) {
    // SAFETY: the caller's memory, inside `enter`.
    unsafe {
        for j in 0..TAPS {
            let mut g = [L::splat(0.0); TAPS];
            for i in 0..TAPS {
                g[i] = L::load(from.add(place(TileForm::Square, i * TAPS + j, turned) * L::N));
            }
            for (i, v) in weight6::<L>(g).into_iter().enumerate() {
                L::store(to.add((i * TAPS + j) * L::N), v);
            }
        }
    }
}

/// One of these rows transformed.
#[inline(always)]
pub(super) unsafe fn weight_row<L: Lanes<f32>>(from: *const f32) -> [L::V; SIDE] {
    // SAFETY: the caller's memory, inside `enter`.
    unsafe { weight6::<L>([L::load(from), L::load(from.add(L::N)), L::load(from.add(2 * L::N))]) }
}

/// Sums at the points, `step` apart, to a tile of outputs plus a bias, `row` apart in rows and side by side in columns. What
/// is not finite makes the result NaN, which is otherwise `bad`.
#[inline(always)]
pub(super) unsafe fn output<L: Lanes<f32>>(
    form: TileForm,
    from: *const f32,
    step: usize,
    bias: L::V,
    to: *mut f32,
    row: usize,
    mut bad: L::V,
) -> L::V {
    // SAFETY: the caller's memory, inside `enter`.
    unsafe {
        let (one, zero) = (L::splat(1.0), L::splat(0.0));
        columns_then_rows!(form, output6, SIDE to OUT; |i, j| L::load(from.add((i * SIDE + j) * step)); |i, j, v| {
            let v = L::fma(one, v, bias);
            bad = L::fma(v, zero, bad);
            L::store(to.add(i * row + j * L::N), v);
        });
        bad
    }
}

/// A tile of gradients, vectors that are `row` apart in rows and side by side in columns; point `i` goes to `to + i * step`.
#[inline(always)]
pub(super) unsafe fn gradient<L: Lanes<f32>>(form: TileForm, from: *const f32, row: usize, to: *mut f32, step: usize) {
    // SAFETY: the caller's memory, inside `enter`.
    unsafe {
        columns_then_rows!(form, gradient6, OUT to SIDE;
            |i, j| L::load(from.add(i * row + j * L::N));
            |i, j, v| L::store(to.add((i * SIDE + j) * step), v))
    }
}

/// Sums at the points to taps, both `step` apart, added to those before or not. What is not finite makes the result NaN, which is otherwise `bad`.
#[inline(always)]
pub(super) unsafe fn taps<L: Lanes<f32>>(
    form: TileForm,
    from: *const f32,
    to: *mut f32,
    step: usize,
    add: bool,
    mut bad: L::V,
) -> L::V {
    // SAFETY: the caller's memory, inside `enter`.
    unsafe {
        let (one, zero) = (L::splat(1.0), L::splat(0.0));
        columns_then_rows!(form, taps6, SIDE to TAPS; |i, j| L::load(from.add((i * SIDE + j) * step)); |i, j, v| {
            let to = to.add((i * TAPS + j) * step);
            let v = if add { L::fma(one, v, L::load(to)) } else { v };
            bad = L::fma(v, zero, bad);
            L::store(to, v);
        });
        bad
    }
}
