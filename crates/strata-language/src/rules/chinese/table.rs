//! The rules for Chinese predicates: one rule per line, over predicates without subject, adverbs and negation.
//!
//! The format is that of the English table. Chinese verbs do not change, so a pattern contains the words as they are
//! said. `KIN`, `THING`, `JOB`, `NUM`, `LANG`, `SPORT`, `PLACE` stand for the word lists of [`super::words`]. Final
//! particles are removed before.

use super::super::claim::{Arity, Rule, Verb};
use crate::rules::StatementKind;

macro_rules! rules {
    ($($slot:literal $kind:ident $arity:ident $verb:ident $pattern:literal => $say:literal;)*) => {
        &[$(Rule { slot: $slot, pattern: $pattern, say: $say, kind: StatementKind::$kind, arity: Arity::$arity, verb: Verb::$verb }),*]
    };
}

/// Statements about people.
pub(super) const RULES: &[Rule] = rules! {
    // Places.
    "home" Fact One State r"(?:住在|居住在|居住于|定居在|定居于|生活在|家住在?|家在|人在|常住|住)(?<v>PLACE)" => "住在{v}";
    "home" Fact One Begin r"(?:搬家?|移居|定居)(?:到|去|回|来|进)了?(?<v>PLACE)(?:住|生活|定居)?" => "住在{v}";
    "home" Fact One End r"(?:搬离|搬出|离开)了?(?<v>PLACE)" => "住在{v}";
    "origin" Fact One State r"(?:是|老家是)(?<v>[^，的了一个不是做在]{2,5})人" => "是{v}人";
    "origin" Fact One State r"(?:来自|老家是|老家在)(?<v>PLACE)" => "来自{v}";
    "childhood" Fact Many Deed r"(?:从小)?在(?<v>PLACE)(?:长大|成长)的?" => "在{v}长大";
    "birthplace" Fact One Deed r"(?:出生在|出生于|生在)(?<v>PLACE)" => "出生在{v}";
    "birth year" Fact One Deed r"(?:出生在|出生于|是|生于)?(?<v>\d{4}年)(?:出生|生)?的?" => "{v}出生";
    // Work and study.
    "school" Fact One State r"(?:在|就读于)(?<v>[^在]*?(?:大学|学院|中学|小学|高中|一中|学校))(?:读书|上学|念书|读研|读博|读本科|学习|就读|上课)?(?<t>(?:学|读).*)?" => "在{v}上学{t}";
    "workplace" Fact One State r"在(?<v>CITY)(?:上班|工作|打工)" => "在{v}工作";
    "workplace" Fact One State r"在(?<v>CITY)(?<t>(?:做|当|担任)JOB)" => "在{v}{t}";
    "employer" Fact One State r"(?:在|就职于|任职于|供职于)(?<v>[^在的]{2,16}?)(?:公司)?(?:上班|工作|任职|打工|实习|就职)(?<t>，?(?:做|当|担任).+)?" => "在{v}工作{t}";
    "employer" Fact One State r"(?:就职于|任职于|供职于)(?<v>.{2,16})" => "在{v}工作";
    "employer" Fact One State r"在(?<v>[^在的]{2,12}?)(?<t>(?:做|当|担任)JOB)" => "在{v}工作{t}";
    "employer" Fact One Begin r"(?:加入|入职|跳槽到|跳槽去|换到|去)了?(?<v>[^去]{2,12}?)(?:上班|工作)" => "在{v}工作";
    "employer" Fact One Begin r"(?:加入|入职|跳槽到|跳槽去)了?(?<v>.{2,12})" => "在{v}工作";
    "employer" Fact One End r"从(?<v>.{2,12}?)(?:离职|辞职|离开|退休)" => "在{v}工作";
    "employer" Fact One End r"(?:辞职|离职|被裁员?|失业|辞掉了?工作)(?<v>)" => "在原来的单位工作";
    "occupation" Fact One Begin r"(?:转行|改行|升职|升|转)(?:去)?(?:做|当|成|为|到)了?(?:一名|一个|一位|个|名)?(?<v>JOB|.{2,8})" => "是{v}";
    "occupation" Fact Soft State r"是(?:做|搞|干)(?<v>.{2,8}?)(?:的|工作|行业)?" => "是做{v}的";
    "occupation" Fact Soft State r"(?:是|当|做|担任)了?(?:一名|一个|一位|个|名)?(?<v>JOB)" => "是{v}";
    "occupation" Fact Soft State r"(?:是做|是搞|是干|做|搞)(?<v>.{2,8}?)(?:的|工作|行业)" => "是做{v}的";
    "status" Fact Many State r"(?<v>退休)" => "{v}了";
    "status" Fact Many State r"(?:在|出来)?(?:自主)?(?<v>创业|待业|做自由职业)" => "自己{v}";
    "field" Fact One State r"(?:学的是|读的是|主修|专业是|学的专业是)(?<v>.{2,12})" => "主修{v}";
    "degree" Fact Many Deed r"(?:毕业于|从)(?<v>.{2,14}?)(?:毕业)?" => "毕业于{v}";
    // People, pets and things.
    "name of {n}" Fact Many State r"(?:养|有|买|领养|收养|捡|生)了?(?:一|1)?(?:只|条|个|匹|位)?[^，叫]{0,4}?(?<n>KIN)，?(?:它|他|她)?(?:的?名字是|的?名字叫|名叫|叫做|叫|取名|起名叫?)(?<v>.{1,8})" => "有{n}叫{v}";
    "number of {n}" Fact One State r"(?:有|养)了?(?<v>NUM)(?<t>个|只|条|辆|套|位|名|台|匹|头|部|把|家)(?<n>KIN|THING)" => "有{v}{t}{n}";
    "has" Fact Many State r"有?(?<v>兄弟姐妹|兄弟|姐妹|孩子|小孩|宠物|车|房子|房)" => "有{v}";
    "owned" Fact Many State r"有(?<v>.{1,8})" => "有{v}";
    "name" Fact One State r"(?:名叫|名字叫|名字是|的名字是|姓名是|叫做|叫)(?<v>.{1,10})" => "叫{v}";
    "spouse" Fact One State r"(?:和|跟)(?<v>.{2,6})(?:结婚|是夫妻)" => "和{v}结婚了";
    "partner" Fact One End r"(?:和|跟|与)(?:我的?)?(?<n>KIN)(?<v>)(?:已经|正式)?(?:分手|离婚|分开)" => "和{n}在一起";
    "partner" Fact One End r"(?:和|跟|与)(?:KIN)?(?<v>.{1,4}?)(?:已经|正式)?(?:分手|离婚|分开)" => "和{v}在一起";
    "partner" Fact One State r"(?:和|跟|与)(?<n>KIN)(?<v>)在一起" => "和{n}在一起";
    "partner" Fact One State r"(?:和|跟|与)(?<v>.{1,4}?)在一起" => "和{v}在一起";
    "marital status" Fact One State r"(?:还)?是?(?<v>单身|已婚|离异|未婚)" => "{v}";
    "marital status" Fact One Begin r"(?<v>结婚|订婚|离婚)" => "{v}了";
    "vehicle" Fact Soft State r"(?:开的?是|开的车是|开着|开)(?:一?辆|一?台)?(?<v>[^车心]{2,10})" => "开{v}";
    "has" Fact Many State r"(?:有|养)(?:了|着)?(?:一|1)?(?:只|条|辆|台|套|个|部|把|架|家)(?<v>.{0,6}?(?:PET|THING))" => "有{v}";
    "has" Fact Many Begin r"(?:买|领养|收养|入手|换)了?(?:一|1)?(?:只|条|辆|台|套|个|部|把|架)(?<v>.{1,10})" => "有{v}";
    "owned" Fact Many End r"(?:把|将)?(?:那只|那辆|那台)?(?<v>.{1,8}?)(?:卖|送人|扔|丢)(?:掉)?" => "有{v}";
    "owned" Fact Many End r"(?:卖掉?|送走|弄丢)了?(?:那只|那辆|那台|自己的|我的)?(?<v>.{1,8})" => "有{v}";
    // Body and health.
    "age" Fact One State r"(?:今年|都|已经|满|刚满|才|现在)*(?<v>NUM)(?:周?岁)(?:多)?" => "{v}岁";
    "allergy" Fact Many Opposite r"对(?<v>.{1,12}?)(?:并|其实)?不过敏" => "对{v}不过敏";
    "allergy" Fact Many State r"是?对(?<v>.{1,12}?)(?:严重|特别|有点|轻微)?过敏" => "对{v}过敏";
    "diet" Preference One State r"是(?:一个|一名|个)?(?<v>素食主义者|素食者)" => "吃素";
    "diet" Preference One State r"吃(?:的是)?(?<v>纯素|全素|素食者|素食|素)的?" => "吃{v}";
    "expecting" Fact Many State r"(?<v>怀孕|怀上?了?(?:二胎|三胎|双胞胎|宝宝))" => "{v}了";
    "smoke" Fact One State r"(?:抽|吸)(?<v>烟)" => "抽{v}";
    "smoke" Fact One End r"戒了?(?<v>烟)" => "抽{v}";
    "alcohol" Fact One State r"喝(?<v>酒)" => "喝{v}";
    "alcohol" Fact One End r"戒了?(?<v>酒)" => "喝{v}";
    "fear" Fact Many State r"(?:害怕|怕|恐惧)(?<v>.{1,10})" => "害怕{v}";
    "taste" Preference Many State r"(?<v>(?:喝|吃)[^不了过]{1,6}(?:从来|都|一般|只)?(?:不(?:加|放|要).{1,6}|(?:要|只)?加[糖奶冰盐辣醋蒜柠蜂牛燕].{0,4}))" => "{v}";
    "eat" Preference Many Begin r"改(?<n>吃|喝|抽)了?(?<v>.{1,8})" => "改{n}{v}";
    "eat" Preference Many State r"(?:能)?(?<n>吃|喝)(?<v>.{1,8})" => "{n}{v}";
    "uses" Fact Many Begin r"改用了?(?<v>.{2,12})" => "改用{v}";
    "routine" Fact Many State r"(?<v>(?:每天|每晚|每早|每周[一二三四五六日天末]?|每个?(?:星期|礼拜)[一二三四五六日天]?|每个?月)[^，你]{0,12}?(?:起床|跑步|晨跑|夜跑|游泳|健身|锻炼|散步|冥想|瑜伽|遛狗|骑|开车|坐|走路|练|打|踢|弹|拉|上课|上班|吃药|吃|喝|睡觉|看书|读书|做)[^，吗]{0,10})" => "{v}";
    // Tastes and skills.
    "favourite" Preference Many State r"(?:更喜欢|更爱|偏好)(?<v>.{1,16})" => "更喜欢{v}";
    "like" Preference Many Opposite r"(?:讨厌|厌恶|反感|受不了|恨|嫌弃)(?<v>.{1,16})" => "讨厌{v}";
    "like" Preference Many State r"(?:喜欢|喜爱|热爱|钟爱|酷爱|偏爱|爱好是|爱好|痴迷于?|爱)(?:上了?)?(?<v>.{1,16})" => "喜欢{v}";
    "like" Preference Many Begin r"(?:迷上|爱上|喜欢上)了?(?<v>.{1,16})" => "喜欢{v}";
    "language" Fact Many State r"(?:会说|会讲|能说|精通|说|会)(?:一点|流利的?)?(?<v>LANG)" => "会说{v}";
    "learning" Fact Many Begin r"改学(?:习)?(?:弹|打|拉|说)?(?<v>LANG|SPORT|画画|绘画|编程|书法|跳舞|唱歌|做饭|烘焙|摄影|游泳|滑雪|瑜伽)" => "在学{v}";
    "learning" Fact Many State r"(?:正在|开始|在)*(?:学习|学|练习?)(?:弹|打|拉|说)?(?<v>LANG|SPORT|画画|绘画|编程|书法|跳舞|唱歌|做饭|烘焙|摄影|游泳|滑雪|瑜伽)" => "在学{v}";
    "plays" Fact Many State r"(?:会|在)?(?:弹|拉|打|踢|吹|玩|下)(?<v>SPORT)" => "会{v}";
    // Decisions, todos, plans.
    "decision for {n}" Decision One Deed r"(?:决定|商量好|定下来|敲定|说好)了?(?:改)?用(?<v>.{1,16}?)(?:来)?(?:做|写|搭|存|跑|当)(?<n>.{2,12})" => "决定用{v}做{n}";
    "decision" Decision Many Deed r"(?:决定|商量好|定下来|敲定|选定|说好)了?(?<v>.{2,40})" => "决定{v}";
    "todo" Todo Many Drop r"取消任务：(?<v>.{1,40})" => "取消任务：{v}";
    "todo" Todo Many Did r"完成了?(?<v>.{2,40})" => "完成了{v}";
    "todo" Todo Many Todo r"(?:需要|必须|得|要|该)(?<v>.{2,40})" => "要{v}";
    "plan" Fact Many Plan r"(?:打算|准备|计划|想要?|希望|将要?|即将)(?<v>.{2,40})" => "打算{v}";
};

