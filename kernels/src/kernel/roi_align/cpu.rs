//! On the host: along an axis each bin is a weighted sum of a few neighbours.

use super::{RoiAlign, Span};
use crate::array::Output;
use crate::array::scratch::Scratch;
use crate::error::Result;
use crate::pool::tasks::{self, Shared};
use crate::simd::SimdReal;

/// Channels that are added to together.
const CHANNELS: usize = 8;

/// For each bin of an axis its first element, how many there are, and their weights.
struct Bins<T: Copy> {
    elements: Scratch<(usize, usize)>,
    weight: Scratch<T>,
    /// Room for the weights of a bin.
    reach: usize,
}

impl<T: SimdReal> Bins<T> {
    fn new(span: &Span, bins: usize) -> Bins<T> {
        if span.is_unknown() {
            let unknown = T::from_f64(f64::NAN);
            return Bins { elements: Scratch::filled(bins, (0, 1)), weight: Scratch::filled(bins, unknown), reach: 1 };
        }
        let reach = (span.bin.abs() + 4.0).min(span.n as f64) as usize;
        let mut made =
            Bins { elements: Scratch::filled(bins, (0, 0)), weight: Scratch::filled(bins * reach, T::ZERO), reach };
        let mut sums = Scratch::filled(reach, 0.0);
        for bin in 0..bins {
            sums.fill(0.0);
            let samples = || {
                let inside = span.between(bin, -1.0, span.n as f64);
                inside.filter_map(|i| span.tap(span.place(bin, i as f64)))
            };
            let first = samples().map(|(at, _)| at).min().unwrap_or(0);
            let mut count = 0;
            for (at, t) in samples() {
                let next = (at + 1).min(span.n - 1);
                for (at, w) in [(at, 1.0 - t), (next, t)] {
                    // The second element may have weight 0 and lie behind all.
                    if at - first < reach && w != 0.0 {
                        sums[at - first] += w;
                        count = count.max(at - first + 1);
                    }
                }
            }
            made.elements[bin] = (first, count);
            (0..count).for_each(|k| made.weight[bin * reach + k] = T::from_f64(sums[k] / span.count));
        }
        made
    }

    /// Elements and weights of a bin.
    fn of(&self, bin: usize) -> impl Iterator<Item = (usize, T)> {
        let (first, count) = self.elements[bin];
        (first..first + count).zip(self.weight[bin * self.reach..][..count].iter().copied())
    }
}

impl RoiAlign {
    fn spans(&self, corners: &[impl SimdReal]) -> [Span; 2] {
        let [_, x1, y1, x2, y2] = std::array::from_fn(|i| corners[i].to_f64());
        [Span::new(self, 0, y1, y2), Span::new(self, 1, x1, x2)]
    }

    fn axes<T: SimdReal>(&self, corners: &[T]) -> [Bins<T>; 2] {
        let [rows, columns] = self.spans(corners);
        [Bins::new(&rows, self.bins[0]), Bins::new(&columns, self.bins[1])]
    }

    /// Number of an element of an array of `size` elements a channel.
    fn element(&self, image: usize, channel: usize, at: usize, size: usize) -> usize {
        match self.channel_last {
            true => (image * size + at) * self.channels + channel,
            false => (image * self.channels + channel) * size + at,
        }
    }

    fn check(&self, boxes: &[impl SimdReal]) -> Result<()> {
        boxes.chunks_exact(5).try_for_each(|b| self.index(b[0].to_f64()).map(|_| ()))
    }
}

pub(super) fn gather<T: SimdReal>(r: &RoiAlign, x: &[T], boxes: &[T], y: &mut [T]) -> Result<()> {
    r.check(boxes)?;
    let (area, image, width) = (r.area(), r.image(), r.size[1]);
    tasks::parts(y, r.channels * area, |k, y| {
        let corners = &boxes[k * 5..][..5];
        let (image_number, [rows, columns]) = (corners[0].to_f64() as usize, r.axes(corners));
        if !r.channel_last {
            let first = image_number * r.channels * image;
            let images = x[first..].chunks_exact(image.max(1));
            return images.zip(y.chunks_exact_mut(area)).for_each(|(x, y)| bins(x, width, &rows, &columns, y));
        }
        for c in 0..r.channels {
            for bin in 0..area {
                let mut sum = T::ZERO;
                for (i, v) in rows.of(bin / r.bins[1]) {
                    let line = |(j, w): (usize, T)| x[r.element(image_number, c, i * width + j, image)] * w;
                    sum += v * columns.of(bin % r.bins[1]).map(line).sum::<T>();
                }
                y[r.element(0, c, bin, area)] = sum;
            }
        }
    });
    Ok(())
}

/// The bins of one channel of a box.
fn bins<T: SimdReal>(x: &[T], width: usize, rows: &Bins<T>, columns: &Bins<T>, y: &mut [T]) {
    for (bin, y) in y.chunks_exact_mut(columns.elements.len()).enumerate() {
        y.fill(T::ZERO);
        for (i, v) in rows.of(bin) {
            let line = &x[i * width..][..width];
            for (j, y) in y.iter_mut().enumerate() {
                let (first, count) = columns.elements[j];
                let weights = &columns.weight[j * columns.reach..][..count];
                *y += v * line[first..first + count].iter().zip(weights).map(|(&x, &w)| x * w).sum::<T>();
            }
        }
    }
}

pub(super) fn spread<T: SimdReal>(r: &RoiAlign, gy: &[T], boxes: &[T], gx: &mut [T], output: Output) -> Result<()> {
    r.check(boxes)?;
    if output == Output::Write {
        gx.fill(T::ZERO);
    }
    let (area, image, width) = (r.area(), r.image(), r.size[1]);
    let groups = r.channels.div_ceil(CHANNELS);
    let size = gx.len();
    let shared = Shared(gx.as_mut_ptr());
    let shared = &shared;
    tasks::share(r.images * groups, gy.len().max(size), move |task| {
        let (number, group) = (task / groups, task % groups * CHANNELS);
        for (k, corners) in boxes.chunks_exact(5).enumerate() {
            if corners[0].to_f64() as usize != number {
                continue;
            }
            let [rows, columns] = r.axes(corners);
            for c in group..(group + CHANNELS).min(r.channels) {
                for bin in 0..area {
                    let g = gy[r.element(k, c, bin, area)];
                    for (i, v) in rows.of(bin / r.bins[1]) {
                        for (j, w) in columns.of(bin % r.bins[1]) {
                            // SAFETY: a channel of this task's, inside gx.
                            unsafe { *shared.0.add(r.element(number, c, i * width + j, image)) += g * v * w };
                        }
                    }
                }
            }
        }
    });
    Ok(())
}
