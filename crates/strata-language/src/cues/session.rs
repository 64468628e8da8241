//! Whether a question asks about the session itself: «what did I just say?», 刚才我说了什么.

use crate::Pattern;
use crate::text::fold;

/// The folded forms. «What did I say about the dentist?» asks about the dentist, so a phrase without «just» has to be
/// the whole question.
const ENGLISH: &str = concat!(
    r"\bwhat (?:did|have|had|was|were|is|are) (?:i|you|we|it|that)(?: i| you| we)? (?:just|only just) ",
    r"|\b(?:i|you|we)(?:'ve|’ve| have)? just (?:said|say|told|asked|ask|mentioned|wrote|write|talked|discussed)\b",
    r"|\b(?:summari[sz]e|sum up|recap|go over|wrap up) (?:all )?(?:of )?(?:our|this|the|that) (?:whole |entire |current )?(?:conversation|chat|discussion|talk|session|dialogue|thread|exchange)\b",
    r"|\b(?:summary|recap|overview) of (?:our|this|the) (?:whole |entire |current )?(?:conversation|chat|discussion|talk|session|dialogue|thread)\b",
    r"|\bwhat (?:were|are|was|have) (?:we|you and i)(?: been| just)? (?:talking|speaking|chatting|discussing|discussed|talked)(?: about)?(?: so far| here| earlier| before| just now| again| today)?$",
    r"|\bwhat (?:did|do) we (?:talk|speak|chat|discuss)(?: about)?(?: so far| here| earlier| before| just now| today)?$",
    r"|\bwhere (?:were|did) we(?: leave off| stop)?$",
    r"|\bwhat (?:did|have) (?:i|you) (?:say|said|ask|asked|write|tell you|told you|tell me|told me)(?: you| me)?(?: just now| earlier| before| so far| a moment ago| a minute ago| last| first| again)?$",
    r"|\b(?:my|your) (?:last|previous|first|latest) (?:message|question|answer|reply|response|sentence|words)\b",
    r"|\b(?:last|first) thing (?:i|you|we) (?:said|asked|told|wrote|mentioned)\b",
    r"|\b(?:repeat|say) (?:that|it|what (?:i|you) said)(?: again)?$",
);

const CHINESE: &str = concat!(
    r"(?:刚才|刚刚|方才)(?:我们?|你|咱们?)?(?:都|在|又)?(?:说|问|聊|讲|谈|提|讨论|写)",
    r"|(?:我们?|你|咱们?)(?:刚才|刚刚|刚)(?:都|在|又)?(?:说|问|聊|讲|谈|提|讨论|写)",
    r"|(?:我们|咱们)(?:都|在|到目前为止|一直在?)?(?:聊|谈|讨论|说)(?:了|到|的|过|的是)?(?:些|的)?(?:什么|啥|哪些)",
    r"|(?:总结|概括|回顾|归纳|复述)(?:一下|下)?(?:我们|咱们|这次|本次|这段|以上|上面|上述|刚才|今天)?的?(?:对话|聊天|谈话|讨论|会话|交流)",
    r"|(?:聊|说|讲|谈)到(?:哪|什么地方)",
    r"|上一?(?:条|句|个)(?:消息|话|问题|回答|回复)",
    r"|^我(?:都)?(?:说|问)了(?:些)?什么",
);

static PATTERN: Pattern = Pattern::made(|| format!("{ENGLISH}|{CHINESE}"));

/// A longer message says what it is about.
const MAX_CHARS: usize = 120;

/// Whether a question points at the current session itself, so that its last turns answer it.
pub fn points_at_session(question: &str) -> bool {
    if question.chars().nth(MAX_CHARS).is_some() {
        return false;
    }
    let folded = fold(question);
    let asked = folded.trim_end_matches(|c: char| !c.is_alphanumeric());
    PATTERN.is_match(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_questions_about_the_session_point_at_it() {
        let yes = [
            "What did I just say?",
            "what have you just told me about it?",
            "Summarise our conversation.",
            "please summarize this chat in three points",
            "Give me a recap of our discussion",
            "What were we talking about?",
            "What have we been talking about so far?",
            "where were we?",
            "what did I say?",
            "What did I ask you earlier?",
            "What was my last question?",
            "Can you repeat that?",
            "刚才我说了什么？",
            "我刚刚问了你什么",
            "我们聊了些什么？",
            "总结一下我们的对话",
            "剛才說到哪了？",
            "上一个问题是什么",
        ];
        let no = [
            "What did I say about the dentist?",
            "Where do I live?",
            "Summarise the plot of Hamlet",
            "What were the kids talking about at dinner?",
            "Who said that Mira moved?",
            "When did we talk about the boiler?",
            "What is my sister's last name?",
            "我住在哪里？",
            "总结一下这篇文章",
            "我妹妹说了什么？",
            "我说过我喜欢什么茶？",
            "hello",
            "The lamp we just discussed, for the hall of my new flat in Oslo: you said that you would look for one with \
             a dimmer. Did you find any?",
        ];
        let missed: Vec<_> = yes.iter().filter(|text| !points_at_session(text)).collect();
        let wrong: Vec<_> = no.iter().filter(|text| points_at_session(text)).collect();
        assert!(missed.is_empty() && wrong.is_empty(), "missed {missed:?}, wrong {wrong:?}");
    }
}
