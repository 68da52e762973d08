/*
 * completion.h - what can stand where, for the completions of bash, zsh and fish.
 *
 * A verb's operands and its options' values have names, and a name says what is
 * to be offered for it:
 *
 *     FILE INPUT OUT     any file
 *     TARGET IN A B      filter files, *.seen, and any others if there are none
 *     DIR STORE          directories
 *     KIND DIALECT VERB  their names
 *     this|that          these words; a name among them stands for its words
 *
 * and nothing for any other one: USER, RATE, N. The scripts are written from the
 * tables when the program is built; nothing asks the program while one types.
 */
#ifndef CLI_COMPLETION_H
#define CLI_COMPLETION_H

#include <stdbool.h>

/* The script for "bash", "zsh" or "fish"; false: no such shell. */
bool print_completions(const char *shell);

#endif
