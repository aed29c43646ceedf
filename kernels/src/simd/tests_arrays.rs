//! Selection, reductions, updates and conversions, against plain loops.

use super::tests::{specials, tables, ulps};
use super::*;
use crate::dtype::DType;

unit_test!(selects);
fn selects() {
    for (isa, k, k64) in tables() {
        for n in 0..=40 {
            let c: Vec<f32> = (0..n).map(|i| [0.0, -0.0, 1.0, f32::NAN, 1e-45][i % 5]).collect();
            let (a, b): (Vec<f32>, Vec<f32>) = (0..n).map(|i| (i as f32, -(i as f32) - 1.0)).unzip();
            let want: Vec<f32> = (0..n).map(|i| if c[i] != 0.0 { a[i] } else { b[i] }).collect();
            let (mut y, wide) = (c.clone(), |v: &[f32]| v.iter().map(|&v| v as f64).collect::<Vec<_>>());
            let (mut y64, a64, b64) = (wide(&c), wide(&a), wide(&b));
            // SAFETY: all are n long.
            unsafe {
                (k.select)(y.as_mut_ptr(), y.as_ptr(), a.as_ptr(), b.as_ptr(), n);
                (k64.select)(y64.as_mut_ptr(), y64.as_ptr(), a64.as_ptr(), b64.as_ptr(), n);
            }
            assert_eq!((&y, y64), (&want, wide(&want)), "{isa:?} {n}");
        }
    }
}

unit_test!(reductions);
fn reductions() {
    let x: Vec<f32> = (0..5000u32).map(|i| (i.wrapping_mul(2654435761) >> 16) as f32 / 65536.0 - 0.4).collect();
    let wide: Vec<f64> = x.iter().map(|&v| v as f64).collect();
    let close =
        |got: f32, want: f64, size: f64| assert!((got as f64 - want).abs() <= 5e-7 * size + 1e-30, "{got} {want}");
    for n in (0..100).chain([1023, 1024, 1025, 2048, 3333, 5000]) {
        let (x, w) = (&x[..n], &wide[..n]);
        let size: f64 = w.iter().map(|v| v.abs()).sum();
        let shifted: f64 = w.iter().map(|v| (v - 0.5).exp()).sum();
        for (isa, k, k64) in tables() {
            // SAFETY: `tables` gives only what this CPU can do.
            unsafe {
                close((k.sum)(x), w.iter().sum(), size);
                close((k.sum_abs)(x), size, size);
                close((k.sum_squares)(x), w.iter().map(|v| v * v).sum(), size);
                close((k.dot)(x, x), w.iter().map(|v| v * v).sum(), size);
                assert_eq!((k.sum)(x).to_bits(), (portable::F32.sum)(x).to_bits(), "{isa:?} {n}");
                assert_eq!((k.dot)(x, x).to_bits(), (portable::F32.dot)(x, x).to_bits(), "{isa:?} {n}");
                assert_eq!((k.max)(x), x.iter().copied().fold(f32::NEG_INFINITY, f32::max));
                assert_eq!((k.min)(x), x.iter().copied().fold(f32::INFINITY, f32::min));
                assert!(((k64.sum)(w) - w.iter().sum::<f64>()).abs() <= 1e-12);
                assert_eq!((k64.max)(w), w.iter().copied().fold(f64::NEG_INFINITY, f64::max));
            }
        }
        let mut y = vec![0.0; n];
        close(exp_sum(&mut y, x, 0.5), shifted, shifted);
        assert_eq!(sum_exp(x, 0.5).to_bits(), exp_sum(&mut y, x, 0.5).to_bits());
        assert!(y.iter().zip(w).all(|(&y, &w)| ulps(y, (w - 0.5).exp()) <= 2.0));
    }
    assert_eq!(max(&[f32::NAN, 1.0, f32::NAN, 3.0]), 3.0);
}

unit_test!(updates);
fn updates() {
    for n in 0..70 {
        let x: Vec<f32> = (0..n).map(|i| i as f32 * 0.5 - 7.0).collect();
        let mut y: Vec<f32> = (0..n).map(|i| 3.0 - i as f32).collect();
        let want: Vec<f32> = y.iter().zip(&x).map(|(y, x)| ((y + 0.25 * x + x) * -2.0) + 1.5).collect();
        axpy(&mut y, 0.25, &x);
        add_assign(&mut y, &x);
        scale(&mut y, -2.0);
        add_scalar(&mut y, 1.5);
        assert_eq!(y, want);
        fill(&mut y, 4.0);
        assert!(y.iter().all(|&v| v == 4.0));
    }
}

