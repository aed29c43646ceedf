//! A variable's members as NNabla's C++ manual lists them, one test each: each fails if the member does nothing.

use crate::common::{gradient, text, values, var};
use nnrs::graph::{Closed, FunctionRef, mode};
use nnrs::{BackwardOptions, ErrorKind, ForwardOptions, NdArray, Variable, functions as f};

/// What is in a variable's memory now.
fn is_there(v: &Variable) -> bool {
    !v.raw_data().storage().is_empty()
}

fn twice(x: &Variable) -> Variable {
    (x * 2.0).unwrap()
}

const CLEAR: ForwardOptions = ForwardOptions { clear_buffer: true, clear_no_need_grad: false };

fn clearing() -> BackwardOptions {
    BackwardOptions { clear_buffer: true, ..Default::default() }
}

#[test]
fn constructors() {
    let need = |v: &Variable| (v.need_grad(), v.need_grad_setting());
    let empty = Variable::default();
    assert_eq!((empty.shape(), empty.size(), empty.ndim(), need(&empty)), ([].into(), 1, 0, (false, None)));
    assert_eq!(need(&Variable::default().with_need_grad(true)), (true, Some(true)));
    let shaped = Variable::new([2, 3]);
    assert_eq!((shaped.shape(), need(&shaped), values(&shaped)), ([2, 3].into(), (false, None), vec![0.0; 6]));
    assert_eq!(need(&Variable::new([2, 3]).with_need_grad(false)), (false, Some(false)));
    let buffer = NdArray::from_slice(&[1.0f32, 2.0], [2].into()).unwrap();
    let over = Variable::from_array(buffer.clone()).with_need_grad(true);
    buffer.write(&[3.0f32, 4.0]).unwrap();
    assert_eq!((values(&over), over.data().unwrap().is(&buffer)), (vec![3.0, 4.0], true));
    let shared = over.unlinked_with(Some(false));
    over.grad().fill(5.0).unwrap();
    assert_eq!((gradient(&shared), shared.need_grad(), over.need_grad()), (vec![5.0; 2], false, true));
    assert_eq!(
        text(Variable::from_slice(&[1.0f32], [2].into())),
        "argument 'values': expected 2 values for shape (2,), got 1"
    );
}

#[test]
fn need_grad_is_set_unset_and_inherited() {
    let x = var(&[1.0, 2.0]);
    let h = twice(&x);
    let y = twice(&h);
    let run = || {
        x.grad().zero().unwrap();
        y.forward().unwrap();
        y.backward().unwrap();
        gradient(&x)
    };
    let flags = |v: &Variable| (v.need_grad(), v.need_grad_is_set(), v.need_grad_state());
    assert_eq!((flags(&h), flags(&x)), ((false, false, true), (true, true, true)));
    assert_eq!(run(), [4.0, 4.0]);
    h.set_need_grad(false);
    assert_eq!((flags(&h), h.need_grad_setting()), ((false, true, false), Some(false)));
    assert_eq!(run(), [0.0, 0.0]);
    h.set_need_grad(true);
    assert_eq!(flags(&h), (true, true, true));
    h.unset_need_grad();
    assert_eq!(flags(&h), (false, false, true));
    assert_eq!(run(), [4.0, 4.0]);
}

#[test]
fn need_grad_state_is_set_unset_and_inherited() {
    let x = var(&[1.0]);
    let (h, leaf) = (twice(&x), Variable::new([1]));
    let y = twice(&h);
    let backward = || {
        x.grad().zero().unwrap();
        y.backward().unwrap();
        gradient(&x)[0]
    };
    let state = |v: &Variable| (v.need_grad_state(), v.need_grad_state_is_set());
    assert_eq!((state(&h), state(&leaf)), ((true, true), (false, false)));
    y.forward().unwrap();
    h.set_need_grad_state(false);
    assert_eq!((state(&h), h.need_grad_is_set()), ((false, true), false));
    assert_eq!(backward(), 0.0, "backward goes by it");
    h.set_need_grad(true);
    assert_eq!((state(&h), backward()), ((true, true), 4.0), "the flag comes first");
    h.unset_need_grad();
    assert!(!h.need_grad_state());
    y.forward().unwrap();
    assert_eq!((state(&h), backward()), ((true, true), 4.0), "forward takes it from the inputs");
    h.unset_need_grad_state();
    assert_eq!((state(&h), backward()), ((false, false), 0.0));
    y.forward().unwrap();
    assert_eq!((state(&h), backward()), ((true, true), 4.0));
}

