//! Where and in which precision a function runs: NNabla's Context.

use super::{Backend, Place, Site};
use crate::dtype::DType;
pub use crate::dtype::compute_dtype;
use crate::error::{Error, Result};
use crate::fork::at_fork;
use std::sync::{Arc, LazyLock};

/// A computation context. `backend` lists candidates as `device:type`, for example `cpu:float`.
///
/// Functions take the context of their thread when they are made, and keep it.
///
/// ```
/// use nnrs_kernels::{Context, DType};
/// let half = Context::cpu(DType::F16)?;
/// assert_eq!((half.backend[0].as_str(), half.dtype(), half.compute_dtype()), ("cpu:half", DType::F16, DType::F32));
/// assert!(Context::new(vec!["tpu:float".into()], String::new(), "0".into()).is_err());
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// Candidates, the first that this build knows decides: `cpu:float`, `cpu:half`, `cpu:bfloat16`, `cpu:double`; with `:exact` behind it,
    /// convolutions are sums of products as they are written, without transforms that round more.
    pub backend: Vec<String>,
    /// NNabla's name of the array's class; only shown.
    pub array_class: String,
    /// The device as a number in words; only shown on the CPU.
    pub device_id: String,
    site: Site,
    exact: bool,
}

// As in NNabla, the context that was not chosen has no kind of arrays.
static DEFAULT: LazyLock<Arc<Context>> =
    LazyLock::new(|| Arc::new(Context { array_class: String::new(), ..Context::of(DType::F32) }));

at_fork!(Ready, LazyLock::force(&DEFAULT));

impl Context {
    /// A CPU context that computes and stores in `dtype`.
    ///
    /// # Errors
    /// Not a floating-point type.
    ///
    /// ```
    /// use nnrs_kernels::{Context, DType};
    /// assert_eq!(Context::cpu(DType::F64)?.dtype(), DType::F64);
    /// assert!(Context::cpu(DType::I32).is_err());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn cpu(dtype: DType) -> Result<Context> {
        match dtype.is_float() {
            true => Ok(Context::of(dtype)),
            false => Err(Error::arg("dtype", "a floating-point type").actual(dtype).function("Context.cpu")),
        }
    }

    /// A context from NNabla's fields; the first backend that is there decides. `cudnn` and `cuda` are one here: GPU number
    /// `device_id`.
    ///
    /// # Errors
    /// None of the backends is there.
    ///
    /// ```
    /// use nnrs_kernels::{Context, DType};
    /// let context = Context::new(vec!["tpu:float".into(), "cpu:double".into()], String::new(), "0".into())?;
    /// assert_eq!(context.dtype(), DType::F64);
    /// assert!(Context::new(vec!["tpu:float".into()], String::new(), "0".into()).is_err());
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    pub fn new(backend: Vec<String>, array_class: String, device_id: String) -> Result<Context> {
        let mut why = None;
        for site in backend.iter().filter_map(|b| parse(b, &device_id)) {
            match site {
                Ok((site, exact)) => return Ok(Context { backend, array_class, device_id, site, exact }),
                Err(e) => why = Some(e),
            }
        }
        if backend.is_empty() {
            return Ok(Context { backend, array_class, device_id, site: Site::host(DType::F32), exact: false });
        }
        Err(why.map_or_else(|| unknown(&backend), |e| e.function("Context")))
    }

    /// The element type of results.
    ///
    /// ```
    /// use nnrs_kernels::{Context, DType};
    /// assert_eq!(Context::cpu(DType::F16)?.dtype(), DType::F16);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn dtype(&self) -> DType {
        self.site.dtype
    }

    /// The context `cpu:float`.
    ///
    /// ```
    /// let context = nnrs_kernels::Context::default_cpu();
    /// assert_eq!((context.backend[0].as_str(), context.dtype()), ("cpu:float", nnrs_kernels::DType::F32));
    /// ```
    #[inline]
    pub fn default_cpu() -> Arc<Context> {
        DEFAULT.clone()
    }
}

/// For the engine.
#[doc(hidden)]
impl Context {
    fn of(dtype: DType) -> Context {
        Context {
            backend: vec![format!("cpu:{}", type_config(dtype))],
            array_class: "CpuCachedArray".into(),
            device_id: "0".into(),
            site: Site::host(dtype),
            exact: false,
        }
    }

    /// The same with type float for half types: for what lies between functions that are one to the user.
    pub fn widened(&self) -> Result<Context> {
        let wide = |b: &String| {
            let (kind, exact) = b.strip_suffix(EXACT).map_or((&b[..], ""), |kind| (kind, EXACT));
            match kind.strip_suffix("bfloat16").or_else(|| kind.strip_suffix("half")) {
                Some(device) => format!("{device}float{exact}"),
                None => b.clone(),
            }
        };
        Context::new(self.backend.iter().map(wide).collect(), self.array_class.clone(), self.device_id.clone())
    }

    /// Why the first of the candidates that this build knows was not taken, if so.
    #[inline]
    pub fn passed_over(&self) -> Option<Error> {
        self.backend.iter().find_map(|b| parse(b, &self.device_id)).and_then(Result::err)
    }

    /// Convolutions are to be done without transforms.
    #[inline]
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Where functions compute.
    #[inline]
    pub fn site(&self) -> Site {
        self.site
    }

    /// The type in which kernels compute: double for double, float for all others.
    ///
    /// ```
    /// use nnrs_kernels::{Context, DType};
    /// assert_eq!(Context::cpu(DType::F16)?.compute_dtype(), DType::F32);
    /// assert_eq!(Context::cpu(DType::F64)?.compute_dtype(), DType::F64);
    /// # Ok::<(), nnrs_kernels::Error>(())
    /// ```
    #[inline]
    pub fn compute_dtype(&self) -> DType {
        self.site.compute_dtype()
    }
}

fn unknown(backend: &[String]) -> Error {
    Error::unsupported(format!("no backend of '{}' is available in this build", backend.join("', '")))
        .function("Context")
        .argument("backend")
        .hint("this build has cpu, cudnn and cuda, each with ':float', ':half', ':bfloat16' or ':double', and on the CPU ':exact' behind it")
}

/// Behind a backend of the CPU: see [`Context::is_exact`].
const EXACT: &str = ":exact";

/// What a backend stands for, and whether it is an exact one; `None` if there is no such thing, an error if it cannot be used.
fn parse(backend: &str, device_id: &str) -> Option<Result<(Site, bool)>> {
    let (backend, exact) = backend.strip_suffix(EXACT).map_or((backend, false), |backend| (backend, true));
    let (device, kind) = backend.split_once(':').or_else(|| backend.split_once('|')).unwrap_or((backend, "float"));
    let dtype = match kind {
        "float" => DType::F32,
        "half" => DType::F16,
        "bfloat16" => DType::BF16,
        "double" => DType::F64,
        _ => return None,
    };
    if device == "cpu" {
        return Some(Ok((Site::host(dtype), exact)));
    }
    if exact {
        return None;
    }
    let backend = inventory::iter::<Backend>.into_iter().find(|b| b.names.contains(&device))?;
    Some((backend.open)(device_id).map(|device| (Site { dtype, place: Place::Gpu(device) }, false)))
}

fn type_config(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "half",
        DType::BF16 => "bfloat16",
        DType::F64 => "double",
        _ => "float",
    }
}
