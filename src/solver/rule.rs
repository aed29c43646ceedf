//! What a solver's file says: its arguments, its states, and its update rule as one expression. The `solver!` macro writes the rest.

use crate::function::{ArgDef, ArgValue, Args};
use nnrs_kernels::error::{Error, ErrorKind, Result};
pub use nnrs_kernels::kernel::update::Scalars;
pub use nnrs_kernels::simd::Number;

/// Everything that is known about a solver before it is made.
///
/// ```
/// let adam = nnrs::solver::Adam::DEF;
/// assert_eq!((adam.name, adam.rate, adam.states), ("Adam", "alpha", ["var", "mean"].as_slice()));
/// ```
pub struct SolverDef {
    /// NNabla's name.
    pub name: &'static str,
    /// The rule, and where it comes from.
    pub doc: &'static str,
    /// Its arguments.
    pub args: &'static [ArgDef],
    /// The argument that `set_learning_rate` stands in for.
    pub rate: &'static str,
    /// Names of the states, in NNabla's order.
    pub states: &'static [&'static str],
    /// Whether `weight_decay` becomes part of the next update instead of changing the gradients.
    pub fuses_weight_decay: bool,
    /// Makes it from arguments by name; those that are absent get their defaults.
    pub build: fn(&mut Args) -> Result<super::Solver>,
}

/// What changes from one update to the next.
///
/// ```
/// use nnrs::solver::{Rule, Sgd, UpdateStep};
/// assert_eq!(Sgd::default().scalars(&UpdateStep { t: 1, learning_rate: 0.5, weight_decay: None }), [0.5]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateStep {
    /// Number of this update, from 1; each parameter has its own.
    pub t: u64,
    /// The learning rate now.
    pub learning_rate: f64,
    /// The rate given to `weight_decay` for this update (only where it is fused).
    pub weight_decay: Option<f64>,
}

/// An update rule of `S` states and `K` numbers a step, which may depend on `M` norms over the whole parameter.
///
/// ```
/// use nnrs::solver::{Number, Rule, Solver, UpdateStep};
/// use nnrs::{solver, Variable};
///
/// solver! {
///     /// `w = w - lr g^2`.
///     Squared, rate lr, states []
///     args { lr: f64 = 0.5, "Learning rate." }
/// }
/// impl Rule<0, 1> for Squared {
///     fn scalars(&self, step: &UpdateStep) -> [f64; 1] {
///         [step.learning_rate]
///     }
///     #[inline(always)]
///     fn formula<N: Number>(w: N, g: N, []: [N; 0], [lr]: [N; 1]) -> (N, [N; 0]) {
///         (w - lr * g.square(), [])
///     }
/// }
///
/// let (w, solver) = (Variable::from_slice(&[1.0f32], [1].into())?.with_need_grad(true), Solver::new(Squared::default()));
/// solver.set_parameters(&[("w".into(), w.clone())], Default::default())?;
/// w.grad().fill(3.0)?;
/// solver.update()?;
/// assert_eq!(w.to_vec::<f32>()?, [-3.5]);
/// # Ok::<(), nnrs::Error>(())
/// ```
pub trait Rule<const S: usize, const K: usize, const M: usize = 0>: Declared + Send + Sync + 'static {
    /// The numbers of a step.
    fn scalars(&self, step: &UpdateStep) -> [f64; K];

    /// The new weight and the new states, from the weight, its gradient, the states and the numbers of the step.
    /// Must be `inline(always)`, because it becomes the body of a vector loop.
    fn formula<N: Number>(w: N, g: N, states: [N; S], scalars: [N; K]) -> (N, [N; S]);

    /// The terms whose L2 norms over the whole parameter the step depends on, from what `formula` gets too. Must be
    /// `inline(always)` as well. Left out: the weights, `M` times.
    #[inline(always)]
    fn normed<N: Number>(w: N, _g: N, _states: [N; S], _scalars: [N; K]) -> [N; M] {
        std::array::repeat(w)
    }

    /// The numbers that `formula` gets, of the numbers of the step and the norms. Left out: the numbers of the step.
    fn with_norms(&self, scalars: [f64; K], _norms: [f64; M]) -> [f64; K] {
        scalars
    }
}

