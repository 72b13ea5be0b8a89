//! Whoever takes a server's memory: each announces nearly the largest body that it reads, sends most of it, and then hardly
//! anything. It may refuse them and cut them off; then they come again.

use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpSocket;
use tokio::time::sleep;

/// In bytes. Programs may send a MiB.
const BODY: usize = (1 << 20) - 1;
static PIECE: [u8; 16 << 10] = [b' '; 16 << 10];
const PAUSE: Duration = Duration::from_millis(50);
/// The last bytes come one by one, and take longer than a body may.
const LAST: usize = 60;
const LONG_PAUSE: Duration = Duration::from_secs(1);

/// The sender of this number, until it is dropped. Each has an address of its own, since one client gets only a share of the memory.
pub(crate) async fn keep_sending(address: SocketAddr, key: String, number: u32, sent: Rc<Cell<u64>>) {
    let from = Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + 1 + number);
    let head = format!(
        "POST /v1/checkouts HTTP/1.1\r\nHost: dalasi\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n\
         Content-Length: {BODY}\r\n\r\n"
    );
    loop {
        let _ = send(from, address, &head, &sent).await;
        sleep(PAUSE).await;
    }
}

async fn send(from: Ipv4Addr, address: SocketAddr, head: &str, sent: &Cell<u64>) -> io::Result<()> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((from, 0)))?;
    let mut stream = socket.connect(address).await?;
    stream.write_all(head.as_bytes()).await?;
    let mut left = BODY;
    while left > 0 {
        let (bytes, pause) = if left > LAST { (PIECE.len().min(left - LAST), PAUSE) } else { (1, LONG_PAUSE) };
        stream.write_all(&PIECE[..bytes]).await?;
        sent.set(sent.get() + bytes as u64);
        left -= bytes;
        sleep(pause).await;
    }
    Ok(())
}
