//! HTTP/1.1 over a persistent connection, in counts.
//!
//! Headers cost bytes and a request costs a round trip; nothing else of HTTP matters to the model. Since no bytes are
//! transferred, the two ends cannot parse what they receive: they share one table of [`Exchanges`], to which the client
//! appends, and each end reads the lengths of messages from the table. A message begins where the previous one of its
//! direction ended, so the table maps stream offsets to message boundaries.
//!
//! A response may be cancelled, as in HTTP/2 and not in HTTP/1.1: a message of the client makes the server withdraw
//! unsent bytes ([`Stream::withdraw`]); bytes in flight still arrive. So a client that abandons a download can be
//! modelled on one connection. HTTP/1.1 closes the connection instead and opens another one ([`Stream::reopen`]); the
//! table of exchanges, and the numbers of the requests, continue.
//!
//! Both ends are sans-IO: they act only when their host calls them, on the [`Stream`] passed to them.
//! Ours: the server answers at once; time to find and open a file is not modelled. A host may
//! [pause](HttpServer::pause) it, and then it writes nothing, also in the middle of a response.

use crate::cmcd::Cmcd;
use crate::stream::Stream;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A request of the size that a player sends, with the lines that VLC 3.0 sends.
const TYPICAL_REQUEST: &str = "GET /video/feature.mp4 HTTP/1.1\r\nHost: media.example.net\r\nAccept: */*\r\n\
    Accept-Language: en_US\r\nUser-Agent: VLC/3.0.23 LibVLC/3.0.23\r\nRange: bytes=0-\r\n\r\n";

/// A response header of the size that Apache 2.4 sends for a file (the server of papers S and H).
const TYPICAL_RESPONSE: &str = "HTTP/1.1 206 Partial Content\r\nDate: Fri, 20 Nov 2026 09:00:00 GMT\r\n\
    Server: Apache/2.4.71 (Debian)\r\nLast-Modified: Mon, 02 Nov 2026 08:00:00 GMT\r\nETag: \"1860d1c0-5f0c1c2b3a400\"\r\n\
    Accept-Ranges: bytes\r\nContent-Length: 409000000\r\nContent-Range: bytes 0-408999999/409000000\r\n\
    Keep-Alive: timeout=5, max=100\r\nConnection: Keep-Alive\r\nContent-Type: video/mp4\r\n\r\n";

/// Bytes of a request without a body: the length of a typical one, written out in this module.
pub const REQUEST_HEADER_BYTES: u64 = TYPICAL_REQUEST.len() as u64;
/// Bytes of a response header: the length of a typical one, written out in this module.
pub const RESPONSE_HEADER_BYTES: u64 = TYPICAL_RESPONSE.len() as u64;

/// Bytes of a message that cancels a response: HTTP/2's RST_STREAM (RFC 9113, section 6.4: a header of 9, a code of 4).
pub const CANCEL_BYTES: u64 = 13;

/// One request and its response, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of the whole request.
    pub request: u64,
    /// Bytes of the response's header.
    pub response_header: u64,
    /// Bytes of the response's body.
    pub body: u64,
    /// The media segment that the address names, if it names one.
    pub media: Option<MediaSegment>,
    /// What the player reports with the request.
    pub cmcd: Option<Arc<Cmcd>>,
}

/// A media segment of the MPD that the server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaSegment {
    /// Rank of the representation.
    pub representation: u32,
    /// Number of the media segment, from zero.
    pub index: u32,
}

/// A response that was written to the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it carries, if that is a media segment.
    pub media: Option<MediaSegment>,
    /// Bytes of header and body.
    pub bytes: u64,
    /// One past its last byte in the stream.
    pub end: u64,
    /// What the player reported with the request.
    pub cmcd: Option<Arc<Cmcd>>,
}

impl Exchange {
    /// A GET with headers of typical size.
    pub fn get(body: u64) -> Self {
        Exchange {
            request: REQUEST_HEADER_BYTES,
            response_header: RESPONSE_HEADER_BYTES,
            body,
            media: None,
            cmcd: None,
        }
    }
}

/// A message of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Message {
    Request(Exchange),
    /// Cancels the response to this message.
    Cancel(usize),
}

impl Message {
    /// Bytes of the message itself.
    fn bytes(&self) -> u64 {
        match self {
            Message::Request(exchange) => exchange.request,
            Message::Cancel(_) => CANCEL_BYTES,
        }
    }
}

/// The exchanges of one connection in the order of their requests, shared by its two ends.
#[derive(Clone, Debug, Default)]
pub struct Exchanges(Arc<Mutex<Vec<Message>>>);

impl Exchanges {
    /// An empty table.
    pub fn new() -> Self {
        Exchanges::default()
    }

