//! GPUs: which there are, their memory, and how kernels run on them. Functions use it through [`Gpu`]; everything below
//! goes through the trait `Driver`.

// What only devices use is not used in a build without any.
#![cfg_attr(not(any(feature = "cuda", feature = "emulate")), allow(dead_code))]

pub mod capture;
mod capture_policy;
pub mod convert;
#[cfg(feature = "cuda")]
mod cublas;
#[cfg(feature = "cuda")]
mod cudnn;
mod device;
#[cfg(any(feature = "cuda", test))]
mod disk;
pub mod draws;
pub(crate) mod driver;
#[cfg(feature = "cuda")]
mod driver_errors;
mod generated;
pub(crate) mod gpu_group;
mod gpu_sums;
pub(crate) mod group;
mod group_sums;
mod group_watch;
pub mod launch;
#[cfg(feature = "cuda")]
mod library;
mod memory;
pub(crate) mod module;
#[cfg(feature = "cuda")]
mod nccl;
#[cfg(feature = "cuda")]
mod nvrtc;
#[cfg(feature = "cuda")]
mod probe;
pub mod program;
#[cfg(feature = "cuda")]
mod real;
pub mod replays;
#[cfg(feature = "cuda")]
mod retry;
#[cfg(feature = "cuda")]
mod staging;
pub mod team;
pub(crate) mod vendor;

use driver::Driver;
pub use driver::Properties;
pub use generated::{compiler, set_compiler};
pub use gpu_group::GpuGroup;
pub use gpu_sums::sum_over_gpus;
pub use group::GroupPlace;
pub use group_sums::GroupSums;
#[cfg(feature = "cuda")]
pub use library::set_package_folders;
pub use replays::{graphs, set_graphs};
pub use vendor::{autotune, set_autotune, set_libraries, set_tf32, tf32};

use crate::device::DeviceMemory;
use crate::error::{Error, Result};
use crate::fork;
use memory::DeviceMemoryPool;
use module::Modules;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock};

/// A GPU. All its work is done in order, on one stream.
pub struct Gpu {
    id: usize,
    driver: Box<dyn Driver>,
    pool: Mutex<DeviceMemoryPool>,
    modules: Mutex<Modules>,
    /// Small tables in device memory, by their bytes.
    tables: Mutex<HashMap<Box<[u8]>, Arc<DeviceMemory>>>,
    calls: Mutex<vendor::Calls>,
    units: Mutex<generated::Units>,
    /// Held while a kernel is compiled.
    compiling: Mutex<()>,
    /// Held for writing while a run is being captured.
    capturing: RwLock<()>,
    /// How often the host has waited for it.
    waits: AtomicU64,
    /// What went wrong on it while nobody waited.
    trouble: Mutex<Option<Error>>,
    /// Value of [`fork::count`] when it was opened.
    forks: u64,
}

/// The devices of this process, opened when they are first asked for; they live until its end.
static GPUS: OnceLock<Result<Vec<&'static Gpu>, String>> = OnceLock::new();

/// All GPUs that can be used.
///
/// # Errors
/// There is none, or no driver: what was looked for, and where.
pub fn gpus() -> Result<&'static [&'static Gpu]> {
    let found = GPUS.get_or_init(|| {
        fork::watch();
        let drivers = open().map_err(|e| e.to_string())?;
        let gpu = |(id, driver)| {
            let (pool, modules, tables, calls, units, compiling) = Default::default();
            let gpu: &'static Gpu = Box::leak(Box::new(Gpu {
                id,
                driver,
                pool,
                modules,
                tables,
                calls,
                units,
                compiling,
                capturing: RwLock::new(()),
                waits: AtomicU64::new(0),
                trouble: Mutex::new(None),
                forks: fork::count(),
            }));
            gpu.driver.belongs_to(gpu);
            gpu
        };
        Ok(drivers.into_iter().enumerate().map(gpu).collect())
    });
    match found {
        Ok(gpus) => Ok(gpus),
        Err(why) => Err(Error::unsupported(format!("CUDA is not available: {why}"))),
    }
}

/// GPU number `id`.
///
/// # Errors
/// As [`gpus`], or there are not so many.
pub fn gpu(id: usize) -> Result<&'static Gpu> {
    let all = gpus()?;
    all.get(id)
        .copied()
        .ok_or_else(|| Error::arg("device_id", format!("a number below {}, the number of GPUs", all.len())).actual(id))
}

