pub mod moment;
