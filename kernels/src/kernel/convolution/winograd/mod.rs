//! Winograd's F(4x4, 3x3): convolutions of 3x3 kernels with stride 1 by a quarter of the multiplications; and F(4, 3) along rows, for
//! kernels of three taps in a row, by half of them.
//!
//! Blocks of tiles go through three steps that stay in the cache: the inputs' transform (all channels), a product for each point and
//! each panel of output channels, the outputs' transform. An output's sum is over the channels in their order, whatever
//! block it is in: threads change no bit. What is not finite makes its image be done again directly.

mod block;
mod choice;
mod few;
mod rows;
mod strip;
mod transform;
mod weight;

#[cfg(feature = "emulate")]
mod tests;

use super::cpu::{ChannelOrder, Conv};
use crate::array::{Data, FormName, scratch};
use crate::finish::Finisher;
use crate::pool;
use crate::pool::tasks::SendPtr;
use crate::simd::lanes::{Choose, Lanes, TransposeBlock, WithLanes, dispatch, transpose_all};
use crate::tuned;
pub(crate) use choice::{data, data_suits, forward, weight};
pub use choice::{exact, exact_here, set_exact};
use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use transform::{OUT, SIDE, TAPS, TileForm};
pub(crate) use weight::WinogradWeight;

/// Bytes of a block's transformed inputs, at most where that is enough for some rows of tiles.
const INPUTS: usize = 512 << 10;
/// Tiles of a block, at least.
const TILES: usize = 28;

/// A correlation of images with kernels of 3x3 taps or a row of three, stride 1: the sizes of one group.
#[derive(Clone, Copy)]
pub(crate) struct WinogradSizes {
    form: TileForm,
    batch: usize,
    channels: usize,
    lanes: usize,
    input: [usize; 2],
    output: [usize; 2],
    /// Rows and columns of zeros before the image.
    pad: [usize; 2],
    x: Strides,
    y: Strides,
    /// Distances of the made channels, the summed ones and the taps of the kernel.
    w: [usize; 3],
    /// The taps are read backwards.
    turned: bool,
}

/// Distances of images, channels and points.
#[derive(Clone, Copy)]
struct Strides {
    image: usize,
    channel: usize,
    point: usize,
}

impl Strides {
    fn new(order: ChannelOrder, channels: usize, [h, w]: [usize; 2]) -> Strides {
        let (channel, point) = match order {
            ChannelOrder::ChannelFirst => (h * w, 1),
            ChannelOrder::ChannelLast => (1, channels),
        };
        Strides { image: channels * h * w, channel, point }
    }
}

/// What is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WinogradPass {
    Forward,
    Data,
    Weight,
}

/// The form of tiles, if a convolution is one that this can do, and does faster.
fn form(c: &Conv, pass: WinogradPass) -> Option<TileForm> {
    let out = c.output();
    let form = match c.kernel {
        [1, 3, 3] => TileForm::Square,
        [1, 1, 3] => TileForm::Row,
        _ => return None,
    };
    let plain = c.stride == [1; 3] && c.dilation == [1; 3] && c.input[0] == 1 && c.pad[0] == 0;
    let channels = (c.in_channels / c.group).min(c.out_channels / c.group);
    let suits = plain
        && c.pad[1] < form.rows(TAPS)
        && c.pad[2] < TAPS
        && pays(form, pass, channels, c.batch, [out[1], out[2]])
        && pays(form, pass, channels, c.batch, [c.input[1], c.input[2]]);
    suits.then_some(form)
}

/// Whether it was measured to take at most nine tenths of the time: it rounds more, which less would not be worth. Tiles are computed
/// whole, however many of their points are in the image.
fn pays(form: TileForm, pass: WinogradPass, channels: usize, batch: usize, [h, w]: [usize; 2]) -> bool {
    let tiles = h.div_ceil(form.rows(OUT)) * w.div_ceil(OUT);
    let (tables, measured) = match form {
        TileForm::Square => (&tuned::get().winograd, tuned::WINOGRAD_SIDES),
        TileForm::Row => (&tuned::get().winograd_rows, tuned::WINOGRAD_POINTS),
    };
    let all_tiles = measured.map(|side| form.area(side.div_ceil(OUT)));
    let sizes = [&tuned::WINOGRAD_CHANNELS, &all_tiles];
    let percent = tuned::percent(&tables[pass as usize], sizes, [channels, batch * tiles]);
    percent * tiles * form.area(OUT) < 90 * h * w
}

impl WinogradSizes {
    /// Of the convolution itself, if it is to be done so.
    pub(crate) fn forward(c: &Conv) -> Option<WinogradSizes> {
        WinogradSizes::of(c, WinogradPass::Forward)
    }

    /// The same for the gradient of the weight.
    pub(crate) fn weight(c: &Conv) -> Option<WinogradSizes> {
        WinogradSizes::of(c, WinogradPass::Weight)
    }

