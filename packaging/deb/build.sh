#!/bin/sh
# Builds the Debian package: build.sh PROGRAM DIRECTORY puts pondage_VERSION_ARCH.deb of this binary
# into the directory. DPKG_DEB_OPTIONS may say how to pack (-Zgzip). Needs dpkg-deb and dpkg-shlibdeps (dpkg-dev); any user may run it.
set -eu
umask 022
program=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
cd "$(dirname "$0")/../.."

version=$("$program" --version | sed 's/^pondage //')
arch=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

put() { install -D -m "$1" "$2" "$root/package/$3"; }

put 755 "$program" usr/bin/pondage
strip --strip-unneeded "$root/package/usr/bin/pondage"
put 640 packaging/deb/pondage.toml etc/pondage/pondage.toml
put 644 packaging/pondage.service usr/lib/systemd/system/pondage.service
put 644 packaging/pondage.toml usr/share/doc/pondage/examples/pondage.toml
put 644 packaging/grafana/pondage.json usr/share/doc/pondage/examples/grafana.json
put 644 packaging/prometheus/alerts.yaml usr/share/doc/pondage/examples/alerts.yaml
put 644 packaging/deb/copyright usr/share/doc/pondage/copyright
mkdir -p "$root/package/usr/share/man/man1" "$root/package/usr/share/man/man5"
"$program" manual | gzip -9n >"$root/package/usr/share/man/man1/pondage.1.gz"
"$program" manual --configuration | gzip -9n >"$root/package/usr/share/man/man5/pondage.toml.5.gz"
gzip -9nc CHANGELOG.md >"$root/package/usr/share/doc/pondage/CHANGELOG.md.gz"
maintainer="The Pondage developers <pondage@example.org>"
date=$(LC_ALL=C date -uR -d "@${SOURCE_DATE_EPOCH:-$(stat -c %Y CHANGELOG.md)}")
# In Debian's form.
gzip -9n >"$root/package/usr/share/doc/pondage/changelog.gz" <<EOF
pondage ($version) unstable; urgency=medium

  * What users notice is in CHANGELOG.md.gz beside this file.

 -- $maintainer  $date
EOF
put 644 packaging/deb/lintian-overrides usr/share/lintian/overrides/pondage
for shell in bash:usr/share/bash-completion/completions/pondage \
    zsh:usr/share/zsh/vendor-completions/_pondage \
    fish:usr/share/fish/vendor_completions.d/pondage.fish; do
    mkdir -p "$root/package/$(dirname "${shell#*:}")"
    "$program" completions "${shell%%:*}" >"$root/package/${shell#*:}"
done

mkdir -p "$root/package/DEBIAN" "$root/debian"
: >"$root/debian/control"
depends=$(cd "$root" && dpkg-shlibdeps -O package/usr/bin/pondage 2>/dev/null | sed 's/^shlibs:Depends=//')
size=$(du -sk "$root/package" | cut -f1)
cat >"$root/package/DEBIAN/control" <<EOF
Package: pondage
Version: $version
Architecture: $arch
Maintainer: $maintainer
Installed-Size: $size
Depends: $depends, adduser
Recommends: ca-certificates
Suggests: postgresql-client, redis-tools
Section: database
Priority: optional
Description: one process in front of PostgreSQL that turns many into few
 Pondage gives many clients cheap connections to PostgreSQL and shares few
 real ones among them. Short statements of different clients share trips,
 repeated reads are answered from a cache that stays fresh, and Redis
 clients write ordinary tables. It takes PgBouncer's configuration and
 console commands.
EOF
echo /etc/pondage/pondage.toml >"$root/package/DEBIAN/conffiles"
for script in postinst prerm postrm; do
    install -m 755 "packaging/deb/$script" "$root/package/DEBIAN/$script"
done
(cd "$root/package" && find usr etc -type f -print0 | sort -z | xargs -0 md5sum) >"$root/package/DEBIAN/md5sums"
# shellcheck disable=SC2086  # a list of options
dpkg-deb ${DPKG_DEB_OPTIONS:-} --root-owner-group --build "$root/package" "$out/pondage_${version}_$arch.deb" >&2
echo "$out/pondage_${version}_$arch.deb"
