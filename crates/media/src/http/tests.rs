//! Both ends on one stream: reads and writes, abandoned responses, a reopened connection.

use super::*;
use crate::testing::Pipe;

fn exchange(request: u64, response_header: u64, body: u64) -> Exchange {
    Exchange { request, response_header, body, media: None, cmcd: None }
}

#[test]
fn header_sizes_are_pinned_because_results_depend_on_them() {
    assert_eq!(REQUEST_HEADER_BYTES, 152);
    assert_eq!(RESPONSE_HEADER_BYTES, 353);
}

#[test]
fn the_server_answers_when_the_last_byte_of_the_request_is_there() {
    let table = Exchanges::new();
    let (mut client, mut server) = (HttpClient::new(table.clone()), HttpServer::new(table));
    let (mut near, mut far) = (Pipe::default(), Pipe::default());
    assert_eq!(client.request(&mut near, exchange(100, 10, 1000)), 0);
    assert_eq!(near.written, 100);
    far.arrive(99);
    server.on_readable(&mut far);
    assert_eq!((far.written, server.answered()), (0, 0));
    far.arrive(1);
    server.on_readable(&mut far);
    assert_eq!((far.written, server.answered()), (1010, 1));
}

#[test]
fn the_client_separates_header_and_body_and_stops_at_its_limit() {
    let mut client = HttpClient::new(Exchanges::new());
    let mut near = Pipe::default();
    client.request(&mut near, exchange(100, 10, 1000));
    near.arrive(4);
    assert_eq!(client.receive(&mut near, 50), Received { body: 0, began: Some(0), completed: None });
    near.arrive(500);
    assert_eq!(client.receive(&mut near, 50), Received { body: 50, began: None, completed: None });
    assert_eq!(near.readable(), 504 - 60);
    assert_eq!(client.receive(&mut near, 0), Received::default());
    near.arrive(506);
    assert_eq!(client.receive(&mut near, u64::MAX), Received { body: 950, began: None, completed: Some((0, 1000)) });
    assert!(client.is_idle());
}

#[test]
fn pipelined_responses_are_read_one_at_a_time() {
    let table = Exchanges::new();
    let (mut client, mut server) = (HttpClient::new(table.clone()), HttpServer::new(table));
    let (mut near, mut far) = (Pipe::default(), Pipe::default());
    client.request(&mut near, exchange(10, 1, 5));
    client.request(&mut near, exchange(20, 2, 0));
    client.request(&mut near, exchange(30, 3, 7));
    far.arrive(60);
    server.on_readable(&mut far);
    assert_eq!(far.written, 18);
    near.arrive(18);
    let all: Vec<_> = (0..4).map(|_| client.receive(&mut near, u64::MAX)).collect();
    assert_eq!(
        all,
        [
            Received { body: 5, began: Some(0), completed: Some((0, 5)) },
            Received { body: 0, began: Some(1), completed: Some((1, 0)) },
            Received { body: 7, began: Some(2), completed: Some((2, 7)) },
            Received::default(),
        ]
    );
}

/// A far end that can withdraw only a limited number of the bytes written last.
struct Reluctant(Pipe, u64);

