//! What the memory of a backward run can be saved by: data that ends before the step of the function that made it, and
//! gradients that repeat themselves and are kept without the repetitions.

use super::{BackwardAction, BackwardCall, BackwardStep, GradientWrite};
use crate::graph::plan::order::Graph;
use nnrs_kernels::shape::Shape;
use smallvec::SmallVec;

/// Frees data right after its last reading.
pub(super) fn bring_forward(g: &Graph, steps: &mut [BackwardStep]) {
    let mut last_read: Vec<Option<usize>> = vec![None; g.vars.len()];
    for (s, step) in steps.iter().enumerate() {
        let again = step.again.iter().flat_map(|a| a.what.reads(&g.nodes[a.what.node() as usize].reads(g)));
        step.reads.iter().copied().chain(again).for_each(|v| last_read[v as usize] = Some(s));
        let node = &g.nodes[step.what.node() as usize];
        if step.what.saves() && node.f.saved.of_call(node.setup.number).is_none() {
            node.x.iter().for_each(|&v| last_read[v as usize] = Some(s)); // it runs again for what it saves
        }
    }
    for s in 0..steps.len() {
        // A variable that shares its array has no last reading of its own.
        let earlier = |v: u32| last_read[v as usize].filter(|&e| e < s && !g.var(v).var.is_shared());
        let (early, here): (SmallVec<[u32; 2]>, _) =
            steps[s].free_data.iter().copied().partition(|&v| earlier(v).is_some());
        steps[s].free_data = here;
        early.iter().filter_map(|&v| Some((v, earlier(v)?))).for_each(|(v, e)| steps[e].free_data.push(v));
    }
}

/// For each variable the shape of its gradient without repetitions, if one function gives it, it is not observed, and the
/// one unit that reads it is a loop over elements, which repeats it on the way.
pub(super) fn narrow(g: &Graph, clear_buffer: bool, steps: &[BackwardStep]) -> Vec<Option<Shape>> {
    let mut shapes = vec![None; g.vars.len()];
    let mut parts = vec![0; g.vars.len()];
    steps.iter().flat_map(|s| s.what.targets()).for_each(|t| parts[t.slot as usize] += 1);
    let looped = |v: u32| g.var(v).producer.is_some_and(|n| g.nodes[n as usize].f.function.elementwise().is_some());
    for step in steps {
        let BackwardAction::Call(BackwardCall { node, needs: Some(_), targets, .. }) = &step.what else { continue };
        let Some(t) = targets[0].filter(|t| t.how == GradientWrite::Write && parts[t.slot as usize] == 1) else {
            continue;
        };
        let v = g.var(t.slot);
        if !v.root && !v.grad_is_visible(clear_buffer) && looped(t.slot) {
            shapes[t.slot as usize] = g.nodes[*node as usize].setup.kernels().and_then(|call| call.grad_repeats());
        }
    }
    shapes
}
