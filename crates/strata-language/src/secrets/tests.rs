//! Texts with secrets, and texts that only speak of them.

use super::*;

#[track_caller]
fn check(text: &str, expected: &[(SecretKind, &str)]) {
    let found: Vec<_> = secrets(text).into_iter().map(|one| (one.kind, &text[one.start..one.end])).collect();
    assert_eq!(found, expected, "{text}");
}

#[test]
fn keys_are_known_by_their_prefixes() {
    let key = format!("sk-{}", "a1B2".repeat(8));
    check(&format!("The key for staging is {key}, do not share"), &[(SecretKind::Key, &key)]);
    let token = format!("ghp_{}", "Zz9".repeat(12));
    check(&format!("令牌 {token} 放在保险柜里"), &[(SecretKind::Key, &token)]);
    check(
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
        &[(SecretKind::PrivateKey, "-----BEGIN RSA PRIVATE KEY-----\nMIIE")],
    );
    check("The risk-averse plan uses sk-learn", &[]);
}

#[test]
fn passwords_stand_after_their_words() {
    check("The wifi password for the cabin is Birch-77x", &[(SecretKind::Password, "Birch-77x")]);
    check("PIN: 4711", &[(SecretKind::Password, "4711")]);
    check("家里路由器的密码是 qingdao2024，记得换", &[(SecretKind::Password, "qingdao2024")]);
    for text in [
        "Rosa forgot her password",
        "The password is on the note under the desk",
        "The password policy is strict",
        "密码是什么？",
        "My password manager is great",
    ] {
        check(text, &[]);
    }
}

#[test]
fn codes_of_safes_and_short_forms_are_passwords() {
    check("The safe code is 90214", &[(SecretKind::Password, "90214")]);
    check("printer: user vera pass: Lynx#88", &[(SecretKind::Password, "Lynx#88")]);
    check("username vera, pass Lynx#88", &[(SecretKind::Password, "Lynx#88")]);
    check("银行卡取款密码908172，别忘了", &[(SecretKind::Password, "908172")]);
    check("我的取款密码还是908172", &[(SecretKind::Password, "908172")]);
    for text in [
        "The door code is 4417",
        "The user will pass: the exam is easy",
        "I log in with my bus pass in 2024",
        "密码锁2019年换过",
        "密码至少1024位",
    ] {
        check(text, &[]);
    }
}

#[test]
fn a_plain_word_is_a_password_where_the_sentence_says_so() {
    check("My password is \"swordfish\"", &[(SecretKind::Password, "swordfish")]);
    check("我的密码是「芝麻开门吧」", &[(SecretKind::Password, "芝麻开门吧")]);
    check("I changed my PIN to 4711", &[(SecretKind::Password, "4711")]);
    check("wifi 密码改成 abc12345 了", &[(SecretKind::Password, "abc12345")]);
    for text in
        ["I changed my password to something longer", "密码改成什么好呢", "My password is swordfish-free"]
    {
        check(text, &[]);
    }
}

#[test]
fn cards_are_known_by_their_checksum() {
    check("The card 4539 5787 6362 1486 expires in May", &[(SecretKind::Card, "4539 5787 6362 1486")]);
    check("卡号6222021234567890128。", &[(SecretKind::Card, "6222021234567890128")]);
    for text in [
        "The card 4539 5787 6362 1487 expires in May",
        "Order 1234567890123456 was shipped",
        "4444444444444444",
        "It took 1700000000000000 microseconds",
        "version 4.5395787636214860",
    ] {
        check(text, &[]);
    }
}

#[test]
fn identity_numbers_have_a_date_and_a_check_digit() {
    check("身份证号 11010519491231002X", &[(SecretKind::Identity, "11010519491231002X")]);
    check("身份证号 110105194912310021", &[]);
}

#[test]
fn secrets_are_found_in_settings_and_addresses() {
    use SecretKind::{Key, Password, PrivateKey};
    for (text, kind, secret) in [
        ("DB_PASSWORD=plumtree", Password, "plumtree"),
        ("The staging .env has DB_PASSWORD=Tr0ub4dor&3 in it", Password, "Tr0ub4dor"),
        ("export SMTP_PASSWD='k9-lake'", Password, "k9-lake"),
        (
            r#"{"client_secret": "a8f5f167f44f4964e6c998dee827110c"}"#,
            Password,
            "a8f5f167f44f4964e6c998dee827110c",
        ),
        ("GITLAB_TOKEN=Zx81-ploverQ72mm", Key, "Zx81-ploverQ72mm"),
        ("api_key: 9f3b2c7d1e0a4b6f", Key, "9f3b2c7d1e0a4b6f"),
        ("Connect with postgres://ada:w1nter-gale@db.lan/app", Password, "w1nter-gale"),
        ("redis://:plumtree@cache:6379", Password, "plumtree"),
        ("The feed is https://ada:s3cret@feeds.lan/x.xml", Password, "s3cret"),
        ("git clone https://0a1b2c3d4e5f60718293a4b5@git.lan/x", Key, "0a1b2c3d4e5f60718293a4b5"),
        ("curl -u ada:plum99 https://x.lan", Password, "plum99"),
        ("Authorization: Basic YWRhOnBsdW05OQ==", Password, "YWRhOnBsdW05OQ=="),
        ("Wi-Fi密码 plum8888", Password, "plum8888"),
        ("数据库连接是 mysql://root:lake-2024@10.0.0.3/shop", Password, "lake-2024"),
        ("-----BEGIN PGP PRIVATE KEY BLOCK-----", PrivateKey, "-----BEGIN PGP PRIVATE KEY BLOCK-----"),
    ] {
        check(text, &[(kind, secret)]);
    }
    let bearer = format!("Bearer {}", "abC9_".repeat(6));
    check(&format!("The header is Authorization: {bearer}"), &[(Key, &bearer)]);
}

