//! On the host.

// Several arrays go by one index.
#![allow(clippy::needless_range_loop)]

use super::short::{FEW, in_order};
use super::{Order, TopK};
use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::dtype::AnyBits;
use crate::kernel::axis::Axis;
use crate::pool::tasks::{Shared, parts, share};
use crate::simd::{self, Body, SimdReal, Vector};
use std::cell::Cell;

/// A number with its key.
pub(in crate::kernel) trait Keyed: SimdReal {
    /// What is sorted: key and place.
    type Entry: Copy + Ord + Send;
    type Key: AnyBits + Ord + Send;
    const LAST: Self::Key;
    fn key(self, order: Order) -> Self::Key;
    fn joined(key: Self::Key, place: u32) -> Self::Entry;
    /// Key and place of a number.
    #[inline]
    fn entry(self, order: Order, place: u32) -> Self::Entry {
        Self::joined(self.key(order), place)
    }
    /// The place.
    fn place(entry: Self::Entry) -> usize;
    /// Whether two have the same key.
    fn are_equal(a: Self::Entry, b: Self::Entry) -> bool;
}

macro_rules! keyed {
    ($t:ty, $bits:ty, $key:ident, $entry:ty, |$k:ident, $place:ident| $make:expr, |$e:ident| $read:expr, $key_of:expr) => {
        /// Whole numbers in the order of the numbers; NaN, whatever its sign, has the largest. Without a branch, since the
        /// signs of numbers are hard to foretell.
        #[inline(always)]
        fn $key(x: $t, order: Order) -> $bits {
            const SIGN: $bits = 1 << (<$bits>::BITS - 1);
            let all_if = |yes: bool| (yes as $bits).wrapping_neg();
            // Adding 0 makes 0 of -0.
            let bits = (x + 0.0).to_bits() & !(SIGN & all_if(order.magnitudes));
            let key = bits ^ (SIGN | all_if(bits & SIGN != 0)) | all_if(x.is_nan());
            key ^ all_if(order.reverse)
        }

        impl Keyed for $t {
            type Entry = $entry;
            type Key = $bits;
            const LAST: $bits = <$bits>::MAX;

            #[inline(always)]
            fn key(self, order: Order) -> $bits {
                $key(self, order)
            }

            #[inline(always)]
            fn joined($k: $bits, $place: u32) -> $entry {
                $make
            }

            #[inline]
            fn place($e: $entry) -> usize {
                $read as usize
            }

            #[inline]
            fn are_equal(a: $entry, b: $entry) -> bool {
                let key: fn($entry) -> $bits = $key_of;
                key(a) == key(b)
            }
        }
    };
}

keyed!(f32, u32, key_f32, u64, |k, place| (k as u64) << 32 | place as u64, |e| e as u32, |e| (e >> 32) as u32);
keyed!(f64, u64, key_f64, (u64, u32), |k, place| (k, place), |e| e.1, |e| e.0);

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
        let entry = |i: usize| x[first + i * inner].entry(order, i as u32);
        let mut few = [T::joined(T::LAST, 0); FEW];
        let mut many;
        let entries = match n <= FEW {
            true => in_order::<T>(n, entry, &mut few),
            false => {
                many = Scratch::each(n, entry);
                many.sort_unstable();
                &many[..]
            }
        };
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

/// Numbers that are worth a task.
const TASK: usize = 1 << 14;
/// Neighbouring lines that are put back together.
const SIDE: usize = 256;

/// Writes or adds the elements to where they were.
pub(super) fn put_back<T: SimdReal>(at: Axis, order: &[u32], gy: &[T], gx: &mut [T], output: Output) {
    let Axis { n, inner, .. } = at;
    if inner == 1 && n > 0 {
        // Many short lines in a task.
        let each = (TASK / n).max(1);
        return parts(gx, each * n, |task, gx| {
            let first = task * each * n;
            let lines = gx.chunks_exact_mut(n).zip(order[first..].chunks_exact(n)).zip(gy[first..].chunks_exact(n));
            lines.for_each(|((gx, order), gy)| put_row(order, gy, gx, output));
        });
    }
    let shared = Shared(gx.as_mut_ptr());
    let (shared, blocks) = (&shared, inner.div_ceil(SIDE));
    share(at.outer * blocks, gy.len(), move |task| {
        let column = task % blocks.max(1) * SIDE;
        let (first, width) = (task / blocks.max(1) * n * inner + column, SIDE.min(inner - column));
        for row in (0..n).map(|i| first + i * inner) {
            for (c, (&place, &gy)) in order[row..][..width].iter().zip(&gy[row..][..width]).enumerate() {
                debug_assert!((place as usize) < n);
                // SAFETY: an element of these lines, which are this task's own.
                let gx = unsafe { &mut *shared.0.add(first + (place as usize).min(n - 1) * inner + c) };
                *gx = if output == Output::Accumulate { *gx + gy } else { gy };
            }
        }
    });
}

