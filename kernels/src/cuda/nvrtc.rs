//! NVRTC, NVIDIA's compiler from CUDA C to machine code, for kernels that are generated at run time.

use super::disk;
use super::library::{Name, functions};
use super::module::HEADERS;
use crate::error::{Error, Result};
use crate::expr::cuda::OPTIONS;
use std::ffi::{CString, c_char};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

type NvrtcProgram = *mut std::ffi::c_void;
type NvrtcStatus = i32;

functions! {
    /// What is used of NVRTC, as its manual has it.
    Functions {
        version: "nvrtcVersion" (*mut i32, *mut i32) -> NvrtcStatus;
        count: "nvrtcGetNumSupportedArchs" (*mut i32) -> NvrtcStatus;
        architectures: "nvrtcGetSupportedArchs" (*mut i32) -> NvrtcStatus;
        create: "nvrtcCreateProgram"
            (*mut NvrtcProgram, *const c_char, *const c_char, i32, *const *const c_char, *const *const c_char) -> NvrtcStatus;
        compile: "nvrtcCompileProgram" (NvrtcProgram, i32, *const *const c_char) -> NvrtcStatus;
        log_size: "nvrtcGetProgramLogSize" (NvrtcProgram, *mut usize) -> NvrtcStatus;
        log: "nvrtcGetProgramLog" (NvrtcProgram, *mut c_char) -> NvrtcStatus;
        cubin_size: "nvrtcGetCUBINSize" (NvrtcProgram, *mut usize) -> NvrtcStatus;
        cubin: "nvrtcGetCUBIN" (NvrtcProgram, *mut c_char) -> NvrtcStatus;
        ptx_size: "nvrtcGetPTXSize" (NvrtcProgram, *mut usize) -> NvrtcStatus;
        ptx: "nvrtcGetPTX" (NvrtcProgram, *mut c_char) -> NvrtcStatus;
        destroy: "nvrtcDestroyProgram" (*mut NvrtcProgram) -> NvrtcStatus;
    }
}

/// The library.
pub(super) struct Nvrtc {
    f: Functions,
    version: [i32; 2],
    /// The compute capabilities that it knows, 90 for 9.0.
    known: Vec<i32>,
}

/// What it is to compile for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CompileTarget {
    /// This device's machine code: a driver takes it, however much newer the compiler is than itself.
    Real(i32),
    /// PTX for a device that the compiler does not know yet.
    Virtual(i32),
}

fn checked(what: &str, status: NvrtcStatus) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("{what} failed with status {status}")) }
}

impl Nvrtc {
    /// The library, opened when it is first asked for; or why there is none.
    pub(super) fn get() -> Result<&'static Nvrtc, &'static str> {
        static OPEN: OnceLock<Result<Nvrtc, String>> = OnceLock::new();
        OPEN.get_or_init(Nvrtc::open).as_ref().map_err(String::as_str)
    }

    fn open() -> Result<Nvrtc, String> {
        let f = Functions::load(Name::Nvrtc.open()?)?;
        let (mut version, mut count) = ([0; 2], 0);
        let [major, minor] = &mut version;
        // SAFETY: valid places for the numbers.
        unsafe {
            checked("nvrtcVersion", (f.version)(major, minor))?;
            checked("nvrtcGetNumSupportedArchs", (f.count)(&mut count))?;
        }
        let mut known = vec![0; count.max(0) as usize];
        // SAFETY: as many places as it said.
        checked("nvrtcGetSupportedArchs", unsafe { (f.architectures)(known.as_mut_ptr()) })?;
        Ok(Nvrtc { f, version, known })
    }

    fn target(&self, (major, minor): (u32, u32)) -> Result<CompileTarget> {
        let own = (major * 10 + minor) as i32;
        let below = self.known.iter().copied().filter(|k| *k <= own).max();
        match below {
            Some(k) if k == own => Ok(CompileTarget::Real(k)),
            Some(k) => Ok(CompileTarget::Virtual(k)),
            None => {
                let [a, b] = self.version;
                Err(Error::unsupported(format!("NVRTC {a}.{b} does not know compute capability {major}.{minor}")))
            }
        }
    }

