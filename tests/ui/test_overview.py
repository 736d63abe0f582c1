"""The overview of the lineage page: the graph of all current versions, on which the page opens."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.keys import Keys

from . import pages
from .conftest import Page

# Each edge that touches the inside of a box, that of its own ends too, or that does not lead from box to box. Each
# two boxes that overlap. All of it in pixels of the screen, as a reader sees it.
FLAWS = """
const graph = [...document.querySelectorAll(arguments[0])].find((e) => e.getClientRects().length);
const boxes = new Map([...graph.querySelectorAll(".node")].map((node) =>
  [node.dataset.n, node.querySelector(".box").getBoundingClientRect()]));
const inside = ({ x, y }, box) => x > box.left + 1 && x < box.right - 1 && y > box.top + 1 && y < box.bottom - 1;
const name = (n) => graph.querySelector(`[data-n="${n}"]`).getAttribute("aria-label");
const flaws = [], all = [...boxes];
for (const edge of graph.querySelectorAll(".edge")) {
  const { from, to } = edge.dataset, length = edge.getTotalLength();
  const { a: scale, e: left, f: top } = edge.getScreenCTM();
  const at = (l) => { const { x, y } = edge.getPointAtLength(l); return { x: left + scale * x, y: top + scale * y }; };
  for (let l = 0; l <= length; l += 4) {
    const point = at(l), over = all.find(([, box]) => inside(point, box));
    if (over) flaws.push(`${name(from)} -> ${name(to)} behind ${name(over[0])}`);
  }
  const beside = ({ x, y }, { left, right, top, bottom }) => y > top && y < bottom
    && Math.min(Math.abs(x - left), Math.abs(x - right)) < 9;
  if (!beside(at(0), boxes.get(from))) flaws.push(`${name(from)} -> ${name(to)} does not start there`);
  if (!beside(at(length), boxes.get(to))) flaws.push(`${name(from)} -> ${name(to)} does not end there`);
}
all.forEach(([n, a], place) => all.slice(place + 1).forEach(([m, b]) => {
  if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) {
    flaws.push(`${name(n)} on ${name(m)}`);
  }
}));
return flaws;
"""

EDGES = """
const name = (n) => document.querySelector(`#canvas [data-n="${n}"] .label`).textContent;
return [...document.querySelectorAll("#canvas .edge")]
  .map((e) => `${name(e.dataset.from)} ${e.matches(".late") ? "late" : "to"} ${name(e.dataset.to)}`).sort();
