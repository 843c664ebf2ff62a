//! Run directories: what is written is whole, what is damaged is named, and
//! nothing outside the runs directory is touched.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use measure::{At, Carries, Event, Planned, Record};
use store::{
    Appended, Joined, Note, Output, PART_SPAN, PartWriter, RunDirectory, RunId, StoreError,
    list_runs, names_in, open_run, read_file, remove_run, run_in, trash, write_file_atomic,
};
use wire::notes::Notes;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("goodput-store-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).expect("the name is unique");
        Self(path)
    }

    fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// A run; worker 0 has parts of the indexes given.
    fn run(&self, unix_ms: u64, parts: &[&[u32]]) -> RunDirectory {
        let run =
            RunDirectory::create_in(&self.0, RunId::new(unix_ms, [7; 10])).expect("it is new");
        for (part, indexes) in parts.iter().enumerate() {
            run.write_part(0, part as u32, &records(indexes)).expect("the disk takes all");
        }
        run.write_json("run.json", b"{}").expect("the disk takes all");
        run
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn records(indexes: &[u32]) -> Vec<Record> {
    let record = |index: &u32| {
        let mut record =
            Record::planned(*index, At::from_us(i64::from(*index)), Planned::default());
        let carries = Carries::TEXT;
        record.events.push(Event { at_us: *index, carries, tokens: 1, choice: 0 });
        record
    };
    indexes.iter().map(record).collect()
}

fn open(run: &RunDirectory) -> store::OpenRun {
    open_run(run.path().to_str().expect("the name is Unicode"), Path::new("nowhere"))
        .expect("it is a run")
}

fn indexes(records: &[Record]) -> Vec<u32> {
    records.iter().map(|record| record.index).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it exists");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("it is readable").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn flip_a_bit(path: &Path) {
    let mut bytes = fs::read(path).expect("it exists");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).expect("the disk takes all");
}

#[test]
fn the_names_in_a_folder_come_in_order_and_under_a_limit() {
    let folder = Folder::new();
    for name in ["b", "a", "c"] {
        fs::write(folder.join(name), "").expect("the disk takes it");
    }
    assert_eq!(names_in(&folder.0, 3).expect("it is a folder"), ["a", "b", "c"]);
    let refused = |path: &Path, limit| names_in(path, limit).expect_err("refused").to_string();
    assert!(refused(&folder.0, 2).contains("holds more than 2 files; is it the right folder?"));
    assert!(refused(&folder.join("a"), 3).ends_with("a is not a folder"));
    assert!(refused(&folder.join("no"), 3).contains("check the path"));
}

#[test]
fn a_run_comes_back_sorted_whether_in_parts_or_joined() {
    let folder = Folder::new();
    let run = folder.run(1, &[&[5, 1], &[4, 0]]);
    run.write_part(1, 0, &records(&[3, 2])).expect("the disk takes all");
    let parts = open(&run).records().expect("all is whole");
    assert_eq!(parts.records, records(&[0, 1, 2, 3, 4, 5]));
    assert!(parts.notes.is_empty(), "{:?}", parts.notes);

    let joined = run.finish(0).expect("all parts are whole");
    let path = run.path().join("requests-0.parquet");
    assert_eq!(joined, Joined::Whole { path, rows: 4 });
    assert_eq!(names(run.path()), ["requests-0.parquet", "requests-1-0.parquet", "run.json"]);
    let mixed = open(&run).records().expect("all is whole");
    assert_eq!(mixed.records, parts.records);
    assert!(mixed.notes.is_empty(), "{:?}", mixed.notes);
    assert_eq!(run.finish(2).expect("nothing to do"), Joined::Nothing);
}

#[test]
fn parts_left_beside_the_joined_file_are_not_counted_twice() {
    let folder = Folder::new();
    let run = folder.run(1, &[&[0], &[1]]);
    let part = run.path().join("requests-0-1.parquet");
    let kept = fs::read(&part).expect("it was written");
    run.finish(0).expect("all parts are whole");
    fs::write(&part, kept).expect("the disk takes all");
    let rows = open(&run).records().expect("all is whole");
    assert_eq!(indexes(&rows.records), [0, 1]);
    assert!(rows.notes.is_empty(), "{:?}", rows.notes);
}

