//! An emulated GPU, for tests: the system's C++ compiler makes the kernels, over `cuda/emulate.hpp`, and device memory is
//! the host's between pages that may not be touched. `NNRS_CUDA=emulate` (or `emulate:N` for N devices) selects it.

mod blocks;
mod library;
mod nccl;

use crate::cuda::driver::{Captured, Driver, Kernel, LaunchGrid, Loaded, Properties, Substitute};
use crate::cuda::group::{DeviceCollective, DeviceGroup, GroupPlace};
use crate::cuda::module::{HEADERS, Module};
use crate::cuda::vendor::{Prepared, VendorCall};
use crate::error::{Error, Result};
use crate::expr::cuda::generated::NAME;
use blocks::FRESH;
use nccl::{EmulatedMember, EmulatedMemory};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard};

const RUNTIME: &str = include_str!("../../../cuda/emulate.hpp");
const FLAGS: [&str; 7] =
    ["-std=c++17", "-O1", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-w", "-fvisibility=hidden"];

/// Kernels keep their state in static variables: one runs at a time.
static RUNNING: Mutex<()> = Mutex::new(());
/// A process compiles in a folder of its own: one file of kernels at a time.
static COMPILING: Mutex<()> = Mutex::new(());

struct Emulated {
    properties: Properties,
    memory: Arc<EmulatedMemory>,
}

/// What is being captured, and what was.
#[derive(Default)]
struct CapturedWork {
    now: Option<Vec<Op>>,
    graphs: HashMap<u64, Arc<Vec<Op>>>,
    next: u64,
}

enum Op {
    Launch(Kernel, LaunchGrid, Vec<u64>),
    Copy(u64, u64, usize),
    Library(Arc<LibraryCall>, [u64; 3], u64),
    Group(Arc<EmulatedMember>, DeviceCollective, u64, u64),
}

/// A call of a library, which the emulated device has if NNRS_CUDA_LIBRARIES=1.
struct LibraryCall {
    call: VendorCall,
    work: Arc<Mutex<CapturedWork>>,
}

fn is_set(name: &str) -> bool {
    std::env::var(name).is_ok_and(|v| v == "1")
}

fn has_libraries() -> bool {
    is_set("NNRS_CUDA_LIBRARIES")
}

/// The compiler's flags. With NNRS_EMULATE_RACES=1 it tells of each access to memory, and `emulate.hpp` looks for races.
fn flags() -> impl Iterator<Item = &'static str> {
    FLAGS.into_iter().chain(is_set("NNRS_EMULATE_RACES").then_some("-fsanitize=thread"))
}

/// What it asks for beside the arrays, to be found when it is missing.
const WORKSPACE: usize = 64;

impl Prepared for LibraryCall {
    fn workspace(&self) -> usize {
        WORKSPACE
    }

    unsafe fn perform(self: Arc<Self>, arrays: [u64; 3], workspace: u64) -> Result<()> {
        let mut work = self.work.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(ops) = &mut work.now {
            ops.push(Op::Library(self.clone(), arrays, workspace));
            return Ok(());
        }
        drop(work);
        // SAFETY: the caller's promise.
        unsafe {
            (workspace as *mut u8).write_bytes(FRESH, WORKSPACE);
            library::perform(&self.call, arrays);
        }
        Ok(())
    }
}

impl Emulated {
    fn work(&self) -> MutexGuard<'_, CapturedWork> {
        self.memory.work.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Notes an operation, if a run is being captured.
    fn note(&self, op: impl FnOnce() -> Op) -> bool {
        let mut work = self.work();
        let noted = work.now.as_mut().map(|ops| ops.push(op()));
        noted.is_some()
    }
}

crate::inventory::submit! { Substitute(open) }

/// The devices, if the environment asks for them.
fn open() -> Result<Option<Vec<Box<dyn Driver>>>> {
    let Ok(wish) = std::env::var("NNRS_CUDA") else { return Ok(None) };
    let (word, number) = wish.split_once(':').unwrap_or((&wish, "1"));
    if word != "emulate" {
        return Ok(None);
    }
    let wrong = || Error::arg("NNRS_CUDA", "emulate:N with a number N, 1 or more").actual(&wish);
    let count: usize = number.parse().ok().filter(|n| *n > 0).ok_or_else(wrong)?;
    let device = |number| {
        let (name, memory) = ("emulated".to_string(), 4 << 30);
        let properties = Properties { name, capability: (8, 0), memory, processors: 2, emulated: true };
        let memory = EmulatedMemory { number, blocks: Default::default(), work: Arc::default() };
        Box::new(Emulated { properties, memory: Arc::new(memory) }) as Box<dyn Driver>
    };
    Ok(Some((0..count).map(device).collect()))
}

