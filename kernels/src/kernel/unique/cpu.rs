//! On the host: by sorting.

use super::Unique;
use crate::array::scratch::{Scratch, list};
use crate::call::ViewMut;
use crate::error::{Error, Result};
use crate::kernel::axis::Axis;
use crate::kernel::sort::{Keyed, Order};
use crate::simd::SimdReal;
use std::cmp::Ordering;

/// NaN is the largest number, and equal to itself.
fn compare<T: SimdReal>(a: &[T], b: &[T]) -> Ordering {
    let one = |(a, b): (&T, &T)| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
    a.iter().zip(b).map(one).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// The groups of an array's elements, found by sorting whole numbers.
fn elements<T: Keyed>(x: &[T]) -> (Scratch<usize>, Vec<usize>) {
    let order = Order { magnitudes: false, reverse: false };
    let mut entries = Scratch::each(x.len(), |i| x[i].entry(order, i as u32));
    entries.sort_unstable();
    let (mut of, mut firsts) = (Scratch::filled(x.len(), 0), list(x.len(), 0));
    firsts.clear();
    for group in entries.chunk_by(|a, b| T::are_equal(*a, *b)) {
        let first = T::place(group[0]);
        firsts.push(first);
        group.iter().for_each(|entry| of[T::place(*entry)] = first);
    }
    (of, firsts)
}

impl Unique {
    /// For each slice, the first one that it is equal to; the first ones in their order.
    fn groups<T: Keyed>(&self, x: &[T]) -> (Scratch<usize>, Vec<usize>) {
        let (of, mut firsts) = match self.at {
            Axis { n, .. } if self.is_of_elements() && n <= u32::MAX as usize => elements(x),
            _ => self.slices(x),
        };
        if !self.sorted {
            firsts.sort_unstable();
        }
        (of, firsts)
    }

    fn slices<T: SimdReal>(&self, x: &[T]) -> (Scratch<usize>, Vec<usize>) {
        let Axis { outer, n, inner } = self.at;
        let width = outer * inner;
        let mut rows = Scratch::filled(x.len(), T::ZERO);
        for (i, row) in x.chunks(inner.max(1)).enumerate() {
            rows[i % n * width + i / n * inner..][..inner].copy_from_slice(row);
        }
        let row = |i: usize| &rows[i * width..][..width];
        let mut order = Scratch::each(n, |i| i);
        order.sort_unstable_by(|&a, &b| compare(row(a), row(b)).then(a.cmp(&b)));
        let (mut of, mut firsts) = (Scratch::filled(n, 0), list(n, 0));
        firsts.clear();
        for &i in order.iter() {
            match firsts.last() {
                Some(&first) if compare(row(first), row(i)).is_eq() => of[i] = first,
                _ => {
                    firsts.push(i);
                    of[i] = i;
                }
            }
        }
        (of, firsts)
    }

    pub(super) fn write<T: Keyed>(&self, x: &[T], y: &mut [ViewMut]) -> Result<()> {
        let Axis { n, inner, .. } = self.at;
        let (of, firsts) = self.groups(x);
        if firsts.len() != self.count {
            let e = Error::arg("x", format!("{} different elements", self.count)).actual(firsts.len());
            return Err(e.hint("they are counted when the function is called: for another x, call it again"));
        }
        let mut outs = y.iter_mut();
        if let Some(y) = outs.next() {
            let places = y.slice::<T>().chunks_mut(inner.max(1)).enumerate();
            places.for_each(|(i, y)| {
                y.copy_from_slice(&x[(i / self.count * n + firsts[i % self.count]) * inner..][..inner])
            });
        }
        let mut numbers = Scratch::filled(n, 0i32);
        firsts.iter().enumerate().for_each(|(k, &i)| numbers[i] = k as i32);
        let mut asked = self.asked.iter().map(|asked| if *asked { outs.next() } else { None });
        let [index, inverse, counts] = std::array::from_fn(|_| asked.next().flatten());
        if let Some(y) = index {
            y.slice::<i32>().iter_mut().zip(&firsts).for_each(|(y, i)| *y = *i as i32);
        }
        if let Some(y) = inverse {
            y.slice::<i32>().iter_mut().zip(of.iter()).for_each(|(y, i)| *y = numbers[*i]);
        }
        if let Some(y) = counts {
            let y = y.slice::<i32>();
            y.fill(0);
            of.iter().for_each(|i| y[numbers[*i] as usize] += 1);
        }
        Ok(())
    }
}
