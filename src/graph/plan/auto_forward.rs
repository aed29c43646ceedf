//! Runs one node at once, for auto_forward.

use super::exec::interruptible;
use super::invoke::{self, ForwardMode};
use crate::function::Setup;
use crate::graph::node::FnNode;
use crate::graph::variable::VarRef;
use nnrs_kernels::array::{self, NdArray, alloc};
use nnrs_kernels::error::Result;
use smallvec::SmallVec;
use std::sync::Arc;

/// Computes the outputs of a node that was just set up, whose inputs have (or can get) their data.
pub(crate) fn run_single(node: &Arc<FnNode>, outputs: &[VarRef], setup: &Setup) -> Result<()> {
    node.check_rewrites(std::iter::empty())?;
    let variables = node.inputs();
    let x: SmallVec<[NdArray; 4]> = variables.iter().map(|v| v.data()).collect();
    let y: SmallVec<[NdArray; 2]> = outputs.iter().map(|v| v.data()).collect();
    let _label = alloc::label("output of", node.name());
    let keep = !node.no_grad && variables.iter().any(|v| v.need_grad());
    let how = ForwardMode { again: false, keep };
    let inputs: SmallVec<[&NdArray; 4]> = x.iter().collect();
    let made: SmallVec<[&NdArray; 2]> = y.iter().collect();
    let run = || invoke::run(node, setup, &inputs, &made, how);
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
