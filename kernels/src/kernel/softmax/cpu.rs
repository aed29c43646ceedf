//! On the host.
//!
//! An array is seen as (outer, n, inner), the axis in the middle. Where inner is 1 the work goes row by row; else by
//! blocks of neighbouring columns, so that all loops run over neighbours. The grid of blocks depends on sizes alone.

mod block;
mod row;

use crate::array::Output;
use crate::array::scratch::{self, Scratch, counted};
use crate::expr::op::{Binary, Unary};
use crate::kernel::axis::Axis;
use crate::kernel::short_rows::{self, are_short, each_group};
use crate::pool::{self, tasks};
use crate::simd::{self, SimdReal};
use block::{BlockOutput, ColumnBlock};

/// Columns of a block at most.
const WIDTH: usize = short_rows::MOST;
/// Elements that fill a vector: so many of a row are quickly multiplied along the row.
const VECTOR: usize = 16;
/// Elements of one task of the pool, about.
const GRAIN: usize = 1 << 14;

impl Axis {
    /// Bytes of the large buffers for gradients that are added, of numbers of `size` bytes.
    pub(super) fn scratch(&self, size: usize) -> usize {
        let (width, across) = self.blocks();
        counted(self.n * width * size) * pool::num_threads().min(self.outer * across)
    }

    /// Columns of a block at most, and how many blocks lie beside each other.
    fn blocks(&self) -> (usize, usize) {
        let width = self.inner.min(WIDTH);
        (width, self.inner.div_ceil(width.max(1)))
    }

    /// Whether rows are worked on one by one.
    fn by_rows(&self) -> bool {
        self.inner == 1 && !are_short(self.outer, self.n)
    }

    /// Calls `f` with each block and the arrays that have it: short rows are turned.
    fn each<T: SimdReal, const N: usize>(&self, x: [&[T]; N], f: &(dyn Fn(ColumnBlock, [&[T]; N]) + Sync)) {
        if self.inner == 1 && !self.by_rows() {
            return each_group(self.outer, self.n, |g| {
                scratch::with(N * g.size(), |room| {
                    room.chunks_exact_mut(g.size()).zip(x).for_each(|(to, x)| g.turn(&x[g.range()], to));
                    let turned = std::array::from_fn(|i| &room[i * g.size()..][..g.size()]);
                    let (at, n, width) = (g.first, g.width, g.rows);
                    f(ColumnBlock { first: 0, at, n, stride: width, width, turned: Some(g) }, turned);
                });
            });
        }
        let (width, across) = self.blocks();
        let blocks = self.outer * across;
        if blocks == 0 {
            return;
        }
        let per_task = (GRAIN / (width * self.n).max(1)).max(1);
        pool::run(blocks.div_ceil(per_task), &|task| {
            (task * per_task..blocks.min((task + 1) * per_task)).for_each(|b| {
                let (o, column) = (b / across, b % across * width);
                let block = ColumnBlock {
                    first: o * self.n * self.inner + column,
                    at: o * self.inner + column,
                    n: self.n,
                    stride: self.inner,
                    width: width.min(self.inner - column),
                    turned: None,
                };
                f(block, x);
            })
        });
    }
}

/// An output that several threads write to, each its own part.
struct SharedOutput<T> {
    ptr: *mut T,
    len: usize,
}

// SAFETY: `part` leaves it to the caller that parts do not overlap.
unsafe impl<T: Send> Sync for SharedOutput<T> {}

impl<T> SharedOutput<T> {
    fn new(y: &mut [T]) -> SharedOutput<T> {
        SharedOutput { ptr: y.as_mut_ptr(), len: y.len() }
    }

    /// # Safety
    /// Parts in use at the same time must not overlap.
    #[allow(clippy::mut_from_ref)]
    unsafe fn part(&self, at: usize, len: usize) -> &mut [T] {
        assert!(at + len <= self.len, "a part inside the output");
        // SAFETY: inside the output by the check, and no other thread's by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(at), len) }
    }
}

