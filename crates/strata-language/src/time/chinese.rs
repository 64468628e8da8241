//! The Chinese grammar, for simplified and traditional characters: the tokens contain simplified characters.
//!
//! Chinese has no spaces, so a time word may be the end of one word and the start of another (早上周末, 以前年轻, 日本周边). The
//! rules therefore look at the characters around a match.

mod count;

use super::calendar::{
    Calendar, Count, DayPart, FEW, Occurrence, Period, PeriodPart, Season, TimeMatch, Unit,
};
use super::english::two_digit_year;
use super::numeral::digit;
use super::token::Tokens;
use count::is_numeral;

pub(super) struct Chinese<'a> {
    tokens: &'a Tokens<'a>,
    calendar: Calendar,
}

impl<'a> Chinese<'a> {
    pub(super) fn new(tokens: &'a Tokens<'a>, calendar: Calendar) -> Self {
        Self { tokens, calendar }
    }

    /// The longest time that is named from token `i` on.
    pub(super) fn at(&self, i: usize) -> Option<TimeMatch> {
        let starts_number = self.number(i).is_some() || matches!(self.han(i), '几' | '好' | '数' | '半');
        let found = if starts_number {
            let after_number = self.tokens.is_number(i.wrapping_sub(1)) || is_numeral(self.before(i));
            let rules = [self.ago(i), self.year(i), self.month(i)];
            rules.into_iter().flatten().filter(|_| !after_number).max_by_key(|found| found.next)
        } else if self.han(i) == '\0' {
            None
        } else {
            let rules = [
                self.day(i),
                self.past(i),
                self.relative(i),
                self.weekday(i),
                self.year(i),
                self.bare_part(i),
            ];
            rules.into_iter().flatten().max_by_key(|found| found.next)
        }?;
        let found = self.with_part_of_day(found);
        match self.skip_any(found.next, &["以来", "至今", "到现在"]) {
            Some(next) => Some(TimeMatch { next, period: self.calendar.since(found.period) }),
            None => Some(found),
        }
    }

    fn han(&self, i: usize) -> char {
        self.tokens.han(i)
    }

    fn before(&self, i: usize) -> char {
        self.tokens.han_before(i)
    }

    /// The first token after `text` at `i`.
    fn skip(&self, i: usize, text: &str) -> Option<usize> {
        let mut next = i;
        for c in text.chars() {
            if self.han(next) != c {
                return None;
            }
            next += 1;
        }
        Some(next)
    }

    fn skip_any(&self, i: usize, texts: &[&str]) -> Option<usize> {
        texts.iter().find_map(|text| self.skip(i, text))
    }

    fn skip_optional(&self, i: usize, text: &str) -> usize {
        self.skip(i, text).unwrap_or(i)
    }

    /// 三天前, 两周以前, 半年前, 三年前的夏天.
    fn ago(&self, i: usize) -> Option<TimeMatch> {
        let (at, count) = self.count(i)?;
        let (at, unit) = self.unit(at)?;
        let next = self.skip_any(at, &["以前", "之前", "前"])?;
        // 三天前后 means around the third day.
        if self.han(next) == '后' {
            return None;
        }
        if let (Unit::Year, Count::Of(count, most)) = (unit, count)
            && count == most
            && let Some(found) = self.within_year(next, self.calendar.this_year() - count as i32)
        {
            return Some(found);
        }
        TimeMatch::new(next, self.calendar.ago(count, unit))
    }

