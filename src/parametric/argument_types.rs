//! What parametric functions take beside numbers: initial values, functions of parameters, generators.

use crate::function::args::{ArgKind, ArgType, ArgValue};
use crate::graph::Variable;
use crate::initializer::{Constant, Generator, Initializer};
use nnrs_kernels::array::NdArray;
use nnrs_kernels::error::Result;
use std::collections::HashMap;
use std::sync::Arc;

/// An initializer in place of the usual one.
///
/// ```
/// use nnrs::{initializer::Constant, parameter, parametric as pf, Variable};
/// let options = pf::Affine { w_init: pf::Init::new(Constant(0.5)), ..Default::default() };
/// pf::affine("fc", &Variable::new([2, 1]), 1, options)?;
/// assert_eq!(parameter::get_parameter("fc/affine/W").unwrap().to_vec::<f32>()?, [0.5]);
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Init(pub(crate) Option<Arc<dyn Initializer>>);

impl Init {
    /// This initializer.
    pub fn new(initializer: impl Initializer + 'static) -> Init {
        Init(Some(Arc::new(initializer)))
    }

    /// This one, or a number everywhere where none is given.
    pub(super) fn or(&self, number: f64) -> Init {
        if self.0.is_some() { self.clone() } else { Init::new(Constant(number)) }
    }
}

/// Initial values by the names of parameters.
#[derive(Clone, Debug, Default)]
pub struct Inits(pub HashMap<String, Init>);

/// A function of a parameter, which is used in its place (`None`: the parameter itself).
///
/// ```
/// use nnrs::{functions as f, parametric as pf, Variable};
/// let options = pf::Affine { apply_w: pf::Apply::new(|w| f::tanh(w)), ..Default::default() };
/// assert_eq!(pf::affine("fc", &Variable::new([2, 3]), 4, options)?.shape(), [2, 4].into());
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Apply(Option<Arc<dyn Fn(&Variable) -> Result<Variable> + Send + Sync>>);

impl Apply {
    /// This function.
    pub fn new(f: impl Fn(&Variable) -> Result<Variable> + Send + Sync + 'static) -> Apply {
        Apply(Some(Arc::new(f)))
    }

    pub(super) fn to(&self, v: Variable) -> Result<Variable> {
        self.0.as_ref().map_or_else(|| Ok(v.clone()), |f| f(&v))
    }

    /// This function, or where there is none `usual`, of `v`.
    pub(super) fn or(&self, usual: impl Fn(&Variable) -> Result<Variable>, v: &Variable) -> Result<Variable> {
        self.0.as_ref().map_or_else(|| usual(v), |f| f(v))
    }
}

/// Where the usual random values come from; by default from the stream of [`crate::random`], under Python from
/// `nnrs.random.prng`.
#[derive(Clone, Default)]
pub struct Rng(pub(crate) Option<Arc<dyn Generator>>);

/// Arrays for the data of a layer's outputs (`None`: arrays of their own).
#[derive(Clone, Default)]
pub struct GivenArrays(pub Option<Vec<NdArray>>);

/// A level of a quantization: a number, which becomes a parameter, or a variable that has it.
///
/// ```
/// use nnrs::{parametric::Level, Variable};
/// assert!(matches!(Level::from(255), Level::Whole(255)));
/// assert!(matches!(Level::from(7.5), Level::Number(7.5)));
/// assert!(matches!(Level::from(Variable::new([1, 1])), Level::Of(_)));
/// ```
#[derive(Clone)]
pub enum Level {
    /// This whole number.
    Whole(i64),
    /// This number.
    Number(f64),
    /// What this variable has.
    Of(Variable),
}

impl From<i64> for Level {
    fn from(number: i64) -> Level {
        Level::Whole(number)
    }
}

impl From<f64> for Level {
    fn from(number: f64) -> Level {
        Level::Number(number)
    }
}

impl From<Variable> for Level {
    fn from(of: Variable) -> Level {
        Level::Of(of)
    }
}

