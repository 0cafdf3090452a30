//! The parts of messages: numbers and strings, as of RFC 4251, section 5.

use crate::packet::NotAResponse;

/// Appends parts to a message.
#[derive(Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn byte(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend(value.to_be_bytes());
        self
    }

    /// A length of 32 bits, then the bytes. A string of 4 GiB or more, which no caller has, is cut.
    pub(crate) fn string(&mut self, value: &[u8]) -> &mut Self {
        let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
        self.u32(length);
        self.0.extend(&value[..length as usize]);
        self
    }
}

/// Takes parts from a message.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], NotAResponse> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(NotAResponse::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], NotAResponse> {
        self.take(N)?.try_into().map_err(|_| NotAResponse::Short)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, NotAResponse> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, NotAResponse> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, NotAResponse> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub(crate) fn string(&mut self) -> Result<&'a [u8], NotAResponse> {
        let length = self.u32()?;
        self.take(usize::try_from(length).map_err(|_| NotAResponse::Short)?)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