#[test]
fn need_grad_state_of_leaves_and_roots() {
    let leaf = Variable::new([1]);
    leaf.set_need_grad_state(true);
    let y = twice(&leaf);
    assert!(leaf.need_grad_state() && leaf.need_grad_state_is_set() && y.need_grad_state());
    y.forward().unwrap();
    assert!(!leaf.need_grad_state() && !leaf.need_grad_state_is_set() && !y.need_grad_state());
    y.set_need_grad_state(true);
    y.forward().unwrap();
    assert!(y.need_grad_state(), "no function of the run reads it");
    let (other, mut closed) = (Variable::new([1]), Closed::default());
    let z = twice(&other);
    closed.insert(z.parent().unwrap().id());
    other.set_need_grad_state(true);
    let closed = Some(&mut closed);
    z.forward_with(nnrs::graph::ForwardRun { closed, ..Default::default() }).unwrap();
    assert!(other.need_grad_state(), "nothing has run");
    other.unset_need_grad_state();
    assert!(!other.need_grad_state() && !other.need_grad_state_is_set());
}

#[test]
fn new_variables_take_the_mode_of_recomputation() {
    let before = Variable::new([1]);
    mode::set_recompute(true);
    let made = [Variable::default(), Variable::new([1]), var(&[1.0]), twice(&before), before.unlinked()];
    let more = [before.view([1, 1].into()).unwrap(), before.deep_copy(false).unwrap()];
    mode::set_recompute(false);
    assert!(made.iter().chain(&more).all(Variable::recompute));
    assert!(!before.recompute() && !made[0].unlinked().recompute());
}

#[test]
fn unlinked_copies_need_no_gradient_unless_told() {
    let x = var(&[1.0]);
    let (plain, same, without) = (x.unlinked(), x.unlinked_with(None), x.unlinked_with(Some(false)));
    assert_eq!([&plain, &same, &without].map(Variable::need_grad_setting), [None, Some(true), Some(false)]);
    assert_eq!(twice(&x).unlinked_with(None).need_grad_setting(), Some(true));
}

#[test]
fn recompute_drops_and_brings_back() {
    let x = var(&[0.5, -1.0]);
    let h = f::sin(&x).unwrap();
    let y = (&h * &h).unwrap();
    h.set_recompute(true);
    y.forward().unwrap();
    assert!(h.recompute() && !is_there(&h));
    y.backward().unwrap();
    let want = [0.5f64, -1.0].map(|x| 2.0 * x.sin() * x.cos());
    assert!(gradient(&x).iter().zip(want).all(|(g, w)| (*g as f64 - w).abs() < 1e-6));
    h.set_recompute(false);
    y.forward().unwrap();
    assert!(!h.recompute() && is_there(&h));
}

#[test]
fn prohibit_clear_data_keeps_data_but_not_the_gradient() {
    let x = var(&[1.0]);
    let (kept, lost) = (twice(&x), Variable::default());
    let lost = { lost.reset_shape([1], true).and_then(|()| f::sin(&kept)) }.unwrap();
    let y = twice(&lost);
    y.forward_with(CLEAR).unwrap();
    assert!(!is_there(&kept) && !is_there(&lost));
    kept.set_prohibit_clear_data(true);
    y.forward_with(CLEAR).unwrap();
    assert!(kept.prohibit_clear_data() && is_there(&kept) && !is_there(&lost));
    y.forward().unwrap();
    y.backward_with(clearing()).unwrap();
    assert_eq!(kept.raw_data().to_vec::<f32>().unwrap(), [2.0]);
    assert!(kept.grad().storage().is_empty() && !is_there(&lost));
    kept.set_persistent(true);
    y.forward().unwrap();
    y.backward_with(clearing()).unwrap();
    assert!(!kept.grad().storage().is_empty());
}

