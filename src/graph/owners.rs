//! What dies with a variable or function: user code in the history that nobody else owns. A foreign garbage collector
//! (Python's) asks, to find cycles that go through the graph.

use super::FunctionRef;
use super::node::FnNode;
use super::variable::VarRef;
use crate::function::expr::ssa::MixMap;
use std::sync::Arc;

/// Where a walk starts: what the caller owns once.
pub(crate) enum Root<'a> {
    Variable(&'a VarRef),
    Function(&'a Arc<FnNode>),
}

/// The part of the graph behind a root.
#[derive(Default)]
struct Part {
    variables: Vec<VarRef>,
    functions: Vec<Arc<FnNode>>,
    /// How often each is owned within the part.
    owned: MixMap<usize, usize>,
}

/// The functions of user code that are owned by the root alone: by no other handle, graph or run.
pub(crate) fn owned_functions(root: Root) -> Vec<FunctionRef> {
    if root.is_shared() || !root.has_user_code() {
        return vec![];
    }
    let Some(part) = Part::behind(root) else { return vec![] };
    let Some(shared) = part.shared() else { return vec![] };
    let owned = |f: &&Arc<FnNode>| {
        f.function.on_variables().is_some() && !shared.contains_key(&address(f)) && Arc::strong_count(&f.function) == 1
    };
    part.functions.iter().filter(owned).cloned().map(FunctionRef::new).collect()
}

fn address<T>(a: &Arc<T>) -> usize {
    Arc::as_ptr(a) as usize
}

impl Root<'_> {
    /// Somebody else owns the root itself, and so all behind it.
    fn is_shared(&self) -> bool {
        match self {
            Root::Variable(v) => Arc::strong_count(v) > 1,
            Root::Function(f) => Arc::strong_count(f) > 1,
        }
    }

    fn has_user_code(&self) -> bool {
        match self {
            Root::Variable(v) => v.parent().is_some_and(|f| f.user_code),
            Root::Function(f) => f.user_code,
        }
    }
}

impl Part {
    /// `None` if somebody is at work on it.
    fn behind(root: Root) -> Option<Part> {
        let mut part = Part::default();
        match root {
            Root::Variable(v) => part.add_variable(v),
            Root::Function(f) => part.add_function(f),
        }
        let (mut v, mut f) = (0, 0);
        while v < part.variables.len() || f < part.functions.len() {
            if let Some(var) = part.variables.get(v).cloned() {
                v += 1;
                let links = Links::of(&var)?;
                links.variables.iter().for_each(|x| part.add_variable(x));
                links.functions.iter().for_each(|n| part.add_function(n));
            }
            if let Some(node) = part.functions.get(f).cloned() {
                f += 1;
                node.owned_variables().iter().for_each(|x| part.add_variable(x));
            }
        }
        Some(part)
    }

    fn add_variable(&mut self, v: &VarRef) {
        let times = self.owned.entry(address(v)).or_insert(0);
        *times += 1;
        if *times == 1 {
            self.variables.push(v.clone());
        }
    }

    fn add_function(&mut self, f: &Arc<FnNode>) {
        let times = self.owned.entry(address(f)).or_insert(0);
        *times += 1;
        if *times == 1 {
            self.functions.push(f.clone());
        }
    }

    /// What somebody else owns, and all that it reaches. Each node is owned once more by the lists here.
    fn shared(&self) -> Option<MixMap<usize, ()>> {
        let more = |at: usize, strong: usize| strong > self.owned.get(&at).copied().unwrap_or(0) + 1;
        let mut variables: Vec<VarRef> =
            self.variables.iter().filter(|v| more(address(v), Arc::strong_count(v))).cloned().collect();
        let mut functions: Vec<Arc<FnNode>> =
            self.functions.iter().filter(|f| more(address(f), Arc::strong_count(f))).cloned().collect();
        let mut found: MixMap<usize, ()> = MixMap::default();
        while !variables.is_empty() || !functions.is_empty() {
            if let Some(v) = variables.pop().filter(|v| found.insert(address(v), ()).is_none()) {
                let links = Links::of(&v)?;
                variables.extend(links.variables);
                functions.extend(links.functions);
            }
            if let Some(f) = functions.pop().filter(|f| found.insert(address(f), ()).is_none()) {
                variables.extend(f.owned_variables());
            }
        }
        Some(found)
    }
}

/// What a variable owns: its parent, and what the plans own that it alone has.
struct Links {
    variables: Vec<VarRef>,
    functions: Vec<Arc<FnNode>>,
}

impl Links {
    /// `None` if the variable is locked: this thread itself may hold it, when Python collects garbage.
    fn of(v: &VarRef) -> Option<Links> {
        let (parent, forward, backward) = {
            let s = v.try_lock()?;
            (s.parent.as_ref().map(|(f, _)| f.clone()), s.plans.forward.clone(), s.plans.backward.clone())
        };
        let mut links = Links { variables: vec![], functions: parent.into_iter().collect() };
        // Each plan is owned by the cache, and by the clones here.
        for p in forward.iter().filter(|p| Arc::strong_count(p) == 2) {
            links.functions.extend(p.nodes.iter().map(|n| n.f.clone()));
            links.variables.extend(p.watch.owned().cloned());
        }
        for p in backward.iter().filter(|p| Arc::strong_count(p) == 2) {
            links.functions.extend(p.nodes.iter().map(|n| n.f.clone()));
            links.variables.extend(p.owned().cloned());
        }
        Some(links)
    }
}
