//! CUDA itself, through cudarc: a device's primary context and one non-blocking stream. Nothing is linked: the driver's
//! library is loaded when a GPU is first asked for, and its absence is an error like others.

use super::cublas::Cublas;
use super::cudnn::Cudnn;
use super::driver::{Captured, Driver, Kernel, LaunchGrid, Loaded, Properties};
use super::driver_errors::{is_shortage, text, wrong};
use super::group::{DeviceGroup, GroupPlace};
use super::library::{self, Name};
use super::module::{Module, older};
use super::nvrtc::Nvrtc;
use super::retry::Opening;
use super::staging::Staging;
use super::vendor::{Prepared, VendorCall};
use super::{Gpu, nccl, probe};
use crate::error::{Error, ErrorKind, Result};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use std::ffi::{CString, c_void};
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

/// What the kernels' PTX needs of a GPU.
const VOLTA: (u32, u32) = (7, 0);

pub(super) struct GpuDevice {
    properties: Properties,
    ordinal: i32,
    device: sys::CUdevice,
    opened: OnceLock<Opened>,
    opening: Mutex<()>,
    /// Whose driver it is.
    gpu: OnceLock<&'static Gpu>,
}

/// What a device has once it is used.
struct Opened {
    context: sys::CUcontext,
    stream: sys::CUstream,
    /// For constants.
    side: sys::CUstream,
    staging: Mutex<Staging>,
    cublas: Opening<Cublas>,
    cudnn: Opening<Cudnn>,
}

// SAFETY: contexts and streams are handles that any thread may use; each call makes the context its thread's own.
unsafe impl Send for Opened {}
// SAFETY: as above.
unsafe impl Sync for Opened {}

/// A device that is this thread's. Dropped, it puts back the context that was: others in the process (PyTorch) choose
/// their device by it.
struct Current<'a> {
    opened: &'a Opened,
    before: Option<sys::CUcontext>,
}

impl Deref for Current<'_> {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        self.opened
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // SAFETY: it was current, and calls in between leave contexts alone.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }
}

impl GpuDevice {
    /// The device's name and limits. Nothing of it is used yet.
    pub(super) fn find(ordinal: i32) -> Result<GpuDevice> {
        let device = result::device::get(ordinal).map_err(|e| wrong("cuDeviceGet", e))?;
        let name = result::device::get_name(device).map_err(|e| wrong("cuDeviceGetName", e))?;
        let capability = probe::capability(device).map_err(|e| wrong("cuDeviceGetAttribute", e))?;
        let count = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        // SAFETY: the device is there.
        let (processors, memory) =
            unsafe { (result::device::get_attribute(device, count), result::device::total_mem(device)) };
        let processors = processors.map_err(|e| wrong("cuDeviceGetAttribute", e))? as usize;
        let memory = memory.map_err(|e| wrong("cuDeviceTotalMem", e))?;
        let properties = Properties { name, capability, memory, processors, emulated: false };
        let (opened, opening, gpu) = Default::default();
        Ok(GpuDevice { properties, ordinal, device, opened, opening, gpu })
    }

    /// What the device has, opened when it is first used; its context is then this thread's.
    fn current(&self) -> Result<Current<'_>> {
        let before = result::ctx::get_current().map_err(|e| wrong("cuCtxGetCurrent", e))?;
        let opened = self.opened()?;
        if before == Some(opened.context) {
            return Ok(Current { opened, before: None });
        }
        // SAFETY: the context is kept to the process's end.
        unsafe { result::ctx::set_current(opened.context) }.map_err(|e| wrong("cuCtxSetCurrent", e))?;
        // Where there was none, that of the first GPU may stay: it is what CUDA's runtime takes by itself.
        let before = (before.is_some() || self.ordinal != 0).then(|| before.unwrap_or(std::ptr::null_mut()));
        Ok(Current { opened, before })
    }

    /// Only success is kept: a process that has the memory, or the device for itself, may give it back.
    fn opened(&self) -> Result<&Opened> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let _one = self.opening.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        if self.properties.capability < VOLTA {
            return Err(older(self.properties.capability));
        }
        let before = result::ctx::get_current().map_err(|e| wrong("cuCtxGetCurrent", e))?;
        let opened = Opened::new(self.device);
        // SAFETY: it was current.
        let _ = unsafe { result::ctx::set_current(before.unwrap_or(std::ptr::null_mut())) };
        let name = || format!("opening GPU {} ({})", self.ordinal, self.properties.name);
        let opened = opened.map_err(|e| wrong(&name(), e))?;
        Ok(self.opened.get_or_init(|| opened))
    }

    /// Does what the device may lack memory for: then once more, when arrays and copies have given back what they keep.
    fn enough<T>(&self, what: &str, work: impl Fn() -> Result<T, DriverError>) -> Result<T> {
        let done = match work() {
            Err(e) if is_shortage(e) => {
                self.flush();
                work()
            }
            done => done,
        };
        done.map_err(|e| match self.gpu.get() {
            Some(gpu) if is_shortage(e) => gpu.shortage(&format!("CUDA: {what}: {}", text(e))),
            _ => wrong(what, e),
        })
    }

    fn flush(&self) {
        if let Some(gpu) = self.gpu.get() {
            gpu.make_room();
        }
        if let Some(d) = self.opened.get() {
            d.staging().release();
        }
    }

    /// A library that is open, or why it is not. Most often it lacks memory, which the pool may have.
    fn library<T>(
        &self,
        name: Name,
        opening: &Opening<T>,
        open: impl Fn() -> Result<T, String>,
    ) -> Result<Arc<T>, String> {
        name.open()?;
        opening.get(|| {
            open().or_else(|_| {
                self.flush();
                open()
            })
        })
    }

    fn cublas(&self, d: &Opened) -> Result<Arc<Cublas>, String> {
        self.library(Name::CublasLt, &d.cublas, || Cublas::open(d.stream as *mut c_void))
    }

    fn cudnn(&self, d: &Opened) -> Result<Arc<Cudnn>, String> {
        self.library(Name::Cudnn, &d.cudnn, || Cudnn::open(d.stream as *mut c_void))
    }
}

