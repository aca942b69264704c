#!/bin/sh
# Makes build/gpu_bundle, a folder that runs Doppler's tests and benchmarks on another x86-64 Linux machine (glibc not
# older than here) without network: see README.md. Compressed, because a bundle may have to travel through a narrow
# door.
#   pack.sh [--build DIR] [--no-build] [--programs NAME,NAME] [--base REV]
# --build DIR: a configured build folder (default: build/release, made if missing).
# --programs: only these of the programs, such as doppler or doppler,linear_test; default: all that use the GPU.
# --base REV: the doppler of that revision travels too, so that run.sh measures both in one run and prints ratios.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=$root/build/release
make=yes
chosen=
base=
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$(cd "$2" && pwd); shift 2 ;;
    --no-build) make=no; shift ;;
    --programs) chosen=$(echo "$2" | tr , '|'); shift 2 ;;
    --base) base=$2; shift 2 ;;
    *) echo "pack.sh: \"$1\" is not known; allowed are --build DIR, --no-build, --programs NAMES and --base REV." >&2; exit 2 ;;
  esac
done
bundle=$root/build/gpu_bundle
deps=$root/.deps

# Libraries that the machine there has itself. All others that a program is linked with travel.
base_libraries='linux-vdso|ld-linux|libc\.so|libm\.so|libdl\.so|libpthread\.so|librt\.so|libstdc\+\+|libgcc_s'
# The programs: the command line, whatever tests or times the GPU.
programs='^(src/cli/doppler|src/(gpu|kernels)/([a-z0-9_]+/)*(gpu_test|[a-z0-9_]+_test|[a-z0-9_]+_bench)|tests/golden/golden_test)$'
[ -z "$chosen" ] || programs="^(src|tests)/([a-z0-9_]+/)*($chosen)\$"
not_for_gpu='/(plan_test|native_guards_test)$' # unit tests without a device

# With ccache, what was once compiled as a candidate need not be compiled again as a base: paths count from the source
# tree.
if command -v ccache > /dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER:-ccache}"; fi

if [ $make = yes ]; then
  export CCACHE_BASEDIR="$root"
  [ -f "$build/build.ninja" ] || (cd "$root" && cmake --preset release)
  targets=$(ninja -C "$build" -t targets all | sed -n 's/: CXX_EXECUTABLE_LINKER.*//p' | grep -E "$programs")
  # shellcheck disable=SC2086 # target names have no spaces
  ninja -C "$build" $targets
fi

# The base: its committed files in a folder of their own, and only its doppler. It is kept until another revision is
# named.
if [ -n "$base" ]; then
  base_commit=$(git -C "$root" rev-parse --verify "$base^{commit}")
  tree=$root/build/gpu_base
  base_build=$tree/source/build/release
  if [ "$(cat "$tree/commit" 2>/dev/null)" != "$base_commit" ]; then
    rm -f "$tree/commit"
    mkdir -p "$tree/source"
    # With an index of its own, git writes only the files that differ, so that only those are compiled again.
    GIT_INDEX_FILE=$tree/index git -C "$root" --work-tree="$tree/source" read-tree --reset -u "$base_commit"
    ln -sfn "$deps" "$tree/source/.deps"
    export CCACHE_BASEDIR="$tree/source"
    cmake -S "$tree/source" -B "$base_build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDOPPLER_TESTS=OFF > "$tree/cmake.log"
    ninja -C "$base_build" src/cli/doppler
    echo "$base_commit" > "$tree/commit"
  fi
fi

rm -rf "$bundle" "$bundle.tree"
mkdir -p "$bundle" "$bundle.tree/bin" "$bundle.tree/lib"
(cd "$build" && find src tests -type f -perm -u+x) | grep -E "$programs" | grep -vE "$not_for_gpu" | while read -r program; do
  strip -o "$bundle.tree/bin/$(basename "$program")" "$build/$program"
done
[ -x "$bundle.tree/bin/doppler" ] || { echo "pack.sh: $build has no src/cli/doppler; build it first." >&2; exit 1; }
{
  changed=$(git -C "$root" status --porcelain --untracked-files=no | wc -l)
  printf 'commit=%s%s\n' "$(git -C "$root" rev-parse --short HEAD)" "$([ "$changed" -eq 0 ] || echo "+changes")"
  [ -z "$base" ] || printf 'base_commit=%s\n' "$(git -C "$root" rev-parse --short "$base_commit")"
} > "$bundle/bundle.txt"
if [ -n "$base" ]; then
  mkdir "$bundle.tree/base"
  strip -o "$bundle.tree/base/doppler" "$base_build/src/cli/doppler"
fi

# Shared libraries: those that the programs name, and the Vulkan loader, which they open at run time.
{
  for program in "$bundle.tree"/bin/* "$bundle.tree"/base/*; do [ ! -f "$program" ] || ldd "$program"; done |
    sed -n 's/.* => \(\/[^ ]*\) .*/\1/p'
  ldconfig -p | sed -n 's/.*libvulkan\.so\.1 .*x86-64.* => \(.*\)/\1/p' | head -n 1
} | sort -u | grep -vE "$base_libraries" | while read -r library; do
  cp -L "$library" "$bundle.tree/lib/"
done
cp -L "$deps"/lib/libwgpu_native.so "$bundle.tree/lib/"
cp -r "$build/src/gpu/doppler-chosen-device" "$bundle.tree/lib/" # the second GPU under Dawn
strip --strip-unneeded "$bundle.tree"/lib/*.so* "$bundle.tree"/lib/*/*.so* 2>/dev/null || true

tar -C "$bundle.tree" -cf - bin lib $([ -z "$base" ] || echo base) | xz -T0 -6 > "$bundle/programs.tar.xz"
# Compressing it takes a minute or two: kept until the library changes.
dawn=$root/build/libdawn.so.xz
if [ ! "$dawn" -nt "$deps/lib/libdawn.so" ]; then
  strip --strip-unneeded -o "$bundle.tree/libdawn.so" "$deps/lib/libdawn.so"
  xz -T0 -6 -c "$bundle.tree/libdawn.so" > "$dawn.new"
  mv "$dawn.new" "$dawn"
fi
cp "$dawn" "$bundle/libdawn.so.xz"
[ ! -f "$bundle.tree/bin/golden_test" ] || cp "$root"/tests/data/families_*.tar.xz "$bundle/"
cp "$root/tools/gpu/run.sh" "$bundle/"
rm -rf "$bundle.tree"
du -sh "$bundle" | cut -f 1 | sed "s|\$| in $bundle|"