/// `y = exp(x - max) / sum(exp(x - max))`
pub fn softmax<T: SimdReal>(a: Axis, x: &[T], y: &mut [T]) {
    written(a, [x], y, Output::Write, &|b, [x], y| match a.by_rows() {
        true => row::softmax(b.row(x), y.row()),
        false => block::softmax(b, x, y),
    });
}

/// `y = x - max - log(sum(exp(x - max)))`
pub fn log_softmax<T: SimdReal>(a: Axis, x: &[T], y: &mut [T]) {
    written(a, [x], y, Output::Write, &|b, [x], y| match a.by_rows() {
        true => row::log_softmax(b.row(x), y.row()),
        false => block::log_softmax(b, x, y),
    });
}

/// `gx = y (gy - sum(y gy))`
pub fn softmax_backward<T: SimdReal>(a: Axis, y: &[T], gy: &[T], gx: &mut [T], output: Output) {
    if !a.by_rows() && (a.inner > 1 || a.n < VECTOR) {
        return written(a, [y, gy], gx, output, &|b, [y, gy], gx| block::softmax_backward(b, y, gy, gx));
    }
    let per_task = (GRAIN / a.n.max(1)).max(1) * a.n;
    tasks::parts(gx, per_task.max(1), |task, gx| {
        let at = task * per_task..task * per_task + gx.len();
        row::softmax_backward(a.n, &y[at.clone()], &gy[at], gx, output);
    });
}

/// `gx = gy - exp(y) sum(gy)`
pub fn log_softmax_backward<T: SimdReal>(a: Axis, y: &[T], gy: &[T], gx: &mut [T], output: Output) {
    written(a, [y, gy], gx, output, &|b, [y, gy], gx| match a.by_rows() {
        true => row::log_softmax_backward(b.row(y), b.row(gy), gx.row()),
        false => block::log_softmax_backward(b, y, gy, gx),
    });
}

/// As `softmax_backward` with `gy` in the place of `gx`, where nothing is behind the axis.
pub fn softmax_over<T: SimdReal>(a: Axis, y: &[T], gx: &mut [T]) {
    over(a, y, gx, row::softmax_over, block::softmax_backward);
}

/// As `log_softmax_backward` with `gy` in the place of `gx`, where nothing is behind the axis.
pub fn log_softmax_over<T: SimdReal>(a: Axis, y: &[T], gx: &mut [T]) {
    over(a, y, gx, row::log_softmax_over, block::log_softmax_backward);
}

fn over<T: SimdReal>(
    a: Axis,
    y: &[T],
    gx: &mut [T],
    row: fn(&[T], &mut [T]),
    block: fn(&ColumnBlock, &[T], &[T], &mut BlockOutput<T>),
) {
    let gx = SharedOutput::new(gx);
    a.each([y], &|b, [y]| {
        let Some(g) = &b.turned else {
            // SAFETY: the only one for this block.
            return row(b.row(y), unsafe { BlockOutput::of(&b, &gx) }.row());
        };
        // SAFETY: groups do not overlap.
        let gx = unsafe { gx.part(g.range().start, g.size()) };
        scratch::with(2 * g.size(), |room| {
            let (gy, turned) = room.split_at_mut(g.size());
            g.turn(gx, gy);
            let shared = SharedOutput::new(turned);
            // SAFETY: this thread's own.
            block(&b, y, gy, &mut unsafe { BlockOutput::buffer(&b, &shared) });
            g.turn_back(turned, gx, Output::Write);
        });
    });
}

/// `y = -log_softmax(x)[label]`; 0 where the label is negative. Labels must be less than n.
pub fn cross_entropy<T: SimdReal>(a: Axis, x: &[T], label: &[i64], y: &mut [T]) {
    let y = SharedOutput::new(y);
    a.each([x], &|b, [x]| {
        // SAFETY: blocks do not overlap.
        let y = unsafe { y.part(b.at, b.width) };
        match a.by_rows() {
            true => y[0] = row::cross_entropy(b.row(x), label[b.at]),
            false => block::cross_entropy(&b, x, &label[b.at..][..b.width], y),
        }
    });
}

