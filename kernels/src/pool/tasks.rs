//! Sharing out work whose tasks write disjoint parts of one array. How it is cut depends on sizes alone, never on the number of threads.

use super as pool;

/// Below this many elements threads cost more than they help.
pub const MIN_PARALLEL: usize = 1 << 16;
/// Elements of a task of an operation that takes no longer than a copy.
pub const PART: usize = MIN_PARALLEL / 2;

/// Calls `f(i)` for each `i < n`, on all threads if the work is over many elements.
pub fn share(n: usize, elements: usize, f: impl Fn(usize) + Sync) {
    if elements < MIN_PARALLEL {
        return (0..n).for_each(f);
    }
    let per = n.div_ceil(64).max(1);
    pool::run(n.div_ceil(per), &|i| (i * per..n.min((i + 1) * per)).for_each(&f));
}

/// Cuts `y` into parts of `size` elements and calls `f(number, part)` for each, on all threads.
pub fn parts<T: Send>(y: &mut [T], size: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    let (shared, n) = (Shared(y.as_mut_ptr()), y.len());
    let shared = &shared;
    pool::run(n.div_ceil(size), &move |task| {
        let first = task * size;
        // SAFETY: inside y; the parts of different tasks do not overlap.
        f(task, unsafe { std::slice::from_raw_parts_mut(shared.0.add(first), size.min(n - first)) });
    });
}

/// An array that several tasks write, each its own elements.
pub struct Shared<T>(pub *mut T);

// SAFETY: the users write disjoint elements.
unsafe impl<T: Send> Sync for Shared<T> {}

/// A pointer that tasks share; each keeps to its own part.
#[derive(Clone, Copy)]
pub(crate) struct SendPtr<T>(pub(crate) *mut T);

// SAFETY: tasks write disjoint parts, and read what no task writes.
unsafe impl<T: Send> Send for SendPtr<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for SendPtr<T> {}

impl<T> SendPtr<T> {
    /// Of a slice that is only read.
    pub(crate) fn of(s: &[T]) -> Self {
        SendPtr(s.as_ptr().cast_mut())
    }

    pub(crate) fn add(self, n: usize) -> Self {
        SendPtr(self.0.wrapping_add(n))
    }

    /// # Safety
    /// The elements exist, and no other thread writes them while the slice lives.
    pub(crate) unsafe fn read<'a>(self, from: usize, len: usize) -> &'a [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts(self.0.add(from), len) }
    }

    /// # Safety
    /// The elements exist, and no other thread uses them while the slice lives.
    pub(crate) unsafe fn slice<'a>(self, from: usize, len: usize) -> &'a mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(from), len) }
    }
}
