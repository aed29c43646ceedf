//! On the host.

use super::ShiftAxis;
use crate::array::Output;
use crate::pool::tasks;
use crate::simd::{self, SimdReal};

pub(super) fn to<T: SimdReal>(s: &ShiftAxis, x: &[T], y: &mut [T]) {
    let inner = s.at.inner;
    tasks::parts(y, s.at.n * inner, |o, y| {
        let x = &x[o * s.at.n * inner..];
        for (i, y) in y.chunks_mut(inner).enumerate() {
            y.copy_from_slice(&x[s.source(i) * inner..][..inner]);
        }
    });
}

pub(super) fn back<T: SimdReal>(s: &ShiftAxis, gy: &[T], gx: &mut [T], output: Output) {
    let inner = s.at.inner;
    tasks::parts(gx, s.at.n * inner, |o, gx| {
        let gy = &gy[o * s.at.n * inner..][..s.at.n * inner];
        if output == Output::Write {
            gx.fill(T::ZERO);
        }
        for (i, gy) in gy.chunks(inner).enumerate() {
            simd::add_assign(&mut gx[s.source(i) * inner..][..inner], gy);
        }
    });
}
