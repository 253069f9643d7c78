"""Raw recordings: columns are recognised and said, rows cleaned, trips cut, and places put along moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import shortest_path
from seeds import generator

from messirl.app.workflow.import_settings import ImportSettings
from messirl.app.workflow.importing import import_recordings
from messirl.io import Hexagons, InputError
from messirl.io.positions.cell_sequences import drop, make_cell_sequences
from messirl.io.positions.gap_filling import PathFinder
from messirl.io.positions.map_matching import JUMP, match_to_cells
from messirl.io.positions.segmentation import Points
from messirl.io.positions.spatial_cells import clusters, hexagons, points, squares

WALK = """id,t,x,y
a,0,0.5,0.5
a,1,1.5,0.5
a,2,1.6,0.4
a,3,1.5,1.5
b,0,2.5,1.5
b,1,1.5,1.5
b,2,0.5,1.5
"""


@pytest.fixture
def read(tmp_path):
    """Import a table given as text; `settings` over squares of 1 with their coordinates as features."""

    def imported(text, name="walk.csv", **settings):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        usual = {"discount": 0.9, "coordinates": True, "grid": None if "place" in settings else 1.0}
        return import_recordings(path, ImportSettings(**{**usual, **settings}))

    return imported


def middles(record):
    """The middles of the states of every trajectory, by its name."""
    problem = record.problem
    return {
        str(name): problem.xy[one.states].tolist()
        for name, one in zip(problem.facts["trajectory_id"], problem.trajectories, strict=True)
    }


PLAIN = {
    "a": [[0.5, 0.5], [1.5, 0.5], [1.5, 1.5]],
    "b": [[2.5, 1.5], [1.5, 1.5], [0.5, 1.5]],
}


# ------------------------------------------------------------ tables


def test_positions_become_places_one_after_the_other(read):
    record = read(WALK)
    assert middles(record) == PLAIN
    assert record.problem.mdp.n_states == 5
    assert record.said["x"] == "column 'x' (recognised)"
    assert record.numbers["rows"] == {"read": 7, "used": 7, "dropped": {}, "kept": 7}


@pytest.mark.parametrize("sign", [";", "\t", "|", "  "])
@pytest.mark.parametrize("mark", [".", ","])
def test_any_separator_and_decimal_mark_is_read_and_said(read, sign, mark):
    record = read(WALK.replace(",", sign).replace(".", mark))
    assert middles(record) == PLAIN
    assert "(recognised)" in record.said["read"]
    assert ("decimal commas" in record.said["read"]) == (mark == ",")


def test_a_decimal_mark_can_be_given_where_it_may_mean_thousands(read):
    text = WALK.replace(",", ";").replace("0.5", "1,500").replace("1.5", "2,500").replace("1.6", "2,600")
    text = text.replace("0.4", "1,400").replace("2.5", "3,500")
    with pytest.raises(
        InputError, match=r"x holds '1,500', which may be 1.500 or 1500: give the decimal mark with `decimal`"
    ):
        read(text)
    shifted = {name: (np.array(way) + 1).tolist() for name, way in PLAIN.items()}
    record = read(text, decimal=",")
    assert middles(record) == shifted
    assert record.said["read"] == "walk.csv; columns separated by semicolons (recognised)"
    assert middles(read(text, decimal=",", separator="semicolon")) == shifted
    with pytest.raises(InputError, match="`separator`: is 'dash': give one character, or comma, semicolon"):
        read(text, separator="dash")


def test_order_repetitions_and_missing_numbers_change_nothing_and_are_counted(read):
    head, *rows = WALK.splitlines()
    rows += [rows[2], "a,9,NA,1.5", ",3,1.5,1.5", "b,,1.5,1.5", "", rows[0]]
    order = generator(3).permutation(len(rows))
    record = read("\n".join([head, *(rows[i] for i in order)]))
    assert {name: middles(record)[name] for name in PLAIN} == PLAIN
    expected = {"without an id": 1, "without a time": 1, "without a position": 1, "repeated": 2}
    assert record.numbers["rows"]["dropped"] == expected
    assert record.said["rows"].startswith("12 read, 5 dropped (1 without an id, ")


def test_files_without_a_header_need_names(read):
    text = WALK.partition("\n")[2]
    with pytest.raises(
        InputError, match=r"walk.csv, row 1: has numbers in its first row .* name the columns with `columns`"
    ):
        read(text)
    assert list(middles(read(text.replace(",", " "), columns=["id", "t", "x", "y"])).values()) == list(PLAIN.values())


def test_rows_of_a_file_without_a_header_are_counted_from_one(read):
    text = WALK.partition("\n")[2].replace("1.6,0.4", "1.6,south")
    with pytest.raises(InputError, match=r"walk.csv, row 3: y holds 'south', not a number"):
        read(text, columns=["id", "t", "x", "y"])


def test_names_for_columns_that_have_some_are_refused(read):
    said = r"walk.csv, row 1: its first row seems to hold names \(id, t, x, y\), but `columns` names the columns, too"
    with pytest.raises(InputError, match=said):
        read(WALK, columns=["who", "t", "x", "y"])


def test_a_first_row_with_missing_numbers_is_no_header(read):
    text = WALK.partition("\n")[2].replace("a,0,0.5,0.5", "a,0,NA,NA")
    assert len(middles(read(text, columns=["id", "t", "x", "y"]))["a"]) == 2


def test_parquet_is_read_like_csv(tmp_path):
    when = pa.array(np.datetime64("2024-03-01T12:00", "us") + np.arange(3) * np.timedelta64(1, "s"))
    table = pa.table({"animal": [4, 4, 4], "timestamp": when, "pos_x": [0.5, 1.5, 2.5], "pos_y": [0.5, 0.5, 0.5]})
    pq.write_table(table, tmp_path / "walk.parquet")
    record = import_recordings(tmp_path / "walk.parquet", ImportSettings(discount=0.9, grid=1.0, coordinates=True))
    assert middles(record) == {"4": [[0.5, 0.5], [1.5, 0.5], [2.5, 0.5]]}
    assert record.problem.meta["animal"].tolist() == [4]
    assert record.problem.meta["begins"].tolist() == ["2024-03-01T12:00:00"]


def test_a_folder_is_one_table_and_its_files_can_be_tracks(tmp_path):
    for name, y in (("ann", 0.5), ("bob", 1.5)):
        (tmp_path / f"{name}.csv").write_text(f"t,x,y\n0,0.5,{y}\n1,1.5,{y}\n")
    settings = ImportSettings(discount=0.9, grid=1.0, coordinates=True, id="file")
    record = import_recordings(tmp_path, settings)
    assert middles(record) == {"ann": [[0.5, 0.5], [1.5, 0.5]], "bob": [[0.5, 1.5], [1.5, 1.5]]}
    assert record.problem.meta["file"].tolist() == ["ann", "bob"]


def test_ids_that_count_anew_in_every_file_are_told_apart_on_request(tmp_path):
    for name, y in (("one", 0.5), ("two", 1.5)):
        (tmp_path / f"{name}.csv").write_text(f"id,t,x,y\n1,0,0.5,{y}\n1,1,1.5,{y}\n")
    settings = ImportSettings(discount=0.9, grid=1.0, coordinates=True)
    with pytest.raises(InputError, match=r"track '1' is in two places at the same time: .*`per_file`"):
        import_recordings(tmp_path, settings)
    record = import_recordings(tmp_path, ImportSettings(discount=0.9, grid=1.0, coordinates=True, per_file=True))
    assert set(middles(record)) == {"one-1", "two-1"}


# ------------------------------------------------------------ columns and times


@pytest.mark.parametrize(
    "header",
    ["Track ID,Frame,X [mm],Y [mm]", "individual-local-identifier,timestamp,pos_x,pos_y", "user,time,centroid_x,cy"],
)
def test_columns_are_recognised_with_signs_and_units(read, header):
    assert middles(read(WALK.replace("id,t,x,y", header))) == PLAIN


def test_what_may_be_two_things_is_refused_and_what_is_named_is_taken(read):
    text = "\n".join(f"{line},{extra}" for line, extra in zip(WALK.splitlines(), ["frame", *"0123012"], strict=True))
    with pytest.raises(InputError, match="columns 't' and 'frame' could each be the time: choose one with `time`"):
        read(text)
    record = read(text, time="t")
    assert middles(record) == PLAIN
    assert record.said["time"].startswith("column 't' (given)")


def test_columns_named_crosswise_are_said(read):
    record = read(WALK, x="y", y="x")
    assert record.said["x"] == "column 'y' (given), although its name suggests y"
    assert middles(record)["b"] == [[1.5, 2.5], [1.5, 1.5], [1.5, 0.5]]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("2024-03-31T{0:02}:30:00Z", "timestamps with a time zone, as UTC"),
        ("2024-03-31 {0:02}:30:00.000", "timestamps without a time zone"),
        ("2024/03/31 {0:02}:30", "timestamps without a time zone"),
        ("{1}", "seconds since 1970, judging by their size"),
        ("{1}000", "milliseconds since 1970, judging by their size"),
    ],
)
def test_stamps_and_epochs_are_the_same_hours(read, form, said):
    times = [form.format(k, 1711845000 + 3600 * k) for k in range(4)]
    text = "id,time,x,y\n" + "".join(f"1,{time},{k}.5,0.5\n" for k, time in enumerate(times))
    record = read(text, step=3600.0)
    assert record.said["time"].startswith(f"column 'time' (recognised), {said}")
    assert middles(record) == {"1": [[k + 0.5, 0.5] for k in range(4)]}
    assert record.problem.meta["begins"].tolist() == ["2024-03-31T00:30:00"]


def test_an_epoch_in_another_unit_is_refused(read):
    times = (1714550400, 1714550401000, 1714550402)
    text = "id,time,x,y\n" + "".join(f"1,{time},{k}.5,0.5\n" for k, time in enumerate(times))
    said = "row 3: time holds 1714550401000, but most rows hold seconds since 1970: correct it, or name the unit"
    with pytest.raises(InputError, match=said):
        read(text)


def test_time_zones_are_compared_as_moments(read):
    text = "id,time,x,y\n1,2024-05-01T12:00:00+02:00,1.5,0.5\n1,2024-05-01T09:00:00Z,0.5,0.5\n"
    assert middles(read(text)) == {"1": [[0.5, 0.5], [1.5, 0.5]]}
    with pytest.raises(InputError, match=r"row 3: time holds '2024-05-01T09:00:00' without a time zone"):
        read(text.replace("00Z", "00"))


def test_other_stamps_need_their_form(read):
    text = "id,time,x,y\n1,01.05.2024 12:00,0.5,0.5\n1,02.05.2024 11:00,1.5,0.5\n"
    with pytest.raises(InputError, match=r"row 2: time holds '01.05.2024 12:00', .* `time_format`"):
        read(text)
    record = read(text, time_format="%d.%m.%Y %H:%M")
    assert record.problem.meta["begins"].tolist() == ["2024-05-01T12:00:00"]
    with pytest.raises(
        InputError, match=r"row 2: time holds '01.05.2024 12:00', which does not match the format '%m/%d/%Y'"
    ):
        read(text, time_format="%m/%d/%Y")


def test_a_day_and_a_time_of_day_are_joined(read):
    text = "id,date,time,x,y\n1,2024-05-01,23:59:50,0.5,0.5\n1,2024-05-02,00:00:10,1.5,0.5\n"
    with pytest.raises(InputError, match=r"'date' and 'time' could each be the time: .* both with `time` 'date\+time'"):
        read(text)
    record = read(text, time="date+time")
    assert record.problem.meta["begins"].tolist() == ["2024-05-01T23:59:50"]
    assert "date" not in record.problem.meta
    assert "at most 20" in record.said["tracks"]


def test_frames_become_seconds_with_their_rate(read):
    text = WALK.replace("id,t,", "id,frame,")
    assert "1 frames" in read(text, step=1.0).said["steps"]
    record = read(text, fps=2.0, step=0.5)
    assert "one per 0.5 s" in record.said["steps"]
    assert middles(record) == middles(read(text, step=1.0))


def test_degrees_become_metres(read):
    text = "id,time,lon,lat\n1,0,11.0,60.0\n1,1,11.01,60.0\n1,2,11.01,60.01\n"
    record = read(text, grid=100.0)
    assert "degrees, as metres east and north of 11.00500, 60.00500" in record.said["y"]
    assert record.mapping["degrees"] == {"longitude": pytest.approx(11.005), "latitude": pytest.approx(60.005)}
    size = np.ptp(np.concatenate(record.tracks), axis=0)
    degree = 2 * np.pi * 6_371_008.8 / 360
    assert_allclose(size, [0.01 * degree * np.cos(np.radians(60.005)), 0.01 * degree])
    asked = {"coordinates": False, "distance": ["11.0,60.01"], "area": (10.99, 59.99, 11.02, 60.02)}
    far = np.asarray(read(text, grid=100.0, **asked).problem.mdp.features)[:, 0]
    assert_allclose([far.min(), far.max()], [size[0], np.hypot(*size)], atol=100)  # within a square


def test_longitudes_on_both_sides_of_180_lie_beside_each_other(read):
    text = "id,time,lon,lat\n1,0,179.99,-17.0\n1,1,179.999,-17.0\n1,2,-179.999,-17.0\n1,3,-179.99,-17.0\n"
    record = read(text, grid=500.0, area=(179.0, -18.0, 181.0, -16.0))
    assert record.said["y"].endswith(
        "180.00000, -17.00000 (across ±180°: negative longitudes plus 360), in which all sizes and distances are"
    )
    assert record.mapping["degrees"] == {"longitude": 180.0, "latitude": -17.0, "eastward": True}
    degree = 2 * np.pi * 6_371_008.8 / 360
    assert_allclose(np.ptp(np.concatenate(record.tracks)[:, 0]), 0.02 * degree * np.cos(np.radians(17.0)))


def test_longitudes_around_the_world_stay_as_they_are(read):
    text = "id,time,lon,lat\n1,0,-120.0,0.0\n1,1,-1.0,0.0\n1,2,1.0,0.0\n1,3,120.0,0.0\n"
    assert read(text, grid=1e6).mapping["degrees"] == {"longitude": 0.0, "latitude": 0.0}


# ------------------------------------------------------------ trips and steps


def test_trips_end_at_pauses_and_jumps(read):
    text = "id,t,x,y\n" + "".join(
        f"1,{t},{x},0.5\n" for t, x in [(0, 0.5), (1, 1.5), (50, 2.5), (51, 3.5), (52, 9.5), (53, 8.5)]
    )
    assert [len(way) for way in middles(read(text)).values()] == [11]
    cut = read(text, pause=10.0, jump=3.0)
    assert {name: [x for x, _ in way] for name, way in middles(cut).items()} == {
        "1-1": [0.5, 1.5],
        "1-2": [2.5, 3.5],
        "1-3": [9.5, 8.5],
    }
    assert cut.said["tracks"] == "1, cut at 1 pause longer than 10 and 1 jump farther than 3"
    assert cut.problem.meta["trip"].tolist() == [1, 2, 3]


def test_a_trip_ends_where_it_leaves_the_area(read):
    text = "id,t,x,y\n" + "".join(f"1,{t},{x},0.5\n" for t, x in enumerate([0.5, 1.5, 7.0, 2.5, 3.5, -0.2]))
    record = read(text, area=(0, 0, 4, 1))
    assert {name: [x for x, _ in way] for name, way in middles(record).items()} == {
        "1-1": [0.5, 1.5],
        "1-2": [2.5, 3.5],
    }
    assert record.said["rows"] == "6 read, 2 dropped (2 outside the area)"
    assert record.said["tracks"] == "1, cut at 1 place where they leave the area"
    noisy = read(text, area=(0, 0, 4, 1), noise=0.1)
    assert [x for x, _ in middles(noisy)["1-2"]] == [2.5, 3.5, 2.5, 1.5, 0.5]


def test_trips_of_one_place_are_dropped_and_counted(read):
    record = read(WALK + "c,0,0.5,0.5\nc,1,0.6,0.5\nd,0,0.5,0.5\n")
    assert middles(record) == PLAIN
    assert record.numbers["trips"] == {"made": 4, "kept": 2, "dropped": {"of fewer than 2 states": 2}}
    assert record.numbers["rows"]["kept"] == 7
    with pytest.raises(InputError, match=r"no trajectory is left \(2 of fewer than 2 states\)"):
        read("id,t,x,y\n1,0,0.5,0.5\n2,0,1.5,0.5\n")


def test_a_clock_makes_one_state_per_tick_and_staying_a_move(read):
    text = "id,t,x,y\n" + "".join(f"1,{t},{x},0.5\n" for t, x in [(0, 0.5), (1.1, 0.6), (1.9, 1.4), (4, 3.5)])
    record = read(text, step=1.0)
    assert [x for x, _ in middles(record)["1"]] == [0.5, 0.5, 1.5, 2.5, 3.5]
    assert "1 of 5 lie between recorded ones, on a straight line" in record.said["steps"]
    assert_allclose(record.problem.meta["filled"], [0.2])
    assert "stay" in record.problem.mdp.action_names
    moving = read(text, step=1.0, stay=False)
    assert [x for x, _ in middles(moving)["1"]] == [0.5, 1.5, 2.5, 3.5]
    assert "stay" not in moving.problem.mdp.action_names


def test_rows_of_one_tick_are_averaged_and_of_names_the_most_frequent_counts(read):
    text = "id,t,x,y,place\n" + "".join(
        f"1,{t},{x},0.5,{place}\n" for t, x, place in [(0, 0.2, "A"), (0.2, 1.9, "A"), (0.4, 1.2, "B"), (1, 3.5, "C")]
    )
    assert [x for x, _ in middles(read(text, step=1.0))["1"]][:1] == [1.5]  # the mean of 0.2, 1.9 and 1.2 is 1.1
    record = read(text, place="place", step=1.0)
    names = record.problem.mdp.state_names
    assert [names[s] for s in record.problem.trajectories[0].states] == ["A", "C"]


def test_jumps_are_filled_in_or_end_a_trip(read):
    text = "id,t,x,y\n1,0,0.5,0.5\n1,1,1.5,0.5\n1,2,4.5,0.5\n1,3,5.5,0.5\n"
    record = read(text)
    assert [x for x, _ in middles(record)["1"]] == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]
    assert record.said["jumps"] == "1 step farther than to a neighbour, 2 places filled in between"
    cut = read(text, fill=False)
    assert {name: [x for x, _ in way] for name, way in middles(cut).items()} == {"1-1": [0.5, 1.5], "1-2": [4.5, 5.5]}


def test_two_places_at_one_time_are_refused_or_settled_as_asked(read):
    text = WALK + "b,1,1.5,0.5\n"
    with pytest.raises(InputError, match=r"walk.csv, row 9: track 'b' is in two places at the same time"):
        read(text)
    assert middles(read(text, same_time="first"))["b"] == PLAIN["b"]
    assert middles(read(text, same_time="all"))["b"][:3] == [[2.5, 1.5], [1.5, 1.5], [1.5, 0.5]]
    assert middles(read(text, same_time="mean"))["b"] == PLAIN["b"]  # at y = 1.0, the edge of the upper square


# ------------------------------------------------------------ places and moves


def neighbour_pairs(places):
    coo = places.near.tocoo()
    return places.centres[coo.row], places.centres[coo.col]


@pytest.mark.parametrize(
    ("make", "degree"),
    [
        (lambda xy: squares(xy, 0.5, 4, None), 4),
        (lambda xy: squares(xy, 0.5, 8, None), 8),
        (lambda xy: hexagons(xy, 0.5, None), 6),
    ],
)
def test_neighbours_of_a_lattice_are_its_nearest_and_come_in_pairs(make, degree):
    places = make(generator(4).uniform(0, 5, size=(50, 2)))
    assert (places.near != places.near.T).nnz == 0
    assert np.diff(places.near.indptr).max() == degree
    begin, end = neighbour_pairs(places)
    distance = np.linalg.norm(end - begin, axis=1)
    assert distance.max() <= 0.5 * (2**0.5 if degree == 8 else 1) + 1e-9
    every = np.linalg.norm(places.centres[:, None] - places.centres[None], axis=2)
    assert (every < distance.max() + 1e-9).sum() == places.near.nnz + len(every)


def test_a_hexagon_holds_the_points_nearest_to_its_middle():
    cells = Hexagons.fit([[0.0, 0.0], [4.0, 3.0]], width=0.7)
    some = generator(5).uniform([0, 0], [4, 3], size=(500, 2))
    nearest = np.linalg.norm(some[:, None] - cells.centres[None], axis=2).argmin(axis=1)
    assert_array_equal(cells.transform(some), nearest)
    assert_array_equal(cells.transform(cells.centres), np.arange(cells.n_states))


@pytest.mark.parametrize("width", [0.0, -1.0, np.nan])
def test_hexagons_without_a_width_are_refused(width):
    with pytest.raises(InputError, match="Hexagons: width="):
        Hexagons(width, (0, 0), (2, 2))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", ["grid", "hexagons"])
def test_units_do_not_change_the_states(read, scale, kind):
    xy = generator(6).uniform(0, 6, size=(30, 2)).round(3)

    def walk(s):
        rows = [f"1,{t},{s * x!r},{s * y!r}" for t, (x, y) in enumerate(xy.tolist())]
        return read("\n".join(["id,t,x,y", *rows]) + "\n", **{"grid": None, kind: s})

    here, there = walk(1.0), walk(scale)
    assert_array_equal(here.problem.trajectories.states, there.problem.trajectories.states)
    assert_allclose(scale * here.problem.xy, there.problem.xy)


@pytest.mark.parametrize("kind", ["squares", "eight", "hexagons", "clusters", "points"])
def test_a_way_leads_from_neighbour_to_neighbour(kind):
    random = generator(7)
    xy = random.uniform(0, 8, size=(400, 2))
    places = {
        "squares": lambda: squares(xy, 1.0, 4, None),
        "eight": lambda: squares(xy, 1.0, 8, None),
        "hexagons": lambda: hexagons(xy, 1.0, None),
        "clusters": lambda: clusters(xy, 30, 0),
        "points": lambda: points(xy, xy[:40], [str(i) for i in range(40)], "points.csv"),
    }[kind]()
    n = places.near.shape[0]
    source, target = random.integers(n, size=(2, 60))
    ways = PathFinder(places)
    steps = shortest_path(places.near, unweighted=True)
    for a, b, way in zip(source, target, ways.between(source, target), strict=True):
        whole = np.array([a, *way, b]) if a != b else np.array([a, *way])
        assert ways.are_neighbours(whole[:-1], whole[1:]).all()
        if kind == "squares":
            assert len(whole) - 1 == steps[a, b]


def test_what_cannot_be_reached_ends_a_trip():
    places = points(np.eye(2), np.array([[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]]), ["a", "b", "c"], "points.csv")
    places = replace(places, near=sp.csr_array((3, 3), dtype=bool))
    assert PathFinder(places).between(np.array([0]), np.array([2])) == [None]


def test_named_places_move_as_was_seen(read):
    text = "user,time,page\n1,0,home\n1,1,shop\n1,2,shop\n1,3,pay\n2,0,home\n2,1,help\n"
    record = read(text, place="page", coordinates=False, indicator=True)
    problem = record.problem
    assert problem.mdp.state_names == ("home", "shop", "pay", "help")
    assert [one.states.tolist() for one in problem.trajectories] == [[0, 1, 2], [0, 3]]
    assert (
        record.said["moves"]
        == "5, those that were seen, and one to itself of each of 2 places that no trajectory leaves"
    )
    assert_allclose(problem.mdp.features, np.eye(4))
    ended = read(text, place="page", coordinates=False, indicator=True, terminal=["pay"], discount=1.0)
    assert [one.states.tolist() for one in ended.problem.trajectories] == [[0, 1, 2]]
    assert ended.numbers["trips"]["dropped"]["cut before a terminal place"] == 1


def test_given_points_are_places_with_names_and_features(read, tmp_path):
    table = tmp_path / "rooms.csv"
    table.write_text("name;x;y;f_light\nhall;0;0;1,5\nден;4;0;0\nattic;8;0;2\n", encoding="utf-8")
    text = "id,t,x,y\n1,0,0.4,0\n1,1,1.0,0.5\n1,2,7,0\n"
    record = read(text, grid=None, points=str(table), coordinates=False)
    problem = record.problem
    assert [problem.mdp.state_names[s] for s in problem.trajectories[0].states] == ["hall", "ден", "attic"]
    assert problem.mdp.feature_names == ("f_light",)
    assert_allclose(np.asarray(problem.mdp.features)[:, 0], [1.5, 0, 2])
    with pytest.raises(InputError, match=r"place 'cellar' is not among the points of rooms.csv: add it there"):
        read("id,t,room\n1,0,hall\n1,1,cellar\n", place="room", points=str(table))


def test_positions_that_fit_given_points_only_with_x_and_y_exchanged_are_refused(read, tmp_path):
    table = tmp_path / "rooms.csv"
    table.write_text("name,x,y,f_a\na,1,100,1\nb,2,101,0\nc,3,100,1\n")
    text = "id,t,x,y\n1,0,100,1\n1,1,101,2\n1,2,100,3\n"
    with pytest.raises(InputError, match="with x and y exchanged: exchange `x` and `y`"):
        read(text, grid=None, points=str(table))
    assert len(middles(read(text, grid=None, points=str(table), x="y", y="x"))["1"]) == 3


def test_goals_are_the_last_places_of_trips_that_do_not_leave_them(read):
    text = WALK + "c,0,0.5,0.5\nc,1,1.5,0.5\nc,2,0.5,0.5\nd,0,0.5,0.5\nd,1,1.5,0.5\nd,2,1.5,0.5\n"
    record = read(text, goals=True, discount=1.0, step=1.0)
    problem = record.problem
    assert problem.facts["trajectory_id"].tolist() == ["a", "b", "d"]
    assert_array_equal(problem.trajectories.goals, [one.states[-1] for one in problem.trajectories])
    assert problem.trajectories.lengths.tolist() == [4, 3, 2]
    assert record.numbers["trips"]["dropped"]["through their goal before the end"] == 1


def test_dropping_trips_counts_the_rows_of_those_that_stay():
    some = Points(np.array([0, 0, 1, 2, 2, 2]), np.arange(6), None, np.zeros(6, dtype=np.int64))
    made = make_cell_sequences(some, np.array([0, 1, 2, 0, 1, 1]), stay=False)
    kept, dropped, rows = drop(made, 6, 2)
    assert kept.trajectory.tolist() == [0, 0, 1, 1]
    assert dropped == {"of fewer than 2 states": 1}
    assert rows == 5


# ------------------------------------------------------------ noise


@pytest.mark.parametrize("stay", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_decoding_finds_the_best_of_all_ways(stay, seed):
    random = generator(100 + seed)
    places = squares(np.array([[0.0, 0.0], [3.0, 3.0]]), 1.0, 4, np.array([[0, 0], [3, 3]]))
    xy, noise = random.uniform(0, 3, size=(5, 2)), (0.15, 0.6)[seed % 2]  # jumps, or none
    near = places.near.toarray() | (np.eye(9, dtype=bool) & stay)
    fits = -(np.linalg.norm(xy[:, None] - places.centres[None], axis=2) ** 2) / (2 * noise**2)

    costs = np.where(near, np.log(near.sum(axis=1))[:, None], JUMP)

    def values(ways):
        return fits[np.arange(5), ways].sum(axis=1) - costs[ways[:, :-1], ways[:, 1:]].sum(axis=1)

    best = values(np.indices((9,) * 5).reshape(5, -1).T).max()
    found = match_to_cells(Points(np.zeros(5, dtype=int), np.arange(5), xy, None), places, noise, stay=stay)
    assert values(found[None])[0] == pytest.approx(best)


def test_decoding_many_trips_is_decoding_each_of_them():
    random = generator(8)
    places = squares(np.array([[0.0, 0.0], [6.0, 6.0]]), 1.0, 4, np.array([[0, 0], [6, 6]]))
    trip = np.repeat(np.arange(5), [7, 1, 12, 3, 7])
    row = np.arange(trip.size)
    row[[3, 12, 13]] = -1  # not recorded
    some = Points(trip, row, random.uniform(0, 6, size=(trip.size, 2)), None)
    together = match_to_cells(some, places, 0.5, stay=True)
    for i in range(5):
        own = trip == i
        alone = Points(np.zeros(own.sum(), dtype=int), row[own], some.xy[own], None)
        assert_array_equal(match_to_cells(alone, places, 0.5, stay=True), together[own])


def test_noise_that_is_told_is_taken_out(read):
    way = [(0.5, 0.5), (1.5, 0.5), (2.5, 0.5), (3.5, 0.5), (3.5, 1.5), (3.5, 2.5)]
    seen = [(0.5, 0.5), (1.4, 1.1), (2.5, 0.3), (3.2, 0.4), (4.1, 1.5), (3.5, 2.6)]
    text = "id,t,x,y\n" + "".join(f"1,{t},{x},{y}\n" for t, (x, y) in enumerate(seen))
    told = read(text, step=1.0, noise=0.3, area=(0, 0, 5, 3))
    assert middles(told)["1"] == [list(at) for at in way]
    assert middles(read(text, step=1.0, area=(0, 0, 5, 3)))["1"] != [list(at) for at in way]


# ------------------------------------------------------------ features and facts


def test_features_are_means_counts_distances_and_turning(read, tmp_path):
    text = "id,t,x,y,heat,crop\n1,0,0.5,0.5,1,rye\n1,1,1.5,0.5,2,rye\n1,2,1.4,0.6,4,oat\n1,3,1.5,1.5,,rye\n"
    (tmp_path / "wells.csv").write_text("x,y\n0.5,3.5\n1.5,2.5\n")
    record = read(
        text,
        coordinates=False,
        mean=["heat"],
        count=["crop=rye"],
        distance=["3.5,0.5", "gate=0.5,0.5", str(tmp_path / "wells.csv")],
        turning=True,
    )
    mdp = record.problem.mdp
    order = np.lexsort(record.problem.xy.T)
    made = dict(zip(mdp.feature_names, np.asarray(mdp.features)[order].T, strict=True))
    assert_allclose(made["f_heat"], [1, 3, 2])  # the last square has none: the mean of 1 and 3
    assert "heat: 1 of 3 cells have no value and get the mean of the other cells" in record.said["features"]
    assert_allclose(made["f_crop=rye"], [1, 1, 1])
    assert_allclose(made["f_distance_3.5,0.5"], [3, 2, 5**0.5])
    assert_allclose(made["f_distance_gate"], [0, 1, 2**0.5])
    assert_allclose(made["f_distance_wells"], [5**0.5, 2, 1])
    back = np.pi - np.arctan2(0.1, 0.1), np.arctan2(0.1, -0.1) - np.arctan2(0.9, 0.1)
    assert_allclose(made["f_turning"][1], np.mean(np.abs(back)))


def test_columns_that_do_not_change_within_trips_are_facts_of_them(read):
    head, *rows = WALK.splitlines()
    extra = [f"{row},{'fox' if row[0] == 'a' else 'hare'},{k},7" for k, row in enumerate(rows)]
    record = read("\n".join([f"{head},species,speed,goal", *extra]))
    meta = record.problem.meta
    assert meta["id"].tolist() == ["a", "b"]
    assert meta["species"].tolist() == ["fox", "hare"]
    assert meta["goal_given"].tolist() == [7, 7]
    assert "left out, since they change within trajectories: speed" in record.said["trajectory_meta"]


def test_the_mapping_gives_later_positions_the_same_states(read):
    from messirl.io.recordings.discretise import from_dict

    for how in ({"grid": 1.0}, {"hexagons": 1.0, "grid": None}, {"kmeans": 3, "grid": None}):
        record = read(WALK, **how)
        kept = dict(record.mapping)
        states = kept.pop("place_of_state")
        again = from_dict(kept).transform(record.tracks[1])
        assert record.problem.trajectories[1].states[[0, -1]].tolist() == [states.index(s) for s in again[[0, -1]]]


# ------------------------------------------------------------ positions astray


@pytest.mark.parametrize("how", ["grid", "hexagons", "kmeans", "points"])
@pytest.mark.parametrize("stray", [(6.7e6, 3.0), (-6.7e6, 3.0), (3.0, 1e5)])
def test_a_position_far_away_from_all_others_is_refused_whatever_the_places(read, tmp_path, how, stray):
    rng = generator(0)
    walk = np.cumsum(rng.normal(size=(120, 2)), axis=0)
    (tmp_path / "spots.csv").write_text("name,x,y\na,0,0\nb,5,5\nc,-5,5\n", encoding="utf-8")
    rule = {"grid": 2.0, "hexagons": 2.0, "kmeans": 5, "points": str(tmp_path / "spots.csv")}[how]

    def table(rows):
        return "id,t,x,y\n" + "".join(f"w,{t},{x},{y}\n" for t, (x, y) in enumerate(rows))

    asked = {"grid": None} | {how: rule}
    assert len(read(table(walk), **asked).problem.trajectories)
    walk[60] = stray
    with pytest.raises(InputError, match=rf"`{how}`.*1 position lies .* away from all others in [xy].*`area`"):
        read(table(walk), **asked)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"area": "0,0,1,1"}, r"`area`.*is '0,0,1,1'.*give a list of numbers"),
        ({"mean": "food"}, r"`mean`.*is 'food'.*give a list of texts"),
        ({"grid": "100"}, r"`grid`.*is '100'.*give a number"),
        ({"grid": -1.0}, r"`grid`.*is -1.*give a number above 0"),
        ({"grid": float("nan")}, r"`grid`.*is nan.*give a number"),
        ({"pause": "1h"}, r"`pause`.*is '1h'.*give a number"),
        ({"kmeans": 2.5, "grid": None}, r"`kmeans`.*is 2.5.*give a whole number"),
        ({"goals": "yes"}, r"`goals`.*is 'yes'.*give True or False"),
        ({"id": 3}, r"`id`.*is 3.*give a text"),
        ({"discount": "0.9"}, r"`discount`.*is '0.9'.*give a number"),
    ],
)
def test_settings_of_another_kind_are_refused_by_name(read, settings, message):
    with pytest.raises(InputError, match=message):
        read(WALK, **settings)


def test_what_is_no_path_is_refused():
    with pytest.raises(InputError, match=r"source.*is a ndarray, not the path of a table"):
        import_recordings(np.zeros(3), ImportSettings(discount=0.9, grid=1.0, coordinates=True))
