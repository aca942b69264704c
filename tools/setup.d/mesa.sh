# Dawn needs a newer Mesa on the CPU than Debian 12 ships. This unpacks one from the distribution's own backports
# under .deps/mesa: no file outside .deps changes. Used by the tests only, through
#   VK_DRIVER_FILES=.deps/mesa/lvp_icd.json LD_LIBRARY_PATH=.deps/mesa/lib

MESA_NEEDED=24 # the first major version on whose lavapipe Dawn starts (docs/design/providers.md)

install_mesa() {
  local installed codename mesa="$DEPS_DIR/mesa"
  installed=$(dpkg-query -W -f '${Version}' mesa-vulkan-drivers 2>/dev/null || true)
  [ -n "$installed" ] || fail "mesa-vulkan-drivers is not installed; run tools/setup first."
  if [ "${installed%%.*}" -ge "$MESA_NEEDED" ]; then
    step "mesa: the installed $installed is new enough for Dawn"
    return
  fi
  if [ -f "$mesa/lvp_icd.json" ]; then
    step "mesa: $(cat "$mesa/version") is in place"
    return
  fi
  may_install "a Mesa of version $MESA_NEEDED or newer under $mesa"
  # shellcheck source=/dev/null
  codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
  rm -rf "$mesa"
  mkdir -p "$mesa/apt/lists/partial" "$mesa/apt/cache/archives/partial" "$mesa/apt/sources" "$mesa/debs"
  python3 tools/setup.d/backports_source.py "$codename" >"$mesa/apt/sources/backports.sources" ||
    fail "No apt source of this machine lists the suite \"$codename\", so its backports cannot be derived. Dawn cannot run on the CPU here; wgpu-native can."
  step "mesa: $installed is too old for Dawn on the CPU; looking in $codename-backports"
  mesa_apt update -q >"$mesa/apt.log" 2>&1 ||
    fail "The package lists of $codename-backports could not be read; see $mesa/apt.log."
  mesa_download "$codename"
  mesa_unpack
  step "mesa: $(cat "$mesa/version") is in $mesa"
}

# apt with lists, cache and sources of its own; the record of installed packages is the system's, read only.
mesa_apt() {
  local apt="$DEPS_DIR/mesa/apt" program=apt-get
  if [ "$1" = "--cache" ]; then
    program=apt-cache
    shift
  fi
  "$program" -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" -o Dir::Etc::SourceList=/dev/null \
    -o Dir::Etc::SourceParts="$apt/sources" -o Acquire::Languages=none -o Acquire::Retries=3 \
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o APT::Sandbox::User="$(id -un)" \
    -o Debug::NoLocking=1 "$@"
}

# Exactly what lavapipe needs: what an upgrade would install, as far as mesa-vulkan-drivers depends on it.
mesa_download() {
  local suite="$1-backports" upgrade needed names
  upgrade=$(mesa_apt install -s --no-install-recommends -t "$suite" mesa-vulkan-drivers 2>/dev/null |
    sed -n 's/^Inst \([^ ]*\) .*/\1/p' | sort)
  needed=$(mesa_apt --cache depends -t "$suite" --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
    --no-replaces --no-enhances mesa-vulkan-drivers 2>/dev/null | grep '^[a-z0-9]' | sort -u)
  names=$(comm -12 <(echo "$upgrade") <(echo "$needed"))
  case " $(echo "$names" | tr '\n' ' ')" in
    *" mesa-vulkan-drivers "*) ;;
    *) fail "$suite has no newer mesa-vulkan-drivers; Dawn cannot run on the CPU here; wgpu-native can." ;;
  esac
  # shellcheck disable=SC2086
  (cd "$DEPS_DIR/mesa/debs" && mesa_apt download -q -t "$suite" $names >>../apt.log 2>&1) ||
    fail "Downloading Mesa failed; see $DEPS_DIR/mesa/apt.log."
}

# The .debs of lavapipe -> .deps/mesa/lib and a driver manifest whose path is relative, so the folder can be moved.
mesa_unpack() {
  local mesa="$DEPS_DIR/mesa" deb version
  for deb in "$mesa"/debs/*.deb; do dpkg -x "$deb" "$mesa/root"; done
  mkdir -p "$mesa/lib"
  mv "$mesa"/root/usr/lib/*-linux-gnu/*.so* "$mesa/lib/"
  [ -f "$mesa/lib/libvulkan_lvp.so" ] || fail "The downloaded Mesa holds no libvulkan_lvp.so; see $mesa/debs."
  if LD_LIBRARY_PATH="$mesa/lib" ldd "$mesa/lib/libvulkan_lvp.so" | grep 'not found' >>"$mesa/apt.log"; then
    fail "The downloaded Mesa misses libraries; see the end of $mesa/apt.log."
  fi
  version=$(dpkg-deb -f "$mesa"/debs/mesa-vulkan-drivers_*.deb Version)
  sed 's#"library_path": *"[^"]*"#"library_path": "./lib/libvulkan_lvp.so"#' \
    "$mesa"/root/usr/share/vulkan/icd.d/lvp_icd*.json >"$mesa/lvp_icd.json.part"
  rm -rf "$mesa/root" "$mesa/debs" "$mesa/apt"
  # The package also holds the drivers of GPUs and layers; only lavapipe is wanted.
  find "$mesa/lib" -name 'lib[vV]*k*.so' ! -name libvulkan_lvp.so -delete
  echo "Mesa $version" >"$mesa/version"
  mv "$mesa/lvp_icd.json.part" "$mesa/lvp_icd.json"
}
