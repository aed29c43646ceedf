//! Along an axis that is not the last: blocks of neighbouring columns, one vector loop a place of the axis.

use super::{SharedOutput, WIDTH, combine, map, update};
use crate::expr::op::{Binary, Unary};
use crate::kernel::short_rows::RowGroup;
use crate::simd::{self, SimdReal};

/// Some neighbouring columns of the array.
pub(super) struct ColumnBlock {
    /// Index of the first element in the whole array.
    pub(super) first: usize,
    /// Index of the first column in an array without the axis.
    pub(super) at: usize,
    pub(super) n: usize,
    /// Elements from one place of the axis to the next.
    pub(super) stride: usize,
    pub(super) width: usize,
    /// The rows that these columns are.
    pub(super) turned: Option<RowGroup>,
}

impl ColumnBlock {
    /// The columns at place `k` of the axis.
    fn columns<'a, T>(&self, x: &'a [T], k: usize) -> &'a [T] {
        &x[self.first + k * self.stride..][..self.width]
    }

    /// The block as a row, where the axis is the last.
    pub(super) fn row<'a, T>(&self, x: &'a [T]) -> &'a [T] {
        &x[self.first..][..self.n]
    }
}

/// Where a block's results go.
pub(super) struct BlockOutput<'a, T> {
    y: &'a SharedOutput<T>,
    first: usize,
    n: usize,
    stride: usize,
    width: usize,
}

