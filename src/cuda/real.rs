//! CUDA itself, through cudarc: a device's primary context and one non-blocking stream. Nothing is linked: the driver's
//! library is loaded when a GPU is first asked for, and its absence is an error like others.

use super::cublas::Cublas;
use super::cudnn::Cudnn;
use super::driver::{Captured, Driver, Grid, Kernel, Loaded, Properties};
use super::library;
use super::module::Module;
use super::nvrtc::Nvrtc;
use super::staging::Staging;
use super::vendor::{Call, Prepared};
use crate::error::{Error, ErrorKind, Result};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CString, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// What the kernels' PTX needs: CUDA 12.0, which came with driver 525.
const OLDEST: i32 = 12000;

struct Device {
    properties: Properties,
    device: sys::CUdevice,
    opened: OnceLock<Result<Opened, String>>,
}

/// What a device has once it is used.
struct Opened {
    context: sys::CUcontext,
    stream: sys::CUstream,
    /// For constants.
    side: sys::CUstream,
    staging: Mutex<Staging>,
    cublas: Found<Cublas>,
    cudnn: Found<Cudnn>,
}

/// A library, or why there is none.
type Found<T> = OnceLock<Result<Arc<T>, String>>;

// SAFETY: contexts and streams are handles that any thread may use; each call makes the context its thread's own.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

/// All devices of the machine that `CUDA_VISIBLE_DEVICES` leaves.
pub(super) fn open() -> Result<Vec<Box<dyn Driver>>> {
    // SAFETY: the library's constructors are the driver's own.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::unsupported(
            "NVIDIA's driver was not found: libcuda.so.1 is in none of the places where the system looks for libraries",
        ));
    }
    // Whatever the library lacks is a panic in cudarc; here it is an error.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let opened = std::panic::catch_unwind(devices);
    std::panic::set_hook(hook);
    opened.unwrap_or_else(|_| Err(Error::unsupported("NVIDIA's driver is too old: it lacks functions of CUDA 12.0")))
}

/// The version of CUDA that the driver is for: 12000 for 12.0. 0 without a driver.
pub(super) fn version() -> i32 {
    // SAFETY: the library's constructors are the driver's own.
    if !unsafe { sys::is_culib_present() } {
        return 0;
    }
    let mut version = 0;
    // SAFETY: a valid place for the number.
    match unsafe { sys::cuDriverGetVersion(&mut version) }.result() {
        Ok(()) => version,
        Err(_) => 0,
    }
}

fn devices() -> Result<Vec<Box<dyn Driver>>> {
    result::init().map_err(|e| wrong("cuInit", e))?;
    let version = version();
    if version < OLDEST {
        let found = format!("CUDA {}.{}", version / 1000, version % 1000 / 10);
        return Err(Error::unsupported(format!(
            "NVIDIA's driver is for {found}; 12.0 (driver 525) or later is needed"
        )));
    }
    let count = result::device::get_count().map_err(|e| wrong("cuDeviceGetCount", e))?;
    if count == 0 {
        return Err(Error::unsupported("NVIDIA's driver knows no GPU (see CUDA_VISIBLE_DEVICES)"));
    }
    (0..count).map(|i| Ok(Box::new(Device::find(i)?) as Box<dyn Driver>)).collect()
}

impl Device {
    /// The device's name and limits. Nothing of it is used yet.
    fn find(ordinal: i32) -> Result<Device> {
        use sys::CUdevice_attribute::*;
        let device = result::device::get(ordinal).map_err(|e| wrong("cuDeviceGet", e))?;
        let name = result::device::get_name(device).map_err(|e| wrong("cuDeviceGetName", e))?;
        // SAFETY: the device is there.
        let attribute =
            |a| unsafe { result::device::get_attribute(device, a) }.map_err(|e| wrong("cuDeviceGetAttribute", e));
        let major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32;
        let minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32;
        let processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as usize;
        // SAFETY: the device is there.
        let memory = unsafe { result::device::total_mem(device) }.map_err(|e| wrong("cuDeviceTotalMem", e))?;
        let properties = Properties { name, capability: (major, minor), memory, processors, emulated: false };
        Ok(Device { properties, device, opened: OnceLock::new() })
    }

    /// What the device has, opened when it is first used; its context is then this thread's.
    fn current(&self) -> Result<&Opened> {
        let opened = self.opened.get_or_init(|| Opened::new(self.device).map_err(|e| e.to_string()));
        let opened = opened.as_ref().map_err(Error::unsupported)?;
        // SAFETY: the context is kept to the process's end.
        unsafe { result::ctx::set_current(opened.context) }.map_err(|e| wrong("cuCtxSetCurrent", e))?;
        Ok(opened)
    }
}

