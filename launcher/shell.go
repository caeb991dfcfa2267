//go:build linux

package launcher

import (
	"fmt"
	goruntime "runtime"
	"strings"
)

// script runs the agent on another host. It has no single quote and no line break, since
// the user's shell there may be any: it gets sh -c 'script' gopgas HASH SIZE MACHINE.
//
// It looks for the executable by its hash in two caches. If none has it, the script says
// "need" and reads exactly SIZE bytes into the first cache that lets programs run. A cache
// counts only if it is the user's own directory, no link, and closed to writes of others:
// TMPDIR is shared, and other users know its name. A copy of another size is replaced.
// Each line that it writes begins with a mark, because other programs of the host may
// write to the stream, too.
var script = strings.Join([]string{
	`hash=$1; size=$2; machine=$3; umask 077;`,
	`say() { echo "gopgas-$hash: $*"; };`,
	`if [ "$machine" ] && [ "$(uname -sm)" != "$machine" ]; then say machine "$(uname -sm)"; exit 1; fi;`,
	`own() { [ -O "$1" ] && [ ! -L "$1" ] && [ -z "$(find "$1" -prune \( -perm -020 -o -perm -002 \))" ]; };`,
	`home=${XDG_CACHE_HOME:-${HOME:-/dev/null}/.cache}/gopgas; temp=${TMPDIR:-/tmp}/gopgas-$(id -u);`,
	`whole() { [ -O "$1" ] && [ -x "$1" ] && [ "$(wc -c <"$1")" -eq "$size" ]; };`,
	`for d in "$home" "$temp"; do`,
	`if own "$d" && whole "$d/grun-$hash"; then exec "$d/grun-$hash" agent "$hash"; fi; done;`,
	`for d in "$home" "$temp"; do`,
	`mkdir -p "$d" 2>/dev/null && own "$d" || continue;`,
	`new=$(mktemp "$d/.new.XXXXXX") || continue; trap "rm -f \"$new\"" EXIT; trap "exit 1" HUP INT TERM PIPE;`,
	`if chmod 700 "$new" && [ -x "$new" ]; then`,
	`say need;`,
	`if head -c "$size" >"$new" && whole "$new"; then`,
	`find "$d" -type f -mtime +7 -exec rm -f {} + 2>/dev/null;`,
	`mv -f "$new" "$d/grun-$hash" && exec "$d/grun-$hash" agent "$hash"; fi;`,
	`say full "$d"; exit 1; fi;`,
	`rm -f "$new"; done;`,
	`say nowhere "$home, $temp"; exit 1`,
}, " ")

// machines are the names of uname -sm.
var machines = map[string]string{"amd64": "Linux x86_64", "arm64": "Linux aarch64"}

// line returns the line for the shell of another host.
func (e *executable) line() string {
	return fmt.Sprintf(`exec sh -c '%s' gopgas %s %d %s`, script, e.hash, e.size, quote(machines[goruntime.GOARCH]))
}

// mark begins each line of the script and of the agent.
func mark(hash string) string { return "gopgas-" + hash + ": " }

// quote quotes a word without quotes for any shell.
func quote(word string) string { return "'" + word + "'" }
