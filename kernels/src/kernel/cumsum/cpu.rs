//! On the host.

use super::CumSum;
use crate::array::Output;
use crate::kernel::scan::Scan;
use crate::simd::SimdReal;

pub(super) fn cumsum<T: SimdReal>(c: &CumSum, x: &[T], y: &mut [T], output: Output) {
    Scan { at: c.at, exclusive: c.exclusive, reverse: c.reverse, output }.run(x, y, 0.0, |sum, x| sum + x);
}