    /// 最近几天, 过去三个月, 这两天, 前几天.
    fn past(&self, i: usize) -> Option<TimeMatch> {
        let (at, lead) = match self.han(i) {
            '最' => (self.skip(i, "最近")?, '近'),
            '过' => (self.skip(i, "过去")?, '近'),
            '近' if !matches!(self.before(i), '附' | '靠' | '接' | '临' | '将') => (i + 1, '近'),
            '这' => (i + 1, '这'),
            '前' if !matches!(self.before(i), '以' | '之' | '目' | '提' | '从' | '年' | '天') => {
                (i + 1, '前')
            }
            _ => return None,
        };
        let at = if lead == '近' { self.skip_optional(at, "的") } else { at };
        let (at, count) = self.count(at)?;
        let (next, unit) = self.unit(at)?;
        let few = count == Count::Of(FEW.0, FEW.1);
        let period = match (lead, count) {
            // 前几年 means some years ago, and 前三个月 the first three months.
            ('前', _) if few => self.calendar.ago(count, unit),
            ('前', _) if unit != Unit::Day => None,
            // 这一天 and 前一天 are relative to another day.
            ('这' | '前', Count::Of(1, 1) | Count::Half) => None,
            _ => self.calendar.past(count, unit),
        };
        TimeMatch::new(next, period)
    }

    /// 今天, 大前天, 昨晚.
    fn day(&self, i: usize) -> Option<TimeMatch> {
        const DAYS: [(&str, i32); 14] = [
            ("大前天", -3),
            ("前天", -2),
            ("前日", -2),
            ("昨天", -1),
            ("昨日", -1),
            ("昨儿", -1),
            ("今天", 0),
            ("今日", 0),
            ("今儿", 0),
            ("明天", 1),
            ("明日", 1),
            ("明儿", 1),
            ("后天", 2),
            ("大后天", 3),
        ];
        const PARTS: [(&str, i32, DayPart); 9] = [
            ("昨晚", -1, DayPart::Night),
            ("昨夜", -1, DayPart::Night),
            ("前晚", -2, DayPart::Night),
            ("今晚", 0, DayPart::Night),
            ("今夜", 0, DayPart::Night),
            ("今早", 0, DayPart::Morning),
            ("今晨", 0, DayPart::Morning),
            ("明早", 1, DayPart::Morning),
            ("明晚", 1, DayPart::Night),
        ];
        // 以前天天, 先天后天
        let inside_word =
            matches!(self.before(i), '以' | '之' | '然' | '先' | '天') && matches!(self.han(i), '前' | '后');
        if inside_word {
            return None;
        }
        let day = DAYS.iter().find_map(|(text, offset)| Some((self.skip(i, text)?, *offset)));
        if let Some((next, offset)) = day {
            return TimeMatch::new(next, self.calendar.day(offset));
        }
        PARTS.iter().find_map(|(text, offset, part)| {
            TimeMatch::new(self.skip(i, text)?, self.calendar.part_of(*offset, *part))
        })
    }

    /// 昨天 + 晚上.
    fn with_part_of_day(&self, found: TimeMatch) -> TimeMatch {
        const PARTS: [(&str, DayPart); 12] = [
            ("早上", DayPart::Morning),
            ("早晨", DayPart::Morning),
            ("清晨", DayPart::Morning),
            ("上午", DayPart::Morning),
            ("中午", DayPart::Noon),
            ("下午", DayPart::Afternoon),
            ("傍晚", DayPart::Evening),
            ("晚上", DayPart::Night),
            ("夜里", DayPart::Night),
            ("夜晚", DayPart::Night),
            ("晚", DayPart::Night),
            ("凌晨", DayPart::SmallHours),
        ];
        let Some(day) = found.period.as_day() else { return found };
        let at = self.skip_optional(found.next, "的");
        let part = PARTS.iter().find_map(|(text, part)| Some((self.skip(at, text)?, *part)));
        // 今天晚饭 is a meal.
        let part = part
            .filter(|(next, _)| !(self.han(next - 1) == '晚' && "饭餐会宴安点自".contains(self.han(*next))));
        match part.and_then(|(next, part)| TimeMatch::new(next, self.calendar.part_of_day(day, part))) {
            Some(part) => part,
            None => found,
        }
    }

