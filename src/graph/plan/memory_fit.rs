//! Fits a graph into a number of bytes: chooses variables to compute again in backward, the cheapest first, by planning
//! forward and backward for each choice and playing the plans through.

use super::ForwardOptions;
use super::build::{self, ForwardAction, ForwardPlan, PlanNode, PlanSlot};
use super::memory::Plans;
use crate::graph::variable::{VarRef, Variable};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::ssa::MixMap;

/// What [`fit`] chose.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Planned bytes at most, leaves included.
    pub peak: usize,
    /// The variables now marked with `recompute`: bytes, what they are.
    pub chosen: Vec<(usize, String)>,
    /// Predicted extra time of a step of forward and backward, as a share of it.
    pub extra: f64,
}

/// A variable that forward keeps and backward could compute again.
struct Candidate {
    /// Not a handle: a held variable would be planned otherwise.
    var: VarRef,
    bytes: usize,
    name: String,
    /// Rough nanoseconds to compute it again from what else is kept.
    cost: f64,
    heavy: bool,
}

/// Plans tried at most while taking back what turns out not to be needed.
const TRIES: usize = 48;

/// Marks variables behind `y` with `recompute` until forward and backward need at most `budget` bytes.
///
/// # Errors
/// If no choice that is tried fits; the marks are then as before.
///
/// ```
/// use nnrs::{functions as f, graph::{memory_fit, memory_plan}, ForwardOptions, Variable};
/// let mut y = Variable::new([64, 64]).with_need_grad(true);
/// for _ in 0..8 {
///     y = f::sin(&f::affine(&y, &Variable::new([64, 64]).with_need_grad(true), None, f::Affine::default())?)?;
/// }
/// let budget = memory_plan(&y, ForwardOptions::default(), true)?.peak * 9 / 10;
/// let fit = memory_fit(&y, budget, ForwardOptions::default(), true)?;
/// assert!(fit.peak <= budget && !fit.chosen.is_empty());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn fit(y: &Variable, budget: usize, options: ForwardOptions, clear_buffer: bool) -> Result<Fit> {
    let Some(plans) = Plans::new(y, options, clear_buffer)? else {
        return Err(
            Error::graph("the variable has no parent: there is nothing to compute again").function("memory.fit")
        );
    };
    let mut search = BudgetSearch { y, budget, options, clear_buffer, least: plans.peak(), marked: Vec::new() };
    let all = candidates(&plans.forward);
    let found = if search.least <= budget { Ok(Some(Vec::new())) } else { search.run(&all) };
    search.mark(&all, found.as_ref().ok().and_then(Option::as_deref).unwrap_or_default());
    let Some(chosen) = found? else {
        let need = format!("at least {} bytes: less is not possible by computing again", search.least);
        return Err(Error::arg("budget", need).actual(budget).function("memory.fit"));
    };
    let plans = Plans::new(y, options, clear_buffer)?.unwrap_or(plans);
    let name = |&i: &usize| (all[i].bytes, all[i].name.clone());
    let mut names: Vec<(usize, String)> = chosen.iter().map(name).collect();
    names.sort_by(|a, b| b.cmp(a));
    Ok(Fit { peak: plans.peak(), chosen: names, extra: extra(&plans) })
}

struct BudgetSearch<'a> {
    y: &'a Variable,
    budget: usize,
    options: ForwardOptions,
    clear_buffer: bool,
    /// The smallest peak seen.
    least: usize,
    marked: Vec<usize>,
}

