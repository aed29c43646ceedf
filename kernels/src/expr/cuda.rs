//! Formulas as CUDA C: the source of the kernels that run element-wise functions, and runs of them, on a GPU.
//!
//! A kernel takes its inputs, its outputs, the numbers of the run, a mask of the outputs to add to, and a layout:
//! `leaky_relu_backward(x0, y, gy, gx0, add, layout)`. Inputs that the formula does not read, and outputs that the caller does not
//! want, may be null. Compile with [`OPTIONS`].
//!
//! What the engine compiles at run time has other kernels around the same formulas: `generated`.

pub mod generated;

use super::Formula;
use super::op::{Binary, Unary};
use super::ssa::{Id, Ins};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use std::fmt::Write;

/// What every kernel stands on; goes before the kernels of a source file.
pub const PRELUDE: &str = include_str!("../../../cuda/elementwise.cuh");

/// What NVRTC must be told, so that kernels do the CPU's arithmetic.
pub const OPTIONS: [&str; 1] = ["--fmad=false"];

/// How values of an element type are stored and computed.
#[derive(Clone, Copy)]
struct CudaType {
    storage: &'static str,
    value: &'static str,
}

impl CudaType {
    fn of(dtype: DType) -> Result<CudaType> {
        let (storage, value) = match dtype {
            DType::F32 => ("float", "float"),
            DType::F64 => ("double", "double"),
            DType::F16 => ("nnrs::half", "float"),
            DType::BF16 => ("nnrs::bfloat16", "float"),
            _ => return Err(Error::new(ErrorKind::Dtype, "a float type").argument("dtype").actual(dtype)),
        };
        Ok(CudaType { storage, value })
    }

    fn is_double(self) -> bool {
        self.value == "double"
    }
}

/// The names of a kernel's parameters.
struct ParameterNames {
    inputs: Vec<String>,
    outputs: Vec<String>,
}

impl ParameterNames {
    /// `x0..` to `y0..`
    fn plain(f: &Formula) -> ParameterNames {
        ParameterNames { inputs: numbered("x", f.inputs()), outputs: numbered("y", f.outputs().len()) }
    }

    /// `x0.., y, gy` to `gx0..`, as derivatives have them.
    fn backward(f: &Formula) -> ParameterNames {
        let mut inputs = numbered("x", f.outputs().len());
        inputs.extend(["y".into(), "gy".into()]);
        ParameterNames { inputs, outputs: numbered("gx", f.outputs().len()) }
    }
}

fn numbered(stem: &str, n: usize) -> Vec<String> {
    (0..n).map(|k| format!("{stem}{k}")).collect()
}

/// The kernel of a formula: parameters `x0.., y0.., s0.., add, layout`. A gap among the outputs has no parameter.
///
/// ```
/// use nnrs_kernels::DType;
/// use nnrs_kernels::expr::{Formula, cuda};
/// let twice = Formula::new(1, |x| vec![Some(&x[0] * 2.0)]);
/// assert!(cuda::kernel("twice", &twice, DType::F32)?.contains("const float v2 = v0 * v1;"));
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
pub fn kernel(name: &str, formula: &Formula, dtype: DType) -> Result<String> {
    Ok(print(name, formula, &ParameterNames::plain(formula), CudaType::of(dtype)?))
}

/// The whole source of a function's kernels, `<name>_forward` and, if it has gradients, `<name>_backward`.
///
/// # Errors
/// `dtype` is not a float type.
pub fn source(name: &str, forward: &Formula, backward: &Formula, dtype: DType) -> Result<String> {
    let real = CudaType::of(dtype)?;
    let mut text = format!("{PRELUDE}\n");
    text += &print(&format!("{name}_forward"), forward, &ParameterNames::plain(forward), real);
    if backward.outputs().iter().any(Option::is_some) {
        text.push('\n');
        text += &print(&format!("{name}_backward"), backward, &ParameterNames::backward(backward), real);
    }
    Ok(text)
}

