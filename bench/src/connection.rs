//! One keep-alive HTTP/1.1 connection that costs its machine as little as possible: on two cores whatever the client
//! takes is missing elsewhere. It understands what the servers here send: answers with a `content-length`.

use std::net::SocketAddr;
use std::ops::Range;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Result;

const MOST_HEADERS: usize = 32;

pub(crate) struct Connection {
    stream: TcpStream,
    /// The next request, written by whoever asks.
    pub(crate) request: Vec<u8>,
    received: Vec<u8>,
    body: Range<usize>,
}

impl Connection {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let failed = |error: std::io::Error| format!("{address} takes no connection: {error}");
        let stream = TcpStream::connect(address).await.map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok(Self { stream, request: Vec::with_capacity(2048), received: Vec::with_capacity(8192), body: 0..0 })
    }

    /// Sends the request and reads its answer; gives its status.
    pub(crate) async fn ask(&mut self) -> Result<u16> {
        let failed = |error: std::io::Error| format!("a connection broke: {error}");
        self.stream.write_all(&self.request).await.map_err(failed)?;
        self.received.clear();
        let mut wanted = None;
        loop {
            if self.stream.read_buf(&mut self.received).await.map_err(failed)? == 0 {
                return Err("a server closed a connection in the middle of an answer".to_owned());
            }
            if wanted.is_none() {
                wanted = head(&self.received)?;
            }
            if let Some((status, body)) = &wanted
                && self.received.len() >= body.end
            {
                self.body = body.clone();
                return Ok(*status);
            }
        }
    }

    /// Of the last answer.
    pub(crate) fn body(&self) -> &[u8] {
        &self.received[self.body.clone()]
    }
}

/// The status and where the body lies, once all headers are there.
fn head(received: &[u8]) -> Result<Option<(u16, Range<usize>)>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(received).map_err(|error| format!("an answer can't be read: {error}"))?;
    let httparse::Status::Complete(start) = parsed else { return Ok(None) };
    let length = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = match length {
        Some(header) => std::str::from_utf8(header.value).ok().and_then(|text| text.trim().parse::<usize>().ok()),
        None => Some(0),
    };
    let length = length.ok_or("an answer's content-length is no number")?;
    Ok(Some((response.code.unwrap_or(0), start..start + length)))
}

/// One request on a connection of its own: for what is prepared or looked at beside the measuring.
pub(crate) async fn once(address: SocketAddr, request: &[u8]) -> Result<(u16, serde_json::Value)> {
    let mut connection = Connection::open(address).await?;
    connection.request.extend_from_slice(request);
    let status = connection.ask().await?;
    let value = serde_json::from_slice(connection.body()).unwrap_or(serde_json::Value::Null);
    Ok((status, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_with_its_last_byte() {
        let answer = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nx: y\r\n\r\n{}";
        for end in 0..answer.len() - 2 {
            assert_eq!(head(&answer[..end]), Ok(None), "at {end}");
        }
        let (status, body) = head(answer).expect("readable").expect("complete");
        assert_eq!((status, &answer[body]), (201, b"{}".as_slice()));
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert!(head(b"SSH-2.0\r\n\r\n").is_err());
        assert!(head(b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n").is_err());
    }
}
