//! `scaled_dot_product_attention`: one kernel on the host, which never has all scores in memory; elsewhere a graph of products, a
//! softmax and a dropout.

use crate::function;
use crate::function::array::sum_to;
use crate::function::random::check_dropout;
use crate::function::{Function, Grad, Resolved};
use crate::functions as f;
use crate::graph::{Variable, mode};
use nnrs_kernels::array::Place;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::attention as kernel;
use nnrs_kernels::shape::Shape;

/// Options of [`scaled_dot_product_attention`].
#[derive(Clone, Debug, Default)]
pub struct ScaledDotProductAttention {
    /// What is added to the scores, of a shape that broadcasts to (.., L, S).
    pub attn_mask: Option<Variable>,
    /// Share of the weights that are dropped.
    pub dropout_p: f64,
    /// Query number i sees keys 0 to i alone.
    pub is_causal: bool,
    /// Factor of the scores; 1 / sqrt(E) unless given.
    pub scale: Option<f64>,
}

/// For each query the mean of all values, weighted by how well their keys match: `softmax(scale query key' + attn_mask) value`
/// (Vaswani et al., 2017).
///
/// `query` has shape (.., L, E), `key` (.., S, E), `value` (.., S, E_v), whose leading axes broadcast; it gives
/// (.., L, E_v). On the host memory grows with L and S, not with their product, unless weights are dropped or a gradient of the mask or of a gradient is asked for.
///
/// # Errors
/// Shapes that do not fit; no key, or keys of no numbers; a dropout that is no share.
///
/// ```
/// use nnrs::{functions as f, Variable};
/// let (q, k) = (Variable::from_slice(&[1.0f32, 0.0], [2, 1].into())?, Variable::from_slice(&[9.0f32, 0.0], [2, 1].into())?);
/// let v = Variable::from_slice(&[1.0f32, 3.0], [2, 1].into())?;
/// let y = f::scaled_dot_product_attention([&q, &k, &v], Default::default())?;
/// y.forward()?;
/// assert!((y.to_vec::<f32>()?[0] - 1.0).abs() < 1e-3 && y.to_vec::<f32>()?[1] == 2.0);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn scaled_dot_product_attention(inputs: [&Variable; 3], options: ScaledDotProductAttention) -> Result<Variable> {
    let ScaledDotProductAttention { attn_mask, dropout_p, is_causal, scale } = options;
    check_dropout("dropout_p", dropout_p)?;
    let [q, k, v] = with_one_lead(inputs)?;
    let inputs = [&q, &k, &v];
    let shapes = inputs.map(Variable::shape);
    let sizes = PairSizes::new(&shapes, attn_mask.as_ref().map(Variable::shape))?;
    let scale = scale.unwrap_or_else(|| (sizes.size as f64).powf(-0.5));
    let mask = attn_mask.map(|mask| sizes.with_keys(mask)).transpose()?;
    if dropout_p > 0.0 || mode::context().site().place != Place::Host {
        let weights = ScoredPairs { inputs, mask, is_causal, scale }.weights()?;
        let options = f::Dropout { p: dropout_p, ..Default::default() };
        let weights = if dropout_p > 0.0 { f::dropout(&weights, options)? } else { weights };
        return f::batch_matmul(&weights, inputs[2], f::BatchMatmul::default());
    }
    let [query, key, value] = inputs;
    block_attention(query, key, value, mask.as_ref(), BlockAttention { scale, is_causal })
}

function! {
    /// Attention in blocks. Internal: not in the registry.
    BlockAttention block_attention in Layer
    inputs {
        query: "Array of shape (.., L, E).",
        key: "Array of shape (.., S, E).",
        value: "Array of shape (.., S, E_v).",
        attn_mask [optional]: "What is added to the scores."
    }
    args { scale: f64, "Factor of the scores."; is_causal: bool, "Query number i sees keys 0 to i alone." }
    outputs { y: "Array of shape (.., L, E_v)." }
}

const AXES: &str = "query is (.., L, E), key (.., S, E) and value (.., S, E_v); leading axes are equal or 1";

