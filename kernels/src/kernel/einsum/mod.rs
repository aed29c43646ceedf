//! Products of elements of arrays, summed over the axes that the result does not have: Einstein's convention, by matrix products.

mod dots;

use crate::array::{AxisMap, Data, Output, Place, Strided, Walk};
use crate::call::{Call, Run, View, ViewMut};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::Formula;
use crate::kernel::batch_matmul::BatchMatmul;
use crate::kernel::matmul;
use crate::kernel::moves::Moves;
use crate::kernel::ops;
use crate::shape::Shape;
use crate::with_real;
use std::sync::OnceLock;

/// Arrays whose axes have numbers, in which the result's axes are given, too. Axes of one number are of one size; where an array has
/// a number twice, its diagonal is meant.
pub struct Einsum {
    /// For each array its shape, and the numbers of its axes; `None` for one of size 1 that is left out.
    arrays: Vec<(Shape, Vec<Option<usize>>)>,
    result: Vec<usize>,
    /// The size of each number.
    sizes: Vec<usize>,
    on_host: Vec<EinsumStep>,
    on_gpu: OnceLock<Vec<EinsumStep>>,
    product: Formula,
}

/// What makes one array more of those that are there: the inputs, and what the steps before have made.
struct EinsumStep {
    /// Elements of what is made.
    size: usize,
    kind: EinsumStepKind,
}

enum EinsumStepKind {
    /// The elements of a view.
    Copy { from: usize, view: Strided },
    /// The sum over the axes of `mask`.
    Sum { from: usize, shape: Shape, mask: Vec<bool> },
    /// Matrix products.
    Matrices { from: [usize; 2], views: [Strided; 2], y: Shape, call: Box<BatchMatmul> },
    /// Products of elements.
    Elements { from: [usize; 2], walks: [Walk; 2] },
    /// Sums of products of neighbours, on the host.
    Dots { from: [usize; 2], n: usize },
}

/// A view of one of the arrays, with different numbers for its axes.
struct EinsumArray {
    from: usize,
    view: Strided,
    labels: Vec<usize>,
}

impl EinsumArray {
    fn has(&self, label: usize) -> bool {
        self.labels.contains(&label)
    }

    /// The view with its axes in this order; numbers that it has not are axes of size 1.
    fn ordered(&self, labels: &[usize]) -> Strided {
        let place = |label: &usize| self.labels.iter().position(|l| l == label);
        let of = |label: &usize| place(label).map_or((1, 0), |a| (self.view.shape[a], self.view.strides[a]));
        let shape = labels.iter().map(|label| of(label).0).collect();
        Strided { shape, first: self.view.first, strides: labels.iter().map(|label| of(label).1).collect() }
    }
}

/// The steps so far.
struct EinsumPlan<'a> {
    sizes: &'a [usize],
    inputs: usize,
    steps: Vec<EinsumStep>,
    on_host: bool,
}

