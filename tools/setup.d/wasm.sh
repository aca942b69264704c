# The WebAssembly build: Clang with its WebAssembly libraries, and for the tests Node with the packages that
# web/package.json pins.

install_wasm() {
  install_packages wasm
  local major
  major=$(node --version | sed 's/^v\([0-9]*\).*/\1/')
  [ "$major" -ge 20 ] || fail "node $(node --version) is too old for the WebAssembly tests; 20 or newer is needed."
  [ -f web/package.json ] || return 0
  if ! command -v npm >/dev/null; then
    may_install "npm"
    local prefix
    prefix=$(root_prefix) || fail "npm is missing. Run: sudo apt-get install -y npm"
    step "wasm: installing npm"
    # shellcheck disable=SC2086
    when_unlocked $prefix env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends npm ||
      fail "Installing npm failed; see $(package_log)."
  fi
  npm_is_current && return
  may_install "the npm packages of web/package-lock.json"
  step "wasm: npm packages of web/package.json"
  # No package may run a script of its own.
  (cd web && npm ci --ignore-scripts --silent --no-audit --no-fund) || fail "npm ci failed in web/."
  cp web/package-lock.json web/node_modules/.doppler-lock.json
}

npm_is_current() { cmp -s web/package-lock.json web/node_modules/.doppler-lock.json; }
