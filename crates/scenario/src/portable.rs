//! A scenario together with the files that it names, to be run elsewhere.

use crate::schema::{DirectionSpec, Rate, Scenario, Video};
use std::path::Path;
use std::sync::Arc;

/// The folder of the files, next to the scenario.
const FOLDER: &str = "files";

/// A scenario that needs nothing but its own files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portable {
    /// The resolved scenario, which names the files relative to itself.
    pub scenario: String,
    /// The files by those names, as they were read.
    pub files: Vec<(String, Arc<[u8]>)>,
}

impl Scenario {
    /// The resolved scenario with its files: traces, and descriptions of videos.
    pub fn portable(&self) -> Portable {
        let mut own = self.clone();
        let mut files = Files::default();
        let of_links = own.links.iter_mut().flat_map(|link| [&mut link.up, &mut link.down]);
        let of_events = own.events.iter_mut().flat_map(|event| event.up.iter_mut().chain(&mut event.down));
        of_links.chain(of_events).for_each(|direction| files.take_trace(direction));
        for session in &mut own.sessions {
            if let Video::Dash(dash) = &mut session.video
                && let Some(content) = dash.content.clone()
                && let Some(name) = dash.mpd.as_mut().or(dash.table.as_mut())
            {
                *name = files.keep(name, content);
            }
        }
        Portable { scenario: own.resolved(), files: files.list }
    }
}

#[derive(Default)]
struct Files {
    list: Vec<(String, Arc<[u8]>)>,
}

impl Files {
    fn take_trace(&mut self, direction: &mut DirectionSpec) {
        if let Some(Rate::Trace(trace)) = &mut direction.rate
            && let Some(content) = trace.content()
        {
            trace.trace = self.keep(&trace.trace, content);
        }
    }

    /// The name under which a file is kept. Files of one name with different content get numbers.
    fn keep(&mut self, name: &str, content: Arc<[u8]>) -> String {
        let path = Path::new(name);
        let part = |part: Option<&std::ffi::OsStr>| part.map(|part| part.to_string_lossy().into_owned());
        let stem = part(path.file_stem()).unwrap_or_else(|| "file".to_owned());
        let ending = part(path.extension()).map_or_else(String::new, |ending| format!(".{ending}"));
        for number in 1.. {
            let number = if number == 1 { String::new() } else { format!("-{number}") };
            let name = format!("{FOLDER}/{stem}{number}{ending}");
            match self.list.iter().find(|(known, _)| *known == name) {
                Some((_, known)) if *known == content => return name,
                Some(_) => {}
                None => {
                    self.list.push((name.clone(), content));
                    return name;
                }
            }
        }
        unreachable!("there are more numbers than files")
    }
}

#[cfg(test)]
mod tests {
    use crate::load;

    #[test]
    fn files_of_one_name_are_kept_apart_and_the_same_file_once() {
        let directory = std::env::temp_dir().join(format!("anabranch-portable-{}", std::process::id()));
        for (folder, rate) in [("walk", 1), ("train", 2)] {
            std::fs::create_dir_all(directory.join(folder)).unwrap();
            std::fs::write(directory.join(folder).join("down.csv"), format!("t,mbps\n0,{rate}\n1,3\n")).unwrap();
        }
        let text = "schema = 1\nduration = \"5 s\"\n\
            [link.a]\nrate = { trace = \"walk/down.csv\" }\n[link.b]\nrate = { trace = \"train/down.csv\" }\n\
            [link.c]\nrate = { trace = \"./walk/down.csv\" }\n[[session]]\n";
        let scenario = load(text, "x.toml", Some(&directory), &[]).unwrap();
        let portable = scenario.portable();
        let names: Vec<_> = portable.files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["files/down.csv", "files/down-2.csv"]);
        let elsewhere = directory.join("elsewhere");
        std::fs::create_dir_all(elsewhere.join("files")).unwrap();
        for (name, content) in &portable.files {
            std::fs::write(elsewhere.join(name), content).unwrap();
        }
        std::fs::remove_dir_all(directory.join("walk")).unwrap();
        let again = load(&portable.scenario, "y.toml", Some(&elsewhere), &[]).unwrap();
        for (one, two) in scenario.links.iter().zip(&again.links) {
            assert_eq!(one.down.config().rate, two.down.config().rate, "{}", one.name);
        }
        assert_eq!(again.portable(), portable);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