#[test]
fn persistent_keeps_data_and_gradient() {
    let x = var(&[1.0]);
    let (kept, lost) = (twice(&x), twice(&x));
    let y = (f::sin(&kept).unwrap() + f::sin(&lost).unwrap()).unwrap();
    kept.set_persistent(true);
    y.forward_with(CLEAR).unwrap();
    assert!(kept.persistent() && is_there(&kept) && !is_there(&lost));
    y.forward().unwrap();
    y.backward_with(clearing()).unwrap();
    assert!(is_there(&kept) && !is_there(&lost) && lost.grad().storage().is_empty());
    assert!((gradient(&kept)[0] as f64 - 2f64.cos()).abs() < 1e-6);
    kept.set_persistent(false);
    y.forward_with(CLEAR).unwrap();
    assert!(!kept.persistent() && !is_there(&kept));
}

#[test]
fn function_references_do_not_keep_functions() {
    let x = var(&[1.0]);
    let (a, b) = (f::sin(&x).unwrap(), (&x + &x).unwrap());
    let names = || x.function_references().iter().map(FunctionRef::name).collect::<Vec<_>>();
    assert_eq!(names(), ["sin", "add2"]);
    drop(a);
    assert_eq!(names(), ["add2"]);
    let other = var(&[1.0]);
    let read = f::exp(&twice(&other)).unwrap();
    x.rewire_on(&read.parent().unwrap().inputs()[0]).unwrap();
    assert_eq!(names(), ["add2"]);
    drop(b);
    assert!(x.function_references().is_empty());
}

#[test]
fn setup_follows_shapes() {
    let x = var(&[1.0, 2.0]);
    let y = twice(&x);
    let function = y.parent().unwrap();
    assert!(!x.check_and_unmark_need_setup(&function).unwrap());
    x.mark_need_setup();
    assert!(x.check_and_unmark_need_setup(&function).unwrap());
    assert!(!x.check_and_unmark_need_setup(&function).unwrap());
    x.reset_shape([3], true).unwrap();
    assert!(x.check_and_unmark_need_setup(&function).unwrap() && y.shape() == [3].into());
    x.mark_need_setup();
    y.forward().unwrap();
    assert!(!x.check_and_unmark_need_setup(&function).unwrap(), "the run has set it up");
    x.rewire_on(&twice(&var(&[1.0, 2.0, 3.0]))).unwrap();
    assert!(x.check_and_unmark_need_setup(&function).unwrap());
    let other = text(y.check_and_unmark_need_setup(&function));
    assert_eq!(other, "check_and_unmark_need_setup: the function does not read this variable");
    let sum = (&x + &var(&[1.0, 2.0, 3.0])).unwrap();
    x.reset_shape([4], true).unwrap();
    let wrong = x.check_and_unmark_need_setup(&sum.parent().unwrap()).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Shape);
    assert!(x.check_and_unmark_need_setup(&sum.parent().unwrap()).is_err(), "still to be set up");
}

#[test]
fn marks_for_setup_belong_to_an_input() {
    let (a, b) = (var(&[1.0]), var(&[2.0]));
    let function = (&a + &b).unwrap().parent().unwrap();
    let check = |v: &Variable| v.check_and_unmark_need_setup(&function).unwrap();
    a.mark_need_setup();
    assert_eq!([check(&b), check(&a), check(&a)], [false, true, false]);
    [&a, &b].iter().for_each(|v| v.mark_need_setup());
    assert_eq!([check(&a), check(&b), check(&b)], [true, true, false]);
    [&a, &b].iter().for_each(|v| v.mark_need_setup());
    assert!(check(&a));
    function.outputs()[0].forward().unwrap();
    assert!(!check(&b));
}

