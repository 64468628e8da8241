use proptest::prelude::*;

use super::*;
use crate::plan::{Fate, Novelty, TodoEnd};

const NOW: &str = "2024-05-08T12:00:00Z";

fn said<'a>(text: &'a str, name: Option<&'a str>) -> SaidText<'a> {
    SaidText { name, text, at: NOW.parse().unwrap() }
}

fn contents(text: &str) -> Vec<String> {
    extract(&said(text, None)).into_iter().map(|statement| statement.content).collect()
}

fn current(content: &str) -> Known<'_> {
    Known { content, is_current: true }
}

fn reconcile_all(new: &[RuleStatement], known: &[Known<'_>]) -> crate::plan::Plan {
    let new: Vec<_> = new.iter().map(|one| (one.content.as_str(), one.confidence)).collect();
    reconcile(&new, known)
}

#[test]
fn a_question_gets_its_mark() {
    for (text, expected) in [
        ("where is the ladder", "where is the ladder?"),
        ("Where is the ladder. ", "Where is the ladder?"),
        ("谁有钥匙", "谁有钥匙？"),
        ("who has it?", "who has it?"),
        ("谁有钥匙？", "谁有钥匙？"),
        ("the ladder", "the ladder"),
        ("", ""),
    ] {
        assert_eq!(with_question_mark(text), expected);
    }
}

fn check_statements(cases: &[(&str, &[&str])]) {
    for (text, expected) in cases {
        assert_eq!(contents(text), *expected, "{text}");
    }
}

#[test]
fn english_statements_stand_on_their_own() {
    check_statements(&[
        ("My wife is Anne", &["The user's wife is named Anne"]),
        ("I live in Lisbon and work at Siemens.", &["The user lives in Lisbon", "The user works at Siemens"]),
        ("I'm originally from Cork.", &["The user is from Cork"]),
        ("My name is Ada.", &["The user's name is Ada"]),
        ("I like tea and coffee.", &["The user likes tea", "The user likes coffee"]),
        ("I can't stand my neighbour's drums.", &["The user dislikes their neighbour's drums"]),
        ("We have a dog called Rex.", &["The user has a dog named Rex"]),
        ("I used to live in Bonn.", &["The user used to live in Bonn"]),
        ("I don't eat pork.", &["The user does not eat pork"]),
        ("My sister Ana works at Nokia.", &["The user's sister Ana works at Nokia"]),
        ("My birthday is on 3 May.", &["The user's birthday is on 3 May"]),
        (
            "Remind me to call my mother tomorrow.",
            &["The user needs to call their mother tomorrow (2024-05-09)"],
        ),
        ("Let's go with oak for the kitchen.", &["The user decided on oak for the kitchen"]),
        ("Please remember that the spare key is under Olga's mat.", &["The spare key is under Olga's mat"]),
        ("I'm a midwife, not a nurse.", &["The user is a midwife, not nurse"]),
    ]);
}

#[test]
fn english_everyday_statements() {
    check_statements(&[
        ("I've been vegan for about four years.", &["The user is vegan"]),
        (
            "I work night shifts as a paramedic at Mercy Hospital.",
            &["The user works night shifts as a paramedic", "The user works at Mercy Hospital"],
        ),
        (
            "I'm Nadia, 41, a florist from Tartu.",
            &["The user's name is Nadia", "The user is 41 years old", "The user is a florist"],
        ),
        (
            "My allergies: dust, latex and shellfish.",
            &[
                "The user is allergic to dust",
                "The user is allergic to latex",
                "The user is allergic to shellfish",
            ],
        ),
        ("We have a beagle, Otto, who is 5.", &["The user has a beagle named Otto"]),
        ("Call me Max, short for Maximilian.", &["The user's name is Max"]),
        ("I take 5 mg of ramipril every evening.", &["The user takes 5 mg of ramipril every evening"]),
        (
            "I have an interview with Nokia tomorrow at 10.",
            &["The user has an interview with Nokia tomorrow (2024-05-09) at 10"],
        ),
        ("I'm driving to Lyon on Saturday.", &["The user plans to drive to Lyon on Saturday"]),
        ("I'm training for the Oslo triathlon.", &["The user is training for the Oslo triathlon"]),
        (
            "My favourite author used to be Kafka but now it's Woolf.",
            &["The user's favourite author is Woolf, not Kafka"],
        ),
        ("I switched from Chrome to Firefox.", &["The user switched from Chrome to Firefox"]),
        ("My brother Tom just had a baby girl, Ida.", &["The user's brother Tom has a baby girl named Ida"]),
        ("I don't have any pets.", &["The user does not have any pets"]),
        (
            "I was born in Lima but grew up in Cusco.",
            &["The user was born in Lima", "The user grew up in Cusco"],
        ),
        ("My uncle passed away in 2015.", &["The user's uncle passed away in 2015"]),
        ("My wife Lena is pregnant.", &["The user's wife Lena is pregnant"]),
        ("My parents live in Graz.", &["The user's parents live in Graz"]),
        ("My kids do not eat fish.", &["The user's kids do not eat fish"]),
        ("I stopped eating sugar.", &["The user no longer eats sugar"]),
        ("I swim twice a week.", &["The user swims twice a week"]),
    ]);
}

#[test]
fn chinese_everyday_statements() {
    check_statements(&[
        ("我是素食主义者。", &["用户吃素"]),
        ("我吃素已经八年了。", &["用户吃素"]),
        ("我戒酒两年了。", &["用户不再喝酒"]),
        ("我不再喝可乐了，改喝白开水。", &["用户不再喝可乐", "用户改喝白开水"]),
        ("大夫说我其实不对鸡蛋过敏，是对牛奶过敏。", &["用户不对鸡蛋过敏", "用户对牛奶过敏"]),
        ("我下个月去小米上班。", &["用户下个月去小米上班"]),
        ("我们家养了三条狗。", &["用户有三条狗"]),
        ("我妈妈是会计，爸爸已经退休了。", &["用户的妈妈是会计", "用户的爸爸退休了"]),
        ("我们决定下周搬到宁波。", &["用户决定下周搬到宁波"]),
        ("我房租每个月三千二。", &["用户的房租是三千二"]),
        ("我身高一米七，体重六十公斤。", &["用户的身高是一米七", "用户的体重是六十公斤"]),
        ("我妻子怀孕了，预产期九月。", &["用户的妻子怀孕了", "预产期在九月"]),
        ("别再叫我王总了，叫我老王就好。", &["用户叫老王"]),
        ("我喝奶茶不加冰。", &["用户喝奶茶不加冰"]),
        ("我每天早上七点起床跑步。", &["用户每天早上七点起床跑步"]),
        ("我打算明年去德国留学。", &["用户打算明年去德国留学"]),
        ("我以前在百度上班，现在自己创业。", &["用户以前在百度工作", "用户自己创业"]),
        ("我老家在安徽，但是我在广州长大。", &["用户来自安徽", "用户在广州长大"]),
        ("我没有兄弟姐妹。", &["用户没有兄弟姐妹"]),
        ("明天晚上七点要去体检，提醒我一下。", &["用户要明天晚上 (2024-05-09)七点去体检"]),
    ]);
}

#[test]
fn chinese_statements_stand_on_their_own() {
    check_statements(&[
        ("我住在杭州", &["用户住在杭州"]),
        ("我叫林悦，在华为上班。", &["用户叫林悦", "用户在华为工作"]),
        ("我妹妹对芒果过敏。", &["用户的妹妹对芒果过敏"]),
        ("我不喜欢吃香菜", &["用户不喜欢吃香菜"]),
        ("我的房租涨到三千五了", &["用户的房租是三千五"]),
        ("我以前住在西安", &["用户以前住在西安"]),
        ("提醒我明天给我妈打电话", &["用户要明天 (2024-05-09)给妈打电话"]),
        ("我最喜欢的书是《活着》。", &["用户最喜欢的书是《活着》"]),
    ]);
}

#[test]
fn statements_are_in_the_script_of_the_message() {
    check_statements(&[
        ("記住，我對花生過敏", &["用戶對花生過敏"]),
        ("我住在臺北，在電信公司上班。", &["用戶住在臺北", "用戶在電信工作"]),
        ("我不再喜歡喝綠茶了", &["用戶不再喜歡喝綠茶"]),
        ("提醒我明天給媽媽打電話", &["用戶要明天 (2024-05-09)給媽媽打電話"]),
        ("我的房租漲到三千五了", &["用戶的房租是三千五"]),
        ("記住，車鑰匙在頭髮旁邊的後面", &["車鑰匙在頭髮旁邊的後面"]),
        ("我住在台北", &["用户住在台北"]),
    ]);
}

#[test]
fn a_text_without_a_statement_makes_no_memory() {
    let nothing: &[&str] = &[];
    for text in [
        "Hello!",
        "Where do I live?",
        "write me a poem about my cat",
        "If I lived in Rome I'd be happy.",
        "I would love a cat.",
        "She said she lives in Oslo.",
        "error: I could not find my file",
        "```\nI live in Rome\n```",
        "I love it!",
        "I love the colour.",
        "I need to know more.",
        "I almost adopted a puppy.",
        "I nearly moved to Vienna.",
        "I was going to buy a car.",
        "I will be 40 in June.",
        "My guess is that 9 is odd.",
        "My problem is number 4.",
        "我差点买了一辆车。",
        "我本来打算搬到成都。",
        "你好！",
        "我住在哪里？",
        "如果我有钱就好了",
        "帮我写一首诗",
        "他说他在北京工作",
    ] {
        assert_eq!(contents(text), nothing, "{text}");
    }
}

#[test]
fn a_named_speaker_is_called_by_name() {
    let of = |text| extract(&said(text, Some("Ada"))).remove(0).content;
    assert_eq!(of("I live in Lisbon"), "Ada lives in Lisbon");
    assert_eq!(of("My son is called Ben"), "Ada's son is named Ben");
    assert_eq!(of("我住在里斯本"), "Ada住在里斯本");
}

#[test]
fn confidence_says_how_it_was_read() {
    for (text, expected) in [
        ("Remember that I live in Lisbon.", 0.95),
        ("I live in Lisbon.", 0.9),
        ("I moved to Lisbon.", 0.8),
        ("Marta lives in Lisbon.", 0.7),
        ("I think I live in Lisbon.", 0.45),
        ("记住，我住在杭州。", 0.95),
        ("我可能住在杭州。", 0.45),
    ] {
        let statements = extract(&said(text, None));
        assert!((statements[0].confidence - expected).abs() < 1e-6, "{text}: {}", statements[0].confidence);
    }
}

#[test]
fn a_beginning_that_is_named_is_kept() {
    let since = |text| extract(&said(text, None))[0].valid_from.map(|time| time.to_string());
    assert_eq!(since("I moved to Lisbon last March."), Some("2024-03-01T00:00:00Z".to_owned()));
    assert_eq!(since("我上个月搬到苏州了。"), Some("2024-04-01T00:00:00Z".to_owned()));
    assert_eq!(since("I live in Lisbon."), None);
    assert_eq!(
        since("I got married to Jo three years ago in Bath."),
        Some("2021-05-01T00:00:00Z".to_owned())
    );
    assert_eq!(since("I've been vegan for two years."), Some("2022-05-01T00:00:00Z".to_owned()));
    assert_eq!(since("我吃素已经五年了。"), Some("2019-05-01T00:00:00Z".to_owned()));
}

#[test]
fn kinds_are_told_apart() {
    for (text, kind) in [
        ("I live in Lisbon.", StatementKind::Fact),
        ("I love figs.", StatementKind::Preference),
        ("Don't forget to buy stamps.", StatementKind::Todo),
        ("We decided to use Postgres.", StatementKind::Decision),
        ("我们决定用蓝色的", StatementKind::Decision),
        ("记得买邮票", StatementKind::Todo),
    ] {
        assert_eq!(extract(&said(text, None))[0].kind, kind, "{text}");
    }
}

/// The decisions about one known memory and about the message's first statement.
fn fate(known: &str, text: &str) -> (Fate, Novelty) {
    let statements = extract(&said(text, None));
    let plan = reconcile_all(&statements, &[current(known)]);
    plan.check(1, statements.len()).unwrap();
    let novelty = plan.new.first();
    (plan.known[0], *novelty.unwrap_or_else(|| panic!("nothing was read in {text}")))
}

#[test]
fn memories_end_only_for_a_reason() {
    let keep = (Fate::Keep, Novelty::Add);
    let same = (Fate::Keep, Novelty::Duplicate { of: 0 });
    let update = (Fate::Update { by: 0 }, Novelty::Add);
    let delete = (Fate::Delete { by: 0 }, Novelty::Add);
    let end = |how| (Fate::End { by: 0, how }, Novelty::Add);
    for (known, text, expected) in [
        ("The user lives in Porto", "I moved to Lisbon.", update),
        ("User resides in Lisbon", "I'm based in Lisbon.", same),
        ("Lives in Porto", "I live in Lisbon.", update),
        ("The user lives in Porto", "My sister lives in Lisbon.", keep),
        ("The user lives in Porto", "I'm moving to Lisbon in June.", keep),
        ("The user lives in Porto", "I used to live in Lisbon.", keep),
        ("The user lives in Porto", "I live in Portugal.", keep),
        ("The user lives in Porto", "Maybe I live in Lisbon.", keep),
        ("The user lives in Porto and likes tea", "I live in Lisbon.", keep),
        ("The user's favourite colour is green", "My favorite color is blue.", update),
        ("The user's sister is named Anna", "My sister is called Eva.", keep),
        ("The user's sister is named Anna", "My sister is called Eva, not Anna.", update),
        ("The user likes tea", "I don't like tea any more.", delete),
        ("The user likes tea", "I like coffee.", keep),
        ("The user no longer likes tea", "I love tea.", delete),
        ("The user has 2 children", "We have two kids.", same),
        ("The user needs to call the plumber", "I called the plumber.", end(TodoEnd::Done)),
        ("The user needs to call the plumber", "No need to call the plumber.", end(TodoEnd::Dropped)),
        ("The user needs to call the plumber", "I called the bank.", keep),
        ("The user plays chess on Fridays", "I play chess on Sundays now instead of Fridays.", update),
        ("The user plays chess on Fridays", "I play chess on Sundays.", keep),
        ("The user works at Nokia", "I quit my job at Nokia last month.", delete),
        ("The user works at Nokia", "I quit my job at Shell last month.", keep),
        ("The user prefers trains over planes", "I prefer planes over trains.", update),
        ("The user prefers trains over cars", "I prefer planes over trains.", keep),
        ("The user likes beer", "I don't drink beer anymore.", delete),
        ("The user likes beer", "I don't drink wine anymore.", keep),
        ("The user is single", "I am dating Jo.", update),
        ("The user is married", "My sister is dating Jo.", keep),
        ("The user's car is a Polo", "I sold my car.", delete),
        ("The user's car is a Polo", "I sold my old car.", keep),
        ("The user's son Max is 4 years old", "Max turned 5 yesterday.", update),
        ("The user's son Max is 4 years old", "Ben turned 5 yesterday.", keep),
        ("The user has a cat named Miso", "My cat Miso died last week.", delete),
        ("The user has a cat named Miso", "My cat Tofu died last week.", keep),
        ("The user's father is named Karl", "My father Karl died last week.", keep),
        ("The user likes techno", "I really love techno music.", same),
        ("用户喜欢喝可乐", "我不喝可乐了", delete),
        ("用户吃素", "我不吃素了", delete),
        ("用户的女朋友叫小雪", "我跟小雪分手了", delete),
        ("用户的女朋友叫小雪", "我跟女朋友分手了", delete),
        ("用户的车是丰田", "我把车卖了", delete),
        ("用户有猫叫豆豆", "豆豆上个月走了", delete),
        ("用户住在嘉义", "不對，我說錯了，是搬到台中", update),
        ("用户要买鸡蛋", "鸡蛋买好了", end(TodoEnd::Done)),
        ("用户34岁", "我昨天刚过35岁生日", update),
        ("用户在学德语", "我不学德语了，改学日语", delete),
        ("用户住在杭州", "我搬到苏州了", update),
        ("用戶居住在杭州", "我住在杭州", same),
        ("用户对花生过敏", "我對花生過敏", same),
        ("用戶喜歡喝茶", "我不再喜欢喝茶了", delete),
        ("用户住在苏州", "我搬到臺北了", update),
        ("用户住在杭州", "我姐姐住在苏州", keep),
        ("用户喜欢喝茶", "我不再喜欢喝茶了", delete),
        ("用户要预约牙医", "不用预约牙医了", end(TodoEnd::Dropped)),
        ("用户的同事37岁", "我同事今年40岁", keep),
    ] {
        assert_eq!(fate(known, text), expected, "{known} <- {text}");
    }
}

#[test]
fn a_closed_memory_stays_unchanged() {
    let mut closed = current("The user lives in Lisbon");
    closed.is_current = false;
    let statements = extract(&said("I live in Lisbon.", None));
    assert_eq!(reconcile_all(&statements, &[closed]), Plan::add_all(1, 1));
}

#[test]
fn two_todos_that_fit_alike_both_stay() {
    let known =
        [current("The user needs to write the report"), current("The user needs to print the report")];
    let statements = extract(&said("Forget about the report.", None));
    assert_eq!(reconcile_all(&statements, &known), Plan::add_all(2, 1));
}

/// Parts of sentences, so that random texts reach the rules more often.
fn talk() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        prop::sample::select(vec![
            "I ",
            "my ",
            "the user ",
            "live in ",
            "Lisbon",
            "not ",
            "no longer ",
            "used to ",
            "like ",
            "tea",
            ", ",
            ". ",
            "and ",
            "instead of ",
            "need to ",
            "call ",
            "is ",
            "named ",
            "Anna",
            "'s ",
            "now",
            "'t ",
            "moved to ",
            "我",
            "不",
            "喜欢",
            "住在",
            "杭州",
            "了",
            "，",
            "。",
            "不是",
            "而是",
            "叫",
            "从",
            "改成",
            "提醒我",
            "已经",
            "妹妹",
            "的",
            "最",
            "\"",
            "3",
            "”",
        ])
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

#[test]
fn a_name_that_holds_no_letter_does_not_replace_itself() {
    let statements = extract(&said("叫我\u{e000}", None));
    let plan = reconcile_all(&statements, &[current(&statements[0].content)]);
    assert_eq!((plan.known, plan.new), (vec![Fate::Keep], vec![Novelty::Duplicate { of: 0 }]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_is_said_the_plan_is_complete(text in talk(), others in proptest::collection::vec(talk(), 0..4)) {
        let statements = extract(&said(&text, None));
        prop_assert!(statements.len() <= MAX_STATEMENTS);
        prop_assert!(statements.iter().all(|one| !one.content.is_empty() && (0.0..=1.0).contains(&one.confidence)));
        let known: Vec<Known<'_>> = others.iter().map(|content| current(content)).collect();
        let plan = reconcile_all(&statements, &known);
        prop_assert!(plan.check(known.len(), statements.len()).is_ok(), "{:?}", plan);
    }

    /// An extracted statement is a duplicate of itself: the grammar can read its own output.
    #[test]
    fn a_repeated_statement_is_kept_once(text in talk()) {
        let statements = extract(&said(&text, None));
        let known: Vec<Known<'_>> = statements.iter().map(|one| current(&one.content)).collect();
        for (place, statement) in statements.iter().enumerate() {
            let plan = reconcile_all(std::slice::from_ref(statement), &known[place..=place]);
            prop_assert_eq!(&plan.known, &vec![Fate::Keep], "{:?}", statement.content);
        }
    }
}
