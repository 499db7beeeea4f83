//! The dashboard's files, as they lie in `crates/pondage/dashboard`: parts of the binary, nothing is
//! loaded from elsewhere.

use std::io::Write;
use std::sync::LazyLock;

use axum::body::Body;
use axum::http::{header, HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::write::GzEncoder;
use flate2::Compression;
use sha2::{Digest, Sha256};

/// All that the pages may do: no other site, no script or style that is not a file of ours.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

struct Asset {
    path: &'static str,
    plain: &'static [u8],
    packed: Vec<u8>,
    etag: String,
}

macro_rules! files {
    ($($path:literal $file:literal)*) => {
        &[$(($path, include_bytes!(concat!("../../dashboard/", $file)))),*]
    };
}

const FILES: &[(&str, &[u8])] = files! {
    "/" "index.html"
    "/assets/api.js" "api.js"
    "/assets/app.js" "app.js"
    "/assets/chart.js" "chart.js"
    "/assets/dialog.js" "dialog.js"
    "/assets/format.js" "format.js"
    "/assets/icon.svg" "icon.svg"
    "/assets/pages.js" "pages.js"
    "/assets/style.css" "style.css"
    "/assets/table.js" "table.js"
    "/assets/vendor/preact-htm.js" "vendor/preact-htm.js"
    "/assets/vendor/uplot.css" "vendor/uplot.css"
    "/assets/vendor/uplot.js" "vendor/uplot.js"
};

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let asset = |(path, plain): &(&'static str, &'static [u8])| {
        let digest = Sha256::digest(plain);
        let etag = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>();
        Asset { path, plain, packed: pack(plain), etag: format!("\"{etag}\"") }
    };
    FILES.iter().map(asset).collect()
});

fn pack(plain: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // Memory takes all that is written.
    let written = encoder.write_all(plain).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// The file at this path of the door; none if there is none.
pub fn serve(path: &str, headers: &HeaderMap) -> Option<Response> {
    let asset = ASSETS.iter().find(|asset| asset.path == path)?;
    let has = |name, what: &str| {
        let given = super::gate::text(headers, name).unwrap_or_default();
        given.split(',').any(|one| one.split(';').next().unwrap_or_default().trim() == what)
    };
    let fixed = [
        (header::CONTENT_TYPE, kind(asset.path)),
        // Asked for again each time: an upgrade shows at once.
        (header::CACHE_CONTROL, "no-cache"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::VARY, "accept-encoding"),
    ];
    let etag = HeaderValue::from_str(&asset.etag).ok()?;
    if has(header::IF_NONE_MATCH.as_str(), &asset.etag) {
        return Some((StatusCode::NOT_MODIFIED, fixed, [(header::ETAG, etag)]).into_response());
    }
    let packed = has(header::ACCEPT_ENCODING.as_str(), "gzip") && !asset.packed.is_empty();
    let body = match packed {
        true => Body::from(asset.packed.as_slice()),
        false => Body::from(asset.plain),
    };
    let mut response = (fixed, [(header::ETAG, etag)], body).into_response();
    if packed {
        let encoding = HeaderValue::from_static("gzip");
        response.headers_mut().insert(header::CONTENT_ENCODING, encoding);
    }
    Some(response)
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.').map_or("", |(_, kind)| kind) {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => "text/html; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// What browsers load at the most, packed.
    const BYTES_MAX: usize = 100 << 10;

    #[test]
    fn every_file_of_the_directory_is_served_and_small() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("dashboard");
        let mut found = Vec::new();
        for directory in [root.clone(), root.join("vendor")] {
            let entries = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            let files = entries.filter(|entry| entry.path().is_file());
            found.extend(files.map(|entry| entry.path()));
        }
        let texts = |path: &Path| path.extension().is_some_and(|kind| kind == "md");
        let paths = found.iter().filter(|path| !texts(path)).map(|path| {
            let path = path.strip_prefix(&root).expect("below it").display().to_string();
            if path == "index.html" {
                "/".to_owned()
            } else {
                format!("/assets/{path}")
            }
        });
        let mut paths: Vec<String> = paths.collect();
        let mut served: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        paths.sort();
        served.sort();
        assert_eq!(served, paths);
        let packed: usize = ASSETS.iter().map(|asset| asset.packed.len()).sum();
        assert!(packed <= BYTES_MAX, "{packed} bytes, packed");
    }

    #[test]
    fn files_of_others_are_as_their_packages_have_them() {
        let list = include_str!("../../dashboard/vendor/README.md");
        let others: Vec<_> = FILES.iter().filter(|(path, _)| path.contains("/vendor/")).collect();
        assert!(!others.is_empty());
        for (path, bytes) in others {
            let digest = Sha256::digest(bytes);
            let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            let name = path.rsplit('/').next().expect("a name");
            let line = list.lines().find(|line| line.starts_with(&format!("| {name} |")));
            assert!(line.is_some_and(|line| line.contains(&digest)), "{name}: {digest}");
        }
    }

    #[test]
    fn a_file_comes_packed_where_that_is_understood_and_once() {
        let with = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().expect("a value"));
            serve("/", &headers).expect("a file")
        };
        let plain = with("accept", "*/*");
        assert_eq!(plain.status(), StatusCode::OK);
        assert!(plain.headers().get("content-encoding").is_none());
        let policy = plain.headers()["content-security-policy"].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
        let packed = with("accept-encoding", "br, gzip;q=0.8");
        assert_eq!(packed.headers()["content-encoding"], "gzip");
        let etag = plain.headers()["etag"].to_str().expect("text");
        assert_eq!(with("if-none-match", etag).status(), StatusCode::NOT_MODIFIED);
        assert!(serve("/../Cargo.toml", &HeaderMap::new()).is_none());
    }
}
