//! The one error type: which function and argument, what was expected, what came, and what to do.

use std::any::Any;
use std::fmt;

/// What went wrong, as a caller may want to tell apart.
///
/// ```
/// use nnrs_kernels::{ErrorKind, NdArray};
/// let error = NdArray::from_slice(&[1.0f32], [2].into()).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Shape);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes do not fit. Python: ValueError.
    Shape,
    /// Element types do not fit. Python: TypeError.
    Dtype,
    /// A bad value of an argument. Python: ValueError.
    Argument,
    /// An argument of the wrong type. Python: TypeError.
    Type,
    /// Memory is used up or its limit is reached. Python: MemoryError.
    OutOfMemory,
    /// The graph is not in a state that allows this. Python: RuntimeError.
    Graph,
    /// A parameter is missing or does not fit. Python: ValueError.
    Parameter,
    /// A file's content is not what it should be. Python: ValueError.
    Format,
    /// A file cannot be read or written. Python: OSError.
    Io,
    /// Not available here. Python: RuntimeError.
    Unsupported,
    /// A GPU has failed. Python: RuntimeError.
    Device,
    /// Processes that cannot work together, or one of them that is missing. Python: RuntimeError.
    Communicator,
    /// Ctrl-C, or an error of the user's own code that is carried through.
    External,
}

/// `Result` with [`Error`].
///
/// ```
/// fn half(n: i64) -> nnrs_kernels::Result<i64> {
///     if n % 2 == 0 { Ok(n / 2) } else { Err(nnrs_kernels::Error::arg("n", "an even number").actual(n)) }
/// }
/// assert_eq!((half(4)?, half(3).is_err()), (2, true));
/// # Ok::<(), nnrs_kernels::Error>(())
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of nnrs: the function and the argument by their names, what was expected, what came, and what to do. One
/// pointer wide.
///
/// ```
/// let error = nnrs_kernels::Error::shape("weight", "2 dimensions").actual("(2, 3, 4)").function("affine").hint("reshape it");
/// assert_eq!(
///     error.to_string(),
///     "affine: argument 'weight': expected 2 dimensions, got (2, 3, 4)\n  hint: reshape it"
/// );
/// ```
pub struct Error(Box<ErrorFields>);

struct ErrorFields {
    kind: ErrorKind,
    function: Option<String>,
    /// The function within that one that failed.
    part: Option<String>,
    argument: Option<String>,
    expected: String,
    actual: Option<String>,
    inputs: Option<String>,
    hint: Option<String>,
    origin: Option<String>,
    payload: Option<Box<dyn Any + Send + Sync>>,
}

impl Error {
    /// An error that says what was expected (or, for kinds without an expectation, what happened).
    ///
    /// ```
    /// use nnrs_kernels::{Error, ErrorKind};
    /// let error = Error::new(ErrorKind::Io, "the disk is full");
    /// assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Io, "the disk is full"));
    /// ```
    pub fn new(kind: ErrorKind, expected: impl Into<String>) -> Error {
        Error(Box::new(ErrorFields {
            kind,
            function: None,
            part: None,
            argument: None,
            expected: expected.into(),
            actual: None,
            inputs: None,
            hint: None,
            origin: None,
            payload: None,
        }))
    }

    /// Shape error about argument `arg`; say what was expected: `Error::shape("weight", "2 dimensions")`.
    ///
    /// ```
    /// let error = nnrs_kernels::Error::shape("weight", "2 dimensions").actual(3);
    /// assert_eq!(error.to_string(), "argument 'weight': expected 2 dimensions, got 3");
    /// assert_eq!(error.kind(), nnrs_kernels::ErrorKind::Shape);
    /// ```
    pub fn shape(arg: &str, expected: impl Into<String>) -> Error {
        Error::new(ErrorKind::Shape, expected).argument(arg)
    }

    /// Error about the value of argument `arg`.
    ///
    /// ```
    /// let error = nnrs_kernels::Error::arg("axis", "an axis between 0 and 2").actual(5);
    /// assert_eq!(error.to_string(), "argument 'axis': expected an axis between 0 and 2, got 5");
    /// assert_eq!(error.kind(), nnrs_kernels::ErrorKind::Argument);
    /// ```
    pub fn arg(arg: &str, expected: impl Into<String>) -> Error {
        Error::new(ErrorKind::Argument, expected).argument(arg)
    }

