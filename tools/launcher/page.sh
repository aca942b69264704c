# Makes the files that `./doppler web` serves: the core for browsers and the page around it, in web/dist. Expects what
# ./doppler sets. Read next: web/page/build.mjs, which gathers the files.

# shellcheck source=tools/launcher/build.sh
. "$ROOT/tools/launcher/build.sh"

page_is_current() {
  [ -f "$ROOT/web/dist/index.html" ] &&
    [ -z "$(cd "$ROOT" && find src include cmake web \( -path web/node_modules -o -path web/dist \) -prune \
      -o -type f -newer web/dist/index.html -print -quit)" ]
}

build_page() {
  "$ROOT/tools/setup" wasm
  [ -f "$ROOT/build/wasm/build.ninja" ] || (cd "$ROOT" && cmake --preset wasm -DDOPPLER_BATCHES=ON) >"$LOG" 2>&1 ||
    build_failed "configuring the core for browsers"
  BUILD=$ROOT/build/wasm compile doppler_core
  node "$ROOT/web/page/build.mjs" --wasm "$ROOT/build/wasm/src/web/doppler_core.wasm"
}
