//! `hikyaku mount` with the kernel's FUSE: a daemon, a mount of its files, and programs that use them.

mod full;
mod leases;
mod one_file;
mod own_view;
mod place;
mod programs;
mod random_trees;
mod reading;
mod several;
mod sharing;
mod staging;
mod unnamed;
mod users;
mod versions;
mod writing;

pub(crate) use place::can_mount;
