//! Each loop on each instruction set that this CPU has, against the f64 functions of the standard library, in ULP.

use super::*;
use crate::simd::kernels::Kernels;

unsafe extern "C" {
    safe fn erf(x: f64) -> f64;
    safe fn asinh(x: f64) -> f64;
    safe fn acosh(x: f64) -> f64;
    safe fn atanh(x: f64) -> f64;
}

pub(super) type LoopTables = (Isa, &'static Kernels<f32>, &'static Kernels<f64>);

pub(super) fn tables() -> Vec<LoopTables> {
    let mut all = vec![(Isa::Portable, &portable::F32, &portable::F64)];
    #[cfg(target_arch = "x86_64")]
    all.extend([(Isa::Avx2, &avx2::F32, &avx2::F64), (Isa::Avx512, &avx512::F32, &avx512::F64)]);
    all.retain(|t| t.0 <= best());
    all
}

fn truth(b: bool) -> f64 {
    b as u8 as f64
}

/// What `op` means, in f64.
fn unary_reference(op: Unary, x: f64) -> f64 {
    match op {
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
        Unary::Asinh => asinh(x),
        Unary::Acosh => acosh(x),
        Unary::Atanh => atanh(x),
        Unary::Sigmoid if x < 0.0 => x.exp() / (1.0 + x.exp()),
        Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Unary::Erf => erf(x),
        Unary::IsNan => truth(x.is_nan()),
        Unary::IsInf => truth(x.is_infinite()),
        Unary::Not => truth(x == 0.0),
        Unary::RoundF16 => half::f16::from_f64(x).to_f64(),
        // From f64, `half` looks at the upper 32 bits only, and so takes some numbers past a tie for ties.
        Unary::RoundBF16 if x as f32 as f64 == x => half::bf16::from_f32(x as f32).to_f64(),
        Unary::RoundBF16 => half::bf16::from_f64(x).to_f64(),
    }
}

