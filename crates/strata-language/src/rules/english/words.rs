//! The English word lists of the tables, and the limits of values.

/// People and animals that belong to a person.
pub(super) const KIN: &str = "wife|husband|spouse|partner|boyfriend|girlfriend|fiancée?|mother|mom|mum|father|dad|parents?|sisters?|brothers?|siblings?|sons?|\
    daughters?|kids?|child|children|baby|twins|grandmother|grandma|grandfather|grandpa|grandson|granddaughter|grandchildren|aunt|uncle|\
    cousins?|nieces?|nephews?|mother-in-law|father-in-law|sister-in-law|brother-in-law|best friend|friends?|neighbou?rs?|roommates?|\
    flatmates?|colleagues?|coworkers?|co-workers?|boss|manager|mentor|teacher|doctor|dentist|therapist|landlord|landlady|coach|\
    cats?|dogs?|puppy|puppies|kittens?|rabbits?|hamsters?|parrots?|horses?|pony|tortoise|turtles?|guinea pigs?|golden retriever|german shepherd|border collie|labrador|retriever|poodle|beagle|corgi|terrier|husky|dachshund|bulldog|spaniel|collie|tabby|goldfish|fish|birds?|snakes?|pets?";

/// Plural nouns, whose verb is plural.
pub(super) const PLURAL: &str = "parents children kids twins siblings sisters brothers sons daughters grandparents grandchildren friends neighbours neighbors \
    roommates flatmates colleagues coworkers co-workers cousins nieces nephews cats dogs puppies kittens rabbits hamsters parrots horses \
    turtles birds snakes pets";

/// The animals among them.
pub(super) const PETS: &str = "cat dog puppy kitten rabbit hamster parrot horse pony tortoise turtle goldfish fish bird snake pet guinea-pig golden-retriever \
    german-shepherd border-collie labrador retriever poodle beagle corgi terrier husky dachshund bulldog spaniel collie tabby";

/// Nouns about a person's words and work and not about the person: «my question is», «my guess is», «my output is».
pub(super) const NO_ATTRIBUTE: &str = "question point problem idea guess issue concern understanding answer opinion thought thoughts worry assumption theory suggestion \
    advice request doubt hope wish feeling impression reason example argument view take hypothesis conclusion intuition fear task prompt message \
    code output input function query error array list loop program script variable result results matrix equation test file formula string \
    solution calculation response expectation recommendation choice";

/// Relations of which a person has only one at a time.
pub(super) const SINGLE: &str = "wife husband spouse partner boyfriend girlfriend fiancé fiancée mother mom mum father dad landlord landlady boss manager \
    dentist therapist";

/// Possessions that are worth remembering.
pub(super) const THING: &str = "cars?|bikes?|bicycles?|motorbikes?|motorcycles?|scooters?|van|truck|boat|caravan|house|flat|apartment|cottage|garden|allotment|\
    phone|smartphone|laptop|computer|tablet|camera|guitars?|piano|violin|drum kit|telescope|tattoos?|company|business|shop|bakery|farm|\
    blog|podcast|youtube channel|greenhouse|visa|degree|driving licen[cs]e|driver's license|passport";

/// Nouns that belong to a person and have one value: the slot of «my X is Y».
pub(super) const ATTRIBUTE: &str = "name|first name|last name|surname|middle name|nickname|birthday|date of birth|age|email|email address|e-mail|phone number|number|\
    address|postcode|zip code|job|job title|title|role|position|employer|company|salary|income|rent|mortgage|budget|weight|height|blood type|\
    shoe size|size|hometown|home town|nationality|major|degree|school|university|phone|laptop|computer|car|bike|email provider|username|handle|\
    timezone|time zone|password|wifi password|star sign|zodiac sign|religion|team|project|thesis topic|anniversary|wedding anniversary|\
    goal|step goal|bedtime|native language|editor|operating system|os|stack|bank|insurance|doctor|dentist|therapist|landlord|landlady|boss|manager|\
    mentor|teacher|coach|pin|licen[cs]e plate|target|deadline|record|personal best|pb|score|subscription|plan|hobby|diet|savings|debt|commute";

/// Nouns that have an appointed time.
pub(super) const APPOINTMENT: &str = "appointment|meeting|flight|train|exam|interview|wedding|party|deadline|call|check-?up|class|lesson|trip|holiday|vacation|concert|\
    surgery|operation|presentation|release|launch|game|match|visit|dinner|lunch|reservation|delivery|move|course|session|conference|date|\
    birthday|graduation|test|due date|event|show|demo|hearing|move-in|start date";

