//! Chinese sentences, which run on with commas and leave out what was named before.

use crate::statements::todos::is_to_be_done;

/// The speaker, longest first.
const SPEAKER: [&str; 7] = ["我们", "我們", "咱们", "咱們", "我", "俺", "咱"];
/// People and things that belong to a speaker who is named before them, longest first.
const BELONGINGS: &str = "男朋友 女朋友 爸爸 妈妈 媽媽 父亲 母亲 父母 哥哥 姐姐 弟弟 妹妹 爷爷 奶奶 外公 外婆 女儿 女兒 儿子 兒子 孩子 老婆 老公 妻子 丈夫 \
    太太 先生 男友 女友 老家 家里 家裡 公司 单位 單位 部门 部門 老板 老闆 同事 领导 領導 室友 房东 房東 邻居 鄰居 生日 电话 電話 手机 手機 邮箱 郵箱 地址 \
    车牌 車牌 房租 月薪 工资 工資 血型 身高 体重 體重 专业 專業 学校 學校 宠物 寵物 密码 密碼 工号 工號 网名 昵称 外号 小名 英文名 爸 妈 媽 哥 姐 弟 妹 家";
/// Joining words that a clause can do without.
const JOINS: &str = "而且 并且 並且 另外 还有 還有 同时 同時 但是 不过 不過 然后 然後 但";
/// Words before a verb.
const BEFORE_VERB: &str = "平时 平時 平常 一般 通常 经常 經常 每天 每周 每週 每月 每年 周末 週末 早上 晚上 中午 最近 现在 現在 目前 今年 去年 明年 上个月 上個月 下个月 \
    下個月 上周 下周 上週 下週 昨天 今天 明天 后天 後天 已经 已經 正在 从来 從來 从不 從不 一直 刚刚 剛剛 主要 偶尔 偶爾 有时 有時 总是 總是 打算 准备 準備 \
    计划 計劃 需要 必须 必須 应该 應該 可以 不能 不会 不會 不想 不太 自己 也 还 還 又 都 只 常 刚 剛 不 没 沒 想 要 得 会 會 能 最 很 就 才 再";
/// Words whose verb stands behind what they name: 在邮局上班.
const BEFORE_NAME: &str = "在 对 對 把 给 給 跟 从 從 是";
/// Verbs that begin a clause.
const VERBS: &str = "喜欢 喜歡 讨厌 討厭 习惯 習慣 住 养 養 用 有 爱 愛 吃 喝 玩 学 學 教 做 开 開 买 買 卖 賣 搬 换 換 去 来 來 带 帶 读 讀 写 寫 看 听 聽 唱 跳 跑 \
    骑 騎 坐 租 借 还 還 付 交 拿 寄 收 发 發 打 过敏 過敏 上班 工作 负责 負責 管 当 當 戒 练 練 修 洗 种 種 订 訂 约 約 报 報 参加 參加 加入 离开 離開 \
    辞 辭 毕业 畢業 考 申请 申請 续 續 取 退 存 花 赚 賺 属 屬 戴 穿 睡 起床 锻炼 鍛煉 游泳 散步 钓鱼 釣魚 画 畫 拍 录 錄 弹 彈 怀孕 懷孕 结婚 結婚 离婚 離婚";
/// Beginnings of a clause that gives a reason, a result or an example.
const BOUND: &str = "所以 因为 因為 因此 结果 結果 就 才 却 卻 于是 於是 以便 免得 否则 否則 不然 可是 只是 是 毕竟 畢竟 反正 除了 比如 例如 像 包括 尤其 特别 特別 \
    也就是 即 其中 而是 而 连 連 再 算是 帮 幫 请 請 麻烦 麻煩 能不能 可不可以 会不会 會不會 要不要 是不是 有没有 有沒有 怎么 怎麼 不要 别 別 \
    你 您";
/// Words after which all of a sentence stands under a condition or a report.
const SCOPES: &str = "如果 要是 假如 万一 萬一 虽然 雖然 尽管 儘管 既然 只要 即使 哪怕 除非 因为 因為 由于 由於 为了 為了 听说 聽說 觉得 覺得 认为 認為 以为 以為 希望 \
    告诉 告訴 据说 據說 说 說 问 問 猜 怕 担心 擔心 不是";
/// Words that introduce somebody: the next clause may be about them.
const INTRODUCES: &str =
    "有个 有個 有一个 有一個 有位 有一位 有两个 有兩個 带了个 帶了個 认识 認識 找了 请了 請了";
/// Ends of a clause that belongs to the next one.
const OPEN_ENDS: &str = "时 時 时候 時候 的话 的話 后 後 以后 以後 之后 之後 之前 以前 前 ： :";
/// Words that need the clause before them.
const BACKWARD: [char; 13] = ['它', '他', '她', '牠', '这', '這', '那', '其', '该', '該', '吗', '呢', '？'];
/// Words for what is to be done. They are carried over with the subject.
const TO_DO: &str = "还需要 還需要 还得 還得 还要 還要 需要 必须 必須 打算 准备 準備 应该 應該 要 得 想";
/// Characters of a clause that stands under a condition, or asks.
const CONDITIONAL: [char; 3] = ['就', '才', '若'];
/// The least number of characters of a fact, without the subject that it takes over.
const LEAST: usize = 3;

