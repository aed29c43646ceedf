//! Functions with parameters of their own: layers that make, name and find their weights in the current parameter scope.
//!
//! The first argument names the layer: `affine("fc", ..)` keeps its weight in `fc/affine/W`, as NNabla's
//! `PF.affine(.., name="fc")` does; with "" it is `affine/W`.
//!
//! One file a function, which declares it for Rust and for Python.

mod affine;
mod argument_types;
mod batch_normalization;
mod convolution;
mod declare;
mod deconvolution;
mod embed;
mod group_normalization;
mod layer;
mod layer_normalization;
mod mean_subtraction;
mod prelu;

pub use affine::{Affine, affine};
pub use argument_types::{Apply, Init, Inits, Rng, Size, Sizes};
pub use batch_normalization::{BatchNormalization, batch_normalization};
pub use convolution::{Convolution, convolution};
pub use declare::{LayerCall, LayerDef, ParameterDef};
pub use deconvolution::{Deconvolution, deconvolution};
pub use embed::{Embed, embed};
pub use group_normalization::{GroupNormalization, InstanceNormalization, group_normalization, instance_normalization};
pub use layer_normalization::{LayerNormalization, layer_normalization};
pub use mean_subtraction::{MeanSubtraction, mean_subtraction};
pub use prelu::{PReLU, prelu};

/// All parametric functions, in the order of the documentation.
///
/// ```
/// assert!(nnrs::parametric::registry().iter().any(|d| d.name == "affine" && d.parameters.len() == 2));
/// ```
pub fn registry() -> &'static [&'static LayerDef] {
    &[
        Affine::DEF,
        BatchNormalization::DEF,
        Convolution::DEF,
        Deconvolution::DEF,
        Embed::DEF,
        GroupNormalization::DEF,
        InstanceNormalization::DEF,
        LayerNormalization::DEF,
        MeanSubtraction::DEF,
        PReLU::DEF,
    ]
}
