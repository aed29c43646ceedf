//! Tile programs of units: forward, and backward with the forward values computed again inside the tile.

use super::group::Unit;
use super::order::Graph;
use crate::array::Place;
use crate::context::Site;
use crate::cuda::{self, Gpu};
use crate::dtype::DType;
use crate::error::Result;
use crate::function::elementwise::rules;
use crate::function::expr::op::Unary;
use crate::function::expr::ssa::{Id, Ins, MixMap, Ssa};
use crate::function::expr::tile::{Program, Sink, Source};
use std::sync::Arc;

/// A program in the type it computes in.
#[derive(Clone)]
pub(crate) enum AnyProgram {
    F32(Arc<Program<f32>>),
    F64(Arc<Program<f64>>),
    Gpu(&'static Gpu, Arc<cuda::program::Program>),
}

impl AnyProgram {
    pub(crate) fn compile(site: Site, ssa: &Ssa, inputs: usize, outputs: &[Id]) -> AnyProgram {
        let double = site.compute_dtype() == DType::F64;
        match site.place {
            Place::Gpu(gpu) => AnyProgram::Gpu(gpu, Arc::new(cuda::program::Program::compile(double, ssa, outputs))),
            Place::Host if double => AnyProgram::F64(Arc::new(Program::compile(ssa, inputs, 0, outputs))),
            Place::Host => AnyProgram::F32(Arc::new(Program::compile(ssa, inputs, 0, outputs))),
        }
    }

    /// # Safety
    /// As [`Program::run`]; all arrays are where the program is.
    pub(crate) unsafe fn run(&self, n: usize, sources: &[Source], sinks: &[Sink]) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                AnyProgram::F32(p) => p.run(n, sources, sinks, &[]),
                AnyProgram::F64(p) => p.run(n, sources, sinks, &[]),
                AnyProgram::Gpu(gpu, p) => p.run(gpu, n, sources, sinks, &[])?,
            }
        }
        Ok(())
    }
}

/// Rounds a value as storing it in `dtype` would.
pub(crate) fn round(ssa: &mut Ssa, dtype: DType, id: Id) -> Id {
    match dtype {
        DType::F16 => ssa.push(Ins::Unary(Unary::RoundF16, id)),
        DType::BF16 => ssa.push(Ins::Unary(Unary::RoundBF16, id)),
        _ => id,
    }
}

/// A unit's values in one program under construction.
pub(crate) struct Values<'a> {
    g: &'a Graph,
    pub(crate) ssa: Ssa,
    /// Variables that are inputs of the program, in order.
    pub(crate) inputs: Vec<Input>,
    of: MixMap<u32, Id>,
    site: Site,
}

/// What an input of a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Data(u32),
    Grad(u32),
}

impl<'a> Values<'a> {
    pub(crate) fn new(g: &'a Graph, unit: &Unit) -> Values<'a> {
        let site = g.nodes[unit.nodes[0] as usize].f.context.site();
        Values { g, ssa: Ssa::default(), inputs: Vec::new(), of: MixMap::default(), site }
    }

    fn input(&mut self, what: Input) -> Id {
        let k = self.inputs.iter().position(|i| *i == what).unwrap_or_else(|| {
            self.inputs.push(what);
            self.inputs.len() - 1
        });
        self.ssa.push(Ins::Input(k as u32))
    }

    fn data(&mut self, v: u32) -> Id {
        if let Some(&id) = self.of.get(&v) {
            return id;
        }
        let id = self.input(Input::Data(v));
        self.of.insert(v, id);
        id
    }

    /// Adds the forward values of all members; members whose value can be loaded (`stored`) are loaded instead.
    pub(crate) fn forward(&mut self, unit: &Unit, stored: impl Fn(u32) -> bool) {
        for &n in &unit.nodes {
            let node = &self.g.nodes[n as usize];
            if stored(node.y[0]) {
                self.data(node.y[0]);
                continue;
            }
            let args: Vec<Id> = node.x.iter().map(|&x| self.data(x)).collect();
            let f = node.f.function.elementwise().expect("an element-wise unit");
            let value = rules(f, args.len()).forward.apply(&mut self.ssa, &args)[0].expect("one output");
            let value = round(&mut self.ssa, self.site.dtype, value);
            self.of.insert(node.y[0], value);
        }
    }

    pub(crate) fn value(&self, v: u32) -> Id {
        self.of[&v]
    }
}

/// Backward of a unit as one program: gradients of outputs in, gradients of inputs out.
pub(crate) struct UnitBackward {
    pub(crate) ssa: Ssa,
    pub(crate) inputs: Vec<Input>,
    /// Gradients that leave the unit: variable, and the sum of its contributions in order.
    pub(crate) outputs: Vec<(u32, Vec<Id>)>,
    pub(crate) site: Site,
}

impl UnitBackward {
    /// `arrives`: outputs whose gradient comes from outside; `stored`: data that may be loaded; `seen`: gradients within
    /// the unit that somebody may look at.
    pub(crate) fn new(
        g: &Graph,
        unit: &Unit,
        arrives: impl Fn(u32) -> bool,
        stored: impl Fn(u32) -> bool,
        seen: impl Fn(u32) -> bool,
    ) -> UnitBackward {
        let mut v = Values::new(g, unit);
        v.forward(unit, &stored);
        let mut grads: MixMap<u32, Id> = MixMap::default();
        let mut outputs: Vec<(u32, Vec<Id>)> = Vec::new();
        let made: MixMap<u32, ()> = unit.nodes.iter().map(|&n| (g.nodes[n as usize].y[0], ())).collect();
        for &n in unit.nodes.iter().rev() {
            let node = &g.nodes[n as usize];
            let y = node.y[0];
            let inside = grads.remove(&y);
            let Some(gy) = inside.or_else(|| arrives(y).then(|| v.input(Input::Grad(y)))) else { continue };
            if inside.is_some() && seen(y) && g.var(y).flows {
                outputs.push((y, vec![gy]));
            }
            let parts = v.contributions(n, gy);
            for (&x, part) in node.x.iter().zip(parts) {
                let Some(part) = part.filter(|_| g.var(x).flows) else { continue };
                if made.contains_key(&x) {
                    // Parts from outside come first, as they do where each function runs alone.
                    let outside = || arrives(x).then(|| v.input(Input::Grad(x)));
                    let total = match grads.get(&x).copied().or_else(outside) {
                        Some(old) => v.sum(old, part),
                        None => round(&mut v.ssa, v.site.dtype, part),
                    };
                    grads.insert(x, total);
                } else {
                    match outputs.iter_mut().find(|(o, _)| *o == x) {
                        Some((_, list)) => list.push(part),
                        None => outputs.push((x, vec![part])),
                    }
                }
            }
        }
        UnitBackward { ssa: v.ssa, inputs: v.inputs, outputs, site: v.site }
    }