impl Stream for Reluctant {
    fn readable(&self) -> u64 {
        self.0.readable()
    }
    fn read(&mut self, max: u64) -> u64 {
        self.0.read(max)
    }
    fn write(&mut self, bytes: u64) {
        self.0.write(bytes);
    }
    fn unbuffered(&self) -> u64 {
        self.0.written.saturating_sub(600)
    }
    fn withdraw(&mut self, bytes: u64) -> u64 {
        let taken = bytes.min(self.1);
        self.0.written -= taken;
        taken
    }
    fn finish(&mut self) {
        self.0.finish();
    }
    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

#[test]
fn a_paused_server_owes_what_it_has_not_written() {
    let table = Exchanges::new();
    let (mut client, mut server) = (HttpClient::new(table.clone()), HttpServer::new(table.clone()));
    // The send buffer holds 600 bytes.
    let (mut near, mut far) = (Pipe::default(), Reluctant(Pipe::default(), u64::MAX));
    client.request(&mut near, exchange(100, 10, 1000));
    far.0.arrive(100);
    server.on_readable(&mut far);
    server.pause(Some(&mut far));
    assert_eq!((far.0.written, server.owed()), (600, 410));
    client.request(&mut near, exchange(100, 10, 90));
    far.0.arrive(100);
    server.on_readable(&mut far);
    assert_eq!((far.0.written, server.owed(), server.answered()), (600, 510, 2));
    // Of a response that is cancelled meanwhile nothing is written any more.
    table.append(Message::Cancel(1));
    far.0.arrive(CANCEL_BYTES);
    server.on_readable(&mut far);
    assert_eq!((server.owed(), table.at(1).map(|exchange| exchange.body)), (420, Some(0)));
    server.resume(Some(&mut far));
    assert_eq!((far.0.written, server.owed(), server.written()), (1020, 0, 1020));
}

#[test]
fn a_cancelled_response_ends_where_the_server_stopped() {
    let table = Exchanges::new();
    let (mut client, mut server) = (HttpClient::new(table.clone()), HttpServer::new(table));
    let (mut near, mut far) = (Pipe::default(), Reluctant(Pipe::default(), 600));
    client.request(&mut near, exchange(100, 10, 1000));
    far.0.arrive(100);
    server.on_readable(&mut far);
    near.arrive(210);
    assert_eq!(client.receive(&mut near, u64::MAX).body, 200);
    client.cancel(&mut near);
    client.cancel(&mut near);
    assert_eq!(near.written, 100 + CANCEL_BYTES, "once is enough");
    assert_eq!(client.request(&mut near, exchange(50, 10, 7)), 2, "the cancellation has a number too");
    // More arrives before the server gets the message.
    near.arrive(50);
    assert_eq!(client.receive(&mut near, u64::MAX), Received { body: 50, began: None, completed: None });
    far.0.arrive(CANCEL_BYTES + 50);
    server.on_readable(&mut far);
    assert_eq!((far.0.written, server.answered()), (1010 - 600 + 17, 2));
    near.arrive(150 + 17);
    let all: Vec<_> = (0..3).map(|_| client.receive(&mut near, u64::MAX)).collect();
    assert_eq!(
        all,
        [
            Received { body: 150, began: None, completed: Some((0, 400)) },
            Received { body: 7, began: Some(2), completed: Some((2, 7)) },
            Received::default(),
        ]
    );
}

#[test]
fn a_response_that_had_arrived_as_far_as_it_goes_is_complete_without_another_byte() {
    let table = Exchanges::new();
    let (mut client, mut server) = (HttpClient::new(table.clone()), HttpServer::new(table));
    let (mut near, mut far) = (Pipe::default(), Reluctant(Pipe::default(), 800));
    client.request(&mut near, exchange(100, 10, 1000));
    far.0.arrive(100);
    server.on_readable(&mut far);
    near.arrive(210);
    client.receive(&mut near, u64::MAX);
    client.cancel(&mut near);
    far.0.arrive(CANCEL_BYTES);
    server.on_readable(&mut far);
    assert_eq!(client.receive(&mut near, u64::MAX).completed, Some((0, 200)));
    assert!(client.is_idle());
}

#[test]
fn a_stream_that_takes_nothing_back_delivers_a_cancelled_response_in_full() {
    let table = Exchanges::new();
    let (mut client, mut server) = (HttpClient::new(table.clone()), HttpServer::new(table));
    let (mut near, mut far) = (Pipe::default(), Pipe::default());
    client.cancel(&mut near);
    assert_eq!(near.written, 0, "nothing to cancel");
    client.request(&mut near, exchange(100, 10, 1000));
    client.cancel(&mut near);
    far.arrive(100 + CANCEL_BYTES);
    server.on_readable(&mut far);
    near.arrive(1010);
    assert_eq!(client.receive(&mut near, u64::MAX).completed, Some((0, 1000)));
    assert!(client.is_idle());
}

#[test]
fn a_new_connection_begins_with_the_next_request() {
    let table = Exchanges::new();
    let (mut client, mut server) = (HttpClient::new(table.clone()), HttpServer::new(table));
    let (mut near, mut far) = (Pipe::default(), Pipe::default());
    client.request(&mut near, exchange(100, 10, 1000));
    client.request(&mut near, exchange(100, 10, 500));
    far.arrive(150);
    server.on_readable(&mut far);
    near.arrive(400);
    client.receive(&mut near, u64::MAX);
    let (mut near, mut far) = (Pipe::default(), Pipe::default());
    client.reconnect();
    server.reconnect();
    assert!(client.is_idle() && client.bytes_read() == 0);
    assert_eq!(client.request(&mut near, exchange(60, 10, 7)), 2, "the numbers go on");
    far.arrive(60);
    server.on_readable(&mut far);
    assert_eq!((far.written, server.answered()), (17, 2));
    near.arrive(17);
    let received = client.receive(&mut near, u64::MAX);
    assert_eq!(received, Received { body: 7, began: Some(2), completed: Some((2, 7)) });
    assert_eq!(client.bytes_read(), 17);
}

#[test]
fn the_server_finishes_after_the_client() {
    let mut server = HttpServer::new(Exchanges::new());
    let mut far = Pipe::default();
    server.on_readable(&mut far);
    assert!(!far.finished);
    far.peer_finished = true;
    server.on_readable(&mut far);
    assert!(far.finished);
}
