//! What dies with some handles: user code in the history, and what users keep with variables, that has no other owner. A
//! foreign garbage collector (Python's) asks for it, to find cycles that go through the graph.

use super::FunctionRef;
use super::node::FnNode;
use super::variable::{VarNode, VarRef};
use nnrs_kernels::expr::ssa::MixMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

/// A handle's variable or function, where user code is at work before it.
pub(crate) enum Root {
    Variable(Weak<VarNode>),
    Function(Weak<FnNode>),
}

/// A node in the history that may hold something of the user's.
pub(crate) enum HistoryNode {
    Function(FunctionRef),
    /// A variable with which something of the user's is kept.
    Variable(VarRef),
}

/// The nodes behind some roots that their handles own, alone or together.
#[derive(Default)]
pub(crate) struct OwnedNodes {
    pub(crate) places: Vec<HistoryNode>,
    /// For each node those that it owns in turn, by their places in the list.
    pub(crate) behind: Vec<Vec<usize>>,
    /// For each root its own place, or its function's.
    pub(crate) of: Vec<Option<usize>>,
    /// How many nodes were looked at.
    pub(crate) work: usize,
}

/// What the handles of `roots`, each with their number, own alone: no other handle, graph or run. Nothing where
/// another thread is at work on the graphs.
pub(crate) fn owned_by(roots: &[(Root, usize)]) -> OwnedNodes {
    let part = UserCodePart::behind(roots);
    let work = part.as_ref().map_or(0, |p| p.variables.len() + p.functions.len());
    let found = part.and_then(|p| Some((p.shared()?, p)));
    let owned = found.and_then(|(shared, part)| part.owned(roots, &shared)).unwrap_or_default();
    OwnedNodes { work, of: if owned.of.is_empty() { vec![None; roots.len()] } else { owned.of }, ..owned }
}

/// The part of the graphs behind the roots in which user code is at work.
#[derive(Default)]
struct UserCodePart {
    variables: Vec<VarRef>,
    functions: Vec<Arc<FnNode>>,
    /// How often each is owned by the part, and by handles.
    owned: MixMap<usize, usize>,
}

fn address<T>(a: &Arc<T>) -> usize {
    Arc::as_ptr(a) as usize
}

impl Root {
    pub(crate) fn of_variable(v: &VarRef) -> Option<Root> {
        has_user_code(v)?.then(|| Root::Variable(Arc::downgrade(v)))
    }

    pub(crate) fn of_function(f: &Arc<FnNode>) -> Option<Root> {
        f.user_code.load(Relaxed).then(|| Root::Function(Arc::downgrade(f)))
    }
}

/// Whether something of the user's is kept with a variable or before it; `None` if it is locked: this thread itself may
/// hold it, when Python collects garbage.
fn has_user_code(v: &VarNode) -> Option<bool> {
    Some(v.is_foreign() || v.try_lock()?.parent.as_ref().is_some_and(|(f, _)| f.user_code.load(Relaxed)))
}

impl UserCodePart {
    /// `None` if another thread is at work on it.
    fn behind(roots: &[(Root, usize)]) -> Option<UserCodePart> {
        let mut part = UserCodePart::default();
        for (root, handles) in roots {
            match root {
                Root::Variable(v) => part.add_variable(v.upgrade()?, *handles)?,
                Root::Function(f) => part.add_function(f.upgrade()?, *handles),
            }
        }
        let (mut v, mut f) = (0, 0);
        while v < part.variables.len() || f < part.functions.len() {
            if let Some(var) = part.variables.get(v).cloned() {
                v += 1;
                part.add(OwnedLinks::of(&var)?)?;
            }
            if let Some(node) = part.functions.get(f).cloned() {
                f += 1;
                node.owned_variables()?.into_iter().try_for_each(|x| part.add_variable(x, 1))?;
            }
        }
        Some(part)
    }

    fn add(&mut self, links: OwnedLinks) -> Option<()> {
        links.functions.into_iter().for_each(|f| self.add_function(f, 1));
        links.variables.into_iter().try_for_each(|v| self.add_variable(v, 1))
    }

    fn add_variable(&mut self, v: VarRef, times: usize) -> Option<()> {
        if !self.owned.contains_key(&address(&v)) {
            if !has_user_code(&v)? {
                return Some(());
            }
            self.variables.push(v.clone());
        }
        *self.owned.entry(address(&v)).or_insert(0) += times;
        Some(())
    }

    fn add_function(&mut self, f: Arc<FnNode>, times: usize) {
        if !f.user_code.load(Relaxed) {
            return;
        }
        let owned = self.owned.entry(address(&f)).or_insert(0);
        *owned += times;
        if *owned == times {
            self.functions.push(f);
        }
    }

