//! The conformance suite: a case for every sentence of the contract of [`Store`](super::Store) and of the values that
//! travel through it.
//!
//! A case is a plain async function over `&dyn Store` and expects an empty store. A backend adopts all of them in one
//! line, with a constructor that makes a store of its own for each case and a guard that cleans up after it:
//!
//! ```ignore
//! async fn store() -> (std::sync::Arc<dyn Store>, tempfile::TempDir) { … }
//! crate::conformance_suite!(store);
//! ```
//!
//! The backend's crate needs `tokio` with `macros` and `rt-multi-thread` among its dev-dependencies. A property of one
//! backend alone, such as surviving a crash, is tested in that backend's crate.
//!
//! The suite decides the questions that the contract leaves open:
//!
//! - Ids are unique for a user, not for the store: two users may have the same id.
//! - A memory or a job may name a session that does not exist yet; a summary may not.
//! - The source turns of a memory need not exist; the memory that replaces another one must exist.
//! - A revised memory is believed from the time of the change set on and loses the vectors of its old statement.
//! - Of turns said at the same moment in one session, the one with the greater `seq` is newer.
//! - A forgotten user's epoch continues to rise: it does not begin at zero again.
//! - Forgetting a session also removes its request rows, because their questions were asked in it. A memory that turns of
//!   other sessions state too, or whose source turns do not exist, stays.
//! - A change set that changes what recall can see is one revision. Vectors, states, jobs, requests, segments, keys and
//!   summaries that are not completed do not change what recall can see.
//! - Destroying anything sets the progress of spaces with segments back to 0; a forgotten user is never behind.
//! - A lease that has ended is still the current one until another worker takes the job over.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the suite is test code that lives in the library so that other crates can run it"
)]

pub mod change_sets;
pub mod concurrency;
pub mod expectations;
pub mod feed;
pub mod fixture;
pub mod forgetting;
pub mod isolation;
pub mod jobs;
pub mod keys;
pub mod memories;
pub mod observing;
pub mod search;
pub mod sessions;
pub mod summaries;
pub mod turns;
pub mod vectors;

