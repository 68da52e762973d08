#!/usr/bin/env bash
# test_manual.sh - help, manual pages and completions say the same, and two
# formatters have nothing to say about the pages.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
source_dir=$OLDPWD/$(dirname "$0")/../..
case $0 in /*) source_dir=$(dirname "$0")/../.. ;; esac
built=$(dirname "$seen")/..
shells=(bash zsh fish)

mapfile -t verbs < <("$seen" --help | sed -n 's/^\([a-z]*  *\| \{10\}\)\([a-z]\{3,8\}\)  .*/\2/p')
expect; [ "${#verbs[@]}" -eq "$(grep -c '^VERB' "$source_dir/cli/verbs.def")" ] || wrong "verbs of verbs.def"

# ---- Pages -----------------------------------------------------------------

expect; [ -e "$built/man/seen.1" ] || wrong "expected the pages in $built/man"
pages=("$built"/man/*.[1-9])
expect; [ "${#pages[@]}" -eq $((${#verbs[@]} + 3)) ] || wrong "expected a page for each verb and three more"
for page in "${pages[@]}"; do
  if command -v man groff >/dev/null; then
    run env MANROFFSEQ='' LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page"; expect_code 0; expect_silent
  else
    echo "skipped, because there is no man: $(basename "$page") under groff"
  fi
  if command -v mandoc >/dev/null; then
    # A page without a date cannot have a wrong one.
    run bash -c "mandoc -T lint -W warning '$page' | grep -v 'missing date'"; expect_out ''
  else
    echo "skipped, because there is no mandoc: $(basename "$page")"
  fi
done
# No markdown is left over, and what is a list in the headers is one here.
for page in seen.1 seen-redis.7; do
  expect; grep -n '\*\*\|](\|^|\|`' "$built/man/$page" && wrong "markdown in $page"
done
for word in Names Errors Ownership Threads ABI; do
  expect; grep -A1 '^\.TP' "$built/man/seen.3" | grep -qx "$word" || wrong "seen.3: no item $word"
done
# What stands behind an #if of the machine is inside of an inline call.
for symbol in $(sed '/^#if defined(__AVX2__)/,/^#e/d' "$source_dir"/include/*.h |
  grep -ho '\bseen_[a-z0-9_]*(' | sort -u); do
  expect; grep -qF "$symbol" "$built/man/seen.3" || wrong "seen.3 does not know $symbol"
done
for name in $(sed -n 's/^COMMAND("\([^"]*\)".*/\1/p' "$source_dir/module/commands.def"); do
  expect; grep -qiF "$name" "$built/man/seen-redis.7" || wrong "seen-redis.7 does not know $name"
done

# ---- The same options everywhere -------------------------------------------

options_of() { # VERB: those of its help
  "$seen" "$1" --help | sed -nE '/^options:/,/^examples:/ {
    s/^  (-.)(, (--[a-z0-9-]+))?( .*|$)/\1 \3/p
    s/^      (--[a-z0-9-]+)(\[=[a-z]+\])?( .*|$)/\1/p
  }' | tr ' ' '\n' | grep . | sort -u
}
for shell in "${shells[@]}"; do
  "$seen" help --completions "$shell" >"script.$shell"
  expect; cmp -s "script.$shell" "$built/cli/seen.$shell" || wrong "the $shell completions that were built"
done
for verb in "${verbs[@]}"; do
  "$seen" help --man "$verb" >page
  expect; cmp -s page "$built/man/seen-$verb.1" || wrong "the page that was built"
  sed -n "/^    $verb)/,/;;/p" script.bash >verb.bash
  sed -n "/^  $verb)/,/;;/p" script.zsh >verb.zsh
  grep "subcommand_from $verb'" script.fish >verb.fish
  for option in $(options_of "$verb"); do
    last="$verb $option"
    expect; grep -qF -- "\\fB${option//-/\\-}\\fR" page || wrong "not in the manual page"
    expect; grep -q -- "options='.* ${option}[ ']" verb.bash || wrong "not in the completions of bash"
    expect; grep -q -- "['})]${option}[+=]\?-\?\[" verb.zsh || wrong "not in the completions of zsh"
    case $option in
    --*) pattern="-l ${option#--}" ;;
    *) pattern="-s ${option#-}" ;;
    esac
    expect; grep -q -- "$pattern " verb.fish || wrong "not in the completions of fish"
    printf "%s\n" "$option" >>all
  done
  # The same sentence in the overview and in the table of the documents.
  summary=$("$seen" help "$verb" | sed -n "1s/^seen $verb - //p")
  expect; grep -qF "| $summary |" "$source_dir/docs/COMMANDS.md" || wrong "COMMANDS.md: | $summary |"
done
# Every row of the tables in the source is shown by some verb.
for option in $(sed -n "s/^ *{\?'\(.\)', .*OPTION_.*/-\1/p; s/^ *{\?\(0\|'.'\), \"\([a-z0-9-]*\)\",.*/--\2/p" "$source_dir"/cli/*.c | sort -u); do
  last=$option
  expect; grep -qFx -- "$option" all || wrong "in a table, but in no help"
done

finish
