/* completion.c - see completion.h. */
#include "completion.h"

#include "options.h"
#include "verbs.h"

#include <seen.h>
#include <stdio.h>
#include <string.h>

/* ---- What is to be offered ---------------------------------------------- */

enum offer {
    OFFER_NOTHING,
    OFFER_FILES,
    OFFER_FILTERS,
    OFFER_DIRECTORIES,
    OFFER_WORDS
};

static bool is(const char *name, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(name, word, len) == 0;
}

static bool is_any(const char *name, size_t len, const char *const *words)
{
    while (*words && !is(name, len, *words))
        words++;
    return *words;
}

static enum offer offer_for(const char *name, size_t len)
{
    static const char *const files[] = {"FILE", "INPUT", "OUT", NULL};
    static const char *const filters[] = {"TARGET", "IN", "A", "B", NULL};
    static const char *const directories[] = {"DIR", "STORE", NULL};
    static const char *const words[] = {"KIND", "DIALECT", "VERB", NULL};
    if (is_any(name, len, files)) return OFFER_FILES;
    if (is_any(name, len, filters)) return OFFER_FILTERS;
    if (is_any(name, len, directories)) return OFFER_DIRECTORIES;
    if (is_any(name, len, words) || memchr(name, '|', len)) return OFFER_WORDS;
    return OFFER_NOTHING;
}

/* The words that one name stands for, each with a space in front. */
static void print_word(const char *name, size_t len)
{
    seen_dialect_facts facts = {.size = sizeof facts};
    if (is(name, len, "KIND")) {
        for (size_t i = 0; seen_kind_at(i) != SEEN_ANY; i++)
            printf(" %s", seen_kind_name(seen_kind_at(i)));
    } else if (is(name, len, "DIALECT")) {
        for (size_t i = 0; seen_dialect_at(i, &facts); i++)
            printf(" %s", facts.name);
        printf(" dcso-gzip");
    } else if (is(name, len, "VERB")) {
        for (const struct verb_row *v = verbs; v->verb; v++)
            printf(" %s", v->verb->name);
    } else {
        printf(" %.*s", (int)len, name);
    }
}

static void print_words(const char *name, size_t len)
{
    for (const char *end = name + len; name < end;) {
        const char *bar = memchr(name, '|', (size_t)(end - name));
        size_t part = (size_t)((bar ? bar : end) - name);
        print_word(name, part);
        name += part + 1;
    }
}

/* ---- Operands ----------------------------------------------------------- */

struct operand {
    const char *name;
    size_t len;
    bool again; /* and more of them */
};

/* The next one of a synopsis such as "IN --to D -o FILE [INPUT...]". Options and
 * their values are none; what comes behind "|" is another way to call it. */
static bool next_operand(const char **synopsis, struct operand *o)
{
    const char *s = *synopsis;
    bool value = false;
    for (;;) {
        s += strspn(s, " []");
        if (!*s || *s == '|') return false;
        size_t len = strcspn(s, " ]");
        if (!value && *s != '-') {
            o->name = s;
            o->len = strcspn(s, ". ]");
            o->again = o->len < len;
            *synopsis = s + len;
            return true;
        }
        value = !value && *s == '-';
        s += len;
    }
}

/* ---- bash --------------------------------------------------------------- */

typedef void option_printer(const struct verb *verb, const struct option *o);

static void each_option(const struct verb *verb, option_printer *print)
{
    for (const struct option *const *group = verb->options; *group; group++)
        for (const struct option *o = *group; o->help; o++)
            if (!is_heading(o)) print(verb, o);
}

static void bash_what(const char *name, size_t len)
{
    static const char *const whats[] = {"", "FILE", "FILTER", "DIR"};
    enum offer offer = offer_for(name, len);
    printf("'");
    if (offer == OFFER_WORDS)
        print_words(name, len);
    else
        printf("%s", whats[offer]);
    printf("'");
}

static void bash_option(const struct verb *verb, const struct option *o)
{
    (void)verb;
    if (o->letter) printf(" -%c", o->letter);
    if (o->name) printf(" --%s", o->name);
    if (o->type == OPTION_FORM) printf(" --%s=%s", o->name, o->value);
}

static void bash_value(const struct verb *verb, const struct option *o)
{
    (void)verb;
    if (!o->value) return;
    if (o->type == OPTION_FORM) { /* only with = */
        printf(" [--%s=]='%s'", o->name, o->value);
        return;
    }
    if (o->letter) {
        printf(" [-%c]=", o->letter);
        bash_what(o->value, strlen(o->value));
    }
    if (o->name) {
        printf(" [--%s]=", o->name);
        bash_what(o->value, strlen(o->value));
    }
}