/// Makes one test of every case of the conformance suite.
///
/// The argument is the path of an async function without parameters that returns a fresh, empty `Arc<dyn Store>` and a
/// guard, which is dropped when the case is over.
#[macro_export]
macro_rules! conformance_suite {
    ($constructor:path) => {
        $crate::conformance_cases! { $constructor;
            turns {
                numbers_turns_from_zero_in_the_order_given,
                goes_on_numbering_after_the_last_turn,
                numbers_each_session_by_itself,
                numbers_on_within_one_change_set,
                keeps_everything_of_a_turn,
                keeps_large_and_empty_content,
                keeps_times_to_the_microsecond,
                keeps_any_metadata,
                keeps_the_text_of_metadata,
                keeps_what_is_noted_about_a_turn,
                refuses_an_id_that_exists,
                refuses_an_id_twice_in_one_call,
                reads_a_range_by_seq,
                reads_ids_in_the_order_asked,
                reads_the_recent_newest_first,
                reads_recent_turns_of_the_same_moment_by_seq,
                leaves_hidden_turns_out_of_recent_only,
                keeps_recent_turns_that_pass_the_test,
                reads_the_hidden_turns_of_a_session,
                hides_and_restores_turns,
                refuses_to_hide_an_unknown_turn,
            }
            sessions {
                creates_a_session_with_its_first_turn,
                has_no_session_that_was_never_written,
                keeps_state_and_its_unknown_fields,
                creates_a_session_with_its_first_state,
                appending_leaves_the_state_alone,
                lists_the_last_written_first,
                pages_through_sessions,
                takes_odd_names,
                keeps_names_apart_that_look_alike,
            }
            change_sets {
                applies_changes_in_their_order,
                applies_an_empty_change_set,
                a_failing_change_undoes_all_wherever_it_stands,
                a_failing_change_undoes_every_kind_of_change,
                replays_the_first_answer_for_a_known_key,
                refuses_a_known_key_with_another_fingerprint,
                prunes_old_answers,
                a_failed_change_set_does_not_use_its_key_up,
                keys_belong_to_their_user,
                raises_the_revision_with_what_recall_can_see,
                leaves_the_head_of_an_unknown_user_at_zero,
            }
            expectations {
                expects_the_session_that_was_read,
                expects_a_session_that_does_not_exist,
                does_not_see_another_users_version,
                raises_the_version_with_each_write,
                leaves_the_version_alone_otherwise,
                never_uses_a_version_again,
                checks_expectations_before_the_changes,
                one_broken_expectation_applies_nothing,
                checks_expectations_without_changes,
                replays_without_checking_expectations,
            }
            isolation {
                no_read_sees_another_user,
                no_change_reaches_another_user,
                the_same_ids_may_exist_for_two_users,
                names_the_owner_of_a_memory,
                forgetting_a_user_leaves_others_alone,
                refuses_a_job_for_another_user,
                the_shared_bucket_is_a_user_like_any_other,
            }
            memories {
                keeps_everything_of_a_memory,
                refuses_an_id_that_exists,
                lists_current_memories_newest_first,
                lists_all_memories_whatever_their_state,
                lists_hidden_memories_newest_first,
                reads_ids_in_the_order_asked_whatever_their_state,
                chooses_by_session_agent_and_kind,
                pages_through_memories,
                keeps_memories_that_pass_the_test,
                revising_keeps_the_id_and_the_old_statement,
                revising_metadata_alone_keeps_the_sources,
                revising_replaces_metadata_only_if_given,
                revising_refuses_an_archive_id_that_exists,
                revising_drops_the_old_statements_vectors,
                closing_ends_validity_and_names_the_successor,
                closing_refuses_an_unknown_successor,
                answers_what_was_believed_then,
                hides_and_restores_a_memory,
                shows_the_history_of_revisions,
                shows_the_history_of_replacements,
                ends_the_history_of_memories_that_replace_each_other,
                has_no_history_of_an_unknown_memory,
                refuses_changes_of_an_unknown_memory,
                takes_a_memory_of_a_session_without_turns,
                notes_something_about_a_memory,
                keeps_notes_and_a_memorys_metadata_apart,
                revising_notes_when_the_first_statement_was_recorded,
                confirms_a_memory_by_further_turns,
                expects_the_memories_that_were_read,
            }
            summaries {
                keeps_everything_of_a_summary,
                moves_a_summary_on,
                lists_the_furthest_reaching_first,
                chooses_by_strategy_and_status,
                refuses_a_second_processing_summary,
                processes_one_summary_in_each_session,
                refuses_a_summary_of_an_unknown_session,
                lists_current_summaries_with_a_part,
                a_part_leaves_with_its_summary,
            }
            forgetting {
                destroys_a_session_with_all_that_hangs_on_it,
                begins_a_forgotten_session_anew,
                destroys_a_memory_with_its_former_statements,
                leaves_what_replaced_a_forgotten_memory,
                destroys_all_memories_and_leaves_turns,
                destroys_a_user,
                forgets_a_session_that_has_only_memories,
                refuses_to_forget_what_is_unknown,
                forgets_nothing_where_there_is_nothing,
                raises_the_epoch,
                adds_up_what_one_change_set_destroyed,
                destroys_what_only_a_session_says,
            }
            jobs {
                leases_a_job,
                has_nothing_to_lease_before_its_time,
                leases_what_has_waited_longest,
                leases_jobs_of_all_users,
                leases_jobs_of_one_user,
                serves_users_in_turn,
                passes_over_users_whose_jobs_wait,
                takes_jobs_of_a_clock_that_was_ahead,
                holds_one_job_a_session_at_a_time,
                sessions_of_two_users_do_not_hold_each_other_up,
                takes_a_job_over_when_its_lease_has_ended,
                finishes_a_job,
                drops_a_job,
                a_lost_lease_conflicts_and_applies_nothing,
                an_ended_lease_that_nobody_took_over_still_finishes,
                finishing_twice_conflicts,
                puts_a_failed_job_back,
                buries_and_retries_a_dead_job,
                refuses_to_retry_a_job_that_is_not_dead,
                refuses_an_id_that_exists,
                refuses_unknown_jobs,
                lists_jobs_newest_first_and_by_choice,
                keeps_everything_of_a_job,
                keeps_a_jobs_result,
                puts_a_job_back_that_came_too_early,
                asks_once_for_what_waits_already,
                brings_a_waiting_job_forward,
                prunes_finished_jobs,
            }
            keys {
                keeps_everything_of_a_key,
                finds_a_key_by_its_hash_whoever_has_it,
                refuses_an_id_or_a_hash_that_exists,
                refuses_a_key_for_another_user,
                revokes_a_key_once,
                refuses_to_revoke_an_unknown_key,
                lists_keys_newest_first_and_by_choice,
                a_key_alone_is_nothing_stored,
                a_failing_change_undoes_a_key,
                forgetting_a_user_destroys_their_keys,
            }
            vectors {
                keeps_vectors_of_every_kind_of_item,
                replaces_the_vector_of_the_same_model,
                passes_over_items_that_do_not_exist,
                finds_the_nearest_items_if_it_has_an_index,
            }
            feed {
                tells_what_changed_after_a_revision,
                tells_of_each_item_once_as_it_is_now,
                tells_of_completed_summaries_only,
                never_cuts_a_revision_in_two,
                does_not_tell_of_what_was_destroyed,
                does_not_count_what_recall_cannot_see,
                counts_vectors_by_themselves,
                keeps_segments_in_order,
                refuses_a_segment_that_does_not_follow,
                tells_of_segments_without_reading_all,
                merges_segments_that_follow_each_other,
                drops_the_segments_of_a_space,
                destroying_anything_destroys_all_segments,
                keeps_progress_a_space,
                names_users_that_are_behind,
                expects_the_progress_that_was_read,
            }
            observing {
                keeps_everything_of_a_request,
                lists_requests_newest_first_and_by_choice,
                prunes_old_requests,
                refuses_a_request_id_that_exists,
                keeps_the_complaints_about_a_request,
                refuses_a_complaint_about_an_unknown_request,
                counts_what_a_user_has_and_when_it_came,
                lists_users_by_name,
                checks_and_counts,
                refuses_calls_after_close,
            }
            search {
                finds_words_in_turns_and_memories,
                finds_other_forms_of_a_word,
                finds_chinese_words_of_two_characters,
                finds_what_was_just_appended_again_and_again,
                ranks_more_and_rarer_terms_higher,
                finds_nothing_without_a_shared_term,
                takes_any_question,
                finds_substrings,
                finds_misspelt_words,
                similar_respects_the_least_similarity,
                never_finds_what_is_hidden,
                never_finds_what_is_closed_or_replaced,
                finds_a_revised_memory_by_its_new_words_only,
                never_finds_what_was_forgotten,
                restricts_to_a_session_and_unbound_memories,
                restricts_to_kinds,
                keeps_items_that_pass_the_test,
                sees_what_could_be_seen_then,
                gives_no_more_than_the_limit,
            }
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn concurrent_writers_leave_no_gap_and_no_double() {
            let (store, _guard) = $constructor().await;
            let writers: Vec<_> = (0..$crate::store::conformance::concurrency::WRITERS)
                .map(|writer| {
                    let store = std::sync::Arc::clone(&store);
                    tokio::spawn(async move {
                        $crate::store::conformance::concurrency::append_as(&*store, writer).await
                    })
                })
                .collect();
            let mut answers = Vec::new();
            for writer in writers {
                answers.push(writer.await.expect("a writer panicked"));
            }
            $crate::store::conformance::concurrency::verify(&*store, answers).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn concurrent_calls_with_one_key_write_once() {
            let (store, _guard) = $constructor().await;
            let calls: Vec<_> = (0..16)
                .map(|_| {
                    let store = std::sync::Arc::clone(&store);
                    tokio::spawn(async move {
                        $crate::store::conformance::concurrency::append_with_key(&*store).await
                    })
                })
                .collect();
            let mut answers = Vec::new();
            for call in calls {
                answers.push(call.await.expect("a call panicked"));
            }
            $crate::store::conformance::concurrency::verify_key(&*store, answers).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn concurrent_writers_with_one_expectation_write_once() {
            let (store, _guard) = $constructor().await;
            let writers: Vec<_> = (0..16)
                .map(|_| {
                    let store = std::sync::Arc::clone(&store);
                    tokio::spawn(async move {
                        $crate::store::conformance::concurrency::append_expecting(&*store).await
                    })
                })
                .collect();
            let mut answers = Vec::new();
            for writer in writers {
                answers.push(writer.await.expect("a writer panicked"));
            }
            $crate::store::conformance::concurrency::verify_expecting(&*store, answers).await;
        }

        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn concurrent_workers_lease_each_job_once() {
            let (store, _guard) = $constructor().await;
            $crate::store::conformance::concurrency::enqueue(&*store).await;
            let workers: Vec<_> = (0..8)
                .map(|worker| {
                    let store = std::sync::Arc::clone(&store);
                    tokio::spawn(async move {
                        $crate::store::conformance::concurrency::work_as(&*store, worker).await
                    })
                })
                .collect();
            let mut done = Vec::new();
            for worker in workers {
                done.extend(worker.await.expect("a worker panicked"));
            }
            $crate::store::conformance::concurrency::verify_work(&*store, done).await;
        }
    };
}

/// Makes tests of the cases of [`conformance_suite`], a module each.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($constructor:path; $($module:ident { $($case:ident),+ $(,)? })+) => {
        $(mod $module {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let (store, _guard) = $constructor().await;
                    $crate::store::conformance::$module::$case(&*store).await;
                }
            )+
        })+
    };
}

