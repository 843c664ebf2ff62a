//! Which column of a file is what: `--dataset-column FIELD=COLUMN`.

/// What a column can be taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The prompt: a text, or a list of messages.
    Prompt,
    /// The answer's length: a number, or a text as long as the answer.
    Output,
    /// A label of the request, named as the column is.
    Label,
    /// The tools that the model may call.
    Tools,
    /// The prompt's length, in a file of lengths.
    Input,
    /// When the request came, in a file of lengths.
    Time,
}

/// Every field with its name.
pub const FIELDS: &[(&str, Field)] = &[
    ("prompt", Field::Prompt),
    ("output", Field::Output),
    ("label", Field::Label),
    ("tools", Field::Tools),
    ("input", Field::Input),
    ("time", Field::Time),
];

impl Field {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        FIELDS.iter().find(|(_, field)| *field == self).map_or("", |(name, _)| name)
    }
}

/// A mapping that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnsError {
    /// No `=`, or nothing on a side of it.
    #[error("{0:?} is not FIELD=COLUMN, as in prompt=question,output=answer")]
    NoPair(String),
    /// A field that is none.
    #[error("{0:?} is not one of prompt, output, label, tools, input, time")]
    UnknownField(String),
    /// A field given twice; only labels are several.
    #[error("{0} is given twice; only label may be")]
    Twice(&'static str),
}

/// The columns that a user named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns(Vec<(Field, String)>);

impl Columns {
    /// Reads values of the flag, each one pair or several with commas between.
    pub fn parse(values: &[String]) -> Result<Self, ColumnsError> {
        let mut columns = Self::default();
        for pair in values.iter().flat_map(|value| value.split(',')) {
            let no_pair = || ColumnsError::NoPair(pair.to_owned());
            let (name, column) = pair.split_once('=').ok_or_else(no_pair)?;
            let (name, column) = (name.trim(), column.trim());
            if name.is_empty() || column.is_empty() {
                return Err(no_pair());
            }
            let known = FIELDS.iter().find(|(known, _)| *known == name);
            let (_, field) = known.ok_or_else(|| ColumnsError::UnknownField(name.to_owned()))?;
            if *field != Field::Label && columns.of(*field).is_some() {
                return Err(ColumnsError::Twice(field.name()));
            }
            columns.0.push((*field, column.to_owned()));
        }
        Ok(columns)
    }

    /// The column named for a field.
    pub fn of(&self, field: Field) -> Option<&str> {
        self.0.iter().find(|(other, _)| *other == field).map(|(_, column)| column.as_str())
    }

    /// The columns of labels.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        let labels = self.0.iter().filter(|(field, _)| *field == Field::Label);
        labels.map(|(_, column)| column.as_str())
    }

    /// Every pair, in the order given.
    pub fn pairs(&self) -> impl Iterator<Item = (Field, &str)> {
        self.0.iter().map(|(field, column)| (*field, column.as_str()))
    }
}

/// The most columns that a message names.
const MAX_NAMED: usize = 30;

/// Names of columns for a message.
pub(super) fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.collect();
    let shown = names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "none".to_owned(),
        count if count > MAX_NAMED => format!("{shown} and {} more", count - MAX_NAMED),
        _ => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(values: &[&str]) -> Result<Columns, String> {
        let values: Vec<_> = values.iter().map(|&value| value.to_owned()).collect();
        Columns::parse(&values).map_err(|error| error.to_string())
    }

    #[test]
    fn pairs_come_with_commas_or_one_by_one() {
        let columns = parse(&["prompt=question,output = answer", "label=level,label=topic"]);
        let columns = columns.unwrap();
        assert_eq!(columns.of(Field::Prompt), Some("question"));
        assert_eq!(columns.of(Field::Output), Some("answer"));
        assert_eq!(columns.labels().collect::<Vec<_>>(), ["level", "topic"]);
        assert_eq!(columns.of(Field::Time), None);
    }

    #[test]
    fn what_is_no_pair_is_told() {
        for (value, words) in [
            ("question", "\"question\" is not FIELD=COLUMN"),
            ("prompt=", "is not FIELD=COLUMN"),
            ("answer=x", "\"answer\" is not one of prompt, output"),
            ("prompt=a,prompt=b", "prompt is given twice"),
        ] {
            let error = parse(&[value]).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn every_field_has_one_name() {
        for (name, field) in FIELDS {
            assert_eq!(field.name(), *name);
            assert!(ColumnsError::UnknownField(String::new()).to_string().contains(name));
        }
    }
}
