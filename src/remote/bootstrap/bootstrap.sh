# What the login shell of a host is asked to run: finds the pinned ollie-remote or takes it in, and becomes it. src/remote/bootstrap/command.ts
# makes one line of it: between single quotes, every login shell passes that on as it is. Therefore: POSIX, and nowhere a single quote, a
# backslash, an exclamation mark or a command that goes on in the next line.
#
# $1: nonce. What is said on stdout has it, with an empty line before: whatever a login shell prints there cannot be mistaken for it.
# $2: programs, as words ARCH:SHA256:SIZE:LOADER:PACK:PACKSHA256:FILES. FILES of the C library, the loader first, in a folder libc-PACK; - without.
# $3: candidates for the folder that are not to be tried, and what else is to be minded: fresh (nothing that was sent before is used), pack
# (the C library is to be taken from the pack).
# The rest: options of serve.
nonce=$1
kinds=$2
mind=,$3,
shift 3
stamps=$HOME/.local/state/ollie/remote
uid=
tool=
why=

say() {
  echo
  echo "OLLIE1 $nonce $*"
}
fail() {
  say fail "$@"
  exit 1
}
minds() {
  case $mind in
    *,$1,*) return 0 ;;
  esac
  return 1
}
has() {
  command -v "$1" > /dev/null 2>&1
}
whoami() {
  uid=${uid:-$(id -u)}
}

# Candidates for the folder in their order, until the function succeeds with one.
each() {
  "$1" home "${HOME:+$HOME/.cache/ollie}" && return 0
  "$1" own "${OLLIE_DIR:-}" && return 0
  "$1" run "${XDG_RUNTIME_DIR:+$XDG_RUNTIME_DIR/ollie-remote}" && return 0
  whoami
  "$1" vartmp "/var/tmp/ollie-$uid" && return 0
  "$1" shm "/dev/shm/ollie-$uid"
}
kind() {
  IFS=:
  set -- $1
  unset IFS
  arch=$1 hash=$2 size=$3 loader=$4 pack=$5 packsum=$6 files=$7
}

# SHA-256 of stdin by whatever there is. cksum is no protection from anybody, only from damage: the client says so.
sum() {
  case $tool in
    shasum) set -- $(shasum -a 256) ;;
    openssl) set -- $(openssl dgst -sha256 -r) ;;
    busybox) set -- $(busybox sha256sum) ;;
    cksum) set -- $(cksum | { read -r crc bytes rest; echo "$crc-$bytes"; }) ;;
    *) set -- $(sha256sum) ;;
  esac
  echo "$1"
}
works() {
  has $1 || return 1
  case $(tool=$1; sum < /dev/null 2> /dev/null) in
    e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 | 4294967295-0) return 0 ;;
  esac
  return 1
}
# The same of much: openssl uses what the processor has for it, the sha256sum of most systems does not.
bulksum() {
  if [ "$tool" = sha256sum ] && works openssl; then tool=openssl; fi
  sum
}
tooled() {
  [ -n "$tool" ] && return 0
  for tool in sha256sum shasum openssl busybox cksum; do
    if works $tool; then return 0; fi
  done
  tool=
  return 1
}

# Of mine, and nobody else can write it.
private() {
  whoami
  set -- $(ls -ldn "$1" 2> /dev/null)
  [ "$3" = "$uid" ] || return 1
  case $1 in
    ?????-??-*) return 0 ;;
  esac
  return 1
}
sound() {
  [ -L "$1" ] && return 1
  [ -f "$1" ] && private "$1"
}
listed() {
  (
    cd "$lib" || exit 1
    IFS=,
    cat $files
  ) 2> /dev/null
}

