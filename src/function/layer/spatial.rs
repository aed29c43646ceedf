//! What convolutions and poolings share: their lists of numbers, and the sizes of a convolution with all checks, so
//! that kernels never see sizes that do not fit.

use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::convolution::{ConvolutionSizes, Dims};
use nnrs_kernels::shape::Shape;
use smallvec::SmallVec;

/// The largest stride, padding and so on: sums and products of a few of them stay far from overflow.
const MOST: i64 = i32::MAX as i64;
/// Elements of a padded image that are never too many; above, padding must not be nearly all of it.
const PADDED: i128 = 1 << 28;

/// The numbers of argument `name`, one for each of `n` axes and none below `least`; `default` where none are given.
pub(super) fn numbers(name: &str, given: Option<&[i64]>, default: &[i64], least: i64) -> Result<Dims> {
    let values = given.unwrap_or(default);
    if values.len() != default.len() {
        return Err(Error::arg(name, format!("{} numbers, one for each spatial axis", default.len()))
            .actual(format!("{values:?}")));
    }
    if values.iter().any(|v| !(least..=MOST).contains(v)) {
        return Err(Error::arg(name, format!("numbers from {least} to {MOST}")).actual(format!("{values:?}")));
    }
    Ok(values.iter().map(|&v| v as usize).collect())
}

/// The arguments that convolution, deconvolution and the weight's gradient have in common.
pub(super) struct ConvolutionArguments<'a> {
    pub base_axis: i64,
    pub pad: Option<&'a [i64]>,
    pub stride: Option<&'a [i64]>,
    pub dilation: Option<&'a [i64]>,
    pub group: i64,
    pub channel_last: bool,
}

/// The `ConvolutionArguments` of a function with these arguments.
macro_rules! spec {
    ($f:expr) => {
        $crate::function::layer::spatial::ConvolutionArguments {
            base_axis: $f.base_axis,
            pad: $f.pad.as_deref(),
            stride: $f.stride.as_deref(),
            dilation: $f.dilation.as_deref(),
            group: $f.group,
            channel_last: $f.channel_last,
        }
    };
}

/// The function of that name for sizes that are known: all arguments as numbers, and those of its own.
macro_rules! sized {
    ($name:ident, $s:expr $(, $arg:ident: $value:expr)*) => {
        $name {
            base_axis: $s.lead.ndim() as i64,
            pad: $crate::function::layer::spatial::list(&$s.pad),
            stride: $crate::function::layer::spatial::list(&$s.stride),
            dilation: $crate::function::layer::spatial::list(&$s.dilation),
            group: $s.group as i64,
            channel_last: $s.channel_last,
            $($arg: $value,)*
        }
    };
}
pub(super) use {sized, spec};

/// An image's axes.
struct Image {
    lead: Shape,
    channels: usize,
    spatial: Dims,
}

