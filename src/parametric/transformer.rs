//! `transformer`, and the layers that it is a stack of: `transformer_encode` and `transformer_decode`.

use super::affine::{Affine, affine};
use super::argument_types::{Apply, Rng, Size};
use super::attention::{MultiHeadAttention, multi_head_attention};
use super::declare::parametric;
use super::layer_normalization::{LayerNormalization, layer_normalization};
use crate::function::random::check_dropout;
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};

parametric! {
    /// A transformer (Vaswani et al., 2017): encoders read the source, decoders the target and what the encoders have made of
    /// the source. L_S and L_T steps of source and target, B sequences side by side, E numbers each.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let options = pf::Transformer {
    ///     embed_dim: pf::Size(8), num_heads: pf::Size(2), num_encoder_layers: pf::Size(1), num_decoder_layers: pf::Size(2),
    ///     dim_feedforward: pf::Size(16), ..Default::default()
    /// };
    /// let y = pf::transformer("t", &Variable::new([5, 2, 8]), &Variable::new([4, 2, 8]), options)?;
    /// assert_eq!(y.shape(), [4, 2, 8].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    Transformer transformer in "transformer"
    inputs { src: "Source of shape (L_S, B, E).", tgt: "Target of shape (L_T, B, E)." }
    required {}
    options {
        embed_dim: Size = Size(512), "E.";
        num_heads: Size = Size(8), "Number of heads of attention, a divisor of E.";
        num_encoder_layers: Size = Size(6), "Number of encoders, at most 10,000.";
        num_decoder_layers: Size = Size(6), "Number of decoders, at most 10,000.";
        dim_feedforward: Size = Size(2048), "Size of the layer between, after each attention.";
        dropout: f64 = 0.1, "Share of the numbers that are dropped after each part of a layer, at least 0 and less than 1.";
        activation: Apply = Apply::default(), "Activation of the layer between; by default `relu`.";
        src_additive_mask: Option<Variable> = None, "Added to the source's scores of itself, of shape (L_S, L_S).";
        tgt_additive_mask: Option<Variable> = None, "Added to the target's scores of itself, of shape (L_T, L_T).";
        memory_additive_mask: Option<Variable> = None, "Added to the target's scores of the source, of shape (L_T, L_S).";
        src_key_padding_mask: Option<Variable> = None, "1 where the source is not to be seen by itself, else 0; of shape (B, L_S).";
        tgt_key_padding_mask: Option<Variable> = None, "1 where the target is not to be seen by itself, else 0; of shape (B, L_T).";
        memory_key_padding_mask: Option<Variable> = None, "1 where the source is not to be seen by the target, else 0; of shape (B, L_S).";
        rng: Rng = Rng::default(), "Not used, as in NNabla: initial values come from the global generator.";
        add_attn_bias: bool = false, "Whether each attention learns a key and a value beside those that it is given.";
        fix_parameters: bool = false, "Whether all parameters stay as they are in training.";
    }
    parameters {
        "encoder{number}" "see transformer_encode": "Parameters of an encoder, `encoder00` and so on.";
        "decoder{number}" "see transformer_decode": "Parameters of a decoder.";
    }
    returns "Variable of shape (L_T, B, E)."
    example ">>> src, tgt = Variable((5, 2, 8)), Variable((4, 2, 8))\n>>> transformer(src, tgt, 8, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16).shape\n(4, 2, 8)"
}

parametric! {
    /// An encoder of a transformer (Vaswani et al., 2017): attention of a sequence to itself, then two layers at each step. Around
    /// each part goes a sum with its input, and a layer normalization.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let y = pf::transformer_encode("e", &Variable::new([5, 2, 8]), 8, 2, pf::TransformerEncode::default())?;
    /// assert_eq!(y.shape(), [5, 2, 8].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    TransformerEncode transformer_encode in "transformer_encode"
    inputs { src: "Sequences of shape (L_S, B, E)." }
    required {
        embed_dim: Size, "E.";
        num_heads: Size, "Number of heads of attention, a divisor of E.";
    }
    options {
        dim_feedforward: Size = Size(2048), "Size of the layer between.";
        dropout: f64 = 0.1, "Share of the numbers that are dropped after each part, at least 0 and less than 1.";
        activation: Apply = Apply::default(), "Activation of the layer between; by default `relu`.";
        src_additive_mask: Option<Variable> = None, "Added to the scores, of shape (L_S, L_S).";
        src_key_padding_mask: Option<Variable> = None, "1 where a step is not to be seen, else 0; of shape (B, L_S).";
        rng: Rng = Rng::default(), "Not used, as in NNabla: initial values come from the global generator.";
        add_attn_bias: bool = false, "Whether attention learns a key and a value beside those that it is given.";
        fix_parameters: bool = false, "Whether all parameters stay as they are in training.";
    }
    parameters {
        "src_self_attn" "see multi_head_attention": "Parameters of attention.";
        "enc_layer_norm1" "see layer_normalization": "Parameters of the first normalization.";
        "enc_affine1" "see affine": "Parameters of the layer between.";
        "enc_affine2" "see affine": "Parameters of the layer after it.";
        "enc_layer_norm2" "see layer_normalization": "Parameters of the second normalization.";
    }
    returns "Variable of shape (L_S, B, E)."
    example ">>> transformer_encode(Variable((5, 2, 8)), 8, 2, dim_feedforward=16).shape\n(5, 2, 8)"
}

