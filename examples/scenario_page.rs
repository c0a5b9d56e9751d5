//! Prints `docs/scenario.md`.

fn main() {
    print!("{}", anabranch_sim::scenario::page());
}
