//! Gradient rules that users register by a function's name: for functions without one, or in place of the own one.

use super::FunctionRef;
use super::variable::Variable;
use crate::function::Grad;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::fork::at_fork;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

/// A gradient as a graph: for each input its gradient, or `None` where none flows.
///
/// ```
/// use nnrs::graph::{register_gradient, unregister_gradient, GradientRule};
/// let straight_through: GradientRule = std::sync::Arc::new(|_, g| Ok(vec![Some(g.gy[0].clone())]));
/// assert!(register_gradient("Round", straight_through).is_none() && unregister_gradient("Round").is_some());
/// ```
pub type GradientRule = Arc<dyn Fn(&FunctionRef, &Grad) -> Result<Vec<Option<Variable>>> + Send + Sync>;

static RULES: Mutex<BTreeMap<String, GradientRule>> = Mutex::new(BTreeMap::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn rules() -> MutexGuard<'static, BTreeMap<String, GradientRule>> {
    RULES.lock().unwrap_or_else(|e| e.into_inner())
}

at_fork!(Hold, rules());

/// Lets [`grad`](super::grad) use `rule` for functions whose class has this name (`"Affine"`), also where they have
/// a rule of their own. Gives the rule registered before. `backward` does not ask for rules.
///
/// ```
/// use nnrs::{functions as f, graph, Variable};
/// use std::sync::Arc;
/// graph::register_gradient("Round", Arc::new(|_, g| Ok(vec![Some(g.gy[0].clone())]))); // straight through
/// let x = Variable::from_slice(&[0.4f32, 0.6], [2].into())?.with_need_grad(true);
/// let gx = graph::grad(&[&f::round(&x)?], &[&x], &[])?[0].clone().unwrap();
/// gx.forward()?;
/// assert_eq!(gx.to_vec::<f32>()?, [1.0, 1.0]);
/// graph::unregister_gradient("Round");
/// # Ok::<(), nnrs::Error>(())
/// ```
pub fn register_gradient(name: &str, rule: GradientRule) -> Option<GradientRule> {
    let mut rules = rules();
    let old = rules.insert(name.to_string(), rule);
    COUNT.store(rules.len(), Relaxed);
    old
}

/// Takes a registered rule away; gives it, if there was one.
///
/// ```
/// assert!(nnrs::graph::unregister_gradient("NoSuchFunction").is_none());
/// ```
pub fn unregister_gradient(name: &str) -> Option<GradientRule> {
    let mut rules = rules();
    let old = rules.remove(name);
    COUNT.store(rules.len(), Relaxed);
    old
}

/// The gradient by a registered rule; `None` if there is none for this function.
pub(crate) fn registered(f: &FunctionRef, g: &Grad) -> Option<Result<Vec<Option<Variable>>>> {
    if COUNT.load(Relaxed) == 0 {
        return None;
    }
    let rule = rules().get(f.class_name()).cloned()?;
    Some(rule(f, g).and_then(|parts| checked(f, g, parts)))
}

fn checked(f: &FunctionRef, g: &Grad, parts: Vec<Option<Variable>>) -> Result<Vec<Option<Variable>>> {
    let name = format!("the gradient rule registered for '{}'", f.class_name());
    if parts.len() != g.x.len() {
        return Err(Error::arg("", format!("{} gradients, one for each input", g.x.len()))
            .actual(parts.len())
            .function(name));
    }
    for (i, (part, x)) in parts.iter().zip(&g.x).enumerate() {
        if let Some(shape) = part.as_ref().map(Variable::shape).filter(|s| *s != x.shape()) {
            return Err(Error::shape(&format!("result {i}"), format!("shape {}", x.shape()))
                .actual(shape)
                .function(name));
        }
    }
    Ok(parts)
}
