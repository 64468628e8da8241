//! English questions and texts.

use crate::Pattern;

/// What a question seeks by its form, and what a text of that kind has. Both are folded.
struct Kind {
    asked: Pattern,
    told: Pattern,
}

const NUMBER: &str = "(?:[0-9]+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|[a-z]+teen|[a-z]+ty(?:-[a-z]+)?)";

static AGE: Kind = Kind {
    asked: Pattern::new(r"\bhow old\b"),
    told: Pattern::made(|| {
        format!(
            r"year|month|week|\bborn\b|\bage|\bturn|birthday|\b(?:1[789]|20)[0-9]{{2}}\b|teen|baby|\bold|\b(?:is|are|am|was|were|s|m|re) {NUMBER}\s*(?:$|[.,;!?)]|and\b|now\b)"
        )
    }),
};

static CLOCK: Kind = Kind {
    asked: Pattern::new(r"\bwhat time\b"),
    told: Pattern::made(|| {
        format!(
            r"[0-9][:.][0-9]{{2}}|[0-9] ?[ap]\.?m\b|o.?clock|noon|midnight|half past|quarter|morning|evening|night|\b(?:at|from|around|about|by|till|til|until|before|after|to|past) {NUMBER}\b"
        )
    }),
};

static MONEY: Kind = Kind {
    asked: Pattern::new(
        r"\bhow much (?:did|do|does|is|are|was|were|will|would|has|have)\b.*\b(?:cost|pay|paid|charge|earn|spend|spent|worth)\b|^what\b.*\b(?:cost|price|salary|rent|pay|charge|earn)\b",
    ),
    told: Pattern::made(|| {
        format!(
            r"[€$£¥]|euro|pound|dollar|franc|kron|cent\b|cents\b|yen\b|yuan|rupee|bucks|quid|grand\b|thousand|hundred|million|\bk\b|[0-9]{{3,}}|[0-9],[0-9]|free\b|nothing|\b{NUMBER}\s*(?:$|[.,;!?)])|\b(?:for|cost|costs|paid|pay|pays|earn|earns|charge|charges|of) {NUMBER}\b"
        )
    }),
};

/// A question for a moment that is not past: the day on which a past event is told often is the answer.
static MOMENT: Kind = Kind {
    asked: Pattern::new(
        r"^(?:and |so |but )?(?:when|(?:on |in )?(?:what|which) (?:day|date|month|year)s?)\b.*\b(?:is|are|am|s|will|do|does|can|should|must|shall)\b",
    ),
    told: Pattern::new(
        r"[0-9]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september|october|november|december|spring|summer|autumn|winter|fall|christmas|easter|birthday|today|tomorrow|yesterday|tonight|mornings?|evenings?|afternoons?|noon|midnight|nights?|weeks?|weekends?|months?|years?|days?|hours?|minutes?|daily|weekly|monthly|yearly|annual|annually|quarter|season|ago|since|until|till|after|before|soon|later|recently|always|never|every|once|twice|semester|term|holidays?|first|second|third|last|next)\b",
    ),
};
static PAST: Pattern = Pattern::new(r"\b(?:did|was|were|has|have|had)\b");

static NAME: Kind = Kind {
    asked: Pattern::new(r"^(?:and |so )?(?:what|how)\b.*\b(?:name|named|called|surname)\b"),
    told: Pattern::new(r"\bname|\bcall"),
};

static PERSON: Kind = Kind {
    asked: Pattern::new(r"^(?:and |so )?(?:(?:with|for|to|from|by) )?(?:who|whom|whose)\b"),
    told: Pattern::new(
        r"\b(?:mother|father|mum|mom|dad|brother|sister|son|daughter|wife|husband|partner|girlfriend|boyfriend|friend|neighbou?r|colleague|boss|manager|doctor|dentist|teacher|coach|trainer|uncle|aunt|cousin|grand[a-z]+|nephew|niece|parent|child|children|kid|baby|twin|roommate|flatmate|landlord|landlady|tenant|client|customer|man|men|woman|women|boy|girl|guy|lady|people|person|family|team|crew|mate|classmate|assistant|tutor|nurse|vet|lawyer|he|she|they|him|her|them|his|their|everyone|everybody|someone|somebody|nobody|pupil|student|chain|company|firm|school|office|agency|department|police)s?\b|\b(?:the|an?|my|our|his|her|their|your|by) (?:[a-z]+ )?[a-z]+(?:er|or|ist|ian)s?\b",
    ),
};

/// Words that may begin a sentence with a capital and name nobody.
const BEGINNINGS: &str = "the a an my our your his her their its we i you he she it they on in at for from to with and but so when \
    if after before every since yes no this that these those there what who where how why is are was were do does did have has \
    had please oh well just also then now not never last next one two some all most many";

/// Whether a text lacks what an English question seeks. `asked` and `told` are the folded forms of `question` and `text`.
pub(super) fn lacks(asked: &str, told: &str, question: &str, text: &str) -> bool {
    let misses = |kind: &Kind| kind.asked.is_match(asked) && !kind.told.is_match(told);
    let is_past = || PAST.is_match(asked);
    [&AGE, &CLOCK, &MONEY].into_iter().any(misses)
        || (misses(&MOMENT) && !is_past())
        || ((misses(&NAME) || misses(&PERSON)) && !names_another(question, text))
}

/// Whether a text has a name that the question does not have: a word with a capital that only a name has.
fn names_another(question: &str, text: &str) -> bool {
    let asked: Vec<String> = words(question).map(|word| bare(word).to_lowercase()).collect();
    let mut begins = true;
    for word in text.split_whitespace() {
        let is_first = std::mem::replace(&mut begins, word.ends_with(['.', '!', '?', ':']));
        for part in words(word) {
            let name = bare(part);
            let lower = name.to_lowercase();
            let is_capital = name.starts_with(|c: char| c.is_uppercase() || c.is_numeric());
            let is_common = lower == "i" || (is_first && is_listed(&lower));
            if is_capital && !is_common && !asked.contains(&lower) {
                return true;
            }
        }
    }
    text.chars().any(|c| matches!(c, '#' | '«' | '“' | '"')) || text.chars().any(super::is_han)
}

fn is_listed(word: &str) -> bool {
    BEGINNINGS.split_ascii_whitespace().any(|listed| listed == word)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '’'))).filter(|word| !word.is_empty())
}

/// A word without a clitic: «Ravi's» is «Ravi», «I'm» is «I».
fn bare(word: &str) -> &str {
    word.split(['\'', '’']).find(|part| !part.is_empty()).unwrap_or(word)
}
