//! The words that carry no content: courtesies, and words of grammar beyond the stop words of the index.
//!
//! All entries are folded: lower case, and simplified characters for Chinese. Clitics are words of their own, as in
//! «what s up».

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

type Words = LazyLock<HashSet<&'static str>>;
type Entries = LazyLock<HashMap<char, Vec<&'static str>>>;

/// Greetings, thanks, agreement, praise, and sounds.
pub(super) static COURTESY: Words = LazyLock::new(|| {
    "ok okay okey okie k kk thanks thank thankyou thx ty tysm cheers hi hello hey hiya howdy yo greetings welcome bye \
     goodbye byebye cya ciao please pls plz sorry excuse pardon apologies yes yeah yep yup yea ya no nope nah sure \
     certainly absolutely definitely indeed exactly alright right correct true fine great good cool nice awesome \
     amazing wonderful fantastic excellent perfect lovely brilliant super terrific incredible interesting exciting \
     impressive funny wow whoa oh ooh ah aha aw aww hmm hm mm mhm uh um huh er haha ha hehe heh lol lmao rofl omg yay \
     hooray congrats congratulations glad pleasure appreciate appreciated noted understood gotcha roger agreed help \
     helpful support kind kindness advice tip tips info information explanation suggestion suggestions answer answers \
     question questions idea ideas point everyone everybody folks guys friend friends buddy mate dear dude luck care"
        .split_ascii_whitespace()
        .collect()
});

/// Words that say something only together with others.
pub(super) static LIGHT: Words = LazyLock::new(|| {
    "don doesn didn isn aren wasn weren wouldn couldn shouldn haven hasn hadn ain cannot im ive dont doesnt didnt \
     cant wont thats whats lets us mine yours ours theirs myself yourself too also just only even still yet already \
     again ever never maybe perhaps probably actually really very much many more most quite pretty rather well such \
     any anything anyone some something someone everything nothing nobody all both each other others another else \
     same one ones lot lots bit sort thing things stuff way now know knows knew known think thinks thought tell tells \
     told say says said saying mean means meant see sees seen saw look looks looking get gets got getting go goes \
     going gone went come comes came let make makes made want wants wanted need needs needed like feel feels guess \
     hope hopes believe suppose wonder understand remember forget forgot ask asks asked hear hears heard sound sounds \
     seem seems happen happens happened happening give gives gave take takes took try up down out off over back ahead \
     through because while until since into yeh etc letting doing done able wait moment"
        .split_ascii_whitespace()
        .collect()
});

/// Words that a greeting or thanks begins with, before a name.
pub(super) static GREETINGS: Words = LazyLock::new(|| {
    "hi hello hey hiya howdy yo greetings welcome bye goodbye ciao thanks thank thx cheers congrats congratulations wow"
        .split_ascii_whitespace()
        .collect()
});

/// Words before the first word of a question.
pub(super) static LEADS: Words = LazyLock::new(|| {
    "and but so or then well ok okay hey hi hello oh ah hmm yes yeah no please wow great cool nice sorry thanks btw \
     actually now also anyway right sure good"
        .split_ascii_whitespace()
        .collect()
});

/// Questions behind a statement, after its last comma.
pub(super) static TAGS: Words = LazyLock::new(|| {
    [
        "right",
        "no",
        "yes",
        "correct",
        "ok",
        "okay",
        "huh",
        "eh",
        "true",
        "isn t it",
        "is it",
        "wasn t it",
        "aren t you",
        "don t you",
        "do you",
        "doesn t it",
        "doesn t he",
        "doesn t she",
        "didn t you",
        "didn t i",
        "don t i",
        "aren t they",
        "isn t he",
        "isn t she",
        "won t you",
        "haven t i",
        "haven t you",
        "you know",
        "remember",
        "do you remember",
    ]
    .into_iter()
    .collect()
});

/// Phrases of courtesy whose words have a content of their own elsewhere, by their first word.
pub(super) static COURTESY_PHRASES: LazyLock<HashMap<&str, Vec<Vec<&str>>>> = LazyLock::new(|| {
    let mut phrases: HashMap<&str, Vec<Vec<&str>>> = HashMap::new();
    for phrase in PHRASES.split(',') {
        let words: Vec<&str> = phrase.split_ascii_whitespace().collect();
        if let Some(first) = words.first() {
            phrases.entry(first).or_default().push(words);
        }
    }
    phrases
});

