//! The folder of ServeGen's client traces: which clients it has, how many
//! requests they make, and the rows that are drawn of them.
//!
//! Traces are small and read first, so that the number of requests is known
//! before anything is drawn. Lengths are long: of each client's file only an
//! outline is kept, and it is read again when the client's rows are drawn, so
//! that one file is in memory at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use measure::{Span, Tokens};
use wire::dataset::MAX_LABEL_VALUES;
use wire::dataset::servegen::{self, Listing, Outline, Trace, Wrong};
use wire::dataset::table::Rows;
use workload::{Client, Clients, LengthRow, Origin};

use super::trace::Window;
use crate::flags::Reader;

/// Rows, where neither a replay nor `-n` says how many.
const ROWS: u32 = 10_000;

/// The most rows that are drawn: each is in memory before the run.
const MAX_ROWS: u32 = 1_000_000;

/// The most arrivals that are drawn where all are kept: an expectation is no
/// bound.
const MAX_DRAWN: usize = 2 * MAX_ROWS as usize;

/// And where `-n` keeps the first of them.
const MAX_DRAWN_FOR_FIRST: usize = 2 * MAX_DRAWN;

/// The most things that may lie in the folder.
const MAX_FILES: usize = 100_000;

/// Largest file of rates, and of lengths.
const TRACE_LIMIT: u64 = 16 << 20;
const LENGTHS_LIMIT: u64 = 512 << 20;

/// The most times of sending of all clients together: all are in memory.
const MAX_ACTIVE: usize = 8_000_000;

/// Files with mistakes, and clients, that a message names.
const NAMED_FILES: usize = 3;
const NAMED_CLIENTS: usize = 10;

/// The label that names the client.
const LABEL: &str = "client";

/// Its value for the clients beyond those that have one of their own.
const OTHERS: &str = "others";

/// What is drawn from a folder.
pub(super) struct Drawn {
    pub(super) rows: Rows,
    /// When each row comes, from the beginning of the trace; empty where they
    /// are not replayed.
    pub(super) times: Vec<Span>,
    /// What a reader of the result must know.
    pub(super) said: Vec<String>,
}

/// How it is to be drawn.
pub(super) struct Asked {
    /// With their instants, or with lengths alone.
    pub(super) replayed: bool,
    /// A part of the trace, in time from its beginning.
    pub(super) window: Option<Window>,
    /// The first so many; without it all of a replay.
    pub(super) count: Option<u32>,
    pub(super) seed: u64,
}

/// What the folder holds.
struct Folder<'p> {
    path: &'p str,
    listing: Listing,
    /// Those that send and have lengths, when they have.
    clients: Clients,
    /// For each of them, when new lengths begin.
    with_lengths: BTreeMap<u32, Vec<Span>>,
    /// What of the traces is left out, since no file of lengths is there.
    without_file: Clients,
    /// And since it comes before the first lengths of its client.
    without_lengths: Clients,
    /// Members that are not taken.
    aside: BTreeSet<String>,
    /// From the beginning of the first window to the end of the last one.
    whole: (Span, Span),
}

/// Reads the folder and draws its rows. Every mistake goes into `reader`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    path: &str,
    hint: &str,
    asked: &Asked,
) -> Option<Drawn> {
    let folder = match Folder::read(open, path, hint) {
        Ok(folder) => folder,
        Err(mistakes) => {
            for mistake in mistakes {
                reader.wrong("dataset-path", mistake);
            }
            return None;
        }
    };
    let part = folder.part(reader, asked)?;
    let (origins, times) = if asked.replayed {
        let arrivals = folder.arrivals(reader, asked, part)?;
        let since_start = |at: Span| at - folder.whole.0;
        arrivals.into_iter().map(|(at, origin)| (origin, since_start(at))).unzip()
    } else {
        let count = asked.count.unwrap_or(ROWS).min(MAX_ROWS);
        (folder.clients.picked(asked.seed, count), Vec::new())
    };
    if origins.is_empty() {
        let flag = if asked.window.is_some() { "trace-window" } else { "dataset-path" };
        let expected = folder.clients.expected(part);
        let rule = if expected > 0.0 {
            format!(
                "no request of {path} was drawn there, where {expected:.3} are expected; take a longer part"
            )
        } else {
            format!("nobody in {path} sends a request there; take another part")
        };
        reader.wrong(flag, rule);
        return None;
    }
    // What lies behind the last of the first ones is in no figure.
    let part = match (asked.count, times.last()) {
        (Some(count), Some(last)) if origins.len() == count as usize => {
            (part.0, folder.whole.0 + *last + Span::from_us(1))
        }
        _ => part,
    };
    let labels = folder.labels(part);
    let mut said = folder.said(asked, part, origins.len());
    match folder.rows(open, asked.seed, &origins, &labels) {
        Ok((rows, zeros)) => {
            if zeros > 0.0 {
                said.push(format!(
                    "lengths of 0 are left out of the lists and the others scaled up; they are up \
                     to {} % of one",
                    percent(zeros)
                ));
            }
            Some(Drawn { rows: Rows::Lengths(rows), times, said })
        }
        Err(mistake) => {
            reader.wrong("dataset-path", mistake);
            None
        }
    }
}