static void bash_verb(const struct verb *verb)
{
    struct operand o = {.again = false};
    const char *synopsis = verb->operands;
    printf("    %s)\n        options='", verb->name);
    each_option(verb, bash_option);
    printf(" --help'\n        takes=(");
    each_option(verb, bash_value);
    printf(")\n        operands=(");
    while (next_operand(&synopsis, &o)) {
        printf(" ");
        bash_what(o.name, o.len);
    }
    printf(")\n        again=%s\n        ;;\n", o.again ? "yes" : "");
}

static void print_bash(void)
{
    puts("# bash completion for seen; written by "
         "`seen help --completions bash`.\n"
         "\n"
         "# WHAT WORD: what may stand there and begins with the word.\n"
         "_seen_offer()\n"
         "{\n"
         "    local IFS=$'\\n'\n"
         "    case $1 in\n"
         "    FILE) COMPREPLY=($(compgen -f -- \"$2\")) ;;\n"
         "    DIR) COMPREPLY=($(compgen -d -- \"$2\")) ;;\n"
         "    FILTER)\n"
         "        COMPREPLY=($(compgen -f -X '!*.seen' -- \"$2\"; "
         "compgen -d -- \"$2\"))\n"
         "        ((${#COMPREPLY[@]})) || "
         "COMPREPLY=($(compgen -f -- \"$2\"))\n"
         "        ;;\n"
         "    *) IFS=$' \\n'; COMPREPLY=($(compgen -W \"$1\" -- \"$2\")); "
         "return "
         ";;\n"
         "    esac\n"
         "    compopt -o filenames 2>/dev/null\n"
         "}\n"
         "\n"
         "_seen()\n"
         "{\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} "
         "prev=${COMP_WORDS[COMP_CWORD-1]}\n"
         "    local options operands again equals i n=0\n"
         "    local -A takes\n"
         "    COMPREPLY=()\n"
         "    # --name=value comes as three words.\n"
         "    if [[ $cur == = ]]; then cur= equals==\n"
         "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]} "
         "equals==; fi\n"
         "    case ${COMP_WORDS[1]} in");
    for (const struct verb_row *v = verbs; v->verb; v++)
        bash_verb(v->verb);
    printf("    *) ((COMP_CWORD == 1)) || return ;;\n"
           "    esac\n"
           "    if ((COMP_CWORD == 1)); then\n"
           "        _seen_offer '");
    print_words("VERB", 4);
    puts(" --help --version' \"$cur\"\n"
         "        return\n"
         "    fi\n"
         "    [[ -z ${takes[$prev$equals]+yes} ]] || prev=$prev$equals\n"
         "    if [[ -n ${takes[$prev]+yes} ]]; then\n"
         "        _seen_offer \"${takes[$prev]}\" \"$cur\"\n"
         "        return\n"
         "    fi\n"
         "    if [[ $cur == -* ]]; then\n"
         "        _seen_offer \"$options\" \"$cur\"\n"
         "        return\n"
         "    fi\n"
         "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
         "        if [[ -n ${takes[${COMP_WORDS[i]:--}]+yes} ]]; then\n"
         "            [[ ${COMP_WORDS[i+1]} == = ]] && ((i++))\n"
         "            ((i++))\n"
         "        elif [[ ${COMP_WORDS[i]} == = ]]; then\n"
         "            ((i++))\n"
         "        elif [[ ${COMP_WORDS[i]} != -?* ]]; then\n"
         "            ((n++))\n"
         "        fi\n"
         "    done\n"
         "    if ((n >= ${#operands[@]})); then\n"
         "        [[ $again ]] || return\n"
         "        n=$((${#operands[@]} - 1))\n"
         "    fi\n"
         "    _seen_offer \"${operands[n]}\" \"$cur\"\n"
         "}\n"
         "complete -F _seen seen");
}

/* ---- zsh ---------------------------------------------------------------- */

