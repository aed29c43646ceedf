//! The gates of some hidden units, for all samples of a step: plain loops, compiled for the instruction set at hand.

use super::super::Cell;
use crate::expr::op::Unary;
use crate::gemm::tile::NextRows;
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Lanes, WithLanes};
use crate::simd::{self, SimdReal};

/// Numbers that are computed side by side, so that the compiler has vectors for them.
const SIDE: usize = 16;

/// Rows of an array that lie so far apart.
#[derive(Clone, Copy)]
pub(super) struct Rows<T>(pub(super) SendPtr<T>, pub(super) usize);

/// Hidden units `first .. first + n`, whose numbers lie in blocks with rows of `width`.
pub(super) struct HiddenUnits {
    pub(super) cell: Cell,
    pub(super) batch: usize,
    pub(super) hidden: usize,
    pub(super) first: usize,
    pub(super) n: usize,
    pub(super) width: usize,
}

/// What a step reads and writes.
pub(super) struct CellForward<T> {
    /// Products of the inputs; becomes the gates.
    pub(super) gates: Rows<T>,
    /// The states before it.
    pub(super) h: Rows<T>,
    pub(super) c: Option<Rows<T>>,
    pub(super) extra: Option<Rows<T>>,
    pub(super) bias: Option<Rows<T>>,
    pub(super) state_bias: Option<Rows<T>>,
    pub(super) out: Rows<T>,
}

/// What the way back over a step reads and writes.
pub(super) struct CellBackward<T> {
    pub(super) gates: Rows<T>,
    /// The states before it.
    pub(super) h: Rows<T>,
    pub(super) c: Option<Rows<T>>,
    pub(super) extra: Option<Rows<T>>,
    /// The gradient of the output.
    pub(super) g_out: Option<Rows<T>>,
    /// Becomes the gradients of the sums in the gates.
    pub(super) sums: Rows<T>,
}

impl<T> Rows<T> {
    /// `n` numbers of each of `rows` rows from number `first` on.
    pub(super) fn ahead(self, first: usize, rows: usize, n: usize) -> NextRows {
        NextRows::new(self.0.add(first).0.cast_const(), self.1, rows, n)
    }
}

fn map<T: SimdReal>(op: Unary, x: &mut [T]) {
    // SAFETY: one array, which may be input and output.
    unsafe { simd::unary(op, x.as_mut_ptr(), x.as_ptr(), x.len()) }
}

impl HiddenUnits {
    /// The units' numbers of gate `gate` of sample `b`.
    ///
    /// # Safety
    /// The array has them, and no other thread writes them.
    #[inline(always)]
    unsafe fn row<'a, T>(&self, rows: Rows<T>, gate: usize, b: usize) -> &'a [T] {
        // SAFETY: the caller's promise.
        unsafe { rows.0.read(b * rows.1 + gate * self.hidden + self.first, self.n) }
    }

