//! Writing: all structure first, then all values. The structure is made twice: its size says where the values begin.

use super::{Attribute, SIGNATURE, UNDEFINED, datatype, kind};
use nnrs_kernels::array::{Data, NdArray};
use nnrs_kernels::dtype::DType;
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::shape::Shape;
use std::collections::BTreeMap;
use std::io::Write;

/// An array to write: the names of its groups and its own with "/" between, its values, its attributes.
pub type DatasetToWrite<'a> = (String, NdArray, Vec<(&'a str, Attribute)>);

/// Objects in a node of names, and nodes in a node of the tree: HDF5's usual numbers.
const NAMES: usize = 8;
const CHILDREN: usize = 32;

/// Writes a file.
///
/// # Errors
/// A name is also a group of another; it cannot be written.
pub fn write(to: &mut impl Write, datasets: &[DatasetToWrite]) -> Result<()> {
    let contents = datasets.iter().map(|(_, a, _)| plain(a)).collect::<Result<Vec<Data>>>()?;
    let mut root = GroupToWrite::default();
    for (i, (name, ..)) in datasets.iter().enumerate() {
        root.add(name, i)?;
    }
    let layout = |start: usize| Structure::of(&root, datasets, &contents, start);
    let structure = layout(layout(0).bytes.len());
    to.write_all(&structure.bytes)?;
    for data in &contents {
        let bytes = data.bytes_mut();
        to.write_all(bytes)?;
        to.write_all(&[0; 8][..padding(bytes.len())])?;
    }
    Ok(())
}

fn padding(n: usize) -> usize {
    n.next_multiple_of(8) - n
}

/// Values in a type that HDF5 has: each bfloat16 is a float.
fn plain(array: &NdArray) -> Result<Data> {
    let dtype = if array.dtype() == DType::BF16 { DType::F32 } else { array.dtype() };
    array.read(dtype)
}

#[derive(Default)]
struct GroupToWrite {
    groups: BTreeMap<String, GroupToWrite>,
    datasets: BTreeMap<String, usize>,
}

impl GroupToWrite {
    fn add(&mut self, name: &str, dataset: usize) -> Result<()> {
        let clash = || Error::arg("name", "names that are no groups of other ones").actual(name);
        let mut parts: Vec<&str> = name.split('/').filter(|p| !p.is_empty()).collect();
        let last = parts.pop().ok_or_else(clash)?;
        let mut group = self;
        for part in parts {
            if group.datasets.contains_key(part) {
                return Err(clash());
            }
            group = group.groups.entry(part.to_string()).or_default();
        }
        if group.groups.contains_key(last) || group.datasets.insert(last.to_string(), dataset).is_some() {
            return Err(clash());
        }
        Ok(())
    }
}

/// Where the parts of a group are.
#[derive(Clone, Copy)]
struct GroupAt {
    header: u64,
    tree: u64,
    heap: u64,
}

struct Structure {
    bytes: Vec<u8>,
    /// Where the values of each array are.
    values: Vec<u64>,
}

impl Structure {
    fn of(root: &GroupToWrite, datasets: &[DatasetToWrite], contents: &[Data], start: usize) -> Structure {
        let mut end = start as u64;
        let place = |data: &Data| {
            let (n, here) = (data.bytes_mut().len(), end);
            end += (n + padding(n)) as u64;
            if n == 0 { UNDEFINED } else { here }
        };
        let values = contents.iter().map(place).collect();
        let mut s = Structure { bytes: vec![0; 96], values };
        let at = s.group(root, datasets, contents);
        s.superblock(at, end);
        s
    }

    fn here(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn put(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|p| self.bytes.extend_from_slice(p));
    }

    fn numbers(&mut self, list: &[u64]) {
        list.iter().for_each(|n| self.put(&[&n.to_le_bytes()]));
    }

    fn superblock(&mut self, root: GroupAt, end: u64) {
        let tail = std::mem::take(&mut self.bytes).split_off(96);
        self.put(&[&SIGNATURE, &[0, 0, 0, 0, 0, 8, 8, 0]]);
        self.put(&[&[NAMES as u8 / 2, 0, CHILDREN as u8 / 2, 0, 0, 0, 0, 0]]);
        self.numbers(&[0, UNDEFINED, end, UNDEFINED]);
        // The entry of the root: where its tree and names are is noted beside it.
        self.numbers(&[0, root.header, 1, root.tree, root.heap]);
        self.put(&[&tail]);
    }

    /// Writes what a group has, then the group.
    fn group(&mut self, group: &GroupToWrite, datasets: &[DatasetToWrite], contents: &[Data]) -> GroupAt {
        let mut members: BTreeMap<&str, (u64, Option<GroupAt>)> = BTreeMap::new();
        for (name, inner) in &group.groups {
            let at = self.group(inner, datasets, contents);
            members.insert(name, (at.header, Some(at)));
        }
        for (name, i) in &group.datasets {
            let (_, array, attributes) = &datasets[*i];
            members
                .insert(name, (self.dataset(&array.shape(), contents[*i].dtype(), self.values[*i], attributes), None));
        }
        let (heap, names) = self.heap(members.keys());
        let nodes = self.names(&members.values().copied().zip(names).collect::<Vec<_>>());
        let tree = self.tree(nodes);
        let header = self.here();
        self.header(&[(kind::SYMBOL_TABLE, [tree.to_le_bytes(), heap.to_le_bytes()].concat())]);
        GroupAt { header, tree, heap }
    }

