//! `einsum`: Einstein's summation convention, by matrix products, element-wise products, sums and transposes. None of these has
//! a size of its own, so that a graph of them takes arrays of other sizes as well.

use super::contraction::{self, Einsum};
use crate::functions as f;
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// Products of elements, summed over the axes that the result does not have.
///
/// `equation` has for each array the labels of its axes, letters, with commas between; after `->` those of the result, which
/// by default are those that occur once, in alphabetic order. `...` stands for any number of axes, the same for all arrays
/// that have it, of one size or of size 1. A label that occurs twice in an array is its diagonal.
///
/// # Errors
/// An equation that is none, or does not fit the arrays.
///
/// ```
/// use nnrs::{functions as f, Variable};
/// let (a, b) = (Variable::new([2, 3]), Variable::new([3, 4]));
/// assert_eq!(f::einsum(&[&a, &b], "ij,jk->ik")?.shape(), [2, 4].into());
/// assert!(f::einsum(&[&a, &b], "ij,kj->ik").is_err());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn einsum(x: &[&Variable], equation: &str) -> Result<Variable> {
    made(x, equation).map_err(|e| e.part_of("einsum", |argument| argument == "equation" || argument.starts_with("x[")))
}

fn made(x: &[&Variable], equation: &str) -> Result<Variable> {
    let (arrays, result) = labelled(x, equation)?;
    // Of each label the last array that has it: with later ones there is no use for it.
    let mut last: HashMap<AxisLabel, usize> = HashMap::new();
    for (i, a) in arrays.iter().enumerate() {
        last.extend(a.labels.iter().map(|&label| (label, i)));
    }
    last.extend(result.iter().map(|&label| (label, usize::MAX)));
    let mut arrays = arrays.into_iter().map(LabelledArray::diagonal);
    let mut y = arrays.next().ok_or_else(|| Error::arg("x", "one array at least").actual("none"))??;
    for (i, b) in arrays.enumerate() {
        let (b, kept) = (b?, |label: &AxisLabel| last[label] > i + 1);
        let a = y.summed(|label| kept(label) || b.labels.contains(label))?;
        let b = b.summed(|label| kept(label) || a.labels.contains(label))?;
        y = product(a, b, kept)?;
    }
    let y = y.summed(|label| result.contains(label))?.ordered(&result)?;
    // Where nothing is to be done, the result is an array of its own as well.
    if y.is(x[0]) { f::identity(&y) } else { Ok(y) }
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

struct LabelledArray {
    v: Variable,
    labels: Vec<AxisLabel>,
}

/// The arrays with their labels, and those of the result.
fn labelled(x: &[&Variable], equation: &str) -> Result<(Vec<LabelledArray>, Vec<AxisLabel>)> {
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
    for (i, (&v, term)) in x.iter().zip(&terms).enumerate() {
        let ellipsis = term.ellipsis(i, &v.shape())?;
        more = more.max(ellipsis);
        arrays.push(LabelledArray { v: v.clone(), labels: term.labels(ellipsis) });
    }
    let sizes = sizes_of(&arrays)?;
    let result = match &right {
        Some(right) => right.labels(more),
        None => {
            let ellipsis = (0..more).rev().map(AxisLabel::Ellipsis);
            ellipsis.chain(once(&terms).into_iter().map(AxisLabel::Letter)).collect()
        }
    };
    let dots = |term: &LabelTerm| term.after.is_some();
    let is_distinct = result.iter().collect::<BTreeSet<_>>().len() == result.len();
    let is_known = result.iter().all(|label| sizes.contains_key(label));
    if !is_distinct || !is_known || right.as_ref().is_some_and(dots) && !terms.iter().any(dots) {
        return Err(wrong("a result whose labels occur once in it and are those of arrays"));
    }
    Ok((arrays.into_iter().map(|a| a.without_ones(&sizes)).collect::<Result<_>>()?, result))
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
fn sizes_of(arrays: &[LabelledArray]) -> Result<HashMap<AxisLabel, usize>> {
    let mut sizes = HashMap::new();
    for (i, a) in arrays.iter().enumerate() {
        let shape = a.v.shape();
        for (label, &n) in a.labels.iter().zip(shape.iter()) {
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

impl LabelledArray {
    /// Without the axes of an ellipsis that are stretched: the product repeats what does not have them.
    fn without_ones(mut self, sizes: &HashMap<AxisLabel, usize>) -> Result<LabelledArray> {
        for axis in (0..self.labels.len()).rev() {
            if self.v.shape()[axis] != sizes[&self.labels[axis]] {
                self.v = f::split(&self.v, f::Split { axis: axis as i64 })?.remove(0);
                self.labels.remove(axis);
            }
        }
        Ok(self)
    }

    /// With each label once.
    fn diagonal(mut self) -> Result<LabelledArray> {
        let twice = |labels: &[AxisLabel]| {
            let pair = |(i, label): (usize, &AxisLabel)| Some((i, i + 1 + place(&labels[i + 1..], label)?));
            labels.iter().enumerate().find_map(pair)
        };
        while let Some((first, second)) = twice(&self.labels) {
            let others = (0..self.labels.len()).filter(|i| ![first, second].contains(i));
            let order: Vec<usize> = others.chain([first, second]).collect();
            let v = f::matrix_diag_part(&transposed(&self.v, &order)?)?;
            self = LabelledArray { labels: order[..v.ndim()].iter().map(|&i| self.labels[i]).collect(), v };
        }
        Ok(self)
    }

    /// Without the labels that nothing else has.
    fn summed(self, kept: impl Fn(&AxisLabel) -> bool) -> Result<LabelledArray> {
        let gone = self.labels.iter().enumerate().filter(|(_, label)| !kept(label));
        let axis: Vec<i64> = gone.map(|(i, _)| i as i64).collect();
        if axis.is_empty() {
            return Ok(self);
        }
        let labels = self.labels.into_iter().filter(kept).collect();
        Ok(LabelledArray { v: f::sum(&self.v, f::Sum { axis: Some(axis), keepdims: false })?, labels })
    }

    /// With the axes in this order of their labels.
    fn ordered(&self, labels: &[AxisLabel]) -> Result<Variable> {
        let order: Vec<usize> = labels.iter().filter_map(|label| place(&self.labels, label)).collect();
        transposed(&self.v, &order)
    }
}

fn place(labels: &[AxisLabel], label: &AxisLabel) -> Option<usize> {
    labels.iter().position(|l| l == label)
}

/// The product of two arrays, summed over what both have and nothing else wants.
fn product(a: LabelledArray, b: LabelledArray, kept: impl Fn(&AxisLabel) -> bool) -> Result<LabelledArray> {
    let (shared, rows): (Vec<_>, Vec<_>) = a.labels.iter().copied().partition(|label| b.labels.contains(label));
    let (both, summed): (Vec<_>, Vec<_>) = shared.into_iter().partition(|label| kept(label));
    let columns: Vec<_> = b.labels.iter().copied().filter(|label| !a.labels.contains(label)).collect();
    let labels = [&both[..], &rows, &columns].concat();
    if summed.is_empty() && (rows.is_empty() || columns.is_empty()) {
        let left = with_ones(a.ordered(&[&both[..], &rows].concat())?, both.len() + rows.len(), columns.len())?;
        let right = with_ones(b.ordered(&[&both[..], &columns].concat())?, both.len(), rows.len())?;
        return Ok(LabelledArray { v: f::mul2(&left, &right, f::Mul2::default())?, labels });
    }
    let laid = |x: LabelledArray, first: &[AxisLabel], last: &[AxisLabel]| {
        let order = [&both[..], first, last].concat();
        let is_laid = x.labels == order || x.labels == [&both[..], last, first].concat();
        let v = if is_laid { x.v } else { x.ordered(&order)? };
        Ok::<_, Error>(LabelledArray { v, labels: if is_laid { x.labels } else { order } })
    };
    let (a, b) = (laid(a, &rows, &summed)?, laid(b, &summed, &columns)?);
    let equation = spelled([&a.labels, &b.labels, &labels])?;
    Ok(LabelledArray { v: contraction::einsum(&a.v, &b.v, Einsum { equation })?, labels })
}

/// The equation of two arrays and their product; axes of an ellipsis get letters that nothing else has.
fn spelled(terms: [&[AxisLabel]; 3]) -> Result<String> {
    let used = |c: &char| terms.iter().any(|labels| labels.contains(&AxisLabel::Letter(*c)));
    let free: Vec<char> = ('a'..='z').chain('A'..='Z').filter(|c| !used(c)).collect();
    let letter = |label: &AxisLabel| match label {
        AxisLabel::Letter(c) => Ok(*c),
        AxisLabel::Ellipsis(i) => {
            free.get(*i).copied().ok_or_else(|| Error::arg("x", "52 different axes at most").actual("more"))
        }
    };
    let text = |labels: &[AxisLabel]| labels.iter().map(letter).collect::<Result<String>>();
    Ok(format!("{},{}->{}", text(terms[0])?, text(terms[1])?, text(terms[2])?))
}

/// With `n` axes of size 1 from `axis` on.
fn with_ones(v: Variable, axis: usize, n: usize) -> Result<Variable> {
    (0..n).try_fold(v, |v, _| f::stack(&[&v], f::Stack { axis: axis as i64 }))
}

fn transposed(v: &Variable, order: &[usize]) -> Result<Variable> {
    match order.iter().copied().eq(0..order.len()) {
        true => Ok(v.clone()),
        false => f::transpose(v, f::Transpose::by(order)),
    }
}