    /// The same to be written.
    ///
    /// # Safety
    /// As `row`, and no other thread reads them.
    #[inline(always)]
    unsafe fn row_mut<'a, T>(&self, rows: Rows<T>, gate: usize, b: usize) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { rows.0.slice(b * rows.1 + gate * self.hidden + self.first, self.n) }
    }

    /// Copies an array's numbers of these units to a block.
    ///
    /// # Safety
    /// As `row`.
    pub(super) unsafe fn read<T: Copy>(&self, block: &mut [T], rows: Rows<T>) {
        for (b, to) in block.chunks_exact_mut(self.width).enumerate() {
            // SAFETY: the caller's promise.
            to[..self.n].copy_from_slice(unsafe { self.row(rows, 0, b) });
        }
    }

    /// Copies a block to an array.
    ///
    /// # Safety
    /// As `row`.
    pub(super) unsafe fn write<T: Copy>(&self, block: &[T], rows: Rows<T>) {
        for (b, from) in block.chunks_exact(self.width).enumerate() {
            // SAFETY: the caller's promise.
            unsafe { self.row_mut(rows, 0, b) }.copy_from_slice(&from[..self.n]);
        }
    }

    /// As [`HiddenUnits::read`], inside `enter` of L: a call of the system's would take longer than a row of few numbers.
    #[inline(always)]
    unsafe fn load<T: SimdReal, L: Lanes<T>>(&self, block: &mut [T], rows: Rows<T>) {
        for (b, to) in block.chunks_exact_mut(self.width).enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                let from = self.row(rows, 0, b);
                copy::<T, L>(to.as_mut_ptr(), from.as_ptr(), self.n);
            }
        }
    }

    /// As [`HiddenUnits::write`], inside `enter` of L, to a gate.
    #[inline(always)]
    unsafe fn store<T: SimdReal, L: Lanes<T>>(&self, block: &[T], rows: Rows<T>, gate: usize) {
        for (b, from) in block.chunks_exact(self.width).enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                let to = self.row_mut(rows, gate, b);
                copy::<T, L>(to.as_mut_ptr(), from.as_ptr(), self.n);
            }
        }
    }

    /// What the sums of a gate begin with: its bias, but where the state's part is a sum of its own; zeros beside the units.
    ///
    /// # Safety
    /// As `row`.
    pub(super) unsafe fn begin<T: SimdReal>(&self, sums: &mut [T], bias: Option<Rows<T>>, gate: usize) {
        sums.fill(T::ZERO);
        if let Some(bias) = bias.filter(|_| self.cell != Cell::Gru || gate < 2) {
            // SAFETY: the caller's promise.
            sums[..self.n].copy_from_slice(unsafe { self.row(bias, gate, 0) });
        }
    }

    /// Adds an array's numbers to a block, inside `enter` of L.
    #[inline(always)]
    unsafe fn add<T: SimdReal, L: Lanes<T>>(&self, block: &mut [T], rows: Rows<T>, gate: usize) {
        for (b, to) in block.chunks_exact_mut(self.width).enumerate() {
            // SAFETY: the caller's promise.
            unsafe {
                let (from, to) = (self.row(rows, gate, b).as_ptr(), to.as_mut_ptr());
                for at in (0..self.n).step_by(L::N) {
                    let n = L::N.min(self.n - at);
                    let sum = L::fma(L::load_part(from.add(at), n), L::splat(T::ONE), L::load_part(to.add(at), n));
                    L::store_part(to.add(at), sum, n);
                }
            }
        }
    }
}

/// Copies `n` numbers, inside `enter` of L.
#[inline(always)]
unsafe fn copy<T: SimdReal, L: Lanes<T>>(to: *mut T, from: *const T, n: usize) {
    for at in (0..n).step_by(L::N) {
        let n = L::N.min(n - at);
        // SAFETY: the caller's promise.
        unsafe { L::store_part(to.add(at), L::load_part(from.add(at), n), n) }
    }
}

/// `x *= by`, inside `enter` of L.
#[inline(always)]
unsafe fn multiply<T: SimdReal, L: Lanes<T>>(x: &mut [T], by: &[T]) {
    let (size, x, by) = (x.len().min(by.len()), x.as_mut_ptr(), by.as_ptr());
    // SAFETY: both have that many; adding -0 changes nothing.
    unsafe {
        for at in (0..size).step_by(L::N) {
            let n = L::N.min(size - at);
            let product = L::fma(L::load_part(x.add(at), n), L::load_part(by.add(at), n), L::splat(-T::ZERO));
            L::store_part(x.add(at), product, n);
        }
    }
}

/// The gates and the state of a step. `block` has the products of the state for each gate, and room for one more.
///
/// The arrays have a row for each sample, and no other thread works on these units.
pub(super) struct GatesForward<'a, T> {
    pub(super) units: &'a HiddenUnits,
    pub(super) block: &'a mut [T],
    pub(super) step: &'a CellForward<T>,
}

impl<T: SimdReal> WithLanes<T> for GatesForward<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let GatesForward { units: c, block, step: s } = self;
        let size = c.batch * c.width;
        // SAFETY: the caller's promise.
        unsafe {
            match c.cell {
                Cell::Tanh | Cell::Relu => simple::<T, L>(c, &mut block[..size], s),
                Cell::Lstm => lstm::<T, L>(c, block, s),
                Cell::Gru => gru::<T, L>(c, block, s),
            }
        }
    }
}

#[inline(always)]
unsafe fn simple<T: SimdReal, L: Lanes<T>>(c: &HiddenUnits, h: &mut [T], s: &CellForward<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        c.add::<T, L>(h, s.gates, 0);
        match c.cell {
            Cell::Relu => h.iter_mut().for_each(|v| *v = if *v > T::ZERO { *v } else { T::ZERO }),
            _ => map(Unary::Tanh, h),
        }
        c.store::<T, L>(h, s.gates, 0);
        c.store::<T, L>(h, s.out, 0);
    }
}

