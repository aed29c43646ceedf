//! What a solver's file says: its arguments, its states, and its update rule as one expression. The `solver!` macro writes the rest.

use crate::error::{Error, ErrorKind, Result};
use crate::function::expr::{Expr, Formula};
use crate::function::{ArgDef, ArgValue, Args};
use smallvec::SmallVec;

/// Everything that is known about a solver before it is made.
pub struct SolverDef {
    /// NNabla's name.
    pub name: &'static str,
    pub doc: &'static str,
    pub args: &'static [ArgDef],
    /// The argument that `set_learning_rate` stands in for.
    pub rate: &'static str,
    /// Names of the states, in NNabla's order.
    pub states: &'static [&'static str],
    /// Whether `weight_decay` becomes part of the next update instead of changing the gradients.
    pub fuses_weight_decay: bool,
    pub build: fn(&mut Args) -> Result<super::Solver>,
}

/// What changes from one update to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Number of this update, from 1; each parameter has its own.
    pub t: u64,
    pub learning_rate: f64,
    /// The rate given to `weight_decay` for this update (only where it is fused).
    pub weight_decay: Option<f64>,
}

/// The numbers of one step that a formula uses.
pub type Scalars = SmallVec<[f64; 4]>;

/// What a formula is made of: one element each.
pub struct Terms<'a> {
    pub w: &'a Expr,
    pub g: &'a Expr,
    /// In the order of [`SolverDef::states`].
    pub states: &'a [Expr],
    /// In the order of [`Rule::scalars`].
    pub scalars: &'a [Expr],
}

/// An update rule.
pub trait Rule: Declared + Send + Sync + 'static {
    /// The numbers of a step; always as many.
    fn scalars(&self, step: &Step) -> Scalars;

    /// The new weight, then the new states.
    fn formula(&self, x: &Terms) -> Vec<Expr>;
}

/// What every solver can say of itself; written by the `solver!` macro.
pub trait Declared {
    fn def(&self) -> &'static SolverDef;
    /// The arguments by name.
    fn arguments(&self) -> Vec<(&'static str, ArgValue)>;
    /// Rounds the arguments to float, as NNabla holds them.
    fn round_to_float(&mut self);
}

/// An argument's type that knows how NNabla holds it.
pub trait Held {
    fn round_to_float(&mut self);
}

impl Held for f64 {
    fn round_to_float(&mut self) {
        *self = *self as f32 as f64;
    }
}

impl Held for bool {
    fn round_to_float(&mut self) {}
}

/// The formula of a rule: inputs weight, gradient, states; outputs weight, states.
pub(super) fn formula_of(rule: &dyn Rule) -> Formula {
    let states = rule.def().states.len();
    let scalars = rule.scalars(&Step { t: 1, learning_rate: 0.0, weight_decay: None }).len();
    Formula::with_scalars(2 + states, scalars, |x, s| {
        let terms = Terms { w: &x[0], g: &x[1], states: &x[2..], scalars: s };
        rule.formula(&terms).into_iter().map(Some).collect()
    })
}

/// Makes the solver of the given name from arguments by name; those that are absent get their defaults.
pub fn create(name: &str, args: Vec<(&'static str, ArgValue)>) -> Result<super::Solver> {
    let found = super::SOLVERS.iter().find(|d| d.name == name);
    let def = found.ok_or_else(|| {
        let names: Vec<_> = super::SOLVERS.iter().map(|d| d.name).collect();
        Error::arg("name", format!("one of {}", names.join(", "))).actual(format!("'{name}'"))
    })?;
    if let Some((unknown, _)) = args.iter().find(|(n, _)| def.args.iter().all(|a| a.name != *n)) {
        return Err(Error::new(ErrorKind::Type, format!("no argument '{unknown}'")).function(def.name));
    }
    (def.build)(&mut Args::new(args)).map_err(|e| e.function(def.name))
}

/// Declares a solver: its struct (one field an argument) and its registry entry.
///
/// `rate` names the learning rate among the arguments; `fused` says that weight decay is part of the rule.
#[macro_export]
macro_rules! solver {
    (
        $(#[doc = $doc:literal])*
        $name:ident, rate $rate:ident, states [$($state:ident),*] $(, $fused:ident)?
        args { $($arg:ident : $ty:ty = $default:expr, $arg_doc:literal);* $(;)? }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $(#[doc = $arg_doc] pub $arg: $ty,)* }

        impl Default for $name {
            fn default() -> Self {
                $name { $($arg: $default,)* }
            }
        }

        impl $name {
            /// The registry entry.
            pub const DEF: &'static $crate::solver::SolverDef = &$crate::solver::SolverDef {
                name: stringify!($name),
                doc: concat!($($doc, "\n"),*),
                args: &[$($crate::function::ArgDef {
                    name: stringify!($arg),
                    kind: <$ty as $crate::function::ArgType>::KIND,
                    optional: <$ty as $crate::function::ArgType>::OPTIONAL,
                    default: Some(|| <$ty as $crate::function::ArgType>::to_value(&$default)),
                    doc: $arg_doc,
                }),*],
                rate: stringify!($rate),
                states: &[$(stringify!($state)),*],
                fuses_weight_decay: $crate::solver!(@fused $($fused)?),
                build: |args| Ok($crate::solver::Solver::new($name {
                    $($arg: args.take::<$ty>(stringify!($arg), Some($default))?,)*
                })),
            };
        }

        impl $crate::solver::Declared for $name {
            fn def(&self) -> &'static $crate::solver::SolverDef {
                Self::DEF
            }
            fn arguments(&self) -> Vec<(&'static str, $crate::function::ArgValue)> {
                vec![$((stringify!($arg), $crate::function::ArgType::to_value(&self.$arg))),*]
            }
            fn round_to_float(&mut self) {
                $($crate::solver::Held::round_to_float(&mut self.$arg);)*
            }
        }

        impl From<$name> for $crate::solver::Solver {
            fn from(rule: $name) -> $crate::solver::Solver {
                $crate::solver::Solver::new(rule)
            }
        }
    };
    (@fused) => { false };
    (@fused fused) => { true };
}