const PHRASES: &str = "\
    good morning, good afternoon, good evening, good night, good day, good to see you, good to hear from you, \
    good to hear, nice to meet you, nice to see you, pleased to meet you, have a nice day, have a good day, \
    have a great day, have a nice one, have a good one, have a nice weekend, have a good weekend, \
    have a great weekend, have a good night, have a nice evening, have a good evening, have fun, \
    enjoy your day, enjoy your weekend, enjoy, see you later, see you soon, see you tomorrow, see you then, \
    see you around, see ya, later, talk to you later, talk to you soon, talk soon, speak soon, catch you later, \
    happy to help, happy to hear, take care, no problem, no worries, not at all, how are you doing today, \
    how are you doing, how are you today, how are you, how are things, how is it going, how s it going, \
    how s everything, how have you been, how was your day, how s your day going, how s your day, \
    hope you re well, hope you are well, hope you re doing well, hope all is well, what s up, what s new, \
    whats up, sup, long time no see, my pleasure, never mind, nevermind, well done, good job, great job, \
    nice work, great work, keep it up, you too, you there, sounds like fun, sounds fun, that s fun, \
    how can i help you today, how can i help you, how may i help you, what can i do for you, \
    what can i help you with, for your time, of course, same to you, thank god, thank goodness, \
    i m happy for you, happy for you, proud of you, can t wait";

/// Chinese greetings and thanks, before a name.
pub(super) const CHINESE_GREETINGS: &[&str] = &[
    "你好",
    "您好",
    "大家好",
    "嗨",
    "嘿",
    "哈喽",
    "喂",
    "早上好",
    "早安",
    "上午好",
    "中午好",
    "下午好",
    "晚上好",
    "晚安",
    "谢谢",
    "多谢",
    "感谢",
    "再见",
    "拜拜",
];

/// Chinese greetings, thanks, agreement and sounds.
pub(super) static CHINESE_COURTESY: Entries = LazyLock::new(|| {
    by_first_character(
        "你好 您好 大家好 哈喽 早上好 早安 早呀 早啊 上午好 中午好 下午好 晚上好 晚安 新年好 谢谢 谢啦 谢了 多谢 \
         感谢 非常感谢 十分感谢 感激 麻烦 辛苦 拜托 再见 拜拜 回见 回头见 明天见 下次见 保重 好的 好吧 好呀 好啊 \
         好哒 好滴 好嘞 好 行 行吧 可以 没问题 当然 嗯 恩 哦 噢 喔 啊 呀 哎 唉 哇 哈 嘿 嗨 喂 呵 嘻 嘛 是的 对的 对 \
         没错 确实 没事 没关系 不客气 不用谢 不用客气 不好意思 抱歉 对不起 明白 了解 收到 懂 太好了 太棒 真棒 棒 \
         厉害 真好 不错 加油 恭喜 辛苦了 有意思 你怎么样 最近怎么样 吃了吗",
    )
});

/// Chinese words of grammar, and verbs that say something only together with others.
pub(super) static CHINESE_LIGHT: Entries = LazyLock::new(|| {
    by_first_character(
        "我 你 您 他 她 它 我们 你们 他们 她们 它们 咱 咱们 大家 自己 人家 这 那 这个 那个 这些 那些 这里 那里 这儿 \
         那儿 这样 那样 这么 那么 这是 那是 的 得 地 了 着 过 吗 呢 吧 么 在 是 有 没有 没 不 也 都 还 就 才 又 再 \
         很 太 真 真的 非常 更 最 和 跟 与 或 或者 但 但是 不过 因为 所以 如果 然后 而且 其实 怎么 怎么样 怎样 什么 \
         为什么 哪 哪里 哪儿 哪个 谁 几 多少 多久 多大 何时 什么时候 啥 请 请问 告诉 能 能不能 可不可以 会 要 想 \
         觉得 知道 记得 说 问 看 到 去 来 给 把 被 让 从 为 个 一 一下 一点 些 现在 还是 是不是",
    )
});

fn by_first_character(entries: &'static str) -> HashMap<char, Vec<&'static str>> {
    let mut found: HashMap<char, Vec<&str>> = HashMap::new();
    for entry in entries.split_ascii_whitespace() {
        found.entry(entry.chars().next().unwrap_or_default()).or_default().push(entry);
    }
    found
}