#[test]
fn parts_stand_in_for_a_damaged_joined_file() {
    let folder = Folder::new();
    let run = folder.run(1, &[&[0], &[1]]);
    fs::write(run.path().join("requests-0.parquet"), b"PAR1").expect("the disk takes all");
    let rows = open(&run).records().expect("the parts are whole");
    assert_eq!(indexes(&rows.records), [0, 1]);
    assert!(matches!(rows.notes.as_slice(), [Note::Damaged(_)]), "{:?}", rows.notes);
}

#[test]
fn a_damaged_part_is_named_and_the_others_are_given() {
    let folder = Folder::new();
    let run = folder.run(1, &[&[0], &[1], &[2]]);
    flip_a_bit(&run.path().join("requests-0-1.parquet"));
    let rows = open(&run).records().expect("two parts are whole");
    assert_eq!(indexes(&rows.records), [0, 2]);
    let [note @ Note::Damaged(_)] = rows.notes.as_slice() else { panic!("{:?}", rows.notes) };
    assert!(note.to_string().contains("requests-0-1.parquet"), "{note}");
    assert!(note.to_string().contains("damaged"), "{note}");

    let error = run.finish(0).expect_err("a damaged part is not joined");
    assert!(error.to_string().contains("requests-0-1.parquet"), "{error}");
    assert_eq!(names(run.path()).len(), 4, "every part is still there");
}

#[test]
fn a_run_of_which_nothing_is_readable_is_an_error() {
    let folder = Folder::new();
    let run = folder.run(1, &[&[0]]);
    flip_a_bit(&run.path().join("requests-0-0.parquet"));
    let error = open(&run).records().expect_err("its only part is damaged");
    assert!(matches!(error, StoreError::Rows { .. }), "{error}");
}

#[test]
fn missing_parts_cut_writes_repeated_rows_and_no_rows_are_noted() {
    let folder = Folder::new();
    let run = folder.run(1, &[&[0], &[1], &[0]]);
    fs::remove_file(run.path().join("requests-0-1.parquet")).expect("it was written");
    fs::write(run.path().join(".requests-0-3.parquet.1-0.tmp"), b"PAR1").expect("it is new");
    let rows = open(&run).records().expect("two parts are whole");
    assert_eq!(indexes(&rows.records), [0, 0]);
    let notes: Vec<String> = rows.notes.iter().map(Note::to_string).collect();
    let about = |what: &str| notes.iter().any(|note| note.contains(what));
    assert!(about("requests-0-1.parquet is missing"), "{notes:?}");
    assert!(about(".requests-0-3.parquet.1-0.tmp"), "{notes:?}");
    assert!(about("repeat the index of another: 1"), "{notes:?}");

    let rows = open(&folder.run(2, &[])).records().expect("no rows are no damage");
    assert!(matches!(rows.notes.as_slice(), [Note::NoRows]), "{:?}", rows.notes);
}

#[test]
fn a_new_run_takes_an_empty_place_only() {
    let folder = Folder::new();
    let place = folder.join("deep/out");
    RunDirectory::create(&place).expect("it is new, and so is its parent");
    assert!(names(&place).is_empty(), "the trial file is gone");
    RunDirectory::create(&place).expect("it is empty");
    fs::write(place.join("x"), "").expect("the disk takes all");
    let error = RunDirectory::create(&place).expect_err("it is taken");
    assert!(matches!(error, StoreError::Taken { .. }), "{error}");
    assert!(error.to_string().contains("--out"), "{error}");
    assert_eq!(names(&place), ["x"]);
    let error = RunDirectory::create(&place.join("x")).expect_err("a file is there");
    assert!(matches!(error, StoreError::Taken { .. }), "{error}");
    let error = RunDirectory::create(&place.join("x/y")).expect_err("its parent is a file");
    assert!(error.to_string().contains("x/y"), "{error}");
}

