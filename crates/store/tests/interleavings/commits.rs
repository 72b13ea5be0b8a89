//! Callers whose closures share a commit, and the storage to which they write. Neither is the scheduler's: whatever it decides, it
//! decides between the callers and the thread that writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shuttle::rand::{Rng as _, thread_rng};
use shuttle::sync::mpsc::sync_channel;
use shuttle::thread;

use super::batches::{Batches, Storage};
use crate::error::Error;
use crate::job::{Job, Verdict};
use crate::store::QUEUE_LIMIT;

/// What a closure does and says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Yes,
    No,
    /// It says no, and asked for all the time it needs.
    LongNo,
    /// Another transaction was faster, the first time.
    Again,
    /// The storage rolls everything back while it runs.
    Breaks,
    /// It does so where there are savepoints.
    BreaksLater,
    /// Whoever asked may go away at any time.
    Leaves,
}

impl Kind {
    pub(crate) const ALL: [Self; 7] =
        [Self::Yes, Self::No, Self::LongNo, Self::Again, Self::Breaks, Self::BreaksLater, Self::Leaves];
}

/// When the storage fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Begin,
    Commit,
}

/// At which of them, counted from 0.
type Failure = Option<(Moment, usize)>;

const FAILURES: [Failure; 5] =
    [None, Some((Moment::Begin, 0)), Some((Moment::Begin, 1)), Some((Moment::Commit, 0)), Some((Moment::Commit, 1))];

/// Two callers of every pair of kinds, with each failure.
pub(crate) fn smallest() -> impl Iterator<Item = ([Kind; 2], Failure)> {
    let pairs = Kind::ALL.into_iter().flat_map(|one| Kind::ALL.map(|other| [one, other]));
    pairs.flat_map(|pair| FAILURES.map(|failure| (pair, failure)))
}

/// As the scheduler's seed says.
pub(crate) fn some(callers: usize) -> Vec<Kind> {
    (0..callers).map(|_| Kind::ALL[thread_rng().gen_range(0..Kind::ALL.len())]).collect()
}

pub(crate) fn some_failure() -> Failure {
    FAILURES[thread_rng().gen_range(0..FAILURES.len())]
}

/// Each caller asks for something of one kind. Whoever is told that it is done finds it done, whoever
/// is told that it isn't never finds it, and nobody waits for ever.
pub(crate) fn commits(kinds: &[Kind], fails: Failure, defect: Option<Defect>) {
    let record = Arc::new(Record::default());
    let (call, waiting) = sync_channel::<Box<dyn Job>>(QUEUE_LIMIT);
    // The last of them closes the queue.
    let call = Arc::new(call);
    let ask = |(number, kind)| {
        let (call, record) = (Arc::clone(&call), Arc::clone(&record));
        thread::spawn(move || {
            let has_left = Arc::new(AtomicBool::new(false));
            let closure = Closure { number, kind, has_left: Arc::clone(&has_left), runs: 0, record };
            let is_asked = call.try_send(Box::new(closure)).is_ok();
            if kind == Kind::Leaves {
                thread::yield_now();
                has_left.store(true, Ordering::Relaxed);
            }
            is_asked && kind != Kind::Leaves
        })
    };
    let callers: Vec<_> = kinds.iter().copied().enumerate().map(ask).collect();
    drop(call);
    let mut rows = Rows::new(Arc::clone(&record), fails, defect);
    let mut batches = Batches::default();
    while batches.next(&waiting, Duration::MAX, &mut rows).is_ok() {}
    let stay: Vec<bool> = callers.into_iter().map(|caller| caller.join().expect("no panic")).collect();
    record.check(&stay);
}

/// What was done and told, in whatever order.
#[derive(Default)]
struct Record {
    /// The rows that were committed.
    rows: Mutex<Vec<usize>>,
    /// Who was told, and whether it was done.
    told: Mutex<Vec<(usize, bool)>>,
}

impl Record {
    fn is_there(&self, number: usize) -> bool {
        self.rows.lock().expect("no panic").contains(&number)
    }

    fn tell(&self, number: usize, is_done: bool) {
        assert_eq!(self.is_there(number), is_done, "as {number} is told");
        self.told.lock().expect("no panic").push((number, is_done));
    }

