//! Tile programs of units: forward, and backward with the forward values computed again inside the tile.

use super::group::Unit;
use super::order::Graph;
use crate::function::elementwise::{Rules, rules};
use nnrs_kernels::array::Place;
use nnrs_kernels::array::Site;
use nnrs_kernels::dtype::DType;
use nnrs_kernels::expr::op::Unary;
use nnrs_kernels::expr::ssa::{Id, Ins, MixMap, Ssa};
use nnrs_kernels::fork::at_fork;
use nnrs_kernels::tile::AnyProgram;
use smallvec::SmallVec;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

/// Rounds a value as storing it in `dtype` would.
pub(crate) fn round(ssa: &mut Ssa, dtype: DType, id: Id) -> Id {
    match dtype {
        DType::F16 => ssa.push(Ins::Unary(Unary::RoundF16, id)),
        DType::BF16 => ssa.push(Ins::Unary(Unary::RoundBF16, id)),
        _ => id,
    }
}

/// What an input of a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Data(u32),
    Grad(u32),
}

impl Input {
    fn map(self, f: impl FnOnce(u32) -> u32) -> Input {
        match self {
            Input::Data(v) => Input::Data(f(v)),
            Input::Grad(v) => Input::Grad(f(v)),
        }
    }
}

/// What matters of a variable for the program of a unit.
const STORED: u64 = 1;
const FLOWS: u64 = 2;
const ARRIVES: u64 = 4;
const SEEN: u64 = 8;

/// A unit with numbers of its own for its variables: units that look alike share their programs.
struct Local {
    nodes: Vec<LocalNode>,
    /// The graph's numbers of its variables.
    vars: Vec<u32>,
    flags: Vec<u64>,
    site: Site,
}

struct LocalNode {
    rules: Arc<Rules>,
    x: SmallVec<[u32; 2]>,
    y: u32,
    /// Of which inputs the gradient is wanted.
    wants: SmallVec<[bool; 4]>,
}

impl Local {
    fn new(g: &Graph, unit: &Unit, flags: impl Fn(u32) -> u64) -> Local {
        let site = g.nodes[unit.nodes[0] as usize].f.context.site();
        let mut local = Local { nodes: Vec::with_capacity(unit.nodes.len()), vars: vec![], flags: vec![], site };
        let mut of = |v: u32| {
            let place = local.vars.iter().rposition(|l| *l == v); // mostly one of the last
            place.unwrap_or_else(|| {
                local.vars.push(v);
                local.vars.len() - 1
            }) as u32
        };
        for node in unit.nodes.iter().map(|&n| &g.nodes[n as usize]) {
            let f = node.f.function.elementwise().expect("an element-wise unit");
            let x = node.x.iter().map(|&x| of(x)).collect();
            let (y, rules, wants) = (of(node.y[0]), rules(f, node.x.len()), node.wants(g));
            local.nodes.push(LocalNode { rules, x, y, wants });
        }
        local.flags = local.vars.iter().map(|&v| flags(v)).collect();
        local
    }

    /// Equal for units whose programs are the same.
    fn key(&self, kind: u64, more: &[u32]) -> UnitKey {
        let mut key = Vec::with_capacity(3 + 5 * self.nodes.len() + self.flags.len() + more.len());
        key.extend([kind, self.site.dtype as u64, self.nodes.len() as u64]);
        for node in &self.nodes {
            let wants = node.wants.iter().fold(1, |mask, &w| mask << 1 | w as u64);
            key.extend([Arc::as_ptr(&node.rules) as usize as u64, wants, node.x.len() as u64, node.y as u64]);
            key.extend(node.x.iter().map(|&x| x as u64));
        }
        key.extend(&self.flags);
        key.extend(more.iter().map(|&v| v as u64));
        key.into()
    }

    fn has(&self, v: u32, flag: u64) -> bool {
        self.flags[v as usize] & flag != 0
    }
}

type UnitKey = Box<[u64]>;

/// What is known of units that look alike.
#[derive(Clone)]
enum CachedUnit {
    Forward(Arc<ForwardProgram>),
    Backward(Arc<BackwardProgram>),
}

static KNOWN: LazyLock<Mutex<MixMap<UnitKey, CachedUnit>>> = LazyLock::new(Default::default);
/// Units kept at most; scripts that make ever-changing functions must not fill the memory.
const MOST: usize = 2048;