fn open() -> Result<Vec<Box<dyn Driver>>> {
    #[cfg(feature = "emulate")]
    for substitute in inventory::iter::<driver::Substitute> {
        if let Some(drivers) = (substitute.0)()? {
            return Ok(drivers);
        }
    }
    #[cfg(not(feature = "emulate"))]
    if std::env::var("NNRS_CUDA").is_ok_and(|v| v.starts_with("emulate")) {
        return Err(Error::unsupported(
            "NNRS_CUDA=emulate wants a build with the feature 'emulate', which is for tests",
        ));
    }
    #[cfg(feature = "cuda")]
    return probe::open();
    #[cfg(not(feature = "cuda"))]
    Err(Error::unsupported("this build was made without it (Rust: the feature 'cuda')"))
}

/// Functions that ran on the host because they have no kernel for the GPU of their context.
static ON_HOST: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
static NOTICE: OnceLock<fn(&'static str)> = OnceLock::new();

/// Sets what is called, once for each function, when it runs on the host though its context is a GPU's. Python warns.
pub fn set_notice(f: fn(&'static str)) {
    let _ = NOTICE.set(f);
}

/// The functions that ran on the host though their context is a GPU's, by their Python names.
pub fn functions_on_host() -> Vec<&'static str> {
    ON_HOST.lock().unwrap_or_else(|e| e.into_inner()).clone()
}

pub fn runs_on_host(function: &'static str) {
    let mut known = ON_HOST.lock().unwrap_or_else(|e| e.into_inner());
    if known.contains(&function) {
        return;
    }
    known.push(function);
    drop(known);
    if let Some(tell) = NOTICE.get() {
        tell(function);
    }
}

impl Gpu {
    /// Its number.
    pub fn id(&self) -> usize {
        self.id
    }

    /// Its name and limits.
    pub fn properties(&self) -> &Properties {
        self.driver.properties()
    }

    /// Opens it, if it is not open yet. (In a forked process it cannot be used; to speak of it is no error.)
    ///
    /// # Errors
    /// It cannot be used: too old, another process has it for itself, no memory.
    pub fn open(&self) -> Result<()> {
        if self.check_fork().is_err() {
            return Ok(());
        }
        self.driver.inside(&mut || Ok(()))
    }

    /// Waits until all work that was asked for is done.
    pub fn synchronize(&self) -> Result<()> {
        let _turn = self.turn_with_host()?;
        self.wait()
    }

    /// How often the host has waited for the device since the process began: to read results, or for memory.
    pub fn waits(&self) -> u64 {
        self.waits.load(Relaxed)
    }

    fn wait(&self) -> Result<()> {
        self.count_waits(1);
        self.driver.synchronize()?;
        self.trouble().map_or(Ok(()), Err)
    }

    /// Says what went wrong, to who waits for the device next.
    fn set_trouble(&self, e: Error) {
        *self.trouble.lock().unwrap_or_else(|e| e.into_inner()) = Some(e);
    }

    /// What went wrong while nobody waited, told once.
    fn trouble(&self) -> Option<Error> {
        self.trouble.lock().unwrap_or_else(|e| e.into_inner()).take()
    }

    fn count_waits(&self, n: u64) {
        self.waits.fetch_add(n, Relaxed);
    }

    /// Gives memory back that is kept for later, for what is not an array: kernels, CUDA graphs, libraries.
    #[cfg(feature = "cuda")]
    fn make_room(&self) {
        while self.give_back() {}
        self.clear_memory_cache();
    }

    /// The error where that was not enough.
    #[cfg(feature = "cuda")]
    fn shortage(&self, what: &str) -> Error {
        self.pool().out_of_memory(self, 0, what)
    }

    fn pool(&self) -> MutexGuard<'_, DeviceMemoryPool> {
        self.pool.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn tables(&self) -> MutexGuard<'_, HashMap<Box<[u8]>, Arc<DeviceMemory>>> {
        self.tables.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn modules(&self) -> MutexGuard<'_, Modules> {
        self.modules.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl PartialEq for Gpu {
    fn eq(&self, other: &Gpu) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Gpu {}

impl std::fmt::Display for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GPU {} ({})", self.id, self.properties().name)
    }
}

impl std::fmt::Debug for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}