impl<'a, T> BlockOutput<'a, T> {
    /// The block's place in an output.
    ///
    /// # Safety
    /// Only one `BlockOutput` of a block may be in use.
    pub(super) unsafe fn of(b: &ColumnBlock, y: &'a SharedOutput<T>) -> BlockOutput<'a, T> {
        BlockOutput { y, first: b.first, n: b.n, stride: b.stride, width: b.width }
    }

    /// A buffer for one block.
    ///
    /// # Safety
    /// No other thread may use the buffer.
    pub(super) unsafe fn buffer(b: &ColumnBlock, y: &'a SharedOutput<T>) -> BlockOutput<'a, T> {
        BlockOutput { y, first: 0, n: b.n, stride: b.width, width: b.width }
    }

    /// The columns at place `k` of the axis.
    pub(super) fn columns(&mut self, k: usize) -> &mut [T] {
        // SAFETY: blocks do not overlap, and this is the only user of this one.
        unsafe { self.y.part(self.first + k * self.stride, self.width) }
    }

    /// The block as a row, where the axis is the last.
    pub(super) fn row(&mut self) -> &mut [T] {
        debug_assert!(self.width == 1 && self.stride == 1);
        // SAFETY: as above.
        unsafe { self.y.part(self.first, self.n) }
    }
}

/// A number for each column.
type PerColumn<T> = [T; WIDTH];

/// Sums for each column: of every eighth place of the axis, then of those in pairs, which loses less than one chain.
struct PartSums<T>([PerColumn<T>; 8]);

impl<T: SimdReal> PartSums<T> {
    #[inline(always)]
    fn new() -> Self {
        PartSums([[T::ZERO; WIDTH]; 8])
    }

    /// Adds the numbers at place `k` of the axis.
    fn add(&mut self, k: usize, x: &[T]) {
        simd::add_assign(&mut self.0[k % 8][..x.len()], x);
    }

    /// All of the first `width` columns.
    fn total(&mut self, width: usize) -> &mut PerColumn<T> {
        for half in [4, 2, 1] {
            let (low, high) = self.0.split_at_mut(half);
            low.iter_mut().zip(high).for_each(|(low, high)| simd::add_assign(&mut low[..width], &high[..width]));
        }
        &mut self.0[0]
    }
}

pub(super) fn softmax<T: SimdReal>(b: &ColumnBlock, x: &[T], y: &mut BlockOutput<T>) {
    let (_, mut factor) = exponentials(b, x, y);
    factor[..b.width].iter_mut().for_each(|f| *f = T::ONE / *f);
    (0..b.n).for_each(|k| update(Binary::Mul, y.columns(k), &factor));
}

pub(super) fn log_softmax<T: SimdReal>(b: &ColumnBlock, x: &[T], y: &mut BlockOutput<T>) {
    let (max, log) = log_sum(b, x);
    for k in 0..b.n {
        let y = y.columns(k);
        combine(Binary::Sub, y, b.columns(x, k), &max);
        update(Binary::Sub, y, &log);
    }
}

pub(super) fn softmax_backward<T: SimdReal>(b: &ColumnBlock, y: &[T], gy: &[T], gx: &mut BlockOutput<T>) {
    let mut sums = PartSums::new();
    for k in 0..b.n {
        let product = gx.columns(k);
        combine(Binary::Mul, product, b.columns(y, k), b.columns(gy, k));
        sums.add(k, product);
    }
    let mean = sums.total(b.width);
    for k in 0..b.n {
        let gx = gx.columns(k);
        combine(Binary::Sub, gx, b.columns(gy, k), mean);
        update(Binary::Mul, gx, b.columns(y, k));
    }
}

pub(super) fn log_softmax_backward<T: SimdReal>(b: &ColumnBlock, y: &[T], gy: &[T], gx: &mut BlockOutput<T>) {
    let mut sums = PartSums::new();
    (0..b.n).for_each(|k| sums.add(k, b.columns(gy, k)));
    let negative = sums.total(b.width).map(|s| -s);
    for k in 0..b.n {
        let gx = gx.columns(k);
        map(Unary::Exp, gx, b.columns(y, k));
        update(Binary::Mul, gx, &negative);
        simd::add_assign(gx, b.columns(gy, k));
    }
}

pub(super) fn cross_entropy<T: SimdReal>(b: &ColumnBlock, x: &[T], label: &[i64], y: &mut [T]) {
    let (max, log) = log_sum(b, x);
    for (j, (y, &label)) in y.iter_mut().zip(label).enumerate() {
        *y = if label < 0 { T::ZERO } else { log[j] - (b.columns(x, label as usize)[j] - max[j]) };
    }
}

/// As `cross_entropy`; keeps `exp(x - max)` and the sums.
pub(super) fn cross_entropy_keeping<T: SimdReal>(
    b: &ColumnBlock,
    x: &[T],
    label: &[i64],
    y: &mut [T],
    terms: &mut BlockOutput<T>,
    sums: &mut [T],
) {
    let (max, sum) = exponentials(b, x, terms);
    sums.copy_from_slice(&sum[..b.width]);
    let mut log = [T::ZERO; WIDTH];
    map(Unary::Log, &mut log[..b.width], &sum);
    for (j, (y, &label)) in y.iter_mut().zip(label).enumerate() {
        *y = if label < 0 { T::ZERO } else { log[j] - (b.columns(x, label as usize)[j] - max[j]) };
    }
}

pub(super) fn cross_entropy_backward<T: SimdReal>(
    b: &ColumnBlock,
    terms: &[T],
    sums: &[T],
    label: &[i64],
    gy: &[T],
    gx: &mut BlockOutput<T>,
) {
    let mut factor = [T::ZERO; WIDTH];
    factor.iter_mut().zip(gy.iter().zip(sums)).for_each(|(f, (&gy, &sum))| *f = gy / sum);
    (0..b.n).for_each(|k| combine(Binary::Mul, gx.columns(k), b.columns(terms, k), &factor));
    // Where a label is left out, NaN and infinities leave no trace.
    for (j, _) in label.iter().enumerate().filter(|(_, l)| **l < 0) {
        (0..b.n).for_each(|k| gx.columns(k)[j] = T::ZERO);
    }
    for (j, (&label, &gy)) in label.iter().zip(gy).enumerate().filter(|(_, (l, _))| **l >= 0) {
        let gx = &mut gx.columns(label as usize)[j];
        *gx = *gx - gy;
    }
}

/// `y = exp(x - max)`; gives the maxima and the sums.
fn exponentials<T: SimdReal>(b: &ColumnBlock, x: &[T], y: &mut BlockOutput<T>) -> (PerColumn<T>, PerColumn<T>) {
    let max = maximum(b, x);
    let mut sums = PartSums::new();
    for k in 0..b.n {
        let y = y.columns(k);
        shifted_exp(y, b.columns(x, k), &max);
        sums.add(k, y);
    }
    (max, *sums.total(b.width))
}

/// The maximum, and the logarithm of `sum(exp(x - max))`.
fn log_sum<T: SimdReal>(b: &ColumnBlock, x: &[T]) -> (PerColumn<T>, PerColumn<T>) {
    let max = maximum(b, x);
    let (mut sums, mut term) = (PartSums::new(), [T::ZERO; WIDTH]);
    for k in 0..b.n {
        shifted_exp(&mut term[..b.width], b.columns(x, k), &max);
        sums.add(k, &term[..b.width]);
    }
    map(Unary::Log, &mut term[..b.width], sums.total(b.width));
    (max, term)
}

/// NaN left out, as `simd::max` does; the sums find it again.
fn maximum<T: SimdReal>(b: &ColumnBlock, x: &[T]) -> PerColumn<T> {
    let mut max = [-T::INFINITY; WIDTH];
    for k in 0..b.n {
        let (y, x) = (&mut max[..b.width], b.columns(x, k));
        assert_eq!(y.len(), x.len());
        let y = y.as_mut_ptr();
        // SAFETY: both are of this length; the output is one of the inputs.
        unsafe { simd::binary(Binary::Max, y, x.as_ptr(), y, x.len()) };
    }
    max
}

/// `y = exp(x - shift)`
fn shifted_exp<T: SimdReal>(y: &mut [T], x: &[T], shift: &[T]) {
    combine(Binary::Sub, y, x, shift);
    let (p, n) = (y.as_mut_ptr(), y.len());
    // SAFETY: a slice is good for its length.
    unsafe { simd::unary(Unary::Exp, p, p, n) };
}
