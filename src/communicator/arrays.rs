//! Arrays as flat memory that collectives work on, and back.
//!
//! Large arrays are used where they are. Small ones are copied into one piece of memory that stays from call to call, so that
//! a hundred biases are one message. Half types are summed in float32 and rounded once, at the end.

use nnrs_kernels::array::{Data, NdArray};
use nnrs_kernels::dtype::{DType, Element};
use nnrs_kernels::error::{Error, Result};
use nnrs_kernels::with_dtype;
use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// From this many numbers on, two copies cost more than a message of its own.
pub(super) const LARGE: usize = 1 << 15;

/// Memory that stays: a piece for each use and type, as long as was ever wanted.
#[derive(Default)]
pub(super) struct KeptMemory(HashMap<(&'static str, DType), Data>);

impl KeptMemory {
    pub(super) fn get(&mut self, usage: &'static str, dtype: DType, count: usize) -> Result<Data> {
        let key = (usage, dtype);
        if self.0.get(&key).is_none_or(|d| d.len() < count) {
            self.0.remove(&key); // first: its memory may do
            self.0.insert(key, Data::new(dtype, count)?);
        }
        Ok(self.0[&key].within(0, count))
    }
}

/// The type in which an array is summed.
pub(super) fn sum_type(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        d => d,
    }
}

/// The array's own type; what is to be made again is made first, since it says which.
fn own_type(a: &NdArray) -> Result<DType> {
    a.fetch()?;
    Ok(a.dtype())
}

/// Types and shapes, as ranks compare them.
pub(super) fn described<'a>(arrays: impl IntoIterator<Item = &'a NdArray>) -> String {
    let one = |a: &NdArray| format!("{}{}", a.dtype(), a.shape());
    arrays.into_iter().map(one).collect::<Vec<_>>().join(", ")
}

/// A part of an array's memory, from one element to another, that one of several arrays is.
#[derive(Clone, Copy)]
struct MemoryPart {
    first: usize,
    end: usize,
    index: usize,
}

/// Arrays, to be found by their memory: a gradient has views, of other shapes or of a part.
pub(super) struct MemoryPlaces(HashMap<usize, Vec<MemoryPart>>);

impl MemoryPlaces {
    pub(super) fn new(arrays: &[NdArray]) -> MemoryPlaces {
        let mut found: HashMap<usize, Vec<MemoryPart>> = HashMap::new();
        for (index, a) in arrays.iter().enumerate().filter(|(_, a)| a.size() > 0) {
            let (memory, first, end) = place(a);
            found.entry(memory).or_default().push(MemoryPart { first, end, index });
        }
        found.values_mut().for_each(|parts| parts.sort_by_key(|p| (p.first, std::cmp::Reverse(p.end))));
        MemoryPlaces(found)
    }

    /// Those that are no part of another one, and the first of those that are the same part; two that share a part of each
    /// alone are an error, which says which these are.
    fn distinct(&self) -> Result<HashSet<usize>, (usize, usize)> {
        let mut kept = HashSet::new();
        for parts in self.0.values() {
            let mut last: Option<&MemoryPart> = None;
            for p in parts {
                match last {
                    Some(last) if p.end <= last.end => continue,
                    Some(last) if p.first < last.end && last.first < p.first => return Err((last.index, p.index)),
                    _ => {}
                }
                kept.insert(p.index);
                last = Some(p);
            }
        }
        Ok(kept)
    }

    /// Those that share memory with an array, where none shares any with another one of them.
    pub(super) fn meeting(&self, array: &NdArray) -> impl Iterator<Item = usize> + use<'_> {
        let (memory, first, end) = place(array);
        let parts = self.0.get(&memory).map_or(&[][..], Vec::as_slice);
        let from = parts.partition_point(|p| p.end <= first);
        parts[from..].iter().take_while(move |p| p.first < end && first < end).map(|p| p.index)
    }
}

/// Which memory an array is a part of, and from which element to which.
fn place(a: &NdArray) -> (usize, usize, usize) {
    let first = a.offset();
    (Arc::as_ptr(&a.storage()) as usize, first, first + a.size())
}

