//! Which convolutions go by Winograd's way, and what is done again directly.

use super::{Winograd, WinogradSizes};
use crate::array::Output;
use crate::base::switch::Switch;
use crate::dtype::{DType, Real};
use crate::kernel::convolution::cpu::{Conv, ConvolutionWeights, ForwardOperands};
use crate::pool::tasks::SendPtr;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static EXACT: Switch = Switch::new("NNRS_EXACT_CONVOLUTION", false);

/// Whether convolutions are to be sums of products as they are written, without transforms that round more; gives the old
/// setting.
pub fn set_exact(on: bool) -> bool {
    EXACT.set(on)
}

/// Whether convolutions are done without transforms.
pub fn exact() -> bool {
    EXACT.get() || EXACT_HERE.get()
}

thread_local! {
    static EXACT_HERE: Cell<bool> = const { Cell::new(false) };
}

/// While it is there, this thread's convolutions are done without transforms.
pub struct ExactHere(bool);

/// What holds for a function's run, by its context.
#[must_use]
pub fn exact_here(on: bool) -> ExactHere {
    ExactHere(EXACT_HERE.replace(on))
}

impl Drop for ExactHere {
    fn drop(&mut self) {
        EXACT_HERE.set(self.0);
    }
}

fn allowed<T: Real>() -> bool {
    T::DTYPE == DType::F32 && !exact()
}

/// Whether the gradient of x goes this way for float32.
pub(crate) fn data_suits(c: &Conv) -> bool {
    !exact() && WinogradSizes::data(c).is_some()
}

/// The sizes of one group where the gradient of w goes this way.
pub(crate) fn weight<T: Real>(c: &Conv) -> Option<WinogradSizes> {
    WinogradSizes::weight(c).filter(|_| allowed::<T>())
}

/// y = x * w + bias, finished, or nothing (false) where the direct kernel is to do it.
pub(crate) fn forward<T: Real>(c: &Conv, o: ForwardOperands<T>, y: &mut [T]) -> bool {
    let Some(s) = WinogradSizes::forward(c).filter(|_| allowed::<T>()) else { return false };
    let one = Conv { batch: 1, ..c.clone() };
    run(c, s, o, y, |x, y| one.direct_forward(ForwardOperands { x, ..o }, y));
    true
}

/// The gradient of x, or nothing (false) where the direct kernel is to do it.
pub(crate) fn data<T: Real>(c: &Conv, gy: &[T], w: &[T], gx: &mut [T]) -> bool {
    let Some(s) = WinogradSizes::data(c).filter(|_| allowed::<T>()) else { return false };
    let one = Conv { batch: 1, ..c.clone() };
    let w_alone = ConvolutionWeights { all: w, array: None };
    let o = ForwardOperands { x: gy, w: w_alone, bias: None, finish: None };
    run(c, s, o, gx, |gy, gx| one.direct_data(gy, w, gx, Output::Write));
    true
}

/// All groups, then the images whose results are not finite by `again`, which takes one image and its result.
fn run<T: Real>(
    c: &Conv,
    s: WinogradSizes,
    ForwardOperands { x, w, bias, finish }: ForwardOperands<T>,
    y: &mut [T],
    again: impl Fn(&[T], &mut [T]),
) {
    let bad = (0..c.batch).map(|_| AtomicBool::new(false)).collect::<Vec<_>>();
    let bias = bias.map(as_floats);
    let (shared_x, shared_w, shared_y) =
        (SendPtr::of(as_floats(x)), SendPtr::of(as_floats(w.all)), SendPtr(y.as_mut_ptr().cast::<f32>()));
    let finish = finish.map(|f| f.of_floats());
    let steps = s.group_steps();
    for g in 0..c.group {
        let weights = w.array;
        let [x, w, y] = [shared_x.add(g * steps[0]), shared_w.add(g * steps[1]), shared_y.add(g * steps[2])];
        let bias = bias.map(|b| &b[g * s.lanes..(g + 1) * s.lanes]);
        // SAFETY: the caller checked the sizes of the slices.
        unsafe { Winograd { s, x, w, bias, y, bad: &bad, weights, kept: None, finish }.run() }
    }
    let (from, to) = (x.len() / c.batch.max(1), y.len() / c.batch.max(1));
    for i in (0..c.batch).filter(|&i| bad[i].load(Relaxed)) {
        again(&x[i * from..(i + 1) * from], &mut y[i * to..(i + 1) * to]);
    }
}

/// The numbers, which are of this type.
fn as_floats<T: Real>(x: &[T]) -> &[f32] {
    assert!(T::DTYPE == DType::F32, "only float32 goes this way");
    // SAFETY: T is f32.
    unsafe { std::slice::from_raw_parts(x.as_ptr().cast(), x.len()) }
}
