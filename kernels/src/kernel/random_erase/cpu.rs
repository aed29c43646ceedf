//! On the host.

use super::{Erasure, Patch};
use crate::pool::tasks;
use crate::random::philox::{Draw, Float, UniformAt};

/// `y = x`, but random numbers, from number `behind` of `draw` on, or zeros, in the patches. Only those numbers are made that replace
/// an element.
pub(super) fn erase<T: Float>(e: &Erasure, patches: &[Patch], draw: Option<Draw>, behind: usize, x: &[T], y: &mut [T]) {
    let low = T::from_f64(e.replacements[0]);
    let width = T::from_f64(e.replacements[1] - e.replacements[0]);
    let image = e.channels * e.size[0] * e.size[1];
    tasks::parts(y, image, |s, y| {
        let (first, mut numbers) = (s * image, draw.map(UniformAt::new));
        let mut fill = |y: &mut [T], at: usize| match &mut numbers {
            Some(numbers) => numbers.each(behind + at, y, |y, v| *y = low + width * v),
            None => y.fill(T::ZERO),
        };
        y.copy_from_slice(&x[first..][..image]);
        let rows = if e.share { 1 } else { e.channels };
        for (k, patch) in patches[s * rows * e.patches..][..rows * e.patches].iter().enumerate() {
            let own = (!e.share).then_some(k / e.patches);
            spans(e, patch, own, |from, to| fill(&mut y[from..to], first + from));
        }
    });
}

/// Calls `f(from, to)` for the neighbours in memory that a patch covers, in one channel or in all.
fn spans(e: &Erasure, patch: &Patch, own: Option<usize>, mut f: impl FnMut(usize, usize)) {
    let ([h, w], [left, right]) = (e.size, patch.columns);
    let channels = own.map_or(0..e.channels, |c| c..c + 1);
    for row in patch.rows[0]..patch.rows[1] {
        if !e.channel_last {
            channels.clone().for_each(|c| f((c * h + row) * w + left, (c * h + row) * w + right));
        } else if own.is_none() {
            f((row * w + left) * e.channels, (row * w + right) * e.channels);
        } else {
            let at = |column: usize| (row * w + column) * e.channels + channels.start;
            (left..right).for_each(|column| f(at(column), at(column) + 1));
        }
    }
}
