//! A network of a file as a graph: functions in the order of what they read, applied to variables by name.

use super::message::{Message, broken};
use super::{arguments, composed, initial};
use crate::function::{self, ArgValue, Args};
use crate::graph::{self, Variable};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use std::collections::{HashMap, HashSet};

/// How [`build`] makes a graph.
pub(crate) struct Build<'a> {
    /// What the network is of, for messages.
    pub file: &'a str,
    /// Takes the place of each size that the file leaves open; `None`: as the file says.
    pub batch_size: Option<i64>,
    /// The parameter of this name, if there is one.
    pub parameter: &'a dyn Fn(&str) -> Option<Variable>,
    /// The variable that is taken for one of the network.
    pub given: &'a dyn Fn(&str) -> Option<Variable>,
    /// Whether the parameter of this name is not to be trained.
    pub frozen: &'a dyn Fn(&str) -> bool,
}

/// A network as a graph, its variables by name.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Variables that no function makes and some function reads; to be filled.
    pub inputs: Vec<(String, Variable)>,
    /// Variables that a function makes and no function reads.
    pub outputs: Vec<(String, Variable)>,
    /// All variables that are no parameters.
    pub variables: Vec<(String, Variable)>,
    /// The parameters.
    pub parameters: Vec<(String, Variable)>,
}

impl Network {
    /// The input of this name.
    ///
    /// # Errors
    /// There is none; the error lists those that there are.
    pub fn input(&self, name: &str) -> Result<&Variable> {
        pick(&self.inputs, name, "inputs")
    }

    /// The output of this name.
    ///
    /// # Errors
    /// As [`Network::input`].
    pub fn output(&self, name: &str) -> Result<&Variable> {
        pick(&self.outputs, name, "outputs")
    }

    /// The variable or parameter of this name.
    ///
    /// # Errors
    /// As [`Network::input`].
    pub fn variable(&self, name: &str) -> Result<&Variable> {
        let parameter = self.parameters.iter().find(|(n, _)| n == name).map(|(_, v)| v);
        parameter.map_or_else(|| pick(&self.variables, name, "variables"), Ok)
    }
}

fn pick<'a>(list: &'a [(String, Variable)], name: &str, what: &str) -> Result<&'a Variable> {
    let names = || list.iter().take(20).map(|(n, _)| n.as_str()).collect::<Vec<_>>().join(", ");
    let unknown = || Error::arg("name", format!("one of the {what} {}", names())).actual(name);
    list.iter().find(|(n, _)| n == name).map(|(_, v)| v).ok_or_else(unknown)
}

/// The messages of a network by name, and who makes and reads each variable.
pub(crate) struct Wiring<'a> {
    pub variables: HashMap<&'a str, &'a Message>,
    /// The function that makes a variable.
    pub makers: HashMap<&'a str, usize>,
    pub read: HashSet<&'a str>,
}

