//! The sum of an array over the GPUs of a group as a function of a graph: by the devices alone, so that its runs may be captured.

use super::all_reduce_function::{definition, input, next};
use crate::function::args::{ArgumentsKey, key};
use crate::function::{
    ArgValue, Call, Def, Described, Function, Grad, Gradients, Needs, OnGpu, Resolved, Run, View, ViewMut, call_one,
};
use crate::graph::Variable;
use nnrs_kernels::array::{Data, Output};
use nnrs_kernels::cuda::GpuGroup;
use nnrs_kernels::error::Result;
use nnrs_kernels::kernel::ops;
use nnrs_kernels::shape::Shape;
use std::sync::Arc;

/// The sum of an array over all GPUs of a group; its gradient is the sum of their gradients. All members run it alike, in
/// one order with their other collectives.
pub(crate) struct SumOverGpus {
    group: Arc<GpuGroup>,
    number: u64,
}

impl SumOverGpus {
    pub(crate) fn new(group: &Arc<GpuGroup>) -> SumOverGpus {
        SumOverGpus { group: group.clone(), number: next() }
    }
}

impl Described for SumOverGpus {
    fn def(&self) -> &'static Def {
        const DOC: &str = "The sum of an array over the GPUs of all ranks.";
        const DEF: &Def = &Def { on_gpu: OnGpu::Both, ..definition("SumOverGpus", DOC, &[input("x")]) };
        DEF
    }

    fn arguments(&self) -> Vec<(&'static str, ArgValue)> {
        vec![]
    }

    fn key(&self) -> ArgumentsKey {
        key(|h| h(self.number))
    }
}

impl Function for SumOverGpus {
    fn resolve(&self, x: &[Shape]) -> Result<Resolved> {
        Ok(Resolved::one(x[0].clone(), GroupSumCall(self.group.clone())))
    }

    fn grad(&self, g: &Grad) -> Result<Vec<Option<Variable>>> {
        Ok(vec![Some(call_one(SumOverGpus::new(&self.group), &[&g.gy[0]])?)])
    }
}

/// What it runs.
struct GroupSumCall(Arc<GpuGroup>);

impl Call for GroupSumCall {
    fn forward(&self, _run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.0.sum_of(&x[0].data, &y[0].data)
    }

    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        Some(Needs::NONE)
    }

    fn backward(&self, _run: &Run, Gradients { gy, gx, .. }: Gradients) -> Result<()> {
        let (Some(gy), Some(gx)) = (&gy[0], &gx[0]) else { return Ok(()) };
        if gx.output == Output::Write {
            return self.0.sum_of(&gy.data, &gx.data);
        }
        let sum = Data::new_at(gx.data.place(), gx.data.dtype(), gx.data.len())?;
        self.0.sum_of(&gy.data, &sum)?;
        ops::put(&gx.data, &sum, gx.output)
    }
}