#[test]
fn a_failed_write_keeps_the_records_for_the_next_try() {
    let folder = Folder::new();
    let run = RunDirectory::create(&folder.join("out")).expect("it is new");
    let mut writer = PartWriter::new(run.clone(), 0, At::ZERO);
    records(&[0, 1]).into_iter().for_each(|record| writer.push(record));
    fs::remove_dir(run.path()).expect("it is empty");
    let error = writer.flush(At::ZERO).expect_err("the directory is gone");
    assert!(error.to_string().contains("requests-0-0.parquet"), "{error}");
    assert_eq!(writer.waiting(), records(&[0, 1]));

    fs::create_dir(run.path()).expect("it is gone");
    assert!(writer.maybe_flush(At::ZERO + PART_SPAN).expect("it is back"));
    assert_eq!(open(&run).records().expect("it is whole").records, records(&[0, 1]));
}

#[test]
fn a_full_disk_says_so_and_what_to_do() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let error = write_file_atomic(full, b"x").expect_err("nothing fits there");
    assert!(error.is_disk_full());
    let text = error.to_string();
    assert!(text.contains("/dev/full") && text.contains("free some space"), "{text}");
}

#[test]
fn json_is_replaced_as_a_whole() {
    let folder = Folder::new();
    let run = folder.run(1, &[]);
    run.write_json("run.json", b"{\"a\":1}").expect("the disk takes all");
    assert_eq!(open(&run).read_json("run.json").expect("it is there"), b"{\"a\":1}");
    assert_eq!(names(run.path()), ["run.json"]);
    let error = run.write_json("../run.json", b"").expect_err("it leads out");
    assert!(matches!(error, StoreError::BadName { .. }), "{error}");
    let error = open(&run).read_json("summary.json").expect_err("there is none");
    assert!(error.to_string().contains("summary.json"), "{error}");
}

#[test]
fn a_run_is_found_by_path_beginning_and_latest() {
    let folder = Folder::new();
    let old = folder.run(1_000, &[&[0]]);
    let new = folder.run(2_000_000_000_000, &[&[1]]);
    let id = |run: &RunDirectory| run.path().file_name().unwrap().to_string_lossy().into_owned();
    let find = |target: &str| open_run(target, &folder.0);
    assert_eq!(find("latest").expect("there are two").id, id(&new));
    assert_eq!(find(&id(&old)).expect("it is its id").id, id(&old));
    assert_eq!(find(&id(&new)[..6].to_lowercase()).expect("no other starts so").id, id(&new));
    let target = old.path().to_str().expect("the name is Unicode");
    assert_eq!(find(target).expect("it is its path").id, id(&old));

    let error = find("0").expect_err("both start so");
    let StoreError::Ambiguous { matches, .. } = &error else { panic!("{error}") };
    assert_eq!(matches, &[id(&new), id(&old)]);
    let mut typed = id(&new)[..8].to_owned();
    typed.replace_range(4..5, "U");
    let error = find(&typed).expect_err("no id has a U");
    let StoreError::NoSuchRun { near, .. } = &error else { panic!("{error}") };
    assert_eq!(near, &[id(&new)]);
    assert!(error.to_string().contains("did you mean"), "{error}");
    let error = find("").expect_err("nothing is no name");
    assert!(matches!(error, StoreError::NoSuchRun { .. }), "{error}");
}

#[test]
fn what_is_no_run_is_told_apart() {
    let folder = Folder::new();
    let error = open_run("latest", &folder.join("runs")).expect_err("there is no run");
    assert!(matches!(error, StoreError::NoRuns { .. }), "{error}");
    let error = open_run(folder.0.to_str().unwrap(), &folder.0).expect_err("it is empty");
    assert!(matches!(error, StoreError::NotARun { .. }), "{error}");
    let missing = folder.join("missing");
    let error = open_run(missing.to_str().unwrap(), &folder.0).expect_err("it is missing");
    assert!(error.to_string().contains("missing"), "{error}");
}

