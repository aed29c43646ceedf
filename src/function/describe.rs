//! What the registry knows about a function, and the `function!` macro that writes it down once.

use super::Function;
use super::args::{ArgKind, ArgValue};
use nnrs_kernels::error::{Error, ErrorKind, Result};
use std::sync::Arc;

/// NNabla's chapters; also the folders of this module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Layers: affine maps, convolutions, poolings, embeddings.
    Layer,
    /// Activations.
    Activation,
    /// Normalizations.
    Normalization,
    /// Sums, means, extremes and norms over axes.
    Reduction,
    /// Sums, products and powers, of arrays and of numbers.
    Arithmetic,
    /// Comparisons and logic.
    Logical,
    /// Elementary functions.
    Math,
    /// Moving elements around: shapes, slices, gathering.
    Array,
    /// Random numbers, and what uses them.
    Random,
    /// Losses.
    Loss,
    /// Numbers of few bits; weights set to zero.
    Quantization,
    /// Measures of a network that works.
    Validation,
    /// Signals and images: Fourier transforms, resampling.
    Signal,
    /// Images moved by grids and flows.
    Geometry,
    /// All others; functions of other crates.
    Special,
}

/// Which kernels of a function also take arrays of a GPU; the others run on the host. (Formulas run anywhere.) Those have the
/// context's type, indices are `i64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnGpu {
    /// None: it runs on the host.
    Nothing,
    /// [`Call::forward`](super::Call::forward); the gradient is made by the rule.
    Forward,
    /// [`Call::forward`](super::Call::forward) and [`Call::backward`](super::Call::backward).
    Both,
}

/// How an input is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Must be there.
    Required,
    /// May be absent; then all optional ones after it are absent too.
    Optional,
    /// Any number of inputs, the last of the list.
    Variadic,
    /// Whole numbers (labels, indices): kernels read them as `i64`; no gradient.
    Index,
}

/// One input of a function.
#[derive(Debug)]
pub struct InputDef {
    /// The name in Python and in the builder.
    pub name: &'static str,
    /// How it is given.
    pub kind: InputKind,
    /// What it is, in a line.
    pub doc: &'static str,
}

/// One argument of a function.
pub struct ArgDef {
    /// The name in Python, and of the field in Rust.
    pub name: &'static str,
    /// What may be given.
    pub kind: ArgKind,
    /// Whether it may be `None`.
    pub optional: bool,
    /// The default; `None` for an argument that must be given.
    pub default: Option<fn() -> ArgValue>,
    /// What it is, in a line.
    pub doc: &'static str,
}

/// One output of a function.
#[derive(Debug)]
pub struct OutputDef {
    /// The name.
    pub name: &'static str,
    /// Whether it stands for any number of outputs.
    pub variadic: bool,
    /// What it is, in a line.
    pub doc: &'static str,
}

/// Everything that is known about a function before it is called.
pub struct Def {
    /// NNabla's class name.
    pub name: &'static str,
    /// Name in Python and Rust.
    pub snake: &'static str,
    /// The chapter.
    pub group: Group,
    /// What it computes.
    pub doc: &'static str,
    /// Whether it is a formula, element by element.
    pub elementwise: bool,
    /// Which of its kernels take arrays of a GPU.
    pub on_gpu: OnGpu,
    /// Its inputs.
    pub inputs: &'static [InputDef],
    /// Its arguments.
    pub args: &'static [ArgDef],
    /// Its outputs.
    pub outputs: &'static [OutputDef],
    /// Makes it from arguments by name; those that are absent get their defaults.
    pub build: fn(&mut Args) -> Result<Arc<dyn Function>>,
}

impl Def {
    /// Checks the number of inputs.
    pub fn check_inputs(&self, n: usize) -> Result<()> {
        let most =
            if self.inputs.iter().any(|i| i.kind == InputKind::Variadic) { usize::MAX } else { self.inputs.len() };
        let least = self.inputs.iter().filter(|i| !matches!(i.kind, InputKind::Optional | InputKind::Variadic)).count();
        let least = if most == usize::MAX { least + 1 } else { least };
        if (least..=most).contains(&n) {
            return Ok(());
        }
        let names: Vec<_> = self.inputs.iter().map(|i| i.name).collect();
        let count = if least == most { format!("{least}") } else { format!("at least {least}") };
        let noun = if least == 1 { "input" } else { "inputs" };
        let expected = match names.is_empty() {
            true => "no inputs".to_string(),
            false => format!("{count} {noun} ({})", names.join(", ")),
        };
        Err(Error::new(ErrorKind::Type, expected).actual(n).function(self.snake))
    }

