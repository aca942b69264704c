# Installs the needs of the cross build for Windows on Debian: mingw-w64's compiler (packages), the libraries of
# windows_sources.sh, and the DLLs of wgpu-native and llguidance. All but the packages lie under .deps/windows.

install_windows() {
  local windows="$DEPS_DIR/windows"
  install_packages windows
  install_windows_wheels "$windows"
  install_windows_sources "$windows"
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
