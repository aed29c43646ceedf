//! What a function gives for inputs of given shapes, and how the engine keeps it.

use super::{ArgValue, Described, Shapes};
use nnrs_kernels::call::Call;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use smallvec::{SmallVec, smallvec};
use std::any::Any;

/// What [`Function::resolve`](super::Function::resolve) gives.
pub struct Resolved {
    /// Shapes of the outputs.
    pub shapes: Shapes,
    call: Option<Box<dyn Call>>,
}

impl Resolved {
    /// A function with one output of this shape.
    ///
    /// ```
    /// use nnrs::function::{Resolved, Run, View, ViewMut};
    /// let ones = |_: &Run, _: &[View], y: &mut [ViewMut]| Ok(y[0].slice::<f32>().fill(1.0));
    /// assert_eq!(Resolved::one([2, 3], ones).shapes[..], [[2, 3].into()]);
    /// ```
    pub fn one(shape: impl Into<Shape>, call: impl Call) -> Resolved {
        Resolved::new(smallvec![shape.into()], call)
    }

    /// A function with outputs of these shapes.
    pub fn new(shapes: Shapes, call: impl Call) -> Resolved {
        Resolved { shapes, call: Some(Box::new(call)) }
    }

    /// A function that has no kernel of its own: a formula, a view, one that works on variables.
    pub fn without_call(shapes: Shapes) -> Resolved {
        Resolved { shapes, call: None }
    }

    /// The kernels.
    pub fn call(&self) -> Option<&dyn Call> {
        self.call.as_deref()
    }

    /// The kernels, for a call that uses them.
    pub(crate) fn into_call(self) -> Result<Box<dyn Call>> {
        self.call.ok_or_else(|| Error::unsupported("this function has no kernel"))
    }
}

/// A call as what the function's `resolve` has given.
pub(crate) fn call_of<C: Call>(call: Option<&dyn Call>) -> &C {
    call.and_then(|call| (call as &dyn Any).downcast_ref()).expect("the type of call that `resolve` gives")
}

/// Arguments with `default` for `name` where it was not given.
pub(crate) fn with_default(f: &impl Described, name: &str, default: usize) -> Vec<(&'static str, ArgValue)> {
    with_defaults(f, &[(name, ArgValue::Int(default as i64))])
}

/// The arguments of a function, where they are None the defaults that it then uses.
pub(crate) fn with_defaults(f: &impl Described, defaults: &[(&str, ArgValue)]) -> Vec<(&'static str, ArgValue)> {
    let of = |name| defaults.iter().find(|(n, _)| *n == name).map_or(ArgValue::None, |(_, v)| v.clone());
    f.arguments().into_iter().map(|(n, v)| if v == ArgValue::None { (n, of(n)) } else { (n, v) }).collect()
}

/// A function over inputs of given shapes, as the engine keeps it.
pub(crate) struct Setup {
    /// Of the shapes, never 0: what was saved by calls of other shapes is none of this one.
    pub(crate) number: u64,
    pub(crate) x: SmallVec<[Shape; 2]>,
    pub(crate) y: Shapes,
    call: Option<Box<dyn Call>>,
}

impl Setup {
    pub(crate) fn new(number: u64, x: SmallVec<[Shape; 2]>, resolved: Resolved) -> Setup {
        Setup { number, x, y: resolved.shapes, call: resolved.call }
    }

    /// The kernels of a function that is no formula, no view and does not work on variables.
    pub(crate) fn call(&self) -> Result<&dyn Call> {
        self.call.as_deref().ok_or_else(|| Error::unsupported("this function has no kernel"))
    }

    /// The kernels, if it has any.
    pub(crate) fn kernels(&self) -> Option<&dyn Call> {
        self.call.as_deref()
    }

    /// A call reads nothing and makes nothing: arrays without elements, whose other sizes may be huge.
    pub(crate) fn is_empty(&self) -> bool {
        self.x.iter().chain(&self.y).all(|s| s.size() == 0)
    }
}
