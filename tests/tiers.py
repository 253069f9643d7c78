"""Which tests `make test` leaves to `make test-full`: they are marked `full` here, in one place.

Of a product of three or more factors the thin tier keeps a pairwise cover: any two values of two factors that meet in
the product meet in a test that is kept. Seeds are no factors: of tests that differ in nothing else the first is kept.
Whole commands and pages, repeated draws and checks of the repository are in FULL where cheaper tests hold their parts.
A test that is asked for by its whole name is never left out.

Numerics and io, in the files of PORTABLE, are marked `portable`: their thin tier runs also with the oldest and the
newest versions, as on an old processor.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations

import pytest
from cases import CASES

FULL = {
    "test_agreement.py": "the_variance_within_is_that_of_single_steps",
    "test_careless.py": "what_stood_beside_an_earlier_result_is_not_written_over",
    "test_change.py": """
        a_fit_with_a_base_policy_carries_what_the_page_shows
        the_base_policy_of_every_kind_of_problem_can_be_drawn
    """,
    "test_choosing.py": "every_way_gives_a_candidate_or_weights_and_none_beats_the_best_candidate",
    "test_claims.py": """
        claims_are_plain_data_with_finite_numbers_however_few_the_runs
        every_claim_says_what_it_is_where_it_stands_and_how_it_is_tested
    """,
    "test_commands.py": """
        a_fit_stands_beside_its_baselines_with_held_out_scores
        a_model_with_a_base_policy_is_saved_shown_and_evaluated
        a_pipe_that_is_closed_early_is_no_error_to_speak_of
        help_explains_itself_and_imports_nothing_heavy
        trips_with_goals_are_fitted_with_standard_errors
    """,
    "test_commands_dynamics.py": """
        recordings_are_fitted_by_fitted_messi
        the_page_of_recordings_opens_with_what_they_want_and_whether_the_others_helped
        the_report_tells_what_the_data_says_of_the_dynamics
    """,
    "test_commands_errors.py": "a_warning_becomes_a_note_of_one_line",
    "test_commands_groups.py": """
        a_choice_breaks_likeness_down
        without_held_out_trajectories_the_scores_are_said_to_be_of_what_was_fitted
    """,
    "test_commands_inference.py": """
        leaving_features_out_is_the_direct_likelihood_ratio_test
        ratios_are_those_of_the_library_in_terminal_file_and_page
    """,
    "test_commands_select.py": """
        diagnose_says_what_the_library_says
        diagnosis_as_json_is_all_there_is_on_standard_output
        json_is_all_there_is_on_standard_output
        the_default_is_kept_where_nothing_is_clearly_better_and_how_many_experts_would_settle_it
        the_next_command_fits_exactly_what_was_chosen
        trajectories_have_their_own_names_and_episodes_are_diagnosed
        two_experts_are_too_few_to_choose_by_and_are_given_the_default
    """,
    "test_commands_surroundings.py": """
        a_closed_stream_is_no_error
        a_name_that_is_no_text_is_written_as_it_is
        a_standard_output_that_takes_nothing_is_one_sentence
        json_is_the_same_whatever_letters_there_are
        verbose_shows_what_the_library_logs_and_its_absence_does_not
    """,
    "test_commands_units.py": "a_weight_on_theta_max_is_named_in_the_terminal_in_fit_json_and_on_the_page",
    "test_commands_writing.py": """
        an_earlier_result_is_replaced_only_when_forced_and_kept_beside
        files_of_ones_own_stay_when_a_result_is_replaced
        nothing_of_ones_own_is_lost_or_written_over_when_results_change_places
    """,
    "test_convergence_claims.py": "silent_fits_from_two_starts_agree",
    "test_diagnosis_report.py": """
        candidates_without_a_finite_score_are_drawn_too
        names_can_be_any_text
        the_page_stands_alone_and_every_link_leads_somewhere
        what_is_far_outside_is_said_and_drawn_at_the_edge
        where_no_penalty_is_chosen_the_title_says_so_and_nothing_has_a_ring
    """,
    "test_diagnostics.py": """
        every_kind_of_problem_is_diagnosed
        lists_are_diagnosed_as_trajectories_are
        trajectories_may_look_like_the_experts_or_not_and_yet_not_matter
    """,
    "test_docs.py": "a_program_prints_what_is_printed_here",
    "test_docstrings.py": "examples_give_what_they_show",
    "test_dynamics_fitted.py": """
        gradient_of_a_refitted_linear_smoother_is_that_of_its_objective
        what_cannot_be_written_as_numbers_is_refused_with_what_can
    """,
    "test_dynamics_studies.py": """
        every_way_learns_a_policy_from_recordings
        many_transitions_come_near_to_known_dynamics_in_the_pit
    """,
    "test_examples.py": """
        frozenlake_is_learnt_far_better_than_chance
        the_museum_is_written_read_and_tells_guides_from_school_classes
    """,
    "test_execution.py": "a_failure_is_raised_where_its_answer_was_due",
    "test_fit_report.py": """
        a_graph_has_its_moves_below_the_dots_and_a_grid_has_tiles
        a_horizon_of_one_state_has_nothing_to_choose
        names_may_be_anything
        settings_and_statistics_may_be_missing_or_numbers
    """,
    "test_golden_files.py": "estimators_find_what_the_golden_file_holds",
    "test_groups.py": """
        a_dot_has_a_colour_where_the_corrected_p_of_its_table_is_below_five_per_cent
        groups_that_do_not_differ_are_seldom_said_to_differ
    """,
    "test_house.py": "what_the_tests_ask_for_is_what_they_import_or_call",
    "test_import_command.py": """
        a_bad_file_is_read_where_there_is_no_doubt_and_says_how
        the_folder_is_fine_and_can_be_fitted_as_it_is
        what_is_there_is_replaced_only_when_forced
    """,
    "test_inference_choices.py": """
        a_ratio_test_of_choices_is_chi_squared_whatever_the_moves
        the_weights_of_patient_owners_settle
    """,
    "test_lab_folders.py": "no_two_lines_of_a_figure_have_the_same_name",
    "test_lanes.py": "rows_of_a_run_do_not_depend_on_the_figures_done_beside",
    "test_learners.py": """
        a_task_of_learners_gives_one_row_per_learner
        the_study_compares_every_fit_and_starts_elsewhere
    """,
    "test_maps.py": """
        a_fit_without_coordinates_shows_its_network_and_says_so
        all_states_in_one_place_are_a_picture_too
        letters_on_tiles_are_dark_on_pale_colours_and_pale_on_dark_ones_by_day_and_by_night
        starts_and_ends_are_marked_and_explained
        states_on_a_line_have_curves_and_no_arrows
    """,
    "test_persistence.py": "zeros_that_would_fill_memory_are_refused",
    "test_plot.py": """
        the_history_is_drawn
        the_policy_is_drawn_as_arrows
    """,
    "test_prior.py": "every_candidate_of_a_selection_has_its_prior",
    "test_report.py": """
        a_part_of_the_results_gives_a_report_too
        gains_are_paired_with_maxent
        names_with_tags_are_text
        the_page_stands_alone
    """,
    "test_reproduce_command.py": """
        a_damaged_store_is_refused_in_one_sentence_and_mended_by_what_it_says
        progress_is_plain_lines_on_standard_error_only
    """,
    "test_runner.py": "dying_after_any_number_of_parts_and_going_on_gives_the_same_table",
    "test_selection.py": """
        every_kind_of_problem_is_chosen_for
        fits_on_splits_that_begin_at_those_to_all_end_where_the_others_do
        nested_validation_of_three_leaves_two_to_choose_on
        resamples_side_by_side_are_those_one_by_one
        the_seed_decides_everything
        two_runs_without_a_seed_choose_by_the_same_splits
    """,
    "test_sentences.py": "the_page_says_what_is_true_of_the_others",
    "test_several.py": """
        a_mixture_scores_trajectories_it_knows_nothing_of
        a_seed_gives_the_same_mixture_again
    """,
    "test_streamed.py": """
        messirl_diagnose_from_files_says_what_it_says_from_memory
        messirl_fit_from_files_gives_the_scores_from_memory
        messirl_select_from_files_chooses_as_from_memory
    """,
    "test_units.py": "many_correlated_features_of_all_sizes_converge",
    "test_workflow.py": """
        a_record_holds_all_that_a_page_shows
        the_parts_of_a_choice_and_of_a_diagnosis_are_told_in_order
        trajectories_that_are_cut_are_noted_once_by_the_one_that_least_was_seen_of
    """,
}
PORTABLE = """
    apprenticeship baselines bayesian blas central_path checkpoints choices classics cloning convergence_claims counts
    demodice domains dynamics_estimated dynamics_fitted em estimators exactness extremes goal_slopes goals identify
    identify_probes import inference inference_choices io_discretise io_filters io_folder io_fuzz io_graphs io_gym
    io_interop io_lenient io_minari io_writer iterated kernels lanes layout likelihood mdp metrics models nearby
    ng_russell optimise own_policy parts persistence pooling prior ratios reference relative_entropy rivals rounding
    sampling scattered scores selection sequences several similarity sklearn small_sample streamed summit
    trajectories units
