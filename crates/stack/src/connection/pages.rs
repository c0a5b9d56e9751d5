//! The memory of the send buffer of upstream Linux's connection: pages, cut into fragments.
//!
//! The application's bytes are copied into pages. They extend the last fragment while its page has room and a part of
//! what was written before waits for a subflow; otherwise a fragment begins, and its description takes some of the
//! page. Subflows are given whole fragments. The buffer's limit counts payload and descriptions.
//!
//! Source: Linux 6.18, `mptcp_sendmsg`, `mptcp_carve_data_frag`, `mptcp_frag_can_collapse_to`, `__mptcp_clean_una`.

use std::collections::VecDeque;

/// Bytes that are taken from the allocator at once (`SKB_FRAG_PAGE_ORDER`).
const PAGE: u64 = 32_768;
/// The description of a fragment (`struct mptcp_data_frag`), at a multiple of `ALIGNMENT`.
const DESCRIPTION: u64 = 40;
const ALIGNMENT: u64 = 8;
/// A page is left if there is not room for a description and this (`mptcp_page_frag_refill`).
const LEAST_ROOM: u64 = 32;
/// What a fragment holds that has a page for itself.
pub(super) const WHOLE_FRAGMENT: u64 = PAGE - DESCRIPTION;

#[derive(Clone, Copy, Debug)]
struct Fragment {
    /// One past its last byte.
    end: u64,
    /// What its description takes of the page.
    description: u64,
}

/// Offsets count bytes of the stream.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// Those with a byte that is not acknowledged.
    fragments: VecDeque<Fragment>,
    /// What their descriptions take.
    descriptions: u64,
    /// Bytes left in the page of the last fragment.
    left: u64,
    /// The first byte of payload that the buffer's limit counts.
    counted_from: u64,
}

impl Pages {
    /// One past the last byte that was copied.
    fn end(&self) -> u64 {
        self.fragments.back().map_or(self.counted_from, |last| last.end)
    }

    /// What is in use of the buffer's limit (`sk_wmem_queued`).
    pub fn used(&self) -> u64 {
        self.end() - self.counted_from + self.descriptions
    }

    /// Copies up to `bytes` into one page; returns how many. `waits`: no subflow was given the last byte before them.
    pub fn copy(&mut self, bytes: u64, waits: bool) -> u64 {
        let end = self.end();
        if self.fragments.is_empty() {
            // Nothing refers to the page any more, so that it is used from its beginning.
            self.left = PAGE;
        }
        if self.fragments.is_empty() || !waits || self.left == 0 {
            if self.left < DESCRIPTION + LEAST_ROOM {
                self.left = PAGE;
            }
            let description = DESCRIPTION + self.left % ALIGNMENT;
            self.left -= description;
            self.descriptions += description;
            self.fragments.push_back(Fragment { end, description });
        }
        let copied = bytes.min(self.left);
        self.left -= copied;
        self.fragments.back_mut().expect("one has room").end += copied;
        copied
    }

    /// Everything before `unacked` was acknowledged. `all`: subflows were given nothing else. Then Linux looks at no
    /// fragment that is acknowledged in part, and goes on to count all of it (`mptcp_rtx_head`).
    pub fn release(&mut self, unacked: u64, all: bool) {
        while let Some(first) = self.fragments.front().copied()
            && first.end <= unacked
        {
            self.fragments.pop_front();
            self.descriptions -= first.description;
            self.counted_from = first.end;
        }
        if !all {
            self.counted_from = unacked;
        }
    }

    /// What was copied from `end` on is taken back; no subflow was given any of it.
    pub fn truncate(&mut self, end: u64) {
        while let Some(last) = self.fragments.pop_back() {
            if self.end() < end {
                self.fragments.push_back(Fragment { end: last.end.min(end), ..last });
                return;
            }
            self.descriptions -= last.description;
        }
    }

