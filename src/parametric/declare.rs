//! The `parametric!` macro, which writes a parametric function down once.

use crate::function::{ArgDef, Args};
use crate::graph::Variable;
use nnrs_kernels::error::{Error, ErrorKind, Result};

/// A parameter of a layer, as the documentation shows it.
#[derive(Debug)]
pub struct ParameterDef {
    /// The name in the layer's scope.
    pub name: &'static str,
    /// The shape, in the arguments' words.
    pub shape: &'static str,
    /// Whether it is trained (`need_grad`).
    pub is_trained: bool,
    /// What it is, in a line.
    pub doc: &'static str,
}

/// A variable that a layer must be given.
#[derive(Debug)]
pub struct LayerInput {
    /// Name in Python and Rust.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
}

/// A layer with its arguments, ready for its inputs. Its parameters are made in the scope that is current then.
pub type LayerCall = Box<dyn FnOnce(&[Variable]) -> Result<Vec<Variable>>>;

/// Everything that is known about a parametric function before it is called.
pub struct LayerDef {
    /// Name in Python and Rust.
    pub name: &'static str,
    /// The scope of its parameters.
    pub scope: &'static str,
    /// What it computes.
    pub doc: &'static str,
    /// Its inputs, which come before all arguments. What may be left out is an argument, an `Option<Variable>`.
    pub inputs: &'static [LayerInput],
    /// Its arguments; those without a default must be given.
    pub args: &'static [ArgDef],
    /// Its parameters.
    pub parameters: &'static [ParameterDef],
    /// What it gives.
    pub returns: &'static str,
    /// Whether that may be several variables.
    pub has_several_outputs: bool,
    /// Python code that shows a use, with its output.
    pub example: &'static str,
    /// Makes a call from arguments by name; those that are absent get their defaults.
    pub build: fn(&mut Args) -> Result<LayerCall>,
}

impl LayerDef {
    /// An error of one of its parts as an error of the layer, which is what was called.
    pub(crate) fn told(&self, e: Error) -> Error {
        let is_own = |argument: &str| {
            self.inputs.iter().any(|x| x.name == argument) || self.args.iter().any(|a| a.name == argument)
        };
        e.part_of(self.name, is_own)
    }
}

/// What a call with another number of inputs says.
pub(super) fn misfit() -> Error {
    Error::new(ErrorKind::Type, "as many inputs as the function has")
}

/// Declares a parametric function: its struct of options, its Rust function and what Python is made from. The struct's
/// method `build` makes the parameters (in the layer's scope, which is current then) and calls the function.
///
/// The inputs come first, then the arguments that must be given; those with defaults follow. The order is that of Python.
/// An input that may be left out is one of those, an `Option<Variable>`. `outputs several`: the Rust function gives a list.
macro_rules! parametric {
    (
        $(#[doc = $doc:literal])*
        $name:ident $snake:ident in $scope:literal $(, outputs $several:ident)?
        inputs { $($input:ident : $input_doc:literal),+ $(,)? }
        required { $($need:ident : $need_ty:ty, $need_doc:literal);* $(;)? }
        options { $($arg:ident : $ty:ty = $default:expr, $arg_doc:literal);* $(;)? }
        parameters { $($param:literal $shape:literal $(, $fixed:ident)? : $param_doc:literal);+ $(;)? }
        returns $returns:literal
        example $example:literal
    ) => {
        #[doc = concat!("Options of [`", stringify!($snake), "`].")]
        #[derive(Clone, Debug)]
        pub struct $name { $(#[doc = $arg_doc] pub $arg: $ty,)* }

        impl Default for $name {
            fn default() -> Self {
                $name { $($arg: $default,)* }
            }
        }

        impl $name {
            pub(super) const DEF: &'static $crate::parametric::declare::LayerDef = &$crate::parametric::declare::LayerDef {
                name: stringify!($snake),
                scope: $scope,
                doc: concat!($($doc, "\n"),*),
                inputs: &[$($crate::parametric::declare::LayerInput {
                    name: stringify!($input),
                    doc: $input_doc,
                }),+],
                args: &[
                    $($crate::function::ArgDef {
                        name: stringify!($need),
                        kind: <$need_ty as $crate::function::ArgType>::KIND,
                        optional: false,
                        default: None,
                        doc: $need_doc,
                    },)*
                    $($crate::function::ArgDef {
                        name: stringify!($arg),
                        kind: <$ty as $crate::function::ArgType>::KIND,
                        optional: <$ty as $crate::function::ArgType>::OPTIONAL,
                        default: Some(|| <$ty as $crate::function::ArgType>::to_value(&$default)),
                        doc: $arg_doc,
                    },)*
                ],
                parameters: &[$($crate::parametric::declare::ParameterDef {
                    name: $param,
                    shape: $shape,
                    is_trained: true $(& $crate::parametric::declare::parametric!(@trained $fixed))?,
                    doc: $param_doc,
                }),+],
                returns: $returns,
                has_several_outputs: false $(| $crate::parametric::declare::parametric!(@several $several))?,
                example: $example,
                build: |args| {
                    $(let $need = args.take::<$need_ty>(stringify!($need), None)?;)*
                    let options = $name { $($arg: args.take::<$ty>(stringify!($arg), Some($default))?,)* };
                    Ok(Box::new(move |given| {
                        let [$($input),+] = given else { return Err($crate::parametric::declare::misfit()) };
                        options.build($($input,)+ $($need),*)
                    }))
                },
            };
        }

        $(#[doc = $doc])*
        ///
        /// # Errors
        /// Arguments that do not fit the input; there is a parameter of that name and another shape.
        #[allow(clippy::too_many_arguments)]
        pub fn $snake(
            name: &str,
            $($input: &$crate::Variable,)+
            $($need: impl Into<$need_ty>,)*
            options: $name,
        ) -> $crate::Result<$crate::parametric::declare::parametric!(@output $($several)?)> {
            let inputs = [$((stringify!($input), $input)),+];
            let build = || options.build($($input,)+ $($need.into()),*);
            let made = $crate::parametric::layer::in_scope($name::DEF, name, &inputs, build)?;
            $crate::parametric::declare::parametric!(@result made $($several)?)
        }
    };
    (@trained statistics) => { false };
    (@several several) => { true };
    (@output) => { $crate::Variable };
    (@output several) => { Vec<$crate::Variable> };
    (@result $made:ident) => {{ let mut made = $made; Ok(made.swap_remove(0)) }};
    (@result $made:ident several) => { Ok($made) };
}
pub(super) use parametric;
