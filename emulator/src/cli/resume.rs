//! The command that resumes a run or a validation.

use std::path::Path;

use volary_report::shell::command_line;

/// The command line `argv` of a run or a validation for a shell, changed to run what is missing in its folder `out`. A
/// folder that was merged from others has no such command line.
pub(super) fn command(argv: &[String], out: &Path) -> String {
    let out = out.display().to_string();
    let command = argv.iter().skip(1).find(|word| !word.starts_with('-'));
    if command.is_none_or(|command| !["run", "validate"].contains(&command.as_str())) {
        return format!(
            "the `volary run` of the experiment with --resume --out {}",
            command_line([out.as_str()])
        );
    }
    // Words after `--` are not options.
    let end = argv.iter().position(|word| word == "--").unwrap_or(argv.len());
    let (options, operands) = argv.split_at(end);
    let is_replaced = |at: usize| {
        let (name, _) = options[at].split_once('=').unwrap_or((&options[at], ""));
        let is_folder = at > 0 && options[at - 1] == "--out";
        is_folder || ["--out", "--resume"].contains(&name)
    };
    let kept = (0..end).filter(|at| !is_replaced(*at)).map(|at| options[at].as_str());
    let words = kept.chain(["--resume", "--out", &out]).chain(operands.iter().map(String::as_str));
    command_line(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_were_given_are_not_repeated() {
        for (argv, expected) in [
            ("volary -v run e.toml", "volary -v run e.toml --resume --out r"),
            ("volary run e.toml --out other --json", "volary run e.toml --json --resume --out r"),
            ("volary run --out=r e.toml --resume=auto", "volary run e.toml --resume --out r"),
            ("volary validate e.toml --speed 9", "volary validate e.toml --speed 9 --resume --out r"),
            ("volary run --resume -- --out", "volary run --resume --out r -- --out"),
            ("volary report run b --out r", "the `volary run` of the experiment with --resume --out r"),
        ] {
            let argv: Vec<String> = argv.split(' ').map(str::to_owned).collect();
            assert_eq!(command(&argv, Path::new("r")), expected);
        }
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let argv = ["volary", "run", "my run.toml", "--set", "a='1s'", "--set", "b={c=[1,2]}"];
        let expected =
            r"volary run 'my run.toml' --set 'a='\''1s'\''' --set 'b={c=[1,2]}' --resume --out 'r 2'";
        assert_eq!(command(&argv.map(str::to_owned), Path::new("r 2")), expected);
    }
}
