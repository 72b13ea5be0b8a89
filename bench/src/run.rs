//! One run: the references start, each goal is measured in its turn, the table is printed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::load::{Load, Work};
use crate::options::{GOALS, Options, Scale};
use crate::pin::Cores;
use crate::product::Installation;
use crate::resume::Resume;
use crate::row::Row;
use crate::sample::Sample;
use crate::server::Server;
use crate::work::{Caller, Echo};
use crate::{Result, goals, load, report};

pub(crate) const CONNECTIONS: usize = 64;

/// What the goals share.
pub(crate) struct Bench<'o> {
    pub(crate) options: &'o Options,
    pub(crate) cores: Cores,
    pub(crate) resume: Resume,
    /// No two measurements draw the same keys, in this run or an earlier one.
    seed: u64,
    /// Folders that the goal which is measured has made.
    made: RefCell<BTreeSet<PathBuf>>,
}

impl Bench<'_> {
    pub(crate) fn is_full(&self) -> bool {
        self.options.measured.scale == Scale::Full
    }

    pub(crate) fn repeats(&self) -> usize {
        if self.is_full() { 9 } else { 5 }
    }

    /// Of what starts servers each time.
    pub(crate) fn starts(&self) -> usize {
        if self.is_full() { 9 } else { 5 }
    }

    pub(crate) fn load(&self) -> Load {
        let (warm_up, length) = if self.is_full() { (1000, 5000) } else { (300, 900) };
        Load {
            connections: CONNECTIONS,
            warm_up: Duration::from_millis(warm_up),
            length: Duration::from_millis(length),
        }
    }

    pub(crate) fn seed(&mut self) -> u64 {
        self.seed = crate::work::mix(self.seed);
        self.seed
    }

    /// An empty embedded store.
    pub(crate) fn sqlite(&self, name: &str) -> Result<Installation> {
        Installation::sqlite(&self.options.dalasi, &self.fresh(name)?)
    }

    /// An empty database; nothing where there is no PostgreSQL.
    pub(crate) fn postgres(&self, name: &str) -> Result<Option<Installation>> {
        let Some((url, programs)) = &self.options.postgres else { return Ok(None) };
        // Apart from the embedded stores, and no word of SQL.
        let name = format!("bench_{name}");
        Installation::postgres(&self.options.dalasi, &self.fresh(&name)?, url, programs, &name).map(Some)
    }

    pub(crate) fn fresh(&self, name: &str) -> Result<PathBuf> {
        let folder = self.options.folder.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        }
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        self.made.borrow_mut().insert(folder.clone());
        Ok(folder)
    }

    /// What a goal made is of no use to the next one, and takes its room; but for the store of the growth, on which several are
    /// measured.
    fn tidy(&self) -> Result<()> {
        let is_left = |goal: &&str| self.options.wants(goal) && self.resume.rows(goal).is_none();
        let has_use = goals::ON_GROWTH.iter().any(is_left);
        let growth = self.options.folder.join(goals::GROWTH_FOLDER);
        for folder in self.made.take().into_iter().chain([growth.clone()]) {
            if folder.is_dir() && !(has_use && folder == growth) {
                fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
            }
        }
        Ok(())
    }

    /// Reference E, or a receiver of webhooks.
    pub(crate) fn reference(&self, kind: &str, cores: Option<&String>) -> Result<Server> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Cores::command(cores, &program);
        command.arg(kind);
        Server::start(command, &self.options.folder.join("references.log"))
    }

    pub(crate) async fn echo(&mut self, echo: &Server, load: Load) -> Result<Sample> {
        let caller = Caller::new("none", self.seed());
        load::run(&[echo.address], load, |_| {
            Box::new(Echo { caller: caller.clone(), body: String::new() }) as Box<dyn Work>
        })
        .await
    }

    /// The client moves to its own core, or takes whatever is free.
    pub(crate) fn pin_client(&self, pinned: bool) -> Result<()> {
        Cores::move_to(if pinned { self.cores.client.as_ref() } else { self.cores.all.as_ref() })
    }
}

/// The addresses of several servers.
pub(crate) fn addresses(servers: &[Server]) -> Vec<SocketAddr> {
    servers.iter().map(|server| server.address).collect()
}

pub(crate) fn run(options: &Options) -> Result<()> {
    fs::create_dir_all(&options.folder).map_err(|error| format!("{}: {error}", options.folder.display()))?;
    let resume = Resume::open(options.resume.as_deref(), &options.measured)?;
    let seed = crate::work::mix(u64::from(std::process::id()) ^ resume.filled());
    let mut bench = Bench { options, cores: Cores::find(), resume, seed, made: RefCell::default() };
    if bench.cores.server.is_none() {
        println!("This machine can't pin processes to cores: everything runs wherever there is room.");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the client can't start: {error}"))?;
    let mut rows = Vec::new();
    for goal in GOALS.into_iter().filter(|goal| options.wants(goal)) {
        let known = bench.resume.rows(goal).map(<[Row]>::to_vec);
        let found = match known {
            Some(known) => known,
            None => {
                let began = crate::clock::now();
                let found = match runtime.block_on(goals::measure(&mut bench, goal)) {
                    Ok(found) => {
                        bench.resume.found(goal, found.clone())?;
                        found
                    }
                    // The other goals are worth their time all the same; the next run tries this one again.
                    Err(fault) => vec![Row::not_run(goal, "could not be measured", &fault.replace('\n', " "))],
                };
                eprintln!("{goal} took {:.0} s", began.elapsed().as_secs_f64());
                bench.tidy()?;
                found
            }
        };
        for row in &found {
            println!("{}", report::line(row));
        }
        rows.extend(found);
    }
    println!("\n{}", report::table(&rows));
    if let Some(folder) = &options.write {
        report::write(folder, &bench, &rows)?;
    }
    Ok(())
}
