//! Ranks that panic, end, call something else, or do not come: an error on all, and no hang.

use super::own;
use nnrs::communicator::{AllReduceOptions, CallbackOptions, CollectiveCall, Communicator, Threads, Transport, WORLD};
use nnrs::graph::{BackwardRun, FunctionRef};
use nnrs::{DType, Error, ErrorKind, Result, Variable, functions as f};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

/// What each rank ends with; `None` for one that panicked. No rank waits for another as long as a test should.
fn each<R: Send + 'static>(
    size: usize,
    timeout: Duration,
    work: impl Fn(Communicator) -> R + Send + Sync + 'static,
) -> Vec<Option<R>> {
    let work = Arc::new(work);
    let start = |t: Threads| {
        let work = work.clone();
        thread::spawn(move || work(Communicator::new(Arc::new(t))))
    };
    let ranks: Vec<_> = Threads::world_within(size, timeout).into_iter().map(start).collect();
    ranks.into_iter().map(|r| r.join().ok()).collect()
}

const LONG: Duration = Duration::from_secs(60);

fn text(result: &Option<Result<()>>) -> String {
    let error = result.as_ref().expect("no panic").as_ref().expect_err("an error");
    assert_eq!(error.kind(), ErrorKind::Communicator, "{error}");
    error.to_string()
}

#[test]
fn a_rank_that_panics_ends_the_others() {
    let ended = each(3, LONG, |comm| match comm.rank() {
        2 => panic!("a test's own panic"),
        _ => comm.barrier().and_then(|()| comm.barrier()),
    });
    assert!(ended[2].is_none());
    for rank in [0, 1] {
        let told = text(&ended[rank]);
        assert!(told.starts_with(&format!("rank {rank} in barrier (call 1, group 'world'): ")), "{told}");
        assert!(told.contains("rank 2 panicked without coming to it"), "{told}");
    }
}

#[test]
fn a_rank_that_ends_too_early_ends_the_others() {
    let ended = each(2, LONG, |comm| {
        comm.barrier()?;
        if comm.rank() == 0 { comm.barrier() } else { Ok(()) }
    });
    let told = text(&ended[0]);
    assert_eq!(told, "rank 0 in barrier (call 2, group 'world'): rank 1 ended without coming to it");
}

#[test]
fn letters_that_were_sent_arrive_though_the_sender_has_ended() {
    let sums = each(3, LONG, |comm| {
        let x = own(DType::F32, 50_000, comm.rank());
        comm.bcast(&[&x], 0, WORLD)?;
        x.to_vec::<f32>()
    });
    assert!(
        sums.iter()
            .all(|s| s.as_ref().unwrap().as_ref().unwrap() == &own(DType::F32, 50_000, 0).to_vec::<f32>().unwrap())
    );
}

#[test]
fn a_rank_that_does_not_come_is_named() {
    let end = Barrier::new(3);
    let ended = each(3, Duration::from_secs(1), move |comm| {
        if comm.rank() == 1 {
            end.wait(); // it is there, and does not come
            return Ok(());
        }
        let result = comm.barrier();
        let again = comm.barrier().unwrap_err().to_string();
        assert!(again.starts_with("this communicator has ended: rank "), "{again}");
        end.wait();
        result
    });
    for rank in [0, 2] {
        let told = text(&ended[rank]);
        assert!(told.contains(&format!("rank {rank} in barrier (call 1, group 'world')")), "{told}");
        assert!(told.contains("not over after 1 s: rank 1 did not come to it; it is in no collective"), "{told}");
    }
}

