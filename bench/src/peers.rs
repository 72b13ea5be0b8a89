//! G10: what a user might pick instead, where it is installed.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::goals::creates_beside;
use crate::load::{self, Load, Step, Work};
use crate::row::{Row, Unit, Wanted};
use crate::run::Bench;
use crate::{Result, clock};

const LONGEST_START: Duration = Duration::from_secs(20);

pub(crate) async fn compare(bench: &mut Bench<'_>) -> Result<Vec<Row>> {
    let not_run = |name: &str| Row::not_run("G10", &format!("create / {name}"), "it is not installed");
    let localstripe = match Peer::localstripe()? {
        None => not_run("localstripe"),
        Some(peer) => {
            bench.pin_client(true)?;
            let mut ratios = Vec::new();
            let mut count = 0;
            for _ in 0..bench.repeats() {
                let theirs = peer.measure(bench.load()).await?;
                let ours = creates_beside(bench).await?;
                ratios.push(ours.rate() / theirs);
                count += ours.count();
            }
            Row::new("G10", "create / localstripe", &ratios, Wanted::AtLeast(300.0, Unit::Times), count)
        }
    };
    Ok(vec![localstripe, not_run("Vendure on PostgreSQL"), not_run("stripe-stateful-mock"), not_run("LNbits")])
}

struct Peer {
    child: Child,
    address: SocketAddr,
}

impl Peer {
    /// Nothing where it is not installed.
    fn localstripe() -> Result<Option<Self>> {
        let is_there = Command::new("localstripe").arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !is_there.is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let address = free.map_err(|error| error.to_string())?;
        let child = Command::new("localstripe")
            .args(["--from-scratch", "--port"])
            .arg(address.port().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("localstripe: {error}"))?;
        let peer = Self { child, address };
        let began = clock::now();
        while TcpStream::connect(peer.address).is_err() {
            if began.elapsed() > LONGEST_START {
                return Err("localstripe did not start".to_owned());
            }
            std::thread::park_timeout(Duration::from_millis(50));
        }
        Ok(Some(peer))
    }

    async fn measure(&self, load: Load) -> Result<f64> {
        Ok(load::run(&[self.address], load, |_| Box::new(Intent) as Box<dyn Work>).await?.rate())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The nearest that they have to a checkout.
struct Intent;

impl Work for Intent {
    fn next(&mut self, request: &mut Vec<u8>) -> bool {
        const BODY: &str = "amount=145000&currency=usd&description=Two+bags+of+rice";
        let head = "POST /v1/payment_intents HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer sk_test_12345\r\n\
            content-type: application/x-www-form-urlencoded\r\n";
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(format!("content-length: {}\r\n\r\n{BODY}", BODY.len()).as_bytes());
        true
    }

    fn answered(&mut self, status: u16, _: &[u8]) -> Step {
        if status == 200 { Step::Done } else { Step::Failed }
    }
}
