//! `inq_affine` and `inq_convolution`: layers whose weights become powers of two by and by.

use super::binary_layer::convolution;
use super::inner_layer::{InnerLayer, check_like_weight};
use crate::function;
use crate::function::{ArgKind, ArgType, ArgValue, Call, Function, Grad, Resolved, call_of};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::inq::{Inq, InqIterations, InqSelection};
use nnrs_kernels::random::RandomSeed;
use nnrs_kernels::shape::Shape;

function! {
    /// An affine layer whose weights are quantized incrementally (INQ, Zhou et al., 2017). The forward passes whose numbers, from 0,
    /// are in inq_iterations fix half of the weights that are not fixed yet, that of the last number all. A weight that is fixed becomes
    /// a power of two, or 0, in the array of the weight itself, and 1 in that of the indicators; each forward pass sets it to that value again. The
    /// powers are the `2^(num_bits - 2)` up to the one for the largest `|w|`. Gradients are the layer's.
    INQAffine inq_affine in Quantization, any_device
    inputs {
        x: "Input of shape (M_0, .., M_{B-1}, D_B, .., D_N), B = base_axis.",
        weight: "Weight of shape (D_B * .. * D_N, L_0, .., L_I). Forward writes what is fixed.",
        indicator_fixedweights: "Array of the weight's shape: 1 where the weight is fixed, else 0. Forward writes it.",
        bias [optional]: "Bias of shape (L_0, .., L_I).",
    }
    args {
        base_axis: i64 = 1, "First axis that belongs to the vector; may count from the end.";
        num_bits: i64 = 4, "Bits of a weight, 2 or more: one for the sign, one for zero.";
        inq_iterations: InqIterations = InqIterations::default(), "Numbers of the forward passes that fix weights.";
        selection_algorithm: String = "largest_abs".to_string(), "Which half is fixed: 'largest_abs' or 'random'.";
        seed: RandomSeed = RandomSeed::default(), "Seed of the random choice; -1: the global random stream."
    }
    outputs { y: "Output of shape (M_0, .., M_{B-1}, L_0, .., L_I)." }
}

function! {
    /// A convolution whose weights are quantized incrementally (INQ, Zhou et al., 2017). The forward passes whose numbers, from 0,
    /// are in inq_iterations fix half of the weights that are not fixed yet, that of the last number all. A weight that is fixed becomes
    /// a power of two, or 0, in the array of the weight itself, and 1 in that of the indicators; each forward pass sets it to that value again. The
    /// powers are the `2^(num_bits - 2)` up to the one for the largest `|w|`. Gradients are the layer's.
    INQConvolution inq_convolution in Quantization, any_device
    inputs {
        x: "Images of shape (.., C, spatial..) with base_axis leading axes.",
        weight: "Kernels of shape (O, C / group, kernel..). Forward writes what is fixed.",
        indicator_fixedweights: "Array of the weight's shape: 1 where the weight is fixed, else 0. Forward writes it.",
        bias [optional]: "Bias of shape (O,).",
    }
    args {
        base_axis: i64 = 1, "Number of leading axes that only repeat the convolution; may count from the end.";
        pad: Option<Vec<i64>> = None, "Zeros on both ends of each spatial axis; None: no padding.";
        stride: Option<Vec<i64>> = None, "Distance of windows on each spatial axis; None: 1.";
        dilation: Option<Vec<i64>> = None, "Distance of a kernel's elements on each spatial axis; None: 1.";
        group: i64 = 1, "Number of groups of channels that are convolved apart.";
        num_bits: i64 = 4, "Bits of a weight, 2 or more: one for the sign, one for zero.";
        inq_iterations: InqIterations = InqIterations::default(), "Numbers of the forward passes that fix weights.";
        selection_algorithm: String = "largest_abs".to_string(), "Which half is fixed: 'largest_abs' or 'random'.";
        seed: RandomSeed = RandomSeed::default(), "Seed of the random choice; -1: the global random stream."
    }
    outputs { y: "Images of shape (.., O, new spatial..)." }
}

impl ArgType for InqIterations {
    const KIND: ArgKind = ArgKind::Ints;
    fn from_value(v: ArgValue) -> Option<InqIterations> {
        Vec::from_value(v).map(InqIterations::from)
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::Ints(self.value().to_vec())
    }
}

fn bits(num_bits: i64) -> Result<u32> {
    let fits = u32::try_from(num_bits.min(64)).ok().filter(|&bits| bits >= 2);
    fits.ok_or_else(|| Error::arg("num_bits", "2 or more").actual(num_bits))
}

fn selection(algorithm: &str, seed: &RandomSeed) -> Result<InqSelection> {
    match algorithm {
        "largest_abs" => Ok(InqSelection::Largest),
        "random" => Ok(InqSelection::Random(seed.twin())),
        _ => Err(Error::arg("selection_algorithm", "'largest_abs' or 'random'").actual(format!("'{algorithm}'"))),
    }
}

macro_rules! inq_layers {
    ($($name:ident |$f:ident| $layer:expr;)*) => {$(
        impl $name {
            fn layer(&self) -> InnerLayer<impl Function + use<>> {
                let $f = self;
                InnerLayer { layer: $layer, extra: 1 }
            }
        }

        impl Function for $name {
            fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
                let (shapes, layer) = self.layer().resolve(x)?;
                check_like_weight(x, "indicator_fixedweights")?;
                let (bits, selection) = (bits(self.num_bits)?, selection(&self.selection_algorithm, &self.seed)?);
                Ok(Resolved::new(shapes, Inq { layer, bits, iterations: self.inq_iterations.twin(), selection }))
            }

            fn used(&self, call: Option<&dyn Call>) -> Vec<(&'static str, ArgValue)> {
                self.layer().used(self, &*call_of::<Inq>(call).layer)
            }

            fn has_state(&self) -> bool {
                true
            }

            fn counts_runs(&self) -> bool {
                true
            }

            fn updates_input(&self, i: usize) -> bool {
                i == 1 || i == 2
            }

            fn differentiable(&self, i: usize) -> bool {
                i != 2
            }

            fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
                self.layer().grad(g, g.x[1].clone())
            }
        }
    )*};
}

inq_layers! {
    INQAffine |f| f::Affine { base_axis: f.base_axis };
    INQConvolution |f| convolution!(f);
}