fn percent(share: f64) -> f64 {
    (share * 1e3).round() / 10.0
}

/// A file of the folder, as it is opened and named.
fn joined(folder: &str, name: &str) -> String {
    Path::new(folder).join(name).to_string_lossy().into_owned()
}

/// Seconds, cut to whole ones but where they are few.
fn in_seconds(span: Span) -> f64 {
    if span.s() >= 10.0 { span.s().floor() } else { (span.s() * 1e3).floor() / 1e3 }
}

fn counted(clients: usize) -> String {
    format!("{clients} client{}", if clients == 1 { "" } else { "s" })
}

/// Numbers of clients, the first of them one by one.
fn numbers(clients: impl ExactSizeIterator<Item = u32>) -> String {
    let count = clients.len();
    let named: Vec<String> = clients.take(NAMED_CLIENTS).map(|number| number.to_string()).collect();
    let word = if count == 1 { "client" } else { "clients" };
    let more = count.saturating_sub(NAMED_CLIENTS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{word} {}{more}", named.join(", "))
}

impl<'p> Folder<'p> {
    fn read(
        open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
        path: &'p str,
        hint: &str,
    ) -> Result<Self, Vec<String>> {
        let names = store::names_in(path.as_ref(), MAX_FILES)
            .map_err(|error| vec![format!("{error}; {hint}")])?;
        let listing = Listing::of(names.iter().map(String::as_str));
        if listing.whole.is_empty() {
            return Err(vec![format!(
                "{path} has no client with both chunk-N-trace.csv and chunk-N-dataset.json; {hint}"
            )]);
        }
        let mut mistakes = Vec::new();
        let mut read = BTreeMap::new();
        for number in listing.whole.union(&listing.without_lengths) {
            match client(open, path, *number, listing.whole.contains(number)) {
                Ok(client) => {
                    read.insert(*number, client);
                }
                Err(mistake) => mistakes.push(mistake),
            }
        }
        if mistakes.len() > NAMED_FILES {
            let more = mistakes.len() - NAMED_FILES;
            mistakes.truncate(NAMED_FILES);
            mistakes.push(format!("{path}: {more} more files cannot be read"));
        }
        let active: usize = read.values().map(|(trace, _)| trace.active.len()).sum();
        if active > MAX_ACTIVE {
            mistakes.push(format!(
                "{path}: clients send in {active} windows together, and {MAX_ACTIVE} are the most; \
                 put a part of the clients into a folder of their own"
            ));
        }
        if mistakes.is_empty() { Ok(Self::of(path, listing, read)) } else { Err(mistakes) }
    }

    /// Parts what the clients send by whether its lengths are known.
    fn of(path: &'p str, listing: Listing, read: BTreeMap<u32, (Trace, Option<Outline>)>) -> Self {
        let (mut clients, mut without_file, mut without_lengths) =
            (Vec::new(), Vec::new(), Vec::new());
        let (mut with_lengths, mut aside) = (BTreeMap::new(), BTreeSet::new());
        let whole =
            read.values().fold((Span::from_us(i64::MAX), Span::ZERO), |whole, (trace, _)| {
                (whole.0.min(trace.from), whole.1.max(trace.until))
            });
        for (number, (trace, outline)) in read {
            let Some(outline) = outline else {
                without_file.push(Client { number, active: trace.active });
                continue;
            };
            let first = outline.with_lengths.first().copied();
            let knows = |from: Span| first.is_some_and(|first| first <= from);
            let (known, unknown) = trace.active.into_iter().partition(|active| knows(active.from));
            clients.push(Client { number, active: known });
            without_lengths.push(Client { number, active: unknown });
            with_lengths.insert(number, outline.with_lengths);
            aside.extend(outline.aside);
        }
        without_lengths.retain(|client| !client.active.is_empty());
        Self {
            path,
            listing,
            clients: Clients::new(clients),
            with_lengths,
            without_file: Clients::new(without_file),
            without_lengths: Clients::new(without_lengths),
            aside,
            whole,
        }
    }

    /// The part of the trace that is asked for, in its own time.
    fn part(&self, reader: &mut Reader<'_>, asked: &Asked) -> Option<(Span, Span)> {
        let (begins, ends) = self.whole;
        let Some((from, until)) = asked.window else { return Some(self.whole) };
        if from >= ends - begins {
            let lasts = (ends - begins).s();
            let rule = format!("begins after the trace of {}, which lasts {lasts} s", self.path);
            reader.wrong("trace-window", rule);
            return None;
        }
        let until = until.map_or(ends, |until| (begins + until).min(ends));
        Some((begins + from, until))
    }

    /// The arrivals of a replay, unless they are more than can be held.
    fn arrivals(
        &self,
        reader: &mut Reader<'_>,
        asked: &Asked,
        part: (Span, Span),
    ) -> Option<Vec<(Span, Origin)>> {
        let most = f64::from(MAX_ROWS);
        let expected = self.clients.expected(part);
        let wanted = asked.count.filter(|count| *count <= MAX_ROWS);
        if wanted.is_none() && expected > most {
            let seconds = (part.1 - part.0).s();
            let begins = part.0 - self.whole.0;
            // Nine tenths, so that what is drawn is seldom more.
            let fits = self.clients.horizon(part, 0.9 * most) - self.whole.0;
            reader.wrong(
                "replay",
                format!(
                    "{:.3} requests per second of {} over {seconds} s are {expected:.0}, and a \
                     replay holds {MAX_ROWS}; take a part, such as --trace-window {}s..{}s, or \
                     the first ones with -n",
                    expected / seconds,
                    counted(sending(&self.clients, part).len()),
                    in_seconds(begins),
                    in_seconds(fits),
                ),
            );
            return None;
        }
        let wanted = wanted.map(|wanted| wanted as usize);
        let most = if wanted.is_some() { MAX_DRAWN_FOR_FIRST } else { MAX_DRAWN };
        let arrivals = self.clients.arrivals(asked.seed, part, wanted, most);
        if arrivals.is_none() {
            reader.wrong(
                "replay",
                format!(
                    "{expected:.0} requests are expected, and far more were drawn: the gaps of a \
                     client vary so much that they come in heaps; take a shorter --trace-window"
                ),
            );
        }
        arrivals
    }

    /// The value of the label of each client: its number, but one for all the
    /// others where there are more than a label may have values. Those that
    /// send most in the part have their own, whatever is drawn of them.
    fn labels(&self, part: (Span, Span)) -> BTreeMap<u32, String> {
        let mut clients: Vec<(f64, u32)> = self
            .clients
            .all()
            .iter()
            .map(|client| (client.expected(part), client.number))
            .filter(|(expected, _)| *expected > 0.0)
            .collect();
        clients.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        if clients.len() > MAX_LABEL_VALUES {
            clients.truncate(MAX_LABEL_VALUES - 1);
        }
        clients.into_iter().map(|(_, number)| (number, number.to_string())).collect()
    }

    /// The rows of these requests, and the largest share of lengths of 0 in
    /// any list that they are drawn from.
    fn rows(
        &self,
        open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
        seed: u64,
        origins: &[Origin],
        labels: &BTreeMap<u32, String>,
    ) -> Result<(Vec<LengthRow>, f64), String> {
        let mut of_clients: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (place, origin) in origins.iter().enumerate() {
            of_clients.entry(origin.client).or_default().push(place);
        }
        let mut lengths = vec![(Tokens::new(0), Tokens::new(0)); origins.len()];
        let mut zeros = 0.0_f64;
        for (client, places) in of_clients {
            let client = &self.clients.all()[client as usize];
            let begins = |from: Span| {
                let known = &self.with_lengths[&client.number];
                known[..known.partition_point(|begins| *begins <= from)].last().copied()
            };
            let of = |place: &usize| client.active[origins[*place].active as usize].from;
            let wanted: BTreeSet<Span> = places.iter().map(of).filter_map(begins).collect();
            let name = joined(self.path, &servegen::lengths_file(client.number));
            let bytes = open(&name, LENGTHS_LIMIT)?;
            let wrong = |wrong: Wrong| format!("{name}: {wrong}");
            let read = servegen::sizes(&bytes, &wanted).map_err(wrong)?;
            zeros = zeros.max(read.zeros);
            for place in places {
                let drawn = self.clients.lengths(seed, origins[place], &read.sizes);
                lengths[place] = drawn.ok_or_else(|| format!("{name} was changed meanwhile"))?;
            }
        }
        let row = |(origin, (input, output)): (&Origin, (Tokens, Tokens))| {
            let client = &self.clients.all()[origin.client as usize];
            let label = labels.get(&client.number).map_or(OTHERS, String::as_str);
            LengthRow {
                input,
                output,
                blocks: None,
                labels: vec![(LABEL.to_owned(), label.to_owned())],
                source_row: client.active[origin.active as usize].source_row,
            }
        };
        Ok((origins.iter().zip(lengths).map(row).collect(), zeros))
    }

    /// What must be said of the rows, and of what they lack.
    fn said(&self, asked: &Asked, part: (Span, Span), drawn: usize) -> Vec<String> {
        let expected = self.clients.expected(part);
        let many = sending(&self.clients, part).len();
        let mut said = vec![if asked.replayed {
            format!(
                "{drawn} requests were drawn where {expected:.0} are expected, of {} in {} s of \
                 the trace; it has rates and distributions, and no instant and no length is that \
                 of a real request",
                counted(many),
                (part.1 - part.0).s()
            )
        } else {
            format!(
                "{drawn} pairs of lengths were drawn of {}, of each in proportion to its requests \
                 in the whole trace",
                counted(many)
            )
        }];
        if many > MAX_LABEL_VALUES {
            said.push(format!(
                "the label {LABEL} names the {} clients that send most; the others are {LABEL} \
                 {OTHERS} together",
                MAX_LABEL_VALUES - 1
            ));
        }
        if !self.listing.without_trace.is_empty() {
            said.push(format!(
                "left out, for want of chunk-N-trace.csv: {}; nobody knows what the total lacks",
                numbers(self.listing.without_trace.iter().copied()),
            ));
        }
        let lacks = |clients: &Clients, why: &str| {
            let (missing, of) = (clients.expected(part), sending(clients, part));
            let share = percent(missing / (missing + expected));
            (!of.is_empty()).then(|| {
                let of = numbers(of.into_iter());
                format!(
                    "left out, {why}: {of}; the total lacks {missing:.0} requests, {share} % of \
                     those that are known"
                )
            })
        };
        said.extend(lacks(&self.without_file, "for want of chunk-N-dataset.json"));
        let early = "where they send before their first lengths";
        said.extend(lacks(&self.without_lengths, early));
        if !self.aside.is_empty() {
            let aside: Vec<&str> = self.aside.iter().map(String::as_str).collect();
            said.push(format!(
                "not taken from the files: {}; what is sent is text alone",
                aside.join(", ")
            ));
        }
        said
    }
}

/// The numbers of the clients that send something in a part.
fn sending(clients: &Clients, part: (Span, Span)) -> Vec<u32> {
    let sending = clients.all().iter().filter(|client| client.expected(part) > 0.0);
    sending.map(|client| client.number).collect()
}

/// The rates of a client, and an outline of its lengths where it has a file of
/// them.
fn client(
    open: &impl Fn(&str, u64) -> Result<Vec<u8>, String>,
    folder: &str,
    number: u32,
    has_lengths: bool,
) -> Result<(Trace, Option<Outline>), String> {
    let name = joined(folder, &servegen::trace_file(number));
    let trace = servegen::trace(&open(&name, TRACE_LIMIT)?);
    let trace = trace.map_err(|wrong| format!("{name}: {wrong}"))?;
    if !has_lengths {
        return Ok((trace, None));
    }
    let name = joined(folder, &servegen::lengths_file(number));
    let outline = servegen::outline(&open(&name, LENGTHS_LIMIT)?);
    Ok((trace, Some(outline.map_err(|wrong| format!("{name}: {wrong}"))?)))
}