fn print(name: &str, f: &Formula, names: &ParameterNames, real: CudaType) -> String {
    let mut body = String::new();
    let wanted = f.wanted();
    for (id, &ins) in f.ins().iter().enumerate().filter(|(id, _)| wanted[*id]) {
        let load = |k: u32| format!("nnrs::load({}, at[{k}])", names.inputs[k as usize]);
        let _ = writeln!(body, "    const {} v{id} = {};", real.value, value(ins, load, real));
    }
    for (k, id) in f.outputs().iter().enumerate() {
        if let Some(id) = id {
            let _ = writeln!(body, "    nnrs::store({}, i, v{id}, add & {}u);", names.outputs[k], 1u32 << k);
        }
    }
    let n = f.inputs().max(1);
    format!(
        "extern \"C\" __global__ void {name}({}) {{\n\
         \x20 for (long long i = nnrs::first(); i < layout.n; i += nnrs::step()) {{\n\
         \x20   long long at[{n}];\n\
         \x20   layout.offsets(i, at);\n\
         {body}  }}\n}}\n",
        parameters(f, names, real)
    )
}

/// No pointer is `__restrict__`: the engine writes an output over an input's memory where that cannot be observed.
fn parameters(f: &Formula, names: &ParameterNames, real: CudaType) -> String {
    let mut list: Vec<String> = names.inputs.iter().map(|x| format!("const {} *{x}", real.storage)).collect();
    let present = names.outputs.iter().zip(f.outputs()).filter(|(_, id)| id.is_some());
    list.extend(present.map(|(y, _)| format!("{} *{y}", real.storage)));
    list.extend(numbered("s", f.scalars()).iter().map(|s| format!("{} {s}", real.value)));
    list.push("unsigned add".into());
    list.push(format!("nnrs::Layout<{}> layout", f.inputs().max(1)));
    list.join(", ")
}

/// The value of an instruction; `load` reads an input.
fn value(ins: Ins, load: impl Fn(u32) -> String, real: CudaType) -> String {
    match ins {
        Ins::Input(k) => load(k),
        Ins::Scalar(k) => format!("s{k}"),
        Ins::Const(bits) => constant(f64::from_bits(bits), real),
        Ins::Unary(op, a) => unary(op, a, real),
        Ins::Binary(op, a, b) => binary(op, a, b, real),
        Ins::Select(c, a, b) => format!("v{c} != 0 ? v{a} : v{b}"),
    }
}

/// A number, to the last bit: whole ones as they are, others in hexadecimal with the decimal beside.
fn constant(v: f64, real: CudaType) -> String {
    let (decimal, suffix) = (v, if real.is_double() { "" } else { "f" });
    let v = if real.is_double() { v } else { v as f32 as f64 };
    match v {
        _ if v.is_nan() => "NNRS_NAN".into(),
        _ if v.is_infinite() => if v > 0.0 { "NNRS_INF" } else { "-NNRS_INF" }.into(),
        _ if v.fract() == 0.0 && v.abs() < 1e6 => format!("{v:?}{suffix}"),
        _ => format!("{}{suffix} /* {decimal:?} */", hexadecimal(v)),
    }
}

