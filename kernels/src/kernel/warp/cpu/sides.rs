//! With channels side by side: images are turned so that a place reads, or adds to, a vector of channels at each tap.

// Several arrays go by one index.
#![allow(clippy::needless_range_loop)]

use super::taps::{BLOCK, LookUp, WarpSlopes, WarpTaps};
use super::{PlaceGradients, each_block, with_taps};
use crate::array::scratch::{Scratch, counted};
use crate::array::{Data, Output};
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::warp::Warp;
use crate::pool;
use crate::pool::tasks::{self, SendPtr};
use crate::simd::SimdReal;
use crate::simd::lanes::{Choose, Lanes, TransposeBlock, WithLanes, dispatch, transpose_all, transpose_or_add};

/// Channels side by side.
const SIDE: usize = 16;
/// Elements of a channel that a task turns.
const TURN: usize = 4096;
/// Fewer channels than these are read one by one.
const FEW: usize = 4;

/// Whether there are channels enough, and places enough for it to pay to turn whole images.
pub(super) fn pay(w: &Warp) -> bool {
    !w.channel_last && w.channels >= FEW && w.places() * w.taps() >= w.image()
}

fn groups(w: &Warp) -> usize {
    w.channels.div_ceil(SIDE)
}

/// Elements of a group of channels of a turned image; one more, of zeros, stands for what is not in the image.
fn turned(w: &Warp) -> usize {
    (w.image() + 1) * SIDE
}

/// Bytes of turned images: for reading, and for adding.
pub(in crate::kernel::warp) fn counted_sides(w: &Warp, dtype: DType) -> [usize; 2] {
    if !pay(w) {
        return [0; 2];
    }
    let (each, count) = (turned(w).saturating_mul(dtype.size()), w.batch * groups(w));
    [each.saturating_mul(count), counted(each).saturating_mul(pool::num_threads().min(count))]
}

/// `n` elements of some channels, `stride` apart, side by side.
///
/// # Safety
/// Inside `enter` of L; the elements are there, and there is room for a whole vector of each.
#[inline(always)]
unsafe fn turn<T: SimdReal, L: Lanes<T>>(src: *const T, src_stride: usize, channels: usize, n: usize, dst: *mut T) {
    // SAFETY: the caller's promise.
    unsafe {
        if channels < SIDE {
            std::slice::from_raw_parts_mut(dst, n * SIDE).fill(T::ZERO);
        }
        transpose_all::<T, L>(TransposeBlock { src, src_stride, rows: channels, cols: n, dst, dst_stride: SIDE });
    }
}

/// Images turned, for reading.
struct TurnSides<'a, T> {
    w: &'a Warp,
    x: &'a [T],
    to: SendPtr<T>,
}

struct TurnPart<T> {
    src: SendPtr<T>,
    stride: usize,
    channels: usize,
    n: usize,
    dst: SendPtr<T>,
}

impl<T: SimdReal> Choose<T> for TurnSides<'_, T> {
    fn with<L: Lanes<T>>(self) {
        let (w, image, groups) = (self.w, self.w.image(), groups(self.w));
        let parts = (image + 1).div_ceil(TURN);
        tasks::share(w.batch * groups * parts, self.x.len(), |task| {
            let (row, first) = (task / parts, task % parts * TURN);
            let (b, c) = (row / groups, row % groups * SIDE);
            let (n, to) = (TURN.min(image - first.min(image)), self.to.add(row * turned(w)));
            let src = SendPtr::of(&self.x[(b * w.channels + c) * image + first.min(image)..]);
            let job = TurnPart { src, stride: image, channels: SIDE.min(w.channels - c), n, dst: to.add(first * SIDE) };
            // SAFETY: L is what the machine has; each task has elements of its own.
            unsafe {
                L::enter(job);
                if first + TURN > image {
                    to.slice(image * SIDE, SIDE).fill(T::ZERO);
                }
            }
        });
    }
}

