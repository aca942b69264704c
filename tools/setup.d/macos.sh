# Installs what compiles the sources for macOS without a Mac, under .deps/macos: Zig, whose C++ compiler is Clang with
# libc++ and the headers of Darwin's C library. Nothing is linked, so that no library of a Mac is needed.

install_macos() {
  [ "$(uname -m)" = x86_64 ] || fail "The check for macOS is set up on x86_64 only; this machine is $(uname -m)."
  install_packages build
  install_cross_wheels macos macos macos-file "$DEPS_DIR/macos" manylinux_2_12_x86_64
}
