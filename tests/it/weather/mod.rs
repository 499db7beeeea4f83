//! Bad input and bad weather: each gives the error that the documentation promises, and loses
//! nothing.

mod admission;
mod configuration;
mod console;
mod database;
mod doors;
mod limits;
mod log_in;
mod modes;