impl<T: SimdReal> WithLanes<T> for TurnPart<T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        // SAFETY: the caller's promise.
        unsafe { turn::<T, L>(self.src.0, self.stride, self.channels, self.n, self.dst.0) }
    }
}

fn turned_images<T: SimdReal>(w: &Warp, x: &[T]) -> Result<Data> {
    let images = Data::new(T::DTYPE, w.batch * groups(w) * turned(w))?;
    dispatch(TurnSides { w, x, to: SendPtr(images.as_mut_slice::<T>().as_mut_ptr()) });
    Ok(images)
}

/// Places read, or added to: a whole pass.
struct SidesPass<'a, T> {
    w: &'a Warp,
    grid: &'a [T],
    mask: Option<&'a [T]>,
    /// The results, or their gradients.
    y: SendPtr<T>,
    what: Reading<T>,
}

/// What is done, with the turned images where they are read, or where the gradients go.
#[derive(Clone, Copy)]
enum Reading<T> {
    Gather(SendPtr<T>),
    Spread(SendPtr<T>, Output),
    Places(SendPtr<T>, PlaceGradients<T>),
}

/// A block of places, of some channels.
struct SidesBlock<'a, T> {
    w: &'a Warp,
    taps: &'a WarpTaps<T>,
    n: usize,
    /// The channels' turned image.
    rows: SendPtr<T>,
    channels: usize,
    /// The places of the first channel.
    y: SendPtr<T>,
    lines: &'a mut [[T; SIDE]; BLOCK],
    slopes: Option<(&'a WarpSlopes<T>, &'a mut [[T; BLOCK]; 3])>,
    is_read: bool,
}

impl<T: SimdReal> SidesPass<'_, T> {
    /// Of the places `first .. end` of image b, in the channels of a group, with the images that are read.
    fn block<'b>(
        &'b self,
        images: SendPtr<T>,
        taps: &'b WarpTaps<T>,
        [b, group, first, end]: [usize; 4],
        lines: &'b mut [[T; SIDE]; BLOCK],
    ) -> SidesBlock<'b, T> {
        let (w, c) = (self.w, group * SIDE);
        SidesBlock {
            w,
            taps,
            n: end - first,
            rows: images.add((b * groups(w) + group) * turned(w)),
            channels: SIDE.min(w.channels - c),
            y: self.y.add((b * w.channels + c) * w.places() + first),
            lines,
            slopes: None,
            is_read: false,
        }
    }

    fn gather<L: Lanes<T>>(&self, images: SendPtr<T>) {
        let (w, elements) = (self.w, self.w.batch * self.w.channels * self.w.places());
        let new = || (LookUp::new(), [[T::ZERO; SIDE]; BLOCK]);
        each_block(w, elements * w.taps(), new, |(look, lines), b, first, end| {
            look.up(w, self.grid, self.mask, [b, first, end], None);
            for group in 0..groups(w) {
                let block = self.block(images, &look.taps, [b, group, first, end], lines);
                // SAFETY: L is what the machine has; each block of places is one task's.
                unsafe { L::enter(SidesBlock { is_read: true, ..block }) };
            }
        });
    }

    fn places<L: Lanes<T>>(&self, images: SendPtr<T>, to: PlaceGradients<T>) {
        let (w, elements) = (self.w, self.w.batch * self.w.channels * self.w.places());
        let new = || (LookUp::new(), WarpSlopes::new(), [[T::ZERO; SIDE]; BLOCK]);
        each_block(w, elements * w.taps(), new, |(look, slopes, lines), b, first, end| {
            look.up(w, self.grid, None, [b, first, end], Some(slopes));
            let mut sums = [[T::ZERO; BLOCK]; 3];
            for group in 0..groups(w) {
                let block = self.block(images, &look.taps, [b, group, first, end], lines);
                // SAFETY: as above.
                unsafe { L::enter(SidesBlock { slopes: Some((slopes, &mut sums)), ..block }) };
            }
            for (p, a) in (first..end).flat_map(|p| (3 - w.dims..3).map(move |a| (p, a))) {
                // SAFETY: as above.
                unsafe { to.put(w, a, b, p, sums[a][p - first]) };
            }
        });
    }

    fn spread<L: Lanes<T>>(&self, gx: SendPtr<T>, output: Output) {
        let (w, groups, places, image) = (self.w, groups(self.w), self.w.places(), self.w.image());
        let elements = w.batch * w.channels * places.max(image);
        tasks::share(w.batch * groups, elements * w.taps(), |task| {
            let (b, group) = (task / groups, task % groups);
            let (mut sums, mut look) = (Scratch::filled(turned(w), T::ZERO), LookUp::new());
            let mut lines = [[T::ZERO; SIDE]; BLOCK];
            for first in (0..places).step_by(BLOCK) {
                let end = places.min(first + BLOCK);
                look.up(w, self.grid, self.mask, [b, first, end], None);
                let rows = SendPtr(sums.as_mut_ptr());
                let block = self.block(rows, &look.taps, [b, group, first, end], &mut lines);
                // SAFETY: L is what the machine has; the sums are this task's own.
                unsafe { L::enter(SidesBlock { rows, ..block }) };
            }
            let (c, src) = (group * SIDE, SendPtr::of(&sums));
            let dst = gx.add((b * w.channels + c) * image);
            let back =
                TurnBack { src, n: image, channels: SIDE.min(w.channels - c), dst, add: output == Output::Accumulate };
            // SAFETY: L is what the machine has; the channels are this task's own.
            unsafe { L::enter(back) };
        });
    }
}

