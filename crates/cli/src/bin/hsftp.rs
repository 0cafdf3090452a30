//! `hsftp`: executes `hikyaku` under this name.
#![forbid(unsafe_code)]

#[path = "../by_name.rs"]
mod by_name;

fn main() {
    by_name::execute("hsftp")
}