    /// At the end, when nothing waits any more.
    fn check(&self, stay: &[bool]) {
        for (number, &stays) in stay.iter().enumerate() {
            let rows = self.rows.lock().expect("no panic").iter().filter(|&&row| row == number).count();
            let told = self.told.lock().expect("no panic");
            let told: Vec<bool> = told.iter().filter(|(of, _)| *of == number).map(|&(_, is_done)| is_done).collect();
            assert!(told.len() == 1 || (told.is_empty() && !stays), "{number} is told once: {told:?}");
            assert!(rows <= 1, "{number} is done once");
            assert!(told.iter().all(|&is_done| is_done == (rows == 1)), "what {number} was told is so");
        }
    }
}

/// One caller's.
struct Closure {
    number: usize,
    kind: Kind,
    has_left: Arc<AtomicBool>,
    runs: usize,
    record: Arc<Record>,
}

impl Job for Closure {
    fn number(&self) -> usize {
        self.number
    }

    fn abandoned(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    fn run(&mut self, rows: &mut Rows, has_savepoints: bool) -> Verdict {
        self.runs += 1;
        rows.is_load = self.kind == Kind::LongNo;
        rows.written().push(self.number);
        match self.kind {
            Kind::Yes | Kind::Leaves => Verdict::Commit,
            Kind::No | Kind::LongNo => Verdict::RollBack,
            Kind::Again if self.runs == 1 => Verdict::Failed(Error::Conflict),
            Kind::BreaksLater if !has_savepoints => Verdict::Commit,
            Kind::Again => Verdict::Commit,
            Kind::Breaks | Kind::BreaksLater => {
                rows.open = None;
                Verdict::Failed(Error::Unavailable("planted".to_owned()))
            }
        }
    }

    fn answer(self: Box<Self>) {
        self.record.tell(self.number, !matches!(self.kind, Kind::No | Kind::LongNo));
    }

    fn refuse(self: Box<Self>, _: Error) {
        self.record.tell(self.number, false);
    }
}

/// A storage whose commits fail on demand, with a defect of its own where one is asked for.
pub(crate) struct Rows {
    record: Arc<Record>,
    /// What the transaction has written.
    open: Option<Vec<usize>>,
    /// How much it had at the savepoint.
    savepoint: Option<usize>,
    is_load: bool,
    fails: Failure,
    defect: Option<Defect>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    /// What is undone is kept.
    KeepsWhatIsUndone,
    /// A commit that fails is told as one that was done.
    HidesFailures,
}

impl Defect {
    pub(crate) const ALL: [Self; 2] = [Self::KeepsWhatIsUndone, Self::HidesFailures];
}

impl Rows {
    fn new(record: Arc<Record>, fails: Failure, defect: Option<Defect>) -> Self {
        Self { record, open: None, savepoint: None, is_load: false, fails, defect }
    }

    fn fails(&mut self, moment: Moment) -> bool {
        match &mut self.fails {
            Some((at, 0)) if *at == moment => self.fails.take().is_some(),
            Some((at, left)) if *at == moment => {
                *left -= 1;
                false
            }
            _ => false,
        }
    }

    fn written(&mut self) -> &mut Vec<usize> {
        self.open.as_mut().expect("within a transaction")
    }
}

impl Storage for Rows {
    fn begin(&mut self) -> Result<(), Error> {
        assert_eq!(self.open, None, "one after the other");
        if self.fails(Moment::Begin) {
            return Err(Error::Busy);
        }
        (self.open, self.savepoint) = (Some(Vec::new()), None);
        Ok(())
    }

    fn run(&mut self, job: &mut dyn Job, has_savepoints: bool) -> Verdict {
        job.run(self, has_savepoints)
    }

    fn is_load(&self) -> bool {
        self.is_load
    }

    fn is_open(&self) -> bool {
        self.open.is_some()
    }

    fn savepoint(&mut self) -> Result<(), Error> {
        assert_eq!(self.savepoint, None, "one after the other");
        self.savepoint = Some(self.written().len());
        Ok(())
    }

    fn release(&mut self) -> Result<(), Error> {
        self.savepoint.take().expect("it was made");
        Ok(())
    }

    fn roll_back_to_savepoint(&mut self) -> Result<(), Error> {
        let before = self.savepoint.take().expect("it was made");
        if self.defect != Some(Defect::KeepsWhatIsUndone) {
            self.written().truncate(before);
        }
        Ok(())
    }

    fn roll_back(&mut self) -> Result<(), Error> {
        self.open.take().expect("within a transaction");
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Error> {
        assert_eq!(self.savepoint, None, "nothing is half done");
        let rows = self.open.take().expect("within a transaction");
        if !self.fails(Moment::Commit) {
            self.record.rows.lock().expect("no panic").extend(rows);
        } else if self.defect != Some(Defect::HidesFailures) {
            return Err(Error::Busy);
        }
        Ok(())
    }
}