#[inline(always)]
unsafe fn lstm<T: SimdReal, L: Lanes<T>>(c: &HiddenUnits, block: &mut [T], s: &CellForward<T>) {
    let size = c.batch * c.width;
    let (Some(before), Some(after)) = (s.c, s.extra) else { return };
    // SAFETY: the caller's promise.
    unsafe {
        for gate in 0..4 {
            c.add::<T, L>(&mut block[gate * size..][..size], s.gates, gate);
        }
        map(Unary::Sigmoid, &mut block[..2 * size]);
        map(Unary::Tanh, &mut block[2 * size..3 * size]);
        map(Unary::Sigmoid, &mut block[3 * size..4 * size]);
        for gate in 0..4 {
            c.store::<T, L>(&block[gate * size..][..size], s.gates, gate);
        }
        let (gates, state) = block.split_at_mut(4 * size);
        let [i, f, n, o] = [0, 1, 2, 3].map(|g| &gates[g * size..][..size]);
        c.load::<T, L>(state, before);
        let (from, to) = ([f, i, n].map(<[T]>::as_ptr), state[..size].as_mut_ptr());
        side_by_side(size, [from[0], from[1], from[2], to], [to], |[f, i, n, c]| [f * c + i * n]);
        c.store::<T, L>(state, after, 0);
        map(Unary::Tanh, state);
        multiply::<T, L>(&mut state[..size], o);
        c.store::<T, L>(state, s.out, 0);
    }
}

#[inline(always)]
unsafe fn gru<T: SimdReal, L: Lanes<T>>(c: &HiddenUnits, block: &mut [T], s: &CellForward<T>) {
    let size = c.batch * c.width;
    let Some(extra) = s.extra else { return };
    // SAFETY: the caller's promise.
    unsafe {
        for gate in 0..2 {
            c.add::<T, L>(&mut block[gate * size..][..size], s.gates, gate);
        }
        map(Unary::Sigmoid, &mut block[..2 * size]);
        let (gates, h) = block.split_at_mut(3 * size);
        let (r, rest) = gates.split_at_mut(size);
        let (z, n) = rest.split_at_mut(size);
        if let Some(bias) = s.state_bias {
            c.add::<T, L>(n, bias, 0);
        }
        c.store::<T, L>(n, extra, 0);
        multiply::<T, L>(n, r);
        c.add::<T, L>(n, s.gates, 2);
        if let Some(bias) = s.bias {
            c.add::<T, L>(n, bias, 2);
        }
        map(Unary::Tanh, n);
        c.store::<T, L>(r, s.gates, 0);
        c.store::<T, L>(z, s.gates, 1);
        c.store::<T, L>(n, s.gates, 2);
        c.load::<T, L>(h, s.h);
        let (from, to) = ([&*z, &*n].map(<[T]>::as_ptr), h[..size].as_mut_ptr());
        side_by_side(size, [from[0], from[1], to], [to], |[z, n, h]| [(T::ONE - z) * n + z * h]);
        c.store::<T, L>(h, s.out, 0);
    }
}

/// The gradients of a step's sums.
///
/// The arrays are as those of [`GatesForward`].
pub(super) struct GatesBackward<'a, T> {
    pub(super) units: &'a HiddenUnits,
    pub(super) step: &'a CellBackward<T>,
    /// The gradient of the state that the steps behind give.
    pub(super) gh: &'a mut [T],
    /// Gets what goes to the state before by no product.
    pub(super) carried: &'a mut [T],
    /// The gradient of c.
    pub(super) gc: &'a mut [T],
    pub(super) room: &'a mut [T],
}

impl<T: SimdReal> WithLanes<T> for GatesBackward<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let GatesBackward { units: c, step: s, gh, carried, gc, room } = self;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(g) = s.g_out {
                c.add::<T, L>(gh, g, 0);
            }
            match c.cell {
                Cell::Tanh | Cell::Relu => {
                    carried.fill(T::ZERO);
                    for b in 0..c.batch {
                        simple_backward(c, s, b, &gh[b * c.width..]);
                    }
                }
                Cell::Lstm => {
                    carried.fill(T::ZERO);
                    let Some(state) = s.extra else { return };
                    c.load::<T, L>(room, state);
                    map(Unary::Tanh, room);
                    for b in 0..c.batch {
                        let at = b * c.width;
                        lstm_backward(c, s, b, &gh[at..], &room[at..], &mut gc[at..]);
                    }
                }
                Cell::Gru => {
                    for b in 0..c.batch {
                        let at = b * c.width;
                        gru_backward(c, s, b, &gh[at..], &mut carried[at..]);
                    }
                }
            }
        }
    }
}

