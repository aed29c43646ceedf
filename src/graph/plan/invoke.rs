//! The one place where functions run: static, dynamic, called directly, made again. Each array is taken for the length of the
//! call, and handed on in exactly the size that the call was resolved for.

use super::build::{ForwardTile, PlanNode, PlanSlot};
use super::{changes, on_variables};
use crate::function::elementwise::{Rules, rules};
use crate::function::{GradMut, Gradients, InputKind, Needs, Run, Setup, View, ViewMut};
use crate::graph::node::FnNode;
use nnrs_kernels::array::{Data, NdArray, Place, ReadContent, Site, Strided};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::Result;
use nnrs_kernels::expr::ssa::{Id, Ins, Ssa};
use nnrs_kernels::finish::Finish;
use nnrs_kernels::fork;
use nnrs_kernels::kernel::convolution::winograd;
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::tile::{AnyProgram, Operands, Walk};
use smallvec::SmallVec;
use std::sync::Arc;

/// How a function runs forward.
#[derive(Clone, Copy)]
pub(crate) struct ForwardMode {
    /// For values that were there before: no side effects.
    pub(crate) again: bool,
    /// A backward pass may follow.
    pub(crate) keep: bool,
}

impl ForwardMode {
    pub(crate) const AGAIN: ForwardMode = ForwardMode { again: true, keep: false };
}

/// Runs a function on arrays, whatever kind of function it is.
pub(crate) fn run(f: &FnNode, setup: &Setup, x: &[&NdArray], y: &[&NdArray], how: ForwardMode) -> Result<()> {
    match f.function.elementwise() {
        _ if f.function.is_view() => y[0].share_content(x[0]),
        Some(formula) => elementwise(&rules(formula, x.len()), x, y[0], setup, f.context.site()),
        None => forward(f, setup, x, |_| None, y, how),
    }
}

/// As [`run`], on arrays as they are.
pub(crate) fn run_arrays(node: &FnNode, x: &[NdArray], y: &[NdArray], how: ForwardMode) -> Result<()> {
    let xs: SmallVec<[Shape; 4]> = x.iter().map(|a| a.shape()).collect();
    let ys: SmallVec<[Shape; 2]> = y.iter().map(|a| a.shape()).collect();
    let setup = node.check_call(&xs, &ys)?;
    let (x, y): (SmallVec<[&NdArray; 4]>, SmallVec<[&NdArray; 2]>) = (x.iter().collect(), y.iter().collect());
    run(node, &setup, &x, &y, how)
}

/// Runs an opaque function.
pub(super) fn call(node: &PlanNode, slots: &[PlanSlot], again: bool) -> Result<()> {
    let arrays: SmallVec<[&NdArray; 4]> = node.reads.iter().map(|&x| &slots[x as usize].data).collect();
    let outputs: SmallVec<[&NdArray; 2]> = node.y.iter().map(|&y| &slots[y as usize].data).collect();
    let how = ForwardMode { again, keep: node.keep && !again };
    forward(&node.f, &node.setup, &arrays, |i| node.view(i), &outputs, how)
}

