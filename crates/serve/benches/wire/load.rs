//! Clients on the kernel's Multipath TCP.

use crate::OPEN;
use crate::common::kernel::{self, MPTCP};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The request of each client.
pub const REQUEST: &[u8] = b"GET /zeros HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n";
/// Interval between the reads of clients with a rate.
const TICK: Duration = Duration::from_millis(20);
/// Their receive buffers hold half a second of data, so that the server has to keep up.
const BUFFER_SECONDS: f64 = 0.5;
/// Time between the connections of two clients.
const APART: Duration = Duration::from_millis(10);

fn ask() -> TcpStream {
    let mut stream = kernel::connect(OPEN.family.server(), MPTCP);
    stream.write_all(REQUEST).expect("the request leaves");
    stream
}

/// Reads to the end as fast as possible, from the namespace of the calling thread; returns the number of bytes.
pub fn download() -> u64 {
    let mut stream = ask();
    let (mut got, mut buffer) = (0, vec![0; 256 << 10]);
    loop {
        match stream.read(&mut buffer).expect("the stream ends in order") {
            0 => return got,
            n => got += n as u64,
        }
    }
}

/// Clients that read no faster than a given rate.
pub struct Load {
    streams: Vec<TcpStream>,
    /// Rate of each client, bit/s.
    rate: u64,
}

impl Load {
    pub fn connect(clients: usize, rate: u64) -> Self {
        let connect = |_| {
            let stream = ask();
            let buffer = (rate as f64 / 8.0 * BUFFER_SECONDS) as usize;
            socket2::SockRef::from(&stream).set_recv_buffer_size(buffer).expect("a buffer");
            stream.set_nonblocking(true).expect("an option");
            std::thread::sleep(APART);
            stream
        };
        Load { streams: (0..clients).map(connect).collect(), rate }
    }

    /// Reads for `seconds`, and calls `each_second` meanwhile; returns the rate that each client got, bit/s.
    pub fn run(mut self, seconds: u64, mut each_second: impl FnMut()) -> Vec<f64> {
        let began = Instant::now();
        let mut read = vec![0; self.streams.len()];
        let mut buffer = vec![0; 64 << 10];
        let mut reports = 0;
        loop {
            let elapsed = began.elapsed().as_secs_f64();
            let allowed = (elapsed.min(seconds as f64) * self.rate as f64 / 8.0) as u64;
            for (stream, read) in self.streams.iter_mut().zip(&mut read) {
                read_up_to(stream, &mut buffer, read, allowed);
            }
            if elapsed as u64 > reports {
                reports = elapsed as u64;
                each_second();
            }
            if elapsed >= seconds as f64 {
                return read.iter().map(|bytes| *bytes as f64 * 8.0 / elapsed).collect();
            }
            std::thread::sleep(TICK);
        }
    }
}

fn read_up_to(stream: &mut TcpStream, buffer: &mut [u8], read: &mut u64, allowed: u64) {
    while *read < allowed {
        let len = (allowed - *read).min(buffer.len() as u64) as usize;
        match stream.read(&mut buffer[..len]) {
            Ok(0) => panic!("the stream ended"),
            Ok(n) => *read += n as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => panic!("{error}"),
        }
    }
}
