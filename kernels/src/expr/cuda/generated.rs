//! The source of a kernel that is compiled at run time: one formula over arrays of known types that are walked over in a
//! known way. Sizes, strides and addresses are parameters, so one kernel serves arrays of any size.
//!
//! A thread has `width` neighbouring elements, which it reads and writes by accesses of 16 bytes where it may.

mod recipe;

use super::{CudaType, value};
use crate::dtype::DType;
pub use recipe::Recipe;
use smallvec::SmallVec;
use std::fmt::Write;

/// What the kernels include.
pub const HEADER: &str = include_str!("generated.cuh");
/// The name of each kernel.
pub const NAME: &str = "generated";
/// Threads of a block.
pub const THREADS: usize = 256;
/// Instructions in one turn of a loop beyond which it is not unrolled: a processor's instruction cache holds some 8000.
const LARGE: usize = 4000;

/// How an input is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Read {
    /// Element by element, as the outputs.
    Dense(DType),
    /// One element for all.
    Splat(DType),
    /// A number of the run; there is no array.
    Number,
    Strided(BroadcastInput),
}

/// An input that broadcasts: the axes of grid number `grid` that it moves along.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BroadcastInput {
    pub dtype: DType,
    pub grid: usize,
    pub moves: SmallVec<[bool; 4]>,
    /// A thread's elements lie side by side, and may be read at once.
    pub packed: bool,
}

/// All that a kernel's source depends on beside the formula.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Form {
    pub reads: SmallVec<[Read; 4]>,
    pub writes: SmallVec<[DType; 2]>,
    /// Axes of each grid of sizes that inputs broadcast over.
    pub grids: SmallVec<[usize; 2]>,
    /// Elements of a thread: a power of two.
    pub width: usize,
    /// All dense arrays may be read and written by wide accesses.
    pub aligned: bool,
    /// A thread's elements may lie in several rows of a grid.
    pub ragged: bool,
    /// A pass over many arrays, which lie in a table; else the arrays are parameters.
    pub table: bool,
}

/// An element type in C.
fn storage(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool | DType::U8 => "unsigned char",
        DType::I8 => "signed char",
        DType::I16 => "short",
        DType::U16 => "nnrs::u16",
        DType::I32 => "int",
        DType::U32 => "nnrs::u32",
        DType::I64 => "long long",
        DType::U64 => "nnrs::u64",
        DType::F16 => "nnrs::half",
        DType::BF16 => "nnrs::bfloat16",
        DType::F32 => "float",
        DType::F64 => "double",
    }
}

impl Read {
    /// The type of the array's elements; `None` without an array.
    pub fn dtype(&self) -> Option<DType> {
        match self {
            Read::Dense(d) | Read::Splat(d) => Some(*d),
            Read::Strided(s) => Some(s.dtype),
            Read::Number => None,
        }
    }
}

/// A kernel under construction.
struct Printer<'a> {
    recipe: &'a Recipe,
    form: &'a Form,
    real: CudaType,
    rolled: bool,
    text: String,
}

macro_rules! line {
    ($p:expr, $($arg:tt)*) => {{ let _ = writeln!($p.text, $($arg)*); }};
}

/// The source of the kernel [`NAME`]. Its parameters are, for each input, its address or its number; the outputs' addresses;
/// the numbers of the run; `n`; for each axis of each grid but the first, its size with the magic number and the shift for
/// divisions by it; for each input that broadcasts, its strides along the axes that it moves along.
///
/// With a table they are: the table, how many records it has, and how many elements a chunk has. A record has 8-byte words:
/// n, the number of its first chunk, and then as above (numbers as doubles).
pub fn source(recipe: &Recipe, form: &Form) -> String {
    let value = if recipe.double { "double" } else { "float" };
    let real = CudaType { storage: value, value };
    let rolled = form.width > 1 && form.width * recipe.cost() > LARGE;
    let mut p = Printer { recipe, form, real, rolled, text: String::new() };
    line!(p, "#include \"generated.cuh\"\n");
    if form.table {
        p.table_head()
    } else {
        p.head()
    }
    p.loads();
    p.walks();
    p.elements();
    p.stores();
    p.text += "  }\n}\n";
    p.text
}

