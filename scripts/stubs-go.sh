#!/usr/bin/env bash
# Go stubs from proto/, for the examples or into a folder of your own module:
#   npm run stubs:go [-- FOLDER IMPORT_PATH]      IMPORT_PATH: what FOLDER is called in imports
# Needs Go. The plugins are built once, in the versions below.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-examples/go/gen}
import_path=${2:-reeve.example/gen}

go_version=$(go env GOVERSION)
if printf 'go1.26\n%s\n' "$go_version" | sort -VC; then
  protoc_gen_go=v1.36.12 protoc_gen_go_grpc=v1.6.2
else
  # The newest that Go 1.19, the one in Debian 12, still compiles.
  protoc_gen_go=v1.34.2 protoc_gen_go_grpc=v1.4.0
fi

plugins=$PWD/node_modules/.cache/reeve-stubs/$go_version-$protoc_gen_go-$protoc_gen_go_grpc
export GOBIN=$plugins PATH="$plugins:$PWD/node_modules/.bin:$PATH"
[[ -x $plugins/protoc-gen-go ]] || go install "google.golang.org/protobuf/cmd/protoc-gen-go@$protoc_gen_go"
[[ -x $plugins/protoc-gen-go-grpc ]] ||
  go install "google.golang.org/grpc/cmd/protoc-gen-go-grpc@$protoc_gen_go_grpc"

template=$(sed '/^#/d' buf.gen.go.yaml)
managed="managed:
  enabled: true
  override:
    - file_option: go_package_prefix
      value: $import_path"
mkdir -p "$folder"
buf generate --template "$template
$managed" --output "$folder"
