//! HTTP messages with the sizes of a browser's and its server's.
//!
//! One connection serves the whole session. (Apache closes it after 100 requests by default, `MaxKeepAliveRequests`;
//! the papers do not say.)

use crate::cmcd::Cmcd;
use crate::http::{Exchange, MediaSegment};
use std::sync::Arc;

/// Firefox's request for a media segment of Big Buck Bunny.
const REQUEST: &str = "GET /media/BigBuckBunny/1sec/bunny_808057bps/BigBuckBunny_1s100.m4s HTTP/1.1\r\n\
    Host: media.example.net\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:60.0) Gecko/20100101 Firefox/60.0\r\n\
    Accept: */*\r\nAccept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate\r\n\
    Referer: http://media.example.net/dash/index.html\r\nConnection: keep-alive\r\n\r\n";

/// What dash.js 5 adds to the address if CMCD is on.
const REPORT: &str = "?CMCD=bl%3D17600%2Cbr%3D3305%2Cd%3D2000%2Cdl%3D17600%2Cmtp%3D5200%2C\
    nor%3D%22BigBuckBunny_2s101.m4s%22%2Cot%3Dv%2Crtp%3D1900%2Csf%3Dd%2C\
    sid%3D%22c936730c-031e-4a73-976f-92bc34039c60%22%2Cst%3Dv%2Ctb%3D4727";

/// Apache 2.4's response header for a whole file.
const RESPONSE: &str = "HTTP/1.1 200 OK\r\nDate: Fri, 20 Nov 2026 09:00:00 GMT\r\nServer: Apache/2.4.71 (Debian)\r\n\
    Last-Modified: Mon, 02 Nov 2026 08:00:00 GMT\r\nETag: \"18a8f-5f0c1c2b3a400\"\r\nAccept-Ranges: bytes\r\n\
    Content-Length: 101007\r\nKeep-Alive: timeout=5, max=100\r\nConnection: Keep-Alive\r\n\r\n";

/// A GET for a body of `body` bytes.
pub(super) fn get(body: u64) -> Exchange {
    Exchange { request: REQUEST.len() as u64, response_header: RESPONSE.len() as u64, body, media: None, cmcd: None }
}

/// A GET for a media segment, with what the player reports.
pub(super) fn get_media(body: u64, media: MediaSegment, cmcd: Option<Cmcd>) -> Exchange {
    let plain = get(body);
    let report = if cmcd.is_some() { REPORT.len() as u64 } else { 0 };
    Exchange { request: plain.request + report, media: Some(media), cmcd: cmcd.map(Arc::new), ..plain }
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_pinned_because_results_depend_on_them() {
        let exchange = super::get(7);
        assert_eq!((exchange.request, exchange.response_header, exchange.body), (340, 265, 7));
    }
}
