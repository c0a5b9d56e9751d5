//! Prints `docs/scenario.md`.

fn main() {
    print!("{}", anabranch_scenario::page());
}
