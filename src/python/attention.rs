//! `multi_head_attention` and `scaled_dot_product_attention`, which choose what they are made of, for Python.

use super::call::made_of;
use super::parametric::variable;
use super::{errors, reserve};
use crate::functions::{MultiHeadAttention, multi_head_attention};
use crate::functions::{ScaledDotProductAttention, scaled_dot_product_attention};
use crate::graph::Variable as Var;
use nnrs_kernels::error::{Error, ErrorKind};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

pub(super) fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_function(wrap_pyfunction!(attention, m)?)?;
    m.add_function(wrap_pyfunction!(scaled_attention, m)?)
}

/// The inputs of a call by name.
struct AttentionInputs<'py> {
    function: &'static str,
    given: Bound<'py, PyDict>,
    /// Whether they are arrays.
    arrays: Option<bool>,
}

impl AttentionInputs<'_> {
    /// The input of this name; `None` for None.
    fn optional(&mut self, name: &str) -> PyResult<Option<Var>> {
        let given = self.given.get_item(name)?.filter(|v| !v.is_none());
        given.map(|v| self.checked(name, &v)).transpose()
    }

    fn required(&mut self, name: &str) -> PyResult<Var> {
        let none = self.given.py().None().into_bound(self.given.py());
        let given = self.given.get_item(name)?.unwrap_or(none);
        self.checked(name, &given)
    }

    fn checked(&mut self, name: &str, given: &Bound<'_, PyAny>) -> PyResult<Var> {
        match variable(given) {
            Some((v, is_array)) if *self.arrays.get_or_insert(is_array) == is_array => Ok(v),
            _ => {
                let expected = match self.arrays {
                    Some(true) => "an NdArray, as the inputs before it are",
                    Some(false) => "a Variable, as the inputs before it are",
                    None => "a Variable or NdArray",
                };
                let e = Error::new(ErrorKind::Type, expected).argument(name).function(self.function);
                Err(errors::raise(given.py(), e.actual(errors::describe(given))))
            }
        }
    }
}

/// Attention of several heads; `given` has the inputs by name.
#[pyfunction]
fn attention<'py>(
    py: Python<'py>,
    given: Bound<'py, PyDict>,
    num_heads: usize,
    dropout: f64,
) -> PyResult<Bound<'py, PyTuple>> {
    let function = "multi_head_attention";
    let mut inputs = AttentionInputs { function, given, arrays: None };
    let [query, key, value] = ["query", "key", "value"].map(|name| inputs.required(name));
    let [q, k, v, out] = ["q_weight", "k_weight", "v_weight", "out_weight"].map(|name| inputs.required(name));
    let [b_q, b_k, b_v, b_out] = ["q_bias", "k_bias", "v_bias", "out_bias"].map(|name| inputs.optional(name));
    let attn_bias = match inputs.optional("attn_bias_k")? {
        Some(bias_k) => Some([bias_k, inputs.required("attn_bias_v")?]),
        None => None,
    };
    let options = MultiHeadAttention {
        num_heads,
        dropout,
        biases: [b_q?, b_k?, b_v?, b_out?],
        attn_bias,
        additive_mask: inputs.optional("additive_mask")?,
        key_padding_mask: inputs.optional("key_padding_mask")?,
    };
    let (x, w) = ([query?, key?, value?], [q?, k?, v?, out?]);
    reserve::check(py)?;
    let made = || multi_head_attention(x.each_ref(), w.each_ref(), options).map_err(|e| e.function(function));
    Ok(made_of(py, made, inputs.arrays == Some(true))?.cast_into()?)
}

/// Attention of queries to keys; `given` has the inputs by name.
#[pyfunction]
fn scaled_attention<'py>(
    py: Python<'py>,
    given: Bound<'py, PyDict>,
    dropout_p: f64,
    is_causal: bool,
    scale: Option<f64>,
) -> PyResult<Bound<'py, PyAny>> {
    let function = "scaled_dot_product_attention";
    let mut inputs = AttentionInputs { function, given, arrays: None };
    let [query, key, value] = ["query", "key", "value"].map(|name| inputs.required(name));
    let (x, attn_mask) = ([query?, key?, value?], inputs.optional("attn_mask")?);
    let options = ScaledDotProductAttention { attn_mask, dropout_p, is_causal, scale };
    reserve::check(py)?;
    let made = || {
        let y = scaled_dot_product_attention(x.each_ref(), options);
        y.map(|y| [y]).map_err(|e| e.part_of(function, |argument| argument.starts_with("dropout")))
    };
    made_of(py, made, inputs.arrays == Some(true))
}
