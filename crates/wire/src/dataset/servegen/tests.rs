use proptest::prelude::*;

use super::*;

/// Rows of `language/m-large/chunk-1-trace.csv` of ServeGen, numbers shortened,
/// with CR LF in places and a blank line at the end.
const TRACE: &str = "31800,0.043333,1.048625,Gamma,0.909409,0.088585\r\n\
                     32400,0,0,,0,0\n\
                     33000,1.625,10.470393,Weibull,0.351909,0.296482\r\n\
                     33600,0.5,1,,0,0\n\n";

const LENGTHS: &str = r#"{
  "0": {
    "input_tokens": "{}",
    "output_tokens": "{}"
  },
  "21600": {
    "input_tokens": "{143: 0.25, 148: 0.5, 149: 0.25}",
    "output_tokens": "{18: 5.0e-01, 0: 0.1, 19: 0.4}",
    "reason_ratio": "{0.0: 0.0, 0.25: 1.0}"
  },
  "100800": {
    "text_tokens": "{974: 1.0}",
    "image_tokens": {"960": 1.0},
    "output_tokens": "{2: 1.0}"
  }
}"#;

fn s(seconds: i64) -> Span {
    Span::from_ms(seconds * 1_000)
}

fn told<T: fmt::Debug>(read: Result<T, Wrong>) -> String {
    read.expect_err("this is refused").to_string()
}

#[test]
fn a_trace_is_windows_with_their_rates_and_gaps() {
    let read = trace(TRACE.as_bytes()).unwrap();
    assert_eq!((read.from, read.until), (s(31_800), s(34_200)));
    let active = |from, rate, gaps, source_row| {
        let (from, until) = (s(from), s(from + 600));
        Active { from, until, rate: PerSecond::new(rate), gaps, source_row }
    };
    assert_eq!(
        read.active,
        [
            active(31_800, 0.043333, Gaps::Gamma { shape: 0.909409 }, 1),
            active(33_000, 1.625, Gaps::Weibull { shape: 0.351909 }, 3),
            active(33_600, 0.5, Gaps::Exponential, 4),
        ]
    );
    let one = trace(b"0,2,1,Gamma,1,1").unwrap();
    assert_eq!((one.from, one.until, one.active.len()), (s(0), s(600), 1));
    // A window may have a length of its own, and a silent one no fit.
    let uneven = trace(b"0,1,0,,0,0\n90,0,0,Gamma,0,0\n150,1,0,,0,0\n").unwrap();
    assert_eq!(uneven.active[0].until, s(90));
    assert_eq!((uneven.active[1].until, uneven.until), (s(210), s(210)));
}

#[test]
fn what_is_no_trace_is_told_with_its_line_and_column() {
    for (text, words) in [
        ("", "the file is empty"),
        ("0,0,0,,0,0\n1,2\n", "line 2 has 2 columns and not 6: time, rate, cv"),
        ("t,rate,cv,d,a,b\n", "line 1, column 1 (time): \"t\" is not a number of seconds from 0"),
        ("-1,0,0,,0,0", "line 1, column 1 (time): \"-1\" is not a number"),
        ("0,nan,0,,0,0", "line 1, column 2 (rate): \"nan\" is not a number of requests"),
        ("0,2e6,0,,0,0", "line 1, column 2 (rate): \"2e6\""),
        ("0,1,x,,0,0", "line 1, column 3 (cv): \"x\" is not a number of at least 0"),
        ("0,1,1,Pareto,1,1", "line 1, column 4 (distribution): \"Pareto\" is not known here"),
        ("\n0,1,1,Weibull,0,1", "line 2, column 5 (shape): \"0\" is not a number from 0.001"),
        ("0,1,1,Gamma,1,inf", "line 1, column 6 (scale): \"inf\""),
        ("0,0,0,,0,0\n\n600,0,0,,0,0\n0,0,0,,0,0", "line 4 goes back in time, from 600 s to 0 s"),
        ("600,0,0,,0,0\n600,0,0,,0,0", "line 2 goes back in time, from 600 s to 600 s"),
        (
            "version https://git-lfs.github.com/spec/v1\noid sha256:01b4\nsize 7236078\n",
            "it is a pointer of Git LFS and not the file itself; run git lfs pull",
        ),
    ] {
        let told = told(trace(text.as_bytes()));
        assert!(told.starts_with(words), "{text}: {told}");
    }
    assert!(told(trace(b"\xff\xfe0\0")).contains("not UTF-8"));
}

#[test]
fn an_outline_says_which_windows_have_lengths_and_what_is_not_taken() {
    let outline = outline(LENGTHS.as_bytes()).unwrap();
    assert_eq!(outline.with_lengths, [s(21_600), s(100_800)]);
    assert_eq!(outline.aside, ["image_tokens", "reason_ratio"].map(str::to_owned).into());
    assert_eq!(super::outline(b"{}").unwrap(), Outline::default());
}

