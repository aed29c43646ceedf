//! The kernels' sources and their PTX, and which are loaded.

use super::driver::{Kernel, Loaded};
use super::{Driver, Gpu};
use crate::error::{Error, Result};
use lzma_rust2::LzmaReader;
use std::collections::HashMap;
use std::io::Read;

/// A file of kernels: `cuda/<stem>.cu`.
pub struct Module {
    pub stem: &'static str,
    /// For the emulation, which compiles it for the host.
    #[cfg_attr(not(feature = "emulate"), expect(dead_code))]
    pub source: &'static str,
    /// Its PTX for each compute capability as `tools/ptx.py` packs it.
    packed: &'static [u8],
}

/// What begins the PTX of a capability in a packed file.
const MARK: &str = "// nnrs sm_";

impl Module {
    /// The PTX for the highest capability up to this one. PTX of a lower one runs on all higher ones.
    pub fn ptx(&self, (major, minor): (u32, u32)) -> Result<String> {
        let broken = || Error::unsupported(format!("the PTX of {} in this build is broken", self.stem));
        let mut text = String::new();
        LzmaReader::new_mem_limit(self.packed, u32::MAX, None)
            .and_then(|mut packed| packed.read_to_string(&mut text))
            .map_err(|_| broken())?;
        let own = major * 10 + minor;
        let parts = text.split(MARK).skip(1).filter_map(|p| {
            let (number, ptx) = p.split_once('\n')?;
            Some((number.parse::<u32>().ok()?, ptx))
        });
        let best = parts.filter(|(n, _)| *n <= own).max_by_key(|(n, _)| *n);
        best.map(|(_, ptx)| ptx.to_string()).ok_or_else(|| older((major, minor)))
    }
}

/// The error for a GPU for which there are no kernels.
pub(super) fn older((major, minor): (u32, u32)) -> Error {
    let e = Error::unsupported(format!("the GPU's compute capability is {major}.{minor}"));
    e.hint("7.0 (Volta) or later is needed")
}

macro_rules! modules {
    ($($stem:literal),*) => {
        /// All files of kernels. (Paths begin at the file with the list.)
        pub static MODULES: &[Module] =
            &[$(Module {
                stem: $stem,
                source: include_str!(concat!("../", $stem, ".cu")),
                packed: include_bytes!(concat!($stem, ".lzma")),
            }),*];
    };
}

include!("../../../cuda/ptx/modules.rs"); // by tools/ptx.py: all cuda/*.cu

/// What the kernels include.
pub static HEADERS: &[(&str, &str)] = &[
    ("elementwise.cuh", include_str!("../../../cuda/elementwise.cuh")),
    ("common.cuh", include_str!("../../../cuda/common.cuh")),
    ("generated.cuh", crate::expr::cuda::generated::HEADER),
    ("axes.cuh", include_str!("../../../cuda/axes.cuh")),
    ("channels.cuh", include_str!("../../../cuda/channels.cuh")),
    ("philox.cuh", include_str!("../../../cuda/philox.cuh")),
    ("team.cuh", include_str!("../../../cuda/team.cuh")),
    ("words.cuh", include_str!("../../../cuda/words.cuh")),
];

/// A device's loaded modules and the kernels that were asked for.
#[derive(Default)]
pub(super) struct Modules(HashMap<&'static str, (Loaded, HashMap<String, Kernel>)>);

impl Modules {
    fn kernel(&mut self, driver: &dyn Driver, stem: &'static str, name: &str) -> Result<Kernel> {
        let (loaded, kernels) = match self.0.get_mut(stem) {
            Some(found) => found,
            None => {
                let module = MODULES.iter().find(|m| m.stem == stem).expect("a file of kernels");
                let loaded = driver.load(module)?;
                self.0.entry(stem).or_insert((loaded, HashMap::new()))
            }
        };
        if let Some(&kernel) = kernels.get(name) {
            return Ok(kernel);
        }
        let kernel = driver.kernel(*loaded, name)?;
        kernels.insert(name.to_string(), kernel);
        Ok(kernel)
    }
}

impl Gpu {
    /// The kernel `name` of `cuda/<stem>.cu`.
    pub(super) fn kernel(&self, stem: &'static str, name: &str) -> Result<Kernel> {
        self.check_fork()?;
        self.modules().kernel(&*self.driver, stem, name)
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    unit_test!(all_ptx_is_unpacked);
    fn all_ptx_is_unpacked() {
        for module in MODULES {
            let text = module.ptx((9, 0)).unwrap();
            assert!(text.contains(".target sm_") && text.contains(".entry"), "{}", module.stem);
            assert!(module.ptx((6, 2)).is_err(), "{}", module.stem);
        }
        let broken = Module { packed: &[0x5d, 0, 0, 1], ..MODULES[0] };
        assert!(broken.ptx((9, 0)).unwrap_err().to_string().contains("broken"));
    }
}