/// What every solver can say of itself; written by the `solver!` macro.
///
/// ```
/// use nnrs::{function::ArgValue, solver::{Declared, Sgd}};
/// let sgd = Sgd { lr: 0.5 };
/// assert_eq!((sgd.def().name, sgd.arguments()), ("Sgd", vec![("lr", ArgValue::Float(0.5))]));
/// ```
pub trait Declared {
    /// What is known about solvers of this kind.
    fn def(&self) -> &'static SolverDef;
    /// The arguments by name.
    fn arguments(&self) -> Vec<(&'static str, ArgValue)>;
    /// Rounds the arguments to float, as NNabla holds them.
    fn round_to_float(&mut self);
    /// Names of the states, in NNabla's order; with some arguments there are others than the registry says.
    fn states(&self) -> &'static [&'static str] {
        self.def().states
    }
    /// Whether `weight_decay` becomes part of the next update, which may depend on the arguments.
    fn fuses_weight_decay(&self) -> bool {
        self.def().fuses_weight_decay
    }
}

/// An argument's type that knows how NNabla holds it.
///
/// ```
/// use nnrs::solver::Held;
/// let mut rate = 0.1;
/// rate.round_to_float();
/// assert_eq!(rate, 0.1f32 as f64);
/// ```
pub trait Held {
    /// Rounds to float if it is a number.
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

/// Makes the solver of the given name from arguments by name; those that are absent get their defaults.
///
/// # Errors
/// No such solver or argument; a value of the wrong type.
///
/// ```
/// use nnrs::{function::ArgValue, solver};
/// let adam = solver::create("Adam", vec![("alpha", ArgValue::Float(0.5))])?;
/// assert_eq!((adam.name(), adam.learning_rate()), ("Adam", 0.5));
/// assert!(solver::create("Eve", vec![]).is_err());
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn create(name: &str, args: Vec<(&'static str, ArgValue)>) -> Result<super::Solver> {
    let found = super::SOLVERS.iter().find(|d| d.name == name);
    let def = found.ok_or_else(|| {
        let names: Vec<_> = super::SOLVERS.iter().map(|d| d.name).collect();
        Error::arg("name", format!("one of {}", names.join(", ")))
            .actual(format!("'{name}'"))
            .function("solver::create")
    })?;
    if let Some((unknown, _)) = args.iter().find(|(n, _)| def.args.iter().all(|a| a.name != *n)) {
        return Err(Error::new(ErrorKind::Type, format!("no argument '{unknown}'")).function(def.name));
    }
    (def.build)(&mut Args::new(args)).map_err(|e| e.function(def.name))
}

/// Declares a solver: its struct (one field an argument) and its registry entry.
///
/// `rate` names the learning rate among the arguments; `fused` says that weight decay is part of the rule. With `made by`
/// a function at the end, the solver is what that makes of the struct, which then is no rule itself.
#[macro_export]
macro_rules! solver {
    (
        $(#[doc = $doc:literal])*
        $name:ident, rate $rate:ident, states [$($state:ident),*] $(, $fused:ident)?
        args { $($arg:ident : $ty:ty = $default:expr, $arg_doc:literal);* $(;)? }
        $(made by $make:path)?
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
                build: |args| Ok($crate::solver::Solver::from($name {
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
                $crate::solver!(@make rule $(, $make)?)
            }
        }
    };
    (@fused) => { false };
    (@fused fused) => { true };
    (@make $rule:ident) => { $crate::solver::Solver::new($rule) };
    (@make $rule:ident, $make:path) => { $make($rule) };
}
