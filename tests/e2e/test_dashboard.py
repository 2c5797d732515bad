"""The pages of the dashboard in a real browser, over tables that change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support import browser
from tests.support.browser import NavigatedError
from tests.support.charted import Charted, invalid, late_sale, sale
from tests.support.dashboard_page import DashboardPage, logged_in
from tests.support.rounds import in_full

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not browser.is_there, reason="needs the package chromium"),
]
HOSTILE = '<img src=x onerror="document.title=1"><script>document.title = 1</script>\u202e'
BOARD = """
dashboard: money
title: Money
charts:
  line:
    kind: line
    sql: SELECT window_start, channel, revenue FROM gold.sales ORDER BY 1
    series: channel
    y: [revenue]
  sum: {kind: number, sql: SELECT sum(orders) AS n FROM gold.sales, unit: pieces}
  bars: {kind: bar, sql: "SELECT channel, sum(orders) AS n FROM gold.sales GROUP BY 1 ORDER BY 2"}
  rows: {kind: table, sql: FROM gold.sales}
"""
ROWS = "document.querySelector('.pages').innerText"
REDRAWS = """(async () => {
  const { h, redraw } = await import('/static/dom.js');
  const { grid } = await import('/static/grid.js');
  const place = document.body.appendChild(h('div'));
  const two = (n) => [h('a', { href: `#${n}` }, '-'), h('button', { 'aria-label': n }, '×')];
  const focused = (names, focus) => {
    place.children[focus]?.focus();
    redraw(place, names, () => names.flatMap(two));
    return [...place.children].indexOf(document.activeElement);
  };
  focused(['a', 'b']);
  const places = [focused(['c', 'a', 'b'], 3), focused(['d', 'a', 'b'], 4), focused(['c'], 4)];
  const { element, show } = grid({ names: ['key'] });
  const rows = { columns: ['key', 'text', 'n'], numbers: [], reachable: 2, page: 0, size: 9 };
  const draw = (n) => show({ ...rows, cells: ['a', 'b'].map((key) => [key, 'x'.repeat(99), n]) });
  draw('1'), (element.querySelectorAll('details')[1].open = true), draw('2');
  return [places, [...element.querySelectorAll('details')].map((each) => each.open)];
})()"""
PAGES = {
    "/": "h2",
    "/gold/shop/sales": ".uplot canvas",
    "/gold/shop/sales?figure=typical": ".uplot canvas",
    "/late/shop/sales": ".uplot canvas",
    "/quarantine/shop": ".uplot canvas",
    "/ledger/shop": "tbody tr",
    "/board/money": ".uplot canvas",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Charted:
    made = Charted(tmp_path_factory.mktemp("shop"))
    made.board(BOARD)
    made.add("bronze/orders", [], read=20)
    made.add("silver/clean", [], silver=18, quarantined=2)
    made.add(
        "quarantine/orders",
        [invalid(each, "unparsable", HOSTILE.encode()) for each in range(40)],
        quarantined=40,
    )
    made.add("late/sales", [late_sale(0, HOSTILE, 90.0)], late=1)
    final = [sale(n, c, n + 3, "40.00") for n in range(30) for c in ("app", "web", HOSTILE)]
    made.sell(open_=[sale(30, "app", 1, "5.00")], final=final, pairs=18, late=1)
    return made


@pytest.fixture(scope="module")
def page(shop: Charted, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardPage]:
    with logged_in(shop, tmp_path_factory.mktemp("browser")) as shown:
        yield shown


def test_a_chart_moves_as_gold_commits(page: DashboardPage, shop: Charted) -> None:
    page.open("/gold/shop/sales")
    page.wait("document.getElementById('live').textContent === 'live'")
    page.run("document.querySelector('figure details').open = true")
    page.wait("document.querySelector('figure tbody tr td.number')?.textContent === '1'")
    page.run("window.before = document.querySelector('.uplot')")
    shop.sell(open_=[sale(30, "app", 77, "5.00")])
    newest = "document.querySelector('figure tbody tr td.number')?.textContent === '77'"
    page.wait(newest)
    assert page.run("before === document.querySelector('.uplot')"), "the chart stays"
    # The rows, too: the figure's own table comes first in the page.
    page.wait("[...document.querySelectorAll('.rows td')].some((td) => td.textContent === '77')")


def test_rows_are_filtered(page: DashboardPage, tmp_path: Path) -> None:
    page.open("/gold/shop/sales")
    page.run(
        """(() => {
          const input = document.querySelector('input[data-key=channel]');
          input.value = 'web';
          input.dispatchEvent(new Event('change'));
        })()"""
    )
    page.wait("location.search === '?key.channel=web'")
    page.wait("document.querySelector('.pages').innerText.includes('of 30')")
    assert set(page.column("channel")) == {"web"}
    assert page.text(".chip") == ["channel = web\n×"]
    page.run("document.querySelector('.chip button').click()")
    page.wait("document.querySelector('.pages').innerText.includes('of 91')")
    page.open("/gold/shop/sales?last=300&by=channel")
    page.wait("document.querySelector('.pages').innerText.includes('of 13')")
    named = "[...document.querySelectorAll('thead button')].find((b) => b.innerText === 'orders')"
    page.run(f"{named}.click()")
    page.wait("document.querySelector('th[aria-sort=descending]')")
    page.is_clean(tmp_path)


def test_a_commit_takes_neither_the_focus_nor_what_is_open(
    page: DashboardPage, shop: Charted
) -> None:
    name, focused = "x" * 100, "document.activeElement.innerText"
    shop.sell(open_=[sale(30, name, 1, "5.00")])
    page.open("/gold/shop/sales")
    page.wait("document.querySelector('tbody details')")
    page.run("document.querySelector('tbody details').open = true")
    page.run("document.querySelector('tbody summary').focus()")
    shop.sell(open_=[sale(31, "app", 76, "5.00"), sale(30, name, 2, "5.00")])
    page.wait("document.querySelector('tbody tr').innerText.includes('76')")
    assert page.text("tbody details[open]") == page.text("tbody details")
    assert page.run(focused).startswith("xxx")
    page.open("/")
    page.wait("document.querySelector('svg.spark')")
    page.run("document.querySelector('.table-card a').focus()")
    before = page.text(".table-card dd")[0]
    shop.sell(open_=[sale(30, "app", 77, "5.00")])
    page.wait(f"document.querySelector('.table-card dd').innerText !== '{before}'")
    assert page.run(focused) == "sales"


def test_filters_stay_where_they_are(page: DashboardPage) -> None:
    """Whoever uses them by keyboard goes on from the one that was used."""
    page.open("/gold/shop/sales?null.channel=1&last=2592000")
    page.run(
        """(() => {
          const [channel, from] = ['[data-key=channel]', '[type=datetime-local]'].map((each) =>
            document.querySelector(`input${each}`));
          channel.value = 'web';
          channel.dispatchEvent(new Event('change'));
          from.focus();
          from.value = '0002-05-04T12:20';
          from.dispatchEvent(new Event('change'));
        })()"""
    )
    assert page.run("location.search") == "?last=2592000&key.channel=web"
    page.run("document.activeElement.value = '2026-05-04T12:20'")
    page.page.press("Enter")
    page.wait("location.search.endsWith('from=2026-05-04T12%3A20Z')")
    page.wait(f"{ROWS}.includes('of 10')")
    assert page.run("document.activeElement.value") == "2026-05-04T12:20"
    page.run("(document.activeElement.blur(), document.querySelector('.chip button').focus())")
    page.run("document.activeElement.click()")
    page.wait(f"{ROWS}.includes('of 31')")
    assert page.text(".chip") == ["from 2026-05-04 12:20Z\n×"]
    assert "from 2026" in page.run("document.activeElement.ariaLabel")


def test_what_is_typed_costs_no_click_and_waits_for_its_end(page: DashboardPage) -> None:
    page.page.resize(1280)
    page.open("/gold/shop/sales?key.channel=web")
    page.run(
        """(() => {
          window.from = document.querySelector('input[type=datetime-local]');
          from.focus();
          from.value = '2026-05-04T12:20';
          document.hasFocus = () => false;
          from.dispatchEvent(new FocusEvent('blur'));  // the window has lost the focus
          delete document.hasFocus;
        })()"""
    )
    assert page.run("location.search") == "?key.channel=web"
    chip = "document.querySelector('.chip button').getBoundingClientRect()"
    page.page.click(*page.run(f"[{chip}.x + 5, {chip}.y + 5]"))
    page.wait("location.search === '?from=2026-05-04T12%3A20Z'")


def test_a_redraw_knows_each_element(page: DashboardPage) -> None:
    """By its address or label, not by its text; a long value by the row that it is in."""
    assert page.run(REDRAWS) == [[5, 4, 1], [False, True]]


def test_figures_are_exact(page: DashboardPage) -> None:
    found = page.run(
        """import('/static/format.js').then(({ exact, number, ticks }) => [
          [123456.78, 1234567.891, 0.1234567, 2 ** 53, 42].map(number),
          ticks([1200000, 1201000], 1000), ticks([0, 0.25], 0.25), ticks([0, 25000], 25000),
          ["25.63700000000000000000", "1234.0000000", "-0.50", "36.2644444444"].map(exact)])"""
    )
    assert found == [
        ["123,456.78", "1,234,567.89", "0.123457", "≈ 9,007,199,254,740,992", "42"],
        *[["1.2M", "1.201M"], ["0", "0.25"], ["0", "25K"]],
        ["25.637", "1,234", "-0.50", "36.2644444444"],
    ]


def test_hostile_values_are_text(page: DashboardPage, tmp_path: Path) -> None:
    for path in ("/gold/shop/sales?by=channel", "/board/money", "/late/shop/sales"):
        page.open(path)
        assert page.run("document.querySelectorAll('main img, main script').length") == 0
        assert page.run("document.title") != "1"
    page.open("/gold/shop/sales")
    assert any(cell.endswith("\\u202e") for cell in page.column("channel"))
    page.is_clean(tmp_path)


def test_a_top_key_is_chosen_whole(page: DashboardPage, tmp_path: Path) -> None:
    """A character without a glyph is shown as its escape, and the key is still chosen unchanged."""
    page.page.resize(390)
    page.open("/gold/shop/sales")
    button = "[...document.querySelectorAll('.bars button')].find((b) => b.title.includes('<img'))"
    page.run(f"{button}.click()")
    page.wait("document.querySelector('.pages').innerText.includes('of 30')")
    assert "u202e" not in page.run("location.search")
    assert "\u202e" not in page.run("document.body.innerText")
    page.is_clean(tmp_path)
    page.open("/gold/shop/sales?figure=orders")
    page.run("document.querySelector('input[data-key=channel]').dispatchEvent(new Event('focus'))")
    page.wait("[...document.querySelectorAll('datalist option')].some((o) => o.value[0] === '<')")
    page.run(
        """(() => {
          const input = document.querySelector('input[data-key=channel]');
          const shown = [...document.querySelectorAll('datalist option')];
          input.value = shown.find((each) => each.value[0] === '<').value;
          input.dispatchEvent(new Event('change'));
        })()"""
    )
    page.wait("document.querySelector('.pages').innerText.includes('of 30')")


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 700),
        ("dark", 1280),
        *[
            pytest.param(scheme, width, marks=[in_full, pytest.mark.long])
            for scheme in ("light", "dark")
            for width in (320, 390, 1024, 1920)
        ],
    ],
)
def test_pages_are_whole(page: DashboardPage, tmp_path: Path, scheme: str, width: int) -> None:
    page.page.prefers(scheme)
    page.page.resize(width)
    for path, shows in PAGES.items():
        page.open(path)
        page.wait(f"document.querySelector({shows!r})")
        # The counts of these tables are invented, so the ledger reports differences.
        assert bool(page.text(".note.bad")) == (path == "/ledger/shop")
        page.is_clean(tmp_path)
        dark = page.run("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 31)"
        assert dark == (scheme == "dark")


def test_the_switch_is_kept(page: DashboardPage) -> None:
    page.page.prefers("light")
    page.open("/")
    page.run("document.getElementById('theme').click()")
    assert page.run("document.documentElement.dataset.theme") == "dark"
    page.open("/gold/shop/sales")
    assert page.run("document.documentElement.dataset.theme") == "dark"
    page.run("document.getElementById('theme').click()")
    page.run("localStorage.clear()")


def test_a_chart_is_read_by_keyboard(page: DashboardPage) -> None:
    page.open("/gold/shop/sales")
    page.run("document.querySelector('.chart').focus()")
    page.page.press("End")
    page.wait("document.querySelector('.hint:not([hidden])')")
    assert "open: the result so far" in page.text(".hint")[0]
    page.page.press("ArrowLeft")
    page.wait("!document.querySelector('.hint').innerText.includes('open')")
    unnamed = page.run(
        """[...document.querySelectorAll('button, input, select, a')].filter((each) =>
          !each.hidden && !each.innerText && !each.labels?.length && !each.ariaLabel
        ).map((each) => each.outerHTML)"""
    )
    assert unnamed == []


def test_without_a_login_nothing_is_shown(page: DashboardPage) -> None:
    with suppress(NavigatedError):
        page.run("document.getElementById('leave').requestSubmit()")
    page.wait("document.getElementById('password')")
    assert "sales" not in page.run("document.body.innerText")
    page.log_in()
