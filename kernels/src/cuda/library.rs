//! NVIDIA's libraries of the user's machine: what is already loaded, then what the `nvidia-*` wheels beside us have, then
//! what the system finds. None is needed to build or to run; what is missing is said once, with the extra that brings it.

#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::ffi::{CStr, c_char};
use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// A library that is used where it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    CublasLt,
    Cudnn,
    Nvrtc,
    Nccl,
}

/// All of them, with what people call them and their files, the best first.
const KNOWN: [(Name, &str, &[&str]); 4] = [
    (Name::CublasLt, "cuBLASLt", &["libcublasLt.so.13", "libcublasLt.so.12"]),
    (Name::Cudnn, "cuDNN", &["libcudnn.so.9"]),
    (Name::Nvrtc, "NVRTC", &["libnvrtc.so.13", "libnvrtc.so.12"]),
    (Name::Nccl, "NCCL", &["libnccl.so.2"]),
];

/// A library that is open; it stays so.
pub(super) struct Library {
    handle: *mut c_void,
    /// The file.
    pub(super) path: String,
}

// SAFETY: a handle of `dlopen`, which any thread may ask for symbols.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// The folders in which Python's packages lie. They are told, never asked for: a library is looked for under locks that a
/// thread with the GIL may wait for.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Tells the folders in which Python's packages lie.
pub fn set_package_folders(folders: Vec<PathBuf>) {
    *FOLDERS.lock().unwrap_or_else(|e| e.into_inner()) = folders;
}

impl Name {
    fn entry(self) -> &'static (Name, &'static str, &'static [&'static str]) {
        &KNOWN[self as usize]
    }

    /// Opens the library, once.
    pub(super) fn open(self) -> Result<&'static Library, &'static str> {
        static OPEN: [OnceLock<Result<Library, String>>; KNOWN.len()] = [const { OnceLock::new() }; KNOWN.len()];
        let found = OPEN[self as usize].get_or_init(|| self.search());
        found.as_ref().map_err(String::as_str)
    }

    fn search(self) -> Result<Library, String> {
        if self == Name::Cudnn {
            // Its parts need these and look for them among what is loaded.
            let _ = (Name::CublasLt.open(), Name::Nvrtc.open());
        }
        let (_, title, files) = *self.entry();
        let newest = super::probe::generation().unwrap_or(usize::MAX);
        let generation = |f: &str| f.rsplit('.').next().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
        let files = || files.iter().copied().filter(|f| generation(f) <= newest);
        let loaded = files().find_map(|f| open(Path::new(f), libc::RTLD_NOLOAD));
        let folders = folders();
        let beside = || folders.iter().flat_map(|d| files().map(|f| d.join(f))).find_map(|f| open(&f, 0));
        let system = || files().find_map(|f| open(Path::new(f), 0));
        loaded.or_else(beside).or_else(system).ok_or_else(|| {
            let names: Vec<&str> = files().collect();
            let places: Vec<String> = folders.iter().map(|d| d.display().to_string()).collect();
            let places = if places.is_empty() { String::new() } else { format!("in {}, nor ", places.join(", ")) };
            let extra = if newest == 12 { "'nnrs[cuda12]'" } else { "'nnrs[cuda13]' (or 'nnrs[cuda12]')" };
            format!("{title} was not found: {} is neither loaded, nor {places}where the system looks for libraries; pip install {extra} brings it", names.join(" or "))
        })
    }
}

/// Where the wheels put the libraries, and what NNRS_CUDA_LIBRARY_PATH names.
fn folders() -> Vec<PathBuf> {
    let own = std::env::var_os("NNRS_CUDA_LIBRARY_PATH");
    let own: Vec<PathBuf> = own.iter().flat_map(std::env::split_paths).filter(|p| !p.as_os_str().is_empty()).collect();
    let packages = FOLDERS.lock().unwrap_or_else(|e| e.into_inner()).clone();
    let entries = packages.iter().filter_map(|p| std::fs::read_dir(p.join("nvidia")).ok()).flatten().flatten();
    let mut wheels: Vec<PathBuf> = entries.map(|e| e.path().join("lib")).filter(|p| p.is_dir()).collect();
    wheels.sort();
    own.into_iter().chain(wheels).collect()
}

fn open(file: &Path, flags: i32) -> Option<Library> {
    if file.is_absolute() && !file.exists() {
        return None;
    }
    let name = CString::new(file.as_os_str().as_encoded_bytes()).ok()?;
    // SAFETY: the library's constructors are its maker's.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | flags) };
    (!handle.is_null()).then(|| Library { handle, path: path_of(handle).unwrap_or(file.display().to_string()) })
}

/// The file that an open library came from, where the system says it.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn path_of(_: *mut c_void) -> Option<String> {
    None
}

/// The file that an open library came from.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn path_of(handle: *mut c_void) -> Option<String> {
    let mut map: *mut LinkMap = std::ptr::null_mut();
    // SAFETY: an open library; the linker's record of it begins as `LinkMap` says.
    unsafe {
        let found = libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, &mut map as *mut _ as *mut c_void) == 0;
        (found && !map.is_null() && !(*map).name.is_null())
            .then(|| CStr::from_ptr((*map).name).to_string_lossy().into_owned())
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[repr(C)]
struct LinkMap {
    address: usize,
    name: *const c_char,
}

impl Library {
    /// The address of a function.
    pub(super) fn symbol(&self, name: &str) -> Result<*mut c_void, String> {
        let text = CString::new(name).map_err(|e| e.to_string())?;
        // SAFETY: a handle of `dlopen`.
        let at = unsafe { libc::dlsym(self.handle, text.as_ptr()) };
        if at.is_null() { Err(format!("{} has no {name}", self.path)) } else { Ok(at) }
    }
}

/// Of each library its name, and the file that is used or why there is none.
pub(super) fn report() -> Vec<(&'static str, Result<String, String>)> {
    let found = |name: Name| name.open().map(|l| l.path.clone()).map_err(String::from);
    KNOWN.iter().map(|(name, title, _)| (*title, found(*name))).collect()
}

/// A struct with functions of a library, typed as in its headers.
macro_rules! functions {
    ($(#[$doc:meta])* $name:ident { $($f:ident: $symbol:literal ($($arg:ty),*) -> $ret:ty;)* }) => {
        $(#[$doc])*
        struct $name { $($f: unsafe extern "C" fn($($arg),*) -> $ret,)* }

        impl $name {
            fn load(library: &$crate::cuda::library::Library) -> ::std::result::Result<$name, String> {
                // SAFETY: the functions have these types.
                Ok($name { $($f: unsafe {
                    std::mem::transmute::<*mut ::std::ffi::c_void, unsafe extern "C" fn($($arg),*) -> $ret>(
                        library.symbol($symbol)?,
                    )
                },)* })
            }
        }
    };
}
pub(super) use functions;
