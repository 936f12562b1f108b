#!/bin/sh
# A slow worker that can be stopped and goes on where it was: SIGTERM ends it, a checkpoint tells the next attempt
# where to begin, exit code 75 asks for another attempt, any other code but 0 fails the task.
#   reeve work --kind agent --exec examples/shell/count.sh
#   reeve submit agent --args '{"to":20}' --wait
read -r claim
number() { printf '%s' "$claim" | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"; }
to=$(number to)
to=${to:-10}
i=$(number done)
i=${i:-0}
trap 'echo "stopped at $i" >&2; exit 143' TERM
while [ "$i" -lt "$to" ]; do
  i=$((i + 1))
  echo "{\"type\":\"reeve.task.checkpoint\",\"payload\":{\"checkpoint\":{\"done\":$i}}}"
  printf '{"type":"task.progress","payload":{"progress":%s,"message":"%d of %d"}}\n' "$(awk "BEGIN{print $i/$to}")" "$i" "$to"
  sleep 0.2 &
  wait $!
done
echo "{\"type\":\"task.completed\",\"payload\":{\"result\":{\"counted\":$i}}}"
