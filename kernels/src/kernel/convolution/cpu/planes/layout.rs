//! How a plane is laid out in its padded copy, and what each tap reads there.

use super::loops::TOGETHER;
use crate::kernel::convolution::cpu::Conv;

/// Elements of the copy of a band, at most where a band of one row allows it.
const BAND: usize = 1 << 13;
/// The room behind a plane that vectors may reach into.
pub(super) const SLACK: usize = 16 * TOGETHER;

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
        let axis = |a: usize| PlaneTaps {
            taps: (0..c.kernel[a + 1])
                .map(|k| k * c.dilation[a + 1])
                .map(|at| Some((at % c.stride[a + 1], (at / c.stride[a + 1]) as isize)))
                .collect(),
        };
        let results = Results { start: [0; 2], points: [height, width], taps: taps([&axis(0), &axis(1)], [0; 2]) };
        let source = [c.input[1], c.input[2]];
        PlaneLayout::new(source, [height, width], [c.stride[1], c.stride[2]], low, [1; 2], vec![results])
    }

    /// That of the gradient of x, which reads the result's.
    pub(super) fn data(c: &Conv) -> PlaneLayout {
        let [_, height, width] = c.output();
        let target = [c.input[1], c.input[2]];
        let stride = [c.stride[1], c.stride[2]];
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
        PlaneLayout::new([height, width], target, [1; 2], low, stride, results)
    }

    fn new(
        source: [usize; 2],
        target: [usize; 2],
        step: [usize; 2],
        low: [isize; 2],
        stride: [usize; 2],
        results: Vec<Results>,
    ) -> PlaneLayout {
        let furthest = |a: usize| results.iter().flat_map(|r| &r.taps).map(|t| t.at[a]).max().unwrap_or(0);
        let more = [furthest(0), furthest(1)];
        PlaneLayout { source, target, step, low, more, stride, results }
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

    /// Elements of the copy of a band of one row.
    pub(super) fn least(&self) -> usize {
        self.phases().saturating_mul((1 + self.more[0]).saturating_mul(self.pitch()))
    }

    /// Where the copy has what a tap reads for the first place.
    pub(super) fn distance(&self, t: &Tap, plane: usize) -> usize {
        (t.phase[0] * self.step[1] + t.phase[1]) * plane + t.at[0] * self.pitch() + t.at[1]
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
