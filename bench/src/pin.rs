//! Which core does what: the server on the first, the client on the second, where there are two.

use std::process::{Command, Stdio};

use crate::Result;

/// Core lists as `taskset` writes them; nothing where this machine can't pin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cores {
    pub(crate) server: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) all: Option<String>,
}

impl Cores {
    pub(crate) fn find() -> Self {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let has_taskset = quiet(Command::new("taskset").arg("--version"));
        if count < 2 || !has_taskset {
            return Self::default();
        }
        Self { server: Some("0".to_owned()), client: Some("1".to_owned()), all: Some(format!("0-{}", count - 1)) }
    }

    /// Moves this process and its threads.
    pub(crate) fn move_to(cores: Option<&String>) -> Result<()> {
        let Some(cores) = cores else { return Ok(()) };
        let mut taskset = Command::new("taskset");
        taskset.args(["--all-tasks", "--cpu-list", "--pid", cores]).arg(std::process::id().to_string());
        if quiet(&mut taskset) { Ok(()) } else { Err(format!("taskset can't move this process to core {cores}")) }
    }

    /// A command that starts `program` there.
    pub(crate) fn command(cores: Option<&String>, program: &std::path::Path) -> Command {
        match cores {
            None => Command::new(program),
            Some(cores) => {
                let mut command = Command::new("taskset");
                command.args(["--cpu-list", cores]).arg(program);
                command
            }
        }
    }
}

/// True when it starts and exits with 0.
pub(crate) fn quiet(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
