# For the programs of gui_screenshot.

# shoot PROGRAM [OPTION …]: has a program write a picture of the screen to the path that is put behind its options.
shoot() {
  if [ -z "${DISPLAY-}${WAYLAND_DISPLAY-}" ]; then
    echo 'there is no desktop here: neither DISPLAY nor WAYLAND_DISPLAY is set' >&2
    exit 1
  fi
  umask 077
  # Out of reach for tools in the sandbox: in $TMPDIR one of them could put a link in the picture's place.
  private=$(mktemp -d "${XDG_RUNTIME_DIR:-/tmp}/ollie-screenshot.XXXXXX") || exit 1
  trap 'rm -rf "$private"' EXIT
  trap 'exit 1' TERM
  sleep "${OLLIE_ARG_DELAY:-0}"
  "$@" "$private/screen.png" >&2 </dev/null || exit 1
  if ! [ -s "$private/screen.png" ]; then
    echo "$1 has written no picture" >&2
    exit 1
  fi
  file=$TMPDIR/screenshot-$(date +%Y%m%d-%H%M%S)-$$.png
  set -C # an existing file is not written to
  cat "$private/screen.png" >"$file" || exit 1
  # The header of a PNG has width and height, four bytes each, from byte 16 on.
  # shellcheck disable=SC2046
  set -- $(od -A n -t u1 -j 16 -N 8 "$file")
  width=$((($1 * 256 + $2) * 65536 + $3 * 256 + $4))
  height=$((($5 * 256 + $6) * 65536 + $7 * 256 + $8))
  echo "$file: $width x $height pixels, $(($(wc -c <"$file"))) bytes, PNG"
  echo '[pictures are not shown to you: say so rather than guess what is on it; a program such as tesseract can read its text]'
}
