//! Fewest tiles: a transformed weight is used a few times only, so it is made in registers and multiplied at once.

use super::block::TileBlock;
use super::transform::{self, SIDE, TAPS, TileForm};
use super::{MOST, WinogradSizes};
use crate::simd::lanes::{Lanes, WithLanes};
use std::ops::Range;

/// Tiles at most.
const MOST_TILES: usize = 8;
/// Channels whose weights are in registers together: as many as AVX-512 has.
const TOGETHER: usize = 4;
/// Tiles whose products are written out.
const TILES: usize = 4;
/// Channels that are summed before their sum goes to the total: longer ones round more.
const SUMMED: usize = 64;
/// Vectors of a kernel whose columns are transformed.
const KERNEL: usize = SIDE * TAPS;
/// Points.
const AREA: usize = SIDE * SIDE;

/// Whether the sums of panels are made here.
pub(super) fn pays<L: Lanes<f32>>(s: &WinogradSizes) -> bool {
    L::N == 16 && s.form == TileForm::Square && s.tiles()[2] <= MOST_TILES
}

/// Numbers that [`FewTiles`] works in: kernels of a vector's worth of channels, and sums.
pub(super) fn work<L: Lanes<f32>>(s: &WinogradSizes) -> usize {
    (L::N * KERNEL + AREA * s.tiles()[2] * 2) * L::N
}

/// The sums of panel `p`.
pub(super) struct FewTiles<'a, 'b> {
    pub block: &'a mut TileBlock<'b>,
    pub p: usize,
    pub work: &'a mut [f32],
}

impl WithLanes<f32> for FewTiles<'_, '_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(self) {
        let FewTiles { block, p, work } = self;
        let channels = block.c.s.channels;
        let (kernels, sums) = work.split_at_mut(L::N * KERNEL * L::N);
        block.m.fill(0.0);
        for from in (0..channels).step_by(SUMMED) {
            let end = channels.min(from + SUMMED);
            sums.fill(0.0);
            for first in (from..end).step_by(L::N) {
                for half in 0..2 {
                    // SAFETY: the group's weights, and the panel's inputs and sums.
                    unsafe { products::<L>(block, [p, half], first..end.min(first + L::N), kernels, sums) }
                }
            }
            block.m.iter_mut().zip(&*sums).for_each(|(total, &sum)| *total += sum);
        }
    }
}

/// Adds to `sums` the products of a vector's worth of channels and half a panel.
#[inline(always)]
unsafe fn products<L: Lanes<f32>>(
    block: &TileBlock,
    [p, half]: [usize; 2],
    channels: Range<usize>,
    kernels: &mut [f32],
    sums: &mut [f32],
) {
    let (c, tiles, n) = (block.c, block.lane.len(), channels.len());
    let v = block.v.add(channels.start * AREA * tiles);
    // What is no channel is zeros, here and in the inputs.
    kernels[n * KERNEL * L::N..].fill(0.0);
    let mut taps = [0.0f32; TAPS * TAPS * MOST];
    // SAFETY: the caller's promise.
    unsafe {
        for (kernel, channel) in kernels.chunks_exact_mut(KERNEL * L::N).zip(channels) {
            let from = c.half_taps::<L>(p, half, channel, &mut taps);
            transform::weight_columns::<L>(from, c.s.turned, kernel.as_mut_ptr());
        }
        for row in 0..SIDE {
            let v = v.add(row * SIDE * tiles * L::N).0;
            let to = sums[(row * SIDE * tiles * 2 + half) * L::N..].as_mut_ptr();
            for k in (0..n).step_by(TOGETHER) {
                let kernels = kernels[(k * KERNEL + row * TAPS) * L::N..].as_ptr();
                row_products::<L>(kernels, v.add(k), to, tiles);
            }
        }
    }
}

/// Adds the products of a row of points and [`TOGETHER`] channels.
#[inline(always)]
unsafe fn row_products<L: Lanes<f32>>(kernels: *const f32, v: *const f32, sums: *mut f32, tiles: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut w = [[L::splat(0.0); SIDE]; TOGETHER];
        for (k, w) in w.iter_mut().enumerate() {
            *w = transform::weight_row::<L>(kernels.add(k * KERNEL * L::N));
        }
        // Written out, so that the weights stay in registers.
        macro_rules! tile {
            ($j:literal, $x:expr, $to:expr) => {
                let (x, to) = ($x, $to);
                let mut sum = L::load(to);
                for k in 0..TOGETHER {
                    sum = L::fma(L::splat(*x.add(k)), w[k][$j], sum);
                }
                L::store(to, sum);
            };
        }
        macro_rules! points {
            ($($j:literal)*) => {$({
                let (mut x, mut to) = (v.add($j * tiles * L::N), sums.add($j * tiles * 2 * L::N));
                for _ in 0..tiles / TILES {
                    tile!($j, x, to);
                    tile!($j, x.add(L::N), to.add(2 * L::N));
                    tile!($j, x.add(2 * L::N), to.add(4 * L::N));
                    tile!($j, x.add(3 * L::N), to.add(6 * L::N));
                    (x, to) = (x.add(TILES * L::N), to.add(2 * TILES * L::N));
                }
                for _ in 0..tiles % TILES {
                    tile!($j, x, to);
                    (x, to) = (x.add(L::N), to.add(2 * L::N));
                }
            })*};
        }
        points!(0 1 2 3 4 5);
    }
}