#[test]
fn calls_that_differ_are_an_error_on_all_and_they_go_on() {
    let seen = each(3, LONG, |comm| {
        let (x, y) = (own(DType::F32, 3, 0), own(DType::F32, 4, 0));
        let sum = AllReduceOptions::default;
        let other = |is_other: bool| {
            [
                if is_other { comm.barrier() } else { comm.all_reduce(&[&x], sum()) },
                comm.all_reduce(&[if is_other { &y } else { &x }], sum()),
                comm.all_reduce(&[&x], AllReduceOptions { division: is_other, ..sum() }),
                comm.bcast(&[&x], is_other as usize, WORLD),
                comm.new_group("g", if is_other { &[0, 1] } else { &[1, 0] }),
            ]
        };
        let errors = other(comm.rank() == 1).map(|r| r.expect_err("an error"));
        comm.all_reduce(&[&x], sum()).unwrap();
        (errors.map(|e| (e.kind(), e.to_string())), x.to_vec::<f32>().unwrap())
    });
    let plain: Vec<f32> = own(DType::F32, 3, 0).to_vec::<f32>().unwrap().iter().map(|v| 3.0 * v).collect();
    for s in &seen {
        let (errors, sum) = s.as_ref().unwrap();
        assert_eq!(*sum, plain);
        assert!(
            errors
                .iter()
                .all(|(kind, text)| *kind == ErrorKind::Argument && text.contains("the same call on all ranks"))
        );
    }
    let (_, told) = &seen[0].as_ref().unwrap().0[0];
    let expected = "Communicator::all_reduce: expected the same call on all ranks; rank 0 of the group has all_reduce of \
                    float32(3,); division=false, inplace=false, got on rank 1 barrier of all\n  hint: ";
    assert!(told.starts_with(expected), "{told}");
}

/// Makes the moves of another one until it fails, in one way or the other.
struct Failing {
    inner: Threads,
    left: Mutex<usize>,
    panics: bool,
}

impl Failing {
    fn count(&self) -> Result<()> {
        let mut left = self.left.lock().unwrap();
        match (*left, self.panics) {
            (0, true) => {
                drop(left);
                panic!("a test's own panic")
            }
            (0, false) => Err(Error::new(ErrorKind::Io, "the cable is cut")),
            _ => {
                *left -= 1;
                Ok(())
            }
        }
    }
}

impl Transport for Failing {
    fn rank(&self) -> usize {
        self.inner.rank()
    }
    fn size(&self) -> usize {
        self.inner.size()
    }
    fn all_to_all(&self, send: &[u8], cuts: &[usize], received: &mut [u8]) -> Result<()> {
        self.count().and_then(|()| self.inner.all_to_all(send, cuts, received))
    }
    fn all_gather(&self, buffer: &mut [u8], cuts: &[usize]) -> Result<()> {
        self.count().and_then(|()| self.inner.all_gather(buffer, cuts))
    }
    fn gather(&self, buffer: &mut [u8], cuts: &[usize], dst: usize) -> Result<()> {
        self.count().and_then(|()| self.inner.gather(buffer, cuts, dst))
    }
    fn bcast(&self, buffer: &mut [u8], src: usize) -> Result<()> {
        self.count().and_then(|()| self.inner.bcast(buffer, src))
    }
    fn subset(&self, ranks: &[usize], name: &str) -> Result<Option<Arc<dyn Transport>>> {
        self.inner.subset(ranks, name)
    }
    fn begin(&self, call: &CollectiveCall) {
        self.inner.begin(call);
    }
    fn end(&self, call: &CollectiveCall) {
        self.inner.end(call);
    }
    fn leave(&self, why: &str) {
        self.inner.leave(why);
    }
}

/// The errors of two ranks that sum until the first one's transport fails.
fn failing(moves: usize, panics: bool) -> Vec<Option<Result<()>>> {
    let start = |inner: Threads| {
        let left = Mutex::new(if inner.rank() == 0 { moves } else { usize::MAX });
        thread::spawn(move || {
            let comm = Communicator::new(Arc::new(Failing { inner, left, panics }));
            let x = own(DType::F32, 50_000, comm.rank());
            comm.all_reduce(&[&x], AllReduceOptions::default()).and_then(|()| comm.barrier())
        })
    };
    let ranks: Vec<_> = Threads::world_within(2, LONG).into_iter().map(start).collect();
    ranks.into_iter().map(|r| r.join().ok()).collect()
}

#[test]
fn a_transport_that_fails_is_the_end_for_all() {
    for moves in 0..3 {
        let ended = failing(moves, false);
        assert_eq!(text(&ended[0]), "rank 0 in all_reduce (call 1, group 'world'): the cable is cut");
        assert!(text(&ended[1]).contains("rank 0 failed (the cable is cut) without coming to it"));
        let ended = failing(moves, true);
        assert!(ended[0].is_none() && text(&ended[1]).contains("rank 0 failed (it panicked) without coming to it"));
    }
}

