//! The primitive element-wise operations: what an expression, a tile program and a CUDA kernel are made of.

/// `y = op(x)`. Comparisons and logic give 1.0 or 0.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Unary {
    Neg,
    Abs,
    /// -1, 0 or 1; NaN gives NaN.
    Sign,
    Floor,
    Ceil,
    /// Nearest integer, halves away from zero (C's `round`).
    Round,
    Sqrt,
    Exp,
    /// exp(x) - 1
    Expm1,
    Log,
    /// log(1 + x)
    Log1p,
    Sin,
    Cos,
    Tan,
    Sinh,
    Cosh,
    Tanh,
    Asin,
    Acos,
    Atan,
    Asinh,
    Acosh,
    Atanh,
    /// 1 / (1 + exp(-x))
    Sigmoid,
    Erf,
    IsNan,
    IsInf,
    /// 1 where x is 0, else 0.
    Not,
    /// Rounds to half precision and back.
    RoundF16,
    /// Rounds to bfloat16 and back.
    RoundBF16,
}

/// `y = op(a, b)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    /// C's `pow`.
    Pow,
    /// `a > b ? a : b`; so b where either is NaN.
    Max,
    /// `a < b ? a : b`; so b where either is NaN.
    Min,
    Atan2,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    /// Non-zero is true (NaN too).
    And,
    Or,
    Xor,
}

impl Unary {
    pub const ALL: [Unary; 30] = [
        Unary::Neg,
        Unary::Abs,
        Unary::Sign,
        Unary::Floor,
        Unary::Ceil,
        Unary::Round,
        Unary::Sqrt,
        Unary::Exp,
        Unary::Expm1,
        Unary::Log,
        Unary::Log1p,
        Unary::Sin,
        Unary::Cos,
        Unary::Tan,
        Unary::Sinh,
        Unary::Cosh,
        Unary::Tanh,
        Unary::Asin,
        Unary::Acos,
        Unary::Atan,
        Unary::Asinh,
        Unary::Acosh,
        Unary::Atanh,
        Unary::Sigmoid,
        Unary::Erf,
        Unary::IsNan,
        Unary::IsInf,
        Unary::Not,
        Unary::RoundF16,
        Unary::RoundBF16,
    ];
}

impl Binary {
    pub const ALL: [Binary; 17] = [
        Binary::Add,
        Binary::Sub,
        Binary::Mul,
        Binary::Div,
        Binary::Pow,
        Binary::Max,
        Binary::Min,
        Binary::Atan2,
        Binary::Lt,
        Binary::Le,
        Binary::Gt,
        Binary::Ge,
        Binary::Eq,
        Binary::Ne,
        Binary::And,
        Binary::Or,
        Binary::Xor,
    ];
}

/// 1.0 or 0.0.
fn truth(b: bool) -> f64 {
    b as u8 as f64
}

impl Unary {
    /// The operation on one number: the reference for the vector loops.
    pub fn eval(self, x: f64) -> f64 {
        match self {
            Unary::Neg => -x,
            Unary::Abs => x.abs(),
            Unary::Sign if x == 0.0 || x.is_nan() => x,
            Unary::Sign => x.signum(),
            Unary::Floor => x.floor(),
            Unary::Ceil => x.ceil(),
            Unary::Round => x.round(),
            Unary::Sqrt => x.sqrt(),
            Unary::Exp => x.exp(),
            Unary::Expm1 => x.exp_m1(),
            Unary::Log => x.ln(),
            Unary::Log1p => x.ln_1p(),
            Unary::Sin => x.sin(),
            Unary::Cos => x.cos(),
            Unary::Tan => x.tan(),
            Unary::Sinh => x.sinh(),
            Unary::Cosh => x.cosh(),
            Unary::Tanh => x.tanh(),
            Unary::Asin => x.asin(),
            Unary::Acos => x.acos(),
            Unary::Atan => x.atan(),
            Unary::Asinh => x.asinh(),
            Unary::Acosh => x.acosh(),
            Unary::Atanh => x.atanh(),
            Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Unary::Erf => erf(x),
            Unary::IsNan => truth(x.is_nan()),
            Unary::IsInf => truth(x.is_infinite()),
            Unary::Not => truth(x == 0.0),
            Unary::RoundF16 => half::f16::from_f64(x).to_f64(),
            Unary::RoundBF16 => half::bf16::from_f64(x).to_f64(),
        }
    }
}

impl Binary {
    /// The operation on one pair of numbers: the reference for the vector loops.
    pub fn eval(self, a: f64, b: f64) -> f64 {
        match self {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => a / b,
            Binary::Pow => a.powf(b),
            Binary::Max => {
                if a > b {
                    a
                } else {
                    b
                }
            }
            Binary::Min => {
                if a < b {
                    a
                } else {
                    b
                }
            }
            Binary::Atan2 => a.atan2(b),
            Binary::Lt => truth(a < b),
            Binary::Le => truth(a <= b),
            Binary::Gt => truth(a > b),
            Binary::Ge => truth(a >= b),
            Binary::Eq => truth(a == b),
            Binary::Ne => truth(a != b),
            Binary::And => truth(a != 0.0 && b != 0.0),
            Binary::Or => truth(a != 0.0 || b != 0.0),
            Binary::Xor => truth((a != 0.0) != (b != 0.0)),
        }
    }
}

/// The error function, to double precision: series near zero, continued fraction beyond.
fn erf(x: f64) -> f64 {
    let a = x.abs();
    if a < 2.0 {
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term.abs() > 1e-17 * sum.abs() {
            n += 1.0;
            term *= -a * a / n;
            sum += term / (2.0 * n + 1.0);
        }
        return x.signum() * std::f64::consts::FRAC_2_SQRT_PI * sum * if a == 0.0 { 0.0 } else { 1.0 };
    }
    if a.is_nan() {
        return x;
    }
    let mut t = 0.0;
    for k in (1..=200).rev() {
        t = (k as f64 / 2.0) / (a + t);
    }
    x.signum() * (1.0 - (-a * a).exp() / ((a + t) * std::f64::consts::PI.sqrt()))
}
