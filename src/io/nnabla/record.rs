//! A graph as a network of a file: names as NNabla gives them, and the batch's size left open where that is asked for.

use super::message::{FieldValue, Message};
use super::{arguments, batch};
use crate::function::{ArgValue, Def};
use crate::functions::{Affine, Reshape, Transpose};
use crate::graph::{FunctionRef, Variable};
use nnrs_kernels::error::{Error, Result};
use std::collections::{HashMap, HashSet};

/// What [`record`] makes a network of.
pub struct NetworkToSave<'a> {
    /// The name of the network.
    pub name: &'a str,
    /// The samples in a batch, which another program may change where `variable_batch_size` is set.
    pub batch_size: i64,
    /// What the network computes.
    pub outputs: &'a [Variable],
    /// Names that variables get in the file.
    pub names: &'a [(String, Variable)],
    /// The parameters by name; variables that have their arrays are these.
    pub parameters: &'a [(String, Variable)],
    /// Whether the first size of each variable is left open.
    pub variable_batch_size: bool,
}

/// The functions behind the outputs as a `Network`.
///
/// # Errors
/// A function of user code; two variables of one name; a network whose batch cannot be left open.
pub fn record(save: &NetworkToSave) -> Result<Message> {
    let mut recorder = Recorder::new(save);
    let functions = functions(save.outputs)?;
    functions.iter().try_for_each(|f| recorder.function(f))?;
    if recorder.functions.is_empty() {
        // A variable without a function is all of its network.
        save.outputs.iter().for_each(|y| _ = recorder.variable(y, || "x".to_string()));
    }
    let mut network = Message::new("Network")?;
    network.set("name", save.name);
    if save.batch_size != 0 {
        network.set("batch_size", save.batch_size);
    }
    let (parameters, variables): (Vec<Message>, Vec<Message>) =
        recorder.variables.into_iter().partition(|v| v.text("type") == "Parameter");
    network.extend("variable", variables);
    network.extend("variable", parameters);
    network.extend("function", recorder.functions);
    if save.variable_batch_size { batch::open(network) } else { Ok(network) }
}

/// All functions behind some variables, each once, in the order in which they run.
fn functions(outputs: &[Variable]) -> Result<Vec<FunctionRef>> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for y in outputs {
        y.visit(|f| {
            if seen.insert(f.id()) {
                found.push(f.clone());
            }
            Ok(())
        })?;
    }
    Ok(found)
}

/// What a function is, with its arguments; without names.
///
/// # Errors
/// It is user code.
pub(crate) fn function(f: &FunctionRef) -> Result<Message> {
    let kind = f.class_name();
    let is_of_ranks = ["SyncBatchNormalization", "MeanOverRanks"].contains(&kind);
    if is_of_ranks || f.function().on_variables().is_some() {
        let (what, hint) = match is_of_ranks {
            true => (
                "a file cannot hold a batch normalization over several processes".into(),
                "build the network of the file with batch_normalization, which has the same parameters",
            ),
            false => (
                format!("'{kind}' is user code, which a file cannot hold"),
                "save the part of the network before it, or write it with functions of nnrs",
            ),
        };
        return Err(Error::unsupported(what).hint(hint));
    }
    let mut message = Message::new("Function")?;
    message.set("type", kind);
    arguments::write(&mut message, f.function().def(), &known_arguments(f))?;
    Ok(message)
}

/// The arguments of a function as NNabla has them: of `reshape` the sizes that it gives, and no argument is left open.
fn known_arguments(f: &FunctionRef) -> Vec<(&'static str, ArgValue)> {
    let axes = |v: Option<Variable>| (0..v.map_or(0, |v| v.ndim() as i64)).collect();
    let known = |(name, value): (&'static str, ArgValue)| {
        let value = match (f.class_name(), name, value) {
            ("Reshape", "shape", value) => f.outputs().first().map_or(value, |y| ArgValue::Ints(sizes(y))),
            ("TensorNormalization", "axes", ArgValue::Ints(axes)) => ArgValue::Ints(from_the_start(f, axes)),
            ("ClipGradByNorm", "axes", ArgValue::None) => ArgValue::Ints(axes(f.inputs().into_iter().next())),
            ("RoiAlign", "sampling_ratio", ArgValue::None) => ArgValue::Int(-1),
            ("PadPackedSequence", "total_length", ArgValue::None) => ArgValue::Int(-1),
            ("ONNXResize", "cubic_coeff_a", ArgValue::None) => ArgValue::Float(-0.75),
            (_, _, value) => value,
        };
        (name, value)
    };
    f.arguments().into_iter().map(known).collect()
}

