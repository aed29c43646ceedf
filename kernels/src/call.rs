//! A call: a function over inputs of given shapes, resolved, as data that can run. What it is handed: typed arrays with shapes,
//! and the circumstances of the run.

use crate::array::{AxisMap, Data, NdArray, Output, Place, Strided, shape_changed};
use crate::dtype::{DType, Element};
use crate::error::{Error, Result};
use crate::finish::{ChannelScaling, Finish};
use crate::random::LastDraw;
use crate::saved::Saved;
use crate::shape::Shape;
use std::any::Any;
use std::sync::Arc;

/// Which data a backward kernel reads, as bit masks over inputs and outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Bit k: the data of input k.
    pub x: u32,
    /// Bit k: the data of output k.
    pub y: u32,
}

impl Needs {
    /// Nothing but the output gradients.
    pub const NONE: Needs = Needs { x: 0, y: 0 };
    /// All inputs and outputs.
    pub const ALL: Needs = Needs { x: u32::MAX, y: u32::MAX };

    /// Whether input number `i` is read; all from number 31 on share a bit.
    pub fn input(self, i: usize) -> bool {
        self.x >> i.min(31) & 1 == 1
    }

    /// Whether output number `i` is read.
    pub fn output(self, i: usize) -> bool {
        self.y >> i.min(31) & 1 == 1
    }
}

/// The kernels of a function over inputs of given shapes, with all sizes and arguments as they are used.
///
/// A closure over [`Call::forward`]'s arguments is one that has no backward kernel.
pub trait Call: Any + Send + Sync {
    /// Computes the outputs. Kernels see `f32` or `f64` (`run.dtype`), and `i64` for index inputs; half types are
    /// converted by the engine.
    ///
    /// # Errors
    /// Data that the function does not take, such as an index out of range; not enough memory.
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()>;

    /// The fast path: writes or adds the gradients that are asked for. Called only if `needs` is not `None`.
    ///
    /// # Errors
    /// As [`Call::forward`].
    fn backward(&self, _run: &Run, _gradients: Gradients) -> Result<()> {
        Err(Error::unsupported("this function has no backward kernel"))
    }

    /// What `backward` reads when the gradients `want` are asked for; `None` if there is no fast path.
    fn needs(&self, _want: &[bool]) -> Option<Needs> {
        None
    }

    /// As `needs`, of the kernels of a GPU: what [`saves`](Call::saves) speaks of they read again.
    fn needs_on_gpu(&self, dtype: DType, want: &[bool]) -> Option<Needs> {
        let needs = self.needs(want)?;
        Some(if self.saves(dtype).is_some() { Needs { x: Needs::ALL.x, ..needs } } else { needs })
    }

    /// Multiplications of the forward pass, for functions that do more than pass over their arrays: what it would cost
    /// to compute the outputs again.
    fn multiplications(&self) -> f64 {
        0.0
    }

    /// Elements of memory that the backward pass needs for itself beyond the gradients `want`.
    fn backward_scratch(&self, _want: &[bool]) -> usize {
        0
    }

    /// Bytes of the large buffers that the kernels work in on the host, computing in `dtype`: forward, and backward for all
    /// gradients.
    fn scratch(&self, _dtype: DType) -> [usize; 2] {
        [0; 2]
    }

    /// Bytes of what `forward` saves in place of inputs, computing in `dtype`, for functions that save more than a few
    /// numbers: they do so if [`Run::keep`] says that a backward pass may follow. `backward` finds it; if need be, `forward`
    /// runs again for it.
    fn saves(&self, _dtype: DType) -> Option<usize> {
        None
    }

    /// The output whose gradient, of the same size, the kernel can write input `i`'s gradient over. If the engine decides
    /// so, the kernel finds that gradient in `gx[i]` ([`GradMut::over`] is set), and `None` in `gy`. Without a fast path: the
    /// output whose gradient the function's rule hands on as input `i`'s.
    fn grad_over(&self, _i: usize) -> Option<usize> {
        None
    }

    /// Outer axes, channels and inner axes of the result (channels first) where the kernel on the host takes what
    /// [`Run::finish`] asks for.
    #[doc(hidden)]
    fn finishes(&self) -> Option<[usize; 3]> {
        None
    }

    /// The same where the function on the host is nothing but a scaling of each channel by inputs other than the first.
    #[doc(hidden)]
    fn scales(&self) -> Option<[usize; 3]> {
        None
    }

    /// That scaling, in the place of `forward`; the first input is not read.
    #[doc(hidden)]
    fn scaling(&self, _run: &Run, _x: &[View]) -> ChannelScaling {
        unreachable!("only for functions that are scalings")
    }

    /// The last draw of a random function.
    fn last_draw(&self) -> Option<LastDraw> {
        None
    }