    /// The exchange of the client's `index`-th message; `None` if there is no such message, or it is a cancellation.
    pub fn at(&self, index: usize) -> Option<Exchange> {
        match self.message(index)? {
            Message::Request(exchange) => Some(exchange),
            Message::Cancel(_) => None,
        }
    }

    fn count(&self) -> usize {
        self.with(|list| list.len())
    }

    fn message(&self, index: usize) -> Option<Message> {
        self.with(|list| list.get(index).cloned())
    }

    fn append(&self, message: Message) -> usize {
        self.with(|list| {
            list.push(message);
            list.len() - 1
        })
    }

    /// Shortens the body of a response.
    fn shorten(&self, index: usize, by: u64) {
        self.with(|list| {
            if let Some(Message::Request(exchange)) = list.get_mut(index) {
                exchange.body -= by;
            }
        });
    }

    fn with<T>(&self, f: impl FnOnce(&mut Vec<Message>) -> T) -> T {
        // Every update is a single step, so the list is consistent even if another holder panicked.
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The client's end: places requests and divides the stream into responses.
#[derive(Debug)]
pub struct HttpClient {
    exchanges: Exchanges,
    /// Number of the response being read.
    current: u32,
    header_left: u64,
    body_left: u64,
    body: u64,
    began: bool,
    /// The response being read was cancelled: it may end early.
    cancelled: bool,
    waiting: VecDeque<(u32, Exchange)>,
    /// Bytes read from the stream in total.
    read: u64,
}

/// Result of one call of [`HttpClient::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes of the body read by this call.
    pub body: u64,
    /// The request whose response's first byte (of the header) was read by this call.
    pub began: Option<u32>,
    /// The request whose response's last byte was read by this call, and the length of its body.
    pub completed: Option<(u32, u64)>,
}

impl HttpClient {
    /// A client whose server reads the same table.
    pub fn new(exchanges: Exchanges) -> Self {
        HttpClient {
            exchanges,
            current: 0,
            header_left: 0,
            body_left: 0,
            body: 0,
            began: false,
            cancelled: false,
            waiting: VecDeque::new(),
            read: 0,
        }
    }

    /// Sends a request and returns its number, counted from zero. Requests may be pipelined.
    pub fn request(&mut self, stream: &mut dyn Stream, exchange: Exchange) -> u32 {
        let number = self.exchanges.append(Message::Request(exchange.clone())) as u32;
        stream.write(exchange.request);
        if self.is_idle() {
            self.expect(number, &exchange);
        } else {
            self.waiting.push_back((number, exchange));
        }
        number
    }

    /// Asks the server to withdraw the unsent rest of the response being read. Has no effect if there is none, or if
    /// another request was placed after it.
    ///
    /// The response ends where the server stopped; its completion gives the length of the shortened body.
    pub fn cancel(&mut self, stream: &mut dyn Stream) {
        if self.is_idle() || self.cancelled || !self.waiting.is_empty() {
            return;
        }
        self.cancelled = true;
        self.exchanges.append(Message::Cancel(self.current as usize));
        stream.write(CANCEL_BYTES);
    }

    /// The stream was reopened: missing responses will not arrive. Request numbers continue.
    pub fn reconnect(&mut self) {
        *self = HttpClient::new(self.exchanges.clone());
    }

    /// Bytes read from the stream so far: the end offset of a response that was just completed.
    pub fn bytes_read(&self) -> u64 {
        self.read
    }

    /// Whether every response was read to its end.
    pub fn is_idle(&self) -> bool {
        self.header_left + self.body_left == 0
    }

    /// Reads from the oldest unfinished response: all of its header, and up to `max_body` bytes of its body.
    ///
    /// It never reads across the end of a response; call again for the next one.
    #[inline]
    pub fn receive(&mut self, stream: &mut dyn Stream, max_body: u64) -> Received {
        if self.cancelled {
            self.refresh();
            if self.is_idle() {
                return Received { completed: Some(self.complete()), ..Received::default() };
            }
        }
        let max_body = max_body.min(self.body_left);
        if self.header_left + max_body == 0 {
            return Received::default();
        }
        let mut got = stream.read(self.header_left + max_body);
        if got == 0 {
            return Received::default();
        }
        self.read += got;
        let mut received = Received::default();
        if !self.began {
            self.began = true;
            received.began = Some(self.current);
        }
        let header = got.min(self.header_left);
        self.header_left -= header;
        got -= header;
        self.body_left -= got;
        received.body = got;
        if self.is_idle() {
            received.completed = Some(self.complete());
        }
        received
    }

    /// The response was read to its end: returns its number and the length of its body.
    fn complete(&mut self) -> (u32, u64) {
        let done = (self.current, self.body);
        self.cancelled = false;
        if let Some((number, next)) = self.waiting.pop_front() {
            self.expect(number, &next);
        }
        done
    }

