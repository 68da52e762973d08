// bits_and_blooms - bits-and-blooms/bloom itself, on the command line.
//
//	main build N P FILE JSON < KEYS   both encodings
//	main check FILE < KEYS            prints the keys that it may hold
//
// Keys are hex, one a line, - is the empty key.
package main

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/willf/bloom"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	var f *bloom.BloomFilter
	building := os.Args[1] == "build"
	if building {
		n, err := strconv.ParseUint(os.Args[2], 10, 32)
		must(err)
		p, err := strconv.ParseFloat(os.Args[3], 64)
		must(err)
		f = bloom.NewWithEstimates(uint(n), p)
	} else {
		file, err := os.Open(os.Args[2])
		must(err)
		f = &bloom.BloomFilter{}
		_, err = f.ReadFrom(bufio.NewReader(file))
		must(err)
	}
	in := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	for in.Scan() {
		line := in.Text()
		key := []byte{}
		if line != "-" {
			var err error
			key, err = hex.DecodeString(line)
			must(err)
		}
		if building {
			f.Add(key)
		} else if f.Test(key) {
			fmt.Fprintln(out, line)
		}
	}
	must(out.Flush())
	if building {
		file, err := os.Create(os.Args[4])
		must(err)
		_, err = f.WriteTo(file)
		must(err)
		must(file.Close())
		text, err := json.Marshal(f)
		must(err)
		must(os.WriteFile(os.Args[5], text, 0o644))
	}
}
