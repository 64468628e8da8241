//! The rules for English predicates: one rule per line, over predicates with the verb in its base form.
//!
//! A pattern begins at the verb («live in Lisbon», «be allergic to nuts»). `KIN`, `THING`, `JOB`, `NUM`, `LANG` and
//! `SPORT` stand for the word lists of [`super::words`]. The first rule that matches is used, so the narrow ones come
//! first. A new rule needs a line here and a case in the tests of the parent module; the same rule must be able to read
//! the sentence that it produces.

use super::super::claim::{Arity, Rule, Verb};
use crate::rules::StatementKind;

macro_rules! rules {
    ($($slot:literal $kind:ident $arity:ident $verb:ident $pattern:literal => $say:literal;)*) => {
        &[$(Rule { slot: $slot, pattern: $pattern, say: $say, kind: StatementKind::$kind, arity: Arity::$arity, verb: Verb::$verb }),*]
    };
}

/// Statements about people.
pub(super) const RULES: &[Rule] = rules! {
    // Places.
    "home" Fact One State r"(?:live|reside|be (?:based|located|settled)|settle(?: down)?) in (?<v>PLACE)(?<t> (?:with|for|near|since|as|by|on|together|right) .*)?" => "live in {v}{t}";
    "home" Fact One Begin r"(?:move|relocate)(?: back| over| house)?(?: from (?<o>PLACE))?(?: back)? to (?<v>PLACE)(?<t> (?:with|for|as) .*)?" => "live in {v}{t}";
    "home" Fact One End r"move (?:away from|out of) (?<v>PLACE)" => "live in {v}";
    "origin" Fact One State r"(?:be|come) (?:originally )?from (?<v>PLACE)" => "be from {v}";
    "childhood" Fact Many Deed r"(?:grow up|be raised) in (?<v>PLACE)" => "grew up in {v}";
    "birth year" Fact One Deed r"be born in (?<v>\d{4})" => "was born in {v}";
    "birthplace" Fact One Deed r"be born in (?<v>PLACE)" => "was born in {v}";
    "birthday" Fact One Deed r"be born on (?<v>.+)" => "was born on {v}";
    "citizenship" Fact Many State r"be a (?:citizen|national) of (?<v>PLACE)" => "be a citizen of {v}";
    // Statements about a person or thing with a name.
    "{n}" Fact One Deed r"be (?<n>(?:developed|founded|created|written|directed|produced|invented|performed|owned|designed|built|discovered|published|composed|painted|headquartered|located|manufactured|edited) (?:by|in|at)) (?<v>.+)" => "was {n} {v}";
    // Work and study.
    "employer" Fact One State r"(?:work|be employed|be a JOB|work as an? [\w ]+?) (?:at|for|by) (?<v>ORG)(?<t> (?:as|in|on|since|doing|from) .*)?" => "work at {v}{t}";
    "employer" Fact One Begin r"(?:join|(?:start|get|take|accept|land)(?: working| work| (?:a|my|the)(?: \w+)? (?:job|position|role)) (?:at|with|for)|start at|switch(?: jobs)? to) (?<v>NAMED)(?<t> (?:as|in) .*)?" => "work at {v}{t}";
    "employer" Fact One End r"(?:leave|quit|lose|resign from) (?:my|our|their|his|her|the) (?:old )?(?:job|position|role|post) (?:at|with|in) (?<v>(?:the )?NAMED|the \w+)" => "work at {v}";
    "employer" Fact One End r"(?:leave|quit|resign from|be (?:fired|laid off) from) (?<v>NAMED)" => "work at {v}";
    "employer" Fact One End r"(?:(?:leave|quit|lose) (?:my|their|his|her|the) (?<v>)job|(?:get|be) (?:fired|laid off))" => "work at the same job";
    "occupation" Fact One State r"(?:work|be employed)(?<n> (?:night|day|early|late) shifts| part-time| full-time| nights)? as (?:an? )?(?<v>[\w -]+?)(?<t> (?:at|for|in|with|on) .*)?" => "work{n} as a {v}{t}";
    "occupation" Fact One Begin r"(?:(?:start|begin)(?: work(?:ing)?| a(?: new)? job)? as|get promoted to|be promoted to|become|train as|retrain as) (?:an? )?(?<v>JOB)(?<t> (?:at|for|in) .*)?" => "work as a {v}{t}";
    "occupation" Fact Soft State r"be (?:currently )?an? (?<v>JOB)(?<t> (?:at|for|in|by|with|who) .*)?" => "be a {v}{t}";
    "status" Fact Many State r"be (?<v>retired|unemployed|self-employed|freelance|on parental leave|on sabbatical|between jobs)" => "be {v}";
    "status" Fact Many Begin r"(?<v>retire)" => "be retired";
    "school" Fact One State r"(?:study|go to (?:school|college|university|uni)|attend|be a student|be enrolled)(?: at| in)? (?<v>(?:the )?NAMED)" => "study at {v}";
    "field" Fact One State r"(?:study|major in|be majoring in|be a student of) (?<v>[\w ]+?)(?<t> (?:at|in|with) .*)?" => "study {v}{t}";
    "degree" Fact Many Deed r"graduate (?:from |in |with )(?<v>.+)" => "graduated from {v}";
    "income" Fact One State r"(?:earn|make) (?<v>[^\w]?\d.*)" => "earn {v}";
    // People, pets and things.
    "name" Fact One State r"(?:be (?:called|named)|go by) (?<v>NAMED)" => "be called {v}";
    "name of {n}" Fact Many State r"(?:have|own|get|adopt) (?:an?|one|another|two|my|the)(?: \w+)?? (?<n>KIN)(?: who is| that is|,)? (?:called|named) (?<v>.+)" => "have a {n} named {v}";
    "number of {n}" Fact One State r"have (?:got )?(?<v>NUM) (?:\w+ )??(?<n>KIN|THING)" => "have {v} {n}";
    "children" Fact Many Begin r"have (?:an? )?(?<v>baby(?: boy| girl)?|(?:little |baby )(?:boy|girl))(?:,? (?:named|called)|,) (?<t>NAMED)" => "have a {v} named {t}";
    "children" Fact Many Begin r"have an? (?<v>baby(?: boy| girl)?)" => "have a {v}";
    "has" Fact Many State r"have any (?<v>KIN|THING)" => "have any {v}";
    "spouse" Fact One Begin r"get married to (?<v>NAMED)(?<t> in .*)?" => "be married to {v}";
    "spouse" Fact One State r"be married to (?<v>NAMED)" => "be married to {v}";
    "partner" Fact One State r"(?:be dating|be engaged to|date|be in a relationship with|be going out with) (?<v>NAMED)" => "be dating {v}";
    "partner" Fact One End r"(?:break up|split up|separate|get divorced|divorce)(?: with| from)? (?<v>NAMED)" => "be together with {v}";
    "partner" Fact One State r"be together with (?<v>NAMED)" => "be together with {v}";
    "partner" Fact One State r"be together with (?:my|their|his|her) (?<n>KIN)(?<v>)" => "be together with their {n}";
    "partner" Fact One End r"(?:break up|split up|separate) with (?:my|their|his|her) (?<n>KIN)(?<v>)" => "be together with their {n}";
    "marital status" Fact One State r"be (?:now )?(?<v>single|married|engaged|divorced|widowed|separated)" => "be {v}";
    "marital status" Fact One Begin r"get (?<v>married|engaged|divorced)(?<t> (?:to|in|on|last|this) .*)?" => "be {v}{t}";
    "vehicle" Fact Soft State r"drive (?:an?|the) (?<v>.+)" => "drive a {v}";
    "owned" Fact Many State r"own the (?<t>old )?(?<v>.+)" => "own the {t}{v}";
    "has" Fact Many State r"(?:have|own|keep) (?:an?|the|some) (?<v>(?:\w+ ){0,2}(?:KIN|THING))" => "have a {v}";
    "has" Fact Many Begin r"(?:buy|get|adopt) (?:my(?:self)? )?(?:an?|some) (?<v>(?:[\w-]+ ){0,3}(?:KIN|THING))(?<t> (?:called|named|from|for) .*)?" => "have a {v}{t}";
    "owned" Fact Many End r"(?:sell|give away|trade in|lose|get rid of) (?:my|our|the|their) (?<t>old )?(?<v>(?:[\w-]+ ?){1,3})" => "own the {t}{v}";
    // Body and health.
    "age" Fact One State r"be (?<v>NUM)(?: years? old| years of age)?" => "be {v} years old";
    "age" Fact One Begin r"turn (?<v>NUM)" => "be {v} years old";
    "weight" Fact One State r"weigh (?<v>.*\d.*)" => "weigh {v}";
    "height" Fact One State r"be (?<v>\d[\d.' ]*(?:cm|m|feet|ft|inches)?) tall" => "be {v} tall";
    "allergy" Fact Many State r"(?:be|get) (?:\w+ly )?allergic to (?<v>.+)" => "be allergic to {v}";
    "allergy" Fact Many State r"have an? (?:\w+ )?(?<v>\w+) allergy" => "be allergic to {v}";
    "allergy" Fact Many State r"have an? (?:\w+ )?allergy to (?<v>.+)" => "be allergic to {v}";
    "diet" Preference One State r"be (?:an? )?(?<v>vegan|vegetarian|pescatarian|flexitarian|omnivore|carnivore)" => "be {v}";
    "diet" Preference One Begin r"(?:go|become|turn) (?:an? )?(?<v>vegan|vegetarian|pescatarian|flexitarian)" => "be {v}";
    "expecting" Fact Many State r"be (?:\w+ )?(?<v>pregnant)(?<t> with .*)?" => "be {v}{t}";
    "health" Fact Many State r"be (?<v>HEALTH(?:(?:,|,? and) HEALTH)*)" => "be {v}";
    "health" Fact Many State r"(?:have|suffer from) (?<v>(?:an? )?(?:\w+ )?(?:intolerance|diabetes|asthma|adhd|dyslexia|celiac|coeliac|migraines|insomnia|epilepsy|arthritis|eczema|anemia|anaemia)(?: disease)?)" => "have {v}";
    "health" Fact Many State r"have the condition: (?<v>.+)" => "have the condition: {v}";
    "fear" Fact Many State r"be (?:\w+ )?(?:afraid|scared|terrified) of (?<v>.+)" => "be afraid of {v}";
    "eat" Preference Many State r"(?:eat or )?(?<n>eat|drink) (?:any )?(?<v>\w+(?: \w+)?)" => "{n} {v}";
    "eat" Preference Many Opposite r"avoid (?:eating |drinking )?(?<v>\w+(?: \w+)?)" => "avoid {v}";
    "routine" Fact Many State r"(?<v>take \d[\d.,]* ?(?:mg|mcg|g|ml|iu|units?|tablets?|pills?|drops|capsules?)(?: of)? [\w -]+?)(?<t> (?:every|each|daily|once|twice|three times|in the|at|before|after|with) ?.*)?" => "{v}{t}";
    "routine" Fact Many State r"(?<v>(?:take|run|jog|swim|cycle|walk|meditate|practi[sc]e|work out|exercise|train|get up|wake up|go|do|teach|volunteer|cook|bake|read|write)\b(?: [\w'-]+){0,4}?)(?<t> (?:every (?:single )?(?:other )?(?:day|morning|evening|night|afternoon|week|weekday|weekend|month|year|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)|daily|(?:once|twice|three times|four times|five times) a (?:day|week|month|year)|on (?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days)(?: .*)?)" => "{v}{t}";
    "habit" Fact Many State r"(?<v>smoke|drink)(?: cigarettes| alcohol)?" => "{v}";
    // Tastes and skills.
    "favourite" Preference Many State r"prefer (?<v>.+?)(?<t> (?:to|over|rather than) .+)?" => "prefer {v}{t}";
    "like" Preference Many Opposite r"(?:hate|dislike|loathe|despise|detest|can not (?:stand|bear)|be not a (?:big |huge )?fan of) (?:to )?(?<v>.+)" => "dislike {v}";
    "like" Preference Many State r"(?:like|love|enjoy|adore|be (?:really |so |very )?(?:into|fond of|keen on|crazy about|obsessed with|passionate about)|be an? (?:\w+ )?(?:fan|lover) of) (?:to )?(?<v>.+)" => "like {v}";
    "like" Preference Many Begin r"fall in love with (?<v>.+)" => "like {v}";
    "language" Fact Many State r"(?:speak|be fluent in|be a native speaker of) (?:(?:fluent|native|some|good|a little|a bit of) )?(?<v>LANG)(?<t> (?:at|with|fluently|natively|every) ?.*)?" => "speak {v}{t}";
    "learning" Fact Many State r"(?:learn|take up|be taking up|practi[sc]e) (?:to (?:play |speak |do )?|how to )?(?<v>(?:the )?(?:LANG|SPORT|SKILL))(?<t> (?:for|at|with|every|on|in|by) .*)?" => "learn {v}{t}";
    "plays" Fact Many State r"play (?<v>(?:the )?SPORT)(?<t> (?:in|for|with|at|on|every) .*)?" => "play {v}{t}";
    "training" Fact Many State r"(?:train|prepare|study) for (?<v>(?:the |an? |my |their |our )?[\w' -]*?(?:marathon|triathlon|ironman|race|exam|exams|test|competition|tournament|championship|10k|5k|finals|licen[cs]e|certification)(?: in .*| on .*| next .*)?)" => "be training for {v}";
    "uses" Fact Many Deed r"(?:switch|change|move|migrate) (?:over )?from (?<o>[\w ]+?) to (?<v>NAMED)" => "switched from {o} to {v}";
    "uses" Fact Many State r"use (?<v>(?:an? |the )?NAMED)(?<t> (?:for|at|on|as) .*)?" => "use {v}{t}";
    "team" Preference Soft State r"(?:support|be a supporter of) (?<v>NAMED)" => "support {v}";
    "collects" Fact Many State r"collect (?<v>.+)" => "collect {v}";
    // Decisions, todos, plans.
    "decision for {n}" Decision One Deed r"decide (?<v>(?:to (?:use|take|have|go with|hire|pick|choose)|on) .+?) for (?<n>.+?)(?: (?:instead|rather than)(?: of (?<o>.+))?)?" => "decided {v} for {n}";
    "decision" Decision Many Deed r"decide (?<v>(?:not to|against|to|on|that) .+?)(?: (?:instead of|rather than|over) (?<o>.+))?" => "decided {v}";
    "decision" Decision Many Deed r"(?:choose|pick|go with|settle on) (?<v>.+?)(?: (?:instead of|rather than|over) (?<o>.+))?" => "decided on {v}";
    "todo" Todo Many Todo r"(?:need to|have to|have got to|must|get to remember to) (?<v>[a-z].+)" => "need to {v}";
    "todo" Todo Many Drop r"call off the (?<v>.+)" => "called off the {v}";
    "todo" Todo Many Did r"(?:finish|complete|be (?:finally )?(?:done|finished) with) (?:with )?(?<v>(?:the|my|our|that|all|writing|doing|reading|painting|packing|their|his|her) ?.+)" => "finished {v}";
    "todo" Fact Many Did r"(?<v>(?:send|submit|post|mail|email|return|file|clean|fix|order|cancel|sign|print|deliver|schedule|wash|water|call|book|renew|pay|buy|pick up|take out|drop off|hand in) (?:(?:the|my|our|some|a|an|their|his|her|that|new) )?\w.*)" => "{v}";
    "goal" Fact Many Plan r"(?:want|hope|intend|dream) (?:to|of) (?<v>(?:learn|become|visit|travel|move|buy|start|run|write|open|retire|study|go to|live in)\b .+)" => "want to {v}";
    "plan" Fact Many Plan r"plan (?:to|on) (?<v>.+)" => "plan to {v}";
};