/// Sums turned back, into channels of `n` elements.
struct TurnBack<T> {
    src: SendPtr<T>,
    n: usize,
    channels: usize,
    dst: SendPtr<T>,
    add: bool,
}

impl<T: SimdReal> WithLanes<T> for TurnBack<T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(self) {
        let TurnBack { src, n, channels, dst, add } = self;
        let all = TransposeBlock {
            src: src.0.cast_const(),
            src_stride: SIDE,
            rows: n,
            cols: channels,
            dst: dst.0,
            dst_stride: n,
        };
        // SAFETY: the caller's promise.
        unsafe { transpose_or_add::<T, L>(all, add) }
    }
}

impl<T: SimdReal> Choose<T> for SidesPass<'_, T> {
    fn with<L: Lanes<T>>(self) {
        match self.what {
            Reading::Gather(images) => self.gather::<L>(images),
            Reading::Spread(gx, output) => self.spread::<L>(gx, output),
            Reading::Places(images, to) => self.places::<L>(images, to),
        }
    }
}

impl<T: SimdReal> WithLanes<T> for SidesBlock<'_, T> {
    #[inline(always)]
    unsafe fn call<L: Lanes<T>>(mut self) {
        let (w, n, places) = (self.w, self.n, self.w.places());
        let lines = self.lines.as_mut_ptr().cast::<T>();
        // SAFETY: the caller's promise; there is a line for each place of a block.
        unsafe {
            if self.is_read {
                with_taps!(w, read(&mut self));
                let all = TransposeBlock {
                    src: lines.cast_const(),
                    src_stride: SIDE,
                    rows: n,
                    cols: self.channels,
                    dst: self.y.0,
                    dst_stride: places,
                };
                return transpose_or_add::<T, L>(all, false);
            }
            turn::<T, L>(self.y.0, places, self.channels, n, lines);
            match (self.slopes.is_some(), w.dims) {
                (false, _) => with_taps!(w, add(&mut self)),
                (_, 2) => slopes::<T, 2, 4>(&mut self),
                _ => slopes::<T, 3, 8>(&mut self),
            }
        }
    }
}

