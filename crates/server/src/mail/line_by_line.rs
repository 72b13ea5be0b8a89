//! A connection of which nothing is read beyond the end of a line.
//!
//! The client keeps what it has read behind an answer, also over STARTTLS: what somebody on the way puts behind the server's
//! go-ahead would count as answers under TLS. Not read by then, it comes to TLS, which can't read it and ends the connection.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

#[derive(Debug)]
pub(super) struct LineByLine(pub(super) TcpStream);

impl AsyncRead for LineByLine {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut ahead = ReadBuf::new(into.initialize_unfilled());
        let came = ready!(self.0.poll_peek(context, &mut ahead))?;
        let line = ahead.filled().iter().position(|byte| *byte == b'\n').map_or(came, |end| end + 1);
        let mut part = ReadBuf::new(into.initialize_unfilled_to(line));
        ready!(Pin::new(&mut self.0).poll_read(context, &mut part))?;
        let read = part.filled().len();
        into.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for LineByLine {
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
