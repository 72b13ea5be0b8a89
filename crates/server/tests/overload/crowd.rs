//! Clients that make checkouts: as fast as they are answered, or at a pace of their own.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::task::LocalSet;

use crate::senders::keep_sending;

/// Connections that wait for something to ask. More than a server lets in at once.
const CONNECTIONS: usize = 2_000;
/// Longer than any client of ours waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(crate) struct Crowd {
    runtime: Runtime,
    address: SocketAddr,
    key: String,
    /// No two requests have the same key.
    made: Rc<RefCell<u64>>,
    /// While so many that are due wait for a connection, no more are made.
    pub(crate) most_waiting: usize,
    /// So many send a large body each, and come to no end of it, beside what is asked at a pace of its own.
    pub(crate) senders: u32,
    /// Bytes of those bodies.
    pub(crate) sent: Rc<Cell<u64>>,
}

/// What came of requests.
#[derive(Default)]
pub(crate) struct Sample {
    length: Duration,
    pub(crate) made: usize,
    /// Due, and not made.
    pub(crate) left_out: usize,
    /// How long it took since the request was due.
    pub(crate) done: Vec<Duration>,
    /// 503 or 429 with `Retry-After`.
    pub(crate) refused: Vec<Duration>,
    /// Any other answer, and connections that broke before one.
    pub(crate) broken: Vec<String>,
    /// How late they were made, each time that some were: much, and it is the crowd that can do no more.
    pub(crate) late: Vec<Duration>,
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
        let (key, made, sent) = (key.to_owned(), Rc::default(), Rc::default());
        Self { runtime, address, key, made, most_waiting: usize::MAX, senders: 0, sent }
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
                tokio::time::timeout(length + TIMEOUT, client).await.expect("every answer comes").unwrap();
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
            for number in 0..self.senders {
                let (key, sent) = (self.key.clone(), Rc::clone(&self.sent));
                tokio::task::spawn_local(keep_sending(self.address, key, number, sent));
            }
            let begin = Instant::now();
            let all = (rate * length.as_secs_f64()) as usize;
            let (mut come, mut left_out) = (0, 0);
            while come < all {
                tokio::time::sleep(Duration::from_millis(1)).await;
                let now = begin.elapsed().min(length);
                let until = ((rate * now.as_secs_f64()) as usize).min(all);
                for number in come..until {
                    if due.times.borrow().len() >= self.most_waiting {
                        left_out += 1;
                        continue;
                    }
                    due.times.borrow_mut().push_back(begin + Duration::from_secs_f64(number as f64 / rate));
                    due.more.notify_one();
                }
                sample.borrow_mut().late.push(begin.elapsed() - Duration::from_secs_f64(come as f64 / rate));
                come = if now == length { all } else { until };
            }
            let made = all - left_out;
            sample.borrow_mut().made = made;
            sample.borrow_mut().left_out = left_out;
            let end = Instant::now() + patience;
            while sample.borrow().answered() < made && Instant::now() < end {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        Rc::into_inner(sample).unwrap().into_inner()
    }

    fn client(&self) -> Client {
        Client::new(self.address, &self.key, Rc::clone(&self.made))
    }
}

/// One connection at a time, and as little work as can be: who is busy himself sees no server at its limit.
struct Client {
    address: SocketAddr,
    made: Rc<RefCell<u64>>,
    request: Vec<u8>,
    /// Where the number of the request stands.
    places: Vec<usize>,
    received: Vec<u8>,
    stream: Option<TcpStream>,
}

/// In the request, until it is known.
const NUMBER: &[u8] = b"000000000000";

struct Answer {
    status: u16,
    /// It says for how long to wait.
    waits: bool,
    closes: bool,
}

impl Client {
    fn new(address: SocketAddr, key: &str, made: Rc<RefCell<u64>>) -> Self {
        let number = String::from_utf8_lossy(NUMBER);
        let body = format!(
            r#"{{"amount":"100.00","currency":"GMD","reference":"order-{number}","success_url":"https://shop.example/a"}}"#
        );
        let request = format!(
            "POST /v1/checkouts HTTP/1.1\r\nHost: dalasi\r\nAuthorization: Bearer {key}\r\nIdempotency-Key: overload-{number}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let places = request.match_indices(&*number).map(|(place, _)| place).collect();
        Self { address, made, request: request.into_bytes(), places, received: Vec::with_capacity(4096), stream: None }
    }

    async fn ask(&mut self) -> Result<Answer, String> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => connect(self.address).await.map_err(|error| format!("no connection: {error}"))?,
        };
        self.count();
        self.received.clear();
        let answer = exchange(&mut stream, &self.request, &mut self.received).await;
        let answer = answer.map_err(|error| format!("it broke: {error}"))?;
        if !answer.closes {
            self.stream = Some(stream);
        }
        Ok(answer)
    }

    fn count(&mut self) {
        let mut made = self.made.borrow_mut();
        *made += 1;
        let number = format!("{made:0width$}", width = NUMBER.len());
        for &place in &self.places {
            self.request[place..place + NUMBER.len()].copy_from_slice(number.as_bytes());
        }
    }
}

async fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends a request and reads its answer to the end.
async fn exchange(stream: &mut TcpStream, request: &[u8], received: &mut Vec<u8>) -> std::io::Result<Answer> {
    stream.write_all(request).await?;
    loop {
        if stream.read_buf(received).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let mut headers = [httparse::EMPTY_HEADER; 48];
        let mut head = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(end) = head.parse(received).map_err(std::io::Error::other)? else { continue };
        let header = |name: &str| {
            let found = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            found.and_then(|header| std::str::from_utf8(header.value).ok())
        };
        let length: usize = header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        if received.len() >= end + length {
            let closes = header("connection") == Some("close");
            return Ok(Answer { status: head.code.unwrap_or(0), waits: header("retry-after").is_some(), closes });
        }
    }
}
