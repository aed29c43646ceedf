//! What the machine has: the driver's library, with all that is used of it, its version, and the devices. Looked at before
//! anything is called, since cudarc panics at the first call of a function that is missing.

use super::driver::Driver;
use super::driver_errors::wrong;
use super::real::GpuDevice;
use crate::error::{Error, Result};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUdevice_attribute, CUresult};

/// What the kernels' PTX needs: CUDA 12.0, which came with driver 525.
const OLDEST: i32 = 12000;
/// What NVIDIA's libraries for CUDA 13 need of a GPU.
const TURING: (u32, u32) = (7, 5);

const INSTALL: &str = "the driver (525 or later) comes from NVIDIA or the system's packages; pip install 'nnrs[cuda12]', or 'nnrs[cuda13]', adds NVIDIA's libraries";

/// What says what the driver is.
const FIRST: [&str; 4] = ["cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString"];

/// All else that is used of it. A function that `real.rs` or `staging.rs` begins to call belongs here.
const FUNCTIONS: [&str; 33] = [
    "cuCtxEnablePeerAccess",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyPeerAsync",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamEndCapture",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

/// The first function that the driver lacks.
fn lacks(names: &[&'static str]) -> Option<&'static str> {
    // SAFETY: the library is there; its constructors are the driver's own. The symbols are not called.
    let has = |name: &str| unsafe { sys::culib().get::<*const ()>(name.as_bytes()).is_ok() };
    names.iter().copied().find(|name| !has(name))
}

fn is_present() -> bool {
    // SAFETY: the library's constructors are the driver's own.
    unsafe { sys::is_culib_present() }
}

/// All devices of the machine that `CUDA_VISIBLE_DEVICES` leaves.
pub(super) fn open() -> Result<Vec<Box<dyn Driver>>> {
    if !is_present() {
        let what = "libcuda.so.1 is in none of the places where the system looks for libraries";
        return Err(Error::unsupported(format!("NVIDIA's driver was not found: {what}")).hint(INSTALL));
    }
    let unfit = |why: String| Error::unsupported(format!("NVIDIA's driver {why}")).hint(INSTALL);
    let missing = |name| unfit(format!("is too old, or not all of it is there: it has no {name}"));
    if let Some(name) = lacks(&FIRST) {
        return Err(missing(name));
    }
    let version = version();
    if version < OLDEST {
        let found = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
        return Err(unfit(format!("is for {found}; 12.0 (driver 525) or later is needed")));
    }
    if let Some(name) = lacks(&FUNCTIONS) {
        return Err(missing(name));
    }
    result::init().map_err(|e| if e.0 == CUresult::CUDA_ERROR_NO_DEVICE { no_gpu() } else { wrong("cuInit", e) })?;
    match result::device::get_count().map_err(|e| wrong("cuDeviceGetCount", e))? {
        0 => Err(no_gpu()),
        count => (0..count).map(|i| Ok(Box::new(GpuDevice::find(i)?) as Box<dyn Driver>)).collect(),
    }
}

fn no_gpu() -> Error {
    let e = Error::unsupported("NVIDIA's driver knows no GPU");
    match std::env::var("CUDA_VISIBLE_DEVICES") {
        Ok(v) => e.hint(format!("CUDA_VISIBLE_DEVICES is '{v}': only the GPUs that it names are seen")),
        Err(_) => e.hint("nvidia-smi lists the GPUs of the machine; a container must be given them"),
    }
}

/// The version of CUDA that the driver is for: 12000 for 12.0. 0 without a driver.
fn version() -> i32 {
    if !is_present() || lacks(&FIRST).is_some() {
        return 0;
    }
    let mut version = 0;
    // SAFETY: a valid place for the number.
    match unsafe { sys::cuDriverGetVersion(&mut version) }.result() {
        Ok(()) => version,
        Err(_) => 0,
    }
}

/// The compute capability of a device.
pub(super) fn capability(device: sys::CUdevice) -> Result<(u32, u32), DriverError> {
    use CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    // SAFETY: the device is there.
    unsafe {
        let [major, minor] = [MAJOR, MINOR].map(|a| result::device::get_attribute(device, a));
        Ok((major? as u32, minor? as u32))
    }
}

/// The newest generation of NVIDIA's libraries that works here: that of the driver's CUDA, but 12 where a GPU is older
/// than those of CUDA 13 know. `None` without a driver: nothing will be called.
pub(super) fn generation() -> Option<usize> {
    let newest = version() / 1000;
    let known = newest > 0 && lacks(&FUNCTIONS).is_none();
    let count = if known { result::device::get_count().unwrap_or(0) } else { 0 };
    let old = |i| result::device::get(i).and_then(capability).is_ok_and(|c| c < TURING);
    let newest = if (0..count).any(old) { newest.min(12) } else { newest };
    (newest > 0).then_some(newest as usize)
}