fn binary_reference(op: Binary, a: f64, b: f64) -> f64 {
    match op {
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

/// The bound in ULP for f32.
fn unary_bound(op: Unary) -> f64 {
    match op {
        Unary::Exp | Unary::Log | Unary::Tanh | Unary::Sigmoid | Unary::Erf | Unary::Sin | Unary::Cos => 2.0,
        Unary::Expm1 | Unary::Log1p | Unary::Tan | Unary::Sinh | Unary::Cosh | Unary::Asin | Unary::Acos => 4.0,
        Unary::Atan | Unary::Asinh | Unary::Acosh | Unary::Atanh => 4.0,
        Unary::Sqrt => 0.500001,
        _ => 0.0,
    }
}

fn binary_bound(op: Binary) -> f64 {
    match op {
        Binary::Pow => 2.0,
        Binary::Atan2 => 4.0,
        // Correctly rounded, but the f64 reference has a rounding of its own.
        Binary::Add | Binary::Sub | Binary::Mul | Binary::Div => 0.500001,
        _ => 0.0,
    }
}

/// The distance of an f32 from a real number, in units of the last place at that number. Infinite for a wrong NaN, infinity or sign of zero.
pub(super) fn ulps(got: f32, want: f64) -> f64 {
    let nearest = want as f32;
    if nearest.is_nan() || got.is_nan() {
        return if nearest.is_nan() == got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got == nearest && (got != 0.0 || want != 0.0 || got.is_sign_negative() == want.is_sign_negative()) {
        // Both infinite, or as near as can be.
        return if got.is_infinite() { 0.0 } else { (got as f64 - want).abs() / spacing(want) };
    }
    // An infinity stands for the number after the largest.
    let value = if got.is_infinite() { 2f64.powi(128).copysign(got as f64) } else { got as f64 };
    let want = want.clamp(-(2f64.powi(128)), 2f64.powi(128));
    if got == nearest { f64::INFINITY } else { (value - want).abs() / spacing(want) }
}

fn spacing(x: f64) -> f64 {
    let exponent = ((x.to_bits() >> 52 & 0x7ff) as i32 - 1023).clamp(-126, 127);
    2f64.powi(exponent - 23)
}

/// All exponents of both signs with some mantissas each, a finer grid where functions bend, and the special values.
fn grid() -> Vec<f32> {
    let mut x: Vec<f32> =
        (0..1u32 << 15).map(|i| f32::from_bits((i << 17).wrapping_add(i.wrapping_mul(2654435761) >> 15))).collect();
    x.extend((-24000..24000).map(|i| i as f32 * 0.005 + 0.00037));
    x.extend((-4000..4000).map(|i| i as f32 * 0.0005));
    x.extend((-3000..3000).map(|i| i as f32 * 33.3));
    // Near the multiples of pi/2, where sines and cosines vanish.
    x.extend((-2000..2000).map(|i| (i as f64 * 31.0 * std::f64::consts::FRAC_PI_2) as f32));
    x.extend(specials());
    x
}

pub(super) fn specials() -> Vec<f32> {
    let positive =
        [0.0, 1.0, 0.5, 2.0, 3.0, 1.5, 2.5, 1e-45, 1e-39, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NAN];
    let edges = [
        88.72283, 88.72284, 89.5, 87.3, 87.4, 103.9, 104.1, 0.99999994, 1.0000001, 8388607.5, 8388608.0, 1e5, 1e9,
        65504.0, 65520.0,
    ];
    positive.into_iter().chain(edges).flat_map(|v| [v, -v]).collect()
}

/// The worst of all in ULP, and where.
fn worst(got: &[f32], want: impl Fn(usize) -> f64) -> (f64, usize) {
    got.iter().enumerate().map(|(i, &y)| (ulps(y, want(i)), i)).fold((-1.0, 0), |a, b| if b.0 > a.0 { b } else { a })
}

fn run_unary<T: Copy + Default>(k: &Kernels<T>, op: Unary, x: &[T]) -> Vec<T> {
    let mut y = vec![T::default(); x.len()];
    // SAFETY: `tables` gives only what this CPU can do.
    unsafe { (k.unary)(op)(y.as_mut_ptr(), x.as_ptr(), x.len()) };
    y
}

fn tile<T>(x: &[T]) -> TileAddress<T> {
    TileAddress::tile(x.as_ptr())
}

fn run_binary<T: Copy + Default>(k: &Kernels<T>, op: Binary, a: &[T], b: &[T]) -> Vec<T> {
    let mut y = vec![T::default(); a.len()];
    // SAFETY: as above.
    unsafe { (k.binary)(op)(y.as_mut_ptr(), tile(a), tile(b), a.len()) };
    y
}

unit_test!(unary_f32);
fn unary_f32() {
    let x = grid();
    for op in Unary::ALL {
        let want: Vec<f64> = x.iter().map(|&v| unary_reference(op, v as f64)).collect();
        for (isa, k, _) in tables() {
            let y = run_unary(k, op, &x);
            let (ulp, i) = worst(&y, |i| want[i]);
            println!("{op:?} {isa:?}: {ulp:.3} ULP at {:e}", x[i]);
            assert!(ulp <= unary_bound(op), "{op:?} {isa:?}({:e}) = {:e}, not {:e}: {ulp} ULP", x[i], y[i], want[i]);
        }
    }
}

/// Pairs of special values with each other, and of many sizes.
fn pairs() -> (Vec<f32>, Vec<f32>) {
    let s = specials();
    let mut p: Vec<(f32, f32)> = s.iter().flat_map(|&a| s.iter().map(move |&b| (a, b))).collect();
    let size = |i: u32, k: u32| (i.wrapping_mul(k) >> 8) as f32 / (1 << 24) as f32;
    p.extend((1..20000).map(|i| (size(i, 2654435761) * 20.0, size(i, 2246822519) * 40.0 - 20.0)));
    p.extend((1..20000).map(|i| (f32::from_bits(i * 107374), size(i, 2246822519) * 2.0 - 1.0)));
    p.extend((1..20000).map(|i| (0.9 + 0.2 * size(i, 2654435761), size(i, 2246822519) * 2000.0 - 1000.0)));
    p.extend((1..20000).map(|i| (-size(i, 2654435761) * 8.0, (i % 61) as f32 - 30.0)));
    p.into_iter().unzip()
}

unit_test!(binary_f32);
fn binary_f32() {
    let (a, b) = pairs();
    for op in Binary::ALL {
        let want: Vec<f64> = a.iter().zip(&b).map(|(&a, &b)| binary_reference(op, a as f64, b as f64)).collect();
        for (isa, k, _) in tables() {
            let y = run_binary(k, op, &a, &b);
            let (ulp, i) = worst(&y, |i| want[i]);
            println!("{op:?} {isa:?}: {ulp:.3} ULP at {:e}, {:e}", a[i], b[i]);
            let at = (a[i], b[i], y[i], want[i]);
            assert!(ulp <= binary_bound(op), "{op:?} {isa:?} (a, b, got, expected) = {at:?}: {ulp} ULP");
        }
    }
}

unit_test!(f64_loops);
/// The f64 loops are exact where the operation is, and the C library's elsewhere.
fn f64_loops() {
    let near = |got: f64, want: f64| {
        got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= 1e-14 * want.abs()
    };
    let x: Vec<f64> = grid().iter().step_by(7).chain(&specials()).map(|&v| v as f64 * 1.000000001).collect();
    let (a, b): (Vec<f64>, Vec<f64>) = {
        let (a, b) = pairs();
        (a.iter().step_by(3).map(|&v| v as f64).collect(), b.iter().step_by(3).map(|&v| v as f64).collect())
    };
    for (isa, _, k) in tables() {
        for op in Unary::ALL {
            for (x, y) in x.iter().zip(run_unary(k, op, &x)) {
                assert!(near(y, unary_reference(op, *x)), "{op:?} {isa:?}({x:e}) = {y:e}");
            }
        }
        for op in Binary::ALL {
            for ((a, b), y) in a.iter().zip(&b).zip(run_binary(k, op, &a, &b)) {
                assert!(near(y, binary_reference(op, *a, *b)), "{op:?} {isa:?}({a:e}, {b:e}) = {y:e}");
            }
        }
    }
}

unit_test!(tails_and_aliases);
/// Any length and any offset give the bits that the long loop gives, in place too, and nothing beyond the end is touched.
fn tails_and_aliases() {
    let x: Vec<f32> = (0..64).map(|i| (i * 37 % 64) as f32 * 0.21 - 5.0).collect();
    let bits = |v: &[f32]| v.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    for (isa, k, _) in tables() {
        for op in Unary::ALL {
            let long = run_unary(k, op, &x);
            for n in 0..=40 {
                let mut y = x.clone();
                // SAFETY: 3 + 40 < 64.
                unsafe { (k.unary)(op)(y.as_mut_ptr().add(3), y.as_ptr().add(3), n) };
                assert_eq!(bits(&y[3..3 + n]), bits(&long[3..3 + n]), "{op:?} {isa:?} {n}");
                assert_eq!(
                    (bits(&y[..3]), bits(&y[3 + n..])),
                    (bits(&x[..3]), bits(&x[3 + n..])),
                    "{op:?} {isa:?} {n}"
                );
            }
        }
        let b: Vec<f32> = x.iter().rev().copied().collect();
        for op in Binary::ALL {
            let (ab, bb) = (run_binary(k, op, &x, &b), run_binary(k, op, &b, &b));
            for n in 0..=40 {
                let (mut y, mut z, mut w) = (x.clone(), b.clone(), b.clone());
                // SAFETY: n < 64.
                unsafe {
                    (k.binary)(op)(y.as_mut_ptr(), tile(&y), tile(&b), n);
                    (k.binary)(op)(z.as_mut_ptr(), tile(&x), tile(&z), n);
                    (k.binary)(op)(w.as_mut_ptr(), tile(&w), tile(&w), n);
                }
                assert_eq!(bits(&y), bits(&[&ab[..n], &x[n..]].concat()), "{op:?} {isa:?} {n}");
                assert_eq!(bits(&z), bits(&[&ab[..n], &b[n..]].concat()), "{op:?} {isa:?} {n}");
                assert_eq!(bits(&w), bits(&[&bb[..n], &b[n..]].concat()), "{op:?} {isa:?} {n}");
            }
        }
    }
}

unit_test!(the_environment_lowers_the_instruction_set);
fn the_environment_lowers_the_instruction_set() {
    assert_eq!(choose(Some("portable")), Isa::Portable);
    assert!(choose(Some("avx2")) <= Isa::Avx2);
    assert_eq!(choose(Some("more")), best());
    assert_eq!(choose(None), best());
}

unit_test!(all_floats, ignore = "slow");
/// `cargo test --release --features emulate -- --ignored --nocapture all_floats`: every 97th float; a minute.
fn all_floats() {
    let x: Vec<f32> = (0..u32::MAX / 97).map(|i| f32::from_bits(i * 97)).collect();
    for op in Unary::ALL {
        let y = run_unary(f32::kernels(), op, &x);
        let (ulp, i) = worst(&y, |i| unary_reference(op, x[i] as f64));
        println!("{op:?}: {ulp:.3} ULP at {:e}", x[i]);
        assert!(ulp <= unary_bound(op), "{op:?}({:e}) = {:e}", x[i], y[i]);
    }
}

unit_test!(tile_speed, ignore = "prints a measurement");
/// `cargo test --release --features emulate -- --ignored --nocapture tile_speed`: ns an element over tiles of 1024 floats.
fn tile_speed() {
    #[repr(align(64))]
    struct AlignedTile([f32; 1024]);
    let (AlignedTile(x), AlignedTile(b), y) =
        (&AlignedTile([0.7; 1024]), &AlignedTile([1.3; 1024]), &mut AlignedTile([0.0; 1024]).0);
    let show = |isa: Isa, name: String, f: &mut dyn FnMut()| {
        let mut best = f64::INFINITY;
        for _ in 0..30 {
            let start = std::time::Instant::now();
            (0..100).for_each(|_| f());
            best = best.min(start.elapsed().as_nanos() as f64 / 102400.0);
        }
        println!("{isa:?} {name}: {best:.3}");
    };
    for (isa, k, _) in tables() {
        for op in Unary::ALL {
            let f = (k.unary)(op);
            // SAFETY: all are 1024 long.
            show(isa, format!("{op:?}"), &mut || unsafe { f(y.as_mut_ptr(), x.as_ptr(), 1024) });
        }
        for op in [Binary::Mul, Binary::Add, Binary::Max, Binary::Pow, Binary::Atan2] {
            let f = (k.binary)(op);
            // SAFETY: all are 1024 long.
            show(isa, format!("{op:?}"), &mut || unsafe { f(y.as_mut_ptr(), tile(x), tile(b), 1024) });
        }
        // SAFETY: the kernels of this processor, over slices.
        show(isa, "sum".into(), &mut || _ = std::hint::black_box(unsafe { (k.sum)(x) }));
        // SAFETY: as above, of the same length.
        show(isa, "dot".into(), &mut || _ = std::hint::black_box(unsafe { (k.dot)(x, b) }));
        // SAFETY: as above.
        show(isa, "max".into(), &mut || _ = std::hint::black_box(unsafe { (k.max)(x) }));
        // SAFETY: as above, of the same length.
        show(isa, "axpy".into(), &mut || unsafe { (k.axpy)(y, 0.5, x) });
    }
    show(isa(), "exp_sum".into(), &mut || _ = std::hint::black_box(exp_sum(y, x, 0.1)));
}