/// Nouns that have an amount.
pub(super) const AMOUNT: &str =
    "budget|rent|price|salary|fee|mortgage|deposit|goal|target|limit|number of \\w+|team size|headcount";

/// Professions, and endings of professions.
pub(super) const JOB: &str = "(?:[\\w-]+ ){0,3}?(?:teacher|nurse|doctor|engineer|developer|programmer|designer|lawyer|baker|chef|cook|writer|author|artist|painter|student|\
    midwife|architect|accountant|manager|director|consultant|analyst|driver|farmer|electrician|plumber|carpenter|mechanic|pilot|firefighter|\
    police officer|officer|soldier|surgeon|dentist|vet|veterinarian|pharmacist|psychologist|therapist|counsellor|counselor|professor|lecturer|researcher|\
    scientist|biologist|chemist|physicist|mathematician|historian|librarian|journalist|editor|translator|interpreter|photographer|musician|singer|\
    actor|actress|dancer|hairdresser|barber|tailor|waiter|waitress|bartender|barista|cashier|clerk|secretary|receptionist|salesperson|salesman|\
    gardener|florist|butcher|fisherman|technician|welder|bricklayer|builder|cleaner|janitor|postman|courier|freelancer|entrepreneur|founder|ceo|cto|\
    intern|apprentice|trainer|coach|tutor|principal|paramedic|physiotherapist|radiologist|optician|economist|statistician|data scientist|administrator|\
    producer|animator|illustrator|sculptor|goldsmith|locksmith|judge|attorney|paralegal|politician|priest|pastor|nanny|childminder|caretaker|\
    guide|broker|banker|realtor|recruiter|supervisor|conductor|composer|geologist|nutritionist|dietitian|tester|contractor)";

/// Sports, games and instruments.
pub(super) const SPORT: &str = "violin|piano|guitar|cello|flute|drums|saxophone|trumpet|clarinet|bass|harp|ukulele|viola|oboe|banjo|organ|accordion|keyboard|tennis|football|soccer|\
    basketball|volleyball|badminton|table tennis|squash|golf|hockey|rugby|cricket|baseball|handball|chess|poker|go|bridge|padel|ultimate frisbee|\
    video games|board games|dungeons and dragons|darts|bowling|water polo|softball";

/// Languages.
pub(super) const LANG: &str = "English|French|German|Spanish|Italian|Portuguese|Dutch|Danish|Swedish|Norwegian|Finnish|Icelandic|Polish|Czech|Slovak|Hungarian|Romanian|\
    Bulgarian|Greek|Turkish|Russian|Ukrainian|Serbian|Croatian|Slovenian|Estonian|Latvian|Lithuanian|Arabic|Hebrew|Persian|Farsi|Hindi|Urdu|\
    Bengali|Punjabi|Tamil|Telugu|Thai|Vietnamese|Indonesian|Malay|Tagalog|Chinese|Mandarin|Cantonese|Japanese|Korean|Swahili|Catalan|Basque|\
    Irish|Welsh|Albanian|Georgian|Armenian|Latin|sign language|ASL|Esperanto";

/// Numbers.
pub(super) const NUM: &str = "\\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|\
    (?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-\\w+)?";

/// Beginnings of a time: a weekday, a month, a date, an hour.
pub(super) const WHEN: &str = "(?:the )?(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:early |late |mid-?)?(?:January|February|March|April|May|June|July|August|September|October|\
    November|December|spring|summer|autumn|winter)|(?:the )?\\d{1,2}(?:st|nd|rd|th|:\\d\\d|[ap]m| [ap]m| o'clock)|\\d{1,2} (?:January|February|March|April|May|June|July|\
    August|September|October|November|December)|\\d{4}(?:-\\d\\d)*|noon|midnight|next|tomorrow|(?:the )?(?:week|end|beginning|middle) ";

