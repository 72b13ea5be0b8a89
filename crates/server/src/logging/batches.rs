//! Log lines on their way out: those of a moment leave with one system call, because one for each would cost a request
//! more than reading it. A warning or an error takes everything before it along at once, so that what precedes a crash is
//! there; a kill can cost the access lines of the last moment.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

const MOMENT: Duration = Duration::from_millis(50);
/// So much leaves before the moment is over.
const MOST_BYTES: usize = 64 * 1024;

#[derive(Clone)]
pub(super) struct Batches(Arc<Shared>);

struct Shared {
    waiting: Mutex<Waiting>,
    some: Condvar,
}

struct Waiting {
    lines: Vec<u8>,
    out: Box<dyn Write + Send>,
}

impl Batches {
    /// With a thread that writes what waits when its moment is over. It ends with the process.
    pub(super) fn start(out: impl Write + Send + 'static) -> Self {
        let batches = Self::new(out);
        let theirs = batches.clone();
        let started = std::thread::Builder::new().name("log".to_owned()).spawn(move || theirs.run());
        // Without the thread lines leave late, with the next warning or the next full batch.
        drop(started);
        batches
    }

    fn new(out: impl Write + Send + 'static) -> Self {
        let waiting = Waiting { lines: Vec::with_capacity(MOST_BYTES), out: Box::new(out) };
        Self(Arc::new(Shared { waiting: Mutex::new(waiting), some: Condvar::new() }))
    }

    fn run(&self) {
        let mut waiting = self.waiting();
        loop {
            waiting = self
                .0
                .some
                .wait_while(waiting, |waiting| waiting.lines.is_empty())
                .unwrap_or_else(PoisonError::into_inner);
            drop(waiting);
            std::thread::park_timeout(MOMENT);
            waiting = self.waiting();
            waiting.write_out();
        }
    }

    pub(super) fn flush(&self) {
        self.waiting().write_out();
    }

    fn add(&self, line: &[u8], urgent: bool) {
        let mut waiting = self.waiting();
        let is_first = waiting.lines.is_empty();
        waiting.lines.extend_from_slice(line);
        if urgent || waiting.lines.len() >= MOST_BYTES {
            waiting.write_out();
        } else if is_first {
            drop(waiting);
            self.0.some.notify_one();
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn write_out(&mut self) {
        // Where standard error is closed there is nobody to tell.
        let _ = self.out.write_all(&self.lines).and_then(|()| self.out.flush());
        self.lines.clear();
    }
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
    use super::*;

    #[derive(Clone, Default)]
    struct Out(Arc<Mutex<Vec<u8>>>);

    impl Out {
        fn text(&self) -> String {
            String::from_utf8(self.0.lock().expect("not poisoned").clone()).expect("text")
        }
    }

    impl Write for Out {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("not poisoned").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_warning_takes_what_waited_along_in_its_order() {
        let out = Out::default();
        let batches = Batches::new(out.clone());
        batches.add(b"one\n", false);
        batches.add(b"two\n", false);
        assert_eq!(out.text(), "");
        batches.add(b"three\n", true);
        assert_eq!(out.text(), "one\ntwo\nthree\n");
        batches.add(b"four\n", false);
        batches.flush();
        assert_eq!(out.text(), "one\ntwo\nthree\nfour\n");
    }

    #[test]
    fn a_full_batch_does_not_wait() {
        let out = Out::default();
        let batches = Batches::new(out.clone());
        let line = [b'x'; 1000];
        for _ in 0..66 {
            batches.add(&line, false);
        }
        assert!(out.text().len() >= MOST_BYTES);
    }

    #[test]
    fn what_waits_leaves_by_itself() {
        let out = Out::default();
        let batches = Batches::start(out.clone());
        batches.add(b"one\n", false);
        while out.text().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(out.text(), "one\n");
    }
}
