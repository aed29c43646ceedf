//! On the host. The places of each chunk of a mask are counted first, so that it is known where the rows of a chunk are; then chunks
//! are shared out. Neither loop branches at an element, since masks are hard to foretell.

use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::pool::tasks::{Shared, share};
use crate::simd::{self, SimdReal};

/// Elements of a chunk at most, and places of the mask at least.
const CHUNK: usize = 4096;
const LEAST: usize = 64;

/// Where a mask is not zero.
pub(super) struct Chosen<'a, T> {
    mask: &'a [T],
    /// Elements of a row.
    size: usize,
    /// Places of a chunk.
    chunk: usize,
    /// The number of the first row of each chunk, and of all rows.
    firsts: Scratch<usize>,
}

/// Places of a chunk where rows have `size` elements.
pub(super) fn chunk(size: usize) -> usize {
    (CHUNK / size.max(1)).clamp(LEAST, CHUNK)
}

impl<'a, T: SimdReal> Chosen<'a, T> {
    pub(super) fn new(mask: &'a [T], size: usize) -> Self {
        let chunk = chunk(size);
        let chunks = mask.len().div_ceil(chunk);
        let mut firsts = Scratch::filled(chunks + 1, 0);
        let counts = Shared(firsts[1..].as_mut_ptr());
        let shared = &counts;
        share(chunks, mask.len(), move |c| {
            let mask = &mask[c * chunk..mask.len().min((c + 1) * chunk)];
            let count: u32 = mask.iter().map(|m| (*m != T::ZERO) as u32).sum();
            // SAFETY: one of the `chunks` counts, which is this task's own.
            unsafe { shared.0.add(c).write(count as usize) };
        });
        (0..chunks).for_each(|c| firsts[c + 1] += firsts[c]);
        Chosen { mask, size, chunk, firsts }
    }

    pub(super) fn count(&self) -> usize {
        self.firsts[self.firsts.len() - 1]
    }

    /// Calls `f(first place, first row, places of the rows after the first place)` for each chunk, on all threads.
    fn each(&self, f: impl Fn(usize, usize, &[u16]) + Sync) {
        share(self.firsts.len() - 1, self.mask.len().saturating_mul(self.size), |c| {
            let first = c * self.chunk;
            let (mut at, mut found) = ([0; CHUNK], 0);
            for (i, m) in self.mask[first..].iter().take(self.chunk).enumerate() {
                at[found % CHUNK] = i as u16;
                found += (*m != T::ZERO) as usize;
            }
            f(first, self.firsts[c], &at[..found]);
        });
    }

    /// Writes the rows of `x` where the mask is not zero to `y`, or adds them.
    pub(super) fn gather(&self, x: &[T], y: &mut [T], output: Output) {
        let size = self.size;
        assert!(self.count() * size <= y.len(), "more rows than the result has");
        let shared = Shared(y.as_mut_ptr());
        let shared = &shared;
        self.each(move |place, row, at| {
            // SAFETY: the rows of this chunk, which no other task writes, are inside y.
            let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(row * size), at.len() * size) };
            let x = &x[place * size..];
            if size == 1 {
                let rows = y.iter_mut().zip(at);
                return match output {
                    Output::Write => rows.for_each(|(y, i)| *y = x[*i as usize]),
                    Output::Accumulate => rows.for_each(|(y, i)| *y += x[*i as usize]),
                };
            }
            let rows = y.chunks_exact_mut(size.max(1)).zip(at);
            rows.for_each(|(y, i)| put(y, &x[*i as usize * size..][..size], output));
        });
    }

    /// Writes the rows of `x` to `y` where the mask is not zero, or adds them.
    pub(super) fn scatter(&self, x: &[T], y: &mut [T], output: Output) {
        let size = self.size;
        assert!(self.mask.len() * size <= y.len(), "more places than the result has");
        let shared = Shared(y.as_mut_ptr());
        let (shared, places) = (&shared, self.mask.len());
        self.each(move |place, row, at| {
            let end = places.min(place + self.chunk);
            // SAFETY: the places of this chunk, which no other task writes, are inside y.
            let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(place * size), (end - place) * size) };
            let x = &x[row * size..][..at.len() * size];
            if size == 1 {
                let rows = x.iter().zip(at);
                return match output {
                    Output::Write => rows.for_each(|(x, i)| y[*i as usize] = *x),
                    Output::Accumulate => rows.for_each(|(x, i)| y[*i as usize] += *x),
                };
            }
            let rows = x.chunks_exact(size.max(1)).zip(at);
            rows.for_each(|(x, i)| put(&mut y[*i as usize * size..][..size], x, output));
        });
    }
}

fn put<T: SimdReal>(y: &mut [T], x: &[T], output: Output) {
    match output {
        Output::Write => y.copy_from_slice(x),
        Output::Accumulate => simd::add_assign(y, x),
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(rows_there_and_back);
    fn rows_there_and_back() {
        for (places, size) in [(0, 1), (1, 1), (5000, 1), (100_000, 1), (300, 3), (2000, 100), (70, 5000), (9, 0)] {
            let mask: Vec<f32> = (0..places).map(|i| [0.0, -0.0, 2.0, f32::NAN][(i * i + i / 7) % 4]).collect();
            let at: Vec<usize> = (0..places).filter(|i| mask[*i] != 0.0).collect();
            let chosen = Chosen::new(&mask, size);
            assert_eq!(chosen.count(), at.len());
            let x: Vec<f32> = (0..places * size).map(|i| i as f32).collect();
            let mut rows = vec![1.0; at.len() * size];
            chosen.gather(&x, &mut rows, Output::Accumulate);
            assert!((0..rows.len()).all(|e| rows[e] == 1.0 + x[at[e / size] * size + e % size]));
            chosen.gather(&x, &mut rows, Output::Write);
            let mut back = vec![0.5; places * size];
            chosen.scatter(&rows, &mut back, Output::Write);
            let of = |e: usize| if mask[e / size] == 0.0 { 0.5 } else { x[e] };
            assert!((0..back.len()).all(|e| back[e] == of(e)));
            chosen.scatter(&rows, &mut back, Output::Accumulate);
            assert!((0..back.len()).all(|e| back[e] == of(e) + if mask[e / size] == 0.0 { 0.0 } else { x[e] }));
        }
    }
}
