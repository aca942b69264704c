# Installs the needs of the cross build for 64-bit Arm: Debian's cross compiler and qemu (packages), and under
# .deps/arm64 that machine's WebGPU providers and llguidance, and in its folder root the libraries of its Debian. No
# package of another machine is installed: apt gets them by lists and a cache of its own.

install_arm64() {
  local arm="$DEPS_DIR/arm64"
  install_packages arm64
  install_arm64_root "$arm"
  install_cross_wheels arm64 aarch64 file "$arm" "manylinux_2_27_aarch64 manylinux_2_28_aarch64 manylinux_2_31_aarch64"
}

# The libraries among the rows of the groups that the build and a machine without a GPU need.
arm64_libraries() {
  rows package | sed -n 's/^\(\(lib\|nlohmann\|mesa\)[^|]*\)|\(build\|mesa-cpu\)|.*/\1/p' | sort
}

install_arm64_root() {
  local arm=$1 names codename deb
  names=$(arm64_libraries)
  if [ "$(cat "$arm/root.stamp" 2>/dev/null)" = "$names" ]; then
    step "arm64: libraries in place"
    return
  fi
  may_install "the libraries of 64-bit Arm under $arm/root"
  # shellcheck source=/dev/null
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  rm -rf "$arm/root" "$arm/apt"
  mkdir -p "$arm/root" "$arm/apt/lists/partial" "$arm/apt/cache/archives/partial" "$arm/apt/sources"
  touch "$arm/apt/status"
  python3 tools/setup.d/backports_source.py "$codename" >"$arm/apt/sources/debian.sources" ||
    fail "No apt source of this machine lists the suite \"$codename\"."
  step "arm64: fetching libraries"
  arm64_apt "$arm/apt" update >"$arm/apt.log" 2>&1 ||
    fail "The package lists for 64-bit Arm could not be read; see $arm/apt.log."
  # shellcheck disable=SC2086
  arm64_apt "$arm/apt" install -y --download-only --no-install-recommends $names >>"$arm/apt.log" 2>&1 ||
    fail "The libraries for 64-bit Arm could not be fetched; see $arm/apt.log."
  for deb in "$arm"/apt/cache/archives/*.deb; do
    case "$(basename "$deb")" in
      libc6-dev_* | libcrypt-dev_* | linux-libc-dev_*) ;; # the cross compiler has its own
      *) dpkg -x "$deb" "$arm/root" ;;
    esac
  done
  rm -rf "$arm/apt"
  echo "$names" >"$arm/root.stamp"
}

arm64_apt() {
  local apt=$1
  shift
  apt-get -q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State::status="$apt/status" \
    -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o Dir::Etc::SourceList=/dev/null \
    -o Dir::Etc::SourceParts="$apt/sources" -o Acquire::Languages=none -o Acquire::Retries=3 \
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o APT::Sandbox::User="$(id -un)" \
    -o Debug::NoLocking=1 "$@"
}
