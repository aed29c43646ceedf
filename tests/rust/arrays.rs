//! Random functions: streams, repetition, dropout's mask. Large arrays: every number of threads gives the same bits.

use nnrs::cpu::set_num_threads;
use nnrs::functions::{self as f, List};
use nnrs::initializer::{Initializer, Orthogonal};
use nnrs::random::set_function_seed;
use nnrs::{DType, NdArray, Shape, Variable};
use std::sync::{Mutex, MutexGuard};

/// The global stream and the number of threads belong to the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|e| e.into_inner())
}

fn rand(n: i64, seed: i64) -> Variable {
    f::rand(f::Rand { shape: List(vec![n]), seed: seed.into(), ..Default::default() }).unwrap()
}

fn drawn(v: &Variable) -> Vec<f64> {
    v.forward().unwrap();
    v.to_vec().unwrap()
}

fn ones(shape: impl Into<Shape>) -> Variable {
    let a = NdArray::new(shape.into());
    a.fill(1.0).unwrap();
    Variable::from_array(a).with_need_grad(true)
}

fn gradient(x: &Variable) -> Vec<f64> {
    x.grad().to_vec().unwrap()
}

#[test]
fn the_global_stream() {
    let _alone = alone();
    let (a, b) = (rand(5, -1), rand(5, -1));
    set_function_seed(5);
    let first = [drawn(&a), drawn(&b), drawn(&a)];
    assert!(first[0] != first[1] && first[0] != first[2]);
    set_function_seed(5);
    assert_eq!([drawn(&b), drawn(&a), drawn(&a)], first, "the order of forwards counts, not the node");
}

#[test]
fn a_seed_is_a_stream_of_the_node() {
    let _alone = alone();
    let (a, b, c) = (rand(5, 3), rand(5, 3), rand(5, 4));
    let first = [drawn(&a), drawn(&a)];
    set_function_seed(5);
    assert_eq!([drawn(&b), drawn(&b)], first, "a new node starts again");
    assert_ne!(first[0], first[1]);
    assert_ne!(drawn(&c), first[0]);
    set_function_seed(3);
    assert_ne!(drawn(&rand(5, -1)), first[0], "the global stream is another one");
}

#[test]
fn dropout_drops_the_same_in_backward() {
    let _alone = alone();
    let x = ones([40, 10]);
    let y = f::dropout(&x, f::Dropout { p: 0.25, seed: 1.into() }).unwrap();
    let mut masks = Vec::new();
    for _ in 0..2 {
        let mask = drawn(&y);
        x.grad().zero().unwrap();
        y.backward().unwrap();
        assert_eq!(gradient(&x), mask);
        y.backward().unwrap();
        assert_eq!(gradient(&x), mask.iter().map(|m| 2.0 * m).collect::<Vec<_>>(), "a second backward, added");
        masks.push(mask);
    }
    assert_ne!(masks[0], masks[1]);
    let scale = (1.0f32 / 0.75) as f64;
    assert!(masks[0].iter().all(|m| *m == 0.0 || *m == scale));
}

#[test]
fn gradients_as_graphs_drop_the_same() {
    let _alone = alone();
    let x = ones([300]);
    let y = f::dropout(&x, f::Dropout::default()).unwrap();
    let gx = nnrs::graph::grad(&[&y], &[&x], &[]).unwrap().swap_remove(0).unwrap();
    for _ in 0..3 {
        let g = drawn(&gx);
        assert_eq!(g, y.to_vec::<f64>().unwrap());
    }
}

#[test]
fn what_was_not_kept_comes_back_with_the_same_numbers() {
    let _alone = alone();
    let x = ones([300]);
    let h = f::dropout(&x, f::Dropout::default()).unwrap();
    let y = f::mul_scalar(&h, f::MulScalar { val: 3.0, inplace: false }).unwrap();
    drop(h);
    let tripled = drawn(&y);
    let inner: Vec<f64> = y.parent().unwrap().inputs()[0].to_vec().unwrap();
    assert_eq!(inner.iter().map(|v| 3.0 * v).collect::<Vec<_>>(), tripled);
}

/// The outputs, and the gradient of x, with one thread and with several.
fn same_bits(name: &str, shape: &[usize], build: &dyn Fn(&Variable) -> Variable) {
    let run = |threads: usize| {
        set_num_threads(threads);
        set_function_seed(7);
        let x = f::randn(f::Randn { shape: shape.into(), seed: 2.into(), ..Default::default() }).unwrap();
        x.forward().unwrap();
        let x = Variable::from_slice(&x.to_vec::<f32>().unwrap(), shape.into()).unwrap().with_need_grad(true);
        let y = build(&x);
        y.forward().unwrap();
        x.grad().zero().unwrap();
        y.backward().unwrap();
        (y.to_vec::<f32>().unwrap(), x.grad().to_vec::<f32>().unwrap())
    };
    let bits = |v: &(Vec<f32>, Vec<f32>)| v.0.iter().chain(&v.1).map(|v| v.to_bits()).collect::<Vec<_>>();
    let one = run(1);
    for threads in [2, 3, 5] {
        assert!(bits(&one) == bits(&run(threads)), "{name} with {threads} threads");
    }
    set_num_threads(1);
}