#[cfg(test)]
mod tests {
    /// A case that is not listed would never run.
    #[test]
    fn every_case_is_in_the_suite() {
        let suite = include_str!("conformance.rs");
        let (_, list) = suite.split_once("conformance_cases! {").unwrap();
        let (list, _) = list.split_once("tokio::test").unwrap();
        let listed = |module: &str| {
            let (_, rest) = list.split_once(&format!("            {module} {{")).unwrap();
            rest.split_once('}').unwrap().0.split(',').map(|case| case.trim().to_owned()).collect::<Vec<_>>()
        };
        for (module, source) in [
            ("turns", include_str!("conformance/turns.rs")),
            ("sessions", include_str!("conformance/sessions.rs")),
            ("change_sets", include_str!("conformance/change_sets.rs")),
            ("expectations", include_str!("conformance/expectations.rs")),
            ("isolation", include_str!("conformance/isolation.rs")),
            ("memories", include_str!("conformance/memories.rs")),
            ("summaries", include_str!("conformance/summaries.rs")),
            ("forgetting", include_str!("conformance/forgetting.rs")),
            ("jobs", include_str!("conformance/jobs.rs")),
            ("keys", include_str!("conformance/keys.rs")),
            ("vectors", include_str!("conformance/vectors.rs")),
            ("feed", include_str!("conformance/feed.rs")),
            ("observing", include_str!("conformance/observing.rs")),
            ("search", include_str!("conformance/search.rs")),
        ] {
            let listed = listed(module);
            for line in source.lines().filter_map(|line| line.strip_prefix("pub async fn ")) {
                let case = line.split('(').next().unwrap();
                assert!(listed.iter().any(|name| name == case), "`{module}::{case}` is not in the suite");
            }
        }
    }
}