#[test]
fn settings_without_a_secret_are_left_alone() {
    for text in [
        "max_tokens=4000 is the limit of the model",
        "The token: a small wooden coin from the fair",
        "DB_PASSWORD=${VAULT_DB_PASSWORD}",
        "DB_PASSWORD=********",
        "password = os.environ['DB_PASSWORD']",
        "password_min_length=12",
        "PWD=/home/ada/projects/2026",
        "The secret: always salt the water",
        "The docs say postgres://user:password@localhost/db",
        "The meeting is at https://meet.lan/room:4471?x=1",
        "Write to ada@example.org or call 555-12-3456",
        "The secret of the bread is a long rest: 24 hours",
        "密码 是什么我不记得了",
        "他的口令 大家都知道",
    ] {
        check(text, &[]);
    }
}

#[test]
fn account_numbers_have_their_check_digits() {
    check(
        "Rent goes to DE89 3704 0044 0532 0130 00 each month",
        &[(SecretKind::Account, "DE89 3704 0044 0532 0130 00")],
    );
    check("GB82WEST12345698765432", &[(SecretKind::Account, "GB82WEST12345698765432")]);
    check("DE88 3704 0044 0532 0130 00", &[]);
    check("The part AB12 CDEF 3456 GHIJ is sold out", &[]);
    check("My SSN is 219-09-9999", &[(SecretKind::Identity, "219-09-9999")]);
}

#[test]
fn a_secret_is_masked() {
    assert_eq!(masked("The PIN is 4711, and the dog is Kiwi"), "The PIN is 47…, and the dog is Kiwi");
    assert_eq!(masked("nothing here"), "nothing here");
}

#[test]
fn words_can_be_a_password() {
    for (text, secret) in [
        ("passphrase: correct horse battery staple", "correct horse battery staple"),
        ("The backup's passphrase is marble otter violin dusk.", "marble otter violin dusk"),
        ("Password: swordfish", "swordfish"),
        ("Recovery phrase: lamp river tooth and the dog sleeps", "lamp river tooth"),
        ("Passphrase: plum sled harbour It was round 48", "plum sled harbour"),
        ("The passphrase is \"over the hills and far away\".", "over the hills and far away"),
        ("密码：春眠不觉晓", "春眠不觉晓"),
        ("仓库的口令是天王盖地虎。", "天王盖地虎"),
        ("接头暗号：宝塔镇河妖，别说出去", "宝塔镇河妖"),
        ("我把密码改成花落知多半", "花落知多半"),
    ] {
        check(text, &[(SecretKind::Password, secret)]);
    }
    for text in [
        "The passphrase is on the note under the desk",
        "Passphrase: see the note in the drawer",
        "Password: required",
        "The password is really getting old",
        "Passphrase: four random words",
        "The passphrase is four random words",
        "密码：忘了",
        "密码是我妈妈生日",
        "口令是什么来着",
        "密码是自动生成的",
    ] {
        check(text, &[]);
    }
}

#[test]
fn codes_of_alarms_and_safes_are_secrets_and_those_of_doors_are_not() {
    for (text, secret) in [
        ("The alarm code is 4417", "4417"),
        ("The combination of the safe is 12-34-56", "12-34-56"),
        ("My card's security code is 739", "739"),
        ("门禁密码是4417吗", "4417"),
        ("保险柜密码：381920#", "381920#"),
        ("The wifi password Birch-77x still works", "Birch-77x"),
        ("Wi-Fi key is plum8888", "plum8888"),
        ("PIN 4711", "4711"),
        ("密钥是sk4-lake-2024", "sk4-lake-2024"),
    ] {
        check(text, &[(SecretKind::Password, secret)]);
    }
    for text in [
        "The code of Ada's locker is 4417.",
        "The key safe code on his door is 4471.",
        "The door code is 2290",
        "The room code is B12-77",
        "储物柜的号码是 4417",
        "Hash the password sha256 first",
        "The alarm code is new",
        "The combination of colours is great",
    ] {
        check(text, &[]);
    }
}

#[test]
fn the_password_of_a_login_stands_after_a_slash() {
    for (text, secret) in [
        ("The printer login is admin / k9-lake", "k9-lake"),
        ("Login: ada / plumtree", "plumtree"),
        ("wifi: HomeNet / plum8888", "plum8888"),
        ("路由器账号：admin / lake2024", "lake2024"),
    ] {
        check(text, &[(SecretKind::Password, secret)]);
    }
    for text in
        ["The login / signup page is slow", "Login: email / password", "The login page / dashboard is new"]
    {
        check(text, &[]);
    }
}

#[test]
fn a_redacted_text_keeps_everything_else_and_stays_as_it_is() {
    let text = "The dog is Kiwi. The PIN is 4711, 密码：春眠不觉晓。 Rent goes to GB82WEST12345698765432.";
    let shown = redacted(text);
    assert_eq!(
        shown,
        "The dog is Kiwi. The PIN is [secret], 密码：[secret]。 Rent goes to GB82WEST12345698765432."
    );
    assert_eq!(redacted(&shown), shown);
    assert!(is_secret(text) && !is_secret(&shown));
}
