//! Answers to `OPTIONS`: what a browser asks before a page of another server may send a request with headers of its
//! own, as players do with CMCD (CTA-5004; Fetch standard, "CORS-preflight fetch").

use super::{Answer, METHODS, empty};
use hyper::StatusCode;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ALLOW, HeaderMap, HeaderValue,
};

/// How long a browser need not ask again, in seconds: a day, the most that Firefox takes (Chromium takes two hours of
/// it).
const MAX_AGE_S: u32 = 86_400;

/// The answer for every file, whether it exists or not. Each header that is asked for is allowed, because none has an
/// effect here that a page must not have. They are named, because `*` is unknown to older browsers and does not include
/// `Authorization`.
pub(super) fn answer(request: &HeaderMap) -> Answer {
    let mut answer = empty(StatusCode::NO_CONTENT);
    let headers = answer.headers_mut();
    headers.insert(ALLOW, METHODS);
    if request.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(MAX_AGE_S));
        for names in request.get_all(ACCESS_CONTROL_REQUEST_HEADERS) {
            headers.append(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
        }
    }
    answer
}
