"""The lineage page as a reader meets it: in Chromium, from a file, with the mouse and with the keyboard alone."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from . import pages
from .conftest import Page

SQL = "select * from `lake`.`main`.`stg_orders` version as of 4"
MACRO = "select * from {{ ducklake_at(ref('stg_orders'), version=4) }}"

# Text and its ground, of all that is in sight and not disabled: the pairs with less contrast than WCAG AA asks for.
TOO_FAINT = """
const numbers = (colour) => { const n = colour.match(/[\\d.]+/g).map(Number); return n.length < 4 ? [...n, 1] : n; };
const light = (colour) => numbers(colour).slice(0, 3).map((n) => n / 255)
  .map((n) => (n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4))
  .reduce((sum, n, at) => sum + n * [0.2126, 0.7152, 0.0722][at], 0);
const ground = (e) => { const box = e.closest(".node")?.querySelector(".box");
  if (box) return getComputedStyle(box).fill;
  while (numbers(getComputedStyle(e).backgroundColor)[3] < 1) e = e.parentElement;
  return getComputedStyle(e).backgroundColor; };
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const e = node.parentElement, style = getComputedStyle(e);
  if (!node.data.trim() || !e.getClientRects().length || e.closest(":disabled, label:has(:disabled), .unseen, title"))
    continue;
  const [a, b] = [light(e.ownerSVGElement ? style.fill : style.color), light(ground(e))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < 4.5) found.push(`${node.data.trim().slice(0, 40)}: ${contrast.toFixed(2)}`);
}
return found;
"""

# What sticks out of the window, without what is cut off or scrolled on purpose.
STICKS_OUT = """
const parts = "header *, nav *, .head *, .option, .facts *, .strip, .graph, .columns *, #notice";
const out = (e) => { const r = e.getBoundingClientRect(); return r.right > innerWidth + 0.5 || r.left < -0.5
  || (e.localName === "button" && e.scrollWidth > e.clientWidth + 1); };
return [...document.querySelectorAll(parts)]
  .filter((e) => !e.closest(".cut, .name, option") && e.getClientRects().length && out(e))
  .map((e) => `${e.localName}.${e.getAttribute("class")}: ${e.textContent.slice(0, 30)}`)
  .concat(document.documentElement.scrollWidth > innerWidth ? ["the page is wider than the window"] : []);
