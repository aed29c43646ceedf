//! A function of the graph called directly, on any variables: setup, forward, backward, and what its gradient reads.

use super::FunctionRef;
use super::grad::rule;
use super::node::{FnNode, explain, resolve};
use super::plan::{ForwardMode, Turn, run_arrays, run_backward};
use super::variable::{VarRef, Variable};
use super::{mode, plan};
use crate::function::{Grad, GradMut, GradientPart, InputKind, Needs, Output, Setup, elementwise};
use crate::functions as f;
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use smallvec::SmallVec;
use std::sync::Arc;

impl FunctionRef {
    /// Checks the inputs and gives the outputs their shapes. Neither this function's own inputs and outputs nor the
    /// graph are touched.
    ///
    /// # Errors
    /// Inputs that the function does not take; fewer outputs than it has.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let y = f::exp(&Variable::new([2]))?;
    /// let (x2, y2) = (Variable::from_slice(&[0.0f32], [1].into())?, Variable::new([]));
    /// let exp = y.parent().unwrap();
    /// exp.setup(&[&x2], &[&y2])?;
    /// exp.forward(&[&x2], &[&y2])?;
    /// assert_eq!(y2.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn setup(&self, x: &[&Variable], y: &[&Variable]) -> Result<()> {
        let setup = self.resolve(x)?;
        let hidden = self.hidden(y);
        let y = &with(y, &hidden);
        self.check_outputs(y, setup.y.len())?;
        let mut outputs = y.iter().zip(&setup.y).filter(|(y, shape)| y.shape() != **shape);
        outputs.try_for_each(|(y, shape)| y.reset_shape(shape.clone(), true))
    }

    /// Computes the data of `y` from the data of `x`; both as [`FunctionRef::setup`] left them.
    ///
    /// # Errors
    /// Other shapes than [`FunctionRef::setup`] gave; what the function says; the graph is running already.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let double = f::mul_scalar(&Variable::new([2]), f::MulScalar { val: 2.0, inplace: false })?.parent().unwrap();
    /// let (x, y) = (Variable::from_slice(&[1.0f32, 3.0], [2].into())?, Variable::new([2]));
    /// double.forward(&[&x], &[&y])?;
    /// assert_eq!(y.to_vec::<f32>()?, [2.0, 6.0]);
    /// assert!(double.forward(&[&x], &[&Variable::new([3])]).is_err());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn forward(&self, x: &[&Variable], y: &[&Variable]) -> Result<()> {
        self.run(x, y, false)
    }

    /// As [`FunctionRef::forward`], with the random numbers of the last forward, and without side effects (running
    /// statistics stay).
    ///
    /// # Errors
    /// As [`FunctionRef::forward`].
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let (x, y, again) = (Variable::new([100]), Variable::new([100]), Variable::new([100]));
    /// x.data()?.fill(1.0)?;
    /// let dropout = f::dropout(&x, Default::default())?.parent().unwrap();
    /// dropout.forward(&[&x], &[&y])?;
    /// dropout.recompute(&[&x], &[&again])?;
    /// assert_eq!(again.to_vec::<f32>()?, y.to_vec::<f32>()?);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn recompute(&self, x: &[&Variable], y: &[&Variable]) -> Result<()> {
        self.run(x, y, true)
    }

    /// Computes the gradients of those inputs that need one from the gradients of the outputs: adds them to what is
    /// there where `accumulate` says so (the default, where it is empty), else writes them.
    ///
    /// # Errors
    /// Other shapes than `setup` gave; more flags than inputs.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::from_slice(&[1.0f32, 3.0], [2].into())?.with_need_grad(true);
    /// let y = f::mul2(&x, &x, Default::default())?;
    /// y.forward()?;
    /// y.grad().fill(1.0)?;
    /// let (square, one) = (y.parent().unwrap(), Variable::new([2]));
    /// square.backward(&[&x, &one], &[&y], &[false, false])?; // the gradient of the first input alone
    /// assert_eq!(x.grad().to_vec::<f32>()?, one.to_vec::<f32>()?);
    /// assert!(square.backward(&[&x, &one], &[&y], &[true; 3]).is_err());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn backward(&self, x: &[&Variable], y: &[&Variable], accumulate: &[bool]) -> Result<()> {
        let hidden = self.hidden(y);
        let y = &with(y, &hidden);
        let setup = self.check_shapes(x, y)?;
        if accumulate.len() > x.len() {
            let e = Error::arg("accum", format!("at most a flag for each of the {} inputs", x.len()));
            return Err(e.actual(accumulate.len()).function(self.name()));
        }
        let adds = |i: usize| accumulate.get(i).copied().unwrap_or(true);
        let node = self.node();
        let _turn = Turn::take(std::iter::once(&**node))?;
        let writes = |i: usize| flows(node, i) && node.function.gradient_of(i) != GradientPart::Given;
        let want: Vec<bool> = x.iter().enumerate().map(|(i, x)| x.need_grad_state() && writes(i)).collect();
        let (x, y): (Vec<Variable>, Vec<Variable>) =
            (x.iter().map(|&v| v.clone()).collect(), y.iter().map(|&v| v.clone()).collect());
        let mut added = (0..x.len()).filter(|&i| want[i] && adds(i)).map(|i| x[i].node().grad());
        added.try_for_each(|g| g.fetch()).map_err(|e| self.explain(e, &x))?;
        if let Some(own) = node.function.on_variables() {
            let adds: Vec<bool> = (0..x.len()).map(adds).collect();
            let run = || own.backward(&x, &y, &want, &adds);
            return mode::stored_in(node.context.dtype(), run).map_err(|e| self.explain(e, &x));
        }
        let parts = match setup.as_ref().and_then(|setup| Some((setup, node.needs(setup, &want)?))) {
            Some((setup, needs)) => kernel(node, setup, needs, &x, &y, &want),
            None => mode::inner(node.context.clone(), || rule(node, &detached(self, &x, &y, want)?)),
        };
        for (i, part) in parts.map_err(|e| self.explain(e, &x))?.into_iter().enumerate() {
            let Some(part) = part.filter(|_| x[i].need_grad_state()) else { continue };
            mode::inner(node.context.clone(), || deliver(&x[i].grad(), part, adds(i)))?;
        }
        Ok(())
    }

    /// Whether the gradient of input `i` reads the data of input `j`. False for numbers that are not there.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let (a, b) = (Variable::new([2]), Variable::new([2]));
    /// let (product, sum) = (f::mul2(&a, &b, Default::default())?, f::add2(&a, &b, Default::default())?);
    /// assert!(product.parent().unwrap().grad_reads_input(0, 1) && !product.parent().unwrap().grad_reads_input(0, 0));
    /// assert!(!sum.parent().unwrap().grad_reads_input(0, 1));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn grad_reads_input(&self, i: usize, j: usize) -> bool {
        self.reads(i).is_some_and(|n| j < self.inputs().len() && n.input(j))
    }

    /// Whether the gradient of input `i` reads the data of output `o`.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2]);
    /// assert!(f::tanh(&x)?.parent().unwrap().grad_reads_output(0, 0));
    /// assert!(!f::sin(&x)?.parent().unwrap().grad_reads_output(0, 0));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn grad_reads_output(&self, i: usize, o: usize) -> bool {
        self.reads(i).is_some_and(|n| o < self.outputs().len() && n.output(o))
    }

    /// The input whose data becomes the output's, if there is one: `out` of `scatter_nd`, where no function has made it.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let (rows, at) = (Variable::from_slice(&[9.0f32], [1].into())?, Variable::from_slice(&[1i64], [1, 1].into())?);
    /// let out = Variable::from_slice(&[1.0f32, 2.0, 3.0], [3].into())?;
    /// let y = f::scatter_nd(&rows, &at, Some(&out), f::ScatterNd::default())?;
    /// y.forward()?;
    /// assert_eq!((y.parent().unwrap().rewritten_input(), out.to_vec::<f32>()?), (Some(2), vec![1.0, 9.0, 3.0]));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn rewritten_input(&self) -> Option<usize> {
        self.node().rewrites()
    }

    /// What `backward` reads for the gradient of input `i`; `None` if it has none.
    fn reads(&self, i: usize) -> Option<Needs> {
        let node = self.node();
        let n = node.inputs().len();
        if i >= n || !flows(node, i) || node.function.is_view() {
            return None;
        }
        if let Some(e) = node.function.elementwise() {
            return Some(formula_reads(&elementwise::rules(e, n).backward.uses(i), n));
        }
        let mut want = vec![false; n];
        want[i] = true;
        let needs = node.setup().ok().and_then(|setup| node.needs(&setup, &want));
        Some(needs.unwrap_or_else(|| self.rule_reads(i)))
    }

    /// Whether the gradient of input `i` as [`grad`](super::grad()) builds it reads the data of input `j`.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let (x, w) = (Variable::new([2, 3]), Variable::new([3, 2]));
    /// let affine = f::affine(&x, &w, None, Default::default())?.parent().unwrap();
    /// assert!(affine.rule_reads_input(0, 1) && !affine.rule_reads_input(0, 0));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn rule_reads_input(&self, i: usize, j: usize) -> bool {
        self.reads_by_rule(i).is_some_and(|n| j < self.inputs().len() && n.input(j))
    }

    /// Whether the gradient of input `i` as [`grad`](super::grad()) builds it reads the data of output `o`.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let x = Variable::new([2, 3]);
    /// assert!(f::softmax(&x, Default::default())?.parent().unwrap().rule_reads_output(0, 0));
    /// assert!(!f::sin(&x)?.parent().unwrap().rule_reads_output(0, 0));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn rule_reads_output(&self, i: usize, o: usize) -> bool {
        self.reads_by_rule(i).is_some_and(|n| o < self.outputs().len() && n.output(o))
    }

    fn reads_by_rule(&self, i: usize) -> Option<Needs> {
        let function = &self.node().function;
        let known = function.is_view() || function.elementwise().is_some() || function.on_variables().is_some();
        self.reads(i).map(|n| if known { n } else { self.rule_reads(i) })
    }

    /// What the rule's graph for input `i` has as inputs; all where the rule cannot be asked yet.
    fn rule_reads(&self, i: usize) -> Needs {
        let node = self.node();
        let Ok(setup) = node.setup() else { return Needs::ALL };
        let new = |shapes: &[Shape]| -> Vec<Variable> { shapes.iter().map(|s| Variable::new(s.clone())).collect() };
        let (x, y, gy) = (new(&setup.x), new(&setup.y), new(&setup.y));
        let want = (0..x.len()).map(|k| k == i).collect();
        let Ok(g) = Grad::over(node, setup, x, y, gy, want) else { return Needs::ALL };
        let Ok(parts) = mode::statically(|| rule(node, &g)) else { return Needs::ALL };
        let Some(Some(part)) = parts.get(i) else { return Needs::NONE };
        let functions = plan::collect(&[part.node().clone()]);
        let reads =
            |v: &Variable| part.is(v) || functions.iter().any(|f| f.inputs().iter().any(|x| Arc::ptr_eq(x, v.node())));
        let mask = |list: &[Variable]| {
            list.iter().enumerate().filter(|(_, v)| reads(v)).fold(0, |mask, (k, _)| mask | 1 << k.min(31))
        };
        Needs { x: mask(&g.x), y: mask(&g.y) }
    }

    /// Leaves out the inputs for which `mask` is false, from now on: `add_n` and `mul_n` then work on the others alone,
    /// and no gradient flows to those left out.
    ///
    /// # Errors
    /// Other functions cannot leave inputs out; a mask of another length, or without a true.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let (a, b) = (Variable::from_slice(&[1.0f32], [1].into())?, Variable::from_slice(&[5.0f32], [1].into())?);
    /// let y = f::add_n(&[&a, &b])?;
    /// y.parent().unwrap().set_active_inputs(&[false, true])?;
    /// y.forward()?;
    /// assert_eq!(y.to_vec::<f32>()?, [5.0]);
    /// assert!(f::exp(&a)?.parent().unwrap().set_active_inputs(&[true]).is_err());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_active_inputs(&self, mask: &[bool]) -> Result<()> {
        const NAME: &str = "set_active_input_mask";
        let f = &self.node().function;
        let many = f.def().inputs.iter().any(|i| i.kind == InputKind::Variadic);
        if !many || f.elementwise().is_none() {
            return Err(Error::unsupported(format!("{} cannot leave out inputs", self.name())).function(NAME));
        }
        let n = self.node().all_inputs().len();
        if mask.len() != n || !mask.contains(&true) {
            let e = Error::arg("mask", format!("{n} booleans, one for each input, at least one of them true"));
            return Err(e.actual(format!("{mask:?}")).function(NAME));
        }
        self.node().set_active(mask);
        Ok(())
    }

    fn run(&self, x: &[&Variable], y: &[&Variable], again: bool) -> Result<()> {
        let hidden = self.hidden(y);
        let y = &with(y, &hidden);
        self.check_shapes(x, y)?;
        let node = self.node();
        let _turn = Turn::take(std::iter::once(&**node))?;
        let x = x.iter().map(|v| v.data()).collect::<Result<Vec<NdArray>>>()?;
        let y: Vec<NdArray> = y.iter().map(|v| v.raw_data()).collect();
        run_arrays(node, &x, &y, ForwardMode { again, keep: !again }).map_err(|e| node.explain(e))
    }

    /// The function's own outputs that the caller of it does not see, if `y` are all others.
    fn hidden(&self, y: &[&Variable]) -> Vec<Variable> {
        let n = self.node().function.hidden_outputs();
        let mut own = if n > 0 { self.all_outputs() } else { Vec::new() };
        if n > 0 && own.len() == y.len() + n { own.split_off(y.len()) } else { Vec::new() }
    }

    fn resolve(&self, x: &[&Variable]) -> Result<Arc<Setup>> {
        let node = self.node();
        let inputs: SmallVec<[VarRef; 4]> = x.iter().map(|v| v.node().clone()).collect();
        let shapes: SmallVec<[Shape; 2]> = x.iter().map(|v| v.shape()).collect();
        node.function.def().check_inputs(x.len())?;
        resolve(&node.function, &inputs, shapes).map_err(|e| explain(e, &*node.function, &inputs, None))
    }

    /// The function over these inputs; nothing if it works on variables, whose setup is not to be called just to look.
    fn check_shapes(&self, x: &[&Variable], y: &[&Variable]) -> Result<Option<Arc<Setup>>> {
        let f = &self.node().function;
        if f.on_variables().is_some() {
            f.def().check_inputs(x.len())?;
            return self.check_outputs(y, self.node().outputs().len()).map(|()| None);
        }
        let setup = self.resolve(x)?;
        self.check_outputs(y, setup.y.len())?;
        match setup.y.iter().zip(y).position(|(s, y)| y.shape() != *s) {
            Some(i) => Err(Error::shape(&format!("outputs[{i}]"), format!("shape {}", setup.y[i]))
                .actual(y[i].shape())
                .hint("setup(inputs, outputs) shapes the outputs")
                .function(self.name())),
            None => Ok(Some(setup)),
        }
    }

    fn check_outputs(&self, y: &[&Variable], n: usize) -> Result<()> {
        match y.len() == n {
            true => Ok(()),
            false => Err(Error::arg("outputs", format!("{n} variables")).actual(y.len()).function(self.name())),
        }
    }

    fn explain(&self, e: Error, x: &[Variable]) -> Error {
        let inputs: SmallVec<[VarRef; 4]> = x.iter().map(|v| v.node().clone()).collect();
        explain(e, &*self.node().function, &inputs, self.origin())
    }
}

