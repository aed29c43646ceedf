//! Networks with loops, as Sony's drawing tool writes them: each pass of a loop as functions of its own.

use super::message::{FieldValue, Message, broken};
use nnrs_kernels::error::Result;
use std::collections::{HashMap, HashSet};

/// Variables and functions that loops may make of a network; of names that functions have, four times as many.
const MOST: usize = 1 << 16;

/// One pass of each loop around a thing: the loop's name, the number of the pass.
type LoopPass<'a> = Vec<(&'a str, i64)>;

/// The network without loops; a copy where it has none.
///
/// # Errors
/// Loops that contradict themselves or are absurdly long.
pub(crate) fn expanded(network: &Message) -> Result<Message> {
    let loops = network.list("repeat_info");
    if loops.is_empty() {
        return Ok(network.clone());
    }
    let times: HashMap<&str, i64> = loops.iter().map(|r| (r.text("id"), r.int("times"))).collect();
    let variables = variables(network, &times)?;
    let names: HashSet<String> = variables.iter().map(|v| v.text("name").to_string()).collect();
    let expansion = Expansion { network, times: &times, names: &names };
    let (mut functions, mut names) = (Vec::new(), 0);
    for f in network.list("function") {
        for pass in passes(f.texts("repeat_id"), &times, functions.len())? {
            let Some(made) = expansion.function(f, &pass)? else { continue };
            names += made.texts("input").len() + made.texts("output").len();
            if names > 4 * MOST {
                return Err(broken(format!("its loops make more than {MOST} functions of many inputs")));
            }
            functions.push(made);
        }
    }
    let mut flat = Message::new("Network")?;
    flat.set("name", network.text("name")).set("batch_size", network.int("batch_size"));
    flat.set("variable", variables).set("function", functions);
    Ok(flat)
}

/// All passes of the loops around a thing, the innermost counting fastest.
fn passes<'a>(ids: &'a [String], times: &HashMap<&str, i64>, before: usize) -> Result<Vec<LoopPass<'a>>> {
    let mut all: Vec<LoopPass> = vec![vec![]];
    for id in ids {
        let n = *times.get(id.as_str()).ok_or_else(|| broken(format!("there is no loop '{id}'")))?;
        let count = usize::try_from(n).ok().and_then(|n| n.checked_mul(all.len())).and_then(|n| n.checked_add(before));
        if count.is_none_or(|count| count > MOST) {
            return Err(broken(format!("loop '{id}' of {n} passes makes more than {MOST} functions")));
        }
        all = all.iter().flat_map(|p| (0..n).map(|i| [&p[..], &[(id, i)]].concat())).collect();
    }
    Ok(all)
}

fn variables(network: &Message, times: &HashMap<&str, i64>) -> Result<Vec<Message>> {
    let mut found = Vec::new();
    for v in network.list("variable") {
        for pass in passes(v.texts("repeat_id"), times, found.len())? {
            let mut copy = v.clone();
            copy.set("name", variable_name(v.text("name"), &pass).as_str()).set("repeat_id", Vec::<String>::new());
            found.push(copy);
        }
    }
    Ok(found)
}

/// The name of a variable in a pass: `a{loop}/b` is `a[0]/b`, others end in `_loop[0]`.
fn variable_name(name: &str, pass: &[(&str, i64)]) -> String {
    pass.iter().fold(name.to_string(), |name, (id, i)| {
        let mark = format!("{{{id}}}");
        match name.contains(&mark) {
            true => name.replace(&mark, &format!("[{i}]")),
            false => name + &suffix(&[(id, *i)]),
        }
    })
}

fn suffix(pass: &[(&str, i64)]) -> String {
    pass.iter().map(|(id, i)| format!("_{id}[{i}]")).collect()
}

struct Expansion<'a> {
    network: &'a Message,
    times: &'a HashMap<&'a str, i64>,
    names: &'a HashSet<String>,
}