    /// 上, 上上, 这, 本, 下: the first token after it, and the distance in units.
    fn lead(&self, i: usize) -> Option<(usize, i32)> {
        let before = self.before(i);
        match self.han(i) {
            // 早上, 网上, 以上 … are words of their own.
            '上' if "早晚网身路马以之天手线地街车世".contains(before) => None,
            '下' if "一地乡当以之剩楼线留坐放底".contains(before) => None,
            '本' if "日课书版基根成原资样剧笔文脚".contains(before) => None,
            c @ ('上' | '下') => {
                let times = (i..i + 4).take_while(|at| self.han(*at) == c).count();
                let sign = if c == '上' { -1 } else { 1 };
                Some((i + times, sign * times as i32))
            }
            '这' | '本' => Some((i + 1, 0)),
            _ => None,
        }
    }

    /// 上周, 这周五, 上个月底, 上个周末, 上个夏天.
    fn relative(&self, i: usize) -> Option<TimeMatch> {
        let (lead, offset) = self.lead(i)?;
        if offset.abs() == 1
            && let Some(next) = self.skip_any(lead, &["一年"])
        {
            return self.year_or_part(next, self.calendar.this_year() + offset);
        }
        let at = self.skip_any(lead, &["一个", "个", "一"]).unwrap_or(lead);
        if let Some(next) = self.skip(at, "周末") {
            return TimeMatch::new(next, self.calendar.weekend(offset));
        }
        if let Some(next) = self.week_word(at) {
            if self.han(next) == '末' {
                return TimeMatch::new(next + 1, self.calendar.weekend(offset));
            }
            if let Some((next, weekday)) = self.weekday_number(next) {
                return TimeMatch::new(next, self.calendar.weekday(offset, weekday));
            }
            return TimeMatch::new(next, self.calendar.week(offset));
        }
        if let Some(next) = self.skip(at, "月") {
            let month = self.calendar.month_from_now(offset)?;
            return self.within_month(next, month).or(Some(TimeMatch { next, period: month }));
        }
        let (next, season) = self.season(at).filter(|_| at > lead)?;
        let which = match offset {
            -1 => Occurrence::Last,
            0 => Occurrence::This,
            1 => Occurrence::Next,
            _ => return None,
        };
        TimeMatch::new(next, self.calendar.yearly(which, |year| self.calendar.season(year, season)))
    }

    /// 周, 星期 or 礼拜, and not 周围, 周边 or 周刊.
    fn week_word(&self, i: usize) -> Option<usize> {
        let next = self.skip_any(i, &["星期", "礼拜", "周"])?;
        (!matches!(self.han(next), '围' | '边' | '刊')).then_some(next)
    }

    /// 一 to 六, 日 or 天 for a weekday; Monday is 0.
    fn weekday_number(&self, i: usize) -> Option<(usize, u32)> {
        let number = match self.han(i) {
            c @ ('一' | '二' | '三' | '四' | '五' | '六') => digit(c)? - 1,
            '日' | '天' => 6,
            _ => return None,
        };
        // 上周三次, 上周三天: a count follows; but 上周三天气 contains no count.
        let counts = matches!(self.han(i + 1), '次' | '个' | '遍' | '回' | '顿' | '十' | '百')
            || (self.han(i + 1) == '天' && self.han(i + 2) != '气');
        (!counts).then_some((i + 1, number))
    }

    /// 周三, 星期天, 周末.
    fn weekday(&self, i: usize) -> Option<TimeMatch> {
        let before = self.before(i);
        // 每周三, 每个周末, 一周三次, 3周末
        let habit = matches!(before, '每' | '个' | '各') || is_numeral(before);
        let next = self.week_word(i).filter(|_| !habit && !self.tokens.is_number(i.wrapping_sub(1)))?;
        if self.skip(i, "周末").is_some() {
            return TimeMatch::new(next + 1, self.calendar.latest_weekend());
        }
        let (next, weekday) = self.weekday_number(next)?;
        // 周天 is not a Sunday.
        let certain = !(self.han(i) == '周' && weekday == 6 && self.han(i + 1) == '天');
        TimeMatch::new(next, self.calendar.named_weekday(Occurrence::Latest, weekday).filter(|_| certain))
    }