#[test]
fn a_rank_that_panics_in_backward_ends_the_others() {
    let ended = each(2, LONG, |comm| -> Result<()> {
        let x = Variable::from_slice(&[1.0f32; 4], [4].into())?.with_need_grad(true);
        let y = f::sum(&f::sin(&f::exp(&x)?)?, f::Sum::default())?;
        let reduced = comm.all_reduce_callback(&[x.grad()], CallbackOptions::default())?;
        y.forward()?;
        let rank = comm.rank();
        let post = move |f: &FunctionRef| match (rank, f.name()) {
            (0, "sin") => panic!("a test's own panic"),
            _ => Ok(()),
        };
        y.backward_with(BackwardRun { callbacks: &[&reduced], post: Some(&post), ..Default::default() })
    });
    assert!(ended[0].is_none());
    assert!(text(&ended[1]).contains("rank 0 panicked without coming to it"), "{:?}", ended[1]);
}

#[test]
fn networks_that_differ_are_an_error_at_the_end_of_backward() {
    let seen = each(2, LONG, |comm| {
        let var = |n: usize| Variable::from_slice(&vec![1.0f32; n], [n].into()).unwrap().with_need_grad(true);
        let (a, b) = (var(1), var(2));
        let (first, second) = if comm.rank() == 0 { (&a, &b) } else { (&b, &a) };
        let h = f::sum(&f::exp(first).unwrap(), f::Sum::default()).unwrap();
        let y = f::sum(&(second * &h).unwrap(), f::Sum::default()).unwrap();
        y.forward().unwrap();
        let options = CallbackOptions { pack_size: 1, ..Default::default() };
        let reduced = comm.all_reduce_callback(&[a.grad(), b.grad()], options).unwrap();
        let run = || y.backward_with(BackwardRun { callbacks: &[&reduced], ..Default::default() });
        let errors = [run(), run()].map(|r| r.unwrap_err());
        comm.barrier().unwrap();
        errors.map(|e| (e.kind(), e.to_string()))
    });
    for errors in seen.into_iter().flatten() {
        assert!(errors.iter().all(|(kind, told)| *kind == ErrorKind::Argument && told.contains("packs 0: float32")));
    }
}

#[test]
fn a_callback_outlives_its_communicator_and_says_so() {
    let comms: Vec<_> = Threads::world(2).into_iter().map(|t| Communicator::new(Arc::new(t))).collect();
    let x = Variable::from_slice(&[1.0f32], [1].into()).unwrap().with_need_grad(true);
    let y = f::exp(&x).unwrap();
    y.forward().unwrap();
    let reduced = comms[0].all_reduce_callback(&[x.grad()], CallbackOptions::default()).unwrap();
    drop(comms);
    let error = y.backward_with(BackwardRun { callbacks: &[&reduced], ..Default::default() }).unwrap_err();
    assert!(error.to_string().contains("this communicator has ended: this rank ended"), "{error}");
}

#[test]
fn moves_that_do_not_fit_are_errors() {
    let ranks = Threads::world_within(2, LONG);
    let wrong = |result: Result<()>, says: &str| assert!(result.unwrap_err().to_string().contains(says), "{says}");
    wrong(ranks[0].all_gather(&mut [0; 4], &[0, 8, 4]), "3 rising positions up to 4");
    wrong(ranks[0].gather(&mut [0; 4], &[0, 2, 4], 2), "a rank below 2");
    wrong(ranks[0].bcast(&mut [0; 4], 2), "a rank below 2");
    wrong(ranks[0].all_to_all(&[0; 4], &[0, 2, 4], &mut [0; 3]), "expected 4 bytes, got 3");
    let ranks = Threads::world_within(2, LONG);
    ranks[1].bcast(&mut [1; 3], 1).unwrap();
    wrong(ranks[0].bcast(&mut [0; 4], 1), "rank 1 sends 3 bytes in bcast, not 4");
    ranks[1].bcast(&mut [1; 3], 1).unwrap();
    wrong(ranks[0].gather(&mut [0; 4], &[0, 2, 4], 0), "rank 1 makes another move, bcast");
    wrong(ranks[1].bcast(&mut [1; 3], 1), "rank 0 has given up: rank 1 makes another move, bcast");
}
