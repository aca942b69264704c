# Installs the needs of the cross build for Windows on Debian: mingw-w64's compiler (packages), libevent built from the
# distribution's own source package, and wgpu-native's DLL. All but the packages lie under .deps/windows.

WINDOWS_COMPILER=x86_64-w64-mingw32

install_windows() {
  local windows="$DEPS_DIR/windows"
  install_packages windows
  install_windows_wheels "$windows"
  if [ "$(cat "$windows/libevent.version" 2>/dev/null)" = "$(libevent_version)" ]; then
    step "windows: libevent is in place"
    return
  fi
  may_install "libevent for Windows under $windows"
  build_libevent "$windows"
  step "windows: libevent $(libevent_version) is in $windows"
}

install_windows_wheels() {
  local windows=$1 stamp name version machine sha256 _ python
  stamp=$({ rows wheel | grep "|win_amd64|"; rows windows-file; } | cut -d'|' -f1-4)
  if [ "$(cat "$windows/wheels.stamp" 2>/dev/null)" = "$stamp" ]; then
    step "windows: libraries in place"
    return
  fi
  may_install "the WebGPU provider for Windows under $windows/lib"
  python=$(python_with_pip)
  while IFS='|' read -r name version machine sha256 _; do
    [ "$machine" = win_amd64 ] || continue
    fetch_wheel "$python" "$name" "$version" "$sha256" windows-file "$windows" --platform win_amd64
  done < <(rows wheel)
  echo "$stamp" >"$windows/wheels.stamp"
  rm -rf "$DEPS_DIR/wheels"
}

libevent_version() { rows source | awk -F'|' '$1 == "libevent" { print $2 }'; }

# Debian keeps the original archive of each source package; its SHA-256 decides whether it is the right one.
build_libevent() {
  local windows=$1 build="$1/build-libevent" version sha256 archive
  version=$(libevent_version)
  sha256=$(rows source | awk -F'|' '$1 == "libevent" { print $3 }')
  rm -rf "$build"
  mkdir -p "$build"
  archive="$build/libevent_$version.orig.tar.gz"
  step "windows: fetching the source of libevent $version"
  fetch_source "libevent" "$version" "$archive" >"$windows/libevent.log" 2>&1 ||
    fail "The source package of libevent could not be fetched; see $windows/libevent.log."
  [ "$(sha256sum "$archive" | cut -d' ' -f1)" = "$sha256" ] ||
    fail "$(basename "$archive") has another SHA-256 than tools/dependencies says. Nothing of it was used."
  tar -xzf "$archive" -C "$build"
  step "windows: building libevent $version"
  {
    cmake -G Ninja -S "$build"/libevent-*/ -B "$build/build" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/mingw64.cmake" \
      -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$windows" -DEVENT__LIBRARY_TYPE=STATIC \
      -DEVENT__DISABLE_OPENSSL=ON -DEVENT__DISABLE_TESTS=ON -DEVENT__DISABLE_SAMPLES=ON \
      -DEVENT__DISABLE_BENCHMARK=ON -DEVENT__DISABLE_REGRESS=ON
    cmake --build "$build/build" --target event_core_static
    cp "$build/build/lib/libevent_core.a" "$windows/lib/"
    cp -r "$build"/libevent-*/include/event2 "$windows/include/"
    cp "$build/build/include/event2/event-config.h" "$windows/include/event2/"
    cp "$build"/libevent-*/LICENSE "$windows/licenses/libevent.txt"
  } >>"$windows/libevent.log" 2>&1 || fail "libevent could not be built; see $windows/libevent.log."
  rm -rf "$build"
  libevent_version >"$windows/libevent.version"
}

# fetch_source NAME VERSION ARCHIVE: the original archive of a source package, from the mirror that this machine uses.
fetch_source() {
  local name=$1 version=$2 archive=$3 mirror
  # shellcheck source=/dev/null
  mirror=$(python3 tools/setup.d/backports_source.py "$(. /etc/os-release && echo "$VERSION_CODENAME")" |
    sed -n 's/^URIs: *\([^ ]*\).*/\1/p')
  [ -n "$mirror" ] || return 1
  python3 - "${mirror%/}/pool/main/${name:0:4}/$name/$(basename "$archive")" "$archive" <<'PYTHON'
import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=60) as answer, open(sys.argv[2], "wb") as out:
    out.write(answer.read())
PYTHON
}
