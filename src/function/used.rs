//! Arguments as a function uses them: defaults that follow from the inputs' shapes filled in, under the names that
//! NNabla's functions have inside. For all who look at a graph: `FunctionRef::arguments`, visitors, gradient rules.

use super::array::OPEN;
use super::{ArgValue, Function, Group};
use nnrs_kernels::shape::Shape;

type Named = (&'static str, ArgValue);

/// The arguments of `f` over inputs of the shapes `x`.
pub(crate) fn arguments(f: &dyn Function, x: &[Shape]) -> Vec<Named> {
    let (def, given) = (f.def(), f.arguments());
    let Some(first) = x.first() else { return given };
    match def.snake {
        "convolution" | "deconvolution" => spatial(given, first),
        "slice" => slice(given, first),
        "batch_normalization" => {
            given.into_iter().filter(|(n, _)| *n != "output_stat").map(|a| from_start(a, first)).collect()
        }
        "layer_normalization" => given.into_iter().filter(|(n, _)| *n != "output_stat").collect(),
        "bool_gather" => Vec::new(),
        _ if def.group == Group::Reduction => given.into_iter().map(|a| reduction(a, first)).collect(),
        name => {
            let kernel = given.iter().find(|(n, _)| *n == "kernel").map(|(_, v)| v.clone());
            given.into_iter().map(|a| plain(name, a, first, &kernel)).collect()
        }
    }
}

/// One number for each of `n` axes.
fn each(n: usize, v: i64) -> ArgValue {
    ArgValue::Ints(vec![v; n])
}

fn or(v: ArgValue, default: impl FnOnce() -> ArgValue) -> ArgValue {
    if v == ArgValue::None { default() } else { v }
}

/// Single axes, lists of axes, and the lists of a pooling.
fn plain(function: &str, (name, v): Named, x: &Shape, kernel: &Option<ArgValue>) -> Named {
    let last = x.ndim() as i64 - 1;
    let first_axis = matches!(function, "gather" | "scatter_add");
    let v = or(v, || match (name, kernel) {
        ("axis", _) => ArgValue::Int(if first_axis { 0 } else { last }),
        ("axes", _) => ArgValue::Ints(vec![last]),
        ("batch_dims", _) => ArgValue::Int(0),
        ("stride", Some(kernel)) => kernel.clone(),
        ("pad", Some(ArgValue::Ints(kernel))) => each(kernel.len(), 0),
        _ => ArgValue::None,
    });
    (name, v)
}

fn reduction((name, v): Named, x: &Shape) -> Named {
    match name {
        "axis" => ("axes", or(v, || ArgValue::Ints((0..x.ndim() as i64).collect()))),
        "keepdims" => ("keep_dims", v),
        "p" => (name, or(v, || ArgValue::Float(2.0))),
        _ => (name, v),
    }
}

fn spatial(given: Vec<Named>, x: &Shape) -> Vec<Named> {
    let base = given.iter().find(|(n, _)| *n == "base_axis").and_then(|(_, v)| axis(v, x)).unwrap_or(1);
    let n = x.ndim().saturating_sub(base + 1);
    let filled = |(name, v): Named| match name {
        "pad" | "output_padding" => (name, or(v, || each(n, 0))),
        "stride" | "dilation" => (name, or(v, || each(n, 1))),
        _ => (name, v),
    };
    given.into_iter().map(filled).collect()
}

/// The axis that a number names, counted from the start.
fn axis(v: &ArgValue, x: &Shape) -> Option<usize> {
    let ArgValue::Int(i) = *v else { return None };
    usize::try_from(if i < 0 { i.checked_add(x.ndim() as i64)? } else { i }).ok()
}

fn from_start((name, v): Named, x: &Shape) -> Named {
    match v {
        ArgValue::Ints(axes) => {
            let counted = |&a: &i64| axis(&ArgValue::Int(a), x).map_or(a, |a| a as i64);
            (name, ArgValue::Ints(axes.iter().map(counted).collect()))
        }
        v => (name, v),
    }
}

/// Start, stop and step with a number for each axis that they are about (the last ones); what was given stays as it is.
fn slice(given: Vec<Named>, x: &Shape) -> Vec<Named> {
    let lists = given.iter().filter_map(|(_, v)| if let ArgValue::Ints(l) = v { Some(l.len()) } else { None });
    let n = lists.max().unwrap_or(x.ndim()).min(x.ndim());
    let list = |name: &str| match given.iter().find(|(n, _)| *n == name) {
        Some((_, ArgValue::Ints(l))) if l.len() == n => l.clone(),
        _ => vec![OPEN; n],
    };
    let number = |v: i64, default: i64| if v == OPEN { default } else { v };
    let step: Vec<i64> = list("step").into_iter().map(|s| number(s, 1)).collect();
    let start = |(&v, &step): (&i64, &i64)| number(v, if step < 0 { -1 } else { 0 });
    let stop =
        |((&v, &step), &size): ((&i64, &i64), &usize)| number(v, if step < 0 { -1 - size as i64 } else { size as i64 });
    let starts = list("start").iter().zip(&step).map(start).collect();
    let stops = list("stop").iter().zip(&step).zip(&x[x.ndim() - n..]).map(stop).collect();
    vec![("start", ArgValue::Ints(starts)), ("stop", ArgValue::Ints(stops)), ("step", ArgValue::Ints(step))]
}
