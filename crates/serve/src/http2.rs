//! The answer to a client that begins with HTTP/2 without negotiation ("prior knowledge", RFC 9113 section 3.3): a
//! response in HTTP/2, so that the client shows its text, which says that this server speaks HTTP/1.1.

/// The body of the response.
const TEXT: &str = "This server speaks HTTP/1.1, not HTTP/2 (curl: --http1.1).\n";

/// The client's first request (RFC 9113 section 5.1.1).
const FIRST_STREAM: u32 = 1;
/// Types of frames (RFC 9113 section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// Flags of frames.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// The reason of GOAWAY (RFC 9113 section 7).
const HTTP_1_1_REQUIRED: u32 = 13;

/// Fields without indexing (RFC 7541 section 6.2.2): `:status` is the name 8 of the static table, `content-type` the
/// name 31, of which 15 stand in the first byte.
const FIELDS: &[u8] = b"\x08\x03505\x0f\x10\x0atext/plain";

fn frame(bytes: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
}

/// The bytes of the response: settings, status 505 with the text, and the end of the connection.
pub(super) fn refusal() -> Vec<u8> {
    let mut bytes = Vec::new();
    frame(&mut bytes, SETTINGS, 0, 0, &[]);
    frame(&mut bytes, HEADERS, END_HEADERS, FIRST_STREAM, FIELDS);
    frame(&mut bytes, DATA, END_STREAM, FIRST_STREAM, TEXT.as_bytes());
    let end = [FIRST_STREAM.to_be_bytes(), HTTP_1_1_REQUIRED.to_be_bytes()].concat();
    frame(&mut bytes, GOAWAY, 0, 0, &end);
    bytes
}
