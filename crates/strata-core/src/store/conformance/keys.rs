//! API keys: stored, found by their hash, revoked.

use super::fixture::*;
use crate::error::ErrorKind;
use crate::id::{KeyId, UserId};
use crate::key::{ApiKey, KeyLimits, Scopes};
use crate::scope::RecallScope;
use crate::store::{Change, ChangeSet, CheckDepth, Forget, Head, KeyQuery, Page, Store};

async fn give(store: &dyn Store, key: &ApiKey) -> KeyId {
    apply(store, &key.user, Change::AddKey(Box::new(key.clone()))).await;
    key.id
}

fn all() -> KeyQuery {
    KeyQuery { id: None, user: None, revoked: true, page: Page::first(u32::MAX) }
}

async fn ids(store: &dyn Store, query: &KeyQuery) -> Vec<KeyId> {
    store.keys(query).await.unwrap().iter().map(|key| key.id).collect()
}

/// A key comes back as it was given, also one without a user.
pub async fn keeps_everything_of_a_key(store: &dyn Store) {
    let plain = key(1);
    let full = ApiKey {
        user: UserId::global(),
        name: Some("网关 gateway".to_owned()),
        scopes: Scopes::ALL,
        expires_at: Some(at(99)),
        revoked_at: Some(at(50)),
        limits: KeyLimits { per_minute: Some(u32::MAX), concurrent: Some(1) },
        recall_scope: Some(RecallScope::Session),
        ..key(2)
    };
    for key in [&plain, &full] {
        give(store, key).await;
        assert_eq!(store.key_by_hash(&key.hash).await.unwrap().as_ref(), Some(key));
    }
    assert_eq!(store.keys(&all()).await.unwrap(), [full, plain]);
}

/// A hash finds its key, of any user and in any state; an unknown hash finds nothing.
pub async fn finds_a_key_by_its_hash_whoever_has_it(store: &dyn Store) {
    let (anns, bobs) = (key(1), ApiKey { user: bob(), revoked_at: Some(at(1)), ..key(1) });
    give(store, &anns).await;
    give(store, &bobs).await;
    assert_eq!(store.key_by_hash(&anns.hash).await.unwrap(), Some(anns.clone()));
    assert_eq!(store.key_by_hash(&bobs.hash).await.unwrap(), Some(bobs));
    let mut near = anns.hash;
    near.0[31] ^= 1;
    assert_eq!(store.key_by_hash(&near).await.unwrap(), None);
}

/// An id that the user has, or a hash that any user has, is a conflict; another user may have the id.
pub async fn refuses_an_id_or_a_hash_that_exists(store: &dyn Store) {
    let first = key(1);
    give(store, &first).await;
    let same_id = ApiKey { id: first.id, ..key(2) };
    let same_hash = ApiKey { hash: first.hash, ..key(2) };
    let bobs = ApiKey { user: bob(), hash: first.hash, ..key(2) };
    for key in [same_id, same_hash, bobs] {
        let user = key.user.clone();
        assert_eq!(refuse(store, &user, Change::AddKey(Box::new(key))).await, ErrorKind::Conflict);
    }
    let change = || Change::AddKey(Box::new(ApiKey { hash: key(3).hash, ..key(4) }));
    let twice = key(5);
    let again = ApiKey { id: KeyId(fresh()), ..twice.clone() };
    let changes = vec![Change::AddKey(Box::new(twice)), Change::AddKey(Box::new(again)), change()];
    assert_eq!(kind(store.apply(&ann(), ChangeSet::new(at(0), changes)).await), ErrorKind::Conflict);
    assert_eq!(store.keys(&all()).await.unwrap(), std::slice::from_ref(&first));
    give(store, &ApiKey { id: first.id, user: bob(), ..key(2) }).await;
}

/// A key names the user of the call.
pub async fn refuses_a_key_for_another_user(store: &dyn Store) {
    assert_eq!(refuse(store, &bob(), Change::AddKey(Box::new(key(1)))).await, ErrorKind::Invalid);
    assert!(store.keys(&all()).await.unwrap().is_empty());
}