impl<'a> Wiring<'a> {
    pub fn of(network: &'a Message) -> Result<Wiring<'a>> {
        let variables = network.list("variable").iter().map(|v| (v.text("name"), v)).collect();
        let mut wiring = Wiring { variables, makers: HashMap::new(), read: HashSet::new() };
        for (i, f) in network.list("function").iter().enumerate() {
            for name in f.texts("output") {
                if wiring.makers.insert(name, i).is_some() {
                    return Err(broken(format!("two functions make the variable '{name}'")));
                }
            }
            wiring.read.extend(f.texts("input").iter().map(String::as_str));
            let unknown =
                f.texts("input").iter().chain(f.texts("output")).find(|n| !wiring.variables.contains_key(n.as_str()));
            if let Some(name) = unknown {
                return Err(broken(format!("function '{}' has the unknown variable '{name}'", f.text("name"))));
            }
        }
        Ok(wiring)
    }

    pub fn is_parameter(&self, name: &str) -> bool {
        self.variables.get(name).is_some_and(|v| v.text("type") == "Parameter")
    }

    pub fn is_input(&self, name: &str) -> bool {
        !self.is_parameter(name) && !self.makers.contains_key(name) && self.read.contains(name)
    }

    pub fn is_output(&self, name: &str) -> bool {
        !self.is_parameter(name) && self.makers.contains_key(name) && !self.read.contains(name)
    }
}

/// The functions, each behind those whose outputs it reads; else in the order of the file.
pub(crate) fn order(network: &Message, wiring: &Wiring) -> Result<Vec<usize>> {
    let functions = network.list("function");
    let mut state = vec![0u8; functions.len()]; // 1: its inputs are being ordered; 2: done
    let mut ordered = Vec::new();
    for first in 0..functions.len() {
        let mut todo = vec![first];
        while let Some(&i) = todo.last() {
            if state[i] == 2 {
                todo.pop();
                continue;
            }
            let makers = functions[i].texts("input").iter().filter_map(|n| wiring.makers.get(n.as_str()));
            let open: Vec<usize> = makers.copied().filter(|m| state[*m] != 2).collect();
            if open.is_empty() {
                state[i] = 2;
                ordered.push(i);
                todo.pop();
            } else if state[i] == 1 {
                return Err(broken(format!(
                    "function '{}' reads what follows from its own output",
                    functions[i].text("name")
                )));
            } else {
                state[i] = 1;
                todo.extend(open.into_iter().rev());
            }
        }
    }
    Ok(ordered)
}

/// Makes the graph.
///
/// # Errors
/// `Format` where the network contradicts itself; `Unsupported` for functions that nnrs does not have; what the functions
/// say where arguments and shapes do not fit.
pub(crate) fn build(network: &Message, how: &Build) -> Result<Network> {
    let named = |e: Error| e.function(format!("network '{}'", network.text("name")));
    let wiring = Wiring::of(network).map_err(named)?;
    let batch_size = how.batch_size.unwrap_or(network.int("batch_size"));
    let mut made: HashMap<&str, Variable> = HashMap::new();
    for variable in network.list("variable") {
        let name = variable.text("name");
        let mut v = match (wiring.is_parameter(name), (how.given)(name)) {
            (_, Some(given)) => given,
            (true, None) => parameter(variable, how).map_err(named)?,
            (false, None) if wiring.is_input(name) => input(variable, batch_size).map_err(named)?,
            _ => continue,
        };
        if wiring.is_parameter(name) && (how.frozen)(name) {
            v = v.unlinked_with(Some(false));
        }
        v.set_name(name);
        made.insert(name, v);
    }
    for i in order(network, &wiring).map_err(named)? {
        let f = &network.list("function")[i];
        let place = || {
            let [function, network] = [f, network].map(|m| m.text("name"));
            format!("it is function '{function}' of network '{network}' of {}", how.file)
        };
        let outputs = apply(f, &made, &wiring, batch_size).map_err(|e| e.hint(place()))?;
        for (name, y) in f.texts("output").iter().zip(outputs) {
            if !(how.given)(name).is_some_and(|_| made.contains_key(name.as_str())) {
                y.set_name(name);
                made.insert(name, y);
            }
        }
    }
    let named = |keep: &dyn Fn(&str) -> bool| {
        let names = network.list("variable").iter().map(|v| v.text("name"));
        names.filter(|n| keep(n)).filter_map(|n| Some((n.to_string(), made.get(n)?.clone()))).collect()
    };
    Ok(Network {
        inputs: named(&|n| wiring.is_input(n)),
        outputs: named(&|n| wiring.is_output(n)),
        variables: named(&|n| !wiring.is_parameter(n)),
        parameters: named(&|n| wiring.is_parameter(n)),
    })
}

/// A shape of the file; sizes below 1 are the batch's.
fn shape_of(variable: &Message, batch_size: i64) -> Result<Shape> {
    let size = |d: &i64| {
        let n = if *d >= 1 { *d } else { batch_size };
        usize::try_from(n).map_err(|_| {
            Error::arg("batch_size", "the number of samples, since the network leaves it open").actual(batch_size)
        })
    };
    let sizes = variable.sizes("shape").iter().map(size).collect::<Result<Vec<usize>>>()?;
    Shape::from(sizes).checked()
}

fn input(variable: &Message, batch_size: i64) -> Result<Variable> {
    let shape = shape_of(variable, batch_size)?;
    match initial::values(variable, &shape)? {
        Some(values) => Ok(Variable::from_array(values).with_need_grad(true)),
        None => Ok(Variable::new(shape)),
    }
}

fn parameter(variable: &Message, how: &Build) -> Result<Variable> {
    let name = variable.text("name");
    let sizes = variable.sizes("shape");
    let known = |n: &i64| usize::try_from(*n).map_err(|_| broken(format!("parameter '{name}' has the size {n}")));
    let shape = Shape::from(sizes.iter().map(known).collect::<Result<Vec<usize>>>()?).checked()?;
    if let Some(v) = (how.parameter)(name) {
        return match v.shape() == shape {
            true => Ok(v),
            false => Err(broken(format!("parameter '{name}' has shape {}, but the network wants {shape}", v.shape()))),
        };
    }
    let v = match initial::values(variable, &shape)? {
        Some(values) => Variable::from_array(values),
        None => {
            let v = Variable::new(shape);
            v.raw_data().zero()?;
            v
        }
    };
    Ok(v.with_need_grad(true))
}

fn apply(f: &Message, made: &HashMap<&str, Variable>, wiring: &Wiring, batch_size: i64) -> Result<Vec<Variable>> {
    let unmade = |n: &String| broken(format!("variable '{n}' is read, but has no values"));
    let inputs = f.texts("input").iter().map(|n| made.get(n.as_str()).ok_or_else(|| unmade(n)));
    let inputs = inputs.collect::<Result<Vec<&Variable>>>()?;
    let (kind, outputs) = (f.text("type"), f.texts("output").len());
    let several = composed::apply(f, &inputs);
    let y = several.unwrap_or_else(|| registered(f, &inputs, wiring, batch_size))?;
    match outputs <= y.len() {
        true => Ok(y),
        false => Err(broken(format!("{kind} has {} outputs, the file says {outputs}", y.len()))),
    }
}

/// Applies a function that is one here, too.
fn registered(f: &Message, inputs: &[&Variable], wiring: &Wiring, batch_size: i64) -> Result<Vec<Variable>> {
    let kind = f.text("type");
    let unknown = || Error::unsupported(format!("nnrs has no function '{kind}'"));
    let def = function::registry().find(|d| d.name == kind).ok_or_else(unknown)?;
    let mut arguments = arguments::read(f, def)?;
    let outputs = f.texts("output");
    for (name, value) in &mut arguments {
        open_sizes(name, value, batch_size);
    }
    if def.args.iter().any(|a| a.name == "output_stat") {
        arguments.push(("output_stat", ArgValue::Bool(outputs.len() > 1)));
    }
    arguments.extend(counted(def.args, outputs, wiring));
    let made = (def.build)(&mut Args::new(arguments)).map_err(|e| e.function(def.snake))?;
    graph::apply(made, inputs, None)
}

/// A first size of -1 in a `shape` is the batch's.
fn open_sizes(name: &str, value: &mut ArgValue, batch_size: i64) {
    if let ("shape", ArgValue::Ints(sizes)) = (name, value)
        && sizes.first() == Some(&-1)
    {
        sizes[0] = batch_size;
    }
}

/// Sizes that follow from data when a script calls the function: those that the file notes for the outputs.
fn counted(args: &[function::ArgDef], outputs: &[String], wiring: &Wiring) -> Option<(&'static str, ArgValue)> {
    let axis = |name: &str| match name {
        "rows" | "count" | "sequences" => Some(0),
        "places" => Some(1),
        _ => None,
    };
    let (name, axis) = args.iter().find_map(|a| Some((a.name, axis(a.name)?)))?;
    let shape = wiring.variables.get(outputs.first()?.as_str())?.sizes("shape");
    Some((name, ArgValue::Int(*shape.get(axis)?)))
}
