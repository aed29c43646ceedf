//! On the host: borders that are made of the array's elements.

use super::{Borders, Mode, PadAxis};
use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::pool::tasks::{Shared, share};
use crate::simd::{self, SimdReal};

impl Borders {
    /// The position on an axis of x that position `i` on the padded axis shows.
    fn source(&self, (n, before, _): PadAxis, i: usize) -> usize {
        if i >= before && i - before < n || n == 1 {
            return if n == 1 { 0 } else { i - before };
        }
        let (i, n) = (i as i64 - before as i64, n as i64);
        if self.mode != Mode::Reflect {
            return i.clamp(0, n - 1) as usize;
        }
        let at = i.rem_euclid(2 * (n - 1));
        at.min(2 * (n - 1) - at) as usize
    }

    fn last(&self) -> PadAxis {
        self.axes.last().copied().unwrap_or((1, 0, 0))
    }

    /// Where row `r` of the result (all axes but the last) comes from.
    fn row(&self, mut r: usize) -> usize {
        let mut offset = 0;
        for (a, &axis) in self.axes.iter().enumerate().rev().skip(1) {
            let n = axis.0 + axis.1 + axis.2;
            offset += self.source(axis, r % n) * self.strides[a];
            r /= n;
        }
        offset
    }

    pub(super) fn forward<T: SimdReal>(&self, x: &[T], y: &mut [T]) {
        let (n, before, after) = self.last();
        let width = n + before + after;
        if y.is_empty() {
            return;
        }
        let table = Scratch::each(width, |i| self.source(self.last(), i));
        let (rows, size, shared) = (y.len() / width, y.len(), Shared(y.as_mut_ptr()));
        let (shared, table) = (&shared, &table[..]);
        share(rows, size, move |r| {
            let x = &x[self.row(r)..][..n];
            // SAFETY: row r is inside y, and this task's own.
            let y = unsafe { std::slice::from_raw_parts_mut(shared.0.add(r * width), width) };
            y[before..before + n].copy_from_slice(x);
            (0..before).chain(before + n..width).for_each(|i| y[i] = x[table[i]]);
        });
    }

    /// Adds up what shows the same element; batches (axes without a border in front) are shared out.
    pub(super) fn backward<T: SimdReal>(&self, gy: &[T], gx: &mut [T], output: Output) {
        if output == Output::Write {
            gx.fill(T::ZERO);
        }
        let (n, before, after) = self.last();
        let width = n + before + after;
        let batches: usize = self.axes.iter().take_while(|a| a.1 + a.2 == 0).map(|a| a.0).product();
        if gy.is_empty() || batches == 0 {
            return;
        }
        let rows = gy.len() / width;
        // With no border at all the last axis is among the batches too.
        let batches = batches.min(rows);
        let table = Scratch::each(width, |i| self.source(self.last(), i));
        let shared = Shared(gx.as_mut_ptr());
        let (shared, table, per) = (&shared, &table[..], rows / batches);
        share(batches, gy.len(), move |b| {
            for r in b * per..(b + 1) * per {
                let gy = &gy[r * width..][..width];
                let base = self.row(r);
                debug_assert!(base + n <= self.size);
                // SAFETY: a row of the gradient, in this task's batch.
                let gx = unsafe { std::slice::from_raw_parts_mut(shared.0.add(base), n) };
                simd::add_assign(gx, &gy[before..before + n]);
                (0..before).chain(before + n..width).for_each(|i| gx[table[i]] += gy[i]);
            }
        });
    }
}
