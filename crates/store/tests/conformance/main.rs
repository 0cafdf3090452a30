//! The conformance suite on the stores of this crate, and on stores that break one rule each.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod broken;

use hikyaku_store::testing::{Forbidden, Rig, count, failures};
use hikyaku_store::{ErrorKind, Fault, Faulty, Memory, Operation, Store, StorePath, When, Writes};

struct InMemory(Memory);

impl Rig for InMemory {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }

    fn crash(&self) -> Option<Box<dyn Store>> {
        Some(Box::new(self.0.crash()))
    }
}

/// A store whose only faults are those of directories that cannot be listed.
struct WithoutFaults(Faulty<Memory>);

impl Rig for WithoutFaults {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }

    fn forbid(&self, dir: &StorePath) -> Forbidden {
        forbid(&self.0, dir)
    }
}

/// Lets every listing of the directory fail.
fn forbid(store: &Faulty<Memory>, dir: &StorePath) -> Forbidden {
    let path = Some(dir.clone());
    let when = When { operation: Operation::List, path, nth: 1, times: u32::MAX };
    store.add(when, Fault::Error(ErrorKind::Denied));
    Forbidden::Done
}

#[test]
fn a_store_in_memory_conforms() {
    assert!(count() >= 90, "{} cases", count());
    let failed = failures(|| InMemory(Memory::default()));
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_store_with_no_fault_conforms() {
    let failed = failures(|| WithoutFaults(Faulty::new(Memory::default())));
    assert!(failed.is_empty(), "{failed:#?}");
}

/// A store is asked for no other order of writes than the declared one.
#[test]
fn a_store_that_takes_bytes_in_its_own_order_conforms() {
    for writes in [Writes::InOrder, Writes::Window { bytes: 300_000 }, Writes::Runs] {
        let store = || WithoutFaults(Faulty::new(Memory::default()).far(writes));
        let failed = failures(store);
        assert!(failed.is_empty(), "{writes:?}: {failed:#?}");
    }
}
