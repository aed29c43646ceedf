//! [`FunctionRef`]: a function of the graph, as hooks, visitors and users see it.

use super::node::FnNode;
use super::variable::Variable;
use crate::function::{ArgValue, Function};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A function of the graph: what hooks and visitors see. It keeps the function alive, and with it the graph behind it.
///
/// ```
/// use nnrs::{functions as f, Variable};
/// let x = Variable::new([2, 3]);
/// let y = f::leaky_relu(&x, f::LeakyReLU::default())?;
/// let function = y.parent().unwrap();
/// assert_eq!((function.name(), function.class_name()), ("leaky_relu", "LeakyReLU"));
/// assert!(function.inputs()[0].is(&x) && function.outputs()[0].is(&y));
/// assert_eq!(function.arguments()[0].0, "alpha");
/// # Ok::<(), nnrs::Error>(())
/// ```
#[derive(Clone)]
pub struct FunctionRef(Arc<FnNode>);

impl FunctionRef {
    pub(crate) fn new(node: Arc<FnNode>) -> FunctionRef {
        FunctionRef(node)
    }

    pub(crate) fn node(&self) -> &Arc<FnNode> {
        &self.0
    }

    /// NNabla's name of the function's class.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// assert_eq!(f::pow_scalar(&Variable::new([2]), Default::default())?.parent().unwrap().class_name(), "PowScalar");
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn class_name(&self) -> &'static str {
        self.0.function.def().name
    }

    /// The function's name in Python.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// assert_eq!(f::pow_scalar(&Variable::new([2]), Default::default())?.parent().unwrap().name(), "pow_scalar");
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// A number that identifies the function, in order of creation.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let h = f::exp(&Variable::new([2]))?;
    /// let y = f::sin(&h)?;
    /// assert!(h.parent().unwrap().id() < y.parent().unwrap().id());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The rank of its highest input: 0 where all are leaves. Functions run in this order.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let h = f::exp(&Variable::new([2]))?;
    /// let y = f::add2(&h, &Variable::new([2]), Default::default())?;
    /// assert_eq!((h.parent().unwrap().rank(), y.parent().unwrap().rank()), (0, 1));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn rank(&self) -> usize {
        self.0.rank()
    }

    /// The arguments by NNabla's names, as the function uses them: strides of 1, all axes and the like instead of `None`.
    ///
    /// ```
    /// use nnrs::{function::ArgValue, functions as f, Variable};
    /// let y = f::sum(&Variable::new([2, 3]), f::Sum::default())?;
    /// let arguments = y.parent().unwrap().arguments();
    /// assert_eq!(arguments[0], ("axes", ArgValue::Ints(vec![0, 1])));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn arguments(&self) -> Vec<(&'static str, ArgValue)> {
        match self.0.setup() {
            Ok(setup) => self.0.function.used(setup.kernels()),
            Err(_) => self.0.function.arguments(), // its inputs have shapes now that it does not take
        }
    }

    /// Words of the user's own, by name.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// assert!(f::exp(&Variable::new([2]))?.parent().unwrap().tags().is_empty());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn tags(&self) -> BTreeMap<String, String> {
        self.0.tags.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }

    /// Sets [`FunctionRef::tags`].
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let y = f::exp(&Variable::new([2]))?;
    /// y.parent().unwrap().set_tags([("block".into(), "encoder".into())].into());
    /// assert_eq!(y.parent().unwrap().tags()["block"], "encoder");
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn set_tags(&self, tags: BTreeMap<String, String>) {
        *self.0.tags.lock().unwrap_or_else(|e| e.into_inner()) = tags;
    }

    /// Its inputs.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let (a, b) = (Variable::new([2]), Variable::new([2]));
    /// let inputs = f::sub2(&a, &b, Default::default())?.parent().unwrap().inputs();
    /// assert!(inputs.len() == 2 && inputs[0].is(&a) && inputs[1].is(&b));
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn inputs(&self) -> Vec<Variable> {
        self.0.all_inputs().into_iter().map(Variable::handle).collect()
    }

    /// Its outputs; one that was dropped comes back. Those that NNabla's function does not have are left out.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let function = f::exp(&Variable::new([2]))?.parent().unwrap(); // the variable is dropped
    /// assert_eq!(function.outputs()[0].shape(), [2].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn outputs(&self) -> Vec<Variable> {
        let mut outputs = self.all_outputs();
        outputs.truncate(outputs.len().saturating_sub(self.0.function.hidden_outputs()));
        outputs
    }

    /// Its outputs, with those that are nnrs's own.
    pub(crate) fn all_outputs(&self) -> Vec<Variable> {
        self.0.outputs().into_iter().map(Variable::handle).collect()
    }

    /// Where and in which precision it runs.
    ///
    /// ```
    /// use nnrs::{functions as f, DType, Variable};
    /// assert_eq!(f::exp(&Variable::new([2]))?.parent().unwrap().context().dtype(), DType::F32);
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn context(&self) -> Arc<crate::Context> {
        self.0.context.clone()
    }

    /// The implementation.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// let function = f::exp(&Variable::new([2]))?.parent().unwrap();
    /// assert_eq!(function.function().resolve(&[[5].into()])?.shapes[0], [5].into());
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn function(&self) -> &Arc<dyn Function> {
        &self.0.function
    }

    /// The line of the Python script that made it.
    ///
    /// ```
    /// use nnrs::{functions as f, Variable};
    /// assert_eq!(f::exp(&Variable::new([2]))?.parent().unwrap().origin(), None); // no script made it
    /// # Ok::<(), nnrs::Error>(())
    /// ```
    pub fn origin(&self) -> Option<&str> {
        self.0.origin.as_deref()
    }
}