    fn of(c: &Conv, pass: WinogradPass) -> Option<WinogradSizes> {
        form(c, pass).map(|form| {
            let (out, each) = (c.output(), c.in_channels / c.group);
            let (input, output) = ([c.input[1], c.input[2]], [out[1], out[2]]);
            WinogradSizes {
                form,
                batch: c.batch,
                channels: each,
                lanes: c.out_channels / c.group,
                input,
                output,
                pad: [c.pad[1], c.pad[2]],
                x: Strides::new(c.layout, c.in_channels, input),
                y: Strides::new(c.layout, c.out_channels, output),
                w: weight_strides(c.layout, each, form.area(TAPS)),
                turned: false,
            }
        })
    }

    /// Of the gradient of x: the convolution of gy with the kernels turned, between the channels swapped.
    pub(crate) fn data(c: &Conv) -> Option<WinogradSizes> {
        WinogradSizes::of(c, WinogradPass::Data).map(|f| WinogradSizes {
            channels: f.lanes,
            lanes: f.channels,
            input: f.output,
            output: f.input,
            pad: [f.form.rows(TAPS) - 1 - f.pad[0], TAPS - 1 - f.pad[1]],
            x: f.y,
            y: f.x,
            w: [f.w[1], f.w[0], f.w[2]],
            turned: true,
            ..f
        })
    }

    /// Elements between the first channels of groups: of the source, the weight, the result.
    pub(crate) fn group_steps(&self) -> [usize; 3] {
        let w = if self.turned { self.channels * self.w[1] } else { self.lanes * self.w[0] };
        [self.channels * self.x.channel, w, self.lanes * self.y.channel]
    }

    /// Points of a transformed tile.
    fn points(&self) -> usize {
        self.form.area(SIDE)
    }

    /// Taps of a kernel.
    fn taps(&self) -> usize {
        self.form.area(TAPS)
    }

    /// Tiles down, across, and in all.
    fn tiles(&self) -> [usize; 3] {
        let (h, w) = (self.output[0].div_ceil(self.form.rows(OUT)), self.output[1].div_ceil(OUT));
        [h, w, self.batch * h * w]
    }

    /// Bytes of the large buffers that a run works in.
    pub(crate) fn scratch(&self) -> usize {
        let bytes = Cell::new(0);
        dispatch::<f32, _>(WinogradScratch { s: self, bytes: &bytes, weight: false });
        bytes.get()
    }

    /// The same for the gradient of the weight.
    pub(crate) fn weight_scratch(&self) -> usize {
        let bytes = Cell::new(0);
        dispatch::<f32, _>(WinogradScratch { s: self, bytes: &bytes, weight: true });
        bytes.get()
    }
}

fn weight_strides(order: ChannelOrder, each: usize, taps: usize) -> [usize; 3] {
    match order {
        ChannelOrder::ChannelFirst => [each * taps, taps, 1],
        ChannelOrder::ChannelLast => [each * taps, 1, each],
    }
}

/// Writes the bytes of the large buffers that a run works in.
struct WinogradScratch<'a> {
    s: &'a WinogradSizes,
    bytes: &'a Cell<usize>,
    /// Of the gradient of the weight.
    weight: bool,
}

impl Choose<f32> for WinogradScratch<'_> {
    fn with<L: Lanes<f32>>(self) {
        let s = self.s;
        self.bytes.set(if self.weight { weight::bytes::<L>(s) } else { block::bytes::<L>(s) });
    }
}

/// Panels of two vectors of made channels, and the numbers of the transformed weights of one.
fn panels<L: Lanes<f32>>(s: &WinogradSizes) -> usize {
    s.lanes.div_ceil(2 * L::N)
}

fn panel_len<L: Lanes<f32>>(s: &WinogradSizes) -> usize {
    s.points() * weight_step::<L>(s.channels)
}

/// Numbers from one point of a panel of weights to the next: a vector more than they are, so that they do not share cache sets.
fn weight_step<L: Lanes<f32>>(channels: usize) -> usize {
    channels * 2 * L::N + L::N
}

/// One group's correlation and its operands.
pub(crate) struct Winograd<'a> {
    pub s: WinogradSizes,
    pub x: SendPtr<f32>,
    pub w: SendPtr<f32>,
    pub bias: Option<&'a [f32]>,
    pub y: SendPtr<f32>,
    /// One for each image: set where it has to be done directly.
    pub bad: &'a [AtomicBool],
    /// The array of all weights, if it may keep another form of them; and that, as [`KernelLanes`] makes it.
    pub weights: Option<&'a Data>,
    pub kept: Option<&'a [f32]>,
    /// What is to be done to the result.
    pub finish: Option<&'a Finisher<'a, f32>>,
}

impl Winograd<'_> {
    /// # Safety
    /// The pointers are to a group's first channel of tensors that have the sizes.
    pub(crate) unsafe fn run(self) {
        dispatch(self);
    }

    fn mark(&self, image: usize) {
        self.bad[image].store(true, Relaxed);
    }
}