/* Inside single quotes; what `special` names gets a backslash. */
static void quoted(const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            printf("'\\''");
        else if (*text == '\n')
            putchar(' ');
        else if (strchr(special, *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

/* ":what it is called:what fits" */
static void zsh_what(const char *name, size_t len)
{
    static const char *const actions[] = {
        " ", "_files", "_files -g \"*.seen(-.)\"", "_files -/"};
    enum offer offer = offer_for(name, len);
    printf(":%.*s:", (int)len, name);
    if (offer == OFFER_WORDS) {
        printf("(");
        print_words(name, len);
        printf(")");
    } else {
        printf("%s", actions[offer]);
    }
}

static void zsh_spelling(const struct option *o, bool letter)
{
    printf(" \\\n      '");
    if (o->letter && o->name) printf("(-%c --%s)", o->letter, o->name);
    if (letter)
        printf("-%c%s", o->letter, o->value ? "+" : "");
    else
        printf("--%s%s", o->name,
               !o->value                ? ""
               : o->type == OPTION_FORM ? "=-"
                                        : "=");
    printf("[");
    quoted(o->help, "[]:\\");
    printf("]");
    if (o->type == OPTION_FORM)
        printf("::form:(%s)", o->value);
    else if (o->value)
        zsh_what(o->value, strlen(o->value));
    printf("'");
}

static void zsh_option(const struct verb *verb, const struct option *o)
{
    (void)verb;
    if (o->letter) zsh_spelling(o, true);
    if (o->name) zsh_spelling(o, false);
}

static void zsh_verb(const struct verb *verb)
{
    struct operand o;
    const char *synopsis = verb->operands;
    printf("  %s)\n    _arguments -s -S", verb->name);
    each_option(verb, zsh_option);
    printf(" \\\n      '--help[explain the verb]'");
    for (int i = 1; next_operand(&synopsis, &o); i++) {
        printf(" \\\n      '");
        if (o.again)
            printf("*");
        else
            printf("%d", i);
        zsh_what(o.name, o.len);
        printf("'");
    }
    printf("\n    ;;\n");
}

static void print_zsh(void)
{
    puts("#compdef seen\n"
         "# zsh completion for seen; written by "
         "`seen help --completions zsh`.\n"
         "\n"
         "local -a verbs=(");
    for (const struct verb_row *v = verbs; v->verb; v++) {
        printf("  '%s:", v->verb->name);
        quoted(v->verb->summary, ":\\");
        puts("'");
    }
    puts(")\n"
         "if (( CURRENT == 2 )); then\n"
         "  if [[ $PREFIX == -* ]]; then\n"
         "    _arguments '--help[list the verbs]' "
         "'--version[print the version]'\n"
         "  else\n"
         "    _describe -t verbs verb verbs\n"
         "  fi\n"
         "  return\n"
         "fi\n"
         "local verb=$words[2]\n"
         "shift words\n"
         "(( CURRENT-- ))\n"
         "case $verb in");
    for (const struct verb_row *v = verbs; v->verb; v++)
        zsh_verb(v->verb);
    puts("esac");
}

/* ---- fish --------------------------------------------------------------- */

static void fish_what(const char *name, size_t len)
{
    switch (offer_for(name, len)) {
    case OFFER_NOTHING:
        printf(" -x");
        break;
    case OFFER_FILES:
        printf(" -r -F");
        break;
    case OFFER_FILTERS:
        printf(" -r -k -xa '(__fish_complete_suffix .seen)'");
        break;
    case OFFER_DIRECTORIES:
        printf(" -xa '(__fish_complete_directories)'");
        break;
    case OFFER_WORDS:
        printf(" -xa '");
        print_words(name, len);
        printf("'");
        break;
    }
}

static void fish_start(const struct verb *verb)
{
    printf("complete -c seen -n '__fish_seen_subcommand_from %s'", verb->name);
}

static void fish_about(const char *text)
{
    printf(" -d '");
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\') putchar('\\');
        putchar(*text == '\n' ? ' ' : *text);
    }
    puts("'");
}

static void fish_option(const struct verb *verb, const struct option *o)
{
    fish_start(verb);
    if (o->letter) printf(" -s %c", o->letter);
    if (o->name) printf(" -l %s", o->name);
    if (o->type == OPTION_FORM)
        printf(" -a %s", o->value);
    else if (o->value)
        fish_what(o->value, strlen(o->value));
    fish_about(o->help);
}

/* All that its operands can be: fish does not count them. */
static void fish_verb(const struct verb *verb)
{
    struct operand o;
    const char *synopsis = verb->operands;
    each_option(verb, fish_option);
    fish_start(verb);
    puts(" -l help -d 'explain the verb'");
    while (next_operand(&synopsis, &o)) {
        if (offer_for(o.name, o.len) == OFFER_NOTHING) continue;
        fish_start(verb);
        if (offer_for(o.name, o.len) == OFFER_FILES)
            printf(" -F");
        else
            fish_what(o.name, o.len);
        putchar('\n');
    }
}

static void print_fish(void)
{
    puts("# fish completion for seen; written by "
         "`seen help --completions fish`.\n"
         "complete -c seen -f\n"
         "complete -c seen -n __fish_use_subcommand -l help "
         "-d 'list the verbs'\n"
         "complete -c seen -n __fish_use_subcommand -l version "
         "-d 'print the version'");
    for (const struct verb_row *v = verbs; v->verb; v++) {
        printf("complete -c seen -n __fish_use_subcommand -a %s",
               v->verb->name);
        fish_about(v->verb->summary);
    }
    for (const struct verb_row *v = verbs; v->verb; v++)
        fish_verb(v->verb);
}

bool print_completions(const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else if (strcmp(shell, "fish") == 0)
        print_fish();
    else
        return false;
    return true;
}
