//! CUDA itself, through cudarc: a device's primary context and one non-blocking stream. Nothing is linked: the driver's
//! library is loaded when a GPU is first asked for, and its absence is an error like others.

use super::cublas::Cublas;
use super::cudnn::Cudnn;
use super::driver::{Captured, Driver, Grid, Kernel, Loaded, Properties};
use super::library;
use super::module::Module;
use super::nvrtc::Nvrtc;
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
    context: sys::CUcontext,
    stream: sys::CUstream,
    /// For constants.
    side: sys::CUstream,
    staging: Mutex<Staging>,
    cublas: Opened<Cublas>,
    cudnn: Opened<Cudnn>,
}

/// A library, or why there is none.
type Opened<T> = OnceLock<Result<Arc<T>, String>>;

// SAFETY: contexts and streams are handles that any thread may use; each call makes the context its thread's own.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

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
    (0..count).map(|i| Ok(Box::new(Device::open(i)?) as Box<dyn Driver>)).collect()
}

impl Device {
    fn open(ordinal: i32) -> Result<Device> {
        use sys::CUdevice_attribute::*;
        let device = result::device::get(ordinal).map_err(|e| wrong("cuDeviceGet", e))?;
        let name = result::device::get_name(device).map_err(|e| wrong("cuDeviceGetName", e))?;
        // SAFETY: the device is there; its primary context is kept to the process's end.
        unsafe {
            let attribute = |a| result::device::get_attribute(device, a).map_err(|e| wrong("cuDeviceGetAttribute", e));
            let capability = (
                attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32,
                attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32,
            );
            let processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as usize;
            let memory = result::device::total_mem(device).map_err(|e| wrong("cuDeviceTotalMem", e))?;
            let context = result::primary_ctx::retain(device).map_err(|e| wrong("cuDevicePrimaryCtxRetain", e))?;
            result::ctx::set_current(context).map_err(|e| wrong("cuCtxSetCurrent", e))?;
            let create = || result::stream::create(result::stream::StreamKind::NonBlocking);
            let (stream, side) = create().and_then(|a| Ok((a, create()?))).map_err(|e| wrong("cuStreamCreate", e))?;
            let properties = Properties { name, capability, memory, processors, emulated: false };
            let (staging, cublas, cudnn) = Default::default();
            Ok(Device { properties, context, stream, side, staging, cublas, cudnn })
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
}

/// Pinned memory through which data goes to the device while the host works on. Its parts are used in turn.
#[derive(Default)]
struct Staging {
    parts: Vec<Part>,
    next: usize,
}

struct Part {
    memory: *mut c_void,
    /// When the last copy from it is done.
    done: sys::CUevent,
}

const PARTS: usize = 8;
const PART: usize = 1 << 20;

impl Staging {
    /// The next part, once the device has read it.
    unsafe fn part(&mut self) -> Result<(*mut u8, sys::CUevent), DriverError> {
        // SAFETY: events and memory are used as long as the process lives.
        unsafe {
            if self.parts.len() < PARTS {
                let memory = result::malloc_host(PART, 0)?;
                let done = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)?;
                self.parts.push(Part { memory, done });
                self.next = 0;
                let new = &self.parts[self.parts.len() - 1];
                return Ok((new.memory as *mut u8, new.done));
            }
            let part = &self.parts[self.next];
            self.next = (self.next + 1) % PARTS;
            result::event::synchronize(part.done)?;
            Ok((part.memory as *mut u8, part.done))
        }
    }
}

impl Driver for Device {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn alloc(&self, bytes: usize) -> Result<Option<u64>> {
        self.enter()?;
        // SAFETY: the memory is written before it is read, by the engine's plan.
        match unsafe { result::malloc_sync(bytes) } {
            Ok(at) => Ok(Some(at)),
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
        self.enter()?;
        let mut staging = self.staging();
        for begin in (0..bytes).step_by(PART) {
            let n = PART.min(bytes - begin);
            // SAFETY: the caller's promise; a part of the staging memory has PART bytes.
            let done = unsafe {
                staging.part().and_then(|(part, done)| {
                    std::ptr::copy_nonoverlapping(from.add(begin), part, n);
                    let source = std::slice::from_raw_parts(part, n);
                    result::memcpy_htod_async(to + begin as u64, source, self.stream)?;
                    result::event::record(done, self.stream)
                })
            };
            done.map_err(|e| wrong("copy to the GPU", e))?;
        }
        Ok(())
    }

