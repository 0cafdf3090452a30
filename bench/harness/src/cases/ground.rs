//! The machine and the labs themselves: the frame in which all other figures stand.

pub(crate) mod calibration;
pub(crate) mod machine;
pub(crate) mod sites;
