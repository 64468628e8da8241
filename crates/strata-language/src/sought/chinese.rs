//! Chinese questions and texts, folded and in simplified characters.

use crate::Pattern;

const NUMBER: &str = "[0-9零〇一二两三四五六七八九十百千万亿半几]";

static AGE_ASKED: Pattern = Pattern::new("几岁|多大(?:了|年纪|岁数|年龄)|(?:今年|现在)多大");
static AGE_TOLD: Pattern =
    Pattern::made(|| format!("岁|[0-9]{{4}}|出生|属|年龄|生日|{NUMBER}+(?:[,。，.!?！？]|$)"));

static CLOCK_ASKED: Pattern = Pattern::new("几点");
static CLOCK_TOLD: Pattern =
    Pattern::made(|| format!("{NUMBER}+(?:点|时|:|：)|早上|上午|中午|下午|晚上|夜|凌晨|傍晚"));

static MONEY_ASKED: Pattern = Pattern::new(
    "多少钱|什么价|(?:房租|租金|总价|单价|价格|年薪|工资|月薪|薪水|房贷|花了|花费|费用|押金|学费).{0,6}多少|多少.{0,3}(?:房租|租金|价)",
);
static MONEY_TOLD: Pattern = Pattern::made(|| {
    format!(
        "[元块钱¥万千百毛]|[0-9]{{3,}}|免费|{NUMBER}+(?:[,。，.!?！？]|$)|(?:花|付|交|是|要|卖|价|租|金){NUMBER}"
    )
});

/// A question for a moment that is not past: of a past event, the day on which it is told often is the answer.
static MOMENT_ASKED: Pattern = Pattern::new("什么时候|哪天|哪一天|几号|哪年|哪一年|何时");
static PAST: Pattern = Pattern::new("[了过]|的[?？。]*$");
static MOMENT_TOLD: Pattern = Pattern::new(
    "[0-9]|今|明天|昨|前天|后天|后年|周|星期|礼拜|月|年|季|春|夏|秋|冬|早|晚|中午|下午|上午|夜|节|国庆|生日|假|点|号|日|天|后|前|刚|平时|时候|从小|马上|快|初|底",
);

static NAME_ASKED: Pattern = Pattern::new("叫什么|姓什么|什么名字|叫啥|姓啥");
static NAME_TOLD: Pattern = Pattern::new("叫|姓|名|「|“|《|\"|是|[小老阿][\u{3400}-\u{9FFF}]|[a-z]");

static PERSON_ASKED: Pattern = Pattern::new("谁");
/// A comparison of two persons names both of them.
static COMPARED: Pattern = Pattern::new("和.*谁|谁.*[更最]");
static OWN: Pattern = Pattern::new("[我咱]们?的?");
static PERSON_TOLD: Pattern = Pattern::new(
    "[小老阿][\u{3400}-\u{9FFF}]|[爸妈父母爷奶公婆哥姐弟妹姨叔伯舅姑婶嫂侄孙娘]|老婆|丈夫|妻|女儿|儿子|孩子|宝宝|朋友|同学|同事|老师|医生|大夫|教练|师傅|经理|老板|上司|下属|领导|组长|邻居|室友|房东|助理|主任|教授|先生|女士|姓|叫|队|客户|学生|人|他|她|它|自己|公司|团队|部门|家|[a-z]",
);

/// Whether a text lacks what a Chinese question seeks.
pub(super) fn lacks(asked: &str, told: &str) -> bool {
    let misses = |asks: &Pattern, tells: &Pattern| asks.is_match(asked) && !tells.is_match(told);
    misses(&AGE_ASKED, &AGE_TOLD)
        || misses(&CLOCK_ASKED, &CLOCK_TOLD)
        || misses(&MONEY_ASKED, &MONEY_TOLD)
        || misses(&NAME_ASKED, &NAME_TOLD)
        || (misses(&MOMENT_ASKED, &MOMENT_TOLD) && !PAST.is_match(asked))
        || lacks_person(asked, told)
}

fn lacks_person(asked: &str, told: &str) -> bool {
    let others = OWN.get().map_or(told.into(), |own| own.replace_all(told, ""));
    PERSON_ASKED.is_match(asked) && !COMPARED.is_match(asked) && !PERSON_TOLD.is_match(&others)
}