impl<T: SimdReal> SidesBlock<'_, T> {
    /// The channels of what tap t of place p reads.
    ///
    /// # Safety
    /// They are there, and no other thread has them.
    #[inline(always)]
    unsafe fn row<'a>(&self, t: usize, p: usize) -> &'a mut [T; SIDE] {
        let at = self.taps.at[t][p].min(self.w.image());
        // SAFETY: what is not in the image is the element behind it; the caller's promise.
        unsafe { &mut *self.rows.add(at * SIDE).0.cast() }
    }
}

/// # Safety
/// The image is there.
#[inline(always)]
unsafe fn read<T: SimdReal, const K: usize>(b: &mut SidesBlock<T>) {
    for p in 0..b.n {
        let mut sum = [T::ZERO; SIDE];
        for t in 0..K {
            // SAFETY: the caller's promise.
            let (row, weight) = (unsafe { b.row(t, p) }, b.taps.weight[t][p]);
            for i in 0..SIDE {
                sum[i] += row[i] * weight;
            }
        }
        b.lines[p] = sum;
    }
}

/// # Safety
/// The image is there, and this thread's own.
#[inline(always)]
unsafe fn add<T: SimdReal, const K: usize>(b: &mut SidesBlock<T>) {
    for p in 0..b.n {
        let line = b.lines[p];
        for t in 0..K {
            // SAFETY: the caller's promise.
            let (row, weight) = (unsafe { b.row(t, p) }, b.taps.weight[t][p]);
            for i in 0..SIDE {
                row[i] += line[i] * weight;
            }
        }
    }
}

/// Adds each place's gradients by the axes.
///
/// # Safety
/// The image is there.
#[inline(always)]
unsafe fn slopes<T: SimdReal, const D: usize, const K: usize>(b: &mut SidesBlock<T>) {
    let Some((slopes, sums)) = b.slopes.take() else { return };
    for p in 0..b.n {
        let (line, mut by) = (b.lines[p], [[T::ZERO; SIDE]; D]);
        for t in 0..K {
            // SAFETY: the caller's promise.
            let row = unsafe { b.row(t, p) };
            for d in 0..D {
                let slope = slopes.0[3 - D + d][t][p];
                for i in 0..SIDE {
                    by[d][i] += row[i] * slope;
                }
            }
        }
        for d in 0..D {
            sums[3 - D + d][p] += product(&line, &by[d]);
        }
    }
}

/// The sum of the products, pair by pair.
#[inline(always)]
fn product<T: SimdReal>(a: &[T; SIDE], b: &[T; SIDE]) -> T {
    let mut sum = [T::ZERO; SIDE];
    for i in 0..SIDE {
        sum[i] = a[i] * b[i];
    }
    let mut n = SIDE / 2;
    while n > 0 {
        for i in 0..n {
            sum[i] += sum[i + n];
        }
        n /= 2;
    }
    sum[0]
}

pub(super) fn gather<T: SimdReal>(w: &Warp, x: &[T], grid: &[T], mask: Option<&[T]>, y: &mut [T]) -> Result<()> {
    let images = turned_images(w, x)?;
    let what = Reading::Gather(SendPtr::of(images.as_slice()));
    dispatch(SidesPass { w, grid, mask, y: SendPtr(y.as_mut_ptr()), what });
    Ok(())
}

pub(super) fn spread<T: SimdReal>(w: &Warp, gy: &[T], grid: &[T], mask: Option<&[T]>, gx: &mut [T], output: Output) {
    let what = Reading::Spread(SendPtr(gx.as_mut_ptr()), output);
    dispatch(SidesPass { w, grid, mask, y: SendPtr::of(gy), what });
}

pub(super) fn by_places<T: SimdReal>(w: &Warp, [x, gy, grid]: [&[T]; 3], to: PlaceGradients<T>) -> Result<()> {
    let images = turned_images(w, x)?;
    let what = Reading::Places(SendPtr::of(images.as_slice()), to);
    dispatch(SidesPass { w, grid, mask: None, y: SendPtr::of(gy), what });
    Ok(())
}
