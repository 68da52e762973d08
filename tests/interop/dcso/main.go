// dcso - how long DCSO's own library takes.
//
//	main FILE < KEYS   prints ns per Check()
//
// Keys are hex, one a line.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"github.com/DCSO/bloom"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	f, err := bloom.LoadFilter(os.Args[1], false)
	must(err)
	var keys [][]byte
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		key, err := hex.DecodeString(in.Text())
		must(err)
		keys = append(keys, key)
	}
	const piece = 2048
	best := make([]time.Duration, len(keys)/piece+1)
	found := 0
	for round := 0; round < 20; round++ {
		for at := 0; at < len(keys); at += piece {
			end := at + piece
			if end > len(keys) {
				end = len(keys)
			}
			start := time.Now()
			for _, key := range keys[at:end] {
				if f.Check(key) {
					found++
				}
			}
			took := time.Since(start)
			if round == 0 || took < best[at/piece] {
				best[at/piece] = took
			}
		}
	}
	var sum time.Duration
	for _, took := range best {
		sum += took
	}
	fmt.Printf("%.1f\n", float64(sum.Nanoseconds())/float64(len(keys)))
	if found == 0 {
		os.Exit(1)
	}
}