/// Whether a function is a product of two matrices, and which of them are transposed before.
fn matrix_product(f: &FunctionRef) -> Option<[bool; 2]> {
    if f.class_name() != "BatchMatmul" || f.inputs().iter().any(|x| x.ndim() != 2) {
        return None;
    }
    let is_set = |name| f.arguments().contains(&(name, ArgValue::Bool(true)));
    Some([is_set("transpose_a"), is_set("transpose_b")])
}

/// A function that the file has in place of another.
fn own(kind: &str, def: &Def, args: &[(&'static str, ArgValue)]) -> Result<Message> {
    let mut message = Message::new("Function")?;
    message.set("type", kind);
    arguments::write(&mut message, def, args)?;
    Ok(message)
}

/// Axes of the first input: NNabla's loader takes none that count from the end.
fn from_the_start(f: &FunctionRef, axes: Vec<i64>) -> Vec<i64> {
    let n = f.inputs().first().map_or(0, |x| x.ndim() as i64);
    axes.into_iter().map(|axis| if axis < 0 { axis + n } else { axis }).collect()
}

fn sizes(v: &Variable) -> Vec<i64> {
    v.shape().iter().map(|n| *n as i64).collect()
}

struct Recorder<'a> {
    /// The names that variables are to have.
    named: HashMap<u64, &'a str>,
    parameters: HashMap<u64, &'a str>,
    /// The names that variables have got.
    known: HashMap<u64, String>,
    /// What comes before the names that the script does not give: `@` and the network's.
    prefix: String,
    /// How often each name was given.
    taken: HashMap<String, usize>,
    functions_taken: HashMap<String, usize>,
    variables: Vec<Message>,
    functions: Vec<Message>,
}

impl<'a> Recorder<'a> {
    fn new(save: &NetworkToSave<'a>) -> Recorder<'a> {
        let by_array = |list: &'a [(String, Variable)]| list.iter().map(|(n, v)| (v.identity(), n.as_str()));
        let mut named: HashMap<u64, &str> = by_array(save.names).collect();
        named.extend(by_array(save.parameters));
        Recorder {
            named,
            parameters: by_array(save.parameters).collect(),
            known: HashMap::new(),
            prefix: if ["", "model"].contains(&save.name) { String::new() } else { format!("@{}/", save.name) },
            taken: HashMap::new(),
            functions_taken: HashMap::new(),
            variables: Vec::new(),
            functions: Vec::new(),
        }
    }

    fn function(&mut self, f: &FunctionRef) -> Result<()> {
        let kind = f.class_name();
        if kind == "Sink" {
            return Ok(());
        }
        if let Some(transposed) = matrix_product(f) {
            return self.affine(f, transposed);
        }
        let (message, name) = (function(f)?, self.prefix.clone() + kind);
        let mut inputs = Vec::new();
        for x in f.inputs() {
            let given = self.variable(&x, || format!("{name}_in"));
            inputs.push(if kind == "BatchMatmul" && x.ndim() == 2 { self.one_matrix(&x, given)? } else { given });
        }
        let outputs = f.outputs().iter().map(|y| self.output(y, &name)).collect::<Result<_>>()?;
        self.push(message, &name, inputs, outputs);
        Ok(())
    }

    fn push(&mut self, mut message: Message, name: &str, inputs: Vec<String>, outputs: Vec<String>) {
        message.set("name", unique(&mut self.functions_taken, name).as_str());
        message.set("input", inputs).set("output", outputs);
        self.functions.push(message);
    }

    /// A product of two matrices as a layer without bias: NNabla loads no `BatchMatmul` of such.
    fn affine(&mut self, f: &FunctionRef, transposed: [bool; 2]) -> Result<()> {
        let name = self.prefix.clone() + "Affine";
        let mut inputs = Vec::with_capacity(2);
        for (x, transposed) in f.inputs().iter().zip(transposed) {
            let given = self.variable(x, || format!("{name}_in"));
            inputs.push(if transposed { self.transposed(x, given)? } else { given });
        }
        let outputs = f.outputs().iter().map(|y| self.output(y, &name)).collect::<Result<_>>()?;
        let message = own("Affine", Affine::DEF, &[("base_axis", ArgValue::Int(1))])?;
        self.push(message, &name, inputs, outputs);
        Ok(())
    }

    /// The name of a matrix's transpose, made by a function of its own.
    fn transposed(&mut self, x: &Variable, given: String) -> Result<String> {
        let message = own("Transpose", Transpose::DEF, &[("axes", ArgValue::Ints(vec![1, 0]))])?;
        self.made_of(given, message, sizes(x).into_iter().rev().collect())
    }

    /// The name of a matrix with an axis before it: NNabla's products of many matrices take no single one.
    fn one_matrix(&mut self, x: &Variable, given: String) -> Result<String> {
        let shape: Vec<i64> = std::iter::once(1).chain(sizes(x)).collect();
        let args = [("shape", ArgValue::Ints(shape.clone())), ("inplace", ArgValue::Bool(true))];
        self.made_of(given, own("Reshape", Reshape::DEF, &args)?, shape)
    }

    /// The name of what a function that only the file has makes of a variable.
    fn made_of(&mut self, given: String, function: Message, shape: Vec<i64>) -> Result<String> {
        let name = self.prefix.clone() + function.text("type");
        let made = unique(&mut self.taken, &format!("{name}_out"));
        let mut variable = Message::new("Variable")?;
        variable.set("name", made.as_str()).set("type", "Buffer").set_sizes("shape", shape)?;
        self.variables.push(variable);
        self.push(function, &name, vec![given], vec![made.clone()]);
        Ok(made)
    }

    fn output(&mut self, y: &Variable, function: &str) -> Result<String> {
        let wanted = self.named.get(&y.identity()).copied();
        if let Some(name) = wanted.filter(|n| self.taken.contains_key(*n)) {
            let e = Error::arg("names", "a name of its own for each variable").actual(format!("'{name}' twice"));
            return Err(e);
        }
        self.known.remove(&y.identity());
        Ok(self.variable(y, || format!("{function}_out")))
    }

    /// The name of a variable in the file.
    fn variable(&mut self, v: &Variable, usual: impl Fn() -> String) -> String {
        let key = v.identity();
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let name = match self.named.get(&key) {
            Some(name) => {
                self.taken.entry(name.to_string()).or_insert(1);
                name.to_string()
            }
            None => unique(&mut self.taken, &usual()),
        };
        let kind = if self.parameters.contains_key(&key) { "Parameter" } else { "Buffer" };
        if let Ok(mut message) = Message::new("Variable") {
            message.set("name", name.as_str()).set("type", kind);
            let _ = message.set_sizes("shape", sizes(v));
            self.variables.push(message);
        }
        self.known.insert(key, name.clone());
        name
    }
}

/// `prefix`, or `prefix_1` and so on where that was given before.
fn unique(taken: &mut HashMap<String, usize>, prefix: &str) -> String {
    let mut name = prefix.to_string();
    loop {
        let n = taken.entry(prefix.to_string()).or_insert(0);
        if *n > 0 {
            name = format!("{prefix}_{n}");
        }
        *n += 1;
        if name == prefix || !taken.contains_key(&name) {
            taken.entry(name.clone()).or_insert(1);
            return name;
        }
    }
}

/// A parameter with its values, as `.protobuf` and `.nntxt` hold it: floats, whatever it is here.
pub fn parameter(name: &str, v: &Variable) -> Result<Message> {
    let mut message = Message::new("Parameter")?;
    message.set("variable_name", name).set("need_grad", v.need_grad_state());
    message.set_sizes("shape", sizes(v))?;
    message.set("data", FieldValue::Floats(v.to_vec::<f32>()?));
    Ok(message)
}
