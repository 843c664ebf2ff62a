//! Text in terminal columns: how wide it is, and where a line may break. Chinese
//! takes two columns a character and has no blanks to break at.

/// Columns that a text takes in a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(width).sum()
}

/// Columns of one character: the blocks of the Unicode East Asian Width table
/// that are wide or fullwidth, and the marks that stand on the character
/// before them.
const fn width(c: char) -> usize {
    match c {
        '\u{0300}'..='\u{036f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f680}'..='\u{1f6ff}'
        | '\u{1f900}'..='\u{1f9ff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// Lines of at most `limit` columns, broken at blanks and around wide
/// characters, never before a closing mark or after an opening one. A piece
/// that is wider than a whole line is cut: it is a server's, and no address to
/// copy.
pub(crate) fn wrap(text: &str, limit: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        for (position, piece) in pieces(word).into_iter().enumerate() {
            let blank = usize::from(position == 0 && used > 0);
            let mut line = lines.pop().unwrap_or_default();
            if used > 0 && used + blank + columns(piece) > limit {
                lines.push(std::mem::take(&mut line));
                used = 0;
            } else {
                line.push_str(&" ".repeat(blank));
                used += blank;
            }
            for c in piece.chars() {
                if used + width(c) > limit {
                    lines.push(std::mem::take(&mut line));
                    used = 0;
                }
                line.push(c);
                used += width(c);
            }
            lines.push(line);
        }
    }
    lines
}

/// The parts of a word between which a line may break.
fn pieces(word: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut before: Option<char> = None;
    for (at, c) in word.char_indices() {
        if before.is_some_and(|before| may_break(before, c)) {
            pieces.push(&word[start..at]);
            start = at;
        }
        before = Some(c);
    }
    pieces.push(&word[start..]);
    pieces
}

/// Whether a line may break between two characters without a blank.
fn may_break(before: char, c: char) -> bool {
    let closes = |c: char| "，。；：、？！）》”’,.;:?!)]}%*".contains(c);
    let opens = |c: char| "（《“‘([{".contains(c);
    let is_wide = |c: char| width(c) == 2;
    (is_wide(before) || is_wide(c)) && width(c) > 0 && !closes(c) && !opens(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns_and_marks_none() {
        for (text, wide) in
            [("TTFT", 4), ("上海", 4), ("한국", 4), ("e\u{301}", 1), ("≥ 3", 3), ("🚀", 2)]
        {
            assert_eq!(columns(text), wide, "{text}");
        }
    }

    #[test]
    fn lines_break_between_words_and_inside_only_where_one_word_is_too_long() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("(a b)", 3), ["(a", "b)"]);
        assert_eq!(wrap("it’s a “word”", 7), ["it’s a", "“word”"]);
    }

    #[test]
    fn lines_break_around_chinese_but_not_before_a_closing_mark() {
        assert_eq!(wrap("a 上海上海 b", 5), ["a 上", "海上", "海 b"]);
        assert_eq!(wrap("均值，尾延迟", 5), ["均", "值，", "尾延", "迟"]);
        assert_eq!(wrap("均值（P99）", 8), ["均值", "（P99）"]);
        assert_eq!(wrap("占 90 %，其余", 6), ["占 90", "%，其", "余"]);
        assert_eq!(wrap("有“尾”值", 4), ["有", "“尾”", "值"]);
    }

    #[test]
    fn wrapping_loses_nothing_but_blanks_at_line_ends() {
        let text = "TTFT 不等于 prefill 时间：排队（与网络）都算在内。 Two words, e.g. 90 % here.";
        let bare = |text: &str| text.replace(' ', "");
        for limit in 2..60 {
            let lines = wrap(text, limit);
            assert_eq!(bare(&lines.concat()), bare(text), "{limit}");
            assert!(lines.iter().all(|line| columns(line) <= limit), "{limit}: {lines:?}");
        }
    }
}
