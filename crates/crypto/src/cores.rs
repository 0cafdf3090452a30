//! Keys are in no file of a crash.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets no core of this process be written: it would hold its keys. Programs that it starts may ask for
/// theirs again.
pub fn leave_no_core() {
    let now = getrlimit(Resource::Core);
    // To lower a limit is never refused.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..now });
}