/// Writes or adds elements to places of a row.
fn put_row<T: SimdReal>(places: &[u32], gy: &[T], gx: &mut [T], output: Output) {
    let each = places.iter().zip(gy);
    match output {
        Output::Write => each.for_each(|(&place, &gy)| gx[place as usize] = gy),
        Output::Accumulate => each.for_each(|(&place, &gy)| gx[place as usize] += gy),
    }
}

/// Whether the first `k` of `n` are so few that it pays to find out first what is surely none of them.
fn are_few(n: usize, k: usize) -> bool {
    k > 0 && k <= n / COLUMNS
}

/// The first `k` entries of a row, and perhaps others, in any order. Of equal keys, which may be many, no more than are needed.
fn candidates<T: Keyed>(x: &[T], k: usize, order: Order) -> Scratch<T::Entry> {
    if !are_few(x.len(), k) {
        return Scratch::each(x.len(), |i| x[i].entry(order, i as u32));
    }
    let columns = (2 * k).next_multiple_of(COLUMNS);
    let (mut keys, mut least) = (Scratch::any(x.len()), Scratch::<T::Key>::any(columns));
    let (to, least_of) = (Shared(keys.as_mut_ptr()), Shared(least.as_mut_ptr()));
    // SAFETY: there is a key for each element, and one for each column.
    unsafe { simd::run::<T>(&RowKeys { x, order, columns, keys: to, least: least_of }) };
    // So many columns have an element up to here.
    let limit = *least.select_nth_unstable(k - 1).1;
    let less = Cell::new(0);
    // SAFETY: no terms.
    unsafe { simd::run::<T>(&CountLess::<T> { keys: &keys, limit, count: &less }) };
    let less = less.get();
    let mut found = Scratch::filled(less.max(k), T::joined(limit, 0));
    let job = Below::<T> {
        keys: &keys,
        limit,
        equal: k.saturating_sub(less),
        found: Shared(found.as_mut_ptr()),
        n: found.len(),
    };
    // SAFETY: there is room for all that are less, and for so many that are equal.
    unsafe { simd::run::<T>(&job) };
    found
}

/// The first `k` entries of a row, in any order, and perhaps others behind them.
fn selected<T: Keyed>(x: &[T], k: usize, order: Order) -> Scratch<T::Entry> {
    let mut found = candidates(x, k, order);
    if (1..found.len()).contains(&k) {
        found.select_nth_unstable(k - 1);
    }
    found
}

/// Calls `f` with the first `k` entries of a row, in order.
fn first<T: Keyed>(x: &[T], k: usize, order: Order, f: impl FnOnce(&[T::Entry])) {
    let mut found = selected(x, k, order);
    found[..k].sort_unstable();
    f(&found[..k]);
}

/// Neighbouring columns whose least keys are found together.
const COLUMNS: usize = 32;

/// The keys of a row; and, with the row cut into lines of some columns, the least key of each column. What is left of the row
/// belongs to none.
struct RowKeys<'a, T: Keyed> {
    x: &'a [T],
    order: Order,
    columns: usize,
    keys: Shared<T::Key>,
    least: Shared<T::Key>,
}

impl<T: Keyed> Body<T> for RowKeys<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        let (x, order, n) = (self.x, self.order, self.x.len());
        let lines = n / self.columns;
        for column in (0..self.columns).step_by(COLUMNS) {
            let mut least = [T::LAST; COLUMNS];
            for at in (0..lines).map(|line| line * self.columns + column) {
                let x: &[T; COLUMNS] = x[at..].first_chunk().expect("whole lines");
                // SAFETY: a key for each element.
                let keys = unsafe { &mut *self.keys.0.add(at).cast::<[T::Key; COLUMNS]>() };
                for i in 0..COLUMNS {
                    keys[i] = x[i].key(order);
                    least[i] = least[i].min(keys[i]);
                }
            }
            // SAFETY: a key for each column.
            unsafe { self.least.0.add(column).cast::<[T::Key; COLUMNS]>().write(least) };
        }
        for i in lines * self.columns..n {
            // SAFETY: as above.
            unsafe { self.keys.0.add(i).write(x[i].key(order)) };
        }
    }
}

/// Keys that are looked at together.
const BLOCK: usize = 16;

/// How many keys are below a limit.
struct CountLess<'a, T: Keyed> {
    keys: &'a [T::Key],
    limit: T::Key,
    count: &'a Cell<usize>,
}

impl<T: Keyed> Body<T> for CountLess<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        let mut count = 0u32;
        for key in self.keys {
            count += (*key < self.limit) as u32;
        }
        self.count.set(count as usize);
    }
}

/// The entries of the keys below a limit, and of the first ones that are equal to it: `n` together.
struct Below<'a, T: Keyed> {
    keys: &'a [T::Key],
    limit: T::Key,
    equal: usize,
    found: Shared<T::Entry>,
    n: usize,
}

