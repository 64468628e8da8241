//! A table of cases, and properties that hold for any input.

use jiff::Timestamp;
use jiff::tz::Offset;
use proptest::prelude::*;

use super::Precision::{self, Day, Hour, Month, Season, Week, Year};
use super::{TimeSpan, parse, parse_at};

/// A Wednesday afternoon.
const NOW: &str = "2024-05-15T14:30:00Z";

/// A question, its words that name a time, and the time: from the first date or hour up to the second, exclusive.
type Case = (&'static str, &'static str, &'static str, &'static str, Precision);

fn at(text: &str) -> Timestamp {
    let full = if text.len() == 10 { format!("{text}T00:00:00Z") } else { format!("{text}:00:00Z") };
    full.parse().unwrap()
}

/// Checks that each question, asked at `now`, names exactly the given time.
#[track_caller]
fn check(now: &str, cases: &[Case]) {
    let now: Timestamp = now.parse().unwrap();
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(question, text, start, end, precision)| {
            let spans = parse(question, now);
            let found: Vec<_> = spans
                .iter()
                .map(|span| (&question[span.text.clone()], span.start, span.end, span.precision))
                .collect();
            let expected = vec![(*text, at(start), at(end), *precision)];
            (found != expected).then(|| format!("{question:?}: {found:?}, expected {expected:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Checks that none of the questions names a time.
#[track_caller]
fn check_none(questions: &[&str]) {
    let now = NOW.parse().unwrap();
    let wrong: Vec<_> = questions.iter().filter(|question| !parse(question, now).is_empty()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn english_days_weeks_months_and_years_from_now() {
    check(
        NOW,
        &[
            ("What did I eat today?", "today", "2024-05-15", "2024-05-16", Day),
            ("Yesterday's lunch", "Yesterday", "2024-05-14", "2024-05-15", Day),
            ("the day before yesterday", "day before yesterday", "2024-05-13", "2024-05-14", Day),
            ("what happens tomorrow", "tomorrow", "2024-05-16", "2024-05-17", Day),
            ("the day after tomorrow", "day after tomorrow", "2024-05-17", "2024-05-18", Day),
            ("who called last night?", "last night", "2024-05-14T18", "2024-05-15T06", Hour),
            ("plans for tonight", "tonight", "2024-05-15T18", "2024-05-16T06", Hour),
            ("this morning I ran", "this morning", "2024-05-15T05", "2024-05-15T12", Hour),
            ("yesterday afternoon", "yesterday afternoon", "2024-05-14T12", "2024-05-14T18", Hour),
            ("on Monday evening", "Monday evening", "2024-05-13T18", "2024-05-14T00", Hour),
            ("3 days ago", "3 days ago", "2024-05-12", "2024-05-13", Day),
            ("a day ago", "a day ago", "2024-05-14", "2024-05-15", Day),
            ("what did I say two weeks ago?", "two weeks ago", "2024-04-28", "2024-05-05", Week),
            ("a fortnight ago", "a fortnight ago", "2024-04-28", "2024-05-05", Week),
            ("a couple of weeks ago", "a couple of weeks ago", "2024-04-28", "2024-05-05", Week),
            ("a couple days ago", "a couple days ago", "2024-05-13", "2024-05-14", Day),
            ("a few days ago", "a few days ago", "2024-05-09", "2024-05-14", Day),
            ("several months ago", "several months ago", "2023-11-01", "2024-04-01", Month),
            ("two or three days ago", "two or three days ago", "2024-05-12", "2024-05-14", Day),
            ("2-3 days ago", "2-3 days ago", "2024-05-12", "2024-05-14", Day),
            ("twenty-five days ago", "twenty-five days ago", "2024-04-20", "2024-04-21", Day),
            ("one month ago", "one month ago", "2024-04-01", "2024-05-01", Month),
            ("about 18 months ago", "18 months ago", "2022-11-01", "2022-12-01", Month),
            ("an hour ago", "an hour ago", "2024-05-15T13", "2024-05-15T14", Hour),
            ("forty minutes ago", "forty minutes ago", "2024-05-15T13", "2024-05-15T14", Hour),
            ("half an hour ago", "half an hour ago", "2024-05-15T14", "2024-05-15T15", Hour),
            ("half a year ago", "half a year ago", "2023-10-01", "2024-01-01", Month),
            ("ten years ago", "ten years ago", "2014-01-01", "2015-01-01", Year),
            ("a decade ago", "a decade ago", "2014-01-01", "2015-01-01", Year),
            ("two weekends ago", "two weekends ago", "2024-05-04", "2024-05-06", Week),
            ("three days from now", "three days from now", "2024-05-18", "2024-05-19", Day),
            ("last week", "last week", "2024-05-06", "2024-05-13", Week),
            ("previous week", "previous week", "2024-05-06", "2024-05-13", Week),
            ("this week", "this week", "2024-05-13", "2024-05-20", Week),
            ("next week", "next week", "2024-05-20", "2024-05-27", Week),
            ("the week before last", "week before last", "2024-04-29", "2024-05-06", Week),
            ("last month's bill", "last month", "2024-04-01", "2024-05-01", Month),
            ("this month", "this month", "2024-05-01", "2024-06-01", Month),
            ("next month", "next month", "2024-06-01", "2024-07-01", Month),
            ("the month before last", "month before last", "2024-03-01", "2024-04-01", Month),
            ("Where did we go last year?", "last year", "2023-01-01", "2024-01-01", Year),
            ("this year", "this year", "2024-01-01", "2025-01-01", Year),
            ("next year", "next year", "2025-01-01", "2026-01-01", Year),
            ("the year before last", "year before last", "2022-01-01", "2023-01-01", Year),
            ("last weekend", "last weekend", "2024-05-11", "2024-05-13", Week),
            ("this past weekend", "this past weekend", "2024-05-11", "2024-05-13", Week),
            ("this weekend", "this weekend", "2024-05-18", "2024-05-20", Week),
            ("over the weekend", "weekend", "2024-05-11", "2024-05-13", Week),
            ("the last few days", "last few days", "2024-05-09", "2024-05-16", Day),
            ("the past 3 months", "past 3 months", "2024-02-15", "2024-05-16", Month),
            ("last two weeks", "last two weeks", "2024-05-01", "2024-05-16", Week),
            ("over the past week", "past week", "2024-05-08", "2024-05-16", Week),
            ("in the last year", "last year", "2023-05-15", "2024-05-16", Year),
            ("in the past 2 hours", "past 2 hours", "2024-05-15T12", "2024-05-15T15", Hour),
            ("the past half year", "past half year", "2023-11-15", "2024-05-16", Month),
        ],
    );
}

#[test]
fn english_weekdays() {
    check(
        NOW,
        &[
            ("last Monday", "last Monday", "2024-05-13", "2024-05-14", Day),
            ("last Wednesday", "last Wednesday", "2024-05-08", "2024-05-09", Day),
            ("What did I promise on Friday?", "Friday", "2024-05-10", "2024-05-11", Day),
            ("on wednesday", "wednesday", "2024-05-15", "2024-05-16", Day),
            ("this Friday", "this Friday", "2024-05-17", "2024-05-18", Day),
            ("next Tuesday", "next Tuesday", "2024-05-21", "2024-05-22", Day),
            ("last Fri", "last Fri", "2024-05-10", "2024-05-11", Day),
            ("on Sat", "Sat", "2024-05-11", "2024-05-12", Day),
            ("Wednesday of last week", "Wednesday of last week", "2024-05-08", "2024-05-09", Day),
            ("Monday last week", "Monday last week", "2024-05-06", "2024-05-07", Day),
            ("last week on Monday", "last week on Monday", "2024-05-06", "2024-05-07", Day),
            ("Monday, May 6, 2024", "Monday, May 6, 2024", "2024-05-06", "2024-05-07", Day),
        ],
    );
}

#[test]
fn english_months_and_dates() {
    check(
        NOW,
        &[
            ("last March", "last March", "2024-03-01", "2024-04-01", Month),
            ("last May", "last May", "2023-05-01", "2023-06-01", Month),
            ("in March", "March", "2024-03-01", "2024-04-01", Month),
            ("What did I plan in may?", "may", "2024-05-01", "2024-06-01", Month),
            ("in October", "October", "2023-10-01", "2023-11-01", Month),
            ("the January trip", "January", "2024-01-01", "2024-02-01", Month),
            ("this June", "this June", "2024-06-01", "2024-07-01", Month),
            ("next January", "next January", "2025-01-01", "2025-02-01", Month),
            ("since March", "March", "2024-03-01", "2024-05-16", Month),
            ("March 2023", "March 2023", "2023-03-01", "2023-04-01", Month),
            ("march 2023", "march 2023", "2023-03-01", "2023-04-01", Month),
            ("May of 2022", "May of 2022", "2022-05-01", "2022-06-01", Month),
            ("March last year", "March last year", "2023-03-01", "2023-04-01", Month),
            ("last year in March", "last year in March", "2023-03-01", "2023-04-01", Month),
            ("June two years ago", "June two years ago", "2022-06-01", "2022-07-01", Month),
            ("Sept. 2021", "Sept. 2021", "2021-09-01", "2021-10-01", Month),
            ("in Jan", "Jan", "2024-01-01", "2024-02-01", Month),
            ("May '23", "May '23", "2023-05-01", "2023-06-01", Month),
            ("in 2022", "2022", "2022-01-01", "2023-01-01", Year),
            ("since 2020", "2020", "2020-01-01", "2024-05-16", Year),
            ("in the 1990s", "1990s", "1990-01-01", "2000-01-01", Year),
            ("in 1897 they met", "1897", "1897-01-01", "1898-01-01", Year),
            ("on 5 May 2023", "5 May 2023", "2023-05-05", "2023-05-06", Day),
            ("on 1st September 2023", "1st September 2023", "2023-09-01", "2023-09-02", Day),
            ("the 31 of December 2023", "31 of December 2023", "2023-12-31", "2024-01-01", Day),
            ("the 31st of December", "31st of December", "2023-12-31", "2024-01-01", Day),
            ("May 5th", "May 5th", "2024-05-05", "2024-05-06", Day),
            ("may 5th", "may 5th", "2024-05-05", "2024-05-06", Day),
            ("May 23, 2023", "May 23, 2023", "2023-05-23", "2023-05-24", Day),
            ("November 9, 2022?", "November 9, 2022", "2022-11-09", "2022-11-10", Day),
            ("June 3", "June 3", "2023-06-03", "2023-06-04", Day),
            ("31 Dec 2023", "31 Dec 2023", "2023-12-31", "2024-01-01", Day),
            ("Jan. 5", "Jan. 5", "2024-01-05", "2024-01-06", Day),
            ("February 29", "February 29", "2024-02-29", "2024-03-01", Day),
            ("May 5 last year", "May 5 last year", "2023-05-05", "2023-05-06", Day),
            ("April 5-7, 2023", "April 5-7, 2023", "2023-04-05", "2023-04-08", Day),
            ("On December 30, 1896, how long", "December 30, 1896", "1896-12-30", "1896-12-31", Day),
            ("2023-05-05", "2023-05-05", "2023-05-05", "2023-05-06", Day),
            ("at 2023-05-05T10:00", "2023-05-05", "2023-05-05", "2023-05-06", Day),
            ("2023/5/6", "2023/5/6", "2023-05-06", "2023-05-07", Day),
            ("5/6/2023", "5/6/2023", "2023-05-06", "2023-05-07", Day),
            ("25/6/2023.", "25/6/2023", "2023-06-25", "2023-06-26", Day),
            ("5.6.2023", "5.6.2023", "2023-06-05", "2023-06-06", Day),
            ("the 2023-05 report", "2023-05", "2023-05-01", "2023-06-01", Month),
        ],
    );
}

#[test]
fn english_seasons_parts_and_holidays() {
    check(
        NOW,
        &[
            ("early March", "early March", "2024-03-01", "2024-03-11", Week),
            ("mid-March", "mid-March", "2024-03-11", "2024-03-21", Week),
            ("in late March 2023", "late March 2023", "2023-03-21", "2023-04-01", Week),
            ("late may", "late may", "2024-05-21", "2024-06-01", Week),
            ("early 2023", "early 2023", "2023-01-01", "2023-05-01", Month),
            ("mid 2022", "mid 2022", "2022-05-01", "2022-09-01", Month),
            ("late last year", "late last year", "2023-09-01", "2024-01-01", Month),
            ("early last week", "early last week", "2024-05-06", "2024-05-08", Day),
            ("the beginning of last month", "beginning of last month", "2024-04-01", "2024-04-11", Week),
            ("at the end of last month", "end of last month", "2024-04-21", "2024-05-01", Week),
            ("the end of March", "end of March", "2024-03-21", "2024-04-01", Week),
            ("the start of 2023", "start of 2023", "2023-01-01", "2023-04-01", Month),
            ("the end of the month", "end of the month", "2024-04-21", "2024-05-01", Week),
            ("the beginning of the year", "beginning of the year", "2024-01-01", "2024-04-01", Month),
            ("the end of the year", "end of the year", "2023-10-01", "2024-01-01", Month),
            ("the first week of 2024", "first week of 2024", "2024-01-01", "2024-01-08", Week),
            ("the last week of March", "last week of March", "2024-03-25", "2024-04-01", Week),
            ("the second half of 2022", "second half of 2022", "2022-07-01", "2023-01-01", Month),
            ("summer of 2022", "summer of 2022", "2022-06-01", "2022-09-01", Season),
            ("winter 2022", "winter 2022", "2022-12-01", "2023-03-01", Season),
            ("the winter of 2022/23", "winter of 2022/23", "2022-12-01", "2023-03-01", Season),
            ("in the spring of 2024", "spring of 2024", "2024-03-01", "2024-06-01", Season),
            ("fall 2021", "fall 2021", "2021-09-01", "2021-12-01", Season),
            ("the fall of 2021", "fall of 2021", "2021-09-01", "2021-12-01", Season),
            ("last summer", "last summer", "2023-06-01", "2023-09-01", Season),
            ("last fall", "last fall", "2023-09-01", "2023-12-01", Season),
            ("last winter", "last winter", "2023-12-01", "2024-03-01", Season),
            ("this spring", "this spring", "2024-03-01", "2024-06-01", Season),
            ("next winter", "next winter", "2024-12-01", "2025-03-01", Season),
            ("over the summer", "summer", "2023-06-01", "2023-09-01", Season),
            ("the summer of last year", "summer of last year", "2023-06-01", "2023-09-01", Season),
            ("last year's summer", "last year's summer", "2023-06-01", "2023-09-01", Season),
            ("early summer 2022", "early summer 2022", "2022-06-01", "2022-07-01", Month),
            ("last Christmas", "last Christmas", "2023-12-25", "2023-12-26", Day),
            ("on Christmas Eve", "Christmas Eve", "2023-12-24", "2023-12-25", Day),
            ("New Year's Eve 2022", "New Year's Eve 2022", "2022-12-31", "2023-01-01", Day),
            ("on Halloween", "Halloween", "2023-10-31", "2023-11-01", Day),
        ],
    );
}

#[test]
fn chinese_days_weeks_months_and_years_from_now() {
    check(
        NOW,
        &[
            ("我今天吃了什么？", "今天", "2024-05-15", "2024-05-16", Day),
            ("昨天谁来了", "昨天", "2024-05-14", "2024-05-15", Day),
            ("前天", "前天", "2024-05-13", "2024-05-14", Day),
            ("大前天", "大前天", "2024-05-12", "2024-05-13", Day),
            ("明天有什么安排", "明天", "2024-05-16", "2024-05-17", Day),
            ("後天", "後天", "2024-05-17", "2024-05-18", Day),
            ("昨晚我去了哪里", "昨晚", "2024-05-14T18", "2024-05-15T06", Hour),
            ("昨天晚上", "昨天晚上", "2024-05-14T18", "2024-05-15T06", Hour),
            ("今天晚饭吃什么", "今天", "2024-05-15", "2024-05-16", Day),
            ("今早", "今早", "2024-05-15T05", "2024-05-15T12", Hour),
            ("前天下午", "前天下午", "2024-05-13T12", "2024-05-13T18", Hour),
            ("上周", "上周", "2024-05-06", "2024-05-13", Week),
            ("上週", "上週", "2024-05-06", "2024-05-13", Week),
            ("上上周", "上上周", "2024-04-29", "2024-05-06", Week),
            ("上个星期我说了什么", "上个星期", "2024-05-06", "2024-05-13", Week),
            ("本周", "本周", "2024-05-13", "2024-05-20", Week),
            ("這個禮拜", "這個禮拜", "2024-05-13", "2024-05-20", Week),
            ("下周", "下周", "2024-05-20", "2024-05-27", Week),
            ("上周三", "上周三", "2024-05-08", "2024-05-09", Day),
            ("上週三我們談了什麼", "上週三", "2024-05-08", "2024-05-09", Day),
            ("上个星期天", "上个星期天", "2024-05-12", "2024-05-13", Day),
            ("这周五", "这周五", "2024-05-17", "2024-05-18", Day),
            ("下周一上午", "下周一上午", "2024-05-20T05", "2024-05-20T12", Hour),
            ("周五我答应了什么", "周五", "2024-05-10", "2024-05-11", Day),
            ("星期三", "星期三", "2024-05-15", "2024-05-16", Day),
            ("禮拜天", "禮拜天", "2024-05-12", "2024-05-13", Day),
            ("周末", "周末", "2024-05-11", "2024-05-13", Week),
            ("上个周末", "上个周末", "2024-05-11", "2024-05-13", Week),
            ("上周末", "上周末", "2024-05-11", "2024-05-13", Week),
            ("这个周末", "这个周末", "2024-05-18", "2024-05-20", Week),
            ("早上周末", "周末", "2024-05-11", "2024-05-13", Week),
            ("上个月", "上个月", "2024-04-01", "2024-05-01", Month),
            ("上個月", "上個月", "2024-04-01", "2024-05-01", Month),
            ("上上个月", "上上个月", "2024-03-01", "2024-04-01", Month),
            ("这个月", "这个月", "2024-05-01", "2024-06-01", Month),
            ("下个月", "下个月", "2024-06-01", "2024-07-01", Month),
            ("三天前", "三天前", "2024-05-12", "2024-05-13", Day),
            ("3天前我说过什么", "3天前", "2024-05-12", "2024-05-13", Day),
            ("十二天以前", "十二天以前", "2024-05-03", "2024-05-04", Day),
            ("两周前", "两周前", "2024-04-28", "2024-05-05", Week),
            ("兩個星期前", "兩個星期前", "2024-04-28", "2024-05-05", Week),
            ("三个月前", "三个月前", "2024-02-01", "2024-03-01", Month),
            ("半年前", "半年前", "2023-10-01", "2024-01-01", Month),
            ("半个月前", "半个月前", "2024-04-27", "2024-05-04", Week),
            ("两小时前", "两小时前", "2024-05-15T12", "2024-05-15T13", Hour),
            ("几天前", "几天前", "2024-05-09", "2024-05-14", Day),
            ("前几天", "前几天", "2024-05-09", "2024-05-14", Day),
            ("两三天前", "两三天前", "2024-05-12", "2024-05-14", Day),
            ("十多年前", "十多年前", "2014-01-01", "2015-01-01", Year),
            ("三年前的夏天", "三年前的夏天", "2021-06-01", "2021-09-01", Season),
            ("去年", "去年", "2023-01-01", "2024-01-01", Year),
            ("前年", "前年", "2022-01-01", "2023-01-01", Year),
            ("今年", "今年", "2024-01-01", "2025-01-01", Year),
            ("明年", "明年", "2025-01-01", "2026-01-01", Year),
            ("最近几天", "最近几天", "2024-05-09", "2024-05-16", Day),
            ("最近一周", "最近一周", "2024-05-08", "2024-05-16", Week),
            ("过去三个月", "过去三个月", "2024-02-15", "2024-05-16", Month),
            ("過去三個月", "過去三個月", "2024-02-15", "2024-05-16", Month),
            ("近半年", "近半年", "2023-11-15", "2024-05-16", Month),
            ("这两天", "这两天", "2024-05-13", "2024-05-16", Day),
        ],
    );
}

#[test]
fn chinese_dates_seasons_and_parts() {
    check(
        NOW,
        &[
            ("去年夏天", "去年夏天", "2023-06-01", "2023-09-01", Season),
            ("去年的冬天", "去年的冬天", "2023-12-01", "2024-03-01", Season),
            ("2022年秋天", "2022年秋天", "2022-09-01", "2022-12-01", Season),
            ("上个夏天", "上个夏天", "2023-06-01", "2023-09-01", Season),
            ("去年暑假", "去年暑假", "2023-06-01", "2023-09-01", Season),
            ("去年三月", "去年三月", "2023-03-01", "2023-04-01", Month),
            ("去年三月五日", "去年三月五日", "2023-03-05", "2023-03-06", Day),
            ("三月", "三月", "2024-03-01", "2024-04-01", Month),
            ("十月份", "十月份", "2023-10-01", "2023-11-01", Month),
            ("三月五日", "三月五日", "2024-03-05", "2024-03-06", Day),
            ("5月5号", "5月5号", "2024-05-05", "2024-05-06", Day),
            ("５月５號", "５月５號", "2024-05-05", "2024-05-06", Day),
            ("十二月二十五日", "十二月二十五日", "2023-12-25", "2023-12-26", Day),
            ("5月5号晚上", "5月5号晚上", "2024-05-05T18", "2024-05-06T06", Hour),
            ("2023年", "2023年", "2023-01-01", "2024-01-01", Year),
            ("2023年5月", "2023年5月", "2023-05-01", "2023-06-01", Month),
            ("2023年5月5日", "2023年5月5日", "2023-05-05", "2023-05-06", Day),
            ("二〇二三年五月五日", "二〇二三年五月五日", "2023-05-05", "2023-05-06", Day),
            ("二零二三年", "二零二三年", "2023-01-01", "2024-01-01", Year),
            ("23年5月", "23年5月", "2023-05-01", "2023-06-01", Month),
            ("2023年前", "2023年", "2023-01-01", "2024-01-01", Year),
            ("三月以来", "三月以来", "2024-03-01", "2024-05-16", Month),
            ("月初", "月初", "2024-05-01", "2024-05-11", Week),
            ("月底", "月底", "2024-04-21", "2024-05-01", Week),
            ("年初", "年初", "2024-01-01", "2024-04-01", Month),
            ("年底", "年底", "2023-10-01", "2024-01-01", Month),
            ("去年年底", "去年年底", "2023-10-01", "2024-01-01", Month),
            ("去年底", "去年底", "2023-10-01", "2024-01-01", Month),
            ("今年上半年", "今年上半年", "2024-01-01", "2024-07-01", Month),
            ("上个月底", "上个月底", "2024-04-21", "2024-05-01", Week),
            ("上個月五號", "上個月五號", "2024-04-05", "2024-04-06", Day),
            ("三月中旬", "三月中旬", "2024-03-11", "2024-03-21", Week),
            ("三月底", "三月底", "2024-03-21", "2024-04-01", Week),
            ("去年圣诞节", "去年圣诞节", "2023-12-25", "2023-12-26", Day),
            ("2023-05-05的会议", "2023-05-05", "2023-05-05", "2023-05-06", Day),
        ],
    );
}

#[test]
fn the_calendar_turns_at_its_edges() {
    // The last day of a leap year's February, a Thursday.
    check(
        "2024-02-29T23:59:59Z",
        &[
            ("this winter", "this winter", "2023-12-01", "2024-03-01", Season),
            ("last winter", "last winter", "2022-12-01", "2023-03-01", Season),
            ("今年冬天", "今年冬天", "2023-12-01", "2024-03-01", Season),
            ("tomorrow", "tomorrow", "2024-03-01", "2024-03-02", Day),
            ("the past year", "past year", "2023-02-28", "2024-03-01", Year),
            ("last month", "last month", "2024-01-01", "2024-02-01", Month),
        ],
    );
    // A Sunday, the last day of the year.
    check(
        "2023-12-31T00:00:00Z",
        &[
            ("this week", "this week", "2023-12-25", "2024-01-01", Week),
            ("next week", "next week", "2024-01-01", "2024-01-08", Week),
            ("last Sunday", "last Sunday", "2023-12-24", "2023-12-25", Day),
            ("last weekend", "last weekend", "2023-12-23", "2023-12-25", Week),
            ("周末", "周末", "2023-12-30", "2024-01-01", Week),
            ("上周日", "上周日", "2023-12-24", "2023-12-25", Day),
            ("last December", "last December", "2022-12-01", "2023-01-01", Month),
        ],
    );
    check(
        "2024-03-31T12:00:00Z",
        &[
            ("one month ago", "one month ago", "2024-02-01", "2024-03-01", Month),
            ("last month", "last month", "2024-02-01", "2024-03-01", Month),
            ("February 29", "February 29", "2024-02-29", "2024-03-01", Day),
        ],
    );
    check("2023-03-31T12:00:00Z", &[("February 29", "February 29", "2020-02-29", "2020-03-01", Day)]);
}

#[test]
fn words_that_only_look_like_times_name_none() {
    check_none(&[
        "may I ask something?",
        "This may help",
        "you may 5 times",
        "5 may be enough",
        "May I come in?",
        "What did May say?",
        "they march on",
        "we march 5 miles",
        "the last march was long",
        "Women's March",
        "a second thought",
        "wait a second",
        "my second job",
        "did she fall?",
        "my last fall hurt",
        "hurt in the fall",
        "the fall of Rome",
        "sitting in the sun",
        "he sat on the sofa",
        "they wed in a church",
        "the sun on sat images",
        "Who is April?",
        "June's recipe",
        "an august company",
        "Jan and Dec",
        "his summer drives",
        "a spring in the sofa",
        "summer is my favourite season",
        "recently",
        "the last time I saw her",
        "my last name",
        "at last",
        "half past two",
        "every Monday",
        "on Mondays",
        "Black Friday deals",
        "weekend plans",
        "in 2000 words",
        "2000 dollars",
        "call 555-2023-05-05",
        "version 1.2.2023.4",
        "1.5 years ago",
        "2,000 years ago",
        "99/99/2023",
        "2023-13-45",
        "February 30",
        "a long time ago",
        "Christmas tree",
        "最近",
        "以前天天跑步",
        "以前年轻的时候",
        "一周三次",
        "每周三开会",
        "每个周末",
        "两周年",
        "日本周边",
        "这周围有什么",
        "三年级",
        "夏天我喜欢做什么",
        "三个月",
        "三天前后",
        "二十三月",
        "13月",
        "五月天的歌",
        "前一天",
        "这一天",
        "之前",
        "谁的生日在上半年",
        "附近三天",
        "",
    ]);
}

#[test]
fn a_question_may_name_several_times() {
    let now = NOW.parse().unwrap();
    let question = "Between 2020 and 2022, and again last week or 上周三?";
    let texts: Vec<_> = parse(question, now).into_iter().map(|span| &question[span.text]).collect();
    assert_eq!(texts, ["2020", "2022", "last week", "上周三"]);
}

#[test]
fn days_begin_at_the_asker_s_midnight() {
    let now = "2024-05-15T20:30:00Z".parse().unwrap();
    let spans = parse_at("今天", now, Offset::constant(8));
    let start: Timestamp = "2024-05-15T16:00:00Z".parse().unwrap();
    let end = "2024-05-16T16:00:00Z".parse().unwrap();
    assert_eq!(spans, [TimeSpan { start, end, text: 0..6, precision: Day }]);
    assert!(spans[0].contains(start) && !spans[0].contains(end));
}

/// The words of every rule, so that random sequences of them reach every branch.
const PIECES: &[&str] = &[
    "last",
    "this",
    "next",
    "past",
    "week",
    "month",
    "year",
    "weekend",
    "Monday",
    "sun",
    "march",
    "May",
    "Jan",
    "of",
    "the",
    "in",
    "a",
    "few",
    "couple",
    "half",
    "two",
    "twenty",
    "ago",
    "from",
    "now",
    "early",
    "mid",
    "-",
    "end",
    "'",
    "s",
    "2023",
    "5",
    "31",
    "th",
    "/",
    ".",
    ",",
    "9999",
    "999999999999",
    "0",
    "summer",
    "fall",
    "christmas",
    "new",
    "before",
    "since",
    "first",
    "上",
    "下",
    "这",
    "本",
    "个",
    "周",
    "星期",
    "月",
    "年",
    "三",
    "十",
    "百",
    "〇",
    "二",
    "天",
    "日",
    "前",
    "后",
    "大",
    "去",
    "今",
    "半",
    "几",
    "最近",
    "过去",
    "夏天",
    "初",
    "底",
    "号",
    "末",
    "晚上",
    "多",
    "以来",
    "的",
    " ",
    "\u{3000}",
    "é",
    "🦀",
];

proptest! {
    #[test]
    fn any_text_is_read_without_harm(text in ".{0,200}", micros in any::<i64>()) {
        holds(&text, micros)?;
    }

    #[test]
    fn any_sequence_of_pieces_is_read_without_harm(
        pieces in prop::collection::vec(prop::sample::select(PIECES), 0..24),
        glue in prop::sample::select(&["", " "][..]),
        micros in any::<i64>(),
    ) {
        holds(&pieces.join(glue), micros)?;
    }
}

fn holds(text: &str, micros: i64) -> Result<(), TestCaseError> {
    let extremes = [Timestamp::MIN, Timestamp::MAX, NOW.parse().unwrap()];
    let now = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH);
    for now in extremes.into_iter().chain([now]) {
        let mut end = 0;
        for span in parse(text, now) {
            prop_assert!(span.start < span.end, "{:?}", span);
            prop_assert!(end <= span.text.start && span.text.start < span.text.end, "{:?}", span);
            prop_assert!(text.get(span.text.clone()).is_some(), "{:?}", span);
            end = span.text.end;
        }
    }
    Ok(())
}

#[test]
fn hostile_input_takes_linear_work() {
    // Each text would take hours if a rule looked further than a fixed number of tokens.
    let now = NOW.parse().unwrap();
    for piece in
        ["last ", "twenty-", "a few ", "上", "十", "百", "5/", "9", " ", "'", "the end of ", "早上周", "二"]
    {
        parse(&piece.repeat(100_000 / piece.len()), now);
    }
}
