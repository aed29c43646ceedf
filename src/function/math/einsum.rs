//! `einsum`: Einstein's summation convention. Which axes an ellipsis stands for, and which of them are stretched, follows from the shapes
//! of each run, as in NNabla.

use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use crate::{function, functions as f};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::einsum as kernel;
use nnrs_kernels::shape::Shape;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

function! {
    /// Einstein's summation convention: products of elements, summed over the axes that the result does not have.
    Einsum einsum in Math, any_device
    inputs { x [variadic]: "N-D arrays." }
    args {
        equation: String = String::new(), "For each array the labels of its axes, letters, with commas between; after '->' those of the result, which by default are those that occur once, in alphabetic order. '...' stands for any number of axes: as in broadcasting, those of different arrays meet at the last one, and have one size or size 1. A label that occurs twice in an array is its diagonal."
    }
    outputs { y: "N-D array." }
}

impl Function for Einsum {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let labelled = LabelledAxes::of(x, &self.equation)?;
        let size = |label: &AxisLabel| labelled.sizes[label];
        let y = labelled.result.iter().map(size).collect::<Shape>().checked()?;
        let mut numbers: HashMap<AxisLabel, usize> = HashMap::new();
        let mut sizes = Vec::new();
        let mut number = |label: &AxisLabel| {
            *numbers.entry(*label).or_insert_with(|| {
                sizes.push(size(label));
                sizes.len() - 1
            })
        };
        let result = labelled.result.iter().map(&mut number).collect();
        let axes = |(shape, labels): (&Shape, &Vec<AxisLabel>)| {
            let of = |(&n, label): (&usize, &AxisLabel)| (n == size(label)).then(|| number(label));
            (shape.clone(), shape.iter().zip(labels).map(of).collect())
        };
        let arrays = x.iter().zip(&labelled.arrays).map(axes).collect();
        let mut call = kernel::Einsum::new(arrays, result, sizes);
        Ok(match call.take_product() {
            Some(product) => Resolved::one(y, product),
            None => Resolved::one(y, call),
        })
    }

    /// What stands for an array is summed over the others and the result's gradient, repeated along what it alone has, and laid on its
    /// diagonals.
    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let shapes: Vec<Shape> = g.x.iter().map(Variable::shape).collect();
        let labelled = LabelledAxes::of(&shapes, &self.equation)?;
        let gradient = |i: usize| labelled.gradient(i, &g.x, &g.gy[0]);
        g.want.iter().enumerate().map(|(i, want)| want.then(|| gradient(i)).transpose()).collect()
    }
}

/// What an axis is called.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum AxisLabel {
    /// Of an ellipsis, counted from its last axis.
    Ellipsis(usize),
    Letter(char),
}

impl fmt::Display for AxisLabel {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AxisLabel::Ellipsis(_) => to.write_str("an axis of '...'"),
            AxisLabel::Letter(c) => write!(to, "label '{c}'"),
        }
    }
}

/// The labels of one array: letters, and maybe an ellipsis with letters after it.
struct LabelTerm<'a> {
    text: &'a str,
    before: &'a str,
    after: Option<&'a str>,
}

