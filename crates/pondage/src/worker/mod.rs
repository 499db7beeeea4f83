pub mod plane;
pub mod slots;
pub mod snapshot;

/// An idle server on its way to another worker.
#[derive(Debug)]
pub struct MovedServer {
    pub parts: plane::ServerParts,
    pub transport: (),
}
