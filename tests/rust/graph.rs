//! The graph engine without Python: forward, backward, fusion, reading what was not kept.

use nnrs::{Variable, functions as f};

fn var(values: &[f32], shape: &[usize]) -> Variable {
    Variable::from_slice(values, shape.into()).unwrap().with_need_grad(true)
}

fn data(v: &Variable) -> Vec<f64> {
    v.to_vec().unwrap()
}

#[test]
fn chain_of_element_wise_functions() {
    let x = var(&[1.0, -2.0, 3.0], &[3]);
    let h = f::mul_scalar(&x, f::MulScalar { val: 2.0, inplace: false }).unwrap();
    let y = f::leaky_relu(&h, f::LeakyReLU::default()).unwrap();
    drop(h);
    let z = f::mul2(&y, &x, f::Mul2::default()).unwrap();
    drop(y);
    z.forward().unwrap();
    assert_eq!(data(&z), [2.0, 0.8f32 as f64, 18.0]);
    z.backward().unwrap();
    let g: Vec<f32> = x.grad().to_vec().unwrap();
    assert!((g[0] - 4.0).abs() < 1e-6 && (g[1] + 0.8).abs() < 1e-6 && (g[2] - 12.0).abs() < 1e-6, "{g:?}");
    z.backward().unwrap();
    assert_eq!(x.grad().to_vec::<f32>().unwrap()[0], 8.0);
    let inner = z.parent().unwrap().inputs();
    assert_eq!(data(&inner[0]), [2.0, -0.4f32 as f64, 6.0]);
}

#[test]
fn affine_with_bias_and_broadcast() {
    let x = var(&[1.0, 2.0, 3.0, 4.0], &[2, 2]);
    let w = var(&[1.0, 0.0, -1.0, 0.5, 2.0, 1.0], &[2, 3]);
    let b = var(&[0.1, 0.2, 0.3], &[3]);
    let y = f::affine(&x, &w, Some(&b), f::Affine::default()).unwrap();
    let s = f::sum(&y, f::Sum::default()).unwrap();
    s.forward().unwrap();
    s.backward().unwrap();
    assert!((data(&s)[0] - 22.2).abs() < 1e-5);
    assert_eq!(b.grad().to_vec::<f32>().unwrap(), [2.0, 2.0, 2.0]);
    assert_eq!(w.grad().to_vec::<f32>().unwrap(), [4.0, 4.0, 4.0, 6.0, 6.0, 6.0]);
    assert_eq!(x.grad().to_vec::<f32>().unwrap(), [0.0, 3.5, 0.0, 3.5]);
}

#[test]
fn broadcast_gradients_are_summed() {
    let a = var(&[1.0, 2.0, 3.0], &[1, 3]);
    let b = var(&[10.0, 20.0], &[2, 1]);
    let y = f::mul2(&a, &b, f::Mul2::default()).unwrap();
    let z = f::add_scalar(&y, f::AddScalar { val: 1.0, inplace: false }).unwrap();
    z.forward().unwrap();
    z.backward().unwrap();
    assert_eq!(data(&z), [11.0, 21.0, 31.0, 21.0, 41.0, 61.0]);
    assert_eq!(a.grad().to_vec::<f32>().unwrap(), [30.0; 3]);
    assert_eq!(b.grad().to_vec::<f32>().unwrap(), [6.0; 2]);
}

#[test]
fn a_million_nodes_in_a_small_stack() {
    let run = || {
        let x = var(&[1.0], &[1]);
        let mut h = x.clone();
        for _ in 0..1_000_000 {
            h = f::add_scalar(&h, f::AddScalar { val: 1.0, inplace: false }).unwrap();
        }
        h.forward().unwrap();
        assert_eq!(data(&h)[0], 1_000_001.0);
        h.backward().unwrap();
        assert_eq!(data(&Variable::from_array(x.grad()))[0], 1.0);
    };
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

#[test]
fn values_after_a_root_beside_is_dropped() {
    let x = var(&[0.1, 0.2], &[2]);
    let z = f::sin(&f::exp(&x).unwrap()).unwrap();
    f::cos(&z).unwrap().forward().unwrap();
    let e = |v: f64| v.exp();
    let close = |a: &[f64], b: [f64; 2]| assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6), "{a:?} {b:?}");
    close(&data(&z.parent().unwrap().inputs()[0]), [e(0.1), e(0.2)]);
    z.backward().unwrap();
    let g: Vec<f64> = x.grad().to_vec().unwrap();
    close(&g, [e(0.1).cos() * e(0.1), e(0.2).cos() * e(0.2)]);
    z.forward_with(nnrs::ForwardOptions { clear_buffer: true, ..Default::default() }).unwrap();
    let h = z.parent().unwrap().inputs().swap_remove(0);
    assert!(h.raw_data().storage().is_empty());
    close(&h.raw_data().to_vec::<f64>().unwrap(), [e(0.1), e(0.2)]);
    z.forward_with(nnrs::ForwardOptions { clear_buffer: true, ..Default::default() }).unwrap();
    x.data().unwrap().fill(3.0).unwrap();
    let error = h.raw_data().to_vec::<f64>().unwrap_err();
    assert!(error.to_string().contains("has changed since forward"), "{error}");
}
