//! The options of OpenAI's protocol that an endpoint supports, learned from its refusals.

/// How a request asks for the shape of its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    /// By a JSON schema.
    #[default]
    Schema,
    /// As any JSON object.
    Object,
    /// By the text of the prompt only.
    Prompt,
}

/// How requests are written. The default uses every option.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) shape: Shape,
    /// Whether the request leaves out the temperature: reasoning models accept only their own.
    pub(super) own_temperature: bool,
    /// Whether the limit of an answer is called `max_completion_tokens`, as newer models of OpenAI require.
    pub(super) new_limit: bool,
    /// Whether a stream is requested without its usage; the tokens are then counted here.
    pub(super) plain_stream: bool,
}

impl Dialect {
    /// The dialect without the option that an error message complains about; `None` if the message is about something else.
    pub(super) fn without_refused_option(self, complaint: &str) -> Option<Self> {
        let complaint = complaint.to_lowercase();
        let names = |names: &[&str]| names.iter().any(|name| complaint.contains(name));
        if !self.own_temperature && names(&["temperature"]) {
            return Some(Self { own_temperature: true, ..self });
        }
        if !self.new_limit && names(&["max_completion_tokens"]) {
            return Some(Self { new_limit: true, ..self });
        }
        if !self.plain_stream && names(&["stream_options", "include_usage"]) {
            return Some(Self { plain_stream: true, ..self });
        }
        let about_shape = names(&["response_format", "json_schema", "json_object", "grammar", "schema"]);
        let shape = match self.shape {
            Shape::Schema if about_shape => Shape::Object,
            Shape::Object if about_shape => Shape::Prompt,
            _ => return None,
        };
        Some(Self { shape, ..self })
    }

    /// Leaves out all options that `other` leaves out. Concurrent calls may each learn about another option.
    pub(super) fn simplify(&mut self, other: Self) {
        self.shape = self.shape.max(other.shape);
        self.own_temperature |= other.own_temperature;
        self.new_limit |= other.new_limit;
        self.plain_stream |= other.plain_stream;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_complaint_removes_one_option() {
        let check = |complaints: &[&str], expected: Option<Dialect>| {
            let mut dialect = Some(Dialect::default());
            for complaint in complaints {
                dialect = dialect.unwrap().without_refused_option(complaint);
            }
            assert_eq!(dialect, expected, "{complaints:?}");
        };
        let all = Dialect::default();
        check(&["unknown field `Response_Format`"], Some(Dialect { shape: Shape::Object, ..all }));
        check(&["json_schema is not supported"; 2], Some(Dialect { shape: Shape::Prompt, ..all }));
        check(&["json_schema is not supported"; 3], None);
        check(&["'temperature' does not support 0"], Some(Dialect { own_temperature: true, ..all }));
        check(&["use max_completion_tokens"], Some(Dialect { new_limit: true, ..all }));
        check(&["unknown field stream_options"], Some(Dialect { plain_stream: true, ..all }));
        check(&["the model `x` does not exist"], None);
        check(&[""], None);
    }

    #[test]
    fn learned_options_are_kept() {
        let mut dialect = Dialect { shape: Shape::Prompt, ..Dialect::default() };
        dialect.simplify(Dialect { shape: Shape::Object, new_limit: true, ..Dialect::default() });
        assert_eq!(dialect, Dialect { shape: Shape::Prompt, new_limit: true, ..Dialect::default() });
    }
}
