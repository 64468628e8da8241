use super::*;

fn check(says: bool, texts: &[&str]) {
    let wrong: Vec<&&str> = texts.iter().filter(|text| has_content(text) != says).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn courtesies_and_sounds_say_nothing() {
    check(
        false,
        &[
            "",
            " ",
            "…",
            "👍",
            "👍🎉",
            "ok",
            "OK.",
            "Okay!",
            "k",
            "okkk",
            "thanks!",
            "Thank you so much!",
            "thx",
            "Thanks for your help!",
            "Thanks for letting me know.",
            "yes",
            "No.",
            "Yep, sure",
            "haha",
            "Hahahaha",
            "lol",
            "hmm…",
            "Hmmmm",
            "Hi!",
            "hello there",
            "hey, good morning!",
            "Good night!",
            "See you later!",
            "Have a great weekend!",
            "Great.",
            "That's awesome!",
            "Wow, that sounds amazing!",
            "Sounds good to me.",
            "You're welcome!",
            "No problem at all.",
            "I see.",
            "Got it, thanks",
            "Me too!",
            "I do.",
            "It is.",
            "I don't know.",
            "I won't.",
            "I will remember that.",
            "I'm sorry, I don't have that information.",
            "Not really",
            "Sure, go ahead.",
            "of course",
            "Hi Anna!",
            "Thanks, Mel!",
            "hey Priya",
            "Good morning, Tomás!",
            "Congrats, Yuki!",
            "Never mind.",
            "Let me know if you have any questions!",
        ],
    );
    check(
        false,
        &[
            "好的",
            "好",
            "好呀！",
            "嗯",
            "嗯嗯",
            "哈哈",
            "哈哈哈哈",
            "谢谢！",
            "謝謝你",
            "非常感谢您",
            "不客气",
            "你好",
            "早上好！",
            "晚安",
            "晚安，小李",
            "你好，王芳！",
            "再见",
            "是的。",
            "对",
            "没错",
            "知道了",
            "我知道了",
            "明白了",
            "收到",
            "太好了！",
            "没关系",
            "不用谢",
            "可以",
            "我也是",
            "我不知道。",
            "真的吗？",
            "辛苦了",
            "拜拜～",
        ],
    );
}

#[test]
fn bare_questions_say_nothing() {
    check(
        false,
        &[
            "where is it?",
            "Why?",
            "Really?",
            "what do you think",
            "How was it?",
            "And you?",
            "who is that?",
            "What's her name?",
            "Where does my aunt work?",
            "what is the wifi password",
            "When is the deadline?",
            "Did you see it?",
            "Do you like jazz?",
            "Can you help me?",
            "Is there anything else?",
            "Oslo?",
            "How do I do that?",
            "Which one?",
            "ok, but why?",
            "Where are my keys? Do you know?",
            "它在哪里？",
            "为什么？",
            "你觉得呢？",
            "谁？",
            "什么时候？",
            "我的护照在哪儿？",
            "你喜欢吗？",
            "几点了",
            "请问密码是多少",
            "是什么？",
        ],
    );
}

#[test]
fn short_answers_say_something() {
    check(
        true,
        &[
            "Porto",
            "4417",
            "blue",
            "Tuesday",
            "Yes, on Friday.",
            "No, salmon.",
            "tomorrow",
            "vegan",
            "my sister",
            "In Oslo.",
            "B12",
            "It was great!",
            "I moved.",
            "We won!",
            "I quit.",
            "Ok, the blue one",
            "Thanks for the recipe!",
            "Good morning! I slept badly.",
            "Hi Anna, the train is late.",
            "Thanks, the flight lands at 9",
            "My name is Li",
            "I hate mushrooms",
            "Sorry, Tuesday.",
            "波尔图",
            "蓝色",
            "好的，周五见面",
            "我住在成都",
            "4417号",
            "谢谢，我已经到家了",
            "早上好，今天我要去医院",
            "是红色的",
            "我姐姐",
            "不吃香菜",
        ],
    );
}

#[test]
fn a_question_that_carries_facts_says_something() {
    check(
        true,
        &[
            "Did I tell you that my brother Jonas moved to Oslo?",
            "Do you know that Kenji adopted a greyhound?",
            "Is my locker code 4417?",
            "My locker code is 4417, right?",
            "You're vegetarian, right?",
            "What can I bake for my gluten-free nephew's birthday party?",
            "I bought a kayak. What do you think?",
            "Have you met my cousin Priya?",
            "我跟你说过我哥哥搬到奥斯陆了吗？",
            "我的密码是4417，对吧？",
            "我买了一艘皮划艇。你觉得怎么样？",
            "我下个月要去冰岛旅行两周，该带什么衣服？",
        ],
    );
}

#[test]
fn long_texts_are_not_read() {
    check(true, &["ok ".repeat(100).as_str()]);
    assert!(!is_courtesy(&"thanks ".repeat(100)));
}

#[test]
fn a_courtesy_is_neither_a_question_nor_a_statement() {
    let cases = [
        ("hey, good morning!", true),
        ("Thanks!", true),
        ("ok", true),
        ("hello", true),
        ("How are you?", true),
        ("hi there, how are you doing today?", true),
        ("what's up?", true),
        ("Thank you, that was very helpful.", false),
        ("Hi Anna!", true),
        ("👍", false),
        ("哈哈", true),
        ("早上好", true),
        ("谢谢，再见！", true),
        ("where is it?", false),
        ("ok, where is it?", false),
        ("hello, where do I live?", false),
        ("thanks, book the flight", false),
        ("Porto", false),
        ("你好，我住在哪里？", false),
        ("really?", false),
        ("", false),
    ];
    let wrong: Vec<_> = cases.iter().filter(|(text, courteous)| is_courtesy(text) != *courteous).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
