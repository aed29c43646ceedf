//! Gradients as a graph: each function's rule, applied from the outputs back to the inputs.

use super::FunctionRef;
use super::node::FnNode;
use super::plan::collect;
use super::variable::{VarRef, Variable};
use super::{apply, gradient_registry, mode};
use crate::function::elementwise::{self, FormulaFunction};
use crate::function::{Function, Grad, InputKind};
use crate::functions as f;
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::expr::Formula;
use nnrs_kernels::expr::ssa::MixMap;
use std::sync::Arc;

type Grads = MixMap<u64, Variable>;

/// Gradients of the sum of `outputs` (weighted by `seeds`, 1 where `None`) with respect to `inputs`; `None` for an input
/// that is not in their graph, zeros for one that no gradient reaches: gradients end, as in `backward`, at variables
/// that need none. The result is a graph like any other: it can be differentiated again.
///
/// # Errors
/// A seed of another shape than its output; an output of a function that gives places or sizes, such as `nonzero`; a function
/// without a gradient.
///
/// ```
/// use nnrs::{functions as f, graph, Variable};
/// let x = Variable::from_slice(&[2.0f32], [1].into())?.with_need_grad(true);
/// let mut y = f::pow_scalar(&x, f::PowScalar { val: 4.0, inplace: false })?;
/// for _ in 0..3 {
///     y = graph::grad(&[&y], &[&x], &[])?.swap_remove(0).unwrap();
/// }
/// y.forward()?;
/// assert_eq!(y.to_vec::<f32>()?, [48.0]); // 4 * 3 * 2 x
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn grad(outputs: &[&Variable], inputs: &[&Variable], seeds: &[Option<&Variable>]) -> Result<Vec<Option<Variable>>> {
    if seeds.len() > outputs.len() {
        let want = format!("at most {}, one for each output", outputs.len());
        return Err(Error::arg("grad_outputs", want).actual(seeds.len()).function("grad"));
    }
    mode::keeping_history(|| build(outputs, inputs, seeds))
}

fn build(outputs: &[&Variable], inputs: &[&Variable], seeds: &[Option<&Variable>]) -> Result<Vec<Option<Variable>>> {
    let roots: Vec<VarRef> = outputs.iter().map(|v| v.node().clone()).collect();
    for y in outputs.iter().filter(|y| y.need_grad_state()) {
        check_differentiable(y.node())?;
    }
    let nodes = collect(&roots);
    let inside = Inside::new(&nodes, &roots);
    let wanted: Vec<Option<u64>> = inputs.iter().map(|x| inside.find(x.node())).collect();
    let needed =
        paths(&nodes, inputs.iter().zip(&wanted).filter(|(x, _)| x.need_grad_state()).filter_map(|(_, key)| *key));
    let mut grads = Grads::default();
    for (i, y) in outputs.iter().enumerate() {
        let seed = match seeds.get(i).copied().flatten() {
            Some(s) if s.shape() == y.shape() => s.clone(),
            Some(s) => {
                return Err(Error::shape("grad_outputs", format!("shape {}", y.shape()))
                    .actual(s.shape())
                    .function("grad"));
            }
            None => constant(1.0, y)?,
        };
        add(&mut grads, key(y.node()), seed)?;
    }
    for node in nodes.iter().rev().filter(|n| needed.contains_key(&n.id)) {
        spread(node, &needed, &mut grads)?;
    }
    let result = |(x, key): (&&Variable, &Option<u64>)| match key {
        Some(key) => grads.get(key).map_or_else(|| zeros(x), computed).map(Some),
        None => Ok(None),
    };
    inputs.iter().zip(&wanted).map(result).collect()
}

/// Where a variable's gradient is kept: leaves that are one variable to the user (a parameter in several places, an
/// unlinked copy) share one.
fn key(v: &VarRef) -> u64 {
    if v.lock().parent.is_some() { v.id } else { v.identity() }
}

/// The variables of a graph.
struct Inside {
    keys: MixMap<u64, ()>,
    /// By the identity that users see.
    by_identity: MixMap<u64, u64>,
}

impl Inside {
    fn new(nodes: &[Arc<FnNode>], roots: &[VarRef]) -> Inside {
        let of_node = |n: &Arc<FnNode>| n.inputs().into_iter().chain(n.outputs()).collect::<Vec<_>>();
        let all = nodes.iter().flat_map(of_node).chain(roots.iter().cloned());
        let (mut keys, mut by_identity) = (MixMap::default(), MixMap::default());
        for v in all {
            keys.insert(key(&v), ());
            by_identity.insert(v.identity(), key(&v));
        }
        Inside { keys, by_identity }
    }