impl<'a> LabelTerm<'a> {
    fn of(text: &'a str) -> Option<LabelTerm<'a>> {
        let (before, after) = text.split_once("...").map_or((text, None), |(before, after)| (before, Some(after)));
        let is_term = [before, after.unwrap_or("")].iter().all(|t| t.bytes().all(|c| c.is_ascii_alphabetic()));
        is_term.then_some(LabelTerm { text, before, after })
    }

    fn letters(&self) -> impl Iterator<Item = char> {
        self.before.chars().chain(self.after.unwrap_or("").chars())
    }

    /// With an ellipsis of so many axes.
    fn labels(&self, ellipsis: usize) -> Vec<AxisLabel> {
        let axes = self.after.map_or(0, |_| ellipsis);
        let letters = |part: &'a str| part.chars().map(AxisLabel::Letter);
        let dots = (0..axes).rev().map(AxisLabel::Ellipsis);
        letters(self.before).chain(dots).chain(letters(self.after.unwrap_or(""))).collect()
    }

    /// How many axes the ellipsis of array number `i` has.
    fn ellipsis(&self, i: usize, shape: &Shape) -> Result<usize> {
        match shape.ndim().checked_sub(self.letters().count()) {
            Some(0) => Ok(0),
            Some(n) if self.after.is_some() => Ok(n),
            _ => {
                let expected = format!("an axis for each label of '{}'", self.text);
                Err(Error::shape(&format!("x[{i}]"), expected).actual(shape))
            }
        }
    }
}

/// The labels of the arrays and of the result, and the size of each.
struct LabelledAxes {
    arrays: Vec<Vec<AxisLabel>>,
    result: Vec<AxisLabel>,
    sizes: HashMap<AxisLabel, usize>,
}

impl LabelledAxes {
    fn of(x: &[Shape], equation: &str) -> Result<LabelledAxes> {
        let wrong = |expected: &str| Error::arg("equation", expected).actual(format!("'{equation}'"));
        let bare = equation.replace(' ', "");
        let (left, right) = bare.split_once("->").map_or((&*bare, None), |(left, right)| (left, Some(right)));
        let term =
            |text| LabelTerm::of(text).ok_or_else(|| wrong("letters, commas, '...' and one '->', as in 'ij,jk->ik'"));
        let terms = left.split(',').map(term).collect::<Result<Vec<_>>>()?;
        let right = right.map(term).transpose()?;
        if terms.len() != x.len() {
            let expected = format!("a term for each of the {} arrays", x.len());
            return Err(Error::arg("equation", expected).actual(format!("{} in '{equation}'", terms.len())));
        }
        let mut more = 0;
        let mut arrays = Vec::new();
        for (i, (shape, term)) in x.iter().zip(&terms).enumerate() {
            let ellipsis = term.ellipsis(i, shape)?;
            more = more.max(ellipsis);
            arrays.push(term.labels(ellipsis));
        }
        let sizes = sizes_of(x, &arrays)?;
        let result = match &right {
            Some(right) => right.labels(more),
            None => {
                let ellipsis = (0..more).rev().map(AxisLabel::Ellipsis);
                ellipsis.chain(once(&terms).into_iter().map(AxisLabel::Letter)).collect()
            }
        };
        let is_distinct = result.iter().collect::<BTreeSet<_>>().len() == result.len();
        let is_known = result.iter().all(|label| sizes.contains_key(label));
        match is_distinct && is_known {
            true => Ok(LabelledAxes { arrays, result, sizes }),
            false => Err(wrong("a result whose labels occur once in it and are those of arrays")),
        }
    }

    /// Whether axis `axis` of array `i` is as long as its label says, and not stretched.
    fn is_whole(&self, i: usize, axis: usize, shape: &Shape) -> bool {
        shape[axis] == self.sizes[&self.arrays[i][axis]]
    }

    /// The gradient of array `i`.
    fn gradient(&self, i: usize, x: &[Variable], gy: &Variable) -> Result<Variable> {
        let shape = x[i].shape();
        let mut own: Vec<AxisLabel> = Vec::new();
        for label in &self.arrays[i] {
            if !own.contains(label) {
                own.push(*label);
            }
        }
        let is_whole = |label: &AxisLabel| shape[place(&self.arrays[i], label).unwrap_or(0)] == self.sizes[label];
        // Letters for the labels; what is stretched in another array has one of its own there, and is of size 1.
        let mut letters = Letters::default();
        let others: Vec<usize> = (0..x.len()).filter(|&k| k != i).collect();
        let mut known: BTreeSet<AxisLabel> = self.result.iter().copied().collect();
        let mut terms = vec![self.result.iter().map(|label| letters.of(*label)).collect::<Result<String>>()?];
        for &k in &others {
            let mut term = String::new();
            for (axis, label) in self.arrays[k].iter().enumerate() {
                let is_whole = self.is_whole(k, axis, &x[k].shape());
                term.push(if is_whole { letters.of(*label)? } else { letters.fresh()? });
                known.extend(is_whole.then_some(*label));
            }
            terms.push(term);
        }
        let found: Vec<AxisLabel> = own.iter().copied().filter(|l| known.contains(l) && is_whole(l)).collect();
        let target = found.iter().map(|label| letters.of(*label)).collect::<Result<String>>()?;
        let mut arrays = vec![gy];
        arrays.extend(others.iter().map(|&k| &x[k]));
        let equation = format!("{}->{target}", terms.join(","));
        let mut made = if terms[..] == [target] { gy.clone() } else { einsum(&arrays, Einsum { equation })? };
        let size = |label: &AxisLabel| if is_whole(label) { self.sizes[label] } else { 1 };
        let sizes = |known: &dyn Fn(&AxisLabel) -> bool| -> Shape {
            own.iter().map(|label| if known(label) { size(label) } else { 1 }).collect()
        };
        let (ones, all) = (sizes(&|label| found.contains(label)), sizes(&|_| true));
        if made.shape() != ones {
            made = f::reshape(&made, f::Reshape { inplace: false, ..f::Reshape::to(&ones) })?;
        }
        if ones != all {
            made = f::broadcast(&made, f::Broadcast::to(&all))?;
        }
        self.on_diagonals(i, made, own)
    }

