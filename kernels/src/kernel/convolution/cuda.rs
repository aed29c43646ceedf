//! Convolutions on a GPU: by cuDNN, and where that is missing by kernels of our own.

mod direct;

use super::{ConvolutionSizes, Dims};
use crate::array::{Data, Output};
use crate::cuda::driver::LaunchGrid;
use crate::cuda::vendor::{self, ConvolutionPass, VendorCall};
use crate::cuda::{convert, program};
use crate::dtype::{DType, compute_dtype};
use crate::error::{Error, Result};
use crate::kernel::reduction::cuda::{DeviceReduction, reduce};
use crate::shape::Shape;
use smallvec::smallvec;

/// Strides of an array, in elements.
struct DeviceStrides {
    /// From one image, or one map of a weight, to the next.
    outer: usize,
    channel: usize,
    axes: Dims,
}

/// From what image to what image a kernel goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CorrelationDirection {
    /// From x to y.
    Forward,
    /// From the gradient of y to that of x.
    Back,
}

/// y = convolution of x, plus the bias of each map.
pub(super) fn forward(
    g: &ConvolutionSizes,
    x: &Data,
    w: &Data,
    bias: Option<&Data>,
    y: &Data,
    output: Output,
) -> Result<()> {
    convolve(g, CorrelationDirection::Forward, x, w, bias, y, output)
}

/// The gradient of x: the transposed convolution of that of y, plus a bias for each channel of x (a deconvolution's).
pub(super) fn data_gradient(
    g: &ConvolutionSizes,
    gy: &Data,
    w: &Data,
    bias: Option<&Data>,
    gx: &Data,
    output: Output,
) -> Result<()> {
    convolve(g, CorrelationDirection::Back, gy, w, bias, gx, output)
}

/// The gradient of the weight.
pub(super) fn weight_gradient(g: &ConvolutionSizes, gy: &Data, x: &Data, gw: &Data, output: Output) -> Result<()> {
    if gw.is_empty() {
        return Ok(());
    }
    g.check()?;
    // SAFETY: the arrays have the sizes of the convolution.
    if unsafe { by_library(g, ConvolutionPass::Weight, [x, gy, gw], output)? } {
        return Ok(());
    }
    let points = g.batch * g.output.iter().product::<usize>();
    let blocks = if g.is_direct() { direct::weight_blocks(g) } else { g.tiles() };
    let parts = (WANTED / blocks).clamp(1, points.div_ceil(PART).max(1));
    let part = points.div_ceil(parts).max(1);
    let run = |to: &Data, output: Output| match g.is_direct() {
        true => direct::weight_gradient(g, gy, x, [parts, part], to, output),
        false => tiled_weight_gradient(g, gy, x, [parts, part], to, output),
    };
    if parts == 1 {
        return run(gw, output);
    }
    let sums = Data::new_at(gw.place(), compute_dtype(gw.dtype()), parts * gw.len())?;
    run(&sums, Output::Write)?;
    let shape = Shape::from([parts, gw.len()]);
    reduce(DeviceReduction::Sum, &sums, &shape, &[true, false], gw, 1.0, output)
}

/// Blocks that a weight's gradient aims at: enough to fill any device.
const WANTED: usize = 512;
/// Points that are worth a block.
const PART: usize = 512;
/// Points (or columns) and channels of a block's tile, for many channels and for few.
const TILES: [(usize, usize); 2] = [(64, 64), (256, 16)];
const THREADS: u32 = 256;
/// Axes of the tiled kernels.
const AXES: usize = 3;
/// What sizes and their sums must stay below: kernels count them in 32 bits.
const MOST: usize = 1 << 30;

impl ConvolutionSizes {
    fn each_in(&self) -> usize {
        self.in_channels / self.group
    }

    fn each_out(&self) -> usize {
        self.out_channels / self.group
    }

    /// Whether it is done by the kernels without tiles.
    fn is_direct(&self) -> bool {
        self.kernel.len() > AXES || self.each_in().max(self.each_out()) <= 4
    }

