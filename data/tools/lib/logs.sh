# For the programs of system_logs.

# Ends the tool if OLLIE_ARG_GREP is no regular expression: at the end of a pipe nobody would notice.
check_grep() {
  [ -n "${OLLIE_ARG_GREP-}" ] || return 0
  grep -E -e "$OLLIE_ARG_GREP" </dev/null
  [ $? -le 1 ] || exit 2
}

# The last lines of stdin that match OLLIE_ARG_GREP, or of all, as many as OLLIE_ARG_LINES says.
last_lines() {
  if [ -n "${OLLIE_ARG_GREP-}" ]; then
    grep -a -E -i -e "$OLLIE_ARG_GREP" | tail -n "${OLLIE_ARG_LINES:-100}"
  else
    tail -n "${OLLIE_ARG_LINES:-100}"
  fi
}