impl Opened {
    fn new(device: sys::CUdevice) -> Result<Opened> {
        let create = || result::stream::create(result::stream::StreamKind::NonBlocking);
        // SAFETY: the device is there; its primary context is kept to the process's end.
        unsafe {
            let context = result::primary_ctx::retain(device).map_err(|e| wrong("cuDevicePrimaryCtxRetain", e))?;
            result::ctx::set_current(context).map_err(|e| wrong("cuCtxSetCurrent", e))?;
            let streams = create().and_then(|stream| Ok((stream, create()?, Staging::new(stream)?)));
            let (stream, side, staging) = streams.map_err(|e| wrong("cuStreamCreate", e))?;
            let (cublas, cudnn) = Default::default();
            Ok(Opened { context, stream, side, staging: Mutex::new(staging), cublas, cudnn })
        }
    }

    fn cublas(&self) -> &Result<Arc<Cublas>, String> {
        self.cublas.get_or_init(|| Cublas::open(self.stream as *mut c_void).map(Arc::new))
    }

    fn cudnn(&self) -> &Result<Arc<Cudnn>, String> {
        self.cudnn.get_or_init(|| Cudnn::open(self.stream as *mut c_void).map(Arc::new))
    }

    fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the stream is kept to the process's end.
        unsafe { result::stream::synchronize(self.stream) }
    }
}

