#!/usr/bin/env bash
# Makes prebuilt packages of this checkout: for Linux a relocatable tar.xz, a .deb and a Python wheel of the same files;
# for Windows, built on Debian, a zip and a wheel.
#   tools/package/package.sh [--windows|--arm64] [--out FOLDER]     usual: build/package/out
# --arm64: those for Linux on 64-bit Arm, built on another machine's Debian. On Arm itself no flag is needed.
# Build those for Linux on the oldest system that shall be served: the packages ask for its C library or a newer one and
# for nothing else. A GPU's Vulkan driver, or Mesa's lavapipe (mesa-vulkan-drivers), stays the system's affair.
# docs/howto/install.md has what users do with them; tools/package/try.sh tries each in a clean root, tests/windows/run
# what is in the zip, tests/arm64/run what is in those for Arm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PACKAGE=$PWD/build/package
OUT=$PACKAGE/out
SYSTEM=linux
while [ $# != 0 ]; do
  case "$1" in
    --windows) SYSTEM=windows ;;
    --arm64) SYSTEM=arm64 ;;
    --out)
      [ $# -ge 2 ] || { echo "Flag --out needs a folder." >&2; exit 2; }
      mkdir -p "$2"
      OUT=$(cd "$2" && pwd)
      shift
      ;;
    *)
      echo "Usage: tools/package/package.sh [--windows|--arm64] [--out FOLDER]" >&2
      exit 2
      ;;
  esac
  shift
done

version=$(sed -n 's/^project(doppler VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
tag=$(git describe --tags --exact-match 2>/dev/null || true)
if [ -n "$tag" ] && [ "$tag" != "v$version" ]; then
  echo "The tag of this commit is $tag, but CMakeLists.txt has version $version." >&2
  exit 1
fi
root=$PACKAGE/root/doppler-$version
deps=${DOPPLER_DEPS_DIR:-.deps}
options=()
! command -v ccache >/dev/null || options=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)

# build_installed PRESET BUILD TARGET...: the files of the packages in $root, built with $options.
build_installed() {
  local preset=$1 build=$2
  shift 2
  cmake --preset "$preset" "${options[@]}"
  cmake --build "$build" --target "$@"
  rm -rf "$PACKAGE/root" && mkdir -p "$root" "$OUT"
  cmake --install "$build" --prefix "$root" --strip >"$PACKAGE/install.log"
}

# add_licenses LIST FOLDER [SYSTEM]: the licences of what the program contains or carries. SYSTEM: the folder that has
# the target's packages, if they are not installed.
add_licenses() {
  local licenses=$root/share/doc/doppler package
  mkdir -p "$licenses/third-party"
  cp LICENSE README.md CHANGELOG.md "$licenses"
  cp "$1" "$licenses/THIRD-PARTY.md"
  while read -r package; do
    cp "${3:-}/usr/share/doc/$package/copyright" "$licenses/third-party/$package.txt"
  done < <(sed -n 's/^| `\([a-z0-9+.-]*\)` |.*/\1/p' "$1")
  cp "$2"/*.txt "$licenses/third-party"
}

add_wheel() {
  echo "package: wheel"
  python3 -B tools/package/make_wheel.py --root "$root" --version "$version" --platform "$1" --out "$OUT"
}

pack_tar() {
  echo "package: tar.xz"
  tar -C "$PACKAGE/root" --owner=0 --group=0 --sort=name --use-compress-program="xz -T0" \
    -cf "$OUT/doppler-$version-linux-$1.tar.xz" "doppler-$version"
}

# pack_deb ARCHITECTURE LIBC: by Debian's names, and the version of the C library that the program asks for.
pack_deb() {
  local deb=$PACKAGE/deb
  echo "package: deb"
  rm -rf "$deb" && mkdir -p "$deb/DEBIAN" "$deb/opt" "$deb/usr/bin" "$deb/usr/lib/systemd/system"
  cp -a "$root" "$deb/opt/doppler"
  ln -s ../../opt/doppler/bin/doppler "$deb/usr/bin/doppler"
  install -m 644 tools/package/doppler.service "$deb/usr/lib/systemd/system"
  cat >"$deb/DEBIAN/control" <<CONTROL
Package: doppler
Version: $version
Architecture: $1
Maintainer: Doppler contributors <doppler@localhost>
Section: science
Priority: optional
Installed-Size: $(du -sk "$deb/opt" | cut -f1)
Depends: libc6 (>= $2), libvulkan1
Recommends: mesa-vulkan-drivers, libcurl4 | libcurl4t64
Description: Large language models on WebGPU
 Runs GGUF, safetensors and RDRR models on any GPU with a Vulkan driver, without a compile step: command line,
 OpenAI-compatible server and library.
CONTROL
  dpkg-deb --root-owner-group -Zxz --build "$deb" "$OUT/doppler_${version}_$1.deb" >/dev/null
}

pack_linux() {
  local machine libc
  machine=$(uname -m)
  libc=$(ldd --version | sed -n '1s/.* //p')
  tools/setup
  build_installed package "$PACKAGE" doppler doppler_shared
  add_licenses tools/package/THIRD-PARTY.md "$deps/licenses"
  pack_tar "$machine"
  pack_deb "$(dpkg --print-architecture)" "$libc"
  add_wheel "manylinux_${libc/./_}_$machine"
}

pack_arm64() {
  local libc arm=$deps/arm64
  options+=(-DDOPPLER_BATCHES=ON)  # as tests/arm64/run, so that it is built once
  tools/setup packages arm64
  libc=$(dpkg-query -W -f '${Version}' libc6-dev-arm64-cross | sed 's/-.*//')
  build_installed arm64 build/arm64 doppler doppler_shared doppler_python_names
  add_licenses tools/package/THIRD-PARTY.md "$arm/licenses" "$arm/root"
  pack_tar aarch64
  pack_deb arm64 "$libc"
  add_wheel "manylinux_${libc/./_}_aarch64"
}

pack_windows() {
  local zip=$OUT/doppler-$version-windows-x86_64.zip
  options+=(-DDOPPLER_BATCHES=ON)  # as tests/windows/run, so that it is built once
  tools/setup windows
  build_installed windows build/windows doppler doppler_python_names
  add_licenses tools/package/THIRD-PARTY-windows.md "$deps/windows/licenses"
  echo "package: zip"
  rm -f "$zip"
  (cd "$PACKAGE/root" && python3 -m zipfile -c "$zip" "doppler-$version")
  add_wheel win_amd64
}

"pack_$SYSTEM"
(cd "$OUT" && sha256sum doppler* >SHA256SUMS && ls -l)
