//! Chinese numerals: 二十三, 一百零五, 三千五, 二〇二三. The callers decide the position and the meaning of a number.

/// The maximum length, that of 九千九百九十九万: a longer text is a row of digits, or not a number.
const LONGEST: usize = 9;

/// The value of a digit character.
pub(super) fn digit(c: char) -> Option<u32> {
    Some(match c {
        '零' | '〇' => 0,
        '一' => 1,
        '二' | '两' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        _ => return None,
    })
}

/// The number that the characters spell; all of them must belong to it.
///
/// Digits alone are a row of digits: 二〇二三 is 2023. A digit after a unit, without a unit of its own, counts tenths of
/// that unit: 三千五 is 3,500. Only 十 may stand without a digit before it; 百, 千 and 万 alone are words.
pub(crate) fn chinese_number(characters: &[char]) -> Option<u64> {
    if characters.is_empty() || characters.len() > LONGEST {
        return None;
    }
    let figures = characters.iter().try_fold(0, |value, c| Some(value * 10 + u64::from(digit(*c)?)));
    if figures.is_some() {
        return figures;
    }
    let (mut whole, mut section, mut last, mut unit) = (0, 0, None, 1);
    for c in characters {
        match c {
            '十' => {
                unit = 10;
                section += last.take().unwrap_or(1) * unit;
            }
            '百' | '千' => {
                unit = if *c == '百' { 100 } else { 1_000 };
                section += last.take()? * unit;
            }
            '万' => {
                section += last.take().unwrap_or(0);
                if section == 0 {
                    return None;
                }
                whole += section * 10_000;
                (section, unit) = (0, 10_000);
            }
            _ => {
                let value = u64::from(digit(*c)?);
                // After 零 a digit keeps its own value: 三千零五.
                if value == 0 {
                    unit = 1;
                }
                last = Some(value);
            }
        }
    }
    let rest = last.map_or(0, |digit| if unit > 10 { digit * unit / 10 } else { digit });
    Some(whole + section + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numerals_are_read() {
        for (text, expected) in [
            ("零", Some(0)),
            ("两", Some(2)),
            ("十", Some(10)),
            ("十五", Some(15)),
            ("二十", Some(20)),
            ("二十三", Some(23)),
            ("一百", Some(100)),
            ("一百零五", Some(105)),
            ("一百一十五", Some(115)),
            ("一百十五", Some(115)),
            ("三百五", Some(350)),
            ("九百九十九", Some(999)),
            ("三千五", Some(3_500)),
            ("三千五百", Some(3_500)),
            ("三千零五", Some(3_005)),
            ("三千零五十", Some(3_050)),
            ("一万二", Some(12_000)),
            ("一万二千", Some(12_000)),
            ("十二万", Some(120_000)),
            ("三万零五百", Some(30_500)),
            ("一百二十万", Some(1_200_000)),
            ("九千九百九十九万", Some(99_990_000)),
            ("二〇二三", Some(2_023)),
            ("一九九八", Some(1_998)),
            ("二三", Some(23)),
            ("百", None),
            ("千", None),
            ("万", None),
            ("万一", None),
            ("百事", None),
            ("上海", None),
            ("", None),
            ("一二三四五六七八九〇", None),
        ] {
            let characters: Vec<char> = text.chars().collect();
            assert_eq!(chinese_number(&characters), expected, "{text}");
        }
    }
}