/// The arrays without those that are part of others: a sum that is made twice is another one.
pub(super) fn distinct<A: Borrow<NdArray>>(name: &str, arrays: &[A]) -> Result<Vec<NdArray>> {
    let mut seen = HashSet::new();
    let given = arrays.iter().map(<A as Borrow<NdArray>>::borrow);
    let once: Vec<NdArray> = given.filter(|a| seen.insert(a.address())).map(NdArray::handle).collect();
    let kept = MemoryPlaces::new(&once).distinct().map_err(|(a, b)| {
        let shapes = format!("ones of shapes {} and {} that overlap", once[a].shape(), once[b].shape());
        let e = Error::arg("arrays", "arrays of which none shares a part of its memory alone with another one");
        e.actual(shapes).function(format!("Communicator::{name}"))
    })?;
    Ok(once.into_iter().enumerate().filter(|(i, a)| a.size() == 0 || kept.contains(i)).map(|(_, a)| a).collect())
}

/// What goes together: small arrays of one type, each of the others alone; empty ones are left out. `inplace`: no array shall
/// be copied to others.
pub(super) fn groups(arrays: &[NdArray], inplace: bool) -> Result<Vec<FlatGroup>> {
    let (mut packed, mut alone): (Vec<FlatGroup>, Vec<FlatGroup>) = (Vec::new(), Vec::new());
    for a in arrays.iter().filter(|a| a.size() > 0) {
        let dtype = sum_type(own_type(a)?);
        if inplace || a.size() >= LARGE {
            alone.push(FlatGroup { dtype, arrays: vec![a.clone()] });
        } else if let Some(there) = packed.iter_mut().find(|g| g.dtype == dtype) {
            there.arrays.push(a.clone());
        } else {
            packed.push(FlatGroup { dtype, arrays: vec![a.clone()] });
        }
    }
    packed.append(&mut alone);
    Ok(packed)
}

/// Arrays whose numbers are handled as one flat array of one type.
pub(super) struct FlatGroup {
    dtype: DType,
    arrays: Vec<NdArray>,
}

/// The numbers of a group.
pub(super) struct Flat {
    pub(super) data: Data,
    /// It is a copy.
    is_apart: bool,
}

impl FlatGroup {
    /// The numbers, all times `scale`: the memory of the array itself where there is only one, of the type to sum in; else a
    /// copy.
    pub(super) fn load(&self, memory: &mut KeptMemory, scale: f64) -> Result<Flat> {
        let only = (self.arrays.len() == 1).then(|| &self.arrays[0]).filter(|a| a.dtype() == self.dtype);
        let flat = match only {
            Some(a) => Flat { data: a.modify(self.dtype)?.of(a.size())?, is_apart: false },
            None => Flat { data: self.copied(memory)?, is_apart: true },
        };
        self.settle(&flat.data);
        scale_all(&flat.data, scale);
        Ok(flat)
    }

    fn copied(&self, memory: &mut KeptMemory) -> Result<Data> {
        let sizes: Vec<usize> = self.arrays.iter().map(NdArray::size).collect();
        let data = memory.get("packed", self.dtype, sizes.iter().sum())?;
        let mut first = 0;
        for (a, n) in self.arrays.iter().zip(sizes) {
            data.within(first, n).copy_from(&a.read(self.dtype)?.of(n)?);
            first += n;
        }
        Ok(data)
    }

    /// Puts the numbers back, rounded to each array's type.
    pub(super) fn store(&self, flat: &Flat) -> Result<()> {
        self.settle(&flat.data);
        if !flat.is_apart {
            return Ok(());
        }
        let mut first = 0;
        for a in &self.arrays {
            let n = a.size().min(flat.data.len() - first);
            write(a, &flat.data.within(first, n))?;
            first += n;
        }
        Ok(())
    }

    /// Any byte may have come as a boolean.
    fn settle(&self, data: &Data) {
        if self.dtype == DType::Bool {
            data.settle_booleans();
        }
    }
}

/// Gives an array of any type these values; it keeps its type.
pub(super) fn write(a: &NdArray, values: &Data) -> Result<()> {
    a.overwrite(a.dtype())?.of(values.len())?.copy_from(values);
    Ok(())
}

/// Puts the values of an array into a piece of flat memory.
pub(super) fn read(a: &NdArray, to: &Data) -> Result<()> {
    to.copy_from(&a.read(to.dtype())?.of(to.len())?);
    Ok(())
}

fn scale_all(data: &Data, scale: f64) {
    if scale == 1.0 {
        return;
    }
    match data.dtype() {
        DType::F32 => data.as_mut_slice::<f32>().iter_mut().for_each(|v| *v *= scale as f32),
        DType::F64 => data.as_mut_slice::<f64>().iter_mut().for_each(|v| *v *= scale),
        d => with_dtype!(d, T => {
            data.as_mut_slice::<T>().iter_mut().for_each(|v| *v = T::from_f64(v.to_f64() * scale));
        }),
    }
}

