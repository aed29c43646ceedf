//! On a GPU: a pass over all numbers for each factor of an axis' size, a thread a number (Stockham's algorithm). A prime factor
//! costs as many products a number as it is large.

use crate::array::{Data, Output};
use crate::cuda::team::{is_double, named};
use crate::error::Result;
use smallvec::SmallVec;

/// Products of small primes that are one pass.
const RADIX: usize = 8;

/// Factors of `n`, small ones together.
pub(crate) fn radices(mut n: usize) -> SmallVec<[usize; 12]> {
    let mut factors: SmallVec<[usize; 12]> = SmallVec::new();
    let mut p: usize = 2;
    while n > 1 {
        if p.saturating_mul(p) > n {
            p = n;
        }
        while n.is_multiple_of(p) {
            n /= p;
            match factors.last_mut() {
                Some(last) if *last * p <= RADIX => *last *= p,
                _ => factors.push(p),
            }
        }
        p += 1;
    }
    factors
}

/// Transforms the axes, which are the last but for real and imaginary part.
pub(crate) fn transform(axes: &[usize], inverse: bool, factor: f64, x: &Data, y: &Data, output: Output) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    let mut passes: SmallVec<[[usize; 4]; 12]> = SmallVec::new();
    let mut inner = 1;
    for &n in axes.iter().rev() {
        let mut done = 1;
        for radix in radices(n) {
            passes.push([n, inner, done, radix]);
            done *= radix;
        }
        inner *= n;
    }
    if passes.is_empty() {
        passes.push([1, 1, 1, 1]);
    }
    let count = y.len() / 2;
    let mut now: Option<Data> = None;
    for (k, [n, inner, done, radix]) in passes.iter().copied().enumerate() {
        let last = k + 1 == passes.len();
        let next = if last { None } else { Some(Data::new_at(y.place(), y.dtype(), y.len())?) };
        let to = next.as_ref().unwrap_or(y);
        let launch = y.gpu().launch("fft", &named("fft", is_double(y)))?.array(now.as_ref().unwrap_or(x)).array(to);
        let launch = launch.size(count).size(n).size(inner).size(done).size(radix).flag(inverse);
        let launch = launch.double(if last { factor } else { 1.0 }).flag(last && output == Output::Accumulate);
        // SAFETY: all arrays have `count` complex numbers.
        unsafe { launch.run(y.gpu().grid(count))? };
        now = next;
    }
    Ok(())
}

#[cfg(feature = "emulate")]
mod tests {
    use super::radices;

    unit_test!(radices_multiply_to_the_size);
    fn radices_multiply_to_the_size() {
        for n in 1..300 {
            let factors = radices(n);
            assert_eq!(factors.iter().product::<usize>(), n);
            assert!(factors.iter().all(|&f| f > 1));
        }
        assert_eq!(radices(64)[..], [8, 8]);
        assert_eq!(radices(97)[..], [97]);
    }
}
