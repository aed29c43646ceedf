//! `multi_head_attention`: attention with its weights.

use super::argument_types::{Inits, Rng, Size};
use super::declare::parametric;
use super::layer::{LayerParameters, glorot};
use crate::functions as f;
use crate::graph::Variable;
use crate::initializer::Usual;
use nnrs_kernels::error::{Error, Result};

parametric! {
    /// Attention of several heads (Vaswani et al., 2017): for each query the mean of all values, weighted by how well their
    /// keys match, `softmax(q k' / sqrt(E / num_heads)) v`, of each head with its own part of the embeddings.
    ///
    /// L_T queries and L_S keys and values, B sequences side by side; E is the embedding's size, E_v that of values.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let x = Variable::new([5, 2, 12]);
    /// let options = pf::MultiHeadAttention { num_heads: pf::Size(4), ..Default::default() };
    /// let made = pf::multi_head_attention("a", &x, &x, &x, options)?;
    /// assert_eq!((made[0].shape(), made[1].shape()), ([5, 2, 12].into(), [8, 5, 5].into()));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    MultiHeadAttention multi_head_attention in "multi_head_attention", outputs several
    inputs {
        query: "Array of shape (L_T, B, D_q).",
        key: "Array of shape (L_S, B, D_k).",
        value: "Array of shape (L_S, B, D_v).",
    }
    required {}
    options {
        num_heads: Size = Size(12), "Number of heads, a divisor of E and of E_v.";
        dropout: f64 = 0.0, "Share of the weights of attention that are dropped, at least 0 and less than 1.";
        k_embed_dim: Option<Size> = None, "E; by default D_q.";
        v_embed_dim: Option<Size> = None, "E_v; by default D_v.";
        out_dim: Option<Size> = None, "Size of the outputs; by default E_v.";
        rng: Rng = Rng::default(), "Random generator of the initial weights.";
        with_bias: bool = true, "Whether there are biases.";
        add_attn_bias: bool = false, "Whether a key and a value are learned beside those that are given.";
        additive_mask: Option<Variable> = None, "What is added to the scores before the softmax, of shape (L_T, L_S).";
        key_padding_mask: Option<Variable> = None, "1 where a key is not to be seen, else 0; of shape (B, L_S).";
        fix_parameters: bool = false, "Whether weights and biases stay as they are in training.";
        param_init: Inits = Inits::default(), "Initial values by the parameters' names; by default uniform with the limits of `calc_uniform_lim_glorot`, and zeros for the biases.";
    }
    parameters {
        "q_weight" "(D_q, E)": "Weights of queries.";
        "k_weight" "(D_k, E)": "Weights of keys.";
        "v_weight" "(D_v, E_v)": "Weights of values.";
        "out_weight" "(E_v, out_dim)": "Weights of the outputs.";
        "q_bias" "(E,)": "Bias of queries.";
        "k_bias" "(E,)": "Bias of keys.";
        "v_bias" "(E_v,)": "Bias of values.";
        "out_bias" "(out_dim,)": "Bias of the outputs.";
        "attn_bias_k" "(1, 1, E)": "The key that is learned.";
        "attn_bias_v" "(1, 1, E_v)": "The value that is learned.";
    }
    returns "Outputs of shape (L_T, B, out_dim), and the weights of attention, of shape (B * num_heads, L_T, L_S), L_S with the one that is learned."
    example ">>> x = Variable((5, 2, 12))\n>>> y, weights = multi_head_attention(x, x, x, num_heads=4)\n>>> y.shape, weights.shape\n((5, 2, 12), (8, 5, 5))"
}

impl MultiHeadAttention {
    fn build(&self, query: &Variable, key: &Variable, value: &Variable) -> Result<Vec<Variable>> {
        let inputs = [query, key, value];
        let [d_q, d_k, d_v] = [("query", query), ("key", key), ("value", value)].map(|(name, x)| numbers(name, x));
        let (d_q, d_k, d_v) = (d_q?, d_k?, d_v?);
        let e = self.k_embed_dim.map_or(d_q, |n| n.0);
        let e_v = self.v_embed_dim.map_or(d_v, |n| n.0);
        let out = self.out_dim.map_or(e_v, |n| n.0);
        let matrix = |name, rows, columns| self.random(name, &[rows, columns], glorot(rows, columns, &[]));
        let (q, k, v) = (matrix("q_weight", d_q, e)?, matrix("k_weight", d_k, e)?, matrix("v_weight", d_v, e_v)?);
        let w_out = matrix("out_weight", e_v, out)?;
        let biases = self.biases([("q_bias", e), ("k_bias", e), ("v_bias", e_v), ("out_bias", out)])?;
        let learned = |name, n| self.random(name, &[1, 1, n], glorot(n, 1, &[]));
        let both = || -> Result<[Variable; 2]> { Ok([learned("attn_bias_k", e)?, learned("attn_bias_v", e_v)?]) };
        let options = f::MultiHeadAttention {
            num_heads: self.num_heads.0,
            dropout: self.dropout,
            biases,
            attn_bias: self.add_attn_bias.then(both).transpose()?,
            additive_mask: self.additive_mask.clone(),
            key_padding_mask: self.key_padding_mask.clone(),
        };
        Ok(f::multi_head_attention(inputs, [&q, &k, &v, &w_out], options)?.into())
    }

    fn random(&self, name: &str, shape: &[usize], usual: Usual) -> Result<Variable> {
        let layer = LayerParameters { fixed: self.fix_parameters, rng: self.rng.clone() };
        layer.parameter(name, shape, &self.param_init.of(name), usual)
    }

    fn biases(&self, sizes: [(&str, usize); 4]) -> Result<[Option<Variable>; 4]> {
        let mut made = [None, None, None, None];
        if self.with_bias {
            for (bias, (name, n)) in made.iter_mut().zip(sizes) {
                *bias = Some(self.random(name, &[n], Usual::Constant(0.0))?);
            }
        }
        Ok(made)
    }
}

/// How many numbers each step of an input has.
fn numbers(name: &str, x: &Variable) -> Result<usize> {
    match &x.shape()[..] {
        [_, _, n] => Ok(*n),
        _ => Err(Error::shape(name, "3 axes, (steps, sequences, numbers)").actual(x.shape())),
    }
}
