//! Times as HTTP writes them.

use httpdate::fmt_http_date;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The end of the year 9999.
const LAST_DATE: Duration = Duration::from_secs(253_402_300_800);

/// A time as headers have it; `None` before 1970 and after 9999, which a clock that was never set may show.
pub(super) fn http_date(at: SystemTime) -> Option<String> {
    let since = at.duration_since(UNIX_EPOCH).ok()?;
    (since < LAST_DATE).then(|| fmt_http_date(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_years_of_four_digits_since_1970_have_a_date() {
        let seconds = Duration::from_secs;
        assert_eq!(http_date(UNIX_EPOCH + seconds(1)).as_deref(), Some("Thu, 01 Jan 1970 00:00:01 GMT"));
        for at in [UNIX_EPOCH - seconds(1), UNIX_EPOCH + LAST_DATE, UNIX_EPOCH + seconds(1 << 40)] {
            assert_eq!(http_date(at), None);
        }
        assert!(http_date(UNIX_EPOCH + LAST_DATE - seconds(1)).is_some());
    }
}
