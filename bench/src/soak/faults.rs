//! What goes wrong all the while: payments that fail, of which receivers that fail are told, and payers who leave.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::mix::payment;
use crate::connection::once;
use crate::work::{Caller, checkout_body};
use crate::{Result, clock};

/// One after the other, for ever. What becomes of them is the watch's to see.
pub(super) async fn go_wrong(address: SocketAddr, caller: Caller, pause: Duration) {
    loop {
        let began = clock::now();
        let _ = fail_and_leave(address, &caller).await;
        tokio::time::sleep(pause.saturating_sub(began.elapsed())).await;
    }
}

async fn fail_and_leave(address: SocketAddr, caller: &Caller) -> Result<()> {
    let (mut body, mut request) = (String::new(), Vec::new());
    checkout_body(caller.number(), &mut body);
    caller.write("POST", "/v1/checkouts", &body, &mut request);
    // In the middle of a request, and before its answer.
    for until in [request.len() / 2, request.len()] {
        leave(address, &request[..until]).await?;
    }
    let (_, answer) = once(address, &request).await?;
    let text = |name: &str| answer["data"][name].as_str().map(str::to_owned).ok_or("no checkout was made");
    let (id, client_secret) = (text("id")?, text("client_secret")?);
    request.clear();
    caller.get(&format!("/checkout/{id}"), &mut request);
    leave(address, &request).await?;
    request.clear();
    // There is not enough money.
    caller.write("POST", "/v1/pay/initialize", &payment(&client_secret, "+2207000001"), &mut request);
    once(address, &request).await.map(drop)
}

async fn leave(address: SocketAddr, request: &[u8]) -> Result<()> {
    let failed = |error: std::io::Error| format!("nobody can leave: {error}");
    let mut stream = TcpStream::connect(address).await.map_err(failed)?;
    stream.write_all(request).await.map_err(failed)
}
