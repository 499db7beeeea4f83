//! Bad input and bad weather: each gives the error that the documentation promises, and loses
//! nothing.

mod admission;
mod blocking;
mod budgets;
mod certificates;
mod channel_binding;
mod configuration;
mod console;
mod database;
mod direct_tls;
mod doors;
mod first_version;
mod limits;
mod log_in;
mod looked_up;
mod modes;
mod peers;
mod proxied;
mod rotation;
mod server_tls;
mod session_starts;
mod suspending;
mod taken_over;
mod tls_versions;
mod users_of_databases;