#[cfg(feature = "emulate")]
mod tests {
    use super::*;

    fn array<T: Element>(values: &[T]) -> NdArray {
        NdArray::from_slice(values, [values.len()].into()).unwrap()
    }

    nnrs_kernels::unit_test!(small_arrays_of_a_type_go_together_and_large_ones_alone);
    fn small_arrays_of_a_type_go_together_and_large_ones_alone() {
        let small = [array(&[1.0f32, 2.0]), array(&[3i32]), array(&[half::f16::from_f32(0.5)])];
        let large = NdArray::new([LARGE].into());
        let all = [&small[0], &large, &small[1], &small[2], &small[0], &NdArray::new([0].into())];
        let groups_of = |inplace| {
            let found = groups(&distinct("bcast", &all).unwrap(), inplace).unwrap();
            found.iter().map(|g| (g.dtype, g.arrays.len())).collect::<Vec<_>>()
        };
        assert_eq!(groups_of(false), [(DType::F32, 2), (DType::I32, 1), (DType::F32, 1)]);
        assert_eq!(groups_of(true), [(DType::F32, 1), (DType::F32, 1), (DType::I32, 1), (DType::F32, 1)]);
        assert_eq!(described(all), "float32(2,), float32(32768,), int32(1,), float16(1,), float32(2,), float32(0,)");
    }

    nnrs_kernels::unit_test!(arrays_are_known_by_their_memory);
    fn arrays_are_known_by_their_memory() {
        let (flat, other) = (NdArray::new([6].into()), NdArray::new([3].into()));
        let part = |first, n| flat.narrow(0, first, n).unwrap();
        let matrix = flat.reshaped([2, 3].into()).unwrap();
        let kept = |arrays: &[&NdArray]| {
            let found = distinct("reduce", arrays).map_err(|e| e.to_string())?;
            Ok(found.iter().map(|a| arrays.iter().position(|b| b.is(a)).unwrap()).collect::<Vec<_>>())
        };
        assert_eq!(kept(&[&part(0, 2), &matrix, &other, &flat, &part(5, 1), &other]), Ok(vec![1, 2]));
        assert_eq!(kept(&[&part(4, 2), &part(0, 2), &part(2, 2), &part(3, 1), &part(1, 0)]), Ok(vec![0, 1, 2, 4]));
        let error: Result<_, String> = kept(&[&other, &part(0, 3), &part(2, 2)]);
        let expected =
            "Communicator::reduce: argument 'arrays': expected arrays of which none shares a part of its memory";
        let error = error.unwrap_err();
        assert!(error.starts_with(expected) && error.contains("shapes (3,) and (2,) that overlap"), "{error}");
        let places = MemoryPlaces::new(&[part(0, 2), other.clone(), part(2, 2), part(4, 2)]);
        let meeting = |a: &NdArray| places.meeting(a).collect::<Vec<_>>();
        assert_eq!(
            [meeting(&matrix), meeting(&part(1, 2)), meeting(&part(2, 2))],
            [vec![0, 2, 3], vec![0, 2], vec![2]]
        );
        assert_eq!(
            [meeting(&other), meeting(&NdArray::new([2].into())), meeting(&part(3, 0))],
            [vec![1], vec![], vec![]]
        );
    }

    nnrs_kernels::unit_test!(numbers_are_put_back_in_each_arrays_type);
    fn numbers_are_put_back_in_each_arrays_type() {
        let (x, h) = (array(&[1.0f32, 2.0]), array(&[half::bf16::from_f32(0.5)]));
        let mut memory = KeptMemory::default();
        let group = groups(&[x.clone(), h.clone()], false).unwrap().swap_remove(0);
        let flat = group.load(&mut memory, 2.0).unwrap();
        assert_eq!(flat.data.as_slice::<f32>(), [2.0, 4.0, 1.0]);
        group.store(&flat).unwrap();
        assert_eq!((x.to_vec::<f32>().unwrap(), h.to_vec::<f32>().unwrap()), (vec![2.0, 4.0], vec![1.0]));
        assert_eq!(h.dtype(), DType::BF16);
        let whole = groups(&[array(&[3i8])], false).unwrap().swap_remove(0);
        assert_eq!(whole.load(&mut memory, 0.5).unwrap().data.as_slice::<i8>(), [1]);
    }
}