impl Opened {
    fn new(device: sys::CUdevice) -> Result<Opened, DriverError> {
        let create = || result::stream::create(result::stream::StreamKind::NonBlocking);
        // SAFETY: the device is there; its primary context is kept to the process's end.
        unsafe {
            let context = result::primary_ctx::retain(device)?;
            result::ctx::set_current(context)?;
            let (stream, side) = (create()?, create()?);
            let staging = Mutex::new(Staging::new(stream)?);
            Ok(Opened { context, stream, side, staging, cublas: Opening::default(), cudnn: Opening::default() })
        }
    }

    fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the stream is kept to the process's end.
        unsafe { result::stream::synchronize(self.stream) }
    }
}

impl Driver for GpuDevice {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn belongs_to(&self, gpu: &'static Gpu) {
        let _ = self.gpu.set(gpu);
    }

    fn alloc(&self, bytes: usize) -> Result<Option<u64>> {
        let d = self.current()?;
        // SAFETY: the memory is written before it is read, by the engine's plan.
        match unsafe { result::malloc_sync(bytes) } {
            Ok(at) => Ok(Some(at)),
            Err(e) if is_shortage(e) && d.staging().release() => self.alloc(bytes),
            Err(e) if is_shortage(e) => Ok(None),
            Err(e) => Err(wrong("cuMemAlloc", e)),
        }
    }

    unsafe fn free(&self, at: u64, _bytes: usize) {
        // What fails here has failed before, and was reported then. Freeing waits for the device's work.
        // SAFETY: the caller's promise.
        let _ = self.current().map(|_d| unsafe { result::free_sync(at) });
    }

    unsafe fn upload(&self, to: u64, from: *const u8, bytes: usize) -> Result<()> {
        let d = self.current()?;
        self.enough("copy to the GPU", || {
            let mut staging = d.staging();
            // SAFETY: the caller's promise.
            let sent = unsafe { staging.upload(to, from, bytes) };
            let waits = std::mem::take(&mut staging.waits);
            self.gpu.get().inspect(|gpu| gpu.count_waits(waits));
            sent
        })
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
        let _d = self.current()?;
        let ptx = module.ptx(self.properties.capability)?;
        let ptx = CString::new(ptx).map_err(|_| Error::graph(format!("the PTX of {} has a zero byte", module.stem)))?;
        // SAFETY: PTX as text that ends with a zero byte.
        let load = || unsafe { result::module::load_data(ptx.as_ptr() as *const c_void) };
        self.enough(&format!("loading the kernels of {}", module.stem), load).map(|m| Loaded(m as u64))
    }

    fn compile(&self, source: &str) -> Result<Option<Loaded>> {
        let Ok(nvrtc) = Nvrtc::get() else { return Ok(None) };
        let _d = self.current()?;
        let load = |image: &[u8]| {
            // SAFETY: machine code, or PTX that ends with a zero byte.
            let load = || unsafe { result::module::load_data(image.as_ptr() as *const c_void) };
            self.enough("loading a generated kernel", load).map(|m| Loaded(m as u64))
        };
        nvrtc.compiled(source, self.properties.capability, load).map(Some)
    }

