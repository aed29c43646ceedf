//! On the host: row by row, in loops that the compiler makes vectors of where it can.

// Several arrays go by one index.
#![allow(clippy::needless_range_loop)]

use super::Augmentation;
use super::parameters::Alteration;
use crate::pool::tasks::{self, Shared};
use crate::simd::{self, Body, SimdReal, Vector};

/// Results that are made together.
const BLOCK: usize = 64;

/// Where neighbouring results come from.
struct PixelSources<T> {
    /// The first of four neighbours, the one at its right, and those below.
    at: [[usize; BLOCK]; 4],
    /// The distances from the first one, down and to the right.
    part: [[T; BLOCK]; 2],
}

pub(super) fn augment<T: SimdReal>(a: &Augmentation, table: &[f64], noise: Option<&[T]>, x: &[T], y: &mut [T]) {
    let ([h, w], [to_h, to_w], numbers) = (a.size, a.out, a.numbers());
    let (image, result) = (a.channels * h * w, a.channels * to_h * to_w);
    tasks::parts(y, result, |s, y| {
        let alteration = Alteration::new(a, &table[s * numbers..][..numbers]);
        let values: Vec<[T; 2]> = (0..a.channels).map(|c| alteration.values(c).map(T::from_f64)).collect();
        let (x, noise) = (&x[s * image..][..image], noise.map(|noise| &noise[s * result..][..result]));
        let job = Altered { a, alteration: &alteration, values: &values, x, noise, y: Shared(y.as_mut_ptr()) };
        // SAFETY: y is this sample's.
        unsafe { simd::run::<T>(&job) };
    });
}

/// One image.
struct Altered<'a, T> {
    a: &'a Augmentation,
    alteration: &'a Alteration<'a>,
    /// For each channel what is added, and what the distance to the contrast's centre is multiplied by.
    values: &'a [[T; 2]],
    x: &'a [T],
    noise: Option<&'a [T]>,
    y: Shared<T>,
}

impl<T: SimdReal> Body<T> for Altered<'_, T> {
    #[inline(always)]
    unsafe fn run<V: Vector<E = T>>(&self) {
        let ([h, w], [to_h, to_w]) = (self.a.size, self.a.out);
        let center = T::from_f64(self.a.contrast_center);
        let mut sources = PixelSources { at: [[0; BLOCK]; 4], part: [[T::ZERO; BLOCK]; 2] };
        for (row, column) in (0..to_h).flat_map(|row| (0..to_w).step_by(BLOCK).map(move |column| (row, column))) {
            let n = BLOCK.min(to_w - column);
            match self.alteration.is_distorted() {
                true => sources.find::<true>(self, row, column, n),
                false => sources.find::<false>(self, row, column, n),
            }
            for (c, &[brightness, contrast]) in self.values.iter().enumerate() {
                let first = (c * to_h + row) * to_w + column;
                // SAFETY: the caller's promise.
                let y = unsafe { std::slice::from_raw_parts_mut(self.y.0.add(first), n) };
                sources.interpolate(&self.x[c * h * w..][..h * w], y);
                y.iter_mut().for_each(|y| *y = (*y + brightness - center) * contrast + center);
                if let Some(noise) = self.noise {
                    let sigma = T::from_f64(self.alteration.noise);
                    y.iter_mut().zip(&noise[first..]).for_each(|(y, n)| *y += sigma * *n);
                }
            }
        }
    }
}

impl<T: SimdReal> PixelSources<T> {
    /// Of the results of a row from a column on.
    #[inline(always)]
    fn find<const DISTORTED: bool>(&mut self, of: &Altered<T>, row: usize, column: usize, n: usize) {
        let [h, w] = of.a.size;
        let mut places = [[0.0; BLOCK]; 2];
        for k in 0..n {
            let [y, x] = of.alteration.place::<DISTORTED>(row, column + k);
            (places[0][k], places[1][k]) = (y, x);
        }
        for k in 0..n {
            let [y, x] = [places[0][k], places[1][k]];
            // SAFETY: `place` gives no number below 0 nor beyond the image; the larger of NaN and 0 is 0.
            let [row, column] = [y, x].map(|v| unsafe { v.max(0.0).to_int_unchecked::<i64>() } as usize);
            let (right, below) = ((column + 1 < w) as usize, if row + 1 < h { w } else { 0 });
            let at = row * w + column;
            (self.at[0][k], self.at[1][k]) = (at, at + right);
            (self.at[2][k], self.at[3][k]) = (at + below, at + below + right);
            (self.part[0][k], self.part[1][k]) = (T::from_f64(y - row as f64), T::from_f64(x - column as f64));
        }
    }

    #[inline(always)]
    fn interpolate(&self, x: &[T], y: &mut [T]) {
        let mut read = [[T::ZERO; BLOCK]; 4];
        for (read, at) in read.iter_mut().zip(&self.at) {
            for k in 0..y.len() {
                read[k] = x[at[k]];
            }
        }
        let [fy, fx] = &self.part;
        for (k, y) in y.iter_mut().enumerate() {
            let (upper, lower) = (along(fx[k], read[0][k], read[1][k]), along(fx[k], read[2][k], read[3][k]));
            *y = along(fy[k], upper, lower);
        }
    }
}

#[inline(always)]
fn along<T: SimdReal>(part: T, a: T, b: T) -> T {
    a + part * (b - a)
}
