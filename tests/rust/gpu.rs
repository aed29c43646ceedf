//! Graphs on an emulated GPU give what they give on the CPU. Runs with the feature `emulate`.

use nnrs::{Context, NdArray, Variable, functions as f, graph::mode};
use std::sync::{Arc, Once};

fn emulated() -> Arc<Context> {
    static SET: Once = Once::new();
    // SAFETY: before any device is asked for, and tests of this file read no other variable.
    SET.call_once(|| unsafe { std::env::set_var("NNRS_CUDA", "emulate:2") });
    Arc::new(Context::new(vec!["cudnn:float".into()], "CudaCachedArray".into(), "0".into()).unwrap())
}

fn loss(x: &Variable, b: &Variable) -> nnrs::Result<Variable> {
    let h = f::tanh(&(x * b)?)?;
    let h = (&f::exp(&h)? + x)?;
    f::sum(&(&h * &h)?, f::Sum::default())
}

fn gradients(context: Option<Arc<Context>>) -> [Vec<f32>; 3] {
    let values: Vec<f32> = (0..1000).map(|i| (i as f32 * 0.37).sin()).collect();
    let old = context.map(mode::set_context);
    let x = Variable::from_slice(&values, [10, 100].into()).unwrap().with_need_grad(true);
    let b = Variable::from_slice(&values[..100], [1, 100].into()).unwrap().with_need_grad(true);
    let y = loss(&x, &b).unwrap();
    y.forward().unwrap();
    y.backward().unwrap();
    old.map(mode::set_context);
    [y.to_vec().unwrap(), x.grad().to_vec().unwrap(), b.grad().to_vec().unwrap()]
}

#[test]
fn element_wise_units_and_sums() {
    let (gpu, cpu) = (gradients(Some(emulated())), gradients(None));
    for (g, c) in gpu.iter().zip(&cpu) {
        let worst = g.iter().zip(c).map(|(a, b)| ((a - b) / (1.0 + b.abs())).abs()).fold(0.0, f32::max);
        assert!(worst < 1e-5, "{worst}");
    }
    let m = nnrs::cuda::gpu(0).unwrap().memory();
    assert!(m.peak > 0, "{m:?}");
}

#[test]
fn arrays_move_where_they_are_written() {
    let context = emulated();
    let old = mode::set_context(context);
    let x = Variable::from_slice(&[1.0f32, 2.0], [2].into()).unwrap();
    let y = f::exp(&x).unwrap();
    y.forward().unwrap();
    mode::set_context(old);
    assert_eq!(y.to_vec::<f32>().unwrap(), [1f32.exp(), 2f32.exp()]);
    x.raw_data().write(&[0.0f32, 0.0]).unwrap();
    y.forward().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, 1.0]);
    let a = NdArray::from_slice(&[1.5f32; 3], [3].into()).unwrap();
    assert_eq!(a.to_vec::<f32>().unwrap(), [1.5; 3]);
}

fn step(x: &Variable, y: &Variable, values: &[f32]) -> (Vec<f32>, Vec<f32>) {
    x.raw_data().write(values).unwrap();
    x.grad().zero().unwrap();
    y.forward().unwrap();
    y.backward().unwrap();
    (y.to_vec().unwrap(), x.grad().to_vec().unwrap())
}

#[test]
fn a_captured_run_sees_new_data() {
    let values = |k: usize| (0..100).map(|i| ((i + 7 * k) as f32 * 0.11).cos()).collect::<Vec<f32>>();
    let build = |context: Option<Arc<Context>>| {
        let old = context.map(mode::set_context);
        let x = Variable::from_slice(&values(0), [1, 100].into()).unwrap().with_need_grad(true);
        let b = Variable::from_slice(&values(9), [1, 100].into()).unwrap();
        let y = loss(&x, &b).unwrap();
        old.map(mode::set_context);
        (x, y)
    };
    let ((x, y), (xc, yc)) = (build(Some(emulated())), build(None));
    for k in 0..12 {
        let (gpu, cpu) = (step(&x, &y, &values(k)), step(&xc, &yc, &values(k)));
        let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-4 * (1.0 + b.abs()));
        assert!(near(&gpu.0, &cpu.0) && near(&gpu.1, &cpu.1), "step {k}: {gpu:?} {cpu:?}");
    }
    let reports = y.cuda_graphs();
    assert!(reports.iter().all(|r| r.contains("1 captured, replayed ")), "{reports:?}");
}
