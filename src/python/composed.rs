//! `fused_convolution`, which is a graph of other functions, for Python.

use super::array::PyNdArray;
use super::call::made_of;
use super::parametric::variable;
use super::reserve;
use crate::functions as f;
use crate::graph::Variable as Var;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(fused_convolution, m)?)
}

/// The variable of what is given; notes whether it is an array.
fn input(given: Option<Bound<'_, PyAny>>, is_array: &mut bool) -> Option<Var> {
    let (v, this) = variable(&given?)?;
    *is_array |= this;
    Some(v)
}

type WholeNumbers = Option<Vec<i64>>;

/// A convolution and what follows it; `given` has x, weight, bias, beta, gamma, mean, variance and z, `convolution` its
/// arguments, `normalization` decay_rate, eps and batch_stat, `activation` its name and numbers, `padding` mode and constant.
#[pyfunction]
fn fused_convolution<'py>(
    py: Python<'py>,
    given: [Option<Bound<'py, PyAny>>; 8],
    convolution: (i64, WholeNumbers, WholeNumbers, WholeNumbers, i64, bool),
    normalization: (f64, f64, bool),
    activation: (String, Vec<f64>),
    padding: (String, f64),
    output: Option<PyRef<'py, PyNdArray>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut is_array = false;
    let [x, weight, bias, beta, gamma, mean, variance, z] = given.map(|v| input(v, &mut is_array));
    let (Some(x), Some(weight)) = (x, weight) else { return Err(PyTypeError::new_err("x and weight are given")) };
    let statistics = beta.zip(gamma).zip(mean.zip(variance));
    let (base_axis, pad, stride, dilation, group, channel_last) = convolution;
    let (decay_rate, eps, batch_stat) = normalization;
    let options = f::FusedConvolution {
        convolution: f::Convolution { base_axis, pad, stride, dilation, group, channel_last },
        pad_mode: padding.0,
        constant_value: padding.1,
        bias,
        normalization: statistics.map(|((beta, gamma), (mean, variance))| [beta, gamma, mean, variance]),
        decay_rate,
        eps,
        batch_stat,
        z,
        nonlinearity: activation.0,
        nonlinearity_args: activation.1,
    };
    let into = output.map(|array| array.inner().clone());
    reserve::check(py)?;
    made_of(py, || Ok([f::fused_convolution_into(&x, &weight, options, into)?]), is_array)
}
