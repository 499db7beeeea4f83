#!/bin/sh
# Makes a release: release.sh VERSION DIRECTORY puts the tarball, the Debian package, the SBOM, the
# notes and SHA256SUMS there. Tests run before, and the tree has to be clean and tagged.
# PROGRAM=FILE takes this binary and leaves all of that out: for trying the recipe.
set -eu
umask 022
cd "$(dirname "$0")/.."
fail() { printf 'release: %s\n' "$*" >&2; exit 1; }
[ $# = 2 ] || fail "say VERSION and DIRECTORY"
version=$1
out=$(realpath -m "$2")

notes=$(awk -v version="$version" '
    $0 ~ "^## \\[" version "\\]" { on = 1; next }
    on && /^## / { exit }
    on { print }' CHANGELOG.md)
[ -n "$notes" ] || fail "CHANGELOG.md has no section [$version]"
grep -q "^version = \"$version\"" Cargo.toml || fail "Cargo.toml has another version than $version"

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
if [ -z "${PROGRAM:-}" ]; then
    [ -z "$(git status --porcelain)" ] || fail "the tree is not clean"
    [ "$(git describe --exact-match --tags 2>/dev/null)" = "v$version" ] || fail "this is not v$version"
    make test
    # The same paths in every binary, wherever it was built.
    RUSTFLAGS="--remap-path-prefix=$PWD=/pondage --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    export RUSTFLAGS
    cargo build --release --locked -p pondage
    PROGRAM=${CARGO_TARGET_DIR:-target}/release/pondage
fi
[ "$("$PROGRAM" --version)" = "pondage $version" ] || fail "$PROGRAM is not version $version"

mkdir -p "$out"
name=pondage-$version-$(uname -m)-linux-gnu
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/$name"
install -m 755 "$PROGRAM" "$stage/$name/pondage"
strip --strip-unneeded "$stage/$name/pondage"
"$PROGRAM" manual >"$stage/$name/pondage.1"
for shell in bash zsh fish; do "$PROGRAM" completions $shell >"$stage/$name/pondage.$shell"; done
cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT packaging/pondage.toml packaging/pondage.service "$stage/$name/"
cp -r packaging/grafana packaging/prometheus "$stage/$name/"
tar -C "$stage" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    -c "$name" | gzip -9n >"$out/$name.tar.gz"

packaging/deb/build.sh "$PROGRAM" "$out" >/dev/null
scripts/sbom.py --date "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)" >"$out/pondage-$version.cdx.json"
printf '%s\n' "$notes" >"$out/NOTES.md"
(cd "$out" && sha256sum "$name.tar.gz" ./*.deb "pondage-$version.cdx.json" NOTES.md | sed 's|\./||' >SHA256SUMS)
printf 'release: %s\n' "$out"
