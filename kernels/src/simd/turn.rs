//! Turning a block, rows to columns, for callers that are in no loop of vectors.

use super::lanes::{Lanes, TransposeBlock, WithLanes, enter, transpose_or_add};
use crate::dtype::Real;

/// `dst[c][r] = src[r][c]`, or `+=`.
///
/// # Safety
/// The block lies within its memory.
pub unsafe fn turn<T: Real>(block: TransposeBlock<T>, add: bool) {
    // SAFETY: who made the block answers for its memory.
    unsafe { enter(TurnedBlock { block, add }) };
}

struct TurnedBlock<T> {
    block: TransposeBlock<T>,
    add: bool,
}

impl<T: Real> WithLanes<T> for TurnedBlock<T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // SAFETY: inside `enter`.
        unsafe { transpose_or_add::<T, L>(self.block, self.add) }
    }
}
