//! The rows of the validation table as tests: few seeds in `make test`, all of them in `make laws`. What each row means
//! and which checks are reported only is with the rows themselves; `docs/validation/laws.md` shows the measured values.

use anabranch_validation::rows::{LawRow, Measured, all};

fn check(number: u32, seeds: impl Fn(&LawRow) -> u64) {
    let rows = all().into_iter().filter(|row| row.number == number && seeds(row) > 0);
    let measured: Vec<Measured> = rows.map(|row| (seeds(&row), row)).map(|(seeds, row)| row.measure(seeds)).collect();
    let asserted = measured.iter().flat_map(Measured::results).filter(|(check, _)| check.deviation.is_none()).count();
    assert!(asserted > 0, "row {number} asserts nothing");
    let failures: Vec<String> = measured.iter().flat_map(Measured::failures).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

macro_rules! rows {
    ($($name:ident, $slow:ident: $number:literal;)*) => {
        $(
            #[test]
            fn $name() {
                check($number, |row| row.quick_seeds);
            }

            #[test]
            #[ignore = "`make laws`: every network of the row with all seeds"]
            fn $slow() {
                check($number, |row| row.seeds);
            }
        )*
    };
}

rows! {
    newreno_under_random_loss, newreno_under_random_loss_with_all_seeds: 1;
    newreno_under_periodic_loss, newreno_under_periodic_loss_and_rare_loss: 2;
    cubic_under_periodic_loss, cubic_under_periodic_loss_and_rare_loss: 3;
    cubic_under_random_loss, cubic_under_random_loss_with_all_seeds: 4;
    cubic_falls_and_returns, cubic_falls_and_returns_again: 5;
    lia_on_two_lossy_paths, lia_on_two_lossy_paths_with_all_seeds: 6;
    mcc_on_two_lossy_paths, mcc_on_two_lossy_paths_with_all_seeds: 9;
    coupled_controls_keep_the_goals_of_rfc_6356, coupled_controls_keep_the_goals_with_all_seeds: 13;
    compound_below_its_low_window_is_newreno, compound_below_its_low_window_with_all_seeds: 14;
}

macro_rules! slow_rows {
    ($($name:ident: $number:literal;)*) => {
        $(
            #[test]
            #[ignore = "`make laws`: minutes of large windows, or of forty downloads"]
            fn $name() {
                check($number, |row| row.seeds);
            }
        )*
    };
}

slow_rows! {
    olia_on_two_lossy_paths_with_all_seeds: 7;
    balia_on_two_lossy_paths_with_all_seeds: 8;
    scenario_a_of_conext_2012: 10;
    scenario_c_of_conext_2012: 11;
}
