//! The recordings, where they are present. They may not be shipped, so none is in the tree.

use anabranch_network::{ColumnName, RateUnit, Reading, RecordedNetwork, TableHints, TraceHints, TraceKind};
use anabranch_units::Duration;
use std::path::{Path, PathBuf};

/// The folder of the recordings.
pub const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/traces");

/// Shorter ones have too few outages and slow swings for statistics.
const SHORTEST: Duration = Duration::from_secs(90);

/// Recordings of one kind of network.
pub struct Group {
    /// Name in the table.
    pub name: &'static str,
    /// The kind of synthetic rates that is compared with it.
    pub kind: &'static str,
    /// Whether the kind's parameters were fitted to it.
    pub fitted: bool,
    folder: &'static str,
    /// Beginnings and endings of file names.
    prefix: &'static str,
    suffix: &'static str,
    unit: Option<RateUnit>,
    columns: &'static [usize],
}

const fn group(kind: &'static str, name: &'static str, fitted: bool, folder: &'static str) -> Group {
    Group { name, kind, fitted, folder, prefix: "", suffix: "", unit: None, columns: &[] }
}

/// Every group.
pub const GROUPS: &[Group] = &[
    Group {
        suffix: ".txt",
        unit: Some(RateUnit::MEGABITS_PER_SECOND),
        ..group("wifi", "WiFi, indoors, in one place (Solis-WiFi-Trace)", true, "solis_wifi")
    },
    Group {
        suffix: "_wifi.csv",
        unit: Some(RateUnit::BYTES_PER_SECOND),
        ..group("wifi-walk", "WiFi on foot (Aydin, Fund, Panwar 2023)", true, "paired_wifi_cellular")
    },
    Group {
        suffix: ".json",
        ..group("lte", "LTE in Ghent, six means of transport (van der Hooft et al. 2016)", true, "sabre/4Glogs")
    },
    Group {
        suffix: "_cellular.csv",
        unit: Some(RateUnit::BYTES_PER_SECOND),
        ..group(
            "lte",
            "cellular on foot, recorded with the WiFi above (Aydin, Fund, Panwar 2023)",
            false,
            "paired_wifi_cellular",
        )
    },
    Group {
        prefix: "drive_",
        suffix: ".csv",
        columns: &[2, 3, 4],
        ..group("lte-drive", "three networks on the road (CoNEXT 2023)", true, "starlink_cellular")
    },
    Group {
        prefix: "4g_trace_driving",
        suffix: ".txt",
        unit: Some(RateUnit::MEGABITS_PER_SECOND),
        ..group("lte-drive", "4G on the road (Lumos5G)", false, "lumos_4g5g")
    },
];

impl Group {
    /// Its recordings of at least 90 s, in order; empty where they are absent.
    ///
    /// # Panics
    /// If one cannot be read.
    pub fn recordings(&self) -> Vec<RecordedNetwork> {
        let columns: Vec<Option<usize>> =
            if self.columns.is_empty() { vec![None] } else { self.columns.iter().map(|c| Some(*c)).collect() };
        let files = self.files();
        let each = files.iter().flat_map(|file| columns.iter().map(move |column| self.read(file, *column)));
        // A network without any service on a drive has no mean to compare with.
        each.filter(|recording| recording.period() >= SHORTEST && recording.opportunities().is_ok()).collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(Path::new(FOLDER).join(self.folder)).into_iter().flatten().flatten();
        let named = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(self.prefix) && name.ends_with(self.suffix) && !name.starts_with("LICENSE")
        };
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(named).collect();
        files.sort();
        files
    }

    fn read(&self, file: &Path, column: Option<usize>) -> RecordedNetwork {
        let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let rate_column = column.map(ColumnName::Number);
        let table = TableHints { unit: self.unit, rate_column, ..TableHints::default() };
        let suggested = TraceKind::of_name(&file.to_string_lossy());
        let read = Reading::of(&bytes, &TraceHints { suggested, table, ..TraceHints::default() });
        read.unwrap_or_else(|error| panic!("{}: {error}", file.display())).recording
    }
}
