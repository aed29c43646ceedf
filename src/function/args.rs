//! Arguments of functions as values that any language can give: what the registry and Python pass around.

use std::any::Any;
use std::sync::Arc;

/// A value that only its own language understands.
#[derive(Clone)]
pub struct Object(Arc<dyn Any + Send + Sync>);

impl Object {
    /// This value.
    pub fn new(value: impl Any + Send + Sync) -> Object {
        Object(Arc::new(value))
    }

    /// The value, if it is a `T`.
    pub fn downcast<T: Any + Clone>(&self) -> Option<T> {
        self.0.downcast_ref::<T>().cloned()
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an object")
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Object) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The value of one argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgValue {
    /// Not given.
    None,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A word.
    Str(String),
    /// Whole numbers: a shape, axes.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f64>),
    /// What is no number and no word: an initializer, say.
    Object(Object),
}

/// The kind of an argument: what may be given for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// True or false; whole numbers too.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// A word.
    Str,
    /// Whole numbers.
    Ints,
    /// Numbers.
    Floats,
    /// An initializer, of a parametric function.
    Init,
    /// Initializers by the names of parameters.
    Inits,
    /// A function of a parameter.
    Apply,
    /// What random initial values come from.
    Rng,
    /// A variable that may be left out, of a parametric function.
    Variable,
    /// A number or a variable.
    Level,
    /// Arrays for the data of outputs.
    Arrays,
}

impl ArgKind {
    /// Python's type hint.
    pub const fn hint(self) -> &'static str {
        match self {
            ArgKind::Bool => "bool",
            ArgKind::Int => "int",
            ArgKind::Float => "float",
            ArgKind::Str => "str",
            ArgKind::Ints => "Sequence[int]",
            ArgKind::Floats => "Sequence[float]",
            ArgKind::Init => "Initializer",
            ArgKind::Inits => "ParamInit",
            ArgKind::Apply => "Apply",
            ArgKind::Rng => "Rng",
            ArgKind::Variable => "Input",
            ArgKind::Level => "Level",
            ArgKind::Arrays => "list[NdArray]",
        }
    }
}

impl ArgValue {
    /// As Python writes it.
    pub fn repr(&self) -> String {
        let tuple = |items: Vec<String>| match items.len() {
            1 => format!("({},)", items[0]),
            _ => format!("({})", items.join(", ")),
        };
        match self {
            ArgValue::None => "None".into(),
            ArgValue::Bool(b) => {
                if *b {
                    "True".into()
                } else {
                    "False".into()
                }
            }
            ArgValue::Int(i) => i.to_string(),
            ArgValue::Float(f) => format!("{f:?}"),
            ArgValue::Str(s) => format!("'{s}'"),
            ArgValue::Ints(v) => tuple(v.iter().map(i64::to_string).collect()),
            ArgValue::Floats(v) => tuple(v.iter().map(|f| format!("{f:?}")).collect()),
            ArgValue::Object(o) => format!("{o:?}"),
        }
    }
}

/// A Rust type that can be a function's argument.
pub trait ArgType: Sized {
    /// What may be given for it.
    const KIND: ArgKind;
    /// Whether it may be left out (`None`).
    const OPTIONAL: bool = false;
    /// What is expected, where a value does not fit.
    const EXPECTED: &'static str = Self::KIND.hint();
    /// `None` if the value does not fit.
    fn from_value(v: ArgValue) -> Option<Self>;
    /// As a value that any language understands.
    fn to_value(&self) -> ArgValue;
    /// Adds the value to a fingerprint of the arguments.
    fn fingerprint(&self, h: &mut dyn FnMut(u64)) {
        match self.to_value() {
            ArgValue::None => h(1),
            ArgValue::Bool(b) => h(2 + b as u64),
            ArgValue::Int(i) => h(i as u64),
            ArgValue::Float(f) => h(f.to_bits()),
            ArgValue::Str(s) => {
                h(s.len() as u64);
                s.bytes().for_each(|b| h(b as u64));
            }
            ArgValue::Ints(v) => {
                h(v.len() as u64 + 2);
                v.iter().for_each(|&i| h(i as u64));
            }
            ArgValue::Floats(v) => {
                h(v.len() as u64 + 2);
                v.iter().for_each(|f| h(f.to_bits()));
            }
            ArgValue::Object(o) => h(Arc::as_ptr(&o.0) as *const u8 as u64),
        }
    }
}