"""


def labels(page: Page, css: str = "#canvas .node") -> list[str]:
    return sorted(page.texts(f"{css} .label"))


def columns(page: Page) -> list[list[str]]:
    """The names in each column, from left to right."""
    found: dict[float, list[str]] = {}
    for node in page.shown("#canvas .node"):
        found.setdefault(node.rect["x"], []).append(node.find_element("css selector", ".label").text)
    return [sorted(found[x]) for x in sorted(found)]


class TestOpening:
    def test_the_page_opens_on_the_graph_of_all_that_is_there_now(self, page: Page) -> None:
        page.open(pages.shop())
        assert page.texts("[role=tab][aria-selected=true]") == ["Overview"]
        assert columns(page) == [
            ["countries", "raw_orders", "raw_payments"],
            ["stg_orders", "stg_payments"],
            ["customers", "recent", "revenue"],
        ]
        assert page.js(EDGES) == [
            "countries to customers",
            "raw_orders to stg_orders",
            "raw_payments to stg_payments",
            "stg_orders late customers",
            "stg_orders to recent",
            "stg_orders to revenue",
            "stg_payments to revenue",
        ]
        assert page.text("#overview-count") == "8 relations, 7 edges, 1 stale"

    def test_a_stale_node_is_marked_and_says_which_input_moved_from_where_to_where(self, page: Page) -> None:
        page.open(pages.shop())
        assert labels(page, "#canvas .node.stale") == ["customers"]
        assert page.texts("#canvas .badge + .word") == ["▲ stale"]
        assert "▲ stale" in page.texts(".legend span")
        normal, stale = (
            page.js(
                "return getComputedStyle(arguments[0].querySelector('.box')).fill", page.find("#canvas .node", name)
            )
            for name in ("revenue", "customers")
        )
        assert normal != stale
        reason = "stg_orders was read at @4 and is now at @11"
        page.hover("#canvas .node", "customers")
        assert page.texts("#tip .stale") == [f"▲ {reason}"]
        label = page.find("#canvas .node", "customers").get_attribute("aria-label")
        assert label == f"lake.main.customers @7, model, stale; {reason}"
        page.hover("#overview-count")
        assert page.shown("#tip") == []

    def test_what_is_gone_is_hidden_until_it_is_asked_for(self, page: Page) -> None:
        page.open(pages.shop())
        assert "old_report" not in labels(page)
        page.click("#gone-label")
        assert "old_report" in labels(page)
        assert page.texts("#canvas .node.gone .word") == ["✕ gone"]
        page.until("location.hash", "#gone=1")
        page.visit(page.browser.current_url)
        assert len(labels(page)) == 9

    def test_kinds_are_told_apart(self, page: Page) -> None:
        lake = pages.Lineage()
        for name, kind in {"a": "source", "b": "seed", "c": "model", "d": "snapshot", "e": None}.items():
            lake.relation(name, kind)
            lake.snapshot(name)
        lake.relation("f", type="view")
        page.open(lake.data())
        assert page.texts("#canvas .small") == ["@1 source", "@2 seed", "@3 model", "@4 snapshot", "@5 table", "– view"]
        assert [text for text in page.texts(".legend span") if "relation" not in text] == [
            *["source", "seed", "model", "snapshot", "other table", "view"]
        ]
        colors = page.js("return [...document.querySelectorAll('#canvas .mark')].map((e) => getComputedStyle(e).fill)")
        assert len(set(colors)) == 5
        page.hover("#canvas .node", "@5 table")
        assert "not a node of this project · table · 1,000 rows" in page.text("#tip")

    def test_what_a_view_reads_is_not_drawn_past_the_view(self, page: Page) -> None:
        lake = pages.Lineage()
        for name in ("raw", "model", "later"):
            lake.relation(name)
        lake.relation("view", type="view")
        lake.snapshot("raw")
        lake.snapshot("view", inputs={"raw": 1})
        lake.snapshot("model", inputs={"view": 2, "raw": 1})  # a commit names what its views read too
        page.open(lake.data())
        assert page.js(EDGES) == ["raw to view", "view to model"]
        lake.snapshot("raw")
        page.open(lake.data())
        assert page.js(EDGES) == ["raw late model", "raw to view", "view to model"], "why it is stale is drawn"

    def test_several_lakes_and_schemas_are_on_one_graph(self, page: Page) -> None:
        raw, mart = pages.Lineage("raw"), pages.Lineage("mart")
        raw.relation("in.orders", "source")
        raw.snapshot("in.orders")
        mart.relation("out.orders")
        mart.snapshot("out.orders")
        mart.snapshots[0]["inputs"] = [{"relation": "raw.in.orders", "snapshot": 1}]
        page.open(
            {**mart.data(), **{name: getattr(raw, name) + getattr(mart, name) for name in ("relations", "snapshots")}}
        )
        assert page.texts("#canvas .small") == ["@1 model · mart.out", "@1 source · raw.in"]
        assert page.js(EDGES) == ["orders to orders"]

    def test_a_lake_without_lineage_is_a_grid(self, page: Page) -> None:
        lake = pages.Lineage()
        for n in range(60):
            lake.relation(f"table_{n:02}", None)
            lake.snapshot(f"table_{n:02}", node_id=None)
        page.open(lake.data())
        assert len(columns(page)) > 4
        assert page.js(FLAWS, "#canvas") == []


class TestClickPath:
    def test_from_the_overview_to_a_model_and_back(self, page: Page) -> None:
        page.open(pages.shop())
        page.click("#canvas .node", "customers")
        assert page.text(".title strong") == "lake.main.customers"
        assert page.texts("#version-list .option") == ["▲ @7 2026-11-18 09:10 stale"]
        assert page.shown("#canvas") == []
        page.click("#back")
        assert labels(page, "#canvas .node.chosen") == ["customers"]
        page.until("location.hash", "#model=lake.main.customers&tab=overview")
        page.browser.back()
        page.until("document.querySelector('#lineage-panel').hidden", False)
        page.browser.back()
        page.until("location.hash", "")
        assert labels(page, "#canvas .node.chosen") == []

    @pytest.mark.parametrize(
        ("hash", "tab"),
        [
            ("", "Overview"),
            ("#q=orders", "Overview"),
            ("#model=lake.main.orders", "History"),
            ("#model=lake.main.orders&tab=overview", "Overview"),
            ("#author=ci", "History"),
            ("#from=2026-11-18T09:40", "History"),
            ("#tab=lineage", "History"),
            ("#tab=stale", "Stale models 1"),
            ("#tab=nothing", "Overview"),
        ],
    )
    def test_a_link_opens_what_it_is_about(self, page: Page, hash: str, tab: str) -> None:
        page.open(pages.shop(), hash)
        assert page.texts("[role=tab][aria-selected=true]") == [tab]

    def test_escape_leads_back(self, page: Page) -> None:
        page.open(pages.shop(), "#model=lake.main.customers")
        page.keys(Keys.ESCAPE)
        assert len(labels(page)) == 8


class TestEdges:
    @pytest.mark.parametrize("seed", [None, 0, 1, 2])
    def test_no_edge_is_behind_a_box(self, page: Page, seed: int | None) -> None:
        """The shop, and random graphs of 40 relations."""
        content = pages.shop() if seed is None else pages.dag(seed=seed)
        page.open(content)
        names = {relation["name"] for relation in content["relations"] if not relation["gone"]}
        assert len(page.shown("#canvas .node")) == len(names)
        newest = {name: snapshot for snapshot in content["snapshots"] for name in snapshot["changed"]}
        reads = {
            (name, read["relation"]) for name in names for read in newest[name]["inputs"] if read["relation"] != name
        }
        assert len(page.js(EDGES)) == len(reads)
        assert page.js(FLAWS, "#canvas") == []

    def test_a_project_of_two_hundred(self, page: Page) -> None:
        page.open(pages.project(200))
        assert page.js(FLAWS, "#canvas") == []

    @pytest.mark.parametrize("relation", [10, 20, 38])
    def test_no_edge_of_a_version_is_behind_a_box(self, page: Page, relation: int) -> None:
        lake = pages.dag(edges=120)
        page.open(lake, f"#model={lake['relations'][relation]['name']}&version={relation + 1}&depth=9")
        assert len(page.shown("#version .node")) > 5
        assert page.js(FLAWS, "#version .graph") == []

    def test_two_models_that_read_each_other(self, page: Page) -> None:
        """A project changed: the older model still has the version that was built from the newer one."""
        lake = pages.Lineage()
        for name in ("a", "b", "c"):
            lake.relation(name)
        lake.snapshot("b")
        lake.snapshot("a", inputs={"b": 1})
        lake.snapshot("b", inputs={"a": 2})
        lake.snapshot("c", inputs={"a": 2, "b": 3})
        page.open(lake.data())
        assert page.js(EDGES) == ["a to b", "a to c", "b late a", "b to c"]
        assert page.js(FLAWS, "#canvas") == []

    def test_the_pointer_highlights_what_leads_to_a_box_and_from_it(self, page: Page) -> None:
        page.open(pages.shop())
        page.hover("#canvas .node", "stg_orders")
        assert labels(page, "#canvas .node.lit") == ["customers", "raw_orders", "recent", "revenue", "stg_orders"]
        assert len(page.shown("#canvas .line.lit")) == 4
        page.hover("#canvas .node", "countries")
        assert labels(page, "#canvas .node.lit") == ["countries", "customers"]
        page.hover("#overview-count")
        assert page.shown("#canvas .tracing") == page.shown("#canvas .lit") == []

    def test_the_pointer_on_an_edge_highlights_its_ends(self, page: Page) -> None:
        page.open(pages.shop())
        page.js(
            "document.querySelector('#canvas .edge.late').previousSibling"
            ".dispatchEvent(new PointerEvent('pointerover', { bubbles: true }))"
        )
        assert labels(page, "#canvas .node.lit") == ["customers", "raw_orders", "stg_orders"]


class TestSearch:
    def test_what_does_not_match_is_faint(self, page: Page) -> None:
        page.open(pages.shop())
        page.click("#search")
        page.keys("orders")
        assert labels(page, "#canvas .node:not(.off)") == ["raw_orders", "stg_orders"]
        assert len(page.shown("#canvas .line:not(.off)")) == 1
        page.click("#clear")
        assert page.shown("#canvas .off") == []

    def test_a_match_that_is_out_of_sight_is_scrolled_to(self, page: Page) -> None:
        page.open(pages.project(200))
        script = """
            const [box, ground] = [...arguments].map((e) => e.getBoundingClientRect());
            return box.top >= ground.top && box.bottom <= ground.bottom
              && box.left >= ground.left && box.right <= ground.right;
        """
        match, ground = page.find("#canvas .node", "mart_0199"), page.find("#canvas")
        assert not page.js(script, match, ground)
        page.click("#search")
        page.keys("mart_0199")
        assert page.js(script, match, ground)


class TestKeyboardAndZoom:
    def test_arrows_follow_edges_and_enter_selects(self, page: Page) -> None:
        page.open(pages.shop())
        page.js("document.querySelector('#canvas .node[tabindex=\"0\"]').focus()")
        page.keys(Keys.ARROW_UP, Keys.ARROW_UP, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
        assert page.js("return document.activeElement.querySelector('.label').textContent") == "stg_orders"
        assert len(page.shown("#canvas .node.lit")) == 5, "the focus highlights as the pointer does"
        assert page.text("#tip strong") == "lake.main.stg_orders"
        page.keys(Keys.ARROW_RIGHT, Keys.ENTER)
        assert page.text(".title strong") == "lake.main.recent"
        assert page.focused() == "version-list"

    def test_the_focus_is_in_sight_with_its_tooltip(self, page: Page) -> None:
        page.open(pages.project(200))
        page.js("document.querySelector('#canvas .node[tabindex=\"0\"]').focus()")
        page.keys(*[Keys.ARROW_DOWN] * 25)
        node, ground = (
            page.js("return arguments[0].getBoundingClientRect().toJSON()", e)
            for e in (page.js("return document.activeElement"), page.find("#canvas"))
        )
        assert ground["top"] <= node["top"] <= node["bottom"] <= ground["bottom"]
        assert page.js("return document.getElementById('canvas').scrollTop") > 0
        name = page.js("return document.activeElement.querySelector('.label').textContent")
        assert page.text("#tip strong").endswith(name)

    def test_one_node_is_in_the_order_of_tabs(self, page: Page) -> None:
        page.open(pages.shop())
        page.js("document.getElementById('zoom-fit').focus()")
        page.keys(Keys.TAB)
        assert page.focused().startswith("node")
        assert page.js("return getComputedStyle(document.activeElement.querySelector('.box')).strokeWidth") == "2.5px"
        page.keys(Keys.TAB)
        assert not page.focused().startswith("node")

    def test_zoom_keeps_the_point_under_the_pointer(self, page: Page) -> None:
        page.open(pages.project(200))
        page.click("#zoom-level")
        assert page.text("#zoom-level") == "100 %"
        node = page.find("#canvas .node", "stg_0050")
        middle = "const r = arguments[0].getBoundingClientRect(); return [r.left + r.width / 2, r.top + r.height / 2]"
        page.js("arguments[0].scrollIntoView({ block: 'center', inline: 'center' })", node)
        before = page.js(middle, node)
        page.js(
            "arguments[0].dispatchEvent(new WheelEvent('wheel', { deltaY: -40, ctrlKey: true, clientX: arguments[1],"
            " clientY: arguments[2], bubbles: true, cancelable: true }))",
            *(node, *before),
        )
        assert page.text("#zoom-level") == "122 %"
        assert page.js(middle, node) == pytest.approx(before, abs=2)
        page.click("#zoom-fit")
        graph = page.find("#canvas svg").rect
        ground = page.find("#canvas").rect
        assert graph["height"] <= ground["height"]
        assert graph["width"] <= ground["width"]

    def test_the_wheel_scrolls_and_dragging_pans(self, page: Page) -> None:
        page.open(pages.project(200))
        ground = page.find("#canvas")
        ActionChains(page.browser).scroll_from_origin(ScrollOrigin.from_element(ground), 0, 300).perform()
        page.until("document.getElementById('canvas').scrollTop", 300)
        free = page.js(
            "const r = arguments[0].getBoundingClientRect();"
            "for (let x = 5; x < r.width; x += 5) for (let y = 200; y < r.height; y += 5)"
            "  if (!document.elementFromPoint(r.left + x, r.top + y).closest('.node, .line')) return [x, y];",
            ground,
        )
        mouse = ActionChains(page.browser)
        mouse.move_to_element_with_offset(
            ground, free[0] - ground.size["width"] // 2, free[1] - ground.size["height"] // 2
        )
        mouse.click_and_hold().move_by_offset(0, -120).release().perform()
        assert page.js("return arguments[0].scrollTop", ground) == pytest.approx(420, abs=2)
        ActionChains(page.browser).move_by_offset(0, 60).perform()
        assert page.js("return arguments[0].scrollTop", ground) == pytest.approx(420, abs=2), "the drag has ended"


class TestManyRelations:
    def test_a_thousand_are_collapsed_into_schemas(self, page: Page) -> None:
        page.open(pages.project())
        assert columns(page) == [["raw"], ["stg"], ["int"], ["mart"]]
        assert page.texts("#canvas .node .small") == ["250 relations"] * 4
        assert page.js(EDGES) == ["int late mart", "raw to stg", "stg to int"]
        assert page.texts("#canvas .node .stale") == [f"▲ {page.text('#stale-count')}"]
        page.photograph("thousand-schemas")
        page.click("#canvas .node", "mart")
        assert len(page.shown("#canvas .node")) == 250
        assert page.js(FLAWS, "#canvas") == []
        page.photograph("thousand-one-schema")
        page.click("#all-groups")
        assert len(page.shown("#canvas .node")) == 4
        page.browser.back()
        page.until("document.querySelectorAll('#canvas .node').length", 250)

    def test_all_thousand_can_be_drawn(self, page: Page) -> None:
        page.open(pages.project(), "#show=all")
        assert len(page.shown("#canvas .node")) == 1000
        assert f"1,000 relations, {len(page.js(EDGES)):,} edges" in page.text("#overview-count")
        print("1,000 relations:", page.js("return performance.getEntriesByType('navigation')[0].loadEventEnd"), "ms")

    def test_the_neighborhood_of_the_chosen_model(self, page: Page) -> None:
        page.open(pages.project(), "#model=lake.int.int_0510&tab=overview&depth=1")
        assert labels(page, "#canvas .node.chosen") == ["int_0510"]
        near = {name for edge in page.js(EDGES) for name in edge.split() if "_" in name}
        assert set(labels(page)) == near
        assert 2 < len(near) < 20
        page.click("#depth")
        page.keys("2", Keys.ENTER)
        assert len(labels(page)) > len(near)
        page.click("#scope")
        page.keys("schemas", Keys.ENTER)
        assert labels(page) == ["int", "mart", "raw", "stg"]

    def test_one_schema_is_split_by_the_first_word_of_the_name(self, page: Page) -> None:
        page.open(pages.project(schemas=False))
        assert columns(page) == [["raw_*"], ["stg_*"], ["int_*"], ["mart_*"]]

    def test_in_a_group_others_are_boxes_beside_it(self, page: Page) -> None:
        page.open(pages.project(100), "#show=in:int")
        assert len(page.shown("#canvas .node")) == 25 + 2
        assert labels(page, "#canvas .node.group") == ["mart", "stg"]
        assert page.js(FLAWS, "#canvas") == []
        page.click("#canvas .node.group", "stg")
        assert labels(page, "#canvas .node.group") == ["int", "raw"]

    def test_a_search_says_which_groups_have_a_match(self, page: Page) -> None:
        page.open(pages.project(), "#q=mart_09")
        assert labels(page, "#canvas .node:not(.off)") == ["mart"]


class TestLook:
    @pytest.mark.parametrize("theme", ["light", "dark"])
    @pytest.mark.parametrize("width", [1280, 1000, 400])
    def test_the_graph_has_most_of_the_window(self, page: Page, theme: str, width: int) -> None:
        page.resize(width)
        page.prefer(color_scheme=theme)
        page.open(pages.dag())
        shown = page.js("return document.querySelector('#canvas').getBoundingClientRect().toJSON()")
        assert shown["height"] > 300
        assert shown["right"] <= width
        page.photograph(f"overview-{theme}-{width}")
