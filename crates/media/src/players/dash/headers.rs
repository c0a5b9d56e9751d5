//! HTTP messages with the sizes of a browser's and its server's.
//!
//! One connection serves the whole session. (Apache closes it after 100 requests by default, `MaxKeepAliveRequests`;
//! the papers do not say.)

use crate::http::Exchange;

/// Firefox's request for a media segment of Big Buck Bunny.
const REQUEST: &str = "GET /media/BigBuckBunny/1sec/bunny_808057bps/BigBuckBunny_1s100.m4s HTTP/1.1\r\n\
    Host: media.example.net\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:60.0) Gecko/20100101 Firefox/60.0\r\n\
    Accept: */*\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate\r\n\
    Referer: http://media.example.net/dash/index.html\r\nConnection: keep-alive\r\n\r\n";

/// Apache 2.4's response header for a whole file.
const RESPONSE: &str = "HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 09:00:00 GMT\r\nServer: Apache/2.4.71 (Debian)\r\n\
    Last-Modified: Mon, 02 Nov 2026 08:00:00 GMT\r\nETag: \"18a8f-5f0c1c2b3a400\"\r\nAccept-Ranges: bytes\r\n\
    Content-Length: 101007\r\nKeep-Alive: timeout=5, max=100\r\nConnection: Keep-Alive\r\n\r\n";

/// A GET for a body of `body` bytes.
pub(super) fn get(body: u64) -> Exchange {
    Exchange { request: REQUEST.len() as u64, response_header: RESPONSE.len() as u64, body, media: None }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_pinned_because_results_depend_on_them() {
        let exchange = super::get(7);
        assert_eq!((exchange.request, exchange.response_header, exchange.body), (340, 265, 7));
    }
}
