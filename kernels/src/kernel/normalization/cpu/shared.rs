//! Statistics that several ranks share: what each finds in its part, and what it does with those of all.

use super::{ChannelPair, ChannelTiling, ChannelWork, Channels, Coefficients, InputGradient, NormalizationTask, Sums};
use crate::array::Output;
use crate::dtype::Real;
use crate::pool;
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::enter;

impl Channels {
    /// Mean and squared deviation of each channel, which has elements.
    pub fn moments<T: Real>(&self, x: &[T]) -> Vec<ChannelPair> {
        assert!(x.len() == self.size() && !x.is_empty(), "the slice does not have the sizes");
        self.find_moments(x, &|_, _| {})
    }

    /// Writes or adds the gradient of x by the slopes of all ranks.
    pub fn descend<T: Real>(&self, b: InputGradient<T>, slopes: &[ChannelPair], (gx, output): (&mut [T], Output)) {
        let right = |s: &[T]| s.len() == self.size();
        assert!(b.gy.is_none_or(right) && b.x.is_none_or(right) && right(gx), "the slices do not have the sizes");
        if gx.is_empty() {
            return;
        }
        let (y, g) = (SendPtr(gx.as_mut_ptr()), ChannelTiling::new(*self));
        pool::run(g.groups * g.parts, &|i| {
            let unit = g.unit(i);
            let by = Coefficients::new(unit.channels.clone().map(|c| b.by_slopes(c, slopes[c])));
            let work = ChannelWork::Map { a: b.gy, x: b.x, y, output, by: &by };
            // SAFETY: units lie within the slices, whose sizes were checked.
            unsafe { enter(NormalizationTask { c: self, unit: &unit, work }) };
        });
    }
}

impl<T: Real> InputGradient<'_, T> {
    /// What each channel of this rank adds to the slopes of all, whose channels have n elements.
    pub fn own_slopes(&self, sums: &Sums, n: f64) -> Vec<ChannelPair> {
        sums.gy.iter().zip(&sums.product).enumerate().map(|(c, (&s, &p))| self.slopes(c, [s, p], n)).collect()
    }
}
