# On machines without a GPU the tests of Dawn run on SwiftShader, the Vulkan on the CPU that Chromium brings: it
# compiles a shader in a third to a tenth of the time that Mesa's lavapipe takes under Dawn. Only tests use it, through
#   VK_DRIVER_FILES=.deps/swiftshader/icd.json

install_swiftshader() {
  local library=/usr/lib/chromium/libvk_swiftshader.so
  install_packages web
  [ -f "$library" ] ||
    fail "The package chromium of this system has no $library: Dawn's tests run on Mesa's lavapipe instead."
  mkdir -p "$DEPS_DIR/swiftshader"
  printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "%s", "api_version": "1.1.0"}}\n' "$library" \
    >"$DEPS_DIR/swiftshader/icd.json"
  step "swiftshader: $DEPS_DIR/swiftshader/icd.json names $library"
}