    /// The declared input that input number `i` belongs to. What is given to a function without inputs has no name.
    pub fn input(&self, i: usize) -> &InputDef {
        const NONE: InputDef = InputDef { name: "inputs", kind: InputKind::Required, doc: "Nothing." };
        self.inputs.get(i).or(self.inputs.last()).unwrap_or(&NONE)
    }
}

/// The arguments of one call, taken by name.
pub struct Args {
    values: Vec<(&'static str, ArgValue)>,
}

impl Args {
    /// Arguments by name.
    pub fn new(values: Vec<(&'static str, ArgValue)>) -> Args {
        Args { values }
    }

    /// The value of argument `name`, or its default.
    pub fn take<T: super::args::ArgType>(&mut self, name: &'static str, default: Option<T>) -> Result<T> {
        let given = self.values.iter().position(|(n, _)| *n == name).map(|i| self.values.swap_remove(i).1);
        let Some(value) = given else {
            return default.ok_or_else(|| Error::new(ErrorKind::Type, "a value").actual("none").argument(name));
        };
        let shown = value.repr();
        let hint = if T::OPTIONAL { format!("{} or None", T::EXPECTED) } else { T::EXPECTED.to_string() };
        let kind = if T::EXPECTED == T::KIND.hint() { ErrorKind::Type } else { ErrorKind::Argument };
        T::from_value(value).ok_or_else(|| Error::new(kind, hint).argument(name).actual(shown))
    }
}

/// What every function can say of itself; written by the `function!` macro.
pub trait Described {
    /// What the registry knows, or would know, about it.
    fn def(&self) -> &'static Def;
    /// The arguments by name.
    fn arguments(&self) -> Vec<(&'static str, ArgValue)>;
    /// Equal for functions of one type with equal arguments.
    fn key(&self) -> super::args::ArgumentsKey;
}

/// The name without the `r#` that Rust wants before its own words (`where`).
pub const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// Declares a function: its struct (one field an argument), its registry entry and its Rust builder.
///
/// ```ignore
/// function! {
///     /// Leaky rectified linear unit.
///     LeakyReLU leaky_relu in Activation, elementwise
///     inputs { x: "N-D array." }
///     args { alpha: f64 = 0.1, "Slope for negative values." }
///     outputs { y: "N-D array of x's shape." }
/// }
/// ```
/// Inputs may be marked `[optional]`, `[variadic]` or `[index]`; an argument without `= default` must be given.
#[macro_export]
macro_rules! function {
    (
        $(#[doc = $doc:literal])*
        $name:ident $snake:ident in $group:ident $(, $mark:ident)?
        inputs { $($input:ident $([$kind:ident])? : $input_doc:literal),* $(,)? }
        args { $($arg:ident : $ty:ty $(= $default:expr)?, $arg_doc:literal);* $(;)? }
        outputs { $($output:ident $([$out_kind:ident])? : $output_doc:literal),+ $(,)? }
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $(#[doc = $arg_doc] pub $arg: $ty,)* }

        impl Default for $name {
            fn default() -> Self {
                $name { $($arg: $crate::function!(@default $($default)?),)* }
            }
        }

        impl $name {
            /// The registry entry.
            pub const DEF: &'static $crate::function::Def = &$crate::function::Def {
                name: stringify!($name),
                snake: $crate::function::describe::plain(stringify!($snake)),
                group: $crate::function::Group::$group,
                doc: concat!($($doc, "\n"),*),
                elementwise: $crate::function!(@elementwise $($mark)?),
                on_gpu: $crate::function!(@on_gpu $($mark)?),
                inputs: &[$($crate::function::InputDef {
                    name: stringify!($input),
                    kind: $crate::function!(@kind $($kind)?),
                    doc: $input_doc,
                }),*],
                args: &[$($crate::function::ArgDef {
                    name: stringify!($arg),
                    kind: <$ty as $crate::function::ArgType>::KIND,
                    optional: <$ty as $crate::function::ArgType>::OPTIONAL,
                    default: $crate::function!(@default_value $ty $(= $default)?),
                    doc: $arg_doc,
                }),*],
                outputs: &[$($crate::function::OutputDef {
                    name: stringify!($output),
                    variadic: $crate::function!(@variadic $($out_kind)?),
                    doc: $output_doc,
                }),+],
                build: |args| {
                    let _ = &args;
                    Ok(std::sync::Arc::new($name {
                        $($arg: args.take::<$ty>(stringify!($arg), $crate::function!(@option $($default)?))?,)*
                    }))
                },
            };
        }

        impl $crate::function::Described for $name {
            fn def(&self) -> &'static $crate::function::Def {
                Self::DEF
            }
            fn arguments(&self) -> Vec<(&'static str, $crate::function::ArgValue)> {
                vec![$((stringify!($arg), $crate::function::ArgType::to_value(&self.$arg))),*]
            }
            fn key(&self) -> $crate::function::args::ArgumentsKey {
                $crate::function::args::key(|_h| { $($crate::function::ArgType::fingerprint(&self.$arg, _h);)* })
            }
        }

        $crate::function!(@engine $name $($mark)?);

        $crate::function!(@builder [$(#[doc = $doc])*] $name $snake
            ($($input [$($kind)?])*) ($($arg)*) ($($output [$($out_kind)?])+));
    };

    (@default) => { Default::default() };
    (@default $d:expr) => { $d };
    (@option) => { None };
    (@option $d:expr) => { Some($d) };
    (@default_value $ty:ty) => { None };
    (@default_value $ty:ty = $d:expr) => { Some(|| <$ty as $crate::function::ArgType>::to_value(&$d)) };
    (@elementwise) => { false };
    (@elementwise elementwise) => { true };
    (@elementwise $mark:ident) => { false };
    (@on_gpu) => { $crate::function::OnGpu::Nothing };
    (@on_gpu elementwise) => { $crate::function::OnGpu::Nothing };
    (@on_gpu any_device) => { $crate::function::OnGpu::Both };
    (@on_gpu forward_on_any_device) => { $crate::function::OnGpu::Forward };
    (@kind) => { $crate::function::InputKind::Required };
    (@kind optional) => { $crate::function::InputKind::Optional };
    (@kind variadic) => { $crate::function::InputKind::Variadic };
    (@kind index) => { $crate::function::InputKind::Index };
    (@variadic) => { false };
    (@variadic variadic) => { true };

    (@engine $name:ident) => {};
    (@engine $name:ident any_device) => {};
    (@engine $name:ident forward_on_any_device) => {};
    (@engine $name:ident elementwise) => {
        impl $crate::function::Function for $name {
            fn resolve(&self, x: &[$crate::Shape]) -> $crate::Result<$crate::function::Resolved> {
                $crate::function::elementwise::resolve(self, x)
            }
            fn elementwise(&self) -> Option<&dyn $crate::function::Elementwise> {
                Some(self)
            }
        }
    };

    (@ty) => { &$crate::Variable };
    (@ty index) => { &$crate::Variable };
    (@ty optional) => { Option<&$crate::Variable> };
    (@ty variadic) => { &[&$crate::Variable] };
    (@push $list:ident $input:ident) => { $list.push($input) };
    (@push $list:ident $input:ident index) => { $list.push($input) };
    (@push $list:ident $input:ident optional) => { $list.extend($input) };
    (@push $list:ident $input:ident variadic) => { $list.extend_from_slice($input) };

    (@builder [$(#[$doc:meta])*] $name:ident $snake:ident
        ($($input:ident [$($kind:ident)?])*) ($($arg:ident)+) ($output:ident [])) => {
        $(#[$doc])*
        #[allow(unused_mut, clippy::vec_init_then_push)]
        pub fn $snake($($input: $crate::function!(@ty $($kind)?),)* args: $name) -> $crate::Result<$crate::Variable> {
            let mut inputs: Vec<&$crate::Variable> = Vec::new();
            $($crate::function!(@push inputs $input $($kind)?);)*
            $crate::function::call_one(args, &inputs)
        }
    };
    (@builder [$(#[$doc:meta])*] $name:ident $snake:ident
        ($($input:ident [$($kind:ident)?])*) () ($output:ident [])) => {
        $(#[$doc])*
        #[allow(unused_mut, clippy::vec_init_then_push)]
        pub fn $snake($($input: $crate::function!(@ty $($kind)?)),*) -> $crate::Result<$crate::Variable> {
            let mut inputs: Vec<&$crate::Variable> = Vec::new();
            $($crate::function!(@push inputs $input $($kind)?);)*
            $crate::function::call_one($name {}, &inputs)
        }
    };
    (@builder [$(#[$doc:meta])*] $name:ident $snake:ident
        ($($input:ident [$($kind:ident)?])*) ($($arg:ident)*) ($($output:ident [$($out:ident)?])+)) => {
        $(#[$doc])*
        #[allow(unused_mut, clippy::vec_init_then_push)]
        pub fn $snake($($input: $crate::function!(@ty $($kind)?),)* args: $name) -> $crate::Result<Vec<$crate::Variable>> {
            let mut inputs: Vec<&$crate::Variable> = Vec::new();
            $($crate::function!(@push inputs $input $($kind)?);)*
            $crate::function::call(args, &inputs)
        }
    };
}
