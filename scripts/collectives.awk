# Turns the measurements of scripts/collectives.sh, lines of "library provider turn {json}",
# into tables: a row for each collective and way of ours, a column for each size. A
# cell has our time in us, that of the better peer with its name, and their ratio.
# All are of the turn whose ratio is the median, so a cell compares only runs of the
# same seconds.

function text(name, pattern) {
	pattern = "\"" name "\":\"?[^,}\"]+"
	if (!match($0, pattern)) return ""
	pattern = substr($0, RSTART, RLENGTH)
	sub(/.*:"?/, "", pattern)
	return pattern
}

function us(v) { return v < 9.995 ? sprintf("%.2f", v) : v < 99.95 ? sprintf("%.1f", v) : sprintf("%.0f", v) }

function size_text(s) { return s >= 1048576 ? s / 1048576 " MiB" : s >= 1024 ? s / 1024 " KiB" : s " B" }

function listed(list, item) { return index(" " list " ", " " item " ") }

# peer returns the lesser of the peers' times in a turn, 0 without any.
function peer(turn, where, a, b) {
	a = at["openmpi", turn, where]; b = at["mpich", turn, where]
	whose = !a || (b && b < a) ? "M" : "O"
	return whose == "M" ? b : a
}

# cell returns the text of a cell.
function cell(way, where, turn, n, ours, theirs, i, k, r, x) {
	n = 0
	for (turn = 1; turn <= turns; turn++)
		if (ours = at[way, turn, where]) {
			theirs = peer(turn, where)
			n++
			ratio[n] = theirs ? ours / theirs : 0
			said[n] = us(ours) (theirs ? sprintf(" / %s%s = ", us(theirs), whose) : "")
		}
	if (!n) return ""
	for (i = 2; i <= n; i++)
		for (k = i; k > 1 && ratio[k] < ratio[k - 1]; k--) {
			x = ratio[k]; ratio[k] = ratio[k - 1]; ratio[k - 1] = x
			x = said[k]; said[k] = said[k - 1]; said[k - 1] = x
		}
	k = int((n + 1) / 2); r = ratio[k]
	if (!r) return said[k]
	cells++; behind += r > 1
	return said[k] (r > 1 ? sprintf("**%.2f**", r) : sprintf("%.2f", r))
}

/"benchmark"/ {
	name = text("benchmark"); sub(/^coll_/, "", name)
	way = $1
	if (way == "ours") { way = name ~ /_arena$/ ? "arena" : "slices"; sub(/_(arena|slices)$/, "", name) }
	n = text("ranks"); size = text("size")
	if (!listed(names, name)) names = names " " name
	if (!listed(sizes, size)) sizes = sizes " " size
	if (!listed(jobs, $2 ":" n)) jobs = jobs " " $2 ":" n
	if ($3 + 0 > turns) turns = $3 + 0
	at[way, $3 + 0, $2 ":" n ":" name ":" size] = text("median") + 0
}

END {
	nj = split(jobs, job, " "); nn = split(names, list, " "); ns = split(sizes, by, " ")
	for (i = 2; i <= ns; i++)
		for (j = i; j > 1 && by[j] + 0 < by[j - 1] + 0; j--) { x = by[j]; by[j] = by[j - 1]; by[j - 1] = x }
	for (j = 1; j <= nj; j++) {
		split(job[j], part, ":")
		printf "\n### %s, %d ranks\n\n| | |", part[1], part[2]
		for (s = 1; s <= ns; s++) printf " %s |", size_text(by[s])
		printf "\n|---|---|"
		for (s = 1; s <= ns; s++) printf "---|"
		print ""
		for (i = 1; i <= nn; i++)
			for (w = 1; w <= 2; w++) {
				line = ""; found = 0
				for (s = 1; s <= ns; s++) {
					c = cell(w == 1 ? "arena" : "slices", job[j] ":" list[i] ":" by[s])
					if (c) found = 1
					line = line " " c " |"
				}
				if (found) printf "| %s | %s |%s\n", list[i], list[i] == "barrier" ? "" : w == 1 ? "arena" : "slices", line
			}
	}
	printf "\nBehind in %d of %d cells, by turns: %d.\n", behind, cells, turns
}
