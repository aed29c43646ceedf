//! The emulated NCCL between threads: each with a device of its own, as processes have them.

use super::super::{Emulated, nccl};
use super::*;
use crate::NdArray;
use crate::cuda::driver::{Driver, Properties};
use crate::cuda::group::DevicePieces;
use crate::cuda::{GpuGroup, GroupSums, gpu};
use std::sync::Barrier;

/// A rank of a test: its device and its place in the group.
struct TestRank {
    driver: Emulated,
    group: Arc<dyn DeviceGroup>,
    rank: usize,
}

fn driver(number: usize) -> Emulated {
    let properties = Properties { emulated: true, ..Default::default() };
    let memory = EmulatedMemory { number, blocks: Default::default(), work: Arc::default() };
    Emulated { properties, memory: Arc::new(memory) }
}

fn place(id: &[u8], rank: usize, size: usize) -> GroupPlace {
    GroupPlace { id: id.to_vec(), rank, size, timeout: Duration::from_secs(20) }
}

/// What each of `size` ranks gives; they are threads.
fn ranks<T: Send>(size: usize, work: impl Fn(&TestRank) -> T + Sync) -> Vec<T> {
    ranks_of(&nccl::fresh_id(), size, work)
}

fn ranks_of<T: Send>(id: &[u8], size: usize, work: impl Fn(&TestRank) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|s| {
        let rank = |rank| {
            s.spawn(move || {
                let driver = driver(rank);
                let group = driver.join_group(&place(id, rank, size)).unwrap();
                let done = TestRank { driver, group, rank };
                let found = work(&done);
                done.group.leave();
                found
            })
        };
        let threads: Vec<_> = (0..size).map(rank).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

impl TestRank {
    fn array<T: Element>(&self, values: &[T]) -> u64 {
        let bytes = size_of_val(values);
        let at = self.driver.alloc(bytes).unwrap().unwrap();
        // SAFETY: the block has that many bytes.
        unsafe { self.driver.upload(at, values.as_ptr() as *const u8, bytes).unwrap() };
        at
    }

    fn values<T: Element>(&self, at: u64, n: usize) -> Vec<T> {
        let mut values = vec![T::default(); n];
        // SAFETY: the tests ask for what was put there.
        unsafe { self.driver.download(values.as_mut_ptr() as *mut u8, at, n * size_of::<T>()).unwrap() };
        values
    }

    fn ask(&self, what: DeviceMove, dtype: DType, count: usize, from: u64, to: u64) -> Result<()> {
        // SAFETY: what is no memory of the device is an error.
        unsafe { self.group.clone().perform(&DeviceCollective { what, dtype, count }, from, to) }
    }
}

fn said<T>(r: Result<T>) -> String {
    r.err().map_or("no error".into(), |e| e.to_string())
}

fn each_type<T: Element>() {
    let numbers = |rank: usize| (0..6).map(|i| T::from_f64((rank + i) as f64 % 5.0)).collect::<Vec<T>>();
    let total = |i: usize| T::from_f64((0..3).map(|r| (r + i) as f64 % 5.0).sum());
    let how = if T::DTYPE == DType::Bool { DeviceSum::Any } else { DeviceSum::Sum };
    let found = ranks(3, |r| {
        let (x, y) = (r.array(&numbers(r.rank)), r.array(&[T::default(); 18]));
        let asked = |what, n, to| r.ask(what, T::DTYPE, n, x, to).unwrap();
        asked(DeviceMove::AllGather, 6, y);
        let gathered = r.values::<T>(y, 18);
        asked(DeviceMove::ReduceScatter(how), 2, y);
        let scattered = r.values::<T>(y, 2);
        asked(DeviceMove::Reduce(how, 1), 6, y);
        let reduced = r.values::<T>(y, 2);
        asked(DeviceMove::Broadcast(2), 6, y);
        let sent = r.values::<T>(y, 6);
        asked(DeviceMove::AllReduce(how), 6, x);
        (gathered, scattered, reduced, sent, r.values::<T>(x, 6))
    });
    for (rank, (gathered, scattered, reduced, sent, sum)) in found.into_iter().enumerate() {
        assert_eq!(gathered, (0..3).flat_map(numbers).collect::<Vec<T>>());
        assert_eq!(scattered, [total(2 * rank), total(2 * rank + 1)]);
        // On the others there is what was there before.
        assert_eq!(reduced, if rank == 1 { vec![total(0), total(1)] } else { scattered });
        assert_eq!(sent, numbers(2));
        assert_eq!(sum, (0..6).map(total).collect::<Vec<T>>());
    }
}

unit_test!(collectives_in_all_types);
fn collectives_in_all_types() {
    for dtype in DType::ALL {
        with_dtype!(dtype, T => each_type::<T>());
    }
}

unit_test!(means_and_sums_that_wrap_around);
fn means_and_sums_that_wrap_around() {
    let found = ranks(2, |r| {
        let (x, whole) = (r.array(&[1.0f32 + r.rank as f32, 5.0]), r.array(&[200u8, 1]));
        let large = r.array(&[i64::MAX - 1 + r.rank as i64]);
        r.ask(DeviceMove::AllReduce(DeviceSum::Mean), DType::F32, 2, x, x).unwrap();
        r.ask(DeviceMove::AllReduce(DeviceSum::Sum), DType::U8, 2, whole, whole).unwrap();
        r.ask(DeviceMove::AllReduce(DeviceSum::Sum), DType::I64, 1, large, large).unwrap();
        (r.values::<f32>(x, 2), r.values::<u8>(whole, 2), r.values::<i64>(large, 1))
    });
    assert_eq!(found, vec![(vec![1.5, 5.0], vec![144, 2], vec![-3]); 2]);
}

unit_test!(pieces_of_different_sizes);
fn pieces_of_different_sizes() {
    let found = ranks(2, |r| {
        let x = r.array(&[10 * r.rank as i32, 10 * r.rank as i32 + 1, 10 * r.rank as i32 + 2]);
        let y = r.array(&[-1i32; 4]);
        // Rank 0 gives 1 element to itself and 2 to rank 1, which gives one to each.
        let (send, receive) = match r.rank {
            0 => (vec![0..1, 1..3], vec![0..1, 2..3]),
            _ => (vec![0..1, 2..3], vec![0..2, 2..3]),
        };
        r.ask(DeviceMove::Pieces(Arc::new(DevicePieces { send, receive })), DType::I32, 0, x, y).unwrap();
        r.values::<i32>(y, 4)
    });
    assert_eq!(found, [vec![0, -1, 10, -1], vec![1, 2, 12, -1]]);
}

unit_test!(captured_calls_are_done_by_each_replay);
fn captured_calls_are_done_by_each_replay() {
    let found = ranks(2, |r| {
        let x = r.array(&[1.0f64 + r.rank as f64]);
        r.driver.begin_capture().unwrap();
        r.ask(DeviceMove::AllReduce(DeviceSum::Sum), DType::F64, 1, x, x).unwrap();
        let captured = r.driver.end_capture().unwrap();
        let mut seen = r.values::<f64>(x, 1);
        for _ in 0..2 {
            // SAFETY: the memory is there.
            unsafe { r.driver.replay(captured).unwrap() };
            seen.extend(r.values::<f64>(x, 1));
        }
        r.driver.forget(captured);
        seen
    });
    assert_eq!(found, [[1.0, 3.0, 6.0], [2.0, 3.0, 6.0]]);
}

unit_test!(calls_that_differ_are_an_error_on_all);
fn calls_that_differ_are_an_error_on_all() {
    let found = ranks(2, |r| {
        let x = r.array(&[1.0f32; 4]);
        let sum = || DeviceMove::AllReduce(DeviceSum::Sum);
        let other = r.rank == 1;
        let kind = if other { DeviceMove::Broadcast(0) } else { sum() };
        let errors = [
            r.ask(kind, DType::F32, 2, x, x),
            r.ask(sum(), DType::F32, 2 + r.rank, x, x),
            r.ask(sum(), if other { DType::I32 } else { DType::F32 }, 2, x, x),
            r.ask(DeviceMove::Broadcast(r.rank), DType::F32, 2, x, x),
            r.ask(sum(), DType::F32, 2, x, x),
        ];
        errors.map(said)
    });
    let [kind, count, dtype, root, fits] = &found[0];
    assert!(
        kind.ends_with("rank 0 of 2 in AllReduce (Sum) of 2 float32: rank 1 is in Broadcast of 2 float32 from rank 0"),
        "{kind}"
    );
    assert!(count.ends_with("rank 1 is in AllReduce (Sum) of 3 float32"), "{count}");
    assert!(dtype.ends_with("rank 1 is in AllReduce (Sum) of 2 int32"), "{dtype}");
    assert!(root.ends_with("rank 1 is in Broadcast of 2 float32 from rank 1"), "{root}");
    assert_eq!(fits, "no error");
    assert!(found[1][0].contains("rank 1 of 2 in Broadcast of 2 float32 from rank 0: rank 0 is in AllReduce"));
}

unit_test!(memory_that_is_none_or_overlaps);
fn memory_that_is_none_or_overlaps() {
    let others = driver(7);
    let there = others.alloc(64).unwrap().unwrap();
    ranks(1, |r| {
        let x = r.array(&[1.0f32; 4]);
        let sum = |n, from, to| said(r.ask(DeviceMove::AllReduce(DeviceSum::Sum), DType::F32, n, from, to));
        assert!(sum(5, x, x).contains("20 bytes at 0x"), "beyond the end");
        assert!(sum(1, there, x).ends_with("are no memory of device 0"));
        assert!(sum(2, x, x + 4).ends_with("what it reads and what it writes overlap"));
        assert_eq!(sum(2, x, x + 8), "no error");
        assert_eq!(sum(4, x, x), "no error");
        // SAFETY: the block is not used any more.
        unsafe { r.driver.free(x, 16) };
        assert!(sum(4, x, x).contains("are no memory of device 0"));
    });
}

unit_test!(one_that_does_not_come_or_ends_the_group);
fn one_that_does_not_come_or_ends_the_group() {
    let both = Barrier::new(2);
    let found = ranks(2, |r| {
        let x = r.array(&[1u8]);
        both.wait();
        if r.rank == 1 {
            r.group.abort();
        }
        said(r.ask(DeviceMove::AllGather, DType::U8, 0, x, x))
    });
    assert!(found[0].ends_with("rank 0 of 2 in AllGather of 0 uint8: rank 1 has ended the group"), "{}", found[0]);
    assert!(found[1].ends_with("the group has ended"), "{}", found[1]);
}

unit_test!(members_that_do_not_fit);
fn members_that_do_not_fit() {
    let id = nccl::fresh_id();
    let alone = GroupPlace { timeout: Duration::from_millis(20), ..place(&id, 0, 2) };
    assert!(said(driver(0).join_group(&alone)).ends_with("ncclCommInitRank: rank 1 did not come to it in 0.02 s"));
    assert!(said(driver(0).join_group(&alone)).ends_with("there are two of rank 0"));
    // Rank 0's file is still there.
    let same = said(driver(0).join_group(&place(&id, 1, 2)));
    assert!(same.contains("ranks 1 and 0 have one GPU") && same.contains("device_id=str(comm.local_rank)"), "{same}");
    assert!(said(driver(0).join_group(&place(b"../home", 0, 1))).ends_with("this is no group's name"));
    let folder = std::env::temp_dir().join(String::from_utf8_lossy(&id).trim_end_matches('\0'));
    std::fs::remove_dir_all(folder).unwrap();
}

unit_test!(nothing_is_left_behind);
fn nothing_is_left_behind() {
    let id = nccl::fresh_id();
    let folder = std::env::temp_dir().join(String::from_utf8_lossy(&id).trim_end_matches('\0'));
    let was_there = ranks_of(&id, 3, |r| {
        let (x, y) = (r.array(&[1u8]), r.array(&[0u8; 3]));
        (0..3).for_each(|_| r.ask(DeviceMove::AllGather, DType::U8, 1, x, y).unwrap());
        folder.exists()
    });
    assert_eq!(was_there, [true; 3]);
    assert!(!folder.exists());
}

unit_test!(arrays_of_gpus);
/// Over the devices of the process (NNRS_CUDA=emulate:2), whose kernels add.
fn arrays_of_gpus() {
    let (Ok(first), Ok(second)) = (gpu(0), gpu(1)) else { return };
    let id = nccl::fresh_id();
    let sums = |ordered| GroupSums { ordered, mean: true, scale: 2.0, packed: true };
    let work = |rank: usize, gpu| {
        let group = GpuGroup::join(gpu, place(&id, rank, 2), "world").unwrap();
        let mut found = Vec::new();
        for ordered in [true, false] {
            let large: Vec<f32> = (0..20_000).map(|i| (i + rank) as f32).collect();
            let large = NdArray::from_slice(&large, [20_000].into()).unwrap();
            let small = NdArray::from_slice(&[rank as i32 - 3, 5], [2].into()).unwrap();
            group.all_reduce(&[large.clone(), small.clone()], &sums(ordered)).unwrap();
            found.push((large.to_vec::<f32>().unwrap()[19_999], small.to_vec::<i32>().unwrap()));
        }
        let text = |e: Result<()>| e.unwrap_err().to_string();
        assert!(text(group.bcast(&[], 2, true)).contains("argument 'src': expected a rank below 2, got 2"));
        assert!(text(group.all_gather(&NdArray::new([1].into()), &[])).contains("2 arrays, one for each rank"));
        found
    };
    std::thread::scope(|s| {
        let other = s.spawn(|| work(1, second));
        let found = work(0, first);
        assert_eq!(found, vec![(39_999.0, vec![-5, 10]); 2]);
        assert_eq!(other.join().unwrap(), found);
    });
    let error = |rank, id: &[u8]| GpuGroup::join(first, place(id, rank, 1), "world").err().unwrap().to_string();
    assert!(error(1, &id).contains("argument 'rank': expected a number below 1"));
    assert!(error(0, b"short").contains("argument 'id': expected 128 bytes, got 5"));
}
