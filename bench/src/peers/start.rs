//! Where each of them lies and how it is started.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use super::Peer;
use super::create::request;
use crate::Result;
use crate::connection::once;
use crate::goals::NO_POSTGRES;
use crate::options::Options;
use crate::pin::{Cores, quiet};
use crate::product::fresh_database;
use crate::run::Bench;
use crate::server::Server;

const VENDURE: &str = include_str!("../../peers/vendure.mjs");
const LNBITS: &str = include_str!("../../peers/lnbits.py");

pub(super) struct Running {
    pub(super) peer: Peer,
    pub(super) server: Server,
    /// One create, as often as it is sent.
    pub(super) request: Rc<[u8]>,
}

impl Peer {
    /// Why it can't be run.
    pub(super) fn missing(self, options: &Options) -> Option<&'static str> {
        let is_there = options.peers.as_deref().is_some_and(|folder| folder.join(self.file()).exists());
        if !is_there {
            return Some("it is not installed");
        }
        (self == Self::Vendure && options.postgres.is_none()).then_some(NO_POSTGRES)
    }

    /// In the folder of all of them.
    fn file(self) -> &'static str {
        match self {
            Self::Localstripe => "localstripe/bin/localstripe",
            Self::Vendure => "npm/node_modules/@vendure/core/package.json",
            Self::Mock => "npm/node_modules/stripe-stateful-mock/dist/cli.js",
            Self::Lnbits => "lnbits/bin/lnbits",
        }
    }
}

impl Running {
    /// With nothing stored.
    pub(super) async fn start(bench: &Bench<'_>, peer: Peer) -> Result<Self> {
        let installed = bench.options.peers.as_deref().ok_or("it is not installed")?;
        let installed = std::path::absolute(installed).map_err(|error| error.to_string())?;
        let data = bench.fresh("peer")?;
        let address = free_address()?;
        let port = address.port().to_string();
        let program = |path: &str| command(bench.cores.server.as_ref(), &installed.join(path));
        let node = || {
            let mut node = command(bench.cores.server.as_ref(), Path::new("node"));
            // Modules are found from here.
            node.current_dir(installed.join("npm")).env("NODE_ENV", "production");
            node
        };
        let command = match peer {
            Peer::Localstripe => {
                let mut localstripe = program(peer.file());
                localstripe.args(["--from-scratch", "--port", &port]);
                localstripe
            }
            Peer::Mock => {
                let mut mock = node();
                mock.arg(installed.join(peer.file())).env("PORT", &port).env("LOG_LEVEL", "error");
                mock
            }
            Peer::Vendure => {
                let (cluster, programs) = bench.options.postgres.as_ref().ok_or(NO_POSTGRES)?;
                let database = fresh_database(cluster, programs, "peer_vendure")?;
                let mut vendure = node();
                vendure.args(["--input-type=module", "--eval", VENDURE, &database, &port]);
                vendure
            }
            Peer::Lnbits => {
                let mut lnbits = program("lnbits/bin/python");
                lnbits.args(["-c", LNBITS]).arg(&data).arg(&port);
                lnbits
            }
        };
        let server = Server::start_at(address, command, &data.join("log"))?;
        let key = match peer {
            Peer::Lnbits => lnbits_key(address).await?,
            Peer::Localstripe | Peer::Mock | Peer::Vendure => "sk_test_12345".to_owned(),
        };
        Ok(Self { peer, server, request: peer.create(&key).into() })
    }
}

/// It dies with us, however we end, where the system can promise that.
fn command(cores: Option<&String>, program: &Path) -> Command {
    const WITH_US: [&str; 2] = ["--pdeathsig", "KILL"];
    if !quiet(Command::new("setpriv").args(WITH_US).arg("true")) {
        return Cores::command(cores, program);
    }
    let mut command = Cores::command(cores, Path::new("setpriv"));
    command.args(WITH_US).arg(program);
    command
}

fn free_address() -> Result<SocketAddr> {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    free.map_err(|error| format!("no free port: {error}"))
}

/// Of a new wallet without a currency: a price in one would have to be asked for outside.
async fn lnbits_key(address: SocketAddr) -> Result<String> {
    const JSON: &str = "content-type: application/json\r\n";
    let account = request("POST", "/api/v1/account", JSON, r#"{"name":"Kairaba Books"}"#);
    let (status, wallet) = once(address, &account).await?;
    let key = wallet["adminkey"].as_str().ok_or_else(|| format!("an account was answered with {status}: {wallet}"))?;
    let headers = format!("{JSON}x-api-key: {key}\r\n");
    match once(address, &request("PATCH", "/api/v1/wallet", &headers, r#"{"currency":""}"#)).await? {
        (200, _) => Ok(key.to_owned()),
        (status, answer) => Err(format!("a wallet's currency was answered with {status}: {answer}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_missing() {
        let parse = |line: &str| Options::parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        for line in ["--dalasi d --folder f", "--dalasi d --folder f --peers /dev/null"] {
            let options = parse(line).expect("a good line");
            assert!(Peer::ALL.into_iter().all(|peer| peer.missing(&options) == Some("it is not installed")));
        }
    }
}