impl std::fmt::Debug for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Level::Whole(number) => write!(f, "Whole({number})"),
            Level::Number(number) => write!(f, "Number({number})"),
            Level::Of(v) => write!(f, "Of({})", v.shape()),
        }
    }
}

impl ArgType for Level {
    const KIND: ArgKind = ArgKind::Level;

    fn from_value(v: ArgValue) -> Option<Level> {
        match v {
            ArgValue::Object(o) => o.downcast::<Level>(),
            ArgValue::Float(number) => Some(Level::Number(number)),
            v => i64::from_value(v).map(Level::Whole),
        }
    }

    fn to_value(&self) -> ArgValue {
        match self {
            Level::Whole(number) => ArgValue::Int(*number),
            Level::Number(number) => ArgValue::Float(*number),
            Level::Of(_) => ArgValue::None,
        }
    }
}

/// A size: a whole number of 0 or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub usize);

impl From<usize> for Size {
    fn from(n: usize) -> Size {
        Size(n)
    }
}

impl ArgType for Size {
    const KIND: ArgKind = ArgKind::Int;
    const EXPECTED: &'static str = "0 or more";

    fn from_value(v: ArgValue) -> Option<Size> {
        i64::from_value(v)?.try_into().ok().map(Size)
    }

    fn to_value(&self) -> ArgValue {
        ArgValue::Int(self.0 as i64)
    }
}

/// A size, or those of several axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<usize>);

impl From<usize> for Sizes {
    fn from(n: usize) -> Sizes {
        Sizes(vec![n])
    }
}

impl<const N: usize> From<[usize; N]> for Sizes {
    fn from(sizes: [usize; N]) -> Sizes {
        Sizes(sizes.into())
    }
}

impl From<&[usize]> for Sizes {
    fn from(sizes: &[usize]) -> Sizes {
        Sizes(sizes.into())
    }
}

impl<const N: usize> From<&[usize; N]> for Sizes {
    fn from(sizes: &[usize; N]) -> Sizes {
        Sizes(sizes.into())
    }
}

impl ArgType for Sizes {
    const KIND: ArgKind = ArgKind::Ints;
    const EXPECTED: &'static str = "sizes of 0 or more";

    fn from_value(v: ArgValue) -> Option<Sizes> {
        let sizes = Vec::<i64>::from_value(v)?.into_iter().map(|n| n.try_into().ok());
        sizes.collect::<Option<Vec<usize>>>().map(Sizes)
    }

    fn to_value(&self) -> ArgValue {
        ArgValue::Ints(self.0.iter().map(|&n| n as i64).collect())
    }
}

/// Arguments that are objects to other languages.
macro_rules! objects {
    ($($ty:ty, $kind:ident;)*) => {$(
        impl std::fmt::Debug for $ty {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{}({})", stringify!($ty), if self.0.is_some() { ".." } else { "" })
            }
        }

        objects!(@arg $ty, $kind);
    )*};
    (@arg $ty:ty, $kind:ident) => {
        impl ArgType for $ty {
            const KIND: ArgKind = ArgKind::$kind;
            const OPTIONAL: bool = true;

            fn from_value(v: ArgValue) -> Option<$ty> {
                match v {
                    ArgValue::None => Some(Self::default()),
                    ArgValue::Object(o) => o.downcast::<$ty>(),
                    _ => None,
                }
            }

            fn to_value(&self) -> ArgValue {
                ArgValue::None
            }
        }
    };
}

objects! {
    Init, Init;
    Apply, Apply;
    Rng, Rng;
    GivenArrays, Arrays;
}
objects!(@arg Inits, Inits);

/// An input that may be left out: `Option<Variable>`.
impl ArgType for Variable {
    const KIND: ArgKind = ArgKind::Variable;

    fn from_value(v: ArgValue) -> Option<Variable> {
        match v {
            ArgValue::Object(o) => o.downcast::<Variable>(),
            _ => None,
        }
    }

    fn to_value(&self) -> ArgValue {
        ArgValue::None
    }
}
