//! What is counted.

/// Files and bytes since the start. The other end counts some of them and may tell anything, so sums saturate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Files found so far.
    pub total_files: u64,
    /// Bytes in them.
    pub total_bytes: u64,
    /// All has been found, so that the totals are final.
    pub is_counted: bool,
    /// Files that are done.
    pub files: u64,
    /// Bytes that are done.
    pub bytes: u64,
    /// Of these, bytes that were not sent: they were there already, or are holes.
    pub kept_bytes: u64,
}

impl Counts {
    /// Adds the counts of another piece of the same work.
    pub const fn add(&mut self, other: &Self) {
        self.total_files = self.total_files.saturating_add(other.total_files);
        self.total_bytes = self.total_bytes.saturating_add(other.total_bytes);
        self.is_counted = other.is_counted;
        self.files = self.files.saturating_add(other.files);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.kept_bytes = self.kept_bytes.saturating_add(other.kept_bytes);
    }

    /// Bytes that were sent.
    pub const fn sent(&self) -> u64 {
        self.bytes.saturating_sub(self.kept_bytes)
    }
}
