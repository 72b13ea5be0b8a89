//! Is there a pooler between us and the server?
//!
//! It matters because of prepared statements. A pooler in transaction mode hands out another server connection each time,
//! and one that doesn't keep track of statements lets `s7` mean *another process's* `s7` there: a different statement, run
//! in silence with our values. So behind a pooler nothing is prepared.
//!
//! A server tells its process number when a connection begins, and again when it is asked in SQL. A pooler makes one up for
//! the first. The client library keeps it to itself, but writes it into a cancel request, which we let it write to us.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use tokio_postgres::Client;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

use super::fault;
use crate::error::Error;

const PROCESS: &str = "select pg_backend_pid()";

pub(crate) async fn is_between(client: &Client) -> Result<bool, Error> {
    let announced = announced_process(client).await.map_err(|error| Error::Unavailable(error.to_string()))?;
    let rows = client.query_typed(PROCESS, &[]).await.map_err(|error| Error::Unavailable(fault::describe(&error)))?;
    let serving: i32 = rows
        .first()
        .and_then(|row| row.try_get(0).ok())
        .ok_or_else(|| Error::Corrupt("the server doesn't know its process number".to_owned()))?;
    Ok(announced != serving)
}

async fn announced_process(client: &Client) -> io::Result<i32> {
    let token = client.cancel_token();
    let (near, far) = duplex(64);
    let (sent, read) = tokio::join!(token.cancel_query_raw(near, Passing), read_cancel_request(far));
    let process = read?;
    sent.map_err(io::Error::other)?;
    Ok(process)
}

/// Length, code, process number, secret; before it perhaps the question whether we speak TLS.
async fn read_cancel_request(mut far: DuplexStream) -> io::Result<i32> {
    const TLS_REQUEST_LENGTH: i32 = 8;
    let mut length = far.read_i32().await?;
    if length == TLS_REQUEST_LENGTH {
        far.read_i32().await?;
        far.write_all(b"S").await?;
        length = far.read_i32().await?;
    }
    let _code = far.read_i32().await?;
    let process = far.read_i32().await?;
    // The secret's length depends on the version of the protocol. It is read so that the sender isn't cut off.
    let mut secret = vec![0; usize::try_from(length - 12).unwrap_or(0).min(256)];
    far.read_exact(&mut secret).await?;
    Ok(process)
}

/// Encrypts nothing: both ends are ours.
struct Passing;

impl TlsConnect<DuplexStream> for Passing {
    type Stream = Passed;
    type Error = io::Error;
    type Future = Ready<io::Result<Passed>>;

    fn connect(self, stream: DuplexStream) -> Self::Future {
        ready(Ok(Passed(stream)))
    }
}

struct Passed(DuplexStream);

impl TlsStream for Passed {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Passed {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Passed {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
