//! English verbs, as far as they mark the beginning of a clause.

/// Verbs in the base form. A word that is as often a noun stands here only if it takes an object as a verb.
const BASE: &str = "live work keep have own use love hate like prefer want need play teach study learn speak read write drive ride fly sail swim \
    run walk cycle climb ski dance sing draw paint cook bake eat drink smoke sleep wake wear carry collect grow raise breed feed train coach \
    volunteer commute travel rent lease lend borrow buy sell pay owe earn save spend invest donate order ship send mail post receive get take \
    bring fetch pick drop return give make build fix repair mend replace install remove clean wash iron sweep vacuum water mow trim prune plant \
    dig move rename renew apply register enrol enroll sign submit file book reserve schedule cancel confirm call ring phone text email message \
    contact ask tell meet visit see watch hear listen attend join leave quit start begin stop finish complete update upgrade migrate deploy \
    release test review merge check verify measure count find look print copy scan upload download back charge refill top change swap switch \
    choose decide plan prepare organise organize arrange host invite celebrate manage lead run own maintain support serve help care babysit \
    practise practice exercise lift stretch hike camp fish hunt garden knit sew weave brew ferment can pack unpack store hang assemble \
    come go stay sit stand turn open close lock set put hold win lose break cut shave brush dye track log avoid skip hand tidy sort recycle \
    translate edit publish record shoot film stream host code program design draft";

/// Verbs of the third person that are seldom nouns.
const THIRD: &str = "lives works likes loves hates needs wants keeps teaches studies speaks owns prefers goes drives eats takes gets makes gives \
    comes sells buys pays sings reads writes wears brings owes has does sits stands stays moves starts begins ends costs earns rents grows \
    raises swims cooks bakes manages leads uses plays runs helps attends collects drinks learns listens opens closes meets";

/// Forms of verbs that need no other sign: auxiliaries and copulas.
const AUXILIARY: &str = "am is are was were isn't aren't wasn't weren't has hasn't had hadn't have haven't can can't cannot could couldn't will won't would \
    wouldn't should shouldn't must mustn't may might does doesn't do don't did didn't";

/// Irregular pasts.
const PAST: &str = "went got came became bought broke chose drove drank ate flew gave grew kept left lost made met paid quit rode ran sold sent sang \
    spoke spent swam took taught wore wrote began found brought caught built cut put set read held led lent won drew fed threw had began gave hung \
    slept stood stuck told thought felt knew saw said heard fell forgot hid";
/// Words that end like a past and are none.
const NO_PAST: &str = "need feed speed bleed breed proceed succeed exceed heed seed weed embed shed wed bed red indeed hundred kindred sacred naked";

fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|other| other == word)
}

pub(in crate::statements) fn is_base(word: &str) -> bool {
    is_in(BASE, word)
}

pub(super) fn is_third(word: &str) -> bool {
    is_in(THIRD, word)
}

pub(super) fn is_auxiliary(word: &str) -> bool {
    is_in(AUXILIARY, word)
}

pub(in crate::statements) fn is_past(word: &str) -> bool {
    is_in(PAST, word) || word.len() > 3 && word.ends_with("ed") && !is_in(NO_PAST, word)
}

/// Whether a word is a verb in a form that can make a sentence.
pub(in crate::statements) fn is_verb(word: &str) -> bool {
    let is_contracted = word.split_once('\'').is_some_and(|(stem, ending)| {
        matches!(ending, "m" | "re" | "ve" | "ll" | "d")
            || ending == "s" && is_in("he she it that there here what who let", stem)
    });
    is_contracted
        || is_in("im ive dont cant gotta gonna wanna let be", word)
        || [is_auxiliary, is_base, is_third, is_past].iter().any(|is| is(word))
}

/// Whether a word is a verb that only a subject goes with: «is», «works», «moved», but not «work».
pub(in crate::statements) fn is_finite(word: &str) -> bool {
    is_auxiliary(word) || is_third(word) || is_past(word)
}

/// Determiners, and words that stand for them.
const DETERMINER: &str = "a an the my our your some any every each all both two three four five six seven eight nine ten several many few another no \
    other most own";
/// Words in «-s» that name nothing.
const NO_PLURAL: &str = "this is was has does its his yes always sometimes perhaps besides across plus thus as us towards afterwards nowadays hers theirs yours thanks congrats cheers congratulations";

/// Whether the word at a place begins to name something: a determiner, a number, or a noun in the plural.
pub(in crate::statements) fn names_something(words: &[String], place: usize) -> bool {
    let word = words[place].as_str();
    let is_plural = word.len() > 3
        && word.ends_with('s')
        && !word.ends_with("ss")
        && !word.contains('\'')
        && !is_in(NO_PLURAL, word)
        && !is_third(word);
    // «Some of these», «one of them».
    let is_share =
        !is_in("a an the my our your", word) && words.get(place + 1).is_some_and(|next| next == "of");
    is_in(DETERMINER, word) && !is_share || is_plural || word.starts_with(|c: char| c.is_ascii_digit())
}
