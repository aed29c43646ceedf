//! Parameters that a layer uses quantized: the trained one, and one that always holds what it is used as.

use super::argument_types::Init;
use super::layer::LayerParameters;
use crate::function::Function;
use crate::graph::{Variable, apply_into};
use crate::initializer::Usual;
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::Result;
use std::sync::Arc;

/// A parameter `name`; `<name>_q` holds what it is used as.
pub(super) struct QuantizedParameter<'a> {
    pub name: &'a str,
    pub sizes: &'a [usize],
    pub init: &'a Init,
    pub usual: Usual,
}

/// Quantizes a parameter.
pub(super) trait Quantizer {
    /// What it is used as, made in the array `into`.
    fn apply(self, parameter: &Variable, into: NdArray) -> Result<Variable>;
}

impl<F: Function> Quantizer for F {
    fn apply(self, parameter: &Variable, into: NdArray) -> Result<Variable> {
        Ok(apply_into(Arc::new(self), &[parameter], Some(vec![into]), None)?.swap_remove(0))
    }
}

impl QuantizedParameter<'_> {
    /// The parameter as the layer uses it: quantized, where there is a quantizer.
    pub fn of(&self, layer: &LayerParameters, quantizer: Option<impl Quantizer>) -> Result<Variable> {
        let own = layer.parameter(self.name, self.sizes, self.init, self.usual)?;
        let Some(quantizer) = quantizer else { return Ok(own) };
        let into = layer.untrained(&format!("{}_q", self.name), self.sizes, self.init, self.usual)?;
        let used = quantizer.apply(&own, into.raw_data())?;
        used.set_persistent(true);
        Ok(used)
    }
}
