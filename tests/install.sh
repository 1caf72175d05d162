#!/usr/bin/env bash
# The install target: a program that knows only pkg-config and the installed header builds, runs, and sees nothing of
# ours but TOILE_API symbols.
set -euo pipefail
cd "$(dirname "$0")/.."
prefix=$PWD/build/tests/prefix
rm -rf "$prefix"
cmake --install build --prefix "$prefix" >/dev/null
pc=$(dirname "$(find "$prefix" -name toile.pc)")
sed -i "s|^prefix=.*|prefix=$prefix|" "$pc/toile.pc"
export PKG_CONFIG_PATH=$pc
gcc -std=c11 -Wall -Wextra -Werror samples/hello_drape.c $(pkg-config --cflags --libs toile) -lm -o build/tests/hello_installed
LD_LIBRARY_PATH=$(pkg-config --variable=libdir toile) build/tests/hello_installed
foreign=$(nm -D --defined-only "$(find "$prefix" -name 'libtoile.so' | head -1)" | awk '{print $3}' | grep -v '^toile_' || true)
[ -z "$foreign" ] || { echo "exported and not ours: $foreign"; exit 1; }
"$prefix/bin/toile" --version
