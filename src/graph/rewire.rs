//! Graph surgery: putting one variable in another's place, cutting history.

use super::variable::{VarRef, Variable};
use crate::error::{Error, Result};
use std::sync::Arc;

impl Variable {
    /// Makes every function that reads `self`'s place in the graph of `target`: the parent of `self` becomes the parent of
    /// `target`, so that whatever is computed from `target` is from now on computed by `self`'s history.
    /// Shapes must be equal.
    pub fn rewire_on(&self, target: &Variable) -> Result<()> {
        if self.is(target) {
            return Ok(());
        }
        let (mine, theirs) = (self.shape(), target.shape());
        if mine != theirs {
            return Err(Error::shape("var", format!("shape {mine}")).actual(theirs).function("rewire_on"));
        }
        if reaches(self.node(), target.node()) {
            return Err(Error::graph(
                "this would make a cycle: the variable is computed from the one it shall replace",
            )
            .function("rewire_on"));
        }
        let Some((parent, i)) = self.node().lock().parent.take() else {
            let old = target.node().lock().parent.take();
            target.node().changed();
            drop(old);
            return Ok(());
        };
        let (data, grad) = (self.raw_data(), self.grad());
        target.node().set_arrays(data, grad);
        parent.replace_output(i as usize, target.node());
        let old = {
            let mut s = target.node().lock();
            s.inherited = self.need_grad();
            s.elided = None;
            s.parent.replace((parent, i))
        };
        target.node().changed();
        self.node().changed();
        drop(old);
        Ok(())
    }

    /// Forgets how this variable was made.
    pub fn cut(&self) {
        let old = self.node().lock().parent.take();
        self.node().changed();
        drop(old);
    }

    /// Cuts all links of the graph behind this variable.
    pub fn clear_all_graph_links(&self) {
        let nodes = super::plan::collect(&[self.node().clone()]);
        for f in &nodes {
            f.outputs().iter().for_each(|v| Variable::handle(v.clone()).cut());
        }
    }
}

/// True if `from` is computed from `what`.
fn reaches(from: &VarRef, what: &VarRef) -> bool {
    let nodes = super::plan::collect(std::slice::from_ref(from));
    nodes.iter().any(|f| f.inputs().iter().any(|x| Arc::ptr_eq(x, what)))
}
