//! A GPU as arrays and contexts see it.

use super::{Gpu, convert};
use crate::array::Data;
use crate::device::{Backend, Context, Device, DeviceMemory, Place, StreamGuard};
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::any::Any;

crate::inventory::submit! { Backend { names: &["cudnn", "cuda"], open: |id| Ok(open(id)?) } }

fn open(device_id: &str) -> Result<&'static Gpu> {
    let number = device_id.trim().parse().map_err(|_| Error::arg("device_id", "the number of a GPU").actual(device_id));
    let gpu = number.and_then(super::gpu)?;
    gpu.open()?;
    Ok(gpu)
}

impl Device for Gpu {
    fn alloc(&'static self, bytes: usize) -> Result<DeviceMemory> {
        Gpu::alloc(self, bytes)
    }

    unsafe fn free(&self, at: u64, bytes: usize) {
        self.give(at, bytes);
    }

    fn turn_with_host(&self) -> Result<StreamGuard<'_>> {
        Gpu::turn_with_host(self)
    }

    fn try_turn(&self) -> Result<Option<StreamGuard<'_>>> {
        Gpu::try_turn(self)
    }

    fn await_capture(&self) {
        drop(self.capturing.read());
    }

    unsafe fn upload(&self, _: &StreamGuard, to: u64, from: *const u8, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.driver.upload(to, from, bytes) }
    }

    unsafe fn download(&self, _: &StreamGuard, to: *mut u8, from: u64, bytes: usize) -> Result<()> {
        self.count_waits(1);
        // SAFETY: the caller's promise.
        unsafe { self.driver.download(to, from, bytes)? };
        self.trouble().map_or(Ok(()), Err)
    }

    unsafe fn copy_from(
        &self,
        _: [&StreamGuard; 2],
        to: u64,
        other: &dyn Device,
        from: u64,
        bytes: usize,
    ) -> Result<()> {
        self.count_waits(1);
        let other = (other as &dyn Any).downcast_ref::<Gpu>().expect("a GPU");
        // SAFETY: the caller's promise.
        unsafe { self.driver.copy(to, from, bytes, Some(&*other.driver)) }
    }

    unsafe fn fill(&'static self, at: u64, dtype: DType, n: usize, value: f64) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { convert::fill_at(self, at, dtype, n, value) }
    }

    unsafe fn convert(&'static self, to: (u64, DType), from: (u64, DType), n: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { convert::convert_at(self, to, from, n) }
    }
}

impl Place {
    /// The GPU, if it is one.
    #[inline]
    pub fn gpu(self) -> Option<&'static Gpu> {
        match self {
            Place::Host => None,
            Place::Gpu(device) => (device as &dyn Any).downcast_ref(),
        }
    }
}

/// For the engine.
#[doc(hidden)]
impl Data {
    /// The GPU that the memory is of.
    ///
    /// # Panics
    /// If it is the host's.
    #[inline]
    pub fn gpu(&self) -> &'static Gpu {
        self.place().gpu().expect("memory of a GPU")
    }
}

impl Context {
    /// The GPU on which functions run; `None` for the CPU.
    ///
    /// ```
    /// assert!(nnrs_kernels::Context::default_cpu().gpu().is_none());
    /// ```
    #[inline]
    pub fn gpu(&self) -> Option<&'static Gpu> {
        self.site().place.gpu()
    }
}
