//! `dalasi completions`: what a shell has to know to complete commands, flags and their values.

use clap::CommandFactory as _;
use clap_complete::generate;

use super::output;
use super::problem::Problem;

const EXAMPLES: &str = "\
Examples:
  dalasi completions bash > ~/.local/share/bash-completion/completions/dalasi
  dalasi completions zsh > /usr/local/share/zsh/site-functions/_dalasi
  dalasi completions fish > ~/.config/fish/completions/dalasi.fish";

/// Print what a shell has to know to complete commands
#[derive(clap::Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct Arguments {
    /// For which shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Problem> {
    let shell = match arguments.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    // It panics where it can't write, and whoever reads may go away.
    let mut script = Vec::new();
    generate(shell, &mut super::Cli::command(), "dalasi", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end())
}
