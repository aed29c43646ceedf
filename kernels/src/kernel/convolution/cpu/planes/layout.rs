//! How a plane is laid out in its padded copy, and what each tap reads there.

use super::loops::TOGETHER;
use crate::kernel::convolution::cpu::Conv;
use crate::kernel::convolution::cpu::depthwise::Pass;

/// Elements of the copy of a band, at most where a band of one row allows it.
const BAND: usize = 1 << 13;
/// The room behind a plane that vectors may reach into.
const SLACK: usize = 16 * TOGETHER;

/// What a tap reads: its number in the kernel, and where that begins in the copy.
#[derive(Clone, Copy)]
pub(super) struct Tap {
    pub(super) number: usize,
    phase: [usize; 2],
    at: [usize; 2],
}

/// Results at `start`, `start + stride`, ..
pub(super) struct Results {
    pub(super) start: [usize; 2],
    pub(super) points: [usize; 2],
    pub(super) taps: Vec<Tap>,
}

/// How a plane is read and written.
pub(super) struct PlaneLayout {
    pub(super) source: [usize; 2],
    pub(super) target: [usize; 2],
    /// Position p of remainder r in the copy is that of the source at `p * step + r + low`.
    pub(super) step: [usize; 2],
    pub(super) low: [isize; 2],
    /// Rows and columns that taps read behind those of the places.
    pub(super) more: [usize; 2],
    pub(super) stride: [usize; 2],
    /// Columns of the copy from one number of a row of the source to the next: 2 where there are zeros between.
    pub(super) spread: usize,
    /// Columns from one place to the next: 2 where all are made, and every second one is a place.
    pub(super) pick: usize,
    /// Columns of the copy, as `step`, that have a number of the source.
    pub(super) columns: Vec<(usize, usize)>,
    pub(super) results: Vec<Results>,
}

/// For each tap of an axis what it reads for the first place: remainder and position; none where places of other remainders read it.
struct PlaneTaps {
    taps: Vec<Option<(usize, isize)>>,
}

impl PlaneLayout {
    /// That of the convolution, which reads x.
    pub(super) fn forward(c: &Conv) -> PlaneLayout {
        let [_, height, width] = c.output();
        let low = [0, 1].map(|a| -(c.pad[a + 1] as isize));
        let (step, pick) = steps(c);
        let axis = |a: usize| PlaneTaps {
            taps: (0..c.kernel[a + 1])
                .map(|k| k * c.dilation[a + 1])
                .map(|at| Some((at % step[a], (at / step[a]) as isize)))
                .collect(),
        };
        let points = [height, (width - 1) * pick + 1];
        let results = Results { start: [0; 2], points, taps: taps([&axis(0), &axis(1)], [0; 2]) };
        let source = [c.input[1], c.input[2]];
        PlaneLayout::new(source, [height, width], step, low, [1; 2], [1, pick], vec![results])
    }

    /// That of the gradient of x, which reads the result's.
    pub(super) fn data(c: &Conv) -> PlaneLayout {
        let [_, height, width] = c.output();
        let target = [c.input[1], c.input[2]];
        let (stride, spread) = steps(c);
        // Where a place of remainder `start` reads for a tap.
        let position = |a: usize, start: usize, k: usize| {
            let from = (start + c.pad[a + 1]) as isize - (k * c.dilation[a + 1]) as isize;
            (from.rem_euclid(stride[a] as isize) == 0).then(|| from.div_euclid(stride[a] as isize))
        };
        let axis = |a: usize, start: usize| PlaneTaps {
            taps: (0..c.kernel[a + 1]).map(|k| position(a, start, k).map(|p| (0, p))).collect(),
        };
        let starts = |a: usize| 0..stride[a].min(target[a]);
        let all = |a: usize| starts(a).flat_map(move |s| axis(a, s).taps).flatten().map(|(_, p)| p).collect::<Vec<_>>();
        let low = [0, 1].map(|a| all(a).into_iter().min().unwrap_or(0));
        let mut results = Vec::new();
        for top in starts(0) {
            for left in starts(1) {
                let points = [(target[0] - top).div_ceil(stride[0]), (target[1] - left).div_ceil(stride[1])];
                let taps = taps([&axis(0, top), &axis(1, left)], low);
                results.push(Results { start: [top, left], points, taps });
            }
        }
        PlaneLayout::new([height, width], target, [1; 2], low, stride, [spread, 1], results)
    }