# A file that was verified is known again by what no program can give back to it: inode, time of change. The boot: after a crash of the host a
# file can be empty in which all of that is right. A sandbox never gives the folder of the stamps.
state() {
  now=
  set -- $(stat -c %d:%i:%s:%u:%a:%z "$file" ${lib:+"$lib" "$lib"/*} 2> /dev/null)
  [ $# -gt 0 ] && now=$*
}
stamp() {
  state
  [ -n "$now" ] || return 0
  (umask 077 && mkdir -p "$stamps" && echo "$now" > "$stamps/stamp.$$" && mv -f "$stamps/stamp.$$" "$stamps/stamp-$hash.$boot") 2> /dev/null
}
runner() {
  lib=$1/libc-$pack
  if [ -d "$lib" ]; then return 0; fi
  lib=
  if minds pack; then return 1; fi
  [ -e "$loader" ]
}
fits() {
  [ "$pack" = - ] || return 0
  [ -e "$loader" ]
}
found() {
  [ -n "$2" ] || return 1
  file=$2/bin/ollie-remote-$hash
  [ -f "$file" ] || return 1
  runner "$2" || return 1
  state
  verified=
  { read -r verified < "$stamps/stamp-$hash.$boot"; } 2> /dev/null
  [ -n "$now" ] && [ "$now" = "$verified" ] && return 0
  if minds fresh; then return 1; fi
  sound "$file" && private "$2" && private "$2/bin" && [ "$(wc -c < "$file")" -eq "$size" ] || return 1
  tooled && [ "$(bulksum < "$file")" = "$hash" ] || return 1
  if [ -n "$lib" ]; then private "$lib" && [ "$(listed | sum)" = "$packsum" ] || return 1; fi
  stamp
  return 0
}
become() {
  ld=${files%%,*}
  [ -n "$lib" ] && exec "$lib/$ld" --library-path "$lib" "$file" serve "$@"
  exec "$file" serve "$@"
}


# A folder to install in: mine, writable, with room, and programs may run there. Why others are not is kept for the client.
usable() {
  [ -n "$2" ] || return 1
  if minds "$1"; then return 1; fi
  said=$(LC_ALL=C mkdir -p "$2/bin" 2>&1) || {
    refused "$1" nodir "$said"
    return 1
  }
  chmod 700 "$2" "$2/bin" 2> /dev/null
  private "$2" && private "$2/." && private "$2/bin" || {
    refused "$1" foreign
    return 1
  }
  probe=$2/bin/.probe.$$
  said=$(LC_ALL=C; export LC_ALL; { : > "$probe"; } 2>&1) || {
    refused "$1" nodir "$said"
    return 1
  }
  chmod 700 "$probe"
  "$probe" > /dev/null 2>&1 < /dev/null
  ran=$?
  rm -f "$probe"
  if [ $ran -ne 0 ]; then
    refused "$1" noexec
    return 1
  fi
  free=$(df -Pk "$2" 2> /dev/null | { read -r head; read -r device blocks used available rest; echo "$available"; })
  if [ "$free" -lt $((size / 1024 * 3 / 2)) ] 2> /dev/null; then
    refused "$1" no_space
    return 1
  fi
  place=$1 base=$2
}
refused() {
  case $3 in
    *ead-only*) why="$why $1=read_only" ;;
    *"o space"* | *uota*) why="$why $1=no_space" ;;
    *) why="$why $1=$2" ;;
  esac
}

# What an upload that broke off has left, if its shell is gone. The name is changed first, so that of two clients only one goes on with it.
resumed() {
  part=
  codec=none
  kept=0
  for left in "$bin/.part-$hash-"*; do
    kill -0 "${left##*.}" 2> /dev/null && continue
    if minds fresh; then
      rm -f "$left"
    elif [ -z "$part" ] && [ -f "$left" ]; then
      codec=${left##*-}
      codec=${codec%.*}
      part=$bin/.part-$hash-$codec.$$
      mv "$left" "$part" 2> /dev/null && kept=$(wc -c < "$part") || part=
    fi
  done
  [ -n "$part" ] || codec=none
}
# Of an older program, the hashes of its chunks of a MiB.
chunked() {
  old=
  chunks=
  if minds fresh || [ "$kept" -gt 0 ] || [ "$tool" = cksum ]; then return 0; fi
  has dd || return 0
  for name in $(ls -t "$bin"); do
    case $name in
      "ollie-remote-$hash") ;;
      ollie-remote-*)
        if sound "$bin/$name"; then
          old=${name#ollie-remote-}
          break
        fi
        ;;
    esac
  done
  [ -n "$old" ] || return 0
  say wait
  at=0
  count=$((($(wc -c < "$bin/ollie-remote-$old") + 1048575) / 1048576))
  while [ $at -lt $count ]; do
    chunks=$chunks,$(dd if="$bin/ollie-remote-$old" bs=1048576 skip=$at count=1 2> /dev/null | sum)
    at=$((at + 1))
  done
}
unpack() {
  case $1 in
    zstd) zstd -dcq ;;
    gzip) gzip -dc ;;
    *) cat ;;
  esac
}
assemble() {
  IFS=,
  for op in $recipe; do
    from=${op%%:*}
    op=${op#*:}
    case $from in
      o) from=$bin/ollie-remote-$old ;;
      *) from=$new ;;
    esac
    dd if="$from" bs=1048576 skip="${op%:*}" count="${op#*:}" 2> /dev/null
  done
  unset IFS
}
# Something of it is missing: the disk is full, or else the client has gone and will go on from here.
broken() {
  if head -c 1048576 /dev/zero > "$bin/.probe.$$" 2> /dev/null; then
    rm -f "$bin/.probe.$$"
    [ "$(wc -c < "$part")" -eq $((keep + length)) ] && damaged
    fail short "$(wc -c < "$part") of $((keep + length))"
  fi
  rm -f "$bin/.probe.$$" "$part"
  fail place "$place" no_space
}
damaged() {
  rm -f "$part"
  fail hash program
}
cleaned() {
  rm -rf "$up" "$new" "$libs"
}
# Nobody may see a half of it: the folder is made beside and renamed.
library() {
  mkdir "$libs" && head -c "$1" | unpack "$2" > "$libs/pack" || fail short pack
  lib=$libs
  at=1
  IFS=,
  for entry in $files; do
    unset IFS
    bytes=${3%%,*}
    set -- "$1" "$2" "${3#*,}" "$4"
    tail -c +$at "$libs/pack" | head -c "$bytes" > "$libs/$entry"
    at=$((at + bytes))
  done
  unset IFS
  rm -f "$libs/pack"
  chmod 700 "$libs"/*
  want=$packsum
  [ "$tool" = cksum ] && want=$4
  [ "$(listed | sum)" = "$want" ] || fail hash pack
  lib=$base/libc-$pack
  if [ -d "$lib" ] && private "$lib" && [ "$(listed | sum)" = "$want" ]; then return 0; fi
  rm -rf "$lib"
  mv "$libs" "$lib" || fail short pack
}
# The current one stays, the one before it, and those that run.
swept() {
  before=
  for name in $(ls -t "$1"); do
    case $name in
      "$2-$3") ;;
      "$2-"*)
        if [ -z "$before" ]; then
          before=$name
        elif grep -qs "[${2%"${2#?}"}]${name#?}" /proc/[0-9]*/cmdline; then
          continue
        else
          rm -rf "${1:?}/$name" "$stamps/stamp-${name#"$2-"}".*
        fi
        ;;
    esac
  done
}

boot=
{ read -r boot < /proc/sys/kernel/random/boot_id; } 2> /dev/null
machine=$(uname -sm) || fail tools_missing uname
known=
chosen=
for word in $kinds; do
  kind "$word"
  if [ "Linux $arch" = "$machine" ]; then
    known=1
    if fits; then
      chosen=${chosen:-$word}
      if each found; then
        say hit "$hash"
        become "$@"
      fi
    fi
  fi
done
[ -n "$known" ] || fail arch "$machine"
[ -n "$chosen" ] || fail no_loader "$loader"
kind "$chosen"

missing=
for name in head tee tail cat mv rm mkdir chmod wc ls id df; do
  has $name || missing="$missing $name"
done
tooled || missing="$missing sha256sum"
[ -z "$missing" ] || fail tools_missing "$missing"
# What runs here later has the mask of its user, as after any login.
mask=$(umask)
umask 077
each usable || fail nowhere "$why"
bin=$base/bin
up=$bin/.up-$hash.$$
new=$bin/.new-$hash.$$
libs=$base/.libc-$pack.$$
trap cleaned 0
trap "exit 1" HUP INT TERM PIPE
need=no
runner "$base" || need=yes
if [ -n "$lib" ]; then private "$lib" && [ "$(listed | sum)" = "$packsum" ] || need=yes; fi
resumed
chunked
codecs=none
for name in gzip zstd; do
  has $name && codecs=$name,$codecs
done
file=$bin/ollie-remote-$hash
here=no
if [ $need = yes ] && sound "$file" && [ "$(sum < "$file")" = "$hash" ]; then here=yes; fi
say miss "hash=$hash codecs=$codecs tool=$tool place=$place free=$free here=$here pack=$need part=$codec:$kept old=$old chunks=${chunks#,}$why"

# What the client has decided: three lines, the pack if it sends one, then the program. head may take more than it gives, so behind the pack
# and behind the program the client waits for an answer.
read -r mode codec keep length recipe || exit 1
read -r packlength packcodec packsizes weak packweak || exit 1
read -r expected || exit 1
if [ "$packlength" -gt 0 ]; then
  library "$packlength" "$packcodec" "$packsizes" "$packweak"
  say next
fi
want=$hash
[ $tool = cksum ] && want=$weak
case $mode in
  keep) mv "$file" "$up" ;;
  full)
    if [ "$keep" -eq 0 ]; then
      [ -z "$part" ] || rm -f "$part"
      part=$bin/.part-$hash-$codec.$$
      : > "$part"
    elif [ "$keep" -lt "$kept" ]; then
      head -c "$keep" "$part" > "$new" && mv -f "$new" "$part"
    fi
    digest=$({ cat "$part"; head -c "$length" | tee -a "$part"; } | unpack "$codec" | tee "$up" | bulksum)
    [ "$(wc -c < "$part")" -eq $((keep + length)) ] || broken
    ;;
  delta)
    head -c "$length" | unpack "$codec" > "$new"
    digest=$(assemble | tee "$up" | bulksum)
    ;;
esac
if [ $mode = keep ]; then :; else
  [ "$(wc -c < "$up")" -eq "$size" ] || broken
  [ "$digest" = "$want" ] || damaged
fi
say wait
chmod 700 "$up"
if [ -n "$lib" ]; then said=$("$lib/${files%%,*}" --library-path "$lib" "$up" --ok 2>&1 < /dev/null); else said=$("$up" --ok 2>&1 < /dev/null); fi
ran=$?
case $ran:$said in
  "0:$expected"*) ;;
  *)
    set -f
    fail selftest $ran $said
    ;;
esac
mv -f "$up" "$file" || fail short rename
[ -z "$part" ] || rm -f "$part"
stamp
find "$bin" -name ".*-*.*" -mmin +60 -exec rm -f {} + 2> /dev/null
swept "$bin" ollie-remote "$hash"
swept "$base" libc "$pack"
say installed "$hash" "$place" "$tool$why"
trap - 0 HUP INT TERM PIPE
rm -rf "$new" "$libs"
umask "$mask"
become "$@"