impl EinsumPlan<'_> {
    fn shape(&self, labels: &[usize]) -> Shape {
        labels.iter().map(|&label| self.sizes[label]).collect()
    }

    /// Notes a step; its result has its axes in order.
    fn add(&mut self, labels: Vec<usize>, kind: EinsumStepKind) -> EinsumArray {
        let shape = self.shape(&labels);
        self.steps.push(EinsumStep { size: shape.size(), kind });
        EinsumArray { from: self.inputs + self.steps.len() - 1, view: Strided::dense(&shape), labels }
    }

    fn copied(&mut self, x: &EinsumArray, labels: &[usize]) -> EinsumArray {
        self.add(labels.to_vec(), EinsumStepKind::Copy { from: x.from, view: x.ordered(labels) })
    }

    /// Without the axes that nothing else has.
    fn summed(&mut self, x: EinsumArray, kept: impl Fn(usize) -> bool) -> EinsumArray {
        let (left, gone): (Vec<usize>, Vec<usize>) = x.labels.iter().partition(|label| kept(**label));
        if gone.is_empty() {
            return x;
        }
        let x = if x.view.is_dense() { x } else { self.copied(&x, &[&left[..], &gone].concat()) };
        let mask = x.labels.iter().map(|label| gone.contains(label)).collect();
        self.add(left, EinsumStepKind::Sum { from: x.from, shape: x.view.shape.clone(), mask })
    }

    /// Matrices of an array, with axes for `both`, and whether they are transposed: rows are the axes `first`, columns `last`.
    fn matrices(&mut self, x: &EinsumArray, groups: [&[usize]; 3], work: usize) -> (usize, Strided, bool) {
        let [both, first, last] = groups;
        let (there, back) = ([both, first, last].concat(), [both, last, first].concat());
        let merged = |view: &Strided, n: usize| merged(view, both.len(), n);
        for (order, n, transposed) in [(&there, first.len(), false), (&back, last.len(), true)] {
            let view = x.ordered(order);
            if let Some(view) = merged(&view, n).filter(|_| view.is_dense()) {
                return (x.from, view, transposed);
            }
        }
        let view = merged(&x.ordered(&there), first.len());
        if let Some(view) = view.filter(|view| self.on_host && matmul::takes(view, work)) {
            return (x.from, view, false);
        }
        let x = self.copied(x, &there);
        let view = merged(&x.view, first.len()).expect("axes in order are one");
        (x.from, view, false)
    }

    /// The product of two arrays, summed over what both have and nothing else wants.
    fn product(
        &mut self,
        a: EinsumArray,
        b: EinsumArray,
        kept: impl Fn(usize) -> bool,
        result: &[usize],
    ) -> EinsumArray {
        let (shared, rows): (Vec<usize>, Vec<usize>) = a.labels.iter().partition(|label| b.has(**label));
        let (mut both, summed): (Vec<usize>, Vec<usize>) = shared.iter().partition(|label| kept(**label));
        both.sort_by_key(|label| result.iter().position(|l| l == label));
        let columns: Vec<usize> = b.labels.iter().copied().filter(|label| !a.has(*label)).collect();
        let is_result = |labels: &[usize]| labels.len() == result.len() && labels.iter().all(|l| result.contains(l));
        let labels = [&both[..], &rows, &columns].concat();
        if rows.is_empty() && columns.is_empty() && !summed.is_empty() {
            let order = [&both[..], &summed].concat();
            let lies = |x: &EinsumArray| x.ordered(&order).is_dense();
            if self.on_host && lies(&a) && lies(&b) {
                let n = self.shape(&summed).size();
                return self.add(both, EinsumStepKind::Dots { from: [a.from, b.from], n });
            }
            let order = a.labels.clone();
            let products = self.elements([a, b], order);
            return self.summed(products, |label| both.contains(&label));
        }
        if summed.is_empty() && (rows.is_empty() || columns.is_empty()) {
            let labels = if is_result(&labels) { result.to_vec() } else { labels };
            return self.elements([a, b], labels);
        }
        if labels != result && [&both[..], &columns, &rows].concat() == result {
            return self.product_of([b, a], [both, columns, summed, rows]);
        }
        self.product_of([a, b], [both, rows, summed, columns])
    }

    /// The products of elements, with their axes in this order.
    fn elements(&mut self, [a, b]: [EinsumArray; 2], labels: Vec<usize>) -> EinsumArray {
        let over = self.shape(&labels);
        let read = |plan: &mut Self, x: EinsumArray| {
            let own: Vec<usize> = labels.iter().copied().filter(|label| x.has(*label)).collect();
            let is_slow = plan.on_host && !x.ordered(&own).reads_well();
            let x = if is_slow { plan.copied(&x, &own) } else { x };
            (x.from, Walk::over(&x.ordered(&labels), &over))
        };
        let (a, b) = (read(self, a), read(self, b));
        self.add(labels, EinsumStepKind::Elements { from: [a.0, b.0], walks: [a.1, b.1] })
    }

    /// The matrix products of two arrays over these axes: those of both, of the first, those that are summed, of the second.
    fn product_of(&mut self, [a, b]: [EinsumArray; 2], groups: [Vec<usize>; 4]) -> EinsumArray {
        let [both, rows, summed, columns] = &groups;
        let [m, k, n] = [rows, summed, columns].map(|labels| self.shape(labels).size());
        let work = m.saturating_mul(k).saturating_mul(n);
        let (a, a_view, a_turned) = self.matrices(&a, [both, rows, summed], work);
        let (b, b_view, b_turned) = self.matrices(&b, [both, summed, columns], work);
        let y: Shape = self.shape(both).iter().copied().chain([m, n]).collect();
        let call = BatchMatmul::new([&a_view.shape, &b_view.shape], [a_turned, b_turned], &y);
        let kind = EinsumStepKind::Matrices { from: [a, b], views: [a_view, b_view], y, call: Box::new(call) };
        self.add([&both[..], rows, columns].concat(), kind)
    }
}