/// A place, an organisation or a name. It begins with a capital letter, or in careless writing with any word but an
/// article. An article may come before the capital letter: «the Hague», «the UK».
pub(super) const PLACE: &str = "(?:the |downtown |central |north(?:ern)? |south(?:ern)? |west(?:ern)? |east(?:ern)? )?(?-i:[A-Z])[^,;:!?]*?(?:, (?-i:[A-Z])[\\w ]+?)?|[a-z]{3,}";
pub(super) const ORG: &str = "(?:the |an? )?[^,;:!?]+?";
pub(super) const NAMED: &str =
    "(?-i:[A-Z])[\\w'&.-]*(?: (?:of |& |and |de |the |for )?(?-i:[A-Z0-9])[\\w'&.-]*)*";

/// Countries and continents: a person lives in a city and in a country at the same time.
pub(super) const COUNTRIES: &str = "germany france spain italy portugal england scotland wales ireland netherlands belgium luxembourg austria switzerland poland czechia \
    slovakia hungary romania bulgaria greece turkey russia ukraine sweden norway denmark finland iceland estonia latvia lithuania croatia serbia \
    slovenia usa us uk america canada mexico brazil argentina chile peru colombia china japan korea india pakistan thailand vietnam indonesia malaysia \
    singapore philippines australia egypt morocco nigeria kenya ghana ethiopia israel iran iraq europe asia africa taiwan cuba \
    california texas florida bavaria scandinavia";

/// Values that mean nothing without their context.
pub(super) const VAGUE: &str = r"^(?:it|that|this|these|those|you|your|him|her|them|us|me|so|how|what|when|where|who|one|ones|here|there|everything|anything|nothing|something|someone|stuff|things?|each other|both|all|being|having|seeing|hearing|to hear|to see|hear|see|say|know|think|the (?:idea|way|look|sound|fact|one|ones|same|vibe|feel|thought|most|best|whole|part|photo|picture|rest|first|second|last|other|new one|old one|following)|its|his|their|such|that's|yours|not|a lot|much|more|very|also|too)\b";

/// Words that need their context: a plan or a todo with one of them cannot be understood alone.
pub(super) const POINTS_BACK: &str = r"(?i)\b(?:it|this|that|them|those|these|you|your|there|him|her|one)\b";

/// Nouns with an article that are liked in general; «the colour» is a reaction to a particular thing.
pub(super) const GENERAL: &str = "sea ocean beach mountains outdoors countryside rain snow cold heat sun theatre theater opera cinema city forest woods piano violin guitar";

/// Skills that people learn.
pub(super) const SKILL: &str = "coding|programming|python|rust|java|javascript|painting|drawing|pottery|ceramics|photography|cooking|baking|swimming|skiing|surfing|sailing|dancing|salsa|\
    tango|ballet|singing|knitting|sewing|crochet|woodworking|calligraphy|yoga|meditation|karate|judo|taekwondo|driving|data science|machine learning|statistics|\
    gardening|climbing|fencing|archery|magic|juggling|carpentry|first aid";

/// Relations of which a person has several, so that two sentences may be about two of them.
pub(super) const SEVERAL: &str =
    "friend colleague coworker co-worker neighbour cousin roommate flatmate teacher pet fish bird";

/// Verbs after «need to» that make no errand.
pub(super) const NO_ERRAND: &str = r"^(?:be|know|understand|say|admit|ask|see|think|feel|figure|find out|know|have|get|go|decide|learn|talk|make sure|use|work on|focus|try|keep|stop|start|improve|consider|implement|handle|ensure|create|add|show|determine|deal|remember|calculate|solve|agree|take|look|come|do|give|tell|let|wait|put|believe|become|live|love|remind|accept|choose|balance|adjust|address|optimi[sz]e|design|set up|integrate|write a (?:function|script|query)|convert|display|validate|store|track|manage|process|explain|compare|check if|prove|derive|apply|support|reach|step|share|catch|hear|meet|play|explore|stay|face|push|find|change|build|develop|move on|rest|relax|sleep|eat|celebrate)\b";

/// Words that are removed between subject and verb.
pub(super) const ADVERBS: &str = "also really still just now currently actually always recently finally already absolutely definitely totally truly usually often sometimes \
    basically only even honestly personally even ever officially formerly previously originally mostly mainly generally both \
    genuinely simply certainly obviously literally quite kinda sort once newly lately presently sadly luckily happily myself";

/// States of health, said with «be».
pub(super) const HEALTH: &str = "(?:lactose |gluten |milk )?intolerant|(?:type \\d )?diabetic|asthmatic|dyslexic|autistic|celiac|coeliac|epileptic|colou?r-?blind|left-handed|right-handed|short-sighted|near-sighted|anemic|anaemic";
