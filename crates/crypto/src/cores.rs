//! Keeps keys out of core dumps and away from other processes of the same user.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Disables core dumps of this process, and on Linux lets only privileged processes read its memory
/// (`PR_SET_DUMPABLE`, prctl(2)), because it holds keys. Child processes inherit only the core
/// limit, which they may raise again.
pub fn leave_no_core() {
    let now = getrlimit(Resource::Core);
    // Lowering a limit never fails.
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), ..now });
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // The limit does not apply to cores that are piped to a program (core(5)), and does not stop
        // a debugger. The dumpable flag covers both, and every supported kernel has it.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{DumpableBehavior, dumpable_behavior};

    #[test]
    fn core_dumps_and_tracing_are_disabled() {
        leave_no_core();
        assert_eq!(getrlimit(Resource::Core).current, Some(0));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        // The process can still read the `/proc` files about itself that it needs.
        assert!(std::fs::read_to_string("/proc/self/status").unwrap().contains("VmRSS"));
        assert!(std::fs::read_dir("/proc/self/fd").unwrap().next().is_some());
    }
}
