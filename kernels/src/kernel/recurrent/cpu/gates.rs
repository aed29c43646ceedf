//! The gates of some hidden units, for all samples of a step.

use super::super::Cell;
use crate::expr::op::Unary;
use crate::pool::tasks::SendPtr;
use crate::simd::{self, SimdReal};

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

fn map<T: SimdReal>(op: Unary, x: &mut [T]) {
    // SAFETY: one array, which may be input and output.
    unsafe { simd::unary(op, x.as_mut_ptr(), x.as_ptr(), x.len()) }
}

impl HiddenUnits {
    /// The units' numbers of gate `gate` of sample `b`.
    ///
    /// # Safety
    /// The array has them, and no other thread writes them.
    unsafe fn row<'a, T>(&self, rows: Rows<T>, gate: usize, b: usize) -> &'a [T] {
        // SAFETY: the caller's promise.
        unsafe { rows.0.read(b * rows.1 + gate * self.hidden + self.first, self.n) }
    }

    /// The same to be written.
    ///
    /// # Safety
    /// As `row`, and no other thread reads them.
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
        // SAFETY: the caller's promise.
        unsafe { self.write_gate(block, rows, 0) }
    }

    unsafe fn write_gate<T: Copy>(&self, block: &[T], rows: Rows<T>, gate: usize) {
        for (b, from) in block.chunks_exact(self.width).enumerate() {
            // SAFETY: the caller's promise.
            unsafe { self.row_mut(rows, gate, b) }.copy_from_slice(&from[..self.n]);
        }
    }

    /// Adds an array's numbers to a block.
    unsafe fn add<T: SimdReal>(&self, block: &mut [T], rows: Rows<T>, gate: usize) {
        for (b, to) in block.chunks_exact_mut(self.width).enumerate() {
            // SAFETY: the caller's promise.
            let from = unsafe { self.row(rows, gate, b) };
            to.iter_mut().zip(from).for_each(|(to, v)| *to += *v);
        }
    }
}

/// `block` has the products of the state for each gate, and room for one more.
///
/// # Safety
/// The arrays have a row for each sample, and no other thread works on these units.
pub(super) unsafe fn forward<T: SimdReal>(c: &HiddenUnits, block: &mut [T], s: &CellForward<T>) {
    let size = c.batch * c.width;
    // SAFETY: the caller's promise.
    unsafe {
        match c.cell {
            Cell::Tanh | Cell::Relu => simple(c, &mut block[..size], s),
            Cell::Lstm => lstm(c, block, s),
            Cell::Gru => gru(c, block, s),
        }
    }
}

unsafe fn simple<T: SimdReal>(c: &HiddenUnits, h: &mut [T], s: &CellForward<T>) {
    // SAFETY: the caller's promise.
    unsafe {
        c.add(h, s.gates, 0);
        match c.cell {
            Cell::Relu => h.iter_mut().for_each(|v| *v = if *v > T::ZERO { *v } else { T::ZERO }),
            _ => map(Unary::Tanh, h),
        }
        c.write(h, s.gates);
        c.write(h, s.out);
    }
}

unsafe fn lstm<T: SimdReal>(c: &HiddenUnits, block: &mut [T], s: &CellForward<T>) {
    let size = c.batch * c.width;
    let (Some(before), Some(after)) = (s.c, s.extra) else { return };
    // SAFETY: the caller's promise.
    unsafe {
        (0..4).for_each(|gate| c.add(&mut block[gate * size..][..size], s.gates, gate));
        map(Unary::Sigmoid, &mut block[..2 * size]);
        map(Unary::Tanh, &mut block[2 * size..3 * size]);
        map(Unary::Sigmoid, &mut block[3 * size..4 * size]);
        (0..4).for_each(|gate| c.write_gate(&block[gate * size..][..size], s.gates, gate));
        let (gates, state) = block.split_at_mut(4 * size);
        let [i, f, n, o] = [0, 1, 2, 3].map(|g| &gates[g * size..][..size]);
        c.read(state, before);
        for k in 0..size {
            state[k] = f[k] * state[k] + i[k] * n[k];
        }
        c.write(state, after);
        map(Unary::Tanh, state);
        state.iter_mut().zip(o).for_each(|(h, &o)| *h = o * *h);
        c.write(state, s.out);
    }
}

