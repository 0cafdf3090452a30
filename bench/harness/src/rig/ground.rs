//! What is between the two ends of a copy: a lab, or a wire with no link emulated.

use crate::rig::line::{End, Place};
use crate::rig::veth::Veth;
use hikyaku_lab::Lab;
use std::ffi::OsStr;
use std::process::Command;

/// What is between the two ends.
pub(crate) enum Ground {
    Lab(Lab),
    Wire(Veth),
}

impl Place for Ground {
    fn command(&self, end: End, program: &OsStr) -> Command {
        match self {
            Self::Lab(lab) => Place::command(lab, end, program),
            Self::Wire(wire) => wire.command(end, program),
        }
    }

    fn server(&self) -> String {
        match self {
            Self::Lab(lab) => Place::server(lab),
            Self::Wire(wire) => wire.server(),
        }
    }
}
