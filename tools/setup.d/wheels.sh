# The WebGPU providers and llguidance: Python wheels used as archives. pip fetches them, so that the index, mirror or
# proxy this machine is configured for is used; their SHA-256 decides whether they are the right ones.

wheel_machine() {
  case "$(uname -m)" in
    x86_64 | amd64) echo x86_64 ;;
    aarch64 | arm64) echo aarch64 ;;
    *) fail "No WebGPU provider is packaged for $(uname -m); x86_64 and aarch64 are. Put webgpu.h under .deps/include/webgpu and give --webgpu the path of a Dawn or wgpu-native library." ;;
  esac
}

# The content of .deps/wheels.stamp once the wheels are unpacked: the rows themselves.
wheel_stamp() { { rows wheel | grep "|$(wheel_machine)|"; rows file; } | cut -d'|' -f1-4; }

wheels_are_current() {
  local _ target
  [ "$(cat "$DEPS_DIR/wheels.stamp" 2>/dev/null)" = "$(wheel_stamp)" ] || return 1
  while IFS='|' read -r _ _ target; do [ -f "$DEPS_DIR/$target" ] || return 1; done < <(rows file)
}

install_wheels() {
  local name version machine sha256 _ python
  if wheels_are_current; then
    step "libraries: in place"
    return
  fi
  may_install "the WebGPU providers under $DEPS_DIR/lib"
  python=$(python_with_pip)
  mkdir -p "$DEPS_DIR/wheels"
  while IFS='|' read -r name version machine sha256 _; do
    [ "$machine" = "$(wheel_machine)" ] || continue
    fetch_wheel "$python" "$name" "$version" "$sha256" file "$DEPS_DIR"
  done < <(rows wheel)
  wheel_stamp >"$DEPS_DIR/wheels.stamp"
  rm -rf "$DEPS_DIR/wheels"
  step "libraries: Dawn, wgpu-native and llguidance are in $DEPS_DIR/lib"
}

# install_cross_wheels SYSTEM MACHINE KIND FOLDER "PLATFORM...": unpacks the files of the rows of this kind from another
# machine's wheels. The platforms are those of pip.
install_cross_wheels() {
  local system=$1 machine=$2 kind=$3 folder=$4 stamp name version row_machine sha256 _ python flags=()
  stamp=$({ rows wheel | grep "|$machine|"; rows "$kind"; } | cut -d'|' -f1-4)
  if [ "$(cat "$folder/wheels.stamp" 2>/dev/null)" = "$stamp" ]; then
    step "$system: providers in place"
    return
  fi
  may_install "the WebGPU providers for $system under $folder/lib"
  for name in $5; do flags+=(--platform "$name"); done
  python=$(python_with_pip)
  while IFS='|' read -r name version row_machine sha256 _; do
    [ "$row_machine" = "$machine" ] || continue
    fetch_wheel "$python" "$name" "$version" "$sha256" "$kind" "$folder" "${flags[@]}"
  done < <(rows wheel)
  echo "$stamp" >"$folder/wheels.stamp"
  rm -rf "$DEPS_DIR/wheels"
}

# An activated environment may hide the distribution's pip, or have one where the distribution has none.
python_with_pip() {
  local candidate
  for candidate in python3 /usr/bin/python3; do
    if "$candidate" -m pip --version >/dev/null 2>&1; then
      echo "$candidate"
      return
    fi
  done
  fail "python3 has no pip. Run: sudo apt-get install -y python3-pip"
}

# fetch_wheel PYTHON NAME VERSION SHA256 KIND TARGET [PIP_FLAG...]: unpacks the files of the rows of this kind.
fetch_wheel() {
  local python=$1 name=$2 version=$3 sha256=$4 kind=$5 target=$6 folder="$DEPS_DIR/wheels/$2" wheel
  shift 6
  rm -rf "$folder"
  step "libraries: fetching $name $version"
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --retries 5 \
    "$@" --dest "$folder" "$name==$version" ||
    fail "pip could not fetch $name $version. Fetch it by hand with this command, then start again:
  $python -m pip download --no-deps --only-binary=:all: $* $name==$version"
  wheel=$(ls "$folder"/*.whl)
  [ "$(sha256sum "$wheel" | cut -d' ' -f1)" = "$sha256" ] ||
    fail "$(basename "$wheel") has SHA-256 $(sha256sum "$wheel" | cut -d' ' -f1), but tools/dependencies says $sha256. Nothing of it was used."
  rows "$kind" | grep "^$name|" | "$python" tools/setup.d/unpack_wheel.py "$wheel" "$target"
}