impl Driver for Device {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn alloc(&self, bytes: usize) -> Result<Option<u64>> {
        let d = self.current()?;
        // SAFETY: the memory is written before it is read, by the engine's plan.
        match unsafe { result::malloc_sync(bytes) } {
            Ok(at) => Ok(Some(at)),
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) if d.staging().release() => self.alloc(bytes),
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Ok(None),
            Err(e) => Err(wrong("cuMemAlloc", e)),
        }
    }

    unsafe fn free(&self, at: u64, _bytes: usize) {
        // What fails here has failed before, and was reported then. Freeing waits for the device's work.
        // SAFETY: the caller's promise.
        let _ = self.enter().map(|()| unsafe { result::free_sync(at) });
    }

    unsafe fn upload(&self, to: u64, from: *const u8, bytes: usize) -> Result<()> {
        let d = self.current()?;
        // SAFETY: the caller's promise.
        unsafe { d.staging().upload(to, from, bytes) }.map_err(|e| wrong("copy to the GPU", e))
    }

    unsafe fn download(&self, to: *mut u8, from: u64, bytes: usize) -> Result<()> {
        let d = self.current()?;
        // SAFETY: the caller's promise; the copy is waited for.
        let done = unsafe {
            let target = std::slice::from_raw_parts_mut(to, bytes);
            result::memcpy_dtoh_async(target, from, d.stream).and_then(|()| result::stream::synchronize(d.stream))
        };
        done.map_err(|e| wrong("copy from the GPU", e))
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize, peer: Option<&dyn Driver>) -> Result<()> {
        let Some(peer) = peer else {
            let d = self.current()?;
            // SAFETY: the caller's promise.
            let done = unsafe { result::memcpy_dtod_async(to, from, bytes, d.stream) };
            return done.map_err(|e| wrong("copy on the GPU", e));
        };
        // What the other device still writes must be there first.
        peer.synchronize()?;
        let (there, d) = (peer.context()? as sys::CUcontext, self.current()?);
        // SAFETY: the caller's promise. Whether the devices can reach each other or not, the driver knows a way; its owner
        // may use the memory for something else as soon as this returns.
        let done = unsafe {
            let _ = sys::cuCtxEnablePeerAccess(there, 0); // an error if they cannot, or can already
            sys::cuMemcpyPeerAsync(to, d.context, from, there, bytes, d.stream).result().and_then(|()| d.synchronize())
        };
        done.map_err(|e| wrong("copy between GPUs", e))
    }

    fn load(&self, module: &Module) -> Result<Loaded> {
        self.enter()?;
        let ptx = module.ptx(self.properties.capability)?;
        let ptx = CString::new(ptx).map_err(|_| Error::graph(format!("the PTX of {} has a zero byte", module.stem)))?;
        // SAFETY: PTX as text that ends with a zero byte.
        let loaded = unsafe { result::module::load_data(ptx.as_ptr() as *const c_void) };
        loaded.map(|m| Loaded(m as u64)).map_err(|e| wrong(&format!("loading the kernels of {}", module.stem), e))
    }

    fn compile(&self, source: &str) -> Result<Option<Loaded>> {
        let Ok(nvrtc) = Nvrtc::get() else { return Ok(None) };
        self.enter()?;
        let load = |image: &[u8]| {
            // SAFETY: machine code, or PTX that ends with a zero byte.
            let loaded = unsafe { result::module::load_data(image.as_ptr() as *const c_void) };
            loaded.map(|m| Loaded(m as u64)).map_err(|e| wrong("loading a generated kernel", e))
        };
        nvrtc.compiled(source, self.properties.capability, load).map(Some)
    }

    fn kernel(&self, module: Loaded, name: &str) -> Result<Kernel> {
        self.enter()?;
        let text = CString::new(name).map_err(|_| Error::graph("a kernel's name has a zero byte"))?;
        // SAFETY: a module that `load` gave, which stays loaded.
        let found = unsafe { result::module::get_function(module.0 as sys::CUmodule, text) };
        found.map(|f| Kernel(f as u64)).map_err(|e| wrong(&format!("looking for the kernel {name}"), e))
    }

    unsafe fn launch(&self, kernel: Kernel, grid: Grid, args: &mut [*mut c_void]) -> Result<()> {
        let d = self.current()?;
        let ([x, y, z], [i, j, k]) = (grid.blocks, grid.threads);
        // SAFETY: the caller's promise.
        let done =
            unsafe { result::launch_kernel(kernel.0 as sys::CUfunction, (x, y, z), (i, j, k), 0, d.stream, args) };
        done.map_err(|e| wrong("starting a kernel", e))
    }

    unsafe fn upload_constant(&self, to: u64, from: *const u8, bytes: usize) -> Result<()> {
        let d = self.current()?;
        // SAFETY: the caller's promise; the copy goes by a stream of its own and is waited for.
        let done = unsafe {
            let source = std::slice::from_raw_parts(from, bytes);
            result::memcpy_htod_async(to, source, d.side).and_then(|()| result::stream::synchronize(d.side))
        };
        done.map_err(|e| wrong("copy to the GPU", e))
    }

    fn begin_capture(&self) -> Result<()> {
        let d = self.current()?;
        // Relaxed: memory may be allocated meanwhile, and other streams may work.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream is kept to the process's end.
        unsafe { result::stream::begin_capture(d.stream, mode) }.map_err(|e| wrong("beginning a CUDA graph", e))
    }

    fn end_capture(&self) -> Result<Captured> {
        let d = self.current()?;
        // SAFETY: the graph is made into one that can be launched, and then dropped.
        let made = unsafe {
            result::stream::end_capture(d.stream).and_then(|graph| {
                let mut ready = std::mem::MaybeUninit::uninit();
                let made = sys::cuGraphInstantiateWithFlags(ready.as_mut_ptr(), graph, 0).result();
                let _ = result::graph::destroy(graph);
                made.map(|()| ready.assume_init())
            })
        };
        made.map(|ready| Captured(ready as u64)).map_err(|e| wrong("making a CUDA graph", e))
    }

    unsafe fn replay(&self, captured: Captured) -> Result<()> {
        let d = self.current()?;
        // SAFETY: the caller's promise.
        let done = unsafe { result::graph::launch(captured.0 as sys::CUgraphExec, d.stream) };
        done.map_err(|e| wrong("starting a CUDA graph", e))
    }

    fn forget(&self, captured: Captured) {
        // SAFETY: a graph of `end_capture`, which nobody uses any more.
        let _ = self.enter().map(|()| unsafe { result::graph::exec_destroy(captured.0 as sys::CUgraphExec) });
    }

    fn enter(&self) -> Result<()> {
        self.current().map(drop)
    }

    fn context(&self) -> Result<u64> {
        self.current().map(|d| d.context as u64)
    }

    fn prepare(&self, call: &Call) -> Result<Option<Arc<dyn Prepared>>> {
        let d = self.current()?;
        Ok(match call {
            Call::Product(p) => d.cublas().as_ref().ok().and_then(|lib| lib.prepare(p)),
            Call::Convolution(c) => d.cudnn().as_ref().ok().and_then(|lib| lib.prepare(c)),
        })
    }

    fn libraries(&self) -> Result<Vec<(&'static str, Result<String, String>)>> {
        let d = self.current()?;
        let mut all = library::report();
        let [cublas, cudnn] = [d.cublas().as_ref().err(), d.cudnn().as_ref().err()];
        let failed = [cublas.map(String::as_str), cudnn.map(String::as_str), Nvrtc::get().err()];
        for ((_, found), why) in all.iter_mut().zip(failed) {
            if let Some(why) = why {
                *found = Err(why.to_string());
            }
        }
        Ok(all)
    }

    fn synchronize(&self) -> Result<()> {
        self.current()?.synchronize().map_err(|e| wrong("waiting for the GPU", e))
    }
}

/// An error of the driver. After a fault on the device all later calls fail with it.
fn wrong(what: &str, e: DriverError) -> Error {
    let text = |t: Result<&std::ffi::CStr, DriverError>| t.map_or("?".into(), |t| t.to_string_lossy().into_owned());
    let kind = match e.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        _ => ErrorKind::Unsupported,
    };
    let error = Error::new(kind, format!("CUDA: {what}: {} ({})", text(e.error_string()), text(e.error_name())));
    match e.0 {
        CUresult::CUDA_ERROR_STUB_LIBRARY => error.hint(
            "the libcuda.so that was found is the toolkit's stub, for linking alone: take its folder off LD_LIBRARY_PATH",
        ),
        _ => error,
    }
}
