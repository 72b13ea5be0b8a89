//! Reads that run where they are asked for. Changing to a reading thread and back costs more than finding a row by its key,
//! so those do without; whoever finds no connection idle goes to the reading threads after all.

use std::sync::{Arc, Mutex, PoisonError};

use super::connection::Connection;
use super::reader::read;
use crate::clock::Monotone;
use crate::job::Job;

pub(crate) struct Near {
    idle: Mutex<Vec<Connection>>,
    clock: Arc<Monotone>,
}

impl Near {
    pub(super) fn new(connections: Vec<Connection>, clock: Arc<Monotone>) -> Self {
        Self { idle: Mutex::new(connections), clock }
    }

    /// Runs the job here and answers it, or gives it back.
    pub(crate) fn run(&self, job: Box<dyn Job>) -> Result<(), Box<dyn Job>> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut connection) = idle().pop() else { return Err(job) };
        read(&mut connection, &self.clock, job);
        idle().push(connection);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::job::Call;
    use crate::tx::Tx;

    struct Still;

    impl crate::clock::Clock for Still {
        fn now_us(&self) -> i64 {
            0
        }
    }

    fn near() -> Near {
        let file = std::env::temp_dir().join(format!("dalasi-near-{}", std::process::id()));
        drop(rusqlite::Connection::open(&file).unwrap());
        let connection = Connection::reading(&file).unwrap();
        std::fs::remove_file(file).unwrap();
        Near::new(vec![connection], Arc::new(Monotone::new(Arc::new(Still))))
    }

    #[test]
    fn whoever_finds_no_connection_idle_gets_the_job_back_and_a_panic_takes_none_away() {
        let near = near();
        let (panics, answer) = Call::new(|_: &mut Tx<'_>| -> Result<(), Error> { panic!("planted") }, [0; 32]);
        assert!(near.run(Box::new(panics)).is_ok());
        assert!(matches!(answer.blocking_recv(), Ok(Err(Error::Panic(_)))));
        let (looks, answer) =
            Call::new(|tx: &mut Tx<'_>| tx.query("select 1 as one", &[]).map(|rows| rows.len()), [0; 32]);
        assert!(near.run(Box::new(looks)).is_ok());
        assert_eq!(answer.blocking_recv().unwrap().unwrap(), 1);

        near.idle.lock().unwrap().clear();
        let (waits, _) = Call::new(|_: &mut Tx<'_>| Ok::<_, Error>(()), [0; 32]);
        assert!(near.run(Box::new(waits)).is_err());
    }
}
