//! Transition: a function of the old trait as a call.
use super::*;

pub(crate) struct Old {
    f: Arc<dyn Function>,
    x: Vec<Shape>,
    y: Vec<Shape>,
}

impl Old {
    pub(crate) fn resolved(f: &Arc<dyn Function>, x: &[Shape], y: Shapes) -> Resolved {
        if f.elementwise().is_some() || f.is_view() || f.on_variables().is_some() {
            return Resolved::without_call(y);
        }
        let call = Old { f: f.clone(), x: x.to_vec(), y: y.to_vec() };
        Resolved::new(y, call)
    }
    fn xs(&self) -> Vec<&Shape> {
        self.x.iter().collect()
    }
    fn ys(&self) -> Vec<&Shape> {
        self.y.iter().collect()
    }
}

impl Call for Old {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self.f.forward(run, x, y)
    }
    fn backward(&self, run: &Run, g: Gradients) -> Result<()> {
        self.f.backward(run, g.x, g.y, g.gy, g.gx)
    }
    fn needs(&self, want: &[bool]) -> Option<Needs> {
        self.f.needs(want)
    }
    fn multiplications(&self) -> f64 {
        self.f.multiplications(&self.x)
    }
    fn backward_scratch(&self) -> usize {
        self.f.backward_scratch(&self.xs(), &self.ys())
    }
    fn scratch(&self, dtype: crate::DType) -> [usize; 2] {
        self.f.scratch(&self.xs(), &self.ys(), dtype)
    }
    fn saves(&self, dtype: crate::DType) -> Option<usize> {
        self.f.saves(&self.xs(), dtype)
    }
    fn grad_over(&self, i: usize) -> Option<usize> {
        self.f.grad_over(i, &self.xs(), &self.ys())
    }
    fn grad_repeats(&self) -> Option<Shape> {
        self.f.grad_repeats(&self.x[0])
    }
}
