#!/bin/sh
# Scores answers to "Which number is larger, A or B?" as reward.py does, in plain shell.
#
# Fields come in a fixed order, and a quotation mark inside a text is written \", so that `","completion":"` can only be
# what separates the two texts.

numbers() { printf '%s' "$1" | sed 's/\\u....//g' | tr -cs 0-9 '\n' | grep . ; }

while IFS= read -r line; do
  case $line in
    '{"protocol":'* | '{"_retrograd_batch_end":'*)
      printf '%s\n' "$line" # echoed as it is
      continue
      ;;
  esac
  prompt=${line%%'","completion":"'*}
  rest=${line#*'","completion":"'}
  completion=${rest%'","_retrograd_batch":'*}
  echoed=${rest##*'","_retrograd_batch":'} # B,"_retrograd_index":I}
  larger=$(numbers "$prompt" | sort -n | tail -n 1)
  last=$(numbers "$completion" | tail -n 1)
  reward=0
  [ -n "$last" ] && [ "$(printf '%s\n' "$last" | sed 's/^0*\(.\)/\1/')" = "$larger" ] && reward=1
  printf '{"reward":%s,"_retrograd_batch":%s\n' "$reward" "$echoed"
done
