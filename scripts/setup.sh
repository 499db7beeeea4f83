#!/bin/sh
# Installs what is missing: `setup.sh run` for building and the demo, `setup.sh test` for the
# tests as well. What is there is left alone, in whatever version. Where something can't be had,
# it says what to install and ends with status 1.
set -eu

for_what=${1:-run}
missing=""

say() { printf 'setup: %s\n' "$*" >&2; }

have() { command -v "$1" >/dev/null 2>&1; }

# want COMMAND PACKAGE: remembers Debian's package when the command is not there.
want() { have "$1" || missing="$missing $2"; }

have_postgresql() {
    have initdb && return
    have pg_config && [ -x "$(pg_config --bindir)/initdb" ] && return
    for initdb in /usr/lib/postgresql/*/bin/initdb; do
        [ -x "$initdb" ] && return
    done
    return 1
}

# For the bindings of PostgreSQL's parser: the library and the compiler's own headers.
have_libclang() {
    for library in "${LIBCLANG_PATH:-/usr/lib}"/libclang.so* /usr/lib/llvm-*/lib/libclang.so* \
        /usr/lib/*/libclang-[0-9]*.so* /usr/lib64/libclang.so* ''; do
        [ -e "$library" ] && break
    done
    [ -n "$library" ] || return 1
    for header in /usr/lib*/llvm-*/lib*/clang/*/include/stddef.h \
        /usr/lib*/clang/*/include/stddef.h; do
        [ -e "$header" ] && return
    done
    return 1
}

# Minor versions of Rust: what the workspace asks for, and what is here.
rust_wanted() { sed -n 's/^rust-version = "1\.\([0-9]*\).*/\1/p' Cargo.toml; }
rust_here() { cargo --version | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p'; }

check_rust() {
    have cargo && [ "$(rust_here)" -ge "$(rust_wanted)" ] && return
    say "Rust 1.$(rust_wanted) or later is needed: see https://rustup.rs"
    exit 1
}

install() {
    # shellcheck disable=SC2086  # a list of words
    set -- $missing
    [ $# -gt 0 ] || return 0
    if ! have apt-get; then
        say "missing, and this system has no apt-get; Debian's packages are called: $*"
        exit 1
    fi
    as_root=""
    if [ "$(id -u)" != 0 ]; then
        if ! have sudo; then
            say "missing; as root run: apt-get install $*"
            exit 1
        fi
        as_root=sudo
    fi
    say "installing $*"
    $as_root apt-get update -qq </dev/null
    # Without recommendations: a JDK would bring a desktop with it.
    if ! $as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null; then
        say "could not install: $*"
        exit 1
    fi
}

cd "$(dirname "$0")/.."

want cc gcc
want cc libc6-dev
want make make
have_libclang || missing="$missing libclang-dev"
have_postgresql || missing="$missing postgresql"
want psql postgresql-client
# The last resort: older distributions carry one too old, which check_rust then says.
want cargo cargo
want rustc rustc
if [ "$for_what" = test ]; then
    want python3 python3
    have python3 && python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
    want node nodejs
    want npm npm
    want javac openjdk-17-jdk-headless
    # The dashboard is looked at in a browser.
    want chromium chromium
    # The manual's commands are run on hosts of their own.
    want curl curl
    want ip iproute2
    want openssl openssl
    want mvn maven
    want go golang-go
    # psycopg2's source package asks it where PostgreSQL is.
    want pg_config libpq-dev
    # The unit is looked at without systemd as init.
    want systemd-analyze systemd
    # PostgreSQL's own suites come from its source package.
    want dpkg-source dpkg-dev
    # What Redis answers is asked of Redis; a build of one's own may be named.
    [ -n "${PONDAGE_REDIS_SERVER:-}" ] || want redis-server redis-server
    have cargo && ! cargo fmt --version >/dev/null 2>&1 && missing="$missing rustfmt"
    have cargo && ! cargo clippy --version >/dev/null 2>&1 && missing="$missing rust-clippy"
fi
install
check_rust
have_postgresql || { say "PostgreSQL's initdb is still nowhere; add its directory to PATH"; exit 1; }