impl Expansion<'_> {
    /// The function in a pass; none for the later passes of what runs once.
    fn function(&self, f: &Message, pass: &LoopPass) -> Result<Option<Message>> {
        let (own, outer) = (suffix(pass), suffix(&pass[..pass.len().saturating_sub(1)]));
        let last = pass.last().map_or(0, |(_, i)| *i);
        let outputs: Vec<String> = f.texts("output").iter().map(|n| self.known(n, &own, "")).collect();
        let input =
            |i: usize| f.texts("input").get(i).ok_or_else(|| broken(format!("loop '{}' lacks inputs", f.text("name"))));
        let repeat = f.message("repeat_param").map_or("", |p| p.text("repeat_id"));
        let recurrent = f.message("recurrent_param");
        let id = recurrent.map_or("", |p| p.text("repeat_id"));
        let axis = recurrent.map_or(0, |p| p.int("axis"));
        let made = match f.text("type") {
            "RepeatStart" if last == 0 => plain("Identity", vec![self.known(input(0)?, "", &outer)], outputs)?,
            "RepeatStart" => {
                plain("Identity", vec![input(1)?.clone() + &outer + &suffix(&[(repeat, last - 1)])], outputs)?
            }
            "RepeatEnd" => {
                let times = self.times.get(repeat).copied().unwrap_or(0);
                plain("Identity", vec![input(0)?.clone() + &own + &suffix(&[(repeat, times - 1)])], outputs)?
            }
            "Delay" if last == 0 => plain("Identity", vec![self.known(input(1)?, "", &outer)], outputs)?,
            "Delay" => plain("Identity", vec![input(0)?.clone() + &outer + &suffix(&[(id, last - 1)])], outputs)?,
            "RecurrentInput" if last > 0 => return Ok(None),
            "RecurrentInput" => {
                let n = self.size(input(0)?, axis)?;
                let first = f.texts("output").first().cloned().unwrap_or_default() + &outer;
                let parts = (0..n).map(|i| first.clone() + &suffix(&[(id, i)])).collect();
                along("Split", axis, vec![self.known(input(0)?, "", &outer)], parts)?
            }
            "RecurrentOutput" => {
                let n = self.counted(recurrent.map_or(0, |p| p.int("length")))?;
                let parts = (0..n).map(|i| Ok(input(0)?.clone() + &own + &suffix(&[(id, i)])));
                along("Stack", axis, parts.collect::<Result<_>>()?, outputs)?
            }
            _ => {
                let mut copy = f.clone();
                let inner = |n: &String| self.known(&variable_name_within(n, pass), &own, &outer);
                let inputs: Vec<String> = f.texts("input").iter().map(inner).collect();
                copy.set("input", inputs).set("output", outputs).set("repeat_id", Vec::<String>::new());
                copy
            }
        };
        let mut made = made;
        made.set("name", (f.text("name").to_string() + &own).as_str());
        Ok(Some(made))
    }

    /// The first of `name` with one end, with the other, that is a variable; `name` with the last end if none is.
    fn known(&self, name: &str, first: &str, then: &str) -> String {
        let tries = [name.to_string(), format!("{name}{first}")];
        let preferred = if first.is_empty() { &tries[..1] } else { &tries[..] };
        let found = preferred.iter().rev().find(|n| self.names.contains(*n));
        found.cloned().unwrap_or_else(|| format!("{name}{then}"))
    }

    fn size(&self, name: &str, axis: i64) -> Result<i64> {
        let variable = self.network.list("variable").iter().find(|v| v.text("name") == name);
        let sizes = variable.map_or(&[][..], |v| v.sizes("shape"));
        let n = usize::try_from(axis).ok().and_then(|a| sizes.get(a).copied());
        self.counted(n.ok_or_else(|| broken(format!("'{name}' has no axis {axis} to repeat over")))?)
    }

    fn counted(&self, n: i64) -> Result<i64> {
        let fits = usize::try_from(n).is_ok_and(|n| n <= MOST);
        fits.then_some(n).ok_or_else(|| broken(format!("a loop of {n} passes")))
    }
}

/// Marks of loops within a name, filled in.
fn variable_name_within(name: &str, pass: &[(&str, i64)]) -> String {
    pass.iter().fold(name.to_string(), |name, (id, i)| name.replace(&format!("{{{id}}}"), &format!("[{i}]")))
}

fn plain(kind: &str, inputs: Vec<String>, outputs: Vec<String>) -> Result<Message> {
    let mut f = Message::new("Function")?;
    f.set("type", kind).set("input", inputs).set("output", outputs);
    Ok(f)
}

fn along(kind: &str, axis: i64, inputs: Vec<String>, outputs: Vec<String>) -> Result<Message> {
    let mut f = plain(kind, inputs, outputs)?;
    let mut p = Message::new(&format!("{kind}Parameter"))?;
    p.set("axis", axis);
    f.set(&format!("{}_param", kind.to_lowercase()), FieldValue::Message(p));
    Ok(f)
}