    /// Whether the backward kernel on the host takes gradients of outputs that are one number everywhere as just that number:
    /// [`View::is_constant`].
    fn takes_constants(&self) -> bool {
        false
    }

    /// How output `i` lies in input 0, if it is that array's elements, axis by axis. Where all readers take strides, they read
    /// that array, and the output is never made.
    fn axes(&self, _i: usize) -> Option<AxisMap> {
        None
    }

    /// Whether the kernels at `place` read input `i` where it lies in another array as `x` says ([`View::strides`]). One whose
    /// elements are neighbours on the host needs nothing of a kernel.
    fn takes_strides(&self, _i: usize, _x: &Strided, _place: Place) -> bool {
        false
    }

    /// Input 0's shape with size 1 along axes that its gradient is the same along. If the engine decides so, `gx[0]` has
    /// this shape, and its reader repeats it.
    fn grad_repeats(&self) -> Option<Shape> {
        None
    }
}

impl<F: Fn(&Run, &[View], &mut [ViewMut]) -> Result<()> + Send + Sync + 'static> Call for F {
    fn forward(&self, run: &Run, x: &[View], y: &mut [ViewMut]) -> Result<()> {
        self(run, x, y)
    }
}

/// What a backward kernel reads and writes: for each input and output what it asked for.
pub struct Gradients<'a, 'v> {
    /// Data of the inputs.
    pub x: &'a [Option<View<'v>>],
    /// Data of the outputs.
    pub y: &'a [Option<View<'v>>],
    /// Gradients of the outputs; `None` where none arrives.
    pub gy: &'a [Option<View<'v>>],
    /// Gradients of the inputs; `None` where none is asked for.
    pub gx: &'a mut [Option<GradMut<'v>>],
}

/// An array to read.
pub struct View<'a> {
    /// Its shape.
    pub shape: &'a Shape,
    #[doc(hidden)]
    pub data: Data,
    strides: Option<&'a Strided>,
    is_constant: bool,
}

impl<'a> View<'a> {
    /// An array that has the one element of `data` everywhere.
    #[doc(hidden)]
    pub fn constant(shape: &'a Shape, data: Data) -> View<'a> {
        View { is_constant: true, ..View::new(shape, data) }
    }

    /// Whether all elements are the same and only one is there: only for gradients of calls that
    /// [take constants](Call::takes_constants).
    pub fn is_constant(&self) -> bool {
        self.is_constant
    }

    /// All elements of `data`, which has as many as `shape`.
    #[doc(hidden)]
    #[inline]
    pub fn new(shape: &'a Shape, data: Data) -> View<'a> {
        View { shape, data, strides: None, is_constant: false }
    }

    /// The elements of an array at the places that `view` says.
    #[doc(hidden)]
    pub fn of(array: Data, view: &'a Strided) -> Result<View<'a>> {
        if !view.fits(array.len()) {
            return Err(shape_changed(format!("it has {} elements now", array.len())));
        }
        if View::is_dense(view, array.place()) {
            let first = if view.shape.size() == 0 { 0 } else { view.first };
            return Ok(View::new(&view.shape, array.within(first, view.shape.size())));
        }
        Ok(View { shape: &view.shape, data: array, strides: Some(view), is_constant: false })
    }

    /// What lies so is handed to any kernel at `place` as elements in order.
    #[doc(hidden)]
    pub fn is_dense(view: &Strided, place: Place) -> bool {
        view.is_contiguous() && place == Place::Host
    }

    /// The same in the memory `data`.
    pub(crate) fn with(&self, data: Data) -> View<'a> {
        View { data, ..*self }
    }

    /// Where the elements lie in the array, if they are not all of it in order: only for inputs that
    /// [take strides](Call::takes_strides).
    #[inline]
    pub fn strides(&self) -> Option<&'a Strided> {
        self.strides
    }

    /// The elements, row by row.
    ///
    /// # Panics
    /// If `T` is not their type, which is `run.dtype`, or `i64` for index inputs; or if they do not lie in order, in a kernel that
    /// has said that it takes strides.
    pub fn slice<T: Element>(&self) -> &[T] {
        assert!(self.strides.is_none() && !self.is_constant, "elements in order");
        self.data.as_slice()
    }

    /// The elements with their shape, as an array of the crate ndarray, which has strides where they lie in another array.
    ///
    /// # Panics
    /// If `T` is not their type.
    pub fn view<T: Element>(&self) -> ndarray::ArrayViewD<'_, T> {
        match self.strides {
            Some(view) => view.over(self.data.as_slice()),
            None => {
                let shape = ndarray::IxDyn(self.shape);
                ndarray::ArrayViewD::from_shape(shape, self.slice()).expect("an array of the call's size")
            }
        }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.data.dtype()
    }
}