impl Driver for Emulated {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn alloc(&self, bytes: usize) -> Result<Option<u64>> {
        let at = blocks::alloc(bytes);
        at.inspect(|at| self.memory.blocks.add(*at, bytes));
        Ok(at)
    }

    unsafe fn free(&self, at: u64, bytes: usize) {
        self.memory.blocks.remove(at); // first: the address may be another thread's at once
        // SAFETY: the caller's promise.
        unsafe { blocks::free(at, bytes) }
    }

    unsafe fn upload(&self, to: u64, from: *const u8, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to as *mut u8, bytes) };
        Ok(())
    }

    unsafe fn download(&self, to: *mut u8, from: u64, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to, bytes) };
        Ok(())
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize, _peer: Option<&dyn Driver>) -> Result<()> {
        if self.note(|| Op::Copy(to, from, bytes)) {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
        Ok(())
    }

    fn load(&self, module: &Module) -> Result<Loaded> {
        open_kernels(&built(module.stem, module.source)?)
    }

    fn compile(&self, source: &str) -> Result<Option<Loaded>> {
        // A second for each kernel: only where it is asked for.
        if !has_libraries() {
            return Ok(None);
        }
        open_kernels(&built(NAME, source)?).map(Some)
    }

    fn kernel(&self, module: Loaded, name: &str) -> Result<Kernel> {
        let symbol = CString::new(format!("launch_{name}")).map_err(|_| wrong("its name has a zero byte"))?;
        // SAFETY: a handle of `dlopen`.
        let at = unsafe { libc::dlsym(module.0 as *mut c_void, symbol.as_ptr()) };
        if at.is_null() { Err(wrong(&format!("there is no kernel {name}"))) } else { Ok(Kernel(at as u64)) }
    }

    unsafe fn launch(&self, kernel: Kernel, grid: LaunchGrid, args: &mut [*mut c_void]) -> Result<()> {
        // SAFETY: all arguments are words.
        let words = || args.iter().map(|a| unsafe { *(*a as *const u64) }).collect();
        if self.note(|| Op::Launch(kernel, grid, words())) {
            return Ok(());
        }
        type KernelEntry = unsafe extern "C" fn(*const u32, *mut *mut c_void) -> *const c_char;
        // SAFETY: the address of a function that NNRS_ENTRY made, which is of this type.
        let entry: KernelEntry = unsafe { std::mem::transmute(kernel.0 as *const c_void) };
        let [x, y, z] = grid.blocks;
        let [i, j, k] = grid.threads;
        let _alone = RUNNING.lock().unwrap_or_else(|e| e.into_inner());
        // SAFETY: the caller's promise; the text that comes back is static.
        let message = unsafe {
            let message = entry([x, y, z, i, j, k].as_ptr(), args.as_mut_ptr());
            (!message.is_null()).then(|| CStr::from_ptr(message).to_string_lossy().into_owned())
        };
        message.map_or(Ok(()), |m| Err(wrong(&m)))
    }

    fn inside(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        work()
    }

    fn context(&self) -> Result<u64> {
        Ok(0)
    }

    fn libraries(&self) -> Result<Vec<(&'static str, Result<String, String>)>> {
        let found = if has_libraries() { Ok("emulated".into()) } else { Err("NNRS_CUDA_LIBRARIES is not 1".into()) };
        Ok(["cuBLASLt", "cuDNN", "NVRTC", "NCCL"].map(|name| (name, found.clone())).into())
    }

    fn prepare(&self, call: &VendorCall) -> Result<Option<Arc<dyn Prepared>>> {
        let ready =
            || Arc::new(LibraryCall { call: call.clone(), work: self.memory.work.clone() }) as Arc<dyn Prepared>;
        Ok(has_libraries().then(ready))
    }

    fn group_id(&self) -> Result<Vec<u8>> {
        match has_libraries() {
            true => Ok(nccl::fresh_id()),
            false => Err(Error::unsupported("NCCL was not found: NNRS_CUDA_LIBRARIES is not 1")),
        }
    }

    fn join_group(&self, place: &GroupPlace) -> Result<Arc<dyn DeviceGroup>> {
        nccl::join(self.memory.clone(), place).map(|member| member as Arc<dyn DeviceGroup>)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    unsafe fn upload_constant(&self, to: u64, from: *const u8, bytes: usize) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.upload(to, from, bytes) }
    }

    fn begin_capture(&self) -> Result<()> {
        self.work().now = Some(Vec::new());
        Ok(())
    }

    fn end_capture(&self) -> Result<Captured> {
        let mut work = self.work();
        let ops = work.now.take().ok_or_else(|| wrong("nothing is being captured"))?;
        work.next += 1;
        let number = work.next;
        work.graphs.insert(number, Arc::new(ops));
        Ok(Captured(number))
    }

    unsafe fn replay(&self, captured: Captured) -> Result<()> {
        let ops = self.work().graphs.get(&captured.0).cloned().ok_or_else(|| wrong("there is no such graph"))?;
        for op in ops.iter() {
            // SAFETY: the caller's promise.
            unsafe {
                match op {
                    Op::Copy(to, from, bytes) => self.copy(*to, *from, *bytes, None)?,
                    Op::Library(call, arrays, workspace) => call.clone().perform(*arrays, *workspace)?,
                    Op::Group(member, call, from, to) => member.clone().perform(call, *from, *to)?,
                    Op::Launch(kernel, grid, words) => {
                        let mut words = words.clone();
                        let mut args: Vec<_> = words.iter_mut().map(|w| w as *mut u64 as *mut c_void).collect();
                        self.launch(*kernel, *grid, &mut args)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn forget(&self, captured: Captured) {
        self.work().graphs.remove(&captured.0);
    }
}

fn wrong(what: &str) -> Error {
    Error::graph(format!("emulated GPU: {what}"))
}

fn open_kernels(library: &Path) -> Result<Loaded> {
    let name = CString::new(library.to_string_lossy().as_bytes()).map_err(|_| wrong("its path has a zero byte"))?;
    // SAFETY: the library is ours and runs nothing when it is loaded but the constructors of its shared arrays.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        Err(wrong(&format!("{} cannot be loaded", library.display())))
    } else {
        Ok(Loaded(handle as u64))
    }
}

/// The library of a file of kernels, compiled if it is not there yet.
fn built(stem: &str, source: &str) -> Result<PathBuf> {
    let mut hash = DefaultHasher::new();
    (RUNTIME, HEADERS, source, flags().collect::<Vec<_>>()).hash(&mut hash);
    let folder = std::env::temp_dir().join(format!("nnrs-emulate-{:016x}", hash.finish()));
    let library = folder.join(format!("{stem}.so"));
    // Two devices may want it at once.
    let _one = COMPILING.lock().unwrap_or_else(|e| e.into_inner());
    if !library.exists() {
        compile(&folder, stem, source, &library).map_err(|e| wrong(&e))?;
    }
    Ok(library)
}

/// Several processes may compile the same at once: each does so on its own, and then moves the result into place.
fn compile(folder: &Path, stem: &str, source: &str, library: &Path) -> Result<(), String> {
    let text = |e: std::io::Error| format!("{}: {e}", folder.display());
    let own = folder.with_extension(std::process::id().to_string());
    std::fs::create_dir_all(&own).map_err(text)?;
    for (name, header) in HEADERS.iter().copied().chain([("emulate.hpp", RUNTIME)]) {
        std::fs::write(own.join(name), header).map_err(text)?;
    }
    let file = format!("{stem}.cu");
    std::fs::write(own.join(&file), source).map_err(text)?;
    let plain = cxx(&own, &["-E", "-P", "-D__launch_bounds__(...)=", "-x", "c++", &file])?;
    let mut whole = format!("#include \"emulate.hpp\"\n#include \"{file}\"\n");
    kernels(&plain).for_each(|name| whole += &format!("NNRS_ENTRY({name})\n"));
    std::fs::write(own.join("all.cpp"), whole).map_err(text)?;
    let output = format!("{stem}.so");
    cxx(&own, &flags().chain(["-c", "all.cpp"]).collect::<Vec<_>>())?;
    cxx(&own, &["-shared", "-o", &output, "all.o"])?;
    std::fs::create_dir_all(folder).map_err(text)?;
    std::fs::rename(own.join(&output), library).map_err(text)?;
    std::fs::remove_dir_all(&own).map_err(text)
}

/// Runs the C++ compiler; gives what it prints.
fn cxx(folder: &Path, arguments: &[&str]) -> Result<String, String> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".into());
    let run = Command::new(&compiler).args(arguments).current_dir(folder).output();
    let run = run.map_err(|e| format!("the C++ compiler '{compiler}' does not run: {e}"))?;
    match run.status.success() {
        true => Ok(String::from_utf8_lossy(&run.stdout).into_owned()),
        false => Err(format!("{compiler} {arguments:?} failed:\n{}", String::from_utf8_lossy(&run.stderr))),
    }
}

/// The names of the kernels in a preprocessed source.
fn kernels(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("extern \"C\" __global__").skip(1);
    after.filter_map(|rest| rest.split('(').next()?.split_whitespace().last())
}