    fn kernel(&self, module: Loaded, name: &str) -> Result<Kernel> {
        let _d = self.current()?;
        let text = CString::new(name).map_err(|_| Error::graph("a kernel's name has a zero byte"))?;
        // SAFETY: a module that `load` gave, which stays loaded.
        let find = || unsafe { result::module::get_function(module.0 as sys::CUmodule, text.clone()) };
        self.enough(&format!("looking for the kernel {name}"), find).map(|f| Kernel(f as u64))
    }

    unsafe fn launch(&self, kernel: Kernel, grid: LaunchGrid, args: &mut [*mut c_void]) -> Result<()> {
        let d = self.current()?;
        let ([x, y, z], [i, j, k]) = (grid.blocks, grid.threads);
        let (kernel, args) = (kernel.0 as sys::CUfunction, std::cell::RefCell::new(args));
        // SAFETY: the caller's promise. (Kernels reserve memory for what their threads spill.)
        let launch =
            || unsafe { result::launch_kernel(kernel, (x, y, z), (i, j, k), 0, d.stream, &mut args.borrow_mut()) };
        self.enough("starting a kernel", launch)
    }

    unsafe fn upload_constant(&self, to: u64, from: *const u8, bytes: usize) -> Result<()> {
        let d = self.current()?;
        // SAFETY: the caller's promise; the copy goes by a stream of its own and is waited for.
        self.enough("copy to the GPU", || unsafe {
            let source = std::slice::from_raw_parts(from, bytes);
            result::memcpy_htod_async(to, source, d.side).and_then(|()| result::stream::synchronize(d.side))
        })
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
        // SAFETY: the stream is kept to the process's end.
        let graph = unsafe { result::stream::end_capture(d.stream) }.map_err(|e| wrong("ending a CUDA graph", e))?;
        // SAFETY: the graph is made into one that can be launched, and then dropped.
        let made = self.enough("making a CUDA graph", || unsafe {
            let mut ready = std::mem::MaybeUninit::uninit();
            sys::cuGraphInstantiateWithFlags(ready.as_mut_ptr(), graph, 0).result().map(|()| ready.assume_init())
        });
        // SAFETY: as above.
        let _ = unsafe { result::graph::destroy(graph) };
        made.map(|ready| Captured(ready as u64))
    }

    unsafe fn replay(&self, captured: Captured) -> Result<()> {
        let d = self.current()?;
        // SAFETY: the caller's promise.
        let launch = || unsafe { result::graph::launch(captured.0 as sys::CUgraphExec, d.stream) };
        self.enough("starting a CUDA graph", launch)
    }

    fn forget(&self, captured: Captured) {
        // SAFETY: a graph of `end_capture`, which is not used any more.
        let _ = self.current().map(|_d| unsafe { result::graph::exec_destroy(captured.0 as sys::CUgraphExec) });
    }

    fn inside(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let _d = self.current()?;
        work()
    }

    fn context(&self) -> Result<u64> {
        self.opened().map(|d| d.context as u64)
    }

    fn prepare(&self, call: &VendorCall) -> Result<Option<Arc<dyn Prepared>>> {
        let d = self.current()?;
        let (name, ready) = match call {
            VendorCall::Product(p) => (Name::CublasLt, self.cublas(&d).map(|lib| lib.prepare(p))),
            VendorCall::Convolution(c) => (Name::Cudnn, self.cudnn(&d).map(|lib| lib.prepare(c))),
        };
        match ready {
            Ok(ready) => Ok(ready),
            Err(_) if name.open().is_err() => Ok(None),
            Err(why) => Err(Error::new(ErrorKind::OutOfMemory, why)),
        }
    }

    fn libraries(&self) -> Result<Vec<(&'static str, Result<String, String>)>> {
        let d = self.current()?;
        let mut all = library::report();
        let nvrtc = Nvrtc::get().err().map(String::from);
        let failed = [self.cublas(&d).err(), self.cudnn(&d).err(), nvrtc, nccl::why_not()];
        for ((_, found), why) in all.iter_mut().zip(failed) {
            if let Some(why) = why {
                *found = Err(why);
            }
        }
        Ok(all)
    }

    fn group_id(&self) -> Result<Vec<u8>> {
        nccl::unique_id()
    }

    fn join_group(&self, place: &GroupPlace) -> Result<Arc<dyn DeviceGroup>> {
        let d = self.current()?;
        nccl::join(d.stream, place)
    }

    fn synchronize(&self) -> Result<()> {
        self.current()?.synchronize().map_err(|e| wrong("waiting for the GPU", e))
    }
}
