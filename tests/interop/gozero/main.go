// gozero - what go-zero's client does with Redis for core/bloom: one EVAL for a key,
// with its 14 positions as decimal arguments. Positions come from the murmur3 that
// go-zero uses.
//
//	main add SOCKET BITS NAME < KEYS
//	main ask SOCKET BITS NAME < KEYS   prints the keys that exist
//
// Keys are hex, one a line, - is the empty key.
package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/spaolacci/murmur3"
)

const (
	add = `for _, offset in ipairs(ARGV) do redis.call("setbit", KEYS[1], offset, 1) end`
	ask = `for _, offset in ipairs(ARGV) do if tonumber(redis.call("getbit", KEYS[1], offset)) == 0 then return false end end return true`
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// send writes one command and returns the first line of its reply.
func send(to *bufio.Writer, from *bufio.Reader, args []string) string {
	fmt.Fprintf(to, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(to, "$%d\r\n%s\r\n", len(arg), arg)
	}
	must(to.Flush())
	reply, err := from.ReadString('\n')
	must(err)
	if reply[0] == '-' {
		panic(reply)
	}
	return reply
}

func main() {
	asking := os.Args[1] == "ask"
	script := add
	if asking {
		script = ask
	}
	bits, err := strconv.ParseUint(os.Args[3], 10, 64)
	must(err)
	server, err := net.Dial("unix", os.Args[2])
	must(err)
	to, from := bufio.NewWriter(server), bufio.NewReader(server)
	in := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriter(os.Stdout)
	for in.Scan() {
		key := []byte{}
		if in.Text() != "-" {
			key, err = hex.DecodeString(in.Text())
			must(err)
		}
		args := []string{"EVAL", script, "1", os.Args[4]}
		for i := byte(0); i < 14; i++ {
			h := murmur3.Sum64(append(append([]byte{}, key...), i))
			args = append(args, strconv.FormatUint(h%bits, 10))
		}
		if reply := send(to, from, args); asking && reply[0] == ':' {
			fmt.Fprintln(out, in.Text())
		}
	}
	must(out.Flush())
}
