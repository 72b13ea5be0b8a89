//! The client against listeners on this machine and a name server that says what a test wants.

mod calls;
mod secured;
mod urls;

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;

/// Answers each name from a list of answers, one per question; the last one is repeated.
#[derive(Default)]
struct FakeNames {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    questions: AtomicUsize,
}

impl FakeNames {
    fn say(&self, name: &str, answers: &[&[&str]]) {
        let answers = answers
            .iter()
            .map(|addresses| addresses.iter().map(|text| text.parse().expect("an address")).collect())
            .collect();
        self.answers.lock().expect("no panic").insert(name.to_owned(), answers);
    }

    fn questions(&self) -> usize {
        self.questions.load(Ordering::SeqCst)
    }
}

impl Resolver for FakeNames {
    fn resolve(&self, name: &str) -> Resolving {
        self.questions.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().expect("no panic");
        let answer = match answers.get_mut(name) {
            Some(list) if list.len() > 1 => Ok(list.remove(0)),
            Some(list) => Ok(list[0].clone()),
            None => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
        };
        Box::pin(async move { answer })
    }
}

fn egress(allow_loopback: bool, names: &Arc<FakeNames>) -> Egress {
    let resolver: Arc<dyn Resolver> = Arc::<FakeNames>::clone(names);
    Egress::new(EgressSettings {
        allow_loopback,
        timeout: Duration::from_secs(5),
        resolver,
        ..EgressSettings::default()
    })
}