/// Sentences that say the same in another form, and the form that the tables read.
pub(super) const REWRITES: &[(&str, &str)] = &[
    (
        r"^(?:请|麻烦你?|帮我)?(?:到时候|到时)?(?:记得|别忘了|不要忘了|不要忘记|别忘记|记着)?(?:到时候)?(?<a>.{0,8}?)提醒我(?<b>.{0,8}?)(?:要|去|记得)?(?<v>.+)$",
        "我要$a$b$v",
    ),
    (
        r"^(?:我)?(?:一定要|要|得)?(?:记得|别忘了|不要忘了|不要忘记|别忘记|记着)(?:要|去)?(?<v>[^住你].+)$",
        "我要$v",
    ),
    (r"^(?:待办|待办事项)[:：]?(?<v>.+)$", "我要$v"),
    (r"^(?:我)?(?:不用|不需要|不必|没必要)(?:再)?(?:去)?(?<v>.+?)了?$", "我取消任务：$v"),
    (r"^(?:我)?(?:不要|别)(?:再)?提醒我(?<v>.+?)了?$", "我取消任务：$v"),
    (r"^(?:把)?(?<v>.{2,16}?)(?:的事|这件事|的任务)?(?:就)?(?:取消|算|作罢)(?:吧|了)+$", "我取消任务：$v"),
    (r"^取消(?<v>.{2,16})$", "我取消任务：$v"),
    (
        r"^(?:我)?(?:已经|终于|刚刚?)?(?:把|将)(?<o>.{2,20}?)(?:给)?(?:已经)?(?<v>交|做|办|写|买|寄|发|付|约|订|还|修|洗|取|拿|打扫|整理|提交|处理|预约|打印|续费|缴)(?:完|好|掉|过|出去|回来)?了$",
        "我完成了$v$o",
    ),
    (
        r"^(?:我的|我)?(?<o>[^我]{2,20}?)(?:我)?(?:已经|都|终于)(?<v>交|做|办|写|买|寄|发|付|约|订|还|修|洗|取|拿|打扫|整理|提交|处理|预约|打印|续费|缴)(?:完|好|掉|过|出去|回来)*了$",
        "我完成了$v$o",
    ),
    (r"^(?:我)?(?:已经|终于|刚刚?)?(?:搞定|办完|办好|做完|弄完|忙完)了(?<v>.{2,20})$", "我完成了$v"),
    (
        r"^(?<o>[^我你他她它不没]{2,16}?)(?<v>交|做|办|写|买|寄|发|付|约|订|还|修|洗|取|拿|打扫|整理|提交|处理|预约|打印|续费|缴)(?:完|好|掉)了$",
        "我完成了$v$o",
    ),
    (
        r"^(?<s>我.{0,5}?)(?:昨天|今天|前天|上周.?|上个?月|上星期.?|刚刚?|才)*过(?:了|完)?(?:我的|自己的)?(?<v>NUM)岁的?生日了?$",
        "$s$v岁",
    ),
    (r"^我(?:现在|已经|都)*(?:瘦|胖|减|降|长)到了?(?<v>.{1,8}?(?:公斤|斤|kg))了?$", "我体重$v"),
    (r"^(?:我)?(?<v>.{2,16}?)(?:已经|终于|都)?(?:搞定|完成|办妥|弄好|做完)了$", "我完成了$v"),
    (
        r"^(?:我)?(?:已经|终于|刚刚?|都)?(?<v>交|写|买|寄|发|付|约|订|修|洗|取|提交|预约|打印|缴|预订|报|续)(?:完|好|掉|过)了(?<o>.{2,20})$",
        "我完成了$v$o",
    ),
    (
        r"^(?:我)?(?:已经|终于)(?<v>交|写|买|寄|发|付|约|订|修|洗|取|提交|预约|打印|缴|预订|报|续|给.{1,6}打)了(?<o>.{2,20})$",
        "我完成了$v$o",
    ),
    (r"^(?:我)?(?:已经|终于)(?<v>[^不没].{2,16})了$", "我已经$v了"),
    (r"^(?:以后)?(?:请)?(?:就)?叫我(?<v>.{1,8}?)(?:就行|就好|就可以|吧)?了?$", "我叫$v"),
    (r"^(?:大家|朋友们?|别人|同事们?)都?叫我(?<v>.{1,8})$", "我叫$v"),
    (r"^(?:那)?(?:我们|咱们)?就(?:用|选|定)(?<v>.{1,16})吧?$", "我决定用$v"),
    (r"^(?:我)?(?:换|改)工作$", "我辞职"),
    (r"^我家(?:现在)?在(?<v>.{2,12})$", "我住在$v"),
    (r"^我的?(?:职业|工作)是(?<v>.{2,12})$", "我是$v"),
    (r"^我的?(?:公司|单位)是(?<v>.{2,12})$", "我在$v工作"),
    (r"^我的?爱好(?:是|有)(?<v>.{2,16})$", "我喜欢$v"),
    (r"^(?<v>[\p{Han}A-Za-z]{2,8})是我的?(?<n>KIN)$", "我的$n叫$v"),
    (r"^(?<v>.{1,12})是我(?<n>最喜欢的.{1,8})$", "我$n是$v"),
];
