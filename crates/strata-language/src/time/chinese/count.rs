//! Numbers, counts and the units of time that they count.

use super::super::calendar::{Count, FEW, Unit};
use super::super::numeral::{chinese_number, digit};
use super::Chinese;

/// The maximum length of a number in characters: 九百九十九, 二〇二三.
const LONGEST_NUMBER: usize = 6;

/// A number as it is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    pub(super) next: usize,
    pub(super) value: u32,
    /// The number of digits if it is written in digits: 2023, 二〇二三. Otherwise 1.
    pub(super) figures: usize,
}

impl Chinese<'_> {
    /// A number in digits or characters.
    pub(super) fn number(&self, i: usize) -> Option<Number> {
        if let Some((value, figures)) = self.tokens.number(i) {
            return Some(Number { next: i + 1, value, figures });
        }
        let run: Vec<char> =
            (i..=i + LONGEST_NUMBER).map(|at| self.han(at)).take_while(|c| is_numeral(*c)).collect();
        if run.is_empty() || run.len() > LONGEST_NUMBER {
            return None;
        }
        let value = u32::try_from(chinese_number(&run)?).ok()?;
        let figures = if run.iter().all(|c| digit(*c).is_some()) { run.len() } else { 1 };
        Some(Number { next: i + run.len(), value, figures })
    }

    /// A number of units: 三, 3, 几, 好几, 两三, 半.
    pub(super) fn count(&self, i: usize) -> Option<(usize, Count)> {
        if let Some(next) = self.skip_any(i, &["好几", "几", "数"]) {
            return Some((next, Count::Of(FEW.0, FEW.1)));
        }
        if let Some(next) = self.skip(i, "半") {
            return Some((next, Count::Half));
        }
        let number = self.number(i)?;
        let (tens, ones) = (number.value / 10, number.value % 10);
        if !self.tokens.is_number(i) && number.figures == 2 {
            return (ones == tens + 1).then_some((number.next, Count::Of(tens, ones)));
        }
        let exact = number.value > 0 && number.figures < 4;
        exact.then_some((number.next, Count::Of(number.value, number.value)))
    }

    /// A unit of time that can be counted, after a number.
    pub(super) fn unit(&self, i: usize) -> Option<(usize, Unit)> {
        let i = self.skip_any(i, &["多", "来"]).unwrap_or(i);
        let measured = self.skip(i, "个").map(|at| self.skip_optional(at, "多"));
        let at = measured.unwrap_or(i);
        let (next, unit) = match self.han(at) {
            '月' if measured.is_some() => (at + 1, Unit::Month),
            '星' => (self.skip(at, "星期")?, Unit::Week),
            '礼' => (self.skip(at, "礼拜")?, Unit::Week),
            '小' => (self.skip(at, "小时")?, Unit::Hour),
            '钟' => (self.skip(at, "钟头")?, Unit::Hour),
            '天' | '日' if measured.is_none() => (at + 1, Unit::Day),
            // 周年 is an anniversary.
            '周' if measured.is_none() && !matches!(self.han(at + 1), '年' | '岁') => (at + 1, Unit::Week),
            '年' if measured.is_none() && self.han(at + 1) != '级' => (at + 1, Unit::Year),
            '分' if measured.is_none() => (self.skip(at, "分钟")?, Unit::Minute),
            _ => return None,
        };
        Some((self.skip_optional(next, "多"), unit))
    }
}

/// Whether counts of days or years use this character. Questions rarely reach thousands of units back, so 千 and 万 do
/// not count.
pub(super) fn is_numeral(c: char) -> bool {
    matches!(c, '十' | '百') || digit(c).is_some()
}