/// The view with the `n` axes behind `lead` as one, and the others behind these; `None` where they do not lie so.
fn merged(view: &Strided, lead: usize, n: usize) -> Option<Strided> {
    let mut merged = Strided { shape: Shape::from(&view.shape[..lead]), ..view.clone() };
    merged.strides.truncate(lead);
    for axes in [lead..lead + n, lead + n..view.shape.ndim()] {
        let (mut size, mut stride) = (1, 1);
        for axis in axes.rev().filter(|&axis| view.shape[axis] != 1) {
            if size == 1 {
                stride = view.strides[axis];
            } else if view.strides[axis] != stride * size as isize && view.shape.size() > 0 {
                return None;
            }
            size *= view.shape[axis];
        }
        merged.shape.push(size);
        merged.strides.push(stride);
    }
    Some(merged)
}

impl Einsum {
    /// Of arrays with the numbers of their axes, `None` for one of size 1 that is left out; `sizes` has that of each number.
    pub fn new(arrays: Vec<(Shape, Vec<Option<usize>>)>, result: Vec<usize>, sizes: Vec<usize>) -> Einsum {
        let product = Formula::new(2, |v| vec![Some(&v[0] * &v[1])]);
        let mut call = Einsum { arrays, result, sizes, on_host: Vec::new(), on_gpu: OnceLock::new(), product };
        let views: Vec<Strided> = call.arrays.iter().map(|(shape, _)| Strided::dense(shape)).collect();
        call.on_host = call.plan(&views, true);
        call
    }

    /// Takes the matrix products that are all of it, where two arrays lie so already, to be used instead: these have a backward kernel.
    pub fn take_product(&mut self) -> Option<BatchMatmul> {
        let is_only = self.on_host.len() == 1;
        let is_product = |step: &mut EinsumStep| match &step.kind {
            EinsumStepKind::Matrices { from: [0, 1], views, .. } => is_only && views.iter().all(Strided::is_dense),
            _ => false,
        };
        match self.on_host.pop_if(is_product)?.kind {
            EinsumStepKind::Matrices { call, .. } => Some(*call),
            _ => None,
        }
    }

    /// Input number `i`, which lies as `view` says, with each number once.
    fn array(&self, i: usize, view: &Strided) -> EinsumArray {
        let first = view.first;
        let mut x = EinsumArray {
            from: i,
            view: Strided { shape: [].into(), first, strides: Default::default() },
            labels: Vec::new(),
        };
        for (axis, label) in self.arrays[i].1.iter().enumerate() {
            let Some(label) = *label else { continue };
            match x.labels.iter().position(|l| *l == label) {
                Some(at) => x.view.strides[at] += view.strides[axis],
                None => {
                    x.labels.push(label);
                    x.view.shape.push(view.shape[axis]);
                    x.view.strides.push(view.strides[axis]);
                }
            }
        }
        x
    }

    /// The steps for inputs that lie so; the last one makes the result.
    fn plan(&self, views: &[Strided], on_host: bool) -> Vec<EinsumStep> {
        let inputs = self.arrays.len();
        let mut plan = EinsumPlan { sizes: &self.sizes, inputs, steps: Vec::new(), on_host };
        // Of each number the last array that has it: with later ones there is no use for it.
        let mut last = vec![0; self.sizes.len()];
        for (i, (_, labels)) in self.arrays.iter().enumerate() {
            labels.iter().flatten().for_each(|&label| last[label] = i);
        }
        self.result.iter().for_each(|&label| last[label] = usize::MAX);
        let mut y = self.array(0, &views[0]);
        for (i, view) in views.iter().enumerate().skip(1) {
            let kept = |label: usize| last[label] > i;
            let b = self.array(i, view);
            let a = plan.summed(y, |label| kept(label) || b.has(label));
            let b = plan.summed(b, |label| kept(label) || a.has(label));
            y = plan.product(a, b, kept, &self.result);
        }
        let y = plan.summed(y, |label| self.result.contains(&label));
        let made = inputs + plan.steps.len();
        if made == inputs || y.from + 1 != made || !y.ordered(&self.result).is_contiguous() {
            plan.copied(&y, &self.result);
        }
        plan.steps
    }