    /// 去年, 2023年, 二〇二三年五月, 23年5月.
    fn year(&self, i: usize) -> Option<TimeMatch> {
        const YEARS: [(&str, i32); 7] =
            [("大前年", -3), ("前年", -2), ("去年", -1), ("今年", 0), ("本年", 0), ("明年", 1), ("后年", 2)];
        let before = self.before(i);
        if let Some((next, offset)) =
            YEARS.iter().find_map(|(text, offset)| Some((self.skip(i, text)?, *offset)))
        {
            // 以前年轻, 日后年级, 资本年化
            let ends_word = match self.han(i) {
                '前' | '后' => matches!(before, '以' | '之' | '然' | '日' | '今'),
                '本' => "日课书版基根成原资样剧笔文脚".contains(before),
                _ => false,
            };
            let begins_word = matches!(self.han(next), '轻' | '龄' | '纪' | '级' | '迈');
            if ends_word || begins_word {
                return None;
            }
            return self.year_or_part(next, self.calendar.this_year() + offset);
        }
        let number = self.number(i)?;
        let next = self.skip(number.next, "年")?;
        match (number.figures, number.value) {
            (4, year @ 1000..3000) => self.year_or_part(next, year as i32),
            (2, year) => self.month_of(next, Some(two_digit_year(year))),
            _ => None,
        }
    }

    fn year_or_part(&self, next: usize, year: i32) -> Option<TimeMatch> {
        self.within_year(next, year).or_else(|| {
            let next = self.skip_optional(next, "份");
            TimeMatch::new(next, self.calendar.year(year))
        })
    }

    /// The expressions after a year: a month, a season, a part, a holiday.
    fn within_year(&self, next: usize, year: i32) -> Option<TimeMatch> {
        let at = self.skip_optional(next, "的");
        if let Some(found) = self.month_of(at, Some(year)) {
            return Some(found);
        }
        if let Some((next, season)) = self.season(at) {
            // In January and February the current winter counts as this year's.
            let period = if year == self.calendar.this_year() {
                self.calendar.yearly(Occurrence::This, |year| self.calendar.season(year, season))
            } else {
                self.calendar.season(year, season)
            };
            return TimeMatch::new(next, period);
        }
        if let Some((next, part)) = self.part_of_year(at) {
            return TimeMatch::new(next, self.calendar.part(part, self.calendar.year(year)?));
        }
        let (next, month, day) = self.holiday(at)?;
        TimeMatch::new(next, self.calendar.date(year, month, day))
    }

    fn part_of_year(&self, i: usize) -> Option<(usize, PeriodPart)> {
        const PARTS: [(&str, PeriodPart); 10] = [
            ("年初", PeriodPart::Beginning),
            ("年中", PeriodPart::Middle),
            ("年底", PeriodPart::End),
            ("年末", PeriodPart::End),
            ("上半年", PeriodPart::FirstHalf),
            ("下半年", PeriodPart::SecondHalf),
            ("初", PeriodPart::Beginning),
            ("底", PeriodPart::End),
            ("末", PeriodPart::End),
            ("年尾", PeriodPart::End),
        ];
        PARTS.iter().find_map(|(text, part)| Some((self.skip(i, text)?, *part)))
    }

    /// 三月, 3月5号, 五月初.
    fn month(&self, i: usize) -> Option<TimeMatch> {
        let habit = matches!(self.before(i), '每' | '正' | '第');
        self.month_of(i, None).filter(|_| !habit)
    }