/// A key is revoked at the time of the change set; a later revocation does not change that time.
pub async fn revokes_a_key_once(store: &dyn Store) {
    let (gone, kept) = (key(1), key(2));
    give(store, &gone).await;
    give(store, &kept).await;
    for second in [7, 9] {
        apply_at(store, &ann(), second, Change::RevokeKey { id: gone.id }).await;
        let expected = ApiKey { revoked_at: Some(at(7)), ..gone.clone() };
        assert_eq!(store.key_by_hash(&gone.hash).await.unwrap(), Some(expected));
    }
    assert_eq!(store.key_by_hash(&kept.hash).await.unwrap(), Some(kept));
}

/// A key that the user does not have cannot be revoked.
pub async fn refuses_to_revoke_an_unknown_key(store: &dyn Store) {
    let anns = key(1);
    give(store, &anns).await;
    let unknown = Change::RevokeKey { id: KeyId(fresh()) };
    assert_eq!(refuse(store, &ann(), unknown).await, ErrorKind::NotFound);
    assert_eq!(refuse(store, &bob(), Change::RevokeKey { id: anns.id }).await, ErrorKind::NotFound);
    assert_eq!(store.keys(&all()).await.unwrap(), [anns]);
}

/// Keys of all users are listed newest first, by id, by user, without revoked ones, and in pages.
pub async fn lists_keys_newest_first_and_by_choice(store: &dyn Store) {
    let b = give(store, &ApiKey { user: bob(), ..key(2) }).await;
    let c = give(store, &ApiKey { revoked_at: Some(at(4)), ..key(3) }).await;
    let a = give(store, &ApiKey { expires_at: Some(at(2)), ..key(1) }).await;
    for (query, expected) in [
        (all(), vec![c, b, a]),
        (KeyQuery { revoked: false, ..all() }, vec![b, a]),
        (KeyQuery { user: Some(ann()), ..all() }, vec![c, a]),
        (KeyQuery { user: Some(user("nobody")), ..all() }, vec![]),
        (KeyQuery { id: Some(c), ..all() }, vec![c]),
        (KeyQuery { id: Some(c), revoked: false, ..all() }, vec![]),
        (KeyQuery { page: Page { offset: 1, limit: 1 }, ..all() }, vec![b]),
        (KeyQuery::unrevoked(Page::first(1)), vec![b]),
    ] {
        assert_eq!(ids(store, &query).await, expected, "{query:?}");
    }
}

/// A user who has only a key is not listed among the users, and a key raises no revision.
pub async fn a_key_alone_is_nothing_stored(store: &dyn Store) {
    let id = give(store, &key(1)).await;
    apply(store, &ann(), Change::RevokeKey { id }).await;
    assert!(store.users(Page::first(9)).await.unwrap().is_empty());
    assert_eq!(store.check(CheckDepth::Thorough).await.unwrap().users, 0);
    assert_eq!(store.head(&ann()).await.unwrap(), Head::default());
}

/// A failure after a key was added or revoked leaves the keys as they were.
pub async fn a_failing_change_undoes_a_key(store: &dyn Store) {
    let before = key(1);
    give(store, &before).await;
    let changes = vec![
        Change::AddKey(Box::new(key(2))),
        Change::RevokeKey { id: before.id },
        Change::RevokeKey { id: KeyId(fresh()) },
    ];
    assert_eq!(kind(store.apply(&ann(), ChangeSet::new(at(0), changes)).await), ErrorKind::NotFound);
    assert_eq!(store.keys(&all()).await.unwrap(), [before]);
}

/// The keys of a forgotten user are destroyed; those of other users, and those without a user, stay.
pub async fn forgetting_a_user_destroys_their_keys(store: &dyn Store) {
    let (anns, bobs) = (key(1), ApiKey { user: bob(), ..key(2) });
    let unbound = ApiKey { user: UserId::global(), ..key(3) };
    for key in [&anns, &bobs, &unbound] {
        give(store, key).await;
    }
    append(store, &ann(), "s", &["one"]).await;
    apply(store, &ann(), Change::Forget(Forget::Memories)).await;
    assert_eq!(store.keys(&all()).await.unwrap().len(), 3);
    apply(store, &ann(), Change::Forget(Forget::User)).await;
    assert_eq!(store.key_by_hash(&anns.hash).await.unwrap(), None);
    assert_eq!(store.keys(&all()).await.unwrap(), [unbound, bobs]);
}
