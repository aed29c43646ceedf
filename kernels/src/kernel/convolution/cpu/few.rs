//! Correlations that make few channels, as the gradient of a coloured image does: points that lie side by side are in the
//! vectors, and one load of them serves all made channels.

use super::ChannelOrder;
use super::correlate::Correlate;
use super::geometry::{Bands, Geometry, PanelOrder, RowBand};
use super::pack::band;
use crate::array::Output;
use crate::array::scratch::{self, Scratch};
use crate::dtype::Real;
use crate::pool::tasks::SendPtr;
use crate::pool::{self, Pace};
use crate::simd::lanes::{Choose, Lanes, WithLanes, dispatch};
use std::cell::Cell;
use std::ops::Range;

/// Made channels at most.
const MADE: usize = 4;
/// Points of a row at least: fewer fill no vector.
const POINTS: usize = 8;
/// Bytes of a copied band, and channels of it at most.
const BAND: usize = 128 << 10;
const CHANNELS: usize = 64;
/// Multiplications that are worth a task.
const TASK: usize = 1 << 20;

/// Whether a correlation is one of these.
pub(super) fn suits(g: &Geometry) -> bool {
    let row = &g.axes[2];
    g.lanes <= MADE && g.channels > 0 && g.layout == ChannelOrder::ChannelFirst && row.step == 1 && row.points >= POINTS
}

/// One correlation.
pub(super) struct FewChannels<'a, T: 'static>(pub Correlate<'a, T>);

impl<T: Real> FewChannels<'_, T> {
    /// # Safety
    /// As [`Correlate::run`].
    pub unsafe fn run(self) {
        dispatch(self);
    }
}

/// Writes the bytes of the large buffers that a correlation works in.
pub(super) struct FewScratch<'a> {
    pub g: &'a Geometry,
    pub bytes: &'a Cell<usize>,
}

impl<T: Real> Choose<T> for FewScratch<'_> {
    fn with<L: Lanes<T>>(self) {
        let bands = bands::<T>(self.g, self.g.channels.min(CHANNELS));
        let tasks = pool::num_threads().min(bands.items(self.g));
        self.bytes.set(tasks * scratch::counted(work::<T, L>(&bands).iter().sum::<usize>() * size_of::<T>()));
    }
}

fn bands<T>(g: &Geometry, channels: usize) -> Bands {
    Bands::copied(g, channels, BAND / size_of::<T>(), 4096)
}

/// Vectors of points at a time.
fn vectors<T: Real, L: Lanes<T>>() -> usize {
    if L::ROWS > 8 { 4 } else { 2 }
}

/// Numbers of a band's copy, behind which vectors may read on, and of sums.
fn work<T: Real, L: Lanes<T>>(bands: &Bands) -> [usize; 2] {
    let wide = vectors::<T, L>() * L::N;
    [scratch::line::<T>(bands.len + wide), MADE * wide]
}

impl<T: Real> Choose<T> for FewChannels<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let (c, channels) = (&self.0, self.0.g.channels);
        for first in (0..channels.max(1)).step_by(CHANNELS) {
            ChannelPart::new(c, first, CHANNELS.min(channels - first)).run::<L>();
        }
    }
}

/// What some of the summed channels add.
struct ChannelPart<'a, T: Copy + 'static> {
    c: &'a Correlate<'a, T>,
    first: usize,
    channels: usize,
    bands: Bands,
    /// A row of made channels for each tap of a channel.
    weights: Scratch<T>,
    taps: Vec<isize>,
    output: Output,
}

impl<'a, T: Real> ChannelPart<'a, T> {
    fn new(c: &'a Correlate<'a, T>, first: usize, channels: usize) -> Self {
        let (g, bands) = (c.g, bands::<T>(c.g, channels));
        let table = g.weight_table(channels, PanelOrder::Row);
        let w = c.w.add(first * g.w.channel);
        // SAFETY: the caller's promise: taps, channels and made channels are inside the weights.
        let weight = |i: usize| unsafe { *w.add(table[i / g.lanes] + i % g.lanes * g.w.lane).0 };
        ChannelPart {
            weights: Scratch::each(table.len() * g.lanes, weight),
            taps: bands.tap_table(g, channels, PanelOrder::Row),
            output: if first == 0 { c.output } else { Output::Accumulate },
            c,
            first,
            channels,
            bands,
        }
    }