/// As `cross_entropy`; keeps `terms = exp(x - max)` and their `sums`, but where the label is negative.
pub fn cross_entropy_keeping<T: SimdReal>(
    a: Axis,
    x: &[T],
    label: &[i64],
    y: &mut [T],
    terms: &mut [T],
    sums: &mut [T],
) {
    let (y, sums) = (SharedOutput::new(y), SharedOutput::new(sums));
    written(a, [x], terms, Output::Write, &|b, [x], terms| {
        // SAFETY: blocks do not overlap.
        let (y, sums) = unsafe { (y.part(b.at, b.width), sums.part(b.at, b.width)) };
        match a.by_rows() {
            true => (y[0], sums[0]) = row::cross_entropy_keeping(b.row(x), label[b.at], terms.row()),
            false => block::cross_entropy_keeping(b, x, &label[b.at..][..b.width], y, terms, sums),
        }
    });
}

/// `gx = gy (terms / sums - [k = label])` with what `cross_entropy_keeping` kept; 0 where the label is negative.
pub fn cross_entropy_backward<T: SimdReal>(
    a: Axis,
    terms: &[T],
    sums: &[T],
    label: &[i64],
    gy: &[T],
    gx: &mut [T],
    output: Output,
) {
    written(a, [terms], gx, output, &|b, [terms], gx| match a.by_rows() {
        true => row::cross_entropy_backward(b.row(terms), sums[b.at], label[b.at], gy[b.at], gx.row()),
        false => {
            let at = b.at..b.at + b.width;
            block::cross_entropy_backward(b, terms, &sums[at.clone()], &label[at.clone()], &gy[at], gx)
        }
    });
}

/// Runs a kernel that writes a block from some arrays; what is turned or to be added goes through a buffer.
fn written<T: SimdReal, const N: usize>(
    a: Axis,
    x: [&[T]; N],
    y: &mut [T],
    output: Output,
    kernel: &(dyn Fn(&ColumnBlock, [&[T]; N], &mut BlockOutput<T>) + Sync),
) {
    let y = SharedOutput::new(y);
    a.each(x, &|b, x| {
        // SAFETY: the only one for this block.
        let mut target = unsafe { BlockOutput::of(&b, &y) };
        if output == Output::Write && b.turned.is_none() {
            return kernel(&b, x, &mut target);
        }
        let mut buffer = Scratch::filled(b.n * b.width, T::ZERO);
        let shared = SharedOutput::new(&mut buffer);
        // SAFETY: the buffer is used through this alone until it is read.
        kernel(&b, x, &mut unsafe { BlockOutput::buffer(&b, &shared) });
        if let Some(g) = &b.turned {
            // SAFETY: groups do not overlap.
            return g.turn_back(&buffer, unsafe { y.part(g.range().start, g.size()) }, output);
        }
        if a.inner == 1 {
            return simd::add_assign(target.row(), &buffer);
        }
        let parts = buffer.chunks_exact(b.width).enumerate();
        parts.for_each(|(k, part)| simd::add_assign(target.columns(k), part));
    });
}

/// `y = op(x)`
fn map<T: SimdReal>(op: Unary, y: &mut [T], x: &[T]) {
    let x = &x[..y.len()];
    // SAFETY: both are of this length, and apart.
    unsafe { simd::unary(op, y.as_mut_ptr(), x.as_ptr(), x.len()) };
}

/// `y = op(a, b)`
fn combine<T: SimdReal>(op: Binary, y: &mut [T], a: &[T], b: &[T]) {
    let (a, b) = (&a[..y.len()], &b[..y.len()]);
    // SAFETY: all are of this length, and apart.
    unsafe { simd::binary(op, y.as_mut_ptr(), a.as_ptr(), b.as_ptr(), y.len()) };
}

/// `y = op(y, b)`
fn update<T: SimdReal>(op: Binary, y: &mut [T], b: &[T]) {
    let b = &b[..y.len()];
    let (p, n) = (y.as_mut_ptr(), y.len());
    // SAFETY: both are of this length; the output is one of the inputs.
    unsafe { simd::binary(op, p, p, b.as_ptr(), n) };
}

#[cfg(feature = "emulate")]
mod tests;