    /// The array with axes `own` as one with those of array `i`, zeros where labels that it has more than once differ.
    fn on_diagonals(&self, i: usize, mut made: Variable, mut own: Vec<AxisLabel>) -> Result<Variable> {
        let labels = &self.arrays[i];
        while let Some(label) = own.iter().copied().find(|l| count(&own, l) < count(labels, l)) {
            let (others, there): (Vec<usize>, Vec<usize>) = (0..own.len()).partition(|&axis| own[axis] != label);
            made = f::matrix_diag(&transposed(&made, &[others.clone(), there.clone()].concat())?)?;
            own = others.iter().chain(&there).map(|&axis| own[axis]).chain([label]).collect();
        }
        let mut free: Vec<Option<AxisLabel>> = own.iter().copied().map(Some).collect();
        let mut order = Vec::new();
        for label in labels {
            let axis = free.iter().position(|l| *l == Some(*label)).expect("an axis for each");
            free[axis] = None;
            order.push(axis);
        }
        transposed(&made, &order)
    }
}

/// A letter for each label.
#[derive(Default)]
struct Letters {
    known: HashMap<AxisLabel, char>,
    used: usize,
}

impl Letters {
    fn of(&mut self, label: AxisLabel) -> Result<char> {
        match self.known.get(&label) {
            Some(letter) => Ok(*letter),
            None => {
                let letter = self.fresh()?;
                self.known.insert(label, letter);
                Ok(letter)
            }
        }
    }

    fn fresh(&mut self) -> Result<char> {
        let letter = ('a'..='z').chain('A'..='Z').nth(self.used);
        self.used += 1;
        letter.ok_or_else(|| Error::arg("x", "52 different axes at most, for a gradient").actual("more"))
    }
}

fn place(labels: &[AxisLabel], label: &AxisLabel) -> Option<usize> {
    labels.iter().position(|l| l == label)
}

fn count(labels: &[AxisLabel], label: &AxisLabel) -> usize {
    labels.iter().filter(|l| *l == label).count()
}

/// The letters that occur once, in their order.
fn once(terms: &[LabelTerm]) -> BTreeSet<char> {
    let (mut seen, mut once) = (BTreeSet::new(), BTreeSet::new());
    for c in terms.iter().flat_map(LabelTerm::letters) {
        match seen.insert(c) {
            true => once.insert(c),
            false => once.remove(&c),
        };
    }
    once
}

/// The size of each label. Axes of an ellipsis may have size 1 instead.
fn sizes_of(x: &[Shape], arrays: &[Vec<AxisLabel>]) -> Result<HashMap<AxisLabel, usize>> {
    let mut sizes = HashMap::new();
    for (i, (shape, labels)) in x.iter().zip(arrays).enumerate() {
        for (label, &n) in labels.iter().zip(shape.iter()) {
            let known = sizes.entry(*label).or_insert(n);
            match label {
                AxisLabel::Ellipsis(_) if *known == 1 => *known = n,
                AxisLabel::Ellipsis(_) if n == 1 => {}
                _ if n == *known => {}
                _ => {
                    return Err(Error::shape(&format!("x[{i}]"), format!("size {known} for {label}")).actual(shape));
                }
            }
        }
    }
    Ok(sizes)
}

fn transposed(v: &Variable, order: &[usize]) -> Result<Variable> {
    match order.iter().copied().eq(0..order.len()) {
        true => Ok(v.clone()),
        false => f::transpose(v, f::Transpose::by(order)),
    }
}