    fn month_of(&self, i: usize, year: Option<i32>) -> Option<TimeMatch> {
        let number =
            self.number(i).filter(|number| (1..=12).contains(&number.value) && number.figures <= 2)?;
        let next = self.skip_optional(self.skip(number.next, "月")?, "份");
        // 五月天 is a band.
        if year.is_none() && self.han(next) == '天' && self.han(next + 1) != '气' {
            return None;
        }
        let month = number.value;
        if let Some((next, day)) = self.day_number(next) {
            let date = |year| self.calendar.date(year, month, day);
            return TimeMatch::new(
                next,
                year.map_or_else(|| self.calendar.yearly(Occurrence::Latest, date), date),
            );
        }
        let whole = |year| self.calendar.month(year, month);
        let of = year.map_or_else(|| self.calendar.yearly(Occurrence::Latest, whole), whole)?;
        self.within_month(next, of).or(Some(TimeMatch { next, period: of }))
    }

    /// The expressions after a month: a day, a part.
    fn within_month(&self, next: usize, month: Period) -> Option<TimeMatch> {
        const PARTS: [(&str, PeriodPart); 9] = [
            ("上旬", PeriodPart::Early),
            ("中旬", PeriodPart::Middle),
            ("下旬", PeriodPart::Late),
            ("初", PeriodPart::Beginning),
            ("底", PeriodPart::End),
            ("末", PeriodPart::End),
            ("月初", PeriodPart::Beginning),
            ("月底", PeriodPart::End),
            ("月末", PeriodPart::End),
        ];
        let at = self.skip_optional(next, "的");
        if let Some((next, day)) = self.day_number(at) {
            let first = month.start.date();
            return TimeMatch::new(
                next,
                self.calendar.date(i32::from(first.year()), first.month() as u32, day),
            );
        }
        let (next, part) = PARTS.iter().find_map(|(text, part)| Some((self.skip(at, text)?, *part)))?;
        TimeMatch::new(next, self.calendar.part(part, month))
    }

    /// 5日, 二十三号.
    fn day_number(&self, i: usize) -> Option<(usize, u32)> {
        let number =
            self.number(i).filter(|number| (1..=31).contains(&number.value) && number.figures <= 2)?;
        Some((self.skip_any(number.next, &["日", "号"])?, number.value))
    }

    fn season(&self, i: usize) -> Option<(usize, Season)> {
        if let Some(next) = self.skip(i, "暑假") {
            return Some((next, Season::Summer));
        }
        let season = match self.han(i) {
            '春' => Season::Spring,
            '夏' => Season::Summer,
            '秋' => Season::Autumn,
            '冬' => Season::Winter,
            _ => return None,
        };
        matches!(self.han(i + 1), '天' | '季').then_some((i + 2, season))
    }

    /// Holidays with the same date every year.
    fn holiday(&self, i: usize) -> Option<(usize, u32, u32)> {
        const HOLIDAYS: [(&str, u32, u32); 8] = [
            ("元旦", 1, 1),
            ("情人节", 2, 14),
            ("国庆节", 10, 1),
            ("国庆", 10, 1),
            ("万圣节", 10, 31),
            ("平安夜", 12, 24),
            ("圣诞节", 12, 25),
            ("圣诞", 12, 25),
        ];
        HOLIDAYS.iter().find_map(|(text, month, day)| Some((self.skip(i, text)?, *month, *day)))
    }

    /// 月底, 年初, without a month or year before it.
    fn bare_part(&self, i: usize) -> Option<TimeMatch> {
        const PARTS: [(&str, PeriodPart, Unit); 7] = [
            ("月初", PeriodPart::Beginning, Unit::Month),
            ("月底", PeriodPart::End, Unit::Month),
            ("月末", PeriodPart::End, Unit::Month),
            ("年初", PeriodPart::Beginning, Unit::Year),
            ("年底", PeriodPart::End, Unit::Year),
            ("年末", PeriodPart::End, Unit::Year),
            ("年尾", PeriodPart::End, Unit::Year),
        ];
        let before = self.before(i);
        let joined = matches!(before, '每' | '个' | '多' | '几') || is_numeral(before);
        let (next, part, unit) =
            PARTS.iter().find_map(|(text, part, unit)| Some((self.skip(i, text)?, *part, *unit)))?;
        TimeMatch::new(next, self.calendar.latest_part(part, unit).filter(|_| !joined))
    }
}