/// Statements about a possession or an appointment: the subject is the slot.
pub(super) const OF_THINGS: &[Rule] = rules! {
    "name of {n}" Fact Many State r"be (?:called|named) (?<v>.+)" => "be named {v}";
    "{n} when" Fact One Begin r"(?:be (?:moved|rescheduled|postponed|pushed(?: back)?|brought forward|delayed|changed|bumped|now)|move|get (?:moved|rescheduled|postponed|pushed back)) (?:from .+ )?(?:to|until|till|for) (?<v>.+)" => "be on {v}";
    "{n} when" Fact One State r"be (?:scheduled |set |planned |now )?(?:for |on |at |in )(?<v>WHEN.*)" => "be on {v}";
    "{n} when" Fact One State r"be (?:now )?(?<v>(?:WHEN|tomorrow|next|this|today).*)" => "be {v}";
    "{n}" Fact One Begin r"(?:be (?:raised|increased|reduced|lowered|cut|changed)|go (?:up|down)|increase|decrease|rise|drop|fall|climb|change|grow) (?:from .+ )?to (?<v>.+)" => "be {v}";
    "{n}" Fact One State r"(?:be|become|cost) (?:now |currently |about |around |roughly )?(?<v>.+)" => "be {v}";
};

/// Sentences that say the same in another form, and the form that the tables read.
pub(super) const REWRITES: &[(&str, &str)] = &[
    (r"^(?:please )?(?:also )?remind me (?:to|that i (?:need|have) to) (?<v>.+)$", "I need to $v"),
    (
        r"^(?:please )?(?:do not|never) (?:let me )?forget (?:to|that i (?:need|have) to|i (?:need|have) to) (?<v>.+)$",
        "I need to $v",
    ),
    (r"^i (?:must|should|can) not forget to (?<v>.+)$", "I need to $v"),
    (r"^(?:note to self:? |to-?do:? |remember to )(?<v>.+)$", "I need to $v"),
    (r"^i still (?:need|have) to (?<v>.+)$", "I need to $v"),
    (
        r"^(?:please )?(?:just )?(?:forget|scrap|skip|drop|ignore|cancel) (?:about )?(?:the|my|that|our) (?<v>.+)$",
        "I called off the $v",
    ),
    (r"^never mind (?:about )?(?:the|my|our) (?<v>.+)$", "I called off the $v"),
    (
        r"^(?:there is )?no (?:longer any )?need to (?<v>.+?)(?: any ?more| after all)?$",
        "I no longer need to $v",
    ),
    (r"^(?:i am |we are )?(?:done|finished) with (?<v>.+)$", "I finished the $v"),
    (
        r"^(?:the|my|our) (?<v>[\w ]+?) (?:is|are|has been|have been) (?:now |finally |already |all )?(?:done|finished|completed|sent|submitted|paid|booked|sorted|sorted out|handed in)$",
        "I finished the $v",
    ),
    (
        r"^(?:please )?(?:just )?call me (?-i:(?<v>[A-Z]\w+))(?:,? (?:please|short for .*|instead))?$",
        "My name is $v",
    ),
    (
        r"^(?<s>i|we) have no (?<v>siblings|brothers|sisters|brothers or sisters|children|kids|pets|car|cats|dogs)$",
        "$s do not have any $v",
    ),
    (r"^(?:everyone|everybody|people|friends|my friends) calls? me (?<v>[A-Z]\w+)$", "My name is $v"),
    (
        r"^(?:ok(?:ay)?,? )?let us (?:go with|use|pick|choose|take|settle on|stick with) (?<v>.+)$",
        "I decided on $v",
    ),
    (r"^(?:we|i) (?:agreed|settled|chose|have agreed|have settled) (?:on|to) (?<v>.+)$", "I decided on $v"),
    (r"^(?:we|i) (?:will|are going to|am going to) (?:go with|use) (?<v>.+)$", "I decided to use $v"),
    (
        r"^(?:we|i) (?:switched|migrated|changed) (?:from (?<o>.+?) )?to (?<v>.+) for (?<n>.+)$",
        "I decided to use $v for $n instead of $o",
    ),
    (
        r"^(?<v>[A-Z]\w+) and i (?:broke up|split up|separated|are no longer together|got divorced)$",
        "I broke up with $v",
    ),
    (
        r"^the (?<n>[a-z][a-z ]{2,30}?) of (?-i:(?<o>[A-Z][\w .'&-]{1,40}?)) (?:is|was) (?-i:(?<v>[A-Z0-9].{0,60}))$",
        "$o's $n is $v",
    ),
    (r"^(?<v>.+) (?:is|are|remains) my (?<n>(?:all-time |absolute |new )?favou?rite .+)$", "My $n is $v"),
    (r"^there is nothing i (?:like|love|enjoy) more than (?<v>.+)$", "I like $v"),
    (r"^my home is (?:now )?in (?<v>.+)$", "I live in $v"),
    (r"^(?:my )?home is (?:now )?(?<v>[A-Z]\w+)$", "I live in $v"),
    (r"^my (?:job|profession|occupation) is (?:being |to be )?an? (?<v>.+)$", "I work as a $v"),
    (r"^my (?:employer|company|workplace) is (?:now )?(?<v>.+)$", "I work at $v"),
    (r"^my (?:native |first |mother )(?:language|tongue) is (?<v>\w+)$", "I speak $v natively"),
    (r"^my (?:hobby is|hobbies are|hobbies include) (?<v>.+)$", "I like $v"),
];
