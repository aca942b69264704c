#!/usr/bin/env bash
# Makes prebuilt packages of this checkout: a relocatable tar.xz, a .deb and a Python wheel of the same files.
#   tools/package/package.sh [--out FOLDER]     usual: build/package/out
# Build on the oldest system that shall be served: the packages ask for its C library or a newer one and for nothing
# else. A GPU's Vulkan driver, or Mesa's lavapipe (mesa-vulkan-drivers), stays the system's affair.
# docs/howto/install.md has what users do with them; tools/package/try.sh tries each in a clean root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
BUILD=$PWD/build/package
OUT=$BUILD/out
if [ "${1:-}" = --out ] && [ $# = 2 ]; then
  mkdir -p "$2"
  OUT=$(cd "$2" && pwd)
elif [ $# != 0 ]; then
  echo "Usage: tools/package/package.sh [--out FOLDER]" >&2
  exit 2
fi

version=$(sed -n 's/^project(doppler VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
tag=$(git describe --tags --exact-match 2>/dev/null || true)
if [ -n "$tag" ] && [ "$tag" != "v$version" ]; then
  echo "The tag of this commit is $tag, but CMakeLists.txt has version $version." >&2
  exit 1
fi
machine=$(uname -m)
libc=$(ldd --version | sed -n '1s/.* //p')

tools/setup
options=()
! command -v ccache >/dev/null || options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake --preset package "${options[@]}"
cmake --build "$BUILD" --target doppler doppler_shared
root=$BUILD/root/doppler-$version
rm -rf "$BUILD/root" && mkdir -p "$root" "$OUT"
cmake --install "$BUILD" --prefix "$root" --strip >"$BUILD/install.log"

# The licences of what the program contains or carries.
licenses=$root/share/doc/doppler
mkdir -p "$licenses/third-party"
cp LICENSE README.md CHANGELOG.md "$licenses"
cp tools/package/THIRD-PARTY.md "$licenses"
while read -r package; do
  cp "/usr/share/doc/$package/copyright" "$licenses/third-party/$package.txt"
done < <(sed -n 's/^| `\([a-z0-9+.-]*\)` |.*/\1/p' tools/package/THIRD-PARTY.md)
cp "${DOPPLER_DEPS_DIR:-.deps}"/licenses/*.txt "$licenses/third-party"

echo "package: tar.xz"
tar -C "$BUILD/root" --owner=0 --group=0 --sort=name --use-compress-program="xz -T0" -cf "$OUT/doppler-$version-linux-$machine.tar.xz" "doppler-$version"

echo "package: deb"
deb=$BUILD/deb
rm -rf "$deb" && mkdir -p "$deb/DEBIAN" "$deb/opt" "$deb/usr/bin" "$deb/usr/lib/systemd/system"
cp -a "$root" "$deb/opt/doppler"
ln -s ../../opt/doppler/bin/doppler "$deb/usr/bin/doppler"
install -m 644 tools/package/doppler.service "$deb/usr/lib/systemd/system"
cat >"$deb/DEBIAN/control" <<CONTROL
Package: doppler
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: Doppler contributors <doppler@localhost>
Section: science
Priority: optional
Installed-Size: $(du -sk "$deb/opt" | cut -f1)
Depends: libc6 (>= $libc), libvulkan1
Recommends: mesa-vulkan-drivers, libcurl4 | libcurl4t64
Description: Large language models on WebGPU
 Runs GGUF, safetensors and RDRR models on any GPU with a Vulkan driver, without a compile step: command line,
 OpenAI-compatible server and library.
CONTROL
dpkg-deb --root-owner-group -Zxz --build "$deb" "$OUT/doppler_${version}_$(dpkg --print-architecture).deb" >/dev/null

echo "package: wheel"
python3 -B tools/package/make_wheel.py --root "$root" --version "$version" \
  --platform "manylinux_${libc/./_}_$machine" --out "$OUT"
(cd "$OUT" && sha256sum doppler* >SHA256SUMS && ls -l)
