//! Takes a statement's bytes apart, front to back. `None` is bytes that no statement has.

pub(super) struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// Base 128; in more bytes than it takes, it is none.
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..63).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return (byte != 0 || shift == 0).then_some(number);
            }
        }
        None
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let [length] = self.array()?;
        std::str::from_utf8(self.take(usize::from(length))?).ok().map(str::to_owned)
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, count: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
}
