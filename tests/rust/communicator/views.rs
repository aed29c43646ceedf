//! Gradients by other arrays over their memory, and those that no function of the graph has.

use super::array;
use nnrs::communicator::{AllReduceOptions, CallbackOptions, Communicator, Threads};
use nnrs::graph::{BackwardRun, FunctionRef};
use nnrs::{DType, NdArray, Result, Variable, functions as f};
use std::time::Duration;

/// What a run gives whose functions take their time, so that a gradient that goes too early has gone.
fn run(
    comm: &Communicator,
    y: &Variable,
    gradients: &[NdArray],
    hook: &dyn Fn(&FunctionRef) -> Result<()>,
) -> Result<()> {
    let reduced = comm.all_reduce_callback(gradients, CallbackOptions { pack_size: 1, ..Default::default() })?;
    let post = |f: &FunctionRef| {
        std::thread::sleep(Duration::from_millis(3));
        hook(f)
    };
    y.forward()?;
    y.backward_with(BackwardRun { callbacks: &[&reduced], post: Some(&post), ..Default::default() })
}

#[test]
fn a_gradient_goes_by_any_view_of_it() {
    let seen = Threads::run(2, |comm| {
        let w = Variable::from_slice(&[1f32, 2.0, 3.0], [3].into())?.with_need_grad(true);
        let x = Variable::from_slice(&[comm.rank() as f32 + 1.0; 3], [3].into())?;
        let y = f::sum(&(&w * &f::sin(&(&w * &x)?)?)?, f::Sum::default())?;
        let sums = |gradients: &[NdArray], run: &dyn Fn(&[NdArray]) -> Result<()>| {
            w.grad().zero()?;
            run(gradients)?;
            w.grad().to_vec::<f32>()
        };
        let whole = w.grad();
        let behind = sums(std::slice::from_ref(&whole), &|gradients| {
            y.forward()?;
            y.backward()?;
            comm.all_reduce(gradients, AllReduceOptions::default())
        })?;
        let views = [whole.reshaped([3, 1].into())?, whole.narrow(0, 1, 1)?];
        let parts = [whole.narrow(0, 1, 2)?, whole.narrow(0, 0, 1)?];
        for gradients in [&[whole.clone()][..], &views, &parts] {
            assert_eq!(sums(gradients, &|gradients| run(&comm, &y, gradients, &|_| Ok(())))?, behind);
        }
        comm.barrier()
    });
    seen.unwrap();
}

#[test]
fn what_no_function_has_goes_at_the_end() {
    let seen = Threads::run(2, |comm| {
        let own = comm.rank() as f64 + 1.0;
        let w = Variable::from_slice(&[own as f32], [1].into())?.with_need_grad(true);
        let (inner, penalty) = ((&w * &w)?, array(DType::F32, &[0.0]));
        w.grad().zero()?;
        let y = f::sum(&f::exp(&inner)?, f::Sum::default())?;
        let hook = |f: &FunctionRef| if f.name() == "mul2" { penalty.fill(own) } else { Ok(()) };
        run(&comm, &y, &[penalty.clone(), w.grad()], &hook)?;
        penalty.to_vec::<f32>()
    });
    assert_eq!(seen.unwrap(), [[3.0], [3.0]]);
}

#[test]
fn a_part_that_two_arrays_share_is_summed_once() {
    let seen = Threads::run(2, |comm| {
        let x = array(DType::F32, &[1.0, 2.0, 3.0]);
        let all = [x.narrow(0, 0, 2)?, x.reshaped([1, 3].into())?, x.clone()];
        for inplace in [false, true] {
            comm.all_reduce(&all, AllReduceOptions { inplace, ..Default::default() })?;
        }
        let overlap = [x.narrow(0, 0, 2)?, x.narrow(0, 1, 2)?];
        let error = comm.all_reduce(&overlap, AllReduceOptions::default()).unwrap_err().to_string();
        assert!(error.contains("ones of shapes (2,) and (2,) that overlap"), "{error}");
        assert!(comm.all_reduce_callback(&overlap, CallbackOptions::default()).is_err());
        x.to_vec::<f32>()
    });
    assert_eq!(seen.unwrap(), [[4.0, 8.0, 12.0]; 2]);
}
