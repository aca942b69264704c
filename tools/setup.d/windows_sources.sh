# Libraries for Windows that are built from Debian's source packages, by the rows `source` of tools/dependencies: each
# has a function build_NAME SOURCE BUILD PREFIX here. mingw-w64's compiler makes them.

install_windows_sources() {
  local windows=$1 name version sha256 _
  mkdir -p "$windows/lib" "$windows/include" "$windows/licenses" "$windows/built"
  while IFS='|' read -r name version sha256 _; do
    if [ "$(cat "$windows/built/$name" 2>/dev/null)" = "$version $sha256" ]; then
      step "windows: $name $version is in place"
    else
      install_windows_source "$windows" "$name" "$version" "$sha256"
    fi
  done < <(rows source)
}

install_windows_source() {
  local windows=$1 name=$2 version=$3 sha256=$4 build="$1/build-$2" log="$1/$2.log" archive status
  may_install "$name for Windows under $windows"
  rm -rf "$build"
  mkdir -p "$build/source"
  archive="$build/${name}_$version.orig.tar.gz"
  step "windows: fetching the source of $name $version"
  fetch_source "$name" "$archive" >"$log" 2>&1 ||
    fail "The source package of $name could not be fetched; see $log."
  [ "$(sha256sum "$archive" | cut -d' ' -f1)" = "$sha256" ] ||
    fail "$(basename "$archive") has another SHA-256 than tools/dependencies says. Nothing of it was used."
  tar -xzf "$archive" -C "$build/source" --strip-components=1
  step "windows: building $name $version"
  # Not in a condition: there bash would go on after a command that fails.
  set +e
  (set -e; "build_${name//[-.]/_}" "$build/source" "$build/build" "$windows") >>"$log" 2>&1
  status=$?
  set -e
  [ "$status" = 0 ] || fail "$name could not be built; see $log."
  rm -rf "$build"
  echo "$version $sha256" >"$windows/built/$name"
}

# fetch_source NAME ARCHIVE: the original archive of a source package, from the mirror that this machine uses. Debian
# keeps it while one of its suites has that version.
fetch_source() {
  local name=$1 archive=$2 mirror letter=${1:0:1}
  case "$name" in lib*) letter=${name:0:4} ;; esac
  # shellcheck source=/dev/null
  mirror=$(python3 tools/setup.d/backports_source.py "$(. /etc/os-release && echo "$VERSION_CODENAME")" |
    sed -n 's/^URIs: *\([^ ]*\).*/\1/p')
  [ -n "$mirror" ] || return 1
  python3 - "${mirror%/}/pool/main/$letter/$name/$(basename "$archive")" "$archive" <<'PYTHON'
import sys
import urllib.request

with urllib.request.urlopen(sys.argv[1], timeout=60) as answer, open(sys.argv[2], "wb") as out:
    out.write(answer.read())
PYTHON
}

# windows_cmake SOURCE BUILD PREFIX OPTION...
windows_cmake() {
  local source=$1 build=$2 prefix=$3
  shift 3
  cmake -G Ninja -S "$source" -B "$build" -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/mingw64.cmake" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$prefix" "$@"
}

build_libevent() {
  local source=$1 build=$2 prefix=$3
  windows_cmake "$@" -DEVENT__LIBRARY_TYPE=STATIC -DEVENT__DISABLE_OPENSSL=ON -DEVENT__DISABLE_TESTS=ON \
    -DEVENT__DISABLE_SAMPLES=ON -DEVENT__DISABLE_BENCHMARK=ON -DEVENT__DISABLE_REGRESS=ON
  cmake --build "$build" --target event_core_static
  cp "$build/lib/libevent_core.a" "$prefix/lib/"
  cp -r "$source/include/event2" "$prefix/include/"
  cp "$build/include/event2/event-config.h" "$prefix/include/event2/"
  cp "$source/LICENSE" "$prefix/licenses/libevent.txt"
}

# A DLL, opened at run time as on Linux. Windows' own TLS, with its own list of certificates.
build_curl() {
  local source=$1 build=$2 prefix=$3 off=()
  for part in BUILD_CURL_EXE BUILD_STATIC_LIBS BUILD_LIBCURL_DOCS BUILD_MISC_DOCS ENABLE_CURL_MANUAL BUILD_TESTING \
    CURL_USE_LIBPSL CURL_USE_LIBSSH2 CURL_ZLIB CURL_BROTLI CURL_ZSTD USE_NGHTTP2 USE_LIBIDN2; do
    off+=("-D$part=OFF")
  done
  windows_cmake "$@" -DBUILD_SHARED_LIBS=ON -DHTTP_ONLY=ON -DCURL_USE_SCHANNEL=ON "${off[@]}" \
    -DCMAKE_SHARED_LINKER_FLAGS="-static -s"
  cmake --build "$build" --target libcurl_shared
  cp "$build"/lib/libcurl*.dll "$prefix/lib/libcurl.dll"
  cp "$source/COPYING" "$prefix/licenses/libcurl.txt"
}

# It has no build description for this system. Only what reads files.
build_giflib() {
  local source=$1 build=$2 prefix=$3 file
  mkdir -p "$build"
  for file in dgif_lib gifalloc gif_err gif_hash openbsd-reallocarray; do
    x86_64-w64-mingw32-gcc-posix -O2 -c "$source/$file.c" -o "$build/$file.o"
  done
  x86_64-w64-mingw32-gcc-ar-posix rcs "$prefix/lib/libgif.a" "$build"/*.o
  cp "$source/gif_lib.h" "$prefix/include/"
  cp "$source/COPYING" "$prefix/licenses/giflib.txt"
}

# Without its assembler parts, whose pixels are the same and which need another program to build.
build_libjpeg_turbo() {
  local source=$1 build=$2 prefix=$3
  windows_cmake "$@" -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DWITH_SIMD=OFF
  cmake --build "$build" --target jpeg-static
  cp "$build/libjpeg.a" "$prefix/lib/"
  cp "$source"/{jpeglib,jmorecfg,jerror}.h "$build/jconfig.h" "$prefix/include/"
  cat "$source/LICENSE.md" "$source/README.ijg" >"$prefix/licenses/libjpeg-turbo.txt"
}

build_libpng1_6() {
  local source=$1 build=$2 prefix=$3
  windows_cmake "$@" -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_TOOLS=OFF
  cmake --build "$build" --target png_static
  cp "$build"/libpng16.a "$prefix/lib/libpng.a"
  cp "$source"/{png,pngconf}.h "$build/pnglibconf.h" "$prefix/include/"
  cp "$source/LICENSE" "$prefix/licenses/libpng.txt"
}

build_libwebp() {
  local source=$1 build=$2 prefix=$3 off=()
  for part in ANIM_UTILS CWEBP DWEBP GIF2WEBP IMG2WEBP VWEBP WEBPINFO LIBWEBPMUX WEBPMUX EXTRAS; do
    off+=("-DWEBP_BUILD_$part=OFF")
  done
  windows_cmake "$@" -DBUILD_SHARED_LIBS=OFF "${off[@]}"
  cmake --build "$build" --target webp sharpyuv
  cp "$build/libwebp.a" "$build/libsharpyuv.a" "$prefix/lib/"
  mkdir -p "$prefix/include/webp"
  cp "$source"/src/webp/{decode,encode,types}.h "$prefix/include/webp/"
  cp "$source/COPYING" "$prefix/licenses/libwebp.txt"
}
