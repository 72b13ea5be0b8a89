//! `dalasi man`: the pages of a manual, a page for each command, made of what `--help` says.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::output;
use super::problem::Problem;

const EXAMPLES: &str = "\
Examples:
  dalasi man | man -l -                      the page of dalasi itself
  dalasi man /usr/local/share/man/man1       every page, for `man dalasi-serve` and the others";

/// Print the manual, or write its pages into a folder
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    /// Where to: a folder that is there; without it the page of dalasi itself is printed
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Problem> {
    let mut command = super::Cli::command();
    command.build();
    match &arguments.folder {
        None => {
            let page = page(command).map_err(|error| Problem::output(&error))?;
            output::line(String::from_utf8_lossy(&page).trim_end())
        }
        Some(folder) => {
            let mut written = Vec::new();
            write(command, folder, &mut written)
                .map_err(|error| Problem::failed(format!("{} can't take the pages: {error}", folder.display())))?;
            written.sort_unstable();
            written.iter().try_for_each(|file| output::line(file))
        }
    }
}

/// The page of a command and of those below it.
fn write(command: Command, folder: &Path, written: &mut Vec<String>) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write(below.clone(), folder, written)?;
    }
    let file = folder.join(Man::new(command.clone()).get_filename());
    // A page of an older version makes room.
    fs::write(&file, page(command)?)?;
    written.push(file.display().to_string());
    Ok(())
}

/// As the library composes it, with the examples, which it leaves out.
fn page(command: Command) -> io::Result<Vec<u8>> {
    let examples = command.get_before_help().map(ToString::to_string);
    let has_options = command.get_arguments().any(|argument| !argument.is_hide_set());
    let has_commands = command.get_subcommands().any(|below| !below.is_hide_set());
    let (has_more, has_version) = (command.get_after_help().is_some(), command.get_version().is_some());
    let man = Man::new(command);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if let Some(examples) = examples {
        section("EXAMPLES", &examples).to_writer(&mut page)?;
    }
    if has_options {
        man.render_options_section(&mut page)?;
    }
    if has_commands {
        man.render_subcommands_section(&mut page)?;
    }
    if has_more {
        man.render_extra_section(&mut page)?;
    }
    if has_version {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// Lines as they stand.
fn section(heading: &str, text: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", [heading]).control("nf", []);
    for line in text.lines().filter(|line| *line != "Examples:") {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff
}