pub(super) fn facts(sentence: &str) -> Vec<String> {
    let (body, end) = match sentence.strip_suffix(['。', '.', '！', '!']) {
        Some(body) => (body, &sentence[body.len()..]),
        None => (sentence, ""),
    };
    let clauses = clauses(body);
    if are_todos(&clauses) {
        return clauses.into_iter().map(|clause| format!("{clause}{end}")).collect();
    }
    let Some(first) = clauses.first().filter(|first| speaker(first).is_some()) else { return Vec::new() };
    let mut subject = subject(first);
    let mut found: Vec<String> = vec![first.clone()];
    for clause in &clauses[1..] {
        let before = found.last().map(String::as_str).unwrap_or_default();
        // A clause that cannot stand alone may belong to any of those before it.
        let Some((fact, new)) = next_fact(before, clause, subject.as_deref()) else { return Vec::new() };
        subject = new;
        found.push(fact);
    }
    found.into_iter().map(|fact| format!("{fact}{end}")).collect()
}

/// Whether each clause names something that is to be done, and none of them the speaker: 水管要修，还要给电工打电话.
fn are_todos(clauses: &[String]) -> bool {
    let stands_alone = |clause: &String| {
        is_to_be_done(clause)
            && clause.chars().filter(|c| c.is_alphanumeric()).count() > LEAST
            && speaker(clause).is_none()
            && !clause.contains(BACKWARD)
            && !clause.contains(CONDITIONAL)
            && starts(BOUND, clause).is_none()
            && !SCOPES.split_whitespace().any(|word| clause.contains(word))
            && !OPEN_ENDS.split_whitespace().any(|word| clause.ends_with(word))
    };
    clauses.len() > 1 && clauses.iter().all(stands_alone)
}

/// The clauses between commas, outside quotations and brackets.
fn clauses(body: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut depth = 0_i32;
    let mut characters = body.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '“' | '「' | '『' | '《' | '（' | '(' => depth += 1,
            '”' | '」' | '』' | '》' | '）' | ')' => depth -= 1,
            _ => {}
        }
        let is_digit = |c: Option<&char>| c.is_some_and(char::is_ascii_digit);
        let is_cut = matches!(c, '，' | '；' | ';') || c == ',' && !is_digit(characters.peek());
        if is_cut && depth <= 0 {
            found.push(String::new());
        } else if let Some(last) = found.last_mut() {
            last.push(c);
        }
    }
    let trimmed = found.into_iter().map(|clause| clause.trim().to_owned());
    trimmed.filter(|clause| !clause.is_empty()).collect()
}

fn starts<'l>(list: &'l str, text: &str) -> Option<&'l str> {
    list.split_whitespace().find(|word| text.starts_with(word))
}

fn speaker(clause: &str) -> Option<&'static str> {
    SPEAKER.into_iter().find(|speaker| clause.starts_with(speaker))
}

/// The subject with which a clause begins: the speaker, or somebody who belongs to the speaker. A verb has to follow.
fn subject(clause: &str) -> Option<String> {
    let speaker = speaker(clause)?;
    let rest = &clause[speaker.len()..];
    let is_verbal =
        |rest: &str| [VERBS, BEFORE_VERB, BEFORE_NAME].iter().any(|list| starts(list, rest).is_some());
    let owned = starts(BELONGINGS, rest).filter(|owned| is_verbal(&rest[owned.len()..])).unwrap_or_default();
    let end = speaker.len() + owned.len();
    is_verbal(&clause[end..]).then(|| clause[..end].to_owned())
}

/// A clause as a fact of its own, with the subject that the clauses after it take over.
fn next_fact(before: &str, clause: &str, subject: Option<&str>) -> Option<(String, Option<String>)> {
    let is_open = SCOPES.split_whitespace().any(|word| before.contains(word))
        || OPEN_ENDS.split_whitespace().any(|word| before.ends_with(word));
    let bare = starts(JOINS, clause).map_or(clause, |join| clause[join.len()..].trim_start());
    let is_long = bare.chars().filter(|c| c.is_alphanumeric()).count() >= LEAST;
    if is_open || !is_long || starts(BOUND, bare).is_some() || bare.contains(BACKWARD) {
        return None;
    }
    if speaker(bare).is_some() {
        return Some((bare.to_owned(), self::subject(bare)));
    }
    let subject = subject.filter(|_| !INTRODUCES.split_whitespace().any(|word| before.contains(word)))?;
    let is_speaker = SPEAKER.contains(&subject);
    let belongs = |owned: &str| {
        starts(BEFORE_NAME, &bare[owned.len()..]).or(starts(VERBS, &bare[owned.len()..])).is_some()
    };
    let is_owned = is_speaker && starts(BELONGINGS, bare).is_some_and(belongs);
    let to_do = before.strip_prefix(subject).and_then(|rest| starts(TO_DO, rest));
    let is_verb = starts(VERBS, bare).is_some() && starts(TO_DO, bare).is_none();
    let carried = to_do.filter(|_| is_verb).unwrap_or_default();
    (is_owned || begins_with_verb(bare))
        .then(|| (format!("{subject}{carried}{bare}"), Some(subject.to_owned())))
}

pub(super) fn begins_with_verb(clause: &str) -> bool {
    let mut rest = clause;
    while let Some(word) = starts(BEFORE_VERB, rest) {
        if starts(VERBS, rest).is_some_and(|verb| verb.len() > word.len()) {
            break;
        }
        rest = &rest[word.len()..];
    }
    // 「在…上班」: the verb stands behind what is named.
    let behind = starts(BEFORE_NAME, rest).filter(|word| *word != "是");
    let holds_verb = |word: &str| {
        VERBS.split_whitespace().any(|verb| verb.len() > 3 && rest[word.len()..].ends_with(verb))
    };
    // 「做的人」 is no verb, 「做的是」 is one.
    let is_verb = |verb: &str| {
        let after = &rest[verb.len()..];
        !after.starts_with('的') || after.starts_with("的是")
    };
    starts(VERBS, rest).is_some_and(is_verb) || behind.is_some_and(holds_verb)
}
