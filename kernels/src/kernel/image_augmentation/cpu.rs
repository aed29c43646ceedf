//! On the host.

use super::Augmentation;
use super::parameters::Alteration;
use crate::pool::tasks;
use crate::simd::SimdReal;

/// Where a value of the result comes from: the first of four neighbours, the distances to the others, their weights.
#[derive(Clone, Copy)]
struct PixelSource<T> {
    at: usize,
    right: usize,
    below: usize,
    part: [T; 2],
}

pub(super) fn augment<T: SimdReal>(a: &Augmentation, table: &[f64], noise: Option<&[T]>, x: &[T], y: &mut [T]) {
    let ([h, w], [to_h, to_w], numbers) = (a.size, a.out, a.numbers());
    let (image, result) = (a.channels * h * w, a.channels * to_h * to_w);
    tasks::parts(y, result, |s, y| {
        let alteration = Alteration::new(a, &table[s * numbers..][..numbers]);
        let x = &x[s * image..][..image];
        let (center, sigma) = (T::from_f64(a.contrast_center), T::from_f64(alteration.noise));
        let values: Vec<[T; 2]> = (0..a.channels).map(|c| alteration.values(c).map(T::from_f64)).collect();
        for row in 0..to_h {
            let sources: Vec<PixelSource<T>> =
                (0..to_w).map(|column| source(a, alteration.place(row, column))).collect();
            for (c, [brightness, contrast]) in values.iter().enumerate() {
                let (from, first) = (&x[c * h * w..][..h * w], (c * to_h + row) * to_w);
                for (y, s) in y[first..first + to_w].iter_mut().zip(&sources) {
                    *y = (interpolated(from, s) + *brightness - center) * *contrast + center;
                }
                if let Some(noise) = noise {
                    let noise = &noise[s * result + first..];
                    y[first..first + to_w].iter_mut().zip(noise).for_each(|(y, n)| *y += sigma * *n);
                }
            }
        }
    });
}

fn source<T: SimdReal>(a: &Augmentation, [y, x]: [f64; 2]) -> PixelSource<T> {
    let [h, w] = a.size;
    let (row, column) = (y as usize, x as usize);
    PixelSource {
        at: row * w + column,
        right: (column + 1 < w) as usize,
        below: if row + 1 < h { w } else { 0 },
        part: [T::from_f64(y - row as f64), T::from_f64(x - column as f64)],
    }
}

fn interpolated<T: SimdReal>(x: &[T], s: &PixelSource<T>) -> T {
    let [fy, fx] = s.part;
    let along = |at: usize| x[at] + fx * (x[at + s.right] - x[at]);
    let (upper, lower) = (along(s.at), along(s.at + s.below));
    upper + fy * (lower - upper)
}
