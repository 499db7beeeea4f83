//! Pages of the manual that are written by the program, held against what it would write.

use std::path::Path;

/// Compares a page in `docs/` with `generated`; writes it first where `UPDATE_DOCS` is set.
#[track_caller]
pub fn expect(page: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, generated).expect("the page can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == generated,
        "docs/{page} is not what the code says: \
         run `UPDATE_DOCS=1 cargo test -p pondage reference_page`"
    );
}