impl ArgType for bool {
    const KIND: ArgKind = ArgKind::Bool;
    fn from_value(v: ArgValue) -> Option<bool> {
        match v {
            ArgValue::Bool(b) => Some(b),
            ArgValue::Int(i) => Some(i != 0),
            _ => None,
        }
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::Bool(*self)
    }
}

impl ArgType for i64 {
    const KIND: ArgKind = ArgKind::Int;
    fn from_value(v: ArgValue) -> Option<i64> {
        match v {
            ArgValue::Int(i) => Some(i),
            ArgValue::Bool(b) => Some(b as i64),
            ArgValue::Float(f) if f.fract() == 0.0 && f.abs() < 9e15 => Some(f as i64),
            _ => None,
        }
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::Int(*self)
    }
    fn fingerprint(&self, h: &mut dyn FnMut(u64)) {
        h(*self as u64);
    }
}

impl ArgType for f64 {
    const KIND: ArgKind = ArgKind::Float;
    fn from_value(v: ArgValue) -> Option<f64> {
        match v {
            ArgValue::Float(f) => Some(f),
            ArgValue::Int(i) => Some(i as f64),
            ArgValue::Bool(b) => Some(b as u8 as f64),
            _ => None,
        }
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::Float(*self)
    }
    fn fingerprint(&self, h: &mut dyn FnMut(u64)) {
        h(self.to_bits());
    }
}

impl ArgType for String {
    const KIND: ArgKind = ArgKind::Str;
    fn from_value(v: ArgValue) -> Option<String> {
        match v {
            ArgValue::Str(s) => Some(s),
            _ => None,
        }
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::Str(self.clone())
    }
}

impl ArgType for Vec<i64> {
    const KIND: ArgKind = ArgKind::Ints;
    fn from_value(v: ArgValue) -> Option<Vec<i64>> {
        match v {
            ArgValue::Ints(v) => Some(v),
            ArgValue::Int(i) => Some(vec![i]),
            ArgValue::Floats(v) => v.into_iter().map(|f| i64::from_value(ArgValue::Float(f))).collect(),
            _ => None,
        }
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::Ints(self.clone())
    }
}

impl ArgType for Vec<f64> {
    const KIND: ArgKind = ArgKind::Floats;
    fn from_value(v: ArgValue) -> Option<Vec<f64>> {
        match v {
            ArgValue::Floats(v) => Some(v),
            ArgValue::Ints(v) => Some(v.into_iter().map(|i| i as f64).collect()),
            ArgValue::Float(f) => Some(vec![f]),
            ArgValue::Int(i) => Some(vec![i as f64]),
            _ => None,
        }
    }
    fn to_value(&self) -> ArgValue {
        ArgValue::Floats(self.clone())
    }
}

impl<T: ArgType> ArgType for Option<T> {
    const KIND: ArgKind = T::KIND;
    const OPTIONAL: bool = true;
    const EXPECTED: &'static str = T::EXPECTED;
    fn from_value(v: ArgValue) -> Option<Option<T>> {
        match v {
            ArgValue::None => Some(None),
            v => T::from_value(v).map(Some),
        }
    }
    fn to_value(&self) -> ArgValue {
        self.as_ref().map_or(ArgValue::None, T::to_value)
    }
}

/// The arguments of a function as words: equal arguments, equal words.
pub type ArgumentsKey = smallvec::SmallVec<[u64; 4]>;

/// Collects fingerprints.
pub fn key(parts: impl FnOnce(&mut dyn FnMut(u64))) -> ArgumentsKey {
    let mut words = ArgumentsKey::new();
    parts(&mut |v| words.push(v));
    words
}
