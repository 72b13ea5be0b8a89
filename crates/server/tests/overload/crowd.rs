//! Clients that make checkouts: as fast as they are answered, or at a pace of their own.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::LocalSet;

/// Connections that wait for something to ask. More than a server lets in at once.
const CONNECTIONS: usize = 2_000;
/// As long as any client of ours waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Crowd {
    runtime: Runtime,
    address: SocketAddr,
    key: String,
    /// No two requests have the same key.
    made: Rc<RefCell<u64>>,
}

/// What came of requests.
#[derive(Default)]
pub(crate) struct Sample {
    length: Duration,
    pub(crate) made: usize,
    /// How long it took since the request was due.
    pub(crate) done: Vec<Duration>,
    /// 503 or 429 with `Retry-After`.
    pub(crate) refused: Vec<Duration>,
    /// Any other answer, and connections that broke before one.
    pub(crate) broken: Vec<String>,
}

impl Sample {
    /// A second.
    pub(crate) fn goodput(&self) -> f64 {
        self.done.len() as f64 / self.length.as_secs_f64()
    }

    pub(crate) fn answered(&self) -> usize {
        self.done.len() + self.refused.len() + self.broken.len()
    }

    fn note(&mut self, due: Instant, answer: Result<Answer, String>) {
        match answer {
            Ok(Answer { status: 201, .. }) => self.done.push(due.elapsed()),
            Ok(Answer { status: 503 | 429, waits: true, .. }) => self.refused.push(due.elapsed()),
            Ok(Answer { status, .. }) => self.broken.push(format!("answered {status}")),
            Err(fault) => self.broken.push(fault),
        }
    }
}

/// What is to be asked, and since when.
#[derive(Default)]
struct Due {
    times: RefCell<VecDeque<Instant>>,
    more: Notify,
}

impl Crowd {
    pub(crate) fn new(address: SocketAddr, key: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, address, key: key.to_owned(), made: Rc::default() }
    }

    /// Each connection asks again once it is answered.
    pub(crate) fn closed(&mut self, connections: usize, length: Duration) -> Sample {
        let sample = Rc::new(RefCell::new(Sample { length, ..Sample::default() }));
        let end = Instant::now() + length;
        LocalSet::new().block_on(&self.runtime, async {
            let clients = (0..connections).map(|_| {
                let (mut client, sample) = (self.client(), Rc::clone(&sample));
                tokio::task::spawn_local(async move {
                    while Instant::now() < end {
                        sample.borrow_mut().made += 1;
                        let due = Instant::now();
                        let answer = client.ask().await;
                        sample.borrow_mut().note(due, answer);
                    }
                })
            });
            for client in clients.collect::<Vec<_>>() {
                client.await.unwrap();
            }
        });
        Rc::into_inner(sample).unwrap().into_inner()
    }

    /// So many a second, whatever becomes of them. What has no answer after so much patience gets none.
    pub(crate) fn open(&mut self, rate: f64, length: Duration, patience: Duration) -> Sample {
        let sample = Rc::new(RefCell::new(Sample { length, ..Sample::default() }));
        let due = Rc::new(Due::default());
        LocalSet::new().block_on(&self.runtime, async {
            for _ in 0..CONNECTIONS {
                let (mut client, sample, due) = (self.client(), Rc::clone(&sample), Rc::clone(&due));
                tokio::task::spawn_local(async move {
                    loop {
                        let next = due.times.borrow_mut().pop_front();
                        match next {
                            Some(time) => {
                                let answer = client.ask().await;
                                sample.borrow_mut().note(time, answer);
                            }
                            None => due.more.notified().await,
                        }
                    }
                });
            }
            let begin = Instant::now();
            let all = (rate * length.as_secs_f64()) as usize;
            let mut made = 0;
            while made < all {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let now = begin.elapsed().min(length);
                let until = ((rate * now.as_secs_f64()) as usize).min(all);
                for number in made..until {
                    due.times.borrow_mut().push_back(begin + Duration::from_secs_f64(number as f64 / rate));
                    due.more.notify_one();
                }
                made = if now == length { all } else { until };
            }
            sample.borrow_mut().made = all;
            let end = Instant::now() + patience;
            while sample.borrow().answered() < all && Instant::now() < end {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        Rc::into_inner(sample).unwrap().into_inner()
    }

    fn client(&self) -> Client {
        Client { address: self.address, key: self.key.clone(), made: Rc::clone(&self.made), stream: None }
    }
}

struct Client {
    address: SocketAddr,
    key: String,
    made: Rc<RefCell<u64>>,
    stream: Option<TcpStream>,
}

struct Answer {
    status: u16,
    /// It says for how long to wait.
    waits: bool,
    closes: bool,
}

impl Client {
    async fn ask(&mut self) -> Result<Answer, String> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(self.address).await.map_err(|error| format!("no connection: {error}"))?,
        };
        let number = {
            let mut made = self.made.borrow_mut();
            *made += 1;
            *made
        };
        let body = format!(
            r#"{{"amount":"100.00","currency":"GMD","reference":"order-{number}","success_url":"https://shop.example/a"}}"#
        );
        let request = format!(
            "POST /v1/checkouts HTTP/1.1\r\nHost: dalasi\r\nAuthorization: Bearer {}\r\nIdempotency-Key: overload-{number}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        );
        let asked = tokio::time::timeout(TIMEOUT, exchange(&mut stream, request.as_bytes())).await;
        let answer = asked.map_err(|_| "no answer".to_owned())?.map_err(|error| format!("it broke: {error}"))?;
        if !answer.closes {
            self.stream = Some(stream);
        }
        Ok(answer)
    }
}

async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends a request and reads its answer to the end.
async fn exchange(stream: &mut TcpStream, request: &[u8]) -> std::io::Result<Answer> {
    stream.write_all(request).await?;
    let mut received = Vec::with_capacity(4096);
    loop {
        if stream.read_buf(&mut received).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&received[..end]).to_ascii_lowercase();
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let length: usize = header("content-length:").and_then(|length| length.parse().ok()).unwrap_or(0);
        if received.len() >= end + 4 + length {
            let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
            let closes = header("connection:") == Some("close");
            return Ok(Answer { status, waits: header("retry-after:").is_some(), closes });
        }
    }
}
