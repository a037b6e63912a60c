# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: Apache-2.0
#
# Sourced by the scripts: looks for what they need and installs what is missing and can be had as a Debian package.
# Never asks a question and reads no standard input. With --help a script says what stands at its beginning, and ends.

case ${1:-} in
    -h | --help)
        sed -n '/^#!/d; /^# SPDX/d; /^#/!q; s/^# \{0,1\}//p' "$(dirname "${BASH_SOURCE[0]}")/../${0##*/}"
        exit
        ;;
esac

# What a build needs beside Swift.
BUILD_PACKAGES=(librdkafka-dev libsqlite3-dev libpq-dev libzstd-dev pkg-config zlib1g-dev)
# What the tests need on top of it.
TEST_PACKAGES=(postgresql pgbouncer kcat openssl python3-venv python3-yaml docker-compose)
# What pages with the web SDK need (WEB_SDK).
PAGE_PACKAGES=(nodejs node-jsdom)
# What pages in a browser need (scripts/test --browser).
CONSOLE_PACKAGES=(chromium fonts-dejavu-core python3-venv)
# What measuring needs (scripts/bench).
BENCH_PACKAGES=(postgresql python3-venv gcc libc6-dev valgrind iproute2)
# What seeing alerts fire needs (scripts/test --long). It is run by the tests alone: stop the service that it brings.
ALERT_PACKAGES=(prometheus)
# What the model needs (scripts/test --model).
MODEL_PACKAGES=(spin gcc libc6-dev)

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# need_packages NAME...: installs those that are missing; does nothing, and needs no rights, when none is.
need_packages() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "${0##*/}: not a Debian system; if something is missing, install what these packages hold: $*" >&2
        return
    fi
    local package missing=()
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    if [[ ${#missing[@]} -eq 0 ]]; then return; fi
    choose_root_prefix || fail "these Debian packages are missing: ${missing[*]}; install them as root, with apt-get install ${missing[*]}"
    echo "installing ${missing[*]}"
    # A new machine has no package lists, an old one has outdated ones: then fetch them and try once more.
    if ! install_packages "${missing[@]}" >/dev/null 2>&1; then
        as_root apt-get update -qq </dev/null >/dev/null 2>&1 || true
        local log
        log=$(mktemp)
        if ! install_packages "${missing[@]}" >"$log" 2>&1; then
            tail -n 15 "$log" >&2
            rm -f "$log"
            fail "could not install ${missing[*]}"
        fi
        rm -f "$log"
    fi
}

# need_swift: a compiler that is new enough. It is not a Debian package, so it is only looked for.
need_swift() {
    local line version
    command -v swift >/dev/null || fail "Swift 6.2 or later is not installed (or not in PATH); see swift.org/install"
    line=$(swift --version 2>/dev/null </dev/null) || line=
    version=$(sed -nE 's/.*Swift version ([0-9]+\.[0-9]+).*/\1/p' <<<"$line" | head -n 1)
    if [[ ! $version =~ ^([0-9]+)\.([0-9]+)$ ]] ||
        ((BASH_REMATCH[1] < 6 || (BASH_REMATCH[1] == 6 && BASH_REMATCH[2] < 2))); then
        fail "Swift 6.2 or later is needed, but $(command -v swift) is ${version:-of an unknown version}"
    fi
}

is_installed() {
    local status
    status=$(dpkg-query -W -f '${db:Status-Status} ' "$1" 2>/dev/null) && [[ " $status" == *" installed "* ]]
}

install_packages() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null
}

ROOT_PREFIX=()

as_root() { "${ROOT_PREFIX[@]+"${ROOT_PREFIX[@]}"}" "$@"; }

# Root needs nothing; others need sudo, which may ask for a password only where somebody can type it.
choose_root_prefix() {
    if [[ $(id -u) -eq 0 ]]; then
        ROOT_PREFIX=()
    elif ! command -v sudo >/dev/null; then
        return 1
    elif sudo -n true 2>/dev/null; then
        ROOT_PREFIX=(sudo -n)
    elif [[ -t 0 && -t 2 ]]; then
        ROOT_PREFIX=(sudo)
    else
        return 1
    fi
}
