//! Random numbers on a GPU: the same ones as [`crate::random::philox`] makes.

mod shaped;

use crate::array::Data;
use crate::array::Output;
use crate::cuda::launch::Launch;
use crate::cuda::team::{is_double, named};
use crate::error::Result;
use crate::random::{Draw, DrawSource};
pub(super) use shaped::shaped;

/// Runs a launch that ends in n, where key and number are, key and number, and what `rest` adds, with a thread for four words, of which a number takes
/// `words`.
fn run(launch: Launch, from: DrawSource, y: &Data, words: usize, rest: impl FnOnce(Launch) -> Launch) -> Result<()> {
    if y.is_empty() {
        return Ok(());
    }
    let (at, draw) = match from {
        DrawSource::Known(draw) => (0, draw),
        DrawSource::At(address) => (address, Draw { key: 0, number: 0 }),
    };
    let launch = launch.size(y.len()).long(at as i64).long(draw.key as i64).long(draw.number as i64);
    let launch = rest(launch);
    // SAFETY: the arrays have y's length.
    unsafe { launch.run(y.gpu().grid(y.len().div_ceil(4 / words))) }
}

/// Words for one number.
fn words(y: &Data) -> usize {
    1 + is_double(y) as usize
}

/// Numbers at least `low` and less than `high`.
pub(super) fn uniform(from: DrawSource, y: &Data, low: f64, high: f64) -> Result<()> {
    let double = is_double(y);
    let top = if double { high.next_down() } else { (high as f32).next_down() as f64 };
    let launch = y.gpu().launch("random", &named("uniform", double))?.array(y);
    run(launch, from, y, words(y), |l| l.real(double, low).real(double, high - low).real(double, top))
}

/// Normal numbers.
pub(super) fn normal(from: DrawSource, y: &Data, mu: f64, sigma: f64) -> Result<()> {
    let double = is_double(y);
    let launch = y.gpu().launch("random", &named("normal", double))?.array(y);
    run(launch, from, y, words(y), |l| l.real(double, mu).real(double, sigma))
}

/// Integers at least `low` and less than `high`.
pub(super) fn integers(from: DrawSource, y: &Data, low: i64, high: i64) -> Result<()> {
    let launch = y.gpu().launch("random", "integers")?.array(y);
    run(launch, from, y, 2, |l| l.long(low).long(high.wrapping_sub(low)))
}

/// `y = x / (1 - p)` where the draw keeps an element, `x * 0` elsewhere. x may lie over y.
pub(super) fn dropout(from: DrawSource, p: f64, y: &Data, x: &Data, output: Output) -> Result<()> {
    let double = is_double(y);
    let threshold = (p * (1u64 << 32) as f64) as u32;
    let launch = y.gpu().launch("random", &named("dropout", double))?.array(y).array(x);
    run(launch, from, y, 1, |l| {
        l.long(threshold as i64).real(double, 1.0 / (1.0 - p)).flag(output == Output::Accumulate)
    })
}
