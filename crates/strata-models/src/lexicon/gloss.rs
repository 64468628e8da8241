//! Chinese text as English word pieces, for networks that read English: dictionary words in order, function words and
//! negation kept.
//!
//! The reader and the encoder were trained with these ids. `tests/data/gloss.tsv` pins them.

use std::collections::HashMap;
use std::sync::LazyLock;

use strata_core::Result;
use strata_language::text;

use super::TABLES;
use super::chinese::{Chinese, MAX_WORD_CHARS};

/// The words that a dictionary glosses badly, with their English words; `_` stands for a space. A word without English
/// words is left out.
const FUNCTION_WORDS: &str = "我=i 我的=my 俺=i 咱=we 咱们=we 我们=we 我们的=our 你=you 您=you 你们=you 他=he 她=she 它=it 他们=they \
    她们=they 自己=self 大家=everyone 别人=others 谁=who 什么=what 哪=which 哪里=where 哪儿=where 怎么=how \
    为什么=why 多少=how_many 几=how_many 的=of 地= 得= 了=done 着=ing 过=before 吗=? 呢= 吧= 啊= 呀= 哦= 嗯= \
    哈= 是=is 不是=is_not 不=not 没=not 没有=not_have 别=do_not 不要=do_not 不用=need_not 不再=no_longer \
    不会=will_not 不能=can_not 不想=do_not_want 不吃=not_eat 不喝=not_drink 没了=is_gone 无=without 非=not \
    未=not_yet 在=at 从=from 到=to 向=toward 对=to 给=to 跟=with 和=and 与=and 或=or 或者=or 但=but 但是=but \
    不过=but 因为=because 所以=so 如果=if 要是=if 假如=if 虽然=although 把= 被=by 让=let 叫=called 用=use \
    比=than 像=like 除了=except 关于=about 为=for 为了=for 也=also 都=all 还=still 又=again 再=again 就=then \
    才=only 只= 很=very 太=too 更=more 最=most 已=already 已经=already 刚=just 刚刚=just 正在=now 现在=now \
    目前=currently 如今=nowadays 以前=formerly 之前=before 以后=later 之后=after 后来=later 曾=once \
    曾经=once 一直=always 总是=always 经常=often 从来=ever 终于=finally 还是=still 其实=actually \
    本来=originally 原来=originally 改=change 改成=change_to 改为=change_to 换=switch 换成=switch_to \
    换了=switched 变成=become 搬=move 搬到=move_to 搬去=move_to 搬家=move_house 推迟=postpone \
    推迟到=postponed_to 提前=moved_earlier 取消=cancel 取消了=cancelled 算了=never_mind 说错=said_wrong \
    更正=correction 要=want 想=want 会=will 能=can 可以=can 应该=should 必须=must 需要=need 打算=plan_to \
    准备=prepare_to 决定=decide 喜欢=like 讨厌=hate 爱=love 觉得=feel 认为=think 知道=know 希望=hope 说=say \
    请=please 谢谢=thanks 好的=ok 好=good 有=have 住=live 住在=live_in 来=come 去=go 做=do 买=buy 卖=sell \
    吃=eat 喝=drink 这=this 那=that 这个=this 那个=that 这些=these 那些=those 这里=here 那里=there \
    今天=today 昨天=yesterday 明天=tomorrow 前天=two_days_ago 后天=in_two_days 今年=this_year 去年=last_year \
    明年=next_year 上周=last_week 下周=next_week 这周=this_week 上个月=last_month 下个月=next_month \
    这个月=this_month 上=last 下=next 月=month 日=day 号=number 年=year 点=o'clock 半=half 分=minute 周=week \
    个= 条= 张= 位= 次=time 岁=years_old 元=yuan 块=yuan 万=ten_thousand 千=thousand 百=hundred 里=inside \
    上面=above 一=one 二=two 两=two 三=three 四=four 五=five 六=six 七=seven 八=eight 九=nine 十=ten 零=zero \
    爸=dad 妈=mom 爸爸=dad 妈妈=mom 老婆=wife 老公=husband 妹妹=younger_sister 姐姐=older_sister \
    弟弟=younger_brother 哥哥=older_brother 儿子=son 女儿=daughter 奶奶=grandma 爷爷=grandpa 外婆=grandma \
    外公=grandpa 老板=boss 同事=colleague 公司=company 猫=cat 狗=dog";

static FUNCTION: LazyLock<HashMap<&str, String>> = LazyLock::new(|| {
    let pairs = FUNCTION_WORDS.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(word, gloss)| (word, gloss.replace('_', " "))).collect()
});

/// The least logarithm of the probability of a function word of two characters or more.
const LEAST_LONG: f64 = -4.5;
/// The logarithm of the probability of a function word of one character that the dictionary does not have.
const SHORT: f64 = -4.0;
/// The most pieces of a word's gloss.
const MAX_GLOSS_PIECES: usize = 4;

/// Whether a text has Chinese characters, so that a network reads it by its glosses.
pub(crate) fn is_chinese(text: &str) -> bool {
    text.chars().any(is_han)
}