/// `v` as C's hexadecimal floating literal.
fn hexadecimal(v: f64) -> String {
    let bits = v.to_bits();
    let sign = if v.is_sign_negative() { "-" } else { "" };
    let (exponent, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
    // Subnormal numbers have no leading one.
    let (lead, exponent) = if exponent == 0 { (0, -1022) } else { (1, exponent - 1023) };
    let digits = format!("{fraction:013x}");
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    format!("{sign}0x{lead}.{digits}p{exponent:+}")
}

fn unary(op: Unary, a: Id, real: CudaType) -> String {
    let word = match op {
        Unary::Neg => return format!("-v{a}"),
        Unary::IsNan => return format!("({})(v{a} != v{a})", real.value),
        Unary::IsInf => return format!("({})(fabs(v{a}) == NNRS_INF)", real.value),
        Unary::Not => return format!("({})(v{a} == 0)", real.value),
        Unary::Abs => "fabs",
        Unary::Sign => "nnrs::sign",
        Unary::Sigmoid => "nnrs::sigmoid",
        Unary::RoundF16 => "nnrs::round_f16",
        Unary::RoundBF16 => "nnrs::round_bf16",
        Unary::Floor => "floor",
        Unary::Ceil => "ceil",
        Unary::Round => "round",
        Unary::Sqrt => "sqrt",
        Unary::Exp => "exp",
        Unary::Expm1 => "expm1",
        Unary::Log => "log",
        Unary::Log1p => "log1p",
        Unary::Sin => "sin",
        Unary::Cos => "cos",
        Unary::Tan => "tan",
        Unary::Sinh => "sinh",
        Unary::Cosh => "cosh",
        Unary::Tanh => "tanh",
        Unary::Asin => "asin",
        Unary::Acos => "acos",
        Unary::Atan => "atan",
        Unary::Asinh => "asinh",
        Unary::Acosh => "acosh",
        Unary::Atanh => "atanh",
        Unary::Erf => "erf",
    };
    format!("{word}(v{a})")
}

fn binary(op: Binary, a: Id, b: Id, real: CudaType) -> String {
    let truth = |condition: String| format!("({})({condition})", real.value);
    match op {
        Binary::Add => format!("v{a} + v{b}"),
        Binary::Sub => format!("v{a} - v{b}"),
        Binary::Mul => format!("v{a} * v{b}"),
        Binary::Div => format!("v{a} / v{b}"),
        Binary::Pow => format!("pow(v{a}, v{b})"),
        Binary::Atan2 => format!("atan2(v{a}, v{b})"),
        Binary::Max => format!("v{a} > v{b} ? v{a} : v{b}"),
        Binary::Min => format!("v{a} < v{b} ? v{a} : v{b}"),
        Binary::Lt => truth(format!("v{a} < v{b}")),
        Binary::Le => truth(format!("v{a} <= v{b}")),
        Binary::Gt => truth(format!("v{a} > v{b}")),
        Binary::Ge => truth(format!("v{a} >= v{b}")),
        Binary::Eq => truth(format!("v{a} == v{b}")),
        Binary::Ne => truth(format!("v{a} != v{b}")),
        Binary::And => truth(format!("v{a} != 0 && v{b} != 0")),
        Binary::Or => truth(format!("v{a} != 0 || v{b} != 0")),
        Binary::Xor => truth(format!("(v{a} != 0) != (v{b} != 0)")),
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(constants_are_exact);
    fn constants_are_exact() {
        let (single, double) = (CudaType::of(DType::F32).unwrap(), CudaType::of(DType::F64).unwrap());
        assert_eq!(constant(2.0, single), "2.0f");
        assert_eq!(constant(-0.0, double), "-0.0");
        assert_eq!(constant(f64::NEG_INFINITY, single), "-NNRS_INF");
        assert_eq!(constant(f64::NAN, double), "NNRS_NAN");
        assert_eq!(constant(1e300, single), "NNRS_INF");
        // C99's own examples of the notation: 0.1 as printf("%a") shows it.
        assert_eq!(hexadecimal(0.1), "0x1.999999999999ap-4");
        assert_eq!(hexadecimal(-0.1f32 as f64), "-0x1.99999ap-4");
        assert_eq!(hexadecimal(5e-324), "0x0.0000000000001p-1022");
        assert_eq!(hexadecimal(f64::MAX), "0x1.fffffffffffffp+1023");
    }

    unit_test!(whole_types_are_refused);
    fn whole_types_are_refused() {
        assert!(kernel("k", &Formula::new(1, |x| vec![Some(x[0].exp())]), DType::I32).is_err());
    }
}
