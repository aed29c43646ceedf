//! Sums over the GPUs of a group: in the order of ranks, made here, or as the library likes.
//!
//! In the order of ranks each device gets its part of the numbers from all, adds, and hands the sum out. That
//! is as many bytes as the library's own sum, which is made in an order that it chooses.

use super::gpu_group::GpuGroup;
use super::gpu_sums::sum_rows;
use super::group::{DeviceMove, DeviceSum};
use crate::array::Data;
use crate::dtype::DType;
use crate::error::Result;
use std::ops::Range;

/// Up to so many numbers, counted over all devices, all are sent to all: one exchange is quicker than two of parts.
const FEW: usize = 1 << 13;
/// Numbers that are summed at a time, at most: as many are needed beside them.
const SEGMENT: usize = 1 << 25;

/// How a sum over devices is made.
#[derive(Clone, Copy, Debug)]
pub struct GroupSums {
    /// In the order of ranks; if not, in one of the library's.
    pub ordered: bool,
    /// Sums are divided by the number of devices.
    pub mean: bool,
    /// What numbers are multiplied by before.
    pub scale: f64,
    /// Small arrays go together.
    pub packed: bool,
}

impl Default for GroupSums {
    fn default() -> GroupSums {
        GroupSums { ordered: true, mean: false, scale: 1.0, packed: true }
    }
}

impl GpuGroup {
    /// How the library makes such sums; `None` where they are made here.
    pub(super) fn by_library(&self, dtype: DType, sums: &GroupSums) -> Option<DeviceSum> {
        match dtype {
            _ if sums.ordered => None,
            DType::I16 | DType::U16 => None,
            DType::Bool => Some(DeviceSum::Any),
            _ if sums.mean && dtype.is_float() => Some(DeviceSum::Mean),
            _ => Some(DeviceSum::Sum),
        }
    }

    pub(super) fn divisor(&self, sums: &GroupSums) -> usize {
        if sums.mean { self.size } else { 1 }
    }

    pub(super) fn sum(&self, x: &Data, sums: &GroupSums) -> Result<()> {
        if let Some(how) = self.by_library(x.dtype(), sums) {
            self.ask(DeviceMove::AllReduce(how), x.len(), x, x)?;
            return self.divide(x, sums);
        }
        let divide = self.divisor(sums);
        if x.len() * self.size <= FEW {
            let rows = self.memory(x.dtype(), x.len() * self.size)?;
            self.ask(DeviceMove::AllGather, x.len(), x, &rows)?;
            return sum_rows(x, &rows, divide);
        }
        for part in segments(x) {
            let cuts = even_cuts(part.len(), self.size);
            self.sum_own_part(&part, &cuts, &piece(&part, &cuts[self.rank]), divide)?;
            self.hand_out(&part, &cuts)?;
        }
        Ok(())
    }

    /// As [`sum`](GpuGroup::sum) for one device alone; `x` stays what it is on the others.
    pub(super) fn sum_to(&self, x: &Data, to: usize, sums: &GroupSums) -> Result<()> {
        if let Some(how) = self.by_library(x.dtype(), sums) {
            self.ask(DeviceMove::Reduce(how, to), x.len(), x, x)?;
            return if to == self.rank { self.divide(x, sums) } else { Ok(()) };
        }
        for part in segments(x) {
            let cuts = even_cuts(part.len(), self.size);
            let own = self.memory(x.dtype(), cuts[self.rank].len())?;
            self.sum_own_part(&part, &cuts, &own, self.divisor(sums))?;
            let send = (0..self.size).map(|i| 0..if i == to { own.len() } else { 0 }).collect();
            let receive = cuts.iter().map(|c| if to == self.rank { c.clone() } else { 0..0 }).collect();
            self.pieces(send, receive, &own, &part)?;
        }
        Ok(())
    }

    /// `y` becomes the sum over all devices of this one's part of `x`.
    pub(super) fn sum_own_part(&self, x: &Data, cuts: &[Range<usize>], y: &Data, divide: usize) -> Result<()> {
        let n = cuts[self.rank].len();
        let rows = self.memory(x.dtype(), n * self.size)?;
        self.pieces(cuts.to_vec(), (0..self.size).map(|i| i * n..(i + 1) * n).collect(), x, &rows)?;
        if n == 0 { Ok(()) } else { sum_rows(&y.within(0, n), &rows, divide) }
    }

    /// Each device gives its part of `x` to all others.
    fn hand_out(&self, x: &Data, cuts: &[Range<usize>]) -> Result<()> {
        let others = |own: bool, c: &Range<usize>| if own { 0..0 } else { c.clone() };
        let send = (0..self.size).map(|i| others(i == self.rank, &cuts[self.rank])).collect();
        let receive = cuts.iter().enumerate().map(|(i, c)| others(i == self.rank, c)).collect();
        self.pieces(send, receive, x, x)
    }

    /// What the library leaves to be done for a mean: it divides floats alone.
    pub(super) fn divide(&self, x: &Data, sums: &GroupSums) -> Result<()> {
        let is_due = sums.mean && !x.dtype().is_float() && x.dtype() != DType::Bool;
        if is_due { sum_rows(x, x, self.size) } else { Ok(()) }
    }

    pub(super) fn scale(&self, x: &Data, factor: f64) -> Result<()> {
        if factor == 1.0 {
            return Ok(());
        }
        let launch = self.gpu.launch("gpu_sums", "scale")?.array(x).double(factor).size(x.len());
        // SAFETY: the array has that many elements of its type.
        unsafe { launch.run(self.gpu.grid(x.len())) }
    }
}

fn piece(x: &Data, part: &Range<usize>) -> Data {
    x.within(part.start, part.len())
}

fn segments(x: &Data) -> impl Iterator<Item = Data> + '_ {
    (0..x.len()).step_by(SEGMENT).map(|from| x.within(from, SEGMENT.min(x.len() - from)))
}

/// Parts whose lengths differ by one at most.
fn even_cuts(n: usize, parts: usize) -> Vec<Range<usize>> {
    (0..parts).map(|i| n * i / parts..n * (i + 1) / parts).collect()
}