    /// One past the last byte of the fragment with this byte, if it was copied.
    #[inline(never)]
    pub fn fragment_end(&self, offset: u64) -> Option<u64> {
        let at = self.fragments.partition_point(|fragment| fragment.end <= offset);
        self.fragments.get(at).map(|fragment| fragment.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies as many bytes, in as many fragments as they need.
    fn copy(pages: &mut Pages, mut bytes: u64, mut waits: bool) {
        while bytes > 0 {
            bytes -= pages.copy(bytes, waits);
            waits = true;
        }
    }

    fn ends(pages: &Pages) -> Vec<u64> {
        pages.fragments.iter().map(|fragment| fragment.end).collect()
    }

    #[test]
    fn a_write_fills_pages_less_the_descriptions_of_fragments() {
        let mut pages = Pages::default();
        copy(&mut pages, 65_536, false);
        assert_eq!(ends(&pages), [WHOLE_FRAGMENT, 2 * WHOLE_FRAGMENT, 65_536]);
        assert_eq!(pages.used(), 65_536 + 3 * DESCRIPTION);
        assert_eq!(pages.fragment_end(WHOLE_FRAGMENT - 1), Some(WHOLE_FRAGMENT));
        assert_eq!(pages.fragment_end(WHOLE_FRAGMENT), Some(2 * WHOLE_FRAGMENT));
        assert_eq!(pages.fragment_end(65_536), None, "not yet copied");
    }

    #[test]
    fn a_fragment_goes_on_only_while_a_part_of_it_waits_for_a_subflow() {
        let mut pages = Pages::default();
        copy(&mut pages, 1_000, false);
        copy(&mut pages, 1_000, true);
        assert_eq!(ends(&pages), [2_000]);
        copy(&mut pages, 1_001, false);
        assert_eq!(ends(&pages), [2_000, 3_001]);
        // 32 768 - 2 x 40 - 3001 = 29 687 bytes are left: seven, in addition to 40, to align the description.
        copy(&mut pages, 29_640, false);
        assert_eq!((ends(&pages), pages.left), (vec![2_000, 3_001, 32_641], 0));
        assert_eq!(pages.used(), PAGE);
    }

    #[test]
    fn a_page_with_little_room_is_left() {
        for (left, next_page) in [(DESCRIPTION + LEAST_ROOM, false), (DESCRIPTION + LEAST_ROOM - 8, true)] {
            let mut pages = Pages::default();
            copy(&mut pages, WHOLE_FRAGMENT - left, false);
            let copied = pages.copy(10_000, false);
            assert_eq!(copied, if next_page { 10_000 } else { LEAST_ROOM });
        }
    }

    #[test]
    fn a_fragment_is_counted_up_to_what_is_acknowledged_unless_everything_given_is() {
        let mut pages = Pages::default();
        copy(&mut pages, 65_536, false);
        pages.release(1_000, false);
        assert_eq!(pages.used(), 64_536 + 3 * DESCRIPTION);
        pages.release(WHOLE_FRAGMENT + 1, true);
        assert_eq!(pages.used(), 65_536 - WHOLE_FRAGMENT + 2 * DESCRIPTION, "the second fragment counts as a whole");
        pages.release(WHOLE_FRAGMENT + 2, false);
        assert_eq!(pages.used(), 65_536 - WHOLE_FRAGMENT - 2 + 2 * DESCRIPTION);
        pages.release(65_536, true);
        assert_eq!(pages.used(), 0);
        // An empty buffer uses its page from the beginning.
        copy(&mut pages, 40_000, false);
        assert_eq!(ends(&pages), [65_536 + WHOLE_FRAGMENT, 105_536]);
    }

    #[test]
    fn what_is_taken_back_takes_no_memory() {
        let mut pages = Pages::default();
        copy(&mut pages, 65_536, false);
        pages.release(10, false);
        pages.truncate(WHOLE_FRAGMENT + 5);
        assert_eq!((ends(&pages), pages.used()), (vec![WHOLE_FRAGMENT, WHOLE_FRAGMENT + 5], WHOLE_FRAGMENT - 5 + 80));
        pages.truncate(WHOLE_FRAGMENT);
        assert_eq!((ends(&pages), pages.used()), (vec![WHOLE_FRAGMENT], WHOLE_FRAGMENT - 10 + 40));
        pages.truncate(10);
        assert_eq!((ends(&pages), pages.used()), (vec![], 0));
        copy(&mut pages, 5, false);
        assert_eq!(ends(&pages), [15]);
    }
}
