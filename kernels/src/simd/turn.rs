//! Turning a block, rows to columns, for callers that are in no loop of vectors.

use super::lanes::{Choose, Lanes, TransposeBlock, WithLanes, dispatch, transpose_or_add};
use crate::dtype::Real;

/// `dst[c][r] = src[r][c]`, or `+=`.
///
/// # Safety
/// The block lies within its memory.
pub unsafe fn turn<T: Real>(block: TransposeBlock<T>, add: bool) {
    dispatch(TurnedBlock { block, add });
}

struct TurnedBlock<T> {
    block: TransposeBlock<T>,
    add: bool,
}

impl<T: Real> Choose<T> for TurnedBlock<T> {
    fn with<L: Lanes<T>>(self) {
        // SAFETY: `dispatch` gives the lanes of this machine; who made the block answers for its memory.
        unsafe { L::enter(self) }
    }
}

impl<T: Real> WithLanes<T> for TurnedBlock<T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // SAFETY: inside `enter`.
        unsafe { transpose_or_add::<T, L>(self.block, self.add) }
    }
}
