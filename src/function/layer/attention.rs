//! `multi_head_attention`: a graph of products, a softmax and a dropout, and no function of its own.

use crate::function::random::check_dropout;
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;

/// Options of [`multi_head_attention`].
#[derive(Clone, Debug)]
pub struct MultiHeadAttention {
    /// Number of heads, a divisor of the embedding's size and of the values'.
    pub num_heads: usize,
    /// Share of the weights of attention that are dropped.
    pub dropout: f64,
    /// Biases of query, key, value and output.
    pub biases: [Option<Variable>; 4],
    /// A key and a value more, of E and of E_v numbers, which all queries see.
    pub attn_bias: Option<[Variable; 2]>,
    /// What is added to the scores before the softmax, of shape (L_T, L_S) or one that broadcasts to it.
    pub additive_mask: Option<Variable>,
    /// 1 where a key is not to be seen, else 0; of shape (B, L_S).
    pub key_padding_mask: Option<Variable>,
}

impl Default for MultiHeadAttention {
    fn default() -> Self {
        let biases = [None, None, None, None];
        MultiHeadAttention {
            num_heads: 12,
            dropout: 0.0,
            biases,
            attn_bias: None,
            additive_mask: None,
            key_padding_mask: None,
        }
    }
}

/// Attention of several heads (Vaswani et al., 2017): for each query the mean of all values, weighted by how well their keys
/// match, `softmax(q k' / sqrt(E / heads)) v`, of each head with its own part of the embeddings.
///
/// `query` has shape (L_T, B, D_q), `key` (L_S, B, D_k), `value` (L_S, B, D_v); `weights` are those of query, key, value and
/// output, of shapes (D_q, E), (D_k, E), (D_v, E_v) and (E_v, E_out). It gives the outputs, (L_T, B, E_out), and the weights of
/// attention, (B * heads, L_T, L_S).
///
/// # Errors
/// Shapes that do not fit; a number of heads that does not divide E and E_v.
///
/// ```
/// use nnrs::{functions as f, Variable};
/// let (x, w) = (Variable::new([5, 2, 6]), Variable::new([6, 6]));
/// let options = f::MultiHeadAttention { num_heads: 3, ..Default::default() };
/// let [y, weights] = f::multi_head_attention([&x, &x, &x], [&w, &w, &w, &w], options)?;
/// assert_eq!((y.shape(), weights.shape()), ([5, 2, 6].into(), [6, 5, 5].into()));
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn multi_head_attention(
    inputs: [&Variable; 3],
    weights: [&Variable; 4],
    options: MultiHeadAttention,
) -> Result<[Variable; 2]> {
    attention(inputs, weights, options)
        .map_err(|e| e.part_of("multi_head_attention", |argument| argument == "num_heads"))
}

fn attention(inputs: [&Variable; 3], weights: [&Variable; 4], options: MultiHeadAttention) -> Result<[Variable; 2]> {
    let MultiHeadAttention { biases, attn_bias, additive_mask, key_padding_mask, dropout, num_heads } = options;
    check_dropout("dropout", dropout)?;
    let sizes = AttentionSizes::new(inputs, weights, num_heads)?;
    let [mut q, mut k, mut v] = [0, 1, 2].map(|i| project(inputs[i], weights[i], biases[i].as_ref()));
    q = q.and_then(|q| q * (sizes.head as f64).powf(-0.5));
    let additive_mask = additive_mask.map(|mask| sizes.additive(mask)).transpose()?;
    let mut masks = [additive_mask, key_padding_mask.map(|mask| sizes.padding(mask)).transpose()?];
    if let Some([bias_k, bias_v]) = attn_bias {
        k = sizes.with_one_more(&k?, &bias_k, "attn_bias_k");
        v = sizes.with_one_more(&v?, &bias_v, "attn_bias_v");
        masks = each(masks, |mask| f::pad(&mask, f::Pad { pad_width: vec![0, 1].into(), ..Default::default() }))?;
    }
    let (q, k, v) =
        (sizes.by_head(&q?, sizes.head)?, sizes.by_head(&k?, sizes.head)?, sizes.by_head(&v?, sizes.head_v)?);
    let scores = f::batch_matmul(&q, &k, f::BatchMatmul { transpose_b: true, ..Default::default() })?;
    let mut attention = f::softmax(&sizes.masked(scores, masks)?, f::Softmax::default())?;
    if dropout > 0.0 {
        attention = f::dropout(&attention, f::Dropout { p: dropout, ..Default::default() })?;
    }
    let joined = f::transpose(&f::batch_matmul(&attention, &v, f::BatchMatmul::default())?, swapped())?;
    let joined = f::reshape(&joined, f::Reshape::to(&[sizes.targets, sizes.batch, sizes.head_v * num_heads].into()))?;
    Ok([project(&joined, weights[3], biases[3].as_ref())?, attention])
}

fn project(x: &Variable, w: &Variable, b: Option<&Variable>) -> Result<Variable> {
    f::affine(x, w, b, f::Affine { base_axis: 2 })
}

fn swapped() -> f::Transpose {
    f::Transpose::by(&[1, 0, 2])
}

