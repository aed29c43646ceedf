//! The bias gradient: sums of gy over everything but the channels.

use super::{ChannelOrder, Conv};
use crate::array::Output;
use crate::array::scratch;
use crate::dtype::Real;
use crate::pool;
use crate::pool::tasks::SendPtr;

/// Parts of the batch with sums of their own, at most, and numbers that are worth a part.
const PARTS: usize = 8;
const PART: usize = 1 << 16;

pub(super) fn gradient<T: Real>(c: &Conv, gy: &[T], gb: &mut [T], output: Output) {
    let channels = c.out_channels;
    let sample = c.output_len() / c.batch.max(1);
    let parts = (gy.len() / PART).min(c.batch).clamp(1, PARTS);
    scratch::with(parts * channels, |sums: &mut [T]| {
        sums.fill(T::ZERO);
        let shared = SendPtr(sums.as_mut_ptr());
        pool::run(parts, &|p| {
            // SAFETY: each part has its own sums.
            let sums = unsafe { shared.slice(p * channels, channels) };
            let range = c.batch * p / parts * sample..c.batch * (p + 1) / parts * sample;
            add(c.layout, sample / channels.max(1), &gy[range], sums);
        });
        for (i, g) in gb.iter_mut().enumerate() {
            let total = (0..parts).fold(T::ZERO, |s, p| s + sums[p * channels + i]);
            *g = if output == Output::Accumulate { *g + total } else { total };
        }
    })
}

fn add<T: Real>(layout: ChannelOrder, points: usize, gy: &[T], sums: &mut [T]) {
    if gy.is_empty() {
        return;
    }
    match layout {
        ChannelOrder::ChannelFirst => {
            gy.chunks_exact(points).enumerate().for_each(|(i, row)| sums[i % sums.len()] += sum(row));
        }
        ChannelOrder::ChannelLast => {
            let n = sums.len();
            gy.chunks_exact(n).for_each(|row| sums.iter_mut().zip(row).for_each(|(s, &v)| *s += v));
        }
    }
}

/// In sixteen running sums, which vectors hold.
fn sum<T: Real>(row: &[T]) -> T {
    let mut s = [T::ZERO; 16];
    let chunks = row.chunks_exact(16);
    let rest = chunks.remainder().iter().fold(T::ZERO, |a, &v| a + v);
    chunks.for_each(|c| s.iter_mut().zip(c).for_each(|(a, &v)| *a += v));
    s.iter().fold(rest, |a, &v| a + v)
}
