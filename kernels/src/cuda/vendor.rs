//! What NVIDIA's libraries do faster than kernels of ours: matrix products (cuBLASLt) and convolutions (cuDNN). Where one
//! is missing, or has nothing for a case, kernels of ours do it.

use super::Gpu;
use crate::array::Data;
use crate::dtype::DType;
use crate::error::Result;
use crate::switch::Switch;
use smallvec::SmallVec;
use std::collections::HashMap;
#[cfg(feature = "cuda")]
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What a library is asked for; everything that decides how it does it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum VendorCall {
    Product(VendorProduct),
    Convolution(VendorConvolution),
}

/// `batch` products C = A B, or C += A B, of matrices that lie column by column: m x k and k x n.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VendorProduct {
    pub batch: usize,
    pub sizes: [usize; 3],
    pub a: MatrixLayout,
    pub b: MatrixLayout,
    pub c: MatrixLayout,
    /// Of A and B.
    pub from: DType,
    pub to: DType,
    pub accumulate: bool,
    pub tf32: bool,
}

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixLayout {
    /// It lies row by row.
    pub transposed: bool,
    /// Elements from one column (or row) to the next, and from one matrix of a batch to the next.
    pub lead: usize,
    pub step: usize,
    /// A power of two that divides the address, 256 at most.
    pub alignment: u32,
}

/// A part of a convolution. The arrays' axes are as in [`ConvolutionSizes`](crate::kernel::convolution::ConvolutionSizes).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VendorConvolution {
    pub part: ConvolutionPass,
    pub dtype: DType,
    pub batch: usize,
    pub group: usize,
    pub in_channels: usize,
    pub out_channels: usize,
    pub input: SpatialSizes,
    pub output: SpatialSizes,
    pub kernel: SpatialSizes,
    pub stride: SpatialSizes,
    pub pad: SpatialSizes,
    pub dilation: SpatialSizes,
    pub channel_last: bool,
    pub accumulate: bool,
    pub tf32: bool,
    /// Choose by measuring.
    pub autotune: bool,
}

pub type SpatialSizes = SmallVec<[usize; 3]>;

/// What is made of what; the call's arrays in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConvolutionPass {
    /// From x and the weight, y.
    Forward,
    /// From the gradient of y and the weight, that of x.
    Data,
    /// From x and the gradient of y, that of the weight.
    Weight,
}

/// A call for which the library has chosen how to do it.
pub trait Prepared: Send + Sync {
    /// Bytes of memory that it needs beside the arrays.
    fn workspace(&self) -> usize;

    /// Does it, in order with the device's other work.
    ///
    /// # Safety
    /// The arrays, in the call's order, have its sizes and types, and the workspace has as many bytes as it asked for.
    unsafe fn perform(self: Arc<Self>, arrays: [u64; 3], workspace: u64) -> Result<()>;
}

/// The factors of a call's result and of what was there before, in the type in which it computes.
#[cfg(feature = "cuda")]
pub(super) struct Scales {
    doubles: [f64; 2],
    floats: [f32; 2],
    double: bool,
}

#[cfg(feature = "cuda")]
impl Scales {
    pub(super) fn new(double: bool, accumulate: bool) -> Scales {
        let old = accumulate as u8;
        Scales { doubles: [1.0, old.into()], floats: [1.0, old.into()], double }
    }

    pub(super) fn result(&self) -> *const c_void {
        self.at(0)
    }

    pub(super) fn before(&self) -> *const c_void {
        self.at(1)
    }

    fn at(&self, i: usize) -> *const c_void {
        if self.double { (&raw const self.doubles[i]).cast() } else { (&raw const self.floats[i]).cast() }
    }
}

/// The calls of a device that were prepared, or for which there is no library.
pub(super) type Calls = HashMap<VendorCall, Option<Arc<dyn Prepared>>>;

/// How many: each is some descriptions of the library's, and soon made again.
const CALLS: usize = 4096;

static TF32: Switch = Switch::new("NNRS_TF32", false);
static AUTOTUNE: Switch = Switch::new("NNRS_CUDA_AUTOTUNE", false);
static ENABLED: AtomicBool = AtomicBool::new(true);

/// True if float products may be computed with TF32's 10 bits of mantissa. Off unless NNRS_TF32=1 or [`set_tf32`].
pub fn tf32() -> bool {
    TF32.get()
}

/// Allows or forbids TF32; gives the old setting.
pub fn set_tf32(on: bool) -> bool {
    TF32.set(on)
}

/// True if the ways of convolutions are measured before one is chosen. Off unless NNRS_CUDA_AUTOTUNE=1 or [`set_autotune`].
pub fn autotune() -> bool {
    AUTOTUNE.get()
}

/// Says whether cuDNN measures its ways of doing a convolution when it is first called, instead of estimating: steps become
/// faster, and from one process to the next another way may win, which rounds differently. Gives the old setting.
pub fn set_autotune(on: bool) -> bool {
    AUTOTUNE.set(on)
}

/// Says whether NVIDIA's libraries are used where they are there; gives the old setting. Results differ in their rounding.
pub fn set_libraries(on: bool) -> bool {
    ENABLED.swap(on, Relaxed)
}

/// The settings above, as a number: runs that were captured under others are not replayed.
pub(super) fn settings() -> u8 {
    let all = [tf32(), ENABLED.load(Relaxed), super::compiler(), autotune()];
    all.iter().rev().fold(0, |settings, &on| settings << 1 | on as u8)
}

impl Gpu {
    /// NVIDIA's libraries by name: the file that is used, or why there is none.
    pub fn libraries(&self) -> Result<Vec<(&'static str, Result<String, String>)>> {
        self.check_fork()?;
        self.driver.libraries()
    }

    /// Does a call by a library; false if there is none for it, or no memory for what it needs.
    ///
    /// # Safety
    /// The arrays, in the call's order, have its sizes and types.
    pub(crate) unsafe fn by_library(&'static self, call: VendorCall, arrays: [&Data; 3]) -> Result<bool> {
        if !ENABLED.load(Relaxed) {
            return Ok(false);
        }
        let ready = match self.prepared(call) {
            Err(e) if e.is_out_of_memory() => return Ok(false),
            ready => ready?,
        };
        let Some(ready) = ready else { return Ok(false) };
        let workspace = match self.alloc(ready.workspace()) {
            Err(e) if e.is_out_of_memory() => return Ok(false),
            memory => memory?,
        };
        let _turn = self.turn()?;
        let arrays = arrays.map(Data::address);
        self.driver.inside(&mut || {
            // SAFETY: the caller's promise; the workspace goes to later work at the earliest.
            unsafe { ready.clone().perform(arrays, workspace.address()) }
        })?;
        Ok(true)
    }

    fn prepared(&self, call: VendorCall) -> Result<Option<Arc<dyn Prepared>>> {
        let calls = || self.calls.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(known) = calls().get(&call) {
            return Ok(known.clone());
        }
        let _turn = self.turn()?; // measuring is work too
        let mut calls = calls();
        if let Some(known) = calls.get(&call) {
            return Ok(known.clone()); // made by another thread meanwhile
        }
        self.check_fork()?;
        let ready = self.driver.prepare(&call)?;
        if calls.len() >= CALLS {
            calls.clear();
        }
        calls.insert(call, ready.clone());
        Ok(ready)
    }
}
