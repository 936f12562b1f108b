#!/usr/bin/env bash
# Every check that a change must pass, cheapest first, stopping at the first that
# fails. A passing check prints one line; a failing one prints all it had to say.
#   verify.sh static   all checks but the tests
#   verify.sh all      the tests too
set -euo pipefail
cd "$(dirname "$0")/.."

output=$(mktemp)
trap 'rm -f "$output"' EXIT

check() {
  local script=$1 started=$SECONDS
  if npm run --silent "$script" >"$output" 2>&1; then
    printf 'ok    %-16s %3d s\n' "$script" $((SECONDS - started))
  else
    cat "$output"
    printf 'FAIL  %-16s  (npm run %s)\n' "$script" "$script"
    exit 1
  fi
}

case "${1:-all}" in
  static | all) ;;
  *)
    echo "usage: verify.sh [static|all]" >&2
    exit 2
    ;;
esac

check format:check
# Before lint and typecheck: examples import reeve/client as a user does, from dist.
check build
check typecheck
check lint
check lint:proto
check check:generated
if [[ ${1:-all} == all ]]; then
  # Not through check: a long run should show its progress. The build is fresh.
  npx --no-install vitest run
fi
