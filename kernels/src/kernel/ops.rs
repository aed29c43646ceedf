//! What kernels are built of, on any device: the arrays say where it is done.

use crate::array::{AxisMap, Data, NdArray, Output, Place};
use crate::call::View;
use crate::cuda;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::expr::Formula;
use crate::kernel::moves::Moves;
use crate::kernel::reduction::cpu as cpu_reduce;
use crate::kernel::reduction::cuda as cuda_reduce;
use crate::kernel::reduction::cuda::DeviceReduction;
use crate::pool::tasks::{self, PART};
use crate::shape::Shape;
use crate::simd;
use crate::tile::Walk;
use crate::tile::formula::{FormulaInput, apply};
use crate::{with_dtype, with_real};

/// Copies a box of elements of `x` to one of `y`, or adds it.
pub fn moves(moves: Moves, y: &Data, x: &Data, output: Output) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => moves.run_on_gpu(y, x, output),
        Place::Host => {
            with_real!(y.dtype(), T => moves.run(y.as_mut_slice::<T>(), x.as_slice(), output));
            Ok(())
        }
    }
}

/// Copies the elements of a view that is `axes` of `x`; `dense` is the copy where x lies in order.
pub fn pick(axes: &AxisMap, dense: &Moves, x: &View, y: &Data) -> Result<()> {
    let copy = x.strides().map_or_else(|| dense.clone(), |x| Moves::gather(&axes.of(x)));
    moves(copy, y, &x.data, Output::Write)
}

/// Writes `x` to `y`, or adds it, which has as many elements.
pub fn put(y: &Data, x: &Data, output: Output) -> Result<()> {
    match (y.place(), output) {
        (Place::Gpu(_), _) => return Moves::new(0, 0).axis(x.len(), 1, 1).run_on_gpu(y, x, output),
        (Place::Host, Output::Write) => y.copy_from(x),
        (Place::Host, _) => with_real!(y.dtype(), T => {
            let (y, x) = (y.as_mut_slice::<T>(), x.as_slice::<T>());
            assert_eq!(y.len(), x.len(), "arrays of one size");
            tasks::parts(y, PART, |i, y| simd::add_assign(y, &x[i * PART..][..y.len()]));
        }),
    }
    Ok(())
}

/// Writes a result to an array that is stored as `dtype`, or adds it.
pub fn put_as(array: &NdArray, dtype: DType, x: &Data, output: Output) -> Result<()> {
    let (place, n) = (x.place(), x.len());
    if output == Output::Write {
        return array.overwrite_at(place, dtype)?.of(n)?.take(x);
    }
    let y = array.modify_at(place, dtype)?.of(n)?;
    if place != Place::Host {
        return cuda::convert::put(&y, x, output);
    }
    let compute = x.dtype();
    let sum = if dtype == compute { y.clone() } else { y.converted(compute)? };
    let x = if x.address() == sum.address() { &x.converted(compute)? } else { x };
    put(&sum, x, output)?;
    if dtype != compute {
        y.copy_from(&sum);
    }
    Ok(())
}

/// `n` indices for kernels at `place`: whole numbers; NaN is the smallest. On the host they are a copy: a kernel that has checked
/// them reads them again, and another thread may write the array meanwhile.
pub fn indices(a: &NdArray, n: usize, place: Place) -> Result<Data> {
    if !a.dtype().is_float() {
        let data = a.read_at(place, DType::I64)?.of(n)?;
        let is_the_arrays = place == Place::Host && a.dtype() == DType::I64;
        return if is_the_arrays { data.converted(DType::I64) } else { Ok(data) };
    }
    if place != Place::Host {
        return cuda::convert::indices(&a.read_at(place, a.dtype())?.of(n)?);
    }
    let (from, to) = (a.read(a.dtype())?.of(n)?, Data::new(DType::I64, n)?);
    with_dtype!(from.dtype(), T => {
        for (y, &x) in to.as_mut_slice::<i64>().iter_mut().zip(from.as_slice::<T>()) {
            let x = Element::to_f64(x);
            *y = if x.is_nan() { i64::MIN } else { x as i64 };
        }
    });
    Ok(to)
}

/// Sets all elements, which are of the type to compute in or a GPU's, to `value`.
pub fn fill(y: &Data, value: f64) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => cuda::convert::fill(y, value),
        Place::Host => {
            with_real!(y.dtype(), T => simd::fill(y.as_mut_slice::<T>(), value as T));
            Ok(())
        }
    }
}

/// Begins a result with what is given, which may lie there already, or with zeros.
pub fn begin(y: &Data, given: Option<&Data>) -> Result<()> {
    match given {
        Some(given) if given.address() == y.address() => Ok(()),
        Some(given) => put(y, given, Output::Write),
        None => fill(y, 0.0),
    }
}

/// Sums `x` over the axes of `mask` into `y`.
pub fn sum(x: &View, mask: &[bool], y: &Data, output: Output) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => cuda_reduce::reduce(DeviceReduction::Sum, &x.data, x.shape, mask, y, 1.0, output)?,
        Place::Host => with_real!(y.dtype(), T => {
            cpu_reduce::sum_axes::<T>(x, x.shape, mask, y.as_mut_slice(), output)
        }),
    }
    Ok(())
}

/// Sums `x` of shape `from` down to shape `to`, which broadcasts to it.
pub fn sum_to(x: &Data, from: &Shape, y: &Data, to: &Shape, output: Output) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => cuda_reduce::sum_to(x, from, y, to, output)?,
        Place::Host => with_real!(y.dtype(), T => {
            cpu_reduce::sum_to(x.as_slice::<T>(), from, y.as_mut_slice(), to, output)
        }),
    }
    Ok(())
}

/// As [`sum_to`] on the host, of an array that has the number in `x` everywhere.
pub fn sum_constant(x: &Data, from: &Shape, y: &Data, to: &Shape, output: Output) -> Result<()> {
    with_real!(y.dtype(), T => {
        cpu_reduce::sum_constant::<T>(x.as_slice()[0], from, y.as_mut_slice(), to, output);
        Ok(())
    })
}

/// Repeats `x` of shape `from` over shape `to`, which it broadcasts to.
pub fn broadcast(x: &Data, from: &Shape, y: &Data, to: &Shape, output: Output) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => cuda::program::broadcast(x, from, y, to, 1.0, output)?,
        Place::Host => with_real!(y.dtype(), T => {
            cpu_reduce::broadcast(x.as_slice::<T>(), from, y.as_mut_slice(), to, output)
        }),
    }
    Ok(())
}

/// `y = f(x..)`, or `y += f(x..)`; for each input how it is walked over.
pub fn formula(f: &Formula, x: &[(&Data, Walk)], y: &Data, output: Output) -> Result<()> {
    match y.place() {
        Place::Gpu(_) => cuda::program::apply_to(f, x, y, output),
        Place::Host => with_real!(y.dtype(), T => {
            let operands = x.iter().map(|(data, walk)| FormulaInput { data: data.as_slice::<T>(), walk: walk.clone() });
            let operands: Vec<FormulaInput<T>> = operands.collect();
            apply(f, &operands, y.as_mut_slice(), output);
            Ok(())
        }),
    }
}
