//! The second set of registers: values that a run of steps stores in a block and reads again soon need not go through memory.

use super::Register;
use super::compile::BLOCK;
use crate::simd::{Act, RegisterOp};

/// From the step that stores a value to the last that reads it.
#[derive(Clone, Copy)]
struct LiveRange {
    slot: Register,
    from: usize,
    to: usize,
}

/// Gives values of a run of steps the registers: a linear scan, in which the value that is wanted longer gives way.
pub(super) fn assign(steps: &mut [RegisterOp]) {
    let mut taken: Option<LiveRange> = None;
    for span in spans(steps) {
        match taken {
            Some(t) if t.to > span.from && t.to <= span.to => {}
            Some(t) if t.to > span.from => taken = Some(span),
            _ => {
                if let Some(t) = taken.replace(span) {
                    settle(steps, t);
                }
            }
        }
    }
    if let Some(t) = taken {
        settle(steps, t);
    }
}

/// Rewrites the steps of a span.
fn settle(steps: &mut [RegisterOp], span: LiveRange) {
    for s in steps[span.from..=span.to].iter_mut().filter(|s| s.a == span.slot) {
        if let Some(act) = s.act.with_register() {
            s.act = act;
        }
    }
}

/// The values that steps could as well find in registers, in order.
fn spans(steps: &[RegisterOp]) -> Vec<LiveRange> {
    let mut open: Vec<Option<LiveRange>> = Vec::new();
    let mut found = Vec::new();
    for (i, s) in steps.iter().enumerate() {
        let fits = s.act.with_register().is_some();
        for (slot, fits) in [(s.a, fits), (s.b, false), (s.c, false)].into_iter().filter(|(s, _)| s & BLOCK != 0) {
            let k = (slot & !BLOCK) as usize;
            open.resize(open.len().max(k + 1), None);
            match &mut open[k] {
                span if fits && s.act == Act::Store => found.extend(span.replace(LiveRange { slot, from: i, to: i })),
                Some(span) if fits => span.to = i,
                span => *span = None,
            }
        }
    }
    found.extend(open.into_iter().flatten());
    found.sort_unstable_by_key(|s| s.from);
    found
}
