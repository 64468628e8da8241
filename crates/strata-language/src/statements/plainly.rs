//! A sentence in the words that a reader knows.
//!
//! The reader sees Chinese words by their glosses, one by one. 不喝咖啡了 then looks like «not drink coffee», which repeats that
//! somebody drinks it rather than ending it; 不再喝咖啡了 says the same and is read rightly. 早就 and 早已 look like a remark.

use std::borrow::Cow;

use super::chinese::is_chinese;
use crate::Pattern;

/// Adverbs that tell only since how long something holds, with the word after them.
static LONG_SINCE: Pattern =
    Pattern::new("(?:老早|早)(?:就|已经|已經|已)(?P<next>[不没沒改换換搬戒辞辭卖賣停退离離])");
/// 不 before a verb, with 了 at the end of the clause.
static NO_LONGER: Pattern = Pattern::new(
    "(?P<before>^|[^差要再好了])不(?P<verb>[^再是过過会會能要想用得了同错錯久论論管但如只太怎对對少小可必该應应敢肯行好到见見知晓曉止仅僅够夠愿願意妨料禁由])(?P<rest>[^，。；！？,!?不没沒]{0,10})了(?P<end>[，。；！,!]|$)",
);

/// A sentence as a reader understands it best; most sentences stay as they are.
pub fn plainly(sentence: &str) -> Cow<'_, str> {
    if !is_chinese(sentence) || !sentence.contains(['不', '早']) {
        return Cow::Borrowed(sentence);
    }
    let (Some(since), Some(no_longer)) = (LONG_SINCE.get(), NO_LONGER.get()) else {
        return Cow::Borrowed(sentence);
    };
    let plain = since.replace_all(sentence, "$next");
    Cow::Owned(no_longer.replace_all(&plain, "${before}不再$verb$rest了$end").into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_longer_holds_is_said_plainly() {
        let check = |said: &str, expected: &str| assert_eq!(plainly(said), expected);
        check("我早就不打牌了，只下棋。", "我不再打牌了，只下棋。");
        check("我不在邮局上班了", "我不再在邮局上班了");
        check("我早已搬到绵阳了。", "我搬到绵阳了。");
        for other in [
            "我不打牌。",
            "我不再打牌了。",
            "这锅汤不错了。",
            "他差不多到了。",
            "我受不了了。",
            "我早上不吃饭。",
            "手机不见了。",
            "要不算了。",
            "I no longer play cards.",
        ] {
            check(other, other);
        }
    }
}
