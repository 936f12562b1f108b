#!/usr/bin/env bash
# Python stubs from proto/, for the examples or into a folder of your own:
#   npm run stubs:python [-- FOLDER]
# Needs `pip install grpcio-tools`; REEVE_PYTHON names another interpreter than python3.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-examples/python}
mkdir -p "$folder"
"${REEVE_PYTHON:-python3}" -m grpc_tools.protoc -Iproto \
  --python_out="$folder" --pyi_out="$folder" --grpc_python_out="$folder" proto/reeve/v1/*.proto