    fn make(&self, run: &Run, step: &EinsumStep, made: &[Data], y: Data) -> Result<()> {
        match &step.kind {
            EinsumStepKind::Copy { from, view } => ops::moves(Moves::gather(view), &y, &made[*from], Output::Write),
            EinsumStepKind::Sum { from, shape, mask } => {
                ops::sum(&View::new(shape, made[*from].clone()), mask, &y, Output::Write)
            }
            EinsumStepKind::Matrices { from, views, y: shape, call } => {
                let view = |i: usize| match &views[i] {
                    v if v.is_dense() => Ok(View::new(&v.shape, made[from[i]].clone())),
                    v => View::of(made[from[i]].clone(), v),
                };
                call.forward(run, &[view(0)?, view(1)?], &mut [ViewMut { shape, data: y }])
            }
            EinsumStepKind::Elements { from, walks } => {
                let [a, b] = [0, 1].map(|i| (&made[from[i]], walks[i].clone()));
                ops::formula(&self.product, &[a, b], &y, Output::Write)
            }
            EinsumStepKind::Dots { from, n } => {
                let [a, b] = from.map(|i| &made[i]);
                with_real!(y.dtype(), T => dots::dots(a.as_slice::<T>(), b.as_slice(), *n, y.as_mut_slice()));
                Ok(())
            }
        }
    }

    fn run(&self, run: &Run, steps: &[EinsumStep], x: &[View], y: &Data) -> Result<()> {
        let mut made: Vec<Data> = x.iter().map(|x| x.data.clone()).collect();
        for (i, step) in steps.iter().enumerate() {
            let is_last = i + 1 == steps.len();
            let to = if is_last { y.clone() } else { Data::new_at(y.place(), run.dtype, step.size)? };
            self.make(run, step, &made, to.clone())?;
            made.push(to);
        }
        Ok(())
    }
}

impl Call for Einsum {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        let (y, is_dense) = (&y[0].data, x.iter().all(|x| x.strides().is_none()));
        let views = || -> Vec<Strided> {
            x.iter().map(|x| x.strides().cloned().unwrap_or_else(|| Strided::dense(x.shape))).collect()
        };
        match y.place() {
            Place::Gpu(_) => self.run(run, self.on_gpu.get_or_init(|| self.plan(&views(), false)), x, y),
            Place::Host if is_dense => self.run(run, &self.on_host, x, y),
            Place::Host => self.run(run, &self.plan(&views(), true), x, y),
        }
    }

    fn takes_strides(&self, _i: usize, _x: &Strided, place: Place) -> bool {
        place == Place::Host
    }

    /// Where axes are only put in another order.
    fn axes(&self, _i: usize) -> Option<AxisMap> {
        let [(shape, labels)] = &self.arrays[..] else { return None };
        let place = |label: &usize| labels.iter().position(|l| *l == Some(*label));
        let order: Option<Vec<usize>> = self.result.iter().map(place).collect();
        let order = order.filter(|order| order.len() == shape.ndim())?;
        let start = AxisMap::new(shape.iter().map(|_| 0));
        Some(order.iter().fold(start, |axes, &a| axes.along(shape[a], a, 1)))
    }

    fn multiplications(&self) -> f64 {
        let of = |step: &EinsumStep| match &step.kind {
            EinsumStepKind::Matrices { call, .. } => call.multiplications(),
            _ => 0.0,
        };
        self.on_host.iter().map(of).sum()
    }

    fn scratch(&self, dtype: DType) -> [usize; 2] {
        let made = self.on_host.split_last().map_or(0, |(_, steps)| steps.iter().map(|s| s.size).sum());
        [made * dtype.size(), 0]
    }
}
