#!/bin/sh
# Makes .venv and the tools that fill it, from nothing but a Python. Called by the Makefile.
set -eu
cd "$(dirname "$0")/.."

fail() { echo "error: $*" >&2; exit 1; }

makes_environments() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Debian and Ubuntu keep what makes environments in a package of its own.
venv_package() { "$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'; }

install_venv() {
    command -v apt-get >/dev/null && as_root true 2>/dev/null || return 1
    package=$(venv_package "$1")
    echo "installing the system package $package ($1 needs it to make environments)" >&2
    # A fresh machine has no lists of packages yet.
    install_package "$package" 2>/dev/null || { as_root apt-get update >/dev/null && install_package "$package"; }
}

install_package() { as_root apt-get install -y --no-install-recommends "$1" >/dev/null; }

# The distribution's own comes first: it is complete and built to be fast, which one that somebody
# compiled need not be (seen: 1.4 times as long for plain loops).
find_python() {
    for name in /usr/bin/python3 python3 python3.14 python3.13 python3.12 python3.11; do
        "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
        if makes_environments "$name" || install_venv "$name"; then
            echo "$name"
            return
        fi
        unable=${unable:-$name}
    done
    [ -n "${unable:-}" ] ||
        fail "no Python 3.11 or later; install one, for example with: sudo apt-get install python3"
    fail "$unable lacks ensurepip and venv; on Debian, run: sudo apt-get install $(venv_package "$unable")"
}

if [ ! -x .venv/bin/python ]; then
    python=$(find_python)
    "$python" -m venv .venv || fail "$python could not make .venv"
fi
.venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
# In a place of their own: filling .venv must not remove what fills it.
rm -rf .venv/tools
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-input \
    --require-hashes --target .venv/tools -r requirements-bootstrap.lock ||
    fail "could not install uv; is the package index reachable?"