    unsafe fn download(&self, to: *mut u8, from: u64, bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller's promise; the copy is waited for.
        let done = unsafe {
            let target = std::slice::from_raw_parts_mut(to, bytes);
            result::memcpy_dtoh_async(target, from, self.stream).and_then(|()| result::stream::synchronize(self.stream))
        };
        done.map_err(|e| wrong("copy from the GPU", e))
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize, peer: Option<&dyn Driver>) -> Result<()> {
        // What the other device still writes must be there first.
        peer.map_or(Ok(()), Driver::synchronize)?;
        self.enter()?;
        // SAFETY: the caller's promise; addresses are unique over all devices, so the driver finds the other one.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.stream) }.map_err(|e| wrong("copy on the GPU", e))?;
        // Its owner may use the memory for something else as soon as this returns.
        if peer.is_some() { self.synchronize() } else { Ok(()) }
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
        self.enter()?;
        let ([x, y, z], [i, j, k]) = (grid.blocks, grid.threads);
        // SAFETY: the caller's promise.
        let done =
            unsafe { result::launch_kernel(kernel.0 as sys::CUfunction, (x, y, z), (i, j, k), 0, self.stream, args) };
        done.map_err(|e| wrong("starting a kernel", e))
    }

    unsafe fn upload_constant(&self, to: u64, from: *const u8, bytes: usize) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller's promise; the copy goes by a stream of its own and is waited for.
        let done = unsafe {
            let source = std::slice::from_raw_parts(from, bytes);
            result::memcpy_htod_async(to, source, self.side).and_then(|()| result::stream::synchronize(self.side))
        };
        done.map_err(|e| wrong("copy to the GPU", e))
    }

    fn begin_capture(&self) -> Result<()> {
        self.enter()?;
        // Relaxed: memory may be allocated meanwhile, and other streams may work.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the stream is kept to the process's end.
        unsafe { result::stream::begin_capture(self.stream, mode) }.map_err(|e| wrong("beginning a CUDA graph", e))
    }

    fn end_capture(&self) -> Result<Captured> {
        self.enter()?;
        // SAFETY: the graph is made into one that can be launched, and then dropped.
        let made = unsafe {
            result::stream::end_capture(self.stream).and_then(|graph| {
                let mut ready = std::mem::MaybeUninit::uninit();
                let made = sys::cuGraphInstantiateWithFlags(ready.as_mut_ptr(), graph, 0).result();
                let _ = result::graph::destroy(graph);
                made.map(|()| ready.assume_init())
            })
        };
        made.map(|ready| Captured(ready as u64)).map_err(|e| wrong("making a CUDA graph", e))
    }

    unsafe fn replay(&self, captured: Captured) -> Result<()> {
        self.enter()?;
        // SAFETY: the caller's promise.
        let done = unsafe { result::graph::launch(captured.0 as sys::CUgraphExec, self.stream) };
        done.map_err(|e| wrong("starting a CUDA graph", e))
    }

    fn forget(&self, captured: Captured) {
        // SAFETY: a graph of `end_capture`, which nobody uses any more.
        let _ = self.enter().map(|()| unsafe { result::graph::exec_destroy(captured.0 as sys::CUgraphExec) });
    }

    fn enter(&self) -> Result<()> {
        // SAFETY: the context is kept to the process's end.
        unsafe { result::ctx::set_current(self.context) }.map_err(|e| wrong("cuCtxSetCurrent", e))
    }

    fn prepare(&self, call: &Call) -> Result<Option<Arc<dyn Prepared>>> {
        self.enter()?;
        Ok(match call {
            Call::Product(p) => self.cublas().as_ref().ok().and_then(|lib| lib.prepare(p)),
            Call::Convolution(c) => self.cudnn().as_ref().ok().and_then(|lib| lib.prepare(c)),
        })
    }

    fn libraries(&self) -> Result<Vec<(&'static str, Result<String, String>)>> {
        self.enter()?;
        let mut all = library::report();
        let [cublas, cudnn] = [self.cublas().as_ref().err(), self.cudnn().as_ref().err()];
        let failed = [cublas.map(String::as_str), cudnn.map(String::as_str), Nvrtc::get().err()];
        for ((_, found), why) in all.iter_mut().zip(failed) {
            if let Some(why) = why {
                *found = Err(why.to_string());
            }
        }
        Ok(all)
    }

    fn synchronize(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: the stream is kept to the process's end.
        unsafe { result::stream::synchronize(self.stream) }.map_err(|e| wrong("waiting for the GPU", e))
    }
}

/// An error of the driver. After a fault on the device all later calls fail with it.
fn wrong(what: &str, e: DriverError) -> Error {
    let text = |t: Result<&std::ffi::CStr, DriverError>| t.map_or("?".into(), |t| t.to_string_lossy().into_owned());
    let kind = match e.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => ErrorKind::OutOfMemory,
        _ => ErrorKind::Unsupported,
    };
    Error::new(kind, format!("CUDA: {what}: {} ({})", text(e.error_string()), text(e.error_name())))
}
