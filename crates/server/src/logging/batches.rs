//! Log lines on their way out: those of a moment leave with one system call, because one for each would cost a request
//! more than reading it. A thread of their own writes them, and nothing else ever does: standard error may be a pipe that
//! nobody reads, a terminal that was told to stop or a disk that is busy, and a payment must not wait for any of them.
//!
//! A warning or an error takes everything before it along at once, so that what precedes a crash is there; a kill can cost the
//! access lines of the last moment. While nothing leaves, lines are kept up to a bound and then dropped, access lines first,
//! and how many is told when they leave again.

use std::cell::Cell;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use crate::metrics;

const MOMENT: Duration = Duration::from_millis(50);
/// So much leaves before the moment is over.
const MOST_BYTES: usize = 64 * 1024;
/// What waits at most, and what of it may be neither warnings nor errors.
const MOST_WAITING: usize = 2 * 1024 * 1024;
const MOST_ORDINARY: usize = MOST_WAITING / 2;
/// A warning waits so long to have left. When one has waited in vain, none does until lines leave again.
const PATIENCE: Duration = Duration::from_millis(100);
/// Before an output that takes nothing at the moment is asked again.
const PAUSE: Duration = Duration::from_millis(10);
/// What the end of the process waits for its last lines.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

thread_local! {
    static IS_WRITER: Cell<bool> = const { Cell::new(false) };
}

#[derive(Clone)]
pub(super) struct Batches(Arc<Shared>);

struct Shared {
    waiting: Mutex<Waiting>,
    /// There are lines, or they are in a hurry.
    some: Condvar,
    /// Lines have left.
    left: Condvar,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    hurried: bool,
    /// Bytes that were ever taken in, and those of them that have left.
    added: u64,
    left: u64,
    /// Lines that found no place, or were refused, since the last that left.
    dropped: u64,
    is_stuck: bool,
}

