#!/usr/bin/env bash
# test_completion.sh - what the shells offer when somebody presses the tab key.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

for shell in bash zsh fish; do
  "$seen" help --completions "$shell" >"seen.$shell"
done
mkdir here
cd here || exit 2
mkdir store
touch urls.seen banned.seen keys.txt

# offered LINE: what fits at its end, one a line, sorted.
bash_offers() {
  bash -c '
    source ../seen.bash
    read -ra COMP_WORDS <<<"$1"
    [[ $1 == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _seen
    printf "%s\n" "${COMPREPLY[@]}"' - "$1"
}
fish_offers() { # without descriptions
  HOME=$work fish --no-config -c 'source ../seen.fish; complete -C "$argv[1]"' "$1" | cut -f1 | sed 's,/$,,'
}
# A shell behind a terminal, whose matches are printed as they are added.
zsh_offers() {
  HOME=$work ZDOTDIR=$work/zsh zsh -f ../zsh/driver "$1" | tr -d '\r' | sed -n 's/.*OFFER //p' | sed 's,/$,,'
}
mkdir ../zsh
cp ../seen.zsh ../zsh/_seen
cat >../zsh/.zshrc <<'EOT'
PROMPT= RPROMPT=
fpath=($ZDOTDIR $fpath)
autoload -U compinit
compinit -u -d $ZDOTDIR/dump
compadd() {
  if [[ ${(j: :)${@[1,(i)(-|--)]}} != *-[OAD]* ]]; then
    local -a offered
    builtin compadd -O offered "$@"
    print -rl -- "OFFER "$^offered
  fi
  builtin compadd "$@"
}
comppostfuncs=(end-of-offers)
end-of-offers() { print END-OF-OFFERS }
EOT
cat >../zsh/driver <<'EOT'
zmodload zsh/zpty
zpty shell zsh -i
zpty -w -n shell "$1"$'\t'
while zpty -r shell part; do
  print -rn -- "$part"
  [[ $part == *END-OF-OFFERS* ]] && break
done
zpty -d shell
EOT

offers() { # LINE, then all that shall be offered (in every shell that is here)
  local line=$1 shell want
  shift
  want=$(printf '%s\n' "$@" | sort)
  for shell in "${shells[@]}"; do
    last="$shell: $line<TAB>"
    out=$("${shell}_offers" "$line" 2>"$work/.err" | sort -u)
    err=$(cat "$work/.err")
    expect_out "$want"
  done
}
begins() { # LINE: at least these are offered
  local line=$1 shell word
  shift
  for shell in "${shells[@]}"; do
    last="$shell: $line<TAB>"
    out=$("${shell}_offers" "$line" 2>"$work/.err")
    err=$(cat "$work/.err")
    for word; do
      expect; grep -qFx -- "$word" <<<"$out" || wrong "expected $word among them"
    done
  done
}

shells=(bash)
for shell in zsh fish; do
  if command -v "$shell" >/dev/null; then
    shells+=("$shell")
  else
    echo "skipped, because there is no $shell: its completions"
  fi
done

offers 'seen ver' verify
offers 'seen f' forget fresh
begins 'seen ' uniq build check mark plan help
offers 'seen build --kind bl' blocked bloom
offers 'seen build --bits-p' --bits-per-key
offers 'seen plan --dialect gu' guava guava-mitz32
offers 'seen convert urls.seen --to nat' native
offers 'seen help pl' plan
offers 'seen help --completions z' zsh
offers 'seen check --key-type i' i32 i64
offers 'seen build -o out keys' keys.txt
begins 'seen check ' urls.seen banned.seen store
begins 'seen mark ' store
begins 'seen check urls.seen k' keys.txt
begins 'seen uniq --' --state --hex --json --u64
offers 'seen uniq --u64 k' keys.txt
offers 'seen uniq --u64=binary k' keys.txt
begins 'seen plan -' -n -p -M --bits

# What bash alone is asked: how it counts operands, and that = is a word to it.
shells=(bash)
offers 'seen uniq --u64 = ' binary
offers 'seen uniq --u64 = b' binary
offers 'seen build --kind = bl' blocked bloom
offers 'seen check --u64 = binary urls.seen k' keys.txt
offers 'seen --v' --version
offers 'seen check ' urls.seen banned.seen store
offers 'seen check urls' urls.seen
offers 'seen check -n 5 ' urls.seen banned.seen store
offers 'seen check urls.seen ' urls.seen banned.seen store keys.txt
offers 'seen check key' keys.txt
offers 'seen mark ' store
offers 'seen mark store ' ''
offers 'seen plan -n ' ''
offers 'seen build --kind = bl' blocked bloom
offers 'seen info a b ' urls.seen banned.seen store
offers 'seen nonsense ' ''
finish
