//! `hikyaku mount` with the kernel's FUSE: a daemon, a mount of its files, and programs that use them.

mod full;
mod leases;
mod place;
mod programs;
mod reading;
mod several;
mod sharing;
mod staging;
mod unnamed;
mod users;
mod writing;