#[test]
fn allow_modify_data_guards_the_value() {
    let x = var(&[1.0]);
    x.set_allow_modify_data(false);
    assert!(!x.allow_modify_data());
    let wrong = text(x.supersede(&twice(&x)));
    assert!(wrong.contains("allow_modify_data is off"), "{wrong}");
    x.set_allow_modify_data(true);
    x.supersede(&twice(&x)).unwrap();
    x.forward().unwrap();
    assert_eq!(values(&x), [2.0]);
}

#[test]
fn clear_during_auto_forward_drops_what_can_come_back() {
    mode::set_auto_forward(true);
    let x = var(&[0.5]);
    let make = |recompute| {
        let h = f::sin(&x).unwrap();
        h.set_recompute(recompute);
        h
    };
    let (h, plain, persistent, fixed, seen) = (make(true), make(false), make(true), make(true), make(true));
    persistent.set_persistent(true);
    fixed.set_prohibit_clear_data(true);
    let look = seen.clone();
    let y = (&h * &h).unwrap();
    for v in [&h, &plain, &persistent, &fixed, &seen, &x] {
        v.clear_during_auto_forward();
    }
    assert!(!is_there(&h) && !is_there(&plain) && is_there(&persistent) && is_there(&fixed) && is_there(&x));
    assert!(is_there(&look), "another handle looks at it");
    assert_eq!((values(&h), values(&plain)), (vec![0.5f32.sin()], vec![0.5f32.sin()]));
    h.clear_during_auto_forward();
    assert_eq!(values(&twice(&h)), [2.0 * 0.5f32.sin()], "a new reader computes it again");
    h.clear_during_auto_forward();
    y.backward().unwrap();
    assert!((gradient(&x)[0] as f64 - 2.0 * 0.5f64.sin() * 0.5f64.cos()).abs() < 1e-6);
}

#[test]
fn clear_during_auto_forward_leaves_what_gradients_read() {
    mode::set_auto_forward(true);
    let x = var(&[0.5]);
    let (read, made, free) = (twice(&x), f::tanh(&x).unwrap(), twice(&x));
    let y = ((f::sin(&read).unwrap() + &made).unwrap() + twice(&free)).unwrap();
    [&read, &made, &free].iter().for_each(|v| v.clear_during_auto_forward());
    assert_eq!([&read, &made, &free].map(is_there), [true, true, false], "that of tanh reads its output");
    y.backward().unwrap();
    let want = 2.0 * 1f64.cos() + 1.0 - 0.5f64.tanh().powi(2) + 4.0;
    assert!((gradient(&x)[0] as f64 - want).abs() < 1e-6);
    assert_eq!(values(&free), [1.0]);
    mode::set_auto_forward(false);
    read.clear_during_auto_forward();
    assert!(is_there(&read));
}

#[test]
fn clear_during_auto_forward_does_nothing_in_static_graphs() {
    let h = f::sin(&var(&[0.5])).unwrap();
    h.set_recompute(true);
    h.forward().unwrap();
    h.clear_during_auto_forward();
    assert!(is_there(&h));
}

#[test]
fn names() {
    let x = Variable::new([2]);
    assert_eq!(x.name(), None);
    x.set_name("pixels");
    assert_eq!(x.clone().name().as_deref(), Some("pixels"));
}

#[test]
fn deep_copies_share_nothing() {
    let x = var(&[1.0, 2.0]);
    x.grad().write(&[3.0f32, 4.0]).unwrap();
    let y = twice(&x);
    y.forward().unwrap();
    let (data, both, computed) = (x.deep_copy(false).unwrap(), x.deep_copy(true).unwrap(), y.deep_copy(false).unwrap());
    x.data().unwrap().fill(0.0).unwrap();
    x.grad().fill(0.0).unwrap();
    y.data().unwrap().fill(0.0).unwrap();
    assert_eq!((values(&data), gradient(&data), data.need_grad()), (vec![1.0, 2.0], vec![0.0; 2], true));
    assert_eq!((values(&both), gradient(&both)), (vec![1.0, 2.0], vec![3.0, 4.0]));
    assert_eq!((values(&computed), computed.has_parent()), (vec![2.0, 4.0], false));
    let settings = [&x, &y, &Variable::new([1])].map(|v| v.deep_copy(false).unwrap().need_grad_setting());
    assert_eq!(settings, [Some(true), Some(false), Some(false)]);
}