    /// What `load` makes of the compiled kernels, which are kept on disk.
    pub(super) fn compiled<T>(
        &self,
        source: &str,
        capability: (u32, u32),
        load: impl Fn(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let target = self.target(capability)?;
        disk::cached(disk::folder().as_deref(), &self.key(source, target), || self.compile(source, target), load)
    }

    /// All that the code depends on.
    fn key(&self, source: &str, target: CompileTarget) -> String {
        let mut headers = DefaultHasher::new();
        HEADERS.hash(&mut headers);
        let ([a, b], nnrs) = (self.version, env!("CARGO_PKG_VERSION"));
        format!("{target:?} NVRTC {a}.{b} nnrs {nnrs} {OPTIONS:?} {:016x}\n{source}", headers.finish())
    }

    fn compile(&self, source: &str, target: CompileTarget) -> Result<Vec<u8>> {
        let made = Compilation::new(&self.f, source).and_then(|c| c.run(target));
        made.map_err(|e| Error::unsupported(format!("NVRTC: {e}")))
    }
}

/// A program of NVRTC's.
struct Compilation<'a> {
    f: &'a Functions,
    program: NvrtcProgram,
}

fn text(s: &str) -> Result<CString, String> {
    CString::new(s).map_err(|_| "a source has a zero byte".to_string())
}

impl<'a> Compilation<'a> {
    fn new(f: &'a Functions, source: &str) -> Result<Compilation<'a>, String> {
        let names: Vec<CString> = HEADERS.iter().map(|h| text(h.0)).collect::<Result<_, _>>()?;
        let texts: Vec<CString> = HEADERS.iter().map(|h| text(h.1)).collect::<Result<_, _>>()?;
        let [names, texts] = [&names, &texts].map(|l| l.iter().map(|s| s.as_ptr()).collect::<Vec<_>>());
        let (source, name, mut program) = (text(source)?, text("generated.cu")?, std::ptr::null_mut());
        // SAFETY: texts that end with a zero byte, as many as it says.
        let status = unsafe {
            let (count, texts, names) = (names.len() as i32, texts.as_ptr(), names.as_ptr());
            (f.create)(&mut program, source.as_ptr(), name.as_ptr(), count, texts, names)
        };
        checked("nvrtcCreateProgram", status)?;
        Ok(Compilation { f, program })
    }

    fn run(&self, target: CompileTarget) -> Result<Vec<u8>, String> {
        let architecture = match target {
            CompileTarget::Real(k) => format!("sm_{k}"),
            CompileTarget::Virtual(k) => format!("compute_{k}"),
        };
        let options = [format!("--gpu-architecture={architecture}"), "--std=c++17".into()];
        let options = options.iter().map(String::as_str).chain(OPTIONS);
        let options: Vec<CString> = options.map(text).collect::<Result<_, _>>()?;
        let list: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: a program, and texts that end with a zero byte.
        match unsafe { (self.f.compile)(self.program, list.len() as i32, list.as_ptr()) } {
            0 => match target {
                CompileTarget::Real(_) => self.bytes(self.f.cubin_size, self.f.cubin),
                CompileTarget::Virtual(_) => self.bytes(self.f.ptx_size, self.f.ptx),
            },
            status => {
                let log = self.bytes(self.f.log_size, self.f.log).unwrap_or_default();
                let log = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_string();
                Err(format!("nvrtcCompileProgram failed with status {status}: {log}"))
            }
        }
    }

    fn bytes(
        &self,
        size: unsafe extern "C" fn(NvrtcProgram, *mut usize) -> NvrtcStatus,
        get: unsafe extern "C" fn(NvrtcProgram, *mut c_char) -> NvrtcStatus,
    ) -> Result<Vec<u8>, String> {
        let mut n = 0;
        // SAFETY: a valid place for the number.
        checked("asking NVRTC for a size", unsafe { size(self.program, &mut n) })?;
        let mut bytes = vec![0u8; n];
        // SAFETY: as many bytes as it said.
        checked("asking NVRTC for a result", unsafe { get(self.program, bytes.as_mut_ptr() as *mut c_char) })?;
        Ok(bytes)
    }
}

impl Drop for Compilation<'_> {
    fn drop(&mut self) {
        // SAFETY: the program has no other owner.
        unsafe { (self.f.destroy)(&mut self.program) };
    }
}

#[cfg(feature = "emulate")]
mod tests;
