//! Procedure calls as trains: every form is answered as PostgreSQL answers it, each call is done
//! once or its client is told that nobody knows, and what must not ride does not.

mod books;
mod caching;
mod definitions;
mod errors;
mod forms;
mod learned;
mod leaving;
mod locks;
mod lost;
mod modes;
mod never;
