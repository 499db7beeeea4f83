//! What the real parser says of a statement, once for each shape.

/// What a literal may become when the statement is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// A parameter of this type; 0: to be inferred, as that of an unknown literal is.
    Parameter(u32),
    /// It stays as it is.
    Fixed,
}