#[test]
fn visits_in_the_order_of_running() {
    let x = var(&[0.5]);
    let h = f::exp(&x).unwrap();
    let (a, b) = (f::sin(&h).unwrap(), f::abs(&h).unwrap());
    let walk = |y: &Variable, closed: &mut Closed, recomputation| {
        let mut names = Vec::new();
        y.visit_function_recursive(&y.parent().unwrap(), closed, recomputation, |f| {
            names.push(f.name());
            Ok(())
        })
        .unwrap();
        names
    };
    let mut closed = Closed::default();
    assert_eq!(walk(&a, &mut closed, false), ["exp", "sin"]);
    assert_eq!(walk(&b, &mut closed, false), ["abs"]);
    assert_eq!(closed.len(), 3);
    assert_eq!(walk(&b, &mut closed, false), ["abs"], "the start is visited all the same");
    let (mut names, start) = (Vec::new(), h.parent().unwrap());
    let mut note = |f: &FunctionRef| {
        names.push(f.name());
        Ok(())
    };
    a.visit_function_recursive(&start, &mut Closed::default(), false, &mut note).unwrap();
    a.visit_function_backward(&start, &mut note, &[]).unwrap();
    assert_eq!(names, ["exp", "exp"]);
    a.forward().unwrap();
    assert_eq!(walk(&a, &mut Closed::default(), true), ["sin"], "exp's data is there");
    h.set_recompute(true);
    a.forward().unwrap();
    assert_eq!(walk(&a, &mut Closed::default(), true), ["exp", "sin"], "exp would run again");
    let mut count = 0;
    let stopped = a.visit_function_recursive(&a.parent().unwrap(), &mut Closed::default(), false, |f| {
        count += 1;
        Err(nnrs::Error::graph(format!("at {}", f.name())))
    });
    assert_eq!((text(stopped), count), ("at exp".into(), 1));
}

#[test]
fn arrays_with_handles_have_their_values() {
    let x = var(&[0.1, 0.2]);
    let h = f::exp(&x).unwrap();
    let (data, grad) = (h.raw_data(), h.grad());
    let y = f::sin(&h).unwrap();
    drop(h);
    y.forward().unwrap();
    y.backward().unwrap();
    let expected = [0.1f32.exp(), 0.2f32.exp()];
    assert!(!data.storage().is_empty());
    for (i, e) in expected.into_iter().enumerate() {
        assert!((data.to_vec::<f32>().unwrap()[i] - e).abs() < 1e-6);
        assert!((grad.to_vec::<f32>().unwrap()[i] - e.cos()).abs() < 1e-6);
    }
}

#[test]
fn arrays_made_apart_and_views_of_them_are_held_too() {
    let x = var(&[0.1, 0.2]);
    let h = f::exp(&x).unwrap();
    let (data, grad) = (NdArray::new([2].into()), NdArray::new([2].into()));
    h.set_data(data.clone()).unwrap();
    h.set_grad(grad.reshaped([2, 1].into()).unwrap().reshaped([2].into()).unwrap()).unwrap();
    h.set_grad(grad.clone()).unwrap();
    let view = data.reshaped([1, 2].into()).unwrap();
    let y = f::sin(&h).unwrap();
    drop((h, data));
    y.forward().unwrap();
    y.backward().unwrap();
    assert!((view.to_vec::<f32>().unwrap()[1] - 0.2f32.exp()).abs() < 1e-6);
    assert!((grad.to_vec::<f32>().unwrap()[1] - 0.2f32.exp().cos()).abs() < 1e-6);
}
