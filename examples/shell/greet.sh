#!/bin/sh
# A worker in ten lines: the claim comes on stdin, AEP events go to stdout, diagnostics to stderr.
#   reeve work --kind agent --exec examples/shell/greet.sh
#   reeve submit agent --args '{"name":"Ada"}' --wait
read -r claim
name=$(printf '%s' "$claim" | sed -n 's/.*"name":"\([^"]*\)".*/\1/p')
[ -n "$name" ] || { echo "args.name is missing" >&2; exit 64; }
echo '{"type":"task.progress","payload":{"progress":0.5,"message":"thinking of something nice"}}'
echo "{\"type\":\"task.output\",\"payload\":{\"output\":{\"attempt\":$REEVE_ATTEMPT}}}"
echo "{\"type\":\"task.completed\",\"payload\":{\"result\":{\"greeting\":\"Hello, $name!\"}}}"
