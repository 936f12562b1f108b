#!/usr/bin/env bash
# Fails when src/gen is not what buf makes of proto/ today: generated code is
# committed so that a clone builds without buf, and must never drift from it.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/node_modules/.bin:$PATH"

fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT

buf generate --output "$fresh"
if ! diff -r -u "$fresh/src/gen" src/gen; then
  echo >&2
  echo "src/gen is not current (- is what proto/ generates, + is what the tree has)." >&2
  echo "Run \`npm run generate\` and commit the result; never edit src/gen by hand." >&2
  exit 1
fi
