//! On the host.

use super::{Order, TopK};
use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::kernel::axis::Axis;
use crate::pool::tasks::{Shared, share};
use crate::simd::SimdReal;

/// A number with its key.
pub(super) trait Keyed: SimdReal {
    /// What is sorted: key and place.
    type Entry: Copy + Ord + Send;
    /// Key and place of a number.
    fn entry(self, order: Order, place: u32) -> Self::Entry;
    /// The place.
    fn place(entry: Self::Entry) -> usize;
}

macro_rules! keyed {
    ($t:ty, $bits:ty, $key:ident, $entry:ty, |$k:ident, $place:ident| $make:expr, |$e:ident| $read:expr) => {
        /// Whole numbers in the order of the numbers; NaN, whatever its sign, has the largest.
        fn $key(x: $t, order: Order) -> $bits {
            const SIGN: $bits = 1 << (<$bits>::BITS - 1);
            // Adding 0 makes 0 of -0.
            let bits = if order.magnitudes { x.abs() } else { x + 0.0 }.to_bits();
            let key = if x.is_nan() {
                <$bits>::MAX
            } else if bits & SIGN != 0 {
                !bits
            } else {
                bits | SIGN
            };
            if order.reverse { !key } else { key }
        }

        impl Keyed for $t {
            type Entry = $entry;

            #[inline]
            fn entry(self, order: Order, $place: u32) -> $entry {
                let $k = $key(self, order);
                $make
            }

            #[inline]
            fn place($e: $entry) -> usize {
                $read as usize
            }
        }
    };
}

keyed!(f32, u32, key_f32, u64, |k, place| (k as u64) << 32 | place as u64, |e| e as u32);
keyed!(f64, u64, key_f64, (u64, u32), |k, place| (k, place), |e| e.1);

pub(super) fn sort<T: Keyed>(
    at: Axis,
    order: Order,
    x: &[T],
    values: Option<&mut [T]>,
    indices: Option<&mut [u64]>,
    saved: Option<&mut [u32]>,
) {
    let values = values.map(|y| Shared(y.as_mut_ptr()));
    let indices = indices.map(|y| Shared(y.as_mut_ptr()));
    let saved = saved.map(|y| Shared(y.as_mut_ptr()));
    let (values, indices, saved, Axis { n, inner, .. }) = (&values, &indices, &saved, at);
    share(at.outer * inner, x.len(), move |line| {
        let first = line / inner * n * inner + line % inner;
        let mut entries = Scratch::each(n, |i| x[first + i * inner].entry(order, i as u32));
        entries.sort_unstable();
        for (i, &entry) in entries.iter().enumerate() {
            let (to, place) = (first + i * inner, T::place(entry));
            // SAFETY: an element of this line, which is this task's own.
            unsafe {
                values.iter().for_each(|y| y.0.add(to).write(x[first + place * inner]));
                indices.iter().for_each(|y| y.0.add(to).write(place as u64));
                saved.iter().for_each(|y| y.0.add(to).write(place as u32));
            }
        }
    });
}

/// Writes or adds the elements to where they were.
pub(super) fn put_back<T: SimdReal>(at: Axis, order: &[u32], gy: &[T], gx: &mut [T], output: Output) {
    let (shared, Axis { n, inner, .. }) = (Shared(gx.as_mut_ptr()), at);
    let shared = &shared;
    share(at.outer * inner, gy.len(), move |line| {
        let first = line / inner * n * inner + line % inner;
        for from in (0..n).map(|i| first + i * inner) {
            let place = order[from] as usize;
            debug_assert!(place < n);
            // SAFETY: an element of this line, which is this task's own.
            let gx = unsafe { &mut *shared.0.add(first + place.min(n - 1) * inner) };
            *gx = if output == Output::Accumulate { *gx + gy[from] } else { gy[from] };
        }
    });
}

pub(super) fn top_k<T: Keyed>(c: &TopK, x: &[T], y: &mut [T], indices: Option<&mut [u64]>) {
    let (n, k, reduce) = (c.n, c.k, c.reduce);
    let (y, indices) = (Shared(y.as_mut_ptr()), indices.map(|y| Shared(y.as_mut_ptr())));
    let (y, indices) = (&y, &indices);
    share(c.rows, x.len(), move |row| {
        let x = &x[row * n..][..n];
        let mut entries = Scratch::each(n, |i| x[i].entry(c.order, i as u32));
        if k < n {
            entries.select_nth_unstable(k - 1);
        }
        entries[..k].sort_unstable();
        for (i, &entry) in entries[..k].iter().enumerate() {
            let place = T::place(entry);
            let to = if reduce { row * k + i } else { row * n + place };
            // SAFETY: elements of this row, which is this task's own.
            unsafe {
                y.0.add(to).write(x[place]);
                indices.iter().for_each(|y| y.0.add(row * k + i).write(place as u64));
            }
        }
    });
}

pub(super) fn prune<T: SimdReal>(rank: usize, x: &[T], y: &mut [T]) {
    if x.is_empty() {
        return;
    }
    let mut magnitudes = Scratch::each(x.len(), |i| x[i].abs());
    let by = |a: &T, b: &T| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    let limit = *magnitudes.select_nth_unstable_by(rank, by).1;
    // NaN is not less than any limit, and nothing is less than NaN.
    y.iter_mut().zip(x).for_each(|(y, &x)| *y = if x.abs() < limit { T::ZERO } else { x });
}