    /// Updates the length of a cancelled response.
    fn refresh(&mut self) {
        let body = self.exchanges.at(self.current as usize).map_or(self.body, |exchange| exchange.body);
        self.body_left -= self.body - body;
        self.body = body;
    }

    fn expect(&mut self, number: u32, exchange: &Exchange) {
        self.current = number;
        self.header_left = exchange.response_header;
        self.body_left = exchange.body;
        self.body = exchange.body;
        self.began = false;
    }
}

/// The server's end: answers every request when its last byte has arrived.
#[derive(Debug)]
pub struct HttpServer {
    exchanges: Exchanges,
    /// Number of the message being read.
    next: usize,
    read: u64,
    answered: usize,
    /// Number of the message answered last.
    last: Option<usize>,
    finished: bool,
    /// Bytes of the responses so far.
    written: u64,
    /// Whether it writes nothing now, and how many bytes of the responses it has yet to write therefore.
    paused: bool,
    owed: u64,
    /// Whether the host asks for the answers, and those that it has not taken.
    keeps_answers: bool,
    answers: VecDeque<Answer>,
}

impl HttpServer {
    /// A server for a client that uses the same table.
    pub fn new(exchanges: Exchanges) -> Self {
        HttpServer {
            exchanges,
            next: 0,
            read: 0,
            answered: 0,
            last: None,
            finished: false,
            written: 0,
            paused: false,
            owed: 0,
            keeps_answers: false,
            answers: VecDeque::new(),
        }
    }

    /// To be called when bytes, or the client's end of data, became readable.
    pub fn on_readable(&mut self, stream: &mut dyn Stream) {
        while let Some(message) = self.exchanges.message(self.next) {
            self.read += stream.read(message.bytes() - self.read);
            if self.read < message.bytes() {
                break;
            }
            match message {
                Message::Request(exchange) => {
                    let bytes = exchange.response_header + exchange.body;
                    if self.paused {
                        self.owed += bytes;
                    } else {
                        stream.write(bytes);
                    }
                    self.written += bytes;
                    if self.keeps_answers {
                        self.answers.push_back(Answer {
                            media: exchange.media,
                            bytes,
                            end: self.written,
                            cmcd: exchange.cmcd,
                        });
                    }
                    self.answered += 1;
                    self.last = Some(self.next);
                }
                Message::Cancel(response) => self.cancel(stream, response),
            }
            self.read = 0;
            self.next += 1;
        }
        if stream.is_finished() && !self.finished && !self.paused {
            self.finished = true;
            stream.finish();
        }
    }

    /// From here on nothing is written; what the send buffer has had no room for is taken back. To be called with the
    /// stream of the connection, if there is one.
    pub fn pause(&mut self, stream: Option<&mut dyn Stream>) {
        self.paused = true;
        if let Some(stream) = stream {
            self.owed += stream.withdraw(stream.unbuffered());
        }
    }

    /// Everything that was held back is written.
    pub fn resume(&mut self, stream: Option<&mut dyn Stream>) {
        self.paused = false;
        if let Some(stream) = stream {
            if self.owed > 0 {
                stream.write(std::mem::take(&mut self.owed));
            }
            self.on_readable(stream);
        }
    }

    /// Bytes of responses to requests that have arrived which are not written, because of a pause.
    pub fn owed(&self) -> u64 {
        self.owed
    }

    /// Withdraws unsent bytes, which is possible only for the last response.
    fn cancel(&mut self, stream: &mut dyn Stream, response: usize) {
        if let Some(exchange) = self.exchanges.at(response).filter(|_| self.last == Some(response)) {
            let held = exchange.body.min(self.owed);
            self.owed -= held;
            let withdrawn = held + stream.withdraw(exchange.body - held);
            self.exchanges.shorten(response, withdrawn);
            self.written -= withdrawn;
        }
    }

    /// From now on [`HttpServer::next_answer`] has every answer.
    pub fn keep_answers(&mut self) {
        self.keeps_answers = true;
    }

    /// The oldest answer that was not taken yet.
    pub fn next_answer(&mut self) -> Option<Answer> {
        self.answers.pop_front()
    }

    /// Bytes of the responses on the present stream so far, those that a pause holds back included.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The client reopened its stream: unanswered requests are dropped.
    pub fn reconnect(&mut self) {
        (self.next, self.read, self.last) = (self.exchanges.count(), 0, None);
        (self.written, self.owed) = (0, 0);
        self.answers.clear();
    }

    /// Number of answered requests.
    pub fn answered(&self) -> usize {
        self.answered
    }
}

#[cfg(test)]
mod tests;