fn known() -> MutexGuard<'static, MixMap<UnitKey, CachedUnit>> {
    KNOWN.lock().unwrap_or_else(|e| e.into_inner())
}

at_fork!(Hold, known());

/// What is known of a unit, or what `make` makes of it. Programs for a GPU are made anew: they hold its memory.
fn remember(site: Site, key: UnitKey, make: impl FnOnce() -> CachedUnit) -> CachedUnit {
    if site.place != Place::Host {
        return make();
    }
    if let Some(found) = known().get(&key) {
        return found.clone();
    }
    let made = make();
    let mut known = known();
    if known.len() >= MOST {
        known.clear();
    }
    known.insert(key, made.clone());
    made
}

/// A unit's values in one program under construction.
struct Values<'a> {
    unit: &'a Local,
    ssa: Ssa,
    /// Variables that are inputs of the program, in order.
    inputs: Vec<Input>,
    of: Vec<Option<Id>>,
    /// The members whose values are computed here.
    computed: Vec<(u32, Id)>,
}

impl<'a> Values<'a> {
    fn new(unit: &'a Local) -> Values<'a> {
        let (of, computed) = (vec![None; unit.vars.len()], Vec::new());
        Values { unit, ssa: Ssa::default(), inputs: Vec::new(), of, computed }
    }

    fn input(&mut self, what: Input) -> Id {
        let k = self.inputs.iter().position(|i| *i == what).unwrap_or_else(|| {
            self.inputs.push(what);
            self.inputs.len() - 1
        });
        self.ssa.push(Ins::Input(k as u32))
    }

    fn data(&mut self, v: u32) -> Id {
        if let Some(id) = self.of[v as usize] {
            return id;
        }
        let id = self.input(Input::Data(v));
        self.of[v as usize] = Some(id);
        id
    }

    /// Adds the forward values of all members; members whose value can be loaded are loaded instead.
    fn forward(&mut self) {
        for (n, node) in self.unit.nodes.iter().enumerate() {
            if self.unit.has(node.y, STORED) {
                self.data(node.y);
                continue;
            }
            let args: SmallVec<[Id; 4]> = node.x.iter().map(|&x| self.data(x)).collect();
            let value = node.rules.forward.apply(&mut self.ssa, &args)[0].expect("one output");
            let value = round(&mut self.ssa, self.unit.site.dtype, value);
            self.of[node.y as usize] = Some(value);
            self.computed.push((n as u32, value));
        }
    }

    fn sum(&mut self, a: Id, b: Id) -> Id {
        let s = add(&mut self.ssa, a, b);
        round(&mut self.ssa, self.unit.site.dtype, s)
    }

    /// What a member adds to the gradients of its inputs.
    fn contributions(&mut self, node: &LocalNode, gy: Id) -> SmallVec<[Option<Id>; 4]> {
        let mut args: SmallVec<[Id; 4]> = node.x.iter().map(|&x| self.data(x)).collect();
        args.extend([self.data(node.y), gy]);
        let parts = node.rules.backward.apply(&mut self.ssa, &args);
        parts.into_iter().zip(&node.wants).map(|(p, &w)| p.filter(|_| w)).collect()
    }
}

/// A unit's forward pass.
struct ForwardProgram {
    program: AnyProgram,
    inputs: Vec<u32>,
    /// Their addresses are part of the key.
    _rules: Vec<Arc<Rules>>,
}

/// The program that runs a unit forward so that `sinks` are made, and what it loads; members that are `stored` are loaded.
pub(crate) fn forward_program(
    g: &Graph,
    unit: &Unit,
    stored: impl Fn(u32) -> bool,
    sinks: &[u32],
) -> (AnyProgram, Vec<u32>) {
    let local = Local::new(g, unit, |v| if stored(v) { STORED } else { 0 });
    let place = |v: &u32| local.vars.iter().position(|l| l == v).expect("a member's output") as u32;
    let outputs: SmallVec<[u32; 4]> = sinks.iter().map(place).collect();
    let known =
        remember(local.site, local.key(0, &outputs), || CachedUnit::Forward(Arc::new(make_forward(&local, &outputs))));
    let CachedUnit::Forward(found) = known else { unreachable!("the key says forward") };
    (found.program.clone(), found.inputs.iter().map(|&v| local.vars[v as usize]).collect())
}

fn make_forward(local: &Local, outputs: &[u32]) -> ForwardProgram {
    let mut values = Values::new(local);
    values.forward();
    let outs = outputs.iter().map(|&y| values.data(y)).collect();
    let (ssa, inputs, outs) = prune(values.ssa, values.inputs, outs);
    let program = AnyProgram::compile(local.site, &ssa, inputs.len(), &outs);
    let of = |i: &Input| match *i {
        Input::Data(v) | Input::Grad(v) => v,
    };
    let rules = local.nodes.iter().map(|n| n.rules.clone()).collect();
    ForwardProgram { program, inputs: inputs.iter().map(of).collect(), _rules: rules }
}

/// Backward of a unit as one program: gradients of outputs in, gradients of inputs out.
pub(crate) struct UnitBackward {
    program: Arc<BackwardProgram>,
    vars: Vec<u32>,
    pub(crate) site: Site,
}

/// As [`UnitBackward`], for all units that look alike.
struct BackwardProgram {
    ssa: Ssa,
    inputs: Vec<Input>,
    /// Gradients that leave the unit: variable, and the sum of its contributions in order.
    outputs: Vec<(u32, Vec<Id>)>,
    loads: Vec<u32>,
    /// The members whose values are computed again.
    remade: Vec<u32>,
    /// Which outputs accumulate and which are reduced, the program for that, and what it loads.
    compiled: Mutex<SmallVec<[(Vec<[bool; 2]>, AnyProgram, Vec<Input>); 2]>>,
    /// Their addresses are part of the key.
    _rules: Vec<Arc<Rules>>,
}

impl UnitBackward {
    /// `arrives`: outputs whose gradient comes from outside; `stored`: data that may be loaded; `seen`: gradients within
    /// the unit that are observed.
    pub(crate) fn new(
        g: &Graph,
        unit: &Unit,
        arrives: impl Fn(u32) -> bool,
        stored: impl Fn(u32) -> bool,
        seen: impl Fn(u32) -> bool,
    ) -> UnitBackward {
        let flag = |is: bool, flag: u64| if is { flag } else { 0 };
        let flags = |v: u32| {
            flag(stored(v), STORED) | flag(g.var(v).flows, FLOWS) | flag(arrives(v), ARRIVES) | flag(seen(v), SEEN)
        };
        let local = Local::new(g, unit, flags);
        let known = remember(local.site, local.key(1, &[]), || CachedUnit::Backward(Arc::new(make_backward(&local))));
        let CachedUnit::Backward(program) = known else { unreachable!("the key says backward") };
        UnitBackward { program, vars: local.vars, site: local.site }
    }