/// Runs the kernels of a call, or user code on variables. `views`: where an input lies in its array, if that is another one.
fn forward<'a>(
    f: &FnNode,
    setup: &'a Setup,
    x: &[&NdArray],
    views: impl Fn(usize) -> Option<&'a Strided>,
    y: &[&NdArray],
    how: ForwardMode,
) -> Result<()> {
    if let Some(own) = f.function.on_variables() {
        x.iter().for_each(|x| x.storage().watch()); // to look at it is no change
        let writes = || x.iter().fold(0, |n: u64, x| n.wrapping_add(x.storage().modification_count()));
        let before = writes();
        on_variables::forward(own, x, y, f.context.dtype())?;
        x.iter().for_each(|x| x.mark());
        if let Some(plan) = f.plan().filter(|_| writes() != before) {
            plan.note_written();
        }
        y.iter().for_each(|y| y.mark()); // what it wrote by views it wrote before its readers run
        return changes::note_made(f, y, how.again);
    }
    let place = f.kernel_place();
    let (dtype, compute) = (f.context.dtype(), f.kernel_dtype(place));
    let over = f.rewrites().map(|i| x[i]);
    let is_alone = |a: &NdArray| dtype == compute && x.iter().filter(|x| is_same_memory(x, a)).count() == 1;
    let mut inputs: SmallVec<[View; 4]> = SmallVec::new();
    for (i, (a, shape)) in x.iter().zip(&setup.x).enumerate() {
        inputs.push(read_view(f, i, a, shape, views(i), place)?);
    }
    let mut outs: SmallVec<[ViewMut; 2]> = SmallVec::new();
    let mut apart: SmallVec<[(usize, DType); 2]> = SmallVec::new();
    for (i, (a, shape)) in y.iter().zip(&setup.y).enumerate() {
        let first = x.first().filter(|_| f.function.keeps_whole_types()).map(|x| x.dtype());
        let own = first.filter(|d| is_whole(*d)).or_else(|| f.function.output_dtype(i));
        let (stored, kernel) = (own.unwrap_or(dtype), own.unwrap_or(compute));
        let data = if let Some(over) = over.filter(|a| is_alone(a)) {
            over.modify_at(place, dtype)?.of(shape.size())?
        } else if stored == kernel && !reads(x, a) {
            a.overwrite_at(place, stored)?.of(shape.size())?
        } else {
            apart.push((i, stored));
            Data::new_at(place, kernel, shape.size())?
        };
        outs.push(ViewMut { shape, data });
    }
    let arrays: SmallVec<[NdArray; 4]> =
        if f.function.sees_arrays() { x.iter().map(|a| (*a).clone()).collect() } else { SmallVec::new() };
    let saves = f.saves(setup).is_some();
    if saves && !how.again {
        f.saved.clear(); // it is of other inputs now; and its memory may do
    }
    let (again, keep) = (how.again, how.keep && saves);
    let run = Run { again, keep, inputs: &arrays, ..plain_run(f, setup) };
    if !f.is_idle(setup) {
        let _exact = winograd::exact_here(f.context.is_exact());
        setup.call()?.forward(&run, &inputs, &mut outs)?;
        outs.iter().for_each(|y| y.data.note_written());
    }
    for (i, stored) in apart {
        y[i].overwrite_at(place, stored)?.of(setup.y[i].size())?.take(&outs[i].data)?;
    }
    match over {
        Some(over) if is_alone(over) => y[0].share_content(over),
        Some(over) => over.copy_from(y[0]),
        None => Ok(()),
    }
}

/// A run of a call for its result alone.
fn plain_run<'a>(f: &'a FnNode, setup: &'a Setup) -> Run<'a> {
    let (dtype, saved, call, shapes) = (f.context.compute_dtype(), &f.saved, setup.number, &setup.x[..]);
    Run { dtype, again: false, keep: false, saved, finish: None, call, shapes, inputs: &[] }
}

/// Input `i` of a call on the host.
fn input<'a>(n: &'a PlanNode, i: usize, slots: &[PlanSlot]) -> Result<View<'a>> {
    read_view(&n.f, i, &slots[n.reads[i] as usize].data, &n.setup.x[i], n.view(i), Place::Host)
}