/// Calls `f` for `n` places, `SIDE` together and those at the end one by one: with what is there in `from`, for what comes to `to`.
/// An array may be read and written.
///
/// # Safety
/// The arrays have `n` numbers.
#[inline(always)]
unsafe fn side_by_side<T: SimdReal, const I: usize, const O: usize>(
    n: usize,
    from: [*const T; I],
    to: [*mut T; O],
    f: impl Fn([T; I]) -> [T; O],
) {
    let whole = n / SIDE * SIDE;
    for at in (0..whole).step_by(SIDE) {
        // SAFETY: the caller's promise.
        unsafe {
            let read: [[T; SIDE]; I] = std::array::from_fn(|i| from[i].add(at).cast::<[T; SIDE]>().read());
            let mut made = [[T::ZERO; SIDE]; O];
            for k in 0..SIDE {
                let all = f(std::array::from_fn(|i| read[i][k]));
                for o in 0..O {
                    made[o][k] = all[o];
                }
            }
            for o in 0..O {
                to[o].add(at).cast::<[T; SIDE]>().write(made[o]);
            }
        }
    }
    for k in whole..n {
        // SAFETY: the same.
        unsafe {
            let all = f(std::array::from_fn(|i| *from[i].add(k)));
            (0..O).for_each(|o| *to[o].add(k) = all[o]);
        }
    }
}

#[inline(always)]
unsafe fn simple_backward<T: SimdReal>(c: &HiddenUnits, s: &CellBackward<T>, b: usize, gh: &[T]) {
    // SAFETY: the caller's promise.
    let (h, sums) = unsafe { (c.row(s.gates, 0, b), c.row_mut(s.sums, 0, b)) };
    let is_relu = c.cell == Cell::Relu;
    for k in 0..c.n {
        let slope = match is_relu {
            true if h[k] > T::ZERO => T::ONE,
            true => T::ZERO,
            false => T::ONE - h[k] * h[k],
        };
        sums[k] = gh[k] * slope;
    }
}

#[inline(always)]
unsafe fn lstm_backward<T: SimdReal>(
    c: &HiddenUnits,
    s: &CellBackward<T>,
    b: usize,
    gh: &[T],
    tanh: &[T],
    gc: &mut [T],
) {
    let Some(before) = s.c else { return };
    // SAFETY: the caller's promise.
    let ([i, f, n, o], [si, sf, sn, so], before) = unsafe {
        ([0, 1, 2, 3].map(|g| c.row(s.gates, g, b)), [0, 1, 2, 3].map(|g| c.row_mut(s.sums, g, b)), c.row(before, 0, b))
    };
    let (gh, tanh, gc) = (&gh[..c.n], &tanh[..c.n], gc[..c.n].as_mut_ptr());
    let from = [i, f, n, o, before, tanh, gh].map(<[T]>::as_ptr);
    let [i, f, n, o, before, tanh, gh] = from;
    let to = [si, sf, sn, so].map(<[T]>::as_mut_ptr);
    // SAFETY: rows of c.n numbers.
    unsafe {
        side_by_side(c.n, [i, f, n, o, before, tanh, gh, gc], [to[0], to[1], to[2], to[3], gc], |x| {
            let [i, f, n, o, before, tanh, gh, gc] = x;
            let g = gc + gh * o * (T::ONE - tanh * tanh);
            [
                g * n * i * (T::ONE - i),
                g * before * f * (T::ONE - f),
                g * i * (T::ONE - n * n),
                gh * tanh * o * (T::ONE - o),
                g * f,
            ]
        });
    }
}

#[inline(always)]
unsafe fn gru_backward<T: SimdReal>(c: &HiddenUnits, s: &CellBackward<T>, b: usize, gh: &[T], carried: &mut [T]) {
    let Some(extra) = s.extra else { return };
    // SAFETY: the caller's promise.
    let ([r, z, n], [sr, sz, sx, sh], h, of_state) = unsafe {
        let gates = [0, 1, 2].map(|g| c.row(s.gates, g, b));
        (gates, [0, 1, 2, 3].map(|g| c.row_mut(s.sums, g, b)), c.row(s.h, 0, b), c.row(extra, 0, b))
    };
    let from = [r, z, n, h, of_state, &gh[..c.n]].map(<[T]>::as_ptr);
    let to = [sr, sz, sx, sh, &mut carried[..c.n]].map(<[T]>::as_mut_ptr);
    // SAFETY: rows of c.n numbers.
    unsafe {
        side_by_side(c.n, from, to, |[r, z, n, h, of_state, gh]| {
            let g = gh * (T::ONE - z) * (T::ONE - n * n);
            [g * of_state * r * (T::ONE - r), gh * (h - n) * z * (T::ONE - z), g, g * r, gh * z]
        });
    }
}