"""
FULL_TESTS = {f"{file}::test_{name}" for file, names in FULL.items() for name in names.split()}
PORTABLE_FILES = {f"test_{name}.py" for name in PORTABLE.split()}


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark as `full` what the thin tier leaves out, and as `portable` what may differ elsewhere."""
    of_one_function = defaultdict(list)
    for item in items:
        name = item.nodeid.partition("[")[0].rpartition("/")[2]
        if item.path.name in PORTABLE_FILES:
            item.add_marker("portable")
        if name in FULL_TESTS:
            item.add_marker("full")
        elif hasattr(item, "callspec"):
            of_one_function[name].append(item)
    for same in of_one_function.values():
        rows = [factors(item) for item in same]
        first = {row: i for i, row in reversed(list(enumerate(rows)))}
        kept = {first[row] for row in cover(list(dict.fromkeys(rows)))}
        for i in set(range(len(same))) - kept:
            same[i].add_marker("full")


def cover(rows: Sequence[tuple[Hashable, ...]]) -> list[tuple[Hashable, ...]]:
    """Rows that have every pair of values that meet in any of them: greedily, the first of equals."""
    if len(rows[0]) <= 2:
        return list(rows)
    pairs = {row: set(combinations(enumerate(row), 2)) for row in rows}
    missing, kept = set().union(*pairs.values()), []
    while missing:
        best = max(rows, key=lambda row: len(pairs[row] & missing))
        kept.append(best)
        missing -= pairs[best]
    return kept


def factors(item: pytest.Function) -> tuple[Hashable, ...]:
    """What a test is given, without seeds; arguments that are listed together are one factor."""
    values, found = dict(item.callspec.params), []
    for decorator in item.iter_markers("parametrize"):
        names = decorator.args[0]
        names = names.replace(" ", "").split(",") if isinstance(names, str) else names
        together = {name: values.pop(name) for name in names if name in values}
        match together:
            case {"seed": _, **others} if not others:
                pass
            case {"number": number} if getattr(item.module, "CASES", None) is CASES:
                found += CASES[number][:2]  # the third is a seed
            case {"case": number} if item.module.__name__ == "test_exactness":
                of_its_kind = "FINITE" if "finite" in item.function.__code__.co_names else "ENDLESS"
                found += [value for key, value in getattr(item.module, of_its_kind)[number].items() if key != "seed"]
            case _:
                found.append(tuple(map(_hashable, together.values())))
    return (*found, *map(_hashable, values.values()))  # the others are of fixtures


def _hashable(value: object) -> Hashable:
    """The value, or which object it is."""
    return (type(value), value) if isinstance(value, str | int | float | None) else id(value)
