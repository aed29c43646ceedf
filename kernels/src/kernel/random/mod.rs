//! Random arrays, and elements dropped at random.

mod cuda;
mod dropout;
mod rand;

use crate::call::Run;
use crate::cuda::draws;
use crate::error::Result;
use crate::random::{Numbers, Seed, Source};
pub use dropout::{Dropout, DropoutAgain};
pub use rand::{Kind, Rand};

/// The draw of a run; in a captured run, of each replay.
fn numbers(source: Source, run: &Run) -> Result<Numbers> {
    match draws::in_memory(&source, run.saved)? {
        Some(address) => Ok(Numbers::At(address)),
        None => source.draw(run.saved).map(Numbers::Known),
    }
}

/// The next draw of a function's stream.
fn next(seed: &Seed, run: &Run) -> Result<Numbers> {
    numbers(Source::Next { seed: seed.twin(), again: run.again }, run)
}