impl BudgetSearch<'_> {
    /// Sets the marks of candidates to just `chosen`.
    fn mark(&mut self, all: &[Candidate], chosen: &[usize]) {
        self.marked.iter().filter(|i| !chosen.contains(i)).for_each(|&i| all[i].var.set_recompute(false));
        chosen.iter().filter(|i| !self.marked.contains(i)).for_each(|&i| all[i].var.set_recompute(true));
        self.marked = chosen.to_vec();
    }

    fn fits(&mut self, all: &[Candidate], chosen: &[usize]) -> Result<bool> {
        self.mark(all, chosen);
        let plans = Plans::new(self.y, self.options, self.clear_buffer)?;
        let bytes = plans.map_or(0, |p| p.peak());
        self.least = self.least.min(bytes);
        Ok(bytes <= self.budget)
    }

    fn run(&mut self, all: &[Candidate]) -> Result<Option<Vec<usize>>> {
        let mut light: Vec<usize> = (0..all.len()).filter(|&i| !all[i].heavy).collect();
        light.sort_by(|&a, &b| all[a].density().total_cmp(&all[b].density()));
        if self.fits(all, &light)? {
            return self.shortest(all, light).map(Some);
        }
        let heavy: Vec<usize> = (0..all.len()).filter(|&i| all[i].heavy).collect();
        let found = match self.spread(all, &light, &heavy)? {
            None => self.spread(all, &[], &(0..all.len()).collect::<Vec<_>>())?,
            found => found,
        };
        found.map(|chosen| self.thinned(all, chosen)).transpose()
    }

    /// Drops `always`, and `list` but for every so many, which stay as checkpoints; the densest checkpoints that fit.
    fn spread(&mut self, all: &[Candidate], always: &[usize], list: &[usize]) -> Result<Option<Vec<usize>>> {
        let mut every = 2;
        while every <= list.len() {
            let dropped = list.iter().enumerate().filter(|(k, _)| (k + 1) % every != 0).map(|(_, &i)| i);
            let chosen: Vec<usize> = always.iter().copied().chain(dropped).collect();
            if self.fits(all, &chosen)? {
                return Ok(Some(chosen));
            }
            every += 1 + every / 8;
        }
        Ok(None)
    }

    /// The shortest beginning of `list` that fits.
    fn shortest(&mut self, all: &[Candidate], list: Vec<usize>) -> Result<Vec<usize>> {
        let (mut no, mut yes) = (0, list.len());
        while yes - no > 1 {
            let middle = (no + yes) / 2;
            match self.fits(all, &list[..middle])? {
                true => yes = middle,
                false => no = middle,
            }
        }
        Ok(list[..yes].to_vec())
    }

    /// Takes back the costliest choices that are not needed.
    fn thinned(&mut self, all: &[Candidate], mut chosen: Vec<usize>) -> Result<Vec<usize>> {
        let mut order = chosen.clone();
        order.sort_by(|&a, &b| all[b].cost.total_cmp(&all[a].cost));
        for i in order.into_iter().take(TRIES) {
            let fewer: Vec<usize> = chosen.iter().copied().filter(|&c| c != i).collect();
            if self.fits(all, &fewer)? {
                chosen = fewer;
            }
        }
        Ok(chosen)
    }
}

impl Candidate {
    /// Nanoseconds for a byte saved.
    fn density(&self) -> f64 {
        self.cost / self.bytes.max(1) as f64
    }
}

fn candidates(plan: &ForwardPlan) -> Vec<Candidate> {
    let mut made_by: MixMap<u32, usize> = MixMap::default();
    let mut list = Vec::new();
    for (n, node) in plan.nodes.iter().enumerate() {
        made_by.extend(node.y.iter().map(|&y| (y, n)));
        for (var, &y) in node.f.outputs().into_iter().zip(&node.y) {
            let slot = &plan.slots[y as usize];
            if plan.kept[y as usize] && !plan.root_ids.contains(&slot.var_id) && !var.lock().keeps_data() {
                let (cost, heavy) = closure(plan, &made_by, y);
                let bytes = slot.shape.size() * node.f.context.dtype().size();
                list.push(Candidate {
                    var,
                    bytes,
                    name: format!("output of {} {}", node.f.name(), slot.shape),
                    cost,
                    heavy,
                });
            }
        }
    }
    list
}

/// Cost of computing `target` again from what else is kept, and whether products are in it.
fn closure(plan: &ForwardPlan, made_by: &MixMap<u32, usize>, target: u32) -> (f64, bool) {
    let (mut cost, mut heavy, mut todo) = (0.0, false, vec![target]);
    let mut seen: MixMap<usize, ()> = MixMap::default();
    while let Some(v) = todo.pop() {
        let Some(&n) = made_by.get(&v).filter(|_| v == target || !plan.kept[v as usize]) else { continue };
        if seen.insert(n, ()).is_none() {
            let (passes, products) = work(&plan.nodes[n], &plan.slots);
            cost += passes + products;
            heavy |= products > 4.0 * passes;
            todo.extend(plan.nodes[n].x.iter().copied());
        }
    }
    (cost, heavy)
}

/// Rough nanoseconds of a function: of passing over its arrays, and of its multiplications.
fn work(node: &PlanNode, slots: &[PlanSlot]) -> (f64, f64) {
    let size = |v: &u32| slots[*v as usize].shape.size() as f64;
    let elements: f64 = node.x.iter().chain(&node.y).map(size).sum();
    let products = node.setup.kernels().map_or(0.0, |call| call.multiplications());
    (elements * 0.3, products * 0.02)
}

/// Time of computing again, as a share of forward and backward, which takes twice the time of forward.
fn extra(plans: &Plans) -> f64 {
    let once = |what: &ForwardAction, nodes: &[PlanNode], slots: &[PlanSlot]| match what {
        ForwardAction::View(_) | ForwardAction::Viewed(_) => 0.0,
        ForwardAction::Call(n) => {
            let (passes, products) = work(&nodes[*n as usize], slots);
            passes + products
        }
        ForwardAction::Tile(t) => (t.sources.len() + t.sinks.len()) as f64 * t.n as f64 * 0.3,
    };
    let Some(back) = &plans.backward else { return 0.0 };
    let f = &plans.forward;
    let forward: f64 = f.steps.iter().map(|s| once(&s.what, &f.nodes, &f.slots)).sum();
    let steps = back.steps.iter().flat_map(|s| &s.again);
    let again: f64 = steps.map(|s: &build::ForwardStep| once(&s.what, &back.nodes, &back.slots)).sum();
    again / (3.0 * forward).max(1e-9) + 0.0 // an empty sum is -0.0
}
