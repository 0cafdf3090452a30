//! Remote storage as if it were local, beside what people use.

pub(crate) mod reading;
