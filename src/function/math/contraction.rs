//! `Einsum` of two arrays, which [`einsum`](super::einsum()) of any arrays is put together of besides sums and transposes.

use crate::function;
use crate::function::{Function, Grad, Resolved};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::kernel::batch_matmul::BatchMatmul;
use nnrs_kernels::shape::Shape;

function! {
    /// Products of elements of two arrays, summed over the axes that both have and the result has not: a matrix product for each
    /// place along the axes that all three have.
    Einsum einsum in Math, any_device
    inputs {
        a: "N-D array: axes of all three, then those of y and those that are summed over, or these before those.",
        b: "N-D array: axes of all three, then those that are summed over and those of y, or these before those.",
    }
    args { equation: String, "The labels of the axes, as in 'abc,acd->abd'." }
    outputs { y: "N-D array: axes of all three, those of a, those of b." }
}

/// The labels of the axes: of all three arrays, of a and y, of b and y, of a and b.
struct AxisGroups<'a> {
    terms: [&'a str; 3],
    both: &'a [u8],
    rows: &'a [u8],
    columns: &'a [u8],
    summed: Vec<u8>,
    /// Whether a has what is summed first, and b last.
    transposed: [bool; 2],
}

impl<'a> AxisGroups<'a> {
    fn of(equation: &'a str) -> Option<AxisGroups<'a>> {
        let (left, y_term) = equation.split_once("->")?;
        let (a_term, b_term) = left.split_once(',')?;
        let [a, b, y] = [a_term, b_term, y_term].map(str::as_bytes);
        let split = |labels: &'a [u8], of: &dyn Fn(&u8) -> bool| {
            labels.split_at(labels.iter().position(|label| !of(label)).unwrap_or(labels.len()))
        };
        let (both, rest) = split(y, &|label| a.contains(label) && b.contains(label));
        let (rows, columns) = split(rest, &|label| a.contains(label));
        let summed: Vec<u8> = a.iter().copied().filter(|label| !y.contains(label)).collect();
        let all = [both, rows, columns, &summed].concat();
        let is_once = |(i, label): (usize, &u8)| label.is_ascii_alphabetic() && !all[..i].contains(label);
        let place = |x: &[u8], first: &[u8], last: &[u8]| match x {
            _ if x == [both, first, last].concat() => Some(false),
            _ if x == [both, last, first].concat() => Some(true),
            _ => None,
        };
        let transposed = [place(a, rows, &summed)?, place(b, &summed, columns)?];
        let terms = [a_term, b_term, y_term];
        all.iter().enumerate().all(is_once).then_some(AxisGroups { terms, both, rows, columns, summed, transposed })
    }

    /// The shape of an array of matrices with axes for all, and of the sizes of its two groups; `n` axes in the first.
    fn merged(&self, shape: &[usize], n: usize) -> Shape {
        let (both, rest) = shape.split_at(self.both.len());
        let (first, second) = rest.split_at(n);
        both.iter().copied().chain([first, second].map(|sizes| sizes.iter().product())).collect()
    }
}

impl Function for Einsum {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        let expected = "the labels of two arrays and of their product, as in 'abc,acd->abd'";
        let wrong = || Error::arg("equation", expected).actual(format!("'{}'", self.equation));
        let groups = AxisGroups::of(&self.equation).ok_or_else(wrong)?;
        let mut sizes: Vec<(u8, usize)> = Vec::new();
        for ((shape, name), term) in x.iter().zip(["a", "b"]).zip(groups.terms) {
            if shape.ndim() != term.len() {
                return Err(Error::shape(name, format!("an axis for each label of '{term}'")).actual(shape));
            }
            for (label, &n) in term.bytes().zip(shape.iter()) {
                match sizes.iter().find(|(known, _)| *known == label) {
                    Some(&(_, size)) if size != n => {
                        let expected = format!("size {size} for label '{}'", label as char);
                        return Err(Error::shape(name, expected).actual(shape));
                    }
                    Some(_) => {}
                    None => sizes.push((label, n)),
                }
            }
        }
        let size = |label: u8| sizes.iter().find(|(known, _)| *known == label).map(|(_, n)| *n);
        let y = groups.terms[2].bytes().filter_map(size).collect::<Shape>().checked()?;
        let first = |transposed: bool, first: usize, last: usize| if transposed { last } else { first };
        let [rows, columns, summed] = [groups.rows, groups.columns, &groups.summed].map(<[u8]>::len);
        let a = groups.merged(&x[0], first(groups.transposed[0], rows, summed));
        let b = groups.merged(&x[1], first(groups.transposed[1], summed, columns));
        let call = BatchMatmul::new([&a, &b], groups.transposed, &groups.merged(&y, rows));
        Ok(Resolved::one(y, call))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        let (x, gy) = (&g.x, &g.gy[0]);
        let groups = AxisGroups::of(&self.equation).expect("it was taken before");
        let [a, b, y] = groups.terms;
        let product = |[left, right]: [(&Variable, &str); 2], result: &str| {
            einsum(left.0, right.0, Einsum { equation: format!("{},{}->{result}", left.1, right.1) })
        };
        let ordered = |pair: [_; 2], swapped: bool| if swapped { [pair[1], pair[0]] } else { pair };
        let ga = || product(ordered([(gy, y), (&x[1], b)], groups.transposed[0]), a);
        let gb = || product(ordered([(&x[0], a), (gy, y)], groups.transposed[1]), b);
        Ok(vec![g.want[0].then(ga).transpose()?, g.want[1].then(gb).transpose()?])
    }
}
