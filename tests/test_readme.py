"""Every Python example of README.md and docs/ runs: page by page, in order, without a warning.

Blocks that are not meant to run are fenced as text. The pages of docs/ that only include other
files, and the API pages, have no blocks of their own.
"""

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)(`{3,}|~{3,})([^\n]*)\n(.*?)^\1\2 *$", flags=re.MULTILINE | re.DOTALL)
LANGUAGES = {"python", "console", "text", ""}


def fences(page):
    """Language, first line and text of every fenced block."""
    text = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 2
        yield found[3].strip(), line, textwrap.dedent(found[4])


def with_python(page):
    return any(language == "python" for language, _, _ in fences(page))


@pytest.mark.parametrize(
    "page",
    # that of README.md runs below
    [pytest.param(p, id=str(p.relative_to(ROOT))) for p in PAGES[1:] if with_python(p)],
)
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for language, line, text in fences(page):
        if language == "python":
            # the lines above stand for the rest of the page, so that a traceback names its line
            code = compile("\n" * (line - 1) + text, str(page), "exec")
            exec(code, names)
    assert any(str(getattr(v, "__module__", v)).count("vectorfield") for v in names.values())


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in PAGES])
def test_fences_say_what_they_hold(page):
    assert {language for language, _, _ in fences(page)} <= LANGUAGES


def test_the_pages_meant_to_run_are_found():
    found = {str(page.relative_to(ROOT)) for page in PAGES if with_python(page)}
    names = ("data", "kernels", "method", "priors", "rivals", "rules", "simulate", "solvers")
    names += ("tuning",)
    guide = {f"docs/guide/{name}.md" for name in names}
    assert found >= {"README.md", "docs/index.md", "docs/tutorial.md"} | guide


def test_the_quick_start_gives_what_its_comments_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (block,) = [text for language, _, text in fences(ROOT / "README.md") if language == "python"]
    assert len(block.splitlines()) <= 25
    names = {}
    exec(block, names)
    model, xs, ts = names["model"], names["xs"], names["ts"]
    assert abs(model.predict([[1.0, 0.0]]) - [0.0, -1.0]).max() < 0.01
    assert model.score(xs[5:], ts[5:]) > 0.99
    assert model.plan_ == model.report_.best.plan
    assert (tmp_path / "oscillator.vf").exists()


def test_pictures_and_links_of_the_readme_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = [t for t in re.findall(r"\]\(([^)\s]+)\)", text) if not t.startswith("http")]
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target.partition("#")[0]).exists()] == []
    picture = ROOT / "docs" / "img" / "fhn.png"
    assert picture.stat().st_size < 200_000
