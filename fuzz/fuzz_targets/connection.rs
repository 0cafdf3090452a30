//! Two whole connections and whatever may happen to them: see `hikyaku_sim::Op`. What fails here can be
//! shrunk as in `crates/sim/tests/sim/ops.rs`.
#![no_main]

use hikyaku_sim::{Plot, play};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let plot = Plot::read(bytes);
    if let Err(what) = play(&plot) {
        panic!("{what}\n{plot:#?}");
    }
});
