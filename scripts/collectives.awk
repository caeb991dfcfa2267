# Turns what scripts/collectives.sh measured, lines of "who provider {json}", into
# tables: a row for each collective and way of ours, a column for each size.

function text(name, pattern) {
	pattern = "\"" name "\":\"?[^,}\"]+"
	if (!match($0, pattern)) return ""
	pattern = substr($0, RSTART, RLENGTH)
	sub(/.*:"?/, "", pattern)
	return pattern
}

function median(key, k, v, i, j, x) {
	k = count[key]
	for (i = 1; i <= k; i++) v[i] = at[key, i]
	for (i = 2; i <= k; i++)
		for (j = i; j > 1 && v[j] < v[j - 1]; j--) { x = v[j]; v[j] = v[j - 1]; v[j - 1] = x }
	return v[int((k + 1) / 2)]
}

function us(v) { return v < 9.995 ? sprintf("%.2f", v) : v < 99.95 ? sprintf("%.1f", v) : sprintf("%.0f", v) }

function size_text(s) { return s >= 1048576 ? s / 1048576 " MiB" : s >= 1024 ? s / 1024 " KiB" : s " B" }

function listed(list, item) { return index(" " list " ", " " item " ") }

# better is the lesser of the peers' medians, 0 without any.
function better(where, a, b) {
	a = (("openmpi" where) in count) ? median("openmpi" where) : 0
	b = (("mpich" where) in count) ? median("mpich" where) : 0
	who_better = !a || (b && b < a) ? "M" : "O"
	return !a || (b && b < a) ? b : a
}

/"benchmark"/ {
	name = text("benchmark"); sub(/^coll_/, "", name)
	way = $1
	if (way == "ours") { way = name ~ /_arena$/ ? "arena" : "slices"; sub(/_(arena|slices)$/, "", name) }
	n = text("ranks"); size = text("size")
	if (!listed(names, name)) names = names " " name
	if (!listed(sizes, size)) sizes = sizes " " size
	if (!listed(jobs, $2 ":" n)) jobs = jobs " " $2 ":" n
	key = way SUBSEP $2 SUBSEP n SUBSEP name SUBSEP size
	at[key, ++count[key]] = text("median") + 0
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
				way = w == 1 ? "arena" : "slices"
				line = ""; found = 0
				for (s = 1; s <= ns; s++) {
					where = SUBSEP part[1] SUBSEP part[2] SUBSEP list[i] SUBSEP by[s]
					cell = ""
					if ((way where) in count) {
						found = 1; ours = median(way where); peer = better(where)
						cell = us(ours)
						if (peer) {
							cell = cell " " us(peer) who_better " " (ours > peer ? sprintf("**%.2f**", ours / peer) : sprintf("%.2f", ours / peer))
							cells++; behind += ours > peer
						}
					}
					line = line " " cell " |"
				}
				if (found) printf "| %s | %s |%s\n", list[i], way, line
			}
	}
	printf "\nBehind in %d of %d cells.\n", behind, cells
}