/// The sizes of a call.
struct PairSizes {
    lead: Shape,
    queries: usize,
    keys: usize,
    size: usize,
    value_size: usize,
}

impl PairSizes {
    fn new([query, key, value]: &[Shape; 3], mask: Option<Shape>) -> Result<PairSizes> {
        let [(lead, queries, size), (k_lead, keys, k_size), (v_lead, values, value_size)] =
            [split("query", query)?, split("key", key)?, split("value", value)?];
        let wrong =
            |name: &str, expected: String, actual: &Shape| Err(Error::shape(name, expected).actual(actual).hint(AXES));
        if k_lead != lead || k_size != size {
            return wrong("key", format!("(.., S, {size}) with the leading axes {lead} of query {query}"), key);
        }
        if v_lead != lead || values != keys {
            return wrong("value", format!("(.., {keys}, E_v) with the leading axes {lead} of query {query}"), value);
        }
        if keys == 0 || size == 0 {
            return wrong("key", "one key of one number at least".to_string(), key);
        }
        let scores: Shape = lead.iter().copied().chain([queries, keys]).collect();
        match mask {
            Some(mask) if mask.broadcast(&scores).as_ref() != Some(&scores) => {
                wrong("attn_mask", format!("a shape that broadcasts to {scores}"), &mask)
            }
            _ => Ok(PairSizes { lead, queries, keys, size, value_size }),
        }
    }

    /// A mask with an element for each key.
    fn with_keys(&self, mask: Variable) -> Result<Variable> {
        let shape = mask.shape();
        match shape.last() {
            Some(&n) if n == self.keys => Ok(mask),
            _ => {
                let lead = &shape[..shape.ndim().saturating_sub(1)];
                let to: Shape = lead.iter().copied().chain([self.keys]).collect();
                f::broadcast(&mask, f::Broadcast { shape: to.iter().map(|&n| n as i64).collect() })
            }
        }
    }

    /// Where the mask of each head begins, and its rows.
    fn places(&self, mask: &Shape) -> kernel::ScoreMask {
        let axes = self.lead.ndim() + 2;
        let of = |axis: usize| (axis + mask.ndim()).checked_sub(axes).map_or(1, |a| mask[a]);
        let has_rows = of(axes - 2) != 1;
        let matrix = self.keys * if has_rows { self.queries } else { 1 };
        let mut starts = vec![0];
        let mut steps: Vec<usize> = Vec::new();
        let mut step = matrix;
        for axis in (0..self.lead.ndim()).rev() {
            steps.push(if of(axis) == 1 { 0 } else { step });
            step *= of(axis);
        }
        for (&n, step) in self.lead.iter().zip(steps.into_iter().rev()) {
            starts = starts.iter().flat_map(|&at| (0..n).map(move |i| at + i * step)).collect();
        }
        kernel::ScoreMask { starts, has_rows }
    }
}

/// The inputs with the leading axes that they broadcast to.
fn with_one_lead(inputs: [&Variable; 3]) -> Result<[Variable; 3]> {
    let shapes = inputs.map(Variable::shape);
    let lead = |s: &Shape| s[..s.ndim().saturating_sub(2)].iter().copied().collect::<Shape>();
    let [q, k, v] = shapes.each_ref().map(lead);
    let wrong = |name: &str, with: &Shape, of: &str, actual: &Shape| {
        let expected = format!("leading axes that broadcast with {with} of {of}");
        Error::shape(name, expected).actual(actual).hint(AXES)
    };
    let both = q.broadcast(&k).ok_or_else(|| wrong("key", &q, "query", &shapes[1]))?;
    let all = both.broadcast(&v).ok_or_else(|| wrong("value", &both, "query and key", &shapes[2]))?;
    let mut wide = inputs.map(Variable::clone);
    for (x, shape) in wide.iter_mut().zip(&shapes) {
        if shape.ndim() < 2 || lead(shape) == all {
            continue;
        }
        let matrix = &shape[shape.ndim() - 2..];
        let ones = vec![1; all.ndim() + 2 - shape.ndim()];
        let sizes = |lead: &[usize], rest: &[usize]| lead.iter().chain(rest).map(|&n| n as i64).collect::<Vec<_>>();
        *x = f::reshape(x, f::Reshape { shape: sizes(&ones, shape), ..Default::default() })?;
        *x = f::broadcast(x, f::Broadcast { shape: sizes(&all, matrix) })?;
    }
    Ok(wide)
}

