//! Where parameters lie: the tree of scopes, which belongs to the process, and the place of each thread in it.
//!
//! A Rust program has lists of its own. Under Python the scopes are Python's dicts and the place is a context variable
//! (python/parameters.rs), so that both sides see the same parameters.

use crate::graph::Variable;
use crate::initializer::{Generator, Stream};
use nnrs_kernels::error::Error;
use nnrs_kernels::fork::at_fork;
use std::any::Any;
use std::cell::RefCell;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock};

/// What a scope has under a name.
#[derive(Clone)]
pub(crate) enum Item {
    Parameter(Variable),
    Scope(Scope),
}

impl Item {
    fn is(&self, other: &Item) -> bool {
        match (self, other) {
            (Item::Parameter(v), Item::Parameter(w)) => v.is(w),
            (Item::Scope(s), Item::Scope(t)) => s.address() == t.address(),
            _ => false,
        }
    }
}

pub(crate) type Scope = Arc<dyn Entries>;

/// A scope: parameters and inner scopes by name, in the order in which they were made.
pub(crate) trait Entries: Any + Send + Sync {
    fn get(&self, key: &str) -> Option<Item>;
    /// Puts `item` under `key` unless there is something already; gives what is there then. To be [`note`]d.
    fn add(self: Arc<Self>, key: &str, item: Item) -> Result<Item, Error>;
    /// Puts `item` under `key`, in place of what was there. To be [`note`]d.
    fn put(self: Arc<Self>, key: &str, item: Item) -> Result<(), Error>;
    fn remove(&self, key: &str);
    fn list(&self) -> Vec<(String, Item)>;
    /// The same for two handles of one scope.
    fn address(&self) -> usize;
    /// A new empty scope, to be put into this one.
    fn inner(&self) -> Result<Scope, Error>;
}

/// Who keeps the root, and each thread's place below it.
pub(crate) trait Tree: Send + Sync {
    fn root(&self) -> Scope;
    fn current(&self) -> Scope;
    /// Goes into a scope (`None`: the root); gives where the thread was.
    fn enter(&self, scope: Option<Scope>) -> Option<Scope>;
    /// Makes the usual initial values of layers.
    fn generator(&self) -> Arc<dyn Generator>;
}

type Undo = Box<dyn FnOnce()>;

thread_local! {
    /// How to undo what the call that is under way has changed.
    static JOURNAL: RefCell<Option<Vec<Undo>>> = const { RefCell::new(None) };
}

/// Notes how to undo a change of the tree. What another thread has put there since is to stay.
pub(crate) fn note(undo: impl FnOnce() + 'static) {
    JOURNAL.with_borrow_mut(|journal| journal.as_mut().map(|j| j.push(Box::new(undo))));
}

/// Takes out of a scope what was put there; an inner scope that others use meanwhile stays.
pub(crate) fn take_back(scope: &dyn Entries, key: &str) {
    let is_used = matches!(scope.get(key), Some(Item::Scope(inner)) if !inner.list().is_empty());
    if !is_used {
        scope.remove(key);
    }
}

/// Puts the journal of the call around back, also on a panic.
struct Journal(Option<Vec<Undo>>);

impl Journal {
    fn begin() -> Journal {
        Journal(JOURNAL.replace(Some(Vec::new())))
    }

    fn end(&mut self) -> Vec<Undo> {
        JOURNAL.replace(self.0.take()).unwrap_or_default()
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.0.take().map(|outer| JOURNAL.replace(Some(outer)));
    }
}

/// Runs `f`. If it fails, what it has changed in the tree is undone.
pub(crate) fn undoing<R, E>(f: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    let mut journal = Journal::begin();
    let result = f();
    let own = journal.end();
    match result {
        Ok(_) => drop(JOURNAL.with_borrow_mut(|outer| outer.as_mut().map(|o| o.extend(own)))),
        Err(_) => own.into_iter().rev().for_each(|undo| undo()),
    }
    result
}

static TREE: OnceLock<Box<dyn Tree>> = OnceLock::new();

/// The tree of the process.
pub(crate) fn tree() -> &'static dyn Tree {
    TREE.get().map_or(&Own, |t| t.as_ref())
}

/// Makes `tree` that of the process; the parameters that there are move to its root. What was set first stays.
#[cfg(feature = "python")]
pub(crate) fn set_tree(tree: impl Tree + 'static) -> Result<(), Error> {
    let root = tree.root();
    ROOT.list().into_iter().try_for_each(|(name, item)| root.clone().put(&name, item))?;
    let _ = TREE.set(Box::new(tree));
    Ok(())
}

pub(crate) fn current() -> Scope {
    tree().current()
}

/// The tree of a program without Python.
struct Own;

static ROOT: LazyLock<Scope> = LazyLock::new(|| Arc::new(ScopeEntries::default()));

thread_local! {
    static CURRENT: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

at_fork!(Ready, LazyLock::force(&ROOT));

impl Tree for Own {
    fn root(&self) -> Scope {
        ROOT.clone()
    }

    fn current(&self) -> Scope {
        CURRENT.with_borrow(|c| c.clone()).unwrap_or_else(|| self.root())
    }

    fn enter(&self, scope: Option<Scope>) -> Option<Scope> {
        CURRENT.replace(scope)
    }

    fn generator(&self) -> Arc<dyn Generator> {
        Arc::new(Stream)
    }
}

#[derive(Default)]
struct ScopeEntries(Mutex<Vec<(String, Item)>>);

impl ScopeEntries {
    /// Locked only while an entry goes in or out, never while other code runs.
    fn lock(&self) -> MutexGuard<'_, Vec<(String, Item)>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

fn find<'a>(list: &'a mut [(String, Item)], key: &str) -> Option<&'a mut Item> {
    list.iter_mut().find(|(k, _)| k == key).map(|(_, item)| item)
}

fn note_change(list: Arc<ScopeEntries>, key: &str, new: Item, old: Option<Item>) {
    let key = key.to_string();
    note(move || match old {
        _ if !list.get(&key).is_some_and(|there| there.is(&new)) => (),
        Some(old) => drop(list.put(&key, old)),
        None => take_back(&*list, &key),
    });
}

impl Entries for ScopeEntries {
    fn get(&self, key: &str) -> Option<Item> {
        find(&mut self.lock(), key).cloned()
    }

    fn add(self: Arc<Self>, key: &str, item: Item) -> Result<Item, Error> {
        let mut list = self.lock();
        if let Some(old) = find(&mut list, key) {
            return Ok(old.clone());
        }
        list.push((key.to_string(), item.clone()));
        drop(list);
        note_change(self, key, item.clone(), None);
        Ok(item)
    }

    fn put(self: Arc<Self>, key: &str, item: Item) -> Result<(), Error> {
        let mut list = self.lock();
        let old = match find(&mut list, key) {
            Some(old) => Some(std::mem::replace(old, item.clone())),
            None => {
                list.push((key.to_string(), item.clone()));
                None
            }
        };
        drop(list);
        note_change(self, key, item, old);
        Ok(())
    }

    fn remove(&self, key: &str) {
        let mut list = self.lock();
        let at = list.iter().position(|(k, _)| k == key);
        let gone = at.map(|i| list.remove(i));
        drop(list);
        drop(gone);
    }

    fn list(&self) -> Vec<(String, Item)> {
        self.lock().clone()
    }

    fn address(&self) -> usize {
        self as *const ScopeEntries as usize
    }

    fn inner(&self) -> Result<Scope, Error> {
        Ok(Arc::new(ScopeEntries::default()))
    }
}
