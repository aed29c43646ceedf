//! Runs one node at once: auto_forward, and values that are computed again.

use super::exec::{Alive, How, call_function, interruptible, source};
use super::program::AnyProgram;
use crate::function::Setup;
use crate::function::elementwise::{Rules, rules};
use crate::graph::node::FnNode;
use crate::graph::variable::VarRef;
use nnrs_kernels::array::{self, NdArray, Place, alloc};
use nnrs_kernels::context::Site;
use nnrs_kernels::cuda;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::ssa::{Id, Ins, Ssa};
use nnrs_kernels::fork;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::tile::{Sink, Source, Walk};
use smallvec::SmallVec;
use std::sync::Arc;

/// Computes the outputs of a node that was just set up for `sizes`, whose inputs have (or can get) their data.
pub(crate) fn run_single(node: &Arc<FnNode>, outputs: &[VarRef], setup: &Setup) -> Result<()> {
    node.check_rewrites(std::iter::empty())?;
    let inputs = node.inputs();
    let x: SmallVec<[NdArray; 4]> = inputs.iter().map(|v| v.data()).collect();
    let y: SmallVec<[NdArray; 2]> = outputs.iter().map(|v| v.data()).collect();
    let _label = alloc::label("output of", node.name());
    let keep = !node.no_grad && inputs.iter().any(|v| v.need_grad());
    let run = || run_sized(node, setup, &x, &y, How { again: false, keep });
    let unfinished = |e| {
        y.iter().for_each(|y| drop(y.release()));
        e
    };
    interruptible(run, unfinished).map_err(|e| node.explain(e))?;
    x.iter().for_each(NdArray::note_read);
    y.iter().for_each(|y| y.storage().watch()); // to look at it is no change
    node.set_ran(array::now());
    Ok(())
}

/// Runs a node's function on arrays.
pub(crate) fn run_arrays(node: &FnNode, x: &[NdArray], y: &[NdArray], how: How) -> Result<()> {
    let xs: SmallVec<[Shape; 4]> = x.iter().map(|a| a.shape()).collect();
    let ys: SmallVec<[Shape; 2]> = y.iter().map(|a| a.shape()).collect();
    run_sized(node, &*node.check_call(&xs, &ys)?, x, y, how)
}

fn run_sized(node: &FnNode, setup: &Setup, x: &[NdArray], y: &[NdArray], how: How) -> Result<()> {
    if node.function.is_view() {
        return y[0].share_content(&x[0]);
    }
    if let Some(f) = node.function.elementwise() {
        return run_elementwise(&rules(f, x.len()), x, &y[0], setup, node.context.site());
    }
    let x: SmallVec<[&NdArray; 4]> = x.iter().collect();
    let y: SmallVec<[&NdArray; 2]> = y.iter().collect();
    call_function(node, setup, &x, &y, how)
}

fn run_elementwise(rules: &Rules, x: &[NdArray], y: &NdArray, setup: &Setup, site: Site) -> Result<()> {
    let dtype = site.dtype;
    let shape = &setup.y[0];
    let program = forward_program(rules, x.len(), site);
    let mut alive = Alive::new();
    let mut sources: SmallVec<[Source; 4]> = SmallVec::new();
    for (a, from) in x.iter().zip(&setup.x) {
        sources.push(source(a, from.size(), site, || Walk::new(from, shape), &mut alive)?);
    }
    let out = y.overwrite_at(site.place, dtype)?.of(shape.size())?;
    // SAFETY: arrays have the sizes of shapes that fit together; `alive` and `out` keep their memory.
    unsafe { program.run(shape.size(), &sources, &[Sink { ptr: out.address() as *mut u8, dtype }]) }
}

fn forward_program(rules: &Rules, inputs: usize, site: Site) -> AnyProgram {
    let make = || {
        let mut ssa = Ssa::default();
        let args: Vec<Id> = (0..inputs).map(|k| ssa.push(Ins::Input(k as u32))).collect();
        let out = rules.forward.apply(&mut ssa, &args)[0].expect("one output");
        AnyProgram::compile(site, &ssa, inputs, &[out])
    };
    match (site.place, site.dtype) {
        (Place::Gpu(gpu), _) => {
            let double = site.compute_dtype() == DType::F64;
            AnyProgram::Gpu(gpu, cuda::program::Program::of(double, &rules.forward))
        }
        (Place::Host, DType::F64) => fork::fill(&rules.double, make).clone(),
        (Place::Host, _) => fork::fill(&rules.single, make).clone(),
    }
}