"""


def nodes(page: Page) -> set[str]:
    """What the graph says: `stg_orders @4, superseded`."""
    return {node.get_attribute("aria-label").removeprefix("lake.main.") for node in page.shown(".node")}


class TestVersions:
    def test_a_model_shows_its_versions_newest_first(self, page: Page) -> None:
        page.open(pages.shop())
        page.click("#model-list .option", "stg_orders")
        assert page.text("#version-count") == "2 versions"
        assert page.texts("#version-list .option") == [
            "● @11 2026-11-18 09:50 current",
            "○ @4 2026-11-18 08:40 superseded",
        ]
        assert page.text(".title strong") == "lake.main.stg_orders"
        assert "● @11 current" in page.text(".title")
        assert page.texts(".facts dl div") == [
            "time 2026-11-18 09:50:00 UTC",
            "author ci",
            "message dbt run: stg_orders (table)",
            "written by model.shop.stg_orders",
            "rows +10",
            "invocation 7e1a3c52-8d0f-4f2b-9c55-0a8f3a1b2c3d",
        ]

    def test_a_version_shows_what_it_was_built_from_and_what_was_built_from_it(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.stg_orders")
        page.click("#version-list .option", "@4")
        assert nodes(page) == {
            "raw_orders @1, superseded",
            "stg_orders @4, superseded",
            "customers @7, stale",
            "old_report @6, gone",
            "recent @9, current",
            "revenue @8, superseded",
            "revenue @12, current",
        }
        assert page.find(".node.centre").get_attribute("aria-label") == "lake.main.stg_orders @4, superseded"

    def test_upstream_goes_several_levels_and_less_when_asked(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.revenue")
        assert {"raw_orders @10, current", "stg_orders @11, current", "revenue @8, superseded"} <= nodes(page)
        page.click("#depth")
        page.keys("1", Keys.ENTER)
        assert nodes(page) == {
            "revenue @12, current",
            "revenue @8, superseded",
            "stg_orders @11, current",
            "stg_payments @5, current",
        }

    def test_every_edge_goes_from_left_to_right(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.revenue&depth=9")
        ends = page.js(
            "return [...document.querySelectorAll('#version .edge')]"
            ".map((e) => [0, e.getTotalLength()].map((at) => e.getPointAtLength(at).x))"
        )
        assert len(ends) == 8
        assert all(start < end for start, end in ends)

    def test_what_passes_the_version_by_is_not_drawn(self, page: Page) -> None:
        lake = pages.Lineage()
        for name in ("source", "middle", "end"):
            lake.relation(name)
        lake.snapshot("source")
        lake.snapshot("middle", inputs={"source": 1})
        lake.snapshot("end", inputs={"source": 1, "middle": 2})
        edges = "return document.querySelectorAll('#version .edge').length"
        page.open(lake.data(), "#model=lake.main.middle")
        assert page.js(edges) == 2
        page.click(".node", "end")
        assert page.js(edges) == 3

    def test_a_node_of_the_graph_can_be_chosen(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.stg_orders&version=4")
        page.click(".node", "customers")
        assert page.text(".title strong") == "lake.main.customers"
        assert page.texts("#model-list .option[aria-selected=true] .name") == ["customers"]
        assert page.texts("#log-list .option[aria-selected=true] .id") == ["#7"]
        page.browser.back()
        page.until("document.querySelector('.title strong').textContent", "lake.main.stg_orders")

    def test_a_snapshot_leads_to_what_it_wrote(self, page: Page) -> None:
        page.open(pages.shop(), "#tab=lineage")
        page.click("#log-list .option", "#8")
        assert "lake.main.revenue ○ @8 superseded" in page.text(".title")

    def test_a_snapshot_that_changed_several_names_the_others(self, page: Page) -> None:
        lake = pages.Lineage()
        lake.relation("a")
        lake.relation("b")
        lake.snapshot("a", "b")
        page.open(lake.data(), "#model=lake.main.a")
        page.find(".facts .link", "b").send_keys(Keys.ENTER)
        assert page.text(".title strong") == "lake.main.b"
        assert "centre" in page.focused()

    def test_many_readers_are_left_out_until_they_are_asked_for(self, page: Page) -> None:
        lake = pages.Lineage()
        lake.relation("source", "source")
        lake.snapshot("source")
        for n in range(20):
            lake.relation(f"reader_{n}")
            lake.snapshot(f"reader_{n}", inputs={"source": 1})
        page.open(lake.data(), "#model=lake.main.source")
        assert len(nodes(page)) == 1 + 8 + 1
        page.click(".node", "12 more")
        assert len(nodes(page)) == 21

    def test_an_input_whose_snapshot_is_not_in_the_page_is_still_there(self, page: Page) -> None:
        lake = pages.Lineage()
        lake.relation("source", "source")
        lake.relation("orders")
        lake.snapshot("source")
        lake.snapshot("orders", inputs={"source": 1})
        lake.snapshot("source")
        page.open({**lake.data(), "snapshots": lake.snapshots[1:]}, "#model=lake.main.orders")
        assert nodes(page) == {"orders @2, stale", "source @1, older"}
        page.click(".node", "source")
        assert "Its snapshot is expired, or older than those in this page" in page.text(".facts")

    def test_dbt_docs_are_a_link_away(self, page: Page) -> None:
        for name, link in {
            "stg_orders": "model/model.shop.stg_orders",
            "raw_orders": "source/source.shop.shop.raw_orders",
            "countries": "seed/seed.shop.countries",
        }.items():
            page.open(pages.shop(), f"#model=lake.main.{name}")
            assert page.find(".title a").get_dom_attribute("href") == f"index.html#!/{link}"
        assert page.find(".facts dl a").get_dom_attribute("href") == "index.html#!/seed/seed.shop.countries"

    def test_a_model_that_is_not_there_is_said_so(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.nothing")
        assert page.text("#hint") == "There is no lake.main.nothing in this page."


class TestStale:
    def test_the_list_names_input_read_version_and_current_version(self, page: Page) -> None:
        page.open(pages.shop(), "#tab=stale")
        assert page.text("#stale-tab") == "Stale models 1"
        assert page.texts("#stale-list .option") == ["customers @7 stg_orders @4 @11 1 version"]
        page.click("#stale-list .option")
        assert page.text(".facts > p") == "▲ stale: built from stg_orders at 4, now at 11"

    def test_the_models_say_it_too(self, page: Page) -> None:
        page.open(pages.shop())
        assert page.texts("#model-list .option") == [
            "● countries @3 current",
            "▲ customers @7 stale",
            "✕ old_report @6 gone",
            "● raw_orders @10 current",
            "● raw_payments @2 current",
            "● recent @9 current",
            "● revenue @12 current",
            "● stg_orders @11 current",
            "● stg_payments @5 current",
        ]

    def test_a_model_that_reads_itself_is_not_stale(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.revenue")
        assert "● @12 current" in page.text(".title")

    def test_a_view_is_never_behind(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.recent")
        assert "● @9 current" in page.text(".title")

    def test_the_health_of_tables_has_what_mends_it(self, page: Page) -> None:
        data = pages.shop()
        facts = {
            "files": 3,
            "bytes": 5 * 2**20,
            "small_files": 0,
            "deleted_share": 0.0,
            "inlined_rows": 0,
            "old_bytes": 0,
        }
        worn = {**facts, "files": 1200, "small_files": 1150, "deleted_share": 0.25, "old_bytes": 3 * 2**30}
        worn |= {"command": "call ducklake_merge_adjacent_files('main.customers')", "saves": "1149 files"}
        health = {"lake.main.customers": worn, "lake.main.revenue": {**facts, "bytes": 7}}
        for relation in data["relations"]:
            relation["health"] = health.get(relation["name"])
        page.open(data, "#tab=health")
        assert page.text("#health-tab") == "Health 1"
        assert page.texts("#health-list .option") == [
            "customers 1,200 5 MiB 1,150 25 % 3 GiB call ducklake_merge_adjacent_files('main.customers')",
            "revenue 3 7 B nothing to do",
        ]
        page.click("#health-list .option")
        assert page.text(".facts > p") == "▲ stale: built from stg_orders at 4, now at 11"

    def test_a_lineage_without_health_says_how_to_get_it(self, page: Page) -> None:
        page.open(pages.shop(), "#tab=health")
        assert page.text("#health-tab") == "Health"
        empty = "return document.querySelector('#health-list').getAttribute('data-empty')"
        assert page.js(empty) == ("This lineage says nothing of files: run dbt docs generate again.")

    def test_nothing_stale_is_said_so(self, page: Page) -> None:
        lake = pages.Lineage()
        lake.relation("orders")
        lake.snapshot("orders")
        page.open(lake.data(), "#tab=stale")
        empty = "return document.querySelector('#stale-list').getAttribute('data-empty')"
        assert page.js(empty) == "Every model was built from the newest version of its inputs."


class TestSearchAndFilters:
    def test_the_log_says_who_wrote_what_and_how_long_after(self, page: Page) -> None:
        page.open(pages.shop(), "#tab=lineage")
        assert page.texts("#log-list .option")[:3] == [
            "#12 2026-11-18 10:00:00 10m ci dbt run: revenue (incremental, merge) revenue model.shop.revenue +900 ~34",
            "#11 2026-11-18 09:50:00 10m ci dbt run: stg_orders (table) stg_orders model.shop.stg_orders +10",
            "#10 2026-11-18 09:40:00 10m loader no message raw_orders not by dbt +900 ~30 −4",
        ]

    def test_they_combine(self, page: Page) -> None:
        page.open(pages.shop(), "#tab=lineage")
        page.click("#search")
        page.keys("orders")
        assert page.models() == ["raw_orders", "stg_orders"]
        assert page.log() == ["#11", "#10", "#4", "#1"]
        assert page.text("#log-count") == "4 of 12"
        page.click("#author")
        page.keys("ci", Keys.ENTER)
        assert page.models() == ["stg_orders"]
        assert page.log() == ["#11"]
        page.click("#clear")
        assert page.text("#log-count") == "12"

    def test_one_model_only(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.revenue")
        page.click("#only")
        assert page.log() == ["#12", "#8"]
        page.click("#model-list .option", "stg_orders")
        assert page.log() == ["#11", "#4"]

    def test_a_time_narrows_snapshots_and_the_models_changed_then(self, page: Page) -> None:
        page.open(pages.shop(), "#from=2026-11-18T09:40&to=2026-11-18T09:50")
        assert page.log() == ["#11", "#10"]
        assert page.models() == ["raw_orders", "stg_orders"]
        page.click("#all-time")
        assert page.text("#log-count") == "12"

    def test_the_time_can_be_typed(self, page: Page) -> None:
        page.open(pages.shop(), "#tab=lineage")
        page.js("document.getElementById('from').focus()")
        page.keys("11182026", Keys.TAB, "0945AM")
        page.until("location.hash", "#from=2026-11-18T09%3A45")
        assert page.log() == ["#12", "#11"]

    def test_the_strip_can_be_brushed_and_clicked(self, page: Page) -> None:
        page.open(pages.shop(), "#tab=lineage")
        strip = page.find("#strip")
        top = -strip.size["height"] // 2
        mouse = ActionChains(page.browser)
        mouse.move_to_element_with_offset(strip, 20, top + 2).click_and_hold().move_by_offset(0, -top).release()
        mouse.perform()
        assert page.log() == ["#12", "#11", "#10", "#9", "#8", "#7"]
        page.keys(Keys.ESCAPE)
        assert page.text("#log-count") == "12"
        mouse = ActionChains(page.browser).move_to_element_with_offset(strip, 20, top + 3).click()
        mouse.perform()
        assert page.log() == ["#12"]

    def test_the_counts_are_said_to_those_who_do_not_see_them(self, page: Page) -> None:
        page.open(pages.shop())
        page.click("#search")
        page.keys("stg")
        page.until("document.querySelector('[role=status]').textContent", "2 models, 3 snapshots")

    def test_nothing_found_is_said_so(self, page: Page) -> None:
        page.open(pages.shop(), "#q=nothing+like+that")
        assert page.models() == page.log() == []
        assert page.js("return document.querySelector('#log-list').dataset.empty") == "No snapshot is like that."

    def test_the_address_brings_everything_back(self, page: Page) -> None:
        page.open(pages.shop())
        page.click("#model-list .option", "stg_orders")
        page.click("#version-list .option", "@4")
        page.click("#author")
        page.keys("me", Keys.ENTER)
        page.click("#search")
        page.keys("dbt")
        page.js("document.getElementById('to').value = '2026-11-18T09:10'")
        page.js("document.getElementById('to').dispatchEvent(new Event('change'))")
        hash = "#q=dbt&author=me&to=2026-11-18T09%3A10&model=lake.main.stg_orders&version=4"
        page.until("location.hash", hash)
        seen = page.log(), page.models(), page.texts(".node"), page.text(".title")
        page.visit(page.browser.current_url)
        assert (page.log(), page.models(), page.texts(".node"), page.text(".title")) == seen
        assert page.log() == ["#7", "#6", "#5", "#4", "#3"]
        assert page.js("return document.getElementById('search').value") == "dbt"

    def test_somebody_without_a_name_can_be_looked_for(self, page: Page) -> None:
        lake = pages.Lineage()
        lake.relation("orders")
        lake.snapshot("orders", author=None, message=None, node_id=None, invocation_id=None, rows=None)
        lake.snapshot("orders")
        page.open(lake.data(), "#author=")
        assert page.texts("#log-list .option") == ["#1 2026-11-18 08:10:00 no author no message orders not by dbt"]
        page.click("#log-list .option")
        assert "No inputs in the lake are known of this version. Nothing was built from it." in page.text(".facts")


class TestCopying:
    def test_sql_and_macro_of_a_version(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.stg_orders&version=4")
        page.js(
            "Object.defineProperty(navigator, 'clipboard', { value: {"
            " writeText: (text) => { window.copied = text; return Promise.resolve(); } } })"
        )
        for button, text in {"SQL": SQL, "macro": MACRO}.items():
            page.click(".copy button", button)
            page.until("window.copied", text)
        page.until("document.querySelector('[role=status]').textContent", "Copied")

    def test_without_a_clipboard_the_text_is_selected(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.stg_orders&version=4")
        page.js("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        for button, text in {"SQL": SQL, "macro": MACRO}.items():
            page.click(".copy button", button)
            page.until("getSelection().toString()", text)
        assert page.texts(".copy button") == ["Selected", "Selected"]

    def test_a_table_that_dbt_does_not_know_has_no_macro(self, page: Page) -> None:
        lake = pages.Lineage()
        lake.relation("by_hand", None)
        lake.snapshot("by_hand", node_id=None)
        page.open(lake.data(), "#model=lake.main.by_hand")
        assert page.texts(".copy code") == ["select * from `lake`.`main`.`by_hand` version as of 1"]


class TestThemes:
    GROUND = "getComputedStyle(document.body).backgroundColor"
    LIGHT, DARK = "rgb(255, 255, 255)", "rgb(20, 24, 30)"

    def test_it_follows_the_system_until_it_is_told_otherwise(self, page: Page) -> None:
        page.open(pages.shop())
        page.until(self.GROUND, self.LIGHT)
        page.prefer(color_scheme="dark")
        page.until(self.GROUND, self.DARK)
        page.click("#theme")
        page.until(self.GROUND, self.LIGHT)
        page.until("localStorage.getItem('lineage-theme')", "light")
        with page.before_each_load("if (location.protocol === 'file:') localStorage['lineage-theme'] = 'light'"):
            page.visit(page.browser.current_url)
            page.until(self.GROUND, self.LIGHT)
        page.click("#theme")
        page.until(self.GROUND, self.DARK)
        page.prefer(color_scheme="light")  # dark was the system's own: it is followed again
        page.until(self.GROUND, self.LIGHT)

    def test_it_can_be_changed_where_nothing_can_be_remembered(self, page: Page) -> None:
        refuse = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no') } })"
        with page.before_each_load(refuse):
            page.open(pages.shop())
            page.click("#theme")
            page.until(self.GROUND, self.DARK)

    @pytest.mark.parametrize("theme", ["light", "dark"])
    def test_all_text_has_enough_contrast(self, page: Page, theme: str) -> None:
        page.prefer(color_scheme=theme, reduced_motion="reduce")
        for hash in ("", "#gone=1&show=groups", "#tab=stale", "#model=lake.main.stg_orders&version=4"):
            page.open(pages.shop(), hash)
            assert page.js(TOO_FAINT) == []
        page.photograph(theme)

    def test_nothing_moves_for_those_who_asked_for_that(self, page: Page) -> None:
        page.open(pages.shop())
        moves = "getComputedStyle(document.querySelector('.option')).transitionDuration"
        assert page.js(f"return {moves}") != "0s"
        page.prefer(reduced_motion="reduce")
        assert page.js(f"return {moves}") == "0s"


class TestKeyboard:
    def test_from_the_search_to_a_node_of_the_graph(self, page: Page) -> None:
        page.open(pages.shop())
        page.keys("/")
        assert page.focused() == "search"
        page.keys("stg", Keys.ARROW_DOWN)
        assert page.focused() == "model-list"
        page.keys(Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ENTER)
        assert page.text(".title strong") == "lake.main.stg_orders"
        for _ in range(30):
            page.keys(Keys.TAB)
            if page.focused() == "version-list":
                break
        page.keys(Keys.END, Keys.ENTER)
        assert "@4 superseded" in page.text(".title")
        for _ in range(10):
            page.keys(Keys.TAB)
            if "node" in page.focused():
                break
        page.keys(Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ENTER)
        assert "lake.main.raw_orders ○ @1" in page.text(".title")
        assert "centre" in page.focused()

    def test_escape_clears_the_search_then_the_filters_then_the_choice(self, page: Page) -> None:
        page.open(pages.shop(), "#q=stg&author=ci&model=lake.main.stg_orders")
        for hash in ("#author=ci&model=lake.main.stg_orders", "#model=lake.main.stg_orders", ""):
            page.keys(Keys.ESCAPE)
            page.until("location.hash", hash)

    def test_tab_meets_everything_once_in_the_order_of_reading_with_a_visible_focus(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.stg_orders&version=4")
        met: list[str] = []
        shown = (
            "const e = document.activeElement, s = getComputedStyle(e), box = e.querySelector('.box');"
            "return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) > 1"
            " || box && getComputedStyle(box).strokeWidth === '2.5px'"
        )
        for _ in range(40):
            page.keys(Keys.TAB)
            if page.focused() == "body" or (met and page.focused() == met[0]):
                break
            assert page.js(shown), page.focused()
            if not met or met[-1] != page.focused():  # a field for a time has several parts
                met.append(page.focused())
        assert met == [
            *["search", "author", "clear", "theme", "model-list", "lineage-tab", "depth"],
            *["only", "from", "to", "log-list", "strip"],
            *["back", "version-list", "a", "button", "node superseded centre lit"],
        ]

    def test_the_arrows_change_between_the_views(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.customers")
        page.js("document.getElementById('lineage-tab').focus()")
        page.keys(Keys.ARROW_RIGHT)
        assert page.focused() == "stale-tab"
        assert page.texts("#stale-list .option .stale") == ["@4"]
        page.keys(Keys.ARROW_RIGHT)
        assert page.focused() == "health-tab"
        page.keys(Keys.ARROW_RIGHT)
        assert page.focused() == "overview-tab"
        assert len(page.shown("#overview .node")) == 8

    def test_the_strip_narrows_to_the_bar_under_the_keyboard(self, page: Page) -> None:
        page.open(pages.shop(), "#tab=lineage")
        page.js("document.getElementById('strip').focus()")
        page.keys(Keys.END, Keys.ENTER)
        assert page.log() == ["#1"]
        assert page.find("#strip").get_attribute("aria-valuetext").endswith("1 snapshot")

    def test_lists_tell_a_screen_reader_where_it_is(self, page: Page) -> None:
        page.open(pages.shop(), "#tab=lineage")
        page.js("document.getElementById('log-list').focus()")
        page.keys(Keys.END)
        active = page.find("#log-list").get_attribute("aria-activedescendant")
        option = page.find(f"#{active}")
        assert "#1" in option.text
        assert (option.get_attribute("aria-posinset"), option.get_attribute("aria-setsize")) == ("12", "12")


class TestMuchData:
    def test_ten_thousand_snapshots_are_no_more_of_a_page_than_fifty(self, page: Page) -> None:
        page.open(pages.big(), "#tab=lineage")
        size = "return document.querySelectorAll('*').length"
        assert page.text("#log-count") == "10,000"
        assert page.js(size) < 1000
        page.js("document.getElementById('log-list').focus()")
        page.keys(Keys.END)
        assert page.log()[-1] == "#1"
        page.click("#search")
        page.keys("long_123 (table)")
        assert page.text("#log-count").endswith(" of 10,000")
        assert all("long_123" in text for text in page.texts("#log-list .option"))
        page.keys(Keys.ESCAPE)
        page.click("#stale-tab")
        page.click("#stale-list .option")
        assert page.js("return document.querySelectorAll('.node').length") > 5
        assert page.js(size) < 1200
        assert page.js(STICKS_OUT) == []
        page.photograph("ten-thousand")
        load = page.js("return performance.getEntriesByType('navigation')[0].loadEventEnd")
        paint = page.js("return performance.getEntriesByName('first-contentful-paint')[0].startTime")
        print(f"10,000 snapshots: first paint after {paint:.0f} ms, loaded after {load:.0f} ms")

    def test_one_source_with_thousands_of_readers(self, page: Page) -> None:
        lake = pages.Lineage()
        lake.relation("source", "source")
        lake.relation("often")
        lake.snapshot("source")
        for _ in range(5000):
            lake.snapshot("often", inputs={"source": 1})
        page.open(lake.data(), "#model=lake.main.source")
        assert len(nodes(page)) == 1 + 8 + 1
        assert "often @5001, current" in nodes(page)

    def test_a_model_that_read_itself_for_years(self, page: Page) -> None:
        lake = pages.Lineage()
        lake.relation("days")
        for n in range(2000):
            lake.snapshot("days", inputs={"days": n} if n else {})
        page.open(lake.data(), "#model=lake.main.days&depth=9")
        assert len(nodes(page)) == 10


class TestHostileText:
    NAME = "<img src=x onerror=hacked()>"
    MESSAGE = "</script><script>window.hacked = 1</script> \"'`&amp; {{ \u202eright to left 🦆 العربية"

    def test_it_is_shown_as_text(self, page: Page) -> None:
        lake = pages.Lineage()
        lake.relation(self.NAME, macro="ref('</code>')", node_id='model.shop."><script>hacked()</script>')
        lake.relation("__proto__")
        lake.relation("🦆 طاولة")
        lake.snapshot(self.NAME, author="<b>me</b>", message=self.MESSAGE, node_id="model.shop.x' onclick='hacked()")
        lake.snapshot("__proto__", inputs={self.NAME: 1, "constructor": 1}, author="__proto__")
        lake.snapshot("🦆 طاولة", inputs={"__proto__": 2}, message="\u202e\u2066" * 50 + "end")
        path = page.open({**lake.data(), "project": "</title><script>hacked()</script>"}, "#tab=lineage")
        assert sorted(page.models()) == sorted(["constructor", self.NAME, "__proto__", "🦆 طاولة"])
        assert page.texts("#log-list .message")[2] == self.MESSAGE
        assert page.texts("#log-list .author bdi")[2] == "<b>me</b>"
        page.click("#model-list .option", "<img")
        assert page.text(".title strong") == f"lake.main.{self.NAME}"
        assert page.texts(".copy code")[1] == "select * from {{ ducklake_at(ref('</code>'), version=1) }}"
        link = page.find(".title a").get_dom_attribute("href")
        assert link == "index.html#!/model/model.shop.%22%3E%3Cscript%3Ehacked()%3C%2Fscript%3E"
        assert nodes(page) == {f"{self.NAME} @1, current", "__proto__ @2, current", "🦆 طاولة @3, current"}
        page.visit(path.as_uri() + "#gone=1")
        assert sorted(page.texts("#canvas .label")) == sorted(["constructor", self.NAME, "__proto__", "🦆 طاولة"])
        page.hover("#canvas .node", "<img")
        assert page.text("#tip strong") == f"lake.main.{self.NAME}"
        page.visit(path.as_uri() + "#model=%3Cimg%20src=x%20onerror=hacked()%3E&q=%22%3E%3Cb%3E")
        assert page.text("#hint") == f"There is no {self.NAME} in this page."
        assert page.js("return window.hacked === undefined && !document.querySelector('img, b')")
        assert page.js("return document.scripts.length") == 3

    @pytest.mark.parametrize("width", [1280, 1000, 400])
    def test_long_names_and_messages_break_nothing(self, page: Page, width: int) -> None:
        long = "a_name_that_somebody_found_short_enough_" * 6
        lake = pages.Lineage()
        lake.relation(long)
        lake.relation("b" + long)
        lake.snapshot(long, author="somebody with " + long, message="why " * 400, rows={"inserted": 10**15})
        lake.snapshot("b" + long, inputs={long: 1}, message="x" * 3000, node_id=f"model.shop.{long}")
        lake.snapshot(long)
        page.resize(width)
        for hash in ("", f"#model=lake.main.{long}&version=1", f"#model=lake.main.b{long}", "#tab=stale"):
            page.open({**lake.data(), "project": long}, hash)
            assert page.js(STICKS_OUT) == []
            for pane in page.browser.find_elements("css selector", "nav button"):
                if pane.is_displayed():
                    pane.click()
                    assert page.js(STICKS_OUT) == []


class TestNarrowWindow:
    def test_one_pane_at_a_time(self, page: Page) -> None:
        page.resize(400)
        page.open(pages.shop())
        assert len(page.shown("#overview .node")) == 8
        assert page.js(STICKS_OUT) == []
        page.photograph("narrow-overview")
        page.click("nav button", "Models")
        assert len(page.models()) == 9
        assert page.log() == page.shown("#overview .node") == []
        page.click("#model-list .option", "customers")
        assert page.models() == []
        assert "▲ @7 stale" in page.text(".title")
        assert page.js(STICKS_OUT) == []
        assert page.focused() == "version-list"
        page.photograph("narrow")
        page.click("nav button", "Snapshots")
        page.until("document.querySelector('#log-list [aria-selected=true] .id')?.textContent", "#7")
        assert page.js(STICKS_OUT) == []
        page.photograph("narrow-snapshots")
        page.click("nav button", "Lineage")
        page.click("#stale-tab")
        assert page.texts("#stale-list .option") == ["customers @7 stg_orders @4 @11"]
        assert page.js(STICKS_OUT) == []
        page.click("nav button", "Overview")
        assert len(page.shown("#overview .node")) == 8


class TestOtherLineages:
    @pytest.mark.parametrize("snapshots", [0, 1])
    def test_an_empty_lake_says_what_to_do(self, page: Page, snapshots: int) -> None:
        lake = pages.Lineage()
        for _ in range(snapshots):
            lake.snapshot(node_id=None, message=None)  # the one that made the schema
        page.open(lake.data())
        said = "The lake is empty: it has no tables yet. Run dbt build, and then dbt docs generate again."
        assert page.text("#notice") == said

    def test_a_newer_format_says_so(self, page: Page) -> None:
        page.open({**pages.shop(), "format": 2})
        assert page.text("#notice").startswith("This page reads format 1 of the lineage, and this is format 2.")
        assert page.models() == []

    def test_a_page_without_lineage_says_who_writes_it(self, page: Page) -> None:
        page.open(None)
        assert page.text("#notice").startswith("There is no lineage in this page: dbt docs generate writes")

    def test_several_lakes_are_told_apart(self, page: Page) -> None:
        raw, mart = pages.Lineage("raw"), pages.Lineage("mart")
        raw.relation("orders", "source")
        raw.snapshot("orders")
        mart.relation("orders")
        mart.snapshot("orders", inputs={})
        mart.snapshots[0]["inputs"] = [{"relation": "raw.main.orders", "snapshot": 1}]
        raw.snapshot("orders")
        both = {name: getattr(raw, name) + getattr(mart, name) for name in ("relations", "snapshots")}
        page.open({**mart.data(), **both}, "#tab=lineage")
        assert page.models() == ["mart.main.orders", "raw.main.orders"]
        assert page.log() == ["raw #2", "raw #1", "mart #1"]
        page.click("#stale-tab")
        assert page.texts("#stale-list .option") == ["mart.main.orders @1 raw.main.orders @1 @2 1 version"]

    def test_a_snapshot_that_changed_nothing_we_know_is_in_the_log(self, page: Page) -> None:
        lake = pages.Lineage()
        lake.relation("orders")
        lake.snapshot("orders")
        lake.snapshot(node_id=None, message="create schema other")
        page.open(lake.data(), "#tab=lineage")
        page.click("#log-list .option", "create schema other")
        assert page.text("[role=status]") == "This snapshot changed no table or view"


class TestNoRequest:
    def test_nothing_but_the_file_is_asked_for(self, page: Page) -> None:
        page.requests()
        path = page.open(pages.shop())
        page.click("#model-list .option", "stg_orders")
        page.click("#theme")
        page.click(".copy button")
        page.click("#stale-tab")
        assert [url for url in page.requests() if not url.startswith(("data:", "about:"))] == [path.as_uri()]

    def test_the_browser_would_refuse_any(self, page: Page) -> None:
        page.open(pages.shop())
        refused = "fetch('http://127.0.0.1:9/').then(() => 'asked', () => 'failed').then(arguments[0])"
        script = "let why = ''; addEventListener('securitypolicyviolation', (e) => why = e.effectiveDirective);"
        page.browser.execute_async_script(script + "window.why = () => why;" + refused)
        page.until("window.why()", "connect-src")
        page.browser.get_log("browser")  # which says so too
