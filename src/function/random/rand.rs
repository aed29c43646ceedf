//! `rand`, `randn` and `randint`: arrays of random numbers.

use super::seed::Numbered;
use crate::function;
use crate::function::array::List;
use crate::function::{Function, Run, Shapes, View, ViewMut};
use nnrs_kernels::array::Place;
use nnrs_kernels::cpu::philox;
use nnrs_kernels::cuda;
use nnrs_kernels::dtype::{DType, Element};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::random::Seed;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::with_real;
use smallvec::smallvec;

macro_rules! random {
    (@run $run:ident, $T:ident; $e:expr) => { with_real!($run.dtype, $T => $e) };
    (@run $run:ident, $T:ident, $own:ident; $e:expr) => {{ type $T = $own; $e }};
    (@dtype) => { None };
    (@dtype $own:ident) => { Some(<$own as Element>::DTYPE) };
    ($(
        #[doc = $doc:literal]
        $name:ident $snake:ident ($($arg:ident: $ty:ty = $default:expr, $arg_doc:literal);*)
        $make:ident $(as $own:ident)?, |$low:ident, $high:ident| $check:expr;
    )*) => {$(
        function! {
            #[doc = $doc]
            $name $snake in Random, any_device
            inputs { }
            args {
                $($arg: $ty = $default, $arg_doc;)*
                shape: List = List::default(), "Shape of the result.";
                seed: Seed = Seed::default(), "Seed of this function; -1: the global random stream."
            }
            outputs { y: "Random numbers of the given shape." }
        }

        impl Function for $name {
            fn infer(&self, _x: &[Shape]) -> Result<Shapes> {
                let ($low, $high) = ($(self.$arg),*);
                $check?;
                size(&self.shape)
            }

            fn forward(&self, run: &Run, _x: &[View], y: &mut [ViewMut]) -> Result<()> {
                let numbers = self.seed.numbers(run)?;
                if let Place::Gpu(_) = y[0].data.place() {
                    return cuda::random::$make(numbers, &y[0].data, $(self.$arg),*);
                }
                random!(@run run, T $(, $own)?; philox::$make(numbers.known()?, y[0].slice::<T>(), $(self.$arg),*));
                Ok(())
            }

            fn output_dtype(&self, _i: usize) -> Option<DType> {
                random!(@dtype $($own)?)
            }

            fn has_state(&self) -> bool {
                true
            }
        }
    )*};
}

random! {
    #[doc = "Uniform random numbers, at least `low` and less than `high`."]
    Rand rand (low: f64 = 0.0, "The lower bound."; high: f64 = 1.0, "The upper bound.")
        uniform, |low, high| above(low < high, high);
    #[doc = "Normal random numbers."]
    Randn randn (mu: f64 = 0.0, "The mean."; sigma: f64 = 1.0, "The standard deviation.")
        normal, |_mu, sigma| nonzero(sigma);
    #[doc = "Random integers, at least `low` and less than `high`."]
    Randint randint (low: i64 = 0, "The lower bound."; high: i64 = 1, "The upper bound.")
        integers as i32, |low, high| above(low < high, high);
}

fn above(ordered: bool, high: impl std::fmt::Display) -> Result<()> {
    if ordered { Ok(()) } else { Err(Error::arg("high", "a number larger than `low`").actual(high)) }
}

fn nonzero(sigma: f64) -> Result<()> {
    if sigma != 0.0 { Ok(()) } else { Err(Error::arg("sigma", "a number other than 0").actual(sigma)) }
}

fn size(shape: &List) -> Result<Shapes> {
    match shape.iter().find(|d| **d < 0) {
        Some(d) => Err(Error::arg("shape", "sizes of 0 or more").actual(d)),
        None => Ok(smallvec![shape.iter().map(|&d| d as usize).collect()]),
    }
}
