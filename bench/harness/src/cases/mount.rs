//! Remote storage as if it were local, beside what people use.

pub(crate) mod many_sites;
pub(crate) mod reading;
