//! Several `dalasi serve` on one database, each started again as soon as it ends, as systemd would.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::place::Place;

/// What systemd waits with `RestartSec`.
const RESTART: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Fleet {
    pub(crate) members: Vec<Arc<Member>>,
    ending: Arc<AtomicBool>,
    keepers: Mutex<Vec<JoinHandle<()>>>,
    /// Everything that was said on standard output, of all of them.
    said: Arc<Mutex<Vec<String>>>,
    log: Arc<Mutex<Vec<String>>>,
}

pub(crate) struct Member {
    pub(crate) role: &'static str,
    running: Mutex<Option<Running>>,
}

#[derive(Clone)]
struct Running {
    process: u32,
    /// Nothing until it listens.
    url: Option<String>,
}

impl Fleet {
    /// All at once, one for each role. So many requests a second of a key; 0 is no limit.
    pub(crate) fn start(place: &Place, roles: &[&'static str], rate_limit: u64) -> Self {
        let ending = Arc::new(AtomicBool::new(false));
        let (said, log) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let members: Vec<_> = roles.iter().map(|role| Arc::new(Member { role, running: Mutex::new(None) })).collect();
        let keepers = members
            .iter()
            .map(|member| {
                let (member, ending) = (Arc::clone(member), Arc::clone(&ending));
                let (said, log) = (Arc::clone(&said), Arc::clone(&log));
                let arguments = ["serve", "--listen", "127.0.0.1:0", "--allow-loopback-webhooks"];
                let mut command = place.command(&[&arguments[..], &["--role", member.role]].concat());
                command.args(["--rate-limit", &rate_limit.to_string()]);
                command.env("DALASI_LOG", "warn").stdout(Stdio::piped()).stderr(Stdio::piped());
                std::thread::spawn(move || {
                    while !ending.load(Ordering::SeqCst) {
                        member.run(&mut command, &said, &log);
                        std::thread::sleep(RESTART);
                    }
                })
            })
            .collect();
        let fleet = Self { members, ending, keepers: Mutex::new(keepers), said, log };
        for member in &fleet.members {
            fleet.until_listening(member);
        }
        fleet
    }

    pub(crate) fn until_listening(&self, member: &Member) {
        let mut waited = Duration::ZERO;
        while member.url().is_none() {
            assert!(waited < PATIENCE, "it does not listen: {:#?}", self.log.lock().unwrap());
            std::thread::sleep(Duration::from_millis(20));
            waited += Duration::from_millis(20);
        }
    }

    /// The addresses of those that serve the API now.
    pub(crate) fn addresses(&self) -> Vec<String> {
        self.members.iter().filter(|member| member.role.contains("api")).filter_map(|member| member.url()).collect()
    }

    pub(crate) fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    /// SIGTERM to all; they end in good order, and are not started again.
    pub(crate) fn stop(&self) {
        self.ending.store(true, Ordering::SeqCst);
        for member in &self.members {
            member.terminate();
        }
        for keeper in self.keepers.lock().unwrap().drain(..) {
            keeper.join().unwrap();
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        for member in &self.members {
            member.signal("-KILL");
        }
    }
}

impl Member {
    pub(crate) fn url(&self) -> Option<String> {
        self.running.lock().unwrap().as_ref().and_then(|running| running.url.clone())
    }

    pub(crate) fn kill(&self) {
        self.signal("-KILL");
    }

    /// It ends in good order.
    pub(crate) fn terminate(&self) {
        self.signal("-TERM");
    }

    fn signal(&self, name: &str) {
        let mut running = self.running.lock().unwrap();
        if let Some(running) = running.as_mut() {
            running.url = None;
            // It may have ended by itself.
            let _ = Command::new("kill").args([name, &running.process.to_string()]).stderr(Stdio::null()).status();
        }
    }

    /// One life, from the start to the end.
    fn run(&self, command: &mut Command, said: &Mutex<Vec<String>>, log: &Arc<Mutex<Vec<String>>>) {
        let mut child = command.spawn().unwrap();
        *self.running.lock().unwrap() = Some(Running { process: child.id(), url: None });
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let kept = Arc::clone(log);
        let reader = std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| kept.lock().unwrap().push(line));
        });
        for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
            if let Some(url) = line.strip_prefix("listening on ") {
                self.running.lock().unwrap().as_mut().unwrap().url = Some(url.to_owned());
            }
            said.lock().unwrap().push(line);
        }
        // Forgotten before it is waited for, so that its number can't mean another process.
        self.running.lock().unwrap().take();
        child.wait().unwrap();
        reader.join().unwrap();
    }
}