impl Printer<'_> {
    fn name(&mut self, parameters: &str) {
        line!(self, "extern \"C\" __global__ void __launch_bounds__({THREADS}) {NAME}({parameters}) {{");
    }

    fn head(&mut self) {
        let (f, value) = (self.form, self.real.value);
        let input = |(k, r): (usize, &Read)| match r.dtype() {
            Some(d) => format!("const {} *p{k}", storage(d)),
            None => format!("{value} x{k}"),
        };
        let mut list: Vec<String> = f.reads.iter().enumerate().map(input).collect();
        list.extend(f.writes.iter().enumerate().map(|(k, d)| format!("{} *q{k}", storage(*d))));
        list.extend((0..self.recipe.scalars()).map(|k| format!("{value} s{k}")));
        list.push("nnrs::u64 n".into());
        for (g, &axes) in f.grids.iter().enumerate() {
            list.extend((1..axes).flat_map(|a| ["g", "m", "h"].map(|w| format!("nnrs::u32 {w}{g}_{a}"))));
        }
        for (k, s) in self.strided() {
            list.extend(s.moves.iter().enumerate().filter(|m| *m.1).map(|(a, _)| format!("nnrs::u32 t{k}_{a}")));
        }
        self.name(&list.join(", "));
        line!(self, "  const nnrs::u64 i = (blockIdx.x * (nnrs::u64){THREADS} + threadIdx.x) * {};", f.width);
        line!(self, "  if (i < n) {{");
    }

    fn table_head(&mut self) {
        let (f, value) = (self.form, self.real.value);
        let words = 2 + f.reads.len() + f.writes.len() + self.recipe.scalars();
        self.name("const nnrs::u64 *table, int count, nnrs::u64 chunk");
        line!(self, "  const nnrs::u64 *r = nnrs::record(table, {words}, count);");
        line!(
            self,
            "  const nnrs::u64 n = r[0], from = (blockIdx.x - r[1]) * chunk, to = nnrs::least(from + chunk, n);"
        );
        let mut at = 2..;
        let mut next = || at.next().unwrap_or(0);
        for (k, r) in f.reads.iter().enumerate() {
            match r.dtype().map(storage) {
                Some(t) => line!(self, "  const {t} *p{k} = (const {t} *)r[{}];", next()),
                None => line!(self, "  const {value} x{k} = ({value})__longlong_as_double((long long)r[{}]);", next()),
            }
        }
        for (k, t) in f.writes.iter().map(|d| storage(*d)).enumerate() {
            line!(self, "  {t} *q{k} = ({t} *)r[{}];", next());
        }
        for k in 0..self.recipe.scalars() {
            line!(self, "  const {value} s{k} = ({value})__longlong_as_double((long long)r[{}]);", next());
        }
        let width = f.width;
        line!(self, "  for (nnrs::u64 i = from + threadIdx.x * {width}; i < to; i += {}) {{", THREADS * width);
    }

    /// Inputs that broadcast.
    fn strided(&self) -> Vec<(usize, &BroadcastInput)> {
        let all = self.form.reads.iter().enumerate();
        all.filter_map(|(k, r)| if let Read::Strided(s) = r { Some((k, s)) } else { None }).collect()
    }

    fn loads(&mut self) {
        let (f, value) = (self.form, self.real.value);
        for (k, r) in f.reads.iter().enumerate().filter(|(k, _)| self.recipe.reads(*k)) {
            match r {
                Read::Dense(d) => {
                    line!(self, "    nnrs::Pack<{}, {}> x{k};", storage(*d), f.width);
                    line!(self, "    x{k}.load<{}>(p{k}, i, n);", f.aligned);
                }
                Read::Splat(_) => line!(self, "    const {value} x{k} = nnrs::real<{value}>(*p{k});"),
                Read::Number | Read::Strided(_) => {}
            }
        }
    }

    /// Reads what broadcasts.
    fn walks(&mut self) {
        let width = self.form.width;
        let strided: Vec<(usize, BroadcastInput)> = self.strided().into_iter().map(|(k, s)| (k, s.clone())).collect();
        let strided: Vec<_> = strided.into_iter().filter(|(k, _)| self.recipe.reads(*k)).collect();
        if strided.is_empty() {
            return;
        }
        let ragged = self.form.ragged;
        for (k, s) in strided.iter().filter(|(_, s)| ragged || s.inside()) {
            line!(self, "    nnrs::Pack<{}, {width}> x{k};", storage(s.dtype));
        }
        if ragged {
            self.text += "#pragma unroll\n";
            line!(self, "    for (int j = 0; j < {width}; ++j) {{");
            line!(self, "    const nnrs::u32 e = (nnrs::u32)nnrs::least(i + j, n - 1);");
        } else {
            line!(self, "    const nnrs::u32 e = (nnrs::u32)(i / {width});");
        }
        (0..self.form.grids.len()).for_each(|g| self.coordinates(g));
        strided.iter().for_each(|(k, s)| self.walk(*k, s));
        if ragged {
            line!(self, "    }}");
        }
    }

    /// `c<grid>_<axis>`: where element (or pack) `e` is.
    fn coordinates(&mut self, g: usize) {
        let mut rest = "e".to_string();
        for a in (1..self.form.grids[g]).rev() {
            line!(self, "    const nnrs::u32 r{g}_{a} = nnrs::quotient({rest}, m{g}_{a}, h{g}_{a});");
            line!(self, "    const nnrs::u32 c{g}_{a} = {rest} - r{g}_{a} * g{g}_{a};");
            rest = format!("r{g}_{a}");
        }
        line!(self, "    const nnrs::u32 c{g}_0 = {rest};");
    }

    fn walk(&mut self, k: usize, s: &BroadcastInput) {
        let (f, last) = (self.form, s.moves.len() - 1);
        // Without rows that end within a pack, the last axis is counted in packs.
        let step = |a: usize| if a == last && !f.ragged { format!(" * {}", f.width) } else { String::new() };
        let term = |(a, _): (usize, &bool)| format!("c{}_{a}{} * t{k}_{a}", s.grid, step(a));
        let terms: Vec<String> = s.moves.iter().enumerate().filter(|m| *m.1).map(term).collect();
        let at = if terms.is_empty() { "0".into() } else { terms.join(" + ") };
        if f.ragged {
            line!(self, "    x{k}.v[j] = p{k}[{at}];");
        } else if !s.inside() {
            line!(self, "    const {0} x{k} = nnrs::real<{0}>(p{k}[{at}]);", self.real.value);
        } else if s.packed {
            line!(self, "    x{k}.wide(p{k} + ({at}));");
        } else {
            line!(self, "    const nnrs::u32 o{k} = {at};");
            self.text += "#pragma unroll\n";
            line!(self, "    for (int j = 0; j < {}; ++j) x{k}.v[j] = p{k}[o{k} + j * t{k}_{last}];", f.width);
        }
    }

    /// True for an input of which a thread has an element for each of its own.
    fn is_pack(&self, k: usize) -> bool {
        match &self.form.reads[k] {
            Read::Dense(_) => true,
            Read::Strided(s) => self.form.ragged || s.inside(),
            _ => false,
        }
    }

    fn elements(&mut self) {
        let (f, recipe, real, width) = (self.form, self.recipe, self.real, self.form.width);
        for (k, d) in f.writes.iter().enumerate() {
            line!(self, "    nnrs::Pack<{}, {width}> y{k};", storage(*d));
        }
        self.text += if self.rolled { "#pragma unroll 1\n" } else { "#pragma unroll\n" };
        line!(self, "    for (int j = 0; j < {width}; ++j) {{");
        let from = if self.rolled { "0" } else { "j" };
        for (id, &ins) in recipe.ins.iter().enumerate() {
            let load = |k: u32| match self.is_pack(k as usize) {
                true => format!("nnrs::real<{}>(x{k}.v[{from}])", real.value),
                false => format!("x{k}"),
            };
            let v = recipe.shorter(ins).unwrap_or_else(|| value(ins, load, real));
            line!(self, "      const {} v{id} = {v};", real.value);
        }
        self.results();
        for k in (0..f.reads.len()).filter(|k| self.rolled && recipe.reads(*k)) {
            if self.is_pack(k) {
                line!(self, "      x{k}.turn();");
            }
        }
        line!(self, "    }}");
    }

    fn results(&mut self) {
        let (f, recipe) = (self.form, self.recipe);
        let to = if self.rolled { (f.width - 1).to_string() } else { "j".into() };
        for (k, (d, id)) in f.writes.iter().zip(&recipe.outputs).enumerate() {
            if self.rolled {
                line!(self, "      y{k}.turn();");
            }
            match d {
                DType::F32 | DType::F64 => line!(self, "      y{k}.v[{to}] = ({})v{id};", storage(*d)),
                DType::F16 => line!(self, "      y{k}.v[{to}] = nnrs::to_half(nnrs::narrow(v{id}));"),
                DType::BF16 => line!(self, "      y{k}.v[{to}] = nnrs::to_bfloat16(nnrs::narrow(v{id}));"),
                _ => line!(self, "      nnrs::keep(y{k}.v, {}, {to}, (double)v{id});", *d as i32),
            }
        }
    }

    fn stores(&mut self) {
        for k in 0..self.form.writes.len() {
            line!(self, "    y{k}.store<{}>(q{k}, i, n);", self.form.aligned);
        }
    }
}

impl BroadcastInput {
    /// It moves along the last axis.
    fn inside(&self) -> bool {
        self.moves.last() == Some(&true)
    }
}
