//! Random state: the global stream of random functions, and the streams of functions that have a seed of their own.
//!
//! A draw is named by a key (the seed) and a number (how many draws came before); its words come from [`philox`].
//! Nothing else is stored: from a draw's key and number any device makes its numbers again.
//!
//! ```
//! use nnrs_kernels::random::{next_draw, set_function_seed};
//! set_function_seed(7);
//! let first = next_draw();
//! set_function_seed(7);
//! assert_eq!(next_draw(), first);
//! ```

pub mod philox;

pub use philox::Draw;

use crate::error::{Error, Result};
use crate::fork::at_fork;
use crate::saved::Saved;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The next draw of the global stream; `None` before its first use.
static GLOBAL: Mutex<Option<Draw>> = Mutex::new(None);

/// Draws of functions with a seed count from here, apart from the global stream's.
const OWN: u64 = 1 << 63;

fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

at_fork!(Hold, lock(&GLOBAL));

/// Starts the global stream of random functions anew; -1 (or any negative number) takes a seed that differs from run to run.
pub fn set_function_seed(seed: i64) {
    let key = u64::try_from(seed).unwrap_or_else(|_| fresh_key());
    *lock(&GLOBAL) = Some(Draw { key, number: 0 });
}

/// The next draw of the global stream.
pub fn next_draw() -> Draw {
    let mut global = lock(&GLOBAL);
    let draw = global.unwrap_or_else(|| Draw { key: fresh_key(), number: 0 });
    *global = Some(Draw { number: draw.number + 1, ..draw });
    draw
}

/// Where the global stream is: the draw that comes next. With [`set_stream`] it goes on from there, in another process too.
///
/// ```
/// use nnrs_kernels::random::{next_draw, set_stream, stream};
/// let here = stream();
/// let draws = [next_draw(), next_draw()];
/// set_stream(here);
/// assert_eq!([next_draw(), next_draw()], draws);
/// ```
pub fn stream() -> Draw {
    *lock(&GLOBAL).get_or_insert_with(|| Draw { key: fresh_key(), number: 0 })
}

/// Lets the global stream go on with `next`.
pub fn set_stream(next: Draw) {
    *lock(&GLOBAL) = Some(next);
}

/// The standard library's hash maps get their seeds from the system: so do we.
fn fresh_key() -> u64 {
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// The argument `seed` of random functions, and the last draw that the function made. Clones start without one.
#[derive(Debug)]
pub struct RandomSeed {
    value: i64,
    last: Arc<Mutex<Option<Draw>>>,
}

/// What a gradient's graph reads at run time: the last draw of the function that it belongs to.
#[derive(Clone, Debug, Default)]
pub struct LastDraw(Arc<Mutex<Option<Draw>>>);

impl LastDraw {
    /// `None` before the first one.
    pub fn get(&self) -> Option<Draw> {
        *lock(&self.0)
    }

    /// Lets the function go on behind `draw`.
    pub fn set(&self, draw: Option<Draw>) {
        *lock(&self.0) = draw;
    }
}

impl PartialEq for LastDraw {
    fn eq(&self, o: &LastDraw) -> bool {
        Arc::ptr_eq(&self.0, &o.0)
    }
}

/// Where the kernels of a run find their draw.
#[derive(Clone, Copy, Debug)]
pub enum DrawSource {
    Known(Draw),
    /// Key and number, in the memory of a GPU: the run is being captured, and each replay has a draw of its own.
    At(u64),
}

impl DrawSource {
    /// The draw, for kernels on the host.
    pub fn known(self) -> Result<Draw> {
        match self {
            DrawSource::Known(draw) => Ok(draw),
            DrawSource::At(_) => Err(Error::graph("random numbers are made on the host in the middle of the run")),
        }
    }
}

/// How a run comes by a draw. A captured run does it again before each replay.
#[derive(Debug)]
pub enum DrawPolicy {
    /// The next one of the function's stream, or the last one if the run is a repetition.
    Next { seed: RandomSeed, again: bool },
    /// The last one of the function's node.
    Saved,
    /// The last one of another function.
    Last(LastDraw),
}

impl DrawPolicy {
    pub fn twin(&self) -> DrawPolicy {
        match self {
            DrawPolicy::Next { seed, again } => DrawPolicy::Next { seed: seed.twin(), again: *again },
            DrawPolicy::Saved => DrawPolicy::Saved,
            DrawPolicy::Last(last) => DrawPolicy::Last(last.clone()),
        }
    }

    /// The draw; `saved` is what the function's node keeps.
    pub fn draw(&self, saved: &Saved) -> Result<Draw> {
        match self {
            DrawPolicy::Next { seed, again } => Ok(seed.draw(saved, *again)),
            DrawPolicy::Saved => saved.value().ok_or_else(no_forward),
            DrawPolicy::Last(last) => (*lock(&last.0)).ok_or_else(no_forward),
        }
    }
}

fn no_forward() -> Error {
    Error::graph("backward of a random function before its forward").hint("run forward first: it draws the numbers")
}

/// For the engine.
#[doc(hidden)]
impl RandomSeed {
    /// The seed, as it was given: negative for none.
    pub fn value(&self) -> i64 {
        self.value
    }

    /// The same function's seed. (A clone is another function's.)
    pub fn twin(&self) -> RandomSeed {
        RandomSeed { value: self.value, last: self.last.clone() }
    }

    fn draw(&self, saved: &Saved, again: bool) -> Draw {
        // The node may keep something else.
        let last = saved.value::<Draw>().or_else(|| *lock(&self.last));
        let draw = last.filter(|_| again).unwrap_or_else(|| self.next(last.as_ref()));
        saved.keep(draw);
        *lock(&self.last) = Some(draw);
        draw
    }

    fn next(&self, last: Option<&Draw>) -> Draw {
        match u64::try_from(self.value) {
            Ok(key) => Draw { key, number: last.map_or(OWN, |d| d.number + 1) },
            Err(_) => next_draw(),
        }
    }

    pub fn last(&self) -> LastDraw {
        LastDraw(self.last.clone())
    }
}

impl From<i64> for RandomSeed {
    fn from(value: i64) -> RandomSeed {
        RandomSeed { value, last: Arc::default() }
    }
}

impl Default for RandomSeed {
    fn default() -> RandomSeed {
        (-1).into()
    }
}

impl Clone for RandomSeed {
    fn clone(&self) -> RandomSeed {
        self.value.into()
    }
}

impl PartialEq for RandomSeed {
    fn eq(&self, o: &RandomSeed) -> bool {
        self.value == o.value
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(a_seed_starts_the_stream_again);
    fn a_seed_starts_the_stream_again() {
        set_function_seed(5);
        let first = [next_draw(), next_draw()];
        assert!(first[0] != first[1] && first[0].key == 5);
        set_function_seed(5);
        assert_eq!([next_draw(), next_draw()], first);
        set_function_seed(-1);
        assert_ne!(next_draw().key, 5);
    }
}
