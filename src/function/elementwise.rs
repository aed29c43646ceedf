//! Functions that work element by element: one formula says all.

use super::describe::Described;
use super::{Args, Def, InputKind, args};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::expr::ssa::MixMap;
use nnrs_kernels::expr::{Expr, Formula};
use nnrs_kernels::fork::at_fork;
use nnrs_kernels::shape::Shape;
use nnrs_kernels::tile::AnyProgram;
use smallvec::smallvec;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock};

/// A function given by a formula. Inputs broadcast against each other as in NumPy.
pub trait Elementwise: Described {
    /// The output for one element.
    fn formula(&self, x: &[Expr]) -> Expr;

    /// Gradients, where NNabla's differ from the formula's (straight-through estimators); `None`: derive the formula.
    fn gradient(&self, _x: &[Expr], _y: &Expr, _gy: &Expr) -> Option<Vec<Option<Expr>>> {
        None
    }

    /// Whether inputs of different shapes broadcast, or must be equal.
    fn broadcasts(&self) -> bool {
        true
    }

    /// Rules that the function holds itself instead of in the shared cache.
    fn own_rules(&self) -> Option<Arc<Rules>> {
        None
    }
}

/// Forward and derivative of one function with its arguments.
pub struct Rules {
    /// Inputs `x..`; one output, `y`.
    pub forward: Arc<Formula>,
    /// Inputs `x.., y, gy`; outputs `gx..`.
    pub backward: Arc<Formula>,
    /// The forward formula as a program over f32, and over f64.
    pub(crate) single: OnceLock<AnyProgram>,
    pub(crate) double: OnceLock<AnyProgram>,
}

impl Rules {
    fn new(forward: Formula, backward: Formula) -> Rules {
        let (forward, backward) = (Arc::new(forward), Arc::new(backward));
        Rules { forward, backward, single: OnceLock::new(), double: OnceLock::new() }
    }
}

type RulesKey = (usize, args::ArgumentsKey, usize);
static RULES: LazyLock<Mutex<MixMap<RulesKey, Arc<Rules>>>> = LazyLock::new(Default::default);
/// Rules kept at most; functions with ever-changing arguments must not fill the memory.
const KEPT: usize = 4096;

fn lock() -> MutexGuard<'static, MixMap<RulesKey, Arc<Rules>>> {
    RULES.lock().unwrap_or_else(|e| e.into_inner())
}

at_fork!(Hold, lock());

/// The rules of a registered function with its default arguments, of two inputs where it takes any number. `None` where it
/// is no formula, or has an argument without default.
pub fn default_rules(def: &Def) -> Option<Arc<Rules>> {
    let f = (def.build)(&mut Args::new(vec![])).ok()?;
    let any = def.inputs.iter().filter(|i| i.kind == InputKind::Variadic).count();
    f.elementwise().map(|f| rules(f, def.inputs.len() + any))
}

/// The rules of `f` for `n` inputs, from a cache.
pub fn rules(f: &dyn Elementwise, n: usize) -> Arc<Rules> {
    if let Some(own) = f.own_rules() {
        return own;
    }
    let key = (f.def() as *const _ as usize, f.key(), n);
    if let Some(r) = lock().get(&key) {
        return r.clone();
    }
    let made = Arc::new(make_rules(f, n));
    let mut cache = lock();
    if cache.len() >= KEPT {
        cache.clear();
    }
    cache.insert(key, made.clone());
    made
}

fn make_rules(f: &dyn Elementwise, n: usize) -> Rules {
    let forward = Formula::new(n, |x| vec![Some(f.formula(x))]);
    let mut own = false;
    let given = Formula::new(n + 2, |x| match f.gradient(&x[..n], &x[n], &x[n + 1]) {
        Some(g) => {
            own = true;
            g
        }
        None => vec![None; n],
    });
    let backward = if own { given } else { forward.derivative() };
    Rules::new(forward, backward)
}

/// Output shape: all inputs broadcast together.
pub fn resolve(f: &dyn Elementwise, x: &[Shape]) -> Result<super::Resolved> {
    let Some(mut y) = x.first().cloned() else {
        return Err(Error::graph("an element-wise function has at least one input"));
    };
    for (i, s) in x.iter().enumerate().skip(1) {
        let equal = *s == y;
        let joint = if f.broadcasts() { y.broadcast(s) } else { Some(y.clone()).filter(|_| equal) };
        y = joint.ok_or_else(|| {
            let what = if f.broadcasts() { format!("a shape that broadcasts with {y}") } else { format!("shape {y}") };
            let e = Error::shape(f.def().input(i).name, what).actual(s);
            match f.broadcasts() {
                true => e.hint("axes are matched from the last; sizes must be equal or 1"),
                false => e,
            }
        })?;
    }
    Ok(super::Resolved::without_call(smallvec![y]))
}

/// An element-wise function made at run time, from a derivative for example.
pub struct FormulaFunction {
    rules: Arc<Rules>,
}

impl FormulaFunction {
    /// A function of a formula with one output.
    pub fn new(formula: Formula) -> FormulaFunction {
        let backward = formula.derivative();
        FormulaFunction { rules: Arc::new(Rules::new(formula, backward)) }
    }
}

static FORMULA_DEF: super::Def = super::Def {
    name: "Formula",
    snake: "formula",
    group: super::Group::Special,
    doc: "An element-wise formula made by the engine.",
    elementwise: true,
    on_gpu: super::OnGpu::Nothing,
    inputs: &[super::InputDef { name: "x", kind: super::InputKind::Variadic, doc: "N-D arrays." }],
    args: &[],
    outputs: &[super::OutputDef { name: "y", variadic: false, doc: "N-D array." }],
    build: |_| Err(Error::unsupported("formulas are made by the engine")),
};

impl Described for FormulaFunction {
    fn def(&self) -> &'static super::Def {
        &FORMULA_DEF
    }
    fn arguments(&self) -> Vec<(&'static str, super::ArgValue)> {
        vec![]
    }
    fn key(&self) -> args::ArgumentsKey {
        args::key(|h| h(Arc::as_ptr(&self.rules) as u64))
    }
}

impl Elementwise for FormulaFunction {
    fn formula(&self, x: &[Expr]) -> Expr {
        x[0].place(&self.rules.forward, x)
    }
    fn own_rules(&self) -> Option<Arc<Rules>> {
        Some(self.rules.clone())
    }
}

impl super::Function for FormulaFunction {
    fn resolve(&self, x: &[Shape]) -> Result<super::Resolved> {
        resolve(self, x)
    }
    fn elementwise(&self) -> Option<&dyn Elementwise> {
        Some(self)
    }
}
