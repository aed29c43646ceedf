#!/usr/bin/env bash
# `make` for each of the parts (goals, with options) in turn, up to the first that fails; at the end, how long each took.
table=""
for part in "$@"; do
  start=$SECONDS
  make $part
  status=$?
  table+=$(printf '%6d s  %s' $((SECONDS - start)) "$part")$'\n'
  [ $status = 0 ] || break
done
printf '\n%s%6d s  in all\n' "$table" "$SECONDS"
exit $status