    /// The key of a variable, or of what is the same variable to the user.
    fn find(&self, v: &VarRef) -> Option<u64> {
        let own = key(v);
        if self.keys.contains_key(&own) { Some(own) } else { self.by_identity.get(&v.identity()).copied() }
    }
}

/// A gradient as the result of a function, which can run: what a rule passes on as it is may be a leaf.
fn computed(g: &Variable) -> Result<Variable> {
    if g.parent().is_some() { Ok(g.clone()) } else { f::identity(g) }
}

fn zeros(like: &Variable) -> Result<Variable> {
    let shape = like.shape().iter().map(|&n| n as i64).collect();
    f::constant(f::Constant { val: 0.0, shape })
}

/// The gradients of the inputs `x` of `f` by the rule that comes with it, even where another one is registered.
#[cfg(feature = "python")]
pub(crate) fn by_own_rule(
    f: &FunctionRef,
    x: Vec<Variable>,
    y: Vec<Variable>,
    gy: Vec<Variable>,
) -> Result<Vec<Option<Variable>>> {
    let node = f.node();
    let want = (0..x.len()).map(|i| differentiable(node, i)).collect();
    let g = Grad::new(f, x, y, gy, want)?;
    mode::in_context(node.context.clone(), || mode::keeping_history(|| rule(node, &g)))
}

/// A variable of `like`'s shape with one number for all elements.
fn constant(v: f64, like: &Variable) -> Result<Variable> {
    let a = NdArray::of_engine(like.shape());
    a.fill(v)?;
    Ok(Variable::from_array(a).with_need_grad(false))
}

/// Ids of the functions, and keys of the variables that need a gradient, on the way from the inputs' keys.
fn paths(nodes: &[Arc<FnNode>], inputs: impl Iterator<Item = u64>) -> MixMap<u64, ()> {
    inherit(nodes);
    let mut on: MixMap<u64, ()> = inputs.map(|key| (key, ())).collect();
    for n in nodes {
        let reaches = |(i, x): (usize, &VarRef)| is_on(&on, x) && differentiable(n, i);
        if n.inputs().iter().enumerate().any(reaches) {
            on.insert(n.id, ());
            on.extend(n.outputs().iter().filter(|y| y.need_grad()).map(|y| (key(y), ())));
        }
    }
    on
}

fn is_on(on: &MixMap<u64, ()>, x: &VarRef) -> bool {
    x.need_grad() && on.contains_key(&key(x))
}

/// Brings the inherited flags up to date: an input's may have been set since the graph was made.
fn inherit(nodes: &[Arc<FnNode>]) {
    for n in nodes {
        let inherited = n.inputs().iter().any(|x| x.need_grad());
        n.outputs().iter().for_each(|y| y.lock().inherit(inherited));
    }
}

/// The gradient of `y` is asked for: an error if its function gives places or sizes.
pub(crate) fn check_differentiable(y: &VarRef) -> Result<()> {
    match y.parent().filter(|n| n.function.refuses_grad()) {
        Some(n) => Err(n.explain(Error::graph("this output is not differentiable: it consists of places or sizes"))),
        None => Ok(()),
    }
}

fn differentiable(n: &FnNode, i: usize) -> bool {
    n.function.differentiable(i) && n.function.def().input(i).kind != InputKind::Index
}

fn add(grads: &mut Grads, id: u64, part: Variable) -> Result<()> {
    let total = match grads.remove(&id) {
        Some(old) => f::add2(&old, &part, f::Add2::default())?,
        None => part,
    };
    grads.insert(id, total);
    Ok(())
}