    /// Data that the program loads.
    pub(crate) fn loads(&self) -> Vec<u32> {
        let needed = self.ssa.needed(self.outputs.iter().flat_map(|(_, parts)| parts.iter().copied()));
        let read = |(id, ins): (usize, &Ins)| match ins {
            Ins::Input(k) if needed[id] => match self.inputs[*k as usize] {
                Input::Data(v) => Some(v),
                Input::Grad(_) => None,
            },
            _ => None,
        };
        self.ssa.ins().iter().enumerate().filter_map(read).collect()
    }

    /// The program; output k adds to its old content where `accumulate` says so, and is rounded to the stored type unless
    /// it is `reduced` afterwards. Gives also the inputs in order.
    pub(crate) fn compile(&self, accumulate: &[bool], reduced: &[bool]) -> Result<(AnyProgram, Vec<Input>)> {
        let mut ssa = self.ssa.clone();
        let mut inputs = self.inputs.clone();
        let mut outs = Vec::new();
        for (((v, parts), &acc), &reduced) in self.outputs.iter().zip(accumulate).zip(reduced) {
            let dtype = if reduced { DType::F32 } else { self.site.dtype };
            let mut total = acc.then(|| {
                let k = inputs.iter().position(|i| *i == Input::Grad(*v)).unwrap_or_else(|| {
                    inputs.push(Input::Grad(*v));
                    inputs.len() - 1
                });
                ssa.push(Ins::Input(k as u32))
            });
            for &p in parts {
                let sum = match total {
                    Some(t) => add(&mut ssa, t, p),
                    None => p,
                };
                total = Some(round(&mut ssa, dtype, sum));
            }
            outs.push(total.expect("at least one part"));
        }
        let (ssa, inputs, outs) = prune(ssa, inputs, outs);
        Ok((AnyProgram::compile(self.site, &ssa, inputs.len(), &outs), inputs))
    }
}

fn add(ssa: &mut Ssa, a: Id, b: Id) -> Id {
    ssa.push(Ins::Binary(crate::function::expr::op::Binary::Add, a, b))
}

/// Drops inputs and values that no output needs.
pub(crate) fn prune(ssa: Ssa, inputs: Vec<Input>, outs: Vec<Id>) -> (Ssa, Vec<Input>, Vec<Id>) {
    let needed = ssa.needed(outs.iter().copied());
    let (mut small, mut kept, mut at) = (Ssa::default(), Vec::new(), vec![Id::MAX; needed.len()]);
    for (id, &ins) in ssa.ins().iter().enumerate().filter(|(id, _)| needed[*id]) {
        at[id] = small.push(match ins {
            Ins::Input(k) => {
                kept.push(inputs[k as usize]);
                Ins::Input(kept.len() as u32 - 1)
            }
            other => other.map(|o| at[o as usize]),
        });
    }
    let outs = outs.into_iter().map(|o| at[o as usize]).collect();
    (small, kept, outs)
}

impl Values<'_> {
    fn sum(&mut self, a: Id, b: Id) -> Id {
        let s = add(&mut self.ssa, a, b);
        round(&mut self.ssa, self.site.dtype, s)
    }

    /// What node `n` adds to the gradients of its inputs.
    fn contributions(&mut self, n: u32, gy: Id) -> Vec<Option<Id>> {
        let node = &self.g.nodes[n as usize];
        let f = node.f.function.elementwise().expect("an element-wise unit");
        let rule = rules(f, node.x.len()).backward.clone();
        let wants = node.wants(self.g);
        let mut args: Vec<Id> = node.x.iter().map(|&x| self.data(x)).collect();
        args.push(self.value(node.y[0]));
        args.push(gy);
        let parts = rule.apply(&mut self.ssa, &args);
        parts.into_iter().zip(wants).map(|(p, w)| p.filter(|_| w)).collect()
    }
}