/// Leading axes, rows, columns.
fn split(name: &str, shape: &Shape) -> Result<(Shape, usize, usize)> {
    match shape[..] {
        [ref lead @ .., rows, columns] => Ok((lead.iter().copied().collect(), rows, columns)),
        _ => Err(Error::shape(name, "two axes or more").actual(shape)),
    }
}

impl Function for BlockAttention {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let shapes = [x[0].clone(), x[1].clone(), x[2].clone()];
        let sizes = PairSizes::new(&shapes, x.get(3).cloned())?;
        let y: Shape = sizes.lead.iter().copied().chain([sizes.queries, sizes.value_size]).collect();
        let call = kernel::ScaledDotProduct {
            heads: sizes.lead.size(),
            queries: sizes.queries,
            keys: sizes.keys,
            size: sizes.size,
            value_size: sizes.value_size,
            scale: self.scale,
            causal: self.is_causal,
            mask: x.get(3).map(|mask| sizes.places(mask)),
        };
        Ok(Resolved::one(y.checked()?, call))
    }

    /// With the weights p: gp = gy v', gs = p (gp - sum(gp p)), gq = scale gs k, gk = scale gs' q, gv = p' gy.
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (inputs, gy) = ([&g.x[0], &g.x[1], &g.x[2]], &g.gy[0]);
        let p = ScoredPairs { inputs, mask: g.x.get(3).cloned(), is_causal: self.is_causal, scale: self.scale }
            .weights()?;
        let product = |a: &Variable, b: &Variable, transpose_a: bool, transpose_b: bool| {
            f::batch_matmul(a, b, f::BatchMatmul { transpose_a, transpose_b })
        };
        let mut gradients: Vec<Option<Variable>> = vec![None; g.x.len()];
        if g.want[2] {
            gradients[2] = Some(product(&p, gy, true, false)?);
        }
        if (0..g.x.len()).any(|i| i != 2 && g.want[i]) {
            let gp = product(gy, inputs[2], false, true)?;
            let axis = Some(vec![p.ndim() as i64 - 1]);
            let mean = f::sum(&(&gp * &p)?, f::Sum { axis, keepdims: true })?;
            let gs = (&p * &(&gp - &mean)?)?;
            let scaled = (&gs * self.scale)?;
            gradients[0] = g.want[0].then(|| product(&scaled, inputs[1], false, false)).transpose()?;
            gradients[1] = g.want[1].then(|| product(&scaled, inputs[0], true, false)).transpose()?;
            if let Some(mask) = g.x.get(3).filter(|_| g.want[3]) {
                gradients[3] = Some(sum_to(&gs, &mask.shape())?);
            }
        }
        Ok(gradients)
    }
}

/// Queries against keys, as a graph.
struct ScoredPairs<'a> {
    inputs: [&'a Variable; 3],
    mask: Option<Variable>,
    is_causal: bool,
    scale: f64,
}

impl ScoredPairs<'_> {
    fn weights(&self) -> Result<Variable> {
        let [q, k, _] = self.inputs;
        let product = f::BatchMatmul { transpose_a: false, transpose_b: true };
        let mut scores = (f::batch_matmul(q, k, product)? * self.scale)?;
        if let Some(mask) = &self.mask {
            scores = (&scores + mask)?;
        }
        if self.is_causal {
            let shape = scores.shape();
            let [.., queries, keys] = shape[..] else { unreachable!("scores have two axes") };
            let hidden = |i: usize| if i % keys > i / keys { f32::NEG_INFINITY } else { 0.0 };
            let unseen: Vec<f32> = (0..queries * keys).map(hidden).collect();
            let lead = vec![1; shape.ndim() - 2];
            let to: Shape = lead.into_iter().chain([queries, keys]).collect();
            scores = (&scores + &Variable::from_slice(&unseen, to)?)?;
        }
        f::softmax(&scores, f::Softmax::default())
    }
}