/// Adds what `node` passes from its outputs' gradients to its inputs.
fn spread(node: &Arc<FnNode>, needed: &MixMap<u64, ()>, grads: &mut Grads) -> Result<()> {
    let outputs = node.outputs();
    if !outputs.iter().any(|y| grads.contains_key(&key(y))) {
        return Ok(());
    }
    if !node.is_set_up_now()? {
        let changed = Error::graph("a shape of this function's inputs or outputs has changed since it was set up");
        return Err(node.explain(changed.hint("run forward() before nn.grad, or build the graph again")));
    }
    let (x, y): (Vec<Variable>, Vec<Variable>) = (
        node.inputs().into_iter().map(Variable::handle).collect(),
        outputs.into_iter().map(Variable::handle).collect(),
    );
    let gy = y
        .iter()
        .map(|y| grads.get(&key(y.node())).cloned().map_or_else(|| constant(0.0, y), Ok))
        .collect::<Result<Vec<_>>>()?;
    let want = x.iter().enumerate().map(|(i, x)| is_on(needed, x.node()) && differentiable(node, i)).collect();
    let ids: Vec<u64> = x.iter().map(|x| key(x.node())).collect();
    let g = Grad::over(node, node.setup()?, x, y, gy, want)?;
    let parts = mode::in_context(node.context.clone(), || chosen_rule(node, &g));
    for ((id, part), want) in ids.into_iter().zip(parts.map_err(|e| node.explain(e))?).zip(g.want) {
        if let Some(part) = part.filter(|_| want) {
            add(grads, id, part)?;
        }
    }
    Ok(())
}

/// The gradient rule of a node: a registered one, its own, or derived from its formula.
fn chosen_rule(node: &Arc<FnNode>, g: &Grad) -> Result<Vec<Option<Variable>>> {
    gradient_registry::registered(&FunctionRef::new(node.clone()), g).unwrap_or_else(|| rule(node, g))
}

/// What a function's `grad` gives: something for each input.
pub(crate) fn own_rule(f: &dyn Function, g: &Grad) -> Result<Vec<Option<Variable>>> {
    let parts = graph_of_gradients(f, g)?;
    let wrong = |want: String| Error::new(ErrorKind::Argument, want).function(f.def().snake);
    if parts.len() != g.x.len() {
        let want = format!("`grad` to give {}, one for each input (None where there is no gradient)", g.x.len());
        return Err(wrong(want).actual(parts.len()));
    }
    for (i, (part, x)) in parts.iter().zip(&g.x).enumerate() {
        let (Some(part), shape) = (part, x.shape()) else { continue };
        if part.shape() != shape {
            let want = format!("`grad` to give a gradient of shape {shape} for input {i}");
            return Err(wrong(want).actual(part.shape()));
        }
    }
    Ok(parts)
}

fn graph_of_gradients(f: &dyn Function, g: &Grad) -> Result<Vec<Option<Variable>>> {
    if !f.widens_grad() || g.context.dtype() == g.context.compute_dtype() {
        return f.grad(g);
    }
    let parts = mode::in_context(Arc::new(g.context.widened()?), || f.grad(g))?;
    // Stored as gradients are.
    let stored = |part: &Variable| f::mul_scalar(part, f::MulScalar { val: 1.0, inplace: false });
    mode::in_context(g.context.clone(), || parts.iter().map(|p| p.as_ref().map(stored).transpose()).collect())
}

/// The gradient rule that comes with a function.
pub(crate) fn rule(node: &FnNode, g: &Grad) -> Result<Vec<Option<Variable>>> {
    let Some(e) = node.function.elementwise() else { return own_rule(&*node.function, g) };
    let backward = &elementwise::rules(e, g.x.len()).backward;
    let inputs: Vec<&Variable> = g.x.iter().chain(&g.y).chain(&g.gy).collect();
    let mut parts = Vec::new();
    for (i, x) in g.x.iter().enumerate() {
        let wanted = g.want[i] && backward.outputs()[i].is_some();
        parts.push(if wanted { Some(part(backward, i, &inputs, x)?) } else { None });
    }
    Ok(parts)
}

fn part(backward: &Formula, i: usize, inputs: &[&Variable], x: &Variable) -> Result<Variable> {
    let formula = backward.only(i);
    let used: Vec<usize> = formula.uses(0).iter().enumerate().filter(|(_, u)| **u).map(|(k, _)| k).collect();
    let picked: Vec<&Variable> = used.iter().map(|&k| inputs[k]).collect();
    let gy = inputs[inputs.len() - 1];
    if picked.is_empty() {
        let value = formula.eval(&vec![0.0; inputs.len()])[0].unwrap_or(0.0);
        return constant(value, x);
    }
    let full = apply(Arc::new(FormulaFunction::new(formula.keep(&used))), &picked, None)?.swap_remove(0);
    let full = if full.shape() == gy.shape() { full } else { f::broadcast(&full, f::Broadcast::to(&gy.shape()))? };
    crate::function::array::sum_to(&full, &x.shape())
}