    /// The names of a group's objects; where each is among them.
    fn heap<'a>(&mut self, names: impl Iterator<Item = &'a &'a str>) -> (u64, Vec<u64>) {
        let (mut data, mut at) = (vec![0u8; 8], Vec::new());
        for name in names {
            at.push(data.len() as u64);
            data.extend_from_slice(name.as_bytes());
            data.resize((data.len() + 1).next_multiple_of(8), 0);
        }
        let heap = self.here();
        self.put(&[b"HEAP\0\0\0\0"]);
        self.numbers(&[data.len() as u64, 1, heap + 32]); // 1: nothing is free
        self.put(&[&data]);
        (heap, at)
    }

    /// Nodes of names, each with the place of its last name.
    fn names(&mut self, members: &[((u64, Option<GroupAt>), u64)]) -> Vec<(u64, u64)> {
        let mut nodes = Vec::new();
        for part in members.chunks(NAMES) {
            nodes.push((self.here(), part.last().map_or(0, |(_, name)| *name)));
            self.put(&[b"SNOD\x01\0", &(part.len() as u16).to_le_bytes()]);
            for ((header, group), name) in part {
                let noted = group.map_or([0; 3], |g| [1, g.tree, g.heap]);
                self.numbers(&[*name, *header, noted[0], noted[1], noted[2]]);
            }
            self.bytes.resize(self.bytes.len() + 40 * (NAMES - part.len()), 0);
        }
        nodes
    }

    /// The tree over nodes of names; each key is the last name on its left.
    fn tree(&mut self, mut nodes: Vec<(u64, u64)>) -> u64 {
        let mut level = 0u8;
        loop {
            let mut above = Vec::new();
            let (start, size) = (self.here(), 24 + 16 * CHILDREN as u64 + 8);
            let parts = nodes.len().div_ceil(CHILDREN).max(1);
            let beside = |i: usize| if i < parts { start + size * i as u64 } else { UNDEFINED };
            let mut left = 0;
            for i in 0..parts {
                let part = &nodes[i * CHILDREN..nodes.len().min((i + 1) * CHILDREN)];
                let here = self.here();
                self.put(&[b"TREE\0", &[level], &(part.len() as u16).to_le_bytes()]);
                self.numbers(&[beside(i.wrapping_sub(1)), beside(i + 1), left]);
                part.iter().for_each(|(child, last)| self.numbers(&[*child, *last]));
                self.bytes.resize((here + size) as usize, 0);
                left = part.last().map_or(0, |(_, last)| *last);
                above.push((here, left));
            }
            if above.len() == 1 {
                return above[0].0;
            }
            (nodes, level) = (above, level + 1);
        }
    }

    fn dataset(&mut self, shape: &Shape, dtype: DType, values: u64, attributes: &[(&str, Attribute)]) -> u64 {
        let bytes = (shape.size() * dtype.size()) as u64;
        let layout = [&[3, 1][..], &values.to_le_bytes(), &bytes.to_le_bytes()].concat();
        let mut messages = vec![
            (kind::DATASPACE, dataspace(shape)),
            (kind::DATATYPE, datatype::write(dtype)),
            (kind::FILL_VALUE, vec![2, 2, 2, 0]),
            (kind::LAYOUT, layout),
        ];
        messages.extend(attributes.iter().map(|(name, value)| (kind::ATTRIBUTE, attribute(name, *value))));
        let here = self.here();
        self.header(&messages);
        here
    }

    fn header(&mut self, messages: &[(u16, Vec<u8>)]) {
        let padded = |data: &Vec<u8>| data.len().next_multiple_of(8);
        let size: usize = messages.iter().map(|(_, data)| 8 + padded(data)).sum();
        self.put(&[&[1, 0], &(messages.len() as u16).to_le_bytes(), &1u32.to_le_bytes(), &(size as u32).to_le_bytes()]);
        self.put(&[&[0; 4]]);
        for (kind, data) in messages {
            self.put(&[&kind.to_le_bytes(), &(padded(data) as u16).to_le_bytes(), &[0; 4], data]);
            self.bytes.resize(self.bytes.len() + padded(data) - data.len(), 0);
        }
    }
}

fn dataspace(shape: &Shape) -> Vec<u8> {
    let mut to = vec![1, shape.ndim() as u8, 0, 0, 0, 0, 0, 0];
    shape.iter().for_each(|n| to.extend((*n as u64).to_le_bytes()));
    to
}

fn attribute(name: &str, value: Attribute) -> Vec<u8> {
    let (dtype, bytes) = match value {
        Attribute::Flag(flag) => (DType::Bool, vec![flag.into()]),
        Attribute::Int(n) => (DType::I64, n.to_le_bytes().to_vec()),
    };
    let (kind, space) = (datatype::write(dtype), dataspace(&Shape::from([])));
    let sizes = [name.len() + 1, kind.len(), space.len()].map(|n| (n as u16).to_le_bytes()).concat();
    let mut to = [&[1, 0][..], &sizes, name.as_bytes(), &[0]].concat();
    to.resize(to.len().next_multiple_of(8), 0);
    for part in [kind, space, bytes] {
        to.extend(part);
        to.resize(to.len().next_multiple_of(8), 0);
    }
    to
}