    /// Strides of an image.
    fn image(&self, channels: usize, spatial: &[usize]) -> DeviceStrides {
        self.strides(channels, spatial)
    }

    /// Strides of the weight; its channels are those of x.
    fn weight(&self) -> DeviceStrides {
        self.strides(self.each_in(), &self.kernel)
    }

    fn strides(&self, channels: usize, spatial: &[usize]) -> DeviceStrides {
        let mut stride = if self.channel_last { channels } else { 1 };
        let mut axes: Dims = smallvec![0; spatial.len()];
        for (s, n) in axes.iter_mut().zip(spatial).rev() {
            *s = stride;
            stride *= n;
        }
        let points = spatial.iter().product::<usize>();
        DeviceStrides { outer: channels * points, channel: if self.channel_last { 1 } else { points }, axes }
    }

    /// The image that is read and the one that is made: channels and sizes.
    fn ends(&self, way: CorrelationDirection) -> [(usize, &[usize]); 2] {
        let (x, y) = ((self.in_channels, &self.input[..]), (self.out_channels, &self.output[..]));
        if way == CorrelationDirection::Forward { [x, y] } else { [y, x] }
    }

    /// Refuses what kernels cannot count in 32 bits.
    fn check(&self) -> Result<()> {
        let reach = |i: usize| {
            let places = self.input[i].max(self.output[i] * self.stride[i]);
            places + 2 * self.pad[i] + self.kernel[i] * self.dilation[i]
        };
        let weight = self.out_channels * self.weight().outer;
        if (0..self.kernel.len()).all(|i| reach(i) < MOST) && weight < MOST {
            return Ok(());
        }
        Err(Error::unsupported("a convolution over sizes of 2^30 and more has no kernel on a GPU"))
    }

    /// Tiles of the weight's gradient.
    fn tiles(&self) -> usize {
        let (wide, tall) = self.tile(self.each_out());
        self.weight().outer.div_ceil(wide) * self.each_out().div_ceil(tall) * self.group
    }

    fn tile(&self, channels: usize) -> (usize, usize) {
        TILES[(channels <= 32) as usize]
    }
}

/// Along one axis: groups of places of the result that have the same taps (see `Walk` in `cuda/convolution.cu`), and the
/// steps within them.
struct AxisTaps {
    walks: Vec<[i64; 6]>,
    to_step: usize,
    from_step: usize,
    tap_step: usize,
    shift_step: i64,
}

impl AxisTaps {
    fn forward(g: &ConvolutionSizes, i: usize) -> AxisTaps {
        let walk = [g.output[i] as i64, 0, -(g.pad[i] as i64), g.kernel[i] as i64, 0, 0];
        AxisTaps {
            walks: vec![walk],
            to_step: 1,
            from_step: g.stride[i],
            tap_step: 1,
            shift_step: g.dilation[i] as i64,
        }
    }

    /// Place q of x meets tap k at place (q + pad - k dilation) / stride of y, if that is a whole number. So the places with
    /// one remainder r of q + pad by the stride have the same taps, `tap_step` apart.
    fn back(g: &ConvolutionSizes, i: usize) -> AxisTaps {
        let (stride, pad, dilation) = (g.stride[i], g.pad[i], g.dilation[i]);
        let tap_step = stride / common(stride, dilation);
        let walk = |first: usize| {
            let r = (first + pad) % stride;
            let places = (g.input[i] - first).div_ceil(stride);
            let tap = (0..tap_step.min(g.kernel[i])).find(|k| k * dilation % stride == r);
            let taps = tap.map_or(0, |k| (g.kernel[i] - k).div_ceil(tap_step));
            let (tap, shift) = tap.map_or((0, 0), |k| (k, (k * dilation - r) as i64 / stride as i64));
            [places as i64, first as i64, ((first + pad) / stride) as i64, taps as i64, tap as i64, -shift]
        };
        AxisTaps {
            walks: (0..stride.min(g.input[i])).map(walk).collect(),
            to_step: stride,
            from_step: 1,
            tap_step,
            shift_step: -((dilation / common(stride, dilation)) as i64),
        }
    }

