//! The scheduler in virtual time: fluid servers, the simple rules beside it, the optimum, and random worlds.

mod cases;
mod connections;
mod drive;
mod fluid;
mod optimum;
mod rivals;
mod table;
