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
