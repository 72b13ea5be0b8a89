//! A server under measurement: started, watched, and gone when dropped.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::{Result, clock};

const LONGEST_START: Duration = Duration::from_secs(120);

pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    /// From the start of the process to the line that says where it listens.
    pub(crate) started_in: Duration,
}

impl Server {
    pub(crate) fn start(mut command: Command, log: &Path) -> Result<Self> {
        let log = open(log)?;
        let began = clock::now();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let stdout = child.stdout.take().ok_or("a server without an output")?;
        let (say, said) = mpsc::channel();
        // Reads on to the end, so that a chatty server never blocks on a full pipe.
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(std::io::Result::ok) {
                if let Some(address) = line.strip_prefix("listening on http://") {
                    let _ = say.send(address.trim().parse());
                }
            }
        });
        let heard = said.recv_timeout(LONGEST_START);
        let started_in = began.elapsed();
        match heard {
            Ok(Ok(address)) => Ok(Self { child, address, started_in }),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                Err(format!("{command:?} did not start; its log says why"))
            }
        }
    }

    /// One that is told where to listen and doesn't say that it does.
    pub(crate) fn start_at(address: SocketAddr, mut command: Command, log: &Path) -> Result<Self> {
        let began = clock::now();
        command.stdin(Stdio::null()).stdout(open(log)?).stderr(open(log)?);
        let child = command.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let mut server = Self { child, address, started_in: Duration::ZERO };
        while TcpStream::connect(address).is_err() {
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("it did not start ({status}); {} says why", log.display()));
            }
            if began.elapsed() > LONGEST_START {
                return Err(format!("it takes no connection; {} may say why", log.display()));
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        server.started_in = began.elapsed();
        Ok(server)
    }

    /// Resident memory now and at its highest, in megabytes; nothing where the system doesn't tell.
    pub(crate) fn memory(&self) -> Option<(f64, f64)> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        Some((megabytes(&status, "VmRSS:")?, megabytes(&status, "VmHWM:")?))
    }

    /// What is the process's own and neither its program nor its files, in MiB; nothing where the system doesn't tell.
    pub(crate) fn own_memory(&self) -> Option<f64> {
        megabytes(&fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?, "RssAnon:")
    }

    /// How many files and connections it has open.
    pub(crate) fn descriptors(&self) -> Option<f64> {
        let open = fs::read_dir(format!("/proc/{}/fd", self.child.id())).ok()?;
        Some(open.count() as f64)
    }

    /// In good order; what was wrong with that.
    pub(crate) async fn stop(mut self, patience: Duration) -> Option<String> {
        let _ = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        let end = clock::now() + patience;
        while clock::now() < end {
            match self.child.try_wait() {
                Ok(None) => tokio::time::sleep(Duration::from_millis(50)).await,
                Ok(Some(status)) if status.success() => return None,
                Ok(Some(status)) => return Some(format!("the server ended with {status}")),
                Err(error) => return Some(format!("nobody knows how the server ended: {error}")),
            }
        }
        Some(format!("the server did not end within {} s", patience.as_secs()))
    }

    /// Without a chance to finish anything.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn open(log: &Path) -> Result<File> {
    File::options().create(true).append(true).open(log).map_err(|error| format!("{}: {error}", log.display()))
}

fn megabytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::megabytes;

    #[test]
    fn memory_is_read_from_its_own_line() {
        let status = "Name:\tdalasi\nVmHWM:\t   51200 kB\nVmRSS:\t   25600 kB\n";
        assert_eq!(megabytes(status, "VmRSS:"), Some(25.0));
        assert_eq!(megabytes(status, "VmHWM:"), Some(50.0));
        assert_eq!(megabytes(status, "VmSwap:"), None);
    }
}