    /// The graph is not in a state that allows this.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::Error::graph("it was not computed yet").kind(), nnrs_kernels::ErrorKind::Graph);
    /// ```
    pub fn graph(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Graph, what)
    }

    /// Not available here.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::Error::unsupported("no GPU here").kind(), nnrs_kernels::ErrorKind::Unsupported);
    /// ```
    pub fn unsupported(what: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, what)
    }

    /// An error of user code (a Python exception, say) that passes through the engine.
    ///
    /// ```
    /// let error = nnrs_kernels::Error::external(Box::new(7), "the user's callback failed");
    /// assert_eq!((error.kind(), error.to_string().as_str()), (nnrs_kernels::ErrorKind::External, "the user's callback failed"));
    /// ```
    pub fn external(payload: Box<dyn Any + Send + Sync>, what: impl Into<String>) -> Error {
        let mut e = Error::new(ErrorKind::External, what);
        e.0.payload = Some(payload);
        e
    }

    /// The argument that is wrong, by its name.
    ///
    /// ```
    /// let error = nnrs_kernels::Error::new(nnrs_kernels::ErrorKind::Type, "expected a list").argument("axes");
    /// assert_eq!(error.to_string(), "argument 'axes': expected a list");
    /// ```
    pub fn argument(mut self, arg: &str) -> Error {
        self.0.argument = Some(arg.to_string());
        self
    }

    /// What came instead of what was expected.
    ///
    /// ```
    /// let error = nnrs_kernels::Error::arg("p", "a number below 1").actual(2.5);
    /// assert_eq!(error.to_string(), "argument 'p': expected a number below 1, got 2.5");
    /// ```
    pub fn actual(mut self, actual: impl fmt::Display) -> Error {
        self.0.actual = Some(actual.to_string());
        self
    }

    /// An index or label that came; what a float became that is none (NaN, infinite, too large) is called so.
    ///
    /// ```
    /// let error = |i| nnrs_kernels::Error::arg("x", "an index below 3").actual_index(i).to_string();
    /// assert!(error(7).ends_with("got 7") && error(i64::MIN).contains("a number that is no index"));
    /// ```
    pub fn actual_index(self, i: i64) -> Error {
        match i {
            i64::MIN | i64::MAX => self.actual("a number that is no index (NaN, infinite or too large)"),
            i => self.actual(i),
        }
    }

    /// What the reader may do about it.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::Error::graph("no data").hint("call forward").to_string(), "no data\n  hint: call forward");
    /// ```
    pub fn hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// The function, by its Python name; the engine fills it in if the function did not.
    ///
    /// ```
    /// let error = nnrs_kernels::Error::graph("no data").function("affine").function("the engine");
    /// assert_eq!(error.to_string(), "affine: no data");
    /// ```
    pub fn function(mut self, name: impl Into<String>) -> Error {
        self.0.function.get_or_insert(name.into());
        self
    }

    /// The error of a part of `whole`, a function that was called and is made of others, as an error of `whole`: a wrong
    /// argument that `whole` has too is told as its own, another one as the part's.
    ///
    /// ```
    /// let part = || nnrs_kernels::Error::arg("p", "a number below 1").actual(2).function("dropout");
    /// assert_eq!(part().part_of("attend", |_| false).to_string(), "attend: in dropout: argument 'p': expected a number below 1, got 2");
    /// assert_eq!(part().part_of("attend", |p| p == "p").to_string(), "attend: argument 'p': expected a number below 1, got 2");
    /// ```
    pub fn part_of(mut self, whole: &str, is_own: impl Fn(&str) -> bool) -> Error {
        let e = &mut *self.0;
        let part = e.function.replace(whole.into()).filter(|part| part != whole);
        if !e.argument.as_deref().is_some_and(is_own) {
            e.part = e.part.take().or(part);
        }
        self
    }

    /// The argument that makes a result larger than memory, if the error is about that and names none.
    #[doc(hidden)]
    pub fn too_large_by(mut self, arg: Option<&str>) -> Error {
        if self.0.expected == super::shape::FITS && self.0.argument.is_none() {
            self.0.argument = arg.map(str::to_string);
        }
        self
    }

    /// All inputs with shapes and types; the engine fills it in.
    ///
    /// ```
    /// let error = nnrs_kernels::Error::graph("no data").inputs("x (2, 3) float32");
    /// assert_eq!(error.to_string(), "no data\n  inputs: x (2, 3) float32");
    /// ```
    pub fn inputs(mut self, inputs: impl Into<String>) -> Error {
        self.0.inputs.get_or_insert(inputs.into());
        self
    }

    /// The script line that made the node; the engine fills it in.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::Error::graph("no data").origin("train.py:7").to_string(), "no data\n  made at: train.py:7");
    /// ```
    pub fn origin(mut self, origin: impl Into<String>) -> Error {
        self.0.origin.get_or_insert(origin.into());
        self
    }

    /// What went wrong, in one word.
    ///
    /// ```
    /// assert_eq!(nnrs_kernels::Error::arg("axis", "an axis").kind(), nnrs_kernels::ErrorKind::Argument);
    /// ```
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// True if memory was used up or its limit was reached.
    ///
    /// ```
    /// use nnrs_kernels::{Error, ErrorKind};
    /// assert!(Error::new(ErrorKind::OutOfMemory, "no memory").is_out_of_memory() && !Error::graph("").is_out_of_memory());
    /// ```
    pub fn is_out_of_memory(&self) -> bool {
        self.0.kind == ErrorKind::OutOfMemory
    }

    /// The user code's own error, if this carries one.
    ///
    /// # Errors
    /// This error itself, if not.
    ///
    /// ```
    /// use nnrs_kernels::Error;
    /// assert_eq!(Error::external(Box::new(7), "user code").into_payload()?.downcast_ref::<i32>(), Some(&7));
    /// assert_eq!(Error::graph("no data").into_payload().unwrap_err().to_string(), "no data");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn into_payload(self) -> Result<Box<dyn Any + Send + Sync>> {
        let mut inner = self.0;
        match inner.payload.take() {
            Some(p) => Ok(p),
            None => Err(Error(inner)),
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(e: std::io::Error) -> Error {
        Error::new(ErrorKind::Io, e.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let e = &*self.0;
        if let Some(name) = &e.function {
            write!(f, "{name}: ")?;
        }
        if let Some(part) = &e.part {
            write!(f, "in {part}: ")?;
        }
        if let Some(arg) = &e.argument {
            write!(f, "argument '{arg}': ")?;
        }
        match &e.actual {
            Some(actual) => write!(f, "expected {}, got {actual}", e.expected)?,
            None => f.write_str(&e.expected)?,
        }
        if let Some(inputs) = &e.inputs {
            write!(f, "\n  inputs: {inputs}")?;
        }
        if let Some(hint) = &e.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        if let Some(origin) = &e.origin {
            write!(f, "\n  made at: {origin}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({self})", self.0.kind)
    }
}

impl std::error::Error for Error {}