impl ConvolutionArguments<'_> {
    /// A convolution of `x`.
    pub fn convolution(&self, x: &Shape, weight: &Shape) -> Result<ConvolutionSizes> {
        let image = self.image(x)?;
        if image.spatial.contains(&0) {
            return Err(Error::shape("x", "spatial sizes of at least 1").actual(x));
        }
        let (out_channels, each, kernel) = self.weight(weight, image.spatial.len())?;
        let group = self.group(&[("x", image.channels), ("weight", out_channels)])?;
        if each.checked_mul(group) != Some(image.channels) {
            return Err(self.channels_error(weight, each, image.channels, group));
        }
        let mut s = self.sizes(image.lead, group, kernel)?;
        (s.in_channels, s.out_channels, s.input) = (image.channels, out_channels, image.spatial);
        let room = |i: usize| s.input[i] as i128 + 2 * s.pad[i] as i128 - s.window(i);
        s.output = positive(&s, |i| if room(i) < 0 { 0 } else { room(i) / s.stride[i] as i128 + 1 })?;
        check_padding(&s)?;
        Ok(s)
    }

    /// The convolution whose gradient the deconvolution of `x` is: x has the place of its output.
    pub fn deconvolution(&self, x: &Shape, weight: &Shape, output_padding: Option<&[i64]>) -> Result<ConvolutionSizes> {
        let image = self.image(x)?;
        let (out_channels, each, kernel) = self.weight(weight, image.spatial.len())?;
        if out_channels != image.channels {
            return Err(Error::shape(
                "weight",
                format!("{} maps in its first axis, the channels of x", image.channels),
            )
            .actual(weight));
        }
        let group = self.group(&[("x", image.channels)])?;
        let mut s = self.sizes(image.lead, group, kernel)?;
        let more = numbers("output_padding", output_padding, &vec![0; s.kernel.len()], 0)?;
        if more.iter().zip(&s.stride).any(|(m, s)| m >= s) {
            return Err(Error::arg("output_padding", format!("numbers below the stride {:?}", &s.stride[..]))
                .actual(format!("{:?}", &more[..])));
        }
        (s.out_channels, s.output) = (image.channels, image.spatial);
        s.in_channels = each.saturating_mul(group);
        let full = |i: usize| s.stride[i] as i128 * (s.output[i] as i128 - 1) + s.window(i);
        let empty = s.output.contains(&0);
        s.input = positive(&s, |i| if empty { 0 } else { full(i) - 2 * s.pad[i] as i128 + more[i] as i128 })?;
        check_padding(&s)?;
        Ok(s)
    }

    fn image(&self, x: &Shape) -> Result<Image> {
        let n = x.ndim() as i64;
        let base = if self.base_axis < 0 { self.base_axis + n } else { self.base_axis };
        if !(0..n - 1).contains(&base) {
            return Err(Error::arg(
                "base_axis",
                format!("an axis of x {x} with a channel and a spatial axis after it"),
            )
            .actual(self.base_axis));
        }
        let (base, last) = (base as usize, x.ndim() - 1);
        let channels = x[if self.channel_last { last } else { base }];
        let spatial = if self.channel_last { &x[base..last] } else { &x[base + 1..] };
        Ok(Image { lead: Shape::from(&x[..base]), channels, spatial: spatial.into() })
    }

    /// Maps, channels a group and kernel of a weight.
    fn weight(&self, w: &Shape, n: usize) -> Result<(usize, usize, Dims)> {
        let form = if self.channel_last { "(maps, kernel.., channels)" } else { "(maps, channels, kernel..)" };
        if w.ndim() != n + 2 {
            return Err(Error::shape("weight", format!("{} axes {form} for {n} spatial axes of x", n + 2)).actual(w));
        }
        let (each, kernel) = if self.channel_last { (w[n + 1], &w[1..=n]) } else { (w[1], &w[2..]) };
        if kernel.contains(&0) {
            return Err(Error::shape("weight", format!("a kernel of size 1 at least in {form}")).actual(w));
        }
        Ok((w[0], each, kernel.into()))
    }

    fn group(&self, divides: &[(&str, usize)]) -> Result<usize> {
        let fits = |n: usize| self.group > 0 && n.is_multiple_of(self.group as usize);
        match divides.iter().find(|(_, n)| !fits(*n)) {
            None => Ok(self.group as usize),
            Some((of, n)) => {
                Err(Error::arg("group", format!("a divisor of the {n} channels of {of}")).actual(self.group))
            }
        }
    }

    fn channels_error(&self, w: &Shape, each: usize, channels: usize, group: usize) -> Error {
        let want = format!("{} channels, the {channels} of x over group={group}", channels / group);
        let form = if self.channel_last { "(maps, kernel.., channels)" } else { "(maps, channels, kernel..)" };
        Error::shape("weight", want).actual(format!("{each} of shape {w}")).hint(format!("its axes are {form}"))
    }

    fn sizes(&self, lead: Shape, group: usize, kernel: Dims) -> Result<ConvolutionSizes> {
        let (zeros, ones) = (vec![0; kernel.len()], vec![1; kernel.len()]);
        Ok(ConvolutionSizes {
            batch: lead.size(),
            lead,
            group,
            pad: numbers("pad", self.pad, &zeros, 0)?,
            stride: numbers("stride", self.stride, &ones, 1)?,
            dilation: numbers("dilation", self.dilation, &ones, 1)?,
            kernel,
            channel_last: self.channel_last,
            in_channels: 0,
            out_channels: 0,
            input: Dims::new(),
            output: Dims::new(),
        })
    }
}

/// The sizes along all axes, which must be positive.
fn positive(s: &ConvolutionSizes, size: impl Fn(usize) -> i128) -> Result<Dims> {
    let sizes: SmallVec<[i128; 3]> = (0..s.kernel.len()).map(size).collect();
    if sizes.iter().all(|&n| n > 0 && n <= isize::MAX as i128) {
        return Ok(sizes.iter().map(|&n| n as usize).collect());
    }
    Err(Error::shape("x", "spatial sizes that the kernel fits, so that there is an output")
        .actual(format!(
            "output sizes {:?} with kernel {:?}, pad {:?}, stride {:?}, dilation {:?}",
            &sizes[..],
            &s.kernel[..],
            &s.pad[..],
            &s.stride[..],
            &s.dilation[..]
        ))
        .hint("pad more, or use a smaller kernel or dilation"))
}

/// Refuses paddings and strides that would make kernels work through gigantic empty images.
fn check_padding(s: &ConvolutionSizes) -> Result<()> {
    let size = |d: &Dims| d.iter().try_fold(1i128, |n, &d| n.checked_mul(d as i128));
    let padded: Dims = s.input.iter().zip(&s.pad).map(|(n, p)| n.saturating_add(2 * p)).collect();
    let real = size(&s.input).zip(size(&s.output)).map(|(i, o)| i.saturating_add(o).saturating_mul(64));
    match (size(&padded), real) {
        (Some(p), Some(real)) if p <= PADDED.max(real) => Ok(()),
        _ => Err(Error::arg("pad", "an image that is not padding alone").actual(format!("{:?}", &s.pad[..]))),
    }
}

/// Checks a bias of one number for each of `channels` maps.
pub(super) fn check_bias(bias: Option<&Shape>, channels: usize) -> Result<()> {
    match bias {
        Some(b) if **b != [channels] => {
            Err(Error::shape("bias", format!("shape ({channels},), one number for each map")).actual(b))
        }
        _ => Ok(()),
    }
}

/// The axes of an image but for its channel axis, which is the first after `lead` axes or the last.
pub(super) fn all_but_channels(ndim: usize, lead: usize, channel_last: bool) -> Vec<i64> {
    let channel = if channel_last { ndim - 1 } else { lead };
    (0..ndim).filter(|&a| a != channel).map(|a| a as i64).collect()
}

/// `n` numbers as an argument.
pub(super) fn list(d: &Dims) -> Option<Vec<i64>> {
    Some(d.iter().map(|&v| v as i64).collect())
}