unsafe fn gru<T: SimdReal>(c: &HiddenUnits, block: &mut [T], s: &CellForward<T>) {
    let size = c.batch * c.width;
    let Some(extra) = s.extra else { return };
    // SAFETY: the caller's promise.
    unsafe {
        (0..2).for_each(|gate| c.add(&mut block[gate * size..][..size], s.gates, gate));
        map(Unary::Sigmoid, &mut block[..2 * size]);
        let (gates, h) = block.split_at_mut(3 * size);
        let (r, rest) = gates.split_at_mut(size);
        let (z, n) = rest.split_at_mut(size);
        if let Some(bias) = s.state_bias {
            c.add(n, bias, 0);
        }
        c.write(n, extra);
        n.iter_mut().zip(&*r).for_each(|(n, &r)| *n = r * *n);
        c.add(n, s.gates, 2);
        map(Unary::Tanh, n);
        c.write_gate(r, s.gates, 0);
        c.write_gate(z, s.gates, 1);
        c.write_gate(n, s.gates, 2);
        c.read(h, s.h);
        for k in 0..size {
            h[k] = (T::ONE - z[k]) * n[k] + z[k] * h[k];
        }
        c.write(h, s.out);
    }
}

/// The gradients of a step's sums. `gh` has the gradient of the state that the steps behind give; `carried` gets what goes to the state
/// before by no product. `gc` is the gradient of c.
///
/// # Safety
/// As `forward`.
pub(super) unsafe fn backward<T: SimdReal>(
    c: &HiddenUnits,
    s: &CellBackward<T>,
    gh: &mut [T],
    carried: &mut [T],
    gc: &mut [T],
    room: &mut [T],
) {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(g) = s.g_out {
            c.add(gh, g, 0);
        }
        match c.cell {
            Cell::Tanh | Cell::Relu => {
                carried.fill(T::ZERO);
                (0..c.batch).for_each(|b| simple_backward(c, s, b, &gh[b * c.width..]));
            }
            Cell::Lstm => {
                carried.fill(T::ZERO);
                let Some(state) = s.extra else { return };
                c.read(room, state);
                map(Unary::Tanh, room);
                for b in 0..c.batch {
                    let at = b * c.width;
                    lstm_backward(c, s, b, &gh[at..], &room[at..], &mut gc[at..]);
                }
            }
            Cell::Gru => (0..c.batch).for_each(|b| {
                let at = b * c.width;
                gru_backward(c, s, b, &gh[at..], &mut carried[at..]);
            }),
        }
    }
}

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
    let (gh, tanh, gc) = (&gh[..c.n], &tanh[..c.n], &mut gc[..c.n]);
    for k in 0..c.n {
        let g = gc[k] + gh[k] * o[k] * (T::ONE - tanh[k] * tanh[k]);
        si[k] = g * n[k] * i[k] * (T::ONE - i[k]);
        sf[k] = g * before[k] * f[k] * (T::ONE - f[k]);
        so[k] = gh[k] * tanh[k] * o[k] * (T::ONE - o[k]);
        sn[k] = g * i[k] * (T::ONE - n[k] * n[k]);
        gc[k] = g * f[k];
    }
}

unsafe fn gru_backward<T: SimdReal>(c: &HiddenUnits, s: &CellBackward<T>, b: usize, gh: &[T], carried: &mut [T]) {
    let Some(extra) = s.extra else { return };
    // SAFETY: the caller's promise.
    let ([r, z, n], [sr, sz, sx, sh], h, of_state) = unsafe {
        let gates = [0, 1, 2].map(|g| c.row(s.gates, g, b));
        (gates, [0, 1, 2, 3].map(|g| c.row_mut(s.sums, g, b)), c.row(s.h, 0, b), c.row(extra, 0, b))
    };
    for k in 0..c.n {
        let g = gh[k] * (T::ONE - z[k]) * (T::ONE - n[k] * n[k]);
        sr[k] = g * of_state[k] * r[k] * (T::ONE - r[k]);
        sz[k] = gh[k] * (h[k] - n[k]) * z[k] * (T::ONE - z[k]);
        sx[k] = g;
        sh[k] = g * r[k];
        carried[k] = gh[k] * z[k];
    }
}