impl Batches {
    /// With the thread that writes to `out`. It ends with the process.
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        let waiting = Mutex::new(Waiting { lines: Vec::with_capacity(MOST_BYTES), ..Waiting::default() });
        let batches = Self(Arc::new(Shared { waiting, some: Condvar::new(), left: Condvar::new() }));
        let theirs = batches.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || theirs.run(out))?;
        Ok(batches)
    }

    fn run(&self, mut out: impl Write) {
        IS_WRITER.set(true);
        let mut lines = Vec::with_capacity(MOST_BYTES);
        loop {
            let dropped = self.next(&mut lines);
            let refused = write(&mut out, &lines);
            let mut waiting = self.waiting();
            waiting.left += lines.len() as u64;
            waiting.is_stuck = false;
            if refused > 0 {
                // To be told when something is written again.
                waiting.dropped += dropped + refused;
                metrics::log_lines_dropped(refused);
            }
            drop(waiting);
            self.0.left.notify_all();
            lines.clear();
            lines.shrink_to(MOST_BYTES);
            if dropped > 0 && refused == 0 {
                tracing::warn!(
                    dropped,
                    "log lines were dropped, because standard error took none for a while, or refused them"
                );
            }
        }
    }

    /// Waits for lines and takes them; answers how many were dropped meanwhile.
    fn next(&self, lines: &mut Vec<u8>) -> u64 {
        let waiting = self.0.some.wait_while(self.waiting(), |waiting| waiting.lines.is_empty());
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let waiting = self.0.some.wait_timeout_while(waiting, MOMENT, |waiting| !waiting.hurried);
        let (mut waiting, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut waiting.lines, lines);
        waiting.hurried = false;
        std::mem::take(&mut waiting.dropped)
    }

    /// Waits until everything has left, though not for long.
    pub(super) fn flush(&self) {
        let mut waiting = self.waiting();
        waiting.hurried = true;
        self.0.some.notify_one();
        self.wait(waiting, LAST_PATIENCE);
    }

    fn add(&self, line: &[u8], urgent: bool) {
        let mut waiting = self.waiting();
        let most = if urgent { MOST_WAITING } else { MOST_ORDINARY };
        if waiting.lines.len() + line.len() > most {
            waiting.dropped += 1;
            drop(waiting);
            return metrics::log_lines_dropped(1);
        }
        let is_first = waiting.lines.is_empty();
        waiting.lines.extend_from_slice(line);
        waiting.added += line.len() as u64;
        let hurries = !waiting.hurried && (urgent || waiting.lines.len() >= MOST_BYTES);
        waiting.hurried |= hurries;
        if is_first || hurries {
            self.0.some.notify_one();
        }
        if urgent && !waiting.is_stuck && !IS_WRITER.get() {
            self.wait(waiting, PATIENCE);
        }
    }

    /// Until what was added has left, or patience ends.
    fn wait(&self, waiting: MutexGuard<'_, Waiting>, patience: Duration) {
        let until = waiting.added;
        let waited = self.0.left.wait_timeout_while(waiting, patience, |waiting| waiting.left < until);
        let (mut waiting, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        waiting.is_stuck |= outcome.timed_out();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many lines `out` refused. One that takes none at the moment, because somebody else made it so, is asked again.
fn write(out: &mut impl Write, mut lines: &[u8]) -> u64 {
    while !lines.is_empty() {
        match out.write(lines) {
            Ok(0) => break,
            Ok(written) => lines = &lines[written..],
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => std::thread::park_timeout(PAUSE),
                _ => break,
            },
        }
    }
    // What was written in part counts with its end.
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Takes one line.
pub(super) struct Line<'b> {
    batches: &'b Batches,
    urgent: bool,
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.batches.add(bytes, self.urgent);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'b> MakeWriter<'b> for Batches {
    type Writer = Line<'b>;

    fn make_writer(&'b self) -> Line<'b> {
        Line { batches: self, urgent: true }
    }

    fn make_writer_for(&'b self, metadata: &tracing::Metadata<'_>) -> Line<'b> {
        Line { batches: self, urgent: *metadata.level() <= tracing::Level::WARN }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Takes what it is given as soon as it is allowed to, piece by piece.
    struct Out {
        written: Arc<Mutex<Vec<u8>>>,
        allowed: Option<mpsc::Receiver<()>>,
    }

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Some(allowed) = &self.allowed {
                let _ = allowed.recv();
            }
            self.written.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type Written = Arc<Mutex<Vec<u8>>>;

    fn started(allowed: Option<mpsc::Receiver<()>>) -> (Batches, Written) {
        let written = Written::default();
        let batches = Batches::start(Out { written: Arc::clone(&written), allowed }).expect("a thread");
        (batches, written)
    }

    fn text(written: &Written) -> String {
        String::from_utf8(written.lock().expect("not poisoned").clone()).expect("text")
    }

    #[test]
    fn a_warning_takes_what_waited_along_in_its_order() {
        let (batches, written) = started(None);
        batches.add(b"one\n", false);
        batches.add(b"two\n", false);
        batches.add(b"three\n", true);
        assert_eq!(text(&written), "one\ntwo\nthree\n");
        batches.add(b"four\n", false);
        batches.flush();
        assert_eq!(text(&written), "one\ntwo\nthree\nfour\n");
    }

    #[test]
    fn what_waits_leaves_by_itself() {
        let (batches, written) = started(None);
        batches.add(b"one\n", false);
        while text(&written).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(text(&written), "one\n");
    }

    /// Each call ends as the next of these says, and takes at most so many bytes; the rest as they are.
    struct Faulty {
        written: Written,
        ends: Vec<Result<usize, io::ErrorKind>>,
    }

    impl Write for Faulty {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let most = if self.ends.is_empty() { Ok(bytes.len()) } else { self.ends.remove(0) };
            let taken = &bytes[..most.map_err(io::Error::from)?.min(bytes.len())];
            self.written.lock().expect("not poisoned").extend_from_slice(taken);
            Ok(taken.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_taken_later_is_written_and_what_is_refused_is_counted() {
        let written = |ends: &[Result<usize, io::ErrorKind>]| {
            let mut out = Faulty { written: Written::default(), ends: ends.to_vec() };
            let refused = write(&mut out, b"one\ntwo\nthree\n");
            (text(&out.written), refused)
        };
        let (wait, full) = (Err(io::ErrorKind::WouldBlock), Err(io::ErrorKind::StorageFull));
        assert_eq!(written(&[wait, Ok(6), wait, wait]), ("one\ntwo\nthree\n".to_owned(), 0));
        assert_eq!(written(&[full]), (String::new(), 3));
        assert_eq!(written(&[Ok(6), full]), ("one\ntw".to_owned(), 2));
        assert_eq!(written(&[Ok(0)]), (String::new(), 3));
    }

    #[test]
    fn what_was_refused_is_told_when_something_is_written_again() {
        let written = Written::default();
        let ends = vec![Err(io::ErrorKind::StorageFull), Err(io::ErrorKind::StorageFull)];
        let batches = Batches::start(Faulty { written: Arc::clone(&written), ends }).expect("a thread");
        let dropped = || batches.waiting().dropped;
        batches.add(b"one\ntwo\n", true);
        assert_eq!(dropped(), 2);
        batches.add(b"three\n", true);
        assert_eq!(dropped(), 3);
        batches.add(b"four\n", true);
        assert_eq!((text(&written).as_str(), dropped()), ("four\n", 0));
    }

    #[test]
    fn whoever_takes_nothing_holds_up_nobody_and_warnings_find_a_place_longer() {
        let (allow, allowed) = mpsc::channel();
        let (batches, written) = started(Some(allowed));
        let access = [&[b'a'; 999][..], b"\n"].concat();
        let warning = [&[b'w'; 999][..], b"\n"].concat();
        // What leaves first, and sticks there.
        batches.add(b"first\n", true);
        for _ in 0..3000 {
            batches.add(&access, false);
        }
        for _ in 0..100 {
            batches.add(&warning, true);
        }
        let (kept, dropped, is_stuck) = {
            let waiting = batches.waiting();
            (waiting.lines.len(), waiting.dropped, waiting.is_stuck)
        };
        assert!(is_stuck);
        assert_eq!(dropped, 3000 - (MOST_ORDINARY / 1000) as u64);
        assert_eq!(kept, MOST_ORDINARY / 1000 * 1000 + 100 * 1000);
        assert_eq!(text(&written), "");

        drop(allow);
        batches.flush();
        let text = text(&written);
        assert!(text.starts_with("first\naaa") && text.ends_with("www\n"));
        let waiting = batches.waiting();
        assert_eq!((waiting.left, waiting.dropped, waiting.is_stuck), (waiting.added, 0, false));
    }
}