fn each(masks: [Option<Variable>; 2], to: impl Fn(Variable) -> Result<Variable>) -> Result<[Option<Variable>; 2]> {
    let [additive, padding] = masks.map(|mask| mask.map(&to).transpose());
    Ok([additive?, padding?])
}

/// The sizes of a call.
struct AttentionSizes {
    targets: usize,
    sources: usize,
    batch: usize,
    heads: usize,
    /// Numbers of a query or key in each head.
    head: usize,
    /// Numbers of a value in each head.
    head_v: usize,
}

impl AttentionSizes {
    fn new([query, key, value]: [&Variable; 3], weights: [&Variable; 4], heads: usize) -> Result<AttentionSizes> {
        let (query, key, value) =
            (axes("query", query, "L_T", "D_q")?, axes("key", key, "L_S", "D_k")?, axes("value", value, "L_S", "D_v")?);
        if key[1] != query[1] {
            return Err(
                Error::shape("key", format!("{} sequences side by side, as query {query}", query[1])).actual(&key)
            );
        }
        if value[..2] != key[..2] {
            return Err(Error::shape("value", format!("the steps and sequences of key {key}")).actual(&value));
        }
        let [e, e_k, e_v] =
            [("q_weight", 0), ("k_weight", 1), ("v_weight", 2)].map(|(name, i)| embedding(name, weights[i]));
        let (e, e_k, e_v) = (e?, e_k?, e_v?);
        if e_k != e {
            return Err(Error::shape("k_weight", format!("{e} columns, as q_weight")).actual(weights[1].shape()));
        }
        if heads == 0 || !e.is_multiple_of(heads) || !e_v.is_multiple_of(heads) {
            let expected =
                format!("a divisor of the embeddings' sizes {e} (of queries and keys) and {e_v} (of values)");
            return Err(Error::arg("num_heads", expected).actual(heads));
        }
        let (head, head_v) = (e / heads, e_v / heads);
        Ok(AttentionSizes { targets: query[0], sources: key[0], batch: query[1], heads, head, head_v })
    }

    /// The parts of all heads as matrices, (B * heads, steps, numbers of a head).
    fn by_head(&self, x: &Variable, numbers: usize) -> Result<Variable> {
        let split = [x.shape()[0], self.batch * self.heads, numbers].into();
        f::transpose(&f::reshape(x, f::Reshape::to(&split))?, swapped())
    }

    /// Keys or values, and one more at the end, for each sequence the same.
    fn with_one_more(&self, x: &Variable, more: &Variable, name: &str) -> Result<Variable> {
        let numbers = x.shape()[2];
        if more.size() != numbers {
            return Err(Error::shape(name, format!("{numbers} numbers")).actual(more.shape()));
        }
        let row = f::reshape(more, f::Reshape::to(&[1, 1, numbers].into()))?;
        let rows = f::broadcast(&row, f::Broadcast::to(&[1, self.batch, numbers].into()))?;
        f::concatenate(&[x, &rows], f::Concatenate { axis: Some(0) })
    }

    fn additive(&self, mask: Variable) -> Result<Variable> {
        let (shape, whole) = (mask.shape(), Shape::from([self.targets, self.sources]));
        match shape.broadcast(&whole) {
            Some(joint) if shape == whole && joint == whole => Ok(mask),
            Some(joint) if joint == whole => f::broadcast(&mask, f::Broadcast::to(&whole)),
            _ => Err(Error::shape("additive_mask", format!("shape {whole} (queries, keys)")).actual(shape)),
        }
    }

    fn padding(&self, mask: Variable) -> Result<Variable> {
        let whole = Shape::from([self.batch, self.sources]);
        if mask.shape() != whole {
            return Err(
                Error::shape("key_padding_mask", format!("shape {whole} (sequences, keys)")).actual(mask.shape())
            );
        }
        Ok(mask)
    }

    /// The scores, with the masks.
    fn masked(&self, mut scores: Variable, [additive, padding]: [Option<Variable>; 2]) -> Result<Variable> {
        let shape = scores.shape();
        if let Some(mask) = additive {
            scores = (scores + mask)?;
        }
        let Some(mask) = padding else { return Ok(scores) };
        let keys = shape[2];
        let rows = f::reshape(&mask, f::Reshape::to(&[self.batch, 1, 1, keys].into()))?;
        let rows = f::broadcast(&rows, f::Broadcast::to(&[self.batch, self.heads, self.targets, keys].into()))?;
        let hidden =
            f::constant(f::Constant { val: f64::NEG_INFINITY, shape: shape.iter().map(|&n| n as i64).collect() })?;
        f::r#where(&f::reshape(&rows, f::Reshape::to(&shape))?, &hidden, &scores)
    }
}

/// The shape of an input, which has three axes.
fn axes(name: &str, x: &Variable, steps: &str, numbers: &str) -> Result<Shape> {
    let shape = x.shape();
    match shape.ndim() {
        3 => Ok(shape),
        _ => Err(Error::shape(name, format!("shape ({steps}, B, {numbers})")).actual(shape)),
    }
}

/// The number of columns of a weight.
fn embedding(name: &str, w: &Variable) -> Result<usize> {
    match &w.shape()[..] {
        [_, columns] => Ok(*columns),
        _ => Err(Error::shape(name, "2 axes").actual(w.shape())),
    }
}