impl<T: Keyed> Below<'_, T> {
    /// Adds the entries of the keys from number `at` on to the `n` that are found, all of them below the limit; with the flag, equal
    /// ones too, up to the last one that is wanted. Gives where it ended.
    ///
    /// # Safety
    /// There is room for all.
    #[inline(always)]
    unsafe fn find<const EQUAL: bool>(&self, mut at: usize, n: &mut usize) -> usize {
        let (limit, mut equal) = (self.limit, self.equal);
        for keys in self.keys[at..].chunks(BLOCK) {
            let any = keys.iter().fold(false, |any, key| any | (*key < limit) | EQUAL & (*key == limit));
            for (i, &key) in keys.iter().enumerate().filter(|_| any) {
                let is_equal = EQUAL && key == limit;
                if key < limit || is_equal {
                    // SAFETY: all that is found has been counted.
                    unsafe { self.found.0.add(*n).write(T::joined(key, (at + i) as u32)) };
                    *n += 1;
                    equal -= is_equal as usize;
                    if *n == self.n || EQUAL && equal == 0 {
                        return at + i + 1;
                    }
                }
            }
            at += keys.len();
        }
        at
    }
}

impl<T: Keyed> Body<T> for Below<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        let mut n = 0;
        // SAFETY: the caller's promise.
        unsafe {
            let at = if self.equal > 0 { self.find::<true>(0, &mut n) } else { 0 };
            if n < self.n {
                self.find::<false>(at, &mut n);
            }
        }
    }
}

pub(super) fn top_k<T: Keyed>(c: &TopK, x: &[T], y: &mut [T], indices: Option<&mut [u64]>, saved: Option<&mut [u32]>) {
    let (n, k, reduce) = (c.n, c.k, c.reduce);
    let (y, indices) = (Shared(y.as_mut_ptr()), indices.map(|y| Shared(y.as_mut_ptr())));
    let saved = saved.map(|y| Shared(y.as_mut_ptr()));
    let (y, indices, saved) = (&y, &indices, &saved);
    share(c.rows, x.len(), move |row| {
        let x = &x[row * n..][..n];
        first(x, k, c.order, |entries| {
            for (i, &entry) in entries.iter().enumerate() {
                let place = T::place(entry);
                let to = if reduce { row * k + i } else { row * n + place };
                // SAFETY: elements of this row, which is this task's own.
                unsafe {
                    y.0.add(to).write(x[place]);
                    indices.iter().for_each(|y| y.0.add(row * k + i).write(place as u64));
                    saved.iter().for_each(|y| y.0.add(row * k + i).write(place as u32));
                }
            }
        });
    });
}

/// Adds what belongs to the elements that were found to where they were.
pub(super) fn add_top_k<T: SimdReal>(c: &TopK, places: &[u32], gy: &[T], gx: &mut [T]) {
    let (n, k, reduce, shared) = (c.n, c.k, c.reduce, Shared(gx.as_mut_ptr()));
    let shared = &shared;
    share(c.rows, places.len(), move |row| {
        // SAFETY: this row, which is this task's own.
        let gx = unsafe { std::slice::from_raw_parts_mut(shared.0.add(row * n), n) };
        let places = &places[row * k..][..k];
        if reduce {
            return put_row(places, &gy[row * k..][..k], gx, Output::Accumulate);
        }
        let gy = &gy[row * n..][..n];
        places.iter().for_each(|&i| gx[i as usize] += gy[i as usize]);
    });
}

/// Adds the first elements of each row of `gy`, in their places.
pub(super) fn add_first<T: Keyed>(c: &TopK, gy: &[T], gx: &mut [T]) {
    let (n, shared) = (c.n, Shared(gx.as_mut_ptr()));
    let shared = &shared;
    share(c.rows, gy.len(), move |row| {
        // SAFETY: this row, which is this task's own.
        let gx = unsafe { std::slice::from_raw_parts_mut(shared.0.add(row * n), n) };
        let gy = &gy[row * n..][..n];
        let found = selected(gy, c.k, c.order);
        found[..c.k].iter().map(|e| T::place(*e)).for_each(|i| gx[i] += gy[i]);
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

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(the_first_of_few_and_of_many);
    fn the_first_of_few_and_of_many() {
        let values = [1.5, f32::NAN, -0.0, 0.0, -3.0, f32::INFINITY, -f32::NAN, -f32::INFINITY, 2.0];
        let sizes = [(1, 1), (40, 40), (95, 3), (96, 3), (111, 3), (1000, 10), (1000, 31), (1000, 900), (5001, 100)];
        for (n, k, spread) in sizes.into_iter().flat_map(|(n, k)| [(n, k, 7), (n, k, 1 << 20), (n, k, 1)]) {
            let number = |i: usize| match i * 7919 % 23 {
                0 if spread == 7 => values[i % values.len()],
                _ => (i * 2_654_435 % spread) as f32 - spread as f32 / 2.0,
            };
            let x: Vec<f32> = (0..n).map(number).collect();
            for (magnitudes, reverse) in [(false, false), (false, true), (true, false), (true, true)] {
                let order = Order { magnitudes, reverse };
                let mut all: Vec<u64> = (0..n).map(|i| x[i].entry(order, i as u32)).collect();
                all.sort_unstable();
                first(&x, k, order, |found| assert_eq!(found, &all[..k]));
            }
        }
    }
}
