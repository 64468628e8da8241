//! Messages to an assistant with memory: some have a statement to remember, most do not.

use crate::corpus::{Corpus, Random};

/// Messages with a statement to remember, with a name in it; every third is Chinese.
const STATEMENTS: &[&str] = &[
    "I live in {} now, near the river",
    "my sister {} is visiting next week",
    "我最近搬到了{}，离公司很近",
    "I really like {}, more than anything else on the menu",
    "I have to call {} before Friday about the contract",
    "我不喜欢吃{}，以后别推荐了",
    "we decided to go with {} for the new project",
    "actually I don't work at {} any more",
    "我女儿叫{}，今年七岁",
];

/// Messages without such a statement.
const TALK: &[&str] = &[
    "can you explain how {} works?",
    "thanks, that helps a lot",
    "好的，谢谢你",
    "what would you do with {} if you had an hour?",
    "帮我看看{}这段话有没有问题",
    "hm, not quite. try again please",
];

/// An endless conversation, the same for the same seed.
pub(crate) struct Chat {
    corpus: Corpus,
    random: Random,
}

impl Chat {
    pub(crate) fn new(seed: u64) -> Self {
        Self { corpus: Corpus::new(), random: Random::new(seed) }
    }

    /// The user's next message: four in ten have a statement to remember, sometimes within a long text.
    pub(crate) fn user(&mut self) -> String {
        let random = &mut self.random;
        let kind = if random.below(10) < 4 { STATEMENTS } else { TALK };
        let template = kind[random.below(kind.len())];
        let question = self.corpus.question(random);
        let name = question.split(' ').next_back().unwrap_or("it");
        let said = template.replace("{}", name);
        match random.below(4) {
            0 => format!("{said}. {}", self.corpus.turn(random)),
            _ => said,
        }
    }

    /// The assistant's answer.
    pub(crate) fn assistant(&mut self) -> String {
        let parts: Vec<String> = (0..2).map(|_| self.corpus.turn(&mut self.random)).collect();
        parts.join(" ")
    }
}