/// The pieces of a text that may hold Chinese. `latin` gives those of any other text.
pub(crate) fn pieces(text: &str, latin: impl Fn(&str) -> Result<Vec<u32>>) -> Result<Vec<u32>> {
    let Some(tables) = TABLES.as_ref().filter(|_| is_chinese(text)) else { return latin(text) };
    let text = text::simplified(text);
    let mut pieces = Vec::new();
    for run in runs(&text) {
        if !run.starts_with(is_han) {
            pieces.extend(latin(&western(run))?);
            continue;
        }
        for word in words(&tables.chinese, run) {
            match FUNCTION.get(word) {
                Some(gloss) if gloss.is_empty() => {}
                Some(gloss) => pieces.extend(latin(gloss)?),
                None => {
                    let first = tables.chinese.find(word).and_then(|entry| entry.first_sense());
                    let first = first.unwrap_or_default();
                    pieces.extend(first.into_iter().take(MAX_GLOSS_PIECES).map(u32::from));
                }
            }
        }
    }
    Ok(pieces)
}

fn is_han(c: char) -> bool {
    ('\u{3400}'..='\u{9fff}').contains(&c)
}

/// The runs of a text that are Chinese or not, in turn.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let han = rest.starts_with(is_han);
        let end = rest.find(|c| is_han(c) != han).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        rest = after;
        (!run.is_empty()).then_some(run)
    })
}

/// Chinese punctuation as the English of the vocabulary.
fn western(run: &str) -> String {
    let mark = |c| match c {
        '，' | '、' => ',',
        '。' => '.',
        '？' => '?',
        '！' => '!',
        '：' => ':',
        other => other,
    };
    run.chars().map(mark).collect()
}

/// The most probable words of a Chinese run, function words preferred (Viterbi).
fn words<'t>(chinese: &Chinese, run: &'t str) -> Vec<&'t str> {
    let starts: Vec<usize> = run.char_indices().map(|(at, _)| at).chain([run.len()]).collect();
    let count = starts.len() - 1;
    let mut best = vec![f64::NEG_INFINITY; count + 1];
    let mut back = vec![0; count + 1];
    best[0] = 0.0;
    for start in 0..count {
        for length in 1..=MAX_WORD_CHARS.min(count - start) {
            let word = &run[starts[start]..starts[start + length]];
            let Some(probability) = log10(chinese, word, length) else { continue };
            let total = best[start] + probability;
            if total > best[start + length] {
                best[start + length] = total;
                back[start + length] = start;
            }
        }
    }
    let mut words = Vec::new();
    let mut end = count;
    while end > 0 {
        words.push(&run[starts[back[end]]..starts[end]]);
        end = back[end];
    }
    words.reverse();
    words
}

/// The logarithm of the probability of a word of `length` characters; `None` if it is none.
fn log10(chinese: &Chinese, word: &str, length: usize) -> Option<f64> {
    let known = chinese.find(word).map(|entry| entry.log10());
    match (FUNCTION.contains_key(word), length) {
        (true, 1) => Some(known.unwrap_or(SHORT)),
        (true, _) => Some(known.unwrap_or(LEAST_LONG).max(LEAST_LONG)),
        (false, 1) => Some(known.unwrap_or(super::chinese::UNKNOWN_LOG10.into())),
        (false, _) => known,
    }
}

#[cfg(test)]
mod tests {
    use tokenizers::models::wordpiece::WordPiece;
    use tokenizers::normalizers::BertNormalizer;
    use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
    use tokenizers::{Model, Tokenizer};

    use super::*;

    /// The tokenizer of both networks, over the lexicon's own vocabulary.
    fn latin() -> impl Fn(&str) -> Result<Vec<u32>> {
        let vocabulary = concat!(env!("CARGO_MANIFEST_DIR"), "/data/vocab.txt");
        let model = WordPiece::from_file(vocabulary).build().unwrap();
        assert_eq!(model.token_to_id("[UNK]"), Some(100));
        let mut tokenizer = Tokenizer::new(model);
        tokenizer.with_normalizer(Some(BertNormalizer::default())).unwrap();
        tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
        move |text| Ok(tokenizer.encode(text, false).unwrap().get_ids().to_vec())
    }

    #[test]
    fn chinese_lines_have_the_pieces_of_the_training() {
        let latin = latin();
        let lines = include_str!("../../tests/data/gloss.tsv").lines();
        for line in lines {
            let (text, ids) = line.split_once('\t').unwrap();
            let ids: Vec<u32> = ids.split_whitespace().map(|id| id.parse().unwrap()).collect();
            assert_eq!(pieces(text, &latin).unwrap(), ids, "{text}");
        }
    }

    #[test]
    fn a_text_without_chinese_goes_to_the_tokenizer_as_it_is() {
        let latin = latin();
        assert_eq!(pieces("I live here.", &latin).unwrap(), latin("I live here.").unwrap());
        assert_eq!(pieces("", &latin).unwrap(), [0_u32; 0]);
    }
}
