//! The conformance suite on the stores of this crate, and on stores that break one rule each.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod broken;

use hikyaku_store::testing::{Rig, count, failures};
use hikyaku_store::{Faulty, Memory, Store};

struct InMemory(Memory);

impl Rig for InMemory {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }

    fn crash(&self) -> Option<Box<dyn Store>> {
        Some(Box::new(self.0.crash()))
    }
}

struct WithoutFaults(Memory);

impl Rig for WithoutFaults {
    fn store(&self) -> Box<dyn Store> {
        Box::new(Faulty::new(self.0.clone()))
    }
}

#[test]
fn a_store_in_memory_conforms() {
    assert!(count() >= 70, "{} cases", count());
    let failed = failures(|| InMemory(Memory::default()));
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_store_with_no_fault_conforms() {
    let failed = failures(|| WithoutFaults(Memory::default()));
    assert!(failed.is_empty(), "{failed:#?}");
}
