"""Which files become one."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headgate.history.maintenance.compaction import CompactionLimits, merge_groups, mergeable_files
from headgate.lake.tables.data_file import DataFile

DEFAULT_LIMITS = CompactionLimits(small=10, least=3, most=25)


def file(n: int, size: int = 5, name: str = "a", *, final: bool | None = None) -> DataFile:
    partition = {} if final is None else {"final": str(final).lower()}
    return DataFile(f"data/0-{n}-x/{name}.parquet", size, 1, "", partition)


def numbers(found: tuple[tuple[DataFile, ...], ...]) -> list[list[int]]:
    return [[f.n for f in group] for group in found]


def test_small_files_are_taken_in_the_order_of_their_batches() -> None:
    files = [file(n) for n in (4, 2, 9, 1, 3, 7)]
    assert numbers(merge_groups(files, limits=DEFAULT_LIMITS)) == [[1, 2, 3, 4, 7]]


def test_a_few_small_files_are_left() -> None:
    assert merge_groups([file(1), file(2)], limits=DEFAULT_LIMITS) == ()


def test_large_files_are_left() -> None:
    files = [file(1), file(2, 10), file(3), file(4)]
    assert numbers(merge_groups(files, limits=DEFAULT_LIMITS)) == [[1, 3, 4]]


def test_no_group_goes_across_a_cut() -> None:
    files = [file(n) for n in range(1, 8)]
    assert numbers(merge_groups(files, [4], DEFAULT_LIMITS)) == [[1, 2, 3, 4], [5, 6, 7]]
    assert numbers(merge_groups(files, [2], DEFAULT_LIMITS)) == [[1, 2], [3, 4, 5, 6, 7]]


def test_operations_may_be_frequent() -> None:
    """The number of small files is that of the table, not of a section between two operations."""
    files = [file(n, 2) for n in range(1, 8)]
    assert numbers(merge_groups(files, [2, 4], DEFAULT_LIMITS)) == [[1, 2], [3, 4], [5, 6, 7]]


def test_files_that_cannot_be_merged_do_not_count() -> None:
    """Otherwise two new files would be merged again and again with what was merged before."""
    files = [file(n) for n in range(1, 8)]
    assert merge_groups(files, [1, 2, 3, 4, 5], DEFAULT_LIMITS) == ()


def test_the_files_of_a_batch_stay_together() -> None:
    files = [file(1, 8), file(2, 8), file(3, 8, "a"), file(3, 8, "b"), file(4, 8), file(5, 8)]
    assert numbers(merge_groups(files, limits=DEFAULT_LIMITS)) == [[1, 2], [3, 3, 4]]


def test_a_file_that_is_alone_in_its_group_is_left() -> None:
    files = [file(n, 9) for n in range(1, 6)]
    assert numbers(merge_groups(files, limits=DEFAULT_LIMITS)) == [[1, 2], [3, 4]]


FILES = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 12)), max_size=40).map(
    lambda pairs: [file(n, size, str(i)) for i, (n, size) in enumerate(pairs)]
)


@given(FILES, st.lists(st.integers(1, 30), max_size=3))
def test_groups_are_whole_small_and_apart(files: list[DataFile], cuts: list[int]) -> None:
    found = merge_groups(files, cuts, DEFAULT_LIMITS)
    paths = [f.path for group in found for f in group]
    assert len(paths) == len(set(paths))
    for group in found:
        assert len(group) > 1
        assert all(f.size < DEFAULT_LIMITS.small for f in group)
        assert not any(group[0].n <= cut < group[-1].n for cut in cuts)
        # A single batch may exceed the limit of a group; several batches never do.
        assert sum(f.size for f in group) <= DEFAULT_LIMITS.most or len({f.n for f in group}) == 1
    spans = [(group[0].n, group[-1].n) for group in found]
    assert all(first[1] < second[0] for first, second in pairwise(spans))


def test_of_gold_only_final_rows_are_merged() -> None:
    files = [file(1, final=True), file(9, final=False), file(9, final=True)]
    assert list(mergeable_files("gold/t", files, 3, ())) == [files[0], files[2]]


def test_of_other_tables_only_what_all_tables_have_processed() -> None:
    files = [file(n) for n in (1, 3, 4)]
    assert list(mergeable_files("silver/t", files, 3, ())) == files[:2]


def test_what_is_still_to_be_published_is_left() -> None:
    files = [file(1, final=True), file(2, final=True)]
    assert list(mergeable_files("gold/t", files, 3, {files[0].path})) == [files[1]]


def test_what_somebody_else_wrote_is_left() -> None:
    foreign = DataFile("part-00000.parquet", 5, 1, "", {})
    assert list(mergeable_files("silver/t", [foreign, file(1)], 3, ())) == [file(1)]
