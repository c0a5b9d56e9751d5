//! Compiles the laws for their test on the host and, with the feature `bpf`, the programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Each law's name in the registry of controls, and its number in `bpf/law.h`.
const LAWS: [(&str, u32); 4] = [("lia", 1), ("olia", 2), ("balia", 3), ("mcc", 4)];

fn main() {
    println!("cargo::rerun-if-changed=bpf");
    cc::Build::new().file("bpf/host.c").opt_level(2).flag_if_supported("-Wno-unknown-pragmas").compile("anabranch_law");
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    for (name, number) in LAWS {
        let defines = [format!("-DLAW={number}"), format!("-DNAME=\"anabranch_{name}\"")];
        compile("bpf/coupled.bpf.c", &format!("{name}.bpf.o"), &defines);
    }
    compile("bpf/select.bpf.c", "select.bpf.o", &[]);
}

/// Compiles a program with clang (or what the environment variable `CLANG` names).
fn compile(source: &str, object: &str, defines: &[String]) {
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let target = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo sets it")).join(object);
    // Helpers and macros of the libbpf that is linked.
    let libbpf = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys sets it");
    let mut command = Command::new(&clang);
    command.args(["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-c", source, "-o"]).arg(target);
    command.arg(format!("-I{libbpf}")).args(defines);
    // Debian keeps the headers of the machine's architecture apart, where clang does not look when it compiles for BPF.
    let machine = env::var("CARGO_CFG_TARGET_ARCH").expect("Cargo sets it");
    let headers = format!("/usr/include/{machine}-linux-gnu");
    if Path::new(&headers).exists() {
        command.args(["-idirafter", &headers]);
    }
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(status) => panic!("{clang} refused {source}: {status}"),
        Err(error) => {
            panic!("the feature `bpf` needs clang (apt-get install clang), and {clang} did not start: {error}")
        }
    }
}
