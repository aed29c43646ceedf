//! `random_erase`: patches of images replaced by random numbers.

use crate::function;
use crate::function::{ArgKind, ArgType, ArgValue, Call, Described, Function, Grad, Resolved, call_one};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::random_erase::{self as kernel, Erasure};
use nnrs_kernels::random::{LastDraw, RandomSeed};
use nnrs_kernels::shape::Shape;

function! {
    /// Replaces rectangles at random places of images by random numbers (Zhong et al., Random Erasing Data Augmentation, 2017).
    ///
    /// A rectangle's area is a random part of the image's, its height `sqrt(area * ratio)` and its width `sqrt(area / ratio)`. As in NNabla,
    /// it covers one row and one column more than the whole part of these.
    RandomErase random_erase in Random, forward_on_any_device
    inputs { x: "Images, of shape (N, C, H, W), or (N, H, W, C) if channel_last; any axes before base_axis number samples." }
    args {
        prob: f64 = 0.5, "Probability of each rectangle.";
        area_ratios: Vec<f64> = vec![0.02, 0.4], "Least and largest part of the area.";
        aspect_ratios: Vec<f64> = vec![0.3, 3.3333], "Least and largest ratio of height to width.";
        replacements: Vec<f64> = vec![0.0, 255.0], "Least and largest of the numbers that come in.";
        n: Option<i64> = None, "Rectangles of an image at most; None: 1.";
        share: bool = true, "Whether the channels of an image have the same rectangles.";
        inplace: bool = false, "Ignored, as in NNabla.";
        base_axis: i64 = 1, "The axes before it number the samples; three follow.";
        seed: RandomSeed = RandomSeed::default(), "Seed of this function; -1: the global random stream.";
        channel_last: bool = false, "Whether the channels are the last axis.";
        ste_fine_grained: bool = true, "Whether no gradient goes to what was erased; if not, it goes there as elsewhere."
    }
    outputs { y: "Array of x's shape." }
}

/// The least and the largest number of an argument, both finite and of `least` or more.
fn range(name: &str, given: &[f64], least: f64) -> Result<[f64; 2]> {
    let fits = |v: &[f64; 2]| v.iter().all(|v| v.is_finite() && *v >= least);
    let expected = if least == 0.0 { "two finite numbers of 0 or more" } else { "two finite numbers" };
    let two = <[f64; 2]>::try_from(given).ok().filter(fits);
    two.ok_or_else(|| Error::arg(name, expected).actual(format!("{given:?}")))
}

impl RandomErase {
    fn erasure(&self, x: &Shape) -> Result<Erasure> {
        if !(0.0..=1.0).contains(&self.prob) {
            return Err(Error::arg("prob", "a probability, from 0 to 1").actual(self.prob));
        }
        let n = self.n.unwrap_or(1);
        let patches = usize::try_from(n).ok().filter(|n| (1..=1 << 20).contains(n));
        let patches = patches.ok_or_else(|| Error::arg("n", "1 rectangle or more, 2^20 at most").actual(n))?;
        let base = x.axis(self.base_axis, "base_axis")?;
        let &[a, b, c] = &x[base..] else {
            let expected = "the number of axes before channels, height and width";
            return Err(Error::arg("base_axis", expected).actual(format!("{base} of x {x}")));
        };
        let (channels, size) = if self.channel_last { (c, [a, b]) } else { (a, [b, c]) };
        Ok(Erasure {
            samples: x.size_to(base),
            channels,
            size,
            channel_last: self.channel_last,
            patches,
            share: self.share,
            prob: self.prob,
            area: range("area_ratios", &self.area_ratios, 0.0)?,
            aspect: range("aspect_ratios", &self.aspect_ratios, 0.0)?,
            replacements: range("replacements", &self.replacements, f64::MIN)?,
        })
    }
}

impl Function for RandomErase {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let erasure = self.erasure(&x[0])?;
        Ok(Resolved::one(x[0].clone(), kernel::RandomErase { seed: self.seed.twin(), erasure }))
    }

    fn used(&self, _call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
        let n = ArgValue::Int(self.n.unwrap_or(1));
        self.arguments().into_iter().map(|(name, v)| if name == "n" { (name, n.clone()) } else { (name, v) }).collect()
    }

    fn has_state(&self) -> bool {
        true
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        if !self.ste_fine_grained {
            return Ok(vec![Some(g.gy[0].clone())]);
        }
        let again = EraseAgain { how: ErasureArg(self.clone()), draw: self.seed.last() };
        Ok(vec![Some(call_one(again, &[&g.gy[0], &g.y[0]])?)])
    }
}

/// The function that a derivative belongs to: not an argument that a caller can give.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ErasureArg(RandomErase);

impl ArgType for ErasureArg {
    const KIND: ArgKind = ArgKind::Int;
    fn from_value(_: ArgValue) -> Option<ErasureArg> {
        None
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::None
    }
}

function! {
    /// Zero where a function erased when it last ran: its derivative. Internal: not in the registry.
    EraseAgain erase_again in Special, forward_on_any_device
    inputs { x: "N-D array.", after: "The function's output: it runs first." }
    args { how: ErasureArg, "The function."; draw: LastDraw, "Its numbers." }
    outputs { y: "N-D array of x's shape." }
}

impl Function for EraseAgain {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let erasure = self.how.0.erasure(&x[0])?;
        Ok(Resolved::one(x[0].clone(), kernel::EraseAgain { draw: self.draw.clone(), erasure }))
    }

    fn differentiable(&self, i: usize) -> bool {
        i == 0
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(call_one(self.clone(), &[&g.gy[0], &g.x[1]])?), None])
    }
}