fn with<'a>(y: &[&'a Variable], hidden: &'a [Variable]) -> Vec<&'a Variable> {
    y.iter().copied().chain(hidden).collect()
}

fn flows(node: &FnNode, i: usize) -> bool {
    node.function.differentiable(i) && node.function.def().input(i).kind != InputKind::Index
}

/// A derivative's inputs are `x.., y, gy`.
fn formula_reads(uses: &[bool], n: usize) -> Needs {
    let x = uses[..n].iter().enumerate().filter(|(_, u)| **u).fold(0, |mask, (j, _)| mask | 1 << j.min(31));
    Needs { x, y: uses[n] as u32 }
}

/// The gradients by the function's own kernel, each in an array of its own.
fn kernel(
    node: &FnNode,
    setup: &Setup,
    needs: Needs,
    x: &[Variable],
    y: &[Variable],
    want: &[bool],
) -> Result<Vec<Option<Variable>>> {
    let place = node.backward_place();
    let compute = node.kernel_dtype(place);
    let arrays = |list: &[Variable]| list.iter().map(Variable::data).collect::<Result<Vec<NdArray>>>();
    let (inputs, outputs) = (arrays(x)?, y.iter().map(Variable::raw_data).collect::<Vec<_>>());
    let gradients: Vec<NdArray> = y.iter().map(Variable::grad).collect();
    let (mut gx, mut parts) = (SmallVec::new(), vec![]);
    for (i, shape) in setup.x.iter().enumerate() {
        let part = NdArray::of_engine(shape.clone());
        let new = |data| GradMut { shape, output: Output::Write, over: false, data };
        let write = || part.overwrite_at(place, compute)?.of(shape.size()).map(new);
        gx.push(want[i].then(write).transpose()?);
        parts.push(want[i].then(|| Variable::from_array(part.clone())));
    }
    let mut read = y.iter().enumerate().filter(|(o, _)| needs.output(*o));
    read.try_for_each(|(_, y)| y.data().map(drop))?;
    if node.saves(setup).is_some() && node.saved.of_call(setup.number).is_none() {
        let y: Vec<NdArray> = setup.y.iter().map(|s| NdArray::of_engine(s.clone())).collect();
        run_arrays(node, &inputs, &y, ForwardMode { again: true, keep: true })?;
    }
    run_backward(node, setup, needs, |i| (&inputs[i], None), |o| &outputs[o], |o| Some(&gradients[o]), || Ok(gx))?;
    Ok(parts)
}

/// What a rule is given, cut off from the history of the variables.
fn detached(f: &FunctionRef, x: &[Variable], y: &[Variable], want: Vec<bool>) -> Result<Grad> {
    // Arrays of their own over the same memory: another thread may give those of the variables another shape.
    let apart = |a: NdArray| Ok(Variable::from_array(a.reshaped(a.shape())?));
    let data = |list: &[Variable]| list.iter().map(|v| apart(v.data()?)).collect::<Result<Vec<_>>>();
    let gy = y.iter().map(|v| apart(v.grad())).collect::<Result<_>>()?;
    Grad::new(f, data(x)?, data(y)?, gy, want)
}

fn deliver(grad: &NdArray, part: Variable, accumulate: bool) -> Result<()> {
    let total = match accumulate && !grad.storage().is_empty() {
        true => f::add2(&Variable::from_array(grad.clone()), &part, f::Add2::default())?,
        false => part,
    };
    grad.copy_from(&total.data()?)
}