    /// What has another owner, and all that it reaches. Each node is owned once more by the lists here.
    fn shared(&self) -> Option<MixMap<usize, ()>> {
        let more = |at: usize, strong: usize| strong > self.owned.get(&at).copied().unwrap_or(0) + 1;
        let mut variables: Vec<VarRef> =
            self.variables.iter().filter(|v| more(address(v), Arc::strong_count(v))).cloned().collect();
        let mut functions: Vec<Arc<FnNode>> =
            self.functions.iter().filter(|f| more(address(f), Arc::strong_count(f))).cloned().collect();
        let mut found: MixMap<usize, ()> = MixMap::default();
        while !variables.is_empty() || !functions.is_empty() {
            if let Some(v) = variables.pop().filter(|v| found.insert(address(v), ()).is_none()) {
                let links = OwnedLinks::of(&v)?;
                variables.extend(links.variables);
                functions.extend(links.functions);
            }
            if let Some(f) = functions.pop().filter(|f| found.insert(address(f), ()).is_none()) {
                variables.extend(f.owned_variables()?);
            }
        }
        Some(found)
    }

    /// The nodes that are not `shared`, and what owns them.
    fn owned(self, roots: &[(Root, usize)], shared: &MixMap<usize, ()>) -> Option<OwnedNodes> {
        let ours: Vec<Arc<FnNode>> = self.functions.into_iter().filter(|f| !shared.contains_key(&address(f))).collect();
        let is_kept = |v: &VarRef| v.is_foreign() && !shared.contains_key(&address(v));
        let kept: Vec<VarRef> = self.variables.into_iter().filter(is_kept).collect();
        let addresses = ours.iter().map(address).chain(kept.iter().map(address));
        let place: MixMap<usize, usize> = addresses.enumerate().map(|(i, at)| (at, i)).collect();
        let of_parent = |v: &VarRef| -> Option<Option<usize>> {
            let s = v.try_lock()?;
            Some(s.parent.as_ref().and_then(|(f, _)| place.get(&address(f)).copied()))
        };
        let of_variable = |v: &VarRef| match place.get(&address(v)) {
            Some(&own) => Some(Some(own)),
            None => of_parent(v),
        };
        let behind = |f: &Arc<FnNode>| -> Option<Vec<usize>> {
            let mut list = f.owned_variables()?.iter().map(of_variable).collect::<Option<Vec<_>>>()?;
            list.sort_unstable();
            list.dedup();
            Some(list.into_iter().flatten().collect())
        };
        let of = |(root, _): &(Root, usize)| match root {
            Root::Variable(v) => v.upgrade().map_or(Some(None), |v| of_variable(&v)),
            Root::Function(f) => Some(f.upgrade().and_then(|f| place.get(&address(&f)).copied())),
        };
        let before = |v: &VarRef| Some(of_parent(v)?.into_iter().collect());
        let behind = ours.iter().map(behind).chain(kept.iter().map(before)).collect::<Option<Vec<_>>>()?;
        let of = roots.iter().map(of).collect::<Option<Vec<_>>>()?;
        let functions = ours.into_iter().map(|f| HistoryNode::Function(FunctionRef::new(f)));
        let places = functions.chain(kept.into_iter().map(HistoryNode::Variable)).collect();
        Some(OwnedNodes { places, behind, of, work: 0 })
    }
}

/// What a variable owns: its parent, and what the plans own that it alone has.
struct OwnedLinks {
    variables: Vec<VarRef>,
    functions: Vec<Arc<FnNode>>,
}

impl OwnedLinks {
    /// `None` if the variable is locked.
    fn of(v: &VarRef) -> Option<OwnedLinks> {
        let (parent, forward, backward) = {
            let s = v.try_lock()?;
            (s.parent.as_ref().map(|(f, _)| f.clone()), s.plans.forward.clone(), s.plans.backward.clone())
        };
        let mut links = OwnedLinks { variables: vec![], functions: parent.into_iter().collect() };
        // Each plan is owned by the cache, and by the clones here.
        for p in forward.iter().filter(|p| Arc::strong_count(p) == 2) {
            links.functions.extend(p.nodes.iter().map(|n| &n.f).chain(p.watch.functions()).cloned());
            links.variables.extend(p.watch.owned().cloned());
        }
        for p in backward.iter().filter(|p| Arc::strong_count(p) == 2) {
            links.functions.extend(p.nodes.iter().map(|n| &n.f).chain(p.watch().functions()).cloned());
            links.variables.extend(p.watch().owned().cloned());
        }
        Some(links)
    }
}
