#!/bin/sh
# The shell of the arm64 host (host.ts): Debian's busybox for that processor, put beside the C library of libc6-arm64-cross. Packages of
# another architecture are got without telling dpkg of it.
set -eu
to=/usr/aarch64-linux-gnu/bin
[ ! -x "$to/busybox" ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
cd "$work"
set -- -qq -o APT::Architectures::=arm64 -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" -o APT::Sandbox::User=root
apt-get "$@" update
apt-get "$@" download busybox-static:arm64
dpkg-deb -x busybox-static_*_arm64.deb .
mkdir -p "$to"
cp bin/busybox "$to/busybox"
