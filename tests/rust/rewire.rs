//! Graph surgery: who computes a variable then, what it takes over, and that nothing stays behind.

use crate::common::{gradient, text, values, var};
use nnrs::graph::{ForwardRun, FunctionRef};
use nnrs::{Variable, functions as f};
use std::sync::{Arc, Weak};

fn twice(x: &Variable) -> Variable {
    (x * 2.0).unwrap()
}

/// Tells whether the variable lives.
fn watch(v: &Variable) -> Weak<()> {
    let life = Arc::new(());
    v.set_info(Some(life.clone()));
    Arc::downgrade(&life)
}

#[test]
fn rewiring() {
    let (xa, xb) = (var(&[1.0]), var(&[2.0]));
    let (ya, yb) = (f::exp(&xa).unwrap(), twice(&xb));
    xa.rewire_on(&yb).unwrap();
    ya.forward().unwrap();
    ya.backward().unwrap();
    assert_eq!(values(&ya), [4f32.exp()]);
    assert!((gradient(&xb)[0] - 2.0 * 4f32.exp()).abs() < 1e-4 && !yb.has_parent());
    assert!(text(xa.rewire_on(&Variable::new([2]))).contains("expected shape (1,), got (2,)"));
    assert!(text(xa.rewire_on(&Variable::new([1]))).contains("var has no parent"));
    let fixed = twice(&xb);
    fixed.set_need_grad(false);
    fixed.set_allow_modify_data(false);
    xa.rewire_on(&fixed).unwrap();
    xb.grad().zero().unwrap();
    ya.forward().unwrap();
    ya.backward().unwrap();
    assert_eq!((xa.need_grad_setting(), xa.allow_modify_data(), gradient(&xb)), (Some(false), false, vec![0.0]));
}

#[test]
fn parents() {
    let x = var(&[3.0]);
    let (y, z) = (twice(&x), Variable::new([1]));
    assert!(!x.has_parent() && x.parent().is_none() && y.has_parent());
    let function = y.parent().unwrap();
    assert_eq!((function.name(), x.rank(), y.rank(), twice(&y).rank()), ("mul_scalar", 0, 1, 2));
    assert!(function.inputs()[0].is(&x) && function.outputs()[0].is(&y));
    z.set_parent(&function).unwrap();
    assert!(z.has_parent() && y.has_parent() && z.rank() == 1 && function.outputs()[0].is(&y));
    assert_eq!(z.parent().unwrap().id(), function.id());
    z.forward().unwrap();
    z.backward().unwrap();
    assert_eq!((values(&z), values(&y), gradient(&x)), (vec![6.0], vec![6.0], vec![2.0]));
    assert!(y.function_references().is_empty(), "the copy is no function of the user's");
    y.cut();
    assert!(y.parent().is_none() && z.parent().unwrap().id() == function.id());
    let wrong = text(Variable::new([4]).set_parent(&z.parent().unwrap()));
    assert!(wrong.contains("a function with an output of shape (4,), got (1,)"), "{wrong}");
    let cycle = text(x.set_parent(&twice(&z).parent().unwrap()));
    assert!(cycle.contains("cycle"), "{cycle}");
    z.cut();
    assert!(!z.has_parent() && values(&z) == [6.0]);
    assert!(text(z.forward()).starts_with("forward: the variable has no parent"));
}

#[test]
fn a_given_parent_is_seen_as_one_function() {
    let x = var(&[3.0]);
    let (y, z) = (twice(&x), Variable::new([1]));
    z.set_parent(&y.parent().unwrap()).unwrap();
    let w = f::sin(&z).unwrap();
    let names = std::cell::RefCell::new(Vec::new());
    let note = |f: &FunctionRef| {
        names.borrow_mut().push(f.name());
        Ok(())
    };
    w.visit(note).unwrap();
    w.visit_function_recursive(&w.parent().unwrap(), &mut Default::default(), false, note).unwrap();
    w.forward_with(ForwardRun { pre: Some(&note), post: Some(&note), ..Default::default() }).unwrap();
    let forward = names.take();
    assert_eq!(forward[..4], ["mul_scalar", "sin", "mul_scalar", "sin"]);
    assert_eq!(forward[4..], ["mul_scalar", "mul_scalar", "sin", "sin"]);
    w.visit_function_backward(&w.parent().unwrap(), note, &[]).unwrap();
    assert_eq!((names.take(), z.rank()), (vec!["sin", "mul_scalar"], 1));
}

#[test]
fn rewired_graphs_are_freed() {
    let (x, new) = (var(&[1.0]), Variable::new([1]));
    let lives = [watch(&x), watch(&new)];
    let y = f::exp(&x).unwrap();
    let z = Variable::new([1]);
    z.set_parent(&y.parent().unwrap()).unwrap();
    let w = f::sin(&z).unwrap();
    w.forward().unwrap();
    new.rewire_on(&y).unwrap();
    y.rewire_on(&f::cos(&w).unwrap()).unwrap(); // y is behind z no more
    y.forward().unwrap();
    assert_eq!(values(&y), [1f32.exp().sin().cos()]);
    drop((x, y, z, w, new));
    assert!(lives.iter().all(|life| life.upgrade().is_none()));
}

#[test]
fn superseded_variables_are_freed() {
    let x = var(&[1.0]);
    let life = watch(&x);
    let w = f::sin(&f::exp(&x).unwrap()).unwrap();
    w.forward().unwrap();
    x.supersede(&(&x + &w).unwrap()).unwrap();
    x.forward().unwrap();
    assert_eq!(values(&x), [1.0 + 1f32.exp().sin()]);
    drop((x, w));
    assert!(life.upgrade().is_none());
}
