//! Buffers that a thread keeps for its next kernel: fresh pages cost more than the work on small layers.

use crate::dtype::Real;
use std::cell::RefCell;

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[allow(dead_code)] [u8; 64]);

/// Buffers above this size are given back at once.
const KEEP: usize = 2 << 20;

thread_local! {
    static FREE: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with `len` numbers, aligned to a cache line: zeros, or what earlier work left there.
pub(in crate::cpu) fn with<T: Real, R>(len: usize, f: impl FnOnce(&mut [T]) -> R) -> R {
    let mut lines = FREE.with(|free| free.borrow_mut().pop()).unwrap_or_default();
    let need = (len * size_of::<T>()).div_ceil(64);
    if lines.len() < need {
        lines.resize(need, Line([0; 64]));
    }
    // SAFETY: the lines are initialised, large enough and aligned; any bits are a valid f32 or f64.
    let r = f(unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), len) });
    if lines.len() * 64 <= KEEP {
        FREE.with(|free| free.borrow_mut().push(lines));
    }
    r
}

/// `n` rounded up so that the next piece of a buffer starts on a cache line.
pub(in crate::cpu) fn line<T>(n: usize) -> usize {
    n.next_multiple_of(64 / size_of::<T>())
}
