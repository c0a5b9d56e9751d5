//! The operating system's random numbers.

use anabranch_stack::connection::Entropy;

/// The kernel's generator, which is unpredictable, as keys and initial sequence numbers require.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        let mut filled = 0;
        while filled < bytes.len() {
            match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
                Ok(n) => filled += n,
                Err(rustix::io::Errno::INTR) => {}
                // Without random numbers no connection must be made.
                Err(error) => panic!("the kernel gives no random numbers: {error}"),
            }
        }
        u64::from_ne_bytes(bytes)
    }
}
