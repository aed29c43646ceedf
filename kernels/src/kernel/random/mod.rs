//! Random arrays, and elements dropped at random.

mod cuda;
mod dropout;
mod rand;

use crate::array::{Data, Place};
use crate::call::Run;
use crate::cuda::draws;
use crate::dtype::DType;
use crate::error::Result;
use crate::random::philox;
use crate::random::{DrawPolicy, DrawSource, RandomSeed};
use crate::with_real;
pub(super) use dropout::drop_out;
pub use dropout::{Dropout, DropoutAgain};
pub use rand::{Kind, Rand};

/// The draw of a run; in a captured run, of each replay.
pub(super) fn numbers(source: DrawPolicy, run: &Run) -> Result<DrawSource> {
    match draws::in_memory(&source, run.saved)? {
        Some(address) => Ok(DrawSource::At(address)),
        None => source.draw(run.saved).map(DrawSource::Known),
    }
}

/// The next draw of a function's stream.
pub(super) fn next(seed: &RandomSeed, run: &Run) -> Result<DrawSource> {
    numbers(DrawPolicy::Next { seed: seed.twin(), again: run.again }, run)
}

/// The next draw of a function's stream, or its last one where the run is a repetition. For functions that [save](Run::save)
/// something else, in whose place a repetition leaves no draw.
pub(super) fn next_beside(seed: &RandomSeed, run: &Run) -> Result<DrawSource> {
    next_or_last(seed, run, run.again)
}

/// The next draw of a function's stream, or its last one. It may be found where the node keeps something else.
pub(super) fn next_or_last(seed: &RandomSeed, run: &Run, again: bool) -> Result<DrawSource> {
    match again {
        true => numbers(DrawPolicy::Last(seed.last()), run),
        false => numbers(DrawPolicy::Next { seed: seed.twin(), again: false }, run),
    }
}

/// `n` numbers of at least 0 and less than 1, the same to the bit wherever they are made, for what a kernel chooses by.
pub(super) fn uniforms(numbers: DrawSource, place: Place, n: usize) -> Result<Data> {
    let y = Data::new_at(place, DType::F64, n)?;
    match place {
        Place::Gpu(_) => cuda::uniform(numbers, &y, 0.0, 1.0)?,
        Place::Host => philox::uniform(numbers.known()?, y.as_mut_slice::<f64>(), 0.0, 1.0),
    }
    Ok(y)
}

/// The first number of type `dtype` behind those that a table of `table` [`uniforms`] is made of.
pub(super) fn behind(table: usize, dtype: DType) -> usize {
    // A group of words makes half a group of doubles.
    table.div_ceil(philox::GROUP / 2) * philox::GROUP * 4 / dtype.size()
}

/// The `n` numbers behind those that a table of `table` [`uniforms`] is made of, of type `dtype`: uniform, or normal ones.
pub(super) fn numbers_behind(
    numbers: DrawSource,
    place: Place,
    dtype: DType,
    table: usize,
    n: usize,
    normal: bool,
) -> Result<Data> {
    let first = behind(table, dtype);
    let y = Data::new_at(place, dtype, first + n)?;
    match (place, normal) {
        (Place::Gpu(_), false) => cuda::uniform(numbers, &y, 0.0, 1.0)?,
        (Place::Gpu(_), true) => cuda::normal(numbers, &y, 0.0, 1.0)?,
        (Place::Host, false) => {
            with_real!(dtype, T => philox::uniform(numbers.known()?, y.as_mut_slice::<T>(), 0.0, 1.0))
        }
        (Place::Host, true) => {
            with_real!(dtype, T => philox::normal(numbers.known()?, y.as_mut_slice::<T>(), 0.0, 1.0))
        }
    }
    Ok(y.within(first, n))
}