#[test]
fn runs_are_listed_newest_first_with_their_sizes() {
    let folder = Folder::new();
    assert!(list_runs(&folder.join("none")).expect("none is no error").is_empty());
    let (old, new) = (folder.run(1_000, &[&[0]]), folder.run(2_000, &[]));
    fs::create_dir(folder.join("other")).expect("it is new");
    fs::write(folder.join("file"), "").expect("it is new");
    let runs = list_runs(&folder.0).expect("it is readable");
    let paths: Vec<&Path> = runs.iter().map(|run| run.path.as_path()).collect();
    assert_eq!(paths, [new.path(), old.path()]);
    assert_eq!(runs[0].size_bytes, 2);
    assert!(runs[1].size_bytes > 2);
}

#[test]
fn a_removed_run_is_in_the_trash_of_its_runs_directory() {
    let folder = Folder::new();
    let run = folder.run(1_000, &[&[0]]);
    let id = run.path().file_name().unwrap().to_string_lossy().into_owned();
    let place = remove_run(&id, &folder.0).expect("it lies there");
    assert!(place.ends_with(Path::new(".trash").join(&id)), "{}", place.display());
    assert!(!run.path().exists());
    assert!(list_runs(&folder.0).expect("it is readable").is_empty());
    assert_eq!(names(&place), ["requests-0-0.parquet", "run.json"]);

    folder.run(1_000, &[]);
    let second = remove_run("latest", &folder.0).expect("it lies there");
    assert!(second.ends_with(format!("{id}.2")), "{}", second.display());
    let error = remove_run(second.to_str().unwrap(), &folder.0).expect_err("it is in the trash");
    assert!(matches!(error, StoreError::Outside { .. }), "{error}");
}

#[test]
fn nothing_outside_the_runs_directory_is_removed() {
    let (folder, other) = (Folder::new(), Folder::new());
    let run = other.run(1_000, &[]);
    let error = remove_run(run.path().to_str().unwrap(), &folder.0).expect_err("it lies elsewhere");
    assert!(matches!(error, StoreError::Outside { .. }), "{error}");
    assert!(run.path().exists());

    let run = folder.run(1_000, &[]);
    std::os::unix::fs::symlink(&other.0, folder.join(".trash")).expect("it is new");
    let error = remove_run("latest", &folder.0).expect_err("the trash leads elsewhere");
    assert!(matches!(error, StoreError::Outside { .. }), "{error}");
    assert!(run.path().exists());
}

#[test]
fn an_output_is_nothing_before_it_is_written() {
    let folder = Folder::new();
    let path = folder.join("x.json");
    drop(Output::open(&path).expect("the folder is there"));
    assert!(names(&folder.0).is_empty());
    let output = Output::open(&path).expect("the folder is there");
    assert!(!path.exists());
    output.write(b"1").expect("the disk takes all");
    assert_eq!(fs::read(&path).expect("it is written"), b"1");
    let error = Output::open(&folder.join("no/x.json")).expect_err("there is no such folder");
    assert!(error.to_string().contains("no/x.json"), "{error}");
    let error = Output::open(&folder.0).expect_err("it is a directory");
    assert!(error.to_string().contains("give the path of a file"), "{error}");
}

#[test]
fn a_link_stays_a_link_and_a_device_a_device() {
    let folder = Folder::new();
    let (target, link) = (folder.join("target"), folder.join("link"));
    fs::write(&target, "old").expect("it is new");
    std::os::unix::fs::symlink(&target, &link).expect("it is new");
    write_file_atomic(&link, b"new").expect("the disk takes all");
    assert_eq!(fs::read(&target).expect("it is there"), b"new");
    assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
    write_file_atomic(Path::new("/dev/null"), b"gone").expect("it takes all");
    assert!(!fs::metadata("/dev/null").expect("it is there").is_file());
}

#[test]
fn a_file_above_the_limit_is_not_read() {
    let folder = Folder::new();
    let path = folder.join("x");
    fs::File::create(&path).and_then(|mut file| file.write_all(b"1234")).expect("it is new");
    assert_eq!(read_file(&path, 4).expect("it fits"), b"1234");
    let error = read_file(&path, 3).expect_err("it does not fit");
    assert!(matches!(error, StoreError::TooLarge { limit_bytes: 3, .. }), "{error}");
    // Endless, whatever its size says.
    assert!(read_file(Path::new("/dev/zero"), 1000).is_err());
    let error = read_file(&folder.join("y"), 3).expect_err("it is missing");
    assert!(error.to_string().contains("check the path"), "{error}");
}

