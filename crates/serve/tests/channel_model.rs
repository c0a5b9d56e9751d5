//! The channel between the endpoint's loop and a task, under all interleavings of the two threads.
//!
//! The file under test is compiled here with loom's primitives; a lost wake-up is a deadlock, which loom reports.
#![expect(dead_code, reason = "the model calls what the interleavings are about")]

mod sync {
    pub(super) use loom::sync::{Arc, Mutex, MutexGuard};
}
#[path = "../src/channel.rs"]
mod channel;

use channel::{Allowance, LoopEnd, Ready, Report, TaskEnd, Wake};
use loom::future::block_on;
use loom::sync::{Arc, Condvar, Mutex};
use std::future::poll_fn;

/// The loop's eventfd.
struct Event {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Event {
    fn new() -> Self {
        Event { woken: Mutex::new(false), changed: Condvar::new() }
    }

    /// Sleeps until the loop is woken, and clears that.
    fn wait(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.changed.wait(woken).unwrap();
        }
        *woken = false;
    }
}

impl Wake for Event {
    fn wake(&self) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_one();
    }
}

/// Memory of a fixed size.
struct Fixed(usize);

impl Allowance for Fixed {
    fn bytes(&self) -> usize {
        self.0
    }
    fn grow(&mut self) {}
    fn shrink(&mut self) {}
    fn occupy(&mut self, _: usize) {}
}

type Loop = LoopEnd<u32, Event, Fixed>;
type Task = TaskEnd<u32, Event, Fixed>;

/// The connection under the loop: bytes of the peer that have arrived, and a peer that acknowledges all at once.
struct Endpoint {
    unread: u64,
    passed: u64,
    written: u64,
    acked: u64,
}

impl Endpoint {
    fn uploading(bytes: u64) -> Self {
        Endpoint { unread: bytes, passed: 0, written: 0, acked: 0 }
    }

    /// What a server does when a packet arrives or a connection is ready. Returns whether the task is gone.
    fn poll(&mut self, end: &Loop) -> bool {
        let n = self.unread.min(end.begin());
        if n > 0 {
            let bytes: Vec<u8> = (self.passed..self.passed + n).map(|i| i as u8).collect();
            end.pass(&bytes);
            (self.unread, self.passed) = (self.unread - n, self.passed + n);
        }
        let report = Report { acked: self.acked, unread: self.unread, ended: self.unread == 0, closed: false };
        let request = end.poll(report);
        self.written += request.written;
        request.abandoned
    }
}

/// The loop: polls when it is woken, and after `packets` more that arrive at any time.
fn serve(mut endpoint: Endpoint, end: &Loop, ready: &Ready<u32, Event>, packets: usize) -> Endpoint {
    let mut woken = Vec::new();
    for _ in 0..packets {
        endpoint.poll(end);
    }
    loop {
        ready.waker().wait();
        ready.take(&mut woken);
        for _ in woken.drain(..) {
            if endpoint.poll(end) {
                return endpoint;
            }
            // The acknowledgment of what was sent is a packet, too.
            if endpoint.acked < endpoint.written {
                endpoint.acked = endpoint.written;
                endpoint.poll(end);
            }
        }
    }
}

fn read(task: &Task, most: usize) -> Vec<u8> {
    let mut buffer = vec![0; most];
    let n = block_on(poll_fn(|cx| task.poll_read(cx, &mut buffer))).expect("the stream is whole");
    buffer.truncate(n);
    buffer
}

/// Runs a task together with a loop whose connection has `upload` bytes, in every order of their critical sections.
fn model(upload: u64, room: usize, packets: usize, task: impl Fn(Task) + Clone + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    // More switches find nothing more in channels of a few bytes, and take hours.
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.check(move || {
        let ready = Arc::new(Ready::new(Event::new()));
        let (for_loop, end) = channel::channel(7, room, Fixed(room), &ready);
        let task = task.clone();
        let other = loom::thread::spawn(move || task(end));
        let endpoint = serve(Endpoint::uploading(upload), &for_loop, &ready, packets);
        assert_eq!(endpoint.unread, 0, "the loop has passed everything before the task ended");
        other.join().unwrap();
    });
}

/// Switches between threads at places where the running one could continue.
const PREEMPTIONS: usize = 3;

#[test]
fn an_upload_arrives_whatever_the_order() {
    for (len, room, at_a_time, packets) in [(5, 2, 2, 1), (3, 1, 1, 1), (6, 4, 3, 1)] {
        model(len, room, packets, move |task| {
            let mut got = Vec::new();
            loop {
                match read(&task, at_a_time) {
                    bytes if bytes.is_empty() => break,
                    bytes => got.extend(bytes),
                }
            }
            assert_eq!(got, (0..len as u8).collect::<Vec<_>>());
            task.finish();
        });
    }
}

#[test]
fn an_upload_and_a_response_at_the_same_time_arrive_whatever_the_order() {
    model(3, 2, 0, |task| {
        let mut got = 0;
        while got < 3 {
            let written = block_on(poll_fn(|cx| task.poll_write(cx, b"x"))).expect("it is open");
            assert_eq!(written, 1);
            got += read(&task, 2).len();
        }
        task.finish();
    });
}

#[test]
fn a_response_longer_than_the_room_is_sent_whatever_the_order() {
    model(0, 2, 1, |task| {
        let mut left = 5;
        while left > 0 {
            left -= block_on(poll_fn(|cx| task.poll_write(cx, &[7; 3][..left.min(3)]))).expect("it is open");
        }
        assert!(read(&task, 1).is_empty());
        task.finish();
    });
}
