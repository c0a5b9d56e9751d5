//! Queues that grow by a quarter.
//!
//! A queue that holds a window keeps the capacity of its largest one, and there are several per subflow. The standard
//! library doubles a full queue, and so leaves up to half of it unused.

use std::collections::VecDeque;

/// What a queue has room for at first.
const AT_FIRST: usize = 4;

/// Adds an item at the end, for amortised constant time.
#[inline]
pub(crate) fn push_back<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() == queue.capacity() {
        grow(queue);
    }
    queue.push_back(item);
}

#[cold]
fn grow<T>(queue: &mut VecDeque<T>) {
    queue.reserve_exact((queue.len() / 4).max(AT_FIRST));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_a_fifth_is_unused_when_it_has_grown() {
        let mut queue = VecDeque::new();
        for item in 0..10_000 {
            push_back(&mut queue, item);
            assert!(queue.capacity() <= queue.len() + (queue.len() / 4).max(AT_FIRST), "{item}");
        }
        assert!(queue.iter().copied().eq(0..10_000));
    }
}