impl Choose<f32> for Winograd<'_> {
    fn with<L: Lanes<f32>>(self) {
        let panels = panels::<L>(&self.s);
        let kept = self.weights.and_then(|w| {
            let sizes = [&[self.s.lanes, self.s.channels][..], &self.s.w].concat();
            let name = FormName { kernel: "winograd", sizes };
            w.form(name, panels * taps_len::<L>(&self.s), |to: &mut [f32]| {
                let to = SendPtr(to.as_mut_ptr());
                pool::run(panels, &|p| {
                    let (c, to) = (&self, to.add(p * taps_len::<L>(&self.s)));
                    // SAFETY: each task has a panel of its own; the machine has what `dispatch` chose.
                    unsafe { L::enter(KernelLanes { c, p, to }) }
                })
            })
        });
        block::run::<L>(&Winograd { kept: kept.as_deref(), ..self });
    }
}

/// The transform of two vectors' worth of kernels, of some channels: `to[point][channel][lane]`.
struct TransformedWeights<'a> {
    c: &'a Winograd<'a>,
    p: usize,
    channels: Range<usize>,
    to: SendPtr<f32>,
}

impl WithLanes<f32> for TransformedWeights<'_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(self) {
        let s = &self.c.s;
        let step = weight_step::<L>(self.channels.len());
        let mut taps = [0.0f32; TAPS * TAPS * MOST];
        for (i, ch) in self.channels.enumerate() {
            for half in 0..2 {
                // SAFETY: the group's weights.
                let from = unsafe { self.c.half_taps::<L>(self.p, half, ch, &mut taps) };
                // SAFETY: the panel has all points of `step` numbers.
                unsafe { transform::weight::<L>(s.form, from, s.turned, self.to.add((i * 2 + half) * L::N).0, step) }
            }
        }
    }
}

/// The kernels of two vectors' worth of made channels, in the order that their transform reads: `to[channel][half][tap][lane]`.
struct KernelLanes<'a> {
    c: &'a Winograd<'a>,
    p: usize,
    to: SendPtr<f32>,
}

impl WithLanes<f32> for KernelLanes<'_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(self) {
        for ch in 0..self.c.s.channels {
            for half in 0..2 {
                let to = self.to.add((ch * 2 + half) * self.c.s.taps() * L::N);
                // SAFETY: the group's weights; the panel has this many numbers.
                unsafe { L::enter(HalfTaps { c: self.c, p: self.p, half, ch, to }) }
            }
        }
    }
}

/// Numbers of what [`KernelLanes`] makes of one panel.
fn taps_len<L: Lanes<f32>>(s: &WinogradSizes) -> usize {
    s.channels * 2 * s.taps() * L::N
}

impl Winograd<'_> {
    /// The kernels of channel `ch` for a half of panel `p`: those that are kept, or made in `room`.
    #[inline(always)]
    unsafe fn half_taps<L: Lanes<f32>>(
        &self,
        p: usize,
        half: usize,
        ch: usize,
        room: &mut [f32; TAPS * TAPS * MOST],
    ) -> *const f32 {
        if let Some(kept) = self.kept {
            return kept[p * taps_len::<L>(&self.s) + (ch * 2 + half) * self.s.taps() * L::N..].as_ptr();
        }
        // SAFETY: the caller's promise.
        unsafe { L::enter(HalfTaps { c: self, p, half, ch, to: SendPtr(room.as_mut_ptr()) }) }
        room.as_ptr()
    }
}

/// The kernels of channel `ch` for a half of panel `p`: a vector for each tap, zeros where there are no made channels. (A job of its own,
/// so that its code is there once.)
struct HalfTaps<'a> {
    c: &'a Winograd<'a>,
    p: usize,
    half: usize,
    ch: usize,
    to: SendPtr<f32>,
}

impl WithLanes<f32> for HalfTaps<'_> {
    #[inline(always)]
    unsafe fn call<L: Lanes<f32>>(self) {
        let (c, dst, cols, first) = (self.c, self.to.0, self.c.s.taps(), (2 * self.p + self.half) * L::N);
        let rows = c.s.lanes.saturating_sub(first).min(L::N);
        if rows < L::N {
            // SAFETY: the caller's promise.
            unsafe { dst.write_bytes(0, cols * L::N) }
        }
        let w = &c.s.w;
        let src = c.w.0.cast_const().wrapping_add(first * w[0] + self.ch * w[1]);
        // SAFETY: the weights are the caller's, a vector has MOST numbers at most.
        unsafe {
            if w[2] == 1 {
                let (src_stride, dst_stride) = (w[0], L::N);
                return transpose_all::<f32, L>(TransposeBlock { src, src_stride, rows, cols, dst, dst_stride });
            }
            for tap in 0..cols {
                for r in 0..rows {
                    *dst.add(tap * L::N + r) = *src.add(r * w[0] + tap * w[2]);
                }
            }
        }
    }
}

/// Numbers of the longest vector.
const MOST: usize = 16;