#[test]
fn a_run_that_does_not_fit_into_memory_is_refused_by_its_size() {
    let folder = Folder::new();
    let run = open(&folder.run(1, &[&[0, 1], &[2]]));
    assert_eq!(run.records_within(Some(1 << 30)).expect("it fits").records.len(), 3);
    let error = run.records_within(Some(2_000)).expect_err("it does not fit");
    assert!(matches!(error, StoreError::Memory { rows: 3, free_bytes: 2_000, .. }), "{error}");
    let words = error.to_string();
    for part in ["3 requests", "0.0 GB", "more memory"] {
        assert!(words.contains(part), "{words}");
    }
    assert_eq!(run.records_within(None).expect("nobody says").records.len(), 3);
}

#[test]
fn what_is_appended_follows_what_was_there() {
    let folder = Folder::new();
    let path = folder.join("summary.md");
    for text in ["first\n", "second\n"] {
        Appended::open(&path).expect("a place").write(text.as_bytes()).expect("the disk takes it");
    }
    assert_eq!(fs::read_to_string(&path).expect("a file"), "first\nsecond\n");
    let opened = Appended::open(&path).expect("a place");
    assert_eq!(opened.bytes().expect("a length"), 13);
    drop(opened);
    assert_eq!(fs::read_to_string(&path).expect("a file").len(), 13, "opening changes nothing");
    let error = Appended::open(&folder.join("no/summary.md")).expect_err("there is no folder");
    assert!(error.to_string().contains("check the path"), "{error}");
    Appended::open(&folder.0).expect_err("a folder is no file");
}

#[test]
fn notes_are_written_whole_and_come_back() {
    let folder = Folder::new();
    let run = open(&folder.run(1, &[&[0]]));
    assert_eq!(run.notes().expect("there are none"), Notes::default());
    let before = run.measured_at().expect("it is a run");
    let notes = Notes::new(&["baseline".to_owned()], "冷启动\n<script>").expect("they are short");
    run.write_notes(&notes).expect("the disk takes them");
    assert_eq!(run.notes().expect("they are whole"), notes);
    assert_eq!(run.measured_at().expect("it is a run"), before, "notes measure nothing");
    assert_eq!(names(&run.path), ["notes.json", "requests-0-0.parquet", "run.json"]);
}

#[test]
fn notes_that_cannot_be_read_are_not_written_over() {
    let folder = Folder::new();
    let run = open(&folder.run(1, &[&[0]]));
    let path = run.path.join("notes.json");
    let newer = br#"{"format_version":9}"#;
    fs::write(&path, newer).unwrap();
    assert!(matches!(run.notes(), Err(StoreError::Notes { .. })));
    assert!(matches!(run.write_notes(&Notes::default()), Err(StoreError::Notes { .. })));
    assert_eq!(fs::read(&path).unwrap(), newer);
}

#[test]
fn a_run_by_its_exact_name_lies_in_the_runs_directory() {
    let folder = Folder::new();
    let made = folder.run(1, &[&[0]]);
    let id = made.path().file_name().unwrap().to_str().unwrap().to_owned();
    let run = run_in(&id, &folder.0).expect("it lies there");
    assert_eq!((run.id.as_str(), run.path.as_path()), (id.as_str(), made.path()));
    std::os::unix::fs::symlink(made.path(), folder.join("link")).unwrap();
    for other in ["", ".", "..", "latest", &id[..10], "link", &format!("../{id}"), "a/b", "a\0b"] {
        assert!(run_in(other, &folder.0).is_err(), "{other:?}");
    }
    let place = trash(&run, &folder.0).expect("it lies there");
    assert_eq!(place, folder.join(".trash").canonicalize().unwrap().join(&id));
    assert!(run_in(&id, &folder.0).is_err());
    for hidden in [".trash", &format!(".trash/{id}")] {
        assert!(matches!(run_in(hidden, &folder.0), Err(StoreError::BadName { .. })), "{hidden}");
    }
}
