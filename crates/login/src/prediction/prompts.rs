//! Prompts at which the terminal was seen to echo.

use std::collections::VecDeque;

use crate::TerminalModes;

/// How many prompts are remembered: shells in some folders, and the programs that are used beside them.
const PROMPTS_MAX: usize = 32;

/// The prompts that were seen last, the last one in front.
#[derive(Debug, Default)]
pub(super) struct Prompts(VecDeque<(String, TerminalModes)>);

impl Prompts {
    /// A character that was typed first behind `prompt` was echoed.
    pub(super) fn learn(&mut self, prompt: &str, modes: TerminalModes) {
        if prompt.trim().is_empty() {
            return;
        }
        self.forget(prompt);
        self.0.truncate(PROMPTS_MAX - 1);
        self.0.push_front((prompt.to_owned(), modes));
    }

    /// What was typed behind `prompt` was not echoed.
    pub(super) fn forget(&mut self, prompt: &str) {
        self.0.retain(|(known, _)| known != prompt);
    }

    /// The longest known prompt that `text` begins with.
    pub(super) fn find(&self, text: &str, modes: TerminalModes) -> Option<&str> {
        let known = self.0.iter().filter(|(prompt, its)| *its == modes && text.starts_with(prompt.as_str()));
        known.map(|(prompt, _)| prompt.as_str()).max_by_key(|prompt| prompt.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAW: TerminalModes = TerminalModes { echo: false, canonical: false };
    const COOKED: TerminalModes = TerminalModes { echo: true, canonical: true };

    #[test]
    fn a_prompt_is_known_in_its_modes_until_it_is_forgotten() {
        let mut prompts = Prompts::default();
        prompts.learn("  ", RAW);
        assert_eq!(prompts.find("  x", RAW), None);
        prompts.learn("$ ", RAW);
        prompts.learn("$ $ ", RAW);
        assert_eq!(prompts.find("$ $ ls", RAW), Some("$ $ "));
        assert_eq!(prompts.find("$ ls", COOKED), None);
        prompts.forget("$ $ ");
        assert_eq!(prompts.find("$ $ ls", RAW), Some("$ "));
        for number in 0..PROMPTS_MAX {
            prompts.learn(&format!("{number}> "), RAW);
        }
        assert_eq!(prompts.find("$ ls", RAW), None);
        assert_eq!(prompts.find("0> ls", RAW), Some("0> "));
    }
}