    /// Data that the program loads.
    pub(crate) fn loads(&self) -> Vec<u32> {
        self.program.loads.iter().map(|&v| self.vars[v as usize]).collect()
    }

    /// The variables whose memory it loads.
    pub(crate) fn reads(&self, g: &Graph) -> Vec<u32> {
        self.loads().into_iter().map(|v| g.memory(v)).collect()
    }

    /// The members, by their places in the unit, whose values the program computes again.
    pub(crate) fn remade(&self) -> impl Iterator<Item = usize> {
        self.program.remade.iter().map(|&n| n as usize)
    }

    /// The variables whose gradients leave the unit.
    pub(crate) fn outputs(&self) -> impl Iterator<Item = u32> {
        self.program.outputs.iter().map(|(v, _)| self.vars[*v as usize])
    }

    /// The arriving gradient that output number `k` is as it stands.
    pub(crate) fn passed(&self, k: usize) -> Option<u32> {
        match self.program.outputs[k].1[..] {
            [part] => match self.program.ssa.ins()[part as usize] {
                Ins::Input(i) => match self.program.inputs[i as usize] {
                    Input::Grad(v) => Some(self.vars[v as usize]),
                    Input::Data(_) => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// The program; output k adds to its old content where `accumulate` says so, and is rounded to the stored type unless
    /// it is `reduced` afterwards; with both, it is left out. Gives also the inputs in order.
    pub(crate) fn compile(&self, accumulate: &[bool], reduced: &[bool]) -> (AnyProgram, Vec<Input>) {
        let (program, inputs) = self.program.compile(self.site, accumulate, reduced);
        (program, inputs.into_iter().map(|i| i.map(|v| self.vars[v as usize])).collect())
    }
}

fn make_backward(unit: &Local) -> BackwardProgram {
    let mut v = Values::new(unit);
    v.forward();
    let mut grads: Vec<Option<Id>> = vec![None; unit.vars.len()];
    let mut outputs: Vec<(u32, Vec<Id>)> = Vec::new();
    let mut made = vec![false; unit.vars.len()];
    unit.nodes.iter().for_each(|n| made[n.y as usize] = true);
    for node in unit.nodes.iter().rev() {
        let y = node.y;
        let inside = grads[y as usize].take();
        let arrives = || unit.has(y, ARRIVES);
        let Some(gy) = inside.or_else(|| arrives().then(|| v.input(Input::Grad(y)))) else { continue };
        if inside.is_some() && unit.has(y, SEEN) && unit.has(y, FLOWS) {
            outputs.push((y, vec![gy]));
        }
        let parts = v.contributions(node, gy);
        for (&x, part) in node.x.iter().zip(parts) {
            let Some(part) = part.filter(|_| unit.has(x, FLOWS)) else { continue };
            if made[x as usize] {
                // Parts from outside come first, as they do where each function runs alone.
                let outside = || unit.has(x, ARRIVES).then(|| v.input(Input::Grad(x)));
                let total = match grads[x as usize].or_else(outside) {
                    Some(old) => v.sum(old, part),
                    None => round(&mut v.ssa, unit.site.dtype, part),
                };
                grads[x as usize] = Some(total);
            } else {
                match outputs.iter_mut().find(|(o, _)| *o == x) {
                    Some((_, list)) => list.push(part),
                    None => outputs.push((x, vec![part])),
                }
            }
        }
    }
    let needed = v.ssa.needed(outputs.iter().flat_map(|(_, parts)| parts.iter().copied()));
    let loads = loads(&v, &needed);
    let remade = v.computed.iter().filter(|(_, id)| needed[*id as usize]).map(|(n, _)| *n).collect();
    let rules = unit.nodes.iter().map(|n| n.rules.clone()).collect();
    BackwardProgram { ssa: v.ssa, inputs: v.inputs, outputs, loads, remade, compiled: Mutex::default(), _rules: rules }
}

/// Data that a backward program loads.
fn loads(v: &Values, needed: &[bool]) -> Vec<u32> {
    let read = |(id, ins): (usize, &Ins)| match ins {
        Ins::Input(k) if needed[id] => match v.inputs[*k as usize] {
            Input::Data(v) => Some(v),
            Input::Grad(_) => None,
        },
        _ => None,
    };
    v.ssa.ins().iter().enumerate().filter_map(read).collect()
}

impl BackwardProgram {
    fn compile(&self, site: Site, accumulate: &[bool], reduced: &[bool]) -> (AnyProgram, Vec<Input>) {
        let how: Vec<[bool; 2]> = accumulate.iter().zip(reduced).map(|(&a, &r)| [a, r]).collect();
        let mut compiled = self.compiled.lock().unwrap_or_else(|e| e.into_inner());
        if let Some((_, program, inputs)) = compiled.iter().find(|(h, ..)| *h == how) {
            return (program.clone(), inputs.clone());
        }
        let (program, inputs) = self.make(site, &how);
        compiled.push((how, program.clone(), inputs.clone()));
        (program, inputs)
    }

    fn make(&self, site: Site, how: &[[bool; 2]]) -> (AnyProgram, Vec<Input>) {
        let mut ssa = self.ssa.clone();
        let mut inputs = self.inputs.clone();
        let mut outs = Vec::new();
        for ((v, parts), &[accumulate, reduced]) in self.outputs.iter().zip(how).filter(|(_, how)| **how != [true; 2]) {
            let dtype = if reduced { DType::F32 } else { site.dtype };
            let mut total = accumulate.then(|| {
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
        (AnyProgram::compile(site, &ssa, inputs.len(), &outs), inputs)
    }
}

fn add(ssa: &mut Ssa, a: Id, b: Id) -> Id {
    ssa.push(Ins::Binary(nnrs_kernels::expr::op::Binary::Add, a, b))
}

/// Drops inputs and values that no output needs.
fn prune(ssa: Ssa, inputs: Vec<Input>, outs: Vec<Id>) -> (Ssa, Vec<Input>, Vec<Id>) {
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
