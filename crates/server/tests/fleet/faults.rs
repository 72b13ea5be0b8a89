//! What happens to servers and to their database while they work.

use std::sync::Arc;
use std::time::Duration;

use domain::Entropy;
use tokio_postgres::error::SqlState;

use crate::cluster::{Cluster, Stop};
use crate::processes::Fleet;
use crate::proxy::Proxy;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// SIGKILL to one server, which is started again.
    KillServer,
    /// All connections end, whatever they are doing.
    Cut,
    /// COMMITs reach the database, their answers don't come back.
    SwallowAnswers,
    SwallowCommits,
    Stall,
    /// No connection, and none to be had for a while.
    Refuse,
    /// The database ends connections that are inside a transaction.
    TerminateBackends,
    /// A lock that everybody waits for.
    LockTable,
    /// A stranger takes two locks in the other order.
    Deadlock,
    /// Strangers hold every connection that the database has, and take those that come free.
    TakeConnections,
    Restart,
    Crash,
}

impl Fault {
    pub(crate) const ALL: [Fault; 12] = [
        Fault::KillServer,
        Fault::Cut,
        Fault::SwallowAnswers,
        Fault::SwallowCommits,
        Fault::Stall,
        Fault::Refuse,
        Fault::TerminateBackends,
        Fault::LockTable,
        Fault::Deadlock,
        Fault::TakeConnections,
        Fault::Restart,
        Fault::Crash,
    ];

    /// Returns when the fault is over.
    pub(crate) async fn happen(self, place: &Faulty<'_>, random: &mut Entropy) {
        let pause = Duration::from_millis(200 + random.below(1_300));
        match self {
            Fault::KillServer => kill_one(place.fleet, random),
            Fault::Cut => place.proxy.cut(),
            Fault::SwallowAnswers => {
                place.proxy.swallow_answers(1 + u32::try_from(random.below(6)).unwrap());
                tokio::time::sleep(pause).await;
                place.proxy.heal();
            }
            Fault::SwallowCommits => {
                place.proxy.swallow_commits(1 + u32::try_from(random.below(6)).unwrap());
                tokio::time::sleep(pause).await;
                place.proxy.heal();
            }
            Fault::Stall => place.proxy.stall(pause).await,
            Fault::Refuse => place.proxy.refuse(pause).await,
            Fault::TerminateBackends => {
                let sql = "select pg_terminate_backend(pid) from pg_stat_activity
                    where application_name = 'dalasi' and state like 'idle in transaction%'";
                for _ in 0..10 {
                    place.say(sql).await;
                    tokio::time::sleep(pause / 20).await;
                }
            }
            Fault::LockTable => {
                place.say("begin; lock table checkouts in exclusive mode; select pg_sleep(1.5); commit").await;
            }
            Fault::Deadlock => {
                for _ in 0..5 {
                    place
                        .say(
                            "begin; lock table events in share row exclusive mode; select pg_sleep(0.05);
                             lock table checkouts in share row exclusive mode; commit",
                        )
                        .await;
                }
            }
            Fault::TakeConnections => place.take_connections(pause).await,
            Fault::Restart => restart(place.cluster, Stop::Fast).await,
            Fault::Crash => restart(place.cluster, Stop::Immediate).await,
        }
    }
}

/// Where faults happen.
pub(crate) struct Faulty<'a> {
    pub(crate) fleet: &'a Arc<Fleet>,
    pub(crate) cluster: &'a Arc<Cluster>,
    pub(crate) proxy: &'a Proxy,
}

impl Faulty<'_> {
    /// By a connection that has no part in the load. It may lose a deadlock.
    async fn say(&self, sql: &str) {
        let client = connect(&self.cluster.url()).await;
        let _ = client.batch_execute(sql).await;
    }

    /// Those of the servers end when there are no others, and are not to be had again for a while.
    async fn take_connections(&self, pause: Duration) {
        let url = self.cluster.url();
        let mut taken = Vec::new();
        while let Some(client) = another(&url).await {
            taken.push(client);
        }
        let before = taken.len();
        assert!(before > 0, "a stranger has connections too");
        self.proxy.cut();
        let more = async {
            loop {
                match another(&url).await {
                    Some(client) => taken.push(client),
                    None => tokio::time::sleep(Duration::from_millis(1)).await,
                }
            }
        };
        let _: Result<(), _> = tokio::time::timeout(pause, more).await;
        assert!(taken.len() > before, "the servers were faster, and kept all of theirs");
    }
}

/// A connection, unless there are too many.
async fn another(url: &str) -> Option<tokio_postgres::Client> {
    match tokio_postgres::connect(url, tokio_postgres::NoTls).await {
        Ok((client, connection)) => {
            tokio::spawn(connection);
            Some(client)
        }
        Err(error) if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS) => None,
        Err(error) => panic!("no answer to a stranger: {error}"),
    }
}

pub(crate) fn kill_one(fleet: &Fleet, random: &mut Entropy) {
    let count = u64::try_from(fleet.members.len()).unwrap();
    fleet.members[usize::try_from(random.below(count)).unwrap()].kill();
}

async fn restart(cluster: &Arc<Cluster>, how: Stop) {
    let cluster = Arc::clone(cluster);
    let restarted = tokio::task::spawn_blocking(move || {
        cluster.stop(how);
        cluster.begin();
    });
    restarted.await.unwrap();
}

pub(crate) async fn connect(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
