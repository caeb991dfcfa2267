# Frequent tasks. `make check` is the least before a commit; `.ci/run` runs
# everything, as the continuous integration does.

PROVIDER ?= loop tcp shm
RANKS    ?= 1 2 3 4 8
FUZZTIME ?= 50000x
SOAK     ?= 600
BENCH    ?= all
CHAOS    ?= 500
FIGURES  ?= 1
SEED     ?= $(shell date +%s)

# go test ends a package after LIMIT. Watchdogs end most tests that hang sooner; LIMIT
# ends a test whose wait no watchdog sees, on a machine however busy.
LIMIT    ?= 60m

# Half of the tests wait, so two packages more than there are cores run at a time.
AT_ONCE  ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)

.PHONY: help check format vet cross arm64 lint test race conformance ibv ibv-hosts ibv-upper ibv-counts rdma fuzz bench compare pingpong peers microbench examples mutants hesitate soak chaos hosts slurm mpi gpu leftovers

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

check: format vet lint test ## Format, vet, lint, tests

format: ## Fail if gofmt would change anything
	@out=$$(gofmt -l .); \
	if [ -n "$$out" ]; then echo "gofmt -w these:"; echo "$$out"; exit 1; fi

vet: ## go vet
	go vet ./...

arm64: ## Tests and jobs on an emulated arm64 machine; hours
	scripts/arm64.sh

# No program comes of this, so the compiler optimizes nothing: a third less of its time.
cross: ## go vet, which compiles, for the other platforms of README's table
	for platform in linux/arm64 darwin/arm64 darwin/amd64; do \
		GOOS=$${platform%/*} GOARCH=$${platform#*/} CGO_ENABLED=0 go vet '-gcflags=all=-N -l' ./... || exit; \
	done

lint: ## golangci-lint; the first run builds it, which takes minutes
	scripts/lint.sh

test: ## The tests, without a C compiler
	go test -p $(AT_ONCE) -timeout $(LIMIT) ./...

# Packages whose own code starts no goroutine.
# TestPackagesOutsideTheRaceRunStartNoGoroutines (sequential_test.go) holds them to it.
SEQUENTIAL = ./bench/curves ./bench/peers ./bench/sim ./collectives/internal/vector ./collectives/loggp \
	./examples/internal/corpus ./examples/internal/plot ./examples/internal/progress ./examples/paramserver/model \
	./internal/blocks ./internal/bulk ./internal/cgroup ./internal/element ./internal/tools/roce/wire \
	./launcher/hosts ./launcher/slurm ./launcher/ssh

# A program under the race detector sleeps for a second before it exits. Tests leave no
# goroutine to wait for, so a short sleep is enough for each of their many processes. make vet
# examines the same files.
race: ## The tests under the race detector, of packages with goroutines; needs a C compiler
	GORACE="atexit_sleep_ms=50 $(GORACE)" CGO_ENABLED=1 go test -race -p $(AT_ONCE) -vet=off -count=1 -timeout $(LIMIT) \
		$(filter-out $(shell go list $(SEQUENTIAL)),$(shell go list ./...))

conformance: ## The provider suite; PROVIDER="loop tcp shm", or ibv on an emulated machine
	$(if $(filter-out ibv,$(PROVIDER)),go test -count=1 -timeout $(LIMIT) -run Conformance $(patsubst %,./verbs/%/,$(filter-out ibv,$(PROVIDER))))
	$(if $(filter ibv,$(PROVIDER)),scripts/ibv.sh)

ibv: ## Jobs over a software RDMA device on an emulated machine
	scripts/ibv-jobs.sh

ibv-hosts: ## Jobs over software RDMA devices of two emulated machines
	scripts/ibv-hosts.sh

ibv-upper: ## Pipes and collectives over it; ten minutes
	PACKAGES="./rpipe ./rpipe/farheap ./collectives" scripts/ibv.sh -run /ibv

ibv-counts: ## Requests and system calls over it, compared with a C program's; FIGURES=0 shows no latencies
	FIGURES=$(FIGURES) scripts/ibv-counts.sh

rdma: ## All that is tested on a software RDMA device
	scripts/ibv.sh
	PACKAGES="./rpipe ./rpipe/farheap ./collectives" scripts/ibv.sh -run /ibv
	scripts/ibv-jobs.sh
	scripts/ibv-hosts.sh
	scripts/ibv-counts.sh

fuzz: ## Fuzz every decoder for FUZZTIME=50000x
	scripts/fuzz.sh $(FUZZTIME)

bench: ## What operations cost between two ranks; BENCH="put_latency switch"
	go run ./cmd/grun -n 2 --bind-to core ./bench $(BENCH)

compare: ## gopgas beside MPI, OpenSHMEM and the limits of the machine; three minutes
	go run ./bench/compare -quick

pingpong: ## A pipe's ping-pong beside a C program's
	scripts/pingpong.sh

peers: ## Collective calls beside those of Open MPI and MPICH, where they are installed
	scripts/collectives.sh

microbench: ## Benchmarks of packages
	go test -run '^$$' -bench . -benchmem ./...

examples: ## Every example under grun at RANKS="1 2 3 4 8" on shm, queued shm and tcp
	scripts/examples.sh $(RANKS)

mutants: ## Break the memory model on purpose; tests must notice
	scripts/mutants.sh

hesitate: ## Tests whose ranks pause at random in calls and inside protocols, as on a busy machine
	go test -p $(AT_ONCE) -tags mutant_hesitate -vet=off -count=1 -timeout $(LIMIT) ./collectives ./runtime ./window ./litmus ./rpipe/... ./internal/fabric ./internal/bootstrap ./launcher ./cmd/grun ./verbs/shm ./verbs/tcp

soak: ## Repeat tests and examples for SOAK=600 seconds, all configurations
	GOPGAS_SOAK=1 scripts/soak.sh $(SOAK)

chaos: ## Random cancellations and kills against a model: CHAOS=500 of each, from SEED
	go test -count=1 -timeout $(LIMIT) ./chaos -seed $(SEED) -cancels $(CHAOS) -kills $(CHAOS)
	scripts/leftovers.sh

hosts: ## Jobs on several hosts made of namespaces, and faults of their network; needs root, and installs iproute2 and OpenSSH
	scripts/hosts.sh

slurm: ## Jobs under Debian's Slurm on hosts made of namespaces, and what ends them; needs root, and installs Slurm
	scripts/slurm.sh

mpi: ## Ranks under mpiexec.hydra and mpirun, and programs of MPICH under grun; installs both
	scripts/mpi.sh

gpu: ## Tests and figures of device/cuda on this host's NVIDIA GPU
	scripts/gpu.sh

leftovers: ## Look for processes and files that jobs left behind
	scripts/leftovers.sh
