//! Convolutions on a GPU without tiles: those of few channels a group, and those over more than three axes.

use super::{ConvolutionSizes, CorrelationDirection, grid, header};
use crate::array::{Data, Output};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Axes that the tables have room for, and those of the kernel for most.
const AXES: usize = 8;
const FEW: usize = 3;
/// Maps that a block shares where they are neighbours in memory.
const WIDTH: usize = 32;

/// `Direct` as in `cuda/convolution_direct.cu`.
fn table(g: &ConvolutionSizes, way: CorrelationDirection) -> Result<Vec<u8>> {
    if g.kernel.len() > AXES {
        let what = format!("a convolution over more than {AXES} axes has no kernel on a GPU");
        return Err(Error::unsupported(what));
    }
    let [(from_channels, from), (to_channels, to)] = g.ends(way);
    let [f, t, w] = [g.image(from_channels, from), g.image(to_channels, to), g.weight()];
    let count = |d: &[usize]| d.iter().product::<usize>() as i64;
    let mut words = header(g, way).to_vec();
    words.extend([(way == CorrelationDirection::Back) as i64, count(to), count(&g.kernel)]);
    let room = if g.kernel.len() <= FEW { FEW } else { AXES };
    (g.kernel.len()..room).for_each(|_| words.extend([1, 1, 1, 1, 0, 1, 0, 0, 0]));
    for i in 0..g.kernel.len() {
        let sizes = [from[i], to[i], g.kernel[i], g.stride[i], g.pad[i], g.dilation[i]];
        words.extend(sizes.into_iter().chain([f.axes[i], t.axes[i], w.axes[i]]).map(|v| v as i64));
    }
    Ok(words.iter().flat_map(|v| v.to_le_bytes()).collect())
}

fn name(stem: &str, g: &ConvolutionSizes, dtype: DType) -> String {
    let many = if g.kernel.len() <= FEW { "" } else { "many_" };
    format!("{stem}_{many}{}", if dtype == DType::F64 { "f64" } else { "f32" })
}

pub(super) fn convolve(
    g: &ConvolutionSizes,
    way: CorrelationDirection,
    from: &Data,
    w: &Data,
    bias: Option<&Data>,
    to: &Data,
    output: Output,
) -> Result<()> {
    let gpu = to.gpu();
    let launch = gpu.launch("convolution_direct", &name("direct", g, to.dtype()))?.table(&table(g, way)?)?;
    let launch = launch.array(from).array(w).maybe_array(bias);
    let launch = launch.array(to).size(to.len()).flag(output == Output::Accumulate);
    // SAFETY: the arrays have the sizes of the convolution.
    unsafe { launch.run(gpu.grid(to.len())) }
}

/// Maps that a block of the weight's gradient makes.
fn width(g: &ConvolutionSizes) -> usize {
    if g.channel_last { WIDTH } else { 1 }
}

/// Blocks of the weight's gradient.
pub(super) fn weight_blocks(g: &ConvolutionSizes) -> usize {
    g.out_channels.div_ceil(width(g)) * g.weight().outer
}

pub(super) fn weight_gradient(
    g: &ConvolutionSizes,
    gy: &Data,
    x: &Data,
    [parts, part]: [usize; 2],
    gw: &Data,
    output: Output,
) -> Result<()> {
    let gpu = gw.gpu();
    let name = name("direct_weight", g, gw.dtype());
    let launch =
        gpu.launch("convolution_direct", &name)?.table(&table(g, CorrelationDirection::Forward)?)?.array(x).array(gy);
    let launch = launch.size(width(g)).size(part).array(gw).flag(output == Output::Accumulate);
    // SAFETY: the arrays have the sizes of the convolution, gw that of a weight for each part.
    unsafe { launch.run(grid(weight_blocks(g), parts)?) }
}