    /// An axis of one place.
    fn single() -> AxisTaps {
        AxisTaps { walks: vec![[1, 0, 0, 1, 0, 0]], to_step: 1, from_step: 1, tap_step: 1, shift_step: 1 }
    }
}

/// The greatest common divisor.
fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}

/// What a kernel is told: `Geometry` and `Walk`s as in `cuda/convolution.cu`.
struct GeometryTables {
    geometry: Vec<u8>,
    walks: Vec<u8>,
    /// Groups of points that have taps of their own, and the points in the largest.
    groups: usize,
    points: usize,
}

impl GeometryTables {
    fn new(g: &ConvolutionSizes, way: CorrelationDirection) -> GeometryTables {
        let [(from_channels, from), (to_channels, to)] = g.ends(way);
        let [f, t] = [g.image(from_channels, from), g.image(to_channels, to)];
        let mut words = header(g, way).to_vec();
        let (mut walks, mut groups, mut points) = (Vec::new(), 1, g.batch);
        let w = g.weight();
        let missing = AXES - g.kernel.len();
        for axis in 0..AXES {
            let (line, size, strides) = match axis.checked_sub(missing) {
                None => (AxisTaps::single(), 1, [0; 3]),
                Some(i) => {
                    let line = if way == CorrelationDirection::Forward {
                        AxisTaps::forward(g, i)
                    } else {
                        AxisTaps::back(g, i)
                    };
                    (line, from[i], [t.axes[i], f.axes[i], w.axes[i]])
                }
            };
            let most = line.walks.iter().map(|w| w[0]).max().unwrap_or(0);
            words.extend([line.walks.len() as i64, walks.len() as i64, most]);
            words.extend([line.to_step as i64, line.from_step as i64, line.tap_step as i64, line.shift_step]);
            words.push(size as i64);
            words.extend(strides.map(|s| s as i64));
            groups *= line.walks.len();
            points *= most as usize;
            walks.extend(line.walks);
        }
        let walks = walks.iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        GeometryTables { geometry: words.iter().flat_map(|v| v.to_le_bytes()).collect(), walks, groups, points }
    }
}

/// The words that the tables of all kernels begin with.
fn header(g: &ConvolutionSizes, way: CorrelationDirection) -> [i64; 12] {
    let [(from_channels, from), (to_channels, to)] = g.ends(way);
    let [f, t, w] = [g.image(from_channels, from), g.image(to_channels, to), g.weight()];
    let [weight_from, weight_to] =
        if way == CorrelationDirection::Forward { [w.channel, w.outer] } else { [w.outer, w.channel] };
    let [sizes, images, weights] = [
        [g.batch, g.group, from_channels / g.group, to_channels / g.group],
        [f.outer, t.outer, f.channel, t.channel],
        [g.each_out() * w.outer, weight_from, weight_to, g.channel_last as usize],
    ];
    std::array::from_fn(|i| [sizes, images, weights][i / 4][i % 4] as i64)
}

fn convolve(
    g: &ConvolutionSizes,
    way: CorrelationDirection,
    from: &Data,
    w: &Data,
    bias: Option<&Data>,
    to: &Data,
    output: Output,
) -> Result<()> {
    if to.is_empty() {
        return Ok(());
    }
    g.check()?;
    if from.is_empty() || w.is_empty() {
        return no_products(g, way, bias, to, output);
    }
    let (part, arrays) = match way {
        CorrelationDirection::Forward => (ConvolutionPass::Forward, [from, w, to]),
        CorrelationDirection::Back => (ConvolutionPass::Data, [from, w, to]),
    };
    // SAFETY: the arrays have the sizes of the convolution.
    if unsafe { by_library(g, part, arrays, output)? } {
        return match bias {
            Some(_) => no_products(g, way, bias, to, Output::Accumulate),
            None => Ok(()),
        };
    }
    if g.is_direct() {
        return direct::convolve(g, way, from, w, bias, to, output);
    }
    let (gpu, tables) = (to.gpu(), GeometryTables::new(g, way));
    let channels = g.ends(way)[1].0 / g.group;
    let (wide, tall) = g.tile(channels);
    let blocks = tables.points.div_ceil(wide) * tables.groups * channels.div_ceil(tall) * g.group;
    let name = name("convolve", wide, to.dtype());
    let launch = gpu.launch("convolution", &name)?.table(&tables.geometry)?.table(&tables.walks)?.array(from).array(w);
    let launch = launch.maybe_array(bias).array(to);
    // SAFETY: the arrays have the sizes of the convolution.
    unsafe { launch.flag(output == Output::Accumulate).run(grid(blocks, 1)?) }
}

