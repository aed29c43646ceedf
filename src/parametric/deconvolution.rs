//! `deconvolution`: the transpose of a convolution, with a bias.

use super::argument_types::{Apply, Init, Rng, Size, Sizes};
use super::declare::parametric;
use super::layer::{LayerParameters, glorot, groups};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};

parametric! {
    /// N-D transposed convolution with bias.
    ///
    /// ```
    /// use nnrs::{parameter, parametric as pf, Variable};
    /// let y = pf::deconvolution("d1", &Variable::new([8, 3, 16, 16]), 6, [3, 3], pf::Deconvolution::default())?;
    /// assert_eq!(y.shape(), [8, 6, 18, 18].into());
    /// assert_eq!(parameter::get_parameter("d1/deconv/W").unwrap().shape(), [3, 6, 3, 3].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    Deconvolution deconvolution in "deconv"
    inputs { inp: "Input of shape (samples..., channels, *sizes), with `channel_last` (samples..., *sizes, channels)." }
    required {
        outmaps: Size, "Number of output channels.";
        kernel: Sizes, "Kernel size, one a spatial axis.";
    }
    options {
        pad: Option<Vec<i64>> = None, "What is cut from both ends of the output, one a spatial axis; by default 0.";
        stride: Option<Vec<i64>> = None, "Steps in the output, one a spatial axis; by default 1.";
        dilation: Option<Vec<i64>> = None, "Distance of the kernel's points, one a spatial axis; by default 1.";
        group: i64 = 1, "Number of groups of channels that do not mix.";
        channel_last: bool = false, "Whether channels are the last axis.";
        output_padding: Option<Vec<i64>> = None, "Added to the end of each spatial axis of the output; by default 0.";
        w_init: Init = Init::default(), "Initial weight; by default uniform with the limits of `calc_uniform_lim_glorot`.";
        b_init: Init = Init::default(), "Initial bias; by default zeros.";
        base_axis: i64 = 1, "First axis that is not a sample's number.";
        fix_parameters: bool = false, "Whether weight and bias stay as they are in training.";
        rng: Rng = Rng::default(), "Random generator of the initial weight.";
        with_bias: bool = true, "Whether there is a bias.";
        apply_w: Apply = Apply::default(), "Function applied to the weight before its use.";
        apply_b: Apply = Apply::default(), "Function applied to the bias before its use.";
    }
    parameters {
        "W" "(inmaps, outmaps // group, *kernel), with channel_last (inmaps, *kernel, outmaps // group)": "Filters.";
        "b" "(outmaps,)": "Bias.";
    }
    returns "Variable of shape (samples..., outmaps, *sizes)."
    example ">>> deconvolution(Variable((8, 3, 16, 16)), 6, (3, 3), name=\"d1\").shape\n(8, 6, 18, 18)"
}

impl Deconvolution {
    fn build(&self, x: &Variable, Size(outmaps): Size, Sizes(kernel): Sizes) -> Result<Vec<Variable>> {
        if kernel.contains(&0) {
            return Err(Error::arg("kernel", "sizes of 1 or more").actual(format!("{kernel:?}")));
        }
        let shape = x.shape();
        let base_axis = shape.axis(self.base_axis, "base_axis")?;
        let channels = shape[if self.channel_last { shape.ndim() - 1 } else { base_axis }];
        let depth = outmaps / groups(self.group, channels, outmaps)?;
        let mut sizes: Vec<usize> = [channels, depth].into_iter().chain(kernel.iter().copied()).collect();
        if self.channel_last {
            sizes[1..].rotate_left(1);
        }
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        let w = layer.weight(&sizes, &self.w_init, glorot(outmaps, channels, &kernel), &self.apply_w)?;
        let b = layer.bias(&[outmaps], &self.b_init, &self.apply_b, self.with_bias)?;
        let rule = f::Deconvolution {
            base_axis: self.base_axis,
            pad: self.pad.clone(),
            stride: self.stride.clone(),
            dilation: self.dilation.clone(),
            group: self.group,
            channel_last: self.channel_last,
            output_padding: self.output_padding.clone(),
        };
        Ok(vec![f::deconvolution(x, &w, b.as_ref(), rule)?])
    }
}
