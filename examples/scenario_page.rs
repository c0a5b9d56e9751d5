//! Prints `docs/reference/scenario.md`.

fn main() {
    print!("{}", anabranch_scenario::page());
}