    fn run<L: Lanes<T>>(&self) {
        let items = self.bands.items(self.c.g);
        let each = (TASK / (self.c.g.work() / items.max(1)).max(1)).clamp(1, items);
        pool::run(items.div_ceil(each), &|t| self.task::<L>(t * each..items.min((t + 1) * each)));
    }

    fn task<L: Lanes<T>>(&self, items: Range<usize>) {
        let (g, [copy, sums]) = (self.c.g, work::<T, L>(&self.bands));
        scratch::with(copy + sums, |buffer: &mut [T]| {
            let (copy, sums) = buffer.split_at_mut(copy);
            let mut pace = Pace::new();
            for i in items {
                let item = self.bands.item(g, i);
                let x = self.c.x.0.wrapping_add(self.first * g.x.channel).cast_const();
                // SAFETY: the item and the channels are inside the source.
                unsafe { band(g, &self.bands, item, x, self.channels, copy) }
                for row in 0..item.rows {
                    self.row::<L>(item, row, copy, sums, &mut pace);
                }
            }
        });
    }

    fn row<L: Lanes<T>>(&self, item: RowBand, row: usize, copy: &[T], sums: &mut [T], pace: &mut Pace) {
        let (g, wide) = (self.c.g, vectors::<T, L>() * L::N);
        let x = copy[row * g.axes[1].step * self.bands.at[1]..].as_ptr();
        for from in (0..item.columns).step_by(wide) {
            pace.step(wide * self.taps.len());
            let job = PointSums { x: x.wrapping_add(from), taps: &self.taps, w: &self.weights, sums, made: g.lanes };
            // SAFETY: rows and taps are inside the copy, behind which there is room for the vectors; the machine has L.
            unsafe { L::enter(job) }
            self.store(item.target(g, row, from), wide.min(item.columns - from), sums, wide);
        }
    }

    /// Puts the sums of `count` points into the result, the first of them at `at`.
    fn store(&self, at: usize, count: usize, sums: &[T], wide: usize) {
        let g = self.c.g;
        let step = g.axes[2].stride * g.y.at[2];
        for lane in 0..g.lanes {
            let bias = if self.first == 0 { self.c.bias.map_or(T::ZERO, |b| b[lane]) } else { T::ZERO };
            let to: SendPtr<T> = self.c.y.add(at + lane * g.y.channel);
            for (i, &sum) in sums[lane * wide..][..count].iter().enumerate() {
                // SAFETY: every point of the item has its own place in y.
                let y = unsafe { &mut *to.add(i * step).0 };
                *y = if self.output == Output::Accumulate { *y + sum + bias } else { sum + bias };
            }
        }
    }
}

/// Sums of some vectors of points for each made channel.
struct PointSums<'a, T> {
    x: *const T,
    taps: &'a [isize],
    w: &'a [T],
    sums: &'a mut [T],
    made: usize,
}

impl<T: Real> WithLanes<T> for PointSums<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        macro_rules! choose {
            ($($made:literal)*) => {
                match self.made {
                    // SAFETY: the caller's promise.
                    $($made => unsafe {
                        if vectors::<T, L>() == 4 { self.tile::<L, $made, 4>() } else { self.tile::<L, $made, 2>() }
                    },)*
                    _ => unreachable!("few made channels"),
                }
            };
        }
        choose!(1 2 3 4)
    }
}

impl<T: Real> PointSums<'_, T> {
    // Indices, not iterators: the sums must stay arrays that the compiler keeps in registers.
    #[allow(clippy::needless_range_loop)]
    #[inline(always)]
    unsafe fn tile<L: Lanes<T>, const P: usize, const V: usize>(self) {
        // SAFETY: the caller's promise: vectors at the taps are inside the copy; there is a row of weights for each.
        unsafe {
            let mut acc = [[L::splat(T::ZERO); V]; P];
            let mut w = self.w.as_ptr();
            for &tap in self.taps {
                let x = self.x.offset(tap);
                let mut points = [L::splat(T::ZERO); V];
                for v in 0..V {
                    points[v] = L::load(x.add(v * L::N));
                }
                for p in 0..P {
                    let s = L::splat(*w.add(p));
                    for v in 0..V {
                        acc[p][v] = L::fma(s, points[v], acc[p][v]);
                    }
                }
                w = w.add(P);
            }
            for p in 0..P {
                for v in 0..V {
                    L::store(self.sums.as_mut_ptr().add((p * V + v) * L::N), acc[p][v]);
                }
            }
        }
    }
}
