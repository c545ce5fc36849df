# demo    two hosts, a thin link and a tunnel on this machine; needs a Rust toolchain and a C compiler
# test    everything that must hold: form, lints, documentation, tests, end-to-end tests, a short fuzz run
# bench   figures of speed and memory, side by side with others, as ratios

CARGO ?= cargo
# Seconds of fuzzing for each target in `make test`.
FUZZ ?= 2

.PHONY: demo test bench build check setup clean

demo: build
	target/release/strait demo $(DEMO)

build: setup-build
	$(CARGO) build --release --locked

test: setup
	scripts/test $(FUZZ)

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps --document-private-items

bench: setup build
	scripts/bench

# What building needs, and what the tests need besides; installed where that is possible, named where it is not.
.PHONY: setup-build
setup-build:
	scripts/setup build

setup:
	scripts/setup test

clean:
	$(CARGO) clean