/// Runs a call whose result is scaled, and goes through a unit that reads it as `result`, before it is slot `made`. Nothing is done
/// (false) where that is the memory of something that they read.
pub(super) fn finished(
    node: &PlanNode,
    scaling: Option<&PlanNode>,
    unit: Option<(&ForwardTile, u32)>,
    made: u32,
    slots: &[PlanSlot],
) -> Result<bool> {
    let (f, setup, y) = (&node.f, &node.setup, &slots[made as usize].data);
    let place = Place::Host;
    let others = unit.iter().flat_map(|(t, result)| t.sources.iter().map(|s| s.0).filter(move |v| v != result));
    let of_scaling = scaling.iter().flat_map(|n| n.reads[1..].iter().copied());
    let mut all = node.reads.iter().copied().chain(of_scaling).chain(others);
    if all.any(|v| is_same_memory(&slots[v as usize].data, y)) {
        return Ok(false);
    }
    let inputs = (0..node.x.len()).map(|i| input(node, i, slots)).collect::<Result<SmallVec<[View; 4]>>>()?;
    let data = y.overwrite_at(place, f.context.dtype())?.of(setup.y[0].size())?;
    let scaled = scaling.map(|n| -> Result<_> {
        let first = std::iter::once(Ok(View::new(&n.setup.x[0], data.clone())));
        let x = first.chain((1..n.x.len()).map(|i| input(n, i, slots))).collect::<Result<SmallVec<[View; 4]>>>()?;
        n.f.saved.clear();
        Ok(n.setup.call()?.scaling(&plain_run(&n.f, &n.setup), &x))
    });
    let scaled = scaled.transpose()?;
    let mut operands = None;
    if let Some((t, result)) = unit {
        let operands = operands.insert(Operands::new(t.site, t.n));
        for (v, walk) in &t.sources {
            match v == &result {
                true => operands.read(data.clone(), Walk::Dense)?,
                false => {
                    read(operands, &slots[*v as usize].data, slots[*v as usize].shape.size(), t.site, || walk.clone())?
                }
            }
        }
        operands.write(data.clone())?;
        if !operands.are_apart() {
            return Ok(false);
        }
    }
    let program = unit.map(|(t, _)| &t.program).zip(operands.as_ref());
    let finish = Finish { scaling: scaled, program };
    let run = Run { finish: Some(&finish), ..plain_run(f, setup) };
    let _exact = winograd::exact_here(f.context.is_exact());
    let mut made = [ViewMut { shape: &setup.y[0], data }];
    setup.call()?.forward(&run, &inputs, &mut made)?;
    made[0].data.note_written();
    Ok(true)
}

