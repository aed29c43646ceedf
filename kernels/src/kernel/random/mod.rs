//! Random arrays, and elements dropped at random.

mod cuda;
mod dropout;
mod rand;

use crate::call::Run;
use crate::cuda::draws;
use crate::error::Result;
use crate::random::{DrawPolicy, DrawSource, RandomSeed};
pub(super) use dropout::drop_out;
pub use dropout::{Dropout, DropoutAgain};
pub use rand::{Kind, Rand};

/// The draw of a run; in a captured run, of each replay.
fn numbers(source: DrawPolicy, run: &Run) -> Result<DrawSource> {
    match draws::in_memory(&source, run.saved)? {
        Some(address) => Ok(DrawSource::At(address)),
        None => source.draw(run.saved).map(DrawSource::Known),
    }
}

/// The next draw of a function's stream.
fn next(seed: &RandomSeed, run: &Run) -> Result<DrawSource> {
    numbers(DrawPolicy::Next { seed: seed.twin(), again: run.again }, run)
}

/// The next draw of a function's stream, or its last one. It may be found where the node keeps something else.
pub(super) fn next_or_last(seed: &RandomSeed, run: &Run, again: bool) -> Result<DrawSource> {
    match again {
        true => numbers(DrawPolicy::Last(seed.last()), run),
        false => numbers(DrawPolicy::Next { seed: seed.twin(), again: false }, run),
    }
}
