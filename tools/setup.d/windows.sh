# Installs the needs of the cross build for Windows on Debian: mingw-w64's compiler (packages), the libraries of
# windows_sources.sh, and the DLLs of wgpu-native and llguidance. All but the packages lie under .deps/windows.

install_windows() {
  local windows="$DEPS_DIR/windows"
  install_packages windows
  install_cross_wheels windows win_amd64 windows-file "$windows" win_amd64
  install_windows_sources "$windows"
}