/// Runs the backward kernel of a call, which reads what `needs` says. `x`, `y`: data by number, of an input
/// also where it lies in the array; `gy`: the gradients that arrive;
/// `gx`: finds, after all is read, where those of the inputs are to go.
pub(crate) fn backward<'a, 'b>(
    f: &FnNode,
    setup: &'a Setup,
    needs: Needs,
    x: impl Fn(usize) -> (&'b NdArray, Option<&'a Strided>),
    y: impl Fn(usize) -> &'b NdArray,
    gy: impl Fn(usize) -> Option<&'b NdArray>,
    gx: impl FnOnce() -> Result<SmallVec<[Option<GradMut<'a>>; 4]>>,
) -> Result<()> {
    let place = f.backward_place();
    let compute = f.kernel_dtype(place);
    let constants = place == Place::Host && setup.kernels().is_some_and(|call| call.takes_constants());
    let gradient = |a: &NdArray, shape: &'a Shape| -> Result<View<'a>> {
        match a.find(place)? {
            ReadContent::Constant(v) if constants => {
                let one = Data::new(compute, 1)?;
                ops::fill(&one, v)?;
                Ok(View::constant(shape, one))
            }
            _ => Ok(View::new(shape, a.read_at(place, compute)?.of(shape.size())?)),
        }
    };
    let read = |a: &NdArray, shape: &'a Shape| -> Result<View<'a>> {
        Ok(View::new(shape, a.read_at(place, compute)?.of(shape.size())?))
    };
    let input = |i, shape| {
        let (array, view) = x(i);
        read_view(f, i, array, shape, view, place)
    };
    let mut inputs: SmallVec<[Option<View>; 4]> = SmallVec::new();
    for (i, shape) in setup.x.iter().enumerate() {
        inputs.push(needs.input(i).then(|| input(i, shape)).transpose()?);
    }
    let (mut outputs, mut arriving): (SmallVec<[Option<View>; 2]>, SmallVec<[Option<View>; 2]>) = Default::default();
    for (i, shape) in setup.y.iter().enumerate() {
        outputs.push(needs.output(i).then(|| read(y(i), shape)).transpose()?);
        arriving.push(gy(i).map(|a| gradient(a, shape)).transpose()?);
    }
    let mut gx = gx()?;
    let run = plain_run(f, setup);
    let gradients = Gradients { x: &inputs, y: &outputs, gy: &arriving, gx: &mut gx };
    if !f.is_idle(setup) {
        let _exact = winograd::exact_here(f.context.is_exact());
        setup.call()?.backward(&run, gradients)?;
        gx.iter().flatten().for_each(|gx| gx.data.note_written());
    }
    Ok(())
}

/// Runs a function given by a formula on its own.
fn elementwise(rules: &Rules, x: &[&NdArray], y: &NdArray, setup: &Setup, site: Site) -> Result<()> {
    let shape = &setup.y[0];
    let mut operands = Operands::new(site, shape.size());
    for (a, from) in x.iter().zip(&setup.x) {
        read(&mut operands, a, from.size(), site, || Walk::new(from, shape))?;
    }
    operands.write(y.overwrite_at(site.place, site.dtype)?)?;
    operands.run(&forward_program(rules, x.len(), site))
}

fn forward_program(rules: &Rules, inputs: usize, site: Site) -> AnyProgram {
    let make = || {
        let mut ssa = Ssa::default();
        let args: Vec<Id> = (0..inputs).map(|k| ssa.push(Ins::Input(k as u32))).collect();
        let out = rules.forward.apply(&mut ssa, &args)[0].expect("one output");
        AnyProgram::compile(site, &ssa, inputs, &[out])
    };
    match (AnyProgram::on_gpu(site, &rules.forward), site.dtype) {
        (Some(program), _) => program,
        (None, DType::F64) => fork::fill(&rules.double, make).clone(),
        (None, _) => fork::fill(&rules.single, make).clone(),
    }
}

/// Runs an element-wise unit.
pub(super) fn tile(t: &ForwardTile, slots: &[PlanSlot]) -> Result<()> {
    let took = |(sink, source): &(u32, u32)| {
        steal(&slots[*source as usize].data, &slots[*sink as usize].data, t.site.dtype).then_some((*sink, *source))
    };
    let stolen: SmallVec<[(u32, u32); 1]> = t.steal.iter().filter_map(took).collect();
    let mut operands = Operands::new(t.site, t.n);
    for (v, walk) in &t.sources {
        let now = stolen.iter().find(|(_, s)| s == v).map_or(*v, |(sink, _)| *sink);
        let n = slots[*v as usize].shape.size();
        read(&mut operands, &slots[now as usize].data, n, t.site, || walk.clone())?;
    }
    for &v in &t.sinks {
        operands.write(slots[v as usize].data.overwrite_at(t.site.place, t.site.dtype)?)?;
    }
    operands.run(&t.program)
}

/// Gives a program an array of `n` elements to read.
pub(super) fn read(
    operands: &mut Operands,
    a: &NdArray,
    n: usize,
    at: Site,
    walk: impl FnOnce() -> Walk,
) -> Result<()> {
    let data = match a.find(at.place)? {
        ReadContent::Constant(v) => {
            operands.constant(v);
            return Ok(());
        }
        ReadContent::Nothing => a.read_at(at.place, a.dtype())?,
        ReadContent::Data(data) => data,
    };
    operands.read(data.of(n)?, walk())
}

/// Gives a dying source's memory to a sink, if no other array has it.
pub(super) fn steal(source: &NdArray, sink: &NdArray, dtype: DType) -> bool {
    let (from, to) = (source.storage(), sink.storage());
    let is_free = !source.is_kept_by_user_code() && source.offset() == 0 && !to.is_exported();
    is_free && from.give_to(&to, dtype)
}

/// Input `i` of `f`, which lies in another array as `view` says.
#[inline(always)]
fn read_view<'a>(
    f: &FnNode,
    i: usize,
    a: &NdArray,
    shape: &'a Shape,
    view: Option<&'a Strided>,
    place: Place,
) -> Result<View<'a>> {
    let data = match view {
        Some(view) => return View::of(a.read_at(place, f.kernel_dtype(place))?, view),
        None if f.function.def().input(i).kind == InputKind::Index => match a.dtype() {
            own if place == Place::Host && is_whole(own) && f.function.keeps_whole_types() => {
                a.read_at(place, own)?.of(shape.size())?
            }
            _ => ops::indices(a, shape.size(), place)?,
        },
        None => a.read_at(place, f.kernel_dtype(place))?.of(shape.size())?,
    };
    Ok(View::new(shape, data))
}

/// Whether a type is one of whole numbers.
fn is_whole(dtype: DType) -> bool {
    !dtype.is_float() && dtype != DType::Bool
}

/// True if an output is one of the inputs too: then the kernel writes elsewhere first.
fn reads(x: &[&NdArray], y: &NdArray) -> bool {
    x.iter().any(|x| x.is(y) || y.is_shared() && is_same_memory(x, y))
}

fn is_same_memory(a: &NdArray, b: &NdArray) -> bool {
    Arc::ptr_eq(&a.storage(), &b.storage())
}
