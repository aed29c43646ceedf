//! What the machine can do at most, as measured: the figures that times of kernels are held against.

use crate::array::Data;
use crate::dtype::DType;
use crate::error::Result;
use crate::pool::{self, num_threads};
use crate::simd::{self, Body, SimdReal, Vector, stream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// Measured on all threads that kernels use.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Additions and multiplications a second, in fused operations on vectors in registers.
    pub flops: f64,
    /// Bytes read and written a second, copying arrays larger than the caches.
    pub bandwidth: f64,
}

/// Sums that grow side by side: more than a CPU's units have on the way.
const CHAINS: usize = 12;
const ROUNDS: usize = 100_000;
const COPIED: usize = 64 << 20;
/// Measurements of which the best counts.
const TRIES: usize = 8;

/// Fused operations on registers; says how many numbers a vector has.
struct PeakLoop {
    lanes: AtomicUsize,
}

impl<T: SimdReal> Body<T> for PeakLoop {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        let (by, mut sums) = (V::splat(0.999), [V::splat(1.0); CHAINS]);
        for _ in 0..ROUNDS {
            sums.iter_mut().for_each(|s| *s = s.fma(by, by));
        }
        std::hint::black_box(sums);
        self.lanes.store(V::N, Relaxed);
    }
}

/// Measures both, in single precision; takes about half a second.
///
/// # Errors
/// Not enough memory for the arrays to copy.
pub fn measure() -> Result<Limits> {
    let peak = PeakLoop { lanes: AtomicUsize::new(0) };
    // SAFETY: the loop touches no memory.
    let rate = best(|| pool::run(num_threads(), &|_| unsafe { simd::run::<f32>(&peak) }));
    let flops = rate * (num_threads() * ROUNDS * CHAINS * peak.lanes.load(Relaxed) * 2) as f64;
    let (from, to) = (Data::new(DType::U8, COPIED)?, Data::new(DType::U8, COPIED)?);
    from.bytes_mut().fill(1);
    // SAFETY: two arrays of that many bytes.
    let rate = best(|| unsafe { stream::copy(from.ptr(), to.ptr(), COPIED) });
    Ok(Limits { flops, bandwidth: rate * 2.0 * COPIED as f64 })
}

/// How often a second `job` runs, at best.
fn best(job: impl Fn()) -> f64 {
    let rate = |_| {
        let start = Instant::now();
        job();
        1.0 / start.elapsed().as_secs_f64()
    };
    (0..TRIES).map(rate).fold(0.0, f64::max)
}

#[cfg(feature = "emulate")]
mod tests {
    unit_test!(limits_are_positive);
    fn limits_are_positive() {
        let limits = super::measure().unwrap();
        assert!(limits.flops.is_finite() && limits.flops > 0.0 && limits.bandwidth > 0.0);
    }
}