    fn new(
        source: [usize; 2],
        target: [usize; 2],
        step: [usize; 2],
        low: [isize; 2],
        stride: [usize; 2],
        [spread, pick]: [usize; 2],
        results: Vec<Results>,
    ) -> PlaneLayout {
        let furthest = |a: usize| results.iter().flat_map(|r| &r.taps).map(|t| t.at[a]).max().unwrap_or(0);
        let more = [furthest(0), furthest(1)];
        let mut l = PlaneLayout { source, target, step, low, more, stride, spread, pick, columns: Vec::new(), results };
        l.columns = (0..step[1]).map(|left| l.inside(left)).collect();
        l
    }

    /// Columns of a row of the copy, of remainder `left`, that lie inside the source.
    fn inside(&self, left: usize) -> (usize, usize) {
        let (step, low, pitch) = (self.step[1], left as isize + self.low[1], self.pitch());
        let width = (self.source[1].max(1) - 1) * self.spread + 1;
        let first = (-low).max(0).unsigned_abs().div_ceil(step).min(pitch);
        let end = (width as isize - low).max(0).unsigned_abs().div_ceil(step).clamp(first, pitch);
        (first, end)
    }

    /// Rows and columns of places, those of all remainders counted as one.
    pub(super) fn points(&self) -> [usize; 2] {
        [0, 1].map(|a| self.results.iter().map(|r| r.points[a]).max().unwrap_or(0))
    }

    /// Elements of a row of the copy.
    pub(super) fn pitch(&self) -> usize {
        self.points()[1] + self.more[1]
    }

    pub(super) fn phases(&self) -> usize {
        self.step[0] * self.step[1]
    }

    /// Rows of places of a band.
    pub(super) fn rows(&self) -> usize {
        let per_row = self.phases() * self.pitch();
        (BAND / per_row.max(1)).saturating_sub(self.more[0]).clamp(1, self.points()[0].max(1))
    }

    /// Elements of a plane of one remainder, for bands of so many rows.
    pub(super) fn plane(&self, rows: usize) -> usize {
        (rows + self.more[0]) * self.pitch() + self.more[1] + SLACK
    }

    /// Elements of the results of so many rows, those of one remainder.
    pub(super) fn sums(&self, rows: usize) -> usize {
        rows * self.pitch() + SLACK
    }

    /// Elements that a task works in; `products`: those of its sums of weights.
    pub(super) fn room(&self, pass: Pass, products: usize) -> usize {
        let (rows, plane) = (self.rows(), self.plane(self.rows()));
        match pass {
            Pass::Forward => plane * (self.phases() + 1),
            Pass::Data(_) => plane + self.sums(rows) * self.results.len(),
            Pass::Weight(_) => plane * self.phases() + self.sums(rows) + products,
        }
    }

    /// Elements of the copy of a band of one row.
    pub(super) fn least(&self) -> usize {
        self.phases().saturating_mul((1 + self.more[0]).saturating_mul(self.pitch()))
    }

    /// Where the copy has what a tap reads for the first place.
    pub(super) fn distance(&self, t: &Tap, plane: usize) -> usize {
        (t.phase[0] * self.step[1] + t.phase[1]) * plane + t.at[0] * self.pitch() + t.at[1]
    }
}

/// Distances of places as the copy has them, and of columns: a stride of 2 along rows is cheaper as zeros between numbers, or
/// results that are not used, than by its remainders.
fn steps(c: &Conv) -> ([usize; 2], usize) {
    match c.stride[2] {
        2 => ([c.stride[1], 1], 2),
        step => ([c.stride[1], step], 1),
    }
}

/// Taps of a plane by those of its axes; those that no place of this remainder reads are left out.
fn taps(axes: [&PlaneTaps; 2], low: [isize; 2]) -> Vec<Tap> {
    let columns = axes[1].taps.len();
    let pair = |n: usize| Some((axes[0].taps[n / columns]?, axes[1].taps[n % columns]?));
    let tap = |n: usize| {
        let ((top, row), (left, column)) = pair(n)?;
        Some(Tap { number: n, phase: [top, left], at: [(row - low[0]) as usize, (column - low[1]) as usize] })
    };
    (0..axes[0].taps.len() * columns).filter_map(tap).collect()
}