fn shaped_mut<'a, T>(shape: &Shape, elements: &'a mut [T]) -> ndarray::ArrayViewMutD<'a, T> {
    ndarray::ArrayViewMutD::from_shape(ndarray::IxDyn(shape), elements).expect("an array of the call's size")
}

/// An array to write.
pub struct ViewMut<'a> {
    /// Its shape.
    pub shape: &'a Shape,
    #[doc(hidden)]
    pub data: Data,
}

impl ViewMut<'_> {
    /// The elements, row by row; what they are before they are written is undefined.
    ///
    /// # Panics
    /// If `T` is not their type, which is `run.dtype`, or what the function's `output_dtype` says.
    pub fn slice<T: Element>(&mut self) -> &mut [T] {
        self.data.as_mut_slice()
    }

    /// The elements with their shape, as an array of the crate ndarray.
    ///
    /// # Panics
    /// As [`ViewMut::slice`].
    pub fn view<T: Element>(&mut self) -> ndarray::ArrayViewMutD<'_, T> {
        shaped_mut(self.shape, self.slice())
    }
}

/// A gradient to write or to add to.
pub struct GradMut<'a> {
    /// Its shape: that of the input.
    pub shape: &'a Shape,
    /// Whether to write the gradient or to add to what is there.
    pub output: Output,
    /// The memory holds the gradient of an output, to be written over: see [`Call::grad_over`].
    pub over: bool,
    #[doc(hidden)]
    pub data: Data,
}

impl GradMut<'_> {
    /// The elements, row by row.
    ///
    /// # Panics
    /// If `T` is not their type, which is `run.dtype`.
    pub fn slice<T: Element>(&mut self) -> &mut [T] {
        self.data.as_mut_slice()
    }

    /// The elements with their shape, as an array of the crate ndarray.
    ///
    /// # Panics
    /// As [`GradMut::slice`].
    pub fn view<T: Element>(&mut self) -> ndarray::ArrayViewMutD<'_, T> {
        shaped_mut(self.shape, self.slice())
    }
}

/// The circumstances of one run of a function.
pub struct Run<'a> {
    /// The type to compute in: `F32` or `F64`.
    pub dtype: DType,
    /// True when the forward pass runs again for its values: no side effects, the same random numbers.
    pub again: bool,
    /// True if a backward pass may follow, so that what it reads in place of inputs is to be saved: see
    /// [`Call::saves`].
    pub keep: bool,
    #[doc(hidden)]
    pub saved: &'a Saved,
    /// What is to be done to the result, for calls that [take it](Call::finishes).
    #[doc(hidden)]
    pub finish: Option<&'a Finish<'a>>,
    /// The number of the call's shapes.
    #[doc(hidden)]
    pub call: u64,
    #[doc(hidden)]
    pub shapes: &'a [Shape],
    #[doc(hidden)]
    pub inputs: &'a [NdArray],
}

impl Run<'_> {
    /// Keeps a value for the backward pass: statistics, a seed; what is large only if [`Run::keep`] says so.
    pub fn save<T: Any + Send + Sync>(&self, value: T) {
        self.saved.restore(Some((self.call, Arc::new(value))));
    }

    /// What `save` kept in the last forward pass, if inputs and outputs had the same shapes then.
    pub fn saved<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.saved.of_call(self.call).and_then(|v| v.downcast().ok())
    }

    /// The shape of input `i` in this call, whatever has become of the array's meanwhile.
    ///
    /// # Panics
    /// If there is no such input.
    pub fn shape(&self, i: usize) -> &Shape {
        &self.shapes[i]
    }

    /// The `n` elements of input `i` in the memory of `place`, in the type to compute in, to be updated.
    #[doc(hidden)]
    pub fn input_to_update(&self, i: usize, place: Place, n: usize) -> Result<Data> {
        self.inputs[i].modify_at(place, self.dtype)?.of(n)
    }

    /// The same as integers of 32 bits; see [`update_whole_input`](Run::update_whole_input).
    #[doc(hidden)]
    pub fn whole_input_to_update(&self, i: usize, place: Place, n: usize) -> Result<Data> {
        self.inputs[i].modify_at(place, DType::I32)?.of(n)
    }

    /// Updates the `n` elements of input `i` in the type to compute in, which it has from then on.
    pub fn update_input<T: Element>(&self, i: usize, n: usize, f: impl FnOnce(&mut [T])) -> Result<()> {
        f(self.inputs[i].modify(T::DTYPE)?.of(n)?.as_mut_slice());
        Ok(())
    }

    /// Updates the `n` elements of input `i` as integers of 32 bits, which it has from then on: counters and indicators are
    /// such in NNabla, whatever they were before.
    pub fn update_whole_input(&self, i: usize, n: usize, f: impl FnOnce(&mut [i32])) -> Result<()> {
        f(self.inputs[i].modify(DType::I32)?.of(n)?.as_mut_slice());
        Ok(())
    }
}
