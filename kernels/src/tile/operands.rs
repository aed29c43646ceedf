//! Programs over arrays: what is read and written is checked against the number of elements, and kept while it is used.

use super::{Destination, Source, TileProgram, Walk};
use crate::array::Site;
use crate::array::{Data, Place, shape_changed};
use crate::cuda::{self, Gpu};
use crate::dtype::DType;
use crate::error::Result;
use crate::expr::Formula;
use crate::expr::ssa::{Id, Ssa};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

/// A program in the type it computes in, on its device.
#[derive(Clone)]
pub enum AnyProgram {
    F32(Arc<TileProgram<f32>>),
    F64(Arc<TileProgram<f64>>),
    Gpu(&'static Gpu, Arc<cuda::program::DeviceProgram>),
}

impl AnyProgram {
    pub fn compile(site: Site, ssa: &Ssa, inputs: usize, outputs: &[Id]) -> AnyProgram {
        let double = site.compute_dtype() == DType::F64;
        match site.place.gpu() {
            Some(gpu) => AnyProgram::Gpu(gpu, Arc::new(cuda::program::DeviceProgram::compile(double, ssa, outputs))),
            None if double => AnyProgram::F64(Arc::new(TileProgram::compile(ssa, inputs, 0, outputs))),
            None => AnyProgram::F32(Arc::new(TileProgram::compile(ssa, inputs, 0, outputs))),
        }
    }

    /// The program of a formula that is one with its kernel on a GPU; `None` on the host.
    pub fn on_gpu(site: Site, formula: &Formula) -> Option<AnyProgram> {
        let double = site.compute_dtype() == DType::F64;
        site.place.gpu().map(|gpu| AnyProgram::Gpu(gpu, cuda::program::DeviceProgram::of(double, formula)))
    }

    /// The host's program, if it computes in `T`.
    pub(crate) fn of_type<T: 'static>(&self) -> Option<&TileProgram<T>> {
        match self {
            AnyProgram::F32(p) => (&**p as &dyn Any).downcast_ref(),
            AnyProgram::F64(p) => (&**p as &dyn Any).downcast_ref(),
            AnyProgram::Gpu(..) => None,
        }
    }

    #[inline]
    fn place(&self) -> Place {
        match self {
            AnyProgram::Gpu(gpu, _) => Place::Gpu(*gpu),
            AnyProgram::F32(_) | AnyProgram::F64(_) => Place::Host,
        }
    }
}

/// The arrays of one run of a program over `n` elements, in the program's order.
pub struct Operands {
    n: usize,
    dtype: DType,
    place: Place,
    sources: SmallVec<[Source; 8]>,
    sinks: SmallVec<[Destination; 4]>,
    /// Keeps the memory.
    read: SmallVec<[Data; 8]>,
    written: SmallVec<[Data; 4]>,
    /// Results that are to lie in what the program reads, but elsewhere in it: where they are to go, and where they are made.
    apart: SmallVec<[(Data, Data); 1]>,
}

impl Operands {
    #[inline]
    pub fn new(site: Site, n: usize) -> Operands {
        let (sources, sinks, read, written, apart) = Default::default();
        Operands { n, dtype: site.dtype, place: site.place, sources, sinks, read, written, apart }
    }

    /// An input that is a number.
    #[inline]
    pub fn constant(&mut self, v: f64) {
        self.sources.push(Source { ptr: std::ptr::null(), dtype: self.dtype, walk: Walk::Constant(v) });
    }

    /// An input. All are given before the outputs.
    ///
    /// # Errors
    /// The array has fewer elements than the walk goes over.
    #[inline]
    pub fn read(&mut self, data: Data, walk: Walk) -> Result<()> {
        let Some(most) = walk.extent(self.n) else {
            return Err(shape_changed("it is read before its beginning".into()));
        };
        let data = if data.len() < most { data.of(most)? } else { data };
        assert!(data.place() == self.place && self.sinks.is_empty(), "inputs on the program's device, before outputs");
        let (first, walk) = match walk {
            Walk::Strided(first, axes) if axes[..] == [(self.n, 1)] => (first, Walk::Dense),
            Walk::Strided(first, axes) => (first, Walk::Strided(0, axes)),
            other => (0, other),
        };
        let ptr = (data.address() as *const u8).wrapping_add(first * data.dtype().size());
        self.sources.push(Source { ptr, dtype: data.dtype(), walk });
        self.read.push(data);
        Ok(())
    }

    /// An output.
    ///
    /// # Errors
    /// The array has another number of elements; not enough memory.
    #[inline]
    pub fn write(&mut self, data: Data) -> Result<()> {
        let mut data = data.of(self.n)?;
        assert!(data.place() == self.place, "outputs on the program's device");
        if data.overlaps_shifted(&self.read) {
            let made = data.converted(data.dtype())?;
            self.apart.push((data, made.clone()));
            data = made;
        }
        self.sinks.push(Destination { ptr: data.address() as *mut u8, dtype: data.dtype() });
        self.written.push(data);
        Ok(())
    }

    /// Whether what is written lies in nothing that is read, but in what is written element by element.
    pub fn are_apart(&self) -> bool {
        self.apart.is_empty()
    }

    /// What is read and written.
    pub(crate) fn arrays(&self) -> (&[Source], &[Destination]) {
        (&self.sources, &self.sinks)
    }

    /// Runs `program` over all elements.
    ///
    /// # Errors
    /// What a GPU says.
    ///
    /// # Panics
    /// If the program has another number of inputs or outputs, or another device.
    #[inline]
    pub fn run(&self, program: &AnyProgram) -> Result<()> {
        assert!(program.place() == self.place, "the program's device");
        let (n, sources, sinks) = (self.n, &self.sources[..], &self.sinks[..]);
        // SAFETY: the arrays have the elements that are read and written, `read` and `written` keep their memory, and what is
        // written overlaps with nothing that is read but with dense sources of its size.
        unsafe {
            match program {
                AnyProgram::F32(p) => p.run(n, sources, sinks, &[]),
                AnyProgram::F64(p) => p.run(n, sources, sinks, &[]),
                AnyProgram::Gpu(gpu, p) => p.run(gpu, n, sources, sinks, &[])?,
            }
        }
        self.written.iter().for_each(Data::note_written);
        self.apart.iter().try_for_each(|(data, made)| data.take(made))
    }
}
