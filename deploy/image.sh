#!/bin/sh
# Builds deploy/Dockerfile where no engine and no registry is at hand: Debian's buildah, in a chroot, on a base that
# mmdebstrap makes. As root. Usage: deploy/image.sh [STORAGE]; the image is localhost/sluice in that storage.
# SLUICE_IMAGE_BASE names another base image, such as docker.io/library/python:3.11-slim.
set -eu

cd "$(dirname "$0")/.."
storage=$(realpath -m "${1:-var/image}")
mkdir -p "$storage"
store() { buildah --root "$storage/root" --runroot "$storage/run" --storage-driver vfs "$@"; }

base=${SLUICE_IMAGE_BASE:-localhost/sluice-base}
if [ "$base" = localhost/sluice-base ] && ! store inspect --type image "$base" > /dev/null 2>&1; then
    tree=$storage/base.tar
    mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$tree"
    container=$(store from scratch)
    store add --quiet "$container" "$tree" /
    store config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$container"
    store commit --quiet "$container" "$base" > /dev/null
    store rm "$container" > /dev/null
    rm "$tree"
fi

# The package index that pip is configured for here, and the certificates that it trusts, while the image is built.
certificates=/etc/ssl/certs/ca-certificates.crt
{
    echo "[global]"
    [ ! -r "$certificates" ] || echo "cert = /run/certificates.crt"
    [ -z "${PIP_INDEX_URL-}" ] || echo "index-url = $PIP_INDEX_URL"
    [ -z "${PIP_EXTRA_INDEX_URL-}" ] || echo "extra-index-url = $PIP_EXTRA_INDEX_URL"
} > "$storage/pip.conf"
set -- --volume "$storage/pip.conf:/etc/pip.conf:ro"
[ ! -r "$certificates" ] || set -- "$@" --volume "$certificates:/run/certificates.crt:ro"
store build --format docker --isolation chroot --build-arg "BASE=$base" --file deploy/Dockerfile \
    --ignorefile deploy/Dockerfile.dockerignore "$@" --tag localhost/sluice .
rm "$storage/pip.conf"
