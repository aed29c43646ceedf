//! Launches: a kernel, its grid, and its arguments one after the other.

use super::Gpu;
use super::driver::{Kernel, LaunchGrid};
use crate::array::Data;
use crate::device::DeviceMemory;
use crate::dtype::DType;
use crate::error::Result;
use smallvec::SmallVec;
use std::ffi::c_void;
use std::sync::Arc;

/// A launch that is being put together; the order of the arguments is that of the kernel's parameters.
pub struct Launch {
    gpu: &'static Gpu,
    kernel: Kernel,
    args: SmallVec<[u64; 16]>,
    /// Memory that the kernel reads and that is kept for it alone.
    held: SmallVec<[Arc<DeviceMemory>; 1]>,
}

/// For the engine.
#[doc(hidden)]
impl Gpu {
    /// Begins a launch of the kernel `name` of `cuda/<stem>.cu`.
    pub fn launch(&'static self, stem: &'static str, name: &str) -> Result<Launch> {
        Ok(self.launch_kernel(self.kernel(stem, name)?))
    }

    /// Begins a launch of a kernel that was generated.
    pub(crate) fn launch_kernel(&'static self, kernel: Kernel) -> Launch {
        Launch { gpu: self, kernel, args: SmallVec::new(), held: SmallVec::new() }
    }

    /// Threads for `n` elements.
    pub fn grid(&self, n: usize) -> LaunchGrid {
        LaunchGrid::over(n, self.properties().processors)
    }
}

impl Launch {
    /// An array, for reading or writing.
    pub fn data(mut self, data: &Data) -> Launch {
        debug_assert_eq!(data.place().gpu(), Some(self.gpu));
        self.args.push(data.address());
        self
    }

    /// An array and, as the next parameter, its type.
    pub fn array(self, data: &Data) -> Launch {
        self.data(data).long(data.dtype() as i64)
    }

    /// The memory of an array and, as the next parameter, its type.
    pub(super) fn address(mut self, at: u64, dtype: DType) -> Launch {
        self.args.push(at);
        self.long(dtype as i64)
    }

    pub fn flag(self, v: bool) -> Launch {
        self.long(v as i64)
    }

    /// An array that may be missing: then the pointer is null.
    pub fn maybe(self, data: Option<&Data>) -> Launch {
        match data {
            Some(data) => self.data(data),
            None => self.long(0),
        }
    }

    /// An array that may be missing and, as the next parameter, its type.
    pub fn maybe_array(self, data: Option<&Data>) -> Launch {
        self.maybe(data).long(data.map_or(0, |d| d.dtype() as i64))
    }

    /// A number in the type to compute in: double, or float.
    pub fn real(self, double: bool, v: f64) -> Launch {
        if double { self.double(v) } else { self.float(v as f32) }
    }

    /// A table of the host's, which the kernel sees in device memory.
    pub fn table(mut self, bytes: &[u8]) -> Result<Launch> {
        let memory = self.gpu.constant(bytes)?;
        self.args.push(memory.address());
        self.held.push(memory);
        Ok(self)
    }

    /// Numbers of the host's that are others in each run: they are sent in order with the other work, and the host does not wait.
    pub fn numbers(mut self, bytes: &[u8]) -> Result<Launch> {
        let memory = Arc::new(self.gpu.alloc(bytes.len())?);
        // SAFETY: the memory is as large as the slice.
        unsafe { memory.upload(bytes.as_ptr(), bytes.len())? };
        self.args.push(memory.address());
        self.held.push(memory);
        Ok(self)
    }

    /// An integer of 64 bits (or of 32: the lower half is read).
    pub fn long(mut self, v: i64) -> Launch {
        self.args.push(v as u64);
        self
    }

    /// A size or a number.
    pub fn size(self, v: usize) -> Launch {
        self.long(v as i64)
    }

    pub fn float(mut self, v: f32) -> Launch {
        self.args.push(v.to_bits() as u64);
        self
    }

    pub fn double(mut self, v: f64) -> Launch {
        self.args.push(v.to_bits());
        self
    }

    /// Starts the kernel.
    ///
    /// # Safety
    /// The arguments are the kernel's, and their memory is large enough for what it does on `grid`.
    pub unsafe fn run(mut self, grid: LaunchGrid) -> Result<()> {
        let mut args: SmallVec<[*mut c_void; 16]> =
            self.args.iter_mut().map(|a| a as *mut u64 as *mut c_void).collect();
        let _turn = self.gpu.turn()?;
        self.held.iter().for_each(|table| self.gpu.keep_table(table));
        // SAFETY: the caller's promise.
        unsafe { self.gpu.driver.launch(self.kernel, grid, &mut args) }
    }
}

/// Tables kept on a device at most.
const TABLES: usize = 4096;

impl Gpu {
    /// Drops the tables, which are made again when they are wanted; false if there are none.
    pub(crate) fn forget_tables(&self) -> bool {
        let tables = std::mem::take(&mut *self.tables());
        !tables.is_empty()
    }

    /// The bytes in device memory. Equal ones are uploaded once: a graph that runs again has the same addresses.
    ///
    /// They go there in order with the other work, which may still use the memory for something else; or, while a run is
    /// captured, at once: then nothing else is on its way.
    pub(crate) fn constant(&'static self, bytes: &[u8]) -> Result<Arc<DeviceMemory>> {
        if let Some(found) = self.tables().get(bytes) {
            return Ok(found.clone());
        }
        let memory = Arc::new(self.alloc_apart(bytes.len())?);
        let turn = self.turn()?;
        let (to, from, n) = (memory.address(), bytes.as_ptr(), bytes.len());
        // SAFETY: the memory is as large as the slice.
        unsafe {
            if turn.is_some() { self.driver.upload(to, from, n)? } else { self.driver.upload_constant(to, from, n)? }
        };
        drop(turn);
        let mut tables = self.tables();
        if tables.len() >= TABLES {
            tables.clear();
        }
        tables.insert(bytes.into(), memory.clone());
        Ok(memory)
    }
}