parametric! {
    /// A decoder of a transformer (Vaswani et al., 2017): attention of a sequence to itself, then to the source, then two layers
    /// at each step. Around each part goes a sum with its input, and a layer normalization.
    ///
    /// ```
    /// use nnrs::{parametric as pf, Variable};
    /// let (x, memory) = (Variable::new([4, 2, 8]), Variable::new([5, 2, 8]));
    /// let y = pf::transformer_decode("d", &x, &memory, 8, 2, pf::TransformerDecode::default())?;
    /// assert_eq!(y.shape(), [4, 2, 8].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    TransformerDecode transformer_decode in "transformer_decode"
    inputs { tgt: "Sequences of shape (L_T, B, E).", memory: "What the encoders give, of shape (L_S, B, E)." }
    required {
        embed_dim: Size, "E.";
        num_heads: Size, "Number of heads of attention, a divisor of E.";
    }
    options {
        dim_feedforward: Size = Size(2048), "Size of the layer between.";
        dropout: f64 = 0.1, "Share of the numbers that are dropped after each part, at least 0 and less than 1.";
        activation: Apply = Apply::default(), "Activation of the layer between; by default `relu`.";
        tgt_additive_mask: Option<Variable> = None, "Added to the scores of itself, of shape (L_T, L_T).";
        memory_additive_mask: Option<Variable> = None, "Added to the scores of memory, of shape (L_T, L_S).";
        tgt_key_padding_mask: Option<Variable> = None, "1 where a step is not to be seen, else 0; of shape (B, L_T).";
        memory_key_padding_mask: Option<Variable> = None, "1 where memory is not to be seen, else 0; of shape (B, L_S).";
        rng: Rng = Rng::default(), "Not used, as in NNabla: initial values come from the global generator.";
        add_attn_bias: bool = false, "Whether each attention learns a key and a value beside those that it is given.";
        fix_parameters: bool = false, "Whether all parameters stay as they are in training.";
    }
    parameters {
        "tgt_self_attn" "see multi_head_attention": "Parameters of attention to itself.";
        "dec_layer_norm1" "see layer_normalization": "Parameters of the first normalization.";
        "tgt_memory_attn" "see multi_head_attention": "Parameters of attention to memory.";
        "dec_layer_norm2" "see layer_normalization": "Parameters of the second normalization.";
        "dec_affine1" "see affine": "Parameters of the layer between.";
        "dec_affine2" "see affine": "Parameters of the layer after it.";
        "dec_layer_norm3" "see layer_normalization": "Parameters of the third normalization.";
    }
    returns "Variable of shape (L_T, B, E)."
    example ">>> transformer_decode(Variable((4, 2, 8)), Variable((5, 2, 8)), 8, 2, dim_feedforward=16).shape\n(4, 2, 8)"
}

/// What the parts of encoders and decoders have in common.
struct TransformerBlock<'a> {
    sizes: [Size; 3],
    dropout: f64,
    activation: &'a Apply,
    add_attn_bias: bool,
    fixed: bool,
}

/// The block of an encoder or decoder with these options.
macro_rules! block {
    ($options:ident, $embed_dim:ident, $num_heads:ident) => {
        TransformerBlock {
            sizes: [$embed_dim, $num_heads, $options.dim_feedforward],
            dropout: $options.dropout,
            activation: &$options.activation,
            add_attn_bias: $options.add_attn_bias,
            fixed: $options.fix_parameters,
        }
    };
}

impl TransformerBlock<'_> {
    fn dropped(&self, x: Variable) -> Result<Variable> {
        if self.dropout > 0.0 { f::dropout(&x, f::Dropout { p: self.dropout, ..Default::default() }) } else { Ok(x) }
    }

    /// The sum of a part's input and its output, normalized.
    fn around(&self, name: &str, x: &Variable, made: Variable) -> Result<Variable> {
        let options = LayerNormalization { batch_axis: vec![0, 1], fix_parameters: self.fixed, ..Default::default() };
        Ok(layer_normalization(name, &(x + self.dropped(made)?)?, options)?.swap_remove(0))
    }

    /// Attention of `x` to `to`, with an additive mask and one of the keys.
    fn attention(&self, name: &str, x: &Variable, to: &Variable, masks: [&Option<Variable>; 2]) -> Result<Variable> {
        let options = MultiHeadAttention {
            num_heads: self.sizes[1],
            add_attn_bias: self.add_attn_bias,
            additive_mask: masks[0].clone(),
            key_padding_mask: masks[1].clone(),
            fix_parameters: self.fixed,
            ..Default::default()
        };
        Ok(multi_head_attention(name, x, to, to, options)?.swap_remove(0))
    }

    /// The two layers at each step.
    fn layers(&self, names: [&str; 2], x: &Variable) -> Result<Variable> {
        let layer = |name, x: &Variable, Size(n): Size| {
            affine(name, x, n, Affine { base_axis: 2, fix_parameters: self.fixed, ..Default::default() })
        };
        let between = self.activation.or(|x| f::relu(x, f::ReLU::default()), &layer(names[0], x, self.sizes[2])?)?;
        layer(names[1], &self.dropped(between)?, self.sizes[0])
    }
}

