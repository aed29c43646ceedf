//! States of parameters: made with zeros, checked when they come from outside.

use super::params::{SolverParameters, State};
use crate::graph::Variable;
use nnrs_kernels::array::NdArray;
use nnrs_kernels::context::compute_dtype;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, ErrorKind, Result};
use nnrs_kernels::kernel::update::TensorUpdate;

/// The state of a parameter that was never updated.
pub(super) fn fresh(names: &[&str], param: &Variable) -> State {
    let zeros = || Variable::new(param.shape()).with_need_grad(false);
    State { t: 0, arrays: names.iter().map(|n| (n.to_string(), zeros())).collect() }
}

/// Adds a state to the update of a weight of type `weight`. States keep their type; new ones get the one that is computed in.
pub(super) fn add(job: &mut TensorUpdate, a: &NdArray, weight: DType) -> Result<()> {
    let storage = a.storage();
    let is_new = storage.is_empty() || storage.constant().is_some();
    let own = storage.dtype();
    job.modify(a, if own.is_float() && !is_new { own } else { compute_dtype(weight) })
}

/// Where a state from outside goes, and the state in the solver's order of names.
pub(super) fn checked(
    kind: &str,
    own: &[&str],
    entries: &SolverParameters,
    name: &str,
    state: &State,
) -> Result<(usize, State)> {
    let i = entries.position(name).ok_or_else(|| {
        Error::graph(format!("no parameter '{name}', whose state is given"))
            .function("set_states")
            .hint(format!("set weight parameter for '{name}' first, with set_parameters"))
    })?;
    let find = |want: &&str| state.arrays.iter().find(|(n, _)| n == want).cloned();
    let arrays: Vec<_> = own.iter().filter_map(find).collect();
    if arrays.len() != own.len() || arrays.len() != state.arrays.len() {
        return Err(other_names(kind, own, name, state));
    }
    let shape = entries.list[i].param.shape();
    match arrays.iter().find(|(_, v)| v.shape() != shape) {
        Some((key, v)) => {
            Err(bad(format!("a state '{key}' of shape {shape}, as parameter '{name}'")).actual(v.shape()))
        }
        None => Ok((i, State { t: state.t, arrays })),
    }
}

fn bad(expected: String) -> Error {
    Error::new(ErrorKind::Parameter, expected).function("set_states").argument("states")
}

fn other_names(kind: &str, own: &[&str], name: &str, state: &State) -> Error {
    let show = |names: Vec<&str>| format!("[{}]", names.join(", "));
    bad(format!("states {} of {} for parameter '{name}'", show(own.to_vec()), kind))
        .actual(show(state.arrays.iter().map(|(n, _)| n.as_str()).collect()))
        .hint("states belong to one kind of solver; these seem to come from another")
}
