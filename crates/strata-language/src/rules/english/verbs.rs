//! English verb forms: the lemma and the form of each verb that the tables know.

use std::collections::HashMap;
use std::sync::LazyLock;

/// A form of a verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `live`
    Base,
    /// `lives`
    Third,
    /// `lived`, which is also the participle of a regular verb.
    Past,
    /// `spoken`
    Participle,
    /// `living`
    Ing,
}

/// Irregular verbs: base, third person, past, participle, -ing.
const IRREGULAR: &[[&str; 5]] = &[
    ["be", "is", "was", "been", "being"],
    ["have", "has", "had", "had", "having"],
    ["do", "does", "did", "done", "doing"],
    ["go", "goes", "went", "gone", "going"],
    ["get", "gets", "got", "gotten", "getting"],
    ["come", "comes", "came", "come", "coming"],
    ["become", "becomes", "became", "become", "becoming"],
    ["buy", "buys", "bought", "bought", "buying"],
    ["break", "breaks", "broke", "broken", "breaking"],
    ["choose", "chooses", "chose", "chosen", "choosing"],
    ["drive", "drives", "drove", "driven", "driving"],
    ["drink", "drinks", "drank", "drunk", "drinking"],
    ["eat", "eats", "ate", "eaten", "eating"],
    ["fly", "flies", "flew", "flown", "flying"],
    ["give", "gives", "gave", "given", "giving"],
    ["grow", "grows", "grew", "grown", "growing"],
    ["keep", "keeps", "kept", "kept", "keeping"],
    ["leave", "leaves", "left", "left", "leaving"],
    ["lose", "loses", "lost", "lost", "losing"],
    ["make", "makes", "made", "made", "making"],
    ["meet", "meets", "met", "met", "meeting"],
    ["pay", "pays", "paid", "paid", "paying"],
    ["play", "plays", "played", "played", "playing"],
    ["put", "puts", "put", "put", "putting"],
    ["quit", "quits", "quit", "quit", "quitting"],
    ["rise", "rises", "rose", "risen", "rising"],
    ["ride", "rides", "rode", "ridden", "riding"],
    ["run", "runs", "ran", "run", "running"],
    ["sell", "sells", "sold", "sold", "selling"],
    ["send", "sends", "sent", "sent", "sending"],
    ["sing", "sings", "sang", "sung", "singing"],
    ["speak", "speaks", "spoke", "spoken", "speaking"],
    ["spend", "spends", "spent", "spent", "spending"],
    ["swim", "swims", "swam", "swum", "swimming"],
    ["take", "takes", "took", "taken", "taking"],
    ["teach", "teaches", "taught", "taught", "teaching"],
    ["wear", "wears", "wore", "worn", "wearing"],
    ["write", "writes", "wrote", "written", "writing"],
    ["begin", "begins", "began", "begun", "beginning"],
    ["fall", "falls", "fell", "fallen", "falling"],
    ["study", "studies", "studied", "studied", "studying"],
    ["plan", "plans", "planned", "planned", "planning"],
    ["stop", "stops", "stopped", "stopped", "stopping"],
    ["drop", "drops", "dropped", "dropped", "dropping"],
    ["jog", "jogs", "jogged", "jogged", "jogging"],
    ["read", "reads", "read", "read", "reading"],
];

/// Regular verbs.
const REGULAR: &str = "live reside settle move relocate work join start switch retire major attend graduate turn like love enjoy \
    adore prefer hate dislike loathe despise detest smoke learn practise practice own adopt weigh measure date marry divorce \
    separate decide pick need finish complete submit post mail email return file clean fix order cancel sign print deliver \
    schedule reschedule postpone wash water call book renew collect follow travel visit stay increase decrease climb \
    change name paint cook garden knit dance hike cycle commute play support suffer employ base train use want hope intend \
    promote fire lay identify pass earn cost rent lease study host raise push delay bump hire watch volunteer convert avoid \
    stand bear celebrate own trade replace";

static FORMS: LazyLock<HashMap<String, (&'static str, Form)>> = LazyLock::new(|| {
    let mut forms = HashMap::new();
    for base in REGULAR.split_ascii_whitespace() {
        let silent = base.strip_suffix('e');
        let past = match silent {
            Some(_) => format!("{base}d"),
            None if base.ends_with('y') && !base.ends_with("ay") && !base.ends_with("oy") => {
                format!("{}ied", &base[..base.len() - 1])
            }
            None => format!("{base}ed"),
        };
        forms.insert(past, (base, Form::Past));
        forms.insert(format!("{}ing", silent.unwrap_or(base)), (base, Form::Ing));
        forms.insert(third_person(base), (base, Form::Third));
        forms.insert(base.to_owned(), (base, Form::Base));
    }
    for [base, third, past, participle, ing] in IRREGULAR {
        forms.insert((*participle).to_owned(), (base, Form::Participle));
        forms.insert((*past).to_owned(), (base, Form::Past));
        forms.insert((*ing).to_owned(), (base, Form::Ing));
        forms.insert((*third).to_owned(), (base, Form::Third));
        // `quit` and `put` are more often past events than habits.
        if past != base {
            forms.insert((*base).to_owned(), (base, Form::Base));
        }
    }
    for (form, base, kind) in [
        ("am", "be", Form::Base),
        ("are", "be", Form::Base),
        ("were", "be", Form::Past),
        ("died", "die", Form::Past),
        ("dying", "die", Form::Ing),
    ] {
        forms.insert(form.to_owned(), (base, kind));
    }
    forms
});

/// The lemma and the form of a word in lower case, if it is a verb of the tables.
pub(super) fn lemma(word: &str) -> Option<(&'static str, Form)> {
    FORMS.get(word).copied()
}

/// The third person of a base form. The verb need not be in the tables.
pub(crate) fn third_person(base: &str) -> String {
    match base {
        "be" => return "is".to_owned(),
        "have" => return "has".to_owned(),
        _ => {}
    }
    let stem = base.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u']));
    if let Some(stem) = stem {
        format!("{stem}ies")
    } else if ["s", "x", "ch", "sh", "o", "z"].iter().any(|end| base.ends_with(end)) {
        format!("{base}es")
    } else {
        format!("{base}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_lead_to_their_verb() {
        for (form, expected) in [
            ("lives", ("live", Form::Third)),
            ("living", ("live", Form::Ing)),
            ("moved", ("move", Form::Past)),
            ("studies", ("study", Form::Third)),
            ("sent", ("send", Form::Past)),
            ("spoken", ("speak", Form::Participle)),
            ("quit", ("quit", Form::Past)),
        ] {
            assert_eq!(lemma(form), Some(expected), "{form}");
        }
        assert_eq!(lemma("table"), None);
        for (base, third) in
            [("go", "goes"), ("play", "plays"), ("study", "studies"), ("watch", "watches"), ("be", "is")]
        {
            assert_eq!(third_person(base), third);
        }
    }
}