#[test]
fn threads_do_not_change_a_bit() {
    let _alone = alone();
    for axis in [None, Some(vec![0]), Some(vec![1]), Some(vec![0, 2])] {
        let shape = [70, 30, 55];
        let a = || axis.clone();
        same_bits("sum", &shape, &|x| f::sum(x, f::Sum { axis: a(), keepdims: false }).unwrap());
        same_bits("mean", &shape, &|x| f::mean(x, f::Mean { axis: a(), keepdims: false }).unwrap());
        same_bits("prod", &shape, &|x| f::prod(x, f::Prod { axis: a(), keepdims: false }).unwrap());
        same_bits("max", &shape, &|x| f::max(x, f::Max { axis: a(), ..Default::default() }).unwrap().swap_remove(0));
        same_bits("min", &shape, &|x| f::min(x, f::Min { axis: a(), ..Default::default() }).unwrap().swap_remove(0));
        for p in [1.0, 2.0, 3.0, f64::INFINITY] {
            same_bits("norm", &shape, &|x| f::norm(x, f::Norm { p: Some(p), axis: a(), keepdims: false }).unwrap());
        }
    }
    same_bits("transpose", &[300, 301], &|x| f::transpose(x, f::Transpose::by(&[1, 0])).unwrap());
    same_bits("tile", &[300, 50], &|x| f::tile(x, f::Tile { reps: vec![3, 2] }).unwrap());
    let reflect = || f::Pad { pad_width: vec![2, 1].into(), mode: "reflect".into(), constant_value: 0.0 };
    same_bits("pad", &[300, 300], &|x| f::pad(x, reflect()).unwrap());
    same_bits("dropout", &[100_001], &|x| f::dropout(x, f::Dropout::default()).unwrap());
    let at = Variable::from_slice(&(0..5000).map(|i| i * 31 % 100).collect::<Vec<i64>>(), [5000].into()).unwrap();
    same_bits("gather", &[100, 40], &|x| f::gather(x, &at, f::Gather::default()).unwrap());
}

#[test]
fn axes_of_size_zero_and_positions_out_of_range() {
    let x = Variable::new([3, 0]);
    assert!(f::max(&x, f::Max { axis: Some(vec![1]), ..Default::default() }).is_err());
    let open = f::Slice { start: Some(vec![i64::MAX].into()), stop: Some(vec![-i64::MAX].into()), step: None };
    assert_eq!(f::slice(&ones([4]), open).unwrap().shape(), [0].into());
    let back = f::Slice { start: None, stop: None, step: Some(vec![-i64::MAX].into()) };
    let y = f::slice(&Variable::from_slice(&[1.0f32, 2.0, 3.0], [3].into()).unwrap(), back).unwrap();
    assert_eq!(drawn(&y), [3.0]);
    let huge = f::Tile { reps: vec![i64::MAX, i64::MAX] };
    assert!(f::tile(&ones([2, 3]), huge).is_err());
    let wide = f::Pad { pad_width: vec![i64::MAX, i64::MAX].into(), ..Default::default() };
    assert!(f::pad(&ones([2]), wide).is_err());
    assert!(f::rand(f::Rand { shape: List(vec![1 << 40, 1 << 40]), ..Default::default() }).is_err());
    assert!(f::one_hot(&Variable::new([1, 2]), f::OneHot { shape: List(vec![1 << 40, 1 << 40]) }).is_err());
}

/// Sizes that cannot be counted, or whose product would wrap around to a small one.
#[test]
fn impossible_shapes_are_errors_and_reach_no_memory() {
    let wrapped = [[1 << 40, 1 << 40], [1 << 32, 1 << 32], [(1 << 63) + 1, 2], [usize::MAX, 2]];
    for shape in wrapped {
        assert!(NdArray::from_slice::<f32>(&[], shape.into()).is_err());
        assert!(NdArray::from_slice(&[1.0f32, 2.0], shape.into()).is_err());
        assert!(NdArray::new([2].into()).reshaped(shape.into()).is_err());
        let a = NdArray::new(shape.into());
        assert!(a.to_vec::<f32>().is_err_and(|e| e.is_out_of_memory()), "{shape:?}");
        assert!(a.deep_copy().is_err() && a.write(&[0.0f32; 4]).is_err());
        assert!(a.narrow(0, 3, 1).and_then(|part| part.to_vec::<f32>()).is_err());
        let x = Variable::new(shape);
        assert!(f::exp(&x).is_err() && f::sum(&x, f::Sum::default()).is_err());
        let y = Variable::new([2]);
        assert!(y.reset_shape(shape, true).is_err() && y.shape() == [2].into());
        assert!(y.view(shape.into()).unwrap_err().to_string().starts_with("Variable.view: "));
        assert!(Orthogonal(1.0).make(&shape.into()).is_err());
    }
    assert_eq!(NdArray::new([0, 3].into()).to_vec::<f32>().unwrap(), [0.0; 0]);
}

#[test]
fn parts_that_are_not_there() {
    let a = NdArray::from_slice(&[1i32, 2, 3, 4], [4].into()).unwrap();
    for (start, length) in [(1, i64::MAX), (i64::MAX, 1), (i64::MIN, 1), (0, 5), (-5, 1), (5, 0), (2, -1), (4, 1)] {
        assert!(a.narrow(0, start, length).is_err(), "{start} {length}");
    }
    for (start, length, part) in [(0, 4, &[1, 2, 3, 4][..]), (-1, 1, &[4]), (4, 0, &[]), (1, 2, &[2, 3])] {
        assert_eq!(a.narrow(0, start, length).unwrap().to_vec::<i32>().unwrap(), part);
    }
}

#[test]
fn an_array_takes_its_own_elements() {
    let a = NdArray::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [4].into()).unwrap();
    let own = a.read(DType::F32).unwrap();
    a.write(own.as_slice::<f32>()).unwrap();
    a.copy_from(&a.clone()).unwrap();
    let part = a.narrow(0, 1, 3).unwrap().read(DType::F32).unwrap();
    a.narrow(0, 0, 3).unwrap().modify(DType::F32).unwrap().copy_from(&part);
    assert_eq!(a.to_vec::<f32>().unwrap(), [2.0, 3.0, 4.0, 4.0]);
}