fn bytes<T: Element>(v: &[T]) -> &[u8] {
    // SAFETY: elements have no padding.
    unsafe { std::slice::from_raw_parts(v.as_ptr().cast(), size_of_val(v)) }
}

/// A number of some type: as a float, and exactly where it is an integer; the bytes of the type hold it.
struct AnyNumber {
    float: f64,
    exact: Option<i128>,
    bytes: Vec<u8>,
}

fn numbers<F: Element>() -> Vec<AnyNumber> {
    let values =
        specials().into_iter().chain((-300..300).map(|i| i as f32 * 0.75)).chain((0..999).map(|i| i as f32 * 4.3e6));
    let of = |v: f32| {
        let x = F::from_f64(v as f64 * 1.0001);
        let float = x.to_f64();
        AnyNumber { float, exact: (!F::DTYPE.is_float()).then_some(float as i128), bytes: bytes(&[x]).to_vec() }
    };
    // Numbers that f64 cannot hold exactly are tested below.
    values.map(of).filter(|x| x.exact.is_none_or(|v| v.abs() < 1 << 53)).collect()
}

/// The bytes that are due: between integers the low ones, as in C, else what `Element` says; none for a NaN.
fn converted<T: Element>(x: &AnyNumber) -> Option<Vec<u8>> {
    if let (Some(v), false) = (x.exact, T::DTYPE.is_float() || T::DTYPE == DType::Bool) {
        return Some(v.to_le_bytes()[..T::DTYPE.size()].to_vec());
    }
    let y = T::from_f64(x.float);
    (!y.to_f64().is_nan()).then(|| bytes(&[y]).to_vec())
}

fn is_nan<T: Element>(v: &[u8]) -> bool {
    // SAFETY: the bytes of one element, which need not be aligned.
    unsafe { v.as_ptr().cast::<T>().read_unaligned() }.to_f64().is_nan()
}

unit_test!(conversions);
fn conversions() {
    for from in DType::ALL {
        let x = crate::with_dtype!(from, F => numbers::<F>());
        let mut all = vec![0u64; x.len()];
        // SAFETY: no element is larger than eight bytes, which any bytes can be.
        let all_bytes = unsafe { std::slice::from_raw_parts_mut(all.as_mut_ptr().cast::<u8>(), 8 * x.len()) };
        all_bytes.chunks_mut(from.size()).zip(&x).for_each(|(all, x)| all.copy_from_slice(&x.bytes));
        for to in DType::ALL {
            let want = x.iter().map(|x| crate::with_dtype!(to, T => converted::<T>(x))).collect::<Vec<_>>();
            for n in (0..40).chain([x.len()]) {
                let mut y = vec![0u64; n];
                // SAFETY: both hold n elements of at most eight bytes, and are aligned for any.
                unsafe { convert(y.as_mut_ptr().cast(), to, all.as_ptr().cast(), from, n) };
                for ((x, y), want) in x.iter().zip(bytes(&y).chunks(to.size())).take(n).zip(&want) {
                    let right = match want {
                        Some(want) => y == want,
                        None => crate::with_dtype!(to, T => is_nan::<T>(y)),
                    };
                    assert!(right, "{from} to {to}: {} gives {y:?}", x.float);
                }
            }
        }
    }
}

unit_test!(big_integers_keep_their_digits);
fn big_integers_keep_their_digits() {
    let x = [i64::MAX, i64::MIN, (1 << 53) + 1, -(1 << 60) - 1];
    let (mut y, mut z) = ([0u64; 4], [0f32; 4]);
    // SAFETY: all are 4 long.
    unsafe {
        convert(y.as_mut_ptr().cast(), DType::U64, x.as_ptr().cast(), DType::I64, 4);
        convert(z.as_mut_ptr().cast(), DType::F32, x.as_ptr().cast(), DType::I64, 4);
    }
    assert_eq!(y, x.map(|v| v as u64));
    assert_eq!(z, x.map(|v| v as f32));
}
