//! Leaving the batch's size open: -1 in shapes, which whoever loads the network fills.

use super::message::{FieldValue, Message};
use super::network::{Wiring, order};
use nnrs_kernels::error::{Error, Result};
use std::collections::{HashMap, HashSet};

const SHAPED: [&str; 7] = ["Constant", "Rand", "Randint", "Randn", "RandBinomial", "RandBeta", "RandGamma"];

/// A network with its batch's size left open: the first size of what comes from data, where it is the batch's. Which size that
/// is follows from the functions with a `base_axis`: the axes before it are the batch. A network without one stays as it is.
///
/// # Errors
/// A shape among the arguments whose first size is another one.
pub(crate) fn open(mut network: Message) -> Result<Message> {
    let wiring = Wiring::of(&network)?;
    let order = order(&network, &wiring)?;
    let shape_of: HashMap<String, Vec<i64>> =
        network.list("variable").iter().map(|v| (v.text("name").to_string(), v.sizes("shape").to_vec())).collect();
    let parameters: HashSet<String> = shape_of.keys().filter(|n| wiring.is_parameter(n)).cloned().collect();
    drop(wiring);
    let Some(batch) = batch_size(&network, &order, &shape_of, &parameters) else { return Ok(network) };
    let mut opening = BatchOpener { batch, shapes: shape_of, folded: HashSet::new(), fixed: parameters };
    let mut functions = network.list("function").to_vec();
    for i in order {
        opening.function(&mut functions[i])?;
    }
    let mut variables = network.list("variable").to_vec();
    for v in &mut variables {
        opening.variable(v)?;
    }
    network.set("variable", variables).set("function", functions).set("batch_size", batch);
    Ok(network)
}

/// The message of a function's arguments.
fn argument_field(f: &Message) -> Option<&'static str> {
    let found = f.fields().find(|(spec, _)| spec.one_of && f.message(&spec.name).is_some());
    found.map(|(spec, _)| spec.name.as_str())
}

/// The function's `base_axis`, where it has one.
fn base_axis(f: &Message) -> Option<usize> {
    let p = f.message(argument_field(f)?)?;
    p.spec().find("base_axis").and_then(|_| usize::try_from(p.int("base_axis")).ok())
}

fn batch_size(
    network: &Message,
    order: &[usize],
    shapes: &HashMap<String, Vec<i64>>,
    parameters: &HashSet<String>,
) -> Option<i64> {
    let of = |i: &usize| {
        let f = &network.list("function")[*i];
        let axis = base_axis(f).filter(|a| *a != 0)?;
        let x = f.texts("input").iter().find(|n| !parameters.contains(*n))?;
        let shape = shapes.get(x)?;
        Some(shape[..axis.min(shape.len())].iter().product())
    };
    order.iter().filter_map(of).next_back()
}

struct BatchOpener {
    batch: i64,
    shapes: HashMap<String, Vec<i64>>,
    /// Variables whose axes of the batch are one axis now.
    folded: HashSet<String>,
    /// Variables that have no samples: parameters and what is made of nothing else.
    fixed: HashSet<String>,
}

impl BatchOpener {
    fn function(&mut self, f: &mut Message) -> Result<()> {
        let (inputs, outputs) = (f.texts("input").to_vec(), f.texts("output").to_vec());
        let Some(x) = inputs.iter().find(|n| !self.fixed.contains(*n)) else {
            self.fixed.extend(outputs);
            return Ok(());
        };
        if let Some(axis) = base_axis(f).filter(|a| *a != 1) {
            for name in inputs.iter().chain(&outputs) {
                self.fold(name, axis);
            }
            set_argument(f, |p| _ = p.set("base_axis", 1));
        }
        let kind = f.text("type").to_string();
        match kind.as_str() {
            "Reshape" => self.open_argument(f, 0),
            "Broadcast" => {
                let given = f.message("broadcast_param").map_or(0, |p| p.sizes("shape").len());
                let own = self.shapes.get(x).map_or(1, |s| s.len().max(1));
                self.open_argument(f, given.saturating_sub(own))
            }
            kind if SHAPED.contains(&kind) => self.open_argument(f, 0),
            _ => Ok(()),
        }
    }

    /// The axes before `axis` become one, once for each variable.
    fn fold(&mut self, name: &str, axis: usize) {
        let Some(shape) = self.shapes.get_mut(name).filter(|s| s.len() >= axis) else { return };
        if self.fixed.contains(name) || !self.folded.insert(name.to_string()) {
            return;
        }
        let first = shape[..axis].iter().product();
        shape.splice(..axis, [first]);
    }

    /// Leaves the first size in a function's `shape` open; axes before the batch's are dropped.
    fn open_argument(&self, f: &mut Message, drop: usize) -> Result<()> {
        let Some(field) = argument_field(f) else { return Ok(()) };
        let sizes = f.message(field).map_or(Vec::new(), |p| p.sizes("shape").to_vec());
        let (before, after) = sizes.split_at((drop + 1).min(sizes.len()));
        if before.iter().product::<i64>() != self.batch || before.is_empty() {
            let what = format!("shapes of '{}' that begin with the batch's size {}", f.text("name"), self.batch);
            let e = Error::arg("variable_batch_size", what).actual(format!("{sizes:?}"));
            return Err(e.hint("variable_batch_size=False saves the network for batches of this size alone"));
        }
        let open: Vec<i64> = [-1].iter().chain(after).copied().collect();
        let mut failed = Ok(());
        set_argument(f, |p| failed = p.set_sizes("shape", open).map(|_| ()));
        failed
    }

    fn variable(&self, v: &mut Message) -> Result<()> {
        let name = v.text("name").to_string();
        let Some(shape) = self.shapes.get(&name).filter(|_| !self.fixed.contains(&name)) else { return Ok(()) };
        let mut shape = shape.clone();
        if shape.first() == Some(&self.batch) {
            shape[0] = -1;
        }
        v.set_sizes("shape", shape).map(|_| ())
    }
}

fn set_argument(f: &mut Message, change: impl FnOnce(&mut Message)) {
    let Some(field) = argument_field(f) else { return };
    if let Some(mut p) = f.message(field).cloned() {
        change(&mut p);
        f.set(field, FieldValue::Message(p));
    }
}
