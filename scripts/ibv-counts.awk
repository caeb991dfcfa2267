# Makes a table of the counts of scripts/ibv-counts.sh, and fails if ours and
# theirs differ in a number that does not depend on time.

$1 == "counted" || $1 == "called" {
	sub(/\r$/, "")
	at[$2, $3, $5, $4] = $6
	if (!($3 in seen)) { seen[$3]; operations[++o] = $3 }
	if ($1 == "called" && !($5 in call)) { call[$5]; calls[++c] = $5 }
	next
}
$1 == "lasts" { lasts[$2] = $3; next }
/^\{/ { figures[++f] = $0; next }
{ print; if (/FAIL/) failed = 1 }

# each returns the cost of an operation: the two runs differ by 2560 of them.
function each(who, op, what) { return (at[who, op, what, 3200] - at[who, op, what, 640]) / 2560 }

function compare(op, what, must,    ours, theirs, verdict, unseen) {
	ours = each("ours", op, what)
	theirs = each("theirs", op, what)
	if (ours < 0.02 && theirs < 0.02 && !must) return
	# A barrier around the counted part posts a request or two. Each of two ranks may leave up
	# to 64 receives unseen when a run ends: 128 of 2560 operations are 0.05.
	unseen = what == "receives" || what == "completions" ? 0.06 : 0.03
	verdict = !must ? "" : ours - theirs < unseen && theirs - ours < unseen ? "equal" : "DIFFERENT"
	if (verdict == "DIFFERENT") failed = 1
	printf "%-12s %-16s %8.2f %8.2f  %s\n", op, what, ours, theirs, verdict
}

END {
	printf "%-12s %-16s %8s %8s\n", "operation", "each takes", "ours", "C"
	for (i = 1; i <= o; i++) {
		compare(operations[i], "posts", 1)
		compare(operations[i], "requests", 1)
		compare(operations[i], "completions", 1)
		compare(operations[i], "receives", 1)
		compare(operations[i], "write/device", 1) # posts are system calls on a software device
		compare(operations[i], "polls", 0)
		compare(operations[i], "cgo", 0)
		for (j = 1; j <= c; j++) compare(operations[i], calls[j], 0)
	}
	if (each("ours", "get", "write/device") < 0.5) { print "the kernel counted no writes on the device"; failed = 1 }
	for (tool in lasts) printf "%-20s %8.2f us (perftest: median)\n", tool, lasts[tool]
	for (i = 1; i <= f; i++) print figures[i]
	exit failed
}
