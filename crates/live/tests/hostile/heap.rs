//! Counts allocated bytes, to measure that memory is bounded.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

pub struct Counting;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated and not freed; each test runs on its own.
pub fn held() -> i64 {
    HELD.get()
}

fn count(bytes: i64) {
    // A thread that ends may free after its counter is gone.
    let _ = HELD.try_with(|held| held.set(held.get() + bytes));
}

// SAFETY: every call goes to the system's allocator unchanged; counting does not allocate, since the counter is
// a constant-initialised thread-local without destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