/// Checks that sequences have the embedding's size.
fn check(name: &str, x: &Variable, Size(e): Size) -> Result<()> {
    match &x.shape()[..] {
        [_, _, n] if *n == e => Ok(()),
        _ => Err(Error::shape(name, format!("shape (steps, sequences, embed_dim={e})")).actual(x.shape())),
    }
}

/// A number that nobody can mean would build a graph for hours.
fn check_layers(name: &str, Size(n): Size) -> Result<()> {
    const MOST: usize = 10_000;
    if n > MOST { Err(Error::arg(name, format!("at most {MOST} layers")).actual(n)) } else { Ok(()) }
}

impl TransformerEncode {
    fn build(&self, src: &Variable, embed_dim: Size, num_heads: Size) -> Result<Vec<Variable>> {
        check("src", src, embed_dim)?;
        check_dropout("dropout", self.dropout)?;
        let block = block!(self, embed_dim, num_heads);
        let masks = [&self.src_additive_mask, &self.src_key_padding_mask];
        let x = block.around("enc_layer_norm1", src, block.attention("src_self_attn", src, src, masks)?)?;
        Ok(vec![block.around("enc_layer_norm2", &x, block.layers(["enc_affine1", "enc_affine2"], &x)?)?])
    }
}

impl TransformerDecode {
    fn build(&self, tgt: &Variable, memory: &Variable, embed_dim: Size, num_heads: Size) -> Result<Vec<Variable>> {
        check("tgt", tgt, embed_dim)?;
        check("memory", memory, embed_dim)?;
        check_dropout("dropout", self.dropout)?;
        let block = block!(self, embed_dim, num_heads);
        let masks = [&self.tgt_additive_mask, &self.tgt_key_padding_mask];
        let x = block.around("dec_layer_norm1", tgt, block.attention("tgt_self_attn", tgt, tgt, masks)?)?;
        let masks = [&self.memory_additive_mask, &self.memory_key_padding_mask];
        let x = block.around("dec_layer_norm2", &x, block.attention("tgt_memory_attn", &x, memory, masks)?)?;
        Ok(vec![block.around("dec_layer_norm3", &x, block.layers(["dec_affine1", "dec_affine2"], &x)?)?])
    }
}

impl Transformer {
    fn build(&self, src: &Variable, tgt: &Variable) -> Result<Vec<Variable>> {
        check("src", src, self.embed_dim)?;
        check("tgt", tgt, self.embed_dim)?;
        check_dropout("dropout", self.dropout)?;
        check_layers("num_encoder_layers", self.num_encoder_layers)?;
        check_layers("num_decoder_layers", self.num_decoder_layers)?;
        let mut memory = src.clone();
        for i in 0..self.num_encoder_layers.0 {
            let name = format!("encoder{i:02}");
            memory = transformer_encode(&name, &memory, self.embed_dim, self.num_heads, self.encoder())?;
        }
        let mut y = tgt.clone();
        for i in 0..self.num_decoder_layers.0 {
            let name = format!("decoder{i:02}");
            y = transformer_decode(&name, &y, &memory, self.embed_dim, self.num_heads, self.decoder())?;
        }
        Ok(vec![y])
    }

    fn encoder(&self) -> TransformerEncode {
        TransformerEncode {
            dim_feedforward: self.dim_feedforward,
            dropout: self.dropout,
            activation: self.activation.clone(),
            src_additive_mask: self.src_additive_mask.clone(),
            src_key_padding_mask: self.src_key_padding_mask.clone(),
            rng: self.rng.clone(),
            add_attn_bias: self.add_attn_bias,
            fix_parameters: self.fix_parameters,
        }
    }

    fn decoder(&self) -> TransformerDecode {
        TransformerDecode {
            dim_feedforward: self.dim_feedforward,
            dropout: self.dropout,
            activation: self.activation.clone(),
            tgt_additive_mask: self.tgt_additive_mask.clone(),
            memory_additive_mask: self.memory_additive_mask.clone(),
            tgt_key_padding_mask: self.tgt_key_padding_mask.clone(),
            memory_key_padding_mask: self.memory_key_padding_mask.clone(),
            rng: self.rng.clone(),
            add_attn_bias: self.add_attn_bias,
            fix_parameters: self.fix_parameters,
        }
    }
}