/// Has cuDNN do it, if it is there and takes the sizes and types; the last array is the result.
///
/// # Safety
/// The arrays have the sizes of the convolution.
unsafe fn by_library(g: &ConvolutionSizes, part: ConvolutionPass, arrays: [&Data; 3], output: Output) -> Result<bool> {
    let dtype = arrays[2].dtype();
    let known = matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::BF16);
    let small = arrays.iter().all(|a| a.dtype() == dtype && (1..1 << 31).contains(&a.len()));
    if !known || !small || g.kernel.len() > AXES {
        return Ok(false);
    }
    let call = vendor::VendorConvolution {
        part,
        dtype,
        batch: g.batch,
        group: g.group,
        in_channels: g.in_channels,
        out_channels: g.out_channels,
        input: g.input.clone(),
        output: g.output.clone(),
        kernel: g.kernel.clone(),
        stride: g.stride.clone(),
        pad: g.pad.clone(),
        dilation: g.dilation.clone(),
        channel_last: g.channel_last,
        accumulate: output == Output::Accumulate,
        tf32: dtype == DType::F32 && vendor::tf32(),
        autotune: vendor::autotune(),
    };
    // SAFETY: the caller's promise.
    unsafe { arrays[2].gpu().by_library(VendorCall::Convolution(call), arrays) }
}

/// A result without any products: the bias, or zeros.
fn no_products(
    g: &ConvolutionSizes,
    way: CorrelationDirection,
    bias: Option<&Data>,
    to: &Data,
    output: Output,
) -> Result<()> {
    let Some(bias) = bias else {
        return if output == Output::Write { convert::fill(to, 0.0) } else { Ok(()) };
    };
    let (channels, sizes) = g.ends(way)[1];
    let points = sizes.iter().product();
    let shape = Shape::from(if g.channel_last { [g.batch * points, channels, 1] } else { [g.batch, channels, points] });
    program::broadcast(bias, &Shape::from([channels, 1]), to, &shape, 1.0, output)
}

fn tiled_weight_gradient(
    g: &ConvolutionSizes,
    gy: &Data,
    x: &Data,
    [parts, part]: [usize; 2],
    gw: &Data,
    output: Output,
) -> Result<()> {
    let (gpu, tables) = (gw.gpu(), GeometryTables::new(g, CorrelationDirection::Forward));
    let name = name("convolution_weight", g.tile(g.each_out()).0, gw.dtype());
    let launch = gpu.launch("convolution", &name)?.table(&tables.geometry)?.table(&tables.walks)?.array(x).array(gy);
    let launch = launch.size(part).array(gw).flag(output == Output::Accumulate);
    // SAFETY: the arrays have the sizes of the convolution, gw that of a weight for each part.
    unsafe { launch.run(grid(g.tiles(), parts)?) }
}

fn name(stem: &str, wide: usize, dtype: DType) -> String {
    let flat = if wide == TILES[1].0 { "flat_" } else { "" };
    format!("{stem}_{flat}{}", if dtype == DType::F64 { "f64" } else { "f32" })
}

fn grid(blocks: usize, parts: usize) -> Result<LaunchGrid> {
    match u32::try_from(blocks).ok().filter(|&n| n < 1 << 31) {
        Some(n) => Ok(LaunchGrid { blocks: [n, parts as u32, 1], threads: [THREADS, 1, 1] }),
        None => Err(Error::unsupported("a convolution of more than 2^31 tiles has no kernel on a GPU")),
    }
}
