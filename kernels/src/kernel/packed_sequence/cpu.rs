//! On the host: the packed rows of a step are neighbours, and so are its padded ones where steps come first.

use super::Sequences;
use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::pool::tasks::{SendPtr, share};
use crate::simd::{self, SimdReal};

/// Where the packed rows of each step begin, and where the last ones end, by the sizes of the steps.
fn starts(c: &Sequences, size: impl Fn(usize) -> usize) -> Scratch<usize> {
    let mut next = 0;
    Scratch::each(c.steps + 1, |t| {
        let at = next;
        next += if t < c.steps { size(t) } else { 0 };
        at
    })
}

/// Writes or adds the rows that are steps of sequences to the packed ones, of which there are as many.
pub(super) fn pack<T: SimdReal>(
    c: &Sequences,
    size: impl Fn(usize) -> usize,
    padded: &[T],
    packed: &mut [T],
    output: Output,
) {
    if packed.is_empty() {
        return;
    }
    let (starts, w) = (&starts(c, size)[..], c.width);
    assert_eq!(packed.len(), starts[c.steps] * w, "packed rows");
    let (total, packed) = (packed.len(), SendPtr(packed.as_mut_ptr()));
    share(c.steps, total, move |t| {
        // SAFETY: the rows of the task's step.
        let packed = unsafe { packed.slice(starts[t] * w, (starts[t + 1] - starts[t]) * w) };
        if !c.batch_first {
            return put(packed, &padded[t * c.batch * w..][..packed.len()], output);
        }
        let rows = packed.chunks_exact_mut(w).enumerate();
        rows.for_each(|(b, y)| put(y, &padded[(b * c.steps + t) * w..][..w], output));
    });
}

/// Writes packed rows to where they are steps of sequences, and `rest` elsewhere; or adds them.
pub(super) fn pad<T: SimdReal>(
    c: &Sequences,
    size: impl Fn(usize) -> usize,
    packed: &[T],
    padded: &mut [T],
    output: Output,
    rest: f64,
) {
    if padded.is_empty() {
        return;
    }
    let (starts, w) = (&starts(c, size)[..], c.width);
    assert_eq!(padded.len(), c.steps * c.batch * w, "padded rows");
    let (total, padded) = (padded.len(), SendPtr(padded.as_mut_ptr()));
    share(c.steps, total, move |t| {
        let packed = &packed[starts[t] * w..starts[t + 1] * w];
        // Neighbouring rows of the step.
        let (runs, rows) = if c.batch_first { (c.batch, 1) } else { (1, c.batch) };
        for run in 0..runs {
            // SAFETY: rows of the task's step.
            let padded = unsafe { padded.slice((run * c.steps + t * rows) * w, rows * w) };
            let packed = &packed[(run * w).min(packed.len())..];
            let (steps, none) = padded.split_at_mut(packed.len().min(rows * w));
            put(steps, &packed[..steps.len()], output);
            if output == Output::Write {
                none.fill(T::from_f64(rest));
            }
        }
    });
}

fn put<T: SimdReal>(y: &mut [T], x: &[T], output: Output) {
    match output {
        Output::Write => y.copy_from_slice(x),
        Output::Accumulate => simd::add_assign(y, x),
    }
}