#[test]
fn lists_of_the_windows_in_use_are_read() {
    let read = sizes(LENGTHS.as_bytes(), &[s(21_600)].into()).unwrap();
    let [of_six] = &read.sizes[..] else { panic!("one window: {read:?}") };
    assert_eq!(of_six.from, s(21_600));
    let bucket = |length, weight| {
        let length = Tokens::new(length);
        Bucket { low: length, high: length, weight }
    };
    let list = |entries: &[(u32, f64)]| {
        Lengths::histogram(entries.iter().map(|(n, share)| bucket(*n, *share)).collect()).unwrap()
    };
    assert_eq!(of_six.input, list(&[(143, 0.25), (148, 0.5), (149, 0.25)]));
    assert_eq!(of_six.output, list(&[(18, 0.5), (19, 0.4)]));
    assert!((read.zeros - 0.1).abs() < 1e-12);
    // Pictures have the length of their text.
    let read = sizes(LENGTHS.as_bytes(), &[s(100_800)].into()).unwrap();
    assert_eq!(read.sizes[0].input, list(&[(974, 1.0)]));
    assert_eq!(sizes(LENGTHS.as_bytes(), &BTreeSet::new()).unwrap(), Read::default());
}

#[test]
fn what_are_no_lengths_is_told_with_the_window_and_the_entry() {
    let file = |list: &str| format!(r#"{{"600": {{"input_tokens": {list}}}}}"#);
    let whole = |list: &str| {
        format!(r#"{{"600": {{"input_tokens": "{list}", "output_tokens": "{{1: 1.0}}"}}}}"#)
    };
    let all = [s(600)].into();
    for (text, words) in [
        (String::new(), "the file is empty"),
        ("{".to_owned(), "line 1: not an object of windows: EOF while parsing an object at"),
        ("[1]".to_owned(), "line 1: not an object of windows: invalid type"),
        ("{\n\"600\": 5}".to_owned(), "line 2: not an object of windows: invalid type"),
        ("{\"noon\": {}}".to_owned(), "window \"noon\" is not named by the second"),
        ("{\"1\": {}, \"1.0\": {}}".to_owned(), "window \"1.0\" is not named by the second"),
        ("{\"1\": {}}".to_owned(), "window 1 has no input_tokens"),
        (file("\"{1: 1.0}\""), "window 600 has no output_tokens"),
        (file("3"), "window 600 has no input_tokens, a text like \"{62: 0.25, 80: 0.75}\""),
        (whole("5"), "window 600, input_tokens is \"5\" and not a text like"),
        (whole("{5: 1.0"), "window 600, input_tokens is \"{5: 1.0\" and not"),
        (whole("{5: 0.5, 6}"), "window 600, input_tokens, entry 2: \"6\" is not LENGTH: SHARE"),
        (whole("{x: 1.0}"), "window 600, input_tokens, entry 1: \"x: 1.0\" is not LENGTH: SHARE"),
        (whole("{5.5: 1.0}"), "window 600, input_tokens, entry 1: \"5.5: 1.0\" is not a whole"),
        (whole("{-5: 1.0}"), "window 600, input_tokens, entry 1: \"-5: 1.0\" is not a whole"),
        (whole("{5: -1.0}"), "window 600, input_tokens, entry 1: \"5: -1.0\" is not a length with"),
        (whole("{5: nan}"), "window 600, input_tokens, entry 1: \"5: nan\" is not a length with"),
        (whole("{5: inf}"), "window 600, input_tokens, entry 1: \"5: inf\" is not a length with"),
        (whole("{5: 0.5, 6: 0.25}"), "window 600, input_tokens: the shares make 0.75 together"),
        (whole("{0: 1.0}"), "window 600, input_tokens: no length from 1 on has a share"),
    ] {
        let outline = outline(text.as_bytes()).map(|_| ());
        let told = told(outline.and_then(|()| sizes(text.as_bytes(), &all)));
        assert!(told.starts_with(words), "{text}: {told}");
    }
    // About 1 is 1.
    let close = whole("{5: 0.504, 6: 0.5}");
    assert!(sizes(close.as_bytes(), &all).is_ok());
}

#[test]
fn a_folder_is_pairs_of_files() {
    let names = [
        "chunk-3-dataset.json",
        "chunk-1-trace.csv",
        "chunk-12-trace.csv",
        "README.md",
        "chunk-1-dataset.json",
        "chunk-07-trace.csv",
        "chunk-x-trace.csv",
        "chunk-5-trace.csv.bak",
        ".DS_Store",
        "chunk-99999999999-trace.csv",
    ];
    let listing = Listing::of(names);
    assert_eq!(listing.whole, [1].into());
    assert_eq!((listing.without_lengths, listing.without_trace), ([12].into(), [3].into()));
    assert_eq!(Listing::of([]), Listing::default());
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>, head in 0..5_usize) {
        let heads = [
            "",
            "0,1,1,Gamma,2,0.5\n600,",
            "{\"0\": {\"input_tokens\": \"{1: 1.0}\", \"output_tokens\": \"{",
            "{\"0\": {\"output_tokens\": \"{1: 1.0}\", \"input_tokens\": ",
            "{",
        ];
        let bytes = [heads[head].as_bytes(), &bytes].concat();
        let _ = trace(&bytes);
        let _ = outline(&bytes);
        let _ = sizes(&bytes, &[Span::ZERO].into());
    }

    #[test]
    fn any_list_is_a_list_or_an_error(list in "[{}0-9:., enaif-]{0,40}") {
        let file = format!(
            r#"{{"0": {{"input_tokens": "{list}", "output_tokens": "{{1: 1.0}}"}}}}"#
        );
        let _ = sizes(file.as_bytes(), &[Span::ZERO].into());
    }

    #[test]
    fn a_trace_cut_anywhere_is_read_or_told(cut in 0..TRACE.len()) {
        let _ = trace(&TRACE.as_bytes()[..cut]);
    }
}
